// Where a goal or an obstacle is: its place and its turn as numbers, following the hand while it is dragged.
import { choice, el } from "./element";
import { NumberField } from "./number_field";
import { fromAngles, toAngles, unit, type Angles, type Quaternion } from "./turn";
import type { Units } from "./units";
import type { GoalInfo } from "../messages";

export type Pose = GoalInfo["pose"];
type TurnStyle = "degrees" | "wxyz";

const KEPT = "mechanik.turns";

export class PoseNumbers {
  readonly root = el("div", { class: "goal-numbers" });
  private readonly place: NumberField[];
  private readonly angles: NumberField[];
  private readonly quaternion: NumberField[];
  private readonly angleFields: HTMLElement;
  private readonly quaternionFields: HTMLElement;
  private pose: Pose = [0, 0, 0, 1, 0, 0, 0];

  constructor(
    units: Units,
    hasTurn: boolean,
    private readonly moved: (pose: Pose) => void,
    test = "goal", // what names for tests begin with
  ) {
    const set =
      (k: number) =>
      (value: number | null): void => {
        if (value === null) return;
        const pose: Pose = [...this.pose];
        pose[k] = value;
        const turn = unit(pose.slice(3) as Quaternion);
        this.move([pose[0], pose[1], pose[2], ...turn]);
      };
    this.place = ["x", "y", "z"].map(
      (name, k) => new NumberField(units, { quantity: "length", label: name, test: `${test}-${name}` }, set(k)),
    );
    this.angles = ["x", "y", "z"].map(
      (name, k) =>
        new NumberField(
          units,
          { quantity: "angle", label: `turn about ${name}`, test: `${test}-turn-${name}` },
          (value) => {
            if (value === null) return;
            const angles: Angles = toAngles(this.pose.slice(3) as Quaternion);
            angles[k] = value;
            this.move([this.pose[0], this.pose[1], this.pose[2], ...fromAngles(angles)]);
          },
        ),
    );
    this.quaternion = ["w", "x", "y", "z"].map(
      (name, k) =>
        new NumberField(
          units,
          { quantity: "plain", label: `quaternion ${name}`, places: 4, test: `${test}-q${name}` },
          set(3 + k),
        ),
    );
    const style = choice(
      [
        ["degrees", "angles"],
        ["wxyz", "wxyz"],
      ],
      keptStyle(),
      { label: "Turn as", test: "turn-style" },
      (value) => this.keep(value as TurnStyle),
    );
    this.angleFields = el("div", { class: "triple" }, ...this.angles.map((field, k) => caption("xyz"[k]!, field)));
    this.quaternionFields = el(
      "div",
      { class: "triple is-four" },
      ...this.quaternion.map((field, k) => caption("wxyz"[k]!, field)),
    );
    this.root.append(
      el("span", { class: "caption" }, "Place"),
      el("div", { class: "triple" }, ...this.place.map((field, k) => caption("xyz"[k]!, field))),
    );
    if (hasTurn)
      this.root.append(el("span", { class: "caption" }, "Turn ", style), this.angleFields, this.quaternionFields);
    this.keep(keptStyle());
  }

  show(pose: Pose): void {
    this.pose = pose;
    this.place.forEach((field, k) => field.show(pose[k] ?? 0));
    const turn = pose.slice(3) as Quaternion;
    const angles = toAngles(turn);
    this.angles.forEach((field, k) => field.show(angles[k] ?? 0));
    this.quaternion.forEach((field, k) => field.show(turn[k] ?? 0));
  }

  private move(pose: Pose): void {
    this.pose = pose;
    this.moved(pose);
  }

  private keep(style: TurnStyle): void {
    this.angleFields.hidden = style !== "degrees";
    this.quaternionFields.hidden = style !== "wxyz";
    try {
      localStorage.setItem(KEPT, style);
    } catch {
      // a browser that keeps nothing still shows both
    }
  }
}

function keptStyle(): TurnStyle {
  try {
    return localStorage.getItem(KEPT) === "wxyz" ? "wxyz" : "degrees";
  } catch {
    return "degrees";
  }
}

function caption(text: string, field: NumberField): HTMLElement {
  return el("label", {}, el("span", {}, text), field.root);
}
