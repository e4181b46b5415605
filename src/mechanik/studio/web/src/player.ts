// Player of a recorded motion, without a server; built as a classic script that is embedded in the recorded page.
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { recordedModel, recordedSurroundings, type RecordedMotion, type RecordedSurroundings } from "./recording";
import type { Model } from "./messages";
import { Store } from "./store";
import { View } from "./view/view";
import type { StateFrame } from "./connection/state_frame";

const STYLES = `
  body { margin: 0; overflow: hidden; font: 13px/1.4 system-ui, sans-serif; }
  .play-view { position: fixed; inset: 0; }
  .play-bar { position: fixed; left: 50%; bottom: 18px; transform: translateX(-50%);
    width: min(640px, calc(100% - 56px));
    display: flex; gap: 12px; align-items: center; padding: 8px 14px; border-radius: 10px;
    color: #e9edf3; background: rgb(30 34 41 / 88%); box-shadow: 0 2px 14px rgb(0 0 0 / 30%); }
  .play-bar.light { color: #1d2530; background: rgb(255 255 255 / 92%); box-shadow: 0 2px 14px rgb(0 0 0 / 14%); }
  .play-bar button { min-width: 64px; padding: 5px 10px; border: 0; border-radius: 6px;
    color: #fff; background: #2f7de1; font: inherit; cursor: pointer; }
  .play-bar input { flex: 1; min-width: 60px; accent-color: #2f7de1; }
  .play-bar output { min-width: 92px; text-align: right; font-variant-numeric: tabular-nums; }
  .play-bar select { color: inherit; background: transparent; border: 0; font: inherit; }
  .play-bar select option { color: #1d2530; }
  .play-name { position: fixed; left: 18px; top: 14px; color: #8a94a3; font-weight: 600; }
`;
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];

export class Player {
  private readonly store = new Store();
  private readonly view: View;
  private readonly playButton = document.createElement("button");
  private readonly timeSlider = document.createElement("input");
  private readonly timeText = document.createElement("output");
  private readonly poses: number[][];
  private readonly frame: StateFrame;
  private readonly surroundings: RecordedSurroundings[];
  private shownSurroundings: RecordedSurroundings | undefined;
  private time = 0; // s
  private speed = 1;
  private lastTickTime: number | null = null; // ms; time of the last drawing during playback; null: paused

