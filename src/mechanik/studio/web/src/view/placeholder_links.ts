// Placeholder of a link without visual shapes: a sphere for one joint position, a bar for two, and a plate or bars for
// three or more.
import { BufferAttribute, BufferGeometry, CylinderGeometry, Quaternion, SphereGeometry, Vector3 } from "three";
import type { Model } from "../messages";
import { sphereGeometry, mergeAll } from "./shapes";

const Y = new Vector3(0, 1, 0); // axis of cylinders in three.js

/** Origin, joint positions and closure points of a link, in its frame, without duplicates; the origin is first. */
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

/** The placeholder in the frame of the link. radius: of a bar at its thick end, m; segments: per circle. */
export function placeholder(positions: Vector3[], radius: number, segments: number): BufferGeometry {
  const origin = positions[0]!;
  if (positions.length === 1) return sphereAt(origin, radius, segments);
  if (positions.length === 2) return bar(origin, positions[1]!, radius, 0.72 * radius, segments);
  const outline = hull(positions);
  const parts =
    outline === null
      ? positions.slice(1).map((position) => bar(origin, position, radius, 0.72 * radius, segments))
      : plateWithBars(outline, radius, segments);
  // a sphere shows each joint inside the plate
  if (outline !== null)
    for (const position of positions)
      if (!outline.includes(position)) parts.push(sphereAt(position, 0.8 * radius, segments));
  return mergeAll(parts);
}

function sphereAt(position: Vector3, radius: number, segments: number): BufferGeometry {
  return sphereGeometry(radius, segments).translate(position.x, position.y, position.z);
}

/** A bar with rounded ends from `a` to `b`, with these radii at its ends, m. */
function bar(a: Vector3, b: Vector3, radiusA: number, radiusB: number, segments: number): BufferGeometry {
  const direction = b.clone().sub(a);
  const length = direction.length();
  const [quarter, rows] = [Math.PI / 2, Math.ceil(segments / 4)];
  const rod = new CylinderGeometry(radiusB, radiusA, length, segments, 1, true).translate(0, length / 2, 0);
  const start = new SphereGeometry(radiusA, segments, rows, 0, 4 * quarter, quarter, quarter);
  const end = new SphereGeometry(radiusB, segments, rows, 0, 4 * quarter, 0, quarter).translate(0, length, 0);
  const rotation = new Quaternion().setFromUnitVectors(Y, direction.normalize());
  return mergeAll([rod, start, end]).applyQuaternion(rotation).translate(a.x, a.y, a.z);
}

/** A plate with bars along its edges. radius: of a bar of the link, m. */
function plateWithBars(outline: Vector3[], radius: number, segments: number): BufferGeometry[] {
  const edgeRadius = 0.62 * radius;
  const bars = outline.map((position, k) =>
    bar(position, outline[(k + 1) % outline.length]!, edgeRadius, edgeRadius, segments),
  );
  return [...bars, plate(outline, 0.35 * radius)];
}

/** The convex hull of positions that are nearly in a plane, in order; null for other positions and for a line. */
function hull(positions: Vector3[]): Vector3[] | null {
  const centre = positions.reduce((sum, position) => sum.add(position), new Vector3()).divideScalar(positions.length);
  const reach = Math.max(...positions.map((position) => position.distanceTo(centre)));
  const offsets = positions.map((position) => position.clone().sub(centre));
  const normal = new Vector3();
  for (const a of offsets)
    for (const b of offsets) {
      const cross = a.clone().cross(b);
      if (cross.length() > normal.length()) normal.copy(cross);
    }
  if (normal.length() < 0.02 * reach * reach) return null; // nearly on a line
  normal.normalize();
  if (offsets.some((position) => Math.abs(position.dot(normal)) > 0.15 * reach)) return null;
  const u = offsets
    .reduce((best, position) => (position.length() > best.length() ? position : best))
    .clone()
    .normalize();
  const v = normal.clone().cross(u);
  const flatPoints = positions.map((position, k) => ({ position, x: offsets[k]!.dot(u), y: offsets[k]!.dot(v) }));
  flatPoints.sort((p, q) => p.x - q.x || p.y - q.y);
  const halfHull = (points: typeof flatPoints) => {
    const chain: typeof flatPoints = [];
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
  return [...halfHull(flatPoints), ...halfHull(flatPoints.reverse())].map((p) => p.position);
}

/** The upper and the lower face of a flat convex plate. outline: corners in order; thickness: m. */
function plate(outline: Vector3[], thickness: number): BufferGeometry {
  const [a, b, c] = outline as [Vector3, Vector3, Vector3];
  const normal = b.clone().sub(a).cross(c.clone().sub(a)).normalize();
  const vertices: number[] = [];
  const normals: number[] = [];
  const index: number[] = [];
  for (const side of [1, -1]) {
    const firstVertex = vertices.length / 3;
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
      if (side > 0) index.push(firstVertex, firstVertex + k, firstVertex + k + 1);
      else index.push(firstVertex, firstVertex + k + 1, firstVertex + k);
    }
  }
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(vertices), 3));
  geometry.setAttribute("normal", new BufferAttribute(new Float32Array(normals), 3));
  geometry.setIndex(index);
  return geometry;
}
