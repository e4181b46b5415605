"""Decisions of the descent stage by stage: accept a trial, leave a stationary point, end a stage, begin the next.

Stage 0 closes the loops. Each further stage is a level of goals, with the loops and all higher levels hard. A trial is
accepted only if the stage's sum of squares falls and all hard residuals stay within tolerance. Where a step has
violated a hard residual by second order, Newton steps close it first. So the last accepted x is never worse than any
accepted before.

Where the Gauss-Newton model predicts that the first step leaves much of the cost, second derivatives are probed
(`curvature.py`). They separate a local minimum, at which the stage ends, from a saddle or a maximum (a dead point,
or a straight arm that has to shorten). From there a step along the direction of negative curvature leads on.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import CURVATURE_UNKNOWN, SLOW_COST_RATIO
from .compiler import subroutine
from .curvature import MAX_PROBED_COLUMNS, count_free_columns, reset_curvature
from .damped_least_squares import expand_step
from .linear_systems import PIVOT_TOLERANCE
from .problem_layout import *
from .state_layout import *

ROUNDING_COST_RATIO, ROUNDING_GRADIENT = 2e-15, 5e-7
"""A predicted gain below this ratio of the cost, and a gradient below this ratio of its square root, are rounding
errors."""
MIN_GRADIENT_RATIO, FINAL_GRADIENT_RATIO = 0.01, 10.0
"""Smallest ratio of the gradient that a step is assumed to leave where all second derivatives are known; and the
multiple of the gradient tolerance that a step may leave to be the last step."""
MAX_VIOLATED_PERTURBATIONS, VIOLATED_PERTURBATION_SIZE, CRAWLING_COST_RATIO = 12.0, 0.8, 0.8
"""How often, and by how much (rad, or sizes of the mechanism), loops that do not close are perturbed; and the ratio of
the cost left after three steps above which progress counts as too slow. Tuned on a delta robot from uniform starts."""
MAX_NEGATIVE_CURVATURE_STEP, MAX_NEGATIVE_CURVATURE_DAMPING = 0.5, 1e3
"""Longest step along negative curvature (rad), and the damping above which such steps are no longer tried."""
SLUGGISH_STEP_RATIO = 0.6
"""A step longer than this ratio of the previous step means that the second derivatives are out of date."""


@subroutine
def copy_x(ints, floats, x, out):
    for k in range(ints[N_X]):
        floats[out + k] = floats[x + k]


@subroutine
def can_use_curvature(ints, stage):
    """Whether second derivatives of a stage are known (a chain) or are worth a matrix over all columns.

    For soft objectives of a long arm they are not: a rest pose takes as many steps with them, and each step takes
    fifteen times as long.
    """
    stage_table = ints[AT_STAGES] + STAGE_INTS * stage
    return ints[stage_table + CHAIN_BLOCK] >= 0 or (
        ints[N_SQUARE] > 0 and (ints[stage_table + USES_DUAL_FORM] == 0 or ints[stage_table + IS_SOFT_OBJECTIVE] == 0)
    )


@subroutine
def can_probe(ints, state, options, stage):
    """Whether second derivatives of a stage can be probed.

    They are not probed for residuals written in Python (too slow), nor for clamped errors or a fixed damping. Nor below
    a level that could not be met: it is held by its sum of squares, whose curvature the residuals do not give.
    """
    stage_table = ints[AT_STAGES] + STAGE_INTS * stage
    if 0.0 < state[FIRST_UNMET_STAGE] < stage:
        return False
    is_restricted = options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf or options[FIXED_DAMPING] > 0.0
    return ints[N_SQUARE] > 0 and ints[stage_table + CHAIN_BLOCK] < 0 and ints[N_FUNCTIONS] == 0 and not is_restricted


@subroutine
def may_request_curvature(ints, state, options):
    """Whether second derivatives may be probed early: not for soft objectives, nor if the attempt may be abandoned."""
    stage = int(state[STAGE])
    is_soft_objective = ints[ints[AT_STAGES] + STAGE_INTS * stage + IS_SOFT_OBJECTIVE] == 1
    is_early = state[USES_CURVATURE] == 0.0 and state[IS_FEASIBLE] == 1.0 and state[MAY_ABANDON] == 0.0 and stage > 0
    return is_early and not is_soft_objective and can_probe(ints, state, options, stage)


@subroutine
def use_curvature(ints, floats, state):
    state[USES_CURVATURE] = 1.0
    reset_curvature(ints, floats)


@subroutine
def largest_column_step(ints, floats, step):
    """The largest absolute step of a column."""
    largest = 0.0
    for v in range(ints[N_COLUMNS]):
        largest = max(largest, abs(floats[step + v]))
    return largest


@subroutine
def remaining_gradient(ints, floats):
    """The largest gradient of the model at the end of the step, over the free columns."""
    largest, i = 0.0, 0
    for k in range(ints[N_COLUMNS]):
        if ints[ints[AT_DEPENDENT_INDEX] + ints[ints[AT_ELIMINATION_ORDER] + k]] < 0:
            if ints[ints[AT_BOUND_STATE] + ints[ints[AT_ELIMINATION_ORDER] + k]] == FREE:
                largest = max(largest, abs(floats[ints[AT_MODEL_GRADIENT] + i]))
            i += 1
    return largest


@subroutine
def decide_step(ints, floats, state, options, report, cost, change, max_gradient, curvature):
    """Decide what follows a computed step: take it, retry, probe, leave a stationary point, or end the stage.

    Returns:
        NEXT_STEP, NEXT_RETRY, NEXT_EVALUATION (x was perturbed) or NEXT_STAGE.
    """
    stages, step = ints[AT_STAGES], ints[AT_STEP]
    if options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf:
        cost = state[COST]  # the model was built from clamped errors
    is_known = PIVOT_TOLERANCE < curvature <= 1.0
    state[REFERENCE_COST] = 0.0
    if state[TENTATIVE_STEPS] > 0.0:
        state[COST] = cost
    elif state[IS_FEASIBLE] == 1.0 and curvature != CURVATURE_UNKNOWN:
        state[REFERENCE_COST] = cost  # the cost of x with its loops closed exactly
    state[PREDICTED_COST], state[MAX_GRADIENT] = cost + change, max_gradient
    state[CURVATURE_IS_KNOWN], state[IS_POLISHING] = 1.0 if is_known else 0.0, 0.0
    if is_known:  # the gradient shrinks by about the same ratio as the length of the steps
        step_length, closure_length = (
            largest_column_step(ints, floats, ints[AT_STEP]),
            largest_column_step(ints, floats, ints[AT_OFFSET]),
        )
        shrink_ratio = (
            min(max(step_length / state[LAST_STEP_LENGTH], MIN_GRADIENT_RATIO), 1.0)
            if state[LAST_STEP_LENGTH] < np.inf
            else 1.0
        )
        remaining = max(
            max_gradient * shrink_ratio, remaining_gradient(ints, floats), step_length * step_length, closure_length
        )
        may_be_last = state[MU] <= options[START_DAMPING] and state[STAGE] > 0.0  # else damping shortens the steps
        may_be_last &= options[MAX_PERTURBATIONS] <= 1.0  # else another descent follows this one
        if may_be_last and remaining < FINAL_GRADIENT_RATIO * options[GRADIENT_TOLERANCE] * math.sqrt(state[COST]):
            state[IS_POLISHING] = 1.0
        elif (
            step_length > SLUGGISH_STEP_RATIO * state[LAST_STEP_LENGTH] and state[CURVATURE_IS_NEW] == 0.0
        ):  # they were probed too far from x
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
    if (
        state[PREDICTED_COST] > SLOW_COST_RATIO * state[COST]
        and may_request_curvature(ints, state, options)
        and count_free_columns(ints) <= MAX_PROBED_COLUMNS
    ):
        use_curvature(ints, floats, state)
        return NEXT_RETRY
    # where rounding would hide any further gain, a small gradient counts as zero
    is_rounding = -change < ROUNDING_COST_RATIO * state[COST] and max_gradient < ROUNDING_GRADIENT * math.sqrt(
        state[COST]
    )
    may_perturb_violated = (
        state[STAGE] == 0.0
        and state[MAY_ABANDON] == 0.0
        and options[PERTURBATION_SIZE] > 0.0
        and state[PERTURBATIONS] < MAX_VIOLATED_PERTURBATIONS
    )
    is_crawling = may_perturb_violated and state[COST] > CRAWLING_COST_RATIO * state[COST_BEFORE_3]
    if max_gradient > options[GRADIENT_TOLERANCE] * math.sqrt(state[COST]) and not is_rounding and not is_crawling:
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
        and not is_crawling
        and count_free_columns(ints) <= MAX_PROBED_COLUMNS
    ):
        state[PROBE_REQUESTS] += 1.0
        if state[USES_CURVATURE] == 0.0:
            use_curvature(ints, floats, state)
        return NEXT_RETRY
    if curvature < 0.0 and state[MU] < MAX_NEGATIVE_CURVATURE_DAMPING and not is_crawling:
        negative_curvature_step(ints, floats, state, curvature, options[START_DAMPING])
        return NEXT_STEP
    max_perturbations, size = options[MAX_PERTURBATIONS], options[PERTURBATION_SIZE]
    if may_perturb_violated:  # no feasible x is lost by a large perturbation
        max_perturbations, size = (
            max(max_perturbations, MAX_VIOLATED_PERTURBATIONS),
            VIOLATED_PERTURBATION_SIZE if is_crawling or state[PERTURBATIONS] > 0.0 else size,
        )
    elif is_known and max_perturbations <= 1.0:
        return NEXT_STAGE
    if state[PERTURBATIONS] < max_perturbations:
        perturb(ints, floats, state, size, options[START_DAMPING])
        return NEXT_EVALUATION
    return NEXT_STAGE


@subroutine
def negative_curvature_step(ints, floats, state, curvature, start_damping):
    """Make a step along the direction of negative curvature, for a point at which the gradient vanishes.

    Along it the residual e changes by k s^2 / 2 with e.k = bend. It vanishes at s = sqrt(2 |e|^2 / -bend) if k is
    parallel to e, as at a dead point. Else the step is too long; once rejected, it is tried again shorter and with the
    other sign.
    """
    length = min(math.sqrt(2.0 * state[COST] / -curvature), MAX_NEGATIVE_CURVATURE_STEP) * math.sqrt(
        min(1.0, start_damping / state[MU])
    )
    if int(state[ITERATIONS_IN_STAGE]) % 2 == 1:
        length = -length
    n = ints[RUNTIME_ZERO]
    for v in range(ints[N_COLUMNS]):
        floats[ints[AT_OFFSET] + v] = 0.0
        if ints[ints[AT_DEPENDENT_INDEX] + v] < 0:
            n += 1
    for i in range(n):
        floats[ints[AT_REDUCED_STEP] + i] = length * floats[ints[AT_NEGATIVE_CURVATURE] + i]
    expand_step(ints, floats, n)
    state[PREDICTED_COST] = state[COST] + 0.5 * curvature * length * length


@subroutine
def perturb(ints, floats, state, size, start_damping):
    """Perturb all columns that are not locked, to leave a stationary point that is no minimum.

    A straight arm that has to shorten, for example, has no gradient. A previous perturbation that gained nothing is
    undone.
    """
    x, before_perturbation, step = ints[AT_X], ints[AT_BEFORE_PERTURBATION], ints[AT_STEP]
    if state[PERTURBATIONS] == 0.0 or state[COST] < state[COST_AT_PERTURBATION] * (1.0 - 1e-6):
        state[COST_AT_PERTURBATION] = state[COST]
        copy_x(ints, floats, x, before_perturbation)
    else:
        copy_x(ints, floats, before_perturbation, x)
    state[PERTURBATIONS] += 1.0
    state[MU], state[USES_CURVATURE], state[CURVATURE_IS_KNOWN], state[PROBE_REQUESTS] = start_damping, 0.0, 0.0, 0.0
    state[COST_BEFORE_1], state[COST_BEFORE_2], state[COST_BEFORE_3] = np.inf, np.inf, np.inf
    for v in range(ints[N_COLUMNS]):
        is_locked = ints[ints[AT_BOUND_STATE] + v] == LOCKED
        floats[step + v] = (
            0.0 if is_locked else size * (1.0 if (v + int(state[PERTURBATIONS])) * 2654435761 & 4 else -0.7)
        )


MAX_DAMPING = 1e10
"""Damping at which a stage ends."""
ROUNDING_RATIO = 1e-8
"""Relative excess of the sum of squares of an unmet level that counts as rounding."""
MAX_STAGE_ROUNDS = 3
"""How often the stages are repeated from the first unmet level on."""
UNMET_LEVEL_DAMPING = 1e4
"""Extra damping of the columns that move an unmet level, times its error and the Jacobian."""
MIN_INFEASIBLE_GAIN, MAX_INFEASIBLE_VIOLATION = 0.25, 1e-2
"""A step that reduces the cost below this ratio may violate the hard residuals by up to this much: the next step closes
them."""
MAX_TENTATIVE_STEPS = 3
"""Where all second derivatives are known, this many steps may leave loops violated; the cost with the loops closed
decides about them."""
MAX_VIOLATION_GAIN_RATIO = 0.05
"""Largest part of a step's gain that may come from violated loops."""
CLOSED_TO_ROUNDING_RATIO, FINAL_CLOSURE_RATIO = 1e-5, 0.1
"""Ratios of the closure tolerance: a violation below the first is rounding; the last step closes to the second, so that
a solve that continues from there finds the loops closed."""
MIN_PREDICTION_RATIO = 0.9
"""Second derivatives are probed again where the gain is below this ratio of the predicted gain."""
CLOSURE_STEPS_FOR_TRIAL, CLOSURE_STEPS_FOR_START = 8, 30
"""Most Newton steps that close the hard residuals of a trial, and of the start of a stage."""
ABANDON_DAMPING, ABANDON_COST_RATIO = 1e3, 0.5
"""An attempt that may be abandoned ends above this damping, or if its cost is above this ratio of its cost three
iterations before. Tuned on random targets of a Panda and a UR5."""


