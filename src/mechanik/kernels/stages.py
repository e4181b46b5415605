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

Indices such as `b` and `v` are explained in `problem_layout.py`, the fields of the state in `state_layout.py`.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import BOUND_DISTANCE, CURVATURE_UNKNOWN, SLOW_COST_RATIO
from .compiler import subroutine
from .curvature import MAX_PROBED_COLUMNS, count_free_columns, reset_curvature
from .damped_least_squares import expand_step
from .elimination import count_independent_columns
from .linear_systems import PIVOT_TOLERANCE
from .problem_layout import *
from .problem_views import columns_of_block, count_position_rows, jacobian_of_block, rows_of_block
from .state_layout import *

ROUNDING_COST_RATIO, ROUNDING_GRADIENT_RATIO = 2e-15, 5e-7
"""A predicted decrease below ROUNDING_COST_RATIO times the cost may be a rounding error, and so may a gradient below
ROUNDING_GRADIENT_RATIO times the square root of the cost."""
MIN_GRADIENT_RATIO, FINAL_GRADIENT_RATIO = 0.01, 3.0
"""If all second derivatives are known, one step is expected to multiply the gradient by at least MIN_GRADIENT_RATIO. A
step is the last step of the stage if the expected gradient is below FINAL_GRADIENT_RATIO times the gradient tolerance.
A larger FINAL_GRADIENT_RATIO saves steps but ends farther from the minimum: with 10, random arms take 0.1 % fewer
iterations, and the largest gradients at their closest configurations are 13 times as large."""
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
def copy_x(problem, x, out):
    """Copy the variables `x`, (x,), to `out`."""
    for k in range(problem.x_count):
        out[k] = x[k]


@subroutine
def can_use_curvature(problem, stage):
    """Whether second derivatives speed up a stage: for a chain, or if a matrix over all columns is small enough.

    They do not speed up soft objectives in dual form, such as the rest pose of a long arm: it needs as many steps with
    second derivatives as without, and each step takes fifteen times as long.
    """
    this_stage = problem.stages[stage]
    return this_stage.chain_block >= 0 or (
        problem.square_size > 0 and (not this_stage.uses_dual_form or not this_stage.is_soft_objective)
    )


@subroutine
def can_probe(problem, stage):
    """Whether second derivatives of a stage can be probed (estimated by finite differences).

    They are not probed for residuals written in Python (too slow), for chains (known exactly), for clipped errors, or
    with a fixed damping. They are not probed in the stages after an unmet level either: an unmet level is held by its
    sum of squares, whose curvature is not part of the Lagrangian of the residuals.
    """
    state, options = problem.state, problem.options
    if 0 < state.first_unmet_stage < stage:
        return False
    is_restricted = options.max_error < np.inf or options.max_angle_error < np.inf or options.fixed_damping > 0.0
    is_chain = problem.stages[stage].chain_block >= 0
    return problem.square_size > 0 and not is_chain and problem.function_count == 0 and not is_restricted


@subroutine
def can_probe_early(problem):
    """Whether second derivatives, which are not used yet, can be probed as soon as the model predicts slow progress.

    They are not probed early for soft objectives, in stage 0, at an infeasible x, or if the attempt may be abandoned.
    """
    state = problem.state
    stage = state.stage
    is_soft_objective = problem.stages[stage].is_soft_objective
    is_early = not state.uses_curvature and state.is_feasible and not state.may_abandon and stage > 0
    return is_early and not is_soft_objective and can_probe(problem, stage)


@subroutine
def enable_curvature(problem):
    """Use second derivatives from now on, beginning with none known."""
    state = problem.state
    state.uses_curvature = True
    reset_curvature(problem)


@subroutine
def largest_column_step(problem, step):
    """Return the largest absolute step of a column, in units of the column."""
    largest_step = 0.0
    for v in range(problem.column_count):
        largest_step = max(largest_step, abs(step[v]))
    return largest_step


@subroutine
def remaining_gradient(problem):
    """Return the largest absolute model gradient after the step, over the free independent columns."""
    largest_gradient = 0.0
    for i in range(count_independent_columns(problem)):
        if problem.bound_state[problem.independent_column[i]] == FREE:
            largest_gradient = max(largest_gradient, abs(problem.model_gradient[i]))
    return largest_gradient


