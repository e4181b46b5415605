// Finds the object under the pointer, at most once per drawn frame, and less often if picking is slow.
import type { Hit, View } from "../view/view";
import type { Gizmo } from "./gizmo";

// pause after a pick, as a multiple of its duration: picking in large meshes must not use all the time
const PAUSE_RATIO = 3;

export class Hover {
  private pending: { x: number; y: number; shift: boolean } | null = null;
  private nextPick = 0; // ms
  private shownKey = "";

  constructor(
    private readonly view: View,
    private readonly gizmo: Gizmo,
  ) {}

  /** shift: the pointer drags links, so markers in front of links are not highlighted. */
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
    const pointer = this.pending;
    this.pending = null;
    if (pointer === null) return;
    const start = performance.now();
    if (start < this.nextPick) return this.update(pointer.x, pointer.y, pointer.shift);
    const isOnHandle = this.gizmo.hover(pointer.x, pointer.y);
    const hit = isOnHandle ? null : this.view.pick(pointer.x, pointer.y, pointer.shift ? "link" : "any");
    this.nextPick = performance.now() + PAUSE_RATIO * (performance.now() - start);
    this.view.canvas.style.cursor = isOnHandle || hit !== null ? "grab" : "";
    this.show(hit);
  }

  private show(hit: Hit | null): void {
    const key = hit === null ? "" : JSON.stringify({ ...hit, point: 0 });
    if (key === this.shownKey) return; // unchanged: nothing to draw again
    this.shownKey = key;
    this.view.hover(hit);
  }
}
