// Drag of a point of a link, or of the marker of a goal, in the plane that is parallel to the image.
import type { Plane, Vector3 } from "three";
import { LINK_DRAG_GOAL } from "../messages";
import type { Store } from "../store";
import { DragSession, type Gesture } from "./drag_session";
import { goalPose, linkPose, Pose } from "./poses";
import type { Unprojector } from "./unproject";
import { snapLength, snap } from "./snap";

export class PlaneDrag implements Gesture {
  private readonly plane: Plane;
  private readonly offset: Vector3; // from the point under the pointer to the dragged point

  private constructor(
    private readonly session: DragSession,
    private readonly unprojector: Unprojector,
    private readonly store: Store,
    private readonly goal: number,
    private readonly startPose: Pose,
    private readonly snapStep: number, // m
    x: number,
    y: number,
  ) {
    const { position } = startPose;
    this.plane = unprojector.facingPlane(position);
    this.offset = position.clone().sub(unprojector.intersectPlane(x, y, this.plane) ?? position);
  }

  /** Starts to drag a link at a point in the world. */
  static dragLink(
    store: Store, unprojector: Unprojector, link: number, grabbedPoint: Vector3, x: number, y: number,
  ): PlaneDrag | null {
    const info = store.model?.links[link];
    if (!store.model || !store.frame || info === undefined) return null;
    const pose = linkPose(store.frame, link);
    const at = pose.toLocal(grabbedPoint);
    const session = new DragSession(store, { do: "StartLinkDrag", link: info.name, at: [at.x, at.y, at.z] });
    const startPose = new Pose(grabbedPoint.clone(), pose.rotation.clone());
    const snapStep = snapLength(store.model.radius);
    return new PlaneDrag(session, unprojector, store, LINK_DRAG_GOAL, startPose, snapStep, x, y);
  }

  static dragGoal(store: Store, unprojector: Unprojector, goal: number, x: number, y: number): PlaneDrag | null {
    const pose = goalPose(store, goal);
    if (pose === null || !store.model) return null;
    const session = new DragSession(store, { do: "StartGoalDrag", goal });
    return new PlaneDrag(session, unprojector, store, goal, pose, snapLength(store.model.radius), x, y);
  }

  targetExists(): boolean {
    return this.goal === LINK_DRAG_GOAL || this.store.goal(this.goal) !== undefined;
  }

  move(x: number, y: number, isSnapping: boolean): void {
    const point = this.unprojector.intersectPlane(x, y, this.plane);
    if (point === null) return;
    point.add(this.offset);
    if (isSnapping) point.set(snap(point.x, this.snapStep), snap(point.y, this.snapStep), snap(point.z, this.snapStep));
    this.session.dragGoal(this.goal, new Pose(point, this.startPose.rotation).numbers());
  }

  end(): void {
    void this.session.end();
  }

  cancel(): void {
    void this.session.cancel();
  }

  abandon(): void {
    this.session.abandon();
  }
}
