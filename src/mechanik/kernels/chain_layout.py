"""Layout of the chain kernels' arrays: names for the offsets in a chain's model, its seed table and a workspace.

The pose of the tip of a chain is base . prod_j [ Rz(offset_j) M_j Trans(t_j) Rx(alpha_j) ] . tool, as in
`problem/serial_chain.py`, where M_j is the motion of joint j about or along z. The poses of the base and of targets are
relative to the world, or to the reference link of the goal. The kernels multiply lengths by LENGTH_SCALE (weight /
length unit of the mechanism) and call them scaled. A column of a chain is a joint value x = q / Q_UNIT.
"""

from __future__ import annotations

# the model: a header, then the joints, then the columns
(N_JOINTS, N_COLUMNS, N_Q, LENGTH_SCALE, POSITION_WEIGHT, ROTATION_WEIGHT, IS_PARTIAL, ROTATION_KIND,
 POSITION_TOLERANCE2, ROTATION_TOLERANCE2, REACH, START_DAMPING, MAX_ITERATIONS, MAX_ATTEMPTS, ITERATION_BUDGET,
 FACTORS_FIRST_JOINT, FACTORS_LAST_JOINT, IS_RANKED, ENTRIES, COS_RANGE_MIDDLE, SIN_RANGE_MIDDLE, COS_HALF_RANGE,
 AZIMUTH_PENALTY, SEED_CHOICES, HAS_ROW_AXES, MODEL_SIZE, TABLE_SIZE) = range(27)  # fmt: skip
"""Entries of the header of the model.

N_JOINTS, N_COLUMNS, N_Q: numbers of joints and of columns, and length of q.
POSITION_WEIGHT: 1, or 0 if the position has no effect; the weight of the position is part of LENGTH_SCALE.
ROTATION_WEIGHT: weight of the residual of rotation; 0 if the rotation has no effect.
IS_PARTIAL: whether only some rows of the position or of the rotation count, or the rotation is an axis or a cosine.
Then the residuals have ROW_WEIGHTS and are along the axes of the target, rotated by POSITION_FRAME for positions and by
ROTATION_FRAME for rotations; with HAS_ROW_AXES they are along ROW_AXES, the columns of a matrix in the frame of the
base.
ROTATION_KIND: whether the residual of rotation is a rotation vector, an axis or a cosine.
POSITION_TOLERANCE2, ROTATION_TOLERANCE2: squared tolerances, in weighted units.
REACH: upper bound of the distance from the base to a target within reach, scaled; infinite if none is known or used.
START_DAMPING: first DAMPING_RATIO of an attempt. MAX_ITERATIONS: largest number of evaluations of an attempt.
ITERATION_BUDGET: number of iterations for a target after which no further attempt begins; twice as many if the best
attempt ended near the target.
FACTORS_FIRST_JOINT, FACTORS_LAST_JOINT: whether the seed table leaves the first and the last joint at zero; a start
then has values of these joints that are computed from the target.
IS_RANKED: whether the entries of the table can be ranked by their distance to the target.
ENTRIES: number of entries of the seed table.
COS_RANGE_MIDDLE, SIN_RANGE_MIDDLE, COS_HALF_RANGE: cosine and sine of the middle of the range of the first joint, and
cosine of half the range.
AZIMUTH_PENALTY: factor of the penalty on the distance of an entry whose first joint would be outside its range; 0 if
the range is not limited.
SEED_CHOICES: least number of starts that follow a failed attempt from the seed; then the solution nearest to the seed
is chosen.
MODEL_SIZE, TABLE_SIZE: numbers of 64-bit floats of the model and of the table in an array that contains both."""
ROTATION_VECTOR, AXIS, COSINE = 0.0, 1.0, 2.0
"""Values of ROTATION_KIND."""
ROW_WEIGHTS, ROW_AXES, BASE_ROTATION, BASE_POSITION, TOOL_ROTATION, POSITION_FRAME, ROTATION_FRAME, TOOL_AXIS = (
    27,
    33,
    42,
    51,
    54,
    63,
    72,
    81,
)
"""Offsets of arrays in the header of the model. BASE_POSITION: m. TOOL_AXIS: the axis of an axis or cosine residual, in
the frame of the last link, which is the tip without the rotation of the tool."""
MODEL_HEAD = 84
(JOINT_OFFSET, COS_ALPHA, SIN_ALPHA, LINK_TRANSLATION, SLIDE_SCALE, JOINT_RATIO, JOINT_COLUMN, IS_FIRST_OF_COLUMN,
 COS_OFFSET, SIN_OFFSET) = (0, 1, 2, 3, 6, 7, 8, 9, 10, 11)  # fmt: skip
