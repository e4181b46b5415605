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
    column_x, ban, released, lower = ints[AT_COLUMN_X], ints[AT_BOUND_STATE], ints[AT_RELEASED], ints[AT_LOWER]
    upper = ints[AT_UPPER]
    active_count = 0
    for v in range(ints[N_COLUMNS]):
        now = ints[ban + v]
        ints[released + v] = 0
        if now == FREE:
            continue
        if now != LOCKED:
            at = floats[x + ints[column_x + v]]
            if (now == ON_UPPER and at < floats[upper + v] - 1e-9) or (
                now == ON_LOWER and at > floats[lower + v] + 1e-9
            ):
                ints[ban + v] = FREE
                continue
        active_count += 1
    return active_count


@subroutine
def activate_bounds(ints, floats, x):
    """Activate the bounds that the step crosses; returns how many, and 1 if one of the columns is dependent."""
    column_x, ban, dependent, scale = ints[AT_COLUMN_X], ints[AT_BOUND_STATE], ints[AT_DEPENDENT_INDEX], ints[AT_SCALE]
    lower, upper, step = ints[AT_LOWER], ints[AT_UPPER], ints[AT_STEP]
    over, follower = 0, 0
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if k >= 0 and ints[ban + v] == FREE:
            there = floats[x + k] + floats[scale + v] * floats[step + v]
            if there > floats[upper + v] + BOUND_OVERSHOOT or there < floats[lower + v] - BOUND_OVERSHOOT:
                ints[ban + v] = ON_UPPER if there > floats[upper + v] else ON_LOWER
                over += 1
                if ints[dependent + v] != NO_COLUMN:
                    follower = 1
    return over, follower


@subroutine
def stop_at_bounds(ints, floats, x, n):
    """Clip the step of each independent column at its bounds."""
    column_x, independent, scale, line = (
        ints[AT_COLUMN_X],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_SCALE],
        ints[AT_REDUCED_STEP],
    )
    for i in range(n):
        v = ints[independent + i]
        k = ints[column_x + v]
        if k >= 0:
            there = min(
                max(floats[x + k] + floats[scale + v] * floats[line + i], floats[ints[AT_LOWER] + v]),
                floats[ints[AT_UPPER] + v],
            )
            floats[line + i] = (there - floats[x + k]) / floats[scale + v]
            floats[ints[AT_STEP] + v] = floats[line + i]


@subroutine
def release_bounds(ints, floats, n):
    """Release active bounds of independent columns where the model gradient leads inside; returns how many."""
    ban, independent, released, full = (
        ints[AT_BOUND_STATE],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_RELEASED],
        ints[AT_MODEL_GRADIENT],
    )
    free = 0
    for i in range(n):
        v = ints[independent + i]
        now, slope = ints[ban + v], floats[full + i]
        inside = (now == ON_UPPER and slope > 1e-12) or (now == ON_LOWER and slope < -1e-12)
        if inside and ints[released + v] == 0 and floats[ints[AT_LOWER] + v] < floats[ints[AT_UPPER] + v]:
            ints[ban + v] = FREE
            ints[released + v] = 1
            free += 1
    return free


@subroutine
def may_move(ints, floats, x, v, slope):
    """Whether a column can follow the gradient: it is free, not yet at its bound, or led away from it."""
    now = ints[ints[AT_BOUND_STATE] + v]
    if now == FREE or now == LOCKED:
        return now == FREE
    at, lower, upper = floats[x + ints[ints[AT_COLUMN_X] + v]], floats[ints[AT_LOWER] + v], floats[ints[AT_UPPER] + v]
    if now == ON_UPPER:
        return at < upper - BOUND_DISTANCE or (slope < 0.0 and lower < upper)
    return at > lower + BOUND_DISTANCE or (slope > 0.0 and lower < upper)


@subroutine
def shorten_to_bounds(ints, floats, x):
    """Scale the whole step so that x stays within its bounds; returns the factor (used when no passes are left)."""
    column_x, scale, lower, upper = ints[AT_COLUMN_X], ints[AT_SCALE], ints[AT_LOWER], ints[AT_UPPER]
    step = ints[AT_STEP]
    share = 1.0
    for v in range(ints[N_COLUMNS]):
        k, way = ints[column_x + v], floats[scale + v] * floats[step + v]
        if k >= 0 and abs(way) > 1e-15:
            if floats[x + k] + way > floats[upper + v] + BOUND_DISTANCE:
                share = min(share, (floats[upper + v] - floats[x + k]) / way)
            elif floats[x + k] + way < floats[lower + v] - BOUND_DISTANCE:
                share = min(share, (floats[lower + v] - floats[x + k]) / way)
    share = max(share, 0.0)
    for v in range(ints[N_COLUMNS]):
        floats[step + v] *= share
    return share


