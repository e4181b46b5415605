// Loop closures: a dot at the closure point of each link, and a line across the gap; red if the closure is violated.
import { Color, Group, Matrix4, Vector3 } from "three";
import type { Model } from "../messages";
import { pointSprites } from "./point_sprites";
import type { Overlay } from "./overlay";
import { setFromPose } from "./pose_matrix";
import { ThickLines } from "./thick_lines";
import type { Theme } from "./theme";

const MAX_CLOSED_GAP = 1e-6; // m or rad; a closure with a larger gap is drawn as violated
const MIN_LINE_PIXELS = 26; // the line of a violated closure is extended to this length
const DOT_ALPHA = 1.2; // an alpha above 1 makes dots more visible through bodies

const matrix = new Matrix4();
const local = new Matrix4();
const a = new Vector3();
const b = new Vector3();
const middle = new Vector3();
const colour = new Color();

export class Closures {
  readonly group = new Group();
  private dots: Overlay | null = null;
  private lines: ThickLines | null = null;
  private model: Model | null = null;

  loadModel(model: Model): void {
    this.dots?.dispose();
    this.lines?.overlay.dispose();
    this.model = model;
    const count = model.closures.length;
    this.dots = pointSprites(2 * count);
    this.lines = new ThickLines(count);
    this.group.add(this.dots.group, this.lines.overlay.group);
  }

  drawThrough(isOn: boolean): void {
    this.dots?.drawThrough(isOn);
    this.lines?.overlay.drawThrough(isOn);
  }

  /** links: seven numbers per link; gaps: m and rad of each closure; metresPerPixel: size of a pixel at a point, m. */
  update(links: Float64Array, gaps: Float64Array, metresPerPixel: (point: Vector3) => number, theme: Theme): void {
    if (!this.group.visible || this.model === null || this.dots === null || this.lines === null) return;
    const { closures, radius } = this.model;
    closures.forEach((closure, k) => {
      setFromPose(matrix, links, 7 * closure.link_a).multiply(setFromPose(local, closure.pose_a));
      a.setFromMatrixPosition(matrix);
      setFromPose(matrix, links, 7 * closure.link_b).multiply(setFromPose(local, closure.pose_b));
      b.setFromMatrixPosition(matrix);
      const isViolated = Math.max(gaps[2 * k] ?? 0, gaps[2 * k + 1] ?? 0) > MAX_CLOSED_GAP;
      colour.setHex(isViolated ? theme.violated : theme.closed);
      const size = (isViolated ? 0.014 : 0.008) * radius;
      this.dot(2 * k, a, size);
      this.dot(2 * k + 1, b, size);
      if (isViolated) extendLine(MIN_LINE_PIXELS * metresPerPixel(a));
      this.lines!.set(k, a, b, 0.006 * radius, colour, isViolated ? 1 : 0.5);
    });
    this.dots.instances.update();
    this.lines.overlay.instances.update();
  }

  private dot(k: number, point: Vector3, size: number): void {
    this.dots!.instances.setPose(k, local.makeScale(size, size, size).setPosition(point));
    this.dots!.instances.setTint(k, colour.r, colour.g, colour.b, DOT_ALPHA);
  }
}

/** Moves the points `a` and `b` apart, about their middle, if their distance is below a minimum (m). */
function extendLine(minLength: number): void {
  const length = a.distanceTo(b);
  if (length >= minLength) return;
  middle.copy(a).add(b).multiplyScalar(0.5);
  if (length < 1e-12) {
    a.copy(middle);
    b.copy(middle);
    a.z += minLength / 2;
    b.z -= minLength / 2;
    return;
  }
  a.sub(middle)
    .multiplyScalar(minLength / length)
    .add(middle);
  b.sub(middle)
    .multiplyScalar(minLength / length)
    .add(middle);
}
