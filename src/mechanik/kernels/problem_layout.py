"""Memory layout of an inverse kinematics problem for the general solver kernel.

`ProblemTables` declares all tables, and the records in them (see `tables.py`). A problem has

- nodes (`nodes.py`), in topological order, and x, the variables: q, then the dofs of closing joints that have nodes,
  then the slack variables of bands (see below);
- columns, the tangent directions of x. One unit of a column moves x by `scale`: 1 rad or one length unit of the
  mechanism (m), times the weight of the dof, so that all columns have comparable size. `lower` and `upper` are the
  bounds of x (rad, m, or the unit of a band); the three columns of a spherical joint have no bounds;
- blocks of residual rows. Most blocks are the relation of a frame B to a frame A (the kinds are those of
  `objectives.relation.RelationKind`). A block has a dense Jacobian over the columns that it depends on; each of its
  `terms` is the contribution of one axis of one node to one of these columns;
- stages: the blocks below `hard_end` of a stage are its hard constraints; the solver minimises the sum of squares of
  its soft residuals, the blocks from `hard_end` to `soft_end` - 1.

Residuals are weighted; those that are lengths are in length units of the mechanism, while x and poses are in m and rad.
A residual with a band, an interval of values that count as zero, has a slack variable in x. The bounds of the slack are
those of the band, the residual becomes weight * (value - slack), and the scale of the slack's column is 1 / weight, so
that its derivative is -1.

The kernels use these letters for indices: b block, r row (within its block or the problem), u column within a block, v
column of the problem, k index in x or a second independent column, s stage, t term, i independent column
(`elimination.py`). m is the number of rows of a block (`width` is the number of its columns), n the number of
independent columns. The residuals and the Jacobians have two buffers, 0 and 1: one for the accepted x and one for the
trial.

Tables of numbers for all rows, all columns of all blocks, or all Jacobians are flat; `problem_views.py` returns the
part of one block as a vector or as a matrix. Matrices whose size is not known in advance are stored row by row in a
flat table too. A' is the transpose of A.
"""

from __future__ import annotations

from .nodes import Node
from .state_layout import Options, SearchReport, SearchState, StageReport
from .tables import (
    Record,
    Size,
    Tables,
    flag,
    float_record,
    float_records,
    floats,
    int_records,
    integer,
    ints,
    number,
    numbers,
    opener,
)

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

FREE, ON_UPPER, ON_LOWER, LOCKED = range(4)
"""Active set, the state of a column: free, held at its upper or lower bound in this step, or locked."""
MOVES_A, MOVES_B = 1, 2
"""Bits of `Term.side`."""

# coefficients of a joint constraint, for each of its `mass_count` polynomials: index of the variable in x, its column
# within the block (-1 if it has none), the degree n, and the factors of the powers 1 to n (from FIRST_FACTOR on).
# coefficients of a height field: columns, rows, cell size, x and y of the first height, then all heights row by row
FIRST_FACTOR = 3
FIELD_COLUMNS, FIELD_ROWS, CELL_SIZE, FIELD_X, FIELD_Y, HEIGHTS = range(6)


