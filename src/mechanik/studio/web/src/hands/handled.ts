// What the handle can be at: a goal, or an obstacle.
import type { PageRequest } from "../messages";
import type { Selection, Store } from "../store";
import type { Grip } from "./grip";
import { goalPose, obstaclePose, type Pose } from "./poses";

export interface Handled {
  /** The same for the same thing. */
  readonly name: string;
  /** Where it is; null if it is not there any more. */
  pose(): Pose | null;
  /** What a hand asks for that takes it. */
  grab(): PageRequest;
  hold(grip: Grip, pose: Pose): void;
}

export function handled(store: Store, chosen: Selection): Handled | null {
  if (chosen.kind === "goal") return goal(store, chosen.goal);
  if (chosen.kind === "obstacle") return obstacle(store, chosen.obstacle);
  return null;
}

function goal(store: Store, number: number): Handled {
  return {
    name: `goal ${number}`,
    pose: () => goalPose(store, number),
    grab: () => ({ do: "StartGoalDrag", goal: number }),
    hold: (grip, pose) => grip.holdGoal(number, pose.numbers()),
  };
}

function obstacle(store: Store, name: string): Handled {
  let place = -1; // among all when it was taken: so the hand calls it until it lets go
  return {
    name: `obstacle ${name}`,
    pose: () => obstaclePose(store, name),
    grab: () => {
      place = store.obstacles.findIndex((one) => one.name === name);
      return { do: "StartObstacleDrag", obstacle: name };
    },
    hold: (grip, pose) => grip.holdObstacle(place, pose.numbers()),
  };
}
