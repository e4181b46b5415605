// What goals are called, what else each kind measures, and which directions a pose has.
import type { GoalInfo, Model } from "../messages";
import type { Store } from "../store";
import type { Quantity } from "./units";

export type GoalKind = GoalInfo["kind"];
export type Direction = GoalInfo["free"][number];

export const KINDS: readonly (readonly [kind: GoalKind, title: string, about: string])[] = [
  ["point", "Point", "This point of the link shall be there"],
  ["pose", "Pose", "Place and turn, all six numbers"],
  ["orientation", "Turn", "The link shall be turned like this, wherever it is"],
  ["axis", "Direction", "The link's axis shall point along the goal's"],
  ["hinge", "Hinge", "Place and axis; it may still turn around the axis"],
  ["surface", "Surface", "On the plane and flat against it"],
  ["on_line", "On a line", "The point shall be somewhere on a line"],
  ["on_plane", "On a plane", "The point shall be somewhere on a plane"],
  ["look_at", "Look at", "The link shall look at a place"],
  ["distance", "Distance", "The point shall keep a distance from a place"],
  ["in_box", "In a box", "The point shall stay inside of a box"],
  ["in_cone", "In a cone", "The axis shall stay inside of a cone"],
  ["in_band", "In a band", "The point shall stay between two planes"],
  ["centre_of_mass", "Balance", "The centre of mass of all links shall be there"],
  ["on_terrain", "On the ground", "The point shall stand on the terrain of the scene"],
];

/** Kinds whose `at` is a direction of the link and not a place on it. */
export const DIRECTED: ReadonlySet<GoalKind> = new Set<GoalKind>(["orientation", "axis", "in_cone", "look_at"]);

export const DIRECTIONS: readonly (readonly [Direction, string])[] = [
  ["X", "place along x"],
  ["Y", "place along y"],
  ["Z", "place along z"],
  ["EX", "turn about x"],
  ["EY", "turn about y"],
  ["EZ", "turn about z"],
];

/** The sizes of a kind, in the order of `sizes`. */
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

/** Kinds of which the goal's turn says nothing. */
export const WITHOUT_TURN: ReadonlySet<GoalKind> = new Set([
  "point",
  "look_at",
  "distance",
  "centre_of_mass",
  "on_terrain",
]);

/** The kinds that can be had here, and `kept`, which is had already. */
export function kindsHere({ model, scene }: Store, kept?: GoalKind): [kind: GoalKind, title: string][] {
  return KINDS.filter(
    ([kind]) => kind === kept || (!whyNot(kind, model) && (kind !== "on_terrain" || scene?.terrain)),
  ).map(([kind, title]) => [kind, title]);
}

/** Why a mechanism can have no goal of that kind; "": it can. */
export function whyNot(kind: GoalKind, model: Model | null): string {
  return kind === "centre_of_mass" && !model?.has_mass ? "Nothing here weighs anything: no link has a mass" : "";
}

/** What the kind asks for, in a sentence. */
export function kindAbout(kind: GoalKind): string {
  return KINDS.find(([name]) => name === kind)?.[2] ?? "";
}

export function kindTitle(kind: GoalKind): string {
  return KINDS.find(([name]) => name === kind)?.[1] ?? kind;
}

export function goalTitle(goal: GoalInfo, model: Model | null): string {
  if (goal.name) return goal.name;
  const link = model?.links[goal.link]?.name;
  if (goal.is_link_drag) return `pull ${link ?? ""}`.trim();
  return link ? `${kindTitle(goal.kind)} · ${link}` : kindTitle(goal.kind);
}
