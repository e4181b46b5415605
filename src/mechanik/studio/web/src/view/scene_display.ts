// Display settings that a scene starts with.
import type { Scene } from "../messages";
import type { Store } from "../store";

/**
 * A function that applies the display settings of a scene when it starts, and returns whether they have changed. They
 * are not stored, as `store.setDisplay` would do.
 */
export function sceneDisplay(store: Store): (scene: Scene) => boolean {
  let last = "";
  return ({ name, shows_collisions: collisions }) => {
    const begins = name !== last;
    last = name;
    if (!begins || collisions === store.display.collisions) return false;
    store.display = { ...store.display, collisions };
    store.emit("display", store.display);
    return true;
  };
}
