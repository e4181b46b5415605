// Framing of the camera: the bodies with goals, obstacles and curves.
import { Sphere, Vector3 } from "three";
import type { CurveInfo } from "../messages";
import type { Selection } from "../store";
import type { SceneGraph } from "./scene_graph";

const MAX_DISTANCE = 3; // in radii; more distant points are not framed, since they would make the rest small
const [TICK_MS, TICKS] = [100, 15]; // after a model, during which objects that belong to it are framed too

/** Points of goals, obstacles and curves that are framed together with the sphere. */
export function framedPoints(sphere: Sphere, { goals, obstacles }: SceneGraph, curves: CurveInfo[]): Vector3[] {
  const places: Vector3[] = obstacles.boxCorners();
  goals.places((place) => places.push(place.clone()));
  for (const { points } of curves)
    for (let k = 0; k + 2 < points.length; k += 3) places.push(new Vector3().fromArray(points, k));
  return places.filter((place) => place.distanceTo(sphere.center) < MAX_DISTANCE * sphere.radius);
}

/** A sphere around the selection with some margin; null if nothing is selected. radius: of the model, m. */
export function selectionSphere(selection: Selection, graph: SceneGraph, radius: number): Sphere | null {
  const small = (place?: Vector3) => (place ? new Sphere(place.clone(), 0.2 * radius) : null);
  let sphere: Sphere | null = null;
  if (selection.kind === "link") sphere = graph.links.bounds(selection.link);
  if (selection.kind === "goal") sphere = small(graph.goals.object(selection.goal)?.position);
  if (selection.kind === "dof") sphere = small(graph.dofPosition(selection.dof));
  if (selection.kind === "obstacle") sphere = graph.obstacles.boundingSphere(selection.obstacle);
  if (sphere !== null) sphere.radius = Math.max(1.6 * sphere.radius, 0.1 * radius);
  return sphere;
}

/**
 * Framing of a new model. Goals and curves come after the model; they are framed too, but only for a short time and
 * only until the first input, so that the view does not jump. The time is counted in timer ticks and not by the clock,
 * since a page that draws for the first time is busy for seconds and receives nothing meanwhile.
 */
export class InitialFraming {
  private ticksLeft = 0;
  private timer = 0;
  private hasNewObjects = false; // objects came that may be outside of the view

  constructor() {
    const end = () => {
      this.ticksLeft = 0;
      this.hasNewObjects = false;
    };
    for (const touch of ["pointerdown", "wheel", "keydown"])
      window.addEventListener(touch, end, { capture: true, passive: true });
  }

  start(): void {
    this.ticksLeft = TICKS;
    this.hasNewObjects = false;
    window.clearInterval(this.timer);
    this.timer = window.setInterval(() => {
      if (--this.ticksLeft <= 0) window.clearInterval(this.timer);
    }, TICK_MS);
  }

  /** New objects came. */
  notify(): void {
    this.hasNewObjects ||= this.ticksLeft > 0;
  }

  /** Whether to frame again; then false until more objects come. */
  isDue(): boolean {
    const { hasNewObjects: isOut } = this;
    this.hasNewObjects = false;
    return isOut;
  }
}
