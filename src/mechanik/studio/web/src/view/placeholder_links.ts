// Placeholder of a link without visual shapes: a bar between two joints, or a plate for three or more joints.
import { BufferAttribute, BufferGeometry, CylinderGeometry, Quaternion, SphereGeometry, Vector3 } from "three";
import type { Model } from "../messages";
import { sphereGeometry, mergeAll } from "./shapes";

const Y = new Vector3(0, 1, 0); // axis of cylinders in three.js

/** Positions of the joints on a link, in its frame: the origin first, without duplicates. */
export function jointPositions(model: Model, link: number): Vector3[] {
  const tolerance = 1e-3 * model.radius;
  const positions = [new Vector3()];
  const add = (pose: readonly number[]) => {
    const position = new Vector3(pose[0], pose[1], pose[2]);
    if (positions.every((previous) => previous.distanceTo(position) > tolerance)) positions.push(position);
  };
  for (const joint of model.joints) if (joint.parent === link) add(joint.pose);
  for (const closure of model.closures) {
    if (closure.link_a === link) add(closure.pose_a);
    if (closure.link_b === link) add(closure.pose_b);
  }
  return positions;
}

/** The placeholder in the frame of the link. thickness: radius of a bar at its thick end, m; segments: per circle. */
export function placeholder(positions: Vector3[], thickness: number, segments: number): BufferGeometry {
  const origin = positions[0]!;
  if (positions.length === 1) return sphereAt(origin, thickness, segments);
  if (positions.length === 2) return bar(origin, positions[1]!, thickness, 0.72 * thickness, segments);
  const outline = hull(positions);
  const parts =
    outline === null
      ? positions.slice(1).map((place) => bar(origin, place, thickness, 0.72 * thickness, segments))
      : rim(outline, thickness, segments);
  // a sphere shows each joint inside the plate
  if (outline !== null)
    for (const place of positions) if (!outline.includes(place)) parts.push(sphereAt(place, 0.8 * thickness, segments));
  return mergeAll(parts);
}

function sphereAt(position: Vector3, radius: number, segments: number): BufferGeometry {
  return sphereGeometry(radius, segments).translate(position.x, position.y, position.z);
}

/** A bar with rounded ends, thick at `a`. */
function bar(a: Vector3, b: Vector3, thick: number, thin: number, segments: number): BufferGeometry {
  const along = b.clone().sub(a);
  const length = along.length();
  const [quarter, rows] = [Math.PI / 2, Math.ceil(segments / 4)];
  const rod = new CylinderGeometry(thin, thick, length, segments, 1, true).translate(0, length / 2, 0);
  const start = new SphereGeometry(thick, segments, rows, 0, 4 * quarter, quarter, quarter);
  const end = new SphereGeometry(thin, segments, rows, 0, 4 * quarter, 0, quarter).translate(0, length, 0);
  const rotation = new Quaternion().setFromUnitVectors(Y, along.normalize());
  return mergeAll([rod, start, end]).applyQuaternion(rotation).translate(a.x, a.y, a.z);
}

function rim(outline: Vector3[], thickness: number, segments: number): BufferGeometry[] {
  const thin = 0.62 * thickness;
  const bars = outline.map((place, k) => bar(place, outline[(k + 1) % outline.length]!, thin, thin, segments));
  return [...bars, plate(outline, 0.35 * thickness)];
}

/** The convex hull of the positions, in order, if they are in a plane; null otherwise. */
function hull(positions: Vector3[]): Vector3[] | null {
  const middle = positions.reduce((sum, place) => sum.add(place), new Vector3()).divideScalar(positions.length);
  const reach = Math.max(...positions.map((place) => place.distanceTo(middle)));
  const offsets = positions.map((place) => place.clone().sub(middle));
  const normal = new Vector3();
  for (const a of offsets)
    for (const b of offsets) {
      const cross = a.clone().cross(b);
      if (cross.length() > normal.length()) normal.copy(cross);
    }
  if (normal.length() < 0.02 * reach * reach) return null; // all on a line
  normal.normalize();
  if (offsets.some((place) => Math.abs(place.dot(normal)) > 0.15 * reach)) return null;
  const u = offsets
    .reduce((best, place) => (place.length() > best.length() ? place : best))
    .clone()
    .normalize();
  const v = normal.clone().cross(u);
  const flat = positions.map((place, k) => ({ place, x: offsets[k]!.dot(u), y: offsets[k]!.dot(v) }));
  flat.sort((p, q) => p.x - q.x || p.y - q.y);
  const halfHull = (points: typeof flat) => {
    const chain: typeof flat = [];
    for (const p of points) {
      while (chain.length > 1) {
        const [a, b] = [chain.at(-2)!, chain.at(-1)!];
        if ((b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x) > 0) break;
        chain.pop();
      }
      chain.push(p);
    }
    return chain.slice(0, -1);
  };
  return [...halfHull(flat), ...halfHull(flat.reverse())].map((p) => p.place);
}

/** A flat convex plate. */
function plate(outline: Vector3[], thickness: number): BufferGeometry {
  const [a, b, c] = outline as [Vector3, Vector3, Vector3];
  const normal = b.clone().sub(a).cross(c.clone().sub(a)).normalize();
  const vertices: number[] = [];
  const normals: number[] = [];
  const index: number[] = [];
  for (const side of [1, -1]) {
    const first = vertices.length / 3;
    for (const corner of outline) {
      vertices.push(
        ...corner
          .clone()
          .addScaledVector(normal, side * 0.5 * thickness)
          .toArray(),
      );
      normals.push(...normal.clone().multiplyScalar(side).toArray());
    }
    for (let k = 1; k + 1 < outline.length; k++) {
      if (side > 0) index.push(first, first + k, first + k + 1);
      else index.push(first, first + k + 1, first + k);
    }
  }
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(vertices), 3));
  geometry.setAttribute("normal", new BufferAttribute(new Float32Array(normals), 3));
  geometry.setIndex(index);
  return geometry;
}
