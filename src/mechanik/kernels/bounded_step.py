"""One damped Gauss-Newton step with hard residuals held, and with an active set of bounds.

With the hard residuals eliminated (`elimination.py`), the step s of the independent columns minimises

    |e + J s|^2 + damping |s|^2

over the soft residuals (`damped_least_squares.py`). A column that the step would take over a bound joins the active
set, and the rest is solved again. A column at a bound is released when the reduced gradient leads inside. The reduced
gradient includes the constraint forces of the closures: the sign of J'e alone ended in wrong poses.
"""

from __future__ import annotations

import math

from .compiler import subroutine
from .curvature import (
    MAX_PROBED_COLUMNS,
    begin_probes,
    chain_curvature_vectors,
    find_multipliers,
    has_all_curvature,
    store_step,
)
from .damped_least_squares import assemble_normal_equations, expand_step, model_decrease, solve_reduced_step
from .elimination import NO_COLUMN, eliminate
from .problem_layout import *

BOUND_OVERSHOOT, BOUND_DISTANCE = 1e-13, 1e-9
"""How far beyond a bound, and how far from it, a number of x still counts as on it (rad or m)."""


@subroutine
def update_active_bounds(ints, floats, x):
    """Drop columns that have left their bound from the active set; returns how many bounds stay active."""
    column_x, bound_state, released, lower = ints[AT_COLUMN_X], ints[AT_BOUND_STATE], ints[AT_RELEASED], ints[AT_LOWER]
    upper = ints[AT_UPPER]
    active_count = 0
    for v in range(ints[N_COLUMNS]):
        side = ints[bound_state + v]
        ints[released + v] = 0
        if side == FREE:
            continue
        if side != LOCKED:
            value = floats[x + ints[column_x + v]]
            if (side == ON_UPPER and value < floats[upper + v] - 1e-9) or (
                side == ON_LOWER and value > floats[lower + v] + 1e-9
            ):
                ints[bound_state + v] = FREE
                continue
        active_count += 1
    return active_count


@subroutine
def activate_bounds(ints, floats, x):
    """Activate the bounds that the step crosses; returns how many, and 1 if one of the columns is dependent."""
    column_x, bound_state, dependent, scale = (
        ints[AT_COLUMN_X],
        ints[AT_BOUND_STATE],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_SCALE],
    )
    lower, upper, step = ints[AT_LOWER], ints[AT_UPPER], ints[AT_STEP]
    crossed, has_dependent = 0, 0
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if k >= 0 and ints[bound_state + v] == FREE:
            value = floats[x + k] + floats[scale + v] * floats[step + v]
            if value > floats[upper + v] + BOUND_OVERSHOOT or value < floats[lower + v] - BOUND_OVERSHOOT:
                ints[bound_state + v] = ON_UPPER if value > floats[upper + v] else ON_LOWER
                crossed += 1
                if ints[dependent + v] != NO_COLUMN:
                    has_dependent = 1
    return crossed, has_dependent


@subroutine
def stop_at_bounds(ints, floats, x, n):
    """Clip the step of each independent column at its bounds."""
    column_x, independent, scale, reduced_step = (
        ints[AT_COLUMN_X],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_SCALE],
        ints[AT_REDUCED_STEP],
    )
    for i in range(n):
        v = ints[independent + i]
        k = ints[column_x + v]
        if k >= 0:
            value = min(
                max(floats[x + k] + floats[scale + v] * floats[reduced_step + i], floats[ints[AT_LOWER] + v]),
                floats[ints[AT_UPPER] + v],
            )
            floats[reduced_step + i] = (value - floats[x + k]) / floats[scale + v]
            floats[ints[AT_STEP] + v] = floats[reduced_step + i]


