// Objects drawn over bodies: opaque where they are visible, and faint through bodies if requested.
import { DoubleSide, Group, GreaterDepth, Mesh, ShaderMaterial, type BufferGeometry } from "three";
import { INSTANCE_GLSL, InstanceTexture, mergeInstances } from "./instance_texture";

const HIDDEN_OPACITY = 0.42; // share of the opacity behind a body

/**
 * Many objects in two draw calls. Each has a matrix, a tint (alpha above 1 makes it less faint behind bodies) and
 * numbers for the shader.
 */
export class Overlay {
  readonly group = new Group();
  readonly instances: InstanceTexture;
  private readonly meshes: Mesh<BufferGeometry, ShaderMaterial>[] = [];

  /** throughBodies: simpler geometries that are drawn through bodies. */
  constructor(shapes: BufferGeometry[], vertexShader: string = PLAIN_VERTEX, throughBodies: BufferGeometry[] = shapes) {
    this.instances = new InstanceTexture(shapes.length);
    if (shapes.length === 0) return;
    const seen = mergeInstances(shapes);
    const behind = throughBodies === shapes ? seen : mergeInstances(throughBodies);
    const faint = this.material(vertexShader, HIDDEN_OPACITY);
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
    this.instances.texture.dispose();
    for (const { geometry, material } of this.meshes) {
      geometry.dispose();
      material.dispose();
    }
  }

  private material(vertexShader: string, opacity: number): ShaderMaterial {
    return new ShaderMaterial({
      vertexShader: INSTANCE_GLSL + vertexShader,
      fragmentShader: FRAGMENT,
      uniforms: { opacity: { value: opacity }, items: { value: this.instances.texture } },
      transparent: true,
      depthWrite: false,
      forceSinglePass: true, // three.js draws two-sided transparent objects twice otherwise
      side: DoubleSide,
    });
  }
}

/** A little light from the camera. */
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
