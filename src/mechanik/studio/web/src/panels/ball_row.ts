// A ball joint: three sliders and numbers for its turn, a rotation vector in the joint's frame, and one lock for all.
import { el, iconButton, press } from "./element";
import { redraw } from "./icons";
import { jointHead, type Row } from "./joint_row";
import { NumberField } from "./number_field";
import { Slider } from "./slider";
import type { Units } from "./units";
import type { DofInfo, Model } from "../messages";
import type { Store } from "../store";
import type { Frame } from "../wire/frame";

const AXES = ["EX", "EY", "EZ"] as const;

type Turn = [number, number, number];

interface Line {
  slider: Slider;
  value: NumberField;
  unit: HTMLElement;
}

export class BallRow implements Row {
  readonly root: HTMLElement;
  private readonly lines: Line[];
  private readonly lock: HTMLButtonElement;
  private readonly turn: Turn = [0, 0, 0]; // as it was shown last, or as a hand has it
  private asked: Turn | null = null; // what is on its way
  private letGoAt = -1; // tag of the last hand: frames that have not seen it would pull the thumb back
  private readonly isClosing: boolean; // it has no numbers of its own
  private readonly isAlone: boolean; // one that slides as well can be locked only as a whole

  constructor(
    private readonly store: Store,
    private readonly units: Units,
    readonly number: number,
    private info: DofInfo,
    model: Model,
  ) {
    const joint = model.joints[info.joint];
    this.isClosing = joint?.child === -1;
    this.isAlone = (joint?.dofs.length ?? 1) === 1;
    this.lines = AXES.map((axis, k) => this.line(axis, k));
    this.lock = iconButton("unlock", `Lock ${info.name}`, {
      test: `lock-${info.name}`,
      click: () => void store.ask({ do: "SetLocked", dof: number, locked: !this.info.locked }),
    });
    this.root = el(
      "div",
      { class: "joint is-ball" },
      jointHead(store, number, info.name, this.isClosing ? "closes a loop" : "ball", this.lock),
      ...this.lines.map(({ slider, value, unit }, k) =>
        el(
          "div",
          { class: "ball-line" },
          el("span", { class: "ball-axis" }, AXES[k] ?? ""),
          slider.root,
          value.root,
          unit,
        ),
      ),
    );
    this.change(info);
  }

  get name(): string {
    return this.info.name;
  }

  /** Another lock, or other units. */
  change(info: DofInfo): void {
    this.info = info;
    for (const { slider, value, unit } of this.lines) {
      slider.root.disabled = value.disabled = this.isClosing || info.locked;
      unit.textContent = this.units.of("angle").name;
    }
    this.lock.disabled = this.isClosing || !this.isAlone;
    redraw(this.lock, info.locked ? "lock" : "unlock");
    press(this.lock, info.locked);
    this.root.classList.toggle("is-given", this.isClosing);
    this.write();
  }

  show(frame: Frame): void {
    if (frame.tag < this.letGoAt || this.lines.some(({ slider }) => slider.isHeld)) return;
    if (this.read(frame.values)) this.write();
  }

  select(isSelected: boolean): void {
    this.root.classList.toggle("is-selected", isSelected);
  }

  private line(axis: string, k: number): Line {
    const { store, number, info } = this;
    const value = new NumberField(
      this.units,
      { quantity: "angle", label: `${axis} of ${info.name}`, test: `value-${info.name}-${axis}` },
      (typed) => typed !== null && void this.put(k, typed),
    );
    const slider = new Slider(
      { label: `${axis} of ${info.name}`, test: `slider-${info.name}-${axis}` },
      {
        take: () => {
          this.catchUp();
          void store.ask({ do: "StartJointDrag", dof: number });
        },
        hold: (angle) => {
          this.turn[k] = angle;
          store.wire.holdFreedom(number, ...this.turn);
          value.show(angle);
        },
        letGo: () => {
          store.wire.flush();
          this.letGoAt = store.wire.lastTag;
          void store.ask({ do: "EndDrag" });
        },
      },
    );
    slider.range(-Math.PI, Math.PI);
    return { slider, value, unit: el("span", { class: "unit" }) };
  }

  private async put(k: number, angle: number): Promise<void> {
    this.catchUp();
    const turn: Turn = [...(this.asked ?? this.turn)];
    turn[k] = angle;
    this.asked = turn;
    const isTaken = await this.store.ask({ do: "SetJointRotation", dof: this.number, rotation: turn });
    if (this.asked === turn) this.asked = null;
    if (!isTaken) this.write(); // what was refused goes
  }

  /** Frames are shown at a rate that eyes can read; hands go on from the newest one. */
  private catchUp(): void {
    if (this.store.frame !== null && this.read(this.store.frame.values)) this.write();
  }

  /** Whether something is new. */
  private read(values: Float64Array): boolean {
    const now = AXES.map((_, k) => values[this.info.value + k] ?? 0);
    if (now.every((value, k) => value === this.turn[k])) return false;
    now.forEach((value, k) => (this.turn[k] = value));
    return true;
  }

  private write(): void {
    this.lines.forEach(({ slider, value }, k) => {
      slider.show(this.turn[k] ?? 0);
      value.show(this.turn[k] ?? 0);
    });
  }
}
