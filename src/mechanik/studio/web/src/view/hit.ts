// Objects under a pointer.
import type { Vector3 } from "three";
import type { Selection } from "../store";

/** An object that can be selected, and the point where the pointer meets it. */
export type Hit = Exclude<Selection, { kind: "none" }> & { point: Vector3 };

/** The object of a hit as a selection. */
export function selectionOf({ point: _, ...selection }: Hit): Selection {
  return selection;
}

/** A key that is equal for hits on the same object. */
export function hitKey(hit: Hit | null): string {
  return hit === null ? "" : JSON.stringify(selectionOf(hit));
}
