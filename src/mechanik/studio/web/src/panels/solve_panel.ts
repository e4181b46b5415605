// Panel of the solver: method, run and pause, errors, collisions, obstacles, alternative solutions, options.
import { CollisionsSection } from "./collisions_section";
import { button, choice, el, fill, section, toggle, write } from "./element";
import { ErrorList } from "./error_list";
import { capitalized } from "./format";
import { setIcon } from "./icons";
import { ObstaclesSection } from "./obstacles_section";
import { OptionFields } from "./option_fields";
import { throttled } from "./throttle";
import { ErrorPlot } from "./error_plot";
import type { Panel } from "./sidebar";
import type { Units } from "./units";
import type { Store } from "../store";

const MAX_ALTERNATIVES = 16;

export class SolvePanel implements Panel {
  readonly root = el("div", { test: "panel-solve" });
  private readonly runButton = button(
    "Pause",
    { test: "run", class: "is-wide", click: () => this.toggleRunning() },
    "pause",
  );
  private readonly stepButton = button(
    "Single step",
    {
      test: "step",
      title: "Run one iteration while the solver is paused",
      click: () => void this.store.request({ do: "SingleStep" }),
    },
    "step",
  );
  private readonly method = el("div", {});
  private readonly options = new OptionFields((options) => this.setSolver(this.store.solving?.solver ?? "lm", options));
  private readonly alternatives = toggle(
    "Show alternative solutions",
    false,
    { test: "alternatives" },
    (isOn) => void this.store.request({ do: "ShowAlternatives", max_count: isOn ? MAX_ALTERNATIVES : 0 }),
  );
  private readonly alternativesText = el("span", { class: "quiet", test: "alternatives-text" });
  // names the settings that the method does not support
  private readonly message = el("p", { class: "quiet", test: "solver-message" });
  private readonly errors: ErrorList;
  private readonly plot: ErrorPlot;
  private readonly obstacles: ObstaclesSection;

  constructor(
    private readonly store: Store,
    units: Units,
  ) {
    this.errors = new ErrorList(store);
    this.obstacles = new ObstaclesSection(store, units);
    this.plot = new ErrorPlot(store);
    const legend = el(
      "p",
      { class: "legend" },
      el("span", { class: "legend-goals" }, "largest error of goals"),
      el("span", { class: "legend-loops" }, "gap of loops"),
      "m or rad",
    );
    this.root.append(
      section("", el("div", { class: "buttons" }, this.runButton, this.stepButton), this.method, this.message),
      section("Errors", this.plot.root, legend, this.errors.root),
      new CollisionsSection(store).root,
      this.obstacles.root,
      section("Alternative solutions", this.alternatives.root, this.alternativesText),
      section("Options", this.options.root),
    );
    store.on("welcome", () => this.build());
    store.on("solving", () => this.refresh());
    store.on("alternatives", ({ poses, text }) => {
      write(this.alternativesText, text);
      if (poses.length === 0 && text === "") this.alternatives.box.checked = false; // the alternatives are out of date
    });
    store.on("model", () => {
      this.alternatives.box.checked = false;
      write(this.alternativesText, "");
    });
    store.on(
      "frame",
      throttled(() => {
        if (!this.root.hidden) this.errors.refresh();
      }),
    );
    this.build();
  }

  onShown(): void {
    this.errors.refresh();
    this.plot.draw();
    this.obstacles.onShown();
  }

  private build(): void {
    const methods = this.store.welcome?.methods ?? [];
    const select = choice(
      methods.map(({ name, title }) => [name, capitalized(title || name)]),
      this.store.solving?.solver ?? "lm",
      { test: "solver", label: "Method", title: "Solver method" },
      (name) => this.setSolver(name, {}),
    );
    fill(this.method, select);
    this.refresh();
  }

  private setSolver(solver: string, options: Record<string, number | boolean | string | null>): void {
    void this.store.request({ do: "SetSolver", solver, options }).then((isAccepted) => {
      if (isAccepted) return;
      this.options.revert(this.store.solving?.options ?? {});
      this.refresh(); // show the method before the rejected change
    });
  }

  private refresh(): void {
    const { solving, welcome } = this.store;
    if (!solving) return;
    const select = this.method.querySelector("select");
    if (select) select.value = solving.solver;
    this.options.show(
      welcome?.methods.find(({ name }) => name === solving.solver),
      solving.options,
    );
    setIcon(this.runButton, solving.running ? "pause" : "play");
    write(this.runButton.querySelector("span")!, solving.running ? "Pause" : "Run");
    this.runButton.title = solving.running ? "Pause (Space)" : "Run (Space)";
    this.stepButton.disabled = solving.running;
    this.message.hidden = solving.message === "";
    write(this.message, solving.message && `${capitalized(solving.message)}.`);
  }

  private toggleRunning(): void {
    void this.store.request({ do: "SetRunning", running: !this.store.solving?.running });
  }
}
