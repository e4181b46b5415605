// Data of many objects that are drawn in one call: a vertex attribute is the index of the object, a texture contains
// the data of each object. (Instanced drawing does the same, but software renderers draw each instance separately.)
import { BufferAttribute, DataTexture, FloatType, RGBAFormat, type BufferGeometry, type Matrix4 } from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";

const TEXELS_PER_INSTANCE = 5; // three rows of the matrix, the tint, and four numbers for the shader
const MAX_ROWS = 1024; // further instances are stored in the next columns

/** GLSL: `itemPose()`, `itemTint()` and `itemRange()` of the object of a vertex. */
export const INSTANCE_GLSL = `
  attribute float item;
  uniform sampler2D items;
  vec4 itemTexel(int k) {
    int index = int(item + 0.5);
    return texelFetch(items, ivec2(${TEXELS_PER_INSTANCE} * (index / ${MAX_ROWS}) + k, index % ${MAX_ROWS}), 0);
  }
  mat4 itemPose() { return transpose(mat4(itemTexel(0), itemTexel(1), itemTexel(2), vec4(0.0, 0.0, 0.0, 1.0))); }
  vec4 itemTint() { return itemTexel(3); }
  vec4 itemRange() { return itemTexel(4); }`;

export class InstanceTexture {
  readonly texture: DataTexture;
  private readonly numbers: Float32Array;
  private readonly width: number;

  constructor(count: number) {
    this.width = TEXELS_PER_INSTANCE * Math.max(1, Math.ceil(count / MAX_ROWS));
    const height = Math.min(Math.max(1, count), MAX_ROWS);
    this.numbers = new Float32Array(4 * this.width * height);
    this.texture = new DataTexture(this.numbers, this.width, height, RGBAFormat, FloatType);
  }

  /** scale: scale factor about the origin of the object. */
  setPose(k: number, { elements: m }: Matrix4, scale = 1): void {
    for (let row = 0; row < 3; row++)
      this.set(k, row, scale * m[row]!, scale * m[row + 4]!, scale * m[row + 8]!, m[row + 12]!);
  }

  /** Red, green, blue and alpha. */
  setTint(k: number, red: number, green: number, blue: number, alpha: number): void {
    this.set(k, 3, red, green, blue, alpha);
  }

  /** Four numbers for the shader. */
  setRange(k: number, a: number, b: number, c: number, d: number): void {
    this.set(k, 4, a, b, c, d);
  }

  /** Uploads the data after changes. */
  update(): void {
    this.texture.needsUpdate = true;
  }

  private set(k: number, texel: number, a: number, b: number, c: number, d: number): void {
    const start = 4 * ((k % MAX_ROWS) * this.width + TEXELS_PER_INSTANCE * Math.floor(k / MAX_ROWS) + texel);
    this.numbers[start] = a;
    this.numbers[start + 1] = b;
    this.numbers[start + 2] = c;
    this.numbers[start + 3] = d;
  }
}

/** Merges geometries with the same attributes. indices: indices of the objects in the texture; default 0, 1, 2... */
export function mergeInstances(shapes: BufferGeometry[], indices: number[] = [...shapes.keys()]): BufferGeometry {
  const merged = mergeGeometries(shapes);
  const item = new Float32Array(merged.getAttribute("position").count);
  let start = 0;
  shapes.forEach((shape, k) => item.fill(indices[k]!, start, (start += shape.getAttribute("position").count)));
  return merged.setAttribute("item", new BufferAttribute(item, 1));
}
