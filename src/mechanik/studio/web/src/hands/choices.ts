// What the menus offer: for a link, a goal, a freedom, an obstacle, and beside everything.
import type { Vector3 } from "three";
import type { GoalInfo, Model } from "../messages";
import { KINDS, goalTitle, whyNot, type GoalKind } from "../panels/goal_words";
import { addObstacle, OBSTACLES } from "../panels/obstacle_words";
import type { Store } from "../store";
import type { Hit, View } from "../view/view";
import { childOf } from "./joint_drag";
import type { Entry, Group } from "./menu";
import { linkPose } from "./poses";

export interface Choices {
  title: string;
  groups: Group[];
}

/** behind: what is seen past a marker, if that is what `hit` is. */
export function choicesFor(hit: Hit | null, behind: Hit | null, store: Store, view: View): Choices | null {
  const model = store.model;
  if (model === null) return null;
  if (hit === null) return { title: "View", groups: forNothing(model, store, view) };
  if (hit.kind === "obstacle") return forObstacle(hit.obstacle, store, view);
  if (hit.kind === "goal") return forGoal(hit.goal, store);
  if (hit.kind === "freedom") return forFreedom(hit.freedom, behind, model, store);
  return forLink(hit.link, hit.point, moversOf(model, hit.link), model, store);
}

function forNothing(model: Model, store: Store, view: View): Group[] {
  const hidden = model.links.filter((link) => !link.visible).map((link) => link.name);
  const own: Entry[] = [
    { name: "frame-all", text: "Frame all", choose: () => view.frameAll() },
    {
      name: "show-all", text: "Show all links", isOff: hidden.length === 0,
      choose: () => void store.ask({ do: "ShowLinks", links: hidden, visible: true }),
    },
  ];
  const obstacles: Entry[] = OBSTACLES.map(([kind, text]) => ({
    name: `add-${kind}`, text, choose: () => void addObstacle(store, kind),
  }));
  return [{ title: "", entries: own }, { title: "Add an obstacle", isGrid: true, entries: obstacles }];
}

function forObstacle(name: string, store: Store, view: View): Choices {
  const entries: Entry[] = [
    { name: "frame", text: "Frame it", choose: () => view.frameSelection() },
    { name: "delete", text: "Remove", choose: () => void store.ask({ do: "RemoveObstacle", obstacle: name }) },
  ];
  return { title: name, groups: [{ title: "", entries }] };
}

/** point: of the world, where it was taken; movers: the freedoms that can be locked there. */
function forLink(link: number, point: Vector3, movers: number[], model: Model, store: Store): Choices | null {
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
        entries: [
          {
            name: "pin", text: "Pin here", about: "Hold this place and turn above all other goals",
            choose: () => add("pose", true),
          },
          {
            name: "unpin", text: "Unpin", isOff: pins.length === 0,
            choose: () => pins.forEach(({ number: goal }) => void store.ask({ do: "ChangeGoal", goal, pinned: false })),
          },
          {
            name: "remove-goals", isOff: goals.length === 0,
            text: goals.length > 1 ? `Remove its ${goals.length} goals` : "Remove its goal",
            choose: () => goals.forEach(({ number }) => void store.ask({ do: "RemoveGoal", goal: number })),
          },
        ],
      },
      {
        title: "A goal for this point", isGrid: true,
        entries: kindsFor(store, "goal").map((entry) => ({ ...entry, choose: () => add(entry.kind, false) })),
      },
      { title: "", entries: [...forJoint(movers, model, store), hide(info.name, store)] },
    ],
  };
}

function forGoal(number: number, store: Store): Choices | null {
  const goal = store.goal(number);
  if (goal === undefined) return null;
  const change = (what: Partial<Pick<GoalInfo, "kind" | "pinned" | "enabled">>): void =>
    void store.ask({ do: "ChangeGoal", goal: number, ...what });
  return {
    title: goalTitle(goal, store.model),
    groups: [
      {
        title: "",
        entries: [
          {
            name: goal.pinned ? "unpin" : "pin", text: goal.pinned ? "Unpin" : "Pin",
            choose: () => change({ pinned: !goal.pinned }),
          },
          {
            name: goal.enabled ? "disable" : "enable", text: goal.enabled ? "Switch off" : "Switch on",
            choose: () => change({ enabled: !goal.enabled }),
          },
          { name: "delete", text: "Remove", choose: () => void store.ask({ do: "RemoveGoal", goal: number }) },
        ],
      },
      {
        title: "Kind", isGrid: true,
        entries: kindsFor(store, "kind").map((entry) => ({
          ...entry, isOn: entry.kind === goal.kind, choose: () => change({ kind: entry.kind }),
        })),
      },
    ],
  };
}

