// Camera of the view: perspective, or orthographic for planar mechanisms.
import { MathUtils, OrthographicCamera, PerspectiveCamera, Sphere, Vector3 } from "three";

export type Camera = PerspectiveCamera | OrthographicCamera;

const FIELD_OF_VIEW = 40; // degrees, along the shorter side of the image
const HALF_FIELD_TANGENT = Math.tan(MathUtils.degToRad(FIELD_OF_VIEW / 2));
const FRAME_MARGIN = 1.14; // factor of the radius of the framed sphere
const POINT_MARGIN = 0.12; // around further framed points, in radii of the sphere

export class ViewCamera {
  camera: Camera = new PerspectiveCamera(FIELD_OF_VIEW, 1);
  /** The point in the world at the centre of the free part of the image. */
  readonly target = new Vector3();
  private aspect = 1;
  private free = { width: 1, height: 1 }; // share of the image that is not covered, from its upper left corner
  private visibleLength = 1; // m, along the shorter side of the image, at the target and with zoom 1

  constructor() {
    this.camera.up.set(0, 0, 1);
    this.camera.position.set(2, -2, 1.5);
    this.camera.lookAt(this.target);
  }

  /** free: share of the image that is not covered, from its upper left corner; the target is in its centre. */
  resize(aspect: number, free: { width: number; height: number }): void {
    this.aspect = aspect;
    this.free = free;
    this.fit();
  }

  /** Changes the kind of the camera; returns whether it has changed. */
  setOrthographic(isOrthographic: boolean): boolean {
    if (isOrthographic === this.camera instanceof OrthographicCamera) return false;
    const oldCamera = this.camera;
    this.camera = isOrthographic ? new OrthographicCamera() : new PerspectiveCamera(FIELD_OF_VIEW, this.aspect);
    this.camera.up.copy(oldCamera.up);
    this.camera.position.copy(oldCamera.position);
    this.camera.quaternion.copy(oldCamera.quaternion);
    this.visibleLength = 2 * this.distance * HALF_FIELD_TANGENT;
    this.fit();
    return true;
  }

  /** Distance from the camera to the target, m. */
  get distance(): number {
    return this.camera.position.distanceTo(this.target);
  }

  /** Frames a sphere and further points. direction: from the target to the camera; default: the present direction. */
  frame(sphere: Sphere, direction?: Vector3, points: Vector3[] = []): void {
    const back = (direction ?? this.camera.position.clone().sub(this.target)).clone();
    if (back.lengthSq() < 1e-12) back.set(1, -1, 0.6);
    back.normalize();
    // if the camera looked along z, its up direction would be undefined
    if (Math.abs(back.z) > 0.999) back.addScaledVector(new Vector3(0, -1, 0), 0.002).normalize();
    const right = new Vector3(0, 0, 1).cross(back).normalize();
    const up = back.clone().cross(right);
    const shorterSide = Math.min(1, this.aspect); // shorter side of the image, divided by its height
    const relativeWidth = (this.aspect * this.free.width) / shorterSide;
    const relativeHeight = this.free.height / shorterSide;
    const spheres = [new Sphere(sphere.center, FRAME_MARGIN * sphere.radius)];
    for (const point of points) spheres.push(new Sphere(point, POINT_MARGIN * sphere.radius));
    const isOrthographic = this.camera instanceof OrthographicCamera;
    const slope = isOrthographic ? 0 : HALF_FIELD_TANGENT;
    const widthExtent = extentAlong(spheres, sphere.center, right, back, relativeWidth * slope);
    const heightExtent = extentAlong(spheres, sphere.center, up, back, relativeHeight * slope);
    this.visibleLength = 2 * Math.max(widthExtent.halfSize / relativeWidth, heightExtent.halfSize / relativeHeight);
    this.target
      .copy(sphere.center)
      .addScaledVector(right, widthExtent.middle)
      .addScaledVector(up, heightExtent.middle);
    this.camera.position.copy(this.target).addScaledVector(back, this.visibleLength / 2 / HALF_FIELD_TANGENT);
    this.camera.lookAt(this.target);
    this.camera.zoom = 1;
    this.fit();
  }

  /** Moves target and camera. */
  shift(displacement: Vector3): void {
    this.target.add(displacement);
    this.camera.position.add(displacement);
  }

  /** Sets the clipping planes for a model of this radius (m) near the target. */
  clip(radius: number): void {
    const distance = this.distance;
    const near =
      this.camera instanceof PerspectiveCamera
        ? Math.max(0.02 * distance, distance - 4 * radius)
        : distance - 8 * radius;
    const far = distance + 8 * radius;
    if (Math.abs(near - this.camera.near) < 1e-6 * distance && Math.abs(far - this.camera.far) < 1e-6 * distance)
      return;
    [this.camera.near, this.camera.far] = [near, far];
    this.camera.updateProjectionMatrix();
  }

  /** Size of a pixel at a point, m. heightPixels: height of the image. */
  metresPerPixel(point: Vector3, heightPixels: number): number {
    if (this.camera instanceof OrthographicCamera)
      return (this.camera.top - this.camera.bottom) / this.camera.zoom / heightPixels;
    const distance = Math.max(this.camera.near, point.distanceTo(this.camera.position));
    return (2 * distance * Math.tan(MathUtils.degToRad(this.camera.fov / 2))) / heightPixels;
  }

  private fit(): void {
    const { camera, aspect, free } = this;
    camera.setViewOffset(1, 1, (1 - free.width) / 2, (1 - free.height) / 2, 1, 1);
    if (camera instanceof PerspectiveCamera) {
      camera.aspect = aspect;
      camera.fov = aspect >= 1 ? FIELD_OF_VIEW : 2 * MathUtils.radToDeg(Math.atan(HALF_FIELD_TANGENT / aspect));
    } else {
      const halfHeight = (aspect >= 1 ? 1 : 1 / aspect) * this.visibleLength * 0.5;
      [camera.left, camera.right] = [-halfHeight * aspect, halfHeight * aspect];
      [camera.bottom, camera.top] = [-halfHeight, halfHeight];
    }
    camera.updateProjectionMatrix();
  }
}

/**
 * Middle (relative to `centre`) and half size along `axis` of an image, at the depth of `centre`, that contains all
 * spheres. slope: tangent of the half field of view, 0 for an orthographic camera; back: direction to the camera.
 */
function extentAlong(spheres: Sphere[], centre: Vector3, axis: Vector3, back: Vector3, slope: number): Extent {
  let [low, high] = [Infinity, -Infinity];
  const offset = new Vector3();
  for (const sphere of spheres) {
    offset.copy(sphere.center).sub(centre);
    const depthMargin = offset.dot(back) * slope; // objects nearer to the camera need a larger image
    const reach = sphere.radius * Math.hypot(1, slope) + depthMargin;
    low = Math.min(low, offset.dot(axis) - reach);
    high = Math.max(high, offset.dot(axis) + reach);
  }
  return { middle: (low + high) / 2, halfSize: (high - low) / 2 };
}

interface Extent {
  middle: number; // m
  halfSize: number; // m
}
