// Dots: discs that face the camera and look like spheres, with a tenth of the triangles.
import { BufferAttribute, BufferGeometry } from "three";
import { Overlay } from "./overlay";

/** Vertices of a disc of radius 1, x and y; the first is the centre, which makes a triangle with each two neighbours of
 * the others. */
export function discVertices(round: number): [number, number][] {
  const rim = Array.from({ length: round }, (_, k) => (2 * Math.PI * k) / round);
  return [[0, 0], ...rim.map((angle): [number, number] => [Math.cos(angle), Math.sin(angle)])];
}

/** Triangles of the disc: three indices each. */
export function discIndex(round: number): number[] {
  return Array.from({ length: round }, (_, k) => [0, 1 + k, 1 + ((k + 1) % round)]).flat();
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
    vec4 place = toEye * vec4(0.0, 0.0, 0.0, 1.0);
    place.xyz += vec3(position.xy, 1.0) * length(toEye[0].xyz); // as near as the front of the sphere
    shade = vec4(tint.rgb * discLight(position.xy), tint.a * opacity);
    gl_Position = projectionMatrix * place;
  }`;

/** The size is the scale of the matrix. */
export function pointSprites(count: number): Overlay {
  const geometry = new BufferGeometry();
  const corners = discVertices(12).flatMap(([x, y]) => [x, y, 0]);
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(corners), 3));
  geometry.setIndex(discIndex(12));
  return new Overlay(new Array<BufferGeometry>(count).fill(geometry), VERTEX);
}
