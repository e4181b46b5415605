// Numbers of many things that are drawn in one go: each corner says to which it belongs, a texture holds the numbers.
// (Instances would do the same, but a processor that draws takes each of them as a draw of its own.)
import { BufferAttribute, DataTexture, FloatType, RGBAFormat, type BufferGeometry, type Matrix4 } from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";

const FOURS = 5; // of each: three rows of its matrix, its tint, and four numbers as the shader wants them
const ROWS = 1024; // after so many the next begin beside them

/** GLSL: `itemPose()`, `itemTint()` and `itemRange()` of the corner's thing. */
export const ITEM = `
  attribute float item;
  uniform sampler2D items;
  vec4 itemFour(int k) {
    int which = int(item + 0.5);
    return texelFetch(items, ivec2(${FOURS} * (which / ${ROWS}) + k, which % ${ROWS}), 0);
  }
  mat4 itemPose() { return transpose(mat4(itemFour(0), itemFour(1), itemFour(2), vec4(0.0, 0.0, 0.0, 1.0))); }
  vec4 itemTint() { return itemFour(3); }
  vec4 itemRange() { return itemFour(4); }`;

export class Items {
  readonly texture: DataTexture;
  private readonly numbers: Float32Array;
  private readonly width: number;

  constructor(count: number) {
    this.width = FOURS * Math.max(1, Math.ceil(count / ROWS));
    const height = Math.min(Math.max(1, count), ROWS);
    this.numbers = new Float32Array(4 * this.width * height);
    this.texture = new DataTexture(this.numbers, this.width, height, RGBAFormat, FloatType);
  }

  /** size: by which it is made larger, around its own origin. */
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

  /** After numbers were written. */
  update(): void {
    this.texture.needsUpdate = true;
  }

  private set(k: number, four: number, a: number, b: number, c: number, d: number): void {
    const start = 4 * ((k % ROWS) * this.width + FOURS * Math.floor(k / ROWS) + four);
    this.numbers[start] = a;
    this.numbers[start + 1] = b;
    this.numbers[start + 2] = c;
    this.numbers[start + 3] = d;
  }
}

/** The shapes of all things in one; they need the same attributes. numbers: of the things, if not 0, 1, 2... */
export function together(shapes: BufferGeometry[], numbers: number[] = [...shapes.keys()]): BufferGeometry {
  const whole = mergeGeometries(shapes);
  const item = new Float32Array(whole.getAttribute("position").count);
  let start = 0;
  shapes.forEach((shape, k) => item.fill(numbers[k]!, start, (start += shape.getAttribute("position").count)));
  return whole.setAttribute("item", new BufferAttribute(item, 1));
}
