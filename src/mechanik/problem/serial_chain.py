"""Serial chains with one pose-like goal: detection in a mechanism, and canonical form for the chain kernels.

T = base . prod_j [ Rz(offset_j) M_j Trans(t_j) Rx(alpha_j) ] . tool

Every chain of revolute and prismatic joints has this form, in which each joint axis is z: the motion M_j of joint j is
a rotation about z or a translation along z. The fixed transform between two axes is a translation and a rotation
Rz(a) Rx(alpha) Rz(b). Its outer rotations are added to the offsets of the adjacent joints. The pose of the base and the
rotation of the tool are removed from the target; the translation of the tool becomes t of the last joint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.kernels import chain_layout as layout
from mechanik.kernels.chain_layout import ChainColumn, ChainHeader, ChainMotion
from mechanik.kernels.nodes import (
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    Node,
)
from mechanik.kernels.tables import RecordArray
from mechanik.model.kinematics import Z_TO_AXIS, fixed_pose
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem.kinematic_tree import KinematicTree
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array

SEED_TABLE_SIZE = 512
"""Number of entries of the seed table. Twice as many entries save 7 % of the iterations, but the longer search in the
table costs as much time as they save."""
START_DAMPING, MAX_ITERATIONS, MAX_ATTEMPTS = 0.04, 40, 501
"""Start damping; largest number of iterations of an attempt; largest number of attempts."""
SEED_CHOICES = 2
"""Minimum number of attempts from the seed table after the attempt from the caller's seed has failed. Of their
solutions, the one nearest to the caller's seed is chosen."""
KERNEL_TOLERANCE_FACTOR = 1 - 1e-6
"""Ratio of the tolerances inside the chain kernel to those of the goal. It is below 1 because of rounding errors
outside of the kernel."""
AZIMUTH_PENALTY = 4.0
"""Weight of the penalty for seeds at an azimuth outside of the first joint's range. Tuned on a Panda."""
POSE_ROWS, POSITION_ROWS, ROTATION_ROWS = (0, 1, 2, 3, 4, 5), (0, 1, 2), (3, 4, 5)


@dataclass(frozen=True, slots=True)
class JointMotion:
    """Motion of a joint about or along z by ratio * value + offset, where value is an entry of the configuration.

    Attributes:
        is_rotation: whether the joint rotates about z; otherwise it translates along z.
        q_index: index of the value in the configuration.
        ratio, offset: those of a mimic joint (offset in m or rad), or 1 and 0; both are negated if the chain passes the
            joint from child to parent.
    """

    is_rotation: bool
    q_index: int
    ratio: float
    offset: float


@dataclass(frozen=True, slots=True)
class ChainWeights:
    """Tolerances and weights of a chain's goal.

    Attributes:
        tolerance, angle_tolerance: m, rad.
        length_unit: m; lengths are divided by it.
        position, rotation: weights of lengths and of angles.
        goal: weight of the whole goal.
    """

    tolerance: float
    angle_tolerance: float
    length_unit: float
    position: float = 1.0
    rotation: float = 1.0
    goal: float = 1.0


