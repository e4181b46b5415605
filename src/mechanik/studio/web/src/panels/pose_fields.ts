// Fields for the pose of a goal or obstacle; they are updated during a drag.
import { choice, el } from "./element";
import { NumberField } from "./number_field";
import { quaternionFromRpy, rpyFromQuaternion, normalized, type Rpy, type Quaternion } from "./rpy";
import type { Units } from "./units";
import type { GoalInfo } from "../messages";

export type Pose = GoalInfo["pose"];
/** angles: about x, y and z, in the unit of the user; wxyz: quaternion. */
type RotationStyle = "angles" | "wxyz";

const STORAGE_KEY = "mechanik.rotation";

export class PoseFields {
  readonly root = el("div", { class: "goal-numbers" });
  private readonly position: NumberField[];
  private readonly angles: NumberField[];
  private readonly quaternion: NumberField[];
  private readonly angleFields: HTMLElement;
  private readonly quaternionFields: HTMLElement;
  private pose: Pose = [0, 0, 0, 1, 0, 0, 0];

  constructor(
    units: Units,
    hasRotation: boolean,
    private readonly onMove: (pose: Pose) => void,
    test = "goal", // prefix of the element names for tests
  ) {
    const setEntry =
      (k: number) =>
      (value: number | null): void => {
        if (value === null) return;
        const pose: Pose = [...this.pose];
        pose[k] = value;
        const quaternion = normalized(pose.slice(3) as Quaternion);
        this.move([pose[0], pose[1], pose[2], ...quaternion]);
      };
    this.position = ["x", "y", "z"].map(
      (name, k) => new NumberField(units, { quantity: "length", label: name, test: `${test}-${name}` }, setEntry(k)),
    );
    this.angles = ["x", "y", "z"].map(
      (name, k) =>
        new NumberField(
          units,
          { quantity: "angle", label: `rotation about ${name}`, test: `${test}-rotation-${name}` },
          (value) => {
            if (value === null) return;
            const angles: Rpy = rpyFromQuaternion(this.pose.slice(3) as Quaternion);
            angles[k] = value;
            this.move([this.pose[0], this.pose[1], this.pose[2], ...quaternionFromRpy(angles)]);
          },
        ),
    );
    this.quaternion = ["w", "x", "y", "z"].map(
      (name, k) =>
        new NumberField(
          units,
          { quantity: "plain", label: `quaternion ${name}`, decimalPlaces: 4, test: `${test}-q${name}` },
          setEntry(3 + k),
        ),
    );
    const style = choice(
      [
        ["angles", `angles, ${units.of("angle").name}`],
        ["wxyz", "quaternion wxyz"],
      ],
      storedStyle(),
      { label: "Show the rotation as", test: "rotation-style" },
      (value) => this.setStyle(value as RotationStyle),
    );
    this.angleFields = el("div", { class: "triple" }, ...this.angles.map((field, k) => caption("xyz"[k]!, field)));
    this.quaternionFields = el(
      "div",
      { class: "triple is-four" },
      ...this.quaternion.map((field, k) => caption("wxyz"[k]!, field)),
    );
    this.root.append(
      el("span", { class: "caption" }, `Position, ${units.of("length").name}`),
      el("div", { class: "triple" }, ...this.position.map((field, k) => caption("xyz"[k]!, field))),
    );
    if (hasRotation)
      this.root.append(el("span", { class: "caption" }, "Rotation ", style), this.angleFields, this.quaternionFields);
    this.setStyle(storedStyle());
  }

  show(pose: Pose): void {
    this.pose = pose;
    this.position.forEach((field, k) => field.show(pose[k] ?? 0));
    const quaternion = pose.slice(3) as Quaternion;
    const angles = rpyFromQuaternion(quaternion);
    this.angles.forEach((field, k) => field.show(angles[k] ?? 0));
    this.quaternion.forEach((field, k) => field.show(quaternion[k] ?? 0));
  }

  private move(pose: Pose): void {
    this.pose = pose;
    this.onMove(pose);
  }

  private setStyle(style: RotationStyle): void {
    this.angleFields.hidden = style !== "angles";
    this.quaternionFields.hidden = style !== "wxyz";
    try {
      localStorage.setItem(STORAGE_KEY, style);
    } catch {
      // without storage the style is lost when the page is reloaded
    }
  }
}

function storedStyle(): RotationStyle {
  try {
    return localStorage.getItem(STORAGE_KEY) === "wxyz" ? "wxyz" : "angles";
  } catch {
    return "angles";
  }
}

function caption(text: string, field: NumberField): HTMLElement {
  return el("label", {}, el("span", {}, text), field.root);
}
