"""Rotations, poses, twists and their derivatives on NumPy arrays of float64.

- Every function accepts arrays with leading batch axes, which broadcast; a single pose has no batch axes.
- X_a_b, (..., 4, 4), is the pose of frame b in frame a: p_a = apply(X_a_b, p_b), X_a_c = X_a_b @ X_b_c.
- Quaternions are wxyz, (..., 4), with Hamilton's product. q and -q are the same rotation; conversions to quaternions,
  except `quaternion.exp`, return the canonical one with w >= 0.
- Rotation vectors are axis times angle, (..., 3). All angles are in rad.
- Twists are (linear, angular), (..., 6); the left Jacobian gives derivatives in the outer frame.
- Functions of Euler angles require the order of the axes, and whether axes are moving or fixed; there is no default.
- Lengths have the unit of the caller. Vectors are columns; frames are right-handed.
- `as_pose_matrix` and `Pose` raise exceptions for numbers that are not finite and for invalid rotations, and `is_pose`
  and `rotation.is_rotation` return False; the other functions do not check this.
"""

from mechanik.spatial import euler, interpolation, quaternion, rotation, twist
from mechanik.spatial.pose import (
    Pose,
    apply,
    as_pose_matrix,
    from_position_wxyz,
    inverse,
    is_pose,
    make_pose,
    position_of,
    rotate,
    rotation_of,
    to_position_wxyz,
    translation,
)
from mechanik.spatial.pose import identity as identity_pose

__all__ = [
    "Pose",
    "apply",
    "as_pose_matrix",
    "euler",
    "from_position_wxyz",
    "identity_pose",
    "interpolation",
    "inverse",
    "is_pose",
    "make_pose",
    "position_of",
    "quaternion",
    "rotate",
    "rotation",
    "rotation_of",
    "to_position_wxyz",
    "translation",
    "twist",
]
