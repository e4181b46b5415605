// Conversion between unit quaternions (wxyz) and angles about the fixed axes x, y and z, applied in this order.

export type Quaternion = [w: number, x: number, y: number, z: number];
export type Rpy = [ex: number, ey: number, ez: number];

/** Angles of Rz(ez) Ry(ey) Rx(ex), rad. If ey is pi/2 or -pi/2, only ex - ez or ex + ez is defined: ez is zero. */
export function rpyFromQuaternion([w, x, y, z]: Quaternion): Rpy {
  const sinPitch = 2 * (w * y - z * x);
  if (Math.abs(sinPitch) > 1 - 1e-12) return [2 * Math.atan2(x, w), (Math.sign(sinPitch) * Math.PI) / 2, 0];
  return [
    Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
    Math.asin(sinPitch),
    Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
  ];
}

export function quaternionFromRpy([ex, ey, ez]: Rpy): Quaternion {
  // cosines and sines of the half angles
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

/** The quaternion scaled to unit length; the identity for a zero quaternion. */
export function normalized(quaternion: Quaternion): Quaternion {
  const length = Math.hypot(...quaternion);
  return length > 1e-9 ? (quaternion.map((part) => part / length) as Quaternion) : [1, 0, 0, 0];
}