@subroutine
def reaches_bound(problem):
    """Whether the step ends on a bound that x is not on; then bounds have made it shorter than the model wants."""
    for v in range(problem.column_count):
        k = problem.column_x[v]
        if k >= 0 and problem.bound_state[v] != LOCKED:
            low, high = problem.lower[v] + BOUND_DISTANCE, problem.upper[v] - BOUND_DISTANCE
            value, next_value = problem.x[k], problem.x[k] + problem.scale[v] * problem.step[v]
            if (value > low and next_value <= low) or (value < high and next_value >= high):
                return True
    return False


@subroutine
def is_progress_small(problem, predicted_change):
    """Whether the decrease of the cost that is still to be expected is within `progress_tolerance`.

    Near a minimum the decreases of successive steps form about a geometric series. Its ratio is estimated from the last
    actual decrease and the next predicted decrease, so that slow convergence does not end too early. A step that is
    short because of its damping or of a bound tells nothing.
    """
    state, options = problem.state, problem.options
    last_decrease, next_decrease = state.cost_before_1 - state.cost, -predicted_change
    tolerated_decrease = options.progress_tolerance * state.cost
    return (
        state.stage > 0
        and state.relative_damping <= options.start_damping
        and 0.0 < next_decrease < last_decrease < np.inf
        and next_decrease * last_decrease <= tolerated_decrease * (last_decrease - next_decrease)
        and not reaches_bound(problem)
    )


@subroutine
def decide_step(problem, cost, predicted_change, max_gradient, curvature):
    """Decide what to do with a computed step: try it, compute it again, leave a stationary point, or end the stage.

    Args:
        cost, predicted_change, max_gradient, curvature: results of `bounded_step`.

    Returns:
        NEXT_STEP: try the step. NEXT_RETRY: compute the step again, with new second derivatives. NEXT_EVALUATION: the
        step is a perturbation. NEXT_STAGE: the stage has ended.
    """
    state, options = problem.state, problem.options
    stages, step = problem.stages, problem.step
    if options.max_error < np.inf or options.max_angle_error < np.inf:
        cost = state.cost  # the argument `cost` is that of the clipped errors
    curvature_is_positive = PIVOT_TOLERANCE < curvature <= 1.0  # otherwise unknown, close to zero or negative
    state.reference_cost = 0.0
    if state.tentative_steps > 0:
        state.cost = cost
    elif state.is_feasible and curvature != CURVATURE_UNKNOWN:
        state.reference_cost = cost  # that of x if it satisfied the hard constraints exactly
    state.predicted_cost, state.max_gradient = cost + predicted_change, max_gradient
    state.curvature_is_positive, state.is_last_step = curvature_is_positive, False
    if curvature_is_positive:  # the gradient decreases by about the same ratio as the length of the steps
        step_length, closure_step_length = (
            largest_column_step(problem, problem.step),
            largest_column_step(problem, problem.offset),
        )
        shrink_ratio = (
            min(max(step_length / state.last_step_length, MIN_GRADIENT_RATIO), 1.0)
            if state.last_step_length < np.inf
            else 1.0
        )
        # estimates of the largest gradient at the next x; the largest counts. Columns and rows are scaled to order 1,
        # so lengths of steps are comparable: the error of the model is of second order in the step, and the step that
        # closes the loops is not part of the model's gradient
        expected_gradient = max(
            max_gradient * shrink_ratio, remaining_gradient(problem), step_length * step_length, closure_step_length
        )
        # with larger damping, the steps are short because of the damping
        may_be_last_step = state.relative_damping <= options.start_damping and state.stage > 0
        may_be_last_step &= options.max_perturbations <= 1.0  # otherwise another descent follows
        if may_be_last_step and expected_gradient < FINAL_GRADIENT_RATIO * options.gradient_tolerance * math.sqrt(
            state.cost
        ):
            state.is_last_step = True
        elif step_length > OUTDATED_CURVATURE_STEP_RATIO * state.last_step_length and not state.curvature_is_new:
            # the second derivatives were sampled too far from x
            state.last_step_length = np.inf
            reset_curvature(problem)
            return NEXT_RETRY
        state.last_step_length = max(step_length, 1e-300)
    if not state.is_feasible:
        return NEXT_STEP
    is_soft_objective, may_probe = stages[state.stage].is_soft_objective, can_probe(problem, state.stage)
    has_small_progress = is_progress_small(problem, predicted_change)
    if (
        not has_small_progress
        and state.predicted_cost > SLOW_COST_RATIO * state.cost
        and can_probe_early(problem)
        and count_free_columns(problem) <= MAX_PROBED_COLUMNS
    ):
        enable_curvature(problem)
        return NEXT_RETRY
    # a small gradient counts as zero if the predicted decrease is below the rounding error of the cost
    is_rounding_error = (
        -predicted_change < ROUNDING_COST_RATIO * state.cost
        and max_gradient < ROUNDING_GRADIENT_RATIO * math.sqrt(state.cost)
    )
    may_perturb_closures = (
        state.stage == 0
        and not state.may_abandon
        and options.perturbation_size > 0.0
        and state.perturbations < MAX_CLOSURE_PERTURBATIONS
    )
    is_closing_slowly = may_perturb_closures and state.cost > SLOW_CLOSURE_COST_RATIO * state.cost_before_3
    if (
        max_gradient > options.gradient_tolerance * math.sqrt(state.cost)
        and not is_rounding_error
        and not is_closing_slowly
        and not has_small_progress
    ):
        if options.step_tolerance == 0.0 or largest_column_step(problem, step) >= options.step_tolerance:
            return NEXT_STEP
        state.final_status = STALLED
        return NEXT_STAGE
    state.final_status = CLOSEST
    if options.perturbation_size == 0.0 or is_soft_objective:
        return NEXT_STAGE
    if (
        may_probe
        and curvature == CURVATURE_UNKNOWN
        and state.probe_requests < 2
        and not is_closing_slowly
        and count_free_columns(problem) <= MAX_PROBED_COLUMNS
    ):
        state.probe_requests += 1
        if not state.uses_curvature:
            enable_curvature(problem)
        return NEXT_RETRY
    if has_small_progress and (curvature_is_positive or curvature == CURVATURE_UNKNOWN):
        return NEXT_STAGE
    if curvature < 0.0 and state.relative_damping < MAX_NEGATIVE_CURVATURE_DAMPING and not is_closing_slowly:
        write_negative_curvature_step(problem, curvature, options.start_damping)
        return NEXT_STEP
    max_perturbations, perturbation_size = options.max_perturbations, options.perturbation_size
    if may_perturb_closures:  # there is no feasible x that a large perturbation could leave
        max_perturbations, perturbation_size = (
            max(max_perturbations, MAX_CLOSURE_PERTURBATIONS),
            CLOSURE_PERTURBATION_SIZE if is_closing_slowly or state.perturbations > 0 else perturbation_size,
        )
    elif curvature_is_positive and max_perturbations <= 1.0:  # a minimum
        return NEXT_STAGE
    if state.perturbations < max_perturbations:
        write_perturbation(problem, perturbation_size, options.start_damping)
        return NEXT_EVALUATION
    return NEXT_STAGE