@subroutine
def release_bounds(ints, floats, n):
    """Release active bounds of independent columns where the model gradient leads inside; returns how many."""
    bound_state, independent, released, model_gradient = (
        ints[AT_BOUND_STATE],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_RELEASED],
        ints[AT_MODEL_GRADIENT],
    )
    released_count = 0
    for i in range(n):
        v = ints[independent + i]
        side, gradient = ints[bound_state + v], floats[model_gradient + i]
        leads_inside = (side == ON_UPPER and gradient > 1e-12) or (side == ON_LOWER and gradient < -1e-12)
        if leads_inside and ints[released + v] == 0 and floats[ints[AT_LOWER] + v] < floats[ints[AT_UPPER] + v]:
            ints[bound_state + v] = FREE
            ints[released + v] = 1
            released_count += 1
    return released_count


@subroutine
def may_move(ints, floats, x, v, gradient):
    """Whether a column can follow the gradient: it is free, not yet at its bound, or led away from it."""
    side = ints[ints[AT_BOUND_STATE] + v]
    if side == FREE or side == LOCKED:
        return side == FREE
    value, lower, upper = (
        floats[x + ints[ints[AT_COLUMN_X] + v]],
        floats[ints[AT_LOWER] + v],
        floats[ints[AT_UPPER] + v],
    )
    if side == ON_UPPER:
        return value < upper - BOUND_DISTANCE or (gradient < 0.0 and lower < upper)
    return value > lower + BOUND_DISTANCE or (gradient > 0.0 and lower < upper)


@subroutine
def shorten_to_bounds(ints, floats, x):
    """Scale the whole step so that x stays within its bounds; returns the factor (used when no passes are left)."""
    column_x, scale, lower, upper = ints[AT_COLUMN_X], ints[AT_SCALE], ints[AT_LOWER], ints[AT_UPPER]
    step = ints[AT_STEP]
    ratio = 1.0
    for v in range(ints[N_COLUMNS]):
        k, change = ints[column_x + v], floats[scale + v] * floats[step + v]
        if k >= 0 and abs(change) > 1e-15:
            if floats[x + k] + change > floats[upper + v] + BOUND_DISTANCE:
                ratio = min(ratio, (floats[upper + v] - floats[x + k]) / change)
            elif floats[x + k] + change < floats[lower + v] - BOUND_DISTANCE:
                ratio = min(ratio, (floats[lower + v] - floats[x + k]) / change)
    ratio = max(ratio, 0.0)
    for v in range(ints[N_COLUMNS]):
        floats[step + v] *= ratio
    return ratio


@subroutine
def hold_at_bounds(ints, floats, x):
    """Set the active set to exactly the columns that are on a bound."""
    bound_state, column_x = ints[AT_BOUND_STATE], ints[AT_COLUMN_X]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        ints[ints[AT_RELEASED] + v] = 0
        if k >= 0 and ints[bound_state + v] != LOCKED:
            ints[bound_state + v] = FREE
            if floats[x + k] >= floats[ints[AT_UPPER] + v] - BOUND_DISTANCE:
                ints[bound_state + v] = ON_UPPER
            elif floats[x + k] <= floats[ints[AT_LOWER] + v] + BOUND_DISTANCE:
                ints[bound_state + v] = ON_LOWER


@subroutine
def largest_multiplier(ints, floats, n, max_gradient):
    """The active column, not released before, with the largest inward gradient above `max_gradient`; or NO_COLUMN."""
    column = ints[RUNTIME_ZERO] + NO_COLUMN
    for i in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + i]
        side, gradient = ints[ints[AT_BOUND_STATE] + v], floats[ints[AT_MODEL_GRADIENT] + i]
        leads_inside = (side == ON_UPPER and gradient > max_gradient) or (side == ON_LOWER and -gradient > max_gradient)
        if (
            leads_inside
            and ints[ints[AT_RELEASED] + v] == 0
            and floats[ints[AT_LOWER] + v] < floats[ints[AT_UPPER] + v]
        ):
            column, max_gradient = v, abs(gradient)
    return column


