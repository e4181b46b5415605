// What a link without a body looks like: a rounded bar from joint to joint, a plate where it holds three or more.
import { BufferAttribute, BufferGeometry, CylinderGeometry, Quaternion, SphereGeometry, Vector3 } from "three";
import type { Model } from "../messages";
import { ball, merged } from "./shapes";

const Y = new Vector3(0, 1, 0); // three's cylinders stand along it

/** Where other links are held on this one, in its frame: its own origin first, no place twice. */
export function holds(model: Model, link: number): Vector3[] {
  const near = 1e-3 * model.radius;
  const places = [new Vector3()];
  const add = (pose: readonly number[]) => {
    const place = new Vector3(pose[0], pose[1], pose[2]);
    if (places.every((other) => other.distanceTo(place) > near)) places.push(place);
  };
  for (const joint of model.joints) if (joint.parent === link) add(joint.pose);
  for (const closure of model.closures) {
    if (closure.link_a === link) add(closure.pose_a);
    if (closure.link_b === link) add(closure.pose_b);
  }
  return places;
}

/** The bone of a link in its frame. thickness: radius of a bar at its thick end, m; round: corners of a circle. */
export function bone(places: Vector3[], thickness: number, round: number): BufferGeometry {
  const origin = places[0]!;
  if (places.length === 1) return ballAt(origin, thickness, round);
  if (places.length === 2) return bar(origin, places[1]!, thickness, 0.72 * thickness, round);
  const edge = hull(places);
  const parts =
    edge === null
      ? places.slice(1).map((place) => bar(origin, place, thickness, 0.72 * thickness, round))
      : rim(edge, thickness, round);
  // a place inside the plate still shows where it is
  if (edge !== null)
    for (const place of places) if (!edge.includes(place)) parts.push(ballAt(place, 0.8 * thickness, round));
  return merged(parts);
}

function ballAt(place: Vector3, radius: number, round: number): BufferGeometry {
  return ball(radius, round).translate(place.x, place.y, place.z);
}

/** A bar with half a ball at each end, thick at `a`. */
function bar(a: Vector3, b: Vector3, thick: number, thin: number, round: number): BufferGeometry {
  const along = b.clone().sub(a);
  const length = along.length();
  const [turn, rows] = [Math.PI / 2, Math.ceil(round / 4)];
  const rod = new CylinderGeometry(thin, thick, length, round, 1, true).translate(0, length / 2, 0);
  const start = new SphereGeometry(thick, round, rows, 0, 4 * turn, turn, turn);
  const end = new SphereGeometry(thin, round, rows, 0, 4 * turn, 0, turn).translate(0, length, 0);
  const way = new Quaternion().setFromUnitVectors(Y, along.normalize());
  return merged([rod, start, end]).applyQuaternion(way).translate(a.x, a.y, a.z);
}

function rim(edge: Vector3[], thickness: number, round: number): BufferGeometry[] {
  const thin = 0.62 * thickness;
  const bars = edge.map((place, k) => bar(place, edge[(k + 1) % edge.length]!, thin, thin, round));
  return [...bars, plate(edge, 0.35 * thickness)];
}

/** The corners of the places around their middle, in order, if they lie in a plane; null otherwise. */
function hull(places: Vector3[]): Vector3[] | null {
  const middle = places.reduce((sum, place) => sum.add(place), new Vector3()).divideScalar(places.length);
  const reach = Math.max(...places.map((place) => place.distanceTo(middle)));
  const from = places.map((place) => place.clone().sub(middle));
  const normal = new Vector3();
  for (const a of from)
    for (const b of from) {
      const cross = a.clone().cross(b);
      if (cross.length() > normal.length()) normal.copy(cross);
    }
  if (normal.length() < 0.02 * reach * reach) return null; // all on a line
  normal.normalize();
  if (from.some((place) => Math.abs(place.dot(normal)) > 0.15 * reach)) return null;
  const u = from
    .reduce((best, place) => (place.length() > best.length() ? place : best))
    .clone()
    .normalize();
  const v = normal.clone().cross(u);
  const flat = places.map((place, k) => ({ place, x: from[k]!.dot(u), y: from[k]!.dot(v) }));
  flat.sort((p, q) => p.x - q.x || p.y - q.y);
  const half = (points: typeof flat) => {
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
  return [...half(flat), ...half(flat.reverse())].map((p) => p.place);
}

/** A flat convex plate of this thickness through the corners. */
function plate(edge: Vector3[], thickness: number): BufferGeometry {
  const [a, b, c] = edge as [Vector3, Vector3, Vector3];
  const normal = b.clone().sub(a).cross(c.clone().sub(a)).normalize();
  const places: number[] = [];
  const normals: number[] = [];
  const index: number[] = [];
  for (const side of [1, -1]) {
    const first = places.length / 3;
    for (const corner of edge) {
      places.push(
        ...corner
          .clone()
          .addScaledVector(normal, side * 0.5 * thickness)
          .toArray(),
      );
      normals.push(...normal.clone().multiplyScalar(side).toArray());
    }
    for (let k = 1; k + 1 < edge.length; k++) {
      if (side > 0) index.push(first, first + k, first + k + 1);
      else index.push(first, first + k + 1, first + k);
    }
  }
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(places), 3));
  geometry.setAttribute("normal", new BufferAttribute(new Float32Array(normals), 3));
  geometry.setIndex(index);
  return geometry;
}
