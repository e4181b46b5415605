// The look at the whole: besides the bodies it holds the goals and the curves that belong to them.
import { Sphere, Vector3 } from "three";
import type { CurveInfo } from "../messages";
import type { Selection } from "../store";
import type { Stage } from "./stage";

const AROUND = 3; // radii: what is farther off than this is somewhere else, and would make all else small
const [TURN, TURNS] = [100, 15]; // ms, and how many of them: in which what belongs to a model comes after it

/** Places of goals, obstacles and curves that a look at this ball should hold too. */
export function besides(ball: Sphere, { goals, obstacles }: Stage, curves: CurveInfo[]): Vector3[] {
  const places: Vector3[] = obstacles.places();
  goals.places((place) => places.push(place.clone()));
  for (const { points } of curves)
    for (let k = 0; k + 2 < points.length; k += 3) places.push(new Vector3().fromArray(points, k));
  return places.filter((place) => place.distanceTo(ball.center) < AROUND * ball.radius);
}

/** A ball around what is selected with some room; null when there is nothing. radius: of the model, m. */
export function around(chosen: Selection, stage: Stage, radius: number): Sphere | null {
  const small = (place?: Vector3) => (place ? new Sphere(place.clone(), 0.2 * radius) : null);
  let ball: Sphere | null = null;
  if (chosen.kind === "link") ball = stage.bodies.bounds(chosen.link);
  if (chosen.kind === "goal") ball = small(stage.goals.object(chosen.goal)?.position);
  if (chosen.kind === "freedom") ball = small(stage.placeOf(chosen.freedom));
  if (chosen.kind === "obstacle") ball = stage.obstacles.ball(chosen.obstacle);
  if (ball !== null) ball.radius = Math.max(1.6 * ball.radius, 0.1 * radius);
  return ball;
}

/** The first look at a model. Goals and curves come after it one by one; they are brought into the picture, but for a
 * moment only, and not once a hand has touched anything: nothing should jump then. A page that is busy with its first
 * picture for seconds hears nothing meanwhile, so the moment is counted in turns of a timer and not by the clock. */
export class FirstLook {
  private left = 0; // turns
  private timer = 0;
  private isOut = false; // something came that the camera may not see

  constructor() {
    const end = () => {
      this.left = 0;
      this.isOut = false;
    };
    for (const touch of ["pointerdown", "wheel", "keydown"])
      window.addEventListener(touch, end, { capture: true, passive: true });
  }

  begin(): void {
    this.left = TURNS;
    this.isOut = false;
    window.clearInterval(this.timer);
    this.timer = window.setInterval(() => {
      if (--this.left <= 0) window.clearInterval(this.timer);
    }, TURN);
  }

  /** Something has come. */
  add(): void {
    this.isOut ||= this.left > 0;
  }

  /** Whether to look anew; then not again until more has come. */
  isDue(): boolean {
    const { isOut } = this;
    this.isOut = false;
    return isOut;
  }
}
