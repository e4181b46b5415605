// The object under the pointer, picked at most once per drawn frame, and less often where picking is slow.
import type { Hit, View } from "../view/view";
import type { Gizmo } from "./gizmo";

const REST_RATIO = 3; // pause after a pick, in durations of the pick: large meshes must not take all the time

export class Hover {
  private pending: { x: number; y: number; shift: boolean } | null = null;
  private nextPick = 0; // ms
  private shownKey = "";

  constructor(
    private readonly view: View,
    private readonly gizmo: Gizmo,
  ) {}

  /** shift: links are dragged, so markers in front of them are not highlighted. */
  update(x: number, y: number, shift: boolean): void {
    const isScheduled = this.pending !== null;
    this.pending = { x, y, shift };
    if (!isScheduled) requestAnimationFrame(() => this.pick());
  }

  clear(): void {
    this.pending = null;
    this.show(null);
  }

  private pick(): void {
    const at = this.pending;
    this.pending = null;
    if (at === null) return;
    const start = performance.now();
    if (start < this.nextPick) return this.update(at.x, at.y, at.shift);
    const isOnHandle = this.gizmo.hover(at.x, at.y);
    const hit = isOnHandle ? null : this.view.pick(at.x, at.y, at.shift ? "link" : "any");
    this.nextPick = performance.now() + REST_RATIO * (performance.now() - start);
    this.view.canvas.style.cursor = isOnHandle || hit !== null ? "grab" : "";
    this.show(hit);
  }

  private show(hit: Hit | null): void {
    const name = hit === null ? "" : JSON.stringify({ ...hit, point: 0 });
    if (name === this.shownKey) return; // unchanged: nothing to draw
    this.shownKey = name;
    this.view.hover(hit);
  }
}
