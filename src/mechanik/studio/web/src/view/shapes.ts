// Triangle meshes of boxes, spheres, cylinders and capsules, with small chamfers that make edges visible, and functions
// that prepare and merge meshes.
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
import { circleSegments, icosahedronSubdivisions, isMany } from "./tessellation";

const CHAMFER = 0.12; // size of a chamfer, as a share of the radius or the length of a cylinder, whichever is smaller
const MIN_VISIBLE_CHAMFER = 0.006; // in radii of the model; smaller chamfers are not drawn
const MIN_THICKNESS = 1e-6; // m; a flat body is drawn with this thickness

/** The shape in its own frame; null for a mesh, which must be fetched. */
export function primitiveGeometry(shape: ShapeInfo, { radius: modelRadius, links }: Model): BufferGeometry | null {
  const [a = 1, b = a, c = a] = shape.sizes.map((size) => Math.max(Math.abs(size), MIN_THICKNESS));
  const isCoarse = isMany(links.length);
  const segments = circleSegments(a / modelRadius, isCoarse);
  switch (shape.kind) {
    case "box":
      return isCoarse ? stripAttributes(new BoxGeometry(a, b, c)) : boxGeometry(a, b, c);
    case "sphere":
      return sphereGeometry(a, segments);
    case "cylinder": {
      const isSharp = isCoarse || CHAMFER * Math.min(a, b) < MIN_VISIBLE_CHAMFER * modelRadius;
      return isSharp
        ? stripAttributes(new CylinderGeometry(a, a, b, segments).rotateX(Math.PI / 2))
        : cylinderGeometry(a, b, segments);
    }
    case "capsule":
      return stripAttributes(new CapsuleGeometry(a, b, Math.round(segments / 4.4), segments).rotateX(Math.PI / 2));
    case "mesh":
      return null;
  }
}

/** A sphere with triangles of similar size: half as many as with meridians. segments: segments of its outline. */
export function sphereGeometry(radius: number, segments: number): BufferGeometry {
  const sphere = new IcosahedronGeometry(radius, Math.max(1, icosahedronSubdivisions(segments))).deleteAttribute("uv");
  return stripAttributes(mergeVertices(sphere, 1e-4 * radius));
}

export function boxGeometry(x: number, y: number, z: number): BufferGeometry {
  return stripAttributes(new RoundedBoxGeometry(x, y, z, 1, 0.08 * Math.min(x, y, z)));
}

/** A cylinder along z with chamfers. */
export function cylinderGeometry(radius: number, length: number, segments: number): BufferGeometry {
  const chamfer = CHAMFER * Math.min(radius, length);
  const halfLength = length / 2 - chamfer; // without chamfers
  const parts = [
    new CylinderGeometry(radius, radius, 2 * halfLength, segments, 1, true),
    new CylinderGeometry(radius - chamfer, radius, chamfer, segments, 1, true)
      .translate(0, halfLength + chamfer / 2, 0),
    new CylinderGeometry(radius, radius - chamfer, chamfer, segments, 1, true)
      .translate(0, -halfLength - chamfer / 2, 0),
    new CircleGeometry(radius - chamfer, segments).rotateX(-Math.PI / 2).translate(0, length / 2, 0),
    new CircleGeometry(radius - chamfer, segments).rotateX(Math.PI / 2).translate(0, -length / 2, 0),
  ];
  return mergeAll(parts).rotateX(Math.PI / 2);
}

/** Merges geometries with the same attributes and disposes the parts. */
export function mergeAll(parts: BufferGeometry[]): BufferGeometry {
  const merged = mergeGeometries(parts.map(stripAttributes));
  for (const part of parts) part.dispose();
  return merged ?? new BufferGeometry();
}

/** Removes attributes that are not drawn; adds normals and an index if there are none. */
export function stripAttributes(geometry: BufferGeometry): BufferGeometry {
  for (const name of Object.keys(geometry.attributes)) {
    if (name !== "position" && name !== "normal" && name !== "color") geometry.deleteAttribute(name);
  }
  geometry.morphAttributes = {};
  if (!geometry.getAttribute("normal")) geometry.computeVertexNormals();
  return withIndex(geometry);
}

/** Adds an index if there is none. */
export function withIndex(geometry: BufferGeometry): BufferGeometry {
  if (!geometry.index) {
    const count = geometry.getAttribute("position").count;
    const index = new Uint32Array(count);
    for (let k = 0; k < count; k++) index[k] = k;
    geometry.setIndex(new BufferAttribute(index, 1));
  }
  return geometry;
}

/** Reverses the orientation of the triangles, after a reflection. */
export function flipTriangles(geometry: BufferGeometry): BufferGeometry {
  const index = geometry.index!.array;
  for (let k = 0; k + 2 < index.length; k += 3) {
    const second = index[k + 1]!;
    index[k + 1] = index[k + 2]!;
    index[k + 2] = second;
  }
  return geometry;
}
