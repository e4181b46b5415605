// Translation along an axis by a pointer: computes the distance at which the grabbed point is nearest to the pointer.
import type { Vector3 } from "three";
import type { Unprojector } from "./unproject";

const MIN_SIN_SQUARED = 0.02; // squared sine between axis and line of sight below which the axis is seen end-on

export class AxisSlide {
  private readonly start: number | null;
  private readonly metresPerPixel: number;

  /** axis: unit vector. grabbed: the point under the pixel (x, y). */
  constructor(
    private readonly unprojector: Unprojector,
    private readonly axis: Vector3,
    private readonly grabbed: Vector3,
    x: number,
    private readonly y: number,
  ) {
    this.start = this.positionAlongAxis(x, y);
    this.metresPerPixel = unprojector.metresPerPixel(grabbed);
  }

  /** Distance since the start, m. */
  distance(x: number, y: number): number {
    const position = this.positionAlongAxis(x, y);
    if (position !== null && this.start !== null) return position - this.start;
    const sign = this.axis.dot(this.unprojector.toEye(this.grabbed)) > 0 ? -1 : 1;
    return (this.y - y) * this.metresPerPixel * sign; // a pointer movement up moves the object away from the camera
  }

  /** Position on the axis through the grabbed point, closest to the ray of the pointer; null if seen end-on. */
  private positionAlongAxis(x: number, y: number): number | null {
    const { origin, direction } = this.unprojector.ray(x, y);
    const cosine = this.axis.dot(direction);
    const sinSquared = 1 - cosine * cosine;
    if (sinSquared < MIN_SIN_SQUARED) return null;
    const offset = this.grabbed.clone().sub(origin);
    return (cosine * direction.dot(offset) - this.axis.dot(offset)) / sinSquared;
  }
}