/** What a marker offers, and below it what the link offers on which it is seen; beside all links, the one it moves. */
function forFreedom(freedom: number, behind: Hit | null, model: Model, store: Store): Choices | null {
  const info = model.dofs[freedom];
  if (info === undefined || store.frame === null) return null;
  const own: Group = { title: "", entries: forJoint([freedom], model, store) };
  const child = childOf(model, freedom);
  const link = behind?.kind === "link" ? behind.link : child;
  const point = behind?.kind === "link" ? behind.point : linkPose(store.frame, child).position;
  const [first, ...others] = forLink(link, point, [], model, store)?.groups ?? [];
  if (first === undefined) return { title: info.name, groups: [own] };
  return { title: info.name, groups: [own, { ...first, title: model.links[link]!.name }, ...others] };
}

/** Lock and rest; `movers` are the freedoms meant. */
function forJoint(movers: number[], model: Model, store: Store): Entry[] {
  if (movers.length === 0) return [];
  const infos = movers.map((freedom) => ({ freedom, info: model.dofs[freedom]! }));
  const own = infos.filter(({ info }) => info.mimics < 0);
  const single = own.filter(({ info }) => info.kind !== "spherical");
  const isLocked = own.length > 0 && own.every(({ info }) => info.locked);
  const name = infos.length === 1 ? infos[0]!.info.name : (model.joints[infos[0]!.info.joint]?.name ?? "joint");
  const rest = (value: (place: number) => number | null): void =>
    single.forEach(({ freedom, info }) => void store.ask({ do: "SetRest", dof: freedom, value: value(info.value) }));
  const entries: Entry[] = [
    {
      name: isLocked ? "unlock" : "lock", text: `${isLocked ? "Unlock" : "Lock"} ${name}`, isOff: own.length === 0,
      choose: () => own.forEach(({ freedom }) => void store.ask({ do: "SetLocked", dof: freedom, locked: !isLocked })),
    },
    {
      name: "rest", text: "Rest here", about: "Come back here as far as nothing else is asked",
      isOff: single.length === 0,
      choose: () => rest((place) => store.frame?.values[place] ?? null),
    },
  ];
  if (single.some(({ info }) => info.rest !== null)) {
    entries.push({ name: "no-rest", text: "Rest nowhere", choose: () => rest(() => null) });
  }
  return entries;
}

function hide(link: string, store: Store): Entry {
  const choose = (): void => void store.ask({ do: "ShowLinks", links: [link], visible: false });
  return { name: "hide", text: "Hide", choose };
}

/** The freedoms of the nearest joint above a link that has any. */
function moversOf(model: Model, link: number): number[] {
  for (let k = link, steps = 0; steps <= model.links.length; steps++) {
    const joint = model.joints[model.links[k]?.parent ?? -1];
    if (joint === undefined) return [];
    if (joint.dofs.length > 0) return joint.dofs;
    k = joint.parent;
  }
  return [];
}

/** Kinds of goals; those that this mechanism cannot have say why. */
function kindsFor(store: Store, before: string): (Omit<Entry, "choose"> & { kind: GoalKind })[] {
  return KINDS.filter(([kind]) => kind !== "on_terrain" || store.scene?.terrain).map(([kind, text, about]) => {
    const why = whyNot(kind, store.model);
    return { kind, name: `${before}-${kind}`, text, about: why || about, isOff: why !== "" };
  });
}

/** Add a goal and select it, so that its handle is at hand. */
async function addGoal(store: Store, kind: GoalKind, link: string, at: Vector3, pinned: boolean): Promise<void> {
  const known = new Set(store.goals.map((goal) => goal.number));
  const isDirection = kind === "axis" || kind === "in_cone"; // there `at` would be the link's axis
  const place: [number, number, number] = isDirection ? [0, 0, 0] : [at.x, at.y, at.z];
  if (!(await store.ask({ do: "AddGoal", kind, link, at: place, pinned }))) return;
  const added = store.goals.find((goal) => !known.has(goal.number) && !goal.is_link_drag);
  if (added !== undefined) store.select({ kind: "goal", goal: added.number });
}
