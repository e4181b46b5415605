// One goal in the list; when it is selected, all that can be set of it.
import { choice, el, fill, iconButton, line, press, write } from "./element";
import { capital, missing } from "./format";
import { PoseNumbers, type Pose } from "./pose_numbers";
import {
  DIRECTED,
  DIRECTIONS,
  goalTitle,
  kindAbout,
  kindsHere,
  kindTitle,
  SIZES,
  WITHOUT_TURN,
  type GoalKind,
} from "./goal_words";
import { redraw } from "./icons";
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
  private numbers: PoseNumbers | null = null;
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
    this.enabled = iconButton("eye", "On or off", {
      test: "goal-enabled",
      click: () => this.change({ enabled: !this.goal.enabled }),
    });
    this.pin = iconButton("pin", "Pin: above all other goals", {
      test: "goal-pinned",
      click: () => this.change({ pinned: !this.goal.pinned }),
    });
    const remove = iconButton("trash", "Remove (Delete)", {
      test: "goal-remove",
      click: () => void store.ask({ do: "RemoveGoal", goal: this.number }),
    });
    this.root.append(el("div", { class: "goal-head" }, this.title, this.enabled, this.pin, remove), this.body);
    this.update(goal);
  }

  update(goal: GoalInfo): void {
    this.goal = goal;
    write(this.title.querySelector(".goal-name")!, goalTitle(goal, this.store.model));
    write(this.kind, goal.name ? kindTitle(goal.kind) : "");
    redraw(this.enabled, goal.enabled ? "eye" : "hidden");
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

  /** numbers: of this goal in a frame: pose, missing m and rad. */
  show(numbers: Float64Array): void {
    const [distance, angle] = [numbers[7] ?? 0, numbers[8] ?? 0];
    write(this.error, this.goal.enabled ? missing(distance, angle) : "off");
    this.root.dataset["mood"] = !this.goal.enabled ? "quiet" : Math.max(distance, angle) < 1e-5 ? "good" : "warn";
    this.numbers?.show([...numbers.subarray(0, 7)] as Pose);
  }

  private change(change: Omit<ChangeGoal, "do" | "goal">): void {
    void this.store.ask({ do: "ChangeGoal", goal: this.number, ...change }).then((isDone) => {
      if (isDone) return;
      this.signature = ""; // what was refused is taken back
      this.update(this.goal);
    });
  }

  private build(): void {
    const { goal, store } = this;
    const links = store.model?.links ?? [];
    // what is set here makes no new fields, so that focus stays where it is
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
    this.numbers = new PoseNumbers(
      this.units,
      !WITHOUT_TURN.has(goal.kind),
      (pose) => void store.ask({ do: "MoveGoal", goal: this.number, pose }),
    );
    this.numbers.show(goal.pose);
    const weight = this.field("weight", "plain", goal.weight, (value) => this.change({ weight: value }));
    const level = choice(
      Array.from({ length: 10 }, (_none, k) => [String(k), k === 0 ? "0, above all" : String(k)] as const),
      String(goal.level),
      { test: "goal-level", label: "Level" },
      (value) => this.change({ level: Number(value) }),
    );
    fill(
      this.body,
      line(
        "Kind",
        kindAbout(goal.kind),
        choice(
          kindsHere(store, goal.kind),
          goal.kind,
          { test: "goal-kind", label: "Kind" },
          (kind) => this.change({ kind: kind as GoalKind }),
        ),
      ),
      links[goal.link] &&
        line(
          "Link",
          "Of which link",
          choice(
            links.map(({ name }) => [name, name]),
            links[goal.link]!.name,
            { test: "goal-link", label: "Link" },
            (link) => this.change({ link }),
          ),
        ),
      this.numbers.root,
      ...this.sizes(),
      goal.kind === "pose" && this.directions(),
      line("Weight", "Against the other goals of its level", weight.root),
      line("Level", "Goals of a lower level give way to none of a higher", level),
      this.point(),
    );
    const at = store.goals.findIndex(({ number }) => number === this.number);
    if (store.frame && store.frame.order === store.order) this.show(store.frame.goals.subarray(9 * at, 9 * at + 9));
  }

  private sizes(): HTMLElement[] {
    return (SIZES[this.goal.kind] ?? []).map(([name, quantity], k) => {
      const field = this.field(name, quantity, this.goal.sizes[k] ?? 0, (value) => {
        const sizes: GoalInfo["sizes"] = [...this.goal.sizes];
        sizes[k] = value;
        this.change({ sizes });
      });
      return line(capital(name), "", field.root, el("span", { class: "unit" }, this.units.of(quantity).name));
    });
  }

  /** Which of the six directions of a pose are asked for. */
  private directions(): HTMLElement {
    const toggles = DIRECTIONS.map(([name, title]) => {
      const one = el(
        "button",
        { class: "button is-small", test: `goal-free-${name}`, title: `${title}: asked for, or free` },
        name,
      );
      one.type = "button";
      press(one, !this.goal.free.includes(name));
      one.addEventListener("click", () => {
        const free = this.goal.free.includes(name)
          ? this.goal.free.filter((other) => other !== name)
          : [...this.goal.free, name];
        this.change({ free });
      });
      return one;
    });
    return el(
      "div",
      { class: "goal-directions" },
      el("span", { class: "caption" }, "Asked for, in the goal's frame"),
      el("div", { class: "six" }, ...toggles),
    );
  }

  private point(): HTMLElement {
    const fields = ["x", "y", "z"].map((name, k) =>
      this.field(`at ${name}`, "length", this.goal.at[k] ?? 0, (value) => {
        const at: GoalInfo["at"] = [...this.goal.at];
        at[k] = value;
        this.change({ at });
      }),
    );
    return el(
      "div",
      { class: "goal-numbers" },
      el(
        "span",
        { class: "caption" },
        DIRECTED.has(this.goal.kind) ? "Direction of the link, in its frame" : "Point of the link, in its frame",
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
