// Card of a goal in the list of goals; the card of the selected goal shows all settings.
import { choice, el, fill, iconButton, line, press, write } from "./element";
import { capitalized, errorText } from "./format";
import { PoseFields, type Pose } from "./pose_numbers";
import { availableKinds, DIRECTIONS, goalTitle, type GoalKind } from "../goal_kinds";
import { setIcon } from "./icons";
import { NumberField } from "./number_field";
import type { Units } from "./units";
import type { ChangeGoal, GoalInfo } from "../messages";
import type { Store } from "../store";

export class GoalCard {
  readonly root = el("div", { class: "goal" });
  readonly number: number;
  private readonly title = el("button", { class: "goal-title" });
  private readonly kind = el("span", { class: "goal-kind" });
  private readonly error = el("span", { class: "goal-error" });
  private readonly enabled: HTMLButtonElement;
  private readonly pin: HTMLButtonElement;
  private readonly body = el("div", { class: "goal-body" });
  private numbers: PoseFields | null = null;
  private signature = "";

  constructor(
    private readonly store: Store,
    private readonly units: Units,
    private goal: GoalInfo,
  ) {
    this.number = goal.number;
    this.root.dataset["test"] = `goal-${goal.number}`;
    this.title.type = "button";
    this.title.append(
      el("span", { class: "goal-dot" }),
      el("span", { class: "goal-name" }),
      el("span", { class: "goal-state" }, this.kind, this.error),
    );
    this.title.addEventListener("click", () => store.select({ kind: "goal", goal: this.number }));
    this.enabled = iconButton("eye", "Enable or disable", {
      test: "goal-enabled",
      click: () => this.request({ enabled: !this.goal.enabled }),
    });
    this.pin = iconButton("pin", "Pin: priority over all other goals", {
      test: "goal-pinned",
      click: () => this.request({ pinned: !this.goal.pinned }),
    });
    const remove = iconButton("trash", "Remove (Delete)", {
      test: "goal-remove",
      click: () => void store.request({ do: "RemoveGoal", goal: this.number }),
    });
    this.root.append(el("div", { class: "goal-head" }, this.title, this.enabled, this.pin, remove), this.body);
    this.update(goal);
  }

  update(goal: GoalInfo): void {
    this.goal = goal;
    write(this.title.querySelector(".goal-name")!, goalTitle(goal, this.store));
    write(this.kind, goal.name ? this.store.goalKind(goal.kind).title : "");
    setIcon(this.enabled, goal.enabled ? "eye" : "hidden");
    press(this.enabled, goal.enabled);
    press(this.pin, goal.pinned);
    this.root.classList.toggle("is-off", !goal.enabled);
    this.root.classList.toggle("is-pinned", goal.pinned);
    if (this.root.classList.contains("is-selected")) this.build();
  }

  select(isSelected: boolean): void {
    if (this.root.classList.contains("is-selected") === isSelected) return;
    this.root.classList.toggle("is-selected", isSelected);
    if (isSelected) this.build();
    else {
      this.signature = "";
      this.numbers = null;
      fill(this.body);
    }
  }

  /** numbers: entry of this goal in a state frame: pose, position error in m, angle error in rad. */
  showNumbers(numbers: Float64Array): void {
    const [distance, angle] = [numbers[7] ?? 0, numbers[8] ?? 0];
    write(this.error, this.goal.enabled ? errorText(distance, angle) : "off");
    this.root.dataset["tone"] = !this.goal.enabled ? "quiet" : Math.max(distance, angle) < 1e-5 ? "good" : "warn";
    this.numbers?.show([...numbers.subarray(0, 7)] as Pose);
  }

  private request(change: Omit<ChangeGoal, "do" | "goal">): void {
    void this.store.request({ do: "ChangeGoal", goal: this.number, ...change }).then((isAccepted) => {
      if (isAccepted) return;
      this.signature = ""; // show the value before the refused change
      this.update(this.goal);
    });
  }