@subroutine
def hold_at_bounds(ints, floats, x):
    """Set the active set to exactly the columns that are on a bound."""
    ban, column_x = ints[AT_BOUND_STATE], ints[AT_COLUMN_X]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        ints[ints[AT_RELEASED] + v] = 0
        if k >= 0 and ints[ban + v] != LOCKED:
            ints[ban + v] = FREE
            if floats[x + k] >= floats[ints[AT_UPPER] + v] - BOUND_DISTANCE:
                ints[ban + v] = ON_UPPER
            elif floats[x + k] <= floats[ints[AT_LOWER] + v] + BOUND_DISTANCE:
                ints[ban + v] = ON_LOWER


@subroutine
def largest_multiplier(ints, floats, n, steepest):
    """The active column with the largest gradient to the inside above `steepest`, not released before; or NO_COLUMN."""
    found = ints[RUNTIME_ZERO] + NO_COLUMN
    for i in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + i]
        now, slope = ints[ints[AT_BOUND_STATE] + v], floats[ints[AT_MODEL_GRADIENT] + i]
        inside = (now == ON_UPPER and slope > steepest) or (now == ON_LOWER and -slope > steepest)
        if inside and ints[ints[AT_RELEASED] + v] == 0 and floats[ints[AT_LOWER] + v] < floats[ints[AT_UPPER] + v]:
            found, steepest = v, abs(slope)
    return found


@subroutine
def largest_reduced_gradient(ints, floats, x, n):
    """The largest absolute reduced gradient of the columns that may follow it."""
    steepest = 0.0
    for i in range(n):
        if may_move(ints, floats, x, ints[ints[AT_INDEPENDENT_COLUMN] + i], floats[ints[AT_GRADIENT] + i]):
            steepest = max(steepest, abs(floats[ints[AT_GRADIENT] + i]))
    return steepest


