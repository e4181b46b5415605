// Titles and descriptions of goal kinds, their parameters, and the directions of a pose.
import type { GoalInfo, Model } from "../messages";
import type { Store } from "../store";
import type { Quantity } from "./units";

export type GoalKind = GoalInfo["kind"];
export type Direction = GoalInfo["free"][number];

export const KINDS: readonly (readonly [kind: GoalKind, title: string, about: string])[] = [
  ["point", "Point", "Move this point of the link to the target"],
  ["pose", "Pose", "Position and orientation: all six coordinates"],
  ["orientation", "Orientation", "Orientation of the link; its position is free"],
  ["axis", "Direction", "Align an axis of the link with the axis of the goal"],
  ["hinge", "Hinge", "Position and axis; rotation about the axis is free"],
  ["surface", "Surface", "The point is on the plane and the link lies flat on it"],
  ["on_line", "On a line", "Keep the point on a line"],
  ["on_plane", "On a plane", "Keep the point on a plane"],
  ["look_at", "Look at", "Point an axis of the link at a target position"],
  ["distance", "Distance", "Keep the point at a distance from a target position"],
  ["in_box", "In a box", "Keep the point inside a box"],
  ["in_cone", "In a cone", "Keep the axis of the link inside a cone"],
  ["in_band", "In a band", "Keep the point between two parallel planes"],
  ["centre_of_mass", "Centre of mass", "Move the centre of mass of all links to the target"],
  ["on_terrain", "On the terrain", "Keep the point on the terrain of the scene"],
];

/** Kinds whose `at` is a direction on the link, not a point. */
export const USES_LINK_DIRECTION: ReadonlySet<GoalKind> = new Set<GoalKind>(
  ["orientation", "axis", "in_cone", "look_at"],
);

export const DIRECTIONS: readonly (readonly [Direction, string])[] = [
  ["X", "position along x"],
  ["Y", "position along y"],
  ["Z", "position along z"],
  ["EX", "rotation about x"],
  ["EY", "rotation about y"],
  ["EZ", "rotation about z"],
];

/** Parameters of a kind, in the order of `sizes`. */
export const SIZES: Partial<Record<GoalKind, readonly (readonly [name: string, quantity: Quantity])[]>> = {
  distance: [["distance", "length"]],
  in_box: [
    ["half x", "length"],
    ["half y", "length"],
    ["half z", "length"],
  ],
  in_cone: [["half angle", "angle"]],
  in_band: [
    ["low", "length"],
    ["high", "length"],
  ],
};

/** Kinds that do not use the rotation of the goal. */
export const WITHOUT_ROTATION: ReadonlySet<GoalKind> = new Set([
  "point",
  "look_at",
  "distance",
  "centre_of_mass",
  "on_terrain",
]);

/** The kinds that are available for the model, and the present kind. */
export function availableKinds({ model, scene }: Store, current?: GoalKind): [kind: GoalKind, title: string][] {
  return KINDS.filter(
    ([kind]) => kind === current || (!unavailableReason(kind, model) && (kind !== "on_terrain" || scene?.terrain)),
  ).map(([kind, title]) => [kind, title]);
}

/** Why a kind is not available for the model; empty if it is. */
export function unavailableReason(kind: GoalKind, model: Model | null): string {
  return kind === "centre_of_mass" && !model?.has_mass ? "Not available: no link has mass" : "";
}

/** Description of a kind. */
export function kindDescription(kind: GoalKind): string {
  return KINDS.find(([name]) => name === kind)?.[2] ?? "";
}

export function kindTitle(kind: GoalKind): string {
  return KINDS.find(([name]) => name === kind)?.[1] ?? kind;
}

export function goalTitle(goal: GoalInfo, model: Model | null): string {
  if (goal.name) return goal.name;
  const link = model?.links[goal.link]?.name;
  if (goal.is_link_drag) return `drag ${link ?? ""}`.trim();
  return link ? `${kindTitle(goal.kind)} · ${link}` : kindTitle(goal.kind);
}
