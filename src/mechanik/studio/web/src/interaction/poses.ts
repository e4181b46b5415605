// Poses: conversion between the numbers of the protocol (x y z qw qx qy qz) and objects of three.js.
import { Quaternion, Vector3 } from "three";
import type { GoalInfo, Model } from "../messages";
import type { StateFrame } from "../connection/state_frame";
import type { Store } from "../store";

export type PoseNumbers = GoalInfo["pose"];

/** Pose of a frame in a reference frame, mostly the world: position in m, rotation as a unit quaternion. */
export class Pose {
  constructor(
    readonly position = new Vector3(),
    readonly rotation = new Quaternion(),
  ) {}

  static read(numbers: ArrayLike<number>, offset = 0): Pose {
    const entry = (k: number): number => numbers[offset + k] ?? 0;
    return new Pose(new Vector3(entry(0), entry(1), entry(2)), new Quaternion(entry(4), entry(5), entry(6), entry(3)));
  }

  numbers(): PoseNumbers {
    const { position: p, rotation: q } = this;
    return [p.x, p.y, p.z, q.w, q.x, q.y, q.z];
  }

  /** The product of this pose and `right`, a pose in this frame. */
  times(right: Pose): Pose {
    return new Pose(this.toReference(right.position), this.rotation.clone().multiply(right.rotation));
  }

  /** The point `point` of this frame, in the reference frame. */
  toReference(point: Vector3): Vector3 {
    return point.clone().applyQuaternion(this.rotation).add(this.position);
  }

  /** The point `point` of the reference frame, in this frame. */
  toLocal(point: Vector3): Vector3 {
    return point.clone().sub(this.position).applyQuaternion(this.rotation.clone().invert());
  }
}

/** Pose of a link; the identity for the world (-1). */
export function linkPose(frame: StateFrame, link: number): Pose {
  return link < 0 ? new Pose() : Pose.read(frame.links, 7 * link);
}

/** Pose of a goal: from the last frame if it lists the same goals, else from the list of goals. */
export function goalPose(store: Store, number: number): Pose | null {
  const index = store.goals.findIndex((goal) => goal.number === number);
  const goal = store.goals[index];
  if (goal === undefined) return null;
  const frame = store.frame;
  if (frame !== null && frame.order === store.order && frame.goals.length >= 9 * (index + 1)) {
    return Pose.read(frame.goals, 9 * index);
  }
  return Pose.read(goal.pose);
}

export function obstaclePose(store: Store, name: string): Pose | null {
  const info = store.obstacle(name);
  return info === undefined ? null : Pose.read(info.pose);
}

/** Present axis of a dof in the world (unit vector), and a point on the axis. */
export function dofAxis(model: Model, frame: StateFrame, dof: number): { origin: Vector3; axis: Vector3 } | null {
  const info = model.dofs[dof];
  const joint = info && model.joints[info.joint];
  if (info === undefined || joint === undefined) return null;
  let pose = linkPose(frame, joint.parent).times(Pose.read(joint.pose));
  for (const precedingDof of joint.dofs) {
    if (precedingDof === dof) break;
    const precedingInfo = model.dofs[precedingDof];
    if (precedingInfo === undefined) continue;
    const axis = new Vector3(...precedingInfo.axis);
    const value = frame.values[precedingInfo.value] ?? 0;
    if (precedingInfo.kind === "translation") pose = pose.times(new Pose(axis.multiplyScalar(value)));
    if (precedingInfo.kind === "rotation")
      pose = pose.times(new Pose(undefined, new Quaternion().setFromAxisAngle(axis, value)));
  }
  return { origin: pose.position, axis: new Vector3(...info.axis).applyQuaternion(pose.rotation).normalize() };
}
