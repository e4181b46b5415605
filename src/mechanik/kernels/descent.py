"""The solver that never gets worse: stage by stage down from a start, with everything above held.

Stage 0 shuts the loops; each further stage is a level of goals, with the loops and all higher levels hard. A trial step is
accepted only if the stage's sum of squares falls and what is hard still holds; where the step has opened something
hard by second order, Newton shuts it again first. So the last accepted x is never worse than any before it.

It is written as a state machine with one call of each large function, since every further call is compiled
again (23 s instead of 84), and so that it can pause: for rows that are computed in Python, or after some iterations.
"""

from __future__ import annotations

import math

import numpy as np

from mechanik.kernels.bounded_step import LOCKED, advance, bounded_step
from mechanik.kernels.compiler import kernel, part
from mechanik.kernels.curvature import forget
from mechanik.kernels.problem import *
from mechanik.kernels.rows import evaluate

# what a call comes back with
DONE, NEEDS_FUNCTIONS, PAUSED, BAD_TARGET, BAD_START = 0, 1, 2, 3, 4

# statuses of a stage and of the whole
CONVERGED, CLOSEST, STALLED, TIMEOUT, OPEN, NOT_TRIED = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0


# state, which lives on when the solver pauses
(RESUMED, ATTEMPT, ABANDONS, STAGE, PHASE, CURRENT, ITERATIONS, EVALUATIONS, IN_STAGE, MU, COST, IS_SHUT, PREDICTED, SHUT_COST,
 NEWTONS, LAST_OPEN, KICKED, COST_AT_KICK, BEFORE_1, BEFORE_2, BEFORE_3, FINAL, STEEPEST, CURVED, MOVED,
 EVALUATED, LAST_DISTANCE) = range(27)  # fmt: skip

# what the trial is: the start of a stage, a damped step, that step shut again, an open state being shut, a state to end with
FIRST, TRIAL, RESTORED, CLOSING, LAST = range(5)

# what comes next
STEP, NEWTON, STAGE_OVER, LOOK_AGAIN = range(4)

# out: of the whole, then four numbers of each stage
STATUS, ITERATIONS_OUT, EVALUATIONS_OUT, ATTEMPTS_OUT, BROUGHT_IN, SUCCESS = range(6)
STAGES_OUT, STAGE_NUMBERS = 8, 5
STAGE_STATUS, STAGE_COST, STAGE_STEEPEST, STAGE_ITERATIONS, HELD_BY_ROWS = range(5)

NOT_A_ROTATION = 1e-6
RANKED = 128
"""How many starts are tried nearest first. Twice as many save 2 % of the iterations and cost as much in looking."""
LARGEST_MU = 1e10
LAZY_GAIN, LAZY_OPEN = 0.25, 1e-2
"""A step that gains this much may leave loops open by so little: the next one shuts them on its way."""
SLOW = 0.5
"""Where three steps leave more than this of the cost, second derivatives are looked at."""
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
            for r in range(I[blocks + BLOCK_INTS * b + FIRST_ROW], I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS]):
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
                for r in range(I[blocks + BLOCK_INTS * b + FIRST_ROW], I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS]):
                    worst = max(worst, abs(F[E + r]))
        else:
            total = 0.0
            for b in range(start, end):
                for r in range(I[blocks + BLOCK_INTS * b + FIRST_ROW], I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS]):
                    total += F[E + r] * F[E + r]
            excess = total - out[about + STAGE_COST] * (1.0 + 1e-9)
            if excess > 0.0:
                worst = max(worst, math.sqrt(excess))
    return worst


