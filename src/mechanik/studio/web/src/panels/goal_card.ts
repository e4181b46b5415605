// Card of a goal in the list of goals; the card of the selected goal shows all settings.
import { choice, el, fill, iconButton, line, press, write } from "./element";
import { capitalized, errorText } from "./format";
import { PoseFields, type Pose } from "./pose_fields";
import { availableKinds, POSE_DOFS, goalTitle, type GoalKind } from "../goal_kinds";
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
  private readonly enableButton: HTMLButtonElement;
  private readonly pinButton: HTMLButtonElement;
  private readonly body = el("div", { class: "goal-body" });
  private poseFields: PoseFields | null = null;
  private signature = ""; // settings for which the fields were built

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
    this.enableButton = iconButton("eye", "Enable or disable this goal", {
      test: "goal-enabled",
      click: () => this.request({ enabled: !this.goal.enabled }),
    });
    this.pinButton = iconButton("pin", "Pin or unpin: a pinned goal has the highest priority", {
      test: "goal-pinned",
      click: () => this.request({ pinned: !this.goal.pinned }),
    });
    const removeButton = iconButton("trash", "Remove this goal (Delete)", {
      test: "goal-remove",
      click: () => void store.request({ do: "RemoveGoal", goal: this.number }),
    });
    const head = el("div", { class: "goal-head" }, this.title, this.enableButton, this.pinButton, removeButton);
    this.root.append(head, this.body);
    this.update(goal);
  }

  update(goal: GoalInfo): void {
    this.goal = goal;
    write(this.title.querySelector(".goal-name")!, goalTitle(goal, this.store));
    write(this.kind, goal.name ? this.store.goalKind(goal.kind).title : "");
    setIcon(this.enableButton, goal.enabled ? "eye" : "hidden");
    press(this.enableButton, goal.enabled);
    press(this.pinButton, goal.pinned);
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
      this.poseFields = null;
      fill(this.body);
    }
  }

  /** numbers: entry of this goal in a state frame: pose, position error in m, angle error in rad. */
  showNumbers(numbers: Float64Array): void {
    const [distance, angle] = [numbers[7] ?? 0, numbers[8] ?? 0];
    write(this.error, this.goal.enabled ? errorText(distance, angle) : "off");
    // 1e-5 m or rad: the same limit as in `error_list.ts`
    this.root.dataset["tone"] = !this.goal.enabled ? "quiet" : Math.max(distance, angle) < 1e-5 ? "good" : "warn";
    this.poseFields?.show([...numbers.subarray(0, 7)] as Pose);
  }

  private request(change: Omit<ChangeGoal, "do" | "goal">): void {
    void this.store.request({ do: "ChangeGoal", goal: this.number, ...change }).then((isAccepted) => {
      if (isAccepted) return;
      this.signature = ""; // show the value before the rejected change
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
    this.poseFields = new PoseFields(
      this.units,
      kind.uses_rotation,
      (pose) => void store.request({ do: "MoveGoal", goal: this.number, pose }),
    );
    this.poseFields.show(goal.pose);
    const weight = this.field("weight", "plain", goal.weight, (value) => this.request({ weight: value }));
    const level = choice(
      Array.from({ length: 10 }, (_, k) => [String(k), k === 0 ? "0 (first)" : String(k)] as const),
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
      this.poseFields.root,
      ...this.sizeLines(),
      kind.has_free_directions && this.dofToggles(),
      line("Weight", "Weight relative to the other goals of the same level", weight.root),
      line("Level", "Priority: goals of level 0 are met first, then goals of level 1, and so on", level),
      kind.at !== "unused" && this.linkPointFields(kind.at),
    );
    const index = store.goals.findIndex(({ number }) => number === this.number);
    if (store.frame && store.frame.order === store.order)
      this.showNumbers(store.frame.goals.subarray(9 * index, 9 * index + 9));
  }

  private sizeLines(): HTMLElement[] {
    return this.store.goalKind(this.goal.kind).sizes.map(({ name, quantity }, k) => {
      const field = this.field(name, quantity, this.goal.sizes[k] ?? 0, (value) => {
        const sizes: GoalInfo["sizes"] = [...this.goal.sizes];
        sizes[k] = value;
        this.request({ sizes });
      });
      return line(capitalized(name), "", field.root, el("span", { class: "unit" }, this.units.of(quantity).name));
    });
  }

  /** Toggles for the six dofs of a pose: constrained or free. */
  private dofToggles(): HTMLElement {
    const toggles = POSE_DOFS.map(([name, title]) => {
      const toggle = el(
        "button",
        { class: "button is-small", test: `goal-free-${name}`, title: `${title}: constrained or free` },
        name,
      );
      toggle.type = "button";
      press(toggle, !this.goal.free.includes(name));
      toggle.addEventListener("click", () => {
        const free = this.goal.free.includes(name)
          ? this.goal.free.filter((dof) => dof !== name)
          : [...this.goal.free, name];
        this.request({ free });
      });
      return toggle;
    });
    return el(
      "div",
      { class: "goal-directions" },
      el("span", { class: "caption" }, "Constrained dofs, in the frame of the goal"),
      el("div", { class: "six" }, ...toggles),
    );
  }

  /** Fields for `at`: a point or a direction in the frame of the link. */
  private linkPointFields(meaning: "point" | "direction"): HTMLElement {
    const fields = ["x", "y", "z"].map((name, k) =>
      this.field(`at ${name}`, meaning === "direction" ? "plain" : "length", this.goal.at[k] ?? 0, (value) => {
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
        meaning === "direction"
          ? "Direction on the link, in the link frame"
          : `Point on the link, in the link frame, ${this.units.of("length").name}`,
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
    onChange: (value: number) => void,
  ): NumberField {
    const field = new NumberField(
      this.units,
      { quantity, label: name, test: `goal-${name.replace(" ", "-")}` },
      (newValue) => newValue !== null && onChange(newValue),
    );
    field.show(value);
    return field;
  }
}
