// Whether a mechanism moves in one plane, as it stands.
import { Matrix4, Vector3 } from "three";
import type { Model } from "../messages";
import type { JointFrames } from "./joint_frames";

const axis = new Vector3();
const x = new Vector3();
const y = new Vector3();

/** The normal of the plane in which everything moves, turned to where one looks from; null if there is none. */
export function planeOf(model: Model, frames: JointFrames): Vector3 | null {
  const normal = new Vector3();
  const axisOf = (frame: Matrix4): Vector3 => {
    frame.extractBasis(x, y, axis);
    return axis;
  };
  const turns = model.dofs.flatMap((freedom, k) => (freedom.kind === "rotation" ? [k] : []));
  if (turns.length < 2 || model.dofs.some((freedom) => freedom.kind === "spherical")) return null;
  normal.copy(axisOf(frames.frames[turns[0]!]!));
  for (const [k, freedom] of model.dofs.entries()) {
    const along = Math.abs(axisOf(frames.frames[k]!).dot(normal));
    if (freedom.kind === "rotation" ? along < 0.9999 : along > 0.01) return null;
  }
  return normal.dot(new Vector3(...model.view_from)) < 0 ? normal.negate() : normal;
}
