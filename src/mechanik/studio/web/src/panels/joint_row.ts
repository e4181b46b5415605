// Row of a dof in the joints panel: slider, number and lock; limits and rest value, which are hidden by default.
import { el, iconButton, press } from "./element";
import { setIcon } from "./icons";
import { NumberField } from "./number_field";
import { Slider } from "./slider";
import type { Units } from "./units";
import type { DofInfo, Model } from "../messages";
import type { Store } from "../store";
import type { StateFrame } from "../connection/state_frame";

// half of the range of a slider without limits, m or rad
const DEFAULT_HALF_RANGE = { rotation: Math.PI, translation: 1, spherical: Math.PI } as const;
const FIELD_LABELS = { value: "Value", lower: "Lower limit", upper: "Upper limit", rest: "Rest value" } as const;

/** A row of the joints panel; the row of a spherical joint is in `spherical_row.ts`. */
export interface DofRow {
  readonly root: HTMLElement;
  readonly name: string;
  update(info: DofInfo): void;
  show(frame: StateFrame): void;
  select(isSelected: boolean): void;
}

/** Head of a row: a button with the name of the dof, which selects the dof; a remark; the lock. */
export function jointHead(
  store: Store,
  dof: number,
  name: string,
  remarkText: string,
  lock: HTMLButtonElement,
): HTMLElement {
  const button = el(
    "button",
    { class: "joint-name", title: name, test: `joint-${name}`, click: () => store.select({ kind: "dof", dof }) },
    name,
  );
  button.type = "button";
  return el("div", { class: "joint-head" }, button, el("span", { class: "joint-mark" }, remarkText), lock);
}

export class SingleDofRow implements DofRow {
  readonly root: HTMLElement;
  private readonly slider: Slider;
  private readonly value: NumberField;
  private readonly lower: NumberField;
  private readonly upper: NumberField;
  private readonly rest: NumberField;
  private readonly lock: HTMLButtonElement;
  private readonly unit = el("span", { class: "unit" });
  private info: DofInfo;
  private shownValue = Number.NaN;
  private lastDragTag = -1; // frames with a smaller tag would move the thumb back

  constructor(
    private readonly store: Store,
    private readonly units: Units,
    readonly dof: number,
    info: DofInfo,
    model: Model,
  ) {
    this.info = info;
    const quantity = info.kind === "translation" ? "length" : "angle";
    const field = (
      name: keyof typeof FIELD_LABELS,
      onChange: (value: number | null) => void,
      placeholder?: string,
    ): NumberField =>
      new NumberField(
        units,
        {
          quantity,
          label: `${FIELD_LABELS[name]} of ${info.name}`,
          test: `${name}-${info.name}`,
          ...(placeholder === undefined ? {} : { placeholder }),
        },
        onChange,
      );
    this.slider = new Slider(
      { label: info.name, test: `slider-${info.name}` },
      {
        start: () => void store.request({ do: "StartJointDrag", dof }),
        drag: (value) => {
          store.connection.dragDof(dof, value);
          this.value.show(value);
        },
        end: () => {
          store.connection.flush();
          this.lastDragTag = store.connection.lastTag;
          void store.request({ do: "EndDrag" });
        },
      },
    );
    this.value = field(
      "value",
      (value) => value !== null && void this.request({ do: "SetDofValue", dof, value }),
    );
    this.lower = field(
      "lower",
      (lower) => void this.request({ do: "SetLimits", dof, lower, upper: this.info.upper }),
      "none",
    );
    this.upper = field(
      "upper",
      (upper) => void this.request({ do: "SetLimits", dof, lower: this.info.lower, upper }),
      "none",
    );
    this.rest = field("rest", (value) => void this.request({ do: "SetRest", dof, value }), "none");
    this.lock = iconButton("unlock", `Lock or unlock ${info.name}`, {
      test: `lock-${info.name}`,
      click: () => void this.request({ do: "SetLocked", dof, locked: !this.info.locked }),
    });
    const limits = el(
      "div",
      { class: "joint-limits" },
      caption("lower", this.lower),
      caption("upper", this.upper),
      caption("rest", this.rest),
    );
    const head = jointHead(store, dof, info.name, remark(info, model), this.lock);
    this.root = el(
      "div",
      { class: `joint is-${info.kind}` },
      head,
      this.slider.root,
      this.value.root,
      this.unit,
      limits,
    );
    this.update(info);
  }

  get name(): string {
    return this.info.name;
  }

  /** Shows new limits, lock, rest value or units. */
  update(info: DofInfo): void {
    this.info = info;
    const halfRange = DEFAULT_HALF_RANGE[info.kind];
    this.slider.setRange(
      info.lower ?? Math.min(-halfRange, (info.upper ?? 0) - 2 * halfRange),
      info.upper ?? Math.max(halfRange, (info.lower ?? 0) + 2 * halfRange),
    );
    if (info.lower === null && info.upper === null) this.slider.setRange(-halfRange, halfRange);
    const isMimic = info.mimics >= 0;
    this.slider.root.disabled = isMimic || info.locked;
    this.value.disabled = isMimic || info.locked;
    for (const field of [this.lower, this.upper, this.rest]) field.disabled = isMimic;
    this.lock.disabled = isMimic;
    this.lower.show(info.lower);
    this.upper.show(info.upper);
    this.rest.show(info.rest);
    setIcon(this.lock, info.locked ? "lock" : "unlock");
    press(this.lock, info.locked);
    this.unit.textContent = this.units.of(info.kind === "translation" ? "length" : "angle").name;
    this.root.classList.toggle("is-derived", isMimic);
    this.shownValue = Number.NaN;
  }

  show(frame: StateFrame): void {
    const value = frame.values[this.info.value] ?? 0;
    if (value === this.shownValue || this.slider.isDragging || frame.tag < this.lastDragTag) return;
    this.shownValue = value;
    this.slider.show(value);
    this.value.show(value);
  }

  select(isSelected: boolean): void {
    this.root.classList.toggle("is-selected", isSelected);
  }

  private async request(request: Parameters<Store["request"]>[0]): Promise<void> {
    if (await this.store.request(request)) return;
    this.update(this.info); // show the value before the rejected change
    if (this.store.frame) this.show(this.store.frame);
  }
}

function caption(text: string, field: NumberField): HTMLElement {
  return el("label", {}, el("span", {}, text), field.root);
}

/** Text for a mimic dof (which dof it mimics) and for a dof whose joint closes a loop; empty for other dofs. */
function remark(info: DofInfo, model: Model): string {
  const leader = model.dofs[info.mimics];
  if (leader) return `mimics ${leader.name}`;
  return model.joints[info.joint]?.child === -1 ? "closes a loop" : "";
}
