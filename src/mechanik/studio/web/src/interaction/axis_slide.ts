// The distance by which a pointer moves an object along an axis.
import type { Vector3 } from "three";
import type { Unprojector } from "./unproject";

const MIN_SIN_SQUARED = 0.02; // of the angle between axis and line of sight; below it the axis is seen as a point

export class AxisSlide {
  private readonly start: number | null;
  private readonly size: number;

  /** axis: unit vector. grabbed: the point under the pixel (x, y). */
  constructor(
    private readonly unprojector: Unprojector,
    private readonly axis: Vector3,
    private readonly grabbed: Vector3,
    x: number,
    private readonly y: number,
  ) {
    this.start = this.positionAlongAxis(x, y);
    this.size = unprojector.metresPerPixel(grabbed);
  }

  /** Distance since the start, m. */
  distance(x: number, y: number): number {
    const now = this.positionAlongAxis(x, y);
    if (now !== null && this.start !== null) return now - this.start;
    const away = this.axis.dot(this.unprojector.toEye(this.grabbed)) > 0 ? -1 : 1;
    return (this.y - y) * this.size * away; // up on the screen is away from the camera
  }

  /** Position on the axis through the grabbed point that is closest to the ray of the pointer; null if seen end-on. */
  private positionAlongAxis(x: number, y: number): number | null {
    const { origin, direction } = this.unprojector.ray(x, y);
    const cosine = this.axis.dot(direction);
    const sinSquared = 1 - cosine * cosine;
    if (sinSquared < MIN_SIN_SQUARED) return null;
    const offset = this.grabbed.clone().sub(origin);
    return (cosine * direction.dot(offset) - this.axis.dot(offset)) / sinSquared;
  }
}
