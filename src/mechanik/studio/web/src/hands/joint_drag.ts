// A joint moved by hand: what was taken follows the pointer around or along the joint's axis.
import type { Vector3 } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import { Grip, type Gesture } from "./grip";
import { freedomAxis } from "./poses";
import type { Pointing } from "./pointing";
import { Sliding } from "./sliding";
import { SNAP_ANGLE, snapLength, snapped } from "./snap";
import { Turning } from "./turning";

export class JointDrag implements Gesture {
  private readonly grip: Grip;

  private constructor(
    store: Store,
    private readonly freedom: number,
    private readonly start: number,
    private readonly moved: (x: number, y: number) => number,
    private readonly step: number,
  ) {
    this.grip = new Grip(store, { do: "StartJointDrag", dof: freedom });
  }

  /** Null if there is nothing that one hand could move by one number. */
  static begin(
    store: Store, pointing: Pointing, freedom: number, grabbed: Vector3, x: number, y: number,
  ): JointDrag | null {
    const { model, frame } = store;
    const info = model?.dofs[freedom];
    if (!model || !frame || !info || info.kind === "spherical") return null;
    const place = freedomAxis(model, frame, freedom);
    if (place === null) return null;
    const start = frame.values[info.value] ?? 0;
    if (info.kind === "rotation") {
      const turning = new Turning(pointing, place.origin, place.axis, grabbed, x, y);
      return new JointDrag(store, freedom, start, (px, py) => turning.angle(px, py), SNAP_ANGLE);
    }
    const sliding = new Sliding(pointing, place.axis, grabbed, x, y);
    return new JointDrag(store, freedom, start, (px, py) => sliding.distance(px, py), snapLength(model.radius));
  }

  isThere(): boolean {
    return true;
  }

  move(x: number, y: number, snaps: boolean): void {
    const value = this.start + this.moved(x, y);
    this.grip.holdFreedom(this.freedom, snaps ? snapped(value, this.step) : value);
  }

  end(): void {
    void this.grip.letGo();
  }

  cancel(): void {
    void this.grip.putBack();
  }

  drop(): void {
    this.grip.drop();
  }
}

/**
 * The freedom that a hand on a link moves: the nearest above it that can move. Null if the link is better pulled: it
 * hangs on a ball or on a joint of several freedoms, follows another joint, or sits in a loop whose other links move.
 */
export function freedomByHand(model: Model, link: number): number | null {
  for (let k = link, steps = 0; steps <= model.links.length; steps++) {
    const joint = model.joints[model.links[k]?.parent ?? -1];
    if (joint === undefined) return null;
    const open = joint.dofs.filter((f) => model.dofs[f]?.locked === false);
    if (open.length > 0) {
      const info = model.dofs[open[0]!]!;
      if (open.length > 1 || info.kind === "spherical" || info.mimics >= 0) return null;
      if (model.closures.length > 0 && !stands(model, joint.parent)) return null;
      return open[0]!;
    }
    k = joint.parent;
  }
  return null;
}

/** The link that the joint of a freedom moves; -1 if there is none. */
export function childOf(model: Model, freedom: number): number {
  return model.joints[model.dofs[freedom]?.joint ?? -1]?.child ?? -1;
}

/** The freedom of a marker, or the one that it follows. */
export function leadingFreedom(model: Model, freedom: number): number {
  let k = freedom;
  for (let steps = 0; steps < model.dofs.length; steps++) {
    const leader = model.dofs[k]?.mimics ?? -1;
    if (leader < 0) break;
    k = leader;
  }
  return k;
}

/**
 * The link that a hand means which takes the marker of a turning joint that closes a loop between two links that both
 * move: it follows the pointer. The angle there may say little of the mechanism: a hundredth of a turn where a cylinder
 * meets an excavator's boom lifts the bucket by metres. -1 for other freedoms.
 */
export function linkByMarker(model: Model, freedom: number): number {
  const info = model.dofs[freedom];
  const joint = model.joints[info?.joint ?? -1];
  const closure = model.closures.find(({ name }) => name === joint?.name);
  if (closure === undefined || info?.kind !== "rotation") return -1;
  return stands(model, closure.link_a) || stands(model, closure.link_b) ? -1 : closure.link_b;
}

/** Whether nothing between a link and the world can move. */
export function stands(model: Model, link: number): boolean {
  for (let k = link, steps = 0; steps <= model.links.length; steps++) {
    const joint = model.joints[model.links[k]?.parent ?? -1];
    if (joint === undefined) return true;
    if (joint.dofs.some((f) => model.dofs[f]?.locked === false)) return false;
    k = joint.parent;
  }
  return true;
}
