// The handle at the selected goal or obstacle: three's arrows, squares and rings on a stand-in that leads while it is dragged.
import { Object3D } from "three";
import { TransformControls } from "three/addons/controls/TransformControls.js";
import type { Store } from "../store";
import type { View } from "../view/view";
import { GizmoDrag, Moving, Rotating, pointer } from "./gizmo_drag";
import type { Gesture } from "./grip";
import { handled, type Handled } from "./handled";
import type { Pointing } from "./pointing";
import { snapLength } from "./snap";

export type Mode = "move" | "rotate" | "both";
export type Space = "world" | "local";

const SETTLING = 500; // ms after a drag for which frames that have not seen its end are passed over
const COLOURS = ["#e5484d", "#3fa34d", "#3b82f6", "#ffd166"] as const;

export class Gizmo {
  private readonly proxy = new Object3D();
  private readonly arrows: TransformControls;
  private readonly rings: TransformControls;
  private at: Handled | null = null;
  private drag: GizmoDrag | null = null;
  private awaited = { tag: 0, until: 0 };
  private mode: Mode = "move";

  constructor(
    private readonly view: View,
    private readonly pointing: Pointing,
    private readonly store: Store,
  ) {
    this.arrows = new TransformControls(view.camera);
    this.rings = new TransformControls(view.camera);
    this.rings.setMode("rotate");
    this.rings.showXYZE = false;
    view.scene.add(this.proxy);
    for (const controls of [this.arrows, this.rings]) {
      controls.setColors(...COLOURS);
      controls.addEventListener("change", () => view.draw());
      view.scene.add(controls.getHelper());
    }
    this.setMode("move");
    view.on("camera", () => {
      this.arrows.camera = view.camera;
      this.rings.camera = view.camera;
    });
    store.on("selection", () => this.follow());
    store.on("goals", () => this.follow());
    store.on("obstacles", () => this.follow());
    store.on("frame", () => this.follow());
  }

  setMode(mode: Mode): void {
    this.mode = mode;
    this.arrows.setSize(mode === "both" ? 0.72 : 0.9); // both at once: the arrows inside of the rings
    this.rings.setSize(mode === "both" ? 1.05 : 0.9);
    this.rings.showE = mode !== "both";
    this.attach();
  }

  setSpace(space: Space): void {
    this.arrows.setSpace(space);
    this.rings.setSpace(space);
  }

  /** Light up what the pointer is on; whether it is on any part. */
  hover(x: number, y: number): boolean {
    if (this.drag !== null || this.at === null) return this.drag !== null;
    for (const controls of [this.arrows, this.rings]) controls.getHelper().updateMatrixWorld();
    const place = pointer(this.pointing.screen(x, y));
    if (this.mode !== "rotate") this.arrows.pointerHover(place);
    if (this.mode === "move" || this.arrows.axis !== null) this.rings.axis = null;
    else this.rings.pointerHover(place);
    return this.part() !== null;
  }

  leave(): void {
    if (this.drag !== null) return;
    this.arrows.axis = null;
    this.rings.axis = null;
  }

  /** Take the part at a pixel, if there is one; nothing is asked of the session before it moves. */
  begin(x: number, y: number): Gesture | null {
    if (!this.hover(x, y) || this.at === null) return null;
    const controls = this.part();
    if (controls === null) return null;
    const step = snapLength(this.store.model?.radius ?? 1);
    const motion = controls === this.arrows
      ? new Moving(this.arrows, this.pointing, step, x, y)
      : new Rotating(this.rings, this.pointing, this.proxy, x, y);
    this.drag = new GizmoDrag(this.store, this.at, this.proxy, motion, () => this.settle());
    return this.drag;
  }

  private part(): TransformControls | null {
    return this.arrows.axis !== null ? this.arrows : this.rings.axis !== null ? this.rings : null;
  }

  private settle(): void {
    this.drag = null;
    this.awaited = { tag: this.store.wire.lastTag, until: performance.now() + SETTLING };
    this.leave();
    this.follow();
  }

  /** While nobody drags it, the stand-in is where that is. */
  private follow(): void {
    const at = handled(this.store, this.store.selection);
    if (this.drag !== null && at?.name === this.drag.held.name) return;
    const isAnother = at?.name !== this.at?.name;
    if (isAnother) this.at = at;
    const pose = this.at?.pose() ?? null;
    const isLate = (this.store.frame?.tag ?? 0) < this.awaited.tag && performance.now() < this.awaited.until;
    if (pose !== null && (isAnother || !isLate)) {
      this.proxy.position.copy(pose.position);
      this.proxy.quaternion.copy(pose.turn);
    }
    if (isAnother) this.attach();
  }

  private attach(): void {
    const isShown = (this.at?.pose() ?? null) !== null;
    for (const controls of [this.arrows, this.rings]) {
      const other: Mode = controls === this.arrows ? "rotate" : "move";
      if (isShown && this.mode !== other) controls.attach(this.proxy);
      else controls.detach();
    }
    this.view.draw();
  }
}
