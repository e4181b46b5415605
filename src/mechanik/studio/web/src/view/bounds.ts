// Bounds of the link meshes at their present poses. The transparent mesh of a link counts only without an opaque mesh.
import { Sphere, Vector3 } from "three";
import type { DrawnLink } from "./bodies";

const SAMPLED_VERTICES = 2000; // of a larger mesh, 2000 to 4000 vertices are checked for the lowest point

/** Bounding sphere in the world; null if there are no meshes. */
export function boundingSphere(links: DrawnLink[]): Sphere | null {
  const sphere = new Sphere().makeEmpty();
  const linkSphere = new Sphere();
  for (const body of links) {
    const geometry = (body.opaque ?? body.transparent)?.geometry;
    if (!geometry) continue;
    if (geometry.boundingSphere === null) geometry.computeBoundingSphere();
    linkSphere.copy(geometry.boundingSphere!).applyMatrix4(body.object.matrix);
    if (sphere.isEmpty()) sphere.copy(linkSphere);
    else sphere.union(linkSphere);
  }
  return sphere.isEmpty() ? null : sphere;
}

/** Height (m) along `up` of the lowest point; infinite if there are no meshes. */
export function lowestPoint(links: DrawnLink[], up: Vector3): number {
  let lowest = Infinity;
  const point = new Vector3();
  for (const body of links) {
    const positions = (body.opaque ?? body.transparent)?.geometry.getAttribute("position");
    if (!positions) continue;
    const step = Math.max(1, Math.floor(positions.count / SAMPLED_VERTICES));
    for (let k = 0; k < positions.count; k += step) {
      lowest = Math.min(lowest, point.fromBufferAttribute(positions, k).applyMatrix4(body.object.matrix).dot(up));
    }
  }
  return lowest;
}
