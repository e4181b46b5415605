// Geometries and shader of dof markers; an attribute of each vertex tells to which part of the marker it belongs. Lines
// are ribbons that face the camera: two triangles per segment, sharp at any distance.
import { BufferAttribute, BufferGeometry } from "three";
import { DISC_LIGHT, discVertices, discIndex } from "./point_sprites";

// parts of a marker: how the shader moves a vertex (x, y, z)
const FIXED = 0; // not moved
const ARC = 1; // x: position between the low end (0) and the high end (1) of the range; y: radius
const NEEDLE = 2; // rotated by the value
const LOW_STOP = 3; // rotated by the low end; hidden if there is no low stop
const HIGH_STOP = 4; // the same for the high end
const RAIL = 5; // z: position between the low end (0) and the high end (1) of the range
const CARRIAGE = 6; // moved by the value
const LOW_END = 7; // moved by the low end; hidden if there is no low stop
const HIGH_END = 8; // the same for the high end

/**
 * `range` of each marker: low end and high end of the drawn range, value (rad, or m divided by the size of the marker),
 * and stops (0: none, 1: low, 2: high, 3: both).
 */
export const MARKER_VERTEX = `
  attribute vec3 part; // part, opacity, and layout: 0 triangles, 1 ribbon, 2 disc
  attribute float width; // half width of a ribbon (normal: its direction), or radius of a disc
  uniform float opacity;
  varying vec4 shade;
  ${DISC_LIGHT}
  vec3 rotated(vec3 p, float angle) {
    float c = cos(angle), s = sin(angle);
    return vec3(c * p.x - s * p.y, s * p.x + c * p.y, p.z);
  }
  void main() {
    vec4 tint = itemTint(), range = itemRange();
    vec3 p = position;
    vec3 n = normal;
    int partIndex = int(part.x + 0.5);
    float hasLow = mod(range.w, 2.0), hasHigh = step(1.5, range.w);
    float visibility = 1.0;
    float angle = 0.0;
    if (partIndex == ${ARC}) {
      angle = mix(range.x, range.y, p.x);
      p = vec3(p.y, 0.0, p.z);
    } else if (partIndex == ${NEEDLE}) angle = range.z;
    else if (partIndex == ${LOW_STOP}) { angle = range.x; visibility = hasLow; }
    else if (partIndex == ${HIGH_STOP}) { angle = range.y; visibility = hasHigh; }
    else if (partIndex == ${RAIL}) p.z = mix(range.x, range.y, p.z);
    else if (partIndex == ${CARRIAGE}) p.z += range.z;
    else if (partIndex == ${LOW_END}) { p.z += range.x; visibility = hasLow; }
    else if (partIndex == ${HIGH_END}) { p.z += range.y; visibility = hasHigh; }
    if (angle != 0.0) { p = rotated(p, angle); n = rotated(n, angle); }
    mat4 toEye = modelViewMatrix * itemPose();
    vec4 eyePosition = toEye * vec4(p * visibility, 1.0);
    float brightness = 1.0;
    if (part.z == 2.0) {
      eyePosition.xyz += vec3(n.xy, 1.0) * width * length(toEye[0].xyz); // at the depth of the front of a sphere
      brightness = discLight(n.xy);
    } else if (part.z == 1.0) {
      vec3 along = normalize(mat3(toEye) * n);
      vec3 viewDirection = projectionMatrix[3][3] == 1.0 ? vec3(0.0, 0.0, -1.0) : normalize(eyePosition.xyz);
      vec3 across = cross(along, viewDirection);
      float size = length(across);
      if (size > 1e-4) eyePosition.xyz += across / size * width * visibility * length(toEye[0].xyz);
    } else if (part.y == 1.0) brightness = 0.65 + 0.35 * abs(normalize(mat3(toEye) * n).z);
    shade = vec4(tint.rgb * brightness, tint.a * part.y * opacity);
    gl_Position = projectionMatrix * eyePosition;
  }`;

type Triple = [number, number, number];

class MarkerGeometry {
  private readonly positions: number[] = [];
  private readonly normals: number[] = [];
  private readonly parts: number[] = [];
  private readonly widths: number[] = [];
  private readonly index: number[] = [];

  /** A sector of radius 1; the shader sets its angles. */
  addSector(part: number, alpha: number, segments: number): this {
    const firstVertex = this.widths.length;
    this.addVertex([part, alpha, 0], [0, 0, 0], [0, 0, 1], 0);
    for (let i = 0; i <= segments; i++) this.addVertex([part, alpha, 0], [i / segments, 1, 0], [0, 0, 1], 0);
    for (let i = 1; i <= segments; i++) this.index.push(firstVertex, firstVertex + i, firstVertex + i + 1);
    return this;
  }

