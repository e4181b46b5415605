// Requests of a drag to the session: start, updates, end or cancel.
import type { PageRequest } from "../messages";
import type { Store } from "../store";

/** A drag with the pointer, from the first movement to the end; x and y are client pixels. */
export interface Gesture {
  /** Whether the dragged object still exists. */
  targetExists(): boolean;
  move(x: number, y: number, isSnapping: boolean): void;
  /** Ends the drag and keeps the result. */
  end(): void;
  /** Ends the drag and restores the state before it. */
  cancel(): void;
  /** Ends the drag without a request, after the object was removed or the connection was lost. */
  abandon(): void;
}

/** Sends the updates of one drag until the drag has ended or the server has rejected it. */
export class DragSession {
  private isOver = false;

  constructor(
    private readonly store: Store,
    startRequest: PageRequest,
  ) {
    void store.request(startRequest).then((isAccepted) => (this.isOver ||= !isAccepted));
  }

  dragGoal(goal: number, pose: readonly number[]): void {
    if (!this.isOver) this.store.connection.dragGoal(goal, pose);
  }

  dragDof(dof: number, value: number): void {
    if (!this.isOver) this.store.connection.dragDof(dof, value);
  }

  dragObstacle(index: number, pose: readonly number[]): void {
    if (!this.isOver) this.store.connection.dragObstacle(index, pose);
  }

  abandon(): void {
    this.isOver = true;
  }

  /** Sends the last update before the end of the drag: later updates of dofs and obstacles would be ignored. */
  async end(isCancelled = false): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    this.store.connection.flush();
    await this.store.request({ do: "EndDrag", cancel: isCancelled });
  }

  async cancel(): Promise<void> {
    await this.end(true);
  }
}
