// A slider that says when it is taken, where it is held, and when it is let go.
import { el, type Traits } from "./element";

export interface SliderHand {
  take?(): void;
  hold(value: number): void;
  letGo?(): void;
}

export class Slider {
  readonly root: HTMLInputElement;
  private isTaken = false;

  constructor(
    traits: Traits,
    private readonly hand: SliderHand,
  ) {
    this.root = el("input", { ...traits, class: `slider ${traits.class ?? ""}`.trim() });
    this.root.type = "range";
    this.root.step = "any";
    this.root.addEventListener("input", () => {
      this.take();
      this.paint();
      this.hand.hold(this.root.valueAsNumber);
    });
    for (const end of ["change", "pointercancel", "blur"] as const) this.root.addEventListener(end, () => this.letGo());
  }

  range(low: number, high: number, step = 0): void {
    const [min, max] = [String(low), String(Math.max(high, low + 1e-9))];
    if (this.root.min !== min) this.root.min = min;
    if (this.root.max !== max) this.root.max = max;
    this.root.step = step > 0 ? String(step) : "any";
  }

  /** Shows a value, unless a hand is on it. */
  show(value: number): void {
    if (this.isTaken) return;
    const text = String(value);
    if (this.root.value === text) return;
    this.root.value = text;
    this.paint();
  }

  get isHeld(): boolean {
    return this.isTaken;
  }

  /** The part of the track left of the thumb is drawn fuller. */
  private paint(): void {
    const { min, max } = this.root;
    const share = (this.root.valueAsNumber - Number(min)) / (Number(max) - Number(min));
    this.root.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  }

  private take(): void {
    if (this.isTaken) return;
    this.isTaken = true;
    this.hand.take?.();
  }

  private letGo(): void {
    if (!this.isTaken) return;
    this.isTaken = false;
    this.hand.letGo?.();
  }
}