  constructor(private readonly motion: RecordedMotion) {
    this.poses = motion.poses ?? motion.links ?? [];
    const [stateCount, timeCount] = [this.poses.length, motion.times.length];
    if (stateCount === 0 || stateCount !== timeCount)
      throw new Error(`the page contains ${stateCount} states for ${timeCount} times; save the motion again`);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    // joint values and closure gaps are not recorded, so markers and closures cannot be drawn
    this.store.display = {
      ...this.store.display,
      theme,
      bodies: true,
      skeleton: false,
      markers: false,
      collisions: false,
      closures: false,
      labels: false,
      path: false,
      grid: true,
      shadows: true,
    };
    const container = document.createElement("div");
    container.className = "play-view";
    document.body.append(container);
    this.view = new View(container, this.store);
    this.surroundings = recordedSurroundings(motion);
    this.frame = emptyFrame(motion.model, this.poses[0]!.length);
    this.store.onEvent(recordedModel(motion));
    if (motion.curves)
      this.store.onEvent({
        is: "Scene",
        name: "",
        title: "",
        about: "",
        controls: [],
        curves: motion.curves,
        terrain: null,
        shows_collisions: false,
      });
    this.buildBar(theme);
    this.buildCamera();
    this.show();
    const prefersReducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!prefersReducedMotion) this.setPlaying(true);
  }

  private get duration(): number {
    return this.motion.times.at(-1)!;
  }

  private setPlaying(isPlaying: boolean): void {
    this.playButton.textContent = isPlaying ? "Pause" : "Play";
    if (isPlaying && this.lastTickTime === null) requestAnimationFrame((now) => this.tick(now));
    this.lastTickTime = isPlaying ? performance.now() : null;
  }

  private tick(now: number): void {
    if (this.lastTickTime === null) return;
    const nextTime = this.time + (Math.max(0, now - this.lastTickTime) / 1000) * this.speed;
    this.lastTickTime = now;
    this.time = nextTime > this.duration ? 0 : nextTime;
    this.show();
    requestAnimationFrame((later) => this.tick(later));
  }

  /** Draws the state at `time`, interpolated between two recorded states. */
  private show(): void {
    const { times } = this.motion;
    let nextIndex = times.findIndex((time) => time >= this.time);
    if (nextIndex < 0) nextIndex = times.length - 1;
    const previousIndex = Math.max(0, nextIndex - 1);
    const span = times[nextIndex]! - times[previousIndex]!;
    interpolatePoses(
      this.poses[previousIndex]!,
      this.poses[nextIndex]!,
      span > 0 ? (this.time - times[previousIndex]!) / span : 0,
      this.frame.links,
    );
    this.showSurroundings();
    this.frame.sequence++;
    this.store.onFrame(this.frame);
    this.timeSlider.value = String(this.time);
    this.timeText.textContent = `${this.time.toFixed(2)} / ${this.duration.toFixed(2)} s`;
  }

  /** Shows the obstacles and contacts at `time`. */
  private showSurroundings(): void {
    const nextIndex = this.surroundings.findIndex(({ time }) => time > this.time);
    const current = this.surroundings.at(nextIndex < 0 ? -1 : nextIndex - 1);
    const previous = this.shownSurroundings;
    if (current === undefined || current === previous || nextIndex === 0) return;
    this.shownSurroundings = current;
    if (current.obstacles.obstacles !== previous?.obstacles.obstacles) this.store.onEvent(current.obstacles);
    if (current.contacts !== previous?.contacts) this.store.onEvent(current.contacts);
  }

  private buildCamera(): void {
    const createControls = () => {
      const controls = new OrbitControls(this.view.camera, this.view.canvas);
      controls.target = this.view.target;
      controls.addEventListener("change", () => this.view.draw());
      this.view.on("framed", () => controls.update());
      return controls;
    };
    let controls = createControls();
    this.view.on("camera", () => {
      controls.dispose();
      controls = createControls();
    });
  }

  private buildBar(theme: string): void {
    const bar = document.createElement("div");
    bar.className = `play-bar ${theme}`;
    this.timeSlider.type = "range";
    [this.timeSlider.min, this.timeSlider.max, this.timeSlider.step] = ["0", String(this.duration), "any"];
    this.timeSlider.setAttribute("aria-label", "Time in s");
    this.timeSlider.addEventListener("input", () => {
      this.setPlaying(false);
      this.time = Number(this.timeSlider.value);
      this.show();
    });
    this.playButton.addEventListener("click", () => this.setPlaying(this.lastTickTime === null));
    const speedSelect = document.createElement("select");
    speedSelect.setAttribute("aria-label", "Playback speed");
    for (const value of SPEEDS) speedSelect.add(new Option(`${value} ×`, String(value), value === 1, value === 1));
    speedSelect.addEventListener("change", () => (this.speed = Number(speedSelect.value)));
    const name = document.createElement("div");
    name.className = "play-name";
    name.textContent = this.motion.name || this.motion.model.title;
    bar.append(this.playButton, this.timeSlider, this.timeText, speedSelect);
    document.body.append(name, bar);
    document.addEventListener("keydown", (event) => {
      if (event.code !== "Space" || event.target instanceof HTMLButtonElement) return;
      event.preventDefault();
      this.setPlaying(this.lastTickTime === null);
    });
  }
}

/** A state frame at rest with zeros as poses and values. poseNumberCount: seven times the number of links. */
function emptyFrame(model: Model, poseNumberCount: number): StateFrame {
  return {
    revision: model.revision,
    order: -1,
    sequence: 0,
    tag: 0,
    layer: 0,
    status: "IDLE",
    isAtRest: true,
    iterations: 0,
    seconds: 0,
    solvesPerSecond: 0,
    goalError: 0,
    links: new Float64Array(poseNumberCount),
    values: new Float64Array(3 * model.dofs.length),
    goals: new Float64Array(0),
    closures: new Float64Array(2 * model.closures.length),
  };
}

/**
 * Interpolates between the link poses a (share 0) and b (share 1). Positions and quaternions are interpolated linearly,
 * and quaternions are then normalized, which is accurate enough for the small steps of a recording.
 */
function interpolatePoses(a: number[], b: number[], share: number, result: Float64Array): void {
  for (let start = 0; start + 6 < result.length; start += 7) {
    let dot = 0;
    for (let offset = 0; offset < 7; offset++) {
      result[start + offset] = a[start + offset]! + (b[start + offset]! - a[start + offset]!) * share;
      if (offset > 2) dot += a[start + offset]! * b[start + offset]!;
    }
    const sign = dot < 0 ? -1 : 1;
    let squaredNorm = 0;
    for (let offset = 3; offset < 7; offset++) {
      result[start + offset] = a[start + offset]! * (1 - share) + sign * b[start + offset]! * share;
      squaredNorm += result[start + offset]! ** 2;
    }
    for (let offset = 3; offset < 7; offset++) result[start + offset]! /= Math.sqrt(squaredNorm);
  }
}

/** Plays the motion that the page contains. */
export function play(): void {
  const text = document.getElementById("motion")?.textContent;
  if (!text) return;
  try {
    new Player(JSON.parse(text) as RecordedMotion);
  } catch (error) {
    document.body.append(`This motion cannot be played: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

play();