@subroutine
def write_negative_curvature_step(problem, curvature, start_damping):
    """Write a step along the direction of negative curvature to `step`, at a point with zero gradient.

    After a step of length s along the unit direction the residual is about e + k s^2 / 2, with e . k = curvature. If k
    is opposite to e, as at a dead point, the residual is zero at s = sqrt(2 |e|^2 / -curvature). Otherwise this step is
    too long. A rejected step is tried again, shorter and with the opposite sign.
    """
    state = problem.state
    length = min(math.sqrt(2.0 * state.cost / -curvature), MAX_NEGATIVE_CURVATURE_STEP) * math.sqrt(
        min(1.0, start_damping / state.relative_damping)
    )
    if state.iterations_in_stage % 2 == 1:
        length = -length
    independent_count = count_independent_columns(problem)
    for v in range(problem.column_count):
        problem.offset[v] = 0.0
    for i in range(independent_count):
        problem.reduced_step[i] = length * problem.negative_curvature[i]
        problem.previous_step[i] = problem.reduced_step[i]  # replaces the step of `store_step`, which is not taken
    expand_step(problem, independent_count)
    # half of the second-order change: exact for the full length if k is opposite to e; for shorter steps it predicts
    # too small a decrease, which is safe
    state.predicted_cost = state.cost + 0.5 * curvature * length * length


