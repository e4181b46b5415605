// Highlights the object under the pointer: picks at most once per drawn frame, and less often if picking is slow.
import type { Hit, View } from "../view/view";
import type { Gizmo } from "./gizmo";

// pause after a pick, as a multiple of the duration of the pick: picking in large meshes must not block the page
const PAUSE_RATIO = 3;

export class Hover {
  private pendingPointer: { x: number; y: number; isShiftPressed: boolean } | null = null;
  private nextPickTime = 0; // ms
  private shownKey = "";

  constructor(
    private readonly view: View,
    private readonly gizmo: Gizmo,
  ) {}

  /** isShiftPressed: a drag would move a link, so markers in front of links are not highlighted. */
  update(x: number, y: number, isShiftPressed: boolean): void {
    const isScheduled = this.pendingPointer !== null;
    this.pendingPointer = { x, y, isShiftPressed };
    if (!isScheduled) requestAnimationFrame(() => this.pick());
  }

  clear(): void {
    this.pendingPointer = null;
    this.show(null);
  }

  private pick(): void {
    const pointer = this.pendingPointer;
    this.pendingPointer = null;
    if (pointer === null) return;
    const start = performance.now();
    if (start < this.nextPickTime) return this.update(pointer.x, pointer.y, pointer.isShiftPressed);
    const isOnHandle = this.gizmo.hover(pointer.x, pointer.y);
    const hit = isOnHandle ? null : this.view.pick(pointer.x, pointer.y, pointer.isShiftPressed ? "link" : "any");
    this.nextPickTime = performance.now() + PAUSE_RATIO * (performance.now() - start);
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
