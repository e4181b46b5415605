// Converts pointer events to gestures, one at a time. A press becomes a drag when the pointer moves.
import type { Vector3 } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import { selectionOf } from "../view/hit";
import type { Hit, View } from "../view/view";
import type { CameraControl } from "./camera_control";
import { CameraDrag, cameraMotion, Pinch } from "./camera_drag";
import type { Gizmo } from "./gizmo";
import type { Gesture } from "./drag_session";
import { Hover } from "./hover";
import { childLink, draggableDof, JointDrag, leaderDof, linkToDrag, isFixedLink } from "./joint_drag";
import { PlaneDrag } from "./plane_drag";
import type { Unprojector } from "./unproject";

const CLICK_PIXELS = 4; // a press with a smaller movement is a click
const LONG_PRESS_MS = 550; // time after which a finger that does not move opens the menu
const WHEEL_RATE = 0.0015; // change of the logarithm of the distance per px of wheel movement

/** A pressed button or finger; x and y: where it was pressed, client pixels. */
interface Press {
  id: number;
  button: number;
  x: number;
  y: number;
  hit: Hit | null;
  clickPixels: number; // movement at which the press becomes a drag; 0: the press is not a click
  start: () => Gesture | null;
}

export interface PointerActions {
  /** Right click or long press. */
  openMenu(x: number, y: number, hit: Hit | null): void;
  /** A drag has started or ended. */
  onDragChange(): void;
  /** Whether drags snap: Ctrl or Cmd inverts the state of the snap button. */
  isSnapping(event: { ctrlKey: boolean; metaKey: boolean }): boolean;
}

export class Pointers {
  cameraStyle: "orbit" | "maya" = "orbit";
  private readonly fingers = new Map<number, { x: number; y: number }>();
  private press: Press | null = null;
  private gesture: Gesture | null = null;
  private pinch: Pinch | null = null;
  private lastPosition = { x: 0, y: 0 };
  private longPressTimer = 0;
  private readonly hover: Hover;

