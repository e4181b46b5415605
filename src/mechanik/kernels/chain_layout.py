"""Layout of the chain kernels' arrays: names for the offsets in a chain's model, its seed table and a workspace.

A chain is T = base . prod_j [ Rz(offset + q) Tz(slide q) Trans(t) Rx(alpha) ] . tool, in the form of
`problem/serial_chain.py`. Lengths are multiplied by LENGTH_SCALE throughout, so that their weight against angles is
right.
"""

from __future__ import annotations

# the model: a head, then the joints (nodes), then the columns
(N_NODES, N_COLUMNS, N_Q, LENGTH_SCALE, POSITION_WEIGHT, ROTATION_WEIGHT, IS_PARTIAL, ROTATION_KIND,
 POSITION_TOLERANCE2, ROTATION_TOLERANCE2, REACH, START_DAMPING, MAX_ITERATIONS, MAX_ATTEMPTS, ITERATION_BUDGET,
 FACTORS_FIRST_JOINT, FACTORS_LAST_JOINT, IS_RANKED, ENTRIES, COS_RANGE_MIDDLE, SIN_RANGE_MIDDLE, COS_HALF_RANGE,
 AZIMUTH_PENALTY, SEED_CHOICES, HAS_OWN_AXES, MODEL_SIZE, TABLE_SIZE) = range(27)  # fmt: skip
"""POSITION_WEIGHT, ROTATION_WEIGHT: of the residuals of position and of rotation; 0 if they do not count.
IS_PARTIAL: whether only single residuals count. They have ROW_WEIGHTS and are taken along axes of the target, which
POSITION_FRAME rotates for positions and ROTATION_FRAME for rotations. With HAS_OWN_AXES they are along ROW_AXES.
ROTATION_KIND: the residual of rotation is a rotation vector, an axis, or a cosine.
POSITION_TOLERANCE2, ROTATION_TOLERANCE2: squared tolerances, in weighted units.
REACH: largest distance of the tip from the first joint, scaled; infinite if its position does not count.
ITERATION_BUDGET: iterations after which no further attempt begins.
FACTORS_FIRST_JOINT, FACTORS_LAST_JOINT: whether the seed table leaves out the first and the last joint, which follow
from the target.
IS_RANKED: whether the entries of the table can be ranked by their distance to the target.
ENTRIES: number of entries of the seed table.
COS_RANGE_MIDDLE, SIN_RANGE_MIDDLE, COS_HALF_RANGE: of the middle and of half the range of the first joint.
AZIMUTH_PENALTY: added to the distance of an entry whose azimuth is out of that range; 0 if it cannot be.
SEED_CHOICES: attempts from the table before the solution nearest to the seed is chosen.
MODEL_SIZE, TABLE_SIZE: 64-bit floats of the model and of the table in a workspace that holds both."""
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
"""Offsets in the head of the model. TOOL_AXIS: the axis of an axis or cosine residual, in the last joint's frame."""
MODEL_HEAD = 84
(JOINT_OFFSET, COS_ALPHA, SIN_ALPHA, LINK_TRANSLATION, SLIDE_SCALE, JOINT_RATIO, JOINT_COLUMN, IS_FIRST_OF_COLUMN,
 COS_OFFSET, SIN_OFFSET) = (0, 1, 2, 3, 6, 7, 8, 9, 10, 11)  # fmt: skip
"""Offsets in a joint (node). LINK_TRANSLATION: three numbers. SLIDE_SCALE: 0 for a revolute joint, else LENGTH_SCALE.
IS_FIRST_OF_COLUMN: whether no joint before has the same column."""
JOINT_FLOATS = 12
X_MIN, X_MAX, SAMPLE_MIN, SAMPLE_MAX, Q_INDEX, IS_LOCKED, IS_CONTINUOUS, Q_UNIT, Q_MIN, Q_MAX = range(10)
"""Offsets in a column. SAMPLE_MIN, SAMPLE_MAX: range of the starts. Q_INDEX: index in q. IS_LOCKED: it stays as in q0.
IS_CONTINUOUS: whether full turns make no difference. Q_UNIT: divisor of a number of q; lengths in the kernels are in
sizes of the mechanism. Q_MIN, Q_MAX: limits of the number of q."""
COLUMN_FLOATS = 10

# the workspace: slots of all lanes, slot by slot; then the slots of the columns; then the search of each lane
(TARGET_ROTATION, TARGET_POSITION, RESIDUAL, COST, POSITION_ERROR, ROTATION_ERROR, MU, ITERATION, NEXT_CHECK,
 REFERENCE_COST, IS_FINISHED, POSITION_AXES, ROTATION_AXES, POSITION_ROW_MAP, ROTATION_ROW_MAP) = (
    0, 9, 12, 18, 19, 20, 21, 22, 23, 24, 25, 26, 35, 44, 53)  # fmt: skip
LANE_HEAD = 62
SCREW, JACOBIAN, ACCEPTED, TRIAL, IS_FREE = 0, 6, 12, 13, 14
COLUMN_SLOTS = 15
(TARGET_INDEX, ATTEMPT, ITERATIONS, SOLUTION_COUNT, BEST_COST, BEST_POSITION_ERROR, BEST_ROTATION_ERROR,
 NEAREST_DISTANCE, RANDOM_KEY, START_WAS_CLAMPED, START_COUNT, FOLLOW_UP_COUNT) = range(12)  # fmt: skip
FEATURES, BLOCK_DISTANCE, BLOCK_ENTRY = 12, 23, 39
SEARCH_HEAD = 55
"""Numbers of a lane's search; behind them the best x so far, (columns,)."""
TABLE_BLOCKS = 16
"""The table is ranked in this many blocks; the nearest entry of each block is a start."""

# the seed table, 32 bits: features of all entries in groups of eight, then the entries themselves
FEATURE_ROWS = 9
"""Numbers compared of an entry: |f|^2, six features f, cosine and sine of the azimuth."""
ENTRY_TAIL = 4
"""Numbers behind the joint values of an entry: the x axis of the last joint, and the azimuth (rad)."""

# modes of a search
FROM_TABLE, FROM_SEED, SINGLE_ATTEMPT = 0, 1, 2
# a report: result, attempts, iterations, errors in m and rad, whether the start was clamped
SOLVED, NOT_SOLVED, BAD_INPUT = 0.0, 1.0, 2.0
REPORT_FLOATS = 6


def workspace_size(columns: int, lanes: int) -> int:
    """Number of 64-bit floats of a workspace: slots, searches, a target and a report."""
    return (LANE_HEAD + COLUMN_SLOTS * columns + SEARCH_HEAD + columns) * lanes + 12 + REPORT_FLOATS


def table_size(columns: int, entries: int) -> int:
    """Number of 32-bit floats of a seed table."""
    return (FEATURE_ROWS + columns + ENTRY_TAIL) * entries
