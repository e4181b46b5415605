// Poses as the wire carries them (x y z qw qx qy qz) and as three has them.
import { Quaternion, Vector3 } from "three";
import type { GoalInfo, Model } from "../messages";
import type { Frame } from "../wire/frame";
import type { Store } from "../store";

export type PoseNumbers = GoalInfo["pose"];

export class Pose {
  constructor(
    readonly position = new Vector3(),
    readonly turn = new Quaternion(),
  ) {}

  static read(numbers: ArrayLike<number>, start = 0): Pose {
    const at = (k: number): number => numbers[start + k] ?? 0;
    return new Pose(new Vector3(at(0), at(1), at(2)), new Quaternion(at(4), at(5), at(6), at(3)));
  }

  numbers(): PoseNumbers {
    const { position: p, turn: q } = this;
    return [p.x, p.y, p.z, q.w, q.x, q.y, q.z];
  }

  times(other: Pose): Pose {
    return new Pose(this.toWorld(other.position), this.turn.clone().multiply(other.turn));
  }

  toWorld(point: Vector3): Vector3 {
    return point.clone().applyQuaternion(this.turn).add(this.position);
  }

  toLocal(point: Vector3): Vector3 {
    return point.clone().sub(this.position).applyQuaternion(this.turn.clone().invert());
  }
}

export function linkPose(frame: Frame, link: number): Pose {
  return link < 0 ? new Pose() : Pose.read(frame.links, 7 * link);
}

/** Where a goal is: from the last frame if it lists the same goals, else from the list itself. */
export function goalPose(store: Store, number: number): Pose | null {
  const place = store.goals.findIndex((goal) => goal.number === number);
  const goal = store.goals[place];
  if (goal === undefined) return null;
  const frame = store.frame;
  if (frame !== null && frame.order === store.order && frame.goals.length >= 9 * (place + 1)) {
    return Pose.read(frame.goals, 9 * place);
  }
  return Pose.read(goal.pose);
}

export function obstaclePose(store: Store, name: string): Pose | null {
  const info = store.obstacle(name);
  return info === undefined ? null : Pose.read(info.pose);
}

/** The axis of a freedom in the world now, and a point on it. */
export function freedomAxis(model: Model, frame: Frame, freedom: number): { origin: Vector3; axis: Vector3 } | null {
  const info = model.dofs[freedom];
  const joint = info && model.joints[info.joint];
  if (info === undefined || joint === undefined) return null;
  let pose = linkPose(frame, joint.parent).times(Pose.read(joint.pose));
  for (const earlier of joint.dofs) {
    if (earlier === freedom) break;
    const before = model.dofs[earlier];
    if (before === undefined) continue;
    const axis = new Vector3(...before.axis);
    const value = frame.values[before.value] ?? 0;
    if (before.kind === "translation") pose = pose.times(new Pose(axis.multiplyScalar(value)));
    if (before.kind === "rotation") pose = pose.times(new Pose(undefined, new Quaternion().setFromAxisAngle(axis, value)));
  }
  return { origin: pose.position, axis: new Vector3(...info.axis).applyQuaternion(pose.turn).normalize() };
}
