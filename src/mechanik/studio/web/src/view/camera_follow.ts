// Moves the camera with a mechanism that moves away from its start, such as a walker.
import { Vector3 } from "three";
import type { ViewCamera } from "./view_camera";

const FREE_DISTANCE = 0.35; // distance after which the camera follows, as a multiple of the radius of the model
const step = new Vector3();

export class CameraFollow {
  private readonly anchor = new Vector3();
  private isDragging = false; // the camera does not move during drags
  private wasDragged = false;

  constructor(canvas: HTMLCanvasElement) {
    canvas.addEventListener("pointerdown", () => (this.isDragging = true), true);
    const onRelease = () => {
      if (this.isDragging) this.wasDragged = true;
      this.isDragging = false;
    };
    for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, onRelease, true);
  }

  /** Sets the position of a mechanism that is framed well. */
  reset(centre: Vector3): void {
    this.anchor.copy(centre);
  }

  /** Follows a mechanism to its present position; returns whether the camera has moved. */
  follow(centre: Vector3, radius: number, camera: ViewCamera): boolean {
    if (this.isDragging) return false;
    if (this.wasDragged) this.reset(centre); // the camera does not follow drags
    this.wasDragged = false;
    step.copy(centre).sub(this.anchor);
    const distance = step.length();
    if (distance <= FREE_DISTANCE * radius) return false;
    step.multiplyScalar(1 - (FREE_DISTANCE * radius) / distance);
    this.anchor.add(step);
    camera.shift(step);
    return true;
  }
}
