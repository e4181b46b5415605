"""Solution branches: all configurations that meet the goals at a path parameter s, and their continuation.

A continuation step starts at the extrapolation of the previous step. If its result deviates too much from the
extrapolation, the step is halved until the deviation is small or the branch ends. A jump to another branch does not
shrink with the step, so a trace stays on its branch. If the mechanism is redundant, a step starts at the current
configuration instead, and it is halved if it is much longer than the previous step. The s where the branch ends is
located to a fraction of the distance between waypoints (E. L. Allgower, K. Georg, "Numerical Continuation Methods",
Springer 1990).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mechanik.motion.follow.follow_problem import FEASIBLE, IN_COLLISION, UNMET, Codes, FollowProblem, are_segments_free
from mechanik.solver.request import SolveRequest
from mechanik.solver.start_configurations import halton_configurations
from mechanik.spatial.array import Array

BRANCH_STARTS = 256
"""Largest number of starts of the search for branches at an s; an eighth of it for a redundant mechanism whose problem
is not batched (see `FollowProblem.is_batched`)."""
MIN_SAMPLE_DISTANCE = 0.1
"""rad and m: smallest distance between two samples, if the mechanism is redundant."""
SAME_BRANCH_DISTANCE = 1e-4
"""rad or m: configurations closer than this belong to the same branch."""
STARTS_PER_BATCH = 64
"""Number of starts that are solved together."""
ENOUGH_BRANCHES_RATIO = 2
"""Ratio of found to requested branches at which the search ends."""


def branches_at(
    problem: FollowProblem, s: float, q_near: Array, max_samples: int, ignore_collisions: bool = False
) -> Array:
    """Find configurations (n, nq) that meet the goals at s: all of them, or samples if the mechanism is redundant.

    Args:
        q_near: (nq,) preferred configuration: if only some of the found configurations are selected, the nearest to
            `q_near` is selected first.
        max_samples: largest number of samples, if the mechanism is redundant. Half of it is the largest number of
            branches that are searched from many starts, as for mechanisms with loops.
        ignore_collisions: whether to include configurations that violate the clearance.
    """
    if problem.redundancy:
        return _select_far_apart(
            problem, q_near, _sample_self_motion(problem, s, q_near, ignore_collisions), max_samples
        )
    if problem.can_find_all_branches:
        solver, target = problem.solver_at(s)
        branches = solver.solve_all(target, q0=q_near, max_attempts=BRANCH_STARTS).q
    else:
        branches = _branches_from_starts(problem, s, q_near, max(max_samples // 2, 1))
    if not len(branches) or ignore_collisions:
        return branches
    q, codes = problem.project(np.full(len(branches), s), branches)
    return q[codes == FEASIBLE]


def _branches_from_starts(problem: FollowProblem, s: float, q_near: Array, count: int) -> Array:
    """Up to `count` configurations (n, nq) to which descents from many starts converge."""
    solver, target = problem.solver_at(s)
    branches = np.zeros((0, problem.space.nq))
    with solver.pipeline.search_context(SolveRequest(targets=target, q0=q_near)) as context:
        for first_start in range(0, BRANCH_STARTS, STARTS_PER_BATCH):
            starts = context.starts(first_start, STARTS_PER_BATCH, None)
            if first_start == 0:
                starts[0] = q_near
            candidates, is_within_limits = context.constraints.unwrap(context.descend(starts), q_near)
            for q in candidates[is_within_limits]:
                distances = np.abs(problem.wrapped_difference(q, branches)).max(axis=1, initial=0.0)
                if not (distances < SAME_BRANCH_DISTANCE).any():
                    branches = np.concatenate([branches, q[None]])
            if len(branches) >= ENOUGH_BRANCHES_RATIO * count:
                break
    return _select_far_apart(problem, q_near, branches, count)


def _sample_self_motion(problem: FollowProblem, s: float, q_near: Array, ignore_collisions: bool) -> Array:
    """Configurations (n, nq) to which descents from a Halton sequence converge, for redundant mechanisms."""
    space = replace(problem.space, lower=problem.lower, upper=problem.upper)
    starts = halton_configurations(space, BRANCH_STARTS if problem.is_batched else BRANCH_STARTS // 8)
    is_constant = np.ones(space.nq, dtype=np.bool_)
    is_constant[space.scalars_q] = ~problem.affecting_dofs[space.scalars_v]
    for k, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
        is_constant[k : k + 4] = not problem.affecting_dofs[v]
    starts = np.concatenate([q_near[None], np.where(is_constant, q_near, starts)])
    q, codes = problem.project(np.full(len(starts), s), starts)
    return q[(codes == FEASIBLE) | ((codes == IN_COLLISION) if ignore_collisions else False)]


def _select_far_apart(problem: FollowProblem, q_near: Array, candidates: Array, count: int) -> Array:
    """Select up to `count` of the configurations (n, nq): first the nearest to `q_near`, then far from each other."""
    if not len(candidates):
        return candidates
    selected_indices = [int(np.argmin(np.linalg.norm(problem.wrapped_difference(q_near, candidates), axis=1)))]
    distances = np.full(len(candidates), np.inf)
    while len(selected_indices) < count:
        distances = np.minimum(
            distances, np.linalg.norm(problem.wrapped_difference(candidates[selected_indices[-1]], candidates), axis=1)
        )
        if distances.max() < (MIN_SAMPLE_DISTANCE if problem.redundancy else SAME_BRANCH_DISTANCE):
            break
        selected_indices.append(int(np.argmax(distances)))
    return candidates[selected_indices]


MAX_HALVINGS, FINEST_HALVINGS = 6, 20
"""Number of halvings of a waypoint interval after which a branch counts as ended; FINEST_HALVINGS if the s of its end
is needed exactly."""
MAX_DEVIATION_RATIO = 0.35
"""Largest deviation of a step from its extrapolation, as a ratio of the step length."""
SMALL_DEVIATION = 2e-4
"""rad or m: smaller deviations are always accepted."""
MAX_FIRST_STEP = 0.02
"""rad or m: longest first step, which has no extrapolation from a previous step."""
MAX_AVOIDANCE_STEP = 0.05
"""rad or m: a step around an obstacle up to this length is accepted, however short the previous step was."""
MAX_TRACE_STEP = 0.35
"""rad or m: longer steps are always halved."""


@dataclass(frozen=True, slots=True, eq=False)
class TracedBranch:
    """A branch traced by continuation along the waypoints.

    Attributes:
        q: (m, nq) configurations at the reached waypoints, starting with the first waypoint.
        s_end: the s that was reached; it is beyond the last reached waypoint if the branch ends between two waypoints.
        q_end: (nq,) configuration at `s_end`.
        code: FEASIBLE if the last waypoint was reached, else the reason for the end (UNMET or IN_COLLISION).
    """

    q: Array
    s_end: float
    q_end: Array
    code: int


def trace_branches(problem: FollowProblem, q: Array, s: Array) -> list[TracedBranch]:
    """Trace a branch from each configuration q (K, nq) along the waypoints s (M,).

    All branches are traced together. If the problem is batched, this takes little longer than tracing one branch.

    Args:
        q: (K, nq) configurations that meet the goals at s[0].
        s: (M,), increasing or decreasing.
    """
    branch_count, waypoint_count = len(q), len(s)
    traces = np.empty((waypoint_count, branch_count, problem.space.nq))
    traces[0] = q
    dq_ds = np.full((branch_count, problem.space.nv), np.nan)  # nan: no previous step
    reached_counts = np.full(branch_count, waypoint_count)
    s_end, q_end, codes = np.full(branch_count, s[-1]), q.copy(), np.full(branch_count, FEASIBLE)
    active_indices = np.arange(branch_count)
    for m in range(1, waypoint_count):
        if not len(active_indices):
            break
        q_current, ds = traces[m - 1, active_indices], float(s[m] - s[m - 1])
        q_next, next_dq_ds, step_codes = _continuation_step(
            problem,
            q_current,
            dq_ds[active_indices],
            np.full(len(active_indices), s[m]),
            np.full(len(active_indices), ds),
        )
        failed_indices = np.flatnonzero(step_codes != FEASIBLE)
        q_next[failed_indices], next_dq_ds[failed_indices], step_codes[failed_indices], s_reached = _trace_adaptively(
            problem, q_current[failed_indices], dq_ds[active_indices[failed_indices]], float(s[m - 1]), float(s[m])
        )
        is_reached = step_codes == FEASIBLE
        k = active_indices[~is_reached]
        reached_counts[k], s_end[k] = m, s_reached[step_codes[failed_indices] != FEASIBLE]
        q_end[k], codes[k] = q_next[~is_reached], step_codes[~is_reached]
        traces[m, active_indices], dq_ds[active_indices] = q_next, next_dq_ds
        active_indices = active_indices[is_reached]
    q_end[active_indices] = traces[waypoint_count - 1, active_indices]
    return [
        TracedBranch(traces[: reached_counts[k], k].copy(), float(s_end[k]), q_end[k], int(codes[k]))
        for k in range(branch_count)
    ]


def _continuation_step(
    problem: FollowProblem, q: Array, dq_ds: Array, s: Array, ds: Array
) -> tuple[Array, Array, Codes]:
    """Make one continuation step for each configuration.

    Args:
        q: (K, nq).
        dq_ds: (K, nv) derivative of q by s over the previous step; nan if there is none.
        s: (K,) parameters at the end of the step.
        ds: (K,) steps in s, negative if s decreases.

    Returns:
        Configurations (K, nq), derivatives by s (K, nv), and codes (K,). A step that may be a jump to another
        branch has the code UNMET, or IN_COLLISION if it goes around an obstacle. A collision along the segment has the
        code IN_COLLISION.
    """
    space = problem.space
    has_derivative = np.isfinite(dq_ds[:, :1])
    predicted_step = np.where(has_derivative, dq_ds, 0.0) * ds[:, None]
    if problem.redundancy:  # an extrapolated self-motion would continue without end
        predicted_step = np.zeros_like(predicted_step)
    predicted_q = space.integrate(q, predicted_step) if not problem.redundancy else q
    q_next, codes = problem.project(s, predicted_q)
    hits_obstacle = codes == IN_COLLISION
    if problem.can_avoid_obstacles and hits_obstacle.any():
        q_next[hits_obstacle], is_free = problem.project_around_obstacles(s[hits_obstacle], q[hits_obstacle])
        codes[hits_obstacle] = np.where(is_free, FEASIBLE, IN_COLLISION)
    step = space.difference(q, q_next)
    step_size = np.abs(step).max(axis=1, initial=0.0)
    if problem.redundancy:
        previous_size = np.abs(np.where(has_derivative, dq_ds, 0.0)).max(axis=1, initial=0.0) * np.abs(ds)
        is_small = step_size <= np.where(has_derivative[:, 0], 2.0 * previous_size + SMALL_DEVIATION, MAX_FIRST_STEP)
        # an obstacle displaces q even in a very short step
        is_small |= hits_obstacle & (step_size <= MAX_AVOIDANCE_STEP)
    else:
        deviation = np.abs(step - predicted_step).max(axis=1, initial=0.0)
        is_small = deviation <= MAX_DEVIATION_RATIO * step_size + SMALL_DEVIATION
        is_small = (has_derivative[:, 0] & is_small) | (~has_derivative[:, 0] & (step_size <= MAX_FIRST_STEP))
    is_small = is_small & (step_size <= MAX_TRACE_STEP)
    codes = np.where((codes == FEASIBLE) & ~is_small, np.where(hits_obstacle, IN_COLLISION, UNMET), codes)
    k = np.flatnonzero(codes == FEASIBLE)
    codes[k[~are_segments_free(problem, q[k], q_next[k])]] = IN_COLLISION
    return q_next, np.where(hits_obstacle[:, None], dq_ds, step / ds[:, None]), codes


def refine_branch_end(problem: FollowProblem, branch: TracedBranch, s_target: float) -> TracedBranch:
    """Locate the end of a branch with FINEST_HALVINGS halvings.

    Args:
        s_target: the s of the waypoint that was not reached.
    """
    unknown_dq_ds = np.full((1, problem.space.nv), np.nan)
    q_end, _, codes, s_end = _trace_adaptively(
        problem, branch.q_end[None], unknown_dq_ds, branch.s_end, s_target, FINEST_HALVINGS
    )
    return TracedBranch(branch.q, float(s_end[0]), q_end[0], branch.code if codes[0] == FEASIBLE else int(codes[0]))


def _trace_adaptively(
    problem: FollowProblem, q: Array, dq_ds: Array, s_start: float, s_target: float, max_halvings: int = MAX_HALVINGS
) -> tuple[Array, Array, Codes, Array]:
    """Trace configurations q (K, nq) from `s_start` to `s_target` with adaptive steps.

    Args:
        dq_ds: (K, nv) derivative of q by s over the previous step; nan if there is none.
        max_halvings: number of halvings of the interval after which a branch counts as ended.

    Returns:
        The last configurations (K, nq), the derivatives by s there (K, nv), the codes (K,), and the reached s (K,).
    """
    q, dq_ds, count = q.copy(), dq_ds.copy(), len(q)
    s_reached, ds, success_counts = (
        np.full(count, s_start),
        np.full(count, 0.5 * (s_target - s_start)),
        np.zeros(count, dtype=np.int64),
    )
    min_ds = abs(s_target - s_start) * 2.0**-max_halvings
    codes, active_indices = np.full(count, FEASIBLE), np.arange(count if s_start != s_target else 0)
    while len(active_indices):
        ds[active_indices] = np.sign(s_target - s_start) * np.minimum(
            np.abs(ds[active_indices]), np.abs(s_target - s_reached[active_indices])
        )
        q_next, next_dq_ds, step_codes = _continuation_step(
            problem,
            q[active_indices],
            dq_ds[active_indices],
            s_reached[active_indices] + ds[active_indices],
            ds[active_indices],
        )
        is_reached = step_codes == FEASIBLE
        k, failed_indices = active_indices[is_reached], active_indices[~is_reached]
        q[k], dq_ds[k], s_reached[k] = q_next[is_reached], next_dq_ds[is_reached], s_reached[k] + ds[k]
        success_counts[k] += 1
        success_counts[failed_indices] = 0
        ds[k] *= np.where(success_counts[k] > 1, 2.0, 1.0)  # double the step only after two successful steps
        ds[failed_indices] *= 0.5
        is_stopped = ~is_reached & (np.abs(ds[active_indices]) < min_ds)
        codes[active_indices[is_stopped]] = step_codes[is_stopped]
        is_done = is_reached & (np.abs(s_target - s_reached[active_indices]) <= 0.25 * min_ds)
        s_reached[active_indices[is_done]] = s_target
        active_indices = active_indices[~is_stopped & ~is_done]
    return q, dq_ds, codes, s_reached
