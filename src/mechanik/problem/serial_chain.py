"""Serial chains with one pose-like goal: detection in a mechanism, and canonical form for the chain kernels.

T = base . prod_j [ Rz(offset_j + q_j) Tz(slide_j q_j) Trans(t_j) Rx(alpha_j) ] . tool

Every chain of revolute and prismatic joints has this form. Each joint axis is z. The fixed transform between two axes
is a translation and a rotation Rz(a) Rx(alpha) Rz(b), whose outer rotations are added to the offsets of the adjacent
joints. Base and tool are removed from the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.kernels import chain_layout as at
from mechanik.kernels.nodes import (
    FIRST_Q,
    NODE_KIND,
    NODE_OFFSET,
    NODE_RATIO,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
)
from mechanik.model.kinematics import Z_TO_AXIS
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem.kinematic_tree import KinematicTree
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array

SEED_TABLE_SIZE = 512
"""Number of entries of the seed table: twice as many save 7 % of the iterations and cost as much time in the search."""
FIRST_MU, MAX_ITERATIONS, MAX_ATTEMPTS = 0.04, 40, 501
"""Start damping; largest number of iterations of an attempt; largest number of attempts."""
SEED_CHOICES = 2
"""Number of attempts from the seed table before one of them is chosen as a seed."""
KERNEL_TOLERANCE_SHARE = 1 - 1e-6
"""Share of a tolerance that the chain kernel must reach, so that rounding elsewhere does not matter."""
AZIMUTH_PENALTY = 4.0
"""Factor of the penalty for seeds at an azimuth out of the first joint's range. Tuned on a Panda."""
POSE_ROWS, POSITION_ROWS, ROTATION_ROWS = (0, 1, 2, 3, 4, 5), (0, 1, 2), (3, 4, 5)


@dataclass(frozen=True, slots=True)
class JointMotion:
    """Motion of a joint about or along z by ratio * value + offset, where value is an entry of the configuration.

    Attributes:
        is_rotation: whether it rotates about z; else it translates along z.
        q: index of the value in the configuration.
        ratio: 1, or the ratio of a mimic joint; negated on the path from a link up to the common ancestor.
        offset: m or rad.
    """

    is_rotation: bool
    q: int
    ratio: float
    offset: float


@dataclass(frozen=True, slots=True)
class ChainWeights:
    """Tolerances and weights of a chain's goal.

    Attributes:
        tolerance, angle_tolerance: m, rad.
        length_unit: m; lengths are divided by it.
        position, rotation: factors of lengths and of angles.
        goal: factor of the whole goal.
    """

    tolerance: float
    angle_tolerance: float
    length_unit: float
    position: float = 1.0
    rotation: float = 1.0
    goal: float = 1.0