@subroutine
def write_perturbation(problem, perturbation_size, start_damping):
    """Write a perturbation of all columns that are not locked to `step`, to leave a stationary point.

    The damping, the history of costs and the second derivatives start again.
    For example, a straight arm with a target on its line, nearer than its tip, has a zero gradient but is no minimum.
    If the previous perturbation has not reduced the cost, x is first restored to its value before that perturbation.
    """
    state = problem.state
    x, before_perturbation, step = problem.x, problem.before_perturbation, problem.step
    if state.perturbations == 0 or state.cost < state.cost_at_perturbation * (1.0 - MIN_PERTURBATION_GAIN):
        state.cost_at_perturbation = state.cost
        copy_x(problem, x, before_perturbation)
    else:
        copy_x(problem, before_perturbation, x)
    state.perturbations += 1
    state.relative_damping, state.probe_requests = start_damping, 0
    state.uses_curvature, state.curvature_is_positive = False, False
    state.cost_before_1, state.cost_before_2, state.cost_before_3 = np.inf, np.inf, np.inf
    for v in range(problem.column_count):
        # a hash gives each column a fixed sign that looks random, and another one in each perturbation; the two lengths
        # differ, so that the columns of a symmetric mechanism do not cancel
        direction = 1.0 if (v + state.perturbations) * 2654435761 & 4 else -0.7
        step[v] = 0.0 if problem.bound_state[v] == LOCKED else perturbation_size * direction


GOOD_GAIN_RATIO, BAD_GAIN_RATIO = 0.75, 0.25
"""Gain ratios above which the relative damping (damping / cost) decreases, and below which it increases."""
GOOD_STEP_FACTOR, BAD_STEP_FACTOR, REJECTION_FACTOR = 0.2, 4.0, 8.0
"""Factors on the relative damping after a good prediction, after a bad one, and after a rejected trial."""
MIN_RELATIVE_DAMPING, MAX_RELATIVE_DAMPING = 1e-8, 1e10
"""Range of the relative damping; a stage ends if it reaches the maximum."""
SLOW_CLOSURE_STEPS, SLOW_VIOLATION_RATIO, MAX_VIOLATION = 3, 0.9, 1e3
"""Newton steps on the hard residuals end if, after SLOW_CLOSURE_STEPS of them, a step leaves more than
SLOW_VIOLATION_RATIO of the violation, since they converge quadratically or not at all, or if the violation (weighted)
is above MAX_VIOLATION."""
MIN_PERTURBATION_GAIN = 1e-6
"""Smallest decrease of the cost, as a ratio, with which a perturbation counts as a success."""
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
MAX_STEP_VIOLATION; it is tried only if `curvature_is_positive`. Tentative steps are accepted or rejected together,
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
def fit_slacks(problem, x, buffer, hard_end, soft_end):
    """Set the slacks of the soft residuals to the values within their bands that minimise the residuals.

    Args:
        x: the variables, which contain the slacks.
        buffer: the buffer (0 or 1) of the residuals, which are updated.
        hard_end, soft_end: the range of soft blocks.
    """
    lower, upper = problem.lower, problem.upper
    for b in range(hard_end, soft_end):
        block = problem.blocks[b]
        if block.has_bands:
            columns, weight = columns_of_block(problem, block), rows_of_block(problem.weight, block)
            residual = rows_of_block(problem.residual[buffer], block)
            for r in range(block.row_count):
                slack = problem.slacks[block.first_row + r]
                if slack.x >= 0:
                    v, value = columns[slack.column], x[slack.x]
                    best_value = min(max(value + residual[r] / weight[r], lower[v]), upper[v])
                    residual[r] -= weight[r] * (best_value - value)
                    x[slack.x] = best_value


@subroutine
def sum_of_squares(problem, buffer, first_block, end_block):
    """Return the sum of squares of blocks `first_block` to `end_block` - 1, and whether all are within tolerance."""
    total, is_met = 0.0, True
    for b in range(first_block, end_block):
        block, data = problem.blocks[b], problem.block_data[b]
        residual = rows_of_block(problem.residual[buffer], block)
        position_square, rotation_square = 0.0, 0.0
        position_row_count = count_position_rows(block.row_mask)
        for r in range(block.row_count):
            residual_square = residual[r] * residual[r]
            if r < position_row_count:
                position_square += residual_square
            else:
                rotation_square += residual_square
        total += position_square + rotation_square
        is_met &= position_square <= data.position_tolerance2 and rotation_square <= data.rotation_tolerance2
    return total, is_met


