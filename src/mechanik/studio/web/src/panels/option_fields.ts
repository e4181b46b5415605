// Fields for the options of a solver method; an empty field selects the default value.
import { choice, el, fill, line } from "./element";
import { titleCase } from "./format";
import type { MethodInfo, OptionInfo, Solving } from "../messages";

type Value = Solving["options"][string];

const TITLES: Record<string, string> = { max_iterations: "Maximum iterations", svd: "Use SVD" };

export class OptionFields {
  readonly root = el("div", { class: "options", test: "options" });
  private options: Record<string, Value> = {};
  private method = ""; // name of the method for which the fields were built
  private fields = new Map<string, HTMLInputElement | HTMLSelectElement>();

  constructor(private readonly onChange: (options: Record<string, Value>) => void) {}

  show(method: MethodInfo | undefined, options: Record<string, Value>): void {
    const isSame = this.method === method?.name && JSON.stringify(options) === JSON.stringify(this.options);
    const isTyping = this.method === method?.name && this.root.contains(document.activeElement);
    this.options = { ...options };
    if (isSame || isTyping) return;
    this.method = method?.name ?? "";
    this.fields = new Map();
    const lines = (method?.options ?? []).map((option) => {
      const field = this.field(option, options[option.name] ?? null);
      this.fields.set(option.name, field);
      return line(optionTitle(option), option.about, field);
    });
    fill(this.root, ...(lines.length > 0 ? lines : [el("p", { class: "quiet" }, "This method has no options.")]));
  }

  /** Shows the options as they were before a rejected change, even in the field that has the focus. */
  revert(options: Record<string, Value>): void {
    this.options = { ...options };
    for (const [name, field] of this.fields) field.value = valueText(options[name] ?? null);
  }

  private field(option: OptionInfo, value: Value): HTMLInputElement | HTMLSelectElement {
    const elementOptions = { test: `option-${option.name}`, label: optionTitle(option), title: option.about };
    if (option.kind === "switch" || option.kind === "choice") {
      const entries =
        option.kind === "choice"
          ? option.choices.map((value) => [value, titleCase(value)] as const)
          : ([
              ["true", "Yes"],
              ["false", "No"],
            ] as const);
      const defaultText = option.default === null ? "default" : `default (${defaultValueText(option.default)})`;
      return choice([["", defaultText], ...entries], valueText(value), elementOptions, (text) => {
        this.set(option, text === "" ? null : option.kind === "switch" ? text === "true" : text);
      });
    }
    const input = el("input", { ...elementOptions, class: "number" });
    input.type = "text";
    input.placeholder = option.default === null ? "default" : defaultValueText(option.default);
    input.value = valueText(value);
    if (option.kind !== "text") input.inputMode = "decimal";
    input.addEventListener("change", () => {
      const text = input.value.trim();
      const number = Number(text.replace(",", "."));
      const isWrong =
        option.kind !== "text" &&
        text !== "" &&
        (!Number.isFinite(number) || (option.kind === "integer" && !Number.isInteger(number)));
      input.classList.toggle("wrong", isWrong);
      if (!isWrong) this.set(option, text === "" ? null : option.kind === "text" ? text : number);
    });
    return input;
  }

  private set(option: OptionInfo, value: Value): void {
    const otherOptions = Object.entries(this.options).filter(
      ([name, setting]) => name !== option.name && setting !== null,
    );
    this.options = Object.fromEntries(value === null ? otherOptions : [...otherOptions, [option.name, value]]);
    this.onChange(this.options);
  }
}

function valueText(value: Value): string {
  return value === null ? "" : String(value);
}

function optionTitle({ name }: OptionInfo): string {
  return TITLES[name] ?? titleCase(name);
}

function defaultValueText(value: NonNullable<Value>): string {
  if (typeof value === "number" && value !== 0 && Math.abs(value) < 1e-3) return value.toExponential();
  return value === true ? "yes" : value === false ? "no" : String(value);
}
