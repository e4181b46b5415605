// Plot of the largest error of enabled goals and the largest gap of loops in the last seconds, on a logarithmic scale.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { el } from "./element";
import { throttled } from "./throttle";
import type { Store } from "../store";
import type { StateFrame } from "../connection/state_frame";

const WINDOW_SECONDS = 20; // length of the time axis
const MAX_POINTS = 1200; // 60 per second
const ZERO_SUBSTITUTE = 1e-16; // the logarithmic axis cannot show zero
const HEIGHT_PIXELS = 150;
// if more time passes between two frames, nothing has changed: the last value is drawn up to the next frame
const PAUSE_SECONDS = 0.2;

export class ErrorPlot {
  readonly root = el("div", { class: "plot", test: "plot" });
  private readonly times: number[] = []; // s
  private readonly goalErrors: number[] = []; // m or rad
  private readonly loopGaps: number[] = []; // m or rad
  private plot: uPlot | null = null;
  private readonly drawSoon = throttled(() => this.draw(), 100);

  constructor(store: Store) {
    store.on("frame", (frame) => this.add(frame));
    store.on("model", () => this.clear());
    store.on("display", () => this.rebuild());
    new ResizeObserver(() => this.resize()).observe(this.root);
  }

  /** Draws the plot; also called when the plot becomes visible, since a hidden plot is not drawn. */
  draw(): void {
    if (this.root.offsetParent === null || this.root.clientWidth === 0) return;
    this.plot ??= this.createPlot();
    const now = performance.now() / 1000;
    this.plot.setData([this.times.map((time) => time - now), this.goalErrors, this.loopGaps], false);
    this.plot.setScale("x", { min: -WINDOW_SECONDS, max: 0 });
    this.plot.setScale("y", this.range());
  }

  private add(frame: StateFrame): void {
    const now = performance.now() / 1000;
    if (now - (this.times.at(-1) ?? -1) < 1 / 60) this.drop(this.times.length - 1, 1);
    if (now - (this.times.at(-1) ?? now) > PAUSE_SECONDS)
      this.push(now - 1e-3, this.goalErrors.at(-1)!, this.loopGaps.at(-1)!);
    const loopGap = frame.closures.length > 0 ? Math.max(ZERO_SUBSTITUTE, ...frame.closures) : Number.NaN;
    this.push(now, Math.max(ZERO_SUBSTITUTE, frame.goalError || 0), loopGap);
    let outdatedCount = 0;
    while (this.times[outdatedCount]! < now - WINDOW_SECONDS - 1) outdatedCount++;
    this.drop(0, Math.max(outdatedCount, this.times.length - MAX_POINTS));
    this.drawSoon();
  }

  private push(time: number, goalError: number, loopGap: number): void {
    this.times.push(time);
    this.goalErrors.push(goalError);
    this.loopGaps.push(loopGap);
  }

  private drop(start: number, count: number): void {
    if (count > 0) for (const list of [this.times, this.goalErrors, this.loopGaps]) list.splice(start, count);
  }

  private clear(): void {
    this.drop(0, this.times.length);
    this.drawSoon();
  }

  /** Range of the y axis: powers of ten around all values, at least three decades. */
  private range(): { min: number; max: number } {
    const values = [...this.goalErrors, ...this.loopGaps].filter((value) => value > 0);
    if (values.length === 0) return { min: 1e-9, max: 1 };
    const minExponent = Math.floor(Math.log10(Math.min(...values)));
    const maxExponent = Math.max(Math.ceil(Math.log10(Math.max(...values))), minExponent + 3);
    return { min: 10 ** minExponent, max: 10 ** maxExponent };
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  }

  private resize(): void {
    const width = this.root.clientWidth;
    if (this.plot && width > 0) this.plot.setSize({ width, height: HEIGHT_PIXELS });
    this.draw();
  }

  private createPlot(): uPlot {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    const font = "10px system-ui, sans-serif";
    const axis = {
      stroke: colour("--quiet"),
      font,
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
    };
    const line = { width: 1.5, points: { show: false }, spanGaps: false };
    return new uPlot(
      {
        width: this.root.clientWidth,
        height: HEIGHT_PIXELS,
        padding: [8, 8, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: false, auto: false }, y: { distr: 3, log: 10, auto: false } },
        axes: [
          { ...axis, size: 22, values: (_plot, ticks) => ticks.map((value) => `${value} s`) },
          {
            ...axis,
            size: 40,
            splits: (_plot, _axis, low, high) => powersOfTen(low, high),
            filter: (_plot, ticks) => ticks,
            values: (_plot, ticks) => ticks.map(powerText),
          },
        ],
        series: [
          {},
          { ...line, label: "goals", stroke: colour("--accent") },
          { ...line, label: "loops", stroke: colour("--warm") },
        ],
      },
      [[], [], []],
      this.root,
    );
  }
}

/** At most seven powers of ten between two values, for the ticks of the y axis. */
function powersOfTen(low: number, high: number): number[] {
  const [minExponent, maxExponent] = [Math.round(Math.log10(low)), Math.round(Math.log10(high))];
  const step = Math.max(1, Math.ceil((maxExponent - minExponent) / 6));
  const ticks: number[] = [];
  for (let exponent = Math.ceil(minExponent / step) * step; exponent <= maxExponent; exponent += step)
    ticks.push(10 ** exponent);
  return ticks;
}

function powerText(value: number | null): string {
  const exponent = Math.round(Math.log10(value ?? 1));
  return exponent === 0 ? "1" : `1e${exponent}`;
}