def chain_model(
    fixed: list[Array],
    motions: list[JointMotion],
    columns: list[int],
    locked: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
    nq: int,
    rows_to_solve: tuple[int, ...],
    weights: ChainWeights,
) -> Array:
    """Return the flat model of a chain for the kernels, in the layout of `kernels/chain_layout.py`.

    Args:
        fixed: fixed transforms (4, 4) before, between and behind the motions; one more than motions.
        motions: joint motions from the base to the tool.
        columns: index in q of each column.
        locked: (n,), mask of the columns that may not move.
        limits: lower and upper limit of each column, (n,), m and rad.
        nq: size of q.
        rows_to_solve: constrained rows: 0-2 of the position, 3-5 of the rotation.
        weights: tolerances and weights of the goal.
    """
    m, n = len(motions), len(columns)
    scale = weights.position / weights.length_unit
    model = np.zeros(at.MODEL_HEAD + at.JOINT_FLOATS * m + at.COLUMN_FLOATS * n)
    nodes = model[at.MODEL_HEAD : at.MODEL_HEAD + at.JOINT_FLOATS * m].reshape(m, at.JOINT_FLOATS)
    table = model[at.MODEL_HEAD + at.JOINT_FLOATS * m :].reshape(n, at.COLUMN_FLOATS)
    units = _units(motions, columns, weights.length_unit)
    _fill_nodes(nodes, fixed, motions, columns, units, scale)
    _fill_columns(table, motions, columns, units, locked, limits)
    rows = set(rows_to_solve)
    has_position, has_rotation = bool(rows & set(POSITION_ROWS)), bool(rows & set(ROTATION_ROWS))
    is_partial = rows_to_solve not in (POSE_ROWS, POSITION_ROWS, ROTATION_ROWS)
    model[at.N_NODES], model[at.N_COLUMNS], model[at.N_Q], model[at.LENGTH_SCALE] = m, n, nq, scale
    model[at.POSITION_WEIGHT], model[at.ROTATION_WEIGHT] = has_position, weights.rotation * has_rotation
    model[at.IS_PARTIAL] = is_partial
    model[at.POSITION_TOLERANCE2] = (
        (weights.tolerance * scale * KERNEL_TOLERANCE_SHARE) ** 2 if has_position else np.inf
    )
    model[at.ROTATION_TOLERANCE2] = (
        (weights.angle_tolerance * weights.rotation * KERNEL_TOLERANCE_SHARE) ** 2 if has_rotation else np.inf
    )
    model[at.START_DAMPING], model[at.MAX_ITERATIONS], model[at.MAX_ATTEMPTS] = FIRST_MU, MAX_ITERATIONS, MAX_ATTEMPTS
    model[at.ITERATION_BUDGET], model[at.SEED_CHOICES], model[at.ENTRIES] = np.inf, SEED_CHOICES, SEED_TABLE_SIZE
    has_full_position = set(POSITION_ROWS) <= rows
    model[at.IS_RANKED] = has_full_position
    model[at.REACH] = _reach(nodes, table) + scale * weights.tolerance if has_full_position else np.inf
    is_own_dof = [
        sum(other_motion.q == motion.q for other_motion in motions) == 1 and motion.ratio == 1.0 for motion in motions
    ]
    is_free_rotation = [
        motion.is_rotation and is_own and not locked[columns.index(motion.q)]
        for motion, is_own in zip(motions, is_own_dof, strict=True)
    ]
    model[at.FACTORS_FIRST_JOINT] = is_free_rotation[0] and has_full_position and n > 1
    model[at.FACTORS_LAST_JOINT] = is_free_rotation[-1] and rows_to_solve == POSE_ROWS and n > 1
    _bound_first(model, *(float(limit[int(nodes[0, at.JOINT_COLUMN])]) for limit in limits))
    model[at.MODEL_SIZE], model[at.TABLE_SIZE] = len(model), -(-at.table_size(n, SEED_TABLE_SIZE) // 2)
    model[at.ROW_WEIGHTS : at.ROW_WEIGHTS + 6] = np.isin(np.arange(6), rows_to_solve)
    return model


def _bound_first(model: Array, lower: float, upper: float) -> None:
    """Write the first joint's range; table entries at an azimuth that it cannot reach get a penalty."""
    if upper - lower < 2 * math.pi and model[at.FACTORS_FIRST_JOINT]:
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        model[at.COS_RANGE_MIDDLE], model[at.SIN_RANGE_MIDDLE], model[at.COS_HALF_RANGE] = (
            math.cos(middle),
            math.sin(middle),
            math.cos(half),
        )
        model[at.AZIMUTH_PENALTY] = AZIMUTH_PENALTY * (math.pi - half) ** 2 / (1.0 + math.cos(half))


def _units(motions: list[JointMotion], columns: list[int], size: float) -> list[float]:
    """Return the unit of each column: 1 rad, or the unit of length (m) if prismatic, so that columns compare."""
    return [1.0 if any(motion.is_rotation for motion in motions if motion.q == k) else size for k in columns]


def _fill_nodes(
    nodes: Array, fixed: list[Array], motions: list[JointMotion], columns: list[int], units: list[float], scale: float
) -> None:
    offset = np.zeros(len(motions) + 1)
    known_q = set[int]()
    for j, motion in enumerate(motions):
        row, X = nodes[j], fixed[j + 1]
        if j + 1 < len(motions):
            a, alpha, b = _zxz_angles(X[:3, :3])
        else:
            a, alpha, b = 0.0, 0.0, 0.0  # the tool's rotation is removed from the target
        offset[j] += a
        offset[j + 1] += b
        row[at.COS_ALPHA], row[at.SIN_ALPHA] = math.cos(alpha), math.sin(alpha)
        row[at.LINK_TRANSLATION : at.LINK_TRANSLATION + 3] = scale * (rotation.about_z(-a) @ X[:3, 3])
        column = columns.index(motion.q)
        row[at.JOINT_RATIO], row[at.JOINT_COLUMN] = motion.ratio * units[column], column
        row[at.IS_FIRST_OF_COLUMN] = motion.q not in known_q
        known_q.add(motion.q)
        if motion.is_rotation:
            offset[j] += motion.offset
        else:
            row[at.SLIDE_SCALE] = scale
            row[at.LINK_TRANSLATION + 2] += scale * motion.offset
    nodes[:, at.JOINT_OFFSET] = (offset[:-1] + np.pi) % (2 * np.pi) - np.pi
    nodes[:, at.COS_OFFSET], nodes[:, at.SIN_OFFSET] = np.cos(offset[:-1]), np.sin(offset[:-1])


def _fill_columns(
    table: Array,
    motions: list[JointMotion],
    columns: list[int],
    units: list[float],
    locked: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
) -> None:
    for j, k in enumerate(columns):
        column_motions = [motion for motion in motions if motion.q == k]
        lower, upper = limits[0][j], limits[1][j]
        reach = math.pi if any(motion.is_rotation for motion in column_motions) else 1.0
        low = lower if np.isfinite(lower) else upper - 2 * reach if np.isfinite(upper) else -reach
        high = upper if np.isfinite(upper) else lower + 2 * reach if np.isfinite(lower) else reach
        table[j, [at.SAMPLE_MIN, at.SAMPLE_MAX, at.Q_INDEX, at.IS_LOCKED, at.Q_UNIT]] = (
            low / units[j],
            high / units[j],
            k,
            locked[j],
            units[j],
        )
        table[j, [at.Q_MIN, at.Q_MAX]] = lower, upper
        # an empty range marks a locked joint
        table[j, [at.X_MIN, at.X_MAX]] = (np.inf, -np.inf) if locked[j] else (lower / units[j], upper / units[j])
        table[j, at.IS_CONTINUOUS] = all(motion.is_rotation and abs(motion.ratio) == 1.0 for motion in column_motions)


def _zxz_angles(R: Array) -> tuple[float, float, float]:
    """Return (a, alpha, b) of R = Rz(a) Rx(alpha) Rz(b), exact to rounding even for nearly parallel axes."""
    s = math.hypot(R[0, 2], R[1, 2])
    a = math.atan2(R[0, 2], -R[1, 2]) if s > 0.0 else 0.0
    alpha = math.atan2(s, R[2, 2])
    remainder = rotation.about_x(-alpha) @ rotation.about_z(-a) @ R
    return a, alpha, math.atan2(remainder[1, 0], remainder[0, 0])


def _reach(nodes: Array, table: Array) -> float:
    """Return the largest distance of the chain's end from its first joint, in units of the kernel."""
    total = 0.0
    for row in nodes:
        axial, column = abs(row[at.LINK_TRANSLATION + 2]), table[int(row[at.JOINT_COLUMN])]
        if row[at.SLIDE_SCALE] != 0.0:
            if column[at.IS_LOCKED] != 0.0:
                return math.inf
            axial += abs(row[at.SLIDE_SCALE] * row[at.JOINT_RATIO]) * max(abs(column[at.X_MIN]), abs(column[at.X_MAX]))
        total += math.hypot(row[at.LINK_TRANSLATION], row[at.LINK_TRANSLATION + 1], axial)
    return total


FINEST_TOLERANCE = 1e-11
"""Smallest tolerance for the chain kernel, m as a share of the unit of length, and rad; finer ones need the general
kernel."""
MAX_CHAIN_JOINTS = 40
"""Largest number of joints for the chain kernel: beyond, attempts are slow and few, and the general kernel takes larger
steps."""
TARGET_MATCH_TOLERANCE = 1e-13
"""Largest difference of matrix entries that counts as rounding."""
ROTATION_KINDS = {RelationKind.POSE: at.ROTATION_VECTOR, RelationKind.AXIS: at.AXIS, RelationKind.COSINE: at.COSINE}


@dataclass(frozen=True, slots=True, eq=False)
class SerialChain:
    """Serial chain between two links, with one pose-like goal.

    Attributes:
        model: flat model, in the layout of `kernels/chain_layout.py`.
        columns: (n,), indices in q.
        locked: (n,), mask of the columns that may not move.
        lower, upper: (n,), limits, m and rad.
        relations: the goal: one relation, or one of positions and one of rotations between the same links.
        target_rotations: for each relation its X_a relative to the target, (4, 4).
        weight: weight of the goal; it scales the cost and does not change the solution.
    """

    model: Array
    columns: np.ndarray[tuple[int], np.dtype[np.int64]]
    locked: np.ndarray[tuple[int], np.dtype[np.bool_]]
    lower: Array
    upper: Array
    relations: tuple[Relation, ...]
    target_rotations: tuple[Array, ...]
    weight: float

    @property
    def n(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def target(self, relations: Sequence[Relation]) -> Array | None:
        """Return the target (4, 4) of relations that differ from the chain's in their target only; else None."""
        if len(relations) != len(self.relations):
            return None
        # multiples of 90 degrees are exact, so this product changes no bit for them
        X = relations[0].X_a @ self.target_rotations[0].T
        for old, new, target_rotation in zip(self.relations, relations, self.target_rotations, strict=True):
            if (old.kind, old.rows, old.a, old.b, old.weight) != (
                new.kind, new.rows, new.a, new.b, new.weight
            ):  # fmt: skip
                return None
            same_axes = old.world_axes is new.world_axes is None or np.array_equal(old.world_axes, new.world_axes)  # type: ignore[arg-type]
            if not same_axes or not np.allclose(old.X_b, new.X_b, rtol=0.0, atol=TARGET_MATCH_TOLERANCE):
                return None
            if not np.allclose(X @ target_rotation, new.X_a, rtol=0.0, atol=TARGET_MATCH_TOLERANCE):
                return None
        return X


def find_serial_chain(
    tree: KinematicTree,
    relations: Sequence[Relation],
    active: Sequence[bool] | np.ndarray[tuple[int], np.dtype[np.bool_]],
    bounds: tuple[Array, Array],
    weights: ChainWeights,
    target: Array | None = None,
) -> SerialChain | None:
    """Return the serial chain between the links of one or two relations; None if the chain kernels cannot solve it.

    Args:
        tree: kinematic tree of the mechanism.
        relations: relations of the goal.
        active: (nv,), mask of the dofs that may move.
        bounds: lower and upper limits, (nq,), m and rad.
        weights: tolerances and weights of the goal.
        target: X_a_target (4, 4) as the user gave it; default: that of the first relation.
    """
    rows = _constrained_rows(relations)
    if rows is None or not (
        weights.tolerance / weights.length_unit > FINEST_TOLERANCE and weights.angle_tolerance > FINEST_TOLERANCE
    ):
        return None
    X = relations[0].X_a if target is None else target
    offsets = [inverse(X) @ relation.X_a for relation in relations]
    if any(np.abs(transform[:3, 3]).max() > TARGET_MATCH_TOLERANCE * weights.length_unit for transform in offsets):
        return None
    target_rotations = tuple(
        make_pose(
            np.where(abs(transform - transform.round()) < TARGET_MATCH_TOLERANCE, transform.round(), transform)[:3, :3],
            np.zeros(3),
        )
        for transform in offsets
    )
    fixed, motions = _chain_between(tree, relations[0])
    if not motions or len(motions) > MAX_CHAIN_JOINTS or any(not np.isfinite(transform).all() for transform in fixed):
        return None
    columns = list(dict.fromkeys(motion.q for motion in motions))
    locked = np.array([not active[tree.v_of_x[k]] for k in columns])
    if locked.all():
        return None
    lower, upper = bounds[0][columns], bounds[1][columns]
    model = chain_model(fixed, motions, columns, locked, (lower, upper), tree.nq, rows, weights)
    _write_goal(model, fixed, relations, target_rotations)
    return SerialChain(
        model,
        np.array(columns, dtype=np.int64),
        locked,
        lower,
        upper,
        tuple(relations),
        target_rotations,
        weights.goal * relations[0].weight,
    )


def _constrained_rows(relations: Sequence[Relation]) -> tuple[int, ...] | None:
    """Return the constrained rows, if one relation has them, or one of positions and one of rotations; else None."""
    first = relations[0]
    for relation in relations:
        if relation.kind not in ROTATION_KINDS or relation.lower is not None or not relation.rows or relation.b is None:
            return None
        if (relation.a, relation.b) != (first.a, first.b) or relation.weight != first.weight:
            return None
        if relation.world_axes is not None and (relation.a is not None or len(relations) > 1):
            return None
    rows = [
        tuple(row + 3 for row in relation.rows) if relation.kind is RelationKind.COSINE else relation.rows
        for relation in relations
    ]
    if len(rows) == 1:
        return rows[0]
    is_split = len(rows) == 2 and set(rows[0]) <= set(POSITION_ROWS) and set(rows[1]) <= set(ROTATION_ROWS)
    return (*rows[0], *rows[1]) if is_split else None


def _write_goal(
    model: Array, fixed: list[Array], relations: Sequence[Relation], target_rotations: Sequence[Array]
) -> None:
    """Write base and tool, which are removed from the target, and the axes of the rows."""
    last_relation, base = relations[-1], fixed[0]
    tool = fixed[-1][:3, :3] @ inverse(relations[0].X_b)[:3, :3] @ last_relation.X_b[:3, :3]
    model[at.BASE_ROTATION : at.BASE_ROTATION + 9], model[at.BASE_POSITION : at.BASE_POSITION + 3] = (
        base[:3, :3].ravel(),
        base[:3, 3],
    )
    model[at.TOOL_ROTATION : at.TOOL_ROTATION + 9] = (tool @ target_rotations[-1][:3, :3].T).ravel()
    model[at.TOOL_AXIS : at.TOOL_AXIS + 3] = tool[:, 2]
    model[at.POSITION_FRAME : at.POSITION_FRAME + 9] = target_rotations[0][:3, :3].ravel()
    model[at.ROTATION_FRAME : at.ROTATION_FRAME + 9] = target_rotations[-1][:3, :3].ravel()
    model[at.ROTATION_KIND] = ROTATION_KINDS[last_relation.kind]
    if last_relation.kind is not RelationKind.POSE:
        model[at.IS_PARTIAL] = 1.0
    if last_relation.world_axes is not None:
        model[at.HAS_OWN_AXES] = 1.0
        model[at.ROW_AXES : at.ROW_AXES + 9] = (base[:3, :3].T @ last_relation.world_axes).ravel()


def _chain_between(tree: KinematicTree, relation: Relation) -> tuple[list[Array], list[JointMotion]]:
    """Return the fixed transforms and the motions from A to B; no motions if there is a spherical joint."""
    up, down = tree.path(relation.a), tree.path(relation.b)
    shared_count = next((k for k, (node_a, node_b) in enumerate(zip(up, down, strict=False)) if node_a != node_b), None)
    shared_count = min(len(up), len(down)) if shared_count is None else shared_count
    fixed, motions = [np.eye(4)], list[JointMotion]()
    if any(tree.nodes[node, NODE_KIND] == SPHERICAL for node in (*up[shared_count:], *down[shared_count:])):
        return fixed, motions
    X_a, X_b = tree.frames[relation.a][1], tree.frames[relation.b][1]
    fixed[-1] = inverse(X_a)
    for node in reversed(up[shared_count:]):
        row = tree.nodes[node]
        for X, motion in reversed(_joint_motions(row)):
            motions.append(JointMotion(motion.is_rotation, motion.q, -motion.ratio, -motion.offset))
            fixed.append(inverse(X))
    for node in down[shared_count:]:
        for X, motion in _joint_motions(tree.nodes[node]):
            fixed[-1] = fixed[-1] @ X
            motions.append(motion)
            fixed.append(np.eye(4))
    fixed[-1] = fixed[-1] @ X_b @ relation.X_b
    return fixed, motions


def _joint_motions(row: Array) -> list[tuple[Array, JointMotion]]:
    """Return a node as motions about or along z, each with the fixed transform before it."""
    X, q, kind = make_pose(row[:9].reshape(3, 3), row[9:12]), int(row[FIRST_Q]), int(row[NODE_KIND])
    if kind in (REVOLUTE, PRISMATIC):
        return [(X, JointMotion(kind == REVOLUTE, q, float(row[NODE_RATIO]), float(row[NODE_OFFSET])))]
    assert kind == TRANSLATION
    # three translations, each with its axis rotated onto z; the last one is along z already
    return [
        (X @ Z_TO_AXIS[0], JointMotion(False, q, 1.0, 0.0)),
        (Z_TO_AXIS[0].T @ Z_TO_AXIS[1], JointMotion(False, q + 1, 1.0, 0.0)),
        (Z_TO_AXIS[1].T, JointMotion(False, q + 2, 1.0, 0.0)),
    ]
