// The shapes of markers and how they follow the freedom's value: each corner says which part it belongs to. Lines are
// ribbons that always face the eye: two triangles a piece, and as crisp from far away as from near.
import { BufferAttribute, BufferGeometry } from "three";

// what the shader does with a corner (x, y, z)
const FIXED = 0; // stays
const ARC = 1; // at x of the way from the lower to the upper limit, at radius y
const NEEDLE = 2; // turned by the value
const LOW_STOP = 3; // turned by the lower limit; gone where there is none
const HIGH_STOP = 4;
const RAIL = 5; // z from 0 to 1: from the lower to the upper limit
const CARRIAGE = 6; // moved along by the value
const LOW_END = 7; // moved along by the lower limit; gone where there is none
const HIGH_END = 8;

/** `range` of each marker: lower, upper, value (in units of the marker), and its stops: 1 the lower, 2 the upper. */
export const MARKER_VERTEX = `
  attribute vec4 tint, range;
  attribute vec2 part; // which, and how opaque
  attribute float width; // of a ribbon to one side, else 0; then normal is the direction in which it runs
  uniform float opacity;
  varying vec4 shade;
  vec3 turned(vec3 p, float angle) {
    float c = cos(angle), s = sin(angle);
    return vec3(c * p.x - s * p.y, s * p.x + c * p.y, p.z);
  }
  void main() {
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
    // a sector is seen or not, through a body it would only be mist; and a full turn has none
    if (part.y < 1.0 && (opacity < 1.0 || range.w == 0.0)) shown = 0.0;
    mat4 toEye = modelViewMatrix * instanceMatrix;
    vec4 place = toEye * vec4(p * shown, 1.0);
    vec3 along = normalize(mat3(toEye) * n);
    float bright = 1.0;
    if (width != 0.0) {
      vec3 look = projectionMatrix[3][3] == 1.0 ? vec3(0.0, 0.0, -1.0) : normalize(place.xyz);
      vec3 across = cross(along, look);
      float size = length(across);
      if (size > 1e-4) place.xyz += across / size * width * shown * length(toEye[0].xyz);
    } else if (part.y == 1.0) bright = 0.65 + 0.35 * abs(along.z);
    shade = vec4(tint.rgb * bright, tint.a * part.y * opacity);
    gl_Position = projectionMatrix * place;
  }`;

type Triple = [number, number, number];

class Drawing {
  private readonly places: number[] = [];
  private readonly normals: number[] = [];
  private readonly parts: number[] = [];
  private readonly widths: number[] = [];
  private readonly index: number[] = [];

  /** A patch of `across` by `around` cells; without a normal it is flat and unlit. */
  patch(
    part: number,
    alpha: number,
    across: number,
    around: number,
    surface: (u: number, v: number) => { place: Triple; normal: Triple },
  ): this {
    const first = this.widths.length;
    for (let i = 0; i <= across; i++)
      for (let j = 0; j <= around; j++) {
        const { place, normal } = surface(i / across, j / around);
        this.corner(part, alpha, place, normal, 0);
      }
    this.weave(first, across, around);
    return this;
  }

