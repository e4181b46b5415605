// Drags of the arrows, squares and rings of the handle.
import { type Object3D, Quaternion, Vector3 } from "three";
import type { TransformControls } from "three/addons/controls/TransformControls.js";
import type { Store } from "../store";
import { DragSession, type Gesture } from "./drag_session";
import type { DragTarget } from "./drag_target";
import { Pose } from "./poses";
import type { Unprojector } from "./unproject";
import { SNAP_ANGLE, snap } from "./snap";
import { AxisRotation } from "./axis_rotate";

const UNIT_AXES = { X: new Vector3(1, 0, 0), Y: new Vector3(0, 1, 0), Z: new Vector3(0, 0, 1) };

/** Motion of the proxy object; x and y are client pixels. */
interface Motion {
  moveTo(x: number, y: number, isSnapping: boolean): void;
  end(): void;
}

/** Translation along an arrow, in the plane of a square, or in the plane of the view. */
export class TranslateMotion implements Motion {
  constructor(
    private readonly controls: TransformControls,
    private readonly unprojector: Unprojector,
    private readonly snapStep: number, // m
    x: number,
    y: number,
  ) {
    controls.getHelper().updateMatrixWorld(); // the plane of the drag depends on the highlighted part
    controls.pointerDown(pointerEvent(unprojector.screen(x, y), 0));
  }

  moveTo(x: number, y: number, isSnapping: boolean): void {
    this.controls.translationSnap = isSnapping ? this.snapStep : null;
    this.controls.pointerMove(pointerEvent(this.unprojector.screen(x, y)));
  }

  end(): void {
    this.controls.pointerUp(null);
  }
}

/** Rotation by a ring: the grabbed point follows the pointer, in contrast to the rotation of TransformControls. */
export class RotateMotion implements Motion {
  private readonly rotation: AxisRotation;
  private readonly axis: Vector3;
  private readonly startRotation: Quaternion;

  constructor(
    private readonly controls: TransformControls,
    unprojector: Unprojector,
    private readonly proxy: Object3D,
    x: number,
    y: number,
  ) {
    const centre = proxy.position;
    const axisName = controls.axis;
    this.startRotation = proxy.quaternion.clone();
    if (axisName === "X" || axisName === "Y" || axisName === "Z") {
      this.axis = UNIT_AXES[axisName].clone();
      if (controls.space === "local") this.axis.applyQuaternion(this.startRotation);
    } else {
      this.axis = unprojector.directionToCamera(centre);
    }
    const grabbedPoint = unprojector.intersectPlane(x, y, unprojector.facingPlane(centre)) ?? centre.clone();
    grabbedPoint.sub(centre).projectOnPlane(this.axis).add(centre);
    this.rotation = new AxisRotation(unprojector, centre.clone(), this.axis, grabbedPoint, x, y);
    controls.dragging = true;
  }

  moveTo(x: number, y: number, isSnapping: boolean): void {
    const angle = this.rotation.angle(x, y);
    const rotation = new Quaternion().setFromAxisAngle(this.axis, isSnapping ? snap(angle, SNAP_ANGLE) : angle);
    this.proxy.quaternion.copy(rotation.multiply(this.startRotation)).normalize();
    this.controls.dispatchEvent({ type: "change" });
  }

  end(): void {
    this.controls.dragging = false;
  }
}

export class GizmoDrag implements Gesture {
  private session: DragSession | null = null;

  constructor(
    private readonly store: Store,
    readonly target: DragTarget,
    private readonly proxy: Object3D,
    private readonly motion: Motion,
    private readonly onEnd: () => void,
  ) {}

  targetExists(): boolean {
    return this.target.pose() !== null;
  }

  move(x: number, y: number, isSnapping: boolean): void {
    this.session ??= new DragSession(this.store, this.target.startRequest());
    this.motion.moveTo(x, y, isSnapping);
    this.target.drag(this.session, new Pose(this.proxy.position, this.proxy.quaternion));
  }

  end(): void {
    void this.session?.end();
    this.finish();
  }

  cancel(): void {
    void this.session?.cancel();
    this.finish();
  }

  abandon(): void {
    this.session?.abandon();
    this.finish();
  }

  private finish(): void {
    this.motion.end();
    this.onEnd();
  }
}

/**
 * The fields of a pointer event that TransformControls reads: position from -1 to 1, and the button (-1: no change).
 */
export function pointerEvent(position: { x: number; y: number }, button = -1): PointerEvent {
  return { x: position.x, y: position.y, button } as PointerEvent;
}
