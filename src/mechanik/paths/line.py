"""The straight way from one pose to another."""

from __future__ import annotations

from mechanik.paths.pose_path import PosePath, one_pose
from mechanik.spatial import Pose, interpolation
from mechanik.spatial.array import Array, ArrayLike


class Line(PosePath):
    """The origin goes straight from a to b, and the frame turns evenly, the shortest way.

    Args:
        a, b: a `Pose` or (4, 4).
    """

    def __init__(self, a: Pose | ArrayLike, b: Pose | ArrayLike) -> None:
        self.a, self.b = one_pose(a, "start of a line"), one_pose(b, "end of a line")

    def __repr__(self) -> str:
        return f"Line({Pose.from_matrix(self.a)!r}, {Pose.from_matrix(self.b)!r})"

    def poses(self, t: Array) -> Array:
        return interpolation.poses(self.a, self.b, t)
