// Finds the plane of motion of a planar mechanism.
import { Matrix4, Vector3 } from "three";
import type { Model } from "../messages";
import type { DofFrames } from "./dof_frames";

const axis = new Vector3();
const x = new Vector3();
const y = new Vector3();

/** Normal of the plane of motion, towards the viewer; null without two rotations or if the motion is not planar. */
export function planeOfMotion(model: Model, frames: DofFrames): Vector3 | null {
  const normal = new Vector3();
  const axisOf = (frame: Matrix4): Vector3 => {
    frame.extractBasis(x, y, axis);
    return axis;
  };
  const rotations = model.dofs.flatMap((dof, k) => (dof.kind === "rotation" ? [k] : []));
  if (rotations.length < 2 || model.dofs.some((dof) => dof.kind === "spherical")) return null;
  normal.copy(axisOf(frames.frames[rotations[0]!]!));
  for (const [k, dof] of model.dofs.entries()) {
    const cosine = Math.abs(axisOf(frames.frames[k]!).dot(normal));
    if (dof.kind === "rotation" ? cosine < 0.9999 : cosine > 0.01) return null;
  }
  return normal.dot(new Vector3(...model.view_from)) < 0 ? normal.negate() : normal;
}
