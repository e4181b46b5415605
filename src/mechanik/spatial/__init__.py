"""Rotations, rigid motions and their derivatives, on NumPy arrays of float64.

- Every function takes leading batch axes, which broadcast; one pose is the case with none.
- X_a_b, (..., 4, 4), is the pose of frame b in frame a: p_a = apply(X_a_b, p_b), X_a_c = X_a_b @ X_b_c.
- Quaternions are wxyz, (..., 4), Hamilton's product; of q and -q the one with w >= 0.
- Rotation vectors are axis times angle, (..., 3). All angles are in radians.
- Twists are (linear, angular), (..., 6); the left Jacobian's derivative is in the outer frame.
- Euler angles name their order and whether the axes move; there is no default.
- Lengths have whatever unit the caller uses. Vectors are columns; right-handed axes.
- Only `as_pose_matrix` and `Pose` check what they are given; the rest trusts its callers.
"""

from mechanik.spatial import euler, interpolation, quaternion, rotation, twist
from mechanik.spatial.pose import (
    Pose,
    apply,
    as_pose_matrix,
    from_position_wxyz,
    inverse,
    is_pose,
    make,
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
    "make",
    "position_of",
    "quaternion",
    "rotate",
    "rotation",
    "rotation_of",
    "to_position_wxyz",
    "translation",
    "twist",
]
