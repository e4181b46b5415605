// How far bodies reach, where they stand now.
import { Sphere, Vector3 } from "three";
import type { Body } from "./bodies";

const ENOUGH = 2000; // corners of a body that are looked at to find its lowest

/** A ball around these; null when there is nothing to see of them. */
export function ballAround(links: Body[]): Sphere | null {
  const whole = new Sphere().makeEmpty();
  const part = new Sphere();
  for (const body of links) {
    const geometry = (body.solid ?? body.glass)?.geometry;
    if (!geometry) continue;
    if (geometry.boundingSphere === null) geometry.computeBoundingSphere();
    part.copy(geometry.boundingSphere!).applyMatrix4(body.object.matrix);
    if (whole.isEmpty()) whole.copy(part);
    else whole.union(part);
  }
  return whole.isEmpty() ? null : whole;
}

/** The lowest point along `up`; infinite when there is nothing. */
export function lowest(links: Body[], up: Vector3): number {
  let low = Infinity;
  const point = new Vector3();
  for (const body of links) {
    const places = (body.solid ?? body.glass)?.geometry.getAttribute("position");
    if (!places) continue;
    const step = Math.max(1, Math.floor(places.count / ENOUGH));
    for (let k = 0; k < places.count; k += step) {
      low = Math.min(low, point.fromBufferAttribute(places, k).applyMatrix4(body.object.matrix).dot(up));
    }
  }
  return low;
}
