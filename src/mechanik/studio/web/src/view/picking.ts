// What is under a pointer: small things within some pixels of it, before bodies.
import { Raycaster, Vector3, type Camera, type Vector2 } from "three";
import type { Store } from "../store";
import { PICKED } from "./flock";
import type { Hit } from "./hit";
import type { Stage } from "./stage";

// how near the pointer has to be, pixels: a finger or a quick mouse is not more exact
const NEAR = { goal: 11, marker: 9, markerOnBody: 5 }; // who points at a body mostly means it

/** Collects places and keeps the one nearest to the pointer on the screen. */
class Nearest<T> {
  found: T | null = null;
  readonly point = new Vector3();
  private readonly seen = new Vector3();

  /** best: farther than this is no hit, pixels; pointer: -1 to 1 each way; area: of the picture, pixels. */
  constructor(
    private best: number,
    private readonly camera: Camera,
    private readonly pointer: Vector2,
    private readonly area: DOMRect,
  ) {}

  offer(what: T, place: Vector3): void {
    this.seen.copy(place).project(this.camera);
    if (this.seen.z < -1 || this.seen.z > 1) return;
    const pixels = Math.hypot(
      ((this.seen.x - this.pointer.x) * this.area.width) / 2,
      ((this.seen.y - this.pointer.y) * this.area.height) / 2,
    );
    if (pixels >= this.best) return;
    this.best = pixels;
    this.found = what;
    this.point.copy(place);
  }
}

const raycaster = new Raycaster();
raycaster.layers.enable(PICKED);

/** Goals come first, then markers of freedoms, then links and obstacles. pointer: -1 to 1 each way; area: of the
 * picture, px; what: "link" looks past markers where they stand before or in a body, and past obstacles. */
export function pick(
  store: Store, stage: Stage, camera: Camera, pointer: Vector2, area: DOMRect, what: "any" | "link" = "any",
): Hit | null {
  raycaster.setFromCamera(pointer, camera);
  const body = pickBody(stage, what);
  const near = body === null ? NEAR.marker : NEAR.markerOnBody;
  const isPast = what === "link" && body !== null;
  const small =
    pickGoal(stage, new Nearest(NEAR.goal, camera, pointer, area)) ??
    (isPast ? null : pickFreedom(store, stage, new Nearest(near, camera, pointer, area)));
  if (small === null) return body;
  const eye = raycaster.ray.origin;
  const isHidden =
    body !== null && !store.display.drawThrough && body.point.distanceTo(eye) < small.point.distanceTo(eye);
  return isHidden ? body : small;
}

/** The nearest link or obstacle. */
function pickBody({ bodies, obstacles }: Stage, what: "any" | "link"): Hit | null {
  const eye = raycaster.ray.origin;
  const link = bodies.pick(raycaster);
  const obstacle = what === "any" ? obstacles.pick(raycaster) : null;
  const isBefore = obstacle && (!link || obstacle.point.distanceTo(eye) < link.point.distanceTo(eye));
  if (isBefore) return { kind: "obstacle", ...obstacle };
  return link && { kind: "link", ...link };
}

function pickGoal(stage: Stage, nearest: Nearest<number>): Hit | null {
  stage.goals.grips((number, place) => nearest.offer(number, place));
  return nearest.found === null ? null : { kind: "goal", goal: nearest.found, point: nearest.point };
}

function pickFreedom(
  { model, frame, display }: Store,
  { joints, markers }: Stage,
  nearest: Nearest<number>,
): Hit | null {
  if (!display.markers || model === null || frame === null || joints === null) return null;
  for (const k of model.dofs.keys()) {
    markers.grips(k, joints, frame.values, display.markerScale, (place) => nearest.offer(k, place));
  }
  return nearest.found === null ? null : { kind: "freedom", freedom: nearest.found, point: nearest.point };
}
