// The row of a spherical joint: sliders and numbers of its rotation vector in the joint frame, and one lock.
import { el, iconButton, press } from "./element";
import { setIcon } from "./icons";
import { jointHead, type DofRow } from "./joint_row";
import { NumberField } from "./number_field";
import { Slider } from "./slider";
import type { Units } from "./units";
import type { DofInfo, Model } from "../messages";
import type { Store } from "../store";
import type { StateFrame } from "../connection/state_frame";

const AXES = ["EX", "EY", "EZ"] as const;

type RotationVector = [number, number, number];

interface AxisLine {
  slider: Slider;
  value: NumberField;
  unit: HTMLElement;
}

export class SphericalRow implements DofRow {
  readonly root: HTMLElement;
  private readonly lines: AxisLine[];
  private readonly lock: HTMLButtonElement;
  private readonly rotation: RotationVector = [0, 0, 0]; // as shown or dragged
  private requested: RotationVector | null = null; // not yet answered
  private lastDragTag = -1; // older frames would move the thumb back
  private readonly isClosing: boolean; // a closing joint has no values of its own
  private readonly isOnlyDof: boolean; // a joint that also translates can be locked only as a whole

  constructor(
    private readonly store: Store,
    private readonly units: Units,
    readonly number: number,
    private info: DofInfo,
    model: Model,
  ) {
    const joint = model.joints[info.joint];
    this.isClosing = joint?.child === -1;
    this.isOnlyDof = (joint?.dofs.length ?? 1) === 1;
    this.lines = AXES.map((axis, k) => this.line(axis, k));
    this.lock = iconButton("unlock", `Lock ${info.name}`, {
      test: `lock-${info.name}`,
      click: () => void store.request({ do: "SetLocked", dof: number, locked: !this.info.locked }),
    });
    this.root = el(
      "div",
      { class: "joint is-spherical" },
      jointHead(store, number, info.name, this.isClosing ? "closes a loop" : "spherical", this.lock),
      ...this.lines.map(({ slider, value, unit }, k) =>
        el(
          "div",
          { class: "axis-line" },
          el("span", { class: "axis-name" }, AXES[k] ?? ""),
          slider.root,
          value.root,
          unit,
        ),
      ),
    );
    this.update(info);
  }

  get name(): string {
    return this.info.name;
  }

  /** Shows a new lock or new units. */
  update(info: DofInfo): void {
    this.info = info;
    for (const { slider, value, unit } of this.lines) {
      slider.root.disabled = value.disabled = this.isClosing || info.locked;
      unit.textContent = this.units.of("angle").name;
    }
    this.lock.disabled = this.isClosing || !this.isOnlyDof;
    setIcon(this.lock, info.locked ? "lock" : "unlock");
    press(this.lock, info.locked);
    this.root.classList.toggle("is-derived", this.isClosing);
    this.refresh();
  }

  show(frame: StateFrame): void {
    if (frame.tag < this.lastDragTag || this.lines.some(({ slider }) => slider.isDragging)) return;
    if (this.readValues(frame.values)) this.refresh();
  }

  select(isSelected: boolean): void {
    this.root.classList.toggle("is-selected", isSelected);
  }

  private line(axis: string, k: number): AxisLine {
    const { store, number, info } = this;
    const value = new NumberField(
      this.units,
      { quantity: "angle", label: `${axis} of ${info.name}`, test: `value-${info.name}-${axis}` },
      (typed) => typed !== null && void this.request(k, typed),
    );
    const slider = new Slider(
      { label: `${axis} of ${info.name}`, test: `slider-${info.name}-${axis}` },
      {
        start: () => {
          this.readNewestFrame();
          void store.request({ do: "StartJointDrag", dof: number });
        },
        drag: (angle) => {
          this.rotation[k] = angle;
          store.connection.dragDof(number, ...this.rotation);
          value.show(angle);
        },
        end: () => {
          store.connection.flush();
          this.lastDragTag = store.connection.lastTag;
          void store.request({ do: "EndDrag" });
        },
      },
    );
    slider.range(-Math.PI, Math.PI);
    return { slider, value, unit: el("span", { class: "unit" }) };
  }

  private async request(k: number, angle: number): Promise<void> {
    this.readNewestFrame();
    const rotation: RotationVector = [...(this.requested ?? this.rotation)];
    rotation[k] = angle;
    this.requested = rotation;
    const isAccepted = await this.store.request({ do: "SetJointRotation", dof: this.number, rotation });
    if (this.requested === rotation) this.requested = null;
    if (!isAccepted) this.refresh(); // shows the value before the refused change
  }

  /** The display is throttled; a drag must start from the newest frame. */
  private readNewestFrame(): void {
    if (this.store.frame !== null && this.readValues(this.store.frame.values)) this.refresh();
  }

  /** Reads the values of a frame; returns whether they have changed. */
  private readValues(values: Float64Array): boolean {
    const now = AXES.map((_, k) => values[this.info.value + k] ?? 0);
    if (now.every((value, k) => value === this.rotation[k])) return false;
    now.forEach((value, k) => (this.rotation[k] = value));
    return true;
  }

  private refresh(): void {
    this.lines.forEach(({ slider, value }, k) => {
      slider.show(this.rotation[k] ?? 0);
      value.show(this.rotation[k] ?? 0);
    });
  }
}
