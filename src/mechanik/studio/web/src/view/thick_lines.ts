// Lines with a thickness, drawn as cylinders.
import { CylinderGeometry, Matrix4, Vector3, type BufferGeometry, type Color } from "three";
import { Overlay } from "./overlay";
import { stripAttributes } from "./shapes";

const axis = new Vector3();
const side = new Vector3();
const normal = new Vector3();
const matrix = new Matrix4();

export class ThickLines {
  readonly overlay: Overlay;

  constructor(count: number) {
    const rod = stripAttributes(new CylinderGeometry(1, 1, 1, 6, 1, true).rotateX(Math.PI / 2).translate(0, 0, 0.5));
    this.overlay = new Overlay(new Array<BufferGeometry>(count).fill(rod));
  }

  /** Sets the k-th line from a to b. radius: m. */
  set(k: number, a: Vector3, b: Vector3, radius: number, colour: Color, alpha = 1): void {
    axis.copy(b).sub(a);
    side
      .set(Math.abs(axis.x) < Math.abs(axis.z) ? 1 : 0, 0, Math.abs(axis.x) < Math.abs(axis.z) ? 0 : 1)
      .cross(axis);
    if (side.lengthSq() < 1e-24) side.set(1, 0, 0);
    side.normalize();
    normal.copy(axis).cross(side).normalize();
    matrix.makeBasis(side.multiplyScalar(radius), normal.multiplyScalar(radius), axis).setPosition(a);
    this.overlay.instances.setPose(k, matrix);
    this.overlay.instances.setTint(k, colour.r, colour.g, colour.b, alpha);
  }
}