@subroutine
def constraint_violation(problem, buffer, stage):
    """Return the largest violation of the hard constraints of a stage, in the units of the weighted residuals.

    With `StageReport.rows_are_held`, each residual of an earlier stage has to be zero. Otherwise its sum of squares may
    not increase: at the closest pose of an unmet level, some residuals do not change at first order, so they cannot be
    constrained one by one.
    """
    blocks, stages = problem.blocks, problem.stages
    largest_violation = 0.0
    for held_stage in range(stage):
        first_block, end_block = stages[held_stage].hard_end, stages[held_stage].soft_end
        stage_report = problem.stage_reports[held_stage]
        if stage_report.rows_are_held:
            for b in range(first_block, end_block):
                residual = rows_of_block(problem.residual[buffer], blocks[b])
                for r in range(blocks[b].row_count):
                    largest_violation = max(largest_violation, abs(residual[r]))
        else:
            total = 0.0
            for b in range(first_block, end_block):
                residual = rows_of_block(problem.residual[buffer], blocks[b])
                for r in range(blocks[b].row_count):
                    total += residual[r] * residual[r]
            excess = total - stage_report.cost * (1.0 + MAX_HELD_COST_EXCESS)
            if excess > 0.0:
                largest_violation = max(largest_violation, math.sqrt(excess))
    return largest_violation


@subroutine
def hold_unmet_levels(problem, stage):
    """Hold the residuals of unmet levels at their present values, and add damping to the columns that change them.

    At the closest pose some residuals change only at second order, which linear constraints do not prevent. The extra
    damping of a column is proportional to the error of the level and to the entries of the column in its Jacobian.
    """
    state = problem.state
    extra_damping, buffer = problem.extra_damping, state.current_buffer
    for v in range(problem.column_count):
        extra_damping[v] = 1.0
    for held_stage in range(1, stage):
        stage_report, held_blocks = problem.stage_reports[held_stage], problem.stages[held_stage]
        if not stage_report.rows_are_held:
            error_norm = math.sqrt(stage_report.cost)
            for b in range(held_blocks.hard_end, held_blocks.soft_end):
                block = problem.blocks[b]
                J, columns = jacobian_of_block(problem, buffer, block), columns_of_block(problem, block)
                residual = rows_of_block(problem.residual[buffer], block)
                held_residual = rows_of_block(problem.held_residual, block)
                for r in range(block.row_count):
                    held_residual[r] = residual[r]
                    for u in range(block.column_count):
                        extra_damping[columns[u]] += UNMET_LEVEL_DAMPING * error_norm * abs(J[r, u])


@subroutine
def restore_last_feasible(problem, status):
    """Make the last feasible x the trial; then repeat the stage without infeasible steps, or end it with `status`.

    The stage is repeated only if Newton steps did not make x feasible (PHASE_CLOSING), at most once in each
    `feasibility_mode`.
    """
    state = problem.state
    trial, last_feasible = problem.trial, problem.last_feasible
    if (
        state.phase == PHASE_CLOSING
        and state.iterations_in_stage == 0
        and state.stage > 1
        and state.feasibility_mode < LEVELS_HELD_BY_SUM
    ):
        # the residuals of a met level cannot all be held at zero: hold the sum of squares of each level instead
        for held_stage in range(1, state.stage):
            problem.stage_reports[held_stage].rows_are_held = False
        state.feasibility_mode, state.phase = LEVELS_HELD_BY_SUM, PHASE_START
    elif state.phase == PHASE_CLOSING and state.feasibility_mode == INFEASIBLE_STEPS_ALLOWED:
        state.feasibility_mode, state.phase = FEASIBLE_STEPS_ONLY, PHASE_START  # as in `reject_trial`
    else:
        state.final_status, state.phase = status, PHASE_FINAL
    copy_x(problem, last_feasible, trial)
    return NEXT_EVALUATION


@subroutine
def end_stage(problem, status, is_feasible):
    """End a stage with a status at x, if x is feasible (`is_feasible`); otherwise go back to the last feasible x."""
    state = problem.state
    state.final_status = status
    if is_feasible:
        return NEXT_STAGE
    return restore_last_feasible(problem, status)


@subroutine
def check_stage_limits(problem, is_feasible):
    """Return NEXT_STEP, or end the stage if its iterations are used up or an attempt that may be abandoned is slow."""
    state, options = problem.state, problem.options
    stages = problem.stages
    if state.iterations_in_stage >= options.max_iterations:
        return end_stage(problem, TIMEOUT, is_feasible)
    if state.may_abandon and not stages[state.stage].is_soft_objective:
        is_slow = state.iterations_in_stage >= 3 and state.cost > ABANDON_COST_RATIO * state.cost_before_3
        if (
            is_slow
            or state.relative_damping > ABANDON_DAMPING
            or state.iterations_in_stage >= options.max_iterations_if_abandonable
        ):
            return end_stage(problem, STALLED, is_feasible)
    return NEXT_STEP


