// Handle of the selected goal or obstacle: arrows, squares and rings of three.js, attached to a proxy object.
import { Object3D } from "three";
import { TransformControls } from "three/addons/controls/TransformControls.js";
import type { Store } from "../store";
import type { View } from "../view/view";
import { GizmoDrag, TranslateMotion, RotateMotion, pointerEvent } from "./gizmo_drag";
import type { Gesture } from "./drag_session";
import { dragTarget, type DragTarget } from "./drag_target";
import type { Unprojector } from "./unproject";
import { snapLength } from "./snap";

export type Mode = "move" | "rotate" | "both";
export type Space = "world" | "local";

const SETTLE_MS = 500; // for this time after a drag, frames without its last update do not move the handle
const COLOURS = ["#e5484d", "#3fa34d", "#3b82f6", "#ffd166"] as const;

export class Gizmo {
  private readonly proxy = new Object3D();
  private readonly arrows: TransformControls;
  private readonly rings: TransformControls;
  private target: DragTarget | null = null;
  private drag: GizmoDrag | null = null;
  private lastDrag = { tag: 0, settleTime: 0 }; // settleTime: end of SETTLE_MS, ms
  private mode: Mode = "move";

  constructor(
    private readonly view: View,
    private readonly unprojector: Unprojector,
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
    store.on("selection", () => this.updateProxy());
    store.on("goals", () => this.updateProxy());
    store.on("obstacles", () => this.updateProxy());
    store.on("frame", () => this.updateProxy());
  }

  setMode(mode: Mode): void {
    this.mode = mode;
    this.arrows.setSize(mode === "both" ? 0.72 : 0.9); // in mode "both" the arrows are inside the rings
    this.rings.setSize(mode === "both" ? 1.05 : 0.9);
    this.rings.showE = mode !== "both";
    this.updateControls();
  }

  setSpace(space: Space): void {
    this.arrows.setSpace(space);
    this.rings.setSpace(space);
  }

  /** Highlights the part of the handle under the pointer; returns whether there is such a part, or a drag. */
  hover(x: number, y: number): boolean {
    if (this.drag !== null || this.target === null) return this.drag !== null;
    for (const controls of [this.arrows, this.rings]) controls.getHelper().updateMatrixWorld();
    const event = pointerEvent(this.unprojector.screen(x, y));
    if (this.mode !== "rotate") this.arrows.pointerHover(event);
    if (this.mode === "move" || this.arrows.axis !== null) this.rings.axis = null;
    else this.rings.pointerHover(event);
    return this.activeControls() !== null;
  }

  clearHover(): void {
    if (this.drag !== null) return;
    this.arrows.axis = null;
    this.rings.axis = null;
  }

  /** Starts to drag the part of the handle under the pixel, if any; the request is sent when the pointer moves. */
  startDrag(x: number, y: number): Gesture | null {
    if (!this.hover(x, y) || this.target === null) return null;
    const controls = this.activeControls();
    if (controls === null) return null;
    const snapStep = snapLength(this.store.model?.radius ?? 1);
    const motion = controls === this.arrows
      ? new TranslateMotion(this.arrows, this.unprojector, snapStep, x, y)
      : new RotateMotion(this.rings, this.unprojector, this.proxy, x, y);
    this.drag = new GizmoDrag(this.store, this.target, this.proxy, motion, () => this.onDragEnd());
    return this.drag;
  }

  private activeControls(): TransformControls | null {
    return this.arrows.axis !== null ? this.arrows : this.rings.axis !== null ? this.rings : null;
  }

  private onDragEnd(): void {
    this.drag = null;
    this.lastDrag = { tag: this.store.connection.lastTag, settleTime: performance.now() + SETTLE_MS };
    this.clearHover();
    this.updateProxy();
  }

  /** Moves the proxy to the pose of the target, unless the target is being dragged. */
  private updateProxy(): void {
    const target = dragTarget(this.store, this.store.selection);
    if (this.drag !== null && target?.key === this.drag.target.key) return;
    const isNewTarget = target?.key !== this.target?.key;
    if (isNewTarget) this.target = target;
    const pose = this.target?.pose() ?? null;
    const isOutdated = (this.store.frame?.tag ?? 0) < this.lastDrag.tag && performance.now() < this.lastDrag.settleTime;
    if (pose !== null && (isNewTarget || !isOutdated)) {
      this.proxy.position.copy(pose.position);
      this.proxy.quaternion.copy(pose.rotation);
    }
    if (isNewTarget) this.updateControls();
  }

  /** Shows the arrows and rings of the mode if the target exists, and hides the others. */
  private updateControls(): void {
    const isShown = (this.target?.pose() ?? null) !== null;
    for (const controls of [this.arrows, this.rings]) {
      const hiddenMode: Mode = controls === this.arrows ? "rotate" : "move";
      if (isShown && this.mode !== hiddenMode) controls.attach(this.proxy);
      else controls.detach();
    }
    this.view.draw();
  }
}
