"""A serial chain with one pose-like goal, in the canonical form of the chain kernels.

T = base . prod_j [ Rz(offset_j + q_j) Tz(slide_j q_j) Trans(t_j) Rx(alpha_j) ] . tool

Any chain of turning and sliding joints has this form. Each axis is z already; what is fixed between two of them is a
shift and a rotation Rz(a) Rx(alpha) Rz(b), of which the outer turns go into the offsets of the joints on either side.
Base and tool are taken off the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.kernels import chain_layout as at
from mechanik.kernels.layout import BALL, FIRST_Q, KIND, OFFSET, PRISMATIC, RATIO, REVOLUTE, SLIDE
from mechanik.mechanism.kinematics import ONTO
from mechanik.objectives.relation import Kind, Relation
from mechanik.program.skeleton import Skeleton
from mechanik.spatial import inverse, make, rotation
from mechanik.spatial.array import Array

ENTRIES = 512
FIRST_MU, MAX_ITERATIONS, MAX_ATTEMPTS = 0.04, 40, 501
CHOICES = 2
FINEST = 1e-11
"""m over the mechanism's size, and rad.

What is asked more finely is for the general kernel, which computes as a user does.
"""
INSIDE = 1 - 1e-6
"""Of a tolerance: what the chain kernel has to reach, so that rounding elsewhere does not matter."""
LONGEST = 64
OUT_OF_RANGE = 4.0
"""How much an azimuth that the first joint cannot turn to counts. Tuned on a Panda."""
SAME = 1e-13
TURN_KINDS = {Kind.POSE: at.VECTOR, Kind.AXIS: at.AXIS, Kind.COSINE: at.COSINE}
WHOLE, PLACE, ROTATION = (0, 1, 2, 3, 4, 5), (0, 1, 2), (3, 4, 5)


@dataclass(frozen=True, slots=True)
class Motion:
    """A joint's motion about or along z: by ratio * q + offset, where q is a number of the configuration."""

    turns: bool
    q: int
    ratio: float
    offset: float


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


@dataclass(frozen=True, slots=True)
class Weights:
    """Tolerances (m, rad), the unit of length (m), and how much lengths, angles and the goal itself count."""

    tolerance: float
    angle_tolerance: float
    size: float
    position: float = 1.0
    rotation: float = 1.0
    goal: float = 1.0


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
    model = _model(fixed, motions, columns, held, (lower, upper), skeleton.nq, rows, weights)
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


