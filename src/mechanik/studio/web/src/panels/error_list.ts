// Errors of all goals and loops, with bars on a logarithmic scale.
import { el, fill, write } from "./element";
import { logShare, errorText } from "./format";
import { goalTitle } from "../goal_kinds";
import type { Store } from "../store";

interface ErrorRow {
  root: HTMLElement;
  number: HTMLElement;
  bar: HTMLElement;
}

const REACHED_ERROR = 1e-5; // m or rad; smaller errors have the colour of success

export class ErrorList {
  readonly root = el("div", { class: "errors", test: "errors" });
  private goalRows: ErrorRow[] = [];
  private loopRows: ErrorRow[] = [];

  constructor(private readonly store: Store) {
    store.on("goals", () => this.build());
    store.on("model", () => this.build());
  }

  build(): void {
    const { goals, model } = this.store;
    this.goalRows = goals.map((goal) =>
      makeRow(goalTitle(goal, this.store), () => this.store.select({ kind: "goal", goal: goal.number })),
    );
    this.loopRows = (model?.closures ?? []).map((closure) => makeRow(closure.name, null));
    fill(
      this.root,
      el("h4", {}, "Goals"),
      this.goalRows.length === 0
        ? el("p", { class: "quiet" }, "No goals. Right-click a link to add one.")
        : null,
      ...this.goalRows.map((row) => row.root),
      this.loopRows.length > 0 && el("h4", {}, "Loops"),
      ...this.loopRows.map((row) => row.root),
    );
    this.refresh();
  }

  refresh(): void {
    const { frame, order } = this.store;
    if (!frame) return;
    if (frame.order === order)
      this.goalRows.forEach((row, k) => show(row, frame.goals[9 * k + 7] ?? 0, frame.goals[9 * k + 8] ?? 0));
    this.loopRows.forEach((row, k) => show(row, frame.closures[2 * k] ?? 0, frame.closures[2 * k + 1] ?? 0));
  }
}

function makeRow(name: string, onClick: (() => void) | null): ErrorRow {
  const number = el("span", { class: "error-number" });
  const bar = el("span", { class: "error-bar" });
  const title = el("span", { class: "error-name", title: name }, name);
  const root = el(
    onClick ? "button" : "div",
    { class: "error" },
    title,
    number,
    el("span", { class: "error-track" }, bar),
  );
  if (onClick) {
    root.setAttribute("type", "button");
    root.addEventListener("click", onClick);
  }
  return { root, number, bar };
}

/** distance: m; angle: rad. */
function show({ number, bar }: ErrorRow, distance: number, angle: number): void {
  write(number, errorText(distance, angle));
  const largestError = Math.max(distance, angle);
  bar.style.width = `${(100 * logShare(largestError)).toFixed(1)}%`;
  bar.dataset["tone"] = largestError < REACHED_ERROR ? "good" : "warn";
}
