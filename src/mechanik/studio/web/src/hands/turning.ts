// How far a pointer has turned something around an axis, so that what was taken stays under the pointer.
import { Plane, Vector2, Vector3 } from "three";
import type { Pointing } from "./pointing";

const EDGE_ON = 0.2; // cosine between axis and line of sight below which the circle is seen as a line
const DEAD = 10; // px around the centre where an angle means nothing

export class Turning {
  private readonly centre: Vector3;
  private readonly plane: Plane;
  private readonly isEdgeOn: boolean;
  private readonly first = new Vector3(); // two directions that span the plane
  private readonly second = new Vector3();
  private along = new Vector2(); // rad a pixel, when seen edge-on
  private readonly size: number; // m a pixel
  private last: number | null = null;
  private total = 0;

  /** axis: unit vector through `origin`. grabbed: the point that was taken, at the pixel (x, y). */
  constructor(
    private readonly pointing: Pointing,
    origin: Vector3,
    private readonly axis: Vector3,
    grabbed: Vector3,
    private readonly x: number,
    private readonly y: number,
  ) {
    const height = grabbed.clone().sub(origin).dot(axis);
    this.centre = origin.clone().addScaledVector(axis, height);
    this.plane = new Plane().setFromNormalAndCoplanarPoint(axis, this.centre);
    this.size = pointing.metresPerPixel(this.centre);
    const toEye = pointing.toEye(this.centre);
    this.isEdgeOn = Math.abs(toEye.dot(axis)) < EDGE_ON;
    const aside = Math.abs(axis.z) < 0.9 ? new Vector3(0, 0, 1) : new Vector3(1, 0, 0);
    this.first.crossVectors(axis, aside).normalize();
    this.second.crossVectors(axis, this.first);
    if (this.isEdgeOn) this.measureEdge(toEye, grabbed.distanceTo(this.centre));
    else this.angle(x, y);
  }

  /** rad since the start, turns counted on. */
  angle(x: number, y: number): number {
    if (this.isEdgeOn) return (x - this.x) * this.along.x + (y - this.y) * this.along.y;
    const point = this.pointing.onPlane(x, y, this.plane)?.sub(this.centre);
    if (point === undefined || point.length() < DEAD * this.size) {
      this.last = null; // near the centre the angle jumps: go on from where it comes out again
      return this.total;
    }
    const angle = Math.atan2(point.dot(this.second), point.dot(this.first));
    if (this.last !== null) this.total += shortest(angle - this.last);
    this.last = angle;
    return this.total;
  }

  /** Seen from the edge the near side moves along the line, as a wheel does under a thumb. */
  private measureEdge(toEye: Vector3, radius: number): void {
    const lever = Math.max(radius / this.size, 4 * DEAD);
    this.along = this.pointing.onScreen(new Vector3().crossVectors(this.axis, toEye)).divideScalar(lever);
  }
}

function shortest(angle: number): number {
  return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
}