@subroutine
def fit_slacks(ints, floats, x, buffer, hard, soft):
    """Set the slacks of the soft residuals to their best values within their bands."""
    blocks, block_columns, slack, weight = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK], ints[AT_WEIGHT]
    lower, upper, residual = ints[AT_LOWER], ints[AT_UPPER], ints[AT_RESIDUAL]
    E = residual + ints[N_ROWS] * buffer
    for b in range(hard, soft):
        if ints[blocks + BLOCK_INTS * b + HAS_BANDS] == 1:
            for r in range(
                ints[blocks + BLOCK_INTS * b + FIRST_ROW],
                ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
            ):
                k = ints[slack + 2 * r]
                if k >= 0:
                    v = ints[slack + 2 * r + 1]  # within the block; the bounds need the column of the problem
                    column = ints[block_columns + ints[blocks + BLOCK_INTS * b + FIRST_COLUMN] + v]
                    value = min(
                        max(floats[x + k] + floats[E + r] / floats[weight + r], floats[lower + column]),
                        floats[upper + column],
                    )
                    floats[E + r] -= floats[weight + r] * (value - floats[x + k])
                    floats[x + k] = value


@subroutine
def sum_of_squares(ints, floats, buffer, start, end):
    """Sum of squares of the blocks from start to end, and whether each block is within its tolerances."""
    blocks, data, residual = ints[AT_BLOCKS], ints[AT_BLOCK_DATA], ints[AT_RESIDUAL]
    E = residual + ints[N_ROWS] * buffer
    total, is_met = 0.0, True
    for b in range(start, end):
        block = blocks + BLOCK_INTS * b
        position_square, rotation_square = 0.0, 0.0
        mask, first_row = ints[block + ROW_MASK], ints[block + FIRST_ROW]
        length_rows = 0
        for bit in range(3):
            length_rows += (mask >> bit) & 1
        for r in range(ints[block + ROW_COUNT]):
            e2 = floats[E + first_row + r] * floats[E + first_row + r]
            if r < length_rows:
                position_square += e2
            else:
                rotation_square += e2
        total += position_square + rotation_square
        is_met &= (
            position_square <= floats[data + BLOCK_FLOATS * b + POSITION_TOLERANCE2]
            and rotation_square <= floats[data + BLOCK_FLOATS * b + ROTATION_TOLERANCE2]
        )
    return total, is_met


