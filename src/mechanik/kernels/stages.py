"""Stage by stage down: whether a trial is taken, when a stage is over, and what the next one holds.

Stage 0 shuts the loops; each further stage is a level of goals, with the loops and all higher levels hard. A trial
step is accepted only if the stage's sum of squares falls and what is hard still holds; where the step has opened
something hard by second order, Newton shuts it again first. So the last accepted x is never worse than any before it.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import SLOW
from .compiler import part
from .curvature import forget
from .problem import *
from .prospects import SLOPE_OF_ROUNDING, can_curve, can_probe, copy, curve
from .solver_state import *

LARGEST_MU = 1e10
ROUNDING = 1e-8
ROUNDS = 3
RELUCTANCE = 1e4
LAZY_GAIN, LAZY_OPEN = 0.25, 1e-2
"""A step that gains this much may leave loops open by so little: the next one shuts them on its way."""
UNSURE_STEPS = 3
"""Where all second derivatives are known, so many steps may leave loops open; what counts is the cost once they are
shut."""
TIGHT = 0.05
"""The share of a step's gain that an open loop may pretend."""
ROUNDED_OFF, LAST_SHUT = 1e-5, 0.1
"""What is shut by so much more than it must be is shut as well as can be; and by how much more it is to be at the end,
so that who goes on from there finds it shut."""
FAITHFUL = 0.9
"""Second derivatives are looked at anew where the gain was not this share of what they promised."""
NEWTONS_FOR_TRIAL, NEWTONS_FOR_START = 8, 30
ABANDONED_MU, ABANDONED_GAIN = 1e3, 0.5
"""An attempt of several is given up at this damping, or if its cost is above this share of what it was three
iterations ago. Tuned on random targets of a Panda and a UR5."""


@part
def fit_slacks(I, F, x, buffer, hard, soft):
    """Give the slacks of soft rows the values that serve them best."""
    blocks, block_columns, slack, weight = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_SLACK], I[AT_WEIGHT]
    lower, upper, rows = I[AT_LOWER], I[AT_UPPER], I[AT_ROWS]
    E = rows + I[N_ROWS] * buffer
    for b in range(hard, soft):
        if I[blocks + BLOCK_INTS * b + HAS_BANDS] == 1:
            for r in range(
                I[blocks + BLOCK_INTS * b + FIRST_ROW],
                I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS],
            ):
                k = I[slack + 2 * r]
                if k >= 0:
                    v = I[slack + 2 * r + 1]  # within the block; its bounds are found through the block's columns
                    column = I[block_columns + I[blocks + BLOCK_INTS * b + FIRST_COLUMN] + v]
                    inside = min(max(F[x + k] + F[E + r] / F[weight + r], F[lower + column]), F[upper + column])
                    F[E + r] -= F[weight + r] * (inside - F[x + k])
                    F[x + k] = inside


@part
def sum_of_squares(I, F, buffer, start, end):
    """Of the rows of the blocks from start to end; and whether each block is within its tolerances."""
    blocks, data, rows = I[AT_BLOCKS], I[AT_DATA], I[AT_ROWS]
    E = rows + I[N_ROWS] * buffer
    total, met = 0.0, True
    for b in range(start, end):
        block = blocks + BLOCK_INTS * b
        metres, radians = 0.0, 0.0
        mask, row = I[block + MASK], I[block + FIRST_ROW]
        lengths = 0
        for bit in range(3):
            lengths += (mask >> bit) & 1
        for r in range(I[block + ROWS]):
            e2 = F[E + row + r] * F[E + row + r]
            if r < lengths:
                metres += e2
            else:
                radians += e2
        total += metres + radians
        met &= metres <= F[data + BLOCK_FLOATS * b + METRES2] and radians <= F[data + BLOCK_FLOATS * b + RADIANS2]
    return total, met


