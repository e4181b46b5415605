// A recorded motion, played without a server: built into one classic script that the recorded page carries.
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { carriedModel, surroundings, type Motion, type Surroundings } from "./carried";
import type { Model } from "./messages";
import { Store } from "./store";
import { View } from "./view/view";
import type { Frame } from "./wire/frame";

const SHEET = `
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
  private readonly button = document.createElement("button");
  private readonly scrub = document.createElement("input");
  private readonly clock = document.createElement("output");
  private readonly poses: number[][];
  private readonly frame: Frame;
  private readonly around: Surroundings[];
  private shown: Surroundings | undefined;
  private time = 0;
  private speed = 1;
  private last: number | null = null; // when it was drawn last while it plays, ms

  constructor(private readonly motion: Motion) {
    this.poses = motion.poses ?? motion.links ?? [];
    if (this.poses.length === 0 || this.poses.length !== motion.times.length)
      throw new Error("the page carries no motion");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(SHEET);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    // values of joints are not carried, so nothing that shows them is drawn
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
    const host = document.createElement("div");
    host.className = "play-view";
    document.body.append(host);
    this.view = new View(host, this.store);
    this.around = surroundings(motion);
    this.frame = emptyFrame(motion.model, this.poses[0]!.length);
    this.store.told(carriedModel(motion));
    if (motion.curves)
      this.store.told({
        is: "Scene",
        name: "",
        title: "",
        about: "",
        controls: [],
        curves: motion.curves,
        terrain: null,
        shows_collisions: false,
      });
    this.bar(theme);
    this.camera();
    this.show();
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!isCalm) this.setPlaying(true);
  }

  private get duration(): number {
    return this.motion.times.at(-1)!;
  }

  private setPlaying(on: boolean): void {
    this.button.textContent = on ? "Pause" : "Play";
    if (on && this.last === null) requestAnimationFrame((now) => this.tick(now));
    this.last = on ? performance.now() : null;
  }

  private tick(now: number): void {
    if (this.last === null) return;
    const next = this.time + (Math.max(0, now - this.last) / 1000) * this.speed;
    this.last = now;
    this.time = next > this.duration ? 0 : next;
    this.show();
    requestAnimationFrame((later) => this.tick(later));
  }

  /** Draw the moment `time`, between the two recorded ones around it. */
  private show(): void {
    const { times } = this.motion;
    let after = times.findIndex((time) => time >= this.time);
    if (after < 0) after = times.length - 1;
    const before = Math.max(0, after - 1);
    const span = times[after]! - times[before]!;
    blend(
      this.poses[before]!,
      this.poses[after]!,
      span > 0 ? (this.time - times[before]!) / span : 0,
      this.frame.links,
    );
    this.surround();
    this.frame.sequence++;
    this.store.moved(this.frame);
    this.scrub.value = String(this.time);
    this.clock.textContent = `${this.time.toFixed(2)} / ${this.duration.toFixed(2)} s`;
  }

  /** Obstacles where they stood then, and what bumped in red. */
  private surround(): void {
    const later = this.around.findIndex(({ time }) => time > this.time);
    const now = this.around.at(later < 0 ? -1 : later - 1);
    const before = this.shown;
    if (now === undefined || now === before || later === 0) return;
    this.shown = now;
    if (now.obstacles.obstacles !== before?.obstacles.obstacles) this.store.told(now.obstacles);
    if (now.clashes !== before?.clashes) this.store.told(now.clashes);
  }

  private camera(): void {
    const begin = () => {
      const controls = new OrbitControls(this.view.camera, this.view.canvas);
      controls.target = this.view.target;
      controls.addEventListener("change", () => this.view.draw());
      this.view.on("framed", () => controls.update());
      return controls;
    };
    let controls = begin();
    this.view.on("camera", () => {
      controls.dispose();
      controls = begin();
    });
  }

  private bar(theme: string): void {
    const bar = document.createElement("div");
    bar.className = `play-bar ${theme}`;
    this.scrub.type = "range";
    [this.scrub.min, this.scrub.max, this.scrub.step] = ["0", String(this.duration), "any"];
    this.scrub.setAttribute("aria-label", "time");
    this.scrub.addEventListener("input", () => {
      this.setPlaying(false);
      this.time = Number(this.scrub.value);
      this.show();
    });
    this.button.addEventListener("click", () => this.setPlaying(this.last === null));
    const speed = document.createElement("select");
    speed.setAttribute("aria-label", "speed");
    for (const value of SPEEDS) speed.add(new Option(`${value} ×`, String(value), value === 1, value === 1));
    speed.addEventListener("change", () => (this.speed = Number(speed.value)));
    const name = document.createElement("div");
    name.className = "play-name";
    name.textContent = this.motion.name || this.motion.model.title;
    bar.append(this.button, this.scrub, this.clock, speed);
    document.body.append(name, bar);
    document.addEventListener("keydown", (event) => {
      if (event.code !== "Space" || event.target instanceof HTMLButtonElement) return;
      event.preventDefault();
      this.setPlaying(this.last === null);
    });
  }
}

function emptyFrame(model: Model, numbers: number): Frame {
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
    residual: 0,
    links: new Float64Array(numbers),
    values: new Float64Array(3 * model.dofs.length),
    goals: new Float64Array(0),
    closures: new Float64Array(2 * model.closures.length),
  };
}

/** Poses between two moments: places on a straight line, turns mixed and normalised, which is enough for near ones. */
function blend(a: number[], b: number[], share: number, into: Float64Array): void {
  for (let k = 0; k + 6 < into.length; k += 7) {
    let dot = 0;
    for (let e = 0; e < 7; e++) {
      into[k + e] = a[k + e]! + (b[k + e]! - a[k + e]!) * share;
      if (e > 2) dot += a[k + e]! * b[k + e]!;
    }
    const sign = dot < 0 ? -1 : 1;
    let length = 0;
    for (let e = 3; e < 7; e++) {
      into[k + e] = a[k + e]! * (1 - share) + sign * b[k + e]! * share;
      length += into[k + e]! ** 2;
    }
    for (let e = 3; e < 7; e++) into[k + e]! /= Math.sqrt(length);
  }
}

/** Play what the page carries. */
export function play(): void {
  const text = document.getElementById("motion")?.textContent;
  if (!text) return;
  try {
    new Player(JSON.parse(text) as Motion);
  } catch (why) {
    document.body.append(`This motion cannot be played: ${why instanceof Error ? why.message : String(why)}.`);
  }
}

play();
