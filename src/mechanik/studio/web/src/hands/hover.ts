// What the pointer is over, looked up at most once a picture, and less often where looking takes long.
import type { Hit, View } from "../view/view";
import type { Gizmo } from "./gizmo";

const SHARE = 3; // after looking for a while, rest so many times as long: large meshes must not eat the time

export class Hover {
  private asked: { x: number; y: number; shift: boolean } | null = null;
  private restsUntil = 0; // ms
  private shown = "";

  constructor(
    private readonly view: View,
    private readonly gizmo: Gizmo,
  ) {}

  /** shift: pulls links, so markers before them do not light up. */
  ask(x: number, y: number, shift: boolean): void {
    const isAsked = this.asked !== null;
    this.asked = { x, y, shift };
    if (!isAsked) requestAnimationFrame(() => this.look());
  }

  end(): void {
    this.asked = null;
    this.show(null);
  }

  private look(): void {
    const at = this.asked;
    this.asked = null;
    if (at === null) return;
    const start = performance.now();
    if (start < this.restsUntil) return this.ask(at.x, at.y, at.shift);
    const isOnHandle = this.gizmo.hover(at.x, at.y);
    const hit = isOnHandle ? null : this.view.pick(at.x, at.y, at.shift ? "link" : "any");
    this.restsUntil = performance.now() + SHARE * (performance.now() - start);
    this.view.canvas.style.cursor = isOnHandle || hit !== null ? "grab" : "";
    this.show(hit);
  }

  private show(hit: Hit | null): void {
    const name = hit === null ? "" : JSON.stringify({ ...hit, point: 0 });
    if (name === this.shown) return; // the same as before costs no picture
    this.shown = name;
    this.view.hover(hit);
  }
}
