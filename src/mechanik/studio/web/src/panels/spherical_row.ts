// Row of a spherical joint: sliders and numbers of its rotation vector in the joint frame, and one lock.
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
  private readonly rotation: RotationVector = [0, 0, 0]; // shown or dragged value, rad
  private requestedRotation: RotationVector | null = null; // rad; value of the request that has no reply yet
  private lastDragTag = -1; // frames with a smaller tag would move the thumb back
  private readonly closesLoop: boolean; // the value of a joint that closes a loop cannot be set
  private readonly isOnlyDof: boolean; // the rotation of a joint that also translates cannot be locked alone

  constructor(
    private readonly store: Store,
    private readonly units: Units,
    readonly dof: number,
    private info: DofInfo,
    model: Model,
  ) {
    const joint = model.joints[info.joint];
    this.closesLoop = joint?.child === -1;
    this.isOnlyDof = (joint?.dofs.length ?? 1) === 1;
    this.lines = AXES.map((axis, k) => this.line(axis, k));
    this.lock = iconButton("unlock", `Lock or unlock ${info.name}`, {
      test: `lock-${info.name}`,
      click: () => void store.request({ do: "SetLocked", dof, locked: !this.info.locked }),
    });
    this.root = el(
      "div",
      { class: "joint is-spherical" },
      jointHead(store, dof, info.name, this.closesLoop ? "closes a loop" : "spherical", this.lock),
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
      slider.root.disabled = value.disabled = this.closesLoop || info.locked;
      unit.textContent = this.units.of("angle").name;
    }
    this.lock.disabled = this.closesLoop || !this.isOnlyDof;
    setIcon(this.lock, info.locked ? "lock" : "unlock");
    press(this.lock, info.locked);
    this.root.classList.toggle("is-derived", this.closesLoop);
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
    const { store, dof, info } = this;
    const value = new NumberField(
      this.units,
      { quantity: "angle", label: `${axis} of ${info.name}`, test: `value-${info.name}-${axis}` },
      (angle) => angle !== null && void this.request(k, angle),
    );
    const slider = new Slider(
      { label: `${axis} of ${info.name}`, test: `slider-${info.name}-${axis}` },
      {
        start: () => {
          this.readNewestFrame();
          void store.request({ do: "StartJointDrag", dof });
        },
        drag: (angle) => {
          this.rotation[k] = angle;
          store.connection.dragDof(dof, ...this.rotation);
          value.show(angle);
        },
        end: () => {
          store.connection.flush();
          this.lastDragTag = store.connection.lastTag;
          void store.request({ do: "EndDrag" });
        },
      },
    );
    slider.setRange(-Math.PI, Math.PI);
    return { slider, value, unit: el("span", { class: "unit" }) };
  }

  private async request(k: number, angle: number): Promise<void> {
    this.readNewestFrame();
    const rotation: RotationVector = [...(this.requestedRotation ?? this.rotation)];
    rotation[k] = angle;
    this.requestedRotation = rotation;
    const isAccepted = await this.store.request({ do: "SetJointRotation", dof: this.dof, rotation });
    if (this.requestedRotation === rotation) this.requestedRotation = null;
    if (!isAccepted) this.refresh(); // show the value before the rejected change
  }

  /** Reads the newest frame, from which a drag must start; the display is throttled and may be older. */
  private readNewestFrame(): void {
    if (this.store.frame !== null && this.readValues(this.store.frame.values)) this.refresh();
  }

  /** Reads the values of a frame; returns whether they have changed. */
  private readValues(values: Float64Array): boolean {
    const newRotation = AXES.map((_, k) => values[this.info.value + k] ?? 0);
    if (newRotation.every((value, k) => value === this.rotation[k])) return false;
    newRotation.forEach((value, k) => (this.rotation[k] = value));
    return true;
  }

  private refresh(): void {
    this.lines.forEach(({ slider, value }, k) => {
      slider.show(this.rotation[k] ?? 0);
      value.show(this.rotation[k] ?? 0);
    });
  }
}
