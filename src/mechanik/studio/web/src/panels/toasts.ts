// Messages at the lower edge of the view. Errors stay until they are closed, others disappear.
import { el, iconButton } from "./element";
import type { Changes, Store } from "../store";

const MAX_TOASTS = 4;
const SHOWN_MS = 6000;

export class Toasts {
  readonly root = el("div", { class: "toasts", role: "log", test: "toasts", attributes: { "aria-live": "polite" } });

  constructor(store: Store) {
    store.on("message", (message) => this.show(message));
    store.on("model", () => this.closeErrors()); // they were about the last model
  }

  show({ kind, text }: Changes["message"]): void {
    const same = [...this.root.children].find((shown) => shown.querySelector("p")?.textContent === text);
    same?.remove();
    const toast = el(
      "div",
      { class: `toast is-${kind}`, test: `toast-${kind}`, role: kind === "error" ? "alert" : "status" },
      el("p", {}, text),
    );
    toast.append(iconButton("close", "Close", { click: () => toast.remove() }));
    this.root.append(toast);
    while (this.root.children.length > MAX_TOASTS) this.root.firstElementChild?.remove();
    if (kind !== "error") window.setTimeout(() => toast.remove(), SHOWN_MS + 40 * text.length);
  }

  private closeErrors(): void {
    for (const toast of this.root.querySelectorAll(".is-error")) toast.remove();
  }

  closeAll(): boolean {
    const hadToasts = this.root.children.length > 0;
    this.root.replaceChildren();
    return hadToasts;
  }
}
