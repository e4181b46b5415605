// Translation along an axis by a pointer: computes the distance at which the grabbed point is nearest to the pointer.
import type { Vector3 } from "three";
import type { Unprojector } from "./unproject";

const MIN_SIN_SQUARED = 0.02; // if the squared sine between axis and line of sight is smaller, the axis is seen end-on

export class AxisSlide {
  private readonly startPosition: number | null;
  private readonly metresPerPixel: number;

  /** axis: unit vector; grabbedPoint: the point under the start pixel. */
  constructor(
    private readonly unprojector: Unprojector,
    private readonly axis: Vector3,
    private readonly grabbedPoint: Vector3,
    startX: number,
    private readonly startY: number,
  ) {
    this.startPosition = this.positionAlongAxis(startX, startY);
    this.metresPerPixel = unprojector.metresPerPixel(grabbedPoint);
  }

  /** Distance along the axis from the start pixel to the pixel (x, y), m. */
  distance(x: number, y: number): number {
    const position = this.positionAlongAxis(x, y);
    if (position !== null && this.startPosition !== null) return position - this.startPosition;
    const sign = this.axis.dot(this.unprojector.directionToCamera(this.grabbedPoint)) > 0 ? -1 : 1;
    return (this.startY - y) * this.metresPerPixel * sign; // up on the screen is away from the camera
  }

  /**
   * Position (m) of the point that is nearest to the ray of the pointer, on the axis through the grabbed point; null if
   * the axis is seen end-on.
   */
  private positionAlongAxis(x: number, y: number): number | null {
    const { origin, direction } = this.unprojector.ray(x, y);
    const cosine = this.axis.dot(direction);
    const sinSquared = 1 - cosine * cosine;
    if (sinSquared < MIN_SIN_SQUARED) return null;
    const offset = this.grabbedPoint.clone().sub(origin);
    return (cosine * direction.dot(offset) - this.axis.dot(offset)) / sinSquared;
  }
}
