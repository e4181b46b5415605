// Moves the camera with a mechanism that walks away.
import { Vector3 } from "three";
import type { ViewCamera } from "./view_camera";

const FREE_DISTANCE = 0.35; // before the camera follows, in radii of the model
const step = new Vector3();

export class CameraFollow {
  private readonly anchor = new Vector3();
  private isDragging = false; // the camera rests during drags
  private wasDragged = false;

  constructor(canvas: HTMLCanvasElement) {
    canvas.addEventListener("pointerdown", () => (this.isDragging = true), true);
    const onRelease = () => {
      if (this.isDragging) this.wasDragged = true;
      this.isDragging = false;
    };
    for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, onRelease, true);
  }

  /** The mechanism is here and well framed. */
  reset(middle: Vector3): void {
    this.anchor.copy(middle);
  }

  /** The mechanism is here now; returns whether the camera has moved. */
  follow(middle: Vector3, radius: number, camera: ViewCamera): boolean {
    if (this.isDragging) return false;
    if (this.wasDragged) this.reset(middle); // the camera does not follow drags
    this.wasDragged = false;
    step.copy(middle).sub(this.anchor);
    const distance = step.length();
    if (distance <= FREE_DISTANCE * radius) return false;
    step.multiplyScalar(1 - (FREE_DISTANCE * radius) / distance);
    this.anchor.add(step);
    camera.shift(step);
    return true;
  }
}
