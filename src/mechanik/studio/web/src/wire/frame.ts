// State frames as the server sends them: one Float64Array, read in place.
import { HEADER_SIZE, HEADER_INDEX, STATE, STATUSES } from "../messages";

export type Status = (typeof STATUSES)[number];

/** One moment of the mechanism. The arrays are windows on the bytes that came, in the order of Model and Goals. */
export interface Frame {
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
  links: Float64Array; // 7 a link: x y z qw qx qy qz
  values: Float64Array;
  goals: Float64Array; // 9 a goal: pose, missing m, missing rad
  closures: Float64Array; // 2 a closure: m, rad
}

/** Null if the bytes are no state frame. */
export function readFrame(bytes: ArrayBuffer): Frame | null {
  if (bytes.byteLength % 8 !== 0 || bytes.byteLength < 8 * HEADER_SIZE) return null;
  const numbers = new Float64Array(bytes); // every machine that draws is little-endian
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
