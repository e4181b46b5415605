"""Layout of the chain kernels' arrays: a chain's model, its seed table and a workspace, declared as records.

The kernels solve one target or eight in lanes. They access the records by offsets, which have the names of the fields
in capitals (`COST`): slots of lanes are not contiguous.

The pose of the tip of a chain is base . prod_j [ Rz(offset_j) M_j Trans(t_j) Rx(alpha_j) ] . tool, as in
`problem/serial_chain.py`, where M_j is the motion of joint j about or along z. The poses of the base and of targets are
relative to the world, or to the reference link of the goal. The kernels multiply lengths by `length_scale` (weight
/ length unit of the mechanism) and call them scaled. A column of a chain is a joint value x = q / `q_unit`.
"""

from __future__ import annotations

from .tables import Field, Record, flag, integer, number, numbers

TABLE_BLOCKS = 16
"""Number of blocks of the table: entry i is in block i modulo TABLE_BLOCKS. One entry of each block is a start: the
nearest to the target, or the first if the table is not ranked.

More blocks give more starts from the table before random starts are used, and take longer to order."""
ROTATION_VECTOR, AXIS, COSINE = 0.0, 1.0, 2.0
"""Values of `ChainHeader.rotation_kind`."""


class ChainHeader(Record):
    """The first numbers of a chain's model; the joints and then the columns follow.

    Attributes:
        n_joints, n_columns, n_q: numbers of joints and of columns, and length of q.
        position_weight: 1, or 0 if the position has no effect; the weight of the position is part of `length_scale`.
        rotation_weight: weight of the residual of rotation; 0 if the rotation has no effect.
        is_partial: whether only some rows of the position or of the rotation count, or the rotation is an axis or a
            cosine. Then the residuals have `row_weights` and are along the axes of the target, rotated by
            `position_frame` for positions and by `rotation_frame` for rotations; with `has_row_axes` they are along
            `row_axes`, the columns of a matrix in the frame of the base.
        rotation_kind: whether the residual of rotation is a rotation vector, an axis or a cosine.
        position_tolerance2, rotation_tolerance2: squared tolerances, in weighted units.
        reach: upper bound of the distance from the base to a target within reach, scaled; infinite if none is known or
            used.
        start_damping: first damping ratio of an attempt.
        max_iterations: largest number of evaluations of an attempt.
        max_attempts: largest number of attempts for a target.
        iteration_budget: number of iterations for a target after which no further attempt begins; twice as many if the
            best attempt ended near the target.
        factors_first_joint, factors_last_joint: whether the seed table leaves the first and the last joint at zero; a
            start then has values of these joints that are computed from the target.
        is_ranked: whether the entries of the table can be ranked by their distance to the target.
        entries: number of entries of the seed table.
        cos_range_middle, sin_range_middle, cos_half_range: cosine and sine of the middle of the range of the first
            joint, and cosine of half the range.
        azimuth_penalty: factor of the penalty on the distance of an entry whose first joint would be outside its range;
            0 if the range is not limited.
        seed_choices: least number of starts that follow a failed attempt from the seed; then the solution nearest to
            the seed is chosen.
        model_size, table_size: numbers of 64-bit floats of the model and of the table in an array that contains both.
        base_position: m.
        tool_axis: the axis of an axis or cosine residual, in the frame of the last link, which is the tip without the
            rotation of the tool.
    """

    n_joints = integer()
    n_columns = integer()
    n_q = integer()
    length_scale = number()
    position_weight = number()
    rotation_weight = number()
    is_partial = flag()
    rotation_kind = number()
    position_tolerance2 = number()
    rotation_tolerance2 = number()
    reach = number()
    start_damping = number()
    max_iterations = number()
    max_attempts = number()
    iteration_budget = number()
    factors_first_joint = flag()
    factors_last_joint = flag()
    is_ranked = flag()
    entries = integer()
    cos_range_middle = number()
    sin_range_middle = number()
    cos_half_range = number()
    azimuth_penalty = number()
    seed_choices = integer()
    has_row_axes = flag()
    model_size = integer()
    table_size = integer()
    row_weights = numbers(6)
    row_axes = numbers(9)
    base_rotation = numbers(9)
    base_position = numbers(3)
    tool_rotation = numbers(9)
    position_frame = numbers(9)
    rotation_frame = numbers(9)
    tool_axis = numbers(3)


class ChainMotion(Record):
    """A joint of a chain's model.

    Attributes:
        joint_offset: rad.
        link_translation: scaled.
        slide_scale: 0 for a revolute joint, else `length_scale`.
        joint_ratio: motion of the joint (rad or m) per unit of its column.
        joint_column: its column.
        is_first_of_column: whether this is the first joint with its column (mimic joints share the column of their
            leader).
    """

    joint_offset = number()
    cos_alpha = number()
    sin_alpha = number()
    link_translation = numbers(3)
    slide_scale = number()
    joint_ratio = number()
    joint_column = integer()
    is_first_of_column = flag()
    cos_offset = number()
    sin_offset = number()


class ChainColumn(Record):
    """A column of a chain's model.

    Attributes:
        x_min, x_max: limits of x = q / `q_unit`; an empty range for a locked joint.
        sample_min, sample_max: range of x in starts.
        q_index: index in q.
        is_locked: whether the value of q0 is kept.
        is_continuous: whether full turns do not change the pose.
        q_unit: 1 rad, or one length unit of the mechanism (m).
        q_min, q_max: limits in q, rad or m.
    """

    x_min = number()
    x_max = number()
    sample_min = number()
    sample_max = number()
    q_index = integer()
    is_locked = flag()
    is_continuous = flag()
    q_unit = number()
    q_min = number()
    q_max = number()


