// Tiles of the view, one for each compared method, with a shared camera.
import { Vector2, Vector4, type WebGLRenderer } from "three";
import type { CompareRow } from "../messages";
import type { Theme } from "./theme";

const size = new Vector2();
const box = new Vector4();

/** A tile of the view. area: CSS pixels from the upper left corner of the view. */
export interface Tile {
  row: CompareRow;
  area: DOMRect;
}

/** The present tiles; empty without a comparison. */
export class Tiling {
  tiles: Tile[] = [];
  private layout = "";

  /** Lays out tiles for these rows; returns whether the layout has changed. */
  layOut(rows: CompareRow[], width: number, height: number): boolean {
    this.tiles = tileLayout(rows, width, height);
    const previousLayout = this.layout;
    this.layout = JSON.stringify(this.tiles.map(({ row, area }) => [row.title, row.refusal, area]));
    return this.layout !== previousLayout;
  }
}

/** Tiles for these rows, with the number of columns that makes the shorter side of a tile largest. */
function tileLayout(rows: CompareRow[], width: number, height: number): Tile[] {
  if (rows.length === 0) return [];
  let columns = 1;
  let bestSide = 0;
  for (let k = 1; k <= rows.length; k++) {
    const shorterSide = Math.min(width / k, height / Math.ceil(rows.length / k));
    if (shorterSide > bestSide + 1) [bestSide, columns] = [shorterSide, k];
  }
  const tileRows = Math.ceil(rows.length / columns);
  return rows.map((row, k) => {
    const x = Math.floor(((k % columns) * width) / columns);
    const y = Math.floor((Math.floor(k / columns) * height) / tileRows);
    return { row, area: new DOMRect(x, y, Math.floor(width / columns) - 1, Math.floor(height / tileRows) - 1) };
  });
}

/** Title of a tile. */
export function tileTitle({ row, area }: Tile): { title: string; text: string; area: DOMRect } {
  const name = row.title || row.solver;
  return { title: name.charAt(0).toUpperCase() + name.slice(1), text: row.refusal, area };
}

/** Area of the tile that contains a point of the view, else of the first tile; the whole view if there are no tiles. */
export function areaAt(tiles: Tile[], x: number, y: number, width: number, height: number): DOMRect {
  const tile = tiles.find(({ area }) => x >= area.left && x < area.right + 1 && y >= area.top && y < area.bottom + 1);
  return tile?.area ?? (tiles.length > 0 ? tiles[0]!.area : new DOMRect(0, 0, width, height));
}

/** Draws each tile with `draw`, clipped to the tile. */
export function drawTiles(renderer: WebGLRenderer, tiles: Tile[], theme: Theme, draw: (row: CompareRow) => void): void {
  renderer.getSize(size);
  renderer.setClearColor(theme.gridMajor); // between the tiles
  renderer.clear();
  renderer.setClearColor(theme.background);
  renderer.setScissorTest(true);
  // viewports of the canvas are in CSS pixels, viewports of a render target in its own pixels
  const ratio = renderer.getRenderTarget() === null ? 1 : renderer.getPixelRatio();
  for (const { row, area } of tiles) {
    box.set(area.x, size.height - area.bottom, area.width, area.height).multiplyScalar(ratio);
    renderer.setViewport(box);
    renderer.setScissor(box);
    draw(row);
  }
  renderer.setScissorTest(false);
  renderer.setViewport(0, 0, size.width, size.height);
}
