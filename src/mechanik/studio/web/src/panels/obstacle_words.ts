// Which obstacles people can put there, and how one of them comes.
import type { AddObstacle, ObstacleInfo } from "../messages";
import type { Store } from "../store";

export const OBSTACLES: readonly (readonly [kind: AddObstacle["kind"], title: string])[] = [
  ["box", "Box"],
  ["sphere", "Sphere"],
  ["capsule", "Capsule"],
];

/** Add one and select it, so that its handle is at hand. */
export async function addObstacle(store: Store, kind: AddObstacle["kind"]): Promise<void> {
  const known = new Set(store.obstacles.map(({ name }) => name));
  if (!(await store.ask({ do: "AddObstacle", kind }))) return;
  const added = store.obstacles.find(({ name }) => !known.has(name));
  if (added !== undefined) store.select({ kind: "obstacle", obstacle: added.name });
}

/** What can be set of a kind besides its pose, in the order of its sizes: m. */
export const OBSTACLE_SIZES: Partial<Record<ObstacleInfo["kind"], readonly string[]>> = {
  box: ["length x", "length y", "length z"],
  sphere: ["radius"],
  cylinder: ["radius", "length"],
  capsule: ["radius", "length"],
};
