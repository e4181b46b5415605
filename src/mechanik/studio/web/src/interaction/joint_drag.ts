// Drag of a joint: the grabbed point follows the pointer about or along the axis of the joint.
import type { Vector3 } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import { DragSession, type Gesture } from "./drag_session";
import { dofAxis } from "./poses";
import type { Unprojector } from "./unproject";
import { AxisSlide } from "./axis_slide";
import { SNAP_ANGLE, snapLength, snap } from "./snap";
import { AxisRotation } from "./axis_rotate";

export class JointDrag implements Gesture {
  private readonly session: DragSession;

  private constructor(
    store: Store,
    private readonly dof: number,
    private readonly startValue: number, // m or rad
    private readonly displacement: (x: number, y: number) => number, // m or rad, at a pixel
    private readonly snapStep: number, // m or rad
  ) {
    this.session = new DragSession(store, { do: "StartJointDrag", dof });
  }

  /** Starts the drag at the pixel (x, y); null for a spherical joint, whose value is not one number. */
  static start(
    store: Store, unprojector: Unprojector, dof: number, grabbedPoint: Vector3, x: number, y: number,
  ): JointDrag | null {
    const { model, frame } = store;
    const info = model?.dofs[dof];
    if (!model || !frame || !info || info.kind === "spherical") return null;
    const line = dofAxis(model, frame, dof);
    if (line === null) return null;
    const startValue = frame.values[info.value] ?? 0;
    if (info.kind === "rotation") {
      const rotation = new AxisRotation(unprojector, line.origin, line.axis, grabbedPoint, x, y);
      return new JointDrag(store, dof, startValue, (px, py) => rotation.angle(px, py), SNAP_ANGLE);
    }
    const slide = new AxisSlide(unprojector, line.axis, grabbedPoint, x, y);
    return new JointDrag(store, dof, startValue, (px, py) => slide.distance(px, py), snapLength(model.radius));
  }

  targetExists(): boolean {
    return true;
  }

  move(x: number, y: number, isSnapping: boolean): void {
    const value = this.startValue + this.displacement(x, y);
    this.session.dragDof(this.dof, isSnapping ? snap(value, this.snapStep) : value);
  }

  end(): void {
    void this.session.end();
  }

  cancel(): void {
    void this.session.cancel();
  }

  abandon(): void {
    this.session.abandon();
  }
}

/**
 * The dof that a drag of a link moves: the unlocked dof of the nearest joint towards the root that has unlocked dofs.
 * Null if the link itself is dragged instead: there is no such joint; the joint is spherical, has several unlocked dofs
 * or is a mimic joint; or the mechanism has loops and the parent link of the joint can move.
 */
export function draggableDof(model: Model, link: number): number | null {
  for (let k = link, steps = 0; steps <= model.links.length; steps++) {
    const joint = model.joints[model.links[k]?.parent ?? -1];
    if (joint === undefined) return null;
    const unlockedDofs = joint.dofs.filter((dof) => model.dofs[dof]?.locked === false);
    if (unlockedDofs.length > 0) {
      const info = model.dofs[unlockedDofs[0]!]!;
      if (unlockedDofs.length > 1 || info.kind === "spherical" || info.mimics >= 0) return null;
      if (model.closures.length > 0 && !isFixedLink(model, joint.parent)) return null;
      return unlockedDofs[0]!;
    }
    k = joint.parent;
  }
  return null;
}

/** The child link of the joint of a dof; -1 if there is none. */
export function childLink(model: Model, dof: number): number {
  return model.joints[model.dofs[dof]?.joint ?? -1]?.child ?? -1;
}

/** The leader of a mimic dof; the dof itself if it is independent. */
export function leaderDof(model: Model, dof: number): number {
  let k = dof;
  for (let steps = 0; steps < model.dofs.length; steps++) {
    const leader = model.dofs[k]?.mimics ?? -1;
    if (leader < 0) break;
    k = leader;
  }
  return k;
}

/**
 * The link to drag by the marker of a rotational joint that closes a loop between two moving links; -1 for other dofs.
 * The link follows the pointer, since a small change of the angle of such a joint can move the mechanism far, such as
 * the angle between a cylinder and the boom of an excavator.
 */
export function linkToDrag(model: Model, dof: number): number {
  const info = model.dofs[dof];
  const joint = model.joints[info?.joint ?? -1];
  const closure = model.closures.find(({ name }) => name === joint?.name);
  if (closure === undefined || info?.kind !== "rotation") return -1;
  return isFixedLink(model, closure.link_a) || isFixedLink(model, closure.link_b) ? -1 : closure.link_b;
}

/** Whether all joints between a link and the world are fixed or locked. */
export function isFixedLink(model: Model, link: number): boolean {
  for (let k = link, steps = 0; steps <= model.links.length; steps++) {
    const joint = model.joints[model.links[k]?.parent ?? -1];
    if (joint === undefined) return true;
    if (joint.dofs.some((dof) => model.dofs[dof]?.locked === false)) return false;
    k = joint.parent;
  }
  return true;
}
