// Dots: discs that face the camera and look like spheres, with a tenth of the triangles of spheres.
import { BufferAttribute, BufferGeometry } from "three";
import { Overlay } from "./overlay";

/** Vertices (x, y) of a disc of radius 1: the centre, then the points on the circle. */
export function discVertices(segments: number): [number, number][] {
  const rim = Array.from({ length: segments }, (_, k) => (2 * Math.PI * k) / segments);
  return [[0, 0], ...rim.map((angle): [number, number] => [Math.cos(angle), Math.sin(angle)])];
}

/** Triangles of the disc: three indices each. */
export function discIndex(segments: number): number[] {
  return Array.from({ length: segments }, (_, k) => [0, 1 + k, 1 + ((k + 1) % segments)]).flat();
}

/** GLSL: brightness of a disc at a vertex, like a sphere with light from the camera. */
export const DISC_LIGHT = "float discLight(vec2 corner) { return 1.0 - 0.28 * dot(corner, corner); }";

const VERTEX = `
  uniform float opacity;
  varying vec4 shade;
  ${DISC_LIGHT}
  void main() {
    mat4 toEye = modelViewMatrix * itemPose();
    vec4 tint = itemTint();
    vec4 eyePosition = toEye * vec4(0.0, 0.0, 0.0, 1.0);
    eyePosition.xyz += vec3(position.xy, 1.0) * length(toEye[0].xyz); // at the depth of the front of the sphere
    shade = vec4(tint.rgb * discLight(position.xy), tint.a * opacity);
    gl_Position = projectionMatrix * eyePosition;
  }`;

/** Dots; the scale of the matrix of a dot is its radius, m. */
export function pointSprites(count: number): Overlay {
  const geometry = new BufferGeometry();
  const corners = discVertices(12).flatMap(([x, y]) => [x, y, 0]);
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(corners), 3));
  geometry.setIndex(discIndex(12));
  return new Overlay(new Array<BufferGeometry>(count).fill(geometry), VERTEX);
}
