// Geometries and shader of dof markers; each vertex says to which part it belongs. Lines are ribbons that face the
// camera: two triangles per segment, sharp at any distance.
import { BufferAttribute, BufferGeometry } from "three";
import { DISC_LIGHT, discVertices, discIndex } from "./point_sprites";

// how the shader moves a vertex (x, y, z)
const FIXED = 0; // not at all
const ARC = 1; // at share x from the lower to the upper limit, at radius y
const NEEDLE = 2; // rotated by the value
const LOW_STOP = 3; // rotated by the lower limit; hidden if there is none
const HIGH_STOP = 4;
const RAIL = 5; // z from 0 to 1: from the lower to the upper limit
const CARRIAGE = 6; // moved by the value
const LOW_END = 7; // moved by the lower limit; hidden if there is none
const HIGH_END = 8;

/** `range` of each marker: lower, upper, value (in units of the marker), and its stops: 1 the lower, 2 the upper. */
export const MARKER_VERTEX = `
  attribute vec3 part; // part, opacity, and layout: 0 as it is, 1 a ribbon, 2 a disc
  attribute float width; // of a ribbon to one side (normal: its direction); of a disc its radius
  uniform float opacity;
  varying vec4 shade;
  ${DISC_LIGHT}
  vec3 turned(vec3 p, float angle) {
    float c = cos(angle), s = sin(angle);
    return vec3(c * p.x - s * p.y, s * p.x + c * p.y, p.z);
  }
  void main() {
    vec4 tint = itemTint(), range = itemRange();
    vec3 p = position;
    vec3 n = normal;
    int which = int(part.x + 0.5);
    float hasLow = mod(range.w, 2.0), hasHigh = step(1.5, range.w);
    float shown = 1.0;
    float angle = 0.0;
    if (which == ${ARC}) {
      angle = mix(range.x, range.y, p.x);
      p = vec3(p.y, 0.0, p.z);
    } else if (which == ${NEEDLE}) angle = range.z;
    else if (which == ${LOW_STOP}) { angle = range.x; shown = hasLow; }
    else if (which == ${HIGH_STOP}) { angle = range.y; shown = hasHigh; }
    else if (which == ${RAIL}) p.z = mix(range.x, range.y, p.z);
    else if (which == ${CARRIAGE}) p.z += range.z;
    else if (which == ${LOW_END}) { p.z += range.x; shown = hasLow; }
    else if (which == ${HIGH_END}) { p.z += range.y; shown = hasHigh; }
    if (angle != 0.0) { p = turned(p, angle); n = turned(n, angle); }
    mat4 toEye = modelViewMatrix * itemPose();
    vec4 place = toEye * vec4(p * shown, 1.0);
    float bright = 1.0;
    if (part.z == 2.0) {
      place.xyz += vec3(n.xy, 1.0) * width * length(toEye[0].xyz); // as near as the front of a sphere
      bright = discLight(n.xy);
    } else if (part.z == 1.0) {
      vec3 along = normalize(mat3(toEye) * n);
      vec3 look = projectionMatrix[3][3] == 1.0 ? vec3(0.0, 0.0, -1.0) : normalize(place.xyz);
      vec3 across = cross(along, look);
      float size = length(across);
      if (size > 1e-4) place.xyz += across / size * width * shown * length(toEye[0].xyz);
    } else if (part.y == 1.0) bright = 0.65 + 0.35 * abs(normalize(mat3(toEye) * n).z);
    shade = vec4(tint.rgb * bright, tint.a * part.y * opacity);
    gl_Position = projectionMatrix * place;
  }`;

type Triple = [number, number, number];

class MarkerGeometry {
  private readonly positions: number[] = [];
  private readonly normals: number[] = [];
  private readonly parts: number[] = [];
  private readonly widths: number[] = [];
  private readonly index: number[] = [];

  /** A sector of radius 1. */
  addSector(part: number, alpha: number, pieces: number): this {
    const first = this.widths.length;
    this.addVertex([part, alpha, 0], [0, 0, 0], [0, 0, 1], 0);
    for (let i = 0; i <= pieces; i++) this.addVertex([part, alpha, 0], [i / pieces, 1, 0], [0, 0, 1], 0);
    for (let i = 1; i <= pieces; i++) this.index.push(first, first + i, first + i + 1);
    return this;
  }

  /** A ribbon through the points `at` in the directions `towards`; `width` is to each side. */
  addRibbon(
    part: number,
    pieces: number,
    width: (u: number) => number,
    at: (u: number) => Triple,
    towards: (u: number) => Triple,
  ): this {
    const first = this.widths.length;
    for (let i = 0; i <= pieces; i++)
      for (const side of [-1, 1]) {
        const u = i / pieces;
        this.addVertex([part, 1, 1], at(u), towards(u), side * width(u));
      }
    for (let a = first; a < first + 2 * pieces; a += 2) this.index.push(a, a + 2, a + 1, a + 1, a + 2, a + 3);
    return this;
  }

