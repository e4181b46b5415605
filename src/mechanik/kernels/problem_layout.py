"""Memory layout of an inverse kinematics problem for the general solver kernel.

All tables are in two arrays, one of integers and one of floats, since each array adds 0.05 us to a call from Python.
`INT_TABLES` and `FLOAT_TABLES` list the tables. A problem has

- nodes (`nodes.py`), in topological order, and x, the variables: q, then the dofs of closing joints that have nodes,
  then the slack variables of bands (see below);
- columns, the tangent directions of x. One unit of a column moves x by `scale`: 1 rad or one length unit of the
  mechanism (m), times the weight of the dof, so that all columns have comparable size. `lower` and `upper` are the
  bounds of x (rad, m, or the unit of a band); the three columns of a spherical joint have no bounds;
- blocks of residual rows. Most blocks are the relation of a frame B to a frame A (the kinds are those of
  `objectives.relation.RelationKind`). A block has a dense Jacobian over the columns that it depends on; each of its
  `terms` is the contribution of one axis of one node to one of these columns;
- stages: the blocks below `HARD_END` of a stage are its hard constraints; the solver minimises the sum of squares of
  its soft residuals, the blocks from `HARD_END` to `SOFT_END` - 1.

Residuals are weighted; lengths are in length units of the mechanism. A residual with a band, an interval of values that
count as zero, has a slack variable in x. The bounds of the slack are those of the band, the residual becomes
weight * (value - slack), and the scale of the slack's column is 1 / weight, so that its derivative is -1.

The kernels use these letters for indices: b block, r row (within its block or the problem), u column within a block, v
column of the problem, k index in x, s stage, t term, i and k independent columns (`elimination.py`). m is the number of
rows of a block (`width` is the number of its columns), n the number of independent columns. A name of a table, such as
`scale`, is the offset of the table in `ints` or `floats`: the scale of column v is `floats[scale + v]`. The residuals
and the Jacobians have two buffers, 0 and 1: one for the accepted x and one for the trial.

Matrices are stored row by row: entry (i, k) of a matrix with n columns at the offset H is `floats[H + i * n + k]`. A'
is the transpose of A.
"""

from __future__ import annotations

# kinds of blocks, with the values of objectives.relation.RelationKind
(
    POSE,
    AXIS,
    COSINE,
    LOOK_AT,
    DISTANCE,
    CENTRE_OF_MASS,
    JOINT_VALUE,
    SPHERICAL_ROTATION,
    PYTHON_FUNCTION,
    JOINT_CONSTRAINT,
    TERRAIN_HEIGHT,
) = range(11)

# integers of a block
(BLOCK_KIND, ROW_MASK, ROW_COUNT, FIRST_ROW, NODE_A, NODE_B, COLUMN_COUNT, FIRST_COLUMN, FIRST_JACOBIAN, TERM_COUNT,
 FIRST_TERM, X_INDEX, IN_WORLD, FIRST_MASS, MASS_COUNT, HAS_BANDS) = range(16)  # fmt: skip
"""Integers of a block.

ROW_MASK: the rows that count. Bits 0 to 2 are the position part of the residual, bits 3 to 5 the rotation part. POSE
and AXIS have both parts; COSINE (bit 3) and PYTHON_FUNCTION (no bits) have only a rotation part, the other kinds only a
position part, whatever their unit.
ROW_COUNT, COLUMN_COUNT, TERM_COUNT: numbers of rows, columns and terms.
FIRST_ROW, FIRST_COLUMN, FIRST_JACOBIAN, FIRST_TERM, FIRST_MASS: first index in the tables `residual`, `block_columns`,
`jacobian`, `terms` and `masses`.
NODE_A, NODE_B: the nodes of the frames A and B; -1 for the world. If no residual depends on the pose of the last common
ancestor of all frames, this ancestor replaces the world. X_INDEX: index in x of a joint's value or quaternion.
IN_WORLD: 1 if the residuals are along axes C that are fixed in the world; 0 if they are along the axes of A.
MASS_COUNT: number of masses, or of polynomials of a joint constraint. HAS_BANDS: 1 if a row has a band."""
BLOCK_INTS = 16
# of JOINT_VALUE and SPHERICAL_ROTATION: first column of the joint within the block; -1 if it has no column
FIRST_JOINT_COLUMN = FIRST_MASS
FIRST_COEFFICIENT = FIRST_MASS  # of JOINT_CONSTRAINT and TERRAIN_HEIGHT: first index in the table `coefficients`

