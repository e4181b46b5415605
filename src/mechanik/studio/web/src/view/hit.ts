// What a pointer can take.
import type { Vector3 } from "three";

export type Hit =
  | { kind: "link"; link: number; point: Vector3 }
  | { kind: "goal"; goal: number; point: Vector3 } // GoalInfo.number
  | { kind: "freedom"; freedom: number; point: Vector3 };

/** The same for two hits on the same thing. */
export function nameOf(hit: Hit | null): string {
  if (hit === null) return "";
  return `${hit.kind} ${hit.kind === "link" ? hit.link : hit.kind === "goal" ? hit.goal : hit.freedom}`;
}
