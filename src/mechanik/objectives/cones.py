"""Cones of joints as rows: the cosine of how far an axis tilts, in a band."""

from __future__ import annotations

import math

import numpy as np

from mechanik.mechanism import Goal, Joint, Link, Mechanism
from mechanik.mechanism.cone import Cone
from mechanik.mechanism.door import read_only
from mechanik.mechanism.kinematics import ONTO
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import inverse, make, quaternion
from mechanik.spatial.array import Array


def cone_relations(mechanism: Mechanism) -> dict[str, tuple[Relation, ...]]:
    """The rows of all cones of joints in the tree, by the name of the joint; `closure_cone` has those of the others."""
    found: dict[str, tuple[Relation, ...]] = {}
    for name, joint in mechanism.joints.items():
        if joint.cone is None or not joint.children:
            continue
        a, X_a, turn = joint_start(mechanism, joint)
        child = joint.children[0]
        found[name] = cone_rows(joint.cone, a, X_a, mechanism.name_of(child), inverse(child.matrix) @ turn)
    return found


def cone_rows(cone: Cone, a: str | None, X_a: Array, b: str, X_b: Array, weight: float = 1.0) -> tuple[Relation, ...]:
    """One row for each axis: z of frame A, and z of frame B, which stand alike where the joint is at zero.

    Args:
        X_a, X_b: (4, 4), the joint's axes of motion in the links before and behind it.
    """
    # rounding may take the cosine of an axis in its place above 1, which is no reason to move it
    lower, upper = read_only(np.array([math.cos(cone.angle)])), read_only(np.array([math.inf]))
    return tuple(
        Relation(
            Kind.COSINE, (0,), a, b, read_only(X_a @ ONTO[k]), read_only(X_b @ ONTO[k]),
            lower=lower, upper=upper, weight=weight,
        )
        for k in cone.directions
    )  # fmt: skip


def joint_start(mechanism: Mechanism, joint: Joint | Goal) -> tuple[str | None, Array, Array]:
    """The link on which a joint hangs (None: the world), its axes of motion there, and the turn to them; (4, 4)."""
    X_a, above = joint.matrix, joint.parent
    while above is not None and not isinstance(above, Link):
        X_a, above = above.matrix @ X_a, above.parent
    turn = make(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
    return None if above is None else mechanism.name_of(above), X_a @ turn, turn