  /** A ribbon through the points `point` in the directions `direction`, u from 0 to 1; `width` is the half width. */
  addRibbon(
    part: number,
    segments: number,
    width: (u: number) => number,
    point: (u: number) => Triple,
    direction: (u: number) => Triple,
  ): this {
    const firstVertex = this.widths.length;
    for (let i = 0; i <= segments; i++)
      for (const side of [-1, 1]) {
        const u = i / segments;
        this.addVertex([part, 1, 1], point(u), direction(u), side * width(u));
      }
    for (let a = firstVertex; a < firstVertex + 2 * segments; a += 2)
      this.index.push(a, a + 2, a + 1, a + 1, a + 2, a + 3);
    return this;
  }

  /** A line from `a` to `b` with these half widths at its ends. */
  addLine(part: number, a: Triple, b: Triple, widthA: number, widthB = widthA): this {
    const direction = [b[0] - a[0], b[1] - a[1], b[2] - a[2]] as Triple;
    const pointAt = (u: number) => a.map((x, k) => x + (b[k]! - x) * u) as Triple;
    return this.addRibbon(
      part,
      1,
      (u) => widthA + (widthB - widthA) * u,
      pointAt,
      () => direction,
    );
  }

  /** A sphere, drawn as a disc; an opacity above 1 compensates for the missing back side behind bodies. */
  addSphere(part: number, radius: number): this {
    const firstVertex = this.widths.length;
    for (const [x, y] of discVertices(10)) this.addVertex([part, 1.6, 2], [0, 0, 0], [x, y, 0], radius);
    this.index.push(...discIndex(10).map((k) => firstVertex + k));
    return this;
  }

  /** A cone along z from its base at height `baseZ` to its tip at height `tipZ`. */
  addCone(part: number, baseZ: number, tipZ: number, radius: number): this {
    const firstVertex = this.widths.length;
    const sides = 7;
    for (let j = 0; j <= sides; j++) {
      const [c, s] = [Math.cos((2 * Math.PI * j) / sides), Math.sin((2 * Math.PI * j) / sides)];
      this.addVertex([part, 1, 0], [radius * c, radius * s, baseZ], [c, s, 0], 0);
      this.addVertex([part, 1, 0], [0, 0, tipZ], [c, s, 0], 0);
    }
    for (let a = firstVertex; a < firstVertex + 2 * sides; a += 2) this.index.push(a, a + 1, a + 2);
    return this;
  }

  /** A ring of radius 1 about x, y or z. */
  addRing(part: number, axis: 0 | 1 | 2, width: number, segments: number): this {
    const permute = (p: Triple): Triple => (axis === 2 ? p : axis === 0 ? [p[2], p[0], p[1]] : [p[1], p[2], p[0]]);
    return this.addRibbon(
      part,
      segments,
      () => width,
      (u) => permute([Math.cos(2 * Math.PI * u), Math.sin(2 * Math.PI * u), 0]),
      (u) => permute([-Math.sin(2 * Math.PI * u), Math.cos(2 * Math.PI * u), 0]),
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
  private addVertex(part: Triple, position: Triple, normal: Triple, width: number): void {
    this.positions.push(...position);
    this.normals.push(...normal);
    this.parts.push(...part);
    this.widths.push(width);
  }
}

/**
 * Marker of a rotation: a ring over the drawn range, a needle at the value, a piece of the axis, and optionally stops
 * at the ends of the range and a sector between them.
 */
export function rotationMarker(segments: number, hasLimits: boolean, hasSector: boolean): BufferGeometry {
  const marker = new MarkerGeometry();
  if (hasSector) marker.addSector(ARC, 0.16, segments);
  marker
    .addRibbon(
      ARC,
      segments,
      () => 0.05,
      (u) => [u, 1, 0],
      () => [0, 1, 0],
    )
    .addLine(NEEDLE, [0, 0, 0], [1.14, 0, 0], 0.075, 0.035);
  if (hasLimits)
    for (const stop of [LOW_STOP, HIGH_STOP]) marker.addLine(stop, [0.84, 0, 0], [1.18, 0, 0], 0.05);
  return marker.addLine(FIXED, [0, 0, -0.45], [0, 0, 0.45], 0.05).build();
}

/** Marker of a translation: a rail over the drawn range with end stops, and a carriage with two arrows. */
export function translationMarker(): BufferGeometry {
  const marker = new MarkerGeometry().addLine(RAIL, [0, 0, 0], [0, 0, 1], 0.055);
  for (const end of [LOW_END, HIGH_END])
    marker.addLine(end, [-0.3, 0, 0], [0.3, 0, 0], 0.06).addLine(end, [0, -0.3, 0], [0, 0.3, 0], 0.06);
  marker.addSphere(CARRIAGE, 0.17).addCone(CARRIAGE, 0.35, 0.8, 0.18).addCone(CARRIAGE, -0.35, -0.8, 0.18);
  return marker.build();
}

/** Marker of a spherical joint: a sphere with three rings. */
export function sphericalMarker(segments: number): BufferGeometry {
  const marker = new MarkerGeometry().addSphere(FIXED, 0.3);
  for (const axis of [0, 1, 2] as const) marker.addRing(FIXED, axis, 0.045, segments);
  return marker.build();
}
