"""A way along a circle."""

from __future__ import annotations

import numpy as np

from mechanik.errors import ShapeError
from mechanik.mechanism.door import as_number, as_vector
from mechanik.paths.pose_path import PosePath, one_pose
from mechanik.spatial import Pose, interpolation, make, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector import unit

STRAIGHT = 1e-9
"""Of the distance between ends: three points that are off a line by less are on no circle."""


class Arc(PosePath):
    """The origin goes along a circle; the frame turns evenly from the first orientation to the last.

    Args:
        a, b: the ends: a `Pose` or (4, 4).
        through: a point (3,), m, that the circle leads through between them; or a pose, of which the place counts.
    """

    def __init__(self, a: Pose | ArrayLike, through: Pose | ArrayLike, b: Pose | ArrayLike) -> None:
        X_a, X_b = one_pose(a, "start of an arc"), one_pose(b, "end of an arc")
        is_pose = isinstance(through, Pose) or np.shape(through) == (4, 4)
        middle = one_pose(through, "pose inside an arc")[:3, 3] if is_pose else as_vector(through, 3, "through")  # type: ignore[arg-type]
        centre, axis, angle = _circle(X_a[:3, 3], middle, X_b[:3, 3])
        self._set(X_a, X_b[:3, :3], centre, axis, angle, turns=False)

    @classmethod
    def about(cls, a: Pose | ArrayLike, centre: ArrayLike, axis: ArrayLike, angle: float, *, turns: bool = True) -> Arc:
        """From a by an angle (rad, any size and sign) about an axis through a centre (m).

        Args:
            turns: whether the frame turns with the arc, as if it were fixed to a wheel; if not, it stays as in a.
        """
        arc = cls.__new__(cls)
        X = one_pose(a, "start of an arc")
        direction = as_vector(axis, 3, "axis of an arc")
        if not np.any(direction):
            raise ShapeError("the axis of an arc is zero and so has no direction")
        size = as_number(angle, "angle of an arc")
        arc._set(X, X[:3, :3], as_vector(centre, 3, "centre of an arc"), unit(direction, "axis"), size, turns)
        return arc

    def _set(self, a: Array, R_end: Array, centre: Array, axis: Array, angle: float, turns: bool) -> None:
        self.a, self._R_end, self.centre, self.axis, self.angle, self._turns = a, R_end, centre, axis, angle, turns

    def __repr__(self) -> str:
        return f"<arc of {self.angle:.4g} rad about {self.centre.tolist()}>"

    def poses(self, t: Array) -> Array:
        R = rotation.exp(t[:, None] * self.angle * self.axis)
        place = self.centre + R @ (self.a[:3, 3] - self.centre)
        turned = R @ self.a[:3, :3] if self._turns else interpolation.rotations(self.a[:3, :3], self._R_end, t)
        return make(turned, place)


def _circle(a: Array, m: Array, b: Array) -> tuple[Array, Array, float]:
    """Centre, axis and angle (0 to a full turn) of the circle from a through m to b."""
    u, v = m - a, b - a
    normal = np.cross(u, v)
    size = float(np.linalg.norm(normal))
    longest = max(float(np.linalg.norm(one)) for one in (u, v, b - m))
    if not size > STRAIGHT * longest**2:
        raise ShapeError("the three points of an arc lie on one line, so no circle leads through them; use a Line")
    centre = a + np.cross(normal, (u @ u) * v - (v @ v) * u) / (-2.0 * size**2)
    axis = normal / size
    r, s = a - centre, b - centre
    angle = float(np.arctan2(axis @ np.cross(r, s), r @ s))
    return centre, axis, angle if angle > 0.0 else angle + 2.0 * np.pi
