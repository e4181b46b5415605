// Step sizes of snapped drags: round numbers that are proportional to the size of the model.

export const SNAP_ANGLE = Math.PI / 12; // 15 degrees

/** About a twentieth of the radius of the model, as 1, 2 or 5 times a power of ten; 0.05 m for an arm of one metre. */
export function snapLength(radius: number): number {
  const length = Math.max(radius, 1e-6) / 20;
  const power = 10 ** Math.floor(Math.log10(length));
  const digit = length / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

export function snap(value: number, step: number): number {
  return Math.round(value / step) * step;
}
