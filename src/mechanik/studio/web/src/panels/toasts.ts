// Words for the person, at the lower edge of the view. Errors stay until they are closed; the rest goes by itself.
import { el, iconButton } from "./element";
import type { Changes, Store } from "../store";

const MOST = 4;
const STAYS = 6000; // ms

export class Toasts {
  readonly root = el("div", { class: "toasts", role: "log", test: "toasts", attributes: { "aria-live": "polite" } });

  constructor(store: Store) {
    store.on("message", (message) => this.say(message));
    store.on("model", () => this.forgetErrors()); // they were about what stood there before
  }

  say({ kind, text }: Changes["message"]): void {
    const same = [...this.root.children].find((one) => one.querySelector("p")?.textContent === text);
    same?.remove();
    const toast = el(
      "div",
      { class: `toast is-${kind}`, test: `toast-${kind}`, role: kind === "error" ? "alert" : "status" },
      el("p", {}, text),
    );
    toast.append(iconButton("close", "Close", { click: () => toast.remove() }));
    this.root.append(toast);
    while (this.root.children.length > MOST) this.root.firstElementChild?.remove();
    if (kind !== "error") window.setTimeout(() => toast.remove(), STAYS + 40 * text.length);
  }

  private forgetErrors(): void {
    for (const toast of this.root.querySelectorAll(".is-error")) toast.remove();
  }

  closeAll(): boolean {
    const wereThere = this.root.children.length > 0;
    this.root.replaceChildren();
    return wereThere;
  }
}
