// Objects such as dof markers: fully visible in front of bodies, and faint through bodies if requested.
import { DoubleSide, Group, GreaterDepth, Mesh, ShaderMaterial, type BufferGeometry } from "three";
import { INSTANCE_GLSL, InstanceTexture, mergeInstances } from "./instance_texture";

const HIDDEN_OPACITY = 0.42; // opacity behind a body, as a share of the opacity in front of it

/**
 * Many objects in two draw calls. Each object has a matrix, a tint (an alpha above 1 makes the object more visible
 * behind bodies) and numbers for the shader.
 */
export class Overlay {
  readonly group = new Group();
  readonly instances: InstanceTexture;
  private readonly meshes: Mesh<BufferGeometry, ShaderMaterial>[] = [];

  /** shapes: one per object; throughBodies: geometries that are drawn through bodies, may be simpler than `shapes`. */
  constructor(shapes: BufferGeometry[], vertexShader: string = PLAIN_VERTEX, throughBodies: BufferGeometry[] = shapes) {
    this.instances = new InstanceTexture(shapes.length);
    if (shapes.length === 0) return;
    const visibleGeometry = mergeInstances(shapes);
    const hiddenGeometry = throughBodies === shapes ? visibleGeometry : mergeInstances(throughBodies);
    const faintMaterial = this.material(vertexShader, HIDDEN_OPACITY);
    faintMaterial.depthFunc = GreaterDepth;
    this.meshes = [new Mesh(hiddenGeometry, faintMaterial), new Mesh(visibleGeometry, this.material(vertexShader, 1))];
    this.meshes.forEach((mesh, k) => {
      mesh.frustumCulled = false; // the shader moves the vertices
      mesh.matrixAutoUpdate = false;
      mesh.renderOrder = 3 + k;
      this.group.add(mesh);
    });
  }

  drawThrough(isOn: boolean): void {
    if (this.meshes[0]) this.meshes[0].visible = isOn;
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
      forceSinglePass: true, // otherwise three.js draws two-sided transparent objects twice
      side: DoubleSide,
    });
  }
}

/** Shader with weak light from the camera. */
const PLAIN_VERTEX = `
  uniform float opacity;
  varying vec4 shade;
  void main() {
    mat4 toEye = modelViewMatrix * itemPose();
    vec4 tint = itemTint();
    float brightness = 0.62 + 0.38 * abs(normalize(mat3(toEye) * normal).z);
    shade = vec4(tint.rgb * brightness, tint.a * opacity);
    gl_Position = projectionMatrix * toEye * vec4(position, 1.0);
  }`;

const FRAGMENT = `
  varying vec4 shade;
  void main() {
    gl_FragColor = shade;
  }`;
