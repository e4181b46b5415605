// Collisions: whether what bumps is shown, or avoided as well, and how far links keep off then.
import { choice, el, line, section, write } from "./element";
import { capital } from "./format";
import type { Collisions } from "../messages";
import type { Store } from "../store";

type Mode = Collisions["mode"];

const MODES: [mode: Mode, title: string][] = [
  ["off", "Off"],
  ["show", "Show"],
  ["avoid", "Avoid"],
];
const NOTHING = "Nothing here has a shape to bump with.";

export class CollisionsSection {
  readonly root: HTMLElement;
  private readonly mode: HTMLSelectElement;
  private readonly clearance = el("input", {
    test: "clearance",
    class: "number",
    label: "Clearance in mm",
    title: "How far links keep off each other and off obstacles",
  });
  private readonly room: HTMLElement;
  private readonly said = el("p", { class: "quiet", test: "collisions-said" });

  constructor(private readonly store: Store) {
    const traits = { test: "collisions", label: "Collisions", title: "What is done about what bumps" };
    this.mode = choice(MODES, "show", traits, (mode) => this.set({ mode: mode as Mode }));
    this.clearance.type = "text";
    this.clearance.addEventListener("change", () => this.typed());
    this.room = line("Clearance, mm", "How far links keep off", this.clearance);
    this.root = section("Collisions", line("Collisions", traits.title, this.mode), this.room, this.said);
    for (const news of ["model", "collisions", "clashes"] as const) store.on(news, () => this.paint());
    this.paint();
  }

  private typed(): void {
    const millimetres = Number(this.clearance.value.replace(",", "."));
    const isWrong = this.clearance.value.trim() === "" || !Number.isFinite(millimetres) || millimetres < 0;
    this.clearance.classList.toggle("wrong", isWrong);
    this.clearance.setAttribute("aria-invalid", String(isWrong));
    if (!isWrong) this.set({ clearance: millimetres / 1000 });
  }

  private set(change: Partial<Pick<Collisions, "mode" | "clearance">>): void {
    const now = this.store.collisions;
    if (!now) return;
    const request = { do: "SetCollisions", mode: now.mode, clearance: now.clearance, ...change } as const;
    void this.store.ask(request).then((isDone) => {
      if (!isDone) this.paint();
    });
  }

  private paint(): void {
    const { collisions, clashes, model } = this.store;
    const isPossible = model?.links.some((link) => link.collisions.length > 0) ?? false;
    this.mode.disabled = !isPossible;
    this.mode.value = isPossible ? (collisions?.mode ?? "show") : "off";
    this.room.hidden = this.mode.value !== "avoid";
    if (document.activeElement !== this.clearance) {
      this.clearance.value = String(Math.round(1e6 * (collisions?.clearance ?? 0)) / 1000);
      this.clearance.classList.remove("wrong");
    }
    const why = clashes?.reason ?? "";
    const text = isPossible ? why && `${capital(why)}.` : NOTHING;
    write(this.said, text);
    this.said.hidden = text === "";
  }
}
