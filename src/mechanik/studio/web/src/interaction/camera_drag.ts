// Drags that move the camera: with a mouse button, with Alt, and with two fingers.
import type { CameraControl } from "./camera_control";
import type { Gesture } from "./drag_session";

export type CameraMotion = "orbit" | "pan" | "dolly";

const DOLLY_RATE = 0.006; // change of the logarithm of the distance per pixel

/** The camera motion of a mouse button; with Alt the buttons work as in Maya. */
export function cameraMotion(button: number, alt: boolean): CameraMotion | null {
  if (button === 0) return "orbit";
  if (button === 1) return "pan";
  if (button === 2) return alt ? "dolly" : "pan";
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

/** Gesture with two fingers: the point between them pans, their distance zooms. */
export class Pinch {
  private previous: { x: number; y: number; distance: number } | null = null;

  constructor(private readonly camera: CameraControl) {}

  move(a: { x: number; y: number }, b: { x: number; y: number }): void {
    const current = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, distance: Math.max(Math.hypot(a.x - b.x, a.y - b.y), 1) };
    if (this.previous !== null) {
      this.camera.pan(current.x - this.previous.x, current.y - this.previous.y);
      this.camera.dolly(this.previous.distance / current.distance, current.x, current.y);
    }
    this.previous = current;
  }
}
