// Selects what the camera frames: bodies, goals, obstacles and curves.
import { Sphere, Vector3 } from "three";
import type { CurveInfo } from "../messages";
import type { Selection } from "../store";
import type { SceneGraph } from "./scene_graph";

const MAX_DISTANCE_RATIO = 3; // in radii; points farther away are not framed, since the mechanism would become small
const [TICK_MS, TICK_COUNT] = [100, 15]; // time after a new model during which objects that are received are framed too

/** Points of goals, obstacles and curves that are framed together with the sphere. */
export function framedPoints(sphere: Sphere, { goals, obstacles }: SceneGraph, curves: CurveInfo[]): Vector3[] {
  const allPoints: Vector3[] = obstacles.boxCorners();
  goals.forEachPosition((point) => allPoints.push(point.clone()));
  for (const { points } of curves)
    for (let k = 0; k + 2 < points.length; k += 3) allPoints.push(new Vector3().fromArray(points, k));
  return allPoints.filter((point) => point.distanceTo(sphere.center) < MAX_DISTANCE_RATIO * sphere.radius);
}

/** A sphere around the selection with some margin; null if nothing is selected or drawn. radius: of the model, m. */
export function selectionSphere(selection: Selection, graph: SceneGraph, radius: number): Sphere | null {
  const smallSphere = (point?: Vector3) => (point ? new Sphere(point.clone(), 0.2 * radius) : null);
  let sphere: Sphere | null = null;
  if (selection.kind === "link") sphere = graph.links.bounds(selection.link);
  if (selection.kind === "goal") sphere = smallSphere(graph.goals.object(selection.goal)?.position);
  if (selection.kind === "dof") sphere = smallSphere(graph.dofPosition(selection.dof));
  if (selection.kind === "obstacle") sphere = graph.obstacles.boundingSphere(selection.obstacle);
  if (sphere !== null) sphere.radius = Math.max(1.6 * sphere.radius, 0.1 * radius);
  return sphere;
}

/**
 * Framing of a new model. Goals, obstacles and curves are received after the model. They are framed too, but only for a
 * short time and only until the first input of the user, so that the view does not jump. The time is measured in timer
 * ticks and not with the clock, since a page that draws for the first time is busy for seconds and receives nothing.
 */
export class InitialFraming {
  private ticksLeft = 0;
  private timer = 0;
  private isFramingDue = false; // objects may be outside the free part of the view

  constructor() {
    const end = () => {
      this.ticksLeft = 0;
      this.isFramingDue = false;
    };
    for (const input of ["pointerdown", "wheel", "keydown"])
      window.addEventListener(input, end, { capture: true, passive: true });
  }

  start(): void {
    this.ticksLeft = TICK_COUNT;
    this.isFramingDue = false;
    window.clearInterval(this.timer);
    this.timer = window.setInterval(() => {
      if (--this.ticksLeft <= 0) window.clearInterval(this.timer);
    }, TICK_MS);
  }

  /** Must be called when objects were received or when the free part of the view has changed. */
  notify(): void {
    this.isFramingDue ||= this.ticksLeft > 0;
  }

  /** Whether to frame again; the next call returns false unless `notify` was called. */
  isDue(): boolean {
    const { isFramingDue } = this;
    this.isFramingDue = false;
    return isFramingDue;
  }
}
