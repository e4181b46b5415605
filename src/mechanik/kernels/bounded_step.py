"""One damped step of Gauss and Newton: hard rows hold, soft rows fall, no number of x leaves its bounds.

With the hard rows eliminated (`elimination.py`), the step of the independent columns minimises

    |e + J s|^2 + damping |s|^2

over the soft rows (`least_squares.py`). Columns that the step would take over a bound are put on it and the rest is
solved again; a column at a bound is let go when the reduced gradient leads inside. The reduced gradient knows the
forces of the closures: going by the sign of J'e instead ended in wrong poses.
"""

from __future__ import annotations

import math

from .bounds import (
    count_bans,
    let_go,
    most_eager,
    put_on_bounds,
    settle_bans,
    shorten,
    stand_still,
    steepest_free,
    steepest_slope,
    stop_at_bounds,
)
from .chain_curvature import bend_chain
from .compiler import part
from .curvature import remember
from .elimination import NONE, eliminate
from .least_squares import assemble, model, solve_free, spread
from .probes import MOST, are_known, begin_probes, find_forces
from .problem import *

PASSES, CAREFUL_PASSES = 12, 24
SLOW = 0.5
"""Where three steps leave more than this of the cost, or the first says that it will, second derivatives are looked
at."""
STUCK = 1e-9
"""A step that is shortened to this share of it goes nowhere."""
CALM = 1e-3
"""By how much less a step is damped that knows all second derivatives, as long as none has been refused."""
UNKNOWN, ASKS = 2.0, 3.0
"""In the place of a curvature: nothing is known of it; or probes are wanted before there is a step."""


