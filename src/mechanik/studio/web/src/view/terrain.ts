// Terrain: a height field with faint contour lines.
import { BufferAttribute, BufferGeometry, Color, Group, LineBasicMaterial, LineSegments, Mesh } from "three";
import type { TerrainInfo } from "../messages";
import { roundDown125 } from "./floor_grid";
import type { Materials } from "./materials";
import type { Theme } from "./theme";

const FADE_MARGIN = 0.18; // share of the half width in which the terrain fades
const CONTOUR_COUNT = 12; // minimum number of levels of contour lines

export class Terrain {
  readonly group = new Group();
  private info: TerrainInfo | null = null;
  private theme: Theme | null = null;

  constructor(private readonly materials: Materials) {}

  get isLoaded(): boolean {
    return this.info !== null;
  }

  load(info: TerrainInfo | null, theme: Theme): void {
    for (const part of this.group.children) (part as Mesh).geometry.dispose();
    this.group.clear();
    this.info = info;
    this.theme = theme;
    if (info === null || info.columns < 2 || info.rows < 2) return;
    const ground = new Mesh(surface(info, new Color(theme.terrain)), this.materials.ground);
    const lines = new LineSegments(
      contours(info, new Color(theme.contour)),
      new LineBasicMaterial({ vertexColors: true, transparent: true }),
    );
    ground.renderOrder = -2; // before other transparent objects
    lines.renderOrder = -1;
    this.group.add(ground, lines);
  }

  setTheme(theme: Theme): void {
    if (theme !== this.theme) this.load(this.info, theme);
  }
}

/** Opacity of the terrain: 1 inside, 0 at the edge. */
function edgeFade({ columns, rows, cell, origin }: TerrainInfo, x: number, y: number): number {
  const ratioX = Math.abs((2 * (x - origin[0])) / ((columns - 1) * cell) - 1);
  const ratioY = Math.abs((2 * (y - origin[1])) / ((rows - 1) * cell) - 1);
  const insideShare = Math.min(
    1,
    Math.max(
      0,
      1 - Math.hypot(Math.max(0, ratioX + FADE_MARGIN - 1), Math.max(0, ratioY + FADE_MARGIN - 1)) / FADE_MARGIN,
    ),
  );
  return insideShare * insideShare * (3 - 2 * insideShare);
}

function surface(info: TerrainInfo, colour: Color): BufferGeometry {
  const { columns, rows, cell, origin, heights } = info;
  const vertices = new Float32Array(3 * columns * rows);
  const colours = new Float32Array(4 * columns * rows);
  const index: number[] = [];
  const low = Math.min(...heights),
    high = Math.max(...heights);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; c++) {
      const k = r * columns + c;
      const height = heights[k] ?? 0;
      vertices.set([origin[0] + c * cell, origin[1] + r * cell, height], 3 * k);
      const brightness = 0.85 + (0.3 * (height - low)) / Math.max(high - low, 1e-9); // higher points are brighter
      const alpha = edgeFade(info, vertices[3 * k]!, vertices[3 * k + 1]!);
      colours.set(
        [colour.r * brightness, colour.g * brightness, colour.b * brightness, alpha],
        4 * k,
      );
      if (r + 1 < rows && c + 1 < columns) index.push(k, k + 1, k + columns, k + 1, k + columns + 1, k + columns);
    }
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(vertices, 3));
  geometry.setAttribute("color", new BufferAttribute(colours, 4));
  geometry.setIndex(index);
  geometry.computeVertexNormals();
  return geometry;
}

/** Contour lines: a segment for each triangle that a level crosses. */
function contours(info: TerrainInfo, colour: Color): BufferGeometry {
  const { columns, rows, cell, origin, heights } = info;
  const low = Math.min(...heights),
    high = Math.max(...heights);
  const vertices: number[] = [];
  if (high - low > 1e-6) {
    const step = roundDown125((high - low) / CONTOUR_COUNT);
    const lift = 0.004 * (high - low) + 0.002 * cell; // m; contour lines are this far above the surface
    const corner = (k: number): [number, number, number] => [
      origin[0] + (k % columns) * cell,
      origin[1] + Math.floor(k / columns) * cell,
      heights[k] ?? 0,
    ];
    for (let r = 0; r + 1 < rows; r++)
      for (let c = 0; c + 1 < columns; c++) {
        const k = r * columns + c;
        contourSegments([corner(k), corner(k + 1), corner(k + columns)], step, lift, vertices);
        contourSegments([corner(k + 1), corner(k + columns + 1), corner(k + columns)], step, lift, vertices);
      }
  }
  const colours = new Float32Array((4 * vertices.length) / 3);
  for (let k = 0; 3 * k < vertices.length; k++)
    colours.set([colour.r, colour.g, colour.b, 0.6 * edgeFade(info, vertices[3 * k]!, vertices[3 * k + 1]!)], 4 * k);
  return new BufferGeometry()
    .setAttribute("position", new BufferAttribute(new Float32Array(vertices), 3))
    .setAttribute("color", new BufferAttribute(colours, 4));
}

function contourSegments(triangle: [number, number, number][], step: number, lift: number, vertices: number[]): void {
  const heights = triangle.map((corner) => corner[2]);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  for (let level = Math.ceil(low / step) * step; level < high; level += step) {
    const crossings: number[][] = [];
    for (let k = 0; k < 3; k++) {
      const a = triangle[k]!,
        b = triangle[(k + 1) % 3]!;
      if (a[2] < level === b[2] < level) continue;
      const share = (level - a[2]) / (b[2] - a[2]);
      crossings.push([a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), level + lift]);
    }
    if (crossings.length === 2) vertices.push(...crossings[0]!, ...crossings[1]!);
  }
}