  constructor(
    private readonly view: View,
    private readonly unprojector: Unprojector,
    private readonly store: Store,
    private readonly camera: CameraControl,
    private readonly gizmo: Gizmo,
    private readonly actions: PointerActions,
    signal: AbortSignal,
  ) {
    const canvas = view.canvas;
    this.hover = new Hover(view, gizmo);
    canvas.addEventListener("pointerdown", (event) => this.onDown(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.onMove(event), { signal });
    // drags are updated at the rate of the mouse, not of the screen, so slow drawing does not slow down solving
    canvas.addEventListener("pointerrawupdate", (event) => this.onRawMove(event as PointerEvent), { signal });
    canvas.addEventListener("pointerup", (event) => this.onUp(event), { signal });
    canvas.addEventListener("pointercancel", (event) => this.onLost(event), { signal });
    canvas.addEventListener("lostpointercapture", (event) => this.onLost(event), { signal });
    canvas.addEventListener("pointerleave", () => this.onLeave(), { signal });
    canvas.addEventListener("dblclick", (event) => this.onDoubleClick(event), { signal });
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { signal, passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
    canvas.addEventListener("auxclick", (event) => event.preventDefault(), { signal });
    window.addEventListener("blur", () => this.endDrag(), { signal });
  }

  /** Whether a link, joint, goal or obstacle is dragged; camera drags do not count. */
  get isDragging(): boolean {
    return this.gesture !== null && !(this.gesture instanceof CameraDrag);
  }

  /** Ends the present gesture. */
  endDrag(): void {
    this.finishGesture((gesture) => gesture.end());
  }

  /** Cancels the present gesture; returns what `isDragging` was before. */
  cancelDrag(): boolean {
    const wasDragging = this.isDragging;
    this.finishGesture((gesture) => gesture.cancel());
    return wasDragging;
  }

  /** Ends the present gesture without a request, after its object was removed or the connection was lost. */
  abandonDrag(): void {
    this.finishGesture((gesture) => gesture.abandon());
  }

  /** Ends the present gesture if its object does not exist any more. */
  abandonIfRemoved(): void {
    if (this.gesture?.targetExists() === false) this.abandonDrag();
  }

  /** Repeats the last move after a key has changed snapping while the pointer did not move. */
  repeatMove(event: KeyboardEvent): void {
    if (this.isDragging) this.gesture?.move(this.lastPosition.x, this.lastPosition.y, this.actions.isSnapping(event));
  }

  private onDown(event: PointerEvent): void {
    this.view.canvas.focus({ preventScroll: true });
    const { clientX: x, clientY: y, pointerId: id } = event;
    if (event.pointerType === "touch") {
      this.fingers.set(id, { x, y });
      if (this.fingers.size === 2 && !this.isDragging) return this.startPinch(id);
    }
    if (this.press !== null || this.gesture !== null || this.pinch !== null) return;
    if (event.button === 1 || event.altKey) event.preventDefault(); // prevent scrolling and the menu of the browser
    this.capture(id);
    this.hover.clear();
    this.lastPosition = { x, y };
    this.unprojector.lockTile(x, y);
    this.press = this.createPress(event, id, x, y);
    window.clearTimeout(this.longPressTimer);
    if (event.pointerType === "touch") this.longPressTimer = window.setTimeout(() => this.onLongPress(), LONG_PRESS_MS);
  }

  private createPress(event: PointerEvent, id: number, x: number, y: number): Press {
    const { button } = event;
    const motion = cameraMotion(button, event.altKey);
    const startCameraDrag = (): Gesture | null => (motion === null ? null : new CameraDrag(this.camera, motion, x, y));
    if (event.altKey) return { id, button, x, y, hit: null, clickPixels: 0, start: startCameraDrag };
    if (button === 0) {
      const handleDrag = this.gizmo.startDrag(x, y);
      if (handleDrag !== null) {
        this.gesture = handleDrag;
        this.actions.onDragChange();
        return { id, button, x, y, hit: null, clickPixels: 0, start: () => handleDrag };
      }
    }
    const isShiftPressed = event.shiftKey;
    const hit = button === 1 ? null : this.view.pick(x, y, isShiftPressed ? "link" : "any");
    const startBackgroundDrag = this.cameraStyle === "orbit" ? startCameraDrag : () => null;
    const press = { id, button, x, y, hit, clickPixels: CLICK_PIXELS };
    if (button !== 0 || hit === null || this.actsAsBackground(hit)) return { ...press, start: startBackgroundDrag };
    return { ...press, start: () => this.startDrag(hit, isShiftPressed, x, y) };
  }

  /** Whether a drag on this object acts like one on the background: a fixed link, or an obstacle (has a handle). */
  private actsAsBackground(hit: Hit): boolean {
    if (hit.kind === "obstacle") return true;
    return hit.kind === "link" && this.store.model !== null && isFixedLink(this.store.model, hit.link);
  }

  /** Starts a drag of an object with the left button. */
  private startDrag(hit: Hit, isShiftPressed: boolean, x: number, y: number): Gesture | null {
    const { store, unprojector } = this;
    const model = store.model;
    if (model === null) return null;
    if (hit.kind === "goal") {
      store.select({ kind: "goal", goal: hit.goal });
      return PlaneDrag.dragGoal(store, unprojector, hit.goal, x, y);
    }
    if (hit.kind === "dof") {
      const dof = leaderDof(model, hit.dof);
      const link = isShiftPressed ? childLink(model, dof) : linkToDrag(model, dof);
      if (link >= 0) return this.startLinkDrag(model, link, hit.point, isShiftPressed, x, y);
      const drag = JointDrag.start(store, unprojector, dof, hit.point, x, y);
      if (drag !== null) return drag;
      const child = childLink(model, dof);
      return child < 0 ? null : PlaneDrag.dragLink(store, unprojector, child, hit.point, x, y);
    }
    return hit.kind === "link" ? this.startLinkDrag(model, hit.link, hit.point, isShiftPressed, x, y) : null;
  }

  private startLinkDrag(
    model: Model, link: number, grabbedPoint: Vector3, isShiftPressed: boolean, x: number, y: number,
  ): Gesture | null {
    const { store, unprojector } = this;
    const dof = isShiftPressed ? null : draggableDof(model, link);
    const drag = dof === null ? null : JointDrag.start(store, unprojector, dof, grabbedPoint, x, y);
    return drag ?? PlaneDrag.dragLink(store, unprojector, link, grabbedPoint, x, y);
  }

  private onMove(event: PointerEvent): void {
    const { clientX: x, clientY: y } = event;
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, { x, y });
    if (this.pinch !== null) {
      const [a, b] = [...this.fingers.values()];
      if (a !== undefined && b !== undefined) this.pinch.move(a, b);
      return;
    }
    const press = this.press;
    if (press === null) {
      if (event.buttons === 0 && event.pointerType !== "touch") this.hover.update(x, y, event.shiftKey);
      return;
    }
    if (event.pointerId !== press.id || (x === this.lastPosition.x && y === this.lastPosition.y)) return;
    if (this.gesture === null) {
      if (Math.hypot(x - press.x, y - press.y) < press.clickPixels) return;
      this.gesture = press.start();
      press.clickPixels = 0; // no click any more, even if nothing can be dragged
      press.start = () => null;
      this.hover.clear();
      this.actions.onDragChange();
    }
    window.clearTimeout(this.longPressTimer);
    press.hit = null;
    this.lastPosition = { x, y };
    this.gesture?.move(x, y, this.actions.isSnapping(event));
  }

  private onRawMove(event: PointerEvent): void {
    if (this.isDragging) this.onMove(event);
  }

  private onUp(event: PointerEvent): void {
    this.fingers.delete(event.pointerId);
    if (this.pinch !== null) {
      if (this.fingers.size === 0) this.pinch = null;
      return;
    }
    const press = this.press;
    if (press === null || event.pointerId !== press.id || event.button !== press.button) return;
    const isClick = this.gesture === null && press.clickPixels > 0;
    this.endDrag();
    if (!isClick) return;
    if (press.button === 0) this.select(press.hit);
    if (press.button === 2) this.actions.openMenu(press.x, press.y, press.hit);
  }

  private onLost(event: PointerEvent): void {
    this.fingers.delete(event.pointerId);
    if (this.fingers.size === 0) this.pinch = null;
    if (this.press?.id === event.pointerId) this.endDrag();
  }

  private finishGesture(endGesture: (gesture: Gesture) => void): void {
    const { gesture, press } = this;
    window.clearTimeout(this.longPressTimer);
    this.gesture = null;
    this.press = null;
    this.unprojector.unlockTile();
    const { canvas } = this.view;
    if (press !== null && canvas.hasPointerCapture(press.id)) canvas.releasePointerCapture(press.id);
    if (gesture === null) return;
    endGesture(gesture);
    this.actions.onDragChange();
  }

  private startPinch(id: number): void {
    this.finishGesture((gesture) => gesture.end());
    this.capture(id);
    this.pinch = new Pinch(this.camera);
    const [a, b] = [...this.fingers.values()];
    this.pinch.move(a!, b!);
  }

  private onLongPress(): void {
    const press = this.press;
    if (press === null || this.gesture !== null) return;
    this.endDrag();
    this.actions.openMenu(press.x, press.y, press.hit);
  }

  private select(hit: Hit | null): void {
    this.store.select(hit === null ? { kind: "none" } : selectionOf(hit));
  }

  private onDoubleClick(event: MouseEvent): void {
    if (event.button !== 0 || event.altKey) return;
    const { clientX: x, clientY: y } = event;
    if (this.gizmo.hover(x, y) || this.view.pick(x, y) !== null) this.view.frameSelection();
    else this.view.frameAll();
  }

  private onWheel(event: WheelEvent): void {
    event.preventDefault();
    if (this.isDragging) return;
    const unitPixels = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 100 : 1; // line, page, pixel
    // touch pads report a pinch as a wheel movement with Ctrl in small steps, which count six times
    const isPinch = event.ctrlKey && Math.abs(event.deltaY) < 50;
    const wheelPixels = Math.max(-300, Math.min(300, event.deltaY * unitPixels)) * (isPinch ? 6 : 1);
    this.camera.dolly(Math.exp(wheelPixels * WHEEL_RATE), event.clientX, event.clientY);
  }

  private onLeave(): void {
    if (this.gesture !== null) return;
    this.gizmo.clearHover();
    this.hover.clear();
  }

  private capture(id: number): void {
    try {
      this.view.canvas.setPointerCapture(id);
    } catch {
      // the pointer does not exist any more; `onUp` or `onLost` ends its press
    }
  }
}