class LaneSlots(Record):
    """Slots of a lane in a workspace, each with one number for every lane; the slots of the columns follow.

    Attributes:
        residual, cost, position_error, rotation_error: at the accepted x; the errors are squared. The last iteration of
            a single lane does not write the residual and the Jacobian.
        damping_ratio: damping divided by the cost.
        next_check: iteration of the next progress check.
        reference_cost: cost at the last check.
        position_axes, rotation_axes: axes of partial residuals.
        position_row_map, rotation_row_map: see `chain_iteration.partial_residual`.
    """

    target_rotation = numbers(9)
    target_position = numbers(3)
    residual = numbers(6)
    cost = number()
    position_error = number()
    rotation_error = number()
    damping_ratio = number()
    iteration = number()
    next_check = number()
    reference_cost = number()
    is_finished = flag()
    position_axes = numbers(9)
    rotation_axes = numbers(9)
    position_row_map = numbers(9)
    rotation_row_map = numbers(9)


class ColumnSlots(Record):
    """Slots of a column in a workspace.

    Attributes:
        screw: moment and axis (`chain_iteration.chain_forward_kinematics`).
        jacobian: derivatives of minus the six residuals.
        accepted, trial: x.
        is_free: whether the column takes part in the step; not at an active limit or if it is locked.
    """

    screw = numbers(6)
    jacobian = numbers(6)
    accepted = number()
    trial = number()
    is_free = flag()


class LaneSearch(Record):
    """The search of a lane in a workspace; the best x so far, (columns,), follows it.

    Attributes:
        target_index: index of the target; -1 before the first target, -2 if there is no further target.
        attempt, iterations: numbers of attempts and of iterations for the target.
        solution_count: number of solved attempts.
        best_cost, best_position_error, best_rotation_error: of the best attempt so far; the errors are squared and
            weighted.
        nearest_distance: squared distance of the best solution from the seed (rad and m).
        start_count: number of starts, without follow-up attempts.
        follow_up_count: number of follow-up attempts since the last start.
        features: of the target.
        block_distance, block_entry: for each block of the table, the distance and the index of the entry nearest to the
            target.
    """

    target_index = integer()
    attempt = integer()
    iterations = integer()
    solution_count = integer()
    best_cost = number()
    best_position_error = number()
    best_rotation_error = number()
    nearest_distance = number()
    random_key = number()
    start_was_clamped = flag()
    start_count = integer()
    follow_up_count = integer()
    features = numbers(11)
    block_distance = numbers(TABLE_BLOCKS)
    block_entry = numbers(TABLE_BLOCKS)


class ChainReport(Record):
    """Result for a target: SOLVED, NOT_SOLVED or BAD_INPUT; numbers of attempts and iterations; errors (m; rad, or a
    cosine); whether the seed was clamped."""

    result = number()
    attempts = integer()
    iterations = integer()
    position_error = number()
    rotation_error = number()
    start_was_clamped = flag()


for _record in (ChainHeader, ChainMotion, ChainColumn, LaneSlots, ColumnSlots, LaneSearch):
    globals().update({name.upper(): field.offset for name, field in vars(_record).items() if isinstance(field, Field)})
MODEL_HEAD, JOINT_FLOATS, COLUMN_FLOATS = ChainHeader.size, ChainMotion.size, ChainColumn.size
LANE_HEAD, COLUMN_SLOTS, SEARCH_HEAD, REPORT_FLOATS = (
    LaneSlots.size,
    ColumnSlots.size,
    LaneSearch.size,
    ChainReport.size,
)
# the seed table, 32 bits: features of all entries in groups of eight, then the entries themselves
FEATURE_ROWS = 9
"""Number of floats by which an entry is ranked: |f|^2, its first six features f, cosine and sine of the azimuth."""
ENTRY_TAIL = 4
"""Number of floats that follow the joint values of an entry: the x axis of the last joint, and the azimuth (rad)."""

MAX_JOINTS = 40
"""Largest number of joints of a chain, a multiple of eight. With more joints each attempt is slow, and the general
kernel makes larger steps."""
JOINT_ANGLES, JOINT_SINES, JOINT_COSINES = 0, MAX_JOINTS, 2 * MAX_JOINTS
"""Offsets of arrays in the last TRIGONOMETRY_FLOATS of a workspace with a single lane, which it has before its report:
the angle of each joint (rad), its sine and its cosine."""
TRIGONOMETRY_FLOATS = 3 * MAX_JOINTS

# modes of a search: starts from the table, then random starts; the same after an attempt from the seed; a single
# attempt, from the seed
FROM_TABLE, FROM_SEED, SINGLE_ATTEMPT = 0, 1, 2
SOLVED, NOT_SOLVED, BAD_INPUT = 0.0, 1.0, 2.0
"""Values of `ChainReport.result`."""


def workspace_size(column_count: int, lane_count: int) -> int:
    """Return the number of 64-bit floats of a workspace: slots, searches, a target, trigonometry and a report."""
    per_lane = LANE_HEAD + COLUMN_SLOTS * column_count + SEARCH_HEAD + column_count
    return per_lane * lane_count + 12 + (TRIGONOMETRY_FLOATS if lane_count == 1 else 0) + REPORT_FLOATS


def table_size(column_count: int, entry_count: int) -> int:
    """Return the number of 32-bit floats of a seed table."""
    return (FEATURE_ROWS + column_count + ENTRY_TAIL) * entry_count
