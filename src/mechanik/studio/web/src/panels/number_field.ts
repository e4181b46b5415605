// Field for a number in the units of the user. Its text is not replaced while the user types.
import { decimals } from "./format";
import { el, type ElementOptions } from "./element";
import type { Quantity, Units } from "./units";

export interface NumberFieldOptions extends ElementOptions {
  /** What the number measures; default: a number without unit. */
  quantity?: Quantity;
  /** Text in an empty field; without it, the field must not be empty. */
  placeholder?: string;
  /** Number of decimal places; default: those of the unit. */
  decimalPlaces?: number;
}

export class NumberField {
  readonly root: HTMLInputElement;
  private value: number | null = null; // m, rad or plain number
  private shownText = "";

  /** onChange: called with the value in m or rad, or with the plain number; null if the field is empty. */
  constructor(
    private readonly units: Units,
    private readonly options: NumberFieldOptions,
    private readonly onChange: (value: number | null) => void,
  ) {
    this.root = el("input", { ...options, class: `number ${options.class ?? ""}`.trim() });
    this.root.type = "text";
    this.root.inputMode = "decimal";
    this.root.autocomplete = "off";
    this.root.spellcheck = false;
    if (options.placeholder !== undefined) this.root.placeholder = options.placeholder;
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    this.root.addEventListener("blur", () => this.commit());
    this.root.addEventListener("focus", () => this.root.select());
  }

  /** Shows a value, unless the user is typing. */
  show(value: number | null): void {
    this.value = value;
    if (document.activeElement === this.root && this.root.value !== this.shownText) return;
    const text = value === null ? "" : this.text(value);
    if (text === this.shownText && this.root.value === text) return;
    this.shownText = text;
    this.root.value = text;
    this.root.classList.remove("wrong");
  }

  set disabled(isDisabled: boolean) {
    if (this.root.disabled !== isDisabled) this.root.disabled = isDisabled;
  }

  private unit() {
    return this.units.of(this.options.quantity ?? "plain");
  }

  private text(value: number): string {
    const unit = this.unit();
    const number = value * unit.factor;
    const decimalPlaces = this.options.decimalPlaces ?? unit.decimalPlaces;
    const isPlain = (this.options.quantity ?? "plain") === "plain";
    if (number !== 0 && Math.abs(number) < 0.5 * 10 ** -decimalPlaces && isPlain)
      return number.toExponential(1);
    return decimals(number, decimalPlaces);
  }

  private commit(): void {
    const text = this.root.value.trim();
    if (text === this.shownText) return this.root.classList.remove("wrong");
    if (text === "" && this.options.placeholder !== undefined) {
      this.shownText = "";
      this.root.classList.remove("wrong");
      return this.onChange(null);
    }
    const number = Number(text.replace(",", ".").replace("−", "-"));
    const isWrong = text === "" || !Number.isFinite(number);
    this.root.classList.toggle("wrong", isWrong);
    this.root.setAttribute("aria-invalid", String(isWrong));
    if (isWrong) return;
    this.value = number / this.unit().factor;
    this.shownText = text;
    this.onChange(this.value);
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      this.commit();
      this.root.select();
    } else if (event.key === "Escape") {
      this.root.value = this.shownText;
      this.root.classList.remove("wrong");
      this.root.blur();
      event.stopPropagation();
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && this.value !== null) {
      const unit = this.unit();
      const step = unit.step * (event.shiftKey ? 10 : event.ctrlKey ? 0.1 : 1) * (event.key === "ArrowUp" ? 1 : -1);
      this.value += step / unit.factor;
      this.shownText = this.text(this.value);
      this.root.value = this.shownText;
      event.preventDefault();
      this.onChange(this.value);
    }
  }
}
