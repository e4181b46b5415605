"""Memory layout of the tracking kernel: options, limits and state of the columns and rows, and its work arrays.

`TrackingTables` declares all tables (see `tables.py`). The problem itself, with its blocks and residuals, is in the
tables of `problem_layout.py`.

A rate is a derivative by time: of a column (its velocity), of a residual or of a distance. Columns are in rad or in
length units of the mechanism; those of slack variables are not among the columns of the tracker. A column is coupled if
loops or joint constraints couple it to others. A dependent column follows from the independent ones, since loops are
closed (`tracking_step.py`). A band is an interval of residual values that count as zero.

The extra rows are further linear functions of the velocities, whose rates are bounded: first the distances of collision
pairs, then hard rows with bands, then soft rows with bands of levels that are solved.
"""

from __future__ import annotations

from ..tables import Record, Size, Tables, flag, float_record, floats, ints, number, opener

# result of a step
STEP_MOVED, STEP_BRAKED, STEP_STOPPED = range(3)
"""STEP_MOVED: the step is within all limits. STEP_BRAKED: the acceleration limits are exceeded, because loops or bounds
on several columns leave no velocity within all limits. STEP_STOPPED: the mechanism stops, because no feasible
velocity is found, even without the acceleration limits."""

# the limit that bounds a column's velocity; negative for the lower bound
NOT_LIMITED, LIMITED_BY_ACCELERATION, LIMITED_BY_VELOCITY, LIMITED_BY_POSITION = range(4)


class TrackingOptions(Record):
    """Options of the steps.

    Attributes:
        time_step: s.
        limit_approach_rate: largest rate of coupled columns and bands towards a limit, as a share of the remaining
            distance (1/s), infinite if unlimited.
        singularity_damping: damping at a singularity, in units of residual over columns.
        singularity_distance: distance from a singularity below which damping starts, in units of residual over columns.
        follows_target_velocity: whether the velocity of moving targets is followed.
        hard_residual_tolerance: hard residual below which the loops count as closed.
        is_too_near: whether a pair of bodies is too near; then the limits have priority over the separation of the
            pair.
    """

    time_step = number()
    limit_approach_rate = number()
    singularity_damping = number()
    singularity_distance = number()
    follows_target_velocity = flag()
    hard_residual_tolerance = number()
    is_too_near = flag()


