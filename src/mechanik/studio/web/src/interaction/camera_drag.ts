// Drags that move the camera: with a mouse button, with Alt, and with two fingers.
import type { CameraControl } from "./camera_control";
import type { Gesture } from "./drag_session";

export type CameraMotion = "orbit" | "pan" | "dolly";

const DOLLY_RATE = 0.006; // change of the logarithm of the distance per px

/** The camera motion of a mouse button; with Alt the buttons work as in Maya. */
export function cameraMotion(button: number, isAltPressed: boolean): CameraMotion | null {
  if (button === 0) return "orbit";
  if (button === 1) return "pan";
  if (button === 2) return isAltPressed ? "dolly" : "pan";
  return null;
}

export class CameraDrag implements Gesture {
  constructor(
    private readonly camera: CameraControl,
    private readonly motion: CameraMotion,
    private x: number,
    private y: number,
  ) {}

  targetExists(): boolean {
    return true;
  }

  move(x: number, y: number): void {
    const dx = x - this.x;
    const dy = y - this.y;
    this.x = x;
    this.y = y;
    if (this.motion === "orbit") this.camera.orbit(dx, dy);
    else if (this.motion === "pan") this.camera.pan(dx, dy);
    else this.camera.dolly(Math.exp((dy - dx) * DOLLY_RATE));
  }

  end(): void {}
  cancel(): void {}
  abandon(): void {}
}

/** Camera motion by two fingers: pans with their midpoint, and dollies with their distance. */
export class Pinch {
  private previousPosition: { x: number; y: number; distance: number } | null = null;

  constructor(private readonly camera: CameraControl) {}

  /** a, b: positions of the fingers, px. */
  move(a: { x: number; y: number }, b: { x: number; y: number }): void {
    const distance = Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1);
    const position = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, distance };
    if (this.previousPosition !== null) {
      this.camera.pan(position.x - this.previousPosition.x, position.y - this.previousPosition.y);
      this.camera.dolly(this.previousPosition.distance / distance, position.x, position.y);
    }
    this.previousPosition = position;
  }
}
