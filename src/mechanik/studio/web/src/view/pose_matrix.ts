// Converts poses of the protocol (x y z qw qx qy qz) to matrices, without allocations.
import type { Matrix4 } from "three";

/** Sets a matrix from seven numbers; the quaternion must have unit length. */
export function setFromPose(matrix: Matrix4, numbers: ArrayLike<number>, start = 0): Matrix4 {
  const w = numbers[start + 3]!,
    x = numbers[start + 4]!,
    y = numbers[start + 5]!,
    z = numbers[start + 6]!;
  const m = matrix.elements;
  m[0] = 1 - 2 * (y * y + z * z);
  m[1] = 2 * (x * y + w * z);
  m[2] = 2 * (x * z - w * y);
  m[3] = 0;
  m[4] = 2 * (x * y - w * z);
  m[5] = 1 - 2 * (x * x + z * z);
  m[6] = 2 * (y * z + w * x);
  m[7] = 0;
  m[8] = 2 * (x * z + w * y);
  m[9] = 2 * (y * z - w * x);
  m[10] = 1 - 2 * (x * x + y * y);
  m[11] = 0;
  m[12] = numbers[start]!;
  m[13] = numbers[start + 1]!;
  m[14] = numbers[start + 2]!;
  m[15] = 1;
  return matrix;
}