# floats of a block: frames A and B in their nodes (12 each), axes C (9), squared tolerances of the position part and of
# the rotation part (ROW_MASK), weighted. JOINT_VALUE, SPHERICAL_ROTATION and JOINT_CONSTRAINT have their target instead
# of the frames: a joint value, a quaternion wxyz, a constant
FRAME_A, FRAME_B, AXES_C, POSITION_TOLERANCE2, ROTATION_TOLERANCE2 = 0, 12, 24, 33, 34
BLOCK_FLOATS = 36

# integers of a term: node, axis of the node, 1 for a rotation, column within the block, frames that the node moves
TERM_NODE, TERM_AXIS, TERM_IS_ROTATION, TERM_COLUMN, TERM_SIDE = range(5)
TERM_INTS = 5
MOVES_A, MOVES_B = 1, 2  # bits of TERM_SIDE

# integers of a stage; USES_DUAL_FORM: 1 for the dual form (`linear_systems.py`); CHAIN_BLOCK: the block of a chain with
# exact second derivatives (`curvature.py`), -1 if there is none
HARD_END, SOFT_END, IS_SOFT_OBJECTIVE, USES_DUAL_FORM, CHAIN_BLOCK = range(5)
STAGE_INTS = 5

(CLOSURE_TOLERANCE, MAX_ITERATIONS, START_DAMPING, GRADIENT_TOLERANCE, PERTURBATION_SIZE, MAX_ITERATIONS_IN_STAGE,
 ITERATIONS_PER_CALL, FIXED_DAMPING, STEP_TOLERANCE, MAX_ERROR, MAX_ANGLE_ERROR,
 USES_EIGENVALUES, MAX_PERTURBATIONS, PROGRESS_TOLERANCE) = range(14)  # fmt: skip
"""Options of the solver.

CLOSURE_TOLERANCE: largest absolute hard residual that counts as zero (rad, or length units of the mechanism).
MAX_ITERATIONS: largest number of iterations of a stage. MAX_ITERATIONS_IN_STAGE: the same if the attempt may be
abandoned. ITERATIONS_PER_CALL: number of iterations after which the kernel pauses.
START_DAMPING: first damping of a stage, as a ratio of the cost. FIXED_DAMPING: first damping of each step, independent
of the cost; only rejected trials increase it. 0: the damping is adapted.
GRADIENT_TOLERANCE: largest reduced gradient of a stationary point, as a ratio of the square root of the cost.
STEP_TOLERANCE: largest entry of a step, in units of a column, below which a stage ends; 0 if there is none.
PERTURBATION_SIZE: size of a perturbation, in units of a column; 0: a stage ends at every stationary point.
MAX_PERTURBATIONS: largest number of perturbations in a stage. Stage 0, which closes loops, may use larger values.
MAX_ERROR, MAX_ANGLE_ERROR: lengths to which the position part and the rotation part of a block's residual are clipped
(ROW_MASK), weighted; infinite if they are not clipped.
USES_EIGENVALUES: 1 if linear systems are solved by eigenvalues.
PROGRESS_TOLERANCE: a stage ends if the decrease of the cost that is still to be expected, as a ratio of the cost, is at
most this; 0: never."""

# active set, the state of a column: free, held at its upper or lower bound in this step, or locked
FREE, ON_UPPER, ON_LOWER, LOCKED = range(4)

