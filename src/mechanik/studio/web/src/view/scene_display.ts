// What a scene wants to be drawn as it begins.
import type { Scene } from "../messages";
import type { Store } from "../store";

/** Told each scene that comes; tells whether the display is another one now, as it is when a scene begins that is about
 * colliders. It is not kept for other times: `store.show` would. */
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
