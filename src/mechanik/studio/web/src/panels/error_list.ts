// What is missing of each goal and each loop, with bars on a scale of powers of ten.
import { el, fill, write } from "./element";
import { logShare, missing } from "./format";
import { goalTitle } from "./goal_words";
import type { Store } from "../store";

interface Row {
  root: HTMLElement;
  number: HTMLElement;
  bar: HTMLElement;
}

const REACHED = 1e-5; // m or rad; smaller is drawn as reached

export class ErrorList {
  readonly root = el("div", { class: "errors", test: "errors" });
  private goals: Row[] = [];
  private loops: Row[] = [];

  constructor(private readonly store: Store) {
    store.on("goals", () => this.build());
    store.on("model", () => this.build());
  }

  build(): void {
    const { goals, model } = this.store;
    this.goals = goals.map((goal) =>
      row(goalTitle(goal, model), () => this.store.select({ kind: "goal", goal: goal.number })),
    );
    this.loops = (model?.closures ?? []).map((closure) => row(closure.name, null));
    fill(
      this.root,
      el("h4", {}, "Goals"),
      this.goals.length === 0
        ? el("p", { class: "quiet" }, "There are none. Right-click a link to give it one.")
        : null,
      ...this.goals.map((one) => one.root),
      this.loops.length > 0 && el("h4", {}, "Loops"),
      ...this.loops.map((one) => one.root),
    );
    this.paint();
  }

  paint(): void {
    const { frame, order } = this.store;
    if (!frame) return;
    if (frame.order === order)
      this.goals.forEach((one, k) => show(one, frame.goals[9 * k + 7] ?? 0, frame.goals[9 * k + 8] ?? 0));
    this.loops.forEach((one, k) => show(one, frame.closures[2 * k] ?? 0, frame.closures[2 * k + 1] ?? 0));
  }
}

function row(name: string, chosen: (() => void) | null): Row {
  const number = el("span", { class: "error-number" });
  const bar = el("span", { class: "error-bar" });
  const title = el("span", { class: "error-name", title: name }, name);
  const root = el(
    chosen ? "button" : "div",
    { class: "error" },
    title,
    number,
    el("span", { class: "error-track" }, bar),
  );
  if (chosen) {
    root.setAttribute("type", "button");
    root.addEventListener("click", chosen);
  }
  return { root, number, bar };
}

function show({ number, bar }: Row, distance: number, angle: number): void {
  write(number, missing(distance, angle));
  const worst = Math.max(distance, angle);
  bar.style.width = `${(100 * logShare(worst)).toFixed(1)}%`;
  bar.dataset["mood"] = worst < REACHED ? "good" : "warn";
}
