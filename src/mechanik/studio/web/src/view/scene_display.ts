// Initial display settings of a scene.
import type { Scene } from "../messages";
import type { Store } from "../store";

/**
 * Returns a function that applies the display settings of a new scene and returns whether they have changed. The
 * settings are not stored, in contrast to `store.setDisplay`.
 */
export function sceneDisplay(store: Store): (scene: Scene) => boolean {
  let lastName = "";
  return ({ name, shows_collisions: showsCollisions }) => {
    const isNewScene = name !== lastName;
    lastName = name;
    if (!isNewScene || showsCollisions === store.display.collisions) return false;
    store.display = { ...store.display, collisions: showsCollisions };
    store.emit("display", store.display);
    return true;
  };
}
