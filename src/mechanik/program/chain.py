"""Serial chains with one pose-like goal: where they are in a mechanism, for the chain kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.kernels import chain_layout as at
from mechanik.kernels.layout import BALL, FIRST_Q, KIND, OFFSET, PRISMATIC, RATIO, REVOLUTE, SLIDE
from mechanik.mechanism.kinematics import ONTO
from mechanik.objectives.relation import Kind, Relation
from mechanik.program.canonical_form import PLACE, ROTATION, Motion, Weights, chain_model
from mechanik.program.skeleton import Skeleton
from mechanik.spatial import inverse, make
from mechanik.spatial.array import Array

FINEST = 1e-11
"""m over the mechanism's size, and rad: what is asked more finely is for the general kernel."""
LONGEST = 40
"""Joints; beyond, an attempt takes so long that few can be made, and the general kernel takes larger steps."""
SAME = 1e-13
TURN_KINDS = {Kind.POSE: at.VECTOR, Kind.AXIS: at.AXIS, Kind.COSINE: at.COSINE}


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """
    Attributes:
        model: for the kernels, in the layout of `kernels/chain_layout.py`.
        columns: (n,) places in q.
        held: (n,) which of them may not move.
        lower, upper: (n,).
        relations: what is asked: one, or one of positions and one of rotations between the same links.
        turns: for each of them, its X_a seen from the target.
        weight: of the goal, which changes no answer but what rows cost.
    """

    model: Array
    columns: np.ndarray[tuple[int], np.dtype[np.int64]]
    held: np.ndarray[tuple[int], np.dtype[np.bool_]]
    lower: Array
    upper: Array
    relations: tuple[Relation, ...]
    turns: tuple[Array, ...]
    weight: float

    @property
    def n(self) -> int:
        return len(self.columns)

    def target(self, relations: Sequence[Relation]) -> Array | None:
        """The target (4, 4) of relations that differ from the chain's in nothing else; None if they do."""
        if len(relations) != len(self.relations):
            return None
        # a turn by right angles or by none costs not even a bit
        X = relations[0].X_a @ self.turns[0].T
        for mine, other, turn in zip(self.relations, relations, self.turns, strict=True):
            if (mine.kind, mine.rows, mine.a, mine.b, mine.weight) != (
                other.kind, other.rows, other.a, other.b, other.weight
            ):  # fmt: skip
                return None
            same_axes = mine.world_axes is other.world_axes is None or np.array_equal(mine.world_axes, other.world_axes)  # type: ignore[arg-type]
            if not same_axes or not np.allclose(mine.X_b, other.X_b, rtol=0.0, atol=SAME):
                return None
            if not np.allclose(X @ turn, other.X_a, rtol=0.0, atol=SAME):
                return None
        return X


def find_chain(
    skeleton: Skeleton,
    relations: Sequence[Relation],
    active: Sequence[bool] | np.ndarray[tuple[int], np.dtype[np.bool_]],
    bounds: tuple[Array, Array],
    weights: Weights,
    target: Array | None = None,
) -> Chain | None:
    """The chain between the two links of one relation, or of two; None if there is none for the chain kernels.

    Args:
        active: (nv,) which freedoms may move.
        bounds: (nq,) limits.
        target: X_a_target (4, 4) as the user sees it; that of the first relation if not given.
    """
    rows = _rows(relations)
    if rows is None or not (weights.tolerance / weights.size > FINEST and weights.angle_tolerance > FINEST):
        return None
    X = relations[0].X_a if target is None else target
    seen = [inverse(X) @ relation.X_a for relation in relations]
    if any(np.abs(one[:3, 3]).max() > SAME * weights.size for one in seen):
        return None
    turns = tuple(make(np.where(abs(one - one.round()) < SAME, one.round(), one)[:3, :3], np.zeros(3)) for one in seen)
    fixed, motions = _between(skeleton, relations[0])
    if not motions or len(motions) > LONGEST or any(not np.isfinite(one).all() for one in fixed):
        return None
    columns = list(dict.fromkeys(motion.q for motion in motions))
    held = np.array([not active[skeleton.v_of_x[k]] for k in columns])
    if held.all():
        return None
    lower, upper = bounds[0][columns], bounds[1][columns]
    model = chain_model(fixed, motions, columns, held, (lower, upper), skeleton.nq, rows, weights)
    _aim(model, fixed, relations, turns)
    return Chain(
        model,
        np.array(columns, dtype=np.int64),
        held,
        lower,
        upper,
        tuple(relations),
        turns,
        weights.goal * relations[0].weight,
    )