class Block(Record):
    """Structure of a block of residual rows.

    Attributes:
        row_mask: the rows that count. Bits 0 to 2 are the position part of the residual, bits 3 to 5 the rotation part.
            POSE and AXIS have both parts; COSINE (bit 3) and PYTHON_FUNCTION (no bits) have only a rotation part, the
            other kinds only a position part, whatever their unit.
        row_count, column_count, term_count: numbers of rows, columns and terms.
        first_row, first_column, first_jacobian, first_term, first_mass: first index in `weight` and in a buffer of
            `residual`, in `block_columns`, in a buffer of `jacobian`, in `terms` and in `masses`.
        node_a, node_b: the nodes of the frames A and B; -1 for the world. If no residual depends on the pose of the
            last common ancestor of all frames, this ancestor replaces the world.
        x_index: index in x of a joint's value or quaternion.
        in_world: whether the residuals are along axes C that are fixed in the world, or along the axes of A.
        mass_count: number of masses, or of polynomials of a joint constraint.
        has_bands: whether a row has a band.
        first_joint_column: of JOINT_VALUE and SPHERICAL_ROTATION, the first column of the joint within the block; -1 if
            it has no column.
        first_coefficient: of JOINT_CONSTRAINT and TERRAIN_HEIGHT, the first index in `coefficients`.
    """

    kind = integer()
    row_mask = integer()
    row_count = integer()
    first_row = integer()
    node_a = integer()
    node_b = integer()
    column_count = integer()
    first_column = integer()
    first_jacobian = integer()
    term_count = integer()
    first_term = integer()
    x_index = integer()
    in_world = flag()
    first_mass = integer()
    mass_count = integer()
    has_bands = flag()
    first_joint_column = first_mass
    first_coefficient = first_mass


class BlockData(Record):
    """Numbers of a block that targets may change.

    Attributes:
        frame_a, frame_b: frames A and B in their nodes.
        axes_c: the axes C.
        position_tolerance2, rotation_tolerance2: squared tolerances of the position part and of the rotation part
            (`Block.row_mask`), weighted.
        target: of JOINT_VALUE, SPHERICAL_ROTATION and JOINT_CONSTRAINT instead of the frames: a joint value, a
            quaternion wxyz, a constant.
    """

    frame_a = numbers(12)
    frame_b = numbers(12)
    axes_c = numbers(9)
    position_tolerance2 = number()
    rotation_tolerance2 = number()
    unused = number()
    target = frame_a


class Term(Record):
    """Contribution of one axis of a node to a column of a block.

    Attributes:
        node: the node.
        axis: axis of the node, 0 to 2.
        is_rotation: whether the motion is a rotation.
        column: column within the block.
        side: the frames that the node moves: MOVES_A, MOVES_B or their sum.
    """

    node = integer()
    axis = integer()
    is_rotation = flag()
    column = integer()
    side = integer()


class Stage(Record):
    """Range of the blocks of a stage.

    Attributes:
        hard_end, soft_end: end of its hard blocks, which begin at block 0, and of its soft blocks.
        is_soft_objective: whether success does not depend on the stage.
        uses_dual_form: whether linear systems are solved in the dual form (`linear_systems.py`).
        chain_block: the block of a chain with exact second derivatives (`curvature.py`); -1 if there is none.
    """

    hard_end = integer()
    soft_end = integer()
    is_soft_objective = flag()
    uses_dual_form = flag()
    chain_block = integer()


class Slack(Record):
    """Slack variable of a row: its index in x and its column within the block; -1 if the row has none."""

    x = integer()
    column = integer()


class Spherical(Record):
    """Spherical joint: index in x of its quaternion, and its first column."""

    x = integer()
    first_column = integer()


class PassiveJoint(Record):
    """Passive spherical joint, whose quaternion follows from the poses of two nodes.

    Attributes:
        parent_node: its parent node; -1 as in `Block.node_a`.
        weld_node: the node that its child is welded to.
        x: index in x of its quaternion.
        parent_axes, weld_axes: its axes in the parent node and in the welded node, row by row.
    """

    parent_node = integer()
    weld_node = integer()
    x = integer()
    parent_axes = numbers(9)
    weld_axes = numbers(9)


class Mass(Record):
    """Mass of a link: its node, its share of the total mass, and its position in the frame of the node."""

    node = integer()
    share = number()
    position = numbers(3)


class ChainJoint(Record):
    """Vectors u, v and w of a joint of a chain with exact second derivatives (`curvature.py`)."""

    u = numbers(6)
    v = numbers(6)
    w = numbers(6)