  addLine(part: number, a: Triple, b: Triple, widthA: number, widthB = widthA): this {
    const towards = [b[0] - a[0], b[1] - a[1], b[2] - a[2]] as Triple;
    const mix = (u: number) => a.map((x, k) => x + (b[k]! - x) * u) as Triple;
    return this.addRibbon(
      part,
      1,
      (u) => widthA + (widthB - widthA) * u,
      mix,
      () => towards,
    );
  }

  /** A sphere, drawn as a disc; its opacity makes up for its single side when it is seen through bodies. */
  addBall(part: number, radius: number): this {
    const first = this.widths.length;
    for (const [x, y] of discVertices(10)) this.addVertex([part, 1.6, 2], [0, 0, 0], [x, y, 0], radius);
    this.index.push(...discIndex(10).map((k) => first + k));
    return this;
  }

  /** A cone along z with its tip at `tip`. */
  addCone(part: number, foot: number, tip: number, radius: number): this {
    const first = this.widths.length;
    const sides = 7;
    for (let j = 0; j <= sides; j++) {
      const [c, s] = [Math.cos((2 * Math.PI * j) / sides), Math.sin((2 * Math.PI * j) / sides)];
      this.addVertex([part, 1, 0], [radius * c, radius * s, foot], [c, s, 0], 0);
      this.addVertex([part, 1, 0], [0, 0, tip], [c, s, 0], 0);
    }
    for (let a = first; a < first + 2 * sides; a += 2) this.index.push(a, a + 1, a + 2);
    return this;
  }

  /** A ring of radius 1 about x, y or z. */
  addRing(part: number, axis: 0 | 1 | 2, width: number, pieces: number): this {
    const permuted = (p: Triple): Triple => (axis === 2 ? p : axis === 0 ? [p[2], p[0], p[1]] : [p[1], p[2], p[0]]);
    return this.addRibbon(
      part,
      pieces,
      () => width,
      (u) => permuted([Math.cos(2 * Math.PI * u), Math.sin(2 * Math.PI * u), 0]),
      (u) => permuted([-Math.sin(2 * Math.PI * u), Math.cos(2 * Math.PI * u), 0]),
    );
  }

  build(): BufferGeometry {
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(this.positions), 3));
    geometry.setAttribute("normal", new BufferAttribute(new Float32Array(this.normals), 3));
    geometry.setAttribute("part", new BufferAttribute(new Float32Array(this.parts), 3));
    geometry.setAttribute("width", new BufferAttribute(new Float32Array(this.widths), 1));
    geometry.setIndex(this.index);
    return geometry;
  }

  /** part: part, opacity and layout, as in the shader. */
  private addVertex(part: Triple, place: Triple, normal: Triple, width: number): void {
    this.positions.push(...place);
    this.normals.push(...normal);
    this.parts.push(...part);
    this.widths.push(width);
  }
}

/**
 * Marker of a rotation: a ring from limit to limit, a needle at the value, a piece of the axis, and if there are limits
 * stops and a sector between them.
 */
export function rotationMarker(pieces: number, hasLimits: boolean, hasSector: boolean): BufferGeometry {
  const drawing = new MarkerGeometry();
  if (hasSector) drawing.addSector(ARC, 0.16, pieces);
  drawing
    .addRibbon(
      ARC,
      pieces,
      () => 0.05,
      (u) => [u, 1, 0],
      () => [0, 1, 0],
    )
    .addLine(NEEDLE, [0, 0, 0], [1.14, 0, 0], 0.075, 0.035);
  if (hasLimits)
    for (const stop of [LOW_STOP, HIGH_STOP]) drawing.addLine(stop, [0.84, 0, 0], [1.18, 0, 0], 0.05);
  return drawing.addLine(FIXED, [0, 0, -0.45], [0, 0, 0.45], 0.05).build();
}

/** Marker of a translation: a rail from limit to limit with end stops, and a carriage with two arrows. */
export function translationMarker(): BufferGeometry {
  const drawing = new MarkerGeometry().addLine(RAIL, [0, 0, 0], [0, 0, 1], 0.055);
  for (const end of [LOW_END, HIGH_END])
    drawing.addLine(end, [-0.3, 0, 0], [0.3, 0, 0], 0.06).addLine(end, [0, -0.3, 0], [0, 0.3, 0], 0.06);
  drawing.addBall(CARRIAGE, 0.17).addCone(CARRIAGE, 0.35, 0.8, 0.18).addCone(CARRIAGE, -0.35, -0.8, 0.18);
  return drawing.build();
}

/** Marker of a spherical joint: a sphere with three rings. */
export function sphericalMarker(pieces: number): BufferGeometry {
  const drawing = new MarkerGeometry().addBall(FIXED, 0.3);
  for (const axis of [0, 1, 2] as const) drawing.addRing(FIXED, axis, 0.045, pieces);
  return drawing.build();
}
