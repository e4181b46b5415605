"""Random link goals of every kind, and a mechanism of two free bodies for them."""

from __future__ import annotations

import numpy as np
from random_mechanisms import random_turn

from mechanik import DoF, Joint, Link, Mechanism
from mechanik.model.dof import ALL_DOFS
from mechanik.objectives.pose_constraints import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
)
from mechanik.objectives.pose_goals import (
    AxisGoal,
    HingeGoal,
    LinkGoal,
    OnLine,
    OnPlane,
    OrientationGoal,
    PoseGoal,
    PositionGoal,
    SurfaceGoal,
)
from mechanik.spatial import from_position_wxyz, to_position_wxyz

POSITIONS = ("anywhere", "fixed", "linear", "planar")
ROTATIONS = ("any", "fixed", "aligned", "square")
NAMED = ("PositionGoal", "OnLine", "OnPlane", "AxisGoal", "OrientationGoal", "HingeGoal", "SurfaceGoal", "PoseGoal")
GENERAL = tuple(f"{p} {r}" for p in POSITIONS for r in ROTATIONS if (p, r) != ("anywhere", "any"))
PARTIAL = tuple(
    f"partial {axes} {' '.join(dof.name for dof in ALL_DOFS if number >> dof & 1)}"
    for axes in ("goal", "world")
    for number in range(1, 64)
)


def random_link_goal(kind: str, seed: int, link: str = "body", relative_to: str | None = None) -> LinkGoal:
    rng = np.random.default_rng(seed)
    target, local, direction, axis, local_axis = rng.uniform(-1, 1, (5, 3))
    X, tool = random_pose_matrix(rng), random_pose_matrix(rng)
    options = {"weight": 2.5, "level": 2, "tolerance": 1e-4, "angle_tolerance": 1e-3, "name": "it"}
    common = {"relative_to": relative_to, **options}
    if kind.startswith("partial"):
        _, axes, *dof = kind.split()
        return PoseGoal(link, X, at=tool, dof=[DoF(name) for name in dof], axes=axes, **common)
    match kind:
        case "PositionGoal":
            return PositionGoal(link, target, local, **common)
        case "OnLine":
            return OnLine(link, target, direction, local, **common)
        case "OnPlane":
            return OnPlane(link, target, direction, local, **common)
        case "AxisGoal":
            return AxisGoal(link, axis, local_axis, **common)
        case "OrientationGoal":
            return OrientationGoal(link, X[:3, :3], tool[:3, :3], **common)
        case "HingeGoal":
            return HingeGoal(link, target, axis, local, local_axis, **common)
        case "SurfaceGoal":
            return SurfaceGoal(link, target, axis, local, local_axis, **common)
        case "PoseGoal":
            return PoseGoal(link, X, at=tool, **common)
    position, rotation = kind.split()
    position_constraints = {
        "anywhere": None,
        "fixed": PointConstraint(target, local),
        "linear": LineConstraint(target, direction, local),
        "planar": PlaneConstraint(target, direction, local),
    }
    rotation_constraints = {
        "any": None,
        "fixed": FixedRotation(X[:3, :3], tool[:3, :3]),
        "aligned": AlignedAxes(axis, local_axis),
        "square": PerpendicularAxes(axis, local_axis),
    }
    return LinkGoal(link, position_constraints[position], rotation_constraints[rotation], **common)


def random_pose_matrix(rng: np.random.Generator) -> np.ndarray:
    return from_position_wxyz(rng.uniform(-1, 1, 3), random_turn(rng))


def two_bodies() -> Mechanism:
    """Return two floating bodies: "anchor", to which goals can be relative, and "body"."""
    ground = Link("ground")
    for name in ("anchor", "body"):
        joint = Joint(f"{name}_joint", dof=ALL_DOFS)
        joint.add_child(Link(name))
        ground.add_child(joint)
    return Mechanism(ground)


def body_configuration(
    mechanism: Mechanism, X_world_body: np.ndarray, X_world_anchor: np.ndarray | None = None
) -> np.ndarray:
    """Return q at which the bodies have these poses."""
    anchor = np.eye(4) if X_world_anchor is None else X_world_anchor
    q = np.concatenate([values for X in (anchor, X_world_body) for values in to_position_wxyz(X)])
    assert np.abs(mechanism.pose("body", q) - X_world_body).max() < 1e-12
    return q