  private build(): void {
    const { goal, store } = this;
    const kind = store.goalKind(goal.kind);
    const links = store.model?.links ?? [];
    // fields are rebuilt only if these values change, since a rebuilt field loses the focus
    const signature = JSON.stringify([
      goal.kind,
      goal.link,
      goal.at,
      goal.weight,
      goal.level,
      goal.sizes,
      goal.free,
      links.length,
    ]);
    if (signature === this.signature) return;
    this.signature = signature;
    this.numbers = new PoseFields(
      this.units,
      kind.uses_rotation,
      (pose) => void store.request({ do: "MoveGoal", goal: this.number, pose }),
    );
    this.numbers.show(goal.pose);
    const weight = this.field("weight", "plain", goal.weight, (value) => this.request({ weight: value }));
    const level = choice(
      Array.from({ length: 10 }, (_none, k) => [String(k), k === 0 ? "0 (first)" : String(k)] as const),
      String(goal.level),
      { test: "goal-level", label: "Level" },
      (value) => this.request({ level: Number(value) }),
    );
    fill(
      this.body,
      line(
        "Kind",
        kind.about,
        choice(
          availableKinds(store, goal.kind).map(({ kind, title }) => [kind, title]),
          goal.kind,
          { test: "goal-kind", label: "Kind" },
          (kind) => this.request({ kind: kind as GoalKind }),
        ),
      ),
      links[goal.link] &&
        line(
          "Link",
          "The link that the goal moves",
          choice(
            links.map(({ name }) => [name, name]),
            links[goal.link]!.name,
            { test: "goal-link", label: "Link" },
            (link) => this.request({ link }),
          ),
        ),
      this.numbers.root,
      ...this.sizes(),
      kind.has_free_directions && this.directions(),
      line("Weight", "Relative to the other goals of the same level", weight.root),
      line("Level", "Priority: goals of level 0 are met first, then goals of level 1, and so on", level),
      kind.at !== "unused" && this.linkPoint(kind.at),
    );
    const at = store.goals.findIndex(({ number }) => number === this.number);
    if (store.frame && store.frame.order === store.order)
      this.showNumbers(store.frame.goals.subarray(9 * at, 9 * at + 9));
  }

  private sizes(): HTMLElement[] {
    return this.store.goalKind(this.goal.kind).sizes.map(({ name, quantity }, k) => {
      const field = this.field(name, quantity, this.goal.sizes[k] ?? 0, (value) => {
        const sizes: GoalInfo["sizes"] = [...this.goal.sizes];
        sizes[k] = value;
        this.request({ sizes });
      });
      return line(capitalized(name), "", field.root, el("span", { class: "unit" }, this.units.of(quantity).name));
    });
  }

  /** Toggles for the six directions of a pose: constrained or free. */
  private directions(): HTMLElement {
    const toggles = DIRECTIONS.map(([name, title]) => {
      const toggle = el(
        "button",
        { class: "button is-small", test: `goal-free-${name}`, title: `${title}: constrained or free` },
        name,
      );
      toggle.type = "button";
      press(toggle, !this.goal.free.includes(name));
      toggle.addEventListener("click", () => {
        const free = this.goal.free.includes(name)
          ? this.goal.free.filter((direction) => direction !== name)
          : [...this.goal.free, name];
        this.request({ free });
      });
      return toggle;
    });
    return el(
      "div",
      { class: "goal-directions" },
      el("span", { class: "caption" }, "Constrained directions, in the frame of the goal"),
      el("div", { class: "six" }, ...toggles),
    );
  }

  /** Fields for `at`: a point or a direction on the link. */
  private linkPoint(meaning: "point" | "direction"): HTMLElement {
    const fields = ["x", "y", "z"].map((name, k) =>
      this.field(`at ${name}`, "length", this.goal.at[k] ?? 0, (value) => {
        const at: GoalInfo["at"] = [...this.goal.at];
        at[k] = value;
        this.request({ at });
      }),
    );
    return el(
      "div",
      { class: "goal-numbers" },
      el(
        "span",
        { class: "caption" },
        meaning === "direction" ? "Direction on the link, in the link frame" : "Point on the link, in the link frame",
      ),
      el(
        "div",
        { class: "triple" },
        ...fields.map((field, k) => el("label", {}, el("span", {}, "xyz"[k]!), field.root)),
      ),
    );
  }

  private field(
    name: string,
    quantity: "length" | "angle" | "plain",
    value: number,
    changed: (value: number) => void,
  ): NumberField {
    const field = new NumberField(
      this.units,
      { quantity, label: name, test: `goal-${name.replace(" ", "-")}` },
      (now) => now !== null && changed(now),
    );
    field.show(value);
    return field;
  }
}
