// The ground: a grid of round numbers that fades away from the mechanism.
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  Group,
  LineBasicMaterial,
  LineSegments,
  Quaternion,
  Vector3,
} from "three";
import type { Theme } from "./theme";

const Z = new Vector3(0, 0, 1);
const PIECES = 10; // of a line, so that it can fade
const EVERY = 5; // so many cells from one strong line to the next

export class Ground {
  readonly group = new Group();
  /** Length of a cell, m. */
  cell = 0.1;
  private readonly lines = new LineSegments(
    new BufferGeometry(),
    new LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }),
  );
  private theme: Theme;
  private reach = 1;

  constructor(theme: Theme) {
    this.theme = theme;
    this.lines.renderOrder = -2;
    this.group.add(this.lines);
  }

  /** Under a ball of this size: through `foot`, square to `normal`. */
  lay(foot: Vector3, normal: Vector3, radius: number): void {
    this.cell = roundBelow(radius / 2);
    this.reach = Math.max(2, Math.ceil((3 * radius) / this.cell / EVERY)) * EVERY * this.cell;
    this.group.quaternion.copy(turnTo(normal));
    // strong lines go through the origin of the world
    const strong = EVERY * this.cell;
    const local = foot.clone().applyQuaternion(this.group.quaternion.clone().invert());
    local.set(Math.round(local.x / strong) * strong, Math.round(local.y / strong) * strong, local.z);
    this.group.position.copy(local.applyQuaternion(this.group.quaternion));
    this.paint(this.theme);
  }

  paint(theme: Theme): void {
    this.theme = theme;
    const places: number[] = [];
    const colours: number[] = [];
    const [minor, major] = [new Color(theme.gridMinor), new Color(theme.gridMajor)];
    const count = Math.round(this.reach / this.cell);
    const vertex = (x: number, y: number, colour: Color) => {
      places.push(x, y, 0);
      const far = Math.hypot(x, y) / this.reach;
      colours.push(colour.r, colour.g, colour.b, Math.max(0, 1 - far * far) ** 1.5);
    };
    for (let k = -count; k <= count; k++) {
      const colour = k % EVERY === 0 ? major : minor;
      const half = Math.sqrt(Math.max(0, this.reach ** 2 - (k * this.cell) ** 2));
      for (let piece = 0; piece < PIECES; piece++) {
        const [a, b] = [((2 * piece) / PIECES - 1) * half, ((2 * (piece + 1)) / PIECES - 1) * half];
        vertex(k * this.cell, a, colour);
        vertex(k * this.cell, b, colour);
        vertex(a, k * this.cell, colour);
        vertex(b, k * this.cell, colour);
      }
    }
    this.lines.geometry.dispose();
    this.lines.geometry = new BufferGeometry()
      .setAttribute("position", new BufferAttribute(new Float32Array(places), 3))
      .setAttribute("color", new BufferAttribute(new Float32Array(colours), 4));
  }

  show(on: boolean): void {
    this.lines.visible = on;
  }
}

function turnTo(normal: Vector3): Quaternion {
  return new Quaternion().setFromUnitVectors(Z, normal.clone().normalize());
}

/** The largest of 1, 2, 5 times a power of ten that is not above it. */
export function roundBelow(length: number): number {
  const ten = 10 ** Math.floor(Math.log10(length));
  const digit = length / ten;
  return (digit >= 5 ? 5 : digit >= 2 ? 2 : 1) * ten;
}
