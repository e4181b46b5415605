// Kinds of obstacles that can be added, and their sizes.
import type { AddObstacle, ObstacleInfo } from "../messages";
import type { Store } from "../store";

export const OBSTACLES: readonly (readonly [kind: AddObstacle["kind"], title: string])[] = [
  ["box", "Box"],
  ["sphere", "Sphere"],
  ["capsule", "Capsule"],
];

/** Adds an obstacle and selects it, so that its handle is shown. */
export async function addObstacle(store: Store, kind: AddObstacle["kind"]): Promise<void> {
  const known = new Set(store.obstacles.map(({ name }) => name));
  if (!(await store.request({ do: "AddObstacle", kind }))) return;
  const added = store.obstacles.find(({ name }) => !known.has(name));
  if (added !== undefined) store.select({ kind: "obstacle", obstacle: added.name });
}

/** Names of the sizes of a kind, in the order of `ShapeInfo.sizes`, m. */
export const OBSTACLE_SIZES: Partial<Record<ObstacleInfo["kind"], readonly string[]>> = {
  box: ["length x", "length y", "length z"],
  sphere: ["radius"],
  cylinder: ["radius", "length"],
  capsule: ["radius", "length"],
};
