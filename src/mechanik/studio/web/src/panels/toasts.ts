// Messages at the lower edge of the view. Errors remain until they are closed, a model is loaded or newer messages
// replace them; other messages disappear after some seconds.
import { el, iconButton } from "./element";
import type { Changes, Store } from "../store";

const MAX_TOASTS = 4;
const MIN_SHOWN_MS = 6000; // plus 40 ms for each character

export class Toasts {
  readonly root = el("div", { class: "toasts", role: "log", test: "toasts", attributes: { "aria-live": "polite" } });

  constructor(store: Store) {
    store.on("message", (message) => this.show(message));
    store.on("model", () => this.closeErrors()); // they refer to the previous model
  }

  show({ kind, text }: Changes["message"]): void {
    const duplicate = [...this.root.children].find((toast) => toast.querySelector("p")?.textContent === text);
    duplicate?.remove();
    const toast = el(
      "div",
      { class: `toast is-${kind}`, test: `toast-${kind}`, role: kind === "error" ? "alert" : "status" },
      el("p", {}, text),
    );
    toast.append(iconButton("close", "Close", { click: () => toast.remove() }));
    this.root.append(toast);
    while (this.root.children.length > MAX_TOASTS) this.root.firstElementChild?.remove();
    if (kind !== "error") window.setTimeout(() => toast.remove(), MIN_SHOWN_MS + 40 * text.length);
  }

  private closeErrors(): void {
    for (const toast of this.root.querySelectorAll(".is-error")) toast.remove();
  }

  /** Closes all messages; returns whether there were any. */
  closeAll(): boolean {
    const hadToasts = this.root.children.length > 0;
    this.root.replaceChildren();
    return hadToasts;
  }
}
