"""Placements of every kind with random numbers, and two free bodies to try them on."""

from __future__ import annotations

import numpy as np
from random_mechanisms import random_turn

from mechanik import DoF, Joint, Link, Mechanism
from mechanik.mechanism.dof import ALL
from mechanik.objectives.axis import Axis
from mechanik.objectives.hinge import Hinge
from mechanik.objectives.on_line import OnLine
from mechanik.objectives.on_plane import OnPlane
from mechanik.objectives.orientation import Orientation
from mechanik.objectives.placement import Placement
from mechanik.objectives.point import Point
from mechanik.objectives.pose_goal import PoseGoal
from mechanik.objectives.position_rules import Fixed, Linear, Planar
from mechanik.objectives.rotation_rules import Aligned, FixedRotation, Square
from mechanik.objectives.surface import Surface
from mechanik.spatial import from_position_wxyz, to_position_wxyz

POSITIONS = ("anywhere", "fixed", "linear", "planar")
ROTATIONS = ("any", "fixed", "aligned", "square")
NAMED = ("Point", "OnLine", "OnPlane", "Axis", "Orientation", "Hinge", "Surface", "PoseGoal")
GENERAL = tuple(f"{p} {r}" for p in POSITIONS for r in ROTATIONS if (p, r) != ("anywhere", "any"))
PARTIAL = tuple(
    f"partial {axes} {' '.join(dof.name for dof in ALL if number >> dof & 1)}"
    for axes in ("goal", "world")
    for number in range(1, 64)
)


def random_placement(kind: str, seed: int, link: str = "body", relative_to: str | None = None) -> Placement:
    rng = np.random.default_rng(seed)
    target, local, direction, axis, local_axis = rng.uniform(-1, 1, (5, 3))
    X, tool = random_matrix(rng), random_matrix(rng)
    wish = {"weight": 2.5, "level": 2, "tolerance": 1e-4, "angle_tolerance": 1e-3, "name": "it"}
    common = {"relative_to": relative_to, **wish}
    if kind.startswith("partial"):
        _, axes, *dof = kind.split()
        return PoseGoal(link, X, at=tool, dof=[DoF(one) for one in dof], axes=axes, **common)
    match kind:
        case "Point":
            return Point(link, target, local, **common)
        case "OnLine":
            return OnLine(link, target, direction, local, **common)
        case "OnPlane":
            return OnPlane(link, target, direction, local, **common)
        case "Axis":
            return Axis(link, axis, local_axis, **common)
        case "Orientation":
            return Orientation(link, X[:3, :3], tool[:3, :3], **common)
        case "Hinge":
            return Hinge(link, target, axis, local, local_axis, **common)
        case "Surface":
            return Surface(link, target, axis, local, local_axis, **common)
        case "PoseGoal":
            return PoseGoal(link, X, at=tool, **common)
    position, turn = kind.split()
    rules = {
        "anywhere": None,
        "fixed": Fixed(target, local),
        "linear": Linear(target, direction, local),
        "planar": Planar(target, direction, local),
    }
    turns = {
        "any": None,
        "fixed": FixedRotation(X[:3, :3], tool[:3, :3]),
        "aligned": Aligned(axis, local_axis),
        "square": Square(axis, local_axis),
    }
    return Placement(link, rules[position], turns[turn], **common)


def random_matrix(rng: np.random.Generator) -> np.ndarray:
    return from_position_wxyz(rng.uniform(-1, 1, 3), random_turn(rng))


def two_bodies() -> Mechanism:
    """Two bodies that float in the world: "anchor", to be relative to, and "body"."""
    ground = Link("ground")
    for name in ("anchor", "body"):
        joint = Joint(f"{name}_joint", dof=ALL)
        joint.add_child(Link(name))
        ground.add_child(joint)
    return Mechanism(ground)


def stand(mechanism: Mechanism, X_world_body: np.ndarray, X_world_anchor: np.ndarray | None = None) -> np.ndarray:
    """q at which the bodies stand so."""
    anchor = np.eye(4) if X_world_anchor is None else X_world_anchor
    q = np.concatenate([part for X in (anchor, X_world_body) for part in to_position_wxyz(X)])
    assert np.abs(mechanism.pose("body", q) - X_world_body).max() < 1e-12
    return q
