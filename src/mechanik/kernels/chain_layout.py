"""The map of the chain kernels: names for every place in a chain's model, its seed table and a workspace.

A chain is T = base . prod_j [ Rz(offset + q) Tz(slide q) Trans(t) Rx(alpha) ] . tool, in the form of
`program/canonical_form.py`. Lengths are multiplied by LENGTH_SCALE throughout, so that they weigh against angles as
they should.
"""

from __future__ import annotations

# the model: a head, then the nodes, then the columns
(N_NODES, N_COLUMNS, N_Q, LENGTH_SCALE, PLACE_WEIGHT, TURN_WEIGHT, IS_PARTIAL, TURN_KIND, METRES2, RADIANS2, REACH,
 FIRST_MU, MAX_ITERATIONS, MAX_ATTEMPTS, WORK, TURNS_FIRST, TURNS_LAST, HAS_RANKS, ENTRIES, COS_MIDDLE, SIN_MIDDLE,
 COS_HALF, PENALTY, CHOICES, OWN_AXES, MODEL_SIZE, TABLE_SIZE) = range(27)  # fmt: skip
"""
PLACE_WEIGHT, TURN_WEIGHT: of the rows of position and of rotation, 0 if not wanted.
IS_PARTIAL: whether single rows are asked for, which have ROW_WEIGHTS and are taken along axes of the target: those of
positions are turned by PLACE_TURN against it, those of rotations by ROTATION_TURN. With OWN_AXES, along AXES instead.
TURN_KIND: what the rows of rotation are: those of a rotation vector, or of an axis, or a cosine.
REACH: how far the end can be from the first joint; infinite if its place is not asked for.
WORK: iterations after which no further attempt is begun.
TURNS_FIRST, TURNS_LAST: whether the seed table leaves the first and the last joint out, since they follow.
HAS_RANKS: whether the table's entries can be told by their distance.
COS_MIDDLE, SIN_MIDDLE, COS_HALF: of the middle and of half the first joint's range; PENALTY: how much it counts when an
entry's azimuth is out of that range, 0 if it cannot be.
CHOICES: how many attempts from the table are made before one of them is chosen for a seed.
MODEL_SIZE, TABLE_SIZE: how many floats of 64 bits the model and the table take in a workspace that holds both.
"""
VECTOR, AXIS, COSINE = 0.0, 1.0, 2.0
ROW_WEIGHTS, AXES, BASE, BASE_PLACE, TOOL, PLACE_TURN, ROTATION_TURN, TOOL_AXIS = 27, 33, 42, 51, 54, 63, 72, 81
"""TOOL_AXIS: of the axis or the cosine, in the frame of the last joint."""
MODEL_HEAD = 84
(OFFSET, COS_ALPHA, SIN_ALPHA, SHIFT, SLIDES, RATIO, COLUMN, IS_NEW, COS_OFFSET, SIN_OFFSET) = (
    0, 1, 2, 3, 6, 7, 8, 9, 10, 11)  # fmt: skip
"""Of a node. SHIFT: three numbers. SLIDES: 0 for a joint that turns, else LENGTH_SCALE. IS_NEW: whether no node before
has its column."""
NODE = 12
LOWER, UPPER, LOW, HIGH, AT, IS_HELD, WINDS, UNIT, LEAST, MOST = range(10)
"""Of a column. LOW, HIGH: where starts lie. AT: its place in q. IS_HELD: it stays as in q0. WINDS: whether full turns
make no difference. UNIT: what to divide a number of q by; the kernels have lengths in sizes of the mechanism.
LEAST, MOST: limits of the number of q."""
COLUMN_FLOATS = 10

# the workspace: slots of all lanes, slot by slot; then the columns' slots; then each lane's search
(TARGET, TARGET_PLACE, RESIDUAL, COST, METRES, RADIANS, MU, ITERATION, CHECK, REFERENCE, IS_OVER, PLACE_AXES, TURN_AXES,
 PLACE_ROWS, TURN_ROWS) = (0, 9, 12, 18, 19, 20, 21, 22, 23, 24, 25, 26, 35, 44, 53)  # fmt: skip
LANE_HEAD = 62
SCREW, JACOBIAN, ACCEPTED, TRIAL, IS_FREE = 0, 6, 12, 13, 14
COLUMN_SLOTS = 15
(ROW, ATTEMPT, ITERATIONS, FOUND, BEST_COST, BEST_METRES, BEST_RADIANS, NEAREST, KEY, BROUGHT, STARTS,
 FOLLOWED) = range(12)  # fmt: skip
FEATURES, RANK, ENTRY = 12, 23, 39
SEARCH_HEAD = 55
"""Of a lane's search; behind it the best q so far, (columns,)."""
BLOCKS = 16
"""The table is ranked in this many blocks; the best of each is a start."""

# the seed table, 32 bits: features of all entries in groups of eight, then the entries themselves
FEATURE_ROWS = 9
"""|f|^2, six features, cosine and sine of the azimuth."""
ENTRY_TAIL = 4
"""Behind an entry's q: the last joint's x axis and the azimuth."""

# ways to search
FROM_TABLE, FROM_SEED, ONCE = 0, 1, 2
# a report: how it ended, attempts, iterations, errors in m and rad
SOLVED, NOT_SOLVED, BAD_ROW = 0.0, 1.0, 2.0
REPORT = 6


def workspace_size(columns: int, lanes: int) -> int:
    """Floats that a search needs in so many lanes: slots, searches, a target, a report."""
    return (LANE_HEAD + COLUMN_SLOTS * columns + SEARCH_HEAD + columns) * lanes + 12 + REPORT


def table_size(columns: int, entries: int) -> int:
    """Floats of 32 bits in a seed table."""
    return (FEATURE_ROWS + columns + ENTRY_TAIL) * entries
