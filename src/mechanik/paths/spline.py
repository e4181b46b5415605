"""A smooth way through some poses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanik.errors import ShapeError
from mechanik.paths.pose_path import METRES_A_RADIAN, PosePath, as_poses
from mechanik.spatial import Pose, interpolation, make, rotation
from mechanik.spatial.array import Array, ArrayLike


class Spline(PosePath):
    """Places on a natural cubic spline, whose second derivative has no jump; turns without a jump in their speed.

    Turns go from each orientation to the next by de Casteljau's construction on rotations, with the angular velocity
    at each that the parabola through its neighbours has.

    Args:
        poses: 2 or more; each a `Pose` or (4, 4).
        t: (n,) where each is reached, from 0 to 1, each above the one before; by how far they are apart if not given.
    """

    def __init__(self, poses: Sequence[Pose | ArrayLike] | ArrayLike, t: ArrayLike | None = None) -> None:
        self._X = as_poses(poses)
        R = self._X[:, :3, :3]
        turns = rotation.log(np.swapaxes(R[:-1], 1, 2) @ R[1:])
        if t is None:
            ways = np.linalg.norm(np.diff(self._X[:, :3, 3], axis=0), axis=1)
            sizes = ways + METRES_A_RADIAN * np.linalg.norm(turns, axis=1)
            if not (sizes > 0.0).all():
                k = int(np.argmin(sizes))
                raise ShapeError(f"pose {k + 1} of a spline is the same as the one before it; leave one of them out")
            self.t = np.append(0.0, np.cumsum(sizes) / sizes.sum())
            self.t[-1] = 1.0
        else:
            self.t = np.array(t, dtype=np.float64)
            sound = self.t.shape == (len(self._X),) and bool((np.diff(self.t) > 0.0).all())
            if not sound or self.t[0] != 0.0 or self.t[-1] != 1.0:
                raise ShapeError(f"t of a spline is ({len(self._X)},), from 0 to 1, each above the one before it")
        h = np.diff(self.t)
        self._bends = _second_derivatives(h, self._X[:, :3, 3])
        speeds = _speeds(h, turns)
        self._away = R[:-1] @ rotation.exp(speeds[:-1] * h[:, None] / 3.0)
        self._towards = R[1:] @ rotation.exp(-speeds[1:] * h[:, None] / 3.0)

    def __repr__(self) -> str:
        return f"<spline through {len(self._X)} poses>"

    def poses(self, t: Array) -> Array:
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        h = (self.t[k + 1] - self.t[k])[:, None]
        b = ((t - self.t[k]) / h[:, 0])[:, None]
        a = 1.0 - b
        p, M = self._X[:, :3, 3], self._bends
        place = a * p[k] + b * p[k + 1] + h**2 / 6.0 * ((a**3 - a) * M[k] + (b**3 - b) * M[k + 1])
        between, share = interpolation.rotations, b[:, 0]
        R, one, two = self._X[:, :3, :3], self._away[k], self._towards[k]
        first, middle, last = between(R[k], one, share), between(one, two, share), between(two, R[k + 1], share)
        return make(between(between(first, middle, share), between(middle, last, share), share), place)


def _second_derivatives(h: Array, p: Array) -> Array:
    """(n, 3) of the natural cubic spline through p (n, 3) at steps h (n - 1,), by Thomas's elimination."""
    M = np.zeros_like(p)
    if len(p) < 3:
        return M
    slopes = np.diff(p, axis=0) / h[:, None]
    right = 6.0 * np.diff(slopes, axis=0)
    middle = 2.0 * (h[:-1] + h[1:])
    for k in range(1, len(right)):
        share = h[k] / middle[k - 1]
        middle[k] -= share * h[k]
        right[k] -= share * right[k - 1]
    M[-2] = right[-1] / middle[-1]
    for k in range(len(right) - 2, -1, -1):
        M[k + 1] = (right[k] - h[k + 1] * M[k + 2]) / middle[k]
    return M


def _speeds(h: Array, turns: Array) -> Array:
    """(n, 3) angular velocity at each pose, in its own axes: that of the parabola through its neighbours.

    Args:
        turns: (n - 1, 3) rotation vectors from each pose to the next, which are the same in the axes of both.
    """
    each = turns / h[:, None]
    inner = (h[1:, None] * each[:-1] + h[:-1, None] * each[1:]) / (h[1:] + h[:-1])[:, None]
    return np.concatenate([each[:1], inner, each[-1:]])
