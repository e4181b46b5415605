// Panel that compares several methods on the same goals, with a table of results.
import { button, el, fill, section, write } from "./element";
import { capitalized, digits } from "./format";
import { setIcon } from "./icons";
import type { Panel } from "./sidebar";
import { STATUS_LABELS } from "./status_bar";
import type { CompareRow } from "../messages";
import type { Store } from "../store";
import type { Status } from "../connection/state_frame";

const MIN_METHODS = 2;
const MAX_METHODS = 6; // the same number as in `requests.py`
const DEFAULT_METHODS = ["lm", "dls", "ccd", "jacobian_transpose"];

export class ComparePanel implements Panel {
  readonly root = el("div", { test: "panel-compare" });
  private readonly methodList = el("div", { class: "method-list" });
  private readonly startButton = button(
    "Start",
    { test: "compare", class: "is-wide", click: () => this.toggle() },
    "play",
  );
  private readonly hint = el("p", { class: "quiet" });
  private readonly table = el("div", { class: "compare-rows", test: "comparison" });
  private readonly selectedNames = new Set<string>();

  constructor(private readonly store: Store) {
    this.root.append(
      section(
        "",
        el("p", { class: "quiet" }, "Several methods track the same goals, each with its own copy of the mechanism."),
        el("div", { class: "buttons" }, this.startButton),
        this.hint,
      ),
      section("Results", this.table),
      section(`Methods (${MIN_METHODS} to ${MAX_METHODS})`, this.methodList),
    );
    store.on("welcome", () => this.buildMethods());
    store.on("comparison", () => this.refresh());
    store.on("model", () => this.refresh());
    this.refresh();
  }

  private get isRunning(): boolean {
    return (this.store.comparison?.rows.length ?? 0) > 0;
  }

  private get isCountValid(): boolean {
    return this.selectedNames.size >= MIN_METHODS && this.selectedNames.size <= MAX_METHODS;
  }

  private buildMethods(): void {
    const methods = this.store.welcome?.methods ?? [];
    if (this.selectedNames.size === 0)
      for (const name of DEFAULT_METHODS)
        if (methods.some((method) => method.name === name)) this.selectedNames.add(name);
    fill(
      this.methodList,
      ...methods.map(({ name, title }) => {
        const box = el("input", { test: `compare-${name}` });
        box.type = "checkbox";
        box.checked = this.selectedNames.has(name);
        box.addEventListener("change", () => {
          if (box.checked) this.selectedNames.add(name);
          else this.selectedNames.delete(name);
          if (this.isRunning && this.isCountValid) void this.start();
          this.refresh();
        });
        return el("label", { class: "check" }, box, el("span", {}, capitalized(title || name)));
      }),
    );
    this.refresh();
  }

  private toggle(): void {
    if (this.isRunning) void this.store.request({ do: "Compare", solvers: [] });
    else void this.start();
  }

  private start(): Promise<boolean> {
    return this.store.request({ do: "Compare", solvers: [...this.selectedNames] });
  }

  private refresh(): void {
    const count = this.selectedNames.size;
    const { isCountValid } = this;
    setIcon(this.startButton, this.isRunning ? "stop" : "play");
    write(this.startButton.querySelector("span")!, this.isRunning ? "Stop" : "Start");
    this.startButton.disabled = !this.isRunning && !isCountValid;
    write(
      this.hint,
      isCountValid
        ? ""
        : count < MIN_METHODS
          ? `Select at least ${MIN_METHODS} methods.`
          : `Select at most ${MAX_METHODS} methods; ${count} are selected.`,
    );
    this.methodList.querySelectorAll("input").forEach((box) => (box.disabled = count >= MAX_METHODS && !box.checked));
    const rows = this.store.comparison?.rows ?? [];
    fill(
      this.table,
      rows.length > 0
        ? resultTable(rows)
        : el("p", { class: "quiet" }, "No results yet. Press Start, then drag a goal."),
    );
  }
}

function resultTable(rows: CompareRow[]): HTMLElement {
  const head = [
    ["Method", ""],
    ["Error", "Largest error of goals and loops, m or rad"],
    ["Iter.", "Iterations of the last solver tick"],
    ["µs", "Median processor time of a solver tick, µs"],
    ["Solved", "Share of the finished solves that were successful"],
  ];
  const body = rows.flatMap((row) => {
    const name = el(
      "th",
      { attributes: { scope: "row" } },
      capitalized(row.title || row.solver),
      el(
        "small",
        { class: "tone", attributes: { "data-tone": rowTone(row) } },
        row.refusal ? "Cannot solve this" : (STATUS_LABELS[row.status as Status]?.[0] ?? row.status),
      ),
    );
    if (row.refusal)
      return [el("tr", { class: "is-refused" }, name, el("td", { attributes: { colspan: "4" } }, row.refusal))];
    const cells = [
      digits(row.error),
      String(row.iterations),
      digits(row.microseconds),
      `${(100 * row.solved).toFixed(0)} %`,
    ];
    const message = el("td", { class: "quiet", attributes: { colspan: "5" } }, `${capitalized(row.message)}.`);
    return [
      el("tr", {}, name, ...cells.map((text) => el("td", {}, text))),
      ...(row.message ? [el("tr", { class: "is-message" }, message)] : []),
    ];
  });
  return el(
    "table",
    { class: "table" },
    el("thead", {}, el("tr", {}, ...head.map(([text, title]) => el("th", { title: title ?? "" }, text ?? "")))),
    el("tbody", {}, ...body),
  );
}

function rowTone(row: CompareRow): string {
  return row.refusal || row.status === "DIVERGED" || row.status === "PROBLEM"
    ? "bad"
    : row.status === "CONVERGED"
      ? "good"
      : "warn";
}
