"""6R arms with a spherical wrist: axes 4, 5 and 6 meet in a point, which axes 1, 2 and 3 carry, lying anywhere.

D. L. Pieper, "The Kinematics of Manipulators under Computer Control", Stanford 1968: the point's place alone gives
the first three angles; up to four ways, each with two of the wrist. The turns about axes 1 and 2 are taken out of the
equations by what they do not change: how high the point stands along axis 1, and how far it is from a point of that
axis. What remains is one equation in the third angle: linear in its cosine and sine where axes 1 and 2 meet or are
parallel; a quadratic where axes 2 and 3 do; else a quartic.
"""

from __future__ import annotations

import numpy as np

from mechanik.mechanism import lines
from mechanik.search.subproblems import (
    SPECIAL,
    across_basis,
    both_angles,
    circle_and_conic,
    other_leg,
    square,
    three_turns,
    turn_matrix,
    turn_onto,
    turned,
)
from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross, dot


class SphericalWrist:
    """All solutions of such an arm.

    Args:
        directions, points: (6, 3) of the axes.
        size: about the reach.
    """

    branches = 8
    counts_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, size: float) -> None:
        self.h, self.size = directions, size
        self.wrist, _ = lines.meeting_point(points[3:], directions[3:])
        self.place = PointOnThreeAxes(directions[:3], points[:3], self.wrist, size)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        """(m, 8, 6) for displacements T (m, 4, 4) = X_base_link home^-1; what does not exist is NaN or wrong."""
        h = self.h
        wrist = T[:, :3, :3] @ self.wrist + T[:, :3, 3]
        arm = self.place.angles(wrist, near[:, :3])  # (m, 4, 3)
        R_base_forearm = (
            turn_matrix(h[0], arm[..., 0]) @ turn_matrix(h[1], arm[..., 1]) @ turn_matrix(h[2], arm[..., 2])
        )
        R_forearm_hand = np.swapaxes(R_base_forearm, -1, -2) @ T[:, None, :3, :3]
        hand = three_turns(R_forearm_hand, h[3], h[4], h[5], np.broadcast_to(near[:, None, 3:], arm.shape))
        q = np.empty((len(T), 4, 2, 6))
        q[..., :3], q[..., 3:] = arm[:, :, None], hand
        return q.reshape(len(T), 8, 6)


