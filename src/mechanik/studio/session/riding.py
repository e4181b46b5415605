"""Where a goal is when it is where its link is: for new goals, and for goals that come along with a motion by hand."""

from __future__ import annotations

import math

import numpy as np

from mechanik.mechanism.door import read_only
from mechanik.objectives import Terrain
from mechanik.spatial import inverse, make, rotation
from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import Vector
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_kinds import Z_AXIS

LOOKS = 0.8
"""Radii of the mechanism: how far in front of a link a new goal to look at stands."""


def frame_for(
    kind: GoalKind, X_world_link: Array, at: Vector, sizes: Vector, radius: float, centre: Array | None
) -> Array:
    """The frame (4, 4) of a new goal that is met as things stand, so that nothing jumps."""
    R, p = X_world_link[:3, :3], X_world_link[:3, :3] @ at + X_world_link[:3, 3]
    match kind:
        case "look_at":
            return read_only(make(R, p + LOOKS * radius * (R @ sizes)))
        case "axis" | "in_cone":
            way = R @ (at if math.hypot(*at) > 1e-9 else Z_AXIS)
            return read_only(make(rotation.between(np.array(Z_AXIS), way), X_world_link[:3, 3]))
        case "distance":
            return read_only(make(R, p - sizes[0] * R[:, 2]))
        case "in_box" | "in_band" | "centre_of_mass" | "on_terrain":
            return read_only(make(np.eye(3), p if kind != "centre_of_mass" or centre is None else centre))
        case _:
            return read_only(make(R, p))


def ridden(goal: Goal, X_before: Array, X_now: Array, centre: Array | None, terrain: Terrain | None) -> Array:
    """The frame (4, 4) of a goal whose link has moved and that comes along.

    A frame that the link shall come to is where the link is; lines, planes, boxes and the like move as if they were
    fixed to it; the centre of mass is where it is, and what stands on the ground stays on it.

    Args:
        X_before, X_now: of the link in the world, when it was taken and now.
    """
    R, p = X_now[:3, :3], X_now[:3, :3] @ goal.at + X_now[:3, 3]
    match goal.kind:
        case "point":
            return make(goal.X[:3, :3], p)
        case "pose" | "orientation":
            return make(R, p)
        case "centre_of_mass":
            return goal.X if centre is None else make(goal.X[:3, :3], centre)
        case "on_terrain":
            height = p[2] if terrain is None else float(terrain.height(p[0], p[1]))
            return make(goal.X[:3, :3], np.array([p[0], p[1], height]))
        case _:
            return X_now @ inverse(X_before) @ goal.X
