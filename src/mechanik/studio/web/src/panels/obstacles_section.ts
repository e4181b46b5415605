// Obstacles: what stands in the way, where it stands, and more of it.
import { button, el, fill, iconButton, line, section, write } from "./element";
import { capital } from "./format";
import { NumberField } from "./number_field";
import { addObstacle, OBSTACLES, OBSTACLE_SIZES } from "./obstacle_words";
import { paced } from "./pace";
import { PoseNumbers, type Pose } from "./pose_numbers";
import type { Units } from "./units";
import type { MoveObstacle, ObstacleInfo, ResizeObstacle } from "../messages";
import type { Store } from "../store";

const NOTHING = "Nothing stands in the way.";

/** One in the list; when it is selected, its place, its turn and its sizes. */
class ObstacleCard {
  readonly root = el("div", { class: "goal" });
  private readonly what = el("span", { class: "goal-state" });
  private readonly body = el("div", { class: "goal-body" });
  private numbers: PoseNumbers | null = null;
  private sizes: NumberField[] = [];

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
      this.what,
    );
    title.type = "button";
    const remove = iconButton("trash", "Remove (Delete)", {
      test: "obstacle-remove",
      click: () => void store.ask({ do: "RemoveObstacle", obstacle: name }),
    });
    this.root.append(el("div", { class: "goal-head is-obstacle" }, title, remove), this.body);
  }

  show(info: ObstacleInfo, isHit: boolean): void {
    write(this.what, info.kind);
    this.root.dataset["mood"] = isHit ? "bad" : "quiet";
    this.numbers?.show(info.pose);
    this.sizes.forEach((field, k) => field.show(info.shape.sizes[k] ?? 0));
  }

  select(isSelected: boolean): void {
    if (this.root.classList.contains("is-selected") === isSelected) return;
    this.root.classList.toggle("is-selected", isSelected);
    const kind = this.store.obstacle(this.name)?.kind;
    const names = (isSelected && kind && OBSTACLE_SIZES[kind]) || [];
    this.numbers = isSelected ? new PoseNumbers(this.units, true, (pose) => this.move(pose), "obstacle") : null;
    this.sizes = names.map((_, k) => this.sizeField(names[k]!, k));
    const unit = this.units.of("length").name;
    const lines = this.sizes.map((field, k) =>
      line(capital(names[k]!), "", field.root, el("span", { class: "unit" }, unit)),
    );
    fill(this.body, this.numbers?.root, ...lines);
  }

  private sizeField(name: string, k: number): NumberField {
    const test = `obstacle-${name.replace(" ", "-")}`;
    return new NumberField(this.units, { quantity: "length", label: name, test }, (size) => {
      const info = this.store.obstacle(this.name);
      if (size === null || !info) return;
      const sizes = info.shape.sizes.map((before, n) => (n === k ? size : before));
      this.ask({ do: "ResizeObstacle", obstacle: this.name, sizes });
    });
  }

  private move(pose: Pose): void {
    this.ask({ do: "MoveObstacle", obstacle: this.name, pose });
  }

  /** What is refused is taken back. */
  private ask(request: MoveObstacle | ResizeObstacle): void {
    void this.store.ask(request).then((isDone) => {
      const info = this.store.obstacle(this.name);
      if (!isDone && info) this.show(info, this.root.dataset["mood"] === "bad");
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
    const adders = OBSTACLES.map(([kind, title]) =>
      button(title, { test: `add-${kind}`, title: `Put a ${kind} beside it`, click: () => void addObstacle(store, kind) },
        "plus"),
    );
    this.root = section("Obstacles", this.list, el("div", { class: "triple" }, ...adders));
    const soon = paced(() => this.paint());
    store.on("obstacles", () => (this.isSame() ? soon() : this.build()));
    store.on("model", () => this.build());
    store.on("clashes", soon);
    store.on("selection", () => this.select());
    units.onChange(() => {
      this.cards = [];
      this.build();
    });
    this.build();
  }

  /** Into sight: with the one that is selected. */
  shown(): void {
    this.select();
  }

  private isSame(): boolean {
    const { obstacles } = this.store;
    return obstacles.length === this.cards.length && obstacles.every(({ name }, k) => name === this.cards[k]!.name);
  }

  private build(): void {
    const kept = new Map(this.cards.map((card) => [card.name, card]));
    this.cards = this.store.obstacles.map(
      ({ name }) => kept.get(name) ?? new ObstacleCard(this.store, this.units, name),
    );
    const nothing = el("p", { class: "quiet", test: "no-obstacles" }, NOTHING);
    fill(this.list, ...(this.cards.length > 0 ? this.cards.map(({ root }) => root) : [nothing]));
    this.select();
  }

  private select(): void {
    const chosen = this.store.selection;
    for (const card of this.cards) {
      const isIt = chosen.kind === "obstacle" && chosen.obstacle === card.name;
      card.select(isIt);
      if (isIt && this.root.offsetParent !== null) card.root.scrollIntoView({ block: "nearest" });
    }
    this.paint();
  }

  private paint(): void {
    const { obstacles, clashes } = this.store;
    const hit = new Set(clashes?.obstacles);
    obstacles.forEach((info, k) => this.cards[k]?.show(info, hit.has(info.name)));
  }
}
