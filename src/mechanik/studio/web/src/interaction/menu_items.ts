// Contents of the context menus of a link, a goal, a dof, an obstacle and the background.
import type { Vector3 } from "three";
import type { GoalInfo, Model } from "../messages";
import { goalTitle, offeredKinds, unavailableReason, type GoalKind } from "../goal_kinds";
import { addObstacle, OBSTACLE_KINDS } from "../panels/obstacle_text";
import type { Store } from "../store";
import type { Hit, View } from "../view/view";
import { childLink } from "./joint_drag";
import type { MenuItem, MenuGroup } from "./menu";
import { linkPose } from "./poses";

export interface MenuContent {
  title: string;
  groups: MenuGroup[];
}

/** hitBehind: the link behind the marker of a dof, if `hit` is a marker. */
export function menuFor(hit: Hit | null, hitBehind: Hit | null, store: Store, view: View): MenuContent | null {
  const model = store.model;
  if (model === null) return null;
  if (hit === null) return { title: "View", groups: backgroundMenu(model, store, view) };
  if (hit.kind === "obstacle") return obstacleMenu(hit.obstacle, store, view);
  if (hit.kind === "goal") return goalMenu(hit.goal, store);
  if (hit.kind === "dof") return dofMenu(hit.dof, hitBehind, model, store);
  return linkMenu(hit.link, hit.point, nearestDofs(model, hit.link), model, store);
}

function backgroundMenu(model: Model, store: Store, view: View): MenuGroup[] {
  const hiddenLinks = model.links.filter((link) => !link.visible).map((link) => link.name);
  const items: MenuItem[] = [
    { name: "frame-all", text: "Frame all", action: () => view.frameAll() },
    {
      name: "show-all", text: "Show all links", isDisabled: hiddenLinks.length === 0,
      action: () => void store.request({ do: "ShowLinks", links: hiddenLinks, visible: true }),
    },
  ];
  const obstacles: MenuItem[] = OBSTACLE_KINDS.map(([kind, text]) => ({
    name: `add-${kind}`, text, action: () => void addObstacle(store, kind),
  }));
  return [{ title: "", items }, { title: "Add an obstacle", isGrid: true, items: obstacles }];
}

function obstacleMenu(name: string, store: Store, view: View): MenuContent {
  const items: MenuItem[] = [
    { name: "frame", text: "Frame", action: () => view.frameSelection() },
    { name: "delete", text: "Remove", action: () => void store.request({ do: "RemoveObstacle", obstacle: name }) },
  ];
  return { title: name, groups: [{ title: "", items }] };
}

/** point: point of the link at which the menu was opened, in the world, m; dofs: the dofs that the menu can lock. */
function linkMenu(link: number, point: Vector3, dofs: number[], model: Model, store: Store): MenuContent | null {
  const info = model.links[link];
  if (info === undefined || store.frame === null) return null;
  const at = linkPose(store.frame, link).toLocal(point);
  const goals = store.goals.filter((goal) => goal.link === link && !goal.is_link_drag);
  const pins = goals.filter((goal) => goal.pinned);
  const add = (kind: GoalKind, pinned: boolean): void => void addGoal(store, kind, info.name, at, pinned);
  return {
    title: info.name,
    groups: [
      {
        title: "",
        items: [
          {
            name: "pin", text: "Pin here", hint: "Hold this pose, with the highest priority",
            action: () => add("pose", true),
          },
          {
            name: "unpin", text: "Unpin", isDisabled: pins.length === 0,
            action: () => pins.forEach(
              ({ number: goal }) => void store.request({ do: "ChangeGoal", goal, pinned: false }),
            ),
          },
          {
            name: "remove-goals", isDisabled: goals.length === 0,
            text: goals.length > 1 ? `Remove ${goals.length} goals` : "Remove goal",
            action: () => goals.forEach(({ number }) => void store.request({ do: "RemoveGoal", goal: number })),
          },
        ],
      },
      {
        title: "Add a goal for this point", isGrid: true,
        items: goalKindItems(store, "goal").map((entry) => ({ ...entry, action: () => add(entry.kind, false) })),
      },
      { title: "", items: [...jointItems(dofs, model, store), hideItem(info.name, store)] },
    ],
  };
}

function goalMenu(number: number, store: Store): MenuContent | null {
  const goal = store.goal(number);
  if (goal === undefined) return null;
  const change = (settings: Partial<Pick<GoalInfo, "kind" | "pinned" | "enabled">>): void =>
    void store.request({ do: "ChangeGoal", goal: number, ...settings });
  return {
    title: goalTitle(goal, store),
    groups: [
      {
        title: "",
        items: [
          {
            name: goal.pinned ? "unpin" : "pin", text: goal.pinned ? "Unpin" : "Pin",
            action: () => change({ pinned: !goal.pinned }),
          },
          {
            name: goal.enabled ? "disable" : "enable", text: goal.enabled ? "Disable" : "Enable",
            action: () => change({ enabled: !goal.enabled }),
          },
          { name: "delete", text: "Remove", action: () => void store.request({ do: "RemoveGoal", goal: number }) },
        ],
      },
      {
        title: "Kind", isGrid: true,
        items: goalKindItems(store, "kind").map((entry) => ({
          ...entry, isCurrent: entry.kind === goal.kind, action: () => change({ kind: entry.kind }),
        })),
      },
    ],
  };
}

