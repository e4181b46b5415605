// Rotation about an axis by a pointer: computes the angle at which the grabbed point is under the pointer.
import { Plane, Vector2, Vector3 } from "three";
import type { Unprojector } from "./unproject";

const EDGE_ON_COSINE = 0.2; // if the cosine between axis and line of sight is smaller, the circle is seen edge-on
const DEAD_ZONE_PIXELS = 10; // radius around the centre in which the pointer does not change the angle

export class AxisRotation {
  private readonly centre: Vector3;
  private readonly plane: Plane;
  private readonly isEdgeOn: boolean;
  private readonly basisX = new Vector3(); // two unit vectors that span the plane
  private readonly basisY = new Vector3();
  private radiansPerPixel = new Vector2(); // in x and y of the screen; used only if seen edge-on
  private readonly metresPerPixel: number;
  private lastAngle: number | null = null;
  private totalAngle = 0;

  /** origin: a point on the axis; axis: unit vector; grabbedPoint: the point under the start pixel. */
  constructor(
    private readonly unprojector: Unprojector,
    origin: Vector3,
    private readonly axis: Vector3,
    grabbedPoint: Vector3,
    private readonly startX: number,
    private readonly startY: number,
  ) {
    const height = grabbedPoint.clone().sub(origin).dot(axis);
    this.centre = origin.clone().addScaledVector(axis, height);
    this.plane = new Plane().setFromNormalAndCoplanarPoint(axis, this.centre);
    this.metresPerPixel = unprojector.metresPerPixel(this.centre);
    const directionToCamera = unprojector.directionToCamera(this.centre);
    this.isEdgeOn = Math.abs(directionToCamera.dot(axis)) < EDGE_ON_COSINE;
    const referenceAxis = Math.abs(axis.z) < 0.9 ? new Vector3(0, 0, 1) : new Vector3(1, 0, 0);
    this.basisX.crossVectors(axis, referenceAxis).normalize();
    this.basisY.crossVectors(axis, this.basisX);
    if (this.isEdgeOn) this.computeEdgeOnRate(directionToCamera, grabbedPoint.distanceTo(this.centre));
    else this.angle(startX, startY);
  }

  /** Angle from the start pixel to the pixel (x, y), rad; counts full rotations. */
  angle(x: number, y: number): number {
    if (this.isEdgeOn) return (x - this.startX) * this.radiansPerPixel.x + (y - this.startY) * this.radiansPerPixel.y;
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
  private computeEdgeOnRate(directionToCamera: Vector3, radius: number): void {
    // the minimum keeps a small circle from rotating too fast
    const leverPixels = Math.max(radius / this.metresPerPixel, 4 * DEAD_ZONE_PIXELS);
    this.radiansPerPixel = this.unprojector.screenDirection(
      new Vector3().crossVectors(this.axis, directionToCamera),
    ).divideScalar(leverPixels);
  }
}

function wrapAngle(angle: number): number {
  return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
}
