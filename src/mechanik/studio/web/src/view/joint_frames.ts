// Where each freedom of a joint moves: a frame whose z axis is the freedom's axis, at this moment.
import { Matrix4, Quaternion, Vector3 } from "three";
import type { DofInfo, Model } from "../messages";
import { poseInto } from "./pose";

const Z = new Vector3(0, 0, 1);
const axis = new Vector3();
const turn = new Quaternion();
const step = new Matrix4();
const link = new Matrix4();

export class JointFrames {
  /** One a freedom. Of a slide: where it stands at zero. Of a turn: moved along, and turned by those before it. */
  readonly frames: Matrix4[];
  private readonly poses: Matrix4[]; // of each joint on its parent
  private readonly aligned: Matrix4[]; // z onto the axis

  constructor(private readonly model: Model) {
    this.frames = model.dofs.map(() => new Matrix4());
    this.poses = model.joints.map((joint) => poseInto(new Matrix4(), joint.pose));
    this.aligned = model.dofs.map((freedom) =>
      new Matrix4().makeRotationFromQuaternion(turn.setFromUnitVectors(Z, axis.set(...freedom.axis).normalize())),
    );
  }

  update(links: Float64Array, values: Float64Array): void {
    this.model.joints.forEach((joint, k) => {
      poseInto(link, links, 7 * joint.parent).multiply(this.poses[k]!);
      for (const number of joint.dofs) {
        const freedom = this.model.dofs[number]!;
        this.frames[number]!.multiplyMatrices(link, this.aligned[number]!);
        link.multiply(this.motion(freedom, values));
      }
    });
  }

  private motion(freedom: DofInfo, values: Float64Array): Matrix4 {
    const value = values[freedom.value] ?? 0;
    axis.set(...freedom.axis);
    if (freedom.kind === "translation") return step.makeTranslation(axis.multiplyScalar(value));
    if (freedom.kind === "rotation") return step.makeRotationAxis(axis.normalize(), value);
    axis.set(value, values[freedom.value + 1] ?? 0, values[freedom.value + 2] ?? 0);
    const angle = axis.length();
    return angle < 1e-12 ? step.identity() : step.makeRotationAxis(axis.divideScalar(angle), angle);
  }
}
