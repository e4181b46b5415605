// The camera: in perspective, or without it for mechanisms that move in one plane.
import { MathUtils, OrthographicCamera, PerspectiveCamera, Sphere, Vector3 } from "three";

export type Camera = PerspectiveCamera | OrthographicCamera;

const FIELD = 40; // degrees, of the shorter side of the window
const SLOPE = Math.tan(MathUtils.degToRad(FIELD / 2));
const ROOM = 1.14; // around the ball that is framed
const EDGE = 0.12; // radii of the ball around places besides it

export class Eye {
  camera: Camera = new PerspectiveCamera(FIELD, 1);
  /** What the camera looks at. */
  readonly target = new Vector3();
  private aspect = 1;
  private free = { width: 1, height: 1 }; // of the picture that nothing covers, as shares; from its upper left corner
  private height = 1; // m that are seen of the shorter side at the depth of the target, with a zoom of 1

  constructor() {
    this.camera.up.set(0, 0, 1);
    this.camera.position.set(2, -2, 1.5);
    this.camera.lookAt(this.target);
  }

  /** free: shares of the picture, from its upper left corner, that nothing covers; their middle is what is looked at. */
  resize(aspect: number, free: { width: number; height: number }): void {
    this.aspect = aspect;
    this.free = free;
    this.fit();
  }

  /** Another kind of camera at the same place. Returns whether it is another. */
  setFlat(flat: boolean): boolean {
    if (flat === this.camera instanceof OrthographicCamera) return false;
    const old = this.camera;
    this.camera = flat ? new OrthographicCamera() : new PerspectiveCamera(FIELD, this.aspect);
    this.camera.up.copy(old.up);
    this.camera.position.copy(old.position);
    this.camera.quaternion.copy(old.quaternion);
    this.height = 2 * this.distance * SLOPE;
    this.fit();
    return true;
  }

  get distance(): number {
    return this.camera.position.distanceTo(this.target);
  }

  /** Show a ball whole, and these places besides, from the direction in which the camera looks or from `from`. */
  frame(ball: Sphere, from?: Vector3, places: Vector3[] = []): void {
    const back = (from ?? this.camera.position.clone().sub(this.target)).clone();
    if (back.lengthSq() < 1e-12) back.set(1, -1, 0.6);
    back.normalize();
    if (Math.abs(back.z) > 0.999) back.addScaledVector(new Vector3(0, -1, 0), 0.002).normalize(); // up must stay up
    const right = new Vector3(0, 0, 1).cross(back).normalize();
    const up = back.clone().cross(right);
    const shorter = Math.min(1, this.aspect); // side of the picture, of its height
    const [wide, high] = [(this.aspect * this.free.width) / shorter, this.free.height / shorter];
    const balls = [new Sphere(ball.center, ROOM * ball.radius)];
    for (const place of places) balls.push(new Sphere(place, EDGE * ball.radius));
    const isFlat = this.camera instanceof OrthographicCamera;
    const across = between(balls, ball.center, right, back, isFlat ? 0 : wide * SLOPE);
    const along = between(balls, ball.center, up, back, isFlat ? 0 : high * SLOPE);
    this.height = 2 * Math.max(across.half / wide, along.half / high);
    this.target.copy(ball.center).addScaledVector(right, across.middle).addScaledVector(up, along.middle);
    this.camera.position.copy(this.target).addScaledVector(back, this.height / 2 / SLOPE);
    this.camera.lookAt(this.target);
    this.camera.zoom = 1;
    this.fit();
  }

  /** Go along with what is looked at. */
  shift(by: Vector3): void {
    this.target.add(by);
    this.camera.position.add(by);
  }

  /** Planes near and far around what there is to see, which lies within `reach` of the target. */
  clip(reach: number): void {
    const distance = this.distance;
    const near =
      this.camera instanceof PerspectiveCamera ? Math.max(0.02 * distance, distance - 4 * reach) : distance - 8 * reach;
    const far = distance + 8 * reach;
    if (Math.abs(near - this.camera.near) < 1e-6 * distance && Math.abs(far - this.camera.far) < 1e-6 * distance)
      return;
    [this.camera.near, this.camera.far] = [near, far];
    this.camera.updateProjectionMatrix();
  }

  /** Metres that a pixel covers at this place, in a window of this height. */
  metresPerPixel(place: Vector3, pixels: number): number {
    if (this.camera instanceof OrthographicCamera)
      return (this.camera.top - this.camera.bottom) / this.camera.zoom / pixels;
    const depth = Math.max(this.camera.near, place.distanceTo(this.camera.position));
    return (2 * depth * Math.tan(MathUtils.degToRad(this.camera.fov / 2))) / pixels;
  }

  private fit(): void {
    const { camera, aspect, free } = this;
    camera.setViewOffset(1, 1, (1 - free.width) / 2, (1 - free.height) / 2, 1, 1);
    if (camera instanceof PerspectiveCamera) {
      camera.aspect = aspect;
      camera.fov = aspect >= 1 ? FIELD : 2 * MathUtils.radToDeg(Math.atan(SLOPE / aspect));
    } else {
      const half = (aspect >= 1 ? 1 : 1 / aspect) * this.height * 0.5;
      [camera.left, camera.right, camera.bottom, camera.top] = [-half * aspect, half * aspect, -half, half];
    }
    camera.updateProjectionMatrix();
  }
}

/** Where along `axis` from `centre` the middle of the picture is to be, and how far it must reach at the depth of
 * `centre`, so that it holds all balls; both planes that bound it open by `slope` towards `back`. */
function between(balls: Sphere[], centre: Vector3, axis: Vector3, back: Vector3, slope: number): Stretch {
  let [low, high] = [Infinity, -Infinity];
  const off = new Vector3();
  for (const ball of balls) {
    off.copy(ball.center).sub(centre);
    const nearer = off.dot(back) * slope; // what is nearer to the eye needs more
    const reach = ball.radius * Math.hypot(1, slope) + nearer;
    low = Math.min(low, off.dot(axis) - reach);
    high = Math.max(high, off.dot(axis) + reach);
  }
  return { middle: (low + high) / 2, half: (high - low) / 2 };
}

interface Stretch {
  middle: number;
  half: number;
}
