// Turns for people: a unit quaternion (wxyz) as angles about the fixed axes x, then y, then z, and back.

export type Quaternion = [w: number, x: number, y: number, z: number];
export type Angles = [ex: number, ey: number, ez: number];

/** Angles, rad, of Rz(ez) Ry(ey) Rx(ex). Where ey is a right angle, ez is taken as zero. */
export function toAngles([w, x, y, z]: Quaternion): Angles {
  const up = 2 * (w * y - z * x);
  if (Math.abs(up) > 1 - 1e-12) return [2 * Math.atan2(x, w), (Math.sign(up) * Math.PI) / 2, 0];
  return [
    Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
    Math.asin(up),
    Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
  ];
}

export function fromAngles([ex, ey, ez]: Angles): Quaternion {
  const [cx, sx, cy, sy, cz, sz] = [ex, ey, ez].flatMap((angle) => [Math.cos(angle / 2), Math.sin(angle / 2)]) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return [
    cx * cy * cz + sx * sy * sz,
    sx * cy * cz - cx * sy * sz,
    cx * sy * cz + sx * cy * sz,
    cx * cy * sz - sx * sy * cz,
  ];
}

/** Of length one; the identity if there is no direction in it. */
export function unit(turn: Quaternion): Quaternion {
  const length = Math.hypot(...turn);
  return length > 1e-9 ? (turn.map((part) => part / length) as Quaternion) : [1, 0, 0, 0];
}