@part
def how_open(I, F, S, options, out, buffer, stage):
    """The largest deviation of what is hard in this stage, in units of its rows.

    Levels that were met are held at zero, row by row. One that could not be met is held at its sum of squares: at a
    closest pose some of its rows cannot be moved at all.
    """
    blocks, stages, rows = I[AT_BLOCKS], I[AT_STAGES], I[AT_ROWS]
    E = rows + I[N_ROWS] * buffer
    worst = 0.0
    for s in range(stage):
        start, end = I[stages + STAGE_INTS * s + HARD], I[stages + STAGE_INTS * s + SOFT]
        about = STAGES_OUT + STAGE_NUMBERS * s
        if out[about + HELD_BY_ROWS] == 1.0:
            for b in range(start, end):
                for r in range(
                    I[blocks + BLOCK_INTS * b + FIRST_ROW],
                    I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS],
                ):
                    worst = max(worst, abs(F[E + r]))
        else:
            total = 0.0
            for b in range(start, end):
                for r in range(
                    I[blocks + BLOCK_INTS * b + FIRST_ROW],
                    I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS],
                ):
                    total += F[E + r] * F[E + r]
            excess = total - out[about + STAGE_COST] * (1.0 + ROUNDING)
            if excess > 0.0:
                worst = max(worst, math.sqrt(excess))
    return worst


@part
def hold_what_is_there(I, F, S, options, out, stage):
    """Rows of levels that could not be met stay as they are, and what moves them at all moves reluctantly.

    At a closest pose some of their rows change only to second order, so that nothing holds them. How much they change,
    the error times the column tells.
    """
    blocks, stages, block_columns, reluctance = I[AT_BLOCKS], I[AT_STAGES], I[AT_BLOCK_COLUMNS], I[AT_RELUCTANCE]
    current = int(S[CURRENT])
    E, J, hold = I[AT_ROWS] + I[N_ROWS] * current, I[AT_JACOBIAN] + I[N_JACOBIAN] * current, I[AT_HOLD]
    for v in range(I[N_COLUMNS]):
        F[reluctance + v] = 1.0
    for s in range(1, stage):
        if out[STAGES_OUT + STAGE_NUMBERS * s + HELD_BY_ROWS] == 0.0:
            size = math.sqrt(out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_COST])
            for b in range(I[stages + STAGE_INTS * s + HARD], I[stages + STAGE_INTS * s + SOFT]):
                block = blocks + BLOCK_INTS * b
                width, first, row = I[block + COLUMNS], I[block + FIRST_COLUMN], I[block + FIRST_ROW]
                for r in range(I[block + ROWS]):
                    F[hold + row + r] = F[E + row + r]
                    for u in range(width):
                        v = I[block_columns + first + u]
                        F[reluctance + v] += RELUCTANCE * size * abs(F[J + I[block + FIRST_J] + r * width + u])


@part
def go_back(I, F, S, options, out, status):
    """The present state cannot be shut: end the stage with the last one that was."""
    trial, last_shut = I[AT_TRIAL], I[AT_LAST_SHUT]
    if S[PHASE] == CLOSING and S[IN_STAGE] == 0 and S[STAGE] > 1 and S[STRICT] < 2.0:
        # a level that counts as met cannot be held row by row: hold its sum of squares instead
        for s in range(1, int(S[STAGE])):
            out[STAGES_OUT + STAGE_NUMBERS * s + HELD_BY_ROWS] = 0.0
        S[STRICT], S[PHASE] = 2.0, FIRST
    elif S[PHASE] == CLOSING and S[STRICT] == 0.0:
        S[STRICT], S[PHASE] = 1.0, FIRST  # as in `reject`
    else:
        S[FINAL], S[PHASE] = status, LAST
    copy(I, F, last_shut, trial)
    return LOOK_AGAIN


@part
def end_stage(I, F, S, options, out, status, shut):
    S[FINAL] = status
    if shut:
        return STAGE_OVER
    return go_back(I, F, S, options, out, status)


@part
def tire(I, F, S, options, out, shut):
    """Whether to go on after an accepted step."""
    stages = I[AT_STAGES]
    if S[IN_STAGE] >= options[MAX_ITERATIONS]:
        return end_stage(I, F, S, options, out, TIMEOUT, shut)
    if S[ABANDONS] == 1.0 and I[stages + STAGE_INTS * int(S[STAGE]) + IS_WISH] == 0:
        stuck = S[IN_STAGE] >= 3 and S[COST] > ABANDONED_GAIN * S[BEFORE_3]
        if stuck or S[MU] > ABANDONED_MU or S[IN_STAGE] >= options[PATIENCE]:
            return end_stage(I, F, S, options, out, STALLED, shut)
    return STEP


