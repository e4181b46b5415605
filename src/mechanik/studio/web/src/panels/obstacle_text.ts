// Kinds of obstacles that the user can add, the request that adds one, and the names of the sizes of obstacles.
import type { AddObstacle, ObstacleInfo } from "../messages";
import type { Store } from "../store";

export const OBSTACLE_KINDS: readonly (readonly [kind: AddObstacle["kind"], title: string])[] = [
  ["box", "Box"],
  ["sphere", "Sphere"],
  ["capsule", "Capsule"],
];

/** Adds an obstacle and selects it to show its handle. */
export async function addObstacle(store: Store, kind: AddObstacle["kind"]): Promise<void> {
  const previousNames = new Set(store.obstacles.map(({ name }) => name));
  if (!(await store.request({ do: "AddObstacle", kind }))) return;
  const newObstacle = store.obstacles.find(({ name }) => !previousNames.has(name));
  if (newObstacle !== undefined) store.select({ kind: "obstacle", obstacle: newObstacle.name });
}

/** Names of the sizes of each kind, in the order of `ShapeInfo.sizes`; the sizes are in m. */
export const OBSTACLE_SIZES: Partial<Record<ObstacleInfo["kind"], readonly string[]>> = {
  box: ["length x", "length y", "length z"],
  sphere: ["radius"],
  cylinder: ["radius", "length"],
  capsule: ["radius", "length"],
};