@subroutine
def reject_trial(problem):
    """Reject the trial: increase the damping, restore the last feasible x, or end the stage."""
    state = problem.state
    trial, last_feasible = problem.trial, problem.last_feasible
    if not state.is_feasible:
        # a feasible x may not reach the low cost of an infeasible x: accept no infeasible steps from now on
        state.feasibility_mode, state.phase = FEASIBLE_STEPS_ONLY, PHASE_START
        state.tentative_steps, state.curvature_is_positive, state.is_last_step = 0, False, False
        copy_x(problem, last_feasible, trial)
        return NEXT_EVALUATION
    is_stationary = state.max_gradient < ROUNDING_GRADIENT_RATIO * math.sqrt(state.cost)
    if state.is_last_step and is_stationary:
        state.final_status = CLOSEST
        return NEXT_STAGE
    state.relative_damping = min(state.relative_damping * REJECTION_FACTOR, MAX_RELATIVE_DAMPING)
    if state.relative_damping >= MAX_RELATIVE_DAMPING:
        return end_stage(problem, CLOSEST if is_stationary else STALLED, state.is_feasible)
    return check_stage_limits(problem, state.is_feasible)


@subroutine
def feasibility_tolerance(problem):
    """Return the violation of the hard constraints up to which the trial counts as feasible."""
    state, tolerance = problem.state, problem.options.closure_tolerance
    if state.phase != PHASE_STEP and state.phase != PHASE_RESTORED:
        return tolerance
    if state.is_last_step:
        return tolerance * FINAL_CLOSURE_RATIO
    if 0 < state.first_unmet_stage < state.stage:
        return tolerance
    # a violation changes the cost, so a small predicted decrease needs a smaller violation
    return min(
        tolerance,
        max(
            MAX_VIOLATION_GAIN_RATIO * (state.cost - state.predicted_cost) / math.sqrt(state.cost),
            CLOSED_TO_ROUNDING_RATIO * tolerance,
        ),
    )


@subroutine
def restore_feasibility(problem, violation):
    """Request one more Newton step on the hard residuals, or give up if these steps do not converge."""
    state = problem.state
    max_steps = CLOSURE_STEPS_FOR_TRIAL if state.phase == PHASE_RESTORED else CLOSURE_STEPS_FOR_START
    converges_slowly = (
        state.closure_steps > SLOW_CLOSURE_STEPS and violation > SLOW_VIOLATION_RATIO * state.last_violation
    )
    if state.closure_steps < max_steps and violation < MAX_VIOLATION and not converges_slowly:
        state.closure_steps += 1
        state.last_violation = violation
        return NEXT_CLOSURE_STEP
    if state.phase == PHASE_CLOSING:
        return restore_last_feasible(problem, STALLED)
    return reject_trial(problem)


@subroutine
def adapt_damping(problem, gain_ratio):
    """Decrease the relative damping after a good prediction, increase it after a bad one."""
    state, options = problem.state, problem.options
    if options.fixed_damping > 0.0:
        state.relative_damping = options.start_damping
    elif gain_ratio > GOOD_GAIN_RATIO:
        state.relative_damping = max(state.relative_damping * GOOD_STEP_FACTOR, MIN_RELATIVE_DAMPING)
    elif gain_ratio < BAD_GAIN_RATIO:
        state.relative_damping = min(state.relative_damping * BAD_STEP_FACTOR, MAX_RELATIVE_DAMPING)


@subroutine
def update_after_step(problem, cost, previous_cost, is_tentative):
    """Update the damping, the history of costs and the use of second derivatives after an accepted step.

    The gain ratio of a tentative step counts as 1, since its cost is that of an infeasible x.
    """
    state, stage = problem.state, problem.state.stage
    is_comparable = not is_tentative and state.tentative_steps == 0
    gain_ratio = (previous_cost - cost) / max(previous_cost - state.predicted_cost, 1e-300) if is_comparable else 1.0
    adapt_damping(problem, gain_ratio)
    state.cost_before_3, state.cost_before_2, state.cost_before_1 = (
        state.cost_before_2,
        state.cost_before_1,
        state.cost,
    )
    state.has_moved = is_comparable
    state.tentative_steps = state.tentative_steps + 1 if is_tentative else 0
    if 0 < state.first_unmet_stage < stage:
        state.has_moved_below = True
    is_slow = cost > SLOW_COST_RATIO * state.cost_before_3
    is_predicted_badly = abs(gain_ratio - 1.0) > 1.0 - MIN_PREDICTION_RATIO
    if not state.uses_curvature and is_slow and can_use_curvature(problem, stage):
        enable_curvature(problem)
    elif state.uses_curvature and is_predicted_badly and not state.is_last_step and can_probe(problem, stage):
        reset_curvature(problem)


