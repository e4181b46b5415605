"""Closures as rows: a loop is shut, or a goal reached, where they are all zero."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mechanik.errors import DoFError
from mechanik.mechanism import Closure, Joint, Mechanism
from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.mechanism.door import read_only
from mechanik.mechanism.kinematics import ONTO
from mechanik.objectives.cones import cone_relations, cone_rows, joint_start
from mechanik.objectives.evaluate import evaluate
from mechanik.objectives.partial import partial_relations
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import euler, make, rotation, translation
from mechanik.spatial.array import Array


def closure_relations(mechanism: Mechanism, closure: Closure, weight: float = 1.0) -> tuple[Relation, ...]:
    """The rows that a closure, or a goal that is closed onto its link, takes away; limits are not among them."""
    a, X_a, b, X_b = _ends(mechanism, closure)
    axes = "world" if closure.joint._is_in_world_axes() else "goal"
    return partial_relations(closure.constrained, a=a, X_a=X_a, b=b, X_b=X_b, axes=axes, weight=weight)


def closure_limits(mechanism: Mechanism, closure: Closure, weight: float = 1.0) -> tuple[Relation, ...]:
    """The limits of the joint that closes a loop, as rows that lie in bands; they count once it is shut.

    Those of every shift, of a turn that is the only free one, and a cone. How far each of two or three turns has gone,
    no kind of row can say.
    """
    found = [relation for _, relation in closing_limits(mechanism, closure, weight)]
    return (*found, *closure_cone(mechanism, closure, weight))


def closing_limits(
    mechanism: Mechanism, closure: Closure, weight: float = 1.0
) -> list[tuple[tuple[DoF, ...], Relation]]:
    """Of `closure_limits` all but the cone, with the freedom that each row measures (a turn from its middle)."""
    joint = closure.joint
    if not isinstance(joint, Joint):
        return []
    a, X_a, b, X_b = _ends(mechanism, closure)
    limits = {dof: joint.limits(dof) for dof in joint.dof if np.isfinite(joint.limits(dof)).any()}
    found: list[tuple[tuple[DoF, ...], Relation]] = []

    def add(
        dofs: list[DoF], rows: tuple[int, ...], X_a: Array, X_b: Array, lower: list[float], upper: list[float]
    ) -> None:
        low, high = read_only(np.array(lower)), read_only(np.array(upper))
        ends = read_only(X_a), read_only(X_b)
        found.append((tuple(dofs), Relation(Kind.POSE, rows, a, b, *ends, lower=low, upper=high, weight=weight)))

    shifts = [dof for dof in TRANSLATIONS if dof in limits]
    if shifts:
        low, high = zip(*(limits[dof] for dof in shifts), strict=True)
        add(shifts, tuple(dof.direction for dof in shifts), X_a.copy(), X_b.copy(), list(low), list(high))
    turns = [dof for dof in ROTATIONS if dof in joint.dof]
    if len(turns) == 1 and turns[0] in limits:
        k, (low, high) = turns[0].direction, limits[turns[0]]
        if high - low < 2 * math.pi:  # else it may stand anywhere
            # a rotation vector knows angles up to half a turn only, so it is measured from the middle
            middle = make(rotation.exp(0.5 * (low + high) * np.eye(3)[k]), np.zeros(3))
            half = 0.5 * (high - low)
            add(turns, (5,), X_a @ middle @ ONTO[k], X_b @ ONTO[k], [-half], [half])
    return found


def limits_reached(mechanism: Mechanism, q: Array, within: float) -> dict[str, str]:
    """Freedoms of joints that close a loop which are within m or rad of a limit at q: "lower" or "upper", by name."""
    at: dict[str, str] = {}
    for name, closure in mechanism.closures.items():
        for dofs, relation in closing_limits(mechanism, closure):
            rows, lower, upper = evaluate(mechanism, relation, q)[0], relation.lower, relation.upper
            assert lower is not None
            assert upper is not None
            for dof, value, low, high in zip(dofs, rows, lower, upper, strict=True):
                label = name if len(closure.free) == 1 else f"{name}.{dof.name}"
                if low < high and value <= low + within:
                    at[label] = "lower"
                elif low < high and value >= high - within:
                    at[label] = "upper"
    return at


def closure_cone(mechanism: Mechanism, closure: Closure, weight: float = 1.0) -> tuple[Relation, ...]:
    """The cone of the joint that closes a loop, if it has one: rows that lie in bands."""
    joint = closure.joint
    if not isinstance(joint, Joint) or joint.cone is None:
        return ()
    return cone_rows(joint.cone, *_ends(mechanism, closure), weight)


def tilts(mechanism: Mechanism, q: Array) -> dict[str, float]:
    """How far each joint that has a cone tilts at q, by name: the largest angle (rad) among the axes that count."""
    rows = {**cone_relations(mechanism)}
    for name, closure in mechanism.closures.items():
        if some := closure_cone(mechanism, closure):
            rows[name] = some
    cosines = {name: min(float(evaluate(mechanism, one, q)[0][0]) for one in some) for name, some in rows.items()}
    return {name: math.acos(min(max(cosine, -1.0), 1.0)) for name, cosine in cosines.items()}


def closure_values(
    mechanism: Mechanism, closure: Closure, values: Mapping[DoF, float], weight: float = 1.0
) -> tuple[Relation, ...]:
    """The rows that are zero where the joint that closes a loop has these values (m, rad), once the loop is shut.

    Of several turns all are to be given, since how far each has gone no row can say.
    """
    a, X_a, b, X_b = _ends(mechanism, closure)
    found: list[Relation] = []
    wanted = np.array([values.get(dof, 0.0) for dof in DoF])
    shifts = tuple(dof.direction for dof in TRANSLATIONS if dof in values)
    if shifts:
        ends = read_only(X_a @ translation(wanted[:3])), read_only(X_b.copy())
        found.append(Relation(Kind.POSE, shifts, a, b, *ends, weight=weight))
    turns = [dof for dof in ROTATIONS if dof in closure.free]
    given = [dof for dof in ROTATIONS if dof in values]
    if given and given != turns:
        names = " ".join(dof.name for dof in turns)
        raise DoFError(f"{closure.joint} closes a loop and turns by {names}: give all of these values, or none")
    if given:
        turn = make(euler.matrix_from_euler(wanted[[5, 4, 3]], order="zyx", axes="moving"), np.zeros(3))
        onto, rows = (ONTO[turns[0].direction], (5,)) if len(turns) == 1 else (np.eye(4), (3, 4, 5))
        ends = read_only(X_a @ turn @ onto), read_only(X_b @ onto)
        found.append(Relation(Kind.POSE, rows, a, b, *ends, weight=weight))
    return tuple(found)


def _ends(mechanism: Mechanism, closure: Closure) -> tuple[str | None, Array, str, Array]:
    """Where the closing joint hangs and where it ends: link and frame each, the frames turned to its axes of motion."""
    a, X_a, turn = joint_start(mechanism, closure.joint)
    return a, X_a, mechanism.name_of(closure.link), closure.at.matrix @ turn
