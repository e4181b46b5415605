// Frames of the dofs at the present state; z is the axis of the dof.
import { Matrix4, Quaternion, Vector3 } from "three";
import type { DofInfo, Model } from "../messages";
import { setFromPose } from "./pose_matrix";

const Z = new Vector3(0, 0, 1);
const axis = new Vector3();
const rotation = new Quaternion();
const step = new Matrix4();
const link = new Matrix4();

export class JointFrames {
  /** One frame per dof, moved by the preceding dofs of the joint; not moved by the dof itself. */
  readonly frames: Matrix4[];
  private readonly poses: Matrix4[]; // pose of each joint in the frame of its parent link
  private readonly axisRotations: Matrix4[]; // rotation of z onto the axis of each dof

  constructor(private readonly model: Model) {
    this.frames = model.dofs.map(() => new Matrix4());
    this.poses = model.joints.map((joint) => setFromPose(new Matrix4(), joint.pose));
    this.axisRotations = model.dofs.map((dof) =>
      new Matrix4().makeRotationFromQuaternion(rotation.setFromUnitVectors(Z, axis.set(...dof.axis).normalize())),
    );
  }

  update(links: Float64Array, values: Float64Array): void {
    this.model.joints.forEach((joint, k) => {
      setFromPose(link, links, 7 * joint.parent).multiply(this.poses[k]!);
      for (const number of joint.dofs) {
        const dof = this.model.dofs[number]!;
        this.frames[number]!.multiplyMatrices(link, this.axisRotations[number]!);
        link.multiply(this.motion(dof, values));
      }
    });
  }

  private motion(dof: DofInfo, values: Float64Array): Matrix4 {
    const value = values[dof.value] ?? 0;
    axis.set(...dof.axis);
    if (dof.kind === "translation") return step.makeTranslation(axis.multiplyScalar(value));
    if (dof.kind === "rotation") return step.makeRotationAxis(axis.normalize(), value);
    axis.set(value, values[dof.value + 1] ?? 0, values[dof.value + 2] ?? 0);
    const angle = axis.length();
    return angle < 1e-12 ? step.identity() : step.makeRotationAxis(axis.divideScalar(angle), angle);
  }
}
