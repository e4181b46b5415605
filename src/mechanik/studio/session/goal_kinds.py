"""From a goal on the screen to an objective, kind by kind, and what a new frame of it means to a running solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mechanik.errors import ObjectiveError
from mechanik.mechanism.dof import ALL
from mechanik.objectives import (
    Axis,
    CentreOfMass,
    Distance,
    Hinge,
    InBand,
    InBox,
    InCone,
    LookAt,
    Objective,
    OnLine,
    OnPlane,
    OnTerrain,
    Orientation,
    Point,
    PoseGoal,
    Surface,
    Terrain,
)
from mechanik.objectives.objective import Wish
from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import Vector
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.session.goal import Goal

X_AXIS: Vector = (1.0, 0.0, 0.0)
Z_AXIS: Vector = (0.0, 0.0, 1.0)
UPRIGHT = 0.75
"""Cosine to the world's z above which an axis of a link counts as pointing up, and not as looking somewhere."""


def objective_of(goal: Goal, terrain: Terrain | None = None) -> Objective:
    """As a program would write it down.

    Args:
        terrain: the ground of the scene, for `on_terrain`.
    """
    wish: Wish = {"weight": goal.weight, "level": goal.counted_level, "name": goal.name}
    if goal.kind == "on_terrain":
        if terrain is None:
            raise ObjectiveError("there is no ground here to stand on; open a scene that has some, such as the rover")
        return OnTerrain(goal.link, terrain, goal.at, goal.sizes[0], **wish)
    return _MAKERS[goal.kind](goal, wish)


def _pose(goal: Goal, wish: Wish) -> Objective:
    wanted = [dof for dof in ALL if dof.name not in goal.free]
    return PoseGoal(goal.link, goal.X, at=goal.at, dof=wanted, **wish)


def _p(goal: Goal) -> Array:
    return goal.X[:3, 3]


def _z(goal: Goal) -> Array:
    return goal.X[:3, 2]


_MAKERS: dict[GoalKind, Callable[[Goal, Wish], Objective]] = {
    "point": lambda goal, wish: Point(goal.link, _p(goal), goal.at, **wish),
    "pose": _pose,
    "orientation": lambda goal, wish: Orientation(goal.link, goal.X[:3, :3], **wish),
    "axis": lambda goal, wish: Axis(goal.link, _z(goal), link_axis(goal), **wish),
    "hinge": lambda goal, wish: Hinge(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "surface": lambda goal, wish: Surface(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "on_line": lambda goal, wish: OnLine(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "on_plane": lambda goal, wish: OnPlane(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "look_at": lambda goal, wish: LookAt(goal.link, _p(goal), link_axis(goal), goal.at, **wish),
    "distance": lambda goal, wish: Distance(goal.link, at=goal.at, other_at=_p(goal), equal=goal.sizes[0], **wish),
    "in_box": lambda goal, wish: InBox(goal.link, -np.array(goal.sizes), goal.sizes, goal.X, goal.at, **wish),
    "in_cone": lambda goal, wish: InCone(goal.link, link_axis(goal), _z(goal), goal.sizes[0], **wish),
    "in_band": lambda goal, wish: InBand(goal.link, "z", goal.sizes[0], goal.sizes[1], goal.X, goal.at, **wish),
    "centre_of_mass": lambda goal, wish: CentreOfMass(_p(goal), **wish),
}


def link_axis(goal: Goal) -> Vector:
    """The direction of the link that an axis, a cone or a look is about.

    For an axis and a cone `at` if it is given, else the link's z; for a look `sizes`, see `usual_sizes`.
    """
    given = goal.sizes if goal.kind == "look_at" else goal.at
    return given if math.hypot(*given) > 1e-9 else Z_AXIS


def usual_sizes(kind: GoalKind, X_world_link: Array, radius: float) -> Vector:
    """What a new goal of that kind measures.

    Args:
        radius: of the mechanism, m.
    Returns:
        For a look the axis of the link that looks: z, or x where z points up, as in heads and bodies.
    """
    match kind:
        case "look_at":
            return X_AXIS if X_world_link[2, 2] > UPRIGHT else Z_AXIS
        case "distance":
            return (0.25 * radius, 0.0, 0.0)
        case "in_box":
            return (0.1 * radius, 0.1 * radius, 0.1 * radius)
        case "in_cone":
            return (0.35, 0.0, 0.0)
        case "in_band":
            return (-0.1 * radius, 0.1 * radius, 0.0)
        case _:
            return (0.0, 0.0, 0.0)


def target_of(goal: Goal, before: Goal) -> Any:
    """What `Objective.at` takes so that the objective of `before` becomes that of `goal`, which has another frame.

    None: nothing that a target can say, so the objective has to be made anew.
    """
    turned = not np.array_equal(goal.X[:3, :3], before.X[:3, :3])
    match goal.kind:
        case "point" | "look_at" | "centre_of_mass":
            return goal.X[:3, 3]
        case "pose" | "in_box" | "in_band":
            return goal.X
        case "orientation":
            return goal.X[:3, :3]
        case "axis" | "in_cone":
            return goal.X[:3, 2]
        case "hinge" | "surface" | "on_line" | "on_plane":
            return None if turned else goal.X[:3, 3]
        case _:
            return None
