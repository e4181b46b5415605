// Frames of the dofs at the present state; z is the axis of the dof.
import { Matrix4, Quaternion, Vector3 } from "three";
import type { DofInfo, Model } from "../messages";
import { setFromPose } from "./pose_matrix";

const Z = new Vector3(0, 0, 1);
const axis = new Vector3();
const rotation = new Quaternion();
const motionMatrix = new Matrix4();
const jointFrame = new Matrix4();

export class DofFrames {
  /** One frame per dof, in the world; moved by the preceding dofs of the joint, but not by the dof itself. */
  readonly frames: Matrix4[];
  private readonly jointPoses: Matrix4[]; // pose of each joint in the frame of its parent link
  private readonly axisRotations: Matrix4[]; // rotation of z onto the axis of each dof

  constructor(private readonly model: Model) {
    this.frames = model.dofs.map(() => new Matrix4());
    this.jointPoses = model.joints.map((joint) => setFromPose(new Matrix4(), joint.pose));
    this.axisRotations = model.dofs.map((dof) =>
      new Matrix4().makeRotationFromQuaternion(rotation.setFromUnitVectors(Z, axis.set(...dof.axis).normalize())),
    );
  }

  /** links: seven numbers per link; values: m or rad. */
  update(links: Float64Array, values: Float64Array): void {
    this.model.joints.forEach((joint, k) => {
      setFromPose(jointFrame, links, 7 * joint.parent).multiply(this.jointPoses[k]!);
      for (const dofIndex of joint.dofs) {
        const dof = this.model.dofs[dofIndex]!;
        this.frames[dofIndex]!.multiplyMatrices(jointFrame, this.axisRotations[dofIndex]!);
        jointFrame.multiply(this.motion(dof, values));
      }
    });
  }

  /** Motion of a dof at its present value, in the frame of the joint; the matrix is reused. */
  private motion(dof: DofInfo, values: Float64Array): Matrix4 {
    const value = values[dof.value] ?? 0;
    axis.set(...dof.axis);
    if (dof.kind === "translation") return motionMatrix.makeTranslation(axis.multiplyScalar(value));
    if (dof.kind === "rotation") return motionMatrix.makeRotationAxis(axis.normalize(), value);
    axis.set(value, values[dof.value + 1] ?? 0, values[dof.value + 2] ?? 0);
    const angle = axis.length();
    return angle < 1e-12 ? motionMatrix.identity() : motionMatrix.makeRotationAxis(axis.divideScalar(angle), angle);
  }
}