@part
def reject(I, F, S, options, out):
    trial, last_shut = I[AT_TRIAL], I[AT_LAST_SHUT]
    if S[IS_SHUT] == 0.0:  # the cost of an open state may be one that no shut one has: from now on none is taken
        S[STRICT], S[PHASE] = 1.0, FIRST
        S[UNSURE], S[KNOWN], S[FINE] = 0.0, 0.0, 0.0
        copy(I, F, last_shut, trial)
        return LOOK_AGAIN
    flat = S[STEEPEST] < SLOPE_OF_ROUNDING * math.sqrt(S[COST])
    if S[FINE] == 1.0 and flat:
        S[FINAL] = CLOSEST
        return STAGE_OVER
    S[MU] = min(S[MU] * 8.0, LARGEST_MU)
    if S[MU] >= LARGEST_MU:
        return end_stage(I, F, S, options, out, CLOSEST if flat else STALLED, S[IS_SHUT] == 1.0)
    return tire(I, F, S, options, out, S[IS_SHUT] == 1.0)


@part
def judge(I, F, S, options, out):
    """The trial has been evaluated: take it, shut it, or leave it."""
    stages, x = I[AT_STAGES], I[AT_X]
    trial, last_shut = I[AT_TRIAL], I[AT_LAST_SHUT]
    stage, phase, current = int(S[STAGE]), int(S[PHASE]), int(S[CURRENT])
    hard, soft = I[stages + STAGE_INTS * stage + HARD], I[stages + STAGE_INTS * stage + SOFT]
    fit_slacks(I, F, trial, 1 - current, hard, soft)
    cost, met = sum_of_squares(I, F, 1 - current, hard, soft)
    opened = how_open(I, F, S, options, out, 1 - current, stage)
    enough = options[SHUT]
    if (phase == TRIAL or phase == RESTORED) and S[FINE] == 1.0:
        enough *= LAST_SHUT
    elif (phase == TRIAL or phase == RESTORED) and not 0.0 < S[UNMET] < stage:
        # what is open pulls at the cost: a small gain is none unless the loops are shut the better
        enough = min(enough, max(TIGHT * (S[COST] - S[PREDICTED]) / math.sqrt(S[COST]), ROUNDED_OFF * enough))
    shut = opened <= enough or (phase == RESTORED and S[NEWTONS] > 1 and opened <= options[SHUT])

    unsure = phase == TRIAL and not shut and S[KNOWN] == 1.0 and S[FINE] == 0.0 and S[UNSURE] < UNSURE_STEPS
    lazy = S[STRICT] == 0.0 and opened < LAZY_OPEN and (cost < LAZY_GAIN * S[COST] or unsure)
    unsure &= lazy
    if phase == TRIAL and not shut and not lazy:
        S[PHASE], S[NEWTONS], S[LAST_OPEN] = RESTORED, 1, opened
        return NEWTON
    if (phase == RESTORED or phase == CLOSING) and not shut:
        most = NEWTONS_FOR_TRIAL if phase == RESTORED else NEWTONS_FOR_START
        if S[NEWTONS] < most and opened < 1e3 and not (S[NEWTONS] > 3 and opened > 0.9 * S[LAST_OPEN]):
            S[NEWTONS] += 1
            S[LAST_OPEN] = opened
            return NEWTON
        if phase == CLOSING:
            return go_back(I, F, S, options, out, STALLED)
        return reject(I, F, S, options, out)
    before = max(S[COST], S[FAIR]) if S[UNSURE] == 0.0 else S[SHUT_COST]
    if (phase == TRIAL or phase == RESTORED) and not cost < before and not unsure:
        return reject(I, F, S, options, out)

    # accepted
    if phase == TRIAL or phase == RESTORED:
        sure = not unsure and S[UNSURE] == 0.0
        gain = (before - cost) / max(before - S[PREDICTED], 1e-300) if sure else 1.0
        if options[FIXED_DAMPING] > 0.0:
            S[MU] = options[FIRST_MU]
        elif gain > 0.75:
            S[MU] = max(S[MU] * 0.2, 1e-8)
        elif gain < 0.25:
            S[MU] = min(S[MU] * 4.0, LARGEST_MU)
        S[BEFORE_3], S[BEFORE_2], S[BEFORE_1] = S[BEFORE_2], S[BEFORE_1], S[COST]
        S[MOVED] = 1.0 if sure else 0.0
        S[UNSURE] = S[UNSURE] + 1.0 if unsure else 0.0
        if 0 < S[UNMET] < stage:
            S[MOVED_BELOW] = 1.0
        if S[CURVED] == 0.0 and cost > SLOW * S[BEFORE_3] and can_curve(I, stage):
            curve(I, F, S)
        elif (
            S[CURVED] == 1.0 and abs(gain - 1.0) > 1.0 - FAITHFUL and S[FINE] == 0.0 and can_probe(I, S, options, stage)
        ):
            forget(I, F)
    copy(I, F, trial, x)
    S[ASKED], S[FRESH] = 0.0, 0.0
    S[COST], S[CURRENT], S[IS_SHUT], S[PLACED] = cost, 1 - current, 1.0 if shut else 0.0, 1.0
    if shut or (phase == FIRST and S[IN_STAGE] == 0):
        copy(I, F, x, last_shut)
        S[SHUT_COST] = cost
    if phase == FIRST:
        hold_what_is_there(I, F, S, options, out, stage)
    if phase == LAST:
        return STAGE_OVER
    if not shut and (phase == FIRST or met):
        S[CURRENT] = current  # Newton goes on from the trial
        S[PHASE], S[NEWTONS], S[LAST_OPEN] = CLOSING, 1, opened
        return NEWTON
    if met:
        S[FINAL] = CONVERGED
        return STAGE_OVER
    if shut and S[FINE] == 1.0:
        S[FINAL] = CLOSEST
        return STAGE_OVER
    return tire(I, F, S, options, out, shut)