@subroutine
def evaluate_trial(problem):
    """Accept the evaluated trial, request a Newton step on its hard residuals, or reject it.

    This is Levenberg-Marquardt on the manifold h(x) = 0 of the hard constraints, for the cost |e(x)|^2 of the soft
    residuals. The trial is x + d, where d minimises the model m(d) = |e + J d|^2 + damping |d|^2 subject to
    h + G d = 0 and to the bounds, with the Jacobians J of e and G of h; with second derivatives, m is Newton's model.
    Two questions decide:

    1. Is the trial feasible, is every |h| within tolerance? A linear step violates h at second order in d. A violated
       trial is accepted if it is close to feasible and the cost is far lower, or tentatively: then the next step
       corrects it. Otherwise Newton steps on h correct it first (PHASE_RESTORED), and the question is asked again; they
       move the dependent columns only (`elimination.py`).
    2. Is the cost lower than `previous_cost`? This is the cost of x; if x is feasible only within tolerance, at least
       the cost that it would have on h = 0 (`reference_cost`); after tentative steps, the cost of the last feasible x.
       Only steps (PHASE_STEP, PHASE_RESTORED) can fail here. The gain ratio (previous_cost - cost) / (previous_cost -
       predicted_cost) compares the decrease with its prediction (`adapt_damping`). A rejection increases the damping;
       if x is infeasible, the search goes back to the last feasible x instead (`reject_trial`).

    A further criterion on the cost belongs into the condition of `reject_trial` below.

    The active set of bounds is part of the step (`bounded_step.py`); here it does not matter.

    Returns:
        The next action: NEXT_STEP, NEXT_CLOSURE_STEP, NEXT_EVALUATION (of another trial) or NEXT_STAGE.
    """
    state, options = problem.state, problem.options
    x, trial, last_feasible = problem.x, problem.trial, problem.last_feasible
    stage, phase, current_buffer = state.stage, state.phase, state.current_buffer
    is_step = phase == PHASE_STEP or phase == PHASE_RESTORED
    hard_end, soft_end = problem.stages[stage].hard_end, problem.stages[stage].soft_end
    fit_slacks(problem, trial, 1 - current_buffer, hard_end, soft_end)
    cost, is_met = sum_of_squares(problem, 1 - current_buffer, hard_end, soft_end)
    violation = constraint_violation(problem, 1 - current_buffer, stage)

    # 1. is it feasible? from the second correction on the closure tolerance is enough, which may be far larger than
    # `feasibility_tolerance`
    is_feasible = violation <= feasibility_tolerance(problem) or (
        phase == PHASE_RESTORED and state.closure_steps > 1 and violation <= options.closure_tolerance
    )
    is_nearly_feasible = state.feasibility_mode == INFEASIBLE_STEPS_ALLOWED and violation < MAX_STEP_VIOLATION
    is_tentative = (
        phase == PHASE_STEP
        and not is_feasible
        and is_nearly_feasible
        and state.curvature_is_positive
        and not state.is_last_step
        and state.tentative_steps < MAX_TENTATIVE_STEPS
    )
    has_far_lower_cost = cost < MAX_INFEASIBLE_COST_RATIO * state.cost
    may_be_infeasible = is_tentative or (is_nearly_feasible and has_far_lower_cost)
    if phase == PHASE_STEP and not is_feasible and not may_be_infeasible:
        state.phase, state.closure_steps, state.last_violation = PHASE_RESTORED, 1, violation
        return NEXT_CLOSURE_STEP
    if (phase == PHASE_RESTORED or phase == PHASE_CLOSING) and not is_feasible:
        return restore_feasibility(problem, violation)

    # 2. is the cost lower?
    previous_cost = max(state.cost, state.reference_cost) if state.tentative_steps == 0 else state.feasible_cost
    if is_step and not cost < previous_cost and not is_tentative:
        return reject_trial(problem)
    if is_step:
        update_after_step(problem, cost, previous_cost, is_tentative)

    # the trial becomes x
    copy_x(problem, trial, x)
    state.cost, state.is_feasible, state.current_buffer = cost, is_feasible, 1 - current_buffer
    state.probe_requests, state.curvature_is_new, state.poses_are_current = 0, False, True
    if is_feasible or (phase == PHASE_START and state.iterations_in_stage == 0):
        copy_x(problem, x, last_feasible)
        state.feasible_cost = cost
    if phase == PHASE_START:
        hold_unmet_levels(problem, stage)
    if phase == PHASE_FINAL:
        return NEXT_STAGE
    if not is_feasible and (phase == PHASE_START or is_met):
        state.current_buffer = current_buffer  # the Newton steps start at the trial, which has the other buffer
        state.phase, state.closure_steps, state.last_violation = PHASE_CLOSING, 1, violation
        return NEXT_CLOSURE_STEP
    if is_met:
        state.final_status = CONVERGED
        return NEXT_STAGE
    if is_feasible and state.is_last_step:
        state.final_status = CLOSEST
        return NEXT_STAGE
    return check_stage_limits(problem, is_feasible)