@subroutine
def largest_reduced_gradient(ints, floats, x, n):
    """The largest absolute reduced gradient of the columns that may follow it."""
    max_gradient = 0.0
    for i in range(n):
        if may_move(ints, floats, x, ints[ints[AT_INDEPENDENT_COLUMN] + i], floats[ints[AT_GRADIENT] + i]):
            max_gradient = max(max_gradient, abs(floats[ints[AT_GRADIENT] + i]))
    return max_gradient


@subroutine
def largest_free_gradient(ints, floats, n):
    max_gradient = 0.0
    for i in range(n):
        if ints[ints[AT_BOUND_STATE] + ints[ints[AT_INDEPENDENT_COLUMN] + i]] == FREE:
            max_gradient = max(max_gradient, abs(floats[ints[AT_GRADIENT] + i]))
    return max_gradient


@subroutine
def count_active_bounds(ints):
    active_count = 0
    for v in range(ints[N_COLUMNS]):
        if ints[ints[AT_BOUND_STATE] + v] != FREE:
            active_count += 1
    return active_count


MAX_PASSES, MAX_CAREFUL_PASSES = 12, 24
"""Limits on the solves of one step: with many bounds changing at once, and then with one bound at a time."""
SLOW_COST_RATIO = 0.5
"""Where three steps, or the prediction for the first step, leave more than this ratio of the cost, second derivatives
are used."""
MIN_STEP_RATIO = 1e-9
"""A step that the bounds shorten to less than this factor counts as no step."""
CURVATURE_DAMPING_RATIO = 1e-3
"""Factor on the damping of a step for which all second derivatives are known, as long as no step has been rejected."""
CURVATURE_UNKNOWN, CURVATURE_REQUESTED = 2.0, 3.0
"""Values in the place of a curvature: it is unknown; or probes are requested before there is a step."""


