"""Paths past singular configurations and near limits, for arms and a platform; benchmarks/follow.py has them too."""

from __future__ import annotations

import numpy as np

from mechanik.motion.follow import Arc, CartesianPath, Line
from mechanik.spatial import make_pose, rotation

FORWARD = rotation.exp([0.0, np.pi / 2, 0.0])
ALONG_Y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def panda_stretched() -> CartesianPath:
    """The tool points forward, on an arc whose middle is almost out of reach."""
    ends = [make_pose(FORWARD, np.array([0.61, y, 0.4])) for y in (-0.35, 0.35)]
    return Arc(ends[0], (0.91, 0.0, 0.4), ends[1])


def panda_two_branches() -> CartesianPath:
    """The tool points forward, on a line across the front: no branch at the start reaches the end."""
    return Line(*(make_pose(FORWARD, np.array([0.5, y, 0.5])) for y in (-0.6, 0.6)))


def ur5_near_wrist_singularity(tilt: float) -> CartesianPath:
    """The tool points sideways and up by `tilt` (rad), the smallest distance of wrist 2 to the wrist singularity.

    At 0 the path passes through the singularity, and wrist 2 rotates straight through it.
    """
    R = rotation.exp([tilt, 0.0, 0.0]) @ ALONG_Y
    return Line(*(make_pose(R, np.array([0.5, y, 0.3])) for y in (-0.3, 0.5)))


def stewart_near_singularity(X_world_platform: np.ndarray) -> CartesianPath:
    """The platform rotates about its axis from 69 to 112 degrees and passes a singular configuration at 90.

    There all legs belong to one linear complex. The platform is lifted, so that the legs come near their upper limits.
    """
    centre = X_world_platform[:3, 3] + (0.0, 0.0, 0.08)
    ends = [make_pose(X_world_platform[:3, :3] @ rotation.exp([0.0, 0.0, a]), centre) for a in (1.2, 1.95)]
    return Line(*ends)