# floats of a passive spherical joint, whose quaternion follows from the poses of two nodes (-1: see NODE_A): its parent
# node, the node that its child is welded to, its index in x, its axes in the parent node and its axes in the welded
# node (rotations of 9 numbers)
PASSIVE_PARENT_NODE, PASSIVE_WELD_NODE, PASSIVE_X, PASSIVE_PARENT_AXES, PASSIVE_WELD_AXES = 0, 1, 2, 3, 12
PASSIVE_FLOATS = 21

MASS_FLOATS = 5  # node, fraction of the total mass, position in the node's frame

# coefficients of a joint constraint, for each of its MASS_COUNT polynomials: index of the variable in x, its column
# within the block (-1 if it has none), the degree n, and the factors of the powers 1 to n (from FIRST_FACTOR on).
# coefficients of a height field: columns, rows, cell size, x and y of the first height, then all heights row by row
FIRST_FACTOR = 3
FIELD_COLUMNS, FIELD_ROWS, CELL_SIZE, FIELD_X, FIELD_Y, HEIGHTS = range(6)

# the header: sizes, then the offset of each table
SIZES = (
    "nodes", "columns", "x", "blocks", "rows", "terms", "stages", "sphericals", "masses", "jacobian", "block_columns",
    "max_block_rows", "q", "functions", "target_block", "runtime_zero", "hard_rows", "dual_rows", "square", "matrix",
    "null_space_entries", "chain", "coefficients", "passive",
)  # fmt: skip
(N_NODES, N_COLUMNS, N_X, N_BLOCKS, N_ROWS, N_TERMS, N_STAGES, N_SPHERICAL, N_MASSES, N_JACOBIAN, N_BLOCK_COLUMNS,
 MAX_BLOCK_ROWS, N_Q, N_FUNCTIONS, TARGET_BLOCK, RUNTIME_ZERO, N_HARD_ROWS, N_DUAL_ROWS, N_SQUARE, N_MATRIX,
 N_NULL_SPACE_ENTRIES, N_CHAIN, N_COEFFICIENTS, N_PASSIVE) = range(24)  # fmt: skip
"""Indices of the sizes in the header.

`TARGET_BLOCK` is the block whose target a call may rewrite. `RUNTIME_ZERO` is always 0 but is read at run time: Numba
gives literal numbers types of their own and would compile functions twice. `N_HARD_ROWS` is the largest number of hard
rows, `N_DUAL_ROWS` the largest number of rows of a stage in dual form (`linear_systems.py`). `N_SQUARE`, `N_MATRIX` and
`N_NULL_SPACE_ENTRIES` are table lengths: of a matrix over all columns (0 without such a matrix), of the largest system
matrix, and of the sparse null space. `N_CHAIN` is the number of joints of the chain with exact second derivatives
(`curvature.py`), `N_COEFFICIENTS` the number of coefficients of joint constraints and height fields, `N_PASSIVE` the
number of passive spherical joints, whose quaternions are set after the solve (`descent.py`).
"""
FIRST_TABLE_OFFSET = 24

