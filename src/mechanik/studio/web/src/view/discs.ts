// Dots: discs that always face the eye and look like balls, at a tenth of a ball's triangles.
import { BufferAttribute, BufferGeometry } from "three";
import { Overlay } from "./overlay";

/** Corners of a disc of radius 1, x and y each; the first is its middle, of all others two in a row make a triangle
 * with it. */
export function discCorners(round: number): [number, number][] {
  const rim = Array.from({ length: round }, (_, k) => (2 * Math.PI * k) / round);
  return [[0, 0], ...rim.map((angle): [number, number] => [Math.cos(angle), Math.sin(angle)])];
}

/** Three corners a triangle. */
export function discIndex(round: number): number[] {
  return Array.from({ length: round }, (_, k) => [0, 1 + k, 1 + ((k + 1) % round)]).flat();
}

/** GLSL: how bright a disc is at a corner, as a ball is that the eye gives some light. */
export const DISC_LIGHT = "float discLight(vec2 corner) { return 1.0 - 0.28 * dot(corner, corner); }";

const VERTEX = `
  uniform float opacity;
  varying vec4 shade;
  ${DISC_LIGHT}
  void main() {
    mat4 toEye = modelViewMatrix * itemPose();
    vec4 tint = itemTint();
    vec4 place = toEye * vec4(0.0, 0.0, 0.0, 1.0);
    place.xyz += vec3(position.xy, 1.0) * length(toEye[0].xyz); // as near as the front of the ball
    shade = vec4(tint.rgb * discLight(position.xy), tint.a * opacity);
    gl_Position = projectionMatrix * place;
  }`;

/** Each is as large as its matrix makes a ball of radius 1. */
export function discs(count: number): Overlay {
  const geometry = new BufferGeometry();
  const corners = discCorners(12).flatMap(([x, y]) => [x, y, 0]);
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(corners), 3));
  geometry.setIndex(discIndex(12));
  return new Overlay(new Array<BufferGeometry>(count).fill(geometry), VERTEX);
}
