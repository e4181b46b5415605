"""How far loops stand open, and what their closing joints read, from the poses of the links: all loops at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mechanik.mechanism import DoF, Joint, Link, Mechanism
from mechanik.mechanism.measure import measure
from mechanik.spatial import make, quaternion, rotation
from mechanik.spatial.array import Array

TURN = 2 * np.pi
Indices = npt.NDArray[np.int64]


class Measured(NamedTuple):
    """
    Attributes:
        gaps: (C, 2), m and rad: what is left open once the free directions are used as well as they can be.
        values: (C, 6), of X Y Z EX EY EZ of the closing joint, zero where not free.
        turned: (C, 3), the rotation vector of a closing ball.
    """

    gaps: Array
    values: Array
    turned: Array


class Gaps:
    """Made for a mechanism as it stands; angles are read as those nearest to how it stands then."""

    def __init__(self, mechanism: Mechanism) -> None:
        links = {link: k for k, link in enumerate(mechanism.links.values())}
        closures = list(mechanism.closures.values())
        self.count = len(closures)
        frames: list[tuple[Array, Array]] = []
        ends: list[tuple[int, int]] = []
        for closure in closures:
            axes = make(quaternion.to_matrix(closure.joint.axes_wxyz), np.zeros(3))
            above = closure.joint.parent
            ends.append((links[above] if isinstance(above, Link) else -1, links[closure.link]))
            frames.append((closure.joint.matrix @ axes, closure.at.matrix @ axes))
        self._a = np.array([a for a, _ in ends], dtype=np.int64)
        self._b = np.array([b for _, b in ends], dtype=np.int64)
        self._in_world = np.flatnonzero(self._a < 0)
        self._X_a = np.array([a for a, _ in frames]).reshape(-1, 4, 4)
        self._X_b = np.array([b for _, b in frames]).reshape(-1, 4, 4)
        free = np.array([[dof in closure.free for dof in DoF] for closure in closures], dtype=bool).reshape(-1, 6)
        self._shifts = free[:, :3]
        self._balls = np.array([isinstance(one.joint, Joint) and one.joint.is_ball for one in closures], dtype=bool)
        ranges = [closure.joint._range() for closure in closures]
        self._lower = np.array([lower for _, lower, _ in ranges]).reshape(-1, 6)
        self._upper = np.array([upper for _, _, upper in ranges]).reshape(-1, 6)
        self._near = np.array([near for near, _, _ in ranges]).reshape(-1, 6)
        self._free = [tuple(dof for dof in DoF if row[dof]) for row in free]
        turns = free[:, 3:].sum(axis=1)
        self._by_one = [(k, np.flatnonzero((turns == 1) & free[:, 3 + k])) for k in range(3)]
        self._by_one = [(k, rows) for k, rows in self._by_one if rows.size]
        self._welded = np.flatnonzero(turns == 0)
        by_two = [(two, np.flatnonzero((turns == 2) & free[:, two].all(axis=1))) for two in TWO_TURNS]
        self._by_two = [(two, rows) for two, rows in by_two if rows.size]
        self._others = [int(k) for k in np.flatnonzero((turns == 3) & ~self._balls)]

    def measure(self, X: Array) -> Measured:
        """
        Args:
            X: (L, 4, 4), poses of all links in the world.
        """
        if not self.count:
            return Measured(np.zeros((0, 2)), np.zeros((0, 6)), np.zeros((0, 3)))
        above = X[self._a]
        above[self._in_world] = np.eye(4)
        A = above @ self._X_a
        B = X[self._b] @ self._X_b
        back = A[:, :3, :3].swapaxes(1, 2)
        R = back @ B[:, :3, :3]
        p = (back @ (B[:, :3, 3] - A[:, :3, 3])[:, :, None])[:, :, 0]
        gaps, values, turned = np.zeros((self.count, 2)), np.zeros((self.count, 6)), np.zeros((self.count, 3))
        values[:, :3] = np.where(self._shifts, np.clip(p, self._lower[:, :3], self._upper[:, :3]), 0.0)
        gaps[:, 0] = np.sqrt(((p - values[:, :3]) ** 2).sum(axis=1))
        for k, rows in self._by_one:
            i, j, one = (k + 1) % 3, (k + 2) % 3, R[rows]
            values[rows, 3 + k] = self._unwound(_about(k, one), rows, 3 + k)
            gaps[rows, 1] = np.arctan2(np.hypot(one[:, i, k], one[:, j, k]), one[:, k, k])
        for two, rows in self._by_two:
            angles, turn = TWO_TURNS[two](R[rows])
            for k in two:
                values[rows, k] = self._unwound(angles[k], rows, k)
            gaps[rows, 1] = _angles(R[rows] @ turn.swapaxes(1, 2))
        if self._welded.size:
            gaps[self._welded, 1] = _angles(R[self._welded])
        for k in self._others:
            found = measure(make(R[k], p[k]), self._free[k], self._near[k], self._lower[k], self._upper[k])
            values[k, 3:] = found[3:]
            turn = rotation.turn_z(found[5]) @ rotation.turn_y(found[4]) @ rotation.turn_x(found[3])
            gaps[k, 1] = _angles((R[k] @ turn.T)[None])[0]
        if self._balls.any():
            turned[self._balls] = rotation.log(R[self._balls])
        return Measured(gaps, values, turned)

    def _unwound(self, angle: Array, rows: Indices, k: int) -> Array:
        """The same angles, by full turns near to where they stood, and inside the limits where that can be."""
        near, lower, upper = (side[rows][:, k] for side in (self._near, self._lower, self._upper))
        found: Array = angle + TURN * np.round((near - angle) / TURN)
        found = np.where((found < lower) & (found + TURN <= upper), found + TURN, found)
        return np.where((found > upper) & (found - TURN >= lower), found - TURN, found)


def _about(k: int, R: Array) -> Array:
    """The turns about axis k that come closest to R (n, 3, 3)."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return np.arctan2(R[:, j, i] - R[:, i, j], R[:, i, i] + R[:, j, j])


def _x_and_y(R: Array) -> tuple[dict[DoF, Array], Array]:
    Y = rotation.turn_y(y := np.arctan2(-R[:, 2, 0], R[:, 0, 0]))
    x = _about(0, Y.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EY: y}, Y @ rotation.turn_x(x)


def _y_and_z(R: Array) -> tuple[dict[DoF, Array], Array]:
    Y = rotation.turn_y(y := np.arctan2(-R[:, 2, 0], R[:, 2, 2]))
    z = _about(2, R @ Y.swapaxes(1, 2))
    return {DoF.EY: y, DoF.EZ: z}, rotation.turn_z(z) @ Y


def _x_and_z(R: Array) -> tuple[dict[DoF, Array], Array]:
    Z = rotation.turn_z(z := np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    x = _about(0, Z.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EZ: z}, Z @ rotation.turn_x(x)


TWO_TURNS = {(DoF.EX, DoF.EY): _x_and_y, (DoF.EY, DoF.EZ): _y_and_z, (DoF.EX, DoF.EZ): _x_and_z}
"""For two free turns: their angles (n,) that come closest to R (n, 3, 3), and what they come to; as in `measure`."""


def _angles(R: Array) -> Array:
    """(n, 3, 3) to (n,), rad; exact near zero."""
    x, y, z = R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]
    return np.arctan2(np.sqrt(x * x + y * y + z * z), np.einsum("nii->n", R) - 1.0)
