// What is drawn over bodies: plainly where it is seen, and faintly through what is before it if that is wanted.
import {
  DoubleSide,
  DynamicDrawUsage,
  Group,
  GreaterDepth,
  InstancedBufferAttribute,
  InstancedMesh,
  ShaderMaterial,
  type BufferGeometry,
} from "three";

const FAINT = 0.42; // of the opacity, behind a body

/** Many of one shape in two draws. Each has a matrix, a tint (rgba) and whatever the shader wants more. */
export class Overlay {
  readonly group = new Group();
  readonly seen: InstancedMesh;
  readonly tint: InstancedBufferAttribute;
  private readonly behind: InstancedMesh;

  constructor(
    geometry: BufferGeometry,
    readonly most: number,
    vertexShader: string = PLAIN_VERTEX,
  ) {
    this.tint = new InstancedBufferAttribute(new Float32Array(4 * most), 4).setUsage(DynamicDrawUsage);
    geometry.setAttribute("tint", this.tint);
    const material = (opacity: number) =>
      new ShaderMaterial({
        vertexShader,
        fragmentShader: FRAGMENT,
        uniforms: { opacity: { value: opacity } },
        transparent: true,
        depthWrite: false,
        forceSinglePass: true, // three would draw what has two sides twice
        side: DoubleSide,
      });
    this.seen = new InstancedMesh(geometry, material(1), most);
    const faint = material(FAINT);
    faint.depthFunc = GreaterDepth;
    this.behind = new InstancedMesh(geometry, faint, 0);
    this.behind.instanceMatrix = this.seen.instanceMatrix;
    this.seen.instanceMatrix.setUsage(DynamicDrawUsage);
    for (const [order, mesh] of [
      [3, this.behind],
      [4, this.seen],
    ] as const) {
      mesh.frustumCulled = false; // the shader moves it
      mesh.matrixAutoUpdate = false;
      mesh.renderOrder = order;
      this.group.add(mesh);
    }
    this.count = 0;
  }

  get count(): number {
    return this.seen.count;
  }

  set count(count: number) {
    this.seen.count = this.behind.count = count;
    this.seen.visible = count > 0;
  }

  drawThrough(on: boolean): void {
    this.behind.visible = on;
  }

  colour(k: number, red: number, green: number, blue: number, alpha: number): void {
    this.tint.setXYZW(k, red, green, blue, alpha);
  }

  /** After matrices and tints were written. */
  update(): void {
    this.seen.instanceMatrix.needsUpdate = true;
    this.tint.needsUpdate = true;
  }

  dispose(): void {
    this.group.removeFromParent();
    this.seen.geometry.dispose();
    (this.seen.material as ShaderMaterial).dispose();
    (this.behind.material as ShaderMaterial).dispose();
  }
}

/** Round things get a little light from the eye, flat ones none: `normal` is zero there. */
const SHADED = `
  float roundness(vec3 n, mat3 toEye) {
    return length(n) < 0.5 ? 1.0 : 0.62 + 0.38 * abs(normalize(toEye * n).z);
  }`;

const PLAIN_VERTEX = `
  attribute vec4 tint;
  uniform float opacity;
  varying vec4 shade;
  ${SHADED}
  void main() {
    mat4 toEye = modelViewMatrix * instanceMatrix;
    shade = vec4(tint.rgb * roundness(normal, mat3(toEye)), tint.a * opacity);
    gl_Position = projectionMatrix * toEye * vec4(position, 1.0);
  }`;

const FRAGMENT = `
  varying vec4 shade;
  void main() {
    gl_FragColor = shade;
  }`;
