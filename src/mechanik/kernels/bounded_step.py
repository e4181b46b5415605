"""One damped step of Gauss and Newton: hard rows hold, soft rows fall, no number of x leaves its bounds.

With the hard rows eliminated (`elimination.py`), the step of the independent columns minimises

    |e + J s|^2 + damping |s|^2

over the soft rows (`least_squares.py`). Columns that the step would take over a bound are put on it and the rest is
solved again; a column at a bound is let go when the reduced gradient leads inside. The reduced gradient knows the
forces of the closures: going by the sign of J'e instead ended in wrong poses.
"""

from __future__ import annotations

import math

from mechanik.kernels.chain_curvature import bend_chain
from mechanik.kernels.compiler import part
from mechanik.kernels.curvature import remember
from mechanik.kernels.elimination import NONE, eliminate
from mechanik.kernels.least_squares import assemble, model, solve_free, spread
from mechanik.kernels.problem import *

PASSES = 12
INSIDE, STANDS = 1e-13, 1e-9
"""How far beyond a bound, and how far from it, still counts as on it."""


@part
def settle_bans(I, F, x):
    """Forget bans of columns that have left their bound; returns how many stand."""
    column_x, ban, released, lower = I[AT_COLUMN_X], I[AT_BAN], I[AT_RELEASED], I[AT_LOWER]
    upper = I[AT_UPPER]
    banned = 0
    for v in range(I[N_COLUMNS]):
        now = I[ban + v]
        I[released + v] = 0
        if now == FREE:
            continue
        if now != LOCKED:
            at = F[x + I[column_x + v]]
            if (now == ON_UPPER and at < F[upper + v] - 1e-9) or (now == ON_LOWER and at > F[lower + v] + 1e-9):
                I[ban + v] = FREE
                continue
        banned += 1
    return banned


@part
def put_on_bounds(I, F, x):
    """Ban the columns that the step takes over a bound; returns how many, and whether one of them is dependent."""
    column_x, ban, dependent, scale = I[AT_COLUMN_X], I[AT_BAN], I[AT_DEPENDENT], I[AT_SCALE]
    lower, upper, step = I[AT_LOWER], I[AT_UPPER], I[AT_STEP]
    over, follower = 0, 0
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        if k >= 0 and I[ban + v] == FREE:
            there = F[x + k] + F[scale + v] * F[step + v]
            if there > F[upper + v] + INSIDE or there < F[lower + v] - INSIDE:
                I[ban + v] = ON_UPPER if there > F[upper + v] else ON_LOWER
                over += 1
                if I[dependent + v] != NONE:
                    follower = 1
    return over, follower


@part
def stop_at_bounds(I, F, x, n):
    """Each column that the step takes over a bound ends on it."""
    column_x, independent, scale, line = I[AT_COLUMN_X], I[AT_INDEPENDENT], I[AT_SCALE], I[AT_LINE]
    for i in range(n):
        v = I[independent + i]
        k = I[column_x + v]
        if k >= 0:
            there = min(max(F[x + k] + F[scale + v] * F[line + i], F[I[AT_LOWER] + v]), F[I[AT_UPPER] + v])
            F[line + i] = (there - F[x + k]) / F[scale + v]
            F[I[AT_STEP] + v] = F[line + i]


@part
def let_go(I, F, n):
    """Lift the bans of independent columns which the slope of the model leads inside; returns how many."""
    ban, independent, released, full = I[AT_BAN], I[AT_INDEPENDENT], I[AT_RELEASED], I[AT_FULL]
    free = 0
    for i in range(n):
        v = I[independent + i]
        now, slope = I[ban + v], F[full + i]
        inside = (now == ON_UPPER and slope > 1e-12) or (now == ON_LOWER and slope < -1e-12)
        if inside and I[released + v] == 0 and F[I[AT_LOWER] + v] < F[I[AT_UPPER] + v]:
            I[ban + v] = FREE
            I[released + v] = 1
            free += 1
    return free


@part
def may_move(I, F, x, v, slope):
    """Whether a column can follow the slope: it is free, or not at its bound yet, or led away from it."""
    now = I[I[AT_BAN] + v]
    if now == FREE or now == LOCKED:
        return now == FREE
    at, lower, upper = F[x + I[I[AT_COLUMN_X] + v]], F[I[AT_LOWER] + v], F[I[AT_UPPER] + v]
    if now == ON_UPPER:
        return at < upper - STANDS or (slope < 0.0 and lower < upper)
    return at > lower + STANDS or (slope > 0.0 and lower < upper)


@part
def shorten(I, F, x):
    """The passes are used up: stay in the box along the step that there is. Returns which share of it that is."""
    column_x, scale, lower, upper = I[AT_COLUMN_X], I[AT_SCALE], I[AT_LOWER], I[AT_UPPER]
    step = I[AT_STEP]
    share = 1.0
    for v in range(I[N_COLUMNS]):
        k, way = I[column_x + v], F[scale + v] * F[step + v]
        if k >= 0 and abs(way) > 1e-15:
            if F[x + k] + way > F[upper + v]:
                share = min(share, (F[upper + v] - F[x + k]) / way)
            elif F[x + k] + way < F[lower + v]:
                share = min(share, (F[lower + v] - F[x + k]) / way)
    share = max(share, 0.0)
    for v in range(I[N_COLUMNS]):
        F[step + v] *= share
    return share


