// Rotation about an axis by a pointer: computes the angle at which the grabbed point is under the pointer.
import { Plane, Vector2, Vector3 } from "three";
import type { Unprojector } from "./unproject";

const EDGE_ON_COSINE = 0.2; // cosine between axis and line of sight below which the circle is seen edge-on
const DEAD_ZONE_PIXELS = 10; // radius around the centre, where the angle is undefined

export class AxisRotation {
  private readonly centre: Vector3;
  private readonly plane: Plane;
  private readonly isEdgeOn: boolean;
  private readonly basisX = new Vector3(); // two directions that span the plane
  private readonly basisY = new Vector3();
  private radiansPerPixel = new Vector2(); // if seen edge-on
  private readonly metresPerPixel: number;
  private lastAngle: number | null = null;
  private totalAngle = 0;

  /** axis: unit vector through `origin`. grabbed: the point under the pixel (x, y). */
  constructor(
    private readonly unprojector: Unprojector,
    origin: Vector3,
    private readonly axis: Vector3,
    grabbed: Vector3,
    private readonly x: number,
    private readonly y: number,
  ) {
    const height = grabbed.clone().sub(origin).dot(axis);
    this.centre = origin.clone().addScaledVector(axis, height);
    this.plane = new Plane().setFromNormalAndCoplanarPoint(axis, this.centre);
    this.metresPerPixel = unprojector.metresPerPixel(this.centre);
    const toEye = unprojector.toEye(this.centre);
    this.isEdgeOn = Math.abs(toEye.dot(axis)) < EDGE_ON_COSINE;
    const helper = Math.abs(axis.z) < 0.9 ? new Vector3(0, 0, 1) : new Vector3(1, 0, 0);
    this.basisX.crossVectors(axis, helper).normalize();
    this.basisY.crossVectors(axis, this.basisX);
    if (this.isEdgeOn) this.computeEdgeOnRate(toEye, grabbed.distanceTo(this.centre));
    else this.angle(x, y);
  }

  /** Angle since the start, rad; counts full rotations. */
  angle(x: number, y: number): number {
    if (this.isEdgeOn) return (x - this.x) * this.radiansPerPixel.x + (y - this.y) * this.radiansPerPixel.y;
    const point = this.unprojector.intersectPlane(x, y, this.plane)?.sub(this.centre);
    if (point === undefined || point.length() < DEAD_ZONE_PIXELS * this.metresPerPixel) {
      this.lastAngle = null; // near the centre the angle jumps: the rotation continues outside the dead zone
      return this.totalAngle;
    }
    const angle = Math.atan2(point.dot(this.basisY), point.dot(this.basisX));
    if (this.lastAngle !== null) this.totalAngle += wrapAngle(angle - this.lastAngle);
    this.lastAngle = angle;
    return this.totalAngle;
  }

  /** Computes the rotation per pixel for a circle that is seen edge-on: its near side follows the pointer. */
  private computeEdgeOnRate(toEye: Vector3, radius: number): void {
    const leverPixels = Math.max(radius / this.metresPerPixel, 4 * DEAD_ZONE_PIXELS);
    this.radiansPerPixel = this.unprojector.screenDirection(
      new Vector3().crossVectors(this.axis, toEye),
    ).divideScalar(leverPixels);
  }
}

function wrapAngle(angle: number): number {
  return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
}
