// Panel with the list of goals and the form that adds a goal.
import { button, choice, el, fill, section } from "./element";
import { GoalCard } from "./goal_card";
import { availableKinds, type GoalKind } from "../goal_kinds";
import { throttled } from "./throttle";
import type { Panel } from "./sidebar";
import type { Units } from "./units";
import type { Store } from "../store";

export class GoalsPanel implements Panel {
  readonly root = el("div", { test: "panel-goals" });
  private readonly list = el("div", { class: "goals" });
  private readonly addForm = el("div", { class: "goal-adder" });
  private cards: GoalCard[] = [];
  private kind: GoalKind = "pose";
  private link = ""; // name of the link in the form; empty: the form is not built yet
  private hasTerrain = false; // whether the scene had a terrain when the form was built

  constructor(
    private readonly store: Store,
    private readonly units: Units,
  ) {
    this.root.append(section("Goals", this.list), section("Add a goal", this.addForm));
    store.on("goals", () => {
      this.build();
      if (this.link === "") this.buildAddForm();
    });
    store.on("scene", ({ terrain }) => {
      if (this.link !== "" && this.hasTerrain !== (terrain !== null)) this.buildAddForm();
    });
    store.on("model", () => {
      this.cards = [];
      this.link = ""; // set when the goals of the model are received
      this.build();
    });
    store.on("selection", () => this.select());
    store.on(
      "frame",
      throttled(() => this.refresh()),
    );
    units.onChange(() => {
      this.cards = [];
      this.build();
    });
  }

  onShown(): void {
    this.refresh();
    this.select();
  }

  private build(): void {
    const cardsByNumber = new Map(this.cards.map((card) => [card.number, card]));
    this.cards = this.store.goals.map((goal) => {
      const card = cardsByNumber.get(goal.number);
      card?.update(goal);
      return card ?? new GoalCard(this.store, this.units, goal);
    });
    const roots = this.cards.map((card) => card.root);
    const hasSameCards =
      roots.length === this.list.children.length && roots.every((root, k) => root === this.list.children[k]);
    if (!hasSameCards || roots.length === 0)
      fill(
        this.list,
        ...(roots.length > 0
          ? roots
          : [el("p", { class: "quiet" }, "No goals. Add one below, or right-click a link.")]),
      );
    this.select();
    this.refresh();
  }

  private refresh(): void {
    const { frame, order } = this.store;
    if (!frame || frame.order !== order || this.root.hidden) return;
    this.cards.forEach((card, k) => card.showNumbers(frame.goals.subarray(9 * k, 9 * k + 9)));
  }

  private select(): void {
    const selection = this.store.selection;
    for (const card of this.cards) {
      const isSelected = selection.kind === "goal" && selection.goal === card.number;
      card.select(isSelected);
      if (isSelected && !this.root.hidden) card.root.scrollIntoView({ block: "nearest" });
    }
    if (selection.kind === "link") {
      this.link = this.store.model?.links[selection.link]?.name ?? this.link;
      const select = this.addForm.querySelector<HTMLSelectElement>("[data-test=add-link]");
      if (select) select.value = this.link;
    }
  }

  private buildAddForm(): void {
    const links = this.store.model?.links ?? [];
    const firstGoalLink = this.store.goals[0]?.link ?? -1;
    this.link = (links[firstGoalLink] ?? links.at(-1))?.name ?? "";
    this.hasTerrain = Boolean(this.store.scene?.terrain);
    const kinds = availableKinds(this.store);
    if (!kinds.some(({ kind }) => kind === this.kind)) this.kind = "pose";
    fill(
      this.addForm,
      choice(
        links.map(({ name }) => [name, name]),
        this.link,
        { test: "add-link", label: "Link" },
        (link) => (this.link = link),
      ),
      choice(
        kinds.map(({ kind, title }) => [kind, title]),
        this.kind,
        { test: "add-kind", label: "Kind" },
        (kind) => (this.kind = kind as GoalKind),
      ),
      button("Add", { test: "add-goal", click: () => void this.add(false) }, "plus"),
      button(
        "Pin",
        {
          test: "add-pin",
          title: "Hold this link in place, with the highest priority",
          click: () => void this.add(true),
        },
        "pin",
      ),
    );
  }

  private async add(pinned: boolean): Promise<void> {
    const previousNumbers = new Set(this.store.goals.map(({ number }) => number));
    const kind = pinned ? "pose" : this.kind;
    if (!(await this.store.request({ do: "AddGoal", kind, link: this.link, pinned }))) return;
    const newGoal = this.store.goals.find(({ number }) => !previousNumbers.has(number));
    if (newGoal) this.store.select({ kind: "goal", goal: newGoal.number });
  }
}