@part
def copy(I, F, x, out):
    for k in range(I[N_X]):
        F[out + k] = F[x + k]


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
    shut = opened <= options[SHUT]

    if phase == TRIAL and not shut and not (cost < LAZY_GAIN * S[COST] and opened < LAZY_OPEN):
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
    if (phase == TRIAL or phase == RESTORED) and not cost < S[COST]:
        return reject(I, F, S, options, out)

    # accepted
    if phase == TRIAL or phase == RESTORED:
        gain = (S[COST] - cost) / max(S[COST] - S[PREDICTED], 1e-300)
        if options[FIXED_DAMPING] > 0.0:
            S[MU] = options[FIRST_MU]
        elif gain > 0.75:
            S[MU] = max(S[MU] * 0.2, 1e-8)
        elif gain < 0.25:
            S[MU] = min(S[MU] * 4.0, LARGEST_MU)
        S[BEFORE_3], S[BEFORE_2], S[BEFORE_1] = S[BEFORE_2], S[BEFORE_1], S[COST]
        S[MOVED] = 1.0
        if S[CURVED] == 0.0 and cost > SLOW * S[BEFORE_3]:
            S[CURVED] = 1.0
            forget(I, F)
    copy(I, F, trial, x)
    S[COST], S[CURRENT], S[IS_SHUT] = cost, 1 - current, 1.0 if shut else 0.0
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
    return tire(I, F, S, options, out, shut)


@part
def hold_what_is_there(I, F, S, options, out, stage):
    """Rows of levels that could not be met stay as they are."""
    blocks, stages = I[AT_BLOCKS], I[AT_STAGES]
    rows, hold = I[AT_ROWS], I[AT_HOLD]
    E = rows + I[N_ROWS] * int(S[CURRENT])
    for s in range(1, stage):
        if out[STAGES_OUT + STAGE_NUMBERS * s + HELD_BY_ROWS] == 0.0:
            for b in range(I[stages + STAGE_INTS * s + HARD], I[stages + STAGE_INTS * s + SOFT]):
                for r in range(I[blocks + BLOCK_INTS * b + FIRST_ROW], I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS]):
                    F[hold + r] = F[E + r]


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
def end_stage(I, F, S, options, out, status, shut):
    S[FINAL] = status
    if shut:
        return STAGE_OVER
    return go_back(I, F, S, options, out, status)


@part
def go_back(I, F, S, options, out, status):
    """The present state cannot be shut: end the stage with the last one that was."""
    trial, last_shut = I[AT_TRIAL], I[AT_LAST_SHUT]
    if S[PHASE] == CLOSING and S[IN_STAGE] == 0:
        # a level that counts as met cannot be held row by row: hold its sum of squares instead
        for s in range(1, int(S[STAGE])):
            out[STAGES_OUT + STAGE_NUMBERS * s + HELD_BY_ROWS] = 0.0
        S[PHASE] = FIRST
    else:
        S[FINAL], S[PHASE] = status, LAST
    copy(I, F, last_shut, trial)
    return LOOK_AGAIN


@part
def reject(I, F, S, options, out):
    S[MU] = min(S[MU] * 8.0, LARGEST_MU)
    if S[MU] >= LARGEST_MU:
        return end_stage(I, F, S, options, out, STALLED, S[IS_SHUT] == 1.0)
    return tire(I, F, S, options, out, S[IS_SHUT] == 1.0)


@part
def longest(I, F):
    """The largest motion of a column in the step."""
    largest = 0.0
    for v in range(I[N_COLUMNS]):
        largest = max(largest, abs(F[I[AT_STEP] + v]))
    return largest


@part
def consider(I, F, S, options, out, predicted, steepest):
    """A step has been computed: is there anything to gain?"""
    stages, x = I[AT_STAGES], I[AT_X]
    kicked, step = I[AT_KICKED], I[AT_STEP]
    S[PREDICTED], S[STEEPEST] = predicted, steepest
    if S[IS_SHUT] == 0.0:
        return STEP
    if steepest > options[SMALLEST_GRADIENT] * math.sqrt(S[COST]):
        if options[SMALLEST_STEP] == 0.0 or longest(I, F) >= options[SMALLEST_STEP]:
            return STEP
        S[FINAL] = STALLED
        return STAGE_OVER
    S[FINAL] = CLOSEST
    if options[KICK] > 0.0 and S[KICKED] == 0.0 and I[stages + STAGE_INTS * int(S[STAGE]) + IS_WISH] == 0:
        # a straight arm that is asked to shorten has no slope either: try whether it lies on an edge
        S[KICKED], S[COST_AT_KICK] = 1.0, S[COST]
        copy(I, F, x, kicked)
        for v in range(I[N_COLUMNS]):
            F[step + v] = options[KICK] * (1.0 if (v * 2654435761) & 4 else -0.7)
        return LOOK_AGAIN
    return STAGE_OVER


