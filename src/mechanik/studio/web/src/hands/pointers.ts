// Which hand does what: pointers come in, one gesture at a time goes out. A press becomes a drag when it moves.
import type { Vector3 } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import { thing } from "../view/hit";
import type { Hit, View } from "../view/view";
import type { Camera } from "./camera";
import { CameraDrag, cameraMotion, Pinch } from "./camera_drag";
import type { Gizmo } from "./gizmo";
import type { Gesture } from "./grip";
import { Hover } from "./hover";
import { childOf, freedomByHand, JointDrag, leadingFreedom, linkByMarker, stands } from "./joint_drag";
import { PlaneDrag } from "./plane_drag";
import type { Pointing } from "./pointing";

const CLICK = 4; // px that a click may move
const LONG_PRESS = 550; // ms until a finger that rests asks for the menu
const WHEEL = 0.0015; // of the logarithm of the distance, a unit of the wheel

interface Press {
  id: number;
  button: number;
  x: number;
  y: number;
  hit: Hit | null;
  slack: number; // px before it is a drag
  begin: () => Gesture | null;
}

export interface PointerWishes {
  /** Right click, or a finger that rests. */
  menu(x: number, y: number, hit: Hit | null): void;
  /** A drag has begun or ended. */
  changed(): void;
  /** Whether Ctrl or the snap button asks for steps. */
  snaps(event: { ctrlKey: boolean; metaKey: boolean }): boolean;
}

export class Pointers {
  cameraStyle: "orbit" | "maya" = "orbit";
  private readonly fingers = new Map<number, { x: number; y: number }>();
  private press: Press | null = null;
  private gesture: Gesture | null = null;
  private pinch: Pinch | null = null;
  private last = { x: 0, y: 0 };
  private longPress = 0;
  private readonly hover: Hover;

  constructor(
    private readonly view: View,
    private readonly pointing: Pointing,
    private readonly store: Store,
    private readonly camera: Camera,
    private readonly gizmo: Gizmo,
    private readonly wishes: PointerWishes,
    signal: AbortSignal,
  ) {
    const canvas = view.canvas;
    this.hover = new Hover(view, gizmo);
    canvas.addEventListener("pointerdown", (event) => this.down(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.moved(event), { signal });
    // what is held follows at the rate of the mouse, not of the screen: where drawing is slow solving need not be
    canvas.addEventListener("pointerrawupdate", (event) => this.movedBetween(event as PointerEvent), { signal });
    canvas.addEventListener("pointerup", (event) => this.up(event), { signal });
    canvas.addEventListener("pointercancel", (event) => this.lost(event), { signal });
    canvas.addEventListener("lostpointercapture", (event) => this.lost(event), { signal });
    canvas.addEventListener("pointerleave", () => this.left(), { signal });
    canvas.addEventListener("dblclick", (event) => this.twice(event), { signal });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
    canvas.addEventListener("auxclick", (event) => event.preventDefault(), { signal });
    window.addEventListener("blur", () => this.letGo(), { signal });
  }

  /** Whether something of the mechanism is in the hand; the camera does not count. */
  get isDragging(): boolean {
    return this.gesture !== null && !(this.gesture instanceof CameraDrag);
  }

  /** Let go of everything. */
  letGo(): void {
    this.finish((gesture) => gesture.end());
  }

  /** Put back what is held; whether anything was. */
  putBack(): boolean {
    const held = this.isDragging;
    this.finish((gesture) => gesture.cancel());
    return held;
  }

  /** What is held does not exist any more. */
  drop(): void {
    this.finish((gesture) => gesture.drop());
  }

  /** Drop what is held if it is not there any more. */
  dropWhatIsGone(): void {
    if (this.gesture?.isThere() === false) this.drop();
  }

  /** A key that changes the steps was pressed or let go while nothing moved. */
  again(event: KeyboardEvent): void {
    if (this.isDragging) this.gesture?.move(this.last.x, this.last.y, this.wishes.snaps(event));
  }

  private down(event: PointerEvent): void {
    this.view.canvas.focus({ preventScroll: true });
    const { clientX: x, clientY: y, pointerId: id } = event;
    if (event.pointerType === "touch") {
      this.fingers.set(id, { x, y });
      if (this.fingers.size === 2 && !this.isDragging) return this.startPinch(id);
    }
    if (this.press !== null || this.gesture !== null || this.pinch !== null) return;
    if (event.button === 1 || event.altKey) event.preventDefault(); // no scrolling, no menu of the browser
    this.capture(id);
    this.hover.end();
    this.last = { x, y };
    this.pointing.hold(x, y);
    this.press = this.pressed(event, id, x, y);
    window.clearTimeout(this.longPress);
    if (event.pointerType === "touch") this.longPress = window.setTimeout(() => this.rested(), LONG_PRESS);
  }

  private pressed(event: PointerEvent, id: number, x: number, y: number): Press {
    const { button } = event;
    const motion = cameraMotion(button, event.altKey);
    const moveCamera = (): Gesture | null => (motion === null ? null : new CameraDrag(this.camera, motion, x, y));
    if (event.altKey) return { id, button, x, y, hit: null, slack: 0, begin: moveCamera };
    if (button === 0) {
      const handle = this.gizmo.begin(x, y);
      if (handle !== null) {
        this.gesture = handle;
        this.wishes.changed();
        return { id, button, x, y, hit: null, slack: 0, begin: () => handle };
      }
    }
    const shift = event.shiftKey;
    const hit = button === 1 ? null : this.view.pick(x, y, shift ? "link" : "any");
    const plain = this.cameraStyle === "orbit" ? moveCamera : () => null;
    if (button !== 0 || hit === null || this.isFixed(hit)) return { id, button, x, y, hit, slack: CLICK, begin: plain };
    return { id, button, x, y, hit, slack: CLICK, begin: () => this.take(hit, shift, x, y) };
  }

  /** A link that cannot move, or an obstacle, which its handle moves: there the hand means the camera. */
  private isFixed(hit: Hit): boolean {
    if (hit.kind === "obstacle") return true;
    return hit.kind === "link" && this.store.model !== null && stands(this.store.model, hit.link);
  }

  /** What a drag of the left button does that began on something. */
  private take(hit: Hit, shift: boolean, x: number, y: number): Gesture | null {
    const { store, pointing } = this;
    const model = store.model;
    if (model === null) return null;
    if (hit.kind === "goal") {
      store.select({ kind: "goal", goal: hit.goal });
      return PlaneDrag.moveGoal(store, pointing, hit.goal, x, y);
    }
    if (hit.kind === "freedom") {
      const freedom = leadingFreedom(model, hit.freedom);
      const link = shift ? childOf(model, freedom) : linkByMarker(model, freedom);
      if (link >= 0) return this.takeLink(model, link, hit.point, shift, x, y);
      const drag = JointDrag.begin(store, pointing, freedom, hit.point, x, y);
      if (drag !== null) return drag;
      const child = childOf(model, freedom);
      return child < 0 ? null : PlaneDrag.pull(store, pointing, child, hit.point, x, y);
    }
    return hit.kind === "link" ? this.takeLink(model, hit.link, hit.point, shift, x, y) : null;
  }

  private takeLink(model: Model, link: number, at: Vector3, shift: boolean, x: number, y: number): Gesture | null {
    const { store, pointing } = this;
    const freedom = shift ? null : freedomByHand(model, link);
    const drag = freedom === null ? null : JointDrag.begin(store, pointing, freedom, at, x, y);
    return drag ?? PlaneDrag.pull(store, pointing, link, at, x, y);
  }

  private moved(event: PointerEvent): void {
    const { clientX: x, clientY: y } = event;
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, { x, y });
    if (this.pinch !== null) {
      const [a, b] = [...this.fingers.values()];
      if (a !== undefined && b !== undefined) this.pinch.move(a, b);
      return;
    }
    const press = this.press;
    if (press === null) {
      if (event.buttons === 0 && event.pointerType !== "touch") this.hover.ask(x, y, event.shiftKey);
      return;
    }
    if (event.pointerId !== press.id || (x === this.last.x && y === this.last.y)) return;
    if (this.gesture === null) {
      if (Math.hypot(x - press.x, y - press.y) < press.slack) return;
      this.gesture = press.begin();
      press.slack = 0; // from here on it is no click, also if nothing could be taken
      press.begin = () => null;
      this.hover.end();
      this.wishes.changed();
    }
    window.clearTimeout(this.longPress);
    press.hit = null;
    this.last = { x, y };
    this.gesture?.move(x, y, this.wishes.snaps(event));
  }