@subroutine
def begin_stage(problem, stage):
    """Reset the state for a stage; its first trial is x."""
    state, options = problem.state, problem.options
    x, trial = problem.x, problem.trial
    state.stage, state.phase, state.relative_damping, state.cost = stage, PHASE_START, options.start_damping, np.inf
    state.cost_before_1, state.cost_before_2, state.cost_before_3 = np.inf, np.inf, np.inf
    state.perturbations, state.probe_requests, state.tentative_steps = 0, 0, 0
    state.feasibility_mode = INFEASIBLE_STEPS_ALLOWED
    state.uses_curvature, state.curvature_is_positive, state.is_last_step, state.has_moved = False, False, False, False
    state.max_gradient, state.last_step_length, state.reference_cost = 0.0, np.inf, 0.0
    copy_x(problem, x, trial)


@subroutine
def advance_stage(problem):
    """Write the report of the ended stage and begin the next stage; return False if the attempt ends.

    If the last perturbation has not reduced the cost, the stage is instead evaluated once more at the x before this
    perturbation. After the last stage, the stages from the first unmet level on may be repeated.
    """
    state = problem.state
    blocks, stages, stage, status = problem.blocks, problem.stages, state.stage, state.final_status
    # -1 perturbations: x is restored only once
    is_useless = state.cost > state.cost_at_perturbation * (1.0 - MIN_PERTURBATION_GAIN)
    if state.perturbations >= 1 and status != CONVERGED and is_useless:
        state.perturbations, state.phase, state.final_status = -1, PHASE_FINAL, CLOSEST
        copy_x(problem, problem.before_perturbation, problem.trial)
        return True
    stage_report = problem.stage_reports[stage]
    stage_report.status, stage_report.cost = status, state.cost
    stage_report.max_gradient, stage_report.iterations = state.max_gradient, state.iterations_in_stage
    stage_report.rows_are_held = status == CONVERGED
    for b in range(stages[stage].hard_end, stages[stage].soft_end):
        held_residual = rows_of_block(problem.held_residual, blocks[b])
        residual = rows_of_block(problem.residual[state.current_buffer], blocks[b])
        for r in range(blocks[b].row_count):
            held_residual[r] = 0.0 if status == CONVERGED else residual[r]
    is_unmet = status != CONVERGED and not stages[stage].is_soft_objective
    if is_unmet and state.first_unmet_stage == 0:
        state.first_unmet_stage = stage
    # a level that is met in the last round may have moved the levels below off their targets, so these follow
    is_last = stage + 1 == problem.stage_count or (
        state.stage_round == MAX_STAGE_ROUNDS and stage == state.first_unmet_stage and is_unmet
    )
    if is_last and state.has_moved_below and not state.may_abandon and state.stage_round < MAX_STAGE_ROUNDS:
        # lower levels have moved x, and from there the unmet level may come closer to its target
        state.stage_round += 1
        state.has_moved_below, state.iterations_in_stage = False, 0
        begin_stage(problem, state.first_unmet_stage)
        return True
    if is_last or (is_unmet and (stage == 0 or state.may_abandon)):
        return False
    begin_stage(problem, stage + 1)
    if stage == 0 and state.iterations_in_stage == 0:  # stage 1 was evaluated together with stage 0, at the same x
        state.current_buffer = 1 - state.current_buffer
        state.is_evaluated = True
    state.iterations_in_stage = 0
    return True
