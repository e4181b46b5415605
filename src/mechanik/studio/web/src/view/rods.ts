// Thin rods between places: lines that have a thickness.
import { CylinderGeometry, Matrix4, Vector3, type BufferGeometry, type Color } from "three";
import { Overlay } from "./overlay";
import { bare } from "./shapes";

const along = new Vector3();
const side = new Vector3();
const other = new Vector3();
const matrix = new Matrix4();

export class Rods {
  readonly overlay: Overlay;

  constructor(count: number) {
    const rod = bare(new CylinderGeometry(1, 1, 1, 6, 1, true).rotateX(Math.PI / 2).translate(0, 0, 0.5));
    this.overlay = new Overlay(new Array<BufferGeometry>(count).fill(rod));
  }

  /** The k-th rod goes from a to b. */
  set(k: number, a: Vector3, b: Vector3, radius: number, colour: Color, alpha = 1): void {
    along.copy(b).sub(a);
    side
      .set(Math.abs(along.x) < Math.abs(along.z) ? 1 : 0, 0, Math.abs(along.x) < Math.abs(along.z) ? 0 : 1)
      .cross(along);
    if (side.lengthSq() < 1e-24) side.set(1, 0, 0);
    side.normalize();
    other.copy(along).cross(side).normalize();
    matrix.makeBasis(side.multiplyScalar(radius), other.multiplyScalar(radius), along).setPosition(a);
    this.overlay.items.setPose(k, matrix);
    this.overlay.items.setTint(k, colour.r, colour.g, colour.b, alpha);
  }
}
