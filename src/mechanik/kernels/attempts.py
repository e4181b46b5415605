"""Attempts: a descent from q0, and from further starts until one succeeds; the best is kept."""

from __future__ import annotations

import numpy as np

from .compiler import part
from .problem import *
from .solver_state import *
from .stages import begin_stage, copy, sum_of_squares

HARDLY_A_TURN = 1e-6
"""Of the square of a ball's four numbers: what is less is not made a unit without asking."""
NOT_A_ROTATION = 1e-6
RANKED = 128
"""How many starts are tried nearest first. Twice as many save 2 % of the iterations and cost as much in looking."""


@part
def aim(I, F, target):
    """Put a pose (4, 4) in the place of the one goal that there is; False if it is none."""
    size = 0.0
    for k in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            square += target[r, k] * target[r, k]
            dot += target[r, k] * target[r, (k + 1) % 3]
        size += abs(dot) + abs(square - 1.0) + 0.0 * target[k, 3] + abs(target[3, k])
    x = target[1, 1] * target[2, 2] - target[1, 2] * target[2, 1]
    y = target[1, 2] * target[2, 0] - target[1, 0] * target[2, 2]
    z = target[1, 0] * target[2, 1] - target[1, 1] * target[2, 0]
    mirrored = target[0, 0] * x + target[0, 1] * y + target[0, 2] * z < 0.0
    if mirrored or not size + abs(target[3, 3] - 1.0) < NOT_A_ROTATION:
        return False
    frame = I[AT_DATA] + BLOCK_FLOATS * I[TARGET] + FRAME_A
    for r in range(3):
        F[frame + 9 + r] = target[r, 3]
        for k in range(3):
            F[frame + 3 * r + k] = target[r, k]
    return True


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
            I[ban + v] = FREE
            if k >= 0:
                F[x + k] = min(max(F[x + k], F[lower + v]), F[upper + v])
                # where it begins on a bound, it is likely to stay: the first step lets go of what leads inside
                if F[x + k] == F[upper + v]:
                    I[ban + v] = ON_UPPER
                elif F[x + k] == F[lower + v]:
                    I[ban + v] = ON_LOWER
    for s in range(I[N_STAGES]):
        out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_STATUS] = NOT_TRIED
        out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_COST] = np.inf
    S[CURRENT], S[IN_STAGE], S[EVALUATED] = 0.0, 0.0, 0.0
    S[UNMET], S[MOVED_BELOW], S[ROUND] = 0.0, 0.0, 0.0
    begin_stage(I, F, S, options, out, 0.0)


@part
def begin(I, F, S, options, out, q0, restarts):
    """The first attempt, from q0; False if q0 is not finite, or the numbers of a ball are hardly any turn."""
    lower, upper, column_x, best_cost = I[AT_LOWER], I[AT_UPPER], I[AT_COLUMN_X], I[AT_BEST_COST]
    S[ATTEMPT], S[ITERATIONS], S[EVALUATIONS], S[LAST_DISTANCE] = 0.0, 0.0, 0.0, -1.0
    S[ABANDONS] = 1.0 if restarts > 0 else 0.0
    for s in range(I[N_STAGES]):
        F[best_cost + s] = np.inf
    total = 0.0
    for k in range(q0.shape[0]):
        total += q0[k]
    turns = True
    for i in range(I[N_BALLS]):
        k = I[I[AT_BALLS] + 2 * i]
        turns &= q0[k] * q0[k] + q0[k + 1] * q0[k + 1] + q0[k + 2] * q0[k + 2] + q0[k + 3] * q0[k + 3] > HARDLY_A_TURN
    out[BROUGHT_IN] = 0.0
    for v in range(I[N_COLUMNS]):
        k = I[column_x + v]
        if 0 <= k < q0.shape[0] and (q0[k] < F[lower + v] or q0[k] > F[upper + v]):
            out[BROUGHT_IN] = 1.0
    load(I, F, q0)
    begin_attempt(I, F, S, options, out)
    return np.isfinite(total) and turns


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
            _, met = sum_of_squares(
                I, F, int(S[CURRENT]), I[stages + STAGE_INTS * s + HARD], I[stages + STAGE_INTS * s + SOFT]
            )
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
    if status == CONVERGED and not success:  # what was met could not be held
        status = STALLED
    out[STATUS] = OPEN if out[STAGES_OUT + STAGE_STATUS] != CONVERGED else status


@part
def nearest_start(I, F, S, starts, k):
    """The start, of those not tried, at which the goal's frame B is nearest to A; k if there is none.

    Behind each start is the pose of B there. Distances grow from one attempt to the next, so the last one tells
    what was tried.
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
        S[ATTEMPT] -= 1.0  # no further start
        copy(I, F, best, x)
    begin_attempt(I, F, S, options, out)
    return True