@subroutine
def bounded_step(
    ints,
    floats,
    options,
    x,
    stage,
    buffer,
    damping,
    is_newton,
    uses_curvature,
    may_probe,
    may_request,
    eliminated,
    damping_ratio,
    has_moved,
    poses_are_current,
):
    """Compute the step from x into the table `step`; with `is_newton`, only close the hard residuals.

    Args:
        ints, floats: the packed problem.
        options: the solver's options.
        x: offset of x in `floats`.
        stage, buffer: the stage, and the buffer of residual and Jacobian at x.
        damping: added to the diagonal of the normal equations.
        is_newton: whether the step is a Newton step on the hard residuals alone.
        uses_curvature: whether second derivatives are estimated (`curvature.py`).
        may_probe: whether probes of second derivatives may be requested (`curvature.py`).
        may_request: whether they are requested as soon as the model predicts slow progress.
        eliminated: number of independent columns when probes were requested at this x; 0 if they were not.
        damping_ratio: factor on the damping where all second derivatives are known.
        has_moved: 1.0 if the previous step was accepted, so that the curvature can be updated from it.
        poses_are_current: 1.0 if the stored poses belong to x; else x has not changed since the previous step.

    Returns:
        The sum of squares of the soft residuals with the hard residuals closed; the change that the model predicts; the
        largest reduced gradient of a column that may follow it; and the curvature: CURVATURE_REQUESTED,
        CURVATURE_UNKNOWN, or the smallest result of `solve_reduced_step`.
    """
    stages, bound_state = ints[AT_STAGES], ints[AT_BOUND_STATE]
    step, offset, reduced_step = ints[AT_STEP], ints[AT_OFFSET], ints[AT_REDUCED_STEP]
    hard, soft = ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]
    c = ints[N_COLUMNS]
    active_count = update_active_bounds(ints, floats, x)
    change, max_gradient, cost, n, dual_row_count = 0.0, 0.0, 0.0, ints[RUNTIME_ZERO], ints[RUNTIME_ZERO]
    chain = ints[stages + STAGE_INTS * stage + CHAIN_BLOCK] if uses_curvature else ints[RUNTIME_ZERO] + NO_COLUMN
    if chain >= 0 and poses_are_current == 1.0 and not is_newton:
        chain_curvature_vectors(ints, floats, buffer, chain)
    uses_dual_form = ints[stages + STAGE_INTS * stage + USES_DUAL_FORM] == 1 and (chain >= 0 or not uses_curvature)
    needs_elimination, is_known, requests_probes, curvature = True, False, False, CURVATURE_UNKNOWN
    is_single_release, released_column, released_side, remaining_rows = (
        False,
        ints[RUNTIME_ZERO] + NO_COLUMN,
        ints[RUNTIME_ZERO],
        ints[RUNTIME_ZERO],
    )
    # elimination records its row operations where multipliers will be computed
    stores_row_operations = not is_newton and (
        (may_probe and ints[ints[AT_PREVIOUS_COLUMNS]] == NO_COLUMN) or (may_request and active_count > 0)
    )
    for attempt in range(MAX_PASSES + MAX_CAREFUL_PASSES):
        if needs_elimination:
            if eliminated > 0 and attempt == 0:
                n = eliminated
            else:
                n, remaining_rows = eliminate(ints, floats, stage, buffer, hard, stores_row_operations, is_newton)
            if not is_newton:
                if may_probe:
                    is_known, free_count = has_all_curvature(ints, n)
                    requests_probes = (
                        not is_known and free_count <= MAX_PROBED_COLUMNS and (attempt == 0 or requests_probes)
                    )
                    if requests_probes and not stores_row_operations:
                        stores_row_operations = True
                        continue
                    if requests_probes:
                        find_multipliers(ints, floats, buffer, hard, soft, remaining_rows)
                        begin_probes(ints, floats, n)
                        return cost, change, max_gradient, CURVATURE_REQUESTED
                step_was_accepted, step_damping = (
                    has_moved if attempt == 0 else 0.0,
                    damping_ratio * damping if is_known else damping,
                )
                curvature = CURVATURE_UNKNOWN
                cost, dual_row_count = assemble_normal_equations(
                    ints,
                    floats,
                    options,
                    buffer,
                    hard,
                    soft,
                    n,
                    step_damping,
                    step_damping == damping,
                    uses_curvature,
                    step_was_accepted,
                    uses_dual_form,
                )
            needs_elimination = False
        if is_newton:
            for v in range(c):
                floats[step + v] = floats[offset + v]
        else:
            smallest_pivot = solve_reduced_step(
                ints,
                floats,
                options,
                x,
                n,
                active_count,
                dual_row_count,
                chain,
                uses_curvature and curvature >= 0.0,
                damping,
            )
            curvature = min(curvature, smallest_pivot)
            expand_step(ints, floats, n)
        if may_request and stores_row_operations and attempt == 0:
            _, free_count = has_all_curvature(ints, n)
            if (
                free_count <= MAX_PROBED_COLUMNS
                and cost + model_decrease(ints, floats, n, dual_row_count, chain) > SLOW_COST_RATIO * cost
            ):
                find_multipliers(ints, floats, buffer, hard, soft, remaining_rows)
                begin_probes(ints, floats, n)
                return cost, change, max_gradient, CURVATURE_REQUESTED
        if is_single_release:
            # as in the simplex method, one column at a time is released, and held again if it leaves its bounds at once
            ratio = shorten_to_bounds(ints, floats, x)
            if released_column != NO_COLUMN and ratio < MIN_STEP_RATIO:
                ints[bound_state + released_column] = released_side
                needs_elimination = True
            for i in range(n):
                floats[reduced_step + i] *= ratio
            change = model_decrease(ints, floats, n, dual_row_count, chain)
            if not needs_elimination:
                if released_column != NO_COLUMN or attempt == MAX_PASSES + MAX_CAREFUL_PASSES - 1:
                    break
                released_column = largest_multiplier(ints, floats, n, largest_free_gradient(ints, floats, n))
                if released_column == NO_COLUMN:
                    break
                released_side, ints[bound_state + released_column], ints[ints[AT_RELEASED] + released_column] = (
                    ints[bound_state + released_column],
                    FREE,
                    1,
                )
                active_count = count_active_bounds(ints)
            else:
                released_column = ints[RUNTIME_ZERO] + NO_COLUMN
                active_count = count_active_bounds(ints)
            continue
        crossed, has_dependent = activate_bounds(ints, floats, x)
        # while steps are accepted, clip at the bounds and let the next step know them: nearly as many iterations as
        # with a second pass, which costs a third of an iteration
        clips = crossed > 0 and hard == 0 and has_moved == 1.0 and not uses_curvature
        is_last = clips or attempt >= MAX_PASSES - 1
        if clips:
            stop_at_bounds(ints, floats, x, n)
        elif crossed > 0 and is_last:
            ratio = shorten_to_bounds(ints, floats, x)
            for i in range(n):
                floats[reduced_step + i] *= ratio
        if not is_newton and (crossed == 0 or is_last):
            change = model_decrease(ints, floats, n, dual_row_count, chain)
        is_settled = crossed == 0 and (is_newton or active_count == 0 or release_bounds(ints, floats, n) == 0)
        if is_last or is_settled:
            is_done = is_newton or clips or options[FIXED_DAMPING] > 0.0
            if is_done or (crossed == 0 and change < 0.0) or largest_reduced_gradient(ints, floats, x, n) == 0.0:
                break
            hold_at_bounds(ints, floats, x)  # the active set cycles: change one bound at a time
            is_single_release = True
        needs_elimination = is_single_release or (
            crossed > 0 and has_dependent == 1
        )  # a dependent column cannot be held: eliminate others
        active_count = count_active_bounds(ints)
    if not is_newton:
        max_gradient = largest_reduced_gradient(ints, floats, x, n)
        if uses_curvature and not uses_dual_form:
            store_step(ints, floats, n)
    return cost, change, max_gradient, curvature if is_known else CURVATURE_UNKNOWN


