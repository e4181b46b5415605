// Parser of the binary state frames of the server; the numbers are not copied.
import { HEADER_SIZE, HEADER_INDEX, STATE, STATUSES } from "../messages";

export type Status = (typeof STATUSES)[number];

/** A state of the mechanism. The arrays are views of the received bytes, in the order of `Model` and `Goals`. */
export interface StateFrame {
  revision: number; // `Model.revision`
  order: number; // `Goals.order`
  sequence: number; // number of the frame in its layer
  tag: number; // tag of the newest drag update that the state includes
  layer: number; // 0: main solver; otherwise `CompareRow.layer`
  status: Status;
  isAtRest: boolean; // false while the solver or playback continues
  iterations: number; // of the last tick of the solver
  seconds: number; // processor time of the last tick, s
  solvesPerSecond: number; // ticks in the last second
  goalError: number; // largest error of an enabled goal, m or rad
  links: Float64Array; // 7 per link: x y z qw qx qy qz
  values: Float64Array; // m or rad; `DofInfo.value` is the index of the first value of a dof
  goals: Float64Array; // 9 per goal: pose, position error in m, angle error in rad
  closures: Float64Array; // 2 per closure: gap in m, angle in rad
}

/** Parses a state frame; null if the bytes are not a state frame. */
export function readStateFrame(bytes: ArrayBuffer): StateFrame | null {
  if (bytes.byteLength % 8 !== 0 || bytes.byteLength < 8 * HEADER_SIZE) return null;
  const numbers = new Float64Array(bytes); // browsers run only on little-endian machines
  const field = (name: keyof typeof HEADER_INDEX): number => numbers[HEADER_INDEX[name]] ?? 0;
  const sizes = [7 * field("links"), field("values"), 9 * field("goals"), 2 * field("closures")];
  if (field("kind") !== STATE || sizes.reduce((a, b) => a + b, HEADER_SIZE) !== numbers.length) return null;
  let start = HEADER_SIZE;
  const [links, values, goals, closures] = sizes.map((size) => numbers.subarray(start, (start += size)));
  return {
    revision: field("revision"),
    order: field("order"),
    sequence: field("sequence"),
    tag: field("tag"),
    layer: field("layer"),
    status: STATUSES[field("status")] ?? "PROBLEM",
    isAtRest: field("is_at_rest") !== 0,
    iterations: field("iterations"),
    seconds: field("seconds"),
    solvesPerSecond: field("solves_per_second"),
    goalError: field("goal_error"),
    links: links!,
    values: values!,
    goals: goals!,
    closures: closures!,
  };
}