class TrackingTables(Tables):
    """All tables of a tracker, besides those of its problem.

    `column_count` is the number of columns without those of slack variables, `row_count` and `stage_count` are those of
    the problem, `pair_count` is the largest number of collision pairs.
    """

    column_count = Size()
    row_count = Size()
    stage_count = Size()
    pair_count = Size()

    is_coupled = ints(column_count)
    limit_code = ints(column_count)  # written: the limit that bounds each column's velocity, see NOT_LIMITED
    target_has_jumped = ints(stage_count)  # 1 if the last motion of the targets of a stage was a jump
    # the tables below are workspace
    row_of_pivot = ints(row_count)  # of each pivot of the hard rows, in order
    column_of_pivot = ints(row_count)
    pivot_of_column = ints(column_count)  # -1 for independent columns
    best_column = ints(row_count)  # of each hard row, the column of `best_pivot`; -1 if none, -2 for rows with a pivot
    is_limited = ints(column_count)  # 1 if a column must not become dependent yet
    is_active = ints(row_count)  # of each row of a level, 1 if it is active, 0 if it is inside its band
    active_bound = ints(column_count)  # indices of the active bounds of a quadratic program
    is_too_slow = ints(pair_count)  # 1 if the distance of a pair grows too slowly
    # of each column, the stage of the first level that depends on it (`upper_levels.py`); 0 if only the lowest level or
    # none does
    first_level = ints(column_count)

    options = float_record(TrackingOptions)
    # limits of columns: units of the column per s and per s^2, infinite if unlimited; values in rad or m
    max_velocity = floats(column_count)
    max_acceleration = floats(column_count)
    value_min = floats(column_count)
    value_max = floats(column_count)
    gain = floats(row_count)  # 1/s
    # state between steps
    rate = floats(column_count)  # the present velocity
    # of dependent columns, the velocity that is added to the linear step to close the loops; of the previous step first
    curvature_rate = floats(column_count)
    previous_residual = floats(row_count)  # for the previous targets
    row_curvature = floats(row_count)  # part of a residual's change in the last step that is not linear in the step
    target_motion = floats(stage_count, column_count)  # previous motion of the targets, as velocities of the columns
    # bounds of the next velocity, first with and then without the acceleration limits
    rate_min = floats(column_count)
    rate_max = floats(column_count)
    rate_min_without_acceleration = floats(column_count)
    rate_max_without_acceleration = floats(column_count)
    # bounds of a column's rate for the levels below `first_level` (`upper_levels.py`)
    shared_rate_min = floats(column_count)
    shared_rate_max = floats(column_count)
    extra_rows = floats(row_count + pair_count, column_count)
    extra_rate_min = floats(row_count + pair_count)  # of pairs, computed from the rates below
    extra_rate_max = floats(row_count + pair_count)
    desired_distance_rate = floats(pair_count)  # of the distance of each pair, m/s
    min_distance_rate = floats(pair_count)  # smallest allowed rate if the desired rate is infeasible, m/s
    # the tables below are workspace; d is the number of free velocities, the columns of a basis
    start_rate = floats(column_count)  # velocity before the step
    next_rate = floats(column_count)  # velocity of the step
    linear_rate = floats(column_count)  # velocity of the step without `curvature_rate`
    planned_rate = floats(column_count)  # velocity of the step before the loops were closed
    candidate_rate = floats(column_count)  # velocity within the limits, but an upper level does not keep its residual
    separation_rate = floats(column_count)  # velocity that separates the pairs that are too near
    rate_change = floats(column_count)  # change that the curvature of rows and loops needs in the next step
    hard_jacobian = floats(row_count, column_count)  # M, then its triangular form
    hard_residual = floats(row_count)
    row_operations = floats(row_count, row_count)  # multiples of pivot rows that were subtracted from each hard row
    best_pivot = floats(row_count)  # of each hard row, the largest entry among the columns that may become dependent
    closure_step = floats(column_count)
    loop_basis = floats(column_count, column_count)  # (n, d) of the velocities that keep the loops closed
    basis = floats(column_count, column_count)  # (n, d) of the velocities that do not disturb the levels above
    level_jacobian = floats(row_count, column_count)  # (m, n) of the rows of a level
    error = floats(row_count)  # of the rows of a level, for the present targets
    past_error = floats(row_count)  # for the previous targets
    band_lower = floats(row_count)  # ends of the band of each row of a level; 0 without a band
    band_upper = floats(row_count)
    desired_rate = floats(row_count)  # of the rows of a level
    # (m, d) of the rows of a level, or of the distances of pairs, over the basis
    jacobian_over_basis = floats(row_count + pair_count, column_count)
    distance_offset = floats(pair_count)  # rates of the distances of pairs at the velocities of the levels above
    gram = floats(column_count, column_count)  # of the rows of a level; for the separation of pairs B'B
    gram_factor = floats(column_count, column_count)
    reflected_rows = floats(row_count, column_count)  # of a level, by the Householder reflections of the basis
    scratch = floats(column_count)
    # quadratic program over y (d,), see `level_qp.py`
    y = floats(column_count)
    y_goal = floats(column_count)  # part of y that reduces the errors
    y_target = floats(column_count)  # part of y that follows the motion of the targets
    hessian = floats(column_count, column_count)  # H = L L'
    factor = floats(column_count, column_count)  # L
    bound_normals = floats(column_count + row_count + pair_count, column_count)  # of the columns, then of extra rows
    lower = floats(column_count + row_count + pair_count)
    upper = floats(column_count + row_count + pair_count)
    qp_J = floats(column_count, column_count)  # J and R factor the normals of the active bounds
    qp_R = floats(column_count, column_count)
    multiplier = floats(column_count + 1)  # of the active bounds, then of the bound that is being added
    multiplier_step = floats(column_count)
    rotated_normal = floats(column_count)  # w = J' normal
    direction = floats(column_count)  # primal step direction


open_tracking = opener(TrackingTables)