@subroutine
def constraint_violation(ints, floats, state, options, report, buffer, stage):
    """The largest violation of the hard residuals of a stage, in their units.

    Levels that were met are held at zero, residual by residual. A level that could not be met is held at its sum of
    squares: at a closest pose, part of its residuals cannot change at first order.
    """
    blocks, stages, residual = ints[AT_BLOCKS], ints[AT_STAGES], ints[AT_RESIDUAL]
    E = residual + ints[N_ROWS] * buffer
    largest = 0.0
    for s in range(stage):
        start, end = ints[stages + STAGE_INTS * s + HARD_END], ints[stages + STAGE_INTS * s + SOFT_END]
        stage_report = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s
        if report[stage_report + STAGE_IS_HELD] == 1.0:
            for b in range(start, end):
                for r in range(
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW],
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
                ):
                    largest = max(largest, abs(floats[E + r]))
        else:
            total = 0.0
            for b in range(start, end):
                for r in range(
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW],
                    ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
                ):
                    total += floats[E + r] * floats[E + r]
            excess = total - report[stage_report + STAGE_COST] * (1.0 + ROUNDING_RATIO)
            if excess > 0.0:
                largest = max(largest, math.sqrt(excess))
    return largest


@subroutine
def freeze_unmet_levels(ints, floats, state, options, report, stage):
    """Hold the residuals of unmet levels at their values, and add damping to the columns that move them.

    At a closest pose part of their residuals change only at second order, so that the linear constraints do not hold
    them. The extra damping is proportional to the error times the column of the Jacobian.
    """
    blocks, stages, block_columns, extra_damping = (
        ints[AT_BLOCKS],
        ints[AT_STAGES],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_EXTRA_DAMPING],
    )
    current = int(state[CURRENT_BUFFER])
    E, J, held_residual = (
        ints[AT_RESIDUAL] + ints[N_ROWS] * current,
        ints[AT_JACOBIAN] + ints[N_JACOBIAN] * current,
        ints[AT_HELD_RESIDUAL],
    )
    for v in range(ints[N_COLUMNS]):
        floats[extra_damping + v] = 1.0
    for s in range(1, stage):
        if report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_IS_HELD] == 0.0:
            size = math.sqrt(report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_COST])
            for b in range(ints[stages + STAGE_INTS * s + HARD_END], ints[stages + STAGE_INTS * s + SOFT_END]):
                block = blocks + BLOCK_INTS * b
                width, first, row = ints[block + COLUMN_COUNT], ints[block + FIRST_COLUMN], ints[block + FIRST_ROW]
                for r in range(ints[block + ROW_COUNT]):
                    floats[held_residual + row + r] = floats[E + row + r]
                    for u in range(width):
                        v = ints[block_columns + first + u]
                        floats[extra_damping + v] += (
                            UNMET_LEVEL_DAMPING * size * abs(floats[J + ints[block + FIRST_JACOBIAN] + r * width + u])
                        )


