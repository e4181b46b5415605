// Data of many objects that are drawn in one call: a vertex attribute has the index of the object, a texture its data.
// (Instanced drawing does the same, but software renderers treat each instance as a separate call.)
import { BufferAttribute, DataTexture, FloatType, RGBAFormat, type BufferGeometry, type Matrix4 } from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";

const TEXELS_PER_INSTANCE = 5; // three rows of the matrix, the tint, and four numbers for the shader
const MAX_ROWS = 1024; // further instances are in the next columns

/** GLSL: `itemPose()`, `itemTint()` and `itemRange()` of the object of a vertex. */
export const INSTANCE_GLSL = `
  attribute float item;
  uniform sampler2D items;
  vec4 itemFour(int k) {
    int which = int(item + 0.5);
    return texelFetch(items, ivec2(${TEXELS_PER_INSTANCE} * (which / ${MAX_ROWS}) + k, which % ${MAX_ROWS}), 0);
  }
  mat4 itemPose() { return transpose(mat4(itemFour(0), itemFour(1), itemFour(2), vec4(0.0, 0.0, 0.0, 1.0))); }
  vec4 itemTint() { return itemFour(3); }
  vec4 itemRange() { return itemFour(4); }`;

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

  /** size: scale about its origin. */
  setPose(k: number, { elements: m }: Matrix4, size = 1): void {
    for (let row = 0; row < 3; row++)
      this.set(k, row, size * m[row]!, size * m[row + 4]!, size * m[row + 8]!, m[row + 12]!);
  }

  /** Red, green, blue and alpha. */
  setTint(k: number, red: number, green: number, blue: number, alpha: number): void {
    this.set(k, 3, red, green, blue, alpha);
  }

  setRange(k: number, a: number, b: number, c: number, d: number): void {
    this.set(k, 4, a, b, c, d);
  }

  /** Uploads the data after changes. */
  update(): void {
    this.texture.needsUpdate = true;
  }

  private set(k: number, four: number, a: number, b: number, c: number, d: number): void {
    const start = 4 * ((k % MAX_ROWS) * this.width + TEXELS_PER_INSTANCE * Math.floor(k / MAX_ROWS) + four);
    this.numbers[start] = a;
    this.numbers[start + 1] = b;
    this.numbers[start + 2] = c;
    this.numbers[start + 3] = d;
  }
}

/** Merges geometries with the same attributes. numbers: indices of the objects, if not 0, 1, 2... */
export function mergeInstances(shapes: BufferGeometry[], numbers: number[] = [...shapes.keys()]): BufferGeometry {
  const whole = mergeGeometries(shapes);
  const item = new Float32Array(whole.getAttribute("position").count);
  let start = 0;
  shapes.forEach((shape, k) => item.fill(numbers[k]!, start, (start += shape.getAttribute("position").count)));
  return whole.setAttribute("item", new BufferAttribute(item, 1));
}
