// Moves the camera around what it looks at: orbit, pan, dolly. Both kinds of camera.
import { OrthographicCamera, Vector3 } from "three";
import type { View } from "../view/view";
import type { Pointing } from "./pointing";

const POLE = 1e-3; // rad: how near the camera comes to straight above, where "up" would be lost
const NEAREST = 0.02; // of the model's radius
const FARTHEST = 200;

export class Camera {
  /** m; the size of what is looked at, which bounds how near and how far the camera goes. */
  radius = 1;

  constructor(
    private readonly view: View,
    private readonly pointing: Pointing,
  ) {}

  /** By pixels of the pointer; one height of the view is a full turn. */
  orbit(dx: number, dy: number): void {
    const { camera, target } = this.view;
    const rate = (2 * Math.PI) / Math.max(this.view.canvas.clientHeight, 1);
    const up = camera.up.clone().normalize();
    const offset = camera.position.clone().sub(target).applyAxisAngle(up, -dx * rate);
    const polar = up.angleTo(offset);
    const wanted = Math.min(Math.max(polar - dy * rate, POLE), Math.PI - POLE);
    const right = new Vector3().crossVectors(up, offset);
    if (right.lengthSq() < 1e-16) right.setFromMatrixColumn(camera.matrixWorld, 0);
    this.place(offset.applyAxisAngle(right.normalize(), wanted - polar));
  }

  /** What is looked at moves with the pointer. */
  pan(dx: number, dy: number): void {
    const { camera, target } = this.view;
    const size = this.pointing.metresPerPixel(target);
    const shift = new Vector3().setFromMatrixColumn(camera.matrixWorld, 0).multiplyScalar(-dx * size);
    shift.addScaledVector(new Vector3().setFromMatrixColumn(camera.matrixWorld, 1), dy * size);
    target.add(shift);
    camera.position.add(shift);
    this.done();
  }

  /** Distances to what is seen are multiplied by `factor`; what is at the pixel (x, y) stays there. */
  dolly(factor: number, x?: number, y?: number): void {
    const { camera, target } = this.view;
    const plane = this.pointing.facing(target);
    const fixed = (x !== undefined && y !== undefined && this.pointing.onPlane(x, y, plane)) || target.clone();
    if (camera instanceof OrthographicCamera) {
      const height = (camera.top - camera.bottom) / camera.zoom;
      const by = this.bounded(height, factor);
      camera.zoom /= by;
      camera.updateProjectionMatrix();
      const shift = fixed.sub(target).multiplyScalar(1 - by);
      target.add(shift);
      camera.position.add(shift);
    } else {
      const by = this.bounded(camera.position.distanceTo(target), factor);
      camera.position.sub(fixed).multiplyScalar(by).add(fixed);
      target.sub(fixed).multiplyScalar(by).add(fixed);
    }
    this.done();
  }

  private bounded(size: number, factor: number): number {
    const wanted = Math.min(Math.max(size * factor, NEAREST * this.radius), FARTHEST * this.radius);
    return wanted / size;
  }

  private place(offset: Vector3): void {
    const { camera, target } = this.view;
    camera.position.copy(target).add(offset);
    camera.lookAt(target);
    this.done();
  }

  private done(): void {
    this.view.camera.updateMatrixWorld();
    this.view.draw();
  }
}
