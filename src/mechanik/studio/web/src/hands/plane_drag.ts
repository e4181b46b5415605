// A point moved on the plane that faces the camera: a link that is pulled, a goal that is taken by its mark.
import type { Plane, Vector3 } from "three";
import { LINK_DRAG_GOAL } from "../messages";
import type { Store } from "../store";
import { Grip, type Gesture } from "./grip";
import { goalPose, linkPose, Pose } from "./poses";
import type { Pointing } from "./pointing";
import { snapLength, snapped } from "./snap";

export class PlaneDrag implements Gesture {
  private readonly plane: Plane;
  private readonly offset: Vector3; // from where the pointer meets the plane to what is moved

  private constructor(
    private readonly grip: Grip,
    private readonly pointing: Pointing,
    private readonly store: Store,
    private readonly goal: number,
    private readonly pose: Pose,
    private readonly step: number,
    x: number,
    y: number,
  ) {
    this.plane = pointing.facing(pose.position);
    this.offset = pose.position.clone().sub(pointing.onPlane(x, y, this.plane) ?? pose.position);
  }

  /** Pull a link at a point of the world, as long as the hand holds it. */
  static pull(
    store: Store, pointing: Pointing, link: number, grabbed: Vector3, x: number, y: number,
  ): PlaneDrag | null {
    const info = store.model?.links[link];
    if (!store.model || !store.frame || info === undefined) return null;
    const pose = linkPose(store.frame, link);
    const at = pose.toLocal(grabbed);
    const grip = new Grip(store, { do: "StartLinkDrag", link: info.name, at: [at.x, at.y, at.z] });
    const held = new Pose(grabbed.clone(), pose.turn.clone());
    return new PlaneDrag(grip, pointing, store, LINK_DRAG_GOAL, held, snapLength(store.model.radius), x, y);
  }

  static moveGoal(store: Store, pointing: Pointing, goal: number, x: number, y: number): PlaneDrag | null {
    const pose = goalPose(store, goal);
    if (pose === null || !store.model) return null;
    const grip = new Grip(store, { do: "StartGoalDrag", goal });
    return new PlaneDrag(grip, pointing, store, goal, pose, snapLength(store.model.radius), x, y);
  }

  isThere(): boolean {
    return this.goal === LINK_DRAG_GOAL || this.store.goal(this.goal) !== undefined;
  }

  move(x: number, y: number, snaps: boolean): void {
    const point = this.pointing.onPlane(x, y, this.plane);
    if (point === null) return;
    point.add(this.offset);
    if (snaps) point.set(snapped(point.x, this.step), snapped(point.y, this.step), snapped(point.z, this.step));
    this.grip.holdGoal(this.goal, new Pose(point, this.pose.turn).numbers());
  }

  end(): void {
    void this.grip.letGo();
  }

  cancel(): void {
    void this.grip.putBack();
  }

  drop(): void {
    this.grip.drop();
  }
}