INT_TABLES = {
    "blocks": "blocks * 16",
    "terms": "terms * 5",
    "block_columns": "block_columns",  # the columns of each block, block by block
    "slack": "rows * 2",  # of each row, the index of its slack in x and in the columns of its block; -1 if none
    "column_x": "columns",  # of each column, its index in x; -1 for spherical joints
    "spherical": "sphericals * 2",  # of each spherical joint, its index in x and its first column
    "stages": "stages * 5",
    "hard_block_count": "stages * columns",  # number of hard blocks of a stage that depend on a column
    "elimination_order": "columns",  # columns in few blocks come first
    # the tables below are workspace
    "bound_state": "columns",  # active set: FREE, ON_UPPER, ON_LOWER or LOCKED
    # of each dependent column, the row that is solved for it (`elimination.py`); -1 for independent columns
    "pivot_row": "columns",
    "independent_index": "columns",  # of each independent column, its index among the independent columns
    "independent_column": "columns",  # the independent columns
    "envelope": "columns",  # of each row of H, the first nonzero entry
    # of each independent index, 1 + its position in `column_list` (in `elimination`, only 1); 0 if not listed
    "list_position": "columns",
    "column_list": "columns",  # scratch list of columns, such as the independent indices of a block
    "was_released": "columns",  # 1 if a column was released from its bound in this step
    "null_space_count": "columns",  # of each dependent column, the number of entries of its row of the null space Z
    "null_space_start": "columns",  # of each dependent column, the first entry of its row of Z
    "null_space_index": "null_space_entries",  # of each entry of Z, the independent index
    "pivot_column": "rows",  # of each row, the column within its block that it is solved for; -1 if none
    "remaining_pivot": "rows",  # of each remaining row, the column that it is solved for; -1 if none
    "previous_columns": "columns",  # independent columns of the table `curvature`; -1 if it is discarded
    "has_curvature": "columns",  # whether second derivatives of a column are known: 0 no, 1 yes, 2 new sample
    "remaining_row": "rows",  # of each row, its index among the remaining rows; -1 if it is not among them
}
FLOAT_TABLES = {
    "nodes": "nodes * 18",
    "block_data": "blocks * 36",  # floats of the blocks
    "term_factor": "terms",  # motion of the node per unit of the column: scale times joint ratio
    "masses": "masses * 5",
    "coefficients": "coefficients",  # of joint constraints and height fields
    "passive": "passive * 21",  # spherical joints that are aligned after the solve
    "weight": "rows",
    "scale": "columns",  # change of x per unit of the column, rad or m
    "lower": "columns",  # bounds of x, rad or m
    "upper": "columns",
    "options": "24",
    # the tables below are workspace
    "state": "48",
    "report": "8 + stages * 5",
    "best_cost": "stages",  # cost of each stage in the best attempt
    "poses": "nodes * 12",  # poses of the nodes in the world, or in the ancestor that replaces it (NODE_A)
    "moments": "nodes * 4",  # mass and first moment of the subtree of each node, as fractions of the total mass
    "jacobian": "jacobian * 2",  # two buffers: accepted x and trial
    "residual": "rows * 2",  # two buffers
    "held_residual": "rows",  # values at which hard residuals are held
    "x": "x",  # accepted
    "trial": "x",
    "last_feasible": "x",  # the last accepted x with all hard residuals within tolerance, or the start of the stage
    "before_perturbation": "x",  # x before the last perturbation
    "best_x": "x",  # best x of all attempts
    "step": "columns",
    "offset": "columns",  # step of a dependent column for a zero step of the independent columns
    "negative_gradient": "columns",  # negative reduced gradient of half the cost
    "model_gradient": "columns",  # gradient of half the model after the step; also scratch memory
    "reduced_jacobian": "max_block_rows * columns",  # Jacobian of a soft block over the independent columns
    "block_residual": "rows",  # residual of a soft block after elimination
    "H": "matrix",  # matrix of the linear system, replaced by its factors
    "H0": "square",  # damped normal matrix over the independent columns, lower triangle
    "dense_rows": "hard_rows * (columns + 1)",  # remaining rows over all columns, with right-hand side
    "null_space": "null_space_entries",  # nonzero entries of Z
    "tableau": "jacobian",  # Jacobians of the hard blocks during elimination
    "rhs": "rows",  # right-hand sides of the hard rows during elimination
    "reduced_step": "columns",  # step of the independent columns; also scratch memory
    "curvature": "square",  # second derivatives that Gauss-Newton omits, as far as known
    "extra_damping": "columns",  # damping factor of each column
    # `negative_gradient` minus the gradient of the damping of dependent columns
    "damped_negative_gradient": "columns",
    "previous_negative_gradient": "columns",  # `negative_gradient` of the previous step
    "previous_step": "columns",  # step of the independent columns in the previous step
    "eigenvectors": "matrix",
    "dual_rows": "dual_rows * columns",  # dual form: Jacobian rows over the independent columns
    "dual_residual": "dual_rows",  # dual form: residuals of these rows
    "dual_remainder": "dual_rows",  # dual form: residuals after the step
    "diagonal": "columns",  # dual form and chains: damping plus squares of single-column rows
    "negative_single_column_gradient": "columns",  # dual form and chains: negative gradient of single-column rows
    "chain": "chain * 12",  # u and v of each joint of a chain (`curvature.py`)
    "chain_w": "chain * 6",  # w of each joint of a chain
    "chain_sums": "42",  # sums over the joints of a chain: a vector of 6 and the matrix P
    "row_combination": "rows * max_block_rows",  # of each block, the matrix of the row operations of its elimination
    "multiplier": "rows",  # Lagrange multipliers of the hard rows
    "lagrangian_gradient": "columns",  # gradient of half the soft cost plus multipliers times hard residuals
    "negative_curvature": "columns",  # a direction of negative curvature of the soft cost
    "inverse_diagonal": "columns",  # 1 / diagonal (chains: 1 / pivot); 0 for columns that do not move freely
}
(
 AT_BLOCKS, AT_TERMS, AT_BLOCK_COLUMNS, AT_SLACK, AT_COLUMN_X, AT_SPHERICAL, AT_STAGES, AT_HARD_BLOCK_COUNT,
 AT_ELIMINATION_ORDER, AT_BOUND_STATE, AT_PIVOT_ROW, AT_INDEPENDENT_INDEX, AT_INDEPENDENT_COLUMN, AT_ENVELOPE,
 AT_LIST_POSITION, AT_COLUMN_LIST, AT_WAS_RELEASED, AT_NULL_SPACE_COUNT, AT_NULL_SPACE_START, AT_NULL_SPACE_INDEX,
 AT_PIVOT_COLUMN, AT_REMAINING_PIVOT, AT_PREVIOUS_COLUMNS, AT_HAS_CURVATURE, AT_REMAINING_ROW, AT_NODES,
 AT_BLOCK_DATA, AT_TERM_FACTOR, AT_MASSES, AT_COEFFICIENTS, AT_PASSIVE, AT_WEIGHT, AT_SCALE, AT_LOWER, AT_UPPER,
 AT_OPTIONS, AT_STATE, AT_REPORT, AT_BEST_COST, AT_POSES, AT_MOMENTS, AT_JACOBIAN, AT_RESIDUAL, AT_HELD_RESIDUAL,
 AT_X, AT_TRIAL, AT_LAST_FEASIBLE, AT_BEFORE_PERTURBATION, AT_BEST_X, AT_STEP, AT_OFFSET, AT_NEGATIVE_GRADIENT,
 AT_MODEL_GRADIENT, AT_REDUCED_JACOBIAN, AT_BLOCK_RESIDUAL, AT_H, AT_H0, AT_DENSE_ROWS, AT_NULL_SPACE, AT_TABLEAU,
 AT_RHS, AT_REDUCED_STEP, AT_CURVATURE, AT_EXTRA_DAMPING, AT_DAMPED_NEGATIVE_GRADIENT, AT_PREVIOUS_NEGATIVE_GRADIENT,
 AT_PREVIOUS_STEP, AT_EIGENVECTORS, AT_DUAL_ROWS, AT_DUAL_RESIDUAL, AT_DUAL_REMAINDER, AT_DIAGONAL,
 AT_NEGATIVE_SINGLE_COLUMN_GRADIENT, AT_CHAIN, AT_CHAIN_W, AT_CHAIN_SUMS, AT_ROW_COMBINATION, AT_MULTIPLIER,
 AT_LAGRANGIAN_GRADIENT, AT_NEGATIVE_CURVATURE, AT_INVERSE_DIAGONAL,
) = range(FIRST_TABLE_OFFSET, FIRST_TABLE_OFFSET + len(INT_TABLES) + len(FLOAT_TABLES))  # fmt: skip
