"""The solver that never gets worse: attempts, stages (`stages.py`) and steps (`bounded_step.py`) in one loop.

It is written as a state machine with one call of each large function, since every further call is compiled again (23 s
instead of 84), and so that it can pause: for rows that are computed in Python, or after some iterations.
"""

from __future__ import annotations

from .attempts import aim, begin, next_attempt
from .bounded_step import ASKS, CALM, advance, bounded_step
from .compiler import kernel, part
from .elimination import NONE
from .probes import next_probe, see_probe
from .problem import *
from .prospects import can_probe, can_wonder, consider
from .read_off import read_off
from .rows import evaluate
from .solver_state import *
from .stages import judge, next_stage

LEAST_DAMPING = 1e-10
"""Added to the damping of every step. Rounding divided by it moves what the goals leave free: answers of redundant arms
differ by up to 2e-10 rad between machine code and plain Python, with 1e-12 by 3e-9. In 3,000 solves of the gallery
(near, out of reach, at singular poses, with levels) both take the same number of iterations, to 1 in 1,000."""


@part
def independent_columns(I):
    n = I[ZERO]
    for v in range(I[N_COLUMNS]):
        if I[I[AT_DEPENDENT] + v] == NONE:
            n += 1
    return n


@kernel("i8(i8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def search(I, F, target, q0, starts, q):
    """Descend from q0, and then from each of `starts`, until one descent succeeds; the best goes into q.

    A target (4, 4) replaces that of the only goal. Returns DONE; or that Python has to compute rows, or that the
    budget of iterations is used up, and then wants to be called again; or that q0 or the target is not what it
    should be.
    """
    x, trial, stages = I[AT_X], I[AT_TRIAL], I[AT_STAGES]
    S, options, out = F[I[AT_STATE] :], F[I[AT_OPTIONS] :], F[I[AT_OUT] :]
    if S[RESUMED] == 0.0:
        if target.shape[0] == 4 and not aim(I, F, target):
            return BAD_TARGET
        if not begin(I, F, S, options, out, q0, starts.shape[0]):
            return BAD_START
    S[RESUMED] = 1.0
    begun, code = S[ITERATIONS], I[ZERO] + DONE
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
        hard, soft = I[stages + STAGE_INTS * stage + HARD], I[stages + STAGE_INTS * stage + SOFT]
        if S[PHASE] == PROBING:
            see_probe(I, F, 1 - current, hard, soft, int(S[PROBE]), int(S[MOTIONS]))
            S[PROBE] += 1
            action = PROBE_FIRST
        else:
            action = judge(I, F, S, options, out)
        if action == LOOK_AGAIN:
            continue
        eliminated = I[ZERO]
        while True:
            if action == PROBE_FIRST:
                S[PROBE] = next_probe(I, F, int(S[PROBE]), int(S[MOTIONS]))
                if S[PROBE] < S[MOTIONS]:
                    break
                action, eliminated = STEP, int(S[MOTIONS])
            if action == STAGE_OVER:
                break
            newton, current = action == NEWTON, int(S[CURRENT])
            damping = S[MU] * S[COST] + LEAST_DAMPING
            if options[FIXED_DAMPING] > 0.0:
                damping = options[FIXED_DAMPING] * S[MU] / options[FIRST_MU]
            base, buffer = (trial, 1 - current) if newton else (x, current)
            curved, moved, placed = S[CURVED] == 1.0, S[MOVED], S[PLACED]
            probes, wonders = curved and can_probe(I, S, options, stage), can_wonder(I, S, options)
            calm = CALM if S[MU] <= options[FIRST_MU] else 1.0
            cost, change, steepest, bend = bounded_step(
                I, F, options, base, stage, buffer, damping, newton, curved, probes, wonders, eliminated, calm, moved,
                placed,
            )  # fmt: skip
            if newton:
                break
            S[MOVED], S[PLACED] = 0.0, 0.0
            if bend == ASKS:
                action, S[PHASE], S[PROBE], S[MOTIONS] = PROBE_FIRST, PROBING, 0, independent_columns(I)
                S[CURVED], S[FRESH] = 1.0, 1.0
                continue
            S[PHASE] = TRIAL
            eliminated = I[ZERO]
            action = consider(I, F, S, options, out, cost, change, steepest, bend)
            if action != STEP_AGAIN:
                S[IN_STAGE] += 1
                S[ITERATIONS] += 1
                break
        if action == STAGE_OVER:
            if not next_stage(I, F, S, options, out) and not next_attempt(I, F, S, options, out, starts):
                break
            continue
        if action == LOOK_AGAIN:  # kicked: what comes of it counts as a beginning
            S[PHASE] = FIRST
        advance(I, F, trial if action == NEWTON else x, trial, action != PROBE_FIRST)
        if S[ITERATIONS] - begun >= options[BUDGET]:
            code = I[ZERO] + PAUSED
            break
    if I[N_READ_OFF] > 0:
        read_off(I, F, x)
    if code == DONE:
        S[RESUMED] = 0.0
        for k in range(q.shape[0]):
            q[k] = F[x + k]
    return code
