// Solve: by which method, whether it runs, and how far each goal and loop is.
import { CollisionsSection } from "./collisions_section";
import { button, choice, el, fill, section, toggle, write } from "./element";
import { ErrorList } from "./error_list";
import { capital } from "./format";
import { redraw } from "./icons";
import { ObstaclesSection } from "./obstacles_section";
import { OptionFields } from "./option_fields";
import { paced } from "./pace";
import { ResidualPlot } from "./residual_plot";
import type { Panel } from "./side";
import type { Units } from "./units";
import type { Store } from "../store";

const GHOSTS = 16;

export class SolvePanel implements Panel {
  readonly root = el("div", { test: "panel-solve" });
  private readonly run = button("Pause", { test: "run", class: "is-wide", click: () => this.turn() }, "pause");
  private readonly step = button(
    "One step",
    { test: "step", click: () => void this.store.ask({ do: "SingleStep" }) },
    "step",
  );
  private readonly method = el("div", {});
  private readonly options = new OptionFields((options) => this.solve(this.store.solving?.solver ?? "lm", options));
  private readonly ghosts = toggle(
    "Show other solutions",
    false,
    { test: "ghosts" },
    (on) => void this.store.ask({ do: "ShowAlternatives", max_count: on ? GHOSTS : 0 }),
  );
  private readonly ghostWords = el("span", { class: "quiet", test: "ghosts-text" });
  private readonly said = el("p", { class: "quiet", test: "solver-said" }); // what the method takes otherwise
  private readonly errors: ErrorList;
  private readonly plot: ResidualPlot;
  private readonly obstacles: ObstaclesSection;

  constructor(
    private readonly store: Store,
    units: Units,
  ) {
    this.errors = new ErrorList(store);
    this.obstacles = new ObstaclesSection(store, units);
    this.plot = new ResidualPlot(store);
    const legend = el(
      "p",
      { class: "legend" },
      el("span", { class: "legend-goals" }, "largest error of goals"),
      el("span", { class: "legend-loops" }, "of loops"),
      "m, rad",
    );
    this.root.append(
      section("", el("div", { class: "buttons" }, this.run, this.step), this.method, this.said),
      section("Errors", this.plot.root, legend, this.errors.root),
      new CollisionsSection(store).root,
      this.obstacles.root,
      section("Other solutions", this.ghosts.root, this.ghostWords),
      section("Options", this.options.root),
    );
    store.on("welcome", () => this.build());
    store.on("solving", () => this.paint());
    store.on("ghosts", ({ poses, text }) => {
      write(this.ghostWords, text);
      if (poses.length === 0 && text === "") this.ghosts.box.checked = false; // the goals have moved since
    });
    store.on("model", () => {
      this.ghosts.box.checked = false;
      write(this.ghostWords, "");
    });
    store.on(
      "frame",
      paced(() => {
        if (!this.root.hidden) this.errors.paint();
      }),
    );
    this.build();
  }

  shown(): void {
    this.errors.paint();
    this.plot.draw();
    this.obstacles.shown();
  }

  private build(): void {
    const methods = this.store.welcome?.methods ?? [];
    const select = choice(
      methods.map(({ name, title }) => [name, capital(title || name)]),
      this.store.solving?.solver ?? "lm",
      { test: "solver", label: "Method", title: "The method that solves" },
      (name) => this.solve(name, {}),
    );
    fill(this.method, select);
    this.paint();
  }

  private solve(solver: string, options: Record<string, number | boolean | string | null>): void {
    void this.store.ask({ do: "SetSolver", solver, options }).then((isDone) => {
      if (isDone) return;
      this.options.takeBack(this.store.solving?.options ?? {});
      this.paint(); // and so is a refused method
    });
  }

  private paint(): void {
    const { solving, welcome } = this.store;
    if (!solving) return;
    const select = this.method.querySelector("select");
    if (select) select.value = solving.solver;
    this.options.show(
      welcome?.methods.find(({ name }) => name === solving.solver),
      solving.options,
    );
    redraw(this.run, solving.running ? "pause" : "play");
    write(this.run.querySelector("span")!, solving.running ? "Pause" : "Run");
    this.run.title = solving.running ? "Pause (Space)" : "Run (Space)";
    this.step.disabled = solving.running;
    this.said.hidden = solving.message === "";
    write(this.said, solving.message && `${capital(solving.message)}.`);
  }

  private turn(): void {
    void this.store.ask({ do: "SetRunning", running: !this.store.solving?.running });
  }
}