/** Items of a dof, then the items of the link behind its marker, or of the child link of its joint. */
function dofMenu(dof: number, hitBehind: Hit | null, model: Model, store: Store): MenuContent | null {
  const info = model.dofs[dof];
  if (info === undefined || store.frame === null) return null;
  const dofGroup: MenuGroup = { title: "", items: jointItems([dof], model, store) };
  const child = childLink(model, dof);
  const link = hitBehind?.kind === "link" ? hitBehind.link : child;
  const point = hitBehind?.kind === "link" ? hitBehind.point : linkPose(store.frame, child).position;
  const [firstGroup, ...otherGroups] = linkMenu(link, point, [], model, store)?.groups ?? [];
  if (firstGroup === undefined) return { title: info.name, groups: [dofGroup] };
  return { title: info.name, groups: [dofGroup, { ...firstGroup, title: model.links[link]!.name }, ...otherGroups] };
}

/** Items for the lock and the rest value of these dofs. */
function jointItems(dofs: number[], model: Model, store: Store): MenuItem[] {
  if (dofs.length === 0) return [];
  const infos = dofs.map((dof) => ({ dof, info: model.dofs[dof]! }));
  const independentDofs = infos.filter(({ info }) => info.mimics < 0);
  const scalarDofs = independentDofs.filter(({ info }) => info.kind !== "spherical");
  const isLocked = independentDofs.length > 0 && independentDofs.every(({ info }) => info.locked);
  const name = infos.length === 1 ? infos[0]!.info.name : (model.joints[infos[0]!.info.joint]?.name ?? "joint");
  const setRest = (restValue: (valueIndex: number) => number | null): void =>
    scalarDofs.forEach(({ dof, info }) => void store.request({ do: "SetRest", dof, value: restValue(info.value) }));
  const items: MenuItem[] = [
    {
      name: isLocked ? "unlock" : "lock",
      text: `${isLocked ? "Unlock" : "Lock"} ${name}`,
      isDisabled: independentDofs.length === 0,
      action: () =>
        independentDofs.forEach(({ dof }) => void store.request({ do: "SetLocked", dof, locked: !isLocked })),
    },
    {
      name: "rest", text: "Set rest value",
      hint: "Use the present value as rest value: the joint returns to it if the goals allow it",
      isDisabled: scalarDofs.length === 0,
      action: () => setRest((valueIndex) => store.frame?.values[valueIndex] ?? null),
    },
  ];
  if (scalarDofs.some(({ info }) => info.rest !== null)) {
    items.push({ name: "no-rest", text: "Remove rest value", action: () => setRest(() => null) });
  }
  return items;
}

function hideItem(link: string, store: Store): MenuItem {
  const action = (): void => void store.request({ do: "ShowLinks", links: [link], visible: false });
  return { name: "hide", text: "Hide", action };
}

/** The dofs of the nearest joint with dofs between a link and the root. */
function nearestDofs(model: Model, link: number): number[] {
  for (let k = link, steps = 0; steps <= model.links.length; steps++) {
    const joint = model.joints[model.links[k]?.parent ?? -1];
    if (joint === undefined) return [];
    if (joint.dofs.length > 0) return joint.dofs;
    k = joint.parent;
  }
  return [];
}

/** Items for the goal kinds; a kind that is not available is disabled, and its hint is the reason. */
function goalKindItems(store: Store, prefix: string): (Omit<MenuItem, "action"> & { kind: GoalKind })[] {
  return offeredKinds(store).map((info) => {
    const { kind, title, about } = info;
    const reason = unavailableReason(info, store);
    return { kind, name: `${prefix}-${kind}`, text: title, hint: reason || about, isDisabled: reason !== "" };
  });
}

/** Adds a goal and selects it to show its handle. at: point of the link, in the frame of the link, m. */
async function addGoal(store: Store, kind: GoalKind, link: string, at: Vector3, pinned: boolean): Promise<void> {
  const previousNumbers = new Set(store.goals.map((goal) => goal.number));
  // a zero vector selects the default axis of the link
  const isPoint = store.goalKind(kind).at !== "direction";
  const point: [number, number, number] = isPoint ? [at.x, at.y, at.z] : [0, 0, 0];
  if (!(await store.request({ do: "AddGoal", kind, link, at: point, pinned }))) return;
  const newGoal = store.goals.find((goal) => !previousNumbers.has(goal.number) && !goal.is_link_drag);
  if (newGoal !== undefined) store.select({ kind: "goal", goal: newGoal.number });
}
