// How far a pointer has moved something along an axis.
import type { Vector3 } from "three";
import type { Pointing } from "./pointing";

const END_ON = 0.02; // squared sine between axis and line of sight below which the axis is seen as a point

export class Sliding {
  private readonly start: number | null;
  private readonly size: number;

  /** axis: unit vector. grabbed: the point that was taken, at the pixel (x, y). */
  constructor(
    private readonly pointing: Pointing,
    private readonly axis: Vector3,
    private readonly grabbed: Vector3,
    x: number,
    private readonly y: number,
  ) {
    this.start = this.along(x, y);
    this.size = pointing.metresPerPixel(grabbed);
  }

  /** m since the start. */
  distance(x: number, y: number): number {
    const now = this.along(x, y);
    if (now !== null && this.start !== null) return now - this.start;
    const away = this.axis.dot(this.pointing.toEye(this.grabbed)) > 0 ? -1 : 1;
    return (this.y - y) * this.size * away; // up on the screen is away from the eye
  }

  /** The place on the axis (through the grabbed point) that is nearest to the pointer's ray. */
  private along(x: number, y: number): number | null {
    const { origin, direction } = this.pointing.ray(x, y);
    const slant = this.axis.dot(direction);
    const aside = 1 - slant * slant;
    if (aside < END_ON) return null;
    const between = this.grabbed.clone().sub(origin);
    return (slant * direction.dot(between) - this.axis.dot(between)) / aside;
  }
}
