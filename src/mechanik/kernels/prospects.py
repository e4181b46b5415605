"""A step has been computed: what may come of it, whether to look closer, to take it, to leave an edge, or to stop.

Where the model of Gauss and Newton says that the first step leaves much of the cost, second derivatives are looked at
(`probes.py`). With them a closest pose is told from an edge: at a strict minimum the stage is over; where the sum of
squares bends down, as at a dead point from which the goal comes back, a step along that direction leaves it.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import SLOW, UNKNOWN
from .compiler import part
from .curvature import forget
from .factors import FLAT
from .least_squares import spread
from .probes import MOST, free_motions
from .problem import *
from .solver_state import *

HIDDEN, SLOPE_OF_ROUNDING = 2e-15, 5e-7
FASTEST, FINEST = 0.01, 10.0
"""The share of a slope that a step is trusted to leave, at least, where all second derivatives are known; and how many
times the smallest slope a step may leave to be the last."""
OPEN_KICKS, OPEN_KICK, CRAWLING = 12.0, 0.8, 0.8
"""How often, and how far (rad, or sizes), loops that do not shut are shaken; and what share of the cost three steps
leave where they are. Tuned on a delta robot from uniform starts."""
LARGEST_EDGE, HARDEST_EDGE = 0.5, 1e3
"""How far a step along an edge may go (rad), and the damping at which it is given up."""
SLUGGISH = 0.6
"""And where a step is not this much shorter than the one before."""


@part
def copy(I, F, x, out):
    for k in range(I[N_X]):
        F[out + k] = F[x + k]


@part
def can_curve(I, stage):
    """Whether second derivatives are known of a chain, or are worth a matrix over all columns.

    For wishes of a long arm they are not: a rest pose takes as many steps with them, each fifteen times as long.
    """
    at = I[AT_STAGES] + STAGE_INTS * stage
    return I[at + CHAIN_BLOCK] >= 0 or (I[N_SQUARE] > 0 and (I[at + IS_WIDE] == 0 or I[at + IS_WISH] == 0))


@part
def can_probe(I, S, options, stage):
    """Whether second derivatives can be looked at.

    Rows written in Python would take long. And a level that could not be met is held by its sum of squares, of which
    the rows say nothing.
    """
    at = I[AT_STAGES] + STAGE_INTS * stage
    if 0.0 < S[UNMET] < stage:
        return False
    held_back = options[LARGEST_ERROR] < np.inf or options[LARGEST_ANGLE] < np.inf or options[FIXED_DAMPING] > 0.0
    return I[N_SQUARE] > 0 and I[at + CHAIN_BLOCK] < 0 and I[N_FUNCTIONS] == 0 and not held_back


@part
def can_wonder(I, S, options):
    """Whether second derivatives may be looked at before there is need: not for wishes, nor for one attempt of many."""
    stage = int(S[STAGE])
    is_wish = I[I[AT_STAGES] + STAGE_INTS * stage + IS_WISH] == 1
    soon = S[CURVED] == 0.0 and S[IS_SHUT] == 1.0 and S[ABANDONS] == 0.0 and stage > 0
    return soon and not is_wish and can_probe(I, S, options, stage)


@part
def curve(I, F, S):
    S[CURVED] = 1.0
    forget(I, F)


@part
def longest(I, F, step):
    """The largest motion of a column in a step."""
    largest = 0.0
    for v in range(I[N_COLUMNS]):
        largest = max(largest, abs(F[step + v]))
    return largest


@part
def left_over(I, F):
    """The largest slope that the model leaves at the end of the step, of columns that are free."""
    largest, i = 0.0, 0
    for k in range(I[N_COLUMNS]):
        if I[I[AT_DEPENDENT] + I[I[AT_ORDER] + k]] < 0:
            if I[I[AT_BAN] + I[I[AT_ORDER] + k]] == FREE:
                largest = max(largest, abs(F[I[AT_FULL] + i]))
            i += 1
    return largest


@part
def consider(I, F, S, options, out, cost, change, steepest, bend):
    """A step has been computed: is there anything to gain?"""
    stages, step = I[AT_STAGES], I[AT_STEP]
    if options[LARGEST_ERROR] < np.inf or options[LARGEST_ANGLE] < np.inf:
        cost = S[COST]  # the model saw shortened errors
    known = FLAT < bend <= 1.0
    S[FAIR] = 0.0
    if S[UNSURE] > 0.0:
        S[COST] = cost
    elif S[IS_SHUT] == 1.0 and bend != UNKNOWN:
        S[FAIR] = cost  # that of x, if its loops were shut altogether
    S[PREDICTED], S[STEEPEST] = cost + change, steepest
    S[KNOWN], S[FINE] = 1.0 if known else 0.0, 0.0
    if known:  # what a step leaves of the slope is as much as it is shorter than the one before
        length, shutting = longest(I, F, I[AT_STEP]), longest(I, F, I[AT_OFFSET])
        rate = min(max(length / S[LAST_LENGTH], FASTEST), 1.0) if S[LAST_LENGTH] < np.inf else 1.0
        left = max(steepest * rate, left_over(I, F), length * length, shutting)
        calm = S[MU] <= options[FIRST_MU] and S[STAGE] > 0.0  # else damping shortens steps
        calm &= options[KICKS] <= 1.0  # else the end of this descent is the beginning of another
        if calm and left < FINEST * options[SMALLEST_GRADIENT] * math.sqrt(S[COST]):
            S[FINE] = 1.0
        elif length > SLUGGISH * S[LAST_LENGTH] and S[FRESH] == 0.0:  # they belong to a place that is too far off
            S[LAST_LENGTH] = np.inf
            forget(I, F)
            return STEP_AGAIN
        S[LAST_LENGTH] = max(length, 1e-300)
    if S[IS_SHUT] == 0.0:
        return STEP
    is_wish, probes = I[stages + STAGE_INTS * int(S[STAGE]) + IS_WISH] == 1, can_probe(I, S, options, int(S[STAGE]))
    if S[PREDICTED] > SLOW * S[COST] and can_wonder(I, S, options) and free_motions(I) <= MOST:
        curve(I, F, S)
        return STEP_AGAIN
    # where nothing is left to gain that rounding would not hide, a small slope counts as none
    hidden = -change < HIDDEN * S[COST] and steepest < SLOPE_OF_ROUNDING * math.sqrt(S[COST])
    shakes = S[STAGE] == 0.0 and S[ABANDONS] == 0.0 and options[KICK] > 0.0 and S[KICKED] < OPEN_KICKS
    crawls = shakes and S[COST] > CRAWLING * S[BEFORE_3]
    if steepest > options[SMALLEST_GRADIENT] * math.sqrt(S[COST]) and not hidden and not crawls:
        if options[SMALLEST_STEP] == 0.0 or longest(I, F, step) >= options[SMALLEST_STEP]:
            return STEP
        S[FINAL] = STALLED
        return STAGE_OVER
    S[FINAL] = CLOSEST
    if options[KICK] == 0.0 or is_wish:
        return STAGE_OVER
    if probes and bend == UNKNOWN and S[ASKED] < 2.0 and not crawls and free_motions(I) <= MOST:
        S[ASKED] += 1.0
        if S[CURVED] == 0.0:
            curve(I, F, S)
        return STEP_AGAIN
    if bend < 0.0 and S[MU] < HARDEST_EDGE and not crawls:
        follow_edge(I, F, S, bend, options[FIRST_MU])
        return STEP
    kicks, kick = options[KICKS], options[KICK]
    if shakes:  # a loop that is open has nothing to lose
        kicks, kick = max(kicks, OPEN_KICKS), OPEN_KICK if crawls or S[KICKED] > 0.0 else kick
    elif known and kicks <= 1.0:
        return STAGE_OVER
    if S[KICKED] < kicks:
        shake(I, F, S, kick, options[FIRST_MU])
        return LOOK_AGAIN
    return STAGE_OVER


@part
def follow_edge(I, F, S, bend, first_mu):
    """A step along the direction in which the sum of squares bends down, where it has no slope.

    Along it the rows change by k s^2 / 2 with e·k = bend. They vanish at s = sqrt(2 |e|^2 / -bend) if k is along e, as
    it is at a dead point that is left; else the step is too long and, refused, is tried again shorter, the other way.
    """
    length = min(math.sqrt(2.0 * S[COST] / -bend), LARGEST_EDGE) * math.sqrt(min(1.0, first_mu / S[MU]))
    if int(S[IN_STAGE]) % 2 == 1:
        length = -length
    n = I[ZERO]
    for v in range(I[N_COLUMNS]):
        F[I[AT_OFFSET] + v] = 0.0
        if I[I[AT_DEPENDENT] + v] < 0:
            n += 1
    for i in range(n):
        F[I[AT_LINE] + i] = length * F[I[AT_EDGE] + i]
    spread(I, F, n)
    S[PREDICTED] = S[COST] + 0.5 * bend * length * length


@part
def shake(I, F, S, kick, first_mu):
    """A step of all columns: a straight arm that is asked to shorten has no slope; try whether it is on an edge."""
    x, kicked, step = I[AT_X], I[AT_KICKED], I[AT_STEP]
    if S[KICKED] == 0.0 or S[COST] < S[COST_AT_KICK] * (1.0 - 1e-6):
        S[COST_AT_KICK] = S[COST]
        copy(I, F, x, kicked)
    else:
        copy(I, F, kicked, x)
    S[KICKED] += 1.0
    S[MU], S[CURVED], S[KNOWN], S[ASKED] = first_mu, 0.0, 0.0, 0.0
    S[BEFORE_1], S[BEFORE_2], S[BEFORE_3] = np.inf, np.inf, np.inf
    for v in range(I[N_COLUMNS]):
        held = I[I[AT_BAN] + v] == LOCKED
        F[step + v] = 0.0 if held else kick * (1.0 if (v + int(S[KICKED])) * 2654435761 & 4 else -0.7)
