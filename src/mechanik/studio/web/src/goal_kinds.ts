// Goal kinds from the event `Welcome` of the server: menus, fields and markers are built from this table.
import type { GoalInfo, GoalKindInfo } from "./messages";
import type { Store } from "./store";

export type GoalKind = GoalKindInfo["kind"];
export type DofName = GoalInfo["free"][number];

/** The six dofs of a pose goal, along and about the axes of the frame of the goal. */
export const POSE_DOFS: readonly (readonly [name: DofName, title: string])[] = [
  ["X", "position along x"],
  ["Y", "position along y"],
  ["Z", "position along z"],
  ["EX", "rotation about x"],
  ["EY", "rotation about y"],
  ["EZ", "rotation about z"],
];

/** Kinds for a menu: all kinds, without those that need a terrain if the scene has no terrain. */
export function offeredKinds({ welcome, scene }: Store): GoalKindInfo[] {
  return (welcome?.goal_kinds ?? []).filter(({ needs }) => needs !== "terrain" || scene?.terrain);
}

/** The kinds that are available for the model; also `currentKind`, even if it is not available. */
export function availableKinds(store: Store, currentKind?: GoalKind): GoalKindInfo[] {
  const kinds = offeredKinds(store);
  return (store.welcome?.goal_kinds ?? []).filter(
    (info) => info.kind === currentKind || (kinds.includes(info) && unavailableReason(info, store) === ""),
  );
}

/** Why a kind is not available for the model; empty if it is available. */
export function unavailableReason({ needs }: GoalKindInfo, { model }: Store): string {
  return needs === "mass" && !model?.has_mass ? "Not available: no link has mass. Add masses to the model file." : "";
}

/** Title of a goal: its name; without a name, its kind and its link, or "drag" and the dragged link. */
export function goalTitle(goal: GoalInfo, store: Store): string {
  if (goal.name) return goal.name;
  const link = store.model?.links[goal.link]?.name;
  if (goal.is_link_drag) return `drag ${link ?? ""}`.trim();
  const { title } = store.goalKind(goal.kind);
  return link ? `${title} · ${link}` : title;
}
