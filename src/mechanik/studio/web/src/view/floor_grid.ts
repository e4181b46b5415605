// Floor grid with round cell sizes; it fades with the distance from the mechanism.
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
const SEGMENTS_PER_LINE = 10; // the opacity is computed at the ends of the segments
const CELLS_PER_MAJOR_LINE = 5;

export class FloorGrid {
  readonly group = new Group();
  /** Length of a cell, m. */
  cell = 0.1;
  private readonly lines = new LineSegments(
    new BufferGeometry(),
    new LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }),
  );
  private theme: Theme;
  private reach = 1; // radius of the grid, m

  constructor(theme: Theme) {
    this.theme = theme;
    this.lines.renderOrder = -2;
    this.group.add(this.lines);
  }

  /** Moves the grid to the plane through `origin` perpendicular to `normal`. radius: radius of the model, m. */
  moveTo(origin: Vector3, normal: Vector3, radius: number): void {
    this.cell = roundDown125(radius / 2);
    this.reach =
      Math.max(2, Math.ceil((3 * radius) / this.cell / CELLS_PER_MAJOR_LINE)) * CELLS_PER_MAJOR_LINE * this.cell;
    this.group.quaternion.copy(rotationTo(normal));
    // major lines cross at the projection of the origin of the world
    const majorCell = CELLS_PER_MAJOR_LINE * this.cell;
    const local = origin.clone().applyQuaternion(this.group.quaternion.clone().invert());
    local.set(Math.round(local.x / majorCell) * majorCell, Math.round(local.y / majorCell) * majorCell, local.z);
    this.group.position.copy(local.applyQuaternion(this.group.quaternion));
    this.build();
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.build();
  }

  setVisible(isVisible: boolean): void {
    this.lines.visible = isVisible;
  }

  private build(): void {
    const { theme } = this;
    const positions: number[] = [];
    const colours: number[] = [];
    const [minor, major] = [new Color(theme.gridMinor), new Color(theme.gridMajor)];
    const cellCount = Math.round(this.reach / this.cell); // on each side of the centre
    const addVertex = (x: number, y: number, colour: Color) => {
      positions.push(x, y, 0);
      const relativeDistance = Math.hypot(x, y) / this.reach;
      colours.push(colour.r, colour.g, colour.b, Math.max(0, 1 - relativeDistance * relativeDistance) ** 1.5);
    };
    for (let k = -cellCount; k <= cellCount; k++) {
      const colour = k % CELLS_PER_MAJOR_LINE === 0 ? major : minor;
      const halfLength = Math.sqrt(Math.max(0, this.reach ** 2 - (k * this.cell) ** 2));
      for (let segment = 0; segment < SEGMENTS_PER_LINE; segment++) {
        const [a, b] = [
          ((2 * segment) / SEGMENTS_PER_LINE - 1) * halfLength,
          ((2 * (segment + 1)) / SEGMENTS_PER_LINE - 1) * halfLength,
        ];
        addVertex(k * this.cell, a, colour);
        addVertex(k * this.cell, b, colour);
        addVertex(a, k * this.cell, colour);
        addVertex(b, k * this.cell, colour);
      }
    }
    this.lines.geometry.dispose();
    this.lines.geometry = new BufferGeometry()
      .setAttribute("position", new BufferAttribute(new Float32Array(positions), 3))
      .setAttribute("color", new BufferAttribute(new Float32Array(colours), 4));
  }

}

/** The rotation of z onto a normal. */
function rotationTo(normal: Vector3): Quaternion {
  return new Quaternion().setFromUnitVectors(Z, normal.clone().normalize());
}

/** The largest number of the form 1, 2 or 5 times a power of ten that does not exceed the length. */
export function roundDown125(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  const mantissa = length / power; // from 1 to 10
  return (mantissa >= 5 ? 5 : mantissa >= 2 ? 2 : 1) * power;
}
