// Lines that a scene wants on the screen, over the lower left of the view.
import { el, write } from "./element";
import type { Store } from "../store";

export class ReadOut {
  readonly root = el("pre", { class: "read-out", test: "read-out" });

  constructor(store: Store) {
    this.root.hidden = true;
    store.on("words", ({ read_out }) => {
      this.root.hidden = read_out.length === 0;
      write(this.root, read_out.join("\n"));
    });
    store.on("model", () => (this.root.hidden = true));
  }
}