def _model(
    fixed: list[Array],
    motions: list[Motion],
    columns: list[int],
    held: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
    nq: int,
    wanted: tuple[int, ...],
    weights: Weights,
) -> Array:
    """All that the kernels are told of a chain, flat."""
    m, n = len(motions), len(columns)
    scale = weights.position / weights.size
    model = np.zeros(at.MODEL_HEAD + at.NODE * m + at.COLUMN_FLOATS * n)
    nodes = model[at.MODEL_HEAD : at.MODEL_HEAD + at.NODE * m].reshape(m, at.NODE)
    table = model[at.MODEL_HEAD + at.NODE * m :].reshape(n, at.COLUMN_FLOATS)
    units = _units(motions, columns, weights.size)
    _fill_nodes(nodes, fixed, motions, columns, units, scale)
    _fill_columns(table, motions, columns, units, held, limits)
    rows = set(wanted)
    has_place, has_turn = bool(rows & set(PLACE)), bool(rows & set(ROTATION))
    is_partial = wanted not in (WHOLE, PLACE, ROTATION)
    model[at.N_NODES], model[at.N_COLUMNS], model[at.N_Q], model[at.LENGTH_SCALE] = m, n, nq, scale
    model[at.PLACE_WEIGHT], model[at.TURN_WEIGHT] = has_place, weights.rotation * has_turn
    model[at.IS_PARTIAL] = is_partial
    model[at.METRES2] = (weights.tolerance * scale * INSIDE) ** 2 if has_place else np.inf
    model[at.RADIANS2] = (weights.angle_tolerance * weights.rotation * INSIDE) ** 2 if has_turn else np.inf
    model[at.FIRST_MU], model[at.MAX_ITERATIONS], model[at.MAX_ATTEMPTS] = FIRST_MU, MAX_ITERATIONS, MAX_ATTEMPTS
    model[at.WORK], model[at.CHOICES], model[at.ENTRIES] = np.inf, CHOICES, ENTRIES
    knows_place = set(PLACE) <= rows
    model[at.HAS_RANKS] = knows_place
    model[at.REACH] = _reach(nodes, table) + scale * weights.tolerance if knows_place else np.inf
    alone = [sum(other.q == motion.q for other in motions) == 1 and motion.ratio == 1.0 for motion in motions]
    turns = [
        motion.turns and one and not held[columns.index(motion.q)] for motion, one in zip(motions, alone, strict=True)
    ]
    model[at.TURNS_FIRST] = turns[0] and knows_place and n > 1
    model[at.TURNS_LAST] = turns[-1] and wanted == WHOLE and n > 1
    _bound_first(model, *(float(limit[int(nodes[0, at.COLUMN])]) for limit in limits))
    model[at.MODEL_SIZE], model[at.TABLE_SIZE] = len(model), -(-at.table_size(n, ENTRIES) // 2)
    model[at.ROW_WEIGHTS : at.ROW_WEIGHTS + 6] = np.isin(np.arange(6), wanted)
    return model


def _bound_first(model: Array, lower: float, upper: float) -> None:
    """The first joint's range: entries of the table whose azimuth it cannot turn to the target's count as far."""
    if upper - lower < 2 * math.pi and model[at.TURNS_FIRST]:
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        model[at.COS_MIDDLE], model[at.SIN_MIDDLE], model[at.COS_HALF] = (
            math.cos(middle),
            math.sin(middle),
            math.cos(half),
        )
        model[at.PENALTY] = OUT_OF_RANGE * (math.pi - half) ** 2 / (1.0 + math.cos(half))


def _units(motions: list[Motion], columns: list[int], size: float) -> list[float]:
    """Of each column: a joint that slides has its unit of length, so that it moves as readily as one that turns."""
    return [1.0 if any(motion.turns for motion in motions if motion.q == k) else size for k in columns]


def _fill_nodes(
    nodes: Array, fixed: list[Array], motions: list[Motion], columns: list[int], units: list[float], scale: float
) -> None:
    offset = np.zeros(len(motions) + 1)
    seen = set[int]()
    for j, motion in enumerate(motions):
        row, X = nodes[j], fixed[j + 1]
        if j + 1 < len(motions):
            a, alpha, b = _turns(X[:3, :3])
        else:
            a, alpha, b = 0.0, 0.0, 0.0  # the tool's rotation is taken off the target
        offset[j] += a
        offset[j + 1] += b
        row[at.COS_ALPHA], row[at.SIN_ALPHA] = math.cos(alpha), math.sin(alpha)
        row[at.SHIFT : at.SHIFT + 3] = scale * (rotation.turn_z(-a) @ X[:3, 3])
        column = columns.index(motion.q)
        row[at.RATIO], row[at.COLUMN] = motion.ratio * units[column], column
        row[at.IS_NEW] = motion.q not in seen
        seen.add(motion.q)
        if motion.turns:
            offset[j] += motion.offset
        else:
            row[at.SLIDES] = scale
            row[at.SHIFT + 2] += scale * motion.offset
    nodes[:, at.OFFSET] = (offset[:-1] + np.pi) % (2 * np.pi) - np.pi
    nodes[:, at.COS_OFFSET], nodes[:, at.SIN_OFFSET] = np.cos(offset[:-1]), np.sin(offset[:-1])


def _fill_columns(
    table: Array,
    motions: list[Motion],
    columns: list[int],
    units: list[float],
    held: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
) -> None:
    for j, k in enumerate(columns):
        mine = [motion for motion in motions if motion.q == k]
        lower, upper = limits[0][j], limits[1][j]
        reach = math.pi if any(motion.turns for motion in mine) else 1.0
        low = lower if np.isfinite(lower) else upper - 2 * reach if np.isfinite(upper) else -reach
        high = upper if np.isfinite(upper) else lower + 2 * reach if np.isfinite(lower) else reach
        table[j, [at.LOW, at.HIGH, at.AT, at.IS_HELD, at.UNIT]] = low / units[j], high / units[j], k, held[j], units[j]
        table[j, [at.LEAST, at.MOST]] = lower, upper
        # a joint that is held has no room on either side
        table[j, [at.LOWER, at.UPPER]] = (np.inf, -np.inf) if held[j] else (lower / units[j], upper / units[j])
        table[j, at.WINDS] = all(motion.turns and abs(motion.ratio) == 1.0 for motion in mine)


def _turns(R: Array) -> tuple[float, float, float]:
    """(a, alpha, b) of R = Rz(a) Rx(alpha) Rz(b), exact to rounding also where the axes are nearly parallel."""
    s = math.hypot(R[0, 2], R[1, 2])
    a = math.atan2(R[0, 2], -R[1, 2]) if s > 0.0 else 0.0
    alpha = math.atan2(s, R[2, 2])
    left = rotation.turn_x(-alpha) @ rotation.turn_z(-a) @ R
    return a, alpha, math.atan2(left[1, 0], left[0, 0])


def _reach(nodes: Array, table: Array) -> float:
    """How far the end can be from the first joint, in units of the kernel."""
    total = 0.0
    for row in nodes:
        along, column = abs(row[at.SHIFT + 2]), table[int(row[at.COLUMN])]
        if row[at.SLIDES] != 0.0:
            if column[at.IS_HELD] != 0.0:
                return math.inf
            along += abs(row[at.SLIDES] * row[at.RATIO]) * max(abs(column[at.LOWER]), abs(column[at.UPPER]))
        total += math.hypot(row[at.SHIFT], row[at.SHIFT + 1], along)
    return total
