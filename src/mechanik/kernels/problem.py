"""How a problem of inverse kinematics is laid out for the general kernel.

Everything is in two arrays, one of integers and one of floats, since each array costs a call from Python 0.05 us.
`views.py` cuts them into tables with names. A problem has

- nodes (`layout.py`), in topological order, and x, the numbers that move them: q, then what the problem adds to it;
- columns, the directions in which x can go. One unit of a column moves x by `scale`: 1 rad, or one size of the
  mechanism, so that all columns are alike. `lower` and `upper` bound x; the three columns of a ball have no bounds;
- blocks of rows, each the relation of a frame B to a frame A (`Kind` names the kinds). A block has a dense
Jacobian over the columns that can change it; each of its `terms` is the share of one axis of one node in one of
these columns;
- stages: in stage s the blocks below HARD are held and those from HARD to SOFT are brought towards zero.

Rows are weighted; lengths are in sizes of the mechanism. A row that may lie in a band has a number in x, its slack,
which is bounded by the band, and says: value - slack = 0. So bands need no rules of their own.
"""

from __future__ import annotations

# kinds of blocks, as in objectives.relation.Kind
POSE, AXIS, COSINE, LOOK, DISTANCE, MASS, VALUE, TURN, FUNCTION, LAW, HEIGHT = range(11)

# a block's integers
(KIND, MASK, ROWS, FIRST_ROW, NODE_A, NODE_B, COLUMNS, FIRST_COLUMN, FIRST_J, TERMS, FIRST_TERM,
 X_INDEX, IN_WORLD, FIRST_MASS, MASSES, HAS_BANDS) = range(16)  # fmt: skip
BLOCK_INTS = 16
OWN_COLUMN = FIRST_MASS  # of VALUE and TURN: the first of the freedom's columns within the block; -1 if it may not move
FIRST_NUMBER = FIRST_MASS  # of LAW and HEIGHT: where their numbers begin among `numbers`

# a block's floats: frames A and B (12 each), axes C (9), tolerances (m, rad) in weighted units, squared
FRAME_A, FRAME_B, AXES_C, METRES2, RADIANS2 = 0, 12, 24, 33, 34
BLOCK_FLOATS = 36

# a term: node, which of its axes, whether it turns, the column within the block, which side it moves
T_NODE, T_AXIS, T_TURNS, T_COLUMN, T_SIDE = range(5)
TERM_INTS = 5
MOVES_A, MOVES_B = 1, 2  # bits of T_SIDE

# a stage
HARD, SOFT, IS_WISH, IS_WIDE, CHAIN_BLOCK = range(5)
STAGE_INTS = 5

# options of the solver
(SHUT, MAX_ITERATIONS, FIRST_MU, SMALLEST_GRADIENT, KICK, PATIENCE, BUDGET, FIXED_DAMPING, SMALLEST_STEP, LARGEST_ERROR,
 LARGEST_ANGLE, SVD, KICKS) = range(13)  # fmt: skip

# what is known of a column: free, on its upper or lower bound for this step, or not to be moved at all
FREE, ON_UPPER, ON_LOWER, LOCKED = range(4)

# a ball that is read off: the node that carries it and the one that it is welded to (-1: the world), where it is in x,
# its own axes in the first node, and in the second where the weld wants them (9 numbers each)
R_CARRIER, R_OTHER, R_X, R_FIXED, R_WANTED = 0, 1, 2, 3, 12
READ_OFF_FLOATS = 21

MASS_FLOATS = 5  # node, share of the whole mass, place in the node's frame

# the numbers of a law: for each of its MASSES terms where the freedom stands in x, its column within the block (-1 if
# it may not move), the degree n, and the factors of its powers 1 to n. Those of a height field: columns, rows, size of
# a cell, place of the first height, and then all heights, row by row
FACTORS = 3
FIELD_COLUMNS, FIELD_ROWS, CELL, FIELD_X, FIELD_Y, HEIGHTS = range(6)

# the header: sizes, then where each table begins
SIZES = (
    "nodes", "columns", "x", "blocks", "rows", "terms", "stages", "balls", "masses", "jacobian", "block_columns",
    "widest", "q",
    "functions", "target", "zero", "hard", "wide", "square", "matrix", "follow", "chain", "numbers", "read_off",
)  # fmt: skip
(N_NODES, N_COLUMNS, N_X, N_BLOCKS, N_ROWS, N_TERMS, N_STAGES, N_BALLS, N_MASSES, N_JACOBIAN, N_BLOCK_COLUMNS, WIDEST,
 N_Q, N_FUNCTIONS, TARGET, ZERO, N_HARD, N_WIDE, N_SQUARE, N_MATRIX, N_FOLLOW,
 N_CHAIN, N_NUMBERS, N_READ_OFF) = range(24)  # fmt: skip
"""ZERO is always 0, and the compiler does not know it: for a known number it compiles functions twice. N_HARD is how
many rows are hard at most, N_WIDE how many rows a wide stage has at most (`wide.py`). The next three are lengths of
tables: of a matrix over all columns, if there is need of one; of the largest matrix that is solved; of what dependent
columns follow. N_CHAIN is how many joints the chain has of which all second derivatives are known
(`chain_curvature.py`), N_NUMBERS how many numbers laws and height fields have, N_READ_OFF how many balls are turned in
the end, as what they are welded to wants it (`read_off.py`)."""
OFFSETS = 24