@part
def bounded_step(I, F, options, x, stage, buffer, damping, newton, curved, moved, placed):
    """The step from x into `step`. With `newton`, only shut what is hard.

    Args:
        curved: whether second derivatives are estimated, as `curvature.py` does it.
        moved: whether the step before was taken, so that something can be learned from it.
        placed: whether the poses that are there belong to x; else x is where it was at the step before.
    Returns:
        the soft rows' sum of squares once what is hard is shut, by how much the model says that the step changes it,
        and the largest reduced gradient of a column that is free to follow it.
    """
    stages, ban, independent = I[AT_STAGES], I[AT_BAN], I[AT_INDEPENDENT]
    step, offset, gradient, line = I[AT_STEP], I[AT_OFFSET], I[AT_GRADIENT], I[AT_LINE]
    hard, soft = I[stages + STAGE_INTS * stage + HARD], I[stages + STAGE_INTS * stage + SOFT]
    c = I[N_COLUMNS]
    banned = settle_bans(I, F, x)
    change, steepest, cost, n, kept = 0.0, 0.0, 0.0, I[ZERO], I[ZERO]
    chain = I[stages + STAGE_INTS * stage + CHAIN_BLOCK] if curved else I[ZERO] + NONE
    if chain >= 0 and placed == 1.0 and not newton:
        bend_chain(I, F, buffer, chain)
    wide = I[stages + STAGE_INTS * stage + IS_WIDE] == 1 and (chain >= 0 or not curved)
    stale = True
    for attempt in range(PASSES):
        if stale:
            n = eliminate(I, F, stage, buffer, hard)
            if not newton:
                learned = moved if attempt == 0 else 0.0
                cost, kept = assemble(I, F, options, buffer, hard, soft, n, damping, curved, learned, wide)
            stale = False
        if newton:
            for v in range(c):
                F[step + v] = F[offset + v]
        else:
            solve_free(I, F, options, x, n, banned, kept, chain)
            spread(I, F, n)
        over, follower = put_on_bounds(I, F, x)
        # as long as steps are taken, the way to the bounds is shortened, and the next step knows them: nearly as many
        # iterations as with a second pass, which costs a third of one
        stops = over > 0 and hard == 0 and moved == 1.0 and not curved
        last = stops or attempt == PASSES - 1
        if stops:
            stop_at_bounds(I, F, x, n)
        elif over > 0 and last:
            share = shorten(I, F, x)
            for i in range(n):
                F[line + i] *= share
        if not newton and (over == 0 or last):
            change = model(I, F, n, kept, chain)
        if last or (over == 0 and (newton or banned == 0 or let_go(I, F, n) == 0)):
            break
        stale = over > 0 and follower == 1  # a dependent column cannot be on its bound: choose others
        banned = 0
        for v in range(c):
            if I[ban + v] != FREE:
                banned += 1
    if not newton:
        for i in range(n):
            if may_move(I, F, x, I[independent + i], F[gradient + i]):
                steepest = max(steepest, abs(F[gradient + i]))
        if curved and not wide:
            remember(I, F, n)
    return cost, change, steepest


@part
def advance(I, F, x, out):
    """out = x moved by `step`: numbers within their bounds, balls on their sphere."""
    column_x, balls, scale, lower = I[AT_COLUMN_X], I[AT_BALLS], I[AT_SCALE], I[AT_LOWER]
    upper, step = I[AT_UPPER], I[AT_STEP]
    for k in range(I[N_X]):
        F[out + k] = F[x + k]
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        if k >= 0:
            F[out + k] = min(max(F[x + k] + F[scale + v] * F[step + v], F[lower + v]), F[upper + v])
    for i in range(I[N_BALLS]):
        k, v = I[balls + 2 * i], I[balls + 2 * i + 1]
        a, b, c = F[step + v], F[step + v + 1], F[step + v + 2]
        half2 = 0.25 * (a * a + b * b + c * c)
        if half2 < 1e-6:
            s, cosine = 0.5 * (1.0 - half2 / 6.0), 1.0 - 0.5 * half2 * (1.0 - half2 / 12.0)
        else:
            half = math.sqrt(half2)
            s, cosine = 0.5 * math.sin(half) / half, math.cos(half)
        a, b, c = s * a, s * b, s * c
        w, p, q, r = F[x + k], F[x + k + 1], F[x + k + 2], F[x + k + 3]
        tw, tx = w * cosine - p * a - q * b - r * c, w * a + p * cosine + q * c - r * b
        ty, tz = w * b - p * c + q * cosine + r * a, w * c + p * b - q * a + r * cosine
        size = 1.0 / math.sqrt(tw * tw + tx * tx + ty * ty + tz * tz)
        F[out + k], F[out + k + 1], F[out + k + 2], F[out + k + 3] = tw * size, tx * size, ty * size, tz * size
