// Step sizes of snapped drags: a fixed angle, and round lengths that depend on the size of the model.

export const SNAP_ANGLE = Math.PI / 12; // rad; 15 degrees

/** Step of a length, m: 1, 2 or 5 times a power of ten, near a twentieth of the radius; 0.05 m for a radius of 1 m. */
export function snapLength(radius: number): number {
  const length = Math.max(radius, 1e-6) / 20;
  const power = 10 ** Math.floor(Math.log10(length));
  const mantissa = length / power; // from 1 to 10
  return power * (mantissa < 1.5 ? 1 : mantissa < 3.5 ? 2 : mantissa < 7.5 ? 5 : 10);
}

/** The multiple of `step` that is nearest to a value. */
export function snap(value: number, step: number): number {
  return Math.round(value / step) * step;
}
