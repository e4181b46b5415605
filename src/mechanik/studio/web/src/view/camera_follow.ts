// Moves the camera with a mechanism that moves away from its start, such as a walker.
import { Vector3 } from "three";
import type { ViewCamera } from "./view_camera";

const FREE_DISTANCE_RATIO = 0.35; // the camera follows at larger distances from the anchor, in radii of the model
const step = new Vector3();

export class CameraFollow {
  private readonly anchor = new Vector3(); // position of the mechanism for which the camera is placed
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

  /** Sets the anchor, after the camera has framed a mechanism at this position. */
  reset(centre: Vector3): void {
    this.anchor.copy(centre);
  }

  /** Follows a mechanism to its present position; returns whether the camera has moved. radius: of the model, m. */
  follow(centre: Vector3, radius: number, camera: ViewCamera): boolean {
    if (this.isDragging) return false;
    if (this.wasDragged) this.reset(centre); // the camera does not follow drags
    this.wasDragged = false;
    step.copy(centre).sub(this.anchor);
    const distance = step.length();
    const freeDistance = FREE_DISTANCE_RATIO * radius;
    if (distance <= freeDistance) return false;
    step.multiplyScalar(1 - freeDistance / distance);
    this.anchor.add(step);
    camera.shift(step);
    return true;
  }
}
