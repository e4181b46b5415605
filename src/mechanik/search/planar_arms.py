"""Arms whose axes are all parallel: two triangles, elbow up and elbow down."""

from __future__ import annotations

import numpy as np

from mechanik.search.subproblems import both_angles, turn_onto, turned
from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross, dot


class TwoBars:
    """The angles about two parallel axes that carry a point to a place.

    Args:
        h: (3,) the direction of both axes.
        signs: (2,) 1 or -1, whether each joint turns about h or against it.
        p1, p2, point: (3,).
    """

    def __init__(self, h: Array, signs: Array, p1: Array, p2: Array, point: Array, size: float) -> None:
        self.h, self.signs, self.p1, self.size = h, signs, p1, size
        self.first, self.second = across(h, p2 - p1), across(h, point - p2)

    def angles(self, place: Array, near: Array) -> Array:
        """(m, 2, 2) for places (m, 3); the part of a place along the axes does not count."""
        a, b, goal = self.first, self.second, across(self.h, place - self.p1)
        free = near * self.signs
        A, B = 2 * a @ b, 2 * a @ cross(self.h, b)
        D = dot(goal, goal) - a @ a - b @ b
        one = np.ones_like(D)
        q2 = both_angles(A * one, B * one, D, free[:, 1], self.size**2)
        tip = a + turned(self.h, q2, np.broadcast_to(b, (*q2.shape, 3)))
        q1 = turn_onto(self.h, tip, np.broadcast_to(goal[:, None], tip.shape), free[:, None, 0], self.size)
        return np.stack([q1, q2], axis=-1) * self.signs


class Planar2R:
    """Places the link's origin; up to two ways."""

    branches = 2
    counts_rotation = False

    def __init__(self, directions: Array, points: Array, home: Array, size: float) -> None:
        h = directions[0]
        self.tip = home[:3, 3]
        self.bars = TwoBars(h, np.sign(directions @ h), points[0], points[1], self.tip, size)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        return self.bars.angles(T[:, :3, :3] @ self.tip + T[:, :3, 3], near)


class Planar3R:
    """Places the link and turns it in the plane; up to two ways."""

    branches = 2
    counts_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, size: float) -> None:
        self.arm = ThreeParallelTurns(directions, points, size)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        return self.arm.angles(T, near)


class ThreeParallelTurns:
    """The angles about three parallel axes that make up a displacement in the plane across them.

    Args:
        directions, points: (3, 3) of the axes.
    """

    def __init__(self, directions: Array, points: Array, size: float) -> None:
        self.h = h = directions[0]
        self.signs = np.sign(directions @ h)
        self.last = points[2]
        self.bars = TwoBars(h, self.signs[:2], points[0], points[1], points[2], size)
        self.across = across(h, np.eye(3)[np.argmin(np.abs(h))])

    def angles(self, T: Array, near: Array) -> Array:
        """(m, 2, 3) for displacements T (m, 4, 4)."""
        q = np.empty((len(T), 2, 3))
        q[..., :2] = self.bars.angles(T[:, :3, :3] @ self.last + T[:, :3, 3], near[:, :2])
        whole = turn_onto(self.h, np.broadcast_to(self.across, (len(T), 3)), T[:, :3, :3] @ self.across, near[:, 2])
        q[..., 2] = (whole[:, None] - q[..., :2] @ self.signs[:2]) * self.signs[2]
        return q


def across(h: Array, v: Array) -> Array:
    """The part of v (..., 3) at right angles to h (3,)."""
    return v - (v @ h)[..., None] * h
