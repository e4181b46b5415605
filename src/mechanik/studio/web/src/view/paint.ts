// Colours of bodies, held at the corners of their triangles. A picture is not drawn but read, once, at the corners;
// where those are few, triangles are divided first.
import { BufferAttribute, BufferGeometry, Color, Texture, Vector2, type Material } from "three";

const MOST_PIXELS = 512; // along an edge: finer than the corners are
const ENOUGH = 6000; // triangles; up to there a piece with a picture is divided
const WHITE = new Color(1, 1, 1);

/** One colour all over, or, without one, the geometry's own; with an opacity in each corner. */
export function paint(geometry: BufferGeometry, colour: Color | null, opacity: number): BufferGeometry {
  const own = colour === null ? geometry.getAttribute("color") : null;
  const { r, g, b } = colour ?? WHITE;
  const count = geometry.getAttribute("position").count;
  const colours = new Float32Array(4 * count);
  for (let k = 0; k < count; k++) {
    colours.set(own ? [own.getX(k), own.getY(k), own.getZ(k), opacity] : [r, g, b, opacity], 4 * k);
  }
  geometry.setAttribute("color", new BufferAttribute(colours, 4));
  geometry.userData.opacity = opacity;
  return geometry;
}

/** The geometry with its colours, as on a screen, if it has any of its own; else without.
 * colour: of the whole, by which they are multiplied. isLight: those of its corners are amounts of light. */
export function coloured(
  geometry: BufferGeometry,
  material: Material | undefined,
  colour: Color | null,
  isLight: boolean,
): BufferGeometry {
  const map = material !== undefined && "map" in material && material.map instanceof Texture ? material.map : null;
  const picture = map && geometry.hasAttribute(uvName(map)) ? pixels(map) : null;
  const hasCorners = material?.vertexColors === true && geometry.hasAttribute("color");
  // some writers leave the colour black where a picture tells it
  const whole = colour === null || (picture !== null && colour.getHex() === 0) ? WHITE : colour;
  if (picture !== null) {
    const fine = divided(geometry, uvName(map!));
    return fine.setAttribute("color", read(fine, map!, picture, whole));
  }
  if (!hasCorners) return geometry.deleteAttribute("color");
  const given = geometry.getAttribute("color");
  const colours = new Float32Array(3 * given.count);
  const one = new Color();
  for (let k = 0; k < given.count; k++) {
    one.setRGB(given.getX(k), given.getY(k), given.getZ(k));
    if (isLight) one.convertLinearToSRGB();
    one.multiply(whole).toArray(colours, 3 * k);
  }
  return geometry.setAttribute("color", new BufferAttribute(colours, 3));
}

function uvName(map: Texture): string {
  return map.channel === 0 ? "uv" : `uv${map.channel}`;
}

/** The picture, made smaller if it is large; null if it did not come. */
function pixels(map: Texture): ImageData | null {
  const image = map.image as HTMLImageElement | ImageBitmap | null | undefined;
  if (!(image instanceof HTMLImageElement || image instanceof ImageBitmap)) return null;
  const { width: fullWidth, height: fullHeight } = image;
  if (fullWidth === 0 || fullHeight === 0) return null;
  const scale = Math.min(1, MOST_PIXELS / Math.max(fullWidth, fullHeight));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(scale * fullWidth));
  canvas.height = Math.max(1, Math.round(scale * fullHeight));
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (pen === null) return null;
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return pen.getImageData(0, 0, canvas.width, canvas.height);
}

/** The picture at each corner, times the colour of the whole. */
function read(geometry: BufferGeometry, map: Texture, picture: ImageData, whole: Color): BufferAttribute {
  const { data, width, height } = picture;
  const uv = geometry.getAttribute(uvName(map));
  const colours = new Float32Array(3 * uv.count);
  const place = new Vector2();
  map.updateMatrix();
  for (let k = 0; k < uv.count; k++) {
    place.set(uv.getX(k), uv.getY(k)).applyMatrix3(map.matrix);
    const x = pixel(place.x, width);
    const y = pixel(map.flipY ? 1 - place.y : place.y, height);
    const at = 4 * (y * width + x);
    colours[3 * k] = (whole.r * data[at]!) / 255;
    colours[3 * k + 1] = (whole.g * data[at + 1]!) / 255;
    colours[3 * k + 2] = (whole.b * data[at + 2]!) / 255;
  }
  return new BufferAttribute(colours, 3);
}

/** Which of `count` a share means; beyond 0 and 1 the picture begins again. */
function pixel(share: number, count: number): number {
  if (!Number.isFinite(share)) return 0;
  const within = share < 0 || share > 1 ? share - Math.floor(share) : share;
  return Math.min(count - 1, Math.floor(within * count));
}

/** Each triangle cut into four, again and again, while there are few. */
function divided(geometry: BufferGeometry, uv: string): BufferGeometry {
  let fine = geometry.index ? geometry.toNonIndexed() : geometry;
  if (!fine.hasAttribute("normal")) fine.computeVertexNormals();
  const triangles = Math.floor(fine.getAttribute("position").count / 3);
  if (triangles === 0) return geometry;
  for (let count = 4 * triangles; count <= ENOUGH; count *= 4) {
    const next = new BufferGeometry();
    for (const name of ["position", "normal", uv]) {
      const from = fine.getAttribute(name);
      const size = from.itemSize;
      const into = new Float32Array(3 * count * size);
      for (let t = 0; t < count / 4; t++) {
        for (let e = 0; e < size; e++) {
          const [a, b, c] = [0, 1, 2].map((corner) => from.getComponent(3 * t + corner, e)) as [number, number, number];
          const [ab, bc, ca] = [(a + b) / 2, (b + c) / 2, (c + a) / 2];
          [a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca].forEach((value, k) => (into[(12 * t + k) * size + e] = value));
        }
      }
      next.setAttribute(name, new BufferAttribute(into, size));
    }
    fine = next;
  }
  return fine;
}
