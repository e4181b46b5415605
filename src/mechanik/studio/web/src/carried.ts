// What a recorded page carries: the motion of a mechanism, and what happened around it.
import type {
  ContactsChanged, CurveInfo, LinkInfo, Model, ObstacleInfo, ObstacleMoved, Obstacles, ShapeInfo,
} from "./messages";

/** Seconds from 0; for each time seven numbers a link; meshes in base64 by their addresses. */
export interface Motion {
  name?: string;
  model: Model;
  times: number[];
  poses?: number[][];
  links?: number[][];
  files?: Record<string, string>;
  curves?: CurveInfo[];
  events?: [time: number, event: Obstacles | ObstacleMoved | ContactsChanged][];
}

/** How obstacles stand and what bumps, from a time on. */
export interface Surroundings {
  time: number;
  obstacles: Obstacles;
  clashes: ContactsChanged;
}

/** The model with its meshes as addresses within the page itself. */
export function carriedModel({ model, files = {} }: Motion): Model {
  const links = model.links.map((link): LinkInfo => ({
    ...link,
    visuals: link.visuals.map((shape) => carried(shape, files)),
  }));
  return { ...model, is: "Model", links, resets_view: true }; // a file carries the fields alone
}

/** All surroundings, one after the other, so that any moment can be looked at; empty if none were recorded. */
export function surroundings({ model, files = {}, events = [] }: Motion): Surroundings[] {
  const found: Surroundings[] = [];
  let obstacles: ObstacleInfo[] = [];
  let clashes: ContactsChanged = { is: "ContactsChanged", revision: model.revision, links: [], obstacles: [], reason: "" };
  const own = (one: ObstacleInfo): ObstacleInfo => ({ ...one, shape: carried(one.shape, files) });
  for (const [time, event] of events) {
    if (event.is === "Obstacles") obstacles = event.obstacles.map(own);
    if (event.is === "ObstacleMoved") {
      const moved = own(event.obstacle);
      obstacles = obstacles.map((one) => (one.name === moved.name ? moved : one));
    }
    if (event.is === "ContactsChanged") clashes = { ...event, revision: model.revision };
    found.push({ time, obstacles: { is: "Obstacles", obstacles }, clashes });
  }
  return found;
}

function carried(shape: ShapeInfo, files: Record<string, string>): ShapeInfo {
  const inside = (address: string) => {
    const content = files[address];
    return content === undefined ? null : `data:application/octet-stream;base64,${content}`;
  };
  const beside = Object.entries(shape.dependencies).map(([name, address]) => [name, inside(address)] as const);
  return {
    ...shape,
    mesh: shape.mesh === null ? null : inside(shape.mesh),
    dependencies: Object.fromEntries(beside.filter((one): one is [string, string] => one[1] !== null)),
  };
}
