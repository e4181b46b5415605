// Goals: what is wanted of which link.
import { button, choice, el, fill, section } from "./element";
import { GoalCard } from "./goal_card";
import { kindsHere, type GoalKind } from "./goal_words";
import { paced } from "./pace";
import type { Panel } from "./side";
import type { Units } from "./units";
import type { Store } from "../store";

export class GoalsPanel implements Panel {
  readonly root = el("div", { test: "panel-goals" });
  private readonly list = el("div", { class: "goals" });
  private readonly chooser = el("div", { class: "goal-adder" });
  private cards: GoalCard[] = [];
  private kind: GoalKind = "pose";
  private link = "";
  private hasGround = false; // when the kinds were offered

  constructor(
    private readonly store: Store,
    private readonly units: Units,
  ) {
    this.root.append(section("Goals", this.list), section("Add a goal", this.chooser));
    store.on("goals", () => {
      this.build();
      if (this.link === "") this.offer();
    });
    store.on("scene", ({ terrain }) => {
      if (this.link !== "" && this.hasGround !== (terrain !== null)) this.offer();
    });
    store.on("model", () => {
      this.cards = [];
      this.link = ""; // offered when its goals come
      this.build();
    });
    store.on("selection", () => this.select());
    store.on(
      "frame",
      paced(() => this.paint()),
    );
    units.onChange(() => {
      this.cards = [];
      this.build();
    });
  }

  shown(): void {
    this.paint();
    this.select();
  }

  private build(): void {
    const kept = new Map(this.cards.map((card) => [card.number, card]));
    this.cards = this.store.goals.map((goal) => {
      const card = kept.get(goal.number);
      card?.update(goal);
      return card ?? new GoalCard(this.store, this.units, goal);
    });
    const roots = this.cards.map((card) => card.root);
    const isSame =
      roots.length === this.list.children.length && roots.every((root, k) => root === this.list.children[k]);
    if (!isSame || roots.length === 0)
      fill(
        this.list,
        ...(roots.length > 0
          ? roots
          : [el("p", { class: "quiet" }, "Nothing is wanted. Add a goal below, or right-click a link.")]),
      );
    this.select();
    this.paint();
  }

  private paint(): void {
    const { frame, order } = this.store;
    if (!frame || frame.order !== order || this.root.hidden) return;
    this.cards.forEach((card, k) => card.show(frame.goals.subarray(9 * k, 9 * k + 9)));
  }

  private select(): void {
    const chosen = this.store.selection;
    for (const card of this.cards) {
      const isIt = chosen.kind === "goal" && chosen.goal === card.number;
      card.select(isIt);
      if (isIt && !this.root.hidden) card.root.scrollIntoView({ block: "nearest" });
    }
    if (chosen.kind === "link") {
      this.link = this.store.model?.links[chosen.link]?.name ?? this.link;
      const select = this.chooser.querySelector<HTMLSelectElement>("[data-test=add-link]");
      if (select) select.value = this.link;
    }
  }

  private offer(): void {
    const links = this.store.model?.links ?? [];
    const first = this.store.goals[0]?.link ?? -1;
    this.link = (links[first] ?? links.at(-1))?.name ?? "";
    this.hasGround = Boolean(this.store.scene?.terrain);
    const kinds = kindsHere(this.store);
    if (!kinds.some(([kind]) => kind === this.kind)) this.kind = "pose";
    fill(
      this.chooser,
      choice(
        links.map(({ name }) => [name, name]),
        this.link,
        { test: "add-link", label: "Link" },
        (link) => (this.link = link),
      ),
      choice(
        kinds,
        this.kind,
        { test: "add-kind", label: "Kind" },
        (kind) => (this.kind = kind as GoalKind),
      ),
      button("Add", { test: "add-goal", click: () => void this.add(false) }, "plus"),
      button(
        "Pin",
        {
          test: "add-pin",
          title: "Hold this link where it is, above all other goals",
          click: () => void this.add(true),
        },
        "pin",
      ),
    );
  }

  private async add(pinned: boolean): Promise<void> {
    const before = new Set(this.store.goals.map(({ number }) => number));
    if (!(await this.store.ask({ do: "AddGoal", kind: pinned ? "pose" : this.kind, link: this.link, pinned }))) return;
    const made = this.store.goals.find(({ number }) => !before.has(number));
    if (made) this.store.select({ kind: "goal", goal: made.number });
  }
}