def _rows(relations: Sequence[Relation]) -> tuple[int, ...] | None:
    """Which of the six rows are asked for, if it is by one relation, or by positions and rotations apart."""
    first = relations[0]
    for relation in relations:
        if relation.kind not in TURN_KINDS or relation.lower is not None or not relation.rows or relation.b is None:
            return None
        if (relation.a, relation.b) != (first.a, first.b) or relation.weight != first.weight:
            return None
        if relation.world_axes is not None and (relation.a is not None or len(relations) > 1):
            return None
    rows = [tuple(row + 3 for row in one.rows) if one.kind is Kind.COSINE else one.rows for one in relations]
    if len(rows) == 1:
        return rows[0]
    apart = len(rows) == 2 and set(rows[0]) <= set(PLACE) and set(rows[1]) <= set(ROTATION)
    return (*rows[0], *rows[1]) if apart else None


def _aim(model: Array, fixed: list[Array], relations: Sequence[Relation], turns: Sequence[Array]) -> None:
    """Base and tool, which are taken off the target, and the axes along which rows are taken."""
    last, base = relations[-1], fixed[0]
    tool = fixed[-1][:3, :3] @ inverse(relations[0].X_b)[:3, :3] @ last.X_b[:3, :3]
    model[at.BASE : at.BASE + 9], model[at.BASE_PLACE : at.BASE_PLACE + 3] = base[:3, :3].ravel(), base[:3, 3]
    model[at.TOOL : at.TOOL + 9] = (tool @ turns[-1][:3, :3].T).ravel()
    model[at.TOOL_AXIS : at.TOOL_AXIS + 3] = tool[:, 2]
    model[at.PLACE_TURN : at.PLACE_TURN + 9] = turns[0][:3, :3].ravel()
    model[at.ROTATION_TURN : at.ROTATION_TURN + 9] = turns[-1][:3, :3].ravel()
    model[at.TURN_KIND] = TURN_KINDS[last.kind]
    if last.kind is not Kind.POSE:
        model[at.IS_PARTIAL] = 1.0
    if last.world_axes is not None:
        model[at.OWN_AXES] = 1.0
        model[at.AXES : at.AXES + 9] = (base[:3, :3].T @ last.world_axes).ravel()


def _between(skeleton: Skeleton, relation: Relation) -> tuple[list[Array], list[Motion]]:
    """What is fixed (one more) and what moves on the way from A to B; no motion at all if there is a ball on it."""
    up, down = skeleton.path(relation.a), skeleton.path(relation.b)
    shared = next((k for k, (one, other) in enumerate(zip(up, down, strict=False)) if one != other), None)
    shared = min(len(up), len(down)) if shared is None else shared
    fixed, motions = [np.eye(4)], list[Motion]()
    if any(skeleton.nodes[node, KIND] == BALL for node in (*up[shared:], *down[shared:])):
        return fixed, motions
    X_a, X_b = skeleton.frames[relation.a][1], skeleton.frames[relation.b][1]
    fixed[-1] = inverse(X_a)
    for node in reversed(up[shared:]):
        row = skeleton.nodes[node]
        for X, motion in reversed(_moves(row)):
            motions.append(Motion(motion.turns, motion.q, -motion.ratio, -motion.offset))
            fixed.append(inverse(X))
    for node in down[shared:]:
        for X, motion in _moves(skeleton.nodes[node]):
            fixed[-1] = fixed[-1] @ X
            motions.append(motion)
            fixed.append(np.eye(4))
    fixed[-1] = fixed[-1] @ X_b @ relation.X_b
    return fixed, motions


def _moves(row: Array) -> list[tuple[Array, Motion]]:
    """A node as motions about or along z, each with what is fixed before it."""
    X, q, kind = make(row[:9].reshape(3, 3), row[9:12]), int(row[FIRST_Q]), int(row[KIND])
    if kind in (REVOLUTE, PRISMATIC):
        return [(X, Motion(kind == REVOLUTE, q, float(row[RATIO]), float(row[OFFSET])))]
    assert kind == SLIDE
    # three shifts, the axes of which are turned onto z in turn; the last one is z already
    return [
        (X @ ONTO[0], Motion(False, q, 1.0, 0.0)),
        (ONTO[0].T @ ONTO[1], Motion(False, q + 1, 1.0, 0.0)),
        (ONTO[1].T, Motion(False, q + 2, 1.0, 0.0)),
    ]
