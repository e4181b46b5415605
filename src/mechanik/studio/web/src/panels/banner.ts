// Banner that is shown while the server cannot be reached.
import { button, el } from "./element";
import type { Store } from "../store";

export class Banner {
  readonly root = el("div", { class: "banner", role: "alert", test: "banner" });
  private wasConnected = false;

  constructor(store: Store) {
    this.root.hidden = true;
    const text = el("span", {});
    this.root.append(text, button("Reload", { test: "reload", click: () => location.reload() }, "reload"));
    store.on("connected", (isConnected) => {
      this.root.hidden = isConnected;
      text.textContent = this.wasConnected
        ? "Connection lost. Reconnecting … If this fails, start the studio again (`mechanik studio` or your program)."
        : "The server does not answer. Start it with `mechanik studio` and open the link that it prints.";
      this.wasConnected ||= isConnected;
    });
  }
}
