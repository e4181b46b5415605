// Finds the object under a pointer: goals and markers within some pixels have precedence over bodies.
import { Raycaster, Vector3, type Camera, type Vector2 } from "three";
import type { Store } from "../store";
import { PICK_ONLY_LAYER } from "./merged_meshes";
import type { Hit } from "./hit";
import type { SceneGraph } from "./scene_graph";

// maximum distance to the pointer, px: the precision of a finger or a fast mouse; smaller for a marker in front of a
// body, since the user probably means the body
const MAX_PIXELS = { goal: 11, marker: 9, markerOnBody: 5 };

/** Finds the point that is nearest to the pointer on the screen. */
class NearestPoint<T> {
  item: T | null = null;
  readonly point = new Vector3();
  private readonly projected = new Vector3();

  /** bestDistance: at first the maximum distance, px; pointer: x and y from -1 to 1; area: area of the image, px. */
  constructor(
    private bestDistance: number,
    private readonly camera: Camera,
    private readonly pointer: Vector2,
    private readonly area: DOMRect,
  ) {}

  add(item: T, point: Vector3): void {
    this.projected.copy(point).project(this.camera);
    if (this.projected.z < -1 || this.projected.z > 1) return;
    const pixels = Math.hypot(
      ((this.projected.x - this.pointer.x) * this.area.width) / 2,
      ((this.projected.y - this.pointer.y) * this.area.height) / 2,
    );
    if (pixels >= this.bestDistance) return;
    this.bestDistance = pixels;
    this.item = item;
    this.point.copy(point);
  }
}

const raycaster = new Raycaster();
raycaster.layers.enable(PICK_ONLY_LAYER);

/**
 * Picks goals first, then dof markers, then links and obstacles. pointer: x and y from -1 to 1; area: area of the
 * image, px; filter: "link" ignores obstacles, and dof markers if a link is under the pointer.
 */
export function pick(
  store: Store, graph: SceneGraph, camera: Camera, pointer: Vector2, area: DOMRect, filter: "any" | "link" = "any",
): Hit | null {
  raycaster.setFromCamera(pointer, camera);
  const body = pickBody(graph, filter);
  const markerPixels = body === null ? MAX_PIXELS.marker : MAX_PIXELS.markerOnBody;
  const ignoresMarkers = filter === "link" && body !== null;
  const marker =
    pickGoal(graph, new NearestPoint(MAX_PIXELS.goal, camera, pointer, area)) ??
    (ignoresMarkers ? null : pickDof(store, graph, new NearestPoint(markerPixels, camera, pointer, area)));
  if (marker === null) return body;
  const eye = raycaster.ray.origin;
  const isHidden =
    body !== null && !store.display.drawThrough && body.point.distanceTo(eye) < marker.point.distanceTo(eye);
  return isHidden ? body : marker;
}

/** The nearest link or obstacle. */
function pickBody({ links: bodies, obstacles }: SceneGraph, filter: "any" | "link"): Hit | null {
  const eye = raycaster.ray.origin;
  const link = bodies.pick(raycaster);
  const obstacle = filter === "any" ? obstacles.pick(raycaster) : null;
  const isObstacleNearer = obstacle && (!link || obstacle.point.distanceTo(eye) < link.point.distanceTo(eye));
  if (isObstacleNearer) return { kind: "obstacle", ...obstacle };
  return link && { kind: "link", ...link };
}

function pickGoal(graph: SceneGraph, nearest: NearestPoint<number>): Hit | null {
  graph.goals.forEachGrip((number, point) => nearest.add(number, point));
  return nearest.item === null ? null : { kind: "goal", goal: nearest.item, point: nearest.point };
}

function pickDof(
  { model, frame, display }: Store,
  { dofFrames, markers }: SceneGraph,
  nearest: NearestPoint<number>,
): Hit | null {
  if (!display.markers || model === null || frame === null || dofFrames === null) return null;
  for (const k of model.dofs.keys()) {
    markers.forEachGrip(k, dofFrames, frame.values, display.markerScale, (point) => nearest.add(k, point));
  }
  return nearest.item === null ? null : { kind: "dof", dof: nearest.item, point: nearest.point };
}
