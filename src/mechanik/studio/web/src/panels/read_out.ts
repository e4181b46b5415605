// Lines that a scene wants on the screen, over the lower left of the view. They are of what is
// solved, so they leave while a recording plays.
import { el, write } from "./element";
import type { Store } from "../store";

export class ReadOut {
  readonly root = el("pre", { class: "read-out", test: "read-out" });

  constructor(store: Store) {
    let lines: string[] = [];
    const paint = (): void => {
      this.root.hidden = lines.length === 0 || store.recording?.state === "playing";
      write(this.root, lines.join("\n"));
    };
    store.on("words", ({ readouts: read_out }) => {
      lines = read_out;
      paint();
    });
    store.on("recording", paint);
    store.on("model", () => {
      lines = [];
      paint();
    });
    paint();
  }
}
