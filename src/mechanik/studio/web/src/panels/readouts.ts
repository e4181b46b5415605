// Text lines of a scene, over the lower left corner of the view. They describe the solved state and are hidden during
// playback.
import { el, write } from "./element";
import type { Store } from "../store";

export class Readouts {
  readonly root = el("pre", { class: "readouts", test: "readouts" });

  constructor(store: Store) {
    let lines: string[] = [];
    const refresh = (): void => {
      this.root.hidden = lines.length === 0 || store.recording?.state === "playing";
      write(this.root, lines.join("\n"));
    };
    store.on("statusText", ({ readouts }) => {
      lines = readouts;
      refresh();
    });
    store.on("recording", refresh);
    store.on("model", () => {
      lines = [];
      refresh();
    });
    refresh();
  }
}