  private movedBetween(event: PointerEvent): void {
    if (this.isDragging) this.moved(event);
  }

  private up(event: PointerEvent): void {
    this.fingers.delete(event.pointerId);
    if (this.pinch !== null) {
      if (this.fingers.size === 0) this.pinch = null;
      return;
    }
    const press = this.press;
    if (press === null || event.pointerId !== press.id || event.button !== press.button) return;
    const isClick = this.gesture === null && press.slack > 0;
    this.letGo();
    if (!isClick) return;
    if (press.button === 0) this.select(press.hit);
    if (press.button === 2) this.wishes.menu(press.x, press.y, press.hit);
  }

  private lost(event: PointerEvent): void {
    this.fingers.delete(event.pointerId);
    if (this.fingers.size === 0) this.pinch = null;
    if (this.press?.id === event.pointerId) this.letGo();
  }

  private finish(how: (gesture: Gesture) => void): void {
    const { gesture, press } = this;
    window.clearTimeout(this.longPress);
    this.gesture = null;
    this.press = null;
    this.pointing.release();
    const { canvas } = this.view;
    if (press !== null && canvas.hasPointerCapture(press.id)) canvas.releasePointerCapture(press.id);
    if (gesture === null) return;
    how(gesture);
    this.wishes.changed();
  }

  private startPinch(id: number): void {
    this.finish((gesture) => gesture.end());
    this.capture(id);
    this.pinch = new Pinch(this.camera);
    const [a, b] = [...this.fingers.values()];
    this.pinch.move(a!, b!);
  }

  private rested(): void {
    const press = this.press;
    if (press === null || this.gesture !== null) return;
    this.letGo();
    this.wishes.menu(press.x, press.y, press.hit);
  }

  private select(hit: Hit | null): void {
    this.store.select(hit === null ? { kind: "none" } : thing(hit));
  }

  private twice(event: MouseEvent): void {
    if (event.button !== 0 || event.altKey) return;
    const { clientX: x, clientY: y } = event;
    if (this.gizmo.hover(x, y) || this.view.pick(x, y) !== null) this.view.frameSelection();
    else this.view.frameAll();
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    if (this.isDragging) return;
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 100 : 1;
    const isPinch = event.ctrlKey && Math.abs(event.deltaY) < 50; // touch pads pinch as a wheel with Ctrl
    const amount = Math.max(-300, Math.min(300, event.deltaY * unit)) * (isPinch ? 6 : 1);
    this.camera.dolly(Math.exp(amount * WHEEL), event.clientX, event.clientY);
  }

  private left(): void {
    if (this.gesture !== null) return;
    this.gizmo.leave();
    this.hover.end();
  }

  private capture(id: number): void {
    try {
      this.view.canvas.setPointerCapture(id);
    } catch {
      // the pointer has gone already; its end has been told or will be
    }
  }
}
