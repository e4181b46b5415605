// List of obstacles, and buttons that add an obstacle.
import { button, el, fill, iconButton, line, section, write } from "./element";
import { capitalized } from "./format";
import { NumberField } from "./number_field";
import { addObstacle, OBSTACLE_KINDS, OBSTACLE_SIZES } from "./obstacle_text";
import { throttled } from "./throttle";
import { PoseFields, type Pose } from "./pose_fields";
import type { Units } from "./units";
import type { MoveObstacle, ObstacleInfo, ResizeObstacle } from "../messages";
import type { Store } from "../store";

const EMPTY_TEXT = "No obstacles.";

/** Card of an obstacle in the list; the card of the selected obstacle shows its pose and sizes. */
class ObstacleCard {
  readonly root = el("div", { class: "goal" });
  private readonly kind = el("span", { class: "goal-state" });
  private readonly body = el("div", { class: "goal-body" });
  private poseFields: PoseFields | null = null;
  private sizeFields: NumberField[] = [];

  constructor(
    private readonly store: Store,
    private readonly units: Units,
    readonly name: string,
  ) {
    this.root.dataset["test"] = `obstacle-${name}`;
    const title = el(
      "button",
      { class: "goal-title", click: () => store.select({ kind: "obstacle", obstacle: name }) },
      el("span", { class: "goal-dot" }),
      el("span", { class: "goal-name" }, name),
      this.kind,
    );
    title.type = "button";
    const removeButton = iconButton("trash", "Remove this obstacle (Delete)", {
      test: "obstacle-remove",
      click: () => void store.request({ do: "RemoveObstacle", obstacle: name }),
    });
    this.root.append(el("div", { class: "goal-head is-obstacle" }, title, removeButton), this.body);
  }

  show(info: ObstacleInfo, isInContact: boolean): void {
    write(this.kind, info.kind);
    this.root.dataset["tone"] = isInContact ? "bad" : "quiet";
    this.poseFields?.show(info.pose);
    this.sizeFields.forEach((field, k) => field.show(info.shape.sizes[k] ?? 0));
  }

  select(isSelected: boolean): void {
    if (this.root.classList.contains("is-selected") === isSelected) return;
    this.root.classList.toggle("is-selected", isSelected);
    const kind = this.store.obstacle(this.name)?.kind;
    const names = (isSelected && kind && OBSTACLE_SIZES[kind]) || [];
    this.poseFields = isSelected ? new PoseFields(this.units, true, (pose) => this.move(pose), "obstacle") : null;
    this.sizeFields = names.map((name, index) => this.sizeField(name, index));
    const unit = this.units.of("length").name;
    const lines = this.sizeFields.map((field, k) =>
      line(capitalized(names[k]!), "", field.root, el("span", { class: "unit" }, unit)),
    );
    fill(this.body, this.poseFields?.root, ...lines);
  }

  private sizeField(name: string, index: number): NumberField {
    const test = `obstacle-${name.replace(" ", "-")}`;
    return new NumberField(this.units, { quantity: "length", label: name, test }, (size) => {
      const info = this.store.obstacle(this.name);
      if (size === null || !info) return;
      const sizes = info.shape.sizes.map((previousSize, k) => (k === index ? size : previousSize));
      this.request({ do: "ResizeObstacle", obstacle: this.name, sizes });
    });
  }

  private move(pose: Pose): void {
    this.request({ do: "MoveObstacle", obstacle: this.name, pose });
  }

  /** Sends a request; if it is rejected, the fields show the previous values. */
  private request(request: MoveObstacle | ResizeObstacle): void {
    void this.store.request(request).then((isAccepted) => {
      const info = this.store.obstacle(this.name);
      if (!isAccepted && info) this.show(info, this.root.dataset["tone"] === "bad");
    });
  }
}

export class ObstaclesSection {
  readonly root: HTMLElement;
  private readonly list = el("div", { class: "goals" });
  private cards: ObstacleCard[] = [];

  constructor(
    private readonly store: Store,
    private readonly units: Units,
  ) {
    const addButtons = OBSTACLE_KINDS.map(([kind, title]) =>
      button(
        title,
        {
          test: `add-${kind}`,
          title: `Add a ${kind} beside the mechanism`,
          click: () => void addObstacle(store, kind),
        },
        "plus",
      ),
    );
    this.root = section("Obstacles", this.list, el("div", { class: "triple" }, ...addButtons));
    const refreshSoon = throttled(() => this.refresh());
    store.on("obstacles", () => (this.hasSameNames() ? refreshSoon() : this.build()));
    store.on("model", () => this.build());
    store.on("contacts", refreshSoon);
    store.on("selection", () => this.select());
    units.onChange(() => {
      this.cards = [];
      this.build();
    });
    this.build();
  }

  /** Scrolls to the selected obstacle. */
  onShown(): void {
    this.select();
  }

  private hasSameNames(): boolean {
    const { obstacles } = this.store;
    return obstacles.length === this.cards.length && obstacles.every(({ name }, k) => name === this.cards[k]!.name);
  }

  private build(): void {
    const cardsByName = new Map(this.cards.map((card) => [card.name, card]));
    this.cards = this.store.obstacles.map(
      ({ name }) => cardsByName.get(name) ?? new ObstacleCard(this.store, this.units, name),
    );
    const empty = el("p", { class: "quiet", test: "no-obstacles" }, EMPTY_TEXT);
    fill(this.list, ...(this.cards.length > 0 ? this.cards.map(({ root }) => root) : [empty]));
    this.select();
  }

  private select(): void {
    const selection = this.store.selection;
    for (const card of this.cards) {
      const isSelected = selection.kind === "obstacle" && selection.obstacle === card.name;
      card.select(isSelected);
      if (isSelected && this.root.offsetParent !== null) card.root.scrollIntoView({ block: "nearest" });
    }
    this.refresh();
  }

  private refresh(): void {
    const { obstacles, contacts } = this.store;
    const collidingNames = new Set(contacts?.obstacles);
    obstacles.forEach((info, k) => this.cards[k]?.show(info, collidingNames.has(info.name)));
  }
}