@part
def bounded_step(
    I, F, options, x, stage, buffer, damping, newton, curved, probes, wonders, eliminated, calm, moved, placed
):
    """The step from x into `step`. With `newton`, only shut what is hard.

    Args:
        curved: whether second derivatives are estimated, as `curvature.py` does it.
        probes: whether they may be asked for, as `probes.py` has them.
        wonders: whether they are to be asked for as soon as it shows that progress will be slow.
        eliminated: as many independent columns as there were when probes were asked for at this x; 0 if not.
        calm: by how much less a step is damped that knows all second derivatives.
        moved: whether the step before was taken, so that something can be learned from it.
        placed: whether the poses that are there belong to x; else x is where it was at the step before.
    Returns:
        the soft rows' sum of squares once what is hard is shut; by how much the model says that the step changes it;
        the largest reduced gradient of a column that is free to follow it; and what is known of the curvature: ASKS,
        UNKNOWN, or what `solve_free` says of it.
    """
    stages, ban = I[AT_STAGES], I[AT_BAN]
    step, offset, line = I[AT_STEP], I[AT_OFFSET], I[AT_LINE]
    hard, soft = I[stages + STAGE_INTS * stage + HARD], I[stages + STAGE_INTS * stage + SOFT]
    c = I[N_COLUMNS]
    banned = settle_bans(I, F, x)
    change, steepest, cost, n, kept = 0.0, 0.0, 0.0, I[ZERO], I[ZERO]
    chain = I[stages + STAGE_INTS * stage + CHAIN_BLOCK] if curved else I[ZERO] + NONE
    if chain >= 0 and placed == 1.0 and not newton:
        bend_chain(I, F, buffer, chain)
    wide = I[stages + STAGE_INTS * stage + IS_WIDE] == 1 and (chain >= 0 or not curved)
    stale, known, asks, bend = True, False, False, UNKNOWN
    careful, freed, side, left = False, I[ZERO] + NONE, I[ZERO], I[ZERO]
    # what elimination does is kept where forces will be asked for
    tracks = not newton and ((probes and I[I[AT_OLD_COLUMNS]] == NONE) or (wonders and banned > 0))
    for attempt in range(PASSES + CAREFUL_PASSES):
        if stale:
            if eliminated > 0 and attempt == 0:
                n = eliminated
            else:
                n, left = eliminate(I, F, stage, buffer, hard, tracks, newton)
            if not newton:
                if probes:
                    known, free = are_known(I, n)
                    asks = not known and free <= MOST and (attempt == 0 or asks)
                    if asks and not tracks:
                        tracks = True
                        continue
                    if asks:
                        find_forces(I, F, buffer, hard, soft, left)
                        begin_probes(I, F, n)
                        return cost, change, steepest, ASKS
                learned, damped = moved if attempt == 0 else 0.0, calm * damping if known else damping
                bend = UNKNOWN
                cost, kept = assemble(
                    I, F, options, buffer, hard, soft, n, damped, damped == damping, curved, learned, wide
                )
            stale = False
        if newton:
            for v in range(c):
                F[step + v] = F[offset + v]
        else:
            found = solve_free(I, F, options, x, n, banned, kept, chain, curved and bend >= 0.0, damping)
            bend = min(bend, found)
            spread(I, F, n)
        if wonders and tracks and attempt == 0:
            _, free = are_known(I, n)
            if free <= MOST and cost + model(I, F, n, kept, chain) > SLOW * cost:
                find_forces(I, F, buffer, hard, soft, left)
                begin_probes(I, F, n)
                return cost, change, steepest, ASKS
        if careful:
            # as simplex has it: one column at a time is let go, and held again if that leads out at once
            share = shorten(I, F, x)
            if freed != NONE and share < STUCK:
                I[ban + freed] = side
                stale = True
            for i in range(n):
                F[line + i] *= share
            change = model(I, F, n, kept, chain)
            if not stale:
                if freed != NONE or attempt == PASSES + CAREFUL_PASSES - 1:
                    break
                freed = most_eager(I, F, n, steepest_free(I, F, n))
                if freed == NONE:
                    break
                side, I[ban + freed], I[I[AT_RELEASED] + freed] = I[ban + freed], FREE, 1
                banned = count_bans(I)
            else:
                freed = I[ZERO] + NONE
                banned = count_bans(I)
            continue
        over, follower = put_on_bounds(I, F, x)
        # as long as steps are taken, the way to the bounds is shortened, and the next step knows them: nearly as many
        # iterations as with a second pass, which costs a third of one
        stops = over > 0 and hard == 0 and moved == 1.0 and not curved
        last = stops or attempt >= PASSES - 1
        if stops:
            stop_at_bounds(I, F, x, n)
        elif over > 0 and last:
            share = shorten(I, F, x)
            for i in range(n):
                F[line + i] *= share
        if not newton and (over == 0 or last):
            change = model(I, F, n, kept, chain)
        settled = over == 0 and (newton or banned == 0 or let_go(I, F, n) == 0)
        if last or settled:
            done = newton or stops or options[FIXED_DAMPING] > 0.0
            if done or (over == 0 and change < 0.0) or steepest_slope(I, F, x, n) == 0.0:
                break
            stand_still(I, F, x)  # bounds that push each other: begin again, with care
            careful = True
        stale = careful or (over > 0 and follower == 1)  # a dependent column cannot be on its bound: choose others
        banned = count_bans(I)
    if not newton:
        steepest = steepest_slope(I, F, x, n)
        if curved and not wide:
            remember(I, F, n)
    return cost, change, steepest, bend if known else UNKNOWN


@part
def advance(I, F, x, out, clamped):
    """out = x moved by `step`: numbers within their bounds if they are clamped, balls on their sphere."""
    column_x, balls, scale, lower = I[AT_COLUMN_X], I[AT_BALLS], I[AT_SCALE], I[AT_LOWER]
    upper, step = I[AT_UPPER], I[AT_STEP]
    for k in range(I[N_X]):
        F[out + k] = F[x + k]
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        if k >= 0:
            F[out + k] = F[x + k] + F[scale + v] * F[step + v]
            if clamped:
                F[out + k] = min(max(F[out + k], F[lower + v]), F[upper + v])
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
