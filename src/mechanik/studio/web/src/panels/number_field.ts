// A field for a number in the units of the user. It is not overwritten while the user types.
import { decimals } from "./format";
import { el, type ElementOptions } from "./element";
import type { Quantity, Units } from "./units";

export interface NumberFieldTraits extends ElementOptions {
  quantity?: Quantity;
  /** Placeholder of an empty field; an empty field means "none". */
  empty?: string;
  places?: number;
}

export class NumberField {
  readonly root: HTMLInputElement;
  private value: number | null = null;
  private shown = "";

  /** `changed` gets m, rad or the plain number; null if the field was cleared and `empty` is set. */
  constructor(
    private readonly units: Units,
    private readonly traits: NumberFieldTraits,
    private readonly changed: (value: number | null) => void,
  ) {
    this.root = el("input", { ...traits, class: `number ${traits.class ?? ""}`.trim() });
    this.root.type = "text";
    this.root.inputMode = "decimal";
    this.root.autocomplete = "off";
    this.root.spellcheck = false;
    if (traits.empty !== undefined) this.root.placeholder = traits.empty;
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("blur", () => this.commit());
    this.root.addEventListener("focus", () => this.root.select());
  }

  /** Shows a value, unless the user types. */
  show(value: number | null): void {
    this.value = value;
    if (document.activeElement === this.root && this.root.value !== this.shown) return;
    const text = value === null ? "" : this.text(value);
    if (text === this.shown && this.root.value === text) return;
    this.shown = text;
    this.root.value = text;
    this.root.classList.remove("wrong");
  }

  set disabled(isDisabled: boolean) {
    if (this.root.disabled !== isDisabled) this.root.disabled = isDisabled;
  }

  private unit() {
    return this.units.of(this.traits.quantity ?? "plain");
  }

  private text(value: number): string {
    const unit = this.unit();
    const inUnit = value * unit.factor;
    const places = this.traits.places ?? unit.decimals;
    if (inUnit !== 0 && Math.abs(inUnit) < 0.5 * 10 ** -places && this.traits.quantity === undefined)
      return inUnit.toExponential(1);
    return decimals(inUnit, places);
  }

  private commit(): void {
    const text = this.root.value.trim();
    if (text === this.shown) return this.root.classList.remove("wrong");
    if (text === "" && this.traits.empty !== undefined) {
      this.shown = "";
      this.root.classList.remove("wrong");
      return this.changed(null);
    }
    const number = Number(text.replace(",", ".").replace("−", "-"));
    const isWrong = text === "" || !Number.isFinite(number);
    this.root.classList.toggle("wrong", isWrong);
    this.root.setAttribute("aria-invalid", String(isWrong));
    if (isWrong) return;
    this.value = number / this.unit().factor;
    this.shown = text;
    this.changed(this.value);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      this.commit();
      this.root.select();
    } else if (event.key === "Escape") {
      this.root.value = this.shown;
      this.root.classList.remove("wrong");
      this.root.blur();
      event.stopPropagation();
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && this.value !== null) {
      const unit = this.unit();
      const step = unit.step * (event.shiftKey ? 10 : event.ctrlKey ? 0.1 : 1) * (event.key === "ArrowUp" ? 1 : -1);
      this.value += step / unit.factor;
      this.shown = this.text(this.value);
      this.root.value = this.shown;
      event.preventDefault();
      this.changed(this.value);
    }
  }
}
