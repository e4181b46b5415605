// What is drawn over bodies: plainly where it is seen, and faintly through what is before it if that is wanted.
import { DoubleSide, Group, GreaterDepth, Mesh, ShaderMaterial, type BufferGeometry } from "three";
import { ITEM, Items, together } from "./items";

const FAINT = 0.42; // of the opacity, behind a body

/** Many shapes in two draws. Each has a matrix, a tint (alpha above 1 makes the faint ones less faint) and whatever the
 * shader wants more. */
export class Overlay {
  readonly group = new Group();
  readonly items: Items;
  private readonly meshes: Mesh<BufferGeometry, ShaderMaterial>[] = [];

  /** faintly: what is seen of each through bodies, if that is less. */
  constructor(shapes: BufferGeometry[], vertexShader: string = PLAIN_VERTEX, faintly: BufferGeometry[] = shapes) {
    this.items = new Items(shapes.length);
    if (shapes.length === 0) return;
    const seen = together(shapes);
    const behind = faintly === shapes ? seen : together(faintly);
    const faint = this.material(vertexShader, FAINT);
    faint.depthFunc = GreaterDepth;
    this.meshes = [new Mesh(behind, faint), new Mesh(seen, this.material(vertexShader, 1))];
    this.meshes.forEach((mesh, k) => {
      mesh.frustumCulled = false; // the shader moves it
      mesh.matrixAutoUpdate = false;
      mesh.renderOrder = 3 + k;
      this.group.add(mesh);
    });
  }

  drawThrough(on: boolean): void {
    if (this.meshes[0]) this.meshes[0].visible = on;
  }

  dispose(): void {
    this.group.removeFromParent();
    this.items.texture.dispose();
    for (const { geometry, material } of this.meshes) {
      geometry.dispose();
      material.dispose();
    }
  }

  private material(vertexShader: string, opacity: number): ShaderMaterial {
    return new ShaderMaterial({
      vertexShader: ITEM + vertexShader,
      fragmentShader: FRAGMENT,
      uniforms: { opacity: { value: opacity }, items: { value: this.items.texture } },
      transparent: true,
      depthWrite: false,
      forceSinglePass: true, // three would draw what has two sides twice
      side: DoubleSide,
    });
  }
}

/** Round things get a little light from the eye. */
const PLAIN_VERTEX = `
  uniform float opacity;
  varying vec4 shade;
  void main() {
    mat4 toEye = modelViewMatrix * itemPose();
    vec4 tint = itemTint();
    float bright = 0.62 + 0.38 * abs(normalize(mat3(toEye) * normal).z);
    shade = vec4(tint.rgb * bright, tint.a * opacity);
    gl_Position = projectionMatrix * toEye * vec4(position, 1.0);
  }`;

const FRAGMENT = `
  varying vec4 shade;
  void main() {
    gl_FragColor = shade;
  }`;