@subroutine
def largest_free_gradient(ints, floats, n):
    steepest = 0.0
    for i in range(n):
        if ints[ints[AT_BOUND_STATE] + ints[ints[AT_INDEPENDENT_COLUMN] + i]] == FREE:
            steepest = max(steepest, abs(floats[ints[AT_GRADIENT] + i]))
    return steepest


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
    newton,
    uses_curvature,
    probes,
    may_request,
    eliminated,
    damping_ratio,
    moved,
    poses_are_current,
):
    """Compute the step from x into the table `step`; with `newton`, only close the hard residuals.

    Args:
        ints, floats: the packed problem.
        options: the solver's options.
        x: offset of x in `floats`.
        stage, buffer: the stage, and the buffer of residual and Jacobian at x.
        damping: added to the diagonal of the normal equations.
        newton: whether the step is a Newton step on the hard residuals alone.
        uses_curvature: whether second derivatives are estimated (`curvature.py`).
        probes: whether probes of second derivatives may be requested (`curvature.py`).
        may_request: whether they are requested as soon as the model predicts slow progress.
        eliminated: number of independent columns when probes were requested at this x; 0 if they were not.
        damping_ratio: factor on the damping where all second derivatives are known.
        moved: 1.0 if the previous step was accepted, so that the curvature can be updated from it.
        poses_are_current: 1.0 if the stored poses belong to x; else x has not changed since the previous step.

    Returns:
        The sum of squares of the soft residuals with the hard residuals closed; the change that the model predicts; the
        largest reduced gradient of a column that may follow it; and the curvature: CURVATURE_REQUESTED,
        CURVATURE_UNKNOWN, or the smallest result of `solve_reduced_step`.
    """
    stages, ban = ints[AT_STAGES], ints[AT_BOUND_STATE]
    step, offset, line = ints[AT_STEP], ints[AT_OFFSET], ints[AT_REDUCED_STEP]
    hard, soft = ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]
    c = ints[N_COLUMNS]
    active_count = update_active_bounds(ints, floats, x)
    change, steepest, cost, n, kept = 0.0, 0.0, 0.0, ints[RUNTIME_ZERO], ints[RUNTIME_ZERO]
    chain = ints[stages + STAGE_INTS * stage + CHAIN_BLOCK] if uses_curvature else ints[RUNTIME_ZERO] + NO_COLUMN
    if chain >= 0 and poses_are_current == 1.0 and not newton:
        chain_curvature_vectors(ints, floats, buffer, chain)
    wide = ints[stages + STAGE_INTS * stage + USES_DUAL_FORM] == 1 and (chain >= 0 or not uses_curvature)
    stale, known, asks, bend = True, False, False, CURVATURE_UNKNOWN
    careful, freed, side, left = False, ints[RUNTIME_ZERO] + NO_COLUMN, ints[RUNTIME_ZERO], ints[RUNTIME_ZERO]
    # elimination records its row operations where multipliers will be computed
    tracks = not newton and (
        (probes and ints[ints[AT_PREVIOUS_COLUMNS]] == NO_COLUMN) or (may_request and active_count > 0)
    )
    for attempt in range(MAX_PASSES + MAX_CAREFUL_PASSES):
        if stale:
            if eliminated > 0 and attempt == 0:
                n = eliminated
            else:
                n, left = eliminate(ints, floats, stage, buffer, hard, tracks, newton)
            if not newton:
                if probes:
                    known, free = has_all_curvature(ints, n)
                    asks = not known and free <= MAX_PROBED_COLUMNS and (attempt == 0 or asks)
                    if asks and not tracks:
                        tracks = True
                        continue
                    if asks:
                        find_multipliers(ints, floats, buffer, hard, soft, left)
                        begin_probes(ints, floats, n)
                        return cost, change, steepest, CURVATURE_REQUESTED
                learned, damped = moved if attempt == 0 else 0.0, damping_ratio * damping if known else damping
                bend = CURVATURE_UNKNOWN
                cost, kept = assemble_normal_equations(
                    ints,
                    floats,
                    options,
                    buffer,
                    hard,
                    soft,
                    n,
                    damped,
                    damped == damping,
                    uses_curvature,
                    learned,
                    wide,
                )
            stale = False
        if newton:
            for v in range(c):
                floats[step + v] = floats[offset + v]
        else:
            found = solve_reduced_step(
                ints, floats, options, x, n, active_count, kept, chain, uses_curvature and bend >= 0.0, damping
            )
            bend = min(bend, found)
            expand_step(ints, floats, n)
        if may_request and tracks and attempt == 0:
            _, free = has_all_curvature(ints, n)
            if (
                free <= MAX_PROBED_COLUMNS
                and cost + model_decrease(ints, floats, n, kept, chain) > SLOW_COST_RATIO * cost
            ):
                find_multipliers(ints, floats, buffer, hard, soft, left)
                begin_probes(ints, floats, n)
                return cost, change, steepest, CURVATURE_REQUESTED
        if careful:
            # as in the simplex method, one column at a time is released, and held again if it leaves its bounds at once
            share = shorten_to_bounds(ints, floats, x)
            if freed != NO_COLUMN and share < MIN_STEP_RATIO:
                ints[ban + freed] = side
                stale = True
            for i in range(n):
                floats[line + i] *= share
            change = model_decrease(ints, floats, n, kept, chain)
            if not stale:
                if freed != NO_COLUMN or attempt == MAX_PASSES + MAX_CAREFUL_PASSES - 1:
                    break
                freed = largest_multiplier(ints, floats, n, largest_free_gradient(ints, floats, n))
                if freed == NO_COLUMN:
                    break
                side, ints[ban + freed], ints[ints[AT_RELEASED] + freed] = ints[ban + freed], FREE, 1
                active_count = count_active_bounds(ints)
            else:
                freed = ints[RUNTIME_ZERO] + NO_COLUMN
                active_count = count_active_bounds(ints)
            continue
        over, follower = activate_bounds(ints, floats, x)
        # while steps are accepted, clip at the bounds and let the next step know them: nearly as many iterations as
        # with a second pass, which costs a third of an iteration
        stops = over > 0 and hard == 0 and moved == 1.0 and not uses_curvature
        last = stops or attempt >= MAX_PASSES - 1
        if stops:
            stop_at_bounds(ints, floats, x, n)
        elif over > 0 and last:
            share = shorten_to_bounds(ints, floats, x)
            for i in range(n):
                floats[line + i] *= share
        if not newton and (over == 0 or last):
            change = model_decrease(ints, floats, n, kept, chain)
        settled = over == 0 and (newton or active_count == 0 or release_bounds(ints, floats, n) == 0)
        if last or settled:
            done = newton or stops or options[FIXED_DAMPING] > 0.0
            if done or (over == 0 and change < 0.0) or largest_reduced_gradient(ints, floats, x, n) == 0.0:
                break
            hold_at_bounds(ints, floats, x)  # the active set cycles: change one bound at a time
            careful = True
        stale = careful or (over > 0 and follower == 1)  # a dependent column cannot be held: eliminate others
        active_count = count_active_bounds(ints)
    if not newton:
        steepest = largest_reduced_gradient(ints, floats, x, n)
        if uses_curvature and not wide:
            store_step(ints, floats, n)
    return cost, change, steepest, bend if known else CURVATURE_UNKNOWN


@subroutine
def apply_step(ints, floats, x, out, clamped):
    """Write x moved by `step` to `out`: clamped to the bounds if `clamped`, quaternions rotated and normalized."""
    column_x, balls, scale, lower = ints[AT_COLUMN_X], ints[AT_SPHERICAL], ints[AT_SCALE], ints[AT_LOWER]
    upper, step = ints[AT_UPPER], ints[AT_STEP]
    for k in range(ints[N_X]):
        floats[out + k] = floats[x + k]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if k >= 0:
            floats[out + k] = floats[x + k] + floats[scale + v] * floats[step + v]
            if clamped:
                floats[out + k] = min(max(floats[out + k], floats[lower + v]), floats[upper + v])
    for i in range(ints[N_SPHERICAL]):
        k, v = ints[balls + 2 * i], ints[balls + 2 * i + 1]
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
