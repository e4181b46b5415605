// Boxes, balls, cylinders and capsules as triangles, with edges broken a little so that light catches them.
import {
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  CapsuleGeometry,
  CircleGeometry,
  CylinderGeometry,
  IcosahedronGeometry,
} from "three";
import { RoundedBoxGeometry } from "three/addons/geometries/RoundedBoxGeometry.js";
import { mergeGeometries, mergeVertices } from "three/addons/utils/BufferGeometryUtils.js";
import type { Model, ShapeInfo } from "../messages";
import { corners, cuts, isMany } from "./corners";

const BROKEN = 0.12; // of a cylinder's radius or length: how wide its broken edges are
const SEEN = 0.006; // of the model's radius: narrower edges would not be seen
const LEAST = 1e-6; // m; a flat body is drawn as a thin one

/** The body in its own frame; null for a mesh, which has to be fetched. */
export function solid(shape: ShapeInfo, { radius: whole, links }: Model): BufferGeometry | null {
  const [a = 1, b = a, c = a] = shape.sizes.map((size) => Math.max(Math.abs(size), LEAST));
  const isPlain = isMany(links.length);
  const round = corners(a / whole, isPlain);
  switch (shape.kind) {
    case "box":
      return isPlain ? bare(new BoxGeometry(a, b, c)) : box(a, b, c);
    case "sphere":
      return ball(a, round);
    case "cylinder": {
      const isSharp = isPlain || BROKEN * Math.min(a, b) < SEEN * whole;
      return isSharp ? bare(new CylinderGeometry(a, a, b, round).rotateX(Math.PI / 2)) : cylinder(a, b, round);
    }
    case "capsule":
      return bare(new CapsuleGeometry(a, b, Math.round(round / 4.4), round).rotateX(Math.PI / 2));
    case "mesh":
      return null;
  }
}

/** With triangles of one size everywhere: half as many as between meridians. round: corners of its outline. */
export function ball(radius: number, round: number): BufferGeometry {
  const whole = new IcosahedronGeometry(radius, Math.max(1, cuts(round))).deleteAttribute("uv");
  return bare(mergeVertices(whole, 1e-4 * radius));
}

export function box(x: number, y: number, z: number): BufferGeometry {
  return bare(new RoundedBoxGeometry(x, y, z, 1, 0.08 * Math.min(x, y, z)));
}

/** Along z, with broken edges. */
export function cylinder(radius: number, length: number, round: number): BufferGeometry {
  const edge = BROKEN * Math.min(radius, length);
  const half = length / 2 - edge;
  const parts = [
    new CylinderGeometry(radius, radius, 2 * half, round, 1, true),
    new CylinderGeometry(radius - edge, radius, edge, round, 1, true).translate(0, half + edge / 2, 0),
    new CylinderGeometry(radius, radius - edge, edge, round, 1, true).translate(0, -half - edge / 2, 0),
    new CircleGeometry(radius - edge, round).rotateX(-Math.PI / 2).translate(0, length / 2, 0),
    new CircleGeometry(radius - edge, round).rotateX(Math.PI / 2).translate(0, -length / 2, 0),
  ];
  return merged(parts).rotateX(Math.PI / 2);
}

/** One geometry of many; they need the same attributes. */
export function merged(parts: BufferGeometry[]): BufferGeometry {
  const whole = mergeGeometries(parts.map(bare));
  for (const part of parts) part.dispose();
  return whole ?? new BufferGeometry();
}

/** Only what is drawn here: places, normals, colours, and an index. */
export function bare(geometry: BufferGeometry): BufferGeometry {
  for (const name of Object.keys(geometry.attributes)) {
    if (name !== "position" && name !== "normal" && name !== "color") geometry.deleteAttribute(name);
  }
  geometry.morphAttributes = {};
  if (!geometry.getAttribute("normal")) geometry.computeVertexNormals();
  return indexed(geometry);
}

/** With an index, if it has none: every corner by itself. */
export function indexed(geometry: BufferGeometry): BufferGeometry {
  if (!geometry.index) {
    const count = geometry.getAttribute("position").count;
    const index = new Uint32Array(count);
    for (let k = 0; k < count; k++) index[k] = k;
    geometry.setIndex(new BufferAttribute(index, 1));
  }
  return geometry;
}

/** Turn the triangles inside out: what a mirror does to them has to be undone. */
export function flip(geometry: BufferGeometry): BufferGeometry {
  const index = geometry.index!.array;
  for (let k = 0; k + 2 < index.length; k += 3) {
    const second = index[k + 1]!;
    index[k + 1] = index[k + 2]!;
    index[k + 2] = second;
  }
  return geometry;
}
