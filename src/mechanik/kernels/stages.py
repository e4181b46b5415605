"""Decisions of the descent in each stage: accept or reject a trial, leave a stationary point, end the stage.

Stage 0 closes the loops and satisfies the other constraints of the mechanism. Each further stage minimises the
residuals of the required or of the soft objectives of one level; the residuals of all earlier stages are then hard
constraints. The cost of a stage is the sum of squares of its residuals. In general, a trial is accepted if it reduces
the cost and satisfies the hard constraints within tolerance. A linear step violates nonlinear constraints at second
order; Newton steps on the hard residuals correct the trial before its cost is compared. Perturbations, tentative steps
(MAX_TENTATIVE_STEPS) and Newton steps from an infeasible x may increase the cost.

If the Gauss-Newton model predicts that a step reduces the cost only a little, second derivatives are estimated
(`curvature.py`). They distinguish a local minimum, at which the stage ends, from a saddle or a maximum (for example a
dead point, or a straight arm with a target on its line, nearer than its tip). A saddle or a maximum is left by a step
along a direction of negative curvature.

`state`, `options` and `report` are views of these tables (`state_layout.py`); indices such as `b` and `v` are explained
in `problem_layout.py`.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import BOUND_DISTANCE, CURVATURE_UNKNOWN, SLOW_COST_RATIO
from .compiler import subroutine
from .curvature import MAX_PROBED_COLUMNS, count_free_columns, reset_curvature
from .damped_least_squares import expand_step
from .linear_systems import PIVOT_TOLERANCE
from .problem_layout import *
from .state_layout import *

ROUNDING_COST_RATIO, ROUNDING_GRADIENT_RATIO = 2e-15, 5e-7
"""A predicted decrease below ROUNDING_COST_RATIO times the cost may be a rounding error, and so may a gradient below
ROUNDING_GRADIENT_RATIO times the square root of the cost."""
MIN_GRADIENT_RATIO, FINAL_GRADIENT_RATIO = 0.01, 10.0
"""If all second derivatives are known, one step is expected to multiply the gradient by at least MIN_GRADIENT_RATIO. A
step is the last step of the stage if the expected gradient is below FINAL_GRADIENT_RATIO times the gradient tolerance.
A larger FINAL_GRADIENT_RATIO saves steps but ends farther from the minimum."""
MAX_CLOSURE_PERTURBATIONS, CLOSURE_PERTURBATION_SIZE, SLOW_CLOSURE_COST_RATIO = 12.0, 0.8, 0.8
"""For loops that do not close: the largest number of perturbations; their size, in units of a column (rad, or length
units of the mechanism); and the limit of the cost, as a ratio to the cost three steps earlier, above which progress is
too slow. More perturbations close more loops but take longer. Tuned on a delta robot from uniformly distributed starts.
"""
MAX_NEGATIVE_CURVATURE_STEP, MAX_NEGATIVE_CURVATURE_DAMPING = 0.5, 1e3
"""Longest step along a direction of negative curvature, in units of a column (rad, or length units of the mechanism),
and the relative damping from which on no such step is tried. Each rejected step multiplies the relative damping by 8,
so a larger limit tries shorter steps."""
OUTDATED_CURVATURE_STEP_RATIO = 0.6
"""If a step is longer than this ratio times the previous step, the second derivatives are out of date and are sampled
again. A smaller ratio samples more often; then fewer steps are needed."""


@subroutine
def copy_x(ints, floats, x, out):
    """Copy the variables from the offset `x` to the offset `out`."""
    for k in range(ints[N_X]):
        floats[out + k] = floats[x + k]


@subroutine
def can_use_curvature(ints, stage):
    """Whether second derivatives speed up a stage: for a chain, or if a matrix over all columns is small enough.

    They do not speed up soft objectives in dual form, such as the rest pose of a long arm: it needs as many steps with
    second derivatives as without, and each step takes fifteen times as long.
    """
    stage_table = ints[AT_STAGES] + STAGE_INTS * stage
    return ints[stage_table + CHAIN_BLOCK] >= 0 or (
        ints[N_SQUARE] > 0 and (ints[stage_table + USES_DUAL_FORM] == 0 or ints[stage_table + IS_SOFT_OBJECTIVE] == 0)
    )


@subroutine
def can_probe(ints, state, options, stage):
    """Whether second derivatives of a stage can be probed (estimated by finite differences).

    They are not probed for residuals written in Python (too slow), for chains (known exactly), for clipped errors, or
    with a fixed damping. They are not probed in the stages after an unmet level either: an unmet level is held by its
    sum of squares, whose curvature is not part of the Lagrangian of the residuals.
    """
    stage_table = ints[AT_STAGES] + STAGE_INTS * stage
    if 0.0 < state[FIRST_UNMET_STAGE] < stage:
        return False
    is_restricted = options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf or options[FIXED_DAMPING] > 0.0
    return ints[N_SQUARE] > 0 and ints[stage_table + CHAIN_BLOCK] < 0 and ints[N_FUNCTIONS] == 0 and not is_restricted


@subroutine
def can_probe_early(ints, state, options):
    """Whether second derivatives, which are not used yet, can be probed as soon as the model predicts slow progress.

    They are not probed early for soft objectives, in stage 0, at an infeasible x, or if the attempt may be abandoned.
    """
    stage = int(state[STAGE])
    is_soft_objective = ints[ints[AT_STAGES] + STAGE_INTS * stage + IS_SOFT_OBJECTIVE] == 1
    is_early = state[USES_CURVATURE] == 0.0 and state[IS_FEASIBLE] == 1.0 and state[MAY_ABANDON] == 0.0 and stage > 0
    return is_early and not is_soft_objective and can_probe(ints, state, options, stage)


@subroutine
def enable_curvature(ints, floats, state):
    """Use second derivatives from now on, beginning with none known."""
    state[USES_CURVATURE] = 1.0
    reset_curvature(ints, floats)


@subroutine
def largest_column_step(ints, floats, step):
    """Return the largest absolute step of a column, in units of the column; `step` is an offset in `floats`."""
    largest_step = 0.0
    for v in range(ints[N_COLUMNS]):
        largest_step = max(largest_step, abs(floats[step + v]))
    return largest_step


@subroutine
def remaining_gradient(ints, floats):
    """Return the largest absolute model gradient after the step, over the free independent columns."""
    largest_gradient, independent_index = 0.0, 0
    for k in range(ints[N_COLUMNS]):
        if ints[ints[AT_PIVOT_ROW] + ints[ints[AT_ELIMINATION_ORDER] + k]] < 0:
            if ints[ints[AT_BOUND_STATE] + ints[ints[AT_ELIMINATION_ORDER] + k]] == FREE:
                largest_gradient = max(largest_gradient, abs(floats[ints[AT_MODEL_GRADIENT] + independent_index]))
            independent_index += 1
    return largest_gradient


@subroutine
def reaches_bound(ints, floats):
    """Whether the step ends on a bound that x is not on; then bounds have made it shorter than the model wants."""
    x, step, scale, column_x = ints[AT_X], ints[AT_STEP], ints[AT_SCALE], ints[AT_COLUMN_X]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if k >= 0 and ints[ints[AT_BOUND_STATE] + v] != LOCKED:
            low, high = floats[ints[AT_LOWER] + v] + BOUND_DISTANCE, floats[ints[AT_UPPER] + v] - BOUND_DISTANCE
            value, next_value = floats[x + k], floats[x + k] + floats[scale + v] * floats[step + v]
            if (value > low and next_value <= low) or (value < high and next_value >= high):
                return True
    return False


@subroutine
def is_progress_small(ints, floats, state, options, predicted_change):
    """Whether the decrease of the cost that is still to be expected is within PROGRESS_TOLERANCE.

    Near a minimum the decreases of successive steps form about a geometric series. Its ratio is estimated from the last
    actual decrease and the next predicted decrease, so that slow convergence does not end too early. A step that is
    short because of its damping or of a bound tells nothing.
    """
    last_decrease, next_decrease = state[COST_BEFORE_1] - state[COST], -predicted_change
    tolerated_decrease = options[PROGRESS_TOLERANCE] * state[COST]
    return (
        state[STAGE] > 0.0
        and state[RELATIVE_DAMPING] <= options[START_DAMPING]
        and 0.0 < next_decrease < last_decrease < np.inf
        and next_decrease * last_decrease <= tolerated_decrease * (last_decrease - next_decrease)
        and not reaches_bound(ints, floats)
    )


@subroutine
def decide_step(ints, floats, state, options, report, cost, predicted_change, max_gradient, curvature):
    """Decide what to do with a computed step: try it, compute it again, leave a stationary point, or end the stage.

    Args:
        cost, predicted_change, max_gradient, curvature: results of `bounded_step`.

    Returns:
        NEXT_STEP: try the step. NEXT_RETRY: compute the step again, with new second derivatives. NEXT_EVALUATION: the
        step is a perturbation. NEXT_STAGE: the stage has ended.
    """
    stages, step = ints[AT_STAGES], ints[AT_STEP]
    if options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf:
        cost = state[COST]  # the argument `cost` is that of the clipped errors
    curvature_is_positive = PIVOT_TOLERANCE < curvature <= 1.0  # otherwise unknown, close to zero or negative
    state[REFERENCE_COST] = 0.0
    if state[TENTATIVE_STEPS] > 0.0:
        state[COST] = cost
    elif state[IS_FEASIBLE] == 1.0 and curvature != CURVATURE_UNKNOWN:
        state[REFERENCE_COST] = cost  # that of x if it satisfied the hard constraints exactly
    state[PREDICTED_COST], state[MAX_GRADIENT] = cost + predicted_change, max_gradient
    state[CURVATURE_IS_POSITIVE], state[IS_LAST_STEP] = 1.0 if curvature_is_positive else 0.0, 0.0
    if curvature_is_positive:  # the gradient decreases by about the same ratio as the length of the steps
        step_length, closure_length = (
            largest_column_step(ints, floats, ints[AT_STEP]),
            largest_column_step(ints, floats, ints[AT_OFFSET]),
        )
        shrink_ratio = (
            min(max(step_length / state[LAST_STEP_LENGTH], MIN_GRADIENT_RATIO), 1.0)
            if state[LAST_STEP_LENGTH] < np.inf
            else 1.0
        )
        expected_gradient = max(
            max_gradient * shrink_ratio, remaining_gradient(ints, floats), step_length * step_length, closure_length
        )
        # with larger damping, the steps are short because of the damping
        may_be_last_step = state[RELATIVE_DAMPING] <= options[START_DAMPING] and state[STAGE] > 0.0
        may_be_last_step &= options[MAX_PERTURBATIONS] <= 1.0  # otherwise another descent follows
        if may_be_last_step and expected_gradient < FINAL_GRADIENT_RATIO * options[GRADIENT_TOLERANCE] * math.sqrt(
            state[COST]
        ):
            state[IS_LAST_STEP] = 1.0
        elif step_length > OUTDATED_CURVATURE_STEP_RATIO * state[LAST_STEP_LENGTH] and state[CURVATURE_IS_NEW] == 0.0:
            # the second derivatives were sampled too far from x
            state[LAST_STEP_LENGTH] = np.inf
            reset_curvature(ints, floats)
            return NEXT_RETRY
        state[LAST_STEP_LENGTH] = max(step_length, 1e-300)
    if state[IS_FEASIBLE] == 0.0:
        return NEXT_STEP
    is_soft_objective, may_probe = (
        ints[stages + STAGE_INTS * int(state[STAGE]) + IS_SOFT_OBJECTIVE] == 1,
        can_probe(ints, state, options, int(state[STAGE])),
    )
    has_small_progress = is_progress_small(ints, floats, state, options, predicted_change)
    if (
        not has_small_progress
        and state[PREDICTED_COST] > SLOW_COST_RATIO * state[COST]
        and can_probe_early(ints, state, options)
        and count_free_columns(ints) <= MAX_PROBED_COLUMNS
    ):
        enable_curvature(ints, floats, state)
        return NEXT_RETRY
    # a small gradient counts as zero if the predicted decrease is below the rounding error of the cost
    is_rounding_error = -predicted_change < ROUNDING_COST_RATIO * state[
        COST
    ] and max_gradient < ROUNDING_GRADIENT_RATIO * math.sqrt(state[COST])
    may_perturb_closures = (
        state[STAGE] == 0.0
        and state[MAY_ABANDON] == 0.0
        and options[PERTURBATION_SIZE] > 0.0
        and state[PERTURBATIONS] < MAX_CLOSURE_PERTURBATIONS
    )
    is_closing_slowly = may_perturb_closures and state[COST] > SLOW_CLOSURE_COST_RATIO * state[COST_BEFORE_3]
    if (
        max_gradient > options[GRADIENT_TOLERANCE] * math.sqrt(state[COST])
        and not is_rounding_error
        and not is_closing_slowly
        and not has_small_progress
    ):
        if options[STEP_TOLERANCE] == 0.0 or largest_column_step(ints, floats, step) >= options[STEP_TOLERANCE]:
            return NEXT_STEP
        state[FINAL_STATUS] = STALLED
        return NEXT_STAGE
    state[FINAL_STATUS] = CLOSEST
    if options[PERTURBATION_SIZE] == 0.0 or is_soft_objective:
        return NEXT_STAGE
    if (
        may_probe
        and curvature == CURVATURE_UNKNOWN
        and state[PROBE_REQUESTS] < 2.0
        and not is_closing_slowly
        and count_free_columns(ints) <= MAX_PROBED_COLUMNS
    ):
        state[PROBE_REQUESTS] += 1.0
        if state[USES_CURVATURE] == 0.0:
            enable_curvature(ints, floats, state)
        return NEXT_RETRY
    if has_small_progress and (curvature_is_positive or curvature == CURVATURE_UNKNOWN):
        return NEXT_STAGE
    if curvature < 0.0 and state[RELATIVE_DAMPING] < MAX_NEGATIVE_CURVATURE_DAMPING and not is_closing_slowly:
        write_negative_curvature_step(ints, floats, state, curvature, options[START_DAMPING])
        return NEXT_STEP
    max_perturbations, perturbation_size = options[MAX_PERTURBATIONS], options[PERTURBATION_SIZE]
    if may_perturb_closures:  # there is no feasible x that a large perturbation could leave
        max_perturbations, perturbation_size = (
            max(max_perturbations, MAX_CLOSURE_PERTURBATIONS),
            CLOSURE_PERTURBATION_SIZE if is_closing_slowly or state[PERTURBATIONS] > 0.0 else perturbation_size,
        )
    elif curvature_is_positive and max_perturbations <= 1.0:  # a minimum
        return NEXT_STAGE
    if state[PERTURBATIONS] < max_perturbations:
        write_perturbation(ints, floats, state, perturbation_size, options[START_DAMPING])
        return NEXT_EVALUATION
    return NEXT_STAGE


@subroutine
def write_negative_curvature_step(ints, floats, state, curvature, start_damping):
    """Write a step along the direction of negative curvature to `AT_STEP`, at a point with zero gradient.

    After a step of length s along the unit direction the residual is about e + k s^2 / 2, with e . k = curvature. If k
    is opposite to e, as at a dead point, the residual is zero at s = sqrt(2 |e|^2 / -curvature). Otherwise this step is
    too long. A rejected step is tried again, shorter and with the opposite sign.
    """
    length = min(math.sqrt(2.0 * state[COST] / -curvature), MAX_NEGATIVE_CURVATURE_STEP) * math.sqrt(
        min(1.0, start_damping / state[RELATIVE_DAMPING])
    )
    if int(state[ITERATIONS_IN_STAGE]) % 2 == 1:
        length = -length
    independent_count = ints[RUNTIME_ZERO]
    for v in range(ints[N_COLUMNS]):
        floats[ints[AT_OFFSET] + v] = 0.0
        if ints[ints[AT_PIVOT_ROW] + v] < 0:
            independent_count += 1
    for i in range(independent_count):
        floats[ints[AT_REDUCED_STEP] + i] = length * floats[ints[AT_NEGATIVE_CURVATURE] + i]
    expand_step(ints, floats, independent_count)
    state[PREDICTED_COST] = state[COST] + 0.5 * curvature * length * length


@subroutine
def write_perturbation(ints, floats, state, perturbation_size, start_damping):
    """Write a perturbation of all columns that are not locked to `AT_STEP`, to leave a stationary point.

    For example, a straight arm with a target on its line, nearer than its tip, has a zero gradient but is no minimum.
    If the previous perturbation has not reduced the cost, x is first restored to its value before that perturbation.
    """
    x, before_perturbation, step = ints[AT_X], ints[AT_BEFORE_PERTURBATION], ints[AT_STEP]
    if state[PERTURBATIONS] == 0.0 or state[COST] < state[COST_AT_PERTURBATION] * (1.0 - 1e-6):
        state[COST_AT_PERTURBATION] = state[COST]
        copy_x(ints, floats, x, before_perturbation)
    else:
        copy_x(ints, floats, before_perturbation, x)
    state[PERTURBATIONS] += 1.0
    state[RELATIVE_DAMPING], state[USES_CURVATURE], state[CURVATURE_IS_POSITIVE], state[PROBE_REQUESTS] = (
        start_damping,
        0.0,
        0.0,
        0.0,
    )
    state[COST_BEFORE_1], state[COST_BEFORE_2], state[COST_BEFORE_3] = np.inf, np.inf, np.inf
    for v in range(ints[N_COLUMNS]):
        is_locked = ints[ints[AT_BOUND_STATE] + v] == LOCKED
        floats[step + v] = (
            0.0
            if is_locked
            else perturbation_size * (1.0 if (v + int(state[PERTURBATIONS])) * 2654435761 & 4 else -0.7)
        )


MAX_DAMPING = 1e10
"""Relative damping (damping / cost) at which a stage ends."""
MAX_HELD_COST_EXCESS = 1e-8
"""Largest increase of the sum of squares of an unmet level, relative to its value, that counts as rounding error."""
MAX_STAGE_ROUNDS = 3
"""Largest number of repetitions of the stages from the first unmet level on. More repetitions may come closer to the
targets of unmet levels but take longer."""
UNMET_LEVEL_DAMPING = 1e4
"""Factor of the extra damping of a column that changes an unmet level: factor * error * absolute Jacobian entries. A
larger factor holds the unmet level better but slows down the levels below."""
MAX_INFEASIBLE_COST_RATIO, MAX_STEP_VIOLATION = 0.25, 1e-2
"""A step that reduces the cost below MAX_INFEASIBLE_COST_RATIO times the previous cost may violate the hard constraints
by less than MAX_STEP_VIOLATION (rad, or length units of the mechanism, weighted); the next step corrects the violation.
This saves Newton steps, but a larger violation makes the next step less accurate."""
MAX_TENTATIVE_STEPS = 3
"""Largest number of consecutive tentative steps. Such a step violates the hard constraints, by less than
MAX_STEP_VIOLATION; it is tried only if CURVATURE_IS_POSITIVE is 1. Tentative steps are accepted or rejected together,
by the cost after the hard constraints are satisfied again. More of them save Newton steps, but a rejection loses more.
"""
MAX_VIOLATION_GAIN_RATIO = 0.05
"""Largest share of the predicted decrease of the cost that may come from violated hard constraints. A smaller share
needs more Newton steps."""
CLOSED_TO_ROUNDING_RATIO, FINAL_CLOSURE_RATIO = 1e-5, 0.1
"""Ratios to the closure tolerance. A violation below CLOSED_TO_ROUNDING_RATIO is a rounding error. The last step closes
the loops to FINAL_CLOSURE_RATIO, so that they are within tolerance at the start of a following solve."""
MIN_PREDICTION_RATIO = 0.9
"""Second derivatives are sampled again if the decrease of the cost, divided by the predicted decrease, differs from 1
by more than 1 - MIN_PREDICTION_RATIO. A larger ratio samples more often."""
CLOSURE_STEPS_FOR_TRIAL, CLOSURE_STEPS_FOR_START = 8, 30
"""Largest number of Newton steps on the hard residuals, for a trial, and for the start of a stage or an infeasible x
that meets its goals. A trial that needs more steps is rejected."""
ABANDON_DAMPING, ABANDON_COST_RATIO = 1e3, 0.5
"""An attempt that may be abandoned ends if its relative damping is above ABANDON_DAMPING, or if its cost is above
ABANDON_COST_RATIO times its cost three accepted steps before. Smaller numbers abandon slow attempts earlier, but also
more attempts that would succeed. Tuned on random targets of a Panda and a UR5."""


@subroutine
def fit_slacks(ints, floats, x, buffer, hard_end, soft_end):
    """Set the slacks of the soft residuals to the values within their bands that minimise the residuals.

    Args:
        x: offset of the variables, which contain the slacks.
        buffer: the buffer (0 or 1) of the residuals, which are updated.
        hard_end, soft_end: the range of soft blocks.
    """
    blocks, block_columns, slack, weight = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK], ints[AT_WEIGHT]
    lower, upper, residual_table = ints[AT_LOWER], ints[AT_UPPER], ints[AT_RESIDUAL]
    residual = residual_table + ints[N_ROWS] * buffer
    for b in range(hard_end, soft_end):
        if ints[blocks + BLOCK_INTS * b + HAS_BANDS] == 1:
            for r in range(
                ints[blocks + BLOCK_INTS * b + FIRST_ROW],
                ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
            ):
                slack_x = ints[slack + 2 * r]
                if slack_x >= 0:
                    block_column = ints[slack + 2 * r + 1]
                    column = ints[block_columns + ints[blocks + BLOCK_INTS * b + FIRST_COLUMN] + block_column]
                    slack_value = min(
                        max(floats[x + slack_x] + floats[residual + r] / floats[weight + r], floats[lower + column]),
                        floats[upper + column],
                    )
                    floats[residual + r] -= floats[weight + r] * (slack_value - floats[x + slack_x])
                    floats[x + slack_x] = slack_value


@subroutine
def sum_of_squares(ints, floats, buffer, first_block, end_block):
    """Return the sum of squares of blocks `first_block` to `end_block` - 1, and whether all are within tolerance."""
    blocks, block_data, residual_table = ints[AT_BLOCKS], ints[AT_BLOCK_DATA], ints[AT_RESIDUAL]
    residual = residual_table + ints[N_ROWS] * buffer
    total, is_met = 0.0, True
    for b in range(first_block, end_block):
        block = blocks + BLOCK_INTS * b
        position_square, rotation_square = 0.0, 0.0
        mask, first_row = ints[block + ROW_MASK], ints[block + FIRST_ROW]
        position_row_count = 0  # see ROW_MASK
        for bit in range(3):
            position_row_count += (mask >> bit) & 1
        for r in range(ints[block + ROW_COUNT]):
            residual_square = floats[residual + first_row + r] * floats[residual + first_row + r]
            if r < position_row_count:
                position_square += residual_square
            else:
                rotation_square += residual_square
        total += position_square + rotation_square
        is_met &= (
            position_square <= floats[block_data + BLOCK_FLOATS * b + POSITION_TOLERANCE2]
            and rotation_square <= floats[block_data + BLOCK_FLOATS * b + ROTATION_TOLERANCE2]
        )
    return total, is_met


@subroutine
def constraint_violation(ints, floats, state, options, report, buffer, stage):
    """Return the largest violation of the hard constraints of a stage, in the units of the weighted residuals.

    With STAGE_ROWS_ARE_HELD, each residual of an earlier stage has to be zero. Otherwise its sum of squares may not
    increase: at the closest pose of an unmet level, some residuals do not change at first order, so they cannot be
    constrained one by one.
    """
    blocks, stages, residual_table = ints[AT_BLOCKS], ints[AT_STAGES], ints[AT_RESIDUAL]
    residual = residual_table + ints[N_ROWS] * buffer
    largest_violation = 0.0
    for held_stage in range(stage):
        first_block, end_block = (
            ints[stages + STAGE_INTS * held_stage + HARD_END],
            ints[stages + STAGE_INTS * held_stage + SOFT_END],
        )
        stage_report = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * held_stage
        if report[stage_report + STAGE_ROWS_ARE_HELD] == 1.0:
            for b in range(first_block, end_block):
                for r in range(
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW],
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
                ):
                    largest_violation = max(largest_violation, abs(floats[residual + r]))
        else:
            total = 0.0
            for b in range(first_block, end_block):
                for r in range(
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW],
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
                ):
                    total += floats[residual + r] * floats[residual + r]
            excess = total - report[stage_report + STAGE_COST] * (1.0 + MAX_HELD_COST_EXCESS)
            if excess > 0.0:
                largest_violation = max(largest_violation, math.sqrt(excess))
    return largest_violation


@subroutine
def hold_unmet_levels(ints, floats, state, options, report, stage):
    """Hold the residuals of unmet levels at their present values, and add damping to the columns that change them.

    At the closest pose some residuals change only at second order, which linear constraints do not prevent. The extra
    damping of a column is proportional to the error of the level and to the entries of the column in its Jacobian.
    """
    blocks, stages, block_columns, extra_damping = (
        ints[AT_BLOCKS],
        ints[AT_STAGES],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_EXTRA_DAMPING],
    )
    buffer = int(state[CURRENT_BUFFER])
    residual, J, held_residual = (
        ints[AT_RESIDUAL] + ints[N_ROWS] * buffer,
        ints[AT_JACOBIAN] + ints[N_JACOBIAN] * buffer,
        ints[AT_HELD_RESIDUAL],
    )
    for v in range(ints[N_COLUMNS]):
        floats[extra_damping + v] = 1.0
    for held_stage in range(1, stage):
        stage_report, stage_table = (
            FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * held_stage,
            stages + STAGE_INTS * held_stage,
        )
        if report[stage_report + STAGE_ROWS_ARE_HELD] == 0.0:
            error_norm = math.sqrt(report[stage_report + STAGE_COST])
            for b in range(ints[stage_table + HARD_END], ints[stage_table + SOFT_END]):
                block = blocks + BLOCK_INTS * b
                width, first_column, first_row = (
                    ints[block + COLUMN_COUNT],
                    ints[block + FIRST_COLUMN],
                    ints[block + FIRST_ROW],
                )
                for r in range(ints[block + ROW_COUNT]):
                    floats[held_residual + first_row + r] = floats[residual + first_row + r]
                    for u in range(width):
                        v = ints[block_columns + first_column + u]
                        floats[extra_damping + v] += (
                            UNMET_LEVEL_DAMPING
                            * error_norm
                            * abs(floats[J + ints[block + FIRST_JACOBIAN] + r * width + u])
                        )


@subroutine
def restore_last_feasible(ints, floats, state, options, report, status):
    """Make the last feasible x the trial, since Newton steps have not made x feasible; repeat the stage or end it."""
    trial, last_feasible = ints[AT_TRIAL], ints[AT_LAST_FEASIBLE]
    if (
        state[PHASE] == PHASE_CLOSING
        and state[ITERATIONS_IN_STAGE] == 0
        and state[STAGE] > 1
        and state[NO_INFEASIBLE_STEPS] < 2.0
    ):
        # the residuals of a met level cannot all be held at zero: hold the sum of squares of each level instead
        for held_stage in range(1, int(state[STAGE])):
            report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * held_stage + STAGE_ROWS_ARE_HELD] = 0.0
        state[NO_INFEASIBLE_STEPS], state[PHASE] = 2.0, PHASE_START
    elif state[PHASE] == PHASE_CLOSING and state[NO_INFEASIBLE_STEPS] == 0.0:
        state[NO_INFEASIBLE_STEPS], state[PHASE] = 1.0, PHASE_START  # as in `reject_trial`
    else:
        state[FINAL_STATUS], state[PHASE] = status, PHASE_FINAL
    copy_x(ints, floats, last_feasible, trial)
    return NEXT_EVALUATION


@subroutine
def end_stage(ints, floats, state, options, report, status, is_feasible):
    """End a stage with a status at x, if x is feasible (`is_feasible`); otherwise go back to the last feasible x."""
    state[FINAL_STATUS] = status
    if is_feasible:
        return NEXT_STAGE
    return restore_last_feasible(ints, floats, state, options, report, status)


@subroutine
def check_stage_limits(ints, floats, state, options, report, is_feasible):
    """Return NEXT_STEP, or end the stage if its iterations are used up or an attempt that may be abandoned is slow."""
    stages = ints[AT_STAGES]
    if state[ITERATIONS_IN_STAGE] >= options[MAX_ITERATIONS]:
        return end_stage(ints, floats, state, options, report, TIMEOUT, is_feasible)
    if state[MAY_ABANDON] == 1.0 and ints[stages + STAGE_INTS * int(state[STAGE]) + IS_SOFT_OBJECTIVE] == 0:
        is_slow = state[ITERATIONS_IN_STAGE] >= 3 and state[COST] > ABANDON_COST_RATIO * state[COST_BEFORE_3]
        if (
            is_slow
            or state[RELATIVE_DAMPING] > ABANDON_DAMPING
            or state[ITERATIONS_IN_STAGE] >= options[MAX_ITERATIONS_IN_STAGE]
        ):
            return end_stage(ints, floats, state, options, report, STALLED, is_feasible)
    return NEXT_STEP


@subroutine
def reject_trial(ints, floats, state, options, report):
    """Reject the trial: increase the damping, restore the last feasible x, or end the stage."""
    trial, last_feasible = ints[AT_TRIAL], ints[AT_LAST_FEASIBLE]
    if state[IS_FEASIBLE] == 0.0:
        # a feasible x may not reach the low cost of an infeasible x: accept no infeasible steps from now on
        state[NO_INFEASIBLE_STEPS], state[PHASE] = 1.0, PHASE_START
        state[TENTATIVE_STEPS], state[CURVATURE_IS_POSITIVE], state[IS_LAST_STEP] = 0.0, 0.0, 0.0
        copy_x(ints, floats, last_feasible, trial)
        return NEXT_EVALUATION
    is_stationary = state[MAX_GRADIENT] < ROUNDING_GRADIENT_RATIO * math.sqrt(state[COST])
    if state[IS_LAST_STEP] == 1.0 and is_stationary:
        state[FINAL_STATUS] = CLOSEST
        return NEXT_STAGE
    state[RELATIVE_DAMPING] = min(state[RELATIVE_DAMPING] * 8.0, MAX_DAMPING)
    if state[RELATIVE_DAMPING] >= MAX_DAMPING:
        return end_stage(
            ints, floats, state, options, report, CLOSEST if is_stationary else STALLED, state[IS_FEASIBLE] == 1.0
        )
    return check_stage_limits(ints, floats, state, options, report, state[IS_FEASIBLE] == 1.0)


@subroutine
def accept_or_reject_trial(ints, floats, state, options, report):
    """Accept the evaluated trial, request a Newton step on its hard residuals, or reject it.

    Returns:
        The next action: NEXT_STEP, NEXT_CLOSURE_STEP, NEXT_EVALUATION (of another trial) or NEXT_STAGE.
    """
    stages, x = ints[AT_STAGES], ints[AT_X]
    trial, last_feasible = ints[AT_TRIAL], ints[AT_LAST_FEASIBLE]
    stage, phase, current_buffer = int(state[STAGE]), int(state[PHASE]), int(state[CURRENT_BUFFER])
    hard_end, soft_end = ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]
    fit_slacks(ints, floats, trial, 1 - current_buffer, hard_end, soft_end)
    cost, is_met = sum_of_squares(ints, floats, 1 - current_buffer, hard_end, soft_end)
    violation = constraint_violation(ints, floats, state, options, report, 1 - current_buffer, stage)
    tolerance = options[CLOSURE_TOLERANCE]
    if (phase == PHASE_STEP or phase == PHASE_RESTORED) and state[IS_LAST_STEP] == 1.0:
        tolerance *= FINAL_CLOSURE_RATIO
    elif (phase == PHASE_STEP or phase == PHASE_RESTORED) and not 0.0 < state[FIRST_UNMET_STAGE] < stage:
        # a violation changes the cost, so a small predicted decrease needs a smaller violation
        tolerance = min(
            tolerance,
            max(
                MAX_VIOLATION_GAIN_RATIO * (state[COST] - state[PREDICTED_COST]) / math.sqrt(state[COST]),
                CLOSED_TO_ROUNDING_RATIO * tolerance,
            ),
        )
    is_feasible = violation <= tolerance or (
        phase == PHASE_RESTORED and state[CLOSURE_STEPS] > 1 and violation <= options[CLOSURE_TOLERANCE]
    )

    is_tentative = (
        phase == PHASE_STEP
        and not is_feasible
        and state[CURVATURE_IS_POSITIVE] == 1.0
        and state[IS_LAST_STEP] == 0.0
        and state[TENTATIVE_STEPS] < MAX_TENTATIVE_STEPS
    )
    may_be_infeasible = (
        state[NO_INFEASIBLE_STEPS] == 0.0
        and violation < MAX_STEP_VIOLATION
        and (cost < MAX_INFEASIBLE_COST_RATIO * state[COST] or is_tentative)
    )
    is_tentative &= may_be_infeasible
    if phase == PHASE_STEP and not is_feasible and not may_be_infeasible:
        state[PHASE], state[CLOSURE_STEPS], state[LAST_VIOLATION] = PHASE_RESTORED, 1, violation
        return NEXT_CLOSURE_STEP
    if (phase == PHASE_RESTORED or phase == PHASE_CLOSING) and not is_feasible:
        max_steps = CLOSURE_STEPS_FOR_TRIAL if phase == PHASE_RESTORED else CLOSURE_STEPS_FOR_START
        if (
            state[CLOSURE_STEPS] < max_steps
            and violation < 1e3
            and not (state[CLOSURE_STEPS] > 3 and violation > 0.9 * state[LAST_VIOLATION])
        ):
            state[CLOSURE_STEPS] += 1
            state[LAST_VIOLATION] = violation
            return NEXT_CLOSURE_STEP
        if phase == PHASE_CLOSING:
            return restore_last_feasible(ints, floats, state, options, report, STALLED)
        return reject_trial(ints, floats, state, options, report)
    previous_cost = max(state[COST], state[REFERENCE_COST]) if state[TENTATIVE_STEPS] == 0.0 else state[FEASIBLE_COST]
    if (phase == PHASE_STEP or phase == PHASE_RESTORED) and not cost < previous_cost and not is_tentative:
        return reject_trial(ints, floats, state, options, report)

    # the trial is accepted
    if phase == PHASE_STEP or phase == PHASE_RESTORED:
        is_comparable = not is_tentative and state[TENTATIVE_STEPS] == 0.0
        # Levenberg-Marquardt: the gain ratio is the decrease of the cost divided by its prediction; after a good
        # prediction the damping is divided by 5, after a bad prediction it is multiplied by 4, after a rejected trial
        # by 8
        gain_ratio = (
            (previous_cost - cost) / max(previous_cost - state[PREDICTED_COST], 1e-300) if is_comparable else 1.0
        )
        if options[FIXED_DAMPING] > 0.0:
            state[RELATIVE_DAMPING] = options[START_DAMPING]
        elif gain_ratio > 0.75:
            state[RELATIVE_DAMPING] = max(state[RELATIVE_DAMPING] * 0.2, 1e-8)
        elif gain_ratio < 0.25:
            state[RELATIVE_DAMPING] = min(state[RELATIVE_DAMPING] * 4.0, MAX_DAMPING)
        state[COST_BEFORE_3], state[COST_BEFORE_2], state[COST_BEFORE_1] = (
            state[COST_BEFORE_2],
            state[COST_BEFORE_1],
            state[COST],
        )
        state[HAS_MOVED] = 1.0 if is_comparable else 0.0
        state[TENTATIVE_STEPS] = state[TENTATIVE_STEPS] + 1.0 if is_tentative else 0.0
        if 0 < state[FIRST_UNMET_STAGE] < stage:
            state[HAS_MOVED_BELOW] = 1.0
        if (
            state[USES_CURVATURE] == 0.0
            and cost > SLOW_COST_RATIO * state[COST_BEFORE_3]
            and can_use_curvature(ints, stage)
        ):
            enable_curvature(ints, floats, state)
        elif (
            state[USES_CURVATURE] == 1.0
            and abs(gain_ratio - 1.0) > 1.0 - MIN_PREDICTION_RATIO
            and state[IS_LAST_STEP] == 0.0
            and can_probe(ints, state, options, stage)
        ):
            reset_curvature(ints, floats)
    copy_x(ints, floats, trial, x)
    state[PROBE_REQUESTS], state[CURVATURE_IS_NEW] = 0.0, 0.0
    state[COST], state[CURRENT_BUFFER], state[IS_FEASIBLE], state[POSES_ARE_CURRENT] = (
        cost,
        1 - current_buffer,
        1.0 if is_feasible else 0.0,
        1.0,
    )
    if is_feasible or (phase == PHASE_START and state[ITERATIONS_IN_STAGE] == 0):
        copy_x(ints, floats, x, last_feasible)
        state[FEASIBLE_COST] = cost
    if phase == PHASE_START:
        hold_unmet_levels(ints, floats, state, options, report, stage)
    if phase == PHASE_FINAL:
        return NEXT_STAGE
    if not is_feasible and (phase == PHASE_START or is_met):
        state[CURRENT_BUFFER] = current_buffer  # the Newton steps start at the trial, which has the other buffer
        state[PHASE], state[CLOSURE_STEPS], state[LAST_VIOLATION] = PHASE_CLOSING, 1, violation
        return NEXT_CLOSURE_STEP
    if is_met:
        state[FINAL_STATUS] = CONVERGED
        return NEXT_STAGE
    if is_feasible and state[IS_LAST_STEP] == 1.0:
        state[FINAL_STATUS] = CLOSEST
        return NEXT_STAGE
    return check_stage_limits(ints, floats, state, options, report, is_feasible)


@subroutine
def begin_stage(ints, floats, state, options, report, stage):
    """Reset the state for a stage; its first trial is x."""
    x, trial = ints[AT_X], ints[AT_TRIAL]
    state[STAGE], state[PHASE], state[RELATIVE_DAMPING], state[COST] = (
        stage,
        PHASE_START,
        options[START_DAMPING],
        np.inf,
    )
    state[PERTURBATIONS], state[MAX_GRADIENT], state[USES_CURVATURE], state[HAS_MOVED], state[NO_INFEASIBLE_STEPS] = (
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    )
    state[COST_BEFORE_1], state[COST_BEFORE_2], state[COST_BEFORE_3] = np.inf, np.inf, np.inf
    (
        state[PROBE_REQUESTS],
        state[CURVATURE_IS_POSITIVE],
        state[IS_LAST_STEP],
        state[TENTATIVE_STEPS],
        state[LAST_STEP_LENGTH],
        state[REFERENCE_COST],
    ) = 0.0, 0.0, 0.0, 0.0, np.inf, 0.0
    copy_x(ints, floats, x, trial)


@subroutine
def advance_stage(ints, floats, state, options, report):
    """Write the report of the ended stage and begin the next stage; return False if the attempt ends.

    If the last perturbation has not reduced the cost, the stage is instead evaluated once more at the x before this
    perturbation. After the last stage, the stages from the first unmet level on may be repeated.
    """
    blocks, stages = ints[AT_BLOCKS], ints[AT_STAGES]
    residual_table, held_residual, trial, before_perturbation = (
        ints[AT_RESIDUAL],
        ints[AT_HELD_RESIDUAL],
        ints[AT_TRIAL],
        ints[AT_BEFORE_PERTURBATION],
    )
    stage = int(state[STAGE])
    status = state[FINAL_STATUS]
    # -1 perturbations: x is restored only once
    if state[PERTURBATIONS] >= 1.0 and status != CONVERGED and state[COST] > state[COST_AT_PERTURBATION] * (1.0 - 1e-6):
        state[PERTURBATIONS], state[PHASE], state[FINAL_STATUS] = -1.0, PHASE_FINAL, CLOSEST
        copy_x(ints, floats, before_perturbation, trial)
        return True
    residual = residual_table + ints[N_ROWS] * int(state[CURRENT_BUFFER])
    stage_report = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * stage
    report[stage_report + STAGE_STATUS], report[stage_report + STAGE_COST] = status, state[COST]
    report[stage_report + STAGE_MAX_GRADIENT], report[stage_report + STAGE_ITERATIONS] = (
        state[MAX_GRADIENT],
        state[ITERATIONS_IN_STAGE],
    )
    report[stage_report + STAGE_ROWS_ARE_HELD] = 1.0 if status == CONVERGED else 0.0
    for b in range(ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]):
        for r in range(
            ints[blocks + BLOCK_INTS * b + FIRST_ROW],
            ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
        ):
            floats[held_residual + r] = 0.0 if status == CONVERGED else floats[residual + r]
    is_unmet = status != CONVERGED and ints[stages + STAGE_INTS * stage + IS_SOFT_OBJECTIVE] == 0
    if is_unmet and state[FIRST_UNMET_STAGE] == 0.0:
        state[FIRST_UNMET_STAGE] = stage
    is_last = stage + 1 == ints[N_STAGES] or (
        state[STAGE_ROUND] == MAX_STAGE_ROUNDS and stage == state[FIRST_UNMET_STAGE]
    )
    if (
        is_last
        and state[HAS_MOVED_BELOW] == 1.0
        and state[MAY_ABANDON] == 0.0
        and state[STAGE_ROUND] < MAX_STAGE_ROUNDS
    ):
        # lower levels have moved x, and from there the unmet level may come closer to its target
        state[STAGE_ROUND] += 1.0
        state[HAS_MOVED_BELOW], state[ITERATIONS_IN_STAGE] = 0.0, 0.0
        begin_stage(ints, floats, state, options, report, state[FIRST_UNMET_STAGE])
        return True
    if is_last or (is_unmet and (stage == 0 or state[MAY_ABANDON] == 1.0)):
        return False
    begin_stage(ints, floats, state, options, report, stage + 1.0)
    if stage == 0 and state[ITERATIONS_IN_STAGE] == 0:  # stage 1 was evaluated together with stage 0, at the same x
        state[CURRENT_BUFFER] = 1 - state[CURRENT_BUFFER]
        state[IS_EVALUATED] = 1.0
    state[ITERATIONS_IN_STAGE] = 0
    return True
