"""How far a link is from what a goal wants, read off its pose: a distance and an angle, in plain numbers for speed."""

from __future__ import annotations

import math

import numpy as np

from mechanik.mechanism.dof import ROTATIONS
from mechanik.objectives import Terrain
from mechanik.objectives.partial import CROSSED
from mechanik.spatial.array import Array
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_kinds import link_axis


def missing(goal: Goal, X_world_link: Array, centre: Array | None, terrain: Terrain | None) -> tuple[float, float]:
    """Distance (m) and angle (rad) that are missing.

    Args:
        centre: of all masses, (3,); None if nothing weighs anything.
        terrain: the ground, for `on_terrain`, raised by the radius of the goal's ball.
    """
    R, p = X_world_link[:3, :3], X_world_link[:3, 3] + X_world_link[:3, :3] @ goal.at
    x, y, z = (goal.X[:3, :3].T @ (p - goal.X[:3, 3])).tolist()  # the point as the goal's frame sees it
    sizes = goal.sizes
    match goal.kind:
        case "point":
            return math.hypot(x, y, z), 0.0
        case "pose":
            off = [one for one, free in ((x, "X"), (y, "Y"), (z, "Z")) if free not in goal.free]
            return math.hypot(*off), _turn(goal.X[:3, :3].T @ R, goal)
        case "orientation":
            return 0.0, angle_of(goal.X[:3, :3].T @ R)
        case "axis":
            return 0.0, _between(R @ link_axis(goal), goal.X[:3, 2])
        case "hinge":
            return math.hypot(x, y, z), _between(R[:, 2], goal.X[:3, 2])
        case "surface":
            return abs(z), _between(R[:, 2], goal.X[:3, 2])
        case "on_line":
            return math.hypot(x, y), 0.0
        case "on_plane":
            return abs(z), 0.0
        case "look_at":
            return 0.0, _between(R @ link_axis(goal), goal.X[:3, 3] - p)
        case "distance":
            return abs(math.hypot(x, y, z) - sizes[0]), 0.0
        case "in_box":
            return math.hypot(*(max(abs(one) - size, 0.0) for one, size in zip((x, y, z), sizes, strict=True))), 0.0
        case "in_cone":
            return 0.0, max(0.0, _between(R @ link_axis(goal), goal.X[:3, 2]) - sizes[0])
        case "in_band":
            return max(sizes[0] - z, z - sizes[1], 0.0), 0.0
        case "centre_of_mass":
            return (0.0 if centre is None else float(np.linalg.norm(centre - goal.X[:3, 3]))), 0.0
        case "on_terrain":
            return (0.0 if terrain is None else abs(float(p[2] - terrain.height(p[0], p[1])))), 0.0


def angle_of(R: Array) -> float:
    """Of a rotation (3, 3); exact near 0 and near half a turn."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R.ravel().tolist()
    return math.atan2(math.hypot(zy - yz, xz - zx, yx - xy), xx + yy + zz - 1.0)


def _between(a: Array, b: Array) -> float:
    """The angle between two directions of any length; 0 if one has none."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    cross = math.hypot(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
    return math.atan2(cross, ax * bx + ay * by + az * bz)


def _turn(R: Array, goal: Goal) -> float:
    """Of a pose that may leave some turns free: what `partial_relations` asks for."""
    turns = [dof for dof in ROTATIONS if dof.name not in goal.free]
    match len(turns):
        case 3:
            return angle_of(R)
        case 2:
            k = next(dof for dof in ROTATIONS if dof not in turns).direction
            return math.atan2(math.hypot(R[(k + 1) % 3, k], R[(k + 2) % 3, k]), R[k, k])
        case 1:
            of_link, of_goal = CROSSED[turns[0]]
            return abs(math.asin(max(-1.0, min(1.0, float(R[of_goal, of_link])))))
        case _:
            return 0.0