@subroutine
def restore_feasible(ints, floats, state, options, report, status):
    """Go back to the last feasible x, since the present one cannot be made feasible; retry the stage or end it."""
    trial, last_feasible = ints[AT_TRIAL], ints[AT_LAST_FEASIBLE]
    if (
        state[PHASE] == PHASE_CLOSING
        and state[ITERATIONS_IN_STAGE] == 0
        and state[STAGE] > 1
        and state[NO_INFEASIBLE_STEPS] < 2.0
    ):
        # a level that counts as met cannot be held residual by residual: hold its sum of squares instead
        for s in range(1, int(state[STAGE])):
            report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_IS_HELD] = 0.0
        state[NO_INFEASIBLE_STEPS], state[PHASE] = 2.0, PHASE_START
    elif state[PHASE] == PHASE_CLOSING and state[NO_INFEASIBLE_STEPS] == 0.0:
        state[NO_INFEASIBLE_STEPS], state[PHASE] = 1.0, PHASE_START  # as in `reject_trial`
    else:
        state[FINAL_STATUS], state[PHASE] = status, PHASE_FINAL
    copy_x(ints, floats, last_feasible, trial)
    return NEXT_EVALUATION


@subroutine
def end_stage(ints, floats, state, options, report, status, is_feasible):
    """End a stage with a status, at x if it is feasible (`is_feasible`), else at the last feasible x."""
    state[FINAL_STATUS] = status
    if is_feasible:
        return NEXT_STAGE
    return restore_feasible(ints, floats, state, options, report, status)


