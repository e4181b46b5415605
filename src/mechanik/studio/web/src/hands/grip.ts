// A hand that has taken something: grab, hold, let go, or put back as if nothing had been.
import type { PageRequest } from "../messages";
import type { Store } from "../store";

/** One drag, from the first movement to the end. Pixels are client pixels. */
export interface Gesture {
  /** Whether what it holds is there still. */
  isThere(): boolean;
  move(x: number, y: number, snaps: boolean): void;
  /** The hand lets go. */
  end(): void;
  /** Everything as it was before. */
  cancel(): void;
  /** What it held is gone (another model, no connection): stop without a word. */
  drop(): void;
}

export class Grip {
  private isLost = false;

  constructor(
    private readonly store: Store,
    grab: PageRequest,
  ) {
    void store.ask(grab).then((isTaken) => (this.isLost ||= !isTaken));
  }

  holdGoal(goal: number, pose: readonly number[]): void {
    if (!this.isLost) this.store.wire.holdGoal(goal, pose);
  }

  holdFreedom(freedom: number, value: number): void {
    if (!this.isLost) this.store.wire.holdFreedom(freedom, value);
  }

  holdObstacle(place: number, pose: readonly number[]): void {
    if (!this.isLost) this.store.wire.holdObstacle(place, pose);
  }

  drop(): void {
    this.isLost = true;
  }

  /** Nothing stays behind in the wire: what comes after the release would be held by no hand. */
  async letGo(putsBack = false): Promise<void> {
    if (this.isLost) return;
    this.isLost = true;
    this.store.wire.flush();
    await this.store.ask({ do: "EndDrag", cancel: putsBack });
  }

  async putBack(): Promise<void> {
    await this.letGo(true);
  }
}
