// A mechanism that walks by itself stays in the picture: once it is some way off, the camera goes along.
import { Vector3 } from "three";
import type { Eye } from "./camera";

const LENGTH = 0.35; // of the model's radius
const step = new Vector3();

export class Leash {
  private readonly post = new Vector3();
  private isHeld = false; // while a hand holds something the camera stands still
  private isMoved = false;

  constructor(canvas: HTMLCanvasElement) {
    canvas.addEventListener("pointerdown", () => (this.isHeld = true), true);
    const free = () => {
      if (this.isHeld) this.isMoved = true;
      this.isHeld = false;
    };
    for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, free, true);
  }

  /** The mechanism stands here and is seen as it should be. */
  tie(middle: Vector3): void {
    this.post.copy(middle);
  }

  /** The mechanism is here now. Returns whether the camera has moved. */
  pull(middle: Vector3, radius: number, eye: Eye): boolean {
    if (this.isHeld) return false;
    if (this.isMoved) this.tie(middle); // what a hand has moved is not walked after
    this.isMoved = false;
    step.copy(middle).sub(this.post);
    const far = step.length();
    if (far <= LENGTH * radius) return false;
    step.multiplyScalar(1 - (LENGTH * radius) / far);
    this.post.add(step);
    eye.shift(step);
    return true;
  }
}
