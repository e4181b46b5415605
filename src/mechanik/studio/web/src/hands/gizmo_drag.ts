// What the parts of the handle do when they are dragged.
import { type Object3D, Quaternion, Vector3 } from "three";
import type { TransformControls } from "three/addons/controls/TransformControls.js";
import type { Store } from "../store";
import { Grip, type Gesture } from "./grip";
import type { Handled } from "./handled";
import { Pose } from "./poses";
import type { Pointing } from "./pointing";
import { SNAP_ANGLE, snapped } from "./snap";
import { Turning } from "./turning";

const UNITS = { X: new Vector3(1, 0, 0), Y: new Vector3(0, 1, 0), Z: new Vector3(0, 0, 1) };

interface Motion {
  to(x: number, y: number, snaps: boolean): void;
  end(): void;
}

/** Along an arrow, on a square, or freely on the middle. */
export class Moving implements Motion {
  constructor(
    private readonly controls: TransformControls,
    private readonly pointing: Pointing,
    private readonly step: number,
    x: number,
    y: number,
  ) {
    controls.getHelper().updateMatrixWorld(); // the plane of the drag depends on the part that was just lit
    controls.pointerDown(pointer(pointing.screen(x, y), 0));
  }

  to(x: number, y: number, snaps: boolean): void {
    this.controls.translationSnap = snaps ? this.step : null;
    this.controls.pointerMove(pointer(this.pointing.screen(x, y)));
  }

  end(): void {
    this.controls.pointerUp(null);
  }
}

/** Around a ring; three's own would turn by the length of the way, this keeps the taken point under the pointer. */
export class Rotating implements Motion {
  private readonly turning: Turning;
  private readonly axis: Vector3;
  private readonly start: Quaternion;

  constructor(
    private readonly controls: TransformControls,
    pointing: Pointing,
    private readonly proxy: Object3D,
    x: number,
    y: number,
  ) {
    const centre = proxy.position;
    const name = controls.axis;
    this.start = proxy.quaternion.clone();
    if (name === "X" || name === "Y" || name === "Z") {
      this.axis = UNITS[name].clone();
      if (controls.space === "local") this.axis.applyQuaternion(this.start);
    } else {
      this.axis = pointing.toEye(centre);
    }
    const grabbed = pointing.onPlane(x, y, pointing.facing(centre)) ?? centre.clone();
    grabbed.sub(centre).projectOnPlane(this.axis).add(centre);
    this.turning = new Turning(pointing, centre.clone(), this.axis, grabbed, x, y);
    controls.dragging = true;
  }

  to(x: number, y: number, snaps: boolean): void {
    const angle = this.turning.angle(x, y);
    const turn = new Quaternion().setFromAxisAngle(this.axis, snaps ? snapped(angle, SNAP_ANGLE) : angle);
    this.proxy.quaternion.copy(turn.multiply(this.start)).normalize();
    this.controls.dispatchEvent({ type: "change" });
  }

  end(): void {
    this.controls.dragging = false;
  }
}

export class GizmoDrag implements Gesture {
  private grip: Grip | null = null;

  constructor(
    private readonly store: Store,
    readonly held: Handled,
    private readonly proxy: Object3D,
    private readonly motion: Motion,
    private readonly over: () => void,
  ) {}

  isThere(): boolean {
    return this.held.pose() !== null;
  }

  move(x: number, y: number, snaps: boolean): void {
    this.grip ??= new Grip(this.store, this.held.grab());
    this.motion.to(x, y, snaps);
    this.held.hold(this.grip, new Pose(this.proxy.position, this.proxy.quaternion));
  }

  end(): void {
    void this.grip?.letGo();
    this.finish();
  }

  cancel(): void {
    void this.grip?.putBack();
    this.finish();
  }

  drop(): void {
    this.grip?.drop();
    this.finish();
  }

  private finish(): void {
    this.motion.end();
    this.over();
  }
}

/** What TransformControls wants to know of a pointer: its place from -1 to 1, and the button (-1: none has changed). */
export function pointer(at: { x: number; y: number }, button = -1): PointerEvent {
  return { x: at.x, y: at.y, button } as PointerEvent;
}
