// One freedom of a joint: slider, number, lock; its limits and rest below when they are asked for.
import { el, iconButton, press } from "./element";
import { redraw } from "./icons";
import { NumberField } from "./number_field";
import { Slider } from "./slider";
import type { Units } from "./units";
import type { DofInfo, Model } from "../messages";
import type { Store } from "../store";
import type { Frame } from "../wire/frame";

const WITHOUT_LIMITS = { rotation: Math.PI, translation: 1, spherical: Math.PI } as const;

/** The row of a freedom; one of a ball is in `ball_row.ts`. */
export interface Row {
  readonly root: HTMLElement;
  readonly name: string;
  change(info: DofInfo): void;
  show(frame: Frame): void;
  select(isSelected: boolean): void;
}

/** Its name, which selects it, a word on it, and its lock. */
export function jointHead(
  store: Store,
  freedom: number,
  name: string,
  mark: string,
  lock: HTMLButtonElement,
): HTMLElement {
  const button = el(
    "button",
    { class: "joint-name", title: name, test: `joint-${name}`, click: () => store.select({ kind: "freedom", freedom }) },
    name,
  );
  button.type = "button";
  return el("div", { class: "joint-head" }, button, el("span", { class: "joint-mark" }, mark), lock);
}

export class JointRow implements Row {
  readonly root: HTMLElement;
  private readonly slider: Slider;
  private readonly value: NumberField;
  private readonly lower: NumberField;
  private readonly upper: NumberField;
  private readonly rest: NumberField;
  private readonly lock: HTMLButtonElement;
  private readonly unit = el("span", { class: "unit" });
  private info: DofInfo;
  private last = Number.NaN;
  private letGoAt = -1; // tag of the last hand: frames that have not seen it would pull the thumb back

  constructor(
    private readonly store: Store,
    private readonly units: Units,
    readonly number: number,
    info: DofInfo,
    model: Model,
  ) {
    this.info = info;
    const quantity = info.kind === "translation" ? "length" : "angle";
    const field = (label: string, changed: (value: number | null) => void, empty?: string): NumberField =>
      new NumberField(
        units,
        {
          quantity,
          label: `${label} of ${info.name}`,
          test: `${label}-${info.name}`,
          ...(empty === undefined ? {} : { empty }),
        },
        changed,
      );
    this.slider = new Slider(
      { label: info.name, test: `slider-${info.name}` },
      {
        take: () => void store.ask({ do: "StartJointDrag", dof: number }),
        hold: (value) => {
          store.wire.holdFreedom(number, value);
          this.value.show(value);
        },
        letGo: () => {
          store.wire.flush();
          this.letGoAt = store.wire.lastTag;
          void store.ask({ do: "EndDrag" });
        },
      },
    );
    this.value = field(
      "value",
      (value) => value !== null && void this.put({ do: "SetDofValue", dof: number, value }),
    );
    this.lower = field(
      "lower",
      (lower) => void this.put({ do: "SetLimits", dof: number, lower, upper: this.info.upper }),
      "none",
    );
    this.upper = field(
      "upper",
      (upper) => void this.put({ do: "SetLimits", dof: number, lower: this.info.lower, upper }),
      "none",
    );
    this.rest = field("rest", (value) => void this.put({ do: "SetRest", dof: number, value }), "none");
    this.lock = iconButton("unlock", `Lock ${info.name}`, {
      test: `lock-${info.name}`,
      click: () => void this.put({ do: "SetLocked", dof: number, locked: !this.info.locked }),
    });
    const limits = el(
      "div",
      { class: "joint-limits" },
      caption("lower", this.lower),
      caption("upper", this.upper),
      caption("rest", this.rest),
    );
    const head = jointHead(store, number, info.name, mark(info, model), this.lock);
    this.root = el(
      "div",
      { class: `joint is-${info.kind}` },
      head,
      this.slider.root,
      this.value.root,
      this.unit,
      limits,
    );
    this.change(info);
  }

  get name(): string {
    return this.info.name;
  }

  /** Other limits, lock or rest, or other units. */
  change(info: DofInfo): void {
    this.info = info;
    const free = WITHOUT_LIMITS[info.kind];
    this.slider.range(
      info.lower ?? Math.min(-free, (info.upper ?? 0) - 2 * free),
      info.upper ?? Math.max(free, (info.lower ?? 0) + 2 * free),
    );
    if (info.lower === null && info.upper === null) this.slider.range(-free, free);
    const isGiven = info.mimics >= 0;
    this.slider.root.disabled = isGiven || info.locked;
    this.value.disabled = isGiven || info.locked;
    for (const field of [this.lower, this.upper, this.rest]) field.disabled = isGiven;
    this.lock.disabled = isGiven;
    this.lower.show(info.lower);
    this.upper.show(info.upper);
    this.rest.show(info.rest);
    redraw(this.lock, info.locked ? "lock" : "unlock");
    press(this.lock, info.locked);
    this.unit.textContent = this.units.of(info.kind === "translation" ? "length" : "angle").name;
    this.root.classList.toggle("is-given", isGiven);
    this.last = Number.NaN;
  }

  show(frame: Frame): void {
    const value = frame.values[this.info.value] ?? 0;
    if (value === this.last || this.slider.isHeld || frame.tag < this.letGoAt) return;
    this.last = value;
    this.slider.show(value);
    this.value.show(value);
  }

  select(isSelected: boolean): void {
    this.root.classList.toggle("is-selected", isSelected);
  }

  private async put(request: Parameters<Store["ask"]>[0]): Promise<void> {
    if (await this.store.ask(request)) return;
    this.change(this.info); // what was refused is taken back
    if (this.store.frame) this.show(this.store.frame);
  }
}

function caption(text: string, field: NumberField): HTMLElement {
  return el("label", {}, el("span", {}, text), field.root);
}

function mark(info: DofInfo, model: Model): string {
  const leader = model.dofs[info.mimics];
  if (leader) return `follows ${leader.name}`;
  return model.joints[info.joint]?.child === -1 ? "closes a loop" : "";
}