"""Offsets in a joint. LINK_TRANSLATION: three numbers, scaled. SLIDE_SCALE: 0 for a revolute joint, else LENGTH_SCALE.
JOINT_OFFSET: rad. JOINT_RATIO: motion of the joint (rad or m) per unit of its column. JOINT_COLUMN: its column.
IS_FIRST_OF_COLUMN: whether this is the first joint with its column (mimic joints share the column of their leader)."""
JOINT_FLOATS = 12
X_MIN, X_MAX, SAMPLE_MIN, SAMPLE_MAX, Q_INDEX, IS_LOCKED, IS_CONTINUOUS, Q_UNIT, Q_MIN, Q_MAX = range(10)
"""Offsets in a column. X_MIN, X_MAX: limits of x = q / Q_UNIT; an empty range for a locked joint.
SAMPLE_MIN, SAMPLE_MAX: range of x in starts. Q_INDEX: index in q. IS_LOCKED: whether the value of q0 is kept.
IS_CONTINUOUS: whether full turns do not change the pose. Q_UNIT: 1 rad, or one length unit of the mechanism (m).
Q_MIN, Q_MAX: limits in q, rad or m."""
COLUMN_FLOATS = 10

# the workspace: slots, each with one number for every lane; then the slots of the columns; then the search of each lane
(TARGET_ROTATION, TARGET_POSITION, RESIDUAL, COST, POSITION_ERROR, ROTATION_ERROR, DAMPING_RATIO, ITERATION,
 NEXT_CHECK, REFERENCE_COST, IS_FINISHED, POSITION_AXES, ROTATION_AXES, POSITION_ROW_MAP, ROTATION_ROW_MAP) = (
    0, 9, 12, 18, 19, 20, 21, 22, 23, 24, 25, 26, 35, 44, 53)  # fmt: skip
"""Slots of a lane. RESIDUAL, COST, POSITION_ERROR, ROTATION_ERROR: at the accepted x; the errors are squared. The last
iteration of a single lane does not write RESIDUAL and JACOBIAN.
DAMPING_RATIO: damping divided by the cost. NEXT_CHECK: iteration of the next progress check. REFERENCE_COST: cost
at the last check. POSITION_AXES, ROTATION_AXES: axes of partial residuals. POSITION_ROW_MAP, ROTATION_ROW_MAP: see
`chain_iteration.partial_residual`."""
LANE_HEAD = 62
"""Number of slots of a lane before the slots of its columns."""
SCREW, JACOBIAN, ACCEPTED, TRIAL, IS_FREE = 0, 6, 12, 13, 14
"""Slots of a column. SCREW: moment and axis (`chain_iteration.chain_forward_kinematics`). JACOBIAN: derivatives of
minus the six residuals. ACCEPTED, TRIAL: x. IS_FREE: 1 if the column takes part in the step; 0 at an active limit or if
it is locked."""
COLUMN_SLOTS = 15
(TARGET_INDEX, ATTEMPT, ITERATIONS, SOLUTION_COUNT, BEST_COST, BEST_POSITION_ERROR, BEST_ROTATION_ERROR,
 NEAREST_DISTANCE, RANDOM_KEY, START_WAS_CLAMPED, START_COUNT, FOLLOW_UP_COUNT) = range(12)  # fmt: skip
"""Entries of a lane's search.

TARGET_INDEX: index of the target; -1 before the first target, -2 if there is no further target.
ATTEMPT, ITERATIONS: numbers of attempts and of iterations for the target. START_COUNT: number of starts, without
follow-up attempts. FOLLOW_UP_COUNT: number of follow-up attempts since the last start. SOLUTION_COUNT: number of solved
attempts.
BEST_COST, BEST_POSITION_ERROR, BEST_ROTATION_ERROR: of the best attempt so far; the errors are squared and weighted.
NEAREST_DISTANCE: squared distance of the best solution from the seed (rad and m)."""
FEATURES, BLOCK_DISTANCE, BLOCK_ENTRY = 12, 23, 39
"""Offsets of arrays in a lane's search: the 11 features of the target; for each block of the table, the distance and
the index of the entry nearest to the target."""
SEARCH_HEAD = 55
"""Number of floats of a lane's search; the best x so far, (columns,), follows them."""
TABLE_BLOCKS = 16
"""Number of blocks of the table: entry i is in block i modulo TABLE_BLOCKS. One entry of each block is a start: the
nearest to the target, or the first if the table is not ranked.

More blocks give more starts from the table before random starts are used, and take longer to order."""

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
# a report: result, number of attempts, number of iterations, position error (m), rotation error (rad, or a cosine),
# whether the seed was clamped
SOLVED, NOT_SOLVED, BAD_INPUT = 0.0, 1.0, 2.0
REPORT_FLOATS = 6


def workspace_size(column_count: int, lane_count: int) -> int:
    """Return the number of 64-bit floats of a workspace: slots, searches, a target, trigonometry and a report."""
    per_lane = LANE_HEAD + COLUMN_SLOTS * column_count + SEARCH_HEAD + column_count
    return per_lane * lane_count + 12 + (TRIGONOMETRY_FLOATS if lane_count == 1 else 0) + REPORT_FLOATS


def table_size(column_count: int, entry_count: int) -> int:
    """Return the number of 32-bit floats of a seed table."""
    return (FEATURE_ROWS + column_count + ENTRY_TAIL) * entry_count
