// Vertex colours of bodies. Textures are sampled once at the vertices; coarse meshes are subdivided before sampling.
import { BufferAttribute, BufferGeometry, Color, Texture, Vector2, type Material } from "three";

const MAX_TEXTURE_PIXELS = 512; // along an edge of a texture; finer than the distance of vertices
const MAX_TRIANGLES = 6000; // limit for the subdivision of textured meshes
const WHITE = new Color(1, 1, 1);

/** Sets one colour for all vertices, or keeps the vertex colours if `colour` is null; sets the opacity. */
export function setVertexColours(geometry: BufferGeometry, colour: Color | null, opacity: number): BufferGeometry {
  const oldColours = colour === null ? geometry.getAttribute("color") : null;
  const { r, g, b } = colour ?? WHITE;
  const count = geometry.getAttribute("position").count;
  const colours = new Float32Array(4 * count);
  for (let k = 0; k < count; k++) {
    colours.set(
      oldColours ? [oldColours.getX(k), oldColours.getY(k), oldColours.getZ(k), opacity] : [r, g, b, opacity],
      4 * k,
    );
  }
  geometry.setAttribute("color", new BufferAttribute(colours, 4));
  geometry.userData.opacity = opacity;
  return geometry;
}

/**
 * The geometry with the sRGB colours of its texture or of its vertices; without colours if there are none. colour: of
 * the material, by which these colours are multiplied. isLinear: whether the vertex colours are linear.
 */
export function withFileColours(
  geometry: BufferGeometry,
  material: Material | undefined,
  colour: Color | null,
  isLinear: boolean,
): BufferGeometry {
  const map = material !== undefined && "map" in material && material.map instanceof Texture ? material.map : null;
  const picture = map && geometry.hasAttribute(uvName(map)) ? readPixels(map) : null;
  const hasVertexColours = material?.vertexColors === true && geometry.hasAttribute("color");
  // some exporters set a black material for textured meshes
  const materialColour = colour === null || (picture !== null && colour.getHex() === 0) ? WHITE : colour;
  if (picture !== null) {
    const fineGeometry = subdivided(geometry, uvName(map!));
    return fineGeometry.setAttribute("color", sampleTexture(fineGeometry, map!, picture, materialColour));
  }
  if (!hasVertexColours) return geometry.deleteAttribute("color");
  const fileColours = geometry.getAttribute("color");
  const colours = new Float32Array(3 * fileColours.count);
  const vertexColour = new Color();
  for (let k = 0; k < fileColours.count; k++) {
    vertexColour.setRGB(fileColours.getX(k), fileColours.getY(k), fileColours.getZ(k));
    if (isLinear) vertexColour.convertLinearToSRGB();
    vertexColour.multiply(materialColour).toArray(colours, 3 * k);
  }
  return geometry.setAttribute("color", new BufferAttribute(colours, 3));
}

function uvName(map: Texture): string {
  return map.channel === 0 ? "uv" : `uv${map.channel}`;
}

/** Pixels of a texture, scaled down if it is large; null if it was not loaded. */
function readPixels(map: Texture): ImageData | null {
  const image = map.image as HTMLImageElement | ImageBitmap | null | undefined;
  if (!(image instanceof HTMLImageElement || image instanceof ImageBitmap)) return null;
  const { width: fullWidth, height: fullHeight } = image;
  if (fullWidth === 0 || fullHeight === 0) return null;
  const scale = Math.min(1, MAX_TEXTURE_PIXELS / Math.max(fullWidth, fullHeight));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(scale * fullWidth));
  canvas.height = Math.max(1, Math.round(scale * fullHeight));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return null;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

/** The colour of the texture at each vertex, multiplied by the colour of the material. */
function sampleTexture(
  geometry: BufferGeometry, map: Texture, picture: ImageData, materialColour: Color,
): BufferAttribute {
  const { data, width, height } = picture;
  const uv = geometry.getAttribute(uvName(map));
  const colours = new Float32Array(3 * uv.count);
  const coordinates = new Vector2();
  map.updateMatrix();
  for (let k = 0; k < uv.count; k++) {
    coordinates.set(uv.getX(k), uv.getY(k)).applyMatrix3(map.matrix);
    const x = texelIndex(coordinates.x, width);
    const y = texelIndex(map.flipY ? 1 - coordinates.y : coordinates.y, height);
    const offset = 4 * (y * width + x);
    colours[3 * k] = (materialColour.r * data[offset]!) / 255;
    colours[3 * k + 1] = (materialColour.g * data[offset + 1]!) / 255;
    colours[3 * k + 2] = (materialColour.b * data[offset + 2]!) / 255;
  }
  return new BufferAttribute(colours, 3);
}

/** Index of a texel at a coordinate from 0 to 1; outside this range the texture repeats. */
function texelIndex(coordinate: number, count: number): number {
  if (!Number.isFinite(coordinate)) return 0;
  const wrappedCoordinate = coordinate < 0 || coordinate > 1 ? coordinate - Math.floor(coordinate) : coordinate;
  return Math.min(count - 1, Math.floor(wrappedCoordinate * count));
}

/** Divides each triangle into four, repeatedly, as long as there are at most `MAX_TRIANGLES`. */
function subdivided(geometry: BufferGeometry, uv: string): BufferGeometry {
  let fineGeometry = geometry.index ? geometry.toNonIndexed() : geometry;
  if (!fineGeometry.hasAttribute("normal")) fineGeometry.computeVertexNormals();
  const triangleCount = Math.floor(fineGeometry.getAttribute("position").count / 3);
  if (triangleCount === 0) return geometry;
  for (let count = 4 * triangleCount; count <= MAX_TRIANGLES; count *= 4) {
    const nextGeometry = new BufferGeometry();
    for (const name of ["position", "normal", uv]) {
      const source = fineGeometry.getAttribute(name);
      const size = source.itemSize;
      const result = new Float32Array(3 * count * size);
      for (let t = 0; t < count / 4; t++) {
        for (let e = 0; e < size; e++) {
          const corners = [0, 1, 2].map((corner) => source.getComponent(3 * t + corner, e));
          const [a, b, c] = corners as [number, number, number];
          const [ab, bc, ca] = [(a + b) / 2, (b + c) / 2, (c + a) / 2];
          const values = [a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca];
          values.forEach((value, k) => (result[(12 * t + k) * size + e] = value));
        }
      }
      nextGeometry.setAttribute(name, new BufferAttribute(result, size));
    }
    fineGeometry = nextGeometry;
  }
  return fineGeometry;
}
