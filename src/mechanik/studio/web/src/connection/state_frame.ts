// State frames as sent by the server: one Float64Array, read without copying.
import { HEADER_SIZE, HEADER_INDEX, STATE, STATUSES } from "../messages";

export type Status = (typeof STATUSES)[number];

/** A state of the mechanism. The arrays are views of the received bytes, in the order of Model and Goals. */
export interface StateFrame {
  revision: number;
  order: number;
  sequence: number;
  tag: number;
  layer: number;
  status: Status;
  isAtRest: boolean;
  iterations: number;
  seconds: number;
  solvesPerSecond: number;
  residual: number;
  links: Float64Array; // 7 per link: x y z qw qx qy qz
  values: Float64Array;
  goals: Float64Array; // 9 per goal: pose, position error in m, angle error in rad
  closures: Float64Array; // 2 per closure: m, rad
}

/** Parses a state frame; null if the bytes are not one. */
export function readStateFrame(bytes: ArrayBuffer): StateFrame | null {
  if (bytes.byteLength % 8 !== 0 || bytes.byteLength < 8 * HEADER_SIZE) return null;
  const numbers = new Float64Array(bytes); // all machines that run browsers are little-endian
  const at = (name: keyof typeof HEADER_INDEX): number => numbers[HEADER_INDEX[name]] ?? 0;
  const sizes = [7 * at("links"), at("values"), 9 * at("goals"), 2 * at("closures")];
  if (at("kind") !== STATE || sizes.reduce((a, b) => a + b, HEADER_SIZE) !== numbers.length) return null;
  let start = HEADER_SIZE;
  const [links, values, goals, closures] = sizes.map((size) => numbers.subarray(start, (start += size)));
  return {
    revision: at("revision"),
    order: at("order"),
    sequence: at("sequence"),
    tag: at("tag"),
    layer: at("layer"),
    status: STATUSES[at("status")] ?? "PROBLEM",
    isAtRest: at("is_at_rest") !== 0,
    iterations: at("iterations"),
    seconds: at("seconds"),
    solvesPerSecond: at("solves_per_second"),
    residual: at("residual"),
    links: links!,
    values: values!,
    goals: goals!,
    closures: closures!,
  };
}
