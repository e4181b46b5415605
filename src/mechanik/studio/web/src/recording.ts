// Contents of a recorded page: the motion of a mechanism, and the obstacles and contacts during the motion.
import type {
  ContactsChanged, CurveInfo, LinkInfo, Model, ObstacleInfo, ObstacleMoved, Obstacles, ShapeInfo,
} from "./messages";

/**
 * times: s, from 0; poses (or links): for each time seven numbers per link, x y z qw qx qy qz; files: meshes and the
 * files that they refer to, in base64, by URL path; events: changes of obstacles and contacts, in order of time (s).
 */
export interface RecordedMotion {
  name?: string;
  model: Model;
  times: number[];
  poses?: number[][];
  links?: number[][];
  files?: Record<string, string>;
  curves?: CurveInfo[];
  events?: [time: number, event: Obstacles | ObstacleMoved | ContactsChanged][];
}

/** Obstacles and contacts, valid from `time` (s) until the next entry. */
export interface RecordedSurroundings {
  time: number;
  obstacles: Obstacles;
  contacts: ContactsChanged;
}

/** The model with its visual meshes as data URLs; the URL of a mesh that the page does not contain is null. */
export function recordedModel({ model, files = {} }: RecordedMotion): Model {
  const links = model.links.map((link): LinkInfo => ({
    ...link,
    visuals: link.visuals.map((shape) => withEmbeddedFiles(shape, files)),
  }));
  return { ...model, is: "Model", links, resets_view: true }; // the camera frames the model
}

/** The obstacles and contacts after each recorded event, in order of time. */
export function recordedSurroundings({ model, files = {}, events = [] }: RecordedMotion): RecordedSurroundings[] {
  const surroundings: RecordedSurroundings[] = [];
  let obstacles: ObstacleInfo[] = [];
  let contacts: ContactsChanged = {
    is: "ContactsChanged",
    revision: model.revision,
    links: [],
    obstacles: [],
    reason: "",
  };
  const withObstacleFiles = (obstacle: ObstacleInfo): ObstacleInfo => ({
    ...obstacle,
    shape: withEmbeddedFiles(obstacle.shape, files),
  });
  for (const [time, event] of events) {
    if (event.is === "Obstacles") obstacles = event.obstacles.map(withObstacleFiles);
    if (event.is === "ObstacleMoved") {
      const movedObstacle = withObstacleFiles(event.obstacle);
      obstacles = obstacles.map((obstacle) => (obstacle.name === movedObstacle.name ? movedObstacle : obstacle));
    }
    if (event.is === "ContactsChanged") contacts = { ...event, revision: model.revision };
    surroundings.push({ time, obstacles: { is: "Obstacles", obstacles }, contacts });
  }
  return surroundings;
}

function withEmbeddedFiles(shape: ShapeInfo, files: Record<string, string>): ShapeInfo {
  const dataUrl = (address: string) => {
    const base64 = files[address];
    return base64 === undefined ? null : `data:application/octet-stream;base64,${base64}`;
  };
  const dependencies = Object.entries(shape.dependencies).map(([name, address]) => [name, dataUrl(address)] as const);
  return {
    ...shape,
    mesh: shape.mesh === null ? null : dataUrl(shape.mesh),
    dependencies: Object.fromEntries(dependencies.filter((entry): entry is [string, string] => entry[1] !== null)),
  };
}
