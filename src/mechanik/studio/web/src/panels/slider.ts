// Slider with events for the start, the changes and the end of a drag; an arrow key is a drag with one change.
import { el, type ElementOptions } from "./element";

export interface SliderListener {
  start?(): void;
  drag(value: number): void;
  end?(): void;
}

export class Slider {
  readonly root: HTMLInputElement;
  private isDragged = false;

  constructor(
    options: ElementOptions,
    private readonly listener: SliderListener,
  ) {
    this.root = el("input", { ...options, class: `slider ${options.class ?? ""}`.trim() });
    this.root.type = "range";
    this.root.step = "any";
    this.root.addEventListener("input", () => {
      this.start();
      this.fillTrack();
      this.listener.drag(this.root.valueAsNumber);
    });
    for (const name of ["change", "pointercancel", "blur"] as const) this.root.addEventListener(name, () => this.end());
  }

  /** Sets the range; step 0: continuous. */
  setRange(low: number, high: number, step = 0): void {
    const [min, max] = [String(low), String(Math.max(high, low + 1e-9))];
    if (this.root.min !== min) this.root.min = min;
    if (this.root.max !== max) this.root.max = max;
    this.root.step = step > 0 ? String(step) : "any";
  }

  /** Shows a value, unless the user is dragging the slider. */
  show(value: number): void {
    if (this.isDragged) return;
    const text = String(value);
    if (this.root.value === text) return;
    this.root.value = text;
    this.fillTrack();
  }

  get isDragging(): boolean {
    return this.isDragged;
  }

  /** Fills the part of the track left of the thumb. */
  private fillTrack(): void {
    const { min, max } = this.root;
    const share = (this.root.valueAsNumber - Number(min)) / (Number(max) - Number(min));
    this.root.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  }

  private start(): void {
    if (this.isDragged) return;
    this.isDragged = true;
    this.listener.start?.();
  }

  private end(): void {
    if (!this.isDragged) return;
    this.isDragged = false;
    this.listener.end?.();
  }
}
