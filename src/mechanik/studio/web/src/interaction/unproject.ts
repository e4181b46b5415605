// Conversion between client pixels and the world, for perspective and orthographic cameras.
import { OrthographicCamera, Plane, Raycaster, Vector2, Vector3, type Ray } from "three";
import type { View } from "../view/view";

const raycaster = new Raycaster();
const screen = new Vector2();
const scratch = new Vector3();

export class Unprojector {
  /** Tile to which the pointer is locked: a pixel (x, y) in it, and the image position of that pixel. */
  private tile: { x: number; y: number; imagePosition: Vector2; imagePerPixel: Vector2 } | null = null;

  constructor(private readonly view: View) {}

  /** In a tiled view, all pointer positions until `unlockTile` belong to the tile under the pixel (x, y). */
  lockTile(x: number, y: number): void {
    this.tile = null;
    const imagePosition = this.screen(x, y).clone();
    this.tile = { x, y, imagePosition, imagePerPixel: this.imagePerPixel(x, y) };
  }

  unlockTile(): void {
    this.tile = null;
  }

  /** Position of the pointer in the image of the camera, x and y from -1 to 1, y up; valid until the next call. */
  screen(x: number, y: number): Vector2 {
    const { tile } = this;
    if (tile === null) return this.view.pointer(x, y, screen);
    const { imagePosition, imagePerPixel } = tile;
    return screen.set(
      imagePosition.x + (x - tile.x) * imagePerPixel.x,
      imagePosition.y + (y - tile.y) * imagePerPixel.y,
    );
  }

  /** Change of the image position per pixel; y is negative. */
  private imagePerPixel(x: number, y: number): Vector2 {
    const step = 0.01; // px, small enough to be inside the tile
    const position = this.screen(x, y).clone();
    return this.screen(x + step, y + step).clone().sub(position).divideScalar(step);
  }

  /** Ray from the camera through a pixel, in the world. */
  ray(x: number, y: number): Ray {
    const camera = this.view.camera;
    camera.updateMatrixWorld();
    raycaster.setFromCamera(this.screen(x, y), camera);
    return raycaster.ray.clone();
  }

  /** Intersection of the ray of the pointer with a plane; null if there is none. */
  intersectPlane(x: number, y: number, plane: Plane): Vector3 | null {
    return this.ray(x, y).intersectPlane(plane, new Vector3());
  }

  /** Projection of a direction in the world onto the screen: unit vector, x to the right and y down. */
  screenDirection(direction: Vector3): Vector2 {
    const { matrixWorld } = this.view.camera;
    const right = direction.dot(scratch.setFromMatrixColumn(matrixWorld, 0));
    return new Vector2(right, -direction.dot(scratch.setFromMatrixColumn(matrixWorld, 1))).normalize();
  }

  /** Unit vector from a point to the camera. */
  directionToCamera(point: Vector3): Vector3 {
    const camera = this.view.camera;
    if (camera instanceof OrthographicCamera) return camera.getWorldDirection(new Vector3()).negate();
    return new Vector3().copy(camera.position).sub(point).normalize();
  }

  /** The plane through a point that is parallel to the image of the camera. */
  facingPlane(point: Vector3): Plane {
    const normal = this.view.camera.getWorldDirection(new Vector3()).negate();
    return new Plane().setFromNormalAndCoplanarPoint(normal, point);
  }

  /** Size of a pixel at a point, m. */
  metresPerPixel(point: Vector3): number {
    const camera = this.view.camera;
    const height = this.tile === null ? Math.max(this.view.canvas.clientHeight, 1) : -2 / this.tile.imagePerPixel.y;
    if (camera instanceof OrthographicCamera) return (camera.top - camera.bottom) / camera.zoom / height;
    const depth = scratch.copy(point).sub(camera.position).dot(camera.getWorldDirection(new Vector3()));
    return (2 * Math.max(depth, 1e-9) * Math.tan((camera.fov * Math.PI) / 360)) / camera.zoom / height;
  }
}
