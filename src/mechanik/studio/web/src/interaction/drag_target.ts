// Objects that the handle can move: goals and obstacles.
import type { PageRequest } from "../messages";
import type { Selection, Store } from "../store";
import type { DragSession } from "./drag_session";
import { goalPose, obstaclePose, type Pose } from "./poses";

export interface DragTarget {
  /** Unique name of the object. */
  readonly key: string;
  /** Present pose; null if the object does not exist any more. */
  pose(): Pose | null;
  /** The request that starts the drag. */
  startRequest(): PageRequest;
  /** Sends a new pose during the drag. */
  drag(session: DragSession, pose: Pose): void;
}

export function dragTarget(store: Store, selection: Selection): DragTarget | null {
  if (selection.kind === "goal") return goalTarget(store, selection.goal);
  if (selection.kind === "obstacle") return obstacleTarget(store, selection.obstacle);
  return null;
}

function goalTarget(store: Store, number: number): DragTarget {
  return {
    key: `goal ${number}`,
    pose: () => goalPose(store, number),
    startRequest: () => ({ do: "StartGoalDrag", goal: number }),
    drag: (session, pose) => session.dragGoal(number, pose.numbers()),
  };
}

function obstacleTarget(store: Store, name: string): DragTarget {
  let index = -1; // index of the obstacle at the start of the drag, for drag updates
  return {
    key: `obstacle ${name}`,
    pose: () => obstaclePose(store, name),
    startRequest: () => {
      index = store.obstacles.findIndex((obstacle) => obstacle.name === name);
      return { do: "StartObstacleDrag", obstacle: name };
    },
    drag: (session, pose) => session.dragObstacle(index, pose.numbers()),
  };
}