@part
def next_stage(I, F, S, options, out):
    """Close the books of a stage and open the next one; False if that was the last."""
    blocks, stages = I[AT_BLOCKS], I[AT_STAGES]
    rows, hold, trial, kicked = I[AT_ROWS], I[AT_HOLD], I[AT_TRIAL], I[AT_KICKED]
    stage = int(S[STAGE])
    status = S[FINAL]
    if S[KICKED] == 1.0 and status != CONVERGED and S[COST] > S[COST_AT_KICK] * (1.0 - 1e-6):
        S[KICKED], S[PHASE], S[FINAL] = 2.0, LAST, CLOSEST
        copy(I, F, kicked, trial)
        return True
    E = rows + I[N_ROWS] * int(S[CURRENT])
    about = STAGES_OUT + STAGE_NUMBERS * stage
    out[about + STAGE_STATUS], out[about + STAGE_COST] = status, S[COST]
    out[about + STAGE_STEEPEST], out[about + STAGE_ITERATIONS] = S[STEEPEST], S[IN_STAGE]
    out[about + HELD_BY_ROWS] = 1.0 if status == CONVERGED else 0.0
    for b in range(I[stages + STAGE_INTS * stage + HARD], I[stages + STAGE_INTS * stage + SOFT]):
        for r in range(I[blocks + BLOCK_INTS * b + FIRST_ROW], I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS]):
            F[hold + r] = 0.0 if status == CONVERGED else F[E + r]
    missed = status != CONVERGED and I[stages + STAGE_INTS * stage + IS_WISH] == 0
    if stage + 1 == I[N_STAGES] or (missed and (stage == 0 or S[ABANDONS] == 1.0)):
        return False
    begin_stage(I, F, S, options, out, stage + 1.0)
    if stage == 0 and S[IN_STAGE] == 0:  # evaluated with it, and not moved since
        S[CURRENT] = 1 - S[CURRENT]
        S[EVALUATED] = 1.0
    S[IN_STAGE] = 0
    return True


@part
def begin_stage(I, F, S, options, out, stage):
    x, trial = I[AT_X], I[AT_TRIAL]
    S[STAGE], S[PHASE], S[MU], S[COST] = stage, FIRST, options[FIRST_MU], np.inf
    S[KICKED], S[STEEPEST], S[CURVED], S[MOVED] = 0.0, 0.0, 0.0, 0.0
    S[BEFORE_1], S[BEFORE_2], S[BEFORE_3] = np.inf, np.inf, np.inf
    copy(I, F, x, trial)


@part
def load(I, F, start):
    """The first numbers of x; those that the problem adds to q stay."""
    x = I[AT_X]
    for k in range(start.shape[0]):
        F[x + k] = start[k]


@part
def begin_elsewhere(I, F, start):
    """Those numbers of x that may move, from another start; the rest stays."""
    x, column_x, ban, balls = I[AT_X], I[AT_COLUMN_X], I[AT_BAN], I[AT_BALLS]
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        if 0 <= k < I[N_Q] and I[ban + v] != LOCKED:
            F[x + k] = start[k]
    for i in range(I[N_BALLS]):
        if I[ban + I[balls + 2 * i + 1]] != LOCKED:
            for k in range(I[balls + 2 * i], I[balls + 2 * i] + 4):
                F[x + k] = start[k]


@part
def begin_attempt(I, F, S, options, out):
    """From x, brought inside its bounds."""
    column_x, ban, lower, upper = I[AT_COLUMN_X], I[AT_BAN], I[AT_LOWER], I[AT_UPPER]
    x = I[AT_X]
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        if I[ban + v] != LOCKED:
            I[ban + v] = 0
            if k >= 0:
                F[x + k] = min(max(F[x + k], F[lower + v]), F[upper + v])
    for s in range(I[N_STAGES]):
        out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_STATUS] = NOT_TRIED
        out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_COST] = np.inf
    S[CURRENT], S[IN_STAGE], S[EVALUATED] = 0.0, 0.0, 0.0
    begin_stage(I, F, S, options, out, 0.0)