@subroutine
def check_stop(ints, floats, state, options, report, is_feasible):
    """Whether to continue after a step: NEXT_STEP, or the end of the stage by iterations or slow progress."""
    stages = ints[AT_STAGES]
    if state[ITERATIONS_IN_STAGE] >= options[MAX_ITERATIONS]:
        return end_stage(ints, floats, state, options, report, TIMEOUT, is_feasible)
    if state[MAY_ABANDON] == 1.0 and ints[stages + STAGE_INTS * int(state[STAGE]) + IS_SOFT_OBJECTIVE] == 0:
        is_slow = state[ITERATIONS_IN_STAGE] >= 3 and state[COST] > ABANDON_COST_RATIO * state[COST_BEFORE_3]
        if is_slow or state[MU] > ABANDON_DAMPING or state[ITERATIONS_IN_STAGE] >= options[MAX_ITERATIONS_IN_STAGE]:
            return end_stage(ints, floats, state, options, report, STALLED, is_feasible)
    return NEXT_STEP


@subroutine
def reject_trial(ints, floats, state, options, report):
    """Reject the trial: raise the damping, or go back to the last feasible x, or end the stage."""
    trial, last_feasible = ints[AT_TRIAL], ints[AT_LAST_FEASIBLE]
    if (
        state[IS_FEASIBLE] == 0.0
    ):  # no feasible x may reach the cost of an infeasible one: accept no infeasible steps from now on
        state[NO_INFEASIBLE_STEPS], state[PHASE] = 1.0, PHASE_START
        state[TENTATIVE_STEPS], state[CURVATURE_IS_KNOWN], state[IS_POLISHING] = 0.0, 0.0, 0.0
        copy_x(ints, floats, last_feasible, trial)
        return NEXT_EVALUATION
    is_stationary = state[MAX_GRADIENT] < ROUNDING_GRADIENT * math.sqrt(state[COST])
    if state[IS_POLISHING] == 1.0 and is_stationary:
        state[FINAL_STATUS] = CLOSEST
        return NEXT_STAGE
    state[MU] = min(state[MU] * 8.0, MAX_DAMPING)
    if state[MU] >= MAX_DAMPING:
        return end_stage(
            ints, floats, state, options, report, CLOSEST if is_stationary else STALLED, state[IS_FEASIBLE] == 1.0
        )
    return check_stop(ints, floats, state, options, report, state[IS_FEASIBLE] == 1.0)