@part
def begin_stage(I, F, S, options, out, stage):
    x, trial = I[AT_X], I[AT_TRIAL]
    S[STAGE], S[PHASE], S[MU], S[COST] = stage, FIRST, options[FIRST_MU], np.inf
    S[KICKED], S[STEEPEST], S[CURVED], S[MOVED], S[STRICT] = 0.0, 0.0, 0.0, 0.0, 0.0
    S[BEFORE_1], S[BEFORE_2], S[BEFORE_3] = np.inf, np.inf, np.inf
    S[ASKED], S[KNOWN], S[FINE], S[UNSURE], S[LAST_LENGTH], S[FAIR] = 0.0, 0.0, 0.0, 0.0, np.inf, 0.0
    copy(I, F, x, trial)


@part
def next_stage(I, F, S, options, out):
    """Close the books of a stage and open the next one; False if that was the last."""
    blocks, stages = I[AT_BLOCKS], I[AT_STAGES]
    rows, hold, trial, kicked = I[AT_ROWS], I[AT_HOLD], I[AT_TRIAL], I[AT_KICKED]
    stage = int(S[STAGE])
    status = S[FINAL]
    if S[KICKED] >= 1.0 and status != CONVERGED and S[COST] > S[COST_AT_KICK] * (1.0 - 1e-6):
        S[KICKED], S[PHASE], S[FINAL] = -1.0, LAST, CLOSEST
        copy(I, F, kicked, trial)
        return True
    E = rows + I[N_ROWS] * int(S[CURRENT])
    about = STAGES_OUT + STAGE_NUMBERS * stage
    out[about + STAGE_STATUS], out[about + STAGE_COST] = status, S[COST]
    out[about + STAGE_STEEPEST], out[about + STAGE_ITERATIONS] = S[STEEPEST], S[IN_STAGE]
    out[about + HELD_BY_ROWS] = 1.0 if status == CONVERGED else 0.0
    for b in range(I[stages + STAGE_INTS * stage + HARD], I[stages + STAGE_INTS * stage + SOFT]):
        for r in range(
            I[blocks + BLOCK_INTS * b + FIRST_ROW],
            I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS],
        ):
            F[hold + r] = 0.0 if status == CONVERGED else F[E + r]
    missed = status != CONVERGED and I[stages + STAGE_INTS * stage + IS_WISH] == 0
    if missed and S[UNMET] == 0.0:
        S[UNMET] = stage
    last = stage + 1 == I[N_STAGES] or (S[ROUND] == ROUNDS and stage == S[UNMET])
    if last and S[MOVED_BELOW] == 1.0 and S[ABANDONS] == 0.0 and S[ROUND] < ROUNDS:
        # lower levels have moved on while a level that cannot be met was held: it may come closer from there
        S[ROUND] += 1.0
        S[MOVED_BELOW], S[IN_STAGE] = 0.0, 0.0
        begin_stage(I, F, S, options, out, S[UNMET])
        return True
    if last or (missed and (stage == 0 or S[ABANDONS] == 1.0)):
        return False
    begin_stage(I, F, S, options, out, stage + 1.0)
    if stage == 0 and S[IN_STAGE] == 0:  # evaluated with it, and not moved since
        S[CURRENT] = 1 - S[CURRENT]
        S[EVALUATED] = 1.0
    S[IN_STAGE] = 0
    return True