@subroutine
def apply_step(ints, floats, x, out, clamps):
    """Write x moved by `step` to `out`: clamped to the bounds if `clamps`, quaternions rotated and normalized."""
    column_x, sphericals, scale, lower = ints[AT_COLUMN_X], ints[AT_SPHERICAL], ints[AT_SCALE], ints[AT_LOWER]
    upper, step = ints[AT_UPPER], ints[AT_STEP]
    for k in range(ints[N_X]):
        floats[out + k] = floats[x + k]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if k >= 0:
            floats[out + k] = floats[x + k] + floats[scale + v] * floats[step + v]
            if clamps:
                floats[out + k] = min(max(floats[out + k], floats[lower + v]), floats[upper + v])
    for i in range(ints[N_SPHERICAL]):
        k, v = ints[sphericals + 2 * i], ints[sphericals + 2 * i + 1]
        a, b, c = floats[step + v], floats[step + v + 1], floats[step + v + 2]
        half2 = 0.25 * (a * a + b * b + c * c)
        if half2 < 1e-6:
            s, cosine = 0.5 * (1.0 - half2 / 6.0), 1.0 - 0.5 * half2 * (1.0 - half2 / 12.0)
        else:
            half = math.sqrt(half2)
            s, cosine = 0.5 * math.sin(half) / half, math.cos(half)
        a, b, c = s * a, s * b, s * c
        w, p, q, r = floats[x + k], floats[x + k + 1], floats[x + k + 2], floats[x + k + 3]
        tw, tx = w * cosine - p * a - q * b - r * c, w * a + p * cosine + q * c - r * b
        ty, tz = w * b - p * c + q * cosine + r * a, w * c + p * b - q * a + r * cosine
        size = 1.0 / math.sqrt(tw * tw + tx * tx + ty * ty + tz * tz)
        floats[out + k], floats[out + k + 1], floats[out + k + 2], floats[out + k + 3] = (
            tw * size,
            tx * size,
            ty * size,
            tz * size,
        )