@part
def is_better(I, F, S, options, out):
    """Whether the attempt that has ended beats the best so far: the first stage in which they differ decides."""
    best_cost = I[AT_BEST_COST]
    for s in range(I[N_STAGES]):
        about = STAGES_OUT + STAGE_NUMBERS * s
        cost = 0.0 if out[about + STAGE_STATUS] == CONVERGED else out[about + STAGE_COST]
        if cost < F[best_cost + s] * (1.0 - 1e-9):
            return True
        if cost > F[best_cost + s] * (1.0 + 1e-9):
            return False
    return False


@part
def succeeded(I, F, S, options, out):
    """Every stage that counts has converged, and holds still at the end."""
    stages = I[AT_STAGES]
    for s in range(I[N_STAGES]):
        if I[stages + STAGE_INTS * s + IS_WISH] == 0:
            if out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_STATUS] != CONVERGED:
                return False
            _, met = sum_of_squares(I, F, int(S[CURRENT]), I[stages + STAGE_INTS * s + HARD], I[stages + STAGE_INTS * s + SOFT])
            if not met:
                return False
    return True


@part
def report(I, F, S, options, out, success):
    stages = I[AT_STAGES]
    out[SUCCESS] = 1.0 if success else 0.0
    out[ITERATIONS_OUT], out[EVALUATIONS_OUT], out[ATTEMPTS_OUT] = S[ITERATIONS], S[EVALUATIONS], S[ATTEMPT]
    status = CONVERGED
    for s in range(I[N_STAGES]):
        if I[stages + STAGE_INTS * s + IS_WISH] == 0:
            status = max(status, out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_STATUS])
    out[STATUS] = OPEN if out[STAGES_OUT + STAGE_STATUS] != CONVERGED else status


@part
def aim(I, F, target):
    """Put a pose (4, 4) in the place of the one goal that there is; False if it is none."""
    size = 0.0
    for k in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            square += target[r, k] * target[r, k]
            dot += target[r, k] * target[r, (k + 1) % 3]
        size += abs(dot) + abs(square - 1.0) + 0.0 * target[k, 3]
    if not size < NOT_A_ROTATION:
        return False
    frame = I[AT_DATA] + BLOCK_FLOATS * I[TARGET] + FRAME_A
    for r in range(3):
        F[frame + 9 + r] = target[r, 3]
        for k in range(3):
            F[frame + 3 * r + k] = target[r, k]
    return True


@part
def begin(I, F, S, options, out, q0, restarts):
    """The first attempt, from q0; False if q0 is not finite."""
    lower, upper, column_x, best_cost = I[AT_LOWER], I[AT_UPPER], I[AT_COLUMN_X], I[AT_BEST_COST]
    S[ATTEMPT], S[ITERATIONS], S[EVALUATIONS], S[LAST_DISTANCE] = 0.0, 0.0, 0.0, -1.0
    S[ABANDONS] = 1.0 if restarts > 0 else 0.0
    for s in range(I[N_STAGES]):
        F[best_cost + s] = np.inf
    total = 0.0
    for k in range(q0.shape[0]):
        total += q0[k]
    out[BROUGHT_IN] = 0.0
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        if 0 <= k < q0.shape[0] and (q0[k] < F[lower + v] or q0[k] > F[upper + v]):
            out[BROUGHT_IN] = 1.0
    load(I, F, q0)
    begin_attempt(I, F, S, options, out)
    return np.isfinite(total)


@part
def nearest_start(I, F, S, starts, k):
    """The start, of those not tried, at which the goal's frame B is nearest to A; k if there is none.

    Behind each start is the pose of B there. Distances grow from one attempt to the next, so the last one tells what was tried.
    """
    block, nq = I[AT_BLOCKS] + BLOCK_INTS * I[TARGET], I[N_Q]
    A, row = I[AT_DATA] + BLOCK_FLOATS * I[TARGET] + FRAME_A, I[AT_WEIGHT] + I[block + FIRST_ROW]
    length, angle = F[row] * F[row], F[row + 3] * F[row + 3]
    best = np.inf
    for i in range(min(starts.shape[0], RANKED)):
        along = 0.0
        for c in range(9):
            along += F[A + c] * starts[i, nq + c]
        x, y, z = F[A + 9] - starts[i, nq + 9], F[A + 10] - starts[i, nq + 10], F[A + 11] - starts[i, nq + 11]
        distance = length * (x * x + y * y + z * z) + angle * (3.0 - along)
        if S[LAST_DISTANCE] < distance < best:
            best, k = distance, i
    S[LAST_DISTANCE] = best
    return k


