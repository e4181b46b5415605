// What is said when the server is gone.
import { button, el } from "./element";
import type { Store } from "../store";

export class Banner {
  readonly root = el("div", { class: "banner", role: "alert", test: "banner" });
  private wasConnected = false;

  constructor(store: Store) {
    this.root.hidden = true;
    const words = el("span", {});
    this.root.append(words, button("Reload", { test: "reload", click: () => location.reload() }, "reload"));
    store.on("connected", (isConnected) => {
      this.root.hidden = isConnected;
      words.textContent = this.wasConnected
        ? "The connection is lost, and is being tried again. If it does not come back, start the studio again."
        : "The studio's server does not answer. Start it with `mechanik studio` and open the link it prints.";
      this.wasConnected ||= isConnected;
    });
  }
}