  /** A ribbon along `at`, which runs `towards`; half as wide as `width` says on each side. */
  ribbon(
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
        this.corner(part, 1, at(u), towards(u), side * width(u));
      }
    this.weave(first, pieces, 1);
    return this;
  }

  line(part: number, a: Triple, b: Triple, widthA: number, widthB = widthA): this {
    const towards = [b[0] - a[0], b[1] - a[1], b[2] - a[2]] as Triple;
    const mix = (u: number) => a.map((x, k) => x + (b[k]! - x) * u) as Triple;
    return this.ribbon(
      part,
      1,
      (u) => widthA + (widthB - widthA) * u,
      mix,
      () => towards,
    );
  }

  ball(part: number, radius: number): this {
    return this.patch(part, 1, 4, 7, (u, v) => {
      const [a, b] = [Math.PI * u, 2 * Math.PI * v];
      const normal: Triple = [Math.sin(a) * Math.cos(b), Math.sin(a) * Math.sin(b), Math.cos(a)];
      return { place: normal.map((x) => x * radius) as Triple, normal };
    });
  }

  /** Along z, its tip at `tip`. */
  cone(part: number, foot: number, tip: number, radius: number): this {
    return this.patch(part, 1, 1, 7, (u, v) => {
      const [c, s] = [Math.cos(2 * Math.PI * v), Math.sin(2 * Math.PI * v)];
      return { place: [radius * (1 - u) * c, radius * (1 - u) * s, foot + (tip - foot) * u], normal: [c, s, 0] };
    });
  }

  /** Of radius 1, around x, y or z. */
  ring(part: number, axis: 0 | 1 | 2, width: number, pieces: number): this {
    const turn = (p: Triple): Triple => (axis === 2 ? p : axis === 0 ? [p[2], p[0], p[1]] : [p[1], p[2], p[0]]);
    return this.ribbon(
      part,
      pieces,
      () => width,
      (u) => turn([Math.cos(2 * Math.PI * u), Math.sin(2 * Math.PI * u), 0]),
      (u) => turn([-Math.sin(2 * Math.PI * u), Math.cos(2 * Math.PI * u), 0]),
    );
  }

  done(): BufferGeometry {
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(this.places), 3));
    geometry.setAttribute("normal", new BufferAttribute(new Float32Array(this.normals), 3));
    geometry.setAttribute("part", new BufferAttribute(new Float32Array(this.parts), 2));
    geometry.setAttribute("width", new BufferAttribute(new Float32Array(this.widths), 1));
    geometry.setIndex(this.index);
    return geometry;
  }

  private corner(part: number, alpha: number, place: Triple, normal: Triple, width: number): void {
    this.places.push(...place);
    this.normals.push(...normal);
    this.parts.push(part, alpha);
    this.widths.push(width);
  }

  private weave(first: number, across: number, around: number): void {
    for (let i = 0; i < across; i++)
      for (let j = 0; j < around; j++) {
        const [a, b] = [first + i * (around + 1) + j, first + (i + 1) * (around + 1) + j];
        this.index.push(a, b, a + 1, a + 1, b, b + 1);
      }
  }
}

/** A ring from limit to limit with its sector, a needle at the value, stops, and a stub of the axis. */
export function turnMarker(pieces: number): BufferGeometry {
  return new Drawing()
    .patch(ARC, 0.16, pieces, 1, (u, v) => ({ place: [u, v, 0], normal: [0, 0, 1] }))
    .ribbon(
      ARC,
      pieces,
      () => 0.05,
      (u) => [u, 1, 0],
      () => [0, 1, 0],
    )
    .line(NEEDLE, [0, 0, 0], [1.14, 0, 0], 0.075, 0.035)
    .line(LOW_STOP, [0.84, 0, 0], [1.18, 0, 0], 0.05)
    .line(HIGH_STOP, [0.84, 0, 0], [1.18, 0, 0], 0.05)
    .line(FIXED, [0, 0, -0.45], [0, 0, 0.45], 0.05)
    .done();
}

/** A rail from limit to limit with crossed end stops, and on it a carriage with an arrow each way. */
export function slideMarker(): BufferGeometry {
  const drawing = new Drawing().line(RAIL, [0, 0, 0], [0, 0, 1], 0.055);
  for (const end of [LOW_END, HIGH_END])
    drawing.line(end, [-0.3, 0, 0], [0.3, 0, 0], 0.06).line(end, [0, -0.3, 0], [0, 0.3, 0], 0.06);
  return drawing.ball(CARRIAGE, 0.17).cone(CARRIAGE, 0.35, 0.8, 0.18).cone(CARRIAGE, -0.35, -0.8, 0.18).done();
}

/** A ball in a cage of three rings. */
export function ballMarker(pieces: number): BufferGeometry {
  const drawing = new Drawing().ball(FIXED, 0.3);
  for (const axis of [0, 1, 2] as const) drawing.ring(FIXED, axis, 0.045, pieces);
  return drawing.done();
}