def chain_model(
    fixed_transforms: list[Array],
    motions: list[JointMotion],
    columns: list[int],
    locked_columns: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
    nq: int,
    rows_to_solve: tuple[int, ...],
    weights: ChainWeights,
) -> Array:
    """Return the flat model of a chain for the kernels, in the layout of `kernels/chain_layout.py`.

    Args:
        fixed_transforms: fixed transforms (4, 4) before, between and after the motions; one more than motions.
        motions: joint motions from the base to the tool.
        columns: index in q of each column.
        locked_columns: (n,), mask of the columns that may not move.
        limits: lower and upper limit of each column, (n,), m and rad.
        nq: size of q.
        rows_to_solve: constrained rows: 0-2 of the position, 3-5 of the rotation.
        weights: tolerances and weights of the goal.
    """
    motion_count, column_count = len(motions), len(columns)
    scale = weights.position / weights.length_unit
    first_column = ChainHeader.size + ChainMotion.size * motion_count
    model = np.zeros(first_column + ChainColumn.size * column_count)
    header = ChainHeader(model)
    joint_table = RecordArray(ChainMotion, model[ChainHeader.size : first_column])
    column_table = RecordArray(ChainColumn, model[first_column:])
    units = _units(motions, columns, weights.length_unit)
    _fill_joints(joint_table, fixed_transforms, motions, columns, units, scale)
    _fill_columns(column_table, motions, columns, units, locked_columns, limits)
    rows = set(rows_to_solve)
    has_position, has_rotation = bool(rows & set(POSITION_ROWS)), bool(rows & set(ROTATION_ROWS))
    is_partial = rows_to_solve not in (POSE_ROWS, POSITION_ROWS, ROTATION_ROWS)
    header.n_joints, header.n_columns, header.n_q, header.length_scale = motion_count, column_count, nq, scale
    header.position_weight, header.rotation_weight = has_position, weights.rotation * has_rotation
    header.is_partial = is_partial
    header.position_tolerance2 = (weights.tolerance * scale * KERNEL_TOLERANCE_FACTOR) ** 2 if has_position else np.inf
    header.rotation_tolerance2 = (
        (weights.angle_tolerance * weights.rotation * KERNEL_TOLERANCE_FACTOR) ** 2 if has_rotation else np.inf
    )
    header.start_damping, header.max_iterations, header.max_attempts = (
        START_DAMPING,
        MAX_ITERATIONS,
        MAX_ATTEMPTS,
    )
    header.iteration_budget, header.seed_choices, header.entries = (
        np.inf,
        SEED_CHOICES,
        SEED_TABLE_SIZE,
    )
    has_full_position = set(POSITION_ROWS) <= rows
    header.is_ranked = has_full_position
    header.reach = _reach(joint_table, column_table) + scale * weights.tolerance if has_full_position else np.inf
    has_own_dof = [
        sum(other_motion.q_index == motion.q_index for other_motion in motions) == 1 and motion.ratio == 1.0
        for motion in motions
    ]
    is_free_rotation = [
        motion.is_rotation and owns_dof and not locked_columns[columns.index(motion.q_index)]
        for motion, owns_dof in zip(motions, has_own_dof, strict=True)
    ]
    header.factors_first_joint = is_free_rotation[0] and has_full_position and column_count > 1
    header.factors_last_joint = is_free_rotation[-1] and rows_to_solve == POSE_ROWS and column_count > 1
    _write_first_joint_range(header, *(float(limit[joint_table[0].joint_column]) for limit in limits))
    header.model_size, header.table_size = (
        len(model),
        -(-layout.table_size(column_count, SEED_TABLE_SIZE) // 2),
    )
    header.row_weights[:] = np.isin(np.arange(6), rows_to_solve)
    return model


def _write_first_joint_range(header: ChainHeader, lower: float, upper: float) -> None:
    """Write the range of the first joint; seeds at an azimuth that the joint cannot reach get a penalty."""
    if upper - lower < 2 * math.pi and header.factors_first_joint:
        range_middle, half_range = 0.5 * (lower + upper), 0.5 * (upper - lower)
        header.cos_range_middle, header.sin_range_middle, header.cos_half_range = (
            math.cos(range_middle),
            math.sin(range_middle),
            math.cos(half_range),
        )
        header.azimuth_penalty = AZIMUTH_PENALTY * (math.pi - half_range) ** 2 / (1.0 + math.cos(half_range))


def _units(motions: list[JointMotion], columns: list[int], length_unit: float) -> list[float]:
    """Return the unit of each column: 1 rad, or `length_unit` (m) for a prismatic joint."""
    return [
        1.0 if any(motion.is_rotation for motion in motions if motion.q_index == k) else length_unit for k in columns
    ]


def _fill_joints(
    joint_table: RecordArray[ChainMotion],
    fixed_transforms: list[Array],
    motions: list[JointMotion],
    columns: list[int],
    units: list[float],
    scale: float,
) -> None:
    offset = np.zeros(len(motions) + 1)
    known_q = set[int]()
    for j, motion in enumerate(motions):
        joint, X = joint_table[j], fixed_transforms[j + 1]
        if j + 1 < len(motions):
            a, alpha, b = _zxz_angles(X[:3, :3])
        else:
            a, alpha, b = 0.0, 0.0, 0.0  # the tool's rotation is removed from the target
        offset[j] += a
        offset[j + 1] += b
        joint.cos_alpha, joint.sin_alpha = math.cos(alpha), math.sin(alpha)
        joint.link_translation[:] = scale * (rotation.about_z(-a) @ X[:3, 3])
        column = columns.index(motion.q_index)
        joint.joint_ratio, joint.joint_column = motion.ratio * units[column], column
        joint.is_first_of_column = motion.q_index not in known_q
        known_q.add(motion.q_index)
        if motion.is_rotation:
            offset[j] += motion.offset
        else:
            joint.slide_scale = scale
            joint.link_translation[2] += scale * motion.offset
    joint_table.column(ChainMotion.joint_offset)[:] = (offset[:-1] + np.pi) % (2 * np.pi) - np.pi
    joint_table.column(ChainMotion.cos_offset)[:] = np.cos(offset[:-1])
    joint_table.column(ChainMotion.sin_offset)[:] = np.sin(offset[:-1])


def _fill_columns(
    column_table: RecordArray[ChainColumn],
    motions: list[JointMotion],
    columns: list[int],
    units: list[float],
    locked_columns: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
) -> None:
    for j, k in enumerate(columns):
        column_motions = [motion for motion in motions if motion.q_index == k]
        lower, upper = limits[0][j], limits[1][j]
        half_range = math.pi if any(motion.is_rotation for motion in column_motions) else 1.0
        sample_min = lower if np.isfinite(lower) else upper - 2 * half_range if np.isfinite(upper) else -half_range
        sample_max = upper if np.isfinite(upper) else lower + 2 * half_range if np.isfinite(lower) else half_range
        column = column_table[j]
        column.sample_min, column.sample_max = sample_min / units[j], sample_max / units[j]
        column.q_index, column.is_locked, column.q_unit = k, bool(locked_columns[j]), units[j]
        column.q_min, column.q_max = lower, upper
        # an empty range marks a locked joint
        column.x_min, column.x_max = (np.inf, -np.inf) if locked_columns[j] else (lower / units[j], upper / units[j])
        column.is_continuous = all(motion.is_rotation and abs(motion.ratio) == 1.0 for motion in column_motions)


def _zxz_angles(R: Array) -> tuple[float, float, float]:
    """Return (a, alpha, b) of R = Rz(a) Rx(alpha) Rz(b), accurate to rounding also for nearly parallel axes."""
    sine = math.hypot(R[0, 2], R[1, 2])
    a = math.atan2(R[0, 2], -R[1, 2]) if sine > 0.0 else 0.0
    alpha = math.atan2(sine, R[2, 2])
    R_remainder = rotation.about_x(-alpha) @ rotation.about_z(-a) @ R
    return a, alpha, math.atan2(R_remainder[1, 0], R_remainder[0, 0])


def _reach(joint_table: RecordArray[ChainMotion], column_table: RecordArray[ChainColumn]) -> float:
    """Return an upper bound of the distance of the tip from the first joint, scaled as the lengths of the kernel.

    It is infinite if a prismatic joint is locked or has no limits.
    """
    distance = 0.0
    for joint in joint_table:
        x, y, z = joint.link_translation
        axial_length, column = abs(z), column_table[joint.joint_column]
        if joint.slide_scale != 0.0:
            if column.is_locked:
                return math.inf
            axial_length += abs(joint.slide_scale * joint.joint_ratio) * max(abs(column.x_min), abs(column.x_max))
        distance += math.hypot(x, y, axial_length)
    return distance


MIN_TOLERANCE = 1e-11
"""Smallest tolerance for the chain kernel, as a ratio to the length unit, and in rad. Smaller tolerances need the
general kernel."""
TARGET_MATCH_TOLERANCE = 1e-13
"""Largest difference of matrix entries that counts as a rounding error."""
ROTATION_KINDS = {
    RelationKind.POSE: layout.ROTATION_VECTOR,
    RelationKind.AXIS: layout.AXIS,
    RelationKind.COSINE: layout.COSINE,
}


@dataclass(frozen=True, slots=True, eq=False)
class SerialChain:
    """Serial chain between two links, or between the world and a link, with one pose-like goal.

    Attributes:
        model: flat model, in the layout of `kernels/chain_layout.py`.
        columns: (n,), indices in q.
        locked_columns: (n,), mask of the columns that may not move.
        lower, upper: (n,), limits, m and rad.
        relations: the goal: one relation, or a position and a rotation relation between the same links.
        target_rotations: for each relation its X_a relative to the target, (4, 4), a pure rotation.
        weight: weight of the goal; it scales the cost and does not change the solution.
    """

    model: Array
    columns: np.ndarray[tuple[int], np.dtype[np.int64]]
    locked_columns: np.ndarray[tuple[int], np.dtype[np.bool_]]
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
        """Return the target (4, 4) of `relations`; None if more than the target differs from the chain's relations."""
        if len(relations) != len(self.relations):
            return None
        # target_rotations of multiples of 90 degrees have exact entries, so for them this product has no rounding error
        X = relations[0].X_a @ self.target_rotations[0].T
        for relation, new_relation, target_rotation in zip(
            self.relations, relations, self.target_rotations, strict=True
        ):
            if (relation.kind, relation.rows, relation.a, relation.b, relation.weight) != (
                new_relation.kind, new_relation.rows, new_relation.a, new_relation.b, new_relation.weight
            ):  # fmt: skip
                return None
            axes, new_axes = relation.world_axes, new_relation.world_axes
            has_same_axes = axes is new_axes is None or np.array_equal(axes, new_axes)  # type: ignore[arg-type]
            if not has_same_axes or not _is_same(relation.X_b, new_relation.X_b):
                return None
            if not _is_same(X @ target_rotation, new_relation.X_a):
                return None
        return X


def _is_same(A: Array, B: Array) -> bool:
    """Return whether two poses (4, 4) differ by rounding errors at most."""
    return bool(np.abs(A - B).max() <= TARGET_MATCH_TOLERANCE)


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
        target: X_a_target (4, 4) as the user gave it; default: X_a of the first relation.
    """
    rows = _constrained_rows(relations)
    if rows is None or not (
        weights.tolerance / weights.length_unit > MIN_TOLERANCE and weights.angle_tolerance > MIN_TOLERANCE
    ):
        return None
    X = relations[0].X_a if target is None else target
    X_target_frames = [inverse(X) @ relation.X_a for relation in relations]
    if any(
        np.abs(transform[:3, 3]).max() > TARGET_MATCH_TOLERANCE * weights.length_unit for transform in X_target_frames
    ):
        return None
    target_rotations = tuple(
        make_pose(
            np.where(abs(transform - transform.round()) < TARGET_MATCH_TOLERANCE, transform.round(), transform)[:3, :3],
            np.zeros(3),
        )
        for transform in X_target_frames
    )
    fixed_transforms, motions = _chain_between(tree, relations[0])
    if (
        not motions
        or len(motions) > layout.MAX_JOINTS
        or any(not np.isfinite(transform).all() for transform in fixed_transforms)
    ):
        return None
    columns = list(dict.fromkeys(motion.q_index for motion in motions))
    locked_columns = np.array([not active[tree.v_of_x[k]] for k in columns])
    if locked_columns.all():
        return None
    lower, upper = bounds[0][columns], bounds[1][columns]
    model = chain_model(fixed_transforms, motions, columns, locked_columns, (lower, upper), tree.nq, rows, weights)
    _write_goal(model, fixed_transforms, relations, target_rotations)
    return SerialChain(
        model,
        np.array(columns, dtype=np.int64),
        locked_columns,
        lower,
        upper,
        tuple(relations),
        target_rotations,
        weights.goal * relations[0].weight,
    )


def _constrained_rows(relations: Sequence[Relation]) -> tuple[int, ...] | None:
    """Return the constrained rows of one relation, or of a position and a rotation relation; None for other goals."""
    first_relation = relations[0]
    for relation in relations:
        if relation.kind not in ROTATION_KINDS or relation.lower is not None or not relation.rows or relation.b is None:
            return None
        if (relation.a, relation.b) != (first_relation.a, first_relation.b) or relation.weight != first_relation.weight:
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
    model: Array, fixed_transforms: list[Array], relations: Sequence[Relation], target_rotations: Sequence[Array]
) -> None:
    """Write the pose of the base and the rotation of the tool, and the kind and the axes of the rows."""
    last_relation, X_base = relations[-1], fixed_transforms[0]
    R_tool = fixed_transforms[-1][:3, :3] @ inverse(relations[0].X_b)[:3, :3] @ last_relation.X_b[:3, :3]
    header = ChainHeader(model)
    header.base_rotation[:], header.base_position[:] = X_base[:3, :3].ravel(), X_base[:3, 3]
    header.tool_rotation[:] = (R_tool @ target_rotations[-1][:3, :3].T).ravel()
    header.tool_axis[:] = R_tool[:, 2]
    header.position_frame[:] = target_rotations[0][:3, :3].ravel()
    header.rotation_frame[:] = target_rotations[-1][:3, :3].ravel()
    header.rotation_kind = ROTATION_KINDS[last_relation.kind]
    if last_relation.kind is not RelationKind.POSE:
        header.is_partial = True
    if last_relation.world_axes is not None:
        header.has_row_axes = True
        header.row_axes[:] = (X_base[:3, :3].T @ last_relation.world_axes).ravel()


def _chain_between(tree: KinematicTree, relation: Relation) -> tuple[list[Array], list[JointMotion]]:
    """Return the fixed transforms and joint motions from link A to frame B; no motions if a joint is spherical."""
    path_a, path_b = tree.path(relation.a), tree.path(relation.b)
    shared_count = next(
        (k for k, (node_a, node_b) in enumerate(zip(path_a, path_b, strict=False)) if node_a != node_b), None
    )
    shared_count = min(len(path_a), len(path_b)) if shared_count is None else shared_count
    fixed_transforms, motions = [np.eye(4)], list[JointMotion]()
    if any(tree.node(node).kind == SPHERICAL for node in (*path_a[shared_count:], *path_b[shared_count:])):
        return fixed_transforms, motions
    X_a, X_b = tree.frames[relation.a][1], tree.frames[relation.b][1]
    fixed_transforms[-1] = inverse(X_a)
    for node in reversed(path_a[shared_count:]):
        for X, motion in reversed(_joint_motions(tree.node(node))):
            motions.append(JointMotion(motion.is_rotation, motion.q_index, -motion.ratio, -motion.offset))
            fixed_transforms.append(inverse(X))
    for node in path_b[shared_count:]:
        for X, motion in _joint_motions(tree.node(node)):
            fixed_transforms[-1] = fixed_transforms[-1] @ X
            motions.append(motion)
            fixed_transforms.append(np.eye(4))
    fixed_transforms[-1] = fixed_transforms[-1] @ X_b @ relation.X_b
    return fixed_transforms, motions


def _joint_motions(node: Node) -> list[tuple[Array, JointMotion]]:
    """Return the motions of a node about or along z, each with the fixed transform before it."""
    X, q, kind = fixed_pose(node), node.first_q, node.kind
    if kind in (REVOLUTE, PRISMATIC):
        return [(X, JointMotion(kind == REVOLUTE, q, float(node.ratio), float(node.offset)))]
    assert kind == TRANSLATION
    # three translations, each with its axis rotated onto z; the third is along z already
    return [
        (X @ Z_TO_AXIS[0], JointMotion(False, q, 1.0, 0.0)),
        (Z_TO_AXIS[0].T @ Z_TO_AXIS[1], JointMotion(False, q + 1, 1.0, 0.0)),
        (Z_TO_AXIS[1].T, JointMotion(False, q + 2, 1.0, 0.0)),
    ]
