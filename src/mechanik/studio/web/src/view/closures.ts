// Loops: a quiet dot where two links meet, and a red line across where they do not.
import { Color, Group, Matrix4, Vector3 } from "three";
import type { Model } from "../messages";
import { discs } from "./discs";
import type { Overlay } from "./overlay";
import { poseInto } from "./pose";
import { Rods } from "./rods";
import type { Theme } from "./theme";

const OPEN = 1e-6; // m or rad
const LEAST_PIXELS = 26; // so long is the line at least, or a small gap would not be seen
const DOT_ALPHA = 1.2; // it is to be seen through bodies, too

const matrix = new Matrix4();
const local = new Matrix4();
const a = new Vector3();
const b = new Vector3();
const middle = new Vector3();
const colour = new Color();

export class Closures {
  readonly group = new Group();
  private dots: Overlay | null = null;
  private lines: Rods | null = null;
  private model: Model | null = null;

  take(model: Model): void {
    this.dots?.dispose();
    this.lines?.overlay.dispose();
    this.model = model;
    const count = model.closures.length;
    this.dots = discs(2 * count);
    this.lines = new Rods(count);
    this.group.add(this.dots.group, this.lines.overlay.group);
  }

  drawThrough(on: boolean): void {
    this.dots?.drawThrough(on);
    this.lines?.overlay.drawThrough(on);
  }

  /** gaps: m and rad of each closure. pixel: metres that a pixel covers there. */
  update(links: Float64Array, gaps: Float64Array, pixel: (place: Vector3) => number, theme: Theme): void {
    if (!this.group.visible || this.model === null || this.dots === null || this.lines === null) return;
    const { closures, radius } = this.model;
    closures.forEach((closure, k) => {
      poseInto(matrix, links, 7 * closure.link_a).multiply(poseInto(local, closure.pose_a));
      a.setFromMatrixPosition(matrix);
      poseInto(matrix, links, 7 * closure.link_b).multiply(poseInto(local, closure.pose_b));
      b.setFromMatrixPosition(matrix);
      const isOpen = Math.max(gaps[2 * k] ?? 0, gaps[2 * k + 1] ?? 0) > OPEN;
      colour.setHex(isOpen ? theme.gap : theme.shut);
      const size = (isOpen ? 0.014 : 0.008) * radius;
      this.dot(2 * k, a, size);
      this.dot(2 * k + 1, b, size);
      if (isOpen) stretch(LEAST_PIXELS * pixel(a));
      this.lines!.set(k, a, b, 0.006 * radius, colour, isOpen ? 1 : 0.5);
    });
    this.dots.items.update();
    this.lines.overlay.items.update();
  }

  private dot(k: number, place: Vector3, size: number): void {
    this.dots!.items.setPose(k, local.makeScale(size, size, size).setPosition(place));
    this.dots!.items.setTint(k, colour.r, colour.g, colour.b, DOT_ALPHA);
  }
}

/** Make the line from a to b at least so long, around its middle. */
function stretch(least: number): void {
  const length = a.distanceTo(b);
  if (length >= least) return;
  middle.copy(a).add(b).multiplyScalar(0.5);
  if (length < 1e-12) {
    a.copy(middle);
    b.copy(middle);
    a.z += least / 2;
    b.z -= least / 2;
    return;
  }
  a.sub(middle)
    .multiplyScalar(least / length)
    .add(middle);
  b.sub(middle)
    .multiplyScalar(least / length)
    .add(middle);
}