@part
def next_attempt(I, F, S, options, out, starts):
    """An attempt has ended: keep it if it is the best, and begin the next one; False if there is none."""
    best_cost, x, best = I[AT_BEST_COST], I[AT_X], I[AT_BEST]
    success = succeeded(I, F, S, options, out)
    if success or is_better(I, F, S, options, out) or S[ATTEMPT] == 0.0:
        copy(I, F, x, best)
        for s in range(I[N_STAGES]):
            about = STAGES_OUT + STAGE_NUMBERS * s
            F[best_cost + s] = 0.0 if out[about + STAGE_STATUS] == CONVERGED else out[about + STAGE_COST]
    S[ATTEMPT] += 1.0
    if success or S[ABANDONS] == 0.0:
        report(I, F, S, options, out, success)
        return False
    if S[ATTEMPT] <= starts.shape[0]:
        k = int(S[ATTEMPT]) - 1
        if k < RANKED and starts.shape[1] > I[N_Q]:
            k = nearest_start(I, F, S, starts, k)
        begin_elsewhere(I, F, starts[k])
    else:  # none has succeeded: go as far down as can be from the best
        S[ABANDONS] = 0.0
        copy(I, F, best, x)
    begin_attempt(I, F, S, options, out)
    return True


@kernel("i8(i8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def search(I, F, target, q0, starts, q):
    """Descend from q0, and then from each of `starts`, until one descent succeeds; the best goes into q.

    A target (4, 4) replaces that of the only goal. Returns DONE; or that Python has to compute rows, or that the budget of
    iterations is used up, and then wants to be called again; or that q0 or the target is not what it should be.
    """
    x, trial, stages = I[AT_X], I[AT_TRIAL], I[AT_STAGES]
    S, options, out = F[I[AT_STATE] :], F[I[AT_OPTIONS] :], F[I[AT_OUT] :]
    if S[RESUMED] == 0.0:
        if target.shape[0] == 4 and not aim(I, F, target):
            return BAD_TARGET
        if not begin(I, F, S, options, out, q0, starts.shape[0]):
            return BAD_START
    S[RESUMED] = 1.0
    begun = S[ITERATIONS]
    while True:
        stage, current = int(S[STAGE]), int(S[CURRENT])
        if S[EVALUATED] == 0.0:
            # the first level is looked at together with the closures: mostly they are shut, and it is wanted at once
            last = max(stage, min(1, I[N_STAGES] - 1))
            evaluate(I, F, trial, 1 - current, I[stages + STAGE_INTS * last + SOFT])
            S[EVALUATIONS] += 1
            if I[N_FUNCTIONS] > 0:
                S[EVALUATED] = 1.0
                return NEEDS_FUNCTIONS
        S[EVALUATED] = 0.0
        action = judge(I, F, S, options, out)
        if action == LOOK_AGAIN:
            continue
        if action != STAGE_OVER:
            newton, current = action == NEWTON, int(S[CURRENT])
            damping = S[MU] * S[COST] + 1e-12
            if options[FIXED_DAMPING] > 0.0:
                damping = options[FIXED_DAMPING] * S[MU] / options[FIRST_MU]
            base, buffer = (trial, 1 - current) if newton else (x, current)
            curved, moved = S[CURVED] == 1.0, S[MOVED]
            predicted, steepest = bounded_step(I, F, options, base, stage, buffer, damping, newton, curved, moved)
            if not newton:
                S[MOVED], S[PHASE] = 0.0, TRIAL
                action = consider(I, F, S, options, out, predicted, steepest)
                S[IN_STAGE] += 1
                S[ITERATIONS] += 1
        if action == STAGE_OVER:
            if not next_stage(I, F, S, options, out) and not next_attempt(I, F, S, options, out, starts):
                break
            continue
        if action == LOOK_AGAIN:  # kicked: what comes of it counts as a beginning
            S[PHASE] = FIRST
        advance(I, F, trial if action == NEWTON else x, trial)
        if S[ITERATIONS] - begun >= options[BUDGET]:
            return PAUSED
    S[RESUMED] = 0.0
    for k in range(q.shape[0]):
        q[k] = F[x + k]
    return DONE
