// The line below: how it goes in words, how large the largest error is, what it costs, and the connection.
import { el, write } from "./element";
import { counted, digits, metres, missing, seconds } from "./format";
import { paced } from "./pace";
import type { Kernels } from "../messages";
import type { Store } from "../store";
import type { Frame, Status } from "../wire/frame";

type Mood = "good" | "warn" | "bad" | "quiet";

export const WORDS: Record<Status, [text: string, mood: Mood]> = {
  CONVERGED: ["Reached", "good"],
  CLOSEST: ["As close as it gets", "warn"],
  STALLED: ["Stuck", "warn"],
  TIMEOUT: ["Still on its way", "warn"],
  OPEN: ["A loop is open", "bad"],
  STOPPED: ["Stopped", "quiet"],
  DIVERGED: ["Diverged", "bad"],
  PAUSED: ["Paused", "quiet"],
  IDLE: ["At rest", "quiet"],
  PROBLEM: ["Cannot be solved", "bad"],
  IN_COLLISION: ["In collision", "bad"],
};

const PLAYING: [text: string, mood: Mood] = ["Playing", "quiet"];

const COMPILING = "This is done once on this machine, in the background. Until then, kernels run as plain Python.";

export class StatusBar {
  readonly root = el("footer", { class: "status", attributes: { "aria-label": "State" } });
  private readonly status = el("span", { class: "status-word", test: "status" });
  private readonly sentence = el("span", { class: "status-text", test: "status-text", role: "status" });
  private readonly error = el("span", {
    class: "status-number",
    test: "error",
    title: "The largest error of all goals and loops",
  });
  private readonly iterations = el("span", {
    class: "status-number",
    test: "iterations",
    title: "Iterations of the last solve",
  });
  private readonly cost = el("span", { class: "status-number", test: "cost", title: "Time of the last solve" });
  private readonly solves = el("span", { class: "status-number", test: "solves", title: "Solves in the last second" });
  private readonly frames = el("span", {
    class: "status-number",
    test: "frames",
    title: "States that came in the last second",
  });
  private readonly trip = el("span", {
    class: "status-number",
    test: "trip",
    title: "From a drag to the state that answers it, median of the last",
  });
  private readonly kernels = el("span", { class: "status-kernels", test: "kernels", role: "status" });
  private readonly connection = el("span", { class: "status-connection", test: "connection" });
  private readonly arrivals: number[] = [];

  constructor(private readonly store: Store) {
    const numbers = el(
      "span",
      { class: "status-numbers" },
      this.error,
      this.iterations,
      this.cost,
      this.solves,
      this.frames,
      this.trip,
    );
    this.root.append(this.status, this.sentence, this.kernels, numbers, this.connection);
    const paint = paced(() => this.paint(), 100);
    store.on("frame", () => {
      this.arrivals.push(performance.now());
      paint();
    });
    store.on("words", paint);
    store.on("clashes", paint);
    store.on("model", paint);
    store.on("solving", paint);
    store.on("recording", paint);
    store.on("kernels", (kernels) => this.compiled(kernels));
    store.on("connected", () => this.connected());
    window.setInterval(() => this.rate(), 500);
    if (store.kernels) this.compiled(store.kernels);
    this.connected();
  }

  private compiled(kernels: Kernels): void {
    write(this.kernels, kernelText(kernels));
    this.kernels.title = kernels.state === "compiling" ? COMPILING : kernels.remedy;
  }

  private connected(): void {
    this.connection.classList.toggle("is-lost", !this.store.isConnected);
    write(this.connection, this.store.isConnected ? "connected" : "not connected");
  }

  private rate(): void {
    const since = performance.now() - 1000;
    while (this.arrivals.length > 0 && this.arrivals[0]! < since) this.arrivals.shift();
    if (this.arrivals.length === 0) write(this.solves, ""); // the last state that came was of a livelier second
    write(this.frames, this.arrivals.length > 0 ? `${counted(this.arrivals.length, "frame")}/s` : "");
  }

  /** A single step does not end the pause; what bumps into something is said before all that was reached. */
  private now(frame: Frame | null): Status {
    const status = frame?.status ?? "IDLE";
    if (status === "TIMEOUT" && this.store.solving?.running === false) return "PAUSED";
    const bumps = (this.store.clashes?.links.length ?? 0) > 0;
    return bumps && status !== "PAUSED" && status !== "PROBLEM" ? "IN_COLLISION" : status;
  }

  private paint(): void {
    const { frame, words, wire } = this.store;
    const isPlaying = this.store.recording?.state === "playing";
    const [text, mood] = isPlaying ? PLAYING : WORDS[this.now(frame)];
    write(this.status, frame ? text : "");
    this.status.dataset["mood"] = mood;
    const sentence = isPlaying ? "A recorded motion: nothing is solved meanwhile." : (words?.text ?? "");
    write(this.sentence, sentence);
    this.sentence.title = sentence;
    if (!frame) return;
    write(this.error, largest(frame));
    write(this.iterations, frame.iterations > 0 ? counted(frame.iterations, "iteration") : "");
    write(this.cost, frame.seconds > 0 ? seconds(frame.seconds) : "");
    const rate = this.arrivals.length > 0 ? Math.round(frame.solvesPerSecond) : 0;
    write(this.solves, rate > 0 ? `${counted(rate, "solve")}/s` : "");
    const last = wire.trips.slice(-21).sort((a, b) => a - b);
    write(this.trip, last.length > 0 ? `${digits(last[last.length >> 1]!)} ms round trip` : "");
  }
}

function kernelText(kernels: Kernels): string {
  switch (kernels.state) {
    case "ready":
      return "";
    case "compiling":
      return `compiling kernels, ${kernels.ready} of ${kernels.count}: answers are slower until then`;
    case "not compiled":
      return "kernels are not compiled: answers are slower";
  }
}

/** The largest way and the largest angle that are missing anywhere. */
export function largest(frame: Frame): string {
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
      : missing(distance, angle);
}
