// Compare: several methods follow the same goals side by side, each with its measured row.
import { button, el, fill, section, write } from "./element";
import { capital, digits } from "./format";
import { redraw } from "./icons";
import type { Panel } from "./side";
import { WORDS } from "./status_bar";
import type { CompareRow } from "../messages";
import type { Store } from "../store";
import type { Status } from "../wire/frame";

const MOST = 6;
const FIRST = ["lm", "dls", "ccd", "jacobian_transpose"];

export class ComparePanel implements Panel {
  readonly root = el("div", { test: "panel-compare" });
  private readonly methods = el("div", { class: "method-list" });
  private readonly go = button("Start", { test: "compare", class: "is-wide", click: () => this.turn() }, "play");
  private readonly hint = el("p", { class: "quiet" });
  private readonly table = el("div", { class: "compare-rows", test: "comparison" });
  private readonly chosen = new Set<string>();

  constructor(private readonly store: Store) {
    this.root.append(
      section(
        "",
        el("p", { class: "quiet" }, "Several methods follow the same drag, each with a mechanism of its own."),
        el("div", { class: "buttons" }, this.go),
        this.hint,
      ),
      section("Measured", this.table),
      section("Methods, two to six", this.methods),
    );
    store.on("welcome", () => this.offer());
    store.on("comparison", () => this.paint());
    store.on("model", () => this.paint());
    this.paint();
  }

  private get isOn(): boolean {
    return (this.store.comparison?.rows.length ?? 0) > 0;
  }

  private offer(): void {
    const methods = this.store.welcome?.methods ?? [];
    if (this.chosen.size === 0)
      for (const name of FIRST) if (methods.some((one) => one.name === name)) this.chosen.add(name);
    fill(
      this.methods,
      ...methods.map(({ name, title }) => {
        const box = el("input", { test: `compare-${name}` });
        box.type = "checkbox";
        box.checked = this.chosen.has(name);
        box.addEventListener("change", () => {
          if (box.checked) this.chosen.add(name);
          else this.chosen.delete(name);
          if (this.isOn && this.chosen.size >= 2 && this.chosen.size <= MOST) void this.start();
          this.paint();
        });
        return el("label", { class: "check" }, box, el("span", {}, capital(title || name)));
      }),
    );
    this.paint();
  }

  private turn(): void {
    if (this.isOn) void this.store.ask({ do: "Compare", solvers: [] });
    else void this.start();
  }

  private start(): Promise<boolean> {
    return this.store.ask({ do: "Compare", solvers: [...this.chosen] });
  }

  private paint(): void {
    const count = this.chosen.size;
    const fits = count >= 2 && count <= MOST;
    redraw(this.go, this.isOn ? "stop" : "play");
    write(this.go.querySelector("span")!, this.isOn ? "Stop" : "Start");
    this.go.disabled = !this.isOn && !fits;
    write(this.hint, fits ? "" : count < 2 ? "Choose at least two." : `Choose at most ${MOST}; now it is ${count}.`);
    this.methods.querySelectorAll("input").forEach((box) => (box.disabled = count >= MOST && !box.checked));
    const rows = this.store.comparison?.rows ?? [];
    fill(
      this.table,
      ...(rows.length > 0 ? [sheet(rows)] : [el("p", { class: "quiet" }, "Nothing yet: start, then drag a handle.")]),
    );
  }
}

function sheet(rows: CompareRow[]): HTMLElement {
  const head = [
    ["Method", ""],
    ["Error", "largest, m and rad mixed"],
    ["Iter.", "iterations of the last solve"],
    ["µs", "a solve, median of the last"],
    ["Solved", "share of the goals that were reached"],
  ];
  const body = rows.flatMap((row) => {
    const name = el(
      "th",
      { attributes: { scope: "row" } },
      capital(row.title || row.solver),
      el(
        "small",
        { class: "mood", attributes: { "data-mood": mood(row) } },
        row.refusal ? "refused" : (WORDS[row.status as Status]?.[0] ?? row.status),
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
    const said = el("td", { class: "quiet", attributes: { colspan: "5" } }, `${capital(row.message)}.`);
    return [
      el("tr", {}, name, ...cells.map((text) => el("td", {}, text))),
      ...(row.message ? [el("tr", { class: "is-said" }, said)] : []),
    ];
  });
  return el(
    "table",
    { class: "table" },
    el("thead", {}, el("tr", {}, ...head.map(([text, title]) => el("th", { title: title ?? "" }, text ?? "")))),
    el("tbody", {}, ...body),
  );
}

function mood(row: CompareRow): string {
  return row.refusal || row.status === "DIVERGED" || row.status === "PROBLEM"
    ? "bad"
    : row.status === "CONVERGED"
      ? "good"
      : "warn";
}
