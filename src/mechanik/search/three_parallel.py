"""6R arms whose axes 2, 3 and 4 are parallel, as Universal Robots builds them.

Turning about the parallel axes leaves two things as they are along their direction h: the height of a point, and of a
direction. So a point and the direction of axis 6 give two equations for the angles 1 and 5, linear in the cosines and
sines of both; where axes 5 and 6 meet, one of them has no angle 5. Then angle 6 follows, and what is left is an arm
in a plane.
"""

from __future__ import annotations

import numpy as np

from mechanik.mechanism import lines
from mechanik.search.planar_arms import ThreeParallelTurns
from mechanik.search.subproblems import (
    SPECIAL,
    both_angles,
    circle_and_conic,
    other_leg,
    square,
    turn_matrix,
    turn_onto,
    turned,
)
from mechanik.spatial import make
from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross


class ThreeParallel:
    """All solutions of such an arm.

    Args:
        directions, points: (6, 3) of the axes.
        size: about the reach.
    """

    branches = 8
    counts_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, size: float) -> None:
        self.axes = directions
        self.size = size
        self.h = h = directions[1]
        h5, h6 = directions[4], directions[5]
        self.p1 = points[0]
        self.p5, self.p6 = p5, p6 = lines.common_normal(points[4], h5, points[5], h6)
        self.planar = ThreeParallelTurns(directions[1:4], points[1:4], size)
        # the heights of the point p6 and of the direction h6, as axis 5 turns: factors of 1, cos q5, sin q5
        point, tip = _height(h, h5, p6 - p5), _height(h, h5, h6)
        point[0] += h @ (p5 - self.p1)
        self.rows = np.stack([point / size, tip])
        U, sizes, V = np.linalg.svd(self.rows[:, 1:])
        self.U, self.V, self.sizes = U, V, sizes
        self.is_parted = bool(sizes[1] < SPECIAL)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        """(m, 8, 6) for displacements T (m, 4, 4) = X_base_link home^-1; what does not exist is NaN or wrong."""
        h, (h1, *_, h5, h6) = self.h, self.axes
        R = T[:, :3, :3]
        q1, q5 = self._first_and_fifth(T, near)  # (m, 4) each
        # R1' R = (turns about h) R5 R6, so h seen through R1' R is h seen through R5 R6
        seen = np.swapaxes(R, -1, -2)[:, None] @ turned(h1, q1, np.broadcast_to(h, (*q1.shape, 3)))[..., None]
        q6 = turn_onto(h6, seen[..., 0], turned(h5, -q5, np.broadcast_to(h, (*q5.shape, 3))), near[:, None, 5])
        # again, from angle 6: an arc cosine knows only half of the digits of an angle near zero
        q5 = turn_onto(h5, turned(h6, q6, seen[..., 0]), np.broadcast_to(h, (*q5.shape, 3)), q5)
        inner = _back(h1, self.p1, q1) @ T[:, None] @ _back(h6, self.p6, q6) @ _back(h5, self.p5, q5)
        m = len(T)
        wide = np.broadcast_to(near[:, None, 1:4], (m, 4, 3)).reshape(-1, 3)
        middle = self.planar.angles(inner.reshape(-1, 4, 4), wide).reshape(m, 4, 2, 3)
        q = np.empty((m, 4, 2, 6))
        q[..., 0], q[..., 4], q[..., 5] = q1[..., None], q5[..., None], q6[..., None]
        q[..., 1:4] = middle
        return q.reshape(m, 8, 6)

    def _first_and_fifth(self, T: Array, near: Array) -> tuple[Array, Array]:
        h, h1, R = self.h, self.axes[0], T[:, :3, :3]
        point, tip = R @ self.p6 + T[:, :3, 3] - self.p1, R @ self.axes[5]
        # the same heights as axis 1 turns back: factors of 1, cos q1, sin q1, (m, 2, 3)
        rows = np.stack([_height(h, -h1, point) / self.size, _height(h, -h1, tip)], axis=1)
        rows[..., 0] -= self.rows[:, 0]
        # U' rows = sizes V (cos q5, sin q5)
        with_q5, less_q5 = self.U[:, 0] @ rows / self.sizes[0], self.U[:, 1] @ rows
        if self.is_parted:
            q1 = both_angles(less_q5[:, 1], less_q5[:, 2], -less_q5[:, 0], near[:, 0])
            q1 = np.repeat(q1, 2, axis=1)
            x = _at(with_q5, q1)
            y = other_leg(np.ones_like(x), x) * (1, -1, 1, -1)
        else:
            # x² + y² = 1 for the parts of (cos q5, sin q5) along the rows of V
            e = square(less_q5) + self.sizes[1] ** 2 * square(with_q5)
            e[:, 0] -= self.sizes[1] ** 2
            q1 = circle_and_conic(e / np.abs(e).max(axis=-1, keepdims=True))
            x, direct = _at(with_q5, q1), _at(less_q5, q1) / self.sizes[1]
            # two ways to y: one is good where it is large, the other where it is small
            y = np.where(np.abs(direct) > self.sizes[1], np.copysign(other_leg(np.ones_like(x), x), direct), direct)
        return q1, np.arctan2(self.V[0, 1] * x + self.V[1, 1] * y, self.V[0, 0] * x + self.V[1, 0] * y)


def _at(row: Array, t: Array) -> Array:
    """row (m, 3) · (1, cos t, sin t) for t (m, k)."""
    return row[:, :1] + row[:, 1:2] * np.cos(t) + row[:, 2:] * np.sin(t)


def _height(h: Array, k: Array, v: Array) -> Array:
    """h · (v turned about k by t) as factors of 1, cos t, sin t: (..., 3)."""
    along = (v @ k) * (k @ h)
    return np.stack([along, v @ h - along, cross(k, v) @ h], axis=-1)


def _back(k: Array, p: Array, t: Array) -> Array:
    """The displacements (..., 4, 4) by -t (...) about the axis k through p."""
    R = turn_matrix(k, -t)
    return make(R, p - R @ p)
