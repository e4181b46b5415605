// What a pointer can take.
import type { Vector3 } from "three";
import type { Selection } from "../store";

/** Something that can be selected, and where it was met. */
export type Hit = Exclude<Selection, { kind: "none" }> & { point: Vector3 };

/** What was hit, wherever. */
export function thing({ point: _, ...what }: Hit): Selection {
  return what;
}

/** The same for two hits on the same thing. */
export function nameOf(hit: Hit | null): string {
  return hit === null ? "" : JSON.stringify(thing(hit));
}