class PointOnThreeAxes:
    """The angles about three axes that carry a point to a place.

    Lengths are shares of the reach here. o1, o2 and o3 are points of the axes, d leads from o1 to o2, and g from o2
    to the point as axis 3 has turned it; v is what of g is across axis 2, as axis 2 has turned it. Axis 1 changes
    neither the distance from o1 nor the height along itself, which gives two linear equations for v,

        d · v = (|place - o1|² - |d|² - |g|²) / 2 - (d · h2) (h2 · g)
        h1 · v = h1 · (place - o2) - (h1 · h2) (h2 · g)

    and a third is that the turn keeps its length. |g|² and h2 · g are linear in the cosine and sine of the third
    angle. M holds the factors of v on the left, U sizes V its singular values; the smaller one is zero where axes 1
    and 2 meet or are parallel.
    """

    def __init__(self, directions: Array, points: Array, point: Array, size: float) -> None:
        h1, h2, h3 = self.h = directions
        points, point, self.size = points / size, point / size, size
        o3 = lines.foot(point, points[2], h3)
        self.o2 = o2 = lines.foot(o3, points[1], h2)
        self.o1 = o1 = lines.foot(o2, points[0], h1)
        self.d = d = o2 - o1
        self.basis = across_basis(h2)
        U, self.sizes, self.V = np.linalg.svd(np.stack([d, h1]) @ self.basis.T)
        self.is_parted = bool(self.sizes[1] < SPECIAL)
        # g = b + cos(q3) r + sin(q3) s; its squared length and its part along axis 2 as factors of 1, cos, sin
        self.b, self.r = o3 - o2, point - o3
        self.s = cross(h3, self.r)
        b, r, s = self.b, self.r, self.s
        self.squared = np.array([b @ b + r @ r, 2 * b @ r, 2 * b @ s])
        self.along = np.array([h2 @ b, h2 @ r, h2 @ s])
        # the right hand sides are place_part + these
        right = np.stack([-self.squared / 2 - (d @ h2) * self.along, -(h1 @ h2) * self.along])
        self.U, self.right = U, U.T @ right

    def angles(self, place: Array, near: Array) -> Array:
        """(m, 4, 3) for places (m, 3)."""
        h1, h2, _ = self.h
        place = place / self.size
        from_axis = place - self.o1
        far, high = (dot(from_axis, from_axis) - self.d @ self.d) / 2, (place - self.o2) @ h1
        right = np.repeat(self.right[:, None], len(place), axis=1)  # (2, m, 3)
        right[..., 0] += self.U.T @ np.stack([far, high])
        well, badly = right[0] / self.sizes[0], right[1]
        q3 = self._third(well, badly, near[:, 2])
        # v along the rows of V
        squared = _at(self.squared, q3) - _at(self.along, q3) ** 2
        x = _at(well[:, None], q3)
        y = other_leg(squared, x)
        if self.is_parted:
            y = y * (1, -1, 1, -1)
        else:  # two ways to it: one is good where it is large, the other where it is small
            direct = _at(badly[:, None], q3) / self.sizes[1]
            y = np.where(np.abs(direct) > self.sizes[1], np.copysign(y, direct), direct)
        v = np.stack([x, y], axis=-1) @ self.V @ self.basis
        g = self.b + np.cos(q3)[..., None] * self.r + np.sin(q3)[..., None] * self.s
        q2 = turn_onto(h2, g, v, near[:, None, 1])
        arm = self.d + turned(h2, q2, g)
        q1 = turn_onto(h1, arm, np.broadcast_to(from_axis[:, None], arm.shape), near[:, None, 0])
        return np.stack([q1, q2, q3], axis=-1)

    def _third(self, well: Array, badly: Array, free: Array) -> Array:
        """(m, 4) angles of axis 3; where there are only two, each twice, for two angles of axis 2."""
        if self.is_parted:
            return np.repeat(both_angles(badly[:, 1], badly[:, 2], -badly[:, 0], free), 2, axis=1)
        # x² + y² = |g|² - (h2 · g)², times the smaller singular value squared
        G, H, small = self.squared, self.along, self.sizes[1] ** 2
        e = square(badly) + small * (square(well) + square(H))
        e[:, :3] -= small * G
        e /= np.abs(e).max(axis=-1, keepdims=True)
        if abs(G[1] * H[2] - G[2] * H[1]) > SPECIAL:
            return circle_and_conic(e)
        # axes 2 and 3 meet or are parallel: all that depends on q3 is the cosine of (q3 - middle), in a quadratic
        lead = G[1:] if G[1:] @ G[1:] > H[1:] @ H[1:] else H[1:]
        middle = np.arctan2(lead[1], lead[0])
        c, s = np.cos(middle), np.sin(middle)
        two = e[:, 3] * c * c + e[:, 4] * c * s + e[:, 5] * s * s
        one, zero = e[:, 1] * c + e[:, 2] * s, e[:, 0]
        root = np.sqrt(np.maximum(one**2 - 4 * two * zero, 0.0))
        big = -(one + np.copysign(root, one)) / 2
        cosines = np.stack([big / two, np.where(big == 0.0, 0.0, zero / np.where(big == 0.0, 1.0, big))], axis=-1)
        half = np.arccos(np.clip(cosines, -1.0, 1.0))
        return np.concatenate([middle + half, middle - half], axis=-1)


def _at(row: Array, t: Array) -> Array:
    """row (..., 3) · (1, cos t, sin t) for t (...)."""
    return row[..., 0] + row[..., 1] * np.cos(t) + row[..., 2] * np.sin(t)
