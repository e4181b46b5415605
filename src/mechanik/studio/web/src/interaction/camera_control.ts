// Orbit, pan and dolly of both kinds of camera.
import { OrthographicCamera, Vector3 } from "three";
import type { View } from "../view/view";
import type { Unprojector } from "./unproject";

const POLE_MARGIN = 1e-3; // rad, from straight above, where the up direction is undefined
const MIN_DISTANCE = 0.02; // in radii of the model
const MAX_DISTANCE = 200;

export class CameraControl {
  /** Radius of the model, m; limits how near and how far the camera goes. */
  radius = 1;

  constructor(
    private readonly view: View,
    private readonly unprojector: Unprojector,
  ) {}

  /** Orbits by pixels of the pointer; the height of the view is a full turn. */
  orbit(dx: number, dy: number): void {
    const { camera, target } = this.view;
    const rate = (2 * Math.PI) / Math.max(this.view.canvas.clientHeight, 1);
    const up = camera.up.clone().normalize();
    const offset = camera.position.clone().sub(target).applyAxisAngle(up, -dx * rate);
    const polar = up.angleTo(offset);
    const wanted = Math.min(Math.max(polar - dy * rate, POLE_MARGIN), Math.PI - POLE_MARGIN);
    const right = new Vector3().crossVectors(up, offset);
    if (right.lengthSq() < 1e-16) right.setFromMatrixColumn(camera.matrixWorld, 0);
    this.setOffset(offset.applyAxisAngle(right.normalize(), wanted - polar));
  }

  /** Pans; the target moves with the pointer. */
  pan(dx: number, dy: number): void {
    const { camera, target } = this.view;
    const size = this.unprojector.metresPerPixel(target);
    const shift = new Vector3().setFromMatrixColumn(camera.matrixWorld, 0).multiplyScalar(-dx * size);
    shift.addScaledVector(new Vector3().setFromMatrixColumn(camera.matrixWorld, 1), dy * size);
    target.add(shift);
    camera.position.add(shift);
    this.update();
  }

  /** Multiplies the distance to the target by `factor`; the point under the pixel (x, y) stays there. */
  dolly(factor: number, x?: number, y?: number): void {
    const { camera, target } = this.view;
    const plane = this.unprojector.facingPlane(target);
    const fixed =
      (x !== undefined && y !== undefined && this.unprojector.intersectPlane(x, y, plane)) || target.clone();
    if (camera instanceof OrthographicCamera) {
      const height = (camera.top - camera.bottom) / camera.zoom;
      const by = this.clampFactor(height, factor);
      camera.zoom /= by;
      camera.updateProjectionMatrix();
      const shift = fixed.sub(target).multiplyScalar(1 - by);
      target.add(shift);
      camera.position.add(shift);
    } else {
      const by = this.clampFactor(camera.position.distanceTo(target), factor);
      camera.position.sub(fixed).multiplyScalar(by).add(fixed);
      target.sub(fixed).multiplyScalar(by).add(fixed);
    }
    this.update();
  }

  private clampFactor(size: number, factor: number): number {
    const wanted = Math.min(Math.max(size * factor, MIN_DISTANCE * this.radius), MAX_DISTANCE * this.radius);
    return wanted / size;
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
