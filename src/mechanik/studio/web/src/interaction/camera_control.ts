// Orbit, pan and dolly of perspective and orthographic cameras.
import { OrthographicCamera, Vector3 } from "three";
import type { View } from "../view/view";
import type { Unprojector } from "./unproject";

const POLE_MARGIN = 1e-3; // rad; minimum angle between line of sight and vertical, so that the image has an up side
// minimum and maximum distance to the target, or visible height of an orthographic camera, in radii of the model
const MIN_DISTANCE_RATIO = 0.02;
const MAX_DISTANCE_RATIO = 200;

export class CameraControl {
  /** Radius of the model, m. */
  radius = 1;

  constructor(
    private readonly view: View,
    private readonly unprojector: Unprojector,
  ) {}

  /** Orbits by a pointer movement in px; a movement over the height of the view is a full rotation. */
  orbit(dx: number, dy: number): void {
    const { camera, target } = this.view;
    const rate = (2 * Math.PI) / Math.max(this.view.canvas.clientHeight, 1);
    const up = camera.up.clone().normalize();
    const offset = camera.position.clone().sub(target).applyAxisAngle(up, -dx * rate);
    const polar = up.angleTo(offset);
    const newPolar = Math.min(Math.max(polar - dy * rate, POLE_MARGIN), Math.PI - POLE_MARGIN);
    const right = new Vector3().crossVectors(up, offset);
    if (right.lengthSq() < 1e-16) right.setFromMatrixColumn(camera.matrixWorld, 0);
    this.setOffset(offset.applyAxisAngle(right.normalize(), newPolar - polar));
  }

  /** Pans by a pointer movement in px; the mechanism moves with the pointer. */
  pan(dx: number, dy: number): void {
    const { camera, target } = this.view;
    const metresPerPixel = this.unprojector.metresPerPixel(target);
    const shift = new Vector3().setFromMatrixColumn(camera.matrixWorld, 0).multiplyScalar(-dx * metresPerPixel);
    shift.addScaledVector(new Vector3().setFromMatrixColumn(camera.matrixWorld, 1), dy * metresPerPixel);
    target.add(shift);
    camera.position.add(shift);
    this.update();
  }

  /**
   * Multiplies the distance to the target, or the visible height of an orthographic camera, by `factor`. The point
   * under the pixel (x, y), by default the target, stays at its pixel.
   */
  dolly(factor: number, x?: number, y?: number): void {
    const { camera, target } = this.view;
    const plane = this.unprojector.facingPlane(target);
    const fixedPoint =
      (x !== undefined && y !== undefined && this.unprojector.intersectPlane(x, y, plane)) || target.clone();
    if (camera instanceof OrthographicCamera) {
      const height = (camera.top - camera.bottom) / camera.zoom;
      const clampedFactor = this.clampFactor(height, factor);
      camera.zoom /= clampedFactor;
      camera.updateProjectionMatrix();
      const shift = fixedPoint.sub(target).multiplyScalar(1 - clampedFactor);
      target.add(shift);
      camera.position.add(shift);
    } else {
      const clampedFactor = this.clampFactor(camera.position.distanceTo(target), factor);
      camera.position.sub(fixedPoint).multiplyScalar(clampedFactor).add(fixedPoint);
      target.sub(fixedPoint).multiplyScalar(clampedFactor).add(fixedPoint);
    }
    this.update();
  }

  /** `factor`, limited so that the new distance or visible height `size * factor` (m) is within its range. */
  private clampFactor(size: number, factor: number): number {
    const [minSize, maxSize] = [MIN_DISTANCE_RATIO * this.radius, MAX_DISTANCE_RATIO * this.radius];
    return Math.min(Math.max(size * factor, minSize), maxSize) / size;
  }

  private setOffset(offset: Vector3): void {
    const { camera, target } = this.view;
    camera.position.copy(target).add(offset);
    camera.lookAt(target);
    this.update();
  }

  private update(): void {
    this.view.camera.updateMatrixWorld();
    this.view.draw();
  }
}
