"""Solution branches: all configurations that meet the goals at an s, and their continuation along s.

A continuation step starts at the extrapolation of the step before. A step whose result deviates too much from it is
halved until it is small, or until the branch ends: a jump keeps its size however short the step. So a trace stays on
its branch, and the s where the branch ends is known to a fraction of the distance between waypoints (E. L. Allgower, K.
Georg, "Numerical Continuation Methods", Springer 1990).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mechanik.motion.follow.follow_problem import FEASIBLE, IN_COLLISION, UNMET, Codes, FollowProblem, are_segments_free
from mechanik.solver.search.search_context import search_context
from mechanik.solver.start_configurations import halton_configurations
from mechanik.spatial.array import Array

BRANCH_STARTS = 256
"""Number of starts of the search for all branches at a waypoint, without a closed form."""
MIN_SAMPLE_DISTANCE = 0.1
"""rad and m: smallest distance between two samples, with redundancy."""
SAME_BRANCH = 1e-4
"""rad or m: closer configurations are the same branch."""
STARTS_PER_BATCH = 64
"""Number of starts that are solved together."""
ENOUGH_BRANCHES_RATIO = 2
"""Ratio of found to requested branches at which the search ends."""


def branches_at(problem: FollowProblem, s: float, near: Array, samples: int, ignore_collisions: bool = False) -> Array:
    """Configurations (n, nq) that meet the goals at s: all of them, or samples if the mechanism is redundant.

    Args:
        near: (nq,) the configuration nearest to this is always included.
        samples: largest number of samples, with redundancy. Half as many are used where branches are searched from
            random starts, as with loops. A hexapod has 64 branches, because each strut can be rotated by pi.
        ignore_collisions: whether to include configurations that violate the clearance.
    """
    if problem.redundancy:
        return _select_spread(problem, near, _sample_self_motion(problem, s, near, ignore_collisions), samples)
    if problem.has_all_solutions:
        solver, target = problem.solver_at(s)
        branches = solver.solve_all(target, q0=near, tries=BRANCH_STARTS).q
    else:
        branches = _branches_from_starts(problem, s, near, max(samples // 2, 1))
    if not len(branches) or ignore_collisions:
        return branches
    q, codes = problem.project(np.full(len(branches), s), branches)
    return q[codes == FEASIBLE]


def _branches_from_starts(problem: FollowProblem, s: float, near: Array, count: int) -> Array:
    """Up to `count` configurations (n, nq) that descents from many starts converge to."""
    solver, target = problem.solver_at(s)
    branches = np.zeros((0, problem.space.nq))
    with search_context(solver, target, near, helpers=solver._search_helpers) as context:
        for first in range(0, BRANCH_STARTS, STARTS_PER_BATCH):
            starts = context.starts(first, STARTS_PER_BATCH, None)
            if first == 0:
                starts[0] = near
            candidates, within_limits = context.constraints.unwrap(context.descend(starts), near)
            for q in candidates[within_limits]:
                if not (np.abs(problem.wrapped_difference(q, branches)).max(axis=1, initial=0.0) < SAME_BRANCH).any():
                    branches = np.concatenate([branches, q[None]])
            if len(branches) >= ENOUGH_BRANCHES_RATIO * count:
                break
    return _select_spread(problem, near, branches, count)


def _sample_self_motion(problem: FollowProblem, s: float, near: Array, ignore_collisions: bool) -> Array:
    """Configurations (n, nq) that descents from a Halton sequence converge to, for redundant mechanisms."""
    space = replace(problem.space, lower=problem.lower, upper=problem.upper)
    starts = halton_configurations(space, BRANCH_STARTS if problem.is_batched else BRANCH_STARTS // 8)
    is_constant = np.ones(space.nq, dtype=np.bool_)
    is_constant[space.scalars_q] = ~problem.affecting_dofs[space.scalars_v]
    for k, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
        is_constant[k : k + 4] = not problem.affecting_dofs[v]
    starts = np.concatenate([near[None], np.where(is_constant, near, starts)])
    q, codes = problem.project(np.full(len(starts), s), starts)
    return q[(codes == FEASIBLE) | ((codes == IN_COLLISION) if ignore_collisions else False)]


def _select_spread(problem: FollowProblem, near: Array, candidates: Array, count: int) -> Array:
    """Select up to `count` of the configurations (n, nq): the nearest to `near`, then those far from each other."""
    if not len(candidates):
        return candidates
    chosen = [int(np.argmin(np.linalg.norm(problem.wrapped_difference(near, candidates), axis=1)))]
    distances = np.full(len(candidates), np.inf)
    while len(chosen) < count:
        distances = np.minimum(
            distances, np.linalg.norm(problem.wrapped_difference(candidates[chosen[-1]], candidates), axis=1)
        )
        if distances.max() < (MIN_SAMPLE_DISTANCE if problem.redundancy else SAME_BRANCH):
            break
        chosen.append(int(np.argmax(distances)))
    return candidates[chosen]


MAX_HALVINGS, FINEST_HALVINGS = 6, 20
"""Number of halvings of a waypoint interval after which a branch counts as ended; FINEST where its end is needed
exactly."""
MAX_DEVIATION_RATIO = 0.35
"""Ratio to the step: largest deviation from the extrapolated step."""
SMALL_DEVIATION = 2e-4
"""rad or m: smaller deviations are always accepted."""
MAX_FIRST_STEP = 0.02
"""rad or m: longest step without an extrapolation from a step before."""
MAX_AVOIDANCE_STEP = 0.05
"""rad or m: longest step that moves around an obstacle."""
MAX_TRACE_STEP = 0.35
"""rad or m: longer steps are always halved."""


@dataclass(frozen=True, slots=True, eq=False)
class TracedBranch:
    """A branch traced by continuation along the waypoints.

    Attributes:
        q: (m, nq) configurations at the waypoints that were reached, from the first on.
        end: the s that was reached; beyond the last waypoint reached if the branch ends between two.
        last: (nq,) configuration at `end`.
        code: FEASIBLE if the last waypoint was reached, else the reason for the end (UNMET or IN_COLLISION).
    """

    q: Array
    end: float
    last: Array
    code: int


def trace_branches(problem: FollowProblem, q: Array, s: Array) -> list[TracedBranch]:
    """Trace a branch from each configuration q (K, nq), which meets the goals at s[0], along the waypoints s (M,).

    All branches are traced together, which costs hardly more than tracing one.

    Args:
        s: (M,), increasing or decreasing.
    """
    count, M = len(q), len(s)
    traces = np.empty((M, count, problem.space.nq))
    traces[0] = q
    speed = np.full((count, problem.space.nv), np.nan)  # derivative by s over the last step
    reached = np.full(count, M)
    end, last, codes = np.full(count, s[-1]), q.copy(), np.full(count, FEASIBLE)
    active = np.arange(count)
    for m in range(1, M):
        if not len(active):
            break
        q_here, ds = traces[m - 1, active], float(s[m] - s[m - 1])
        q_next, next_speed, step_codes = _continuation_step(
            problem, q_here, speed[active], np.full(len(active), s[m]), np.full(len(active), ds)
        )
        failed = np.flatnonzero(step_codes != FEASIBLE)
        q_next[failed], next_speed[failed], step_codes[failed], at = _trace_adaptively(
            problem, q_here[failed], speed[active[failed]], float(s[m - 1]), float(s[m])
        )
        is_reached = step_codes == FEASIBLE
        k = active[~is_reached]
        reached[k], end[k] = m, at[step_codes[failed] != FEASIBLE]
        last[k], codes[k] = q_next[~is_reached], step_codes[~is_reached]
        traces[m, active], speed[active] = q_next, next_speed
        active = active[is_reached]
    last[active] = traces[M - 1, active]
    return [TracedBranch(traces[: reached[k], k].copy(), float(end[k]), last[k], int(codes[k])) for k in range(count)]


def _continuation_step(
    problem: FollowProblem, q: Array, speed: Array, s: Array, ds: Array
) -> tuple[Array, Array, Codes]:
    """Make one continuation step for each configuration.

    Returns:
        Configurations (K, nq), derivatives by s (K, nv), and codes (K,): UNMET also for a possible jump, IN_COLLISION
        also for an obstacle along the segment.
    """
    space = problem.space
    has_speed = np.isfinite(speed[:, :1])
    predicted_step = np.where(has_speed, speed, 0.0) * ds[:, None]
    if problem.redundancy:  # extrapolated self-motion would never stop
        predicted_step = np.zeros_like(predicted_step)
    predicted_q = space.integrate(q, predicted_step) if not problem.redundancy else q
    q_next, codes = problem.project(s, predicted_q)
    hits_obstacle = codes == IN_COLLISION
    if problem.can_avoid_obstacles and hits_obstacle.any():
        q_next[hits_obstacle], is_free = problem.project_around_obstacles(s[hits_obstacle], q[hits_obstacle])
        codes[hits_obstacle] = np.where(is_free, FEASIBLE, IN_COLLISION)
    step = space.difference(q, q_next)
    size = np.abs(step).max(axis=1, initial=0.0)
    if problem.redundancy:
        previous_size = np.abs(np.where(has_speed, speed, 0.0)).max(axis=1, initial=0.0) * np.abs(ds)
        is_small = size <= np.where(has_speed[:, 0], 2.0 * previous_size + SMALL_DEVIATION, MAX_FIRST_STEP)
        is_small |= hits_obstacle & (size <= MAX_AVOIDANCE_STEP)  # an obstacle moves it at once, however short the step
    else:
        deviation = np.abs(step - predicted_step).max(axis=1, initial=0.0)
        is_small = deviation <= MAX_DEVIATION_RATIO * size + SMALL_DEVIATION
        is_small = (has_speed[:, 0] & is_small) | (~has_speed[:, 0] & (size <= MAX_FIRST_STEP))
    is_small = is_small & (size <= MAX_TRACE_STEP)
    codes = np.where((codes == FEASIBLE) & ~is_small, np.where(hits_obstacle, IN_COLLISION, UNMET), codes)
    feasible = np.flatnonzero(codes == FEASIBLE)
    codes[feasible[~are_segments_free(problem, q[feasible], q_next[feasible])]] = IN_COLLISION
    return q_next, np.where(hits_obstacle[:, None], speed, step / ds[:, None]), codes


def refine_branch_end(problem: FollowProblem, branch: TracedBranch, b: float) -> TracedBranch:
    """Locate the end of a branch with the finest step.

    Args:
        b: the s of the waypoint that was not reached.
    """
    unknown = np.full((1, problem.space.nv), np.nan)
    last, _, codes, end = _trace_adaptively(problem, branch.last[None], unknown, branch.end, b, FINEST_HALVINGS)
    return TracedBranch(branch.q, float(end[0]), last[0], branch.code if codes[0] == FEASIBLE else int(codes[0]))


def _trace_adaptively(
    problem: FollowProblem, q: Array, speed: Array, a: float, b: float, halvings: int = MAX_HALVINGS
) -> tuple[Array, Array, Codes, Array]:
    """Trace configurations (K, nq) from s = a to b with adaptive steps.

    Returns:
        The last configuration of each, the derivative by s there, the code, and the s reached.
    """
    q, speed, count = q.copy(), speed.copy(), len(q)
    at, h, successes = np.full(count, a), np.full(count, 0.5 * (b - a)), np.zeros(count, dtype=np.int64)
    min_step = abs(b - a) * 2.0**-halvings
    codes, active = np.full(count, FEASIBLE), np.arange(count if a != b else 0)
    while len(active):
        h[active] = np.sign(b - a) * np.minimum(np.abs(h[active]), np.abs(b - at[active]))
        q_next, new_speed, step_codes = _continuation_step(
            problem, q[active], speed[active], at[active] + h[active], h[active]
        )
        is_reached = step_codes == FEASIBLE
        k, failed = active[is_reached], active[~is_reached]
        q[k], speed[k], at[k] = q_next[is_reached], new_speed[is_reached], at[k] + h[k]
        successes[k] += 1
        successes[failed] = 0
        h[k] *= np.where(successes[k] > 1, 2.0, 1.0)  # a longer step pays only after two good ones
        h[failed] *= 0.5
        stopped = ~is_reached & (np.abs(h[active]) < min_step)
        codes[active[stopped]] = step_codes[stopped]
        is_done = is_reached & (np.abs(b - at[active]) <= 0.25 * min_step)
        at[active[is_done]] = b
        active = active[~stopped & ~is_done]
    return q, speed, codes, at