INT_TABLES = {
    "blocks": "blocks * 16",
    "terms": "terms * 5",
    "block_columns": "block_columns",  # the columns of each block, one block after the other
    "slack": "rows * 2",  # for each row, where its slack is in x and among the block's columns; -1 if it has none
    "column_x": "columns",  # which number of x a column moves; -1 for balls
    "balls": "balls * 2",  # where a ball is in x, and its first column
    "stages": "stages * 5",  # CHAIN_BLOCK is -1 if there is none
    "private": "stages * columns",  # how many hard blocks of a stage know a column
    "order": "columns",  # in which the columns are eliminated: those that few blocks know come first
    # from here on room to work in
    "ban": "columns",  # 0 free, 1 at its upper bound, 2 at its lower one, 3 locked
    "dependent": "columns",  # the place of a dependent column among those; -1 for independent ones
    "place": "columns",  # the place of an independent column among those
    "independent": "columns",  # and back
    "first": "columns",  # of each row of H, the first entry that is not zero
    "local": "columns",
    "listed": "columns",
    "released": "columns",
    "z_count": "columns",  # of each dependent column, how many entries its row of Z has
    "z_start": "columns",  # and where they begin
    "z_index": "follow",
    "pivot": "rows",
    "rest_column": "rows",
    "old_columns": "columns",  # which columns were independent at the step before
    "probed": "columns",  # whether a column's second derivatives are known
    "left_row": "rows",  # of each row that found no pivot in its own block, its number among all rows
}
FLOAT_TABLES = {
    "nodes": "nodes * 18",
    "data": "blocks * 36",  # the floats of the blocks
    "term_factor": "terms",  # how far a unit of the column moves the node: scale, and the ratio of couplings
    "masses": "masses * 5",
    "numbers": "numbers",  # what laws and height fields are made of
    "read_off": "read_off * 21",  # the balls that are turned in the end
    "weight": "rows",
    "scale": "columns",
    "lower": "columns",
    "upper": "columns",
    "options": "24",
    # from here on room to work in
    "state": "48",
    "out": "8 + stages * 5",
    "best_cost": "stages",
    "poses": "nodes * 12",
    "moments": "nodes * 4",
    "jacobian": "jacobian * 2",  # at the accepted x and at the trial
    "rows": "rows * 2",
    "hold": "rows",
    "x": "x",  # accepted
    "trial": "x",
    "last_shut": "x",  # the last accepted one with all that is hard within its tolerance
    "kicked": "x",  # where a kick began
    "best": "x",  # of several attempts
    "step": "columns",
    "offset": "columns",  # what a dependent column moves when no independent one does
    "gradient": "columns",
    "full": "columns",
    "block_A": "widest * columns",
    "e1": "rows",
    "H": "matrix",
    "H0": "square",
    "dense": "hard * (columns + 1)",
    "Z": "follow",
    "T": "jacobian",
    "rhs": "rows",
    "line": "columns",
    "S": "square",  # what Gauss and Newton leave out of the second derivatives, as far as it is known
    "reluctance": "columns",  # how much more a column is damped than others
    "pull": "columns",  # the gradient, less what damping takes from dependent columns
    "old_gradient": "columns",  # at the step before
    "old_step": "columns",
    "V": "matrix",
    "B": "wide * columns",  # of a wide stage: rows over the independent columns
    "far": "wide",  # what these rows are from zero
    "left": "wide",  # and what the step leaves of that
    "diagonal": "columns",  # of each column, the rows that know it alone, squared, and its damping
    "alone": "columns",  # and how these rows pull
    "chain": "chain * 12",  # u and v of each joint of a chain
    "chain_w": "chain * 6",
    "sums": "42",
    "undo": "rows * widest",  # of each block, which of its rows make up those that elimination has left
    "force": "rows",  # what holds each hard row against the pull of the soft ones
    "slope": "columns",  # of the soft rows' squares and of what the forces do, halved
    "edge": "columns",  # a direction in which the soft rows' squares bend down
    "give": "columns",  # how far a column gives way to a unit of pull; 0 for those that are not free
}
(
 AT_BLOCKS, AT_TERMS, AT_BLOCK_COLUMNS, AT_SLACK, AT_COLUMN_X, AT_BALLS, AT_STAGES, AT_PRIVATE, AT_ORDER,
 AT_BAN, AT_DEPENDENT, AT_PLACE, AT_INDEPENDENT, AT_FIRST, AT_LOCAL, AT_LISTED, AT_RELEASED, AT_Z_COUNT,
 AT_Z_START, AT_Z_INDEX, AT_PIVOT, AT_REST_COLUMN, AT_OLD_COLUMNS, AT_PROBED, AT_LEFT_ROW, AT_NODES, AT_DATA,
 AT_TERM_FACTOR, AT_MASSES, AT_NUMBERS, AT_READ_OFF, AT_WEIGHT, AT_SCALE, AT_LOWER,
 AT_UPPER, AT_OPTIONS, AT_STATE, AT_OUT, AT_BEST_COST, AT_POSES, AT_MOMENTS, AT_JACOBIAN, AT_ROWS, AT_HOLD, AT_X,
 AT_TRIAL,
 AT_LAST_SHUT, AT_KICKED, AT_BEST, AT_STEP, AT_OFFSET, AT_GRADIENT, AT_FULL, AT_BLOCK_A, AT_E1, AT_H, AT_H0,
 AT_DENSE, AT_Z, AT_T,
 AT_RHS, AT_LINE, AT_S, AT_RELUCTANCE, AT_PULL, AT_OLD_GRADIENT, AT_OLD_STEP, AT_V,
 AT_B, AT_FAR, AT_LEFT, AT_DIAGONAL, AT_ALONE, AT_CHAIN, AT_CHAIN_W, AT_SUMS,
 AT_UNDO, AT_FORCE, AT_SLOPE, AT_EDGE, AT_GIVE,
) = range(OFFSETS, OFFSETS + len(INT_TABLES) + len(FLOAT_TABLES))  # fmt: skip