class ProblemTables(Tables):
    """All tables of a problem.

    `target_block` is the block whose target a call may rewrite. `runtime_zero` is always 0 but is read at run time:
    Numba gives literal numbers types of their own and would compile functions twice. `hard_row_count` is the largest
    number of hard rows, `dual_row_count` the largest number of rows of a stage in dual form (`linear_systems.py`).
    `square_size`, `matrix_size` and `null_space_size` are table lengths: of a matrix over all columns (0 without such a
    matrix), of the largest system matrix, and of the sparse null space. `chain_joint_count` is the number of joints of
    the chain with exact second derivatives (`curvature.py`), `coefficient_count` the number of coefficients of joint
    constraints and height fields, `passive_count` the number of passive spherical joints, whose quaternions are set
    at the end of calls (`descent.py`).
    """

    node_count = Size()
    column_count = Size()
    x_count = Size()
    block_count = Size()
    row_count = Size()
    term_count = Size()
    stage_count = Size()
    spherical_count = Size()
    mass_count = Size()
    jacobian_size = Size()
    block_column_count = Size()
    max_block_rows = Size()
    nq = Size()
    function_count = Size()
    target_block = Size()
    runtime_zero = Size()
    hard_row_count = Size()
    dual_row_count = Size()
    square_size = Size()
    matrix_size = Size()
    null_space_size = Size()
    chain_joint_count = Size()
    coefficient_count = Size()
    passive_count = Size()

    blocks = int_records(Block, block_count)
    terms = int_records(Term, term_count)
    block_columns = ints(block_column_count)  # the columns of each block, block by block
    slacks = int_records(Slack, row_count)
    column_x = ints(column_count)  # of each column, its index in x; -1 for spherical joints
    sphericals = int_records(Spherical, spherical_count)
    stages = int_records(Stage, stage_count)
    hard_block_count = ints(stage_count, column_count)  # number of hard blocks of a stage that depend on a column
    elimination_order = ints(column_count)  # columns in few blocks come first
    # the tables below are workspace
    bound_state = ints(column_count)  # active set: FREE, ON_UPPER, ON_LOWER or LOCKED
    # of each dependent column, the row that is solved for it (`elimination.py`); -1 for independent columns
    pivot_row = ints(column_count)
    independent_index = ints(column_count)  # of each independent column, its index among the independent columns
    independent_column = ints(column_count)  # the independent columns
    envelope = ints(column_count)  # of each row of H, the first nonzero entry
    # of each independent index, 1 + its position in `column_list` (in `elimination`, only 1); 0 if not listed
    list_position = ints(column_count)
    column_list = ints(column_count)  # scratch list of columns, such as the independent indices of a block
    was_released = ints(column_count)  # 1 if a column was released from its bound in this step
    null_space_count = ints(column_count)  # of each dependent column, the number of entries of its row of Z
    null_space_start = ints(column_count)  # of each dependent column, the first entry of its row of Z
    null_space_index = ints(null_space_size)  # of each entry of the null space Z, the independent index
    pivot_column = ints(row_count)  # of each row, the column within its block that it is solved for; -1 if none
    remaining_pivot = ints(row_count)  # of each remaining row, the column that it is solved for; -1 if none
    previous_columns = ints(column_count)  # independent columns of the table `curvature`; -1 if it is discarded
    has_curvature = ints(column_count)  # whether second derivatives of a column are known: 0 no, 1 yes, 2 new sample
    remaining_row = ints(row_count)  # of each row, its index among the remaining rows; -1 if it is not among them

    nodes = float_records(Node, node_count)
    block_data = float_records(BlockData, block_count)
    term_factor = floats(term_count)  # motion of the node per unit of the column: scale times joint ratio
    masses = float_records(Mass, mass_count)
    coefficients = floats(coefficient_count)  # of joint constraints and height fields
    passive_joints = float_records(PassiveJoint, passive_count)  # aligned at the end of calls
    weight = floats(row_count)
    scale = floats(column_count)  # change of x per unit of the column, rad or m
    lower = floats(column_count)  # bounds of x, rad or m
    upper = floats(column_count)
    options = float_record(Options)
    # the tables below are workspace
    state = float_record(SearchState)
    report = float_record(SearchReport)
    stage_reports = float_records(StageReport, stage_count)
    best_cost = floats(stage_count)  # cost of each stage in the best attempt
    poses = floats(node_count, 12)  # poses of the nodes in the world, or in the ancestor that replaces it
    moments = floats(node_count, 4)  # mass and first moment of the subtree of each node, as shares of the total mass
    jacobian = floats(2, jacobian_size)  # two buffers: accepted x and trial
    residual = floats(2, row_count)  # two buffers
    held_residual = floats(row_count)  # values at which hard residuals are held
    x = floats(x_count)  # accepted
    trial = floats(x_count)
    # the last accepted x with all hard residuals within tolerance, or the start of the stage
    last_feasible = floats(x_count)
    before_perturbation = floats(x_count)  # x before the last perturbation
    best_x = floats(x_count)  # best x of all attempts
    step = floats(column_count)
    offset = floats(column_count)  # step of a dependent column for a zero step of the independent columns
    negative_gradient = floats(column_count)  # negative reduced gradient of half the cost
    model_gradient = floats(column_count)  # gradient of half the model after the step; also scratch memory
    reduced_jacobian = floats(max_block_rows * column_count)  # Jacobian of a soft block over the independent columns
    block_residual = floats(row_count)  # residual of a soft block after elimination
    H = floats(matrix_size)  # matrix of the linear system, replaced by its factors
    H0 = floats(square_size)  # damped normal matrix over the independent columns, lower triangle
    # remaining rows over all columns, with right-hand side; also the linear system of their multipliers
    dense_rows = floats(hard_row_count * (column_count + hard_row_count + 1))
    null_space = floats(null_space_size)  # nonzero entries of Z
    tableau = floats(jacobian_size)  # Jacobians of the hard blocks during elimination
    rhs = floats(row_count)  # right-hand sides of the hard rows during elimination
    reduced_step = floats(column_count)  # step of the independent columns; also scratch memory
    curvature = floats(square_size)  # second derivatives that Gauss-Newton omits, as far as known
    extra_damping = floats(column_count)  # damping factor of each column
    # `negative_gradient` minus the gradient of the damping of dependent columns
    damped_negative_gradient = floats(column_count)
    previous_negative_gradient = floats(column_count)  # `negative_gradient` of the previous step
    previous_step = floats(column_count)  # step of the independent columns in the previous step
    eigenvectors = floats(matrix_size)
    dual_rows = floats(dual_row_count * column_count)  # dual form: Jacobian rows over the independent columns
    dual_residual = floats(dual_row_count)  # dual form: residuals of these rows
    dual_remainder = floats(dual_row_count)  # dual form: residuals after the step
    diagonal = floats(column_count)  # dual form and chains: damping plus squares of single-column rows
    # dual form and chains: negative gradient of single-column rows
    negative_single_column_gradient = floats(column_count)
    chain = float_records(ChainJoint, chain_joint_count)
    chain_sum = floats(6)  # sum of a vector over the joints of a chain
    chain_matrix = floats(6, 6)  # matrix P of a chain (`curvature.py`); also scratch memory
    row_combination = floats(row_count * max_block_rows)  # of each block, the row operations of its elimination
    multiplier = floats(row_count)  # Lagrange multipliers of the hard rows
    lagrangian_gradient = floats(column_count)  # gradient of half the soft cost plus multipliers times hard residuals
    negative_curvature = floats(column_count)  # a direction of negative curvature of the soft cost
    inverse_diagonal = floats(column_count)  # 1 / diagonal (chains: 1 / pivot); 0 for columns that do not move freely


open_problem = opener(ProblemTables)
