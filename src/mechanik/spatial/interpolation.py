"""Interpolation of orientations and poses.

The parameter `t` is 0 at the start and 1 at the end; values outside this range extrapolate. Its shape (...) broadcasts
against the batch axes of start and end: n parameters between one start and one end give n results.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mechanik.errors import UnknownName
from mechanik.spatial import pose, rotation, series, twist
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector_math import dot, length

PATHS = ("straight", "screw")


def slerp(wxyz0: ArrayLike, wxyz1: ArrayLike, t: ArrayLike) -> Array:
    """Interpolate unit quaternions at constant angular velocity along the shortest rotation.

    Args:
        wxyz0, wxyz1: (..., 4), start and end.
        t: (...), parameter.

    Returns:
        (..., 4). At t = 0 it is exactly `wxyz0`; at t = 1 it is `wxyz1` or -wxyz1, whichever is nearer to `wxyz0`.

    Example:
        >>> mk.spatial.interpolation.slerp([1, 0, 0, 0], [0, 1, 0, 0], 0.5).round(4)
        array([0.7071, 0.7071, 0.    , 0.    ])
    """
    wxyz0, wxyz1 = np.asarray(wxyz0, dtype=np.float64), np.asarray(wxyz1, dtype=np.float64)
    t = np.asarray(t, dtype=np.float64)
    wxyz1 = np.where((dot(wxyz0, wxyz1) < 0.0)[..., None], -wxyz1, wxyz1)
    # With this sign the angle is at most pi/2, so the ratios below have no pole. For nearly equal quaternions,
    # arctan2 of difference and sum is accurate, while arccos of the dot product is not.
    angle = 2.0 * np.arctan2(length(wxyz1 - wxyz0), length(wxyz1 + wxyz0))
    angle_ratio = series.sine_ratio(angle)
    start_weight = (1.0 - t) * series.sine_ratio((1.0 - t) * angle) / angle_ratio
    end_weight = t * series.sine_ratio(t * angle) / angle_ratio
    return start_weight[..., None] * wxyz0 + end_weight[..., None] * wxyz1


def rotations(R0: ArrayLike, R1: ArrayLike, t: ArrayLike) -> Array:
    """Interpolate rotation matrices at constant angular velocity along the shortest rotation.

    Args:
        R0, R1: (..., 3, 3), start and end.
        t: (...), parameter.

    Returns:
        (..., 3, 3).

    Example:
        >>> R1 = mk.spatial.rotation.about_z(1.0)
        >>> R = mk.spatial.interpolation.rotations(np.eye(3), R1, 0.5)
        >>> mk.spatial.rotation.log(R).round(6)
        array([0. , 0. , 0.5])
    """
    start, end = np.asarray(R0, dtype=np.float64), np.asarray(R1, dtype=np.float64)
    w = rotation.log(np.swapaxes(start, -1, -2) @ end)
    return start @ rotation.exp(np.asarray(t, dtype=np.float64)[..., None] * w)


def poses(X0: ArrayLike, X1: ArrayLike, t: ArrayLike, *, path: Literal["straight", "screw"] = "straight") -> Array:
    """Interpolate poses between `X0` and `X1`.

    Args:
        X0, X1: (..., 4, 4), start and end.
        t: (...), parameter.
        path: "straight": the origin of the body frame moves along a line, and the body rotates about this origin.
            "screw": the body moves with a constant twist, so the motion does not depend on the choice of the origin.

    Returns:
        (..., 4, 4).

    Raises:
        UnknownName: `path` is unknown.

    Example:
        >>> X1 = mk.spatial.translation([2, 0, 0])
        >>> mk.spatial.interpolation.poses(np.eye(4), X1, 0.25)[:3, 3]
        array([0.5, 0. , 0. ])
    """
    start, end = np.asarray(X0, dtype=np.float64), np.asarray(X1, dtype=np.float64)
    t = np.asarray(t, dtype=np.float64)
    if path == "screw":
        return start @ twist.exp(t[..., None] * twist.log(pose.inverse(start) @ end))
    if path == "straight":
        p = (1.0 - t)[..., None] * start[..., :3, 3] + t[..., None] * end[..., :3, 3]
        return pose.make_pose(rotations(start[..., :3, :3], end[..., :3, :3], t), p)
    raise UnknownName("path", path, known=PATHS)