@subroutine
def evaluate_trial(ints, floats, state, options, report):
    """Decide about the evaluated trial: accept it, close its hard residuals first, or reject it."""
    stages, x = ints[AT_STAGES], ints[AT_X]
    trial, last_feasible = ints[AT_TRIAL], ints[AT_LAST_FEASIBLE]
    stage, phase, current = int(state[STAGE]), int(state[PHASE]), int(state[CURRENT_BUFFER])
    hard, soft = ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]
    fit_slacks(ints, floats, trial, 1 - current, hard, soft)
    cost, is_met = sum_of_squares(ints, floats, 1 - current, hard, soft)
    violation = constraint_violation(ints, floats, state, options, report, 1 - current, stage)
    tolerance = options[CLOSURE_TOLERANCE]
    if (phase == PHASE_TRIAL or phase == PHASE_RESTORED) and state[IS_POLISHING] == 1.0:
        tolerance *= FINAL_CLOSURE_RATIO
    elif (phase == PHASE_TRIAL or phase == PHASE_RESTORED) and not 0.0 < state[FIRST_UNMET_STAGE] < stage:
        # a violation changes the cost: a small gain counts only with the loops closed more tightly
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
        phase == PHASE_TRIAL
        and not is_feasible
        and state[CURVATURE_IS_KNOWN] == 1.0
        and state[IS_POLISHING] == 0.0
        and state[TENTATIVE_STEPS] < MAX_TENTATIVE_STEPS
    )
    may_be_infeasible = (
        state[NO_INFEASIBLE_STEPS] == 0.0
        and violation < MAX_INFEASIBLE_VIOLATION
        and (cost < MIN_INFEASIBLE_GAIN * state[COST] or is_tentative)
    )
    is_tentative &= may_be_infeasible
    if phase == PHASE_TRIAL and not is_feasible and not may_be_infeasible:
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
            return restore_feasible(ints, floats, state, options, report, STALLED)
        return reject_trial(ints, floats, state, options, report)
    previous_cost = max(state[COST], state[REFERENCE_COST]) if state[TENTATIVE_STEPS] == 0.0 else state[FEASIBLE_COST]
    if (phase == PHASE_TRIAL or phase == PHASE_RESTORED) and not cost < previous_cost and not is_tentative:
        return reject_trial(ints, floats, state, options, report)

    # accepted
    if phase == PHASE_TRIAL or phase == PHASE_RESTORED:
        is_comparable = not is_tentative and state[TENTATIVE_STEPS] == 0.0
        gain_ratio = (
            (previous_cost - cost) / max(previous_cost - state[PREDICTED_COST], 1e-300) if is_comparable else 1.0
        )
        if options[FIXED_DAMPING] > 0.0:
            state[MU] = options[START_DAMPING]
        elif gain_ratio > 0.75:
            state[MU] = max(state[MU] * 0.2, 1e-8)
        elif gain_ratio < 0.25:
            state[MU] = min(state[MU] * 4.0, MAX_DAMPING)
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
            use_curvature(ints, floats, state)
        elif (
            state[USES_CURVATURE] == 1.0
            and abs(gain_ratio - 1.0) > 1.0 - MIN_PREDICTION_RATIO
            and state[IS_POLISHING] == 0.0
            and can_probe(ints, state, options, stage)
        ):
            reset_curvature(ints, floats)
    copy_x(ints, floats, trial, x)
    state[PROBE_REQUESTS], state[CURVATURE_IS_NEW] = 0.0, 0.0
    state[COST], state[CURRENT_BUFFER], state[IS_FEASIBLE], state[POSES_ARE_CURRENT] = (
        cost,
        1 - current,
        1.0 if is_feasible else 0.0,
        1.0,
    )
    if is_feasible or (phase == PHASE_START and state[ITERATIONS_IN_STAGE] == 0):
        copy_x(ints, floats, x, last_feasible)
        state[FEASIBLE_COST] = cost
    if phase == PHASE_START:
        freeze_unmet_levels(ints, floats, state, options, report, stage)
    if phase == PHASE_FINAL:
        return NEXT_STAGE
    if not is_feasible and (phase == PHASE_START or is_met):
        state[CURRENT_BUFFER] = current  # Newton steps continue from the trial
        state[PHASE], state[CLOSURE_STEPS], state[LAST_VIOLATION] = PHASE_CLOSING, 1, violation
        return NEXT_CLOSURE_STEP
    if is_met:
        state[FINAL_STATUS] = CONVERGED
        return NEXT_STAGE
    if is_feasible and state[IS_POLISHING] == 1.0:
        state[FINAL_STATUS] = CLOSEST
        return NEXT_STAGE
    return check_stop(ints, floats, state, options, report, is_feasible)


