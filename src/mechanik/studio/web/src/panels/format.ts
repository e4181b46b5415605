// Formats numbers with suitable units, counts and names as text.

/**
 * A number with two or three digits: 1.23, 45.6, 789, 0.012, 3.2e-12; numbers from 1000 to a million are rounded to
 * integers. Only zero is written as "0".
 */
export function digits(value: number): string {
  const magnitude = Math.abs(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "?" : value > 0 ? "∞" : "−∞";
  if (magnitude === 0) return "0";
  if (magnitude < 1e-3 || magnitude >= 1e6) return value.toExponential(1).replace("e+", "e");
  if (magnitude < 1) return value.toPrecision(2);
  return magnitude < 10 ? value.toFixed(2) : magnitude < 100 ? value.toFixed(1) : value.toFixed(0);
}

/** A length in m as m, mm or µm. */
export function metres(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 1 || magnitude < 1e-6) return `${digits(value)} m`;
  return magnitude >= 1e-3 ? `${digits(value * 1e3)} mm` : `${digits(value * 1e6)} µm`;
}

/** An angle in rad as degrees; very small angles as rad. */
export function radians(value: number): string {
  const degrees = (value * 180) / Math.PI;
  return Math.abs(degrees) >= 1e-2 ? `${digits(degrees)}°` : `${digits(value)} rad`;
}

/** Error of a goal or a loop: a distance (m), an angle (rad), or both. */
export function errorText(distance: number, angle: number): string {
  if (angle === 0) return metres(distance);
  return distance === 0 ? radians(angle) : `${metres(distance)}, ${radians(angle)}`;
}

/** A duration in s as s, ms or µs. */
export function seconds(value: number): string {
  if (value >= 1) return `${digits(value)} s`;
  return value >= 1e-3 ? `${digits(value * 1e3)} ms` : `${digits(value * 1e6)} µs`;
}

/** A time of the recording in s as minutes and seconds: 0:07.3. */
export function clock(value: number): string {
  const tenths = Math.floor(Math.max(0, value) * 10);
  return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
}

/** A size in bytes as bytes, kB (1024 bytes) or MB (1024 kB). */
export function bytes(value: number): string {
  if (value >= 1 << 20) return `${digits(value / (1 << 20))} MB`;
  return value >= 1 << 10 ? `${digits(value / (1 << 10))} kB` : `${value} bytes`;
}

/** A fixed number of decimals, for fields; without "-0". */
export function decimals(value: number, decimalPlaces: number): string {
  const text = value.toFixed(decimalPlaces);
  return /^-0\.?0*$/.test(text) ? text.slice(1) : text;
}

/** A count with its noun: "1 step", "2 steps". */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** The text with a capital first letter. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A name as a title: without underscores, with a capital first letter. */
export function titleCase(name: string): string {
  return capitalized(name.replaceAll("_", " ").trim());
}

/** Length of a bar on a logarithmic scale: 0 for 1e-9 and less, 1 for 1 and more. */
export function logShare(value: number): number {
  return value > 0 ? Math.min(1, Math.max(0, 1 + Math.log10(value) / 9)) : 0;
}
