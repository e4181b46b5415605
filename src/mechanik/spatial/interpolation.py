"""Ways from one orientation or pose to another; `t` runs from 0 to 1 and may run beyond.

`t` is (...) and broadcasts against the batch axes of the ends: one pair of ends and (n,)
times give n results.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mechanik.errors import UnknownName
from mechanik.spatial import pose, rotation, series, twist
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector import dot, length

PATHS = ("straight", "screw")


def slerp(wxyz0: ArrayLike, wxyz1: ArrayLike, t: ArrayLike) -> Array:
    """Unit quaternions (..., 4) at constant angular velocity, the shortest way.

    At t = 0 it is `wxyz0` to the bit, and at t = 1 whichever of `wxyz1` and -wxyz1 is nearer to it.
    """
    wxyz0, wxyz1 = np.asarray(wxyz0, dtype=np.float64), np.asarray(wxyz1, dtype=np.float64)
    t = np.asarray(t, dtype=np.float64)
    wxyz1 = np.where((dot(wxyz0, wxyz1) < 0.0)[..., None], -wxyz1, wxyz1)
    # At most a right angle after that choice, so the ratios below have no pole; and by
    # differences instead of arccos, so it is exact for near ends.
    angle = 2.0 * np.arctan2(length(wxyz1 - wxyz0), length(wxyz1 + wxyz0))
    whole = series.sine_ratio(angle)
    before = (1.0 - t) * series.sine_ratio((1.0 - t) * angle) / whole
    after = t * series.sine_ratio(t * angle) / whole
    return before[..., None] * wxyz0 + after[..., None] * wxyz1


def rotations(R0: ArrayLike, R1: ArrayLike, t: ArrayLike) -> Array:
    """Rotation matrices (..., 3, 3) at constant angular velocity, the shortest way."""
    start, end = np.asarray(R0, dtype=np.float64), np.asarray(R1, dtype=np.float64)
    w = rotation.log(np.swapaxes(start, -1, -2) @ end)
    return start @ rotation.exp(np.asarray(t, dtype=np.float64)[..., None] * w)


def poses(X0: ArrayLike, X1: ArrayLike, t: ArrayLike, *, path: Literal["straight", "screw"] = "straight") -> Array:
    """Poses (..., 4, 4) between `X0` and `X1`.

    Args:
        path: "straight" moves the origin along a line and turns about it; "screw" moves with a
            constant twist, so that it does not matter which point of the body is the origin.
    """
    start, end = np.asarray(X0, dtype=np.float64), np.asarray(X1, dtype=np.float64)
    t = np.asarray(t, dtype=np.float64)
    if path == "screw":
        return start @ twist.exp(t[..., None] * twist.log(pose.inverse(start) @ end))
    if path == "straight":
        p = (1.0 - t)[..., None] * start[..., :3, 3] + t[..., None] * end[..., :3, 3]
        return pose.make(rotations(start[..., :3, :3], end[..., :3, :3], t), p)
    raise UnknownName("path", path, known=PATHS)
