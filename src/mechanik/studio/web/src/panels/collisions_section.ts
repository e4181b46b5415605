// Collision settings: ignore, show or avoid, and the clearance.
import { choice, el, line, section, write } from "./element";
import { capitalized } from "./format";
import type { Collisions } from "../messages";
import type { Store } from "../store";

type Mode = Collisions["mode"];

const MODES: [mode: Mode, title: string][] = [
  ["off", "Off"],
  ["show", "Show"],
  ["avoid", "Avoid"],
];
const NO_SHAPES_TEXT = "No link has a collision shape, so collisions cannot be checked.";
const CLEARANCE_TITLE = "Minimum distance between links, and from links to obstacles, mm";

export class CollisionsSection {
  readonly root: HTMLElement;
  private readonly mode: HTMLSelectElement;
  private readonly clearance = el("input", {
    test: "clearance",
    class: "number",
    label: "Clearance in mm",
    title: CLEARANCE_TITLE,
  });
  private readonly clearanceLine: HTMLElement;
  private readonly message = el("p", { class: "quiet", test: "collisions-message" });

  constructor(private readonly store: Store) {
    const options = { test: "collisions", label: "Collisions", title: "Ignore, show or avoid collisions" };
    this.mode = choice(MODES, "show", options, (mode) => this.set({ mode: mode as Mode }));
    this.clearance.type = "text";
    this.clearance.addEventListener("change", () => this.onClearanceTyped());
    this.clearanceLine = line("Clearance, mm", CLEARANCE_TITLE, this.clearance);
    this.root = section("Collisions", line("Collisions", options.title, this.mode), this.clearanceLine, this.message);
    for (const event of ["model", "collisions", "contacts"] as const) store.on(event, () => this.refresh());
    this.refresh();
  }

  private onClearanceTyped(): void {
    const millimetres = Number(this.clearance.value.replace(",", "."));
    const isWrong = this.clearance.value.trim() === "" || !Number.isFinite(millimetres) || millimetres < 0;
    this.clearance.classList.toggle("wrong", isWrong);
    this.clearance.setAttribute("aria-invalid", String(isWrong));
    if (!isWrong) this.set({ clearance: millimetres / 1000 });
  }

  private set(change: Partial<Pick<Collisions, "mode" | "clearance">>): void {
    const settings = this.store.collisions;
    if (!settings) return;
    const request = { do: "SetCollisions", mode: settings.mode, clearance: settings.clearance, ...change } as const;
    void this.store.request(request).then((isAccepted) => {
      if (!isAccepted) this.refresh();
    });
  }

  private refresh(): void {
    const { collisions, contacts, model } = this.store;
    const hasShapes = model?.links.some((link) => link.collisions.length > 0) ?? false;
    this.mode.disabled = !hasShapes;
    this.mode.value = hasShapes ? (collisions?.mode ?? "show") : "off";
    this.clearanceLine.hidden = this.mode.value !== "avoid";
    if (document.activeElement !== this.clearance) {
      this.clearance.value = String(Math.round(1e6 * (collisions?.clearance ?? 0)) / 1000);
      this.clearance.classList.remove("wrong");
    }
    const reason = contacts?.reason ?? "";
    const text = hasShapes ? reason && `${capitalized(reason)}.` : NO_SHAPES_TEXT;
    write(this.message, text);
    this.message.hidden = text === "";
  }
}
