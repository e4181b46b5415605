// Status bar: status, largest error, iterations and time of a solver tick, rates, latency, kernels and connection.
import { el, write } from "./element";
import { countText, digits, metres, errorText, seconds } from "./format";
import { throttled } from "./throttle";
import type { Kernels } from "../messages";
import type { Store } from "../store";
import type { StateFrame, Status } from "../connection/state_frame";

type Tone = "good" | "warn" | "bad" | "quiet";

export const STATUS_LABELS: Record<Status, [text: string, tone: Tone]> = {
  CONVERGED: ["Reached", "good"],
  CLOSEST: ["Closest found", "warn"],
  STALLED: ["Stalled", "warn"],
  TIMEOUT: ["Iterating", "warn"],
  NOT_CLOSED: ["Loop not closed", "bad"],
  STOPPED: ["Stopped", "quiet"],
  DIVERGED: ["Diverged", "bad"],
  PAUSED: ["Paused", "quiet"],
  IDLE: ["At rest", "quiet"],
  PROBLEM: ["Not solvable", "bad"],
  IN_COLLISION: ["In collision", "bad"],
};

const PLAYING_LABEL: [text: string, tone: Tone] = ["Playing", "quiet"];
const PLAYING_TEXT = "Playing a recorded motion. The solver does not run during playback.";
const COMPILING_TEXT =
  "Kernels are compiled once on this machine, in the background. A kernel that is not ready runs as plain Python.";

export class StatusBar {
  readonly root = el("footer", { class: "status", attributes: { "aria-label": "State" } });
  private readonly status = el("span", { class: "status-word", test: "status" });
  private readonly sentence = el("span", { class: "status-text", test: "status-text", role: "status" });
  private readonly error = el("span", {
    class: "status-number",
    test: "error",
    title: "Largest error of all goals and loops",
  });
  private readonly iterations = el("span", {
    class: "status-number",
    test: "iterations",
    title: "Iterations of the last solver tick",
  });
  private readonly tickTime = el("span", {
    class: "status-number",
    test: "cost",
    title: "Processor time of the last solver tick",
  });
  private readonly solves = el("span", {
    class: "status-number",
    test: "solves",
    title: "Solver ticks in the last second",
  });
  private readonly frames = el("span", {
    class: "status-number",
    test: "frames",
    title: "State frames received in the last second",
  });
  private readonly latency = el("span", {
    class: "status-number",
    test: "latency",
    title: "Median time from a drag update to the state that includes it, ms",
  });
  private readonly kernels = el("span", { class: "status-kernels", test: "kernels", role: "status" });
  private readonly connection = el("span", { class: "status-connection", test: "connection" });
  private readonly arrivalTimes: number[] = []; // times of the frames of the last second, ms

  constructor(private readonly store: Store) {
    const numbers = el(
      "span",
      { class: "status-numbers" },
      this.error,
      this.iterations,
      this.tickTime,
      this.solves,
      this.frames,
      this.latency,
    );
    this.root.append(this.status, this.sentence, this.kernels, numbers, this.connection);
    const refresh = throttled(() => this.refresh(), 100);
    store.on("frame", () => {
      this.arrivalTimes.push(performance.now());
      refresh();
    });
    store.on("statusText", refresh);
    store.on("contacts", refresh);
    store.on("model", refresh);
    store.on("solving", refresh);
    store.on("recording", refresh);
    store.on("kernels", (kernels) => this.showKernels(kernels));
    store.on("connected", () => this.showConnection());
    window.setInterval(() => this.updateRates(), 500);
    if (store.kernels) this.showKernels(store.kernels);
    this.showConnection();
  }

  private showKernels(kernels: Kernels): void {
    write(this.kernels, kernelText(kernels));
    this.kernels.title = kernels.state === "compiling" ? COMPILING_TEXT : kernels.remedy;
  }

  private showConnection(): void {
    this.connection.classList.toggle("is-lost", !this.store.isConnected);
    write(this.connection, this.store.isConnected ? "connected" : "not connected");
  }

  private updateRates(): void {
    const startTime = performance.now() - 1000;
    while (this.arrivalTimes.length > 0 && this.arrivalTimes[0]! < startTime) this.arrivalTimes.shift();
    if (this.arrivalTimes.length === 0) write(this.solves, ""); // the rate of the last frame is out of date
    write(this.frames, this.arrivalTimes.length > 0 ? `${countText(this.arrivalTimes.length, "frame")}/s` : "");
  }

  /**
   * The status to show. "Paused" replaces "Iterating" while the solver is paused. "In collision" replaces all statuses
   * except "Paused" and "Not solvable" if links collide.
   */
  private shownStatus(frame: StateFrame | null): Status {
    const status = frame?.status ?? "IDLE";
    if (status === "TIMEOUT" && this.store.solving?.running === false) return "PAUSED";
    const isColliding = (this.store.contacts?.links.length ?? 0) > 0;
    return isColliding && status !== "PAUSED" && status !== "PROBLEM" ? "IN_COLLISION" : status;
  }

  private refresh(): void {
    const { frame, statusText, connection } = this.store;
    const isPlaying = this.store.recording?.state === "playing";
    const [text, tone] = isPlaying ? PLAYING_LABEL : STATUS_LABELS[this.shownStatus(frame)];
    write(this.status, frame ? text : "");
    this.status.dataset["tone"] = tone;
    const sentence = isPlaying ? PLAYING_TEXT : (statusText?.text ?? "");
    write(this.sentence, sentence);
    this.sentence.title = sentence;
    if (!frame) return;
    write(this.error, largestError(frame));
    write(this.iterations, frame.iterations > 0 ? countText(frame.iterations, "iteration") : "");
    write(this.tickTime, frame.seconds > 0 ? seconds(frame.seconds) : "");
    const rate = this.arrivalTimes.length > 0 ? Math.round(frame.solvesPerSecond) : 0;
    write(this.solves, rate > 0 ? `${countText(rate, "solve")}/s` : "");
    const latencies = connection.latencies.slice(-21).sort((a, b) => a - b);
    write(this.latency, latencies.length > 0 ? `${digits(latencies[latencies.length >> 1]!)} ms latency` : "");
  }
}

function kernelText(kernels: Kernels): string {
  switch (kernels.state) {
    case "ready":
      return "";
    case "compiling":
      return `compiling kernels, ${kernels.ready} of ${kernels.count} ready: solving is slower`;
    case "not compiled":
      return "kernels are not compiled: solving is slower";
  }
}

/** Largest distance and largest angle of the errors of all goals and loops, as text. */
export function largestError(frame: StateFrame): string {
  let [distance, angle] = [0, 0];
  for (let k = 0; k < frame.goals.length; k += 9) {
    distance = Math.max(distance, frame.goals[k + 7]!);
    angle = Math.max(angle, frame.goals[k + 8]!);
  }
  for (let k = 0; k < frame.closures.length; k += 2) {
    distance = Math.max(distance, frame.closures[k]!);
    angle = Math.max(angle, frame.closures[k + 1]!);
  }
  return frame.goals.length + frame.closures.length === 0
    ? ""
    : distance === 0 && angle === 0
      ? metres(0)
      : errorText(distance, angle);
}
