"""Numbers of x at their bounds: which columns are held there (banned), and which are let go."""

from __future__ import annotations

from .compiler import part
from .elimination import NONE
from .problem import *

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
            if F[x + k] + way > F[upper + v] + STANDS:
                share = min(share, (F[upper + v] - F[x + k]) / way)
            elif F[x + k] + way < F[lower + v] - STANDS:
                share = min(share, (F[lower + v] - F[x + k]) / way)
    share = max(share, 0.0)
    for v in range(I[N_COLUMNS]):
        F[step + v] *= share
    return share


@part
def stand_still(I, F, x):
    """Begin with care: every column that stands on a bound is held there, and no other."""
    ban, column_x = I[AT_BAN], I[AT_COLUMN_X]
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        I[I[AT_RELEASED] + v] = 0
        if k >= 0 and I[ban + v] != LOCKED:
            I[ban + v] = FREE
            if F[x + k] >= F[I[AT_UPPER] + v] - STANDS:
                I[ban + v] = ON_UPPER
            elif F[x + k] <= F[I[AT_LOWER] + v] + STANDS:
                I[ban + v] = ON_LOWER


@part
def most_eager(I, F, n, steepest):
    """The held column that would gain the most inside, if more than `steepest`, and was not let go before; or NONE."""
    found = I[ZERO] + NONE
    for i in range(n):
        v = I[I[AT_INDEPENDENT] + i]
        now, slope = I[I[AT_BAN] + v], F[I[AT_FULL] + i]
        inside = (now == ON_UPPER and slope > steepest) or (now == ON_LOWER and -slope > steepest)
        if inside and I[I[AT_RELEASED] + v] == 0 and F[I[AT_LOWER] + v] < F[I[AT_UPPER] + v]:
            found, steepest = v, abs(slope)
    return found


@part
def steepest_slope(I, F, x, n):
    """The largest reduced gradient of a column that is free to follow it."""
    steepest = 0.0
    for i in range(n):
        if may_move(I, F, x, I[I[AT_INDEPENDENT] + i], F[I[AT_GRADIENT] + i]):
            steepest = max(steepest, abs(F[I[AT_GRADIENT] + i]))
    return steepest


@part
def steepest_free(I, F, n):
    steepest = 0.0
    for i in range(n):
        if I[I[AT_BAN] + I[I[AT_INDEPENDENT] + i]] == FREE:
            steepest = max(steepest, abs(F[I[AT_GRADIENT] + i]))
    return steepest


@part
def count_bans(I):
    banned = 0
    for v in range(I[N_COLUMNS]):
        if I[I[AT_BAN] + v] != FREE:
            banned += 1
    return banned