@subroutine
def begin_stage(ints, floats, state, options, report, stage):
    """Reset the state for a stage; the trial is x."""
    x, trial = ints[AT_X], ints[AT_TRIAL]
    state[STAGE], state[PHASE], state[MU], state[COST] = stage, PHASE_START, options[START_DAMPING], np.inf
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
        state[CURVATURE_IS_KNOWN],
        state[IS_POLISHING],
        state[TENTATIVE_STEPS],
        state[LAST_STEP_LENGTH],
        state[REFERENCE_COST],
    ) = 0.0, 0.0, 0.0, 0.0, np.inf, 0.0
    copy_x(ints, floats, x, trial)


@subroutine
def next_stage(ints, floats, state, options, report):
    """Write the report of a stage and begin the next; False if that was the last."""
    blocks, stages = ints[AT_BLOCKS], ints[AT_STAGES]
    residual, held_residual, trial, before_perturbation = (
        ints[AT_RESIDUAL],
        ints[AT_HELD_RESIDUAL],
        ints[AT_TRIAL],
        ints[AT_BEFORE_PERTURBATION],
    )
    stage = int(state[STAGE])
    status = state[FINAL_STATUS]
    if state[PERTURBATIONS] >= 1.0 and status != CONVERGED and state[COST] > state[COST_AT_PERTURBATION] * (1.0 - 1e-6):
        state[PERTURBATIONS], state[PHASE], state[FINAL_STATUS] = -1.0, PHASE_FINAL, CLOSEST
        copy_x(ints, floats, before_perturbation, trial)
        return True
    E = residual + ints[N_ROWS] * int(state[CURRENT_BUFFER])
    stage_report = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * stage
    report[stage_report + STAGE_STATUS], report[stage_report + STAGE_COST] = status, state[COST]
    report[stage_report + STAGE_MAX_GRADIENT], report[stage_report + STAGE_ITERATIONS] = (
        state[MAX_GRADIENT],
        state[ITERATIONS_IN_STAGE],
    )
    report[stage_report + STAGE_IS_HELD] = 1.0 if status == CONVERGED else 0.0
    for b in range(ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]):
        for r in range(
            ints[blocks + BLOCK_INTS * b + FIRST_ROW],
            ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
        ):
            floats[held_residual + r] = 0.0 if status == CONVERGED else floats[E + r]
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
        # lower levels have moved x while an unmet level was held: it may come closer from there
        state[STAGE_ROUND] += 1.0
        state[HAS_MOVED_BELOW], state[ITERATIONS_IN_STAGE] = 0.0, 0.0
        begin_stage(ints, floats, state, options, report, state[FIRST_UNMET_STAGE])
        return True
    if is_last or (is_unmet and (stage == 0 or state[MAY_ABANDON] == 1.0)):
        return False
    begin_stage(ints, floats, state, options, report, stage + 1.0)
    if stage == 0 and state[ITERATIONS_IN_STAGE] == 0:  # stage 1 was evaluated with stage 0, and x has not moved since
        state[CURRENT_BUFFER] = 1 - state[CURRENT_BUFFER]
        state[IS_EVALUATED] = 1.0
    state[ITERATIONS_IN_STAGE] = 0
    return True
