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

TRIES = 256
"""Number of starts of the search for all branches at a waypoint, without a closed form."""
APART = 0.1
"""rad and m: smallest distance between two samples, with redundancy."""
SAME = 1e-4
"""rad or m: closer configurations are the same branch."""
BLOCK = 64
"""Number of starts that are solved together."""
PLENTY = 2
"""Ratio of found to requested branches at which the search ends."""


def branches_at(course: FollowProblem, s: float, near: Array, samples: int, ignore_collisions: bool = False) -> Array:
    """Configurations (n, nq) that meet the goals at s: all of them, or samples if the mechanism is redundant.

    Args:
        near: (nq,) the configuration nearest to this is always included.
        samples: largest number of samples, with redundancy. Half as many are used where branches are searched from
            random starts, as with loops. A hexapod has 64 branches, because each strut can be rotated by pi.
        ignore_collisions: whether to include configurations that violate the clearance.
    """
    if course.redundancy:
        return _spread(course, near, _sampled(course, s, near, ignore_collisions), samples)
    if course.has_all_solutions:
        solver, target = course.solver_at(s)
        found = solver.solve_all(target, q0=near, tries=TRIES).q
    else:
        found = _from_starts(course, s, near, max(samples // 2, 1))
    if not len(found) or ignore_collisions:
        return found
    q, codes = course.project(np.full(len(found), s), found)
    return q[codes == FEASIBLE]


def _from_starts(course: FollowProblem, s: float, near: Array, count: int) -> Array:
    """Up to `count` configurations (n, nq) that descents from many starts converge to."""
    solver, target = course.solver_at(s)
    found = np.zeros((0, course.space.nq))
    with search_context(solver, target, near, helpers=solver._search_helpers) as question:
        for first in range(0, TRIES, BLOCK):
            starts = question.starts(first, BLOCK, None)
            if first == 0:
                starts[0] = near
            turned, inside = question.constraints.unwrap(question.descend(starts), near)
            for q in turned[inside]:
                if not (np.abs(course.wrapped_difference(q, found)).max(axis=1, initial=0.0) < SAME).any():
                    found = np.concatenate([found, q[None]])
            if len(found) >= PLENTY * count:
                break
    return _spread(course, near, found, count)


def _sampled(course: FollowProblem, s: float, near: Array, whatever: bool) -> Array:
    """Configurations (n, nq) that descents from a Halton sequence converge to, for redundant mechanisms."""
    space = replace(course.space, lower=course.lower, upper=course.upper)
    starts = halton_configurations(space, TRIES if course.is_batched else TRIES // 8)
    still = np.ones(space.nq, dtype=np.bool_)
    still[space.scalars_q] = ~course.affecting_dofs[space.scalars_v]
    for k, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
        still[k : k + 4] = not course.affecting_dofs[v]
    starts = np.concatenate([near[None], np.where(still, near, starts)])
    q, codes = course.project(np.full(len(starts), s), starts)
    return q[(codes == FEASIBLE) | ((codes == IN_COLLISION) if whatever else False)]


def _spread(course: FollowProblem, near: Array, found: Array, count: int) -> Array:
    """Select up to `count` of the configurations (n, nq): the nearest to `near`, then those far from each other."""
    if not len(found):
        return found
    chosen = [int(np.argmin(np.linalg.norm(course.wrapped_difference(near, found), axis=1)))]
    away = np.full(len(found), np.inf)
    while len(chosen) < count:
        away = np.minimum(away, np.linalg.norm(course.wrapped_difference(found[chosen[-1]], found), axis=1))
        if away.max() < (APART if course.redundancy else SAME):
            break
        chosen.append(int(np.argmax(away)))
    return found[chosen]


HALVINGS, FINEST = 6, 20
"""Number of halvings of a waypoint interval after which a branch counts as ended; FINEST where its end is needed
exactly."""
ASIDE = 0.35
"""Ratio to the step: largest deviation from the extrapolated step."""
SMALL = 2e-4
"""rad or m: smaller deviations are always accepted."""
FIRST = 0.02
"""rad or m: longest step without an extrapolation from a step before."""
PUSHED = 0.05
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


def trace_branches(course: FollowProblem, q: Array, s: Array) -> list[TracedBranch]:
    """Trace a branch from each configuration q (K, nq), which meets the goals at s[0], along the waypoints s (M,).

    All branches are traced together, which costs hardly more than tracing one.

    Args:
        s: (M,), increasing or decreasing.
    """
    count, M = len(q), len(s)
    ways = np.empty((M, count, course.space.nq))
    ways[0] = q
    speed = np.full((count, course.space.nv), np.nan)  # derivative by s over the last step
    reached = np.full(count, M)
    end, last, codes = np.full(count, s[-1]), q.copy(), np.full(count, FEASIBLE)
    going = np.arange(count)
    for m in range(1, M):
        if not len(going):
            break
        here, ds = ways[m - 1, going], float(s[m] - s[m - 1])
        there, there_speed, found = _step(
            course, here, speed[going], np.full(len(going), s[m]), np.full(len(going), ds)
        )
        hard = np.flatnonzero(found != FEASIBLE)
        there[hard], there_speed[hard], found[hard], at = _carefully(
            course, here[hard], speed[going[hard]], float(s[m - 1]), float(s[m])
        )
        fine = found == FEASIBLE
        k = going[~fine]
        reached[k], end[k], last[k], codes[k] = m, at[found[hard] != FEASIBLE], there[~fine], found[~fine]
        ways[m, going], speed[going] = there, there_speed
        going = going[fine]
    last[going] = ways[M - 1, going]
    return [TracedBranch(ways[: reached[k], k].copy(), float(end[k]), last[k], int(codes[k])) for k in range(count)]


def _step(course: FollowProblem, q: Array, speed: Array, s: Array, ds: Array) -> tuple[Array, Array, Codes]:
    """Make one continuation step for each configuration.

    Returns:
        Configurations (K, nq), derivatives by s (K, nv), and codes (K,): UNMET also for a possible jump, IN_COLLISION
        also for an obstacle along the segment.
    """
    space = course.space
    known = np.isfinite(speed[:, :1])
    ahead = np.where(known, speed, 0.0) * ds[:, None]
    if course.redundancy:  # extrapolated self-motion would never stop
        ahead = np.zeros_like(ahead)
    guess = space.integrate(q, ahead) if not course.redundancy else q
    there, codes = course.project(s, guess)
    slid = codes == IN_COLLISION
    if course.can_avoid_obstacles and slid.any():
        there[slid], is_off = course.project_around_obstacles(s[slid], q[slid])
        codes[slid] = np.where(is_off, FEASIBLE, IN_COLLISION)
    step = space.difference(q, there)
    size = np.abs(step).max(axis=1, initial=0.0)
    if course.redundancy:
        before = np.abs(np.where(known, speed, 0.0)).max(axis=1, initial=0.0) * np.abs(ds)
        is_small = size <= np.where(known[:, 0], 2.0 * before + SMALL, FIRST)
        is_small |= slid & (size <= PUSHED)  # an obstacle moves it at once, however short the step
    else:
        aside = np.abs(step - ahead).max(axis=1, initial=0.0)
        is_small = aside <= ASIDE * size + SMALL
        is_small = (known[:, 0] & is_small) | (~known[:, 0] & (size <= FIRST))
    is_small = is_small & (size <= MAX_TRACE_STEP)
    codes = np.where((codes == FEASIBLE) & ~is_small, np.where(slid, IN_COLLISION, UNMET), codes)
    fine = np.flatnonzero(codes == FEASIBLE)
    codes[fine[~are_segments_free(course, q[fine], there[fine])]] = IN_COLLISION
    return there, np.where(slid[:, None], speed, step / ds[:, None]), codes


def refine_branch_end(course: FollowProblem, track: TracedBranch, b: float) -> TracedBranch:
    """Locate the end of a branch with the finest step.

    Args:
        b: the s of the waypoint that was not reached.
    """
    unknown = np.full((1, course.space.nv), np.nan)
    last, _, codes, end = _carefully(course, track.last[None], unknown, track.end, b, FINEST)
    return TracedBranch(track.q, float(end[0]), last[0], track.code if codes[0] == FEASIBLE else int(codes[0]))


def _carefully(
    course: FollowProblem, q: Array, speed: Array, a: float, b: float, halvings: int = HALVINGS
) -> tuple[Array, Array, Codes, Array]:
    """Trace configurations (K, nq) from s = a to b with adaptive steps.

    Returns:
        The last configuration of each, the derivative by s there, the code, and the s reached.
    """
    q, speed, count = q.copy(), speed.copy(), len(q)
    at, h, good = np.full(count, a), np.full(count, 0.5 * (b - a)), np.zeros(count, dtype=np.int64)
    smallest = abs(b - a) * 2.0**-halvings
    codes, going = np.full(count, FEASIBLE), np.arange(count if a != b else 0)
    while len(going):
        h[going] = np.sign(b - a) * np.minimum(np.abs(h[going]), np.abs(b - at[going]))
        there, new_speed, found = _step(course, q[going], speed[going], at[going] + h[going], h[going])
        fine = found == FEASIBLE
        k, stuck = going[fine], going[~fine]
        q[k], speed[k], at[k] = there[fine], new_speed[fine], at[k] + h[k]
        good[k] += 1
        good[stuck] = 0
        h[k] *= np.where(good[k] > 1, 2.0, 1.0)  # a longer step pays only after two good ones
        h[stuck] *= 0.5
        stopped = ~fine & (np.abs(h[going]) < smallest)
        codes[going[stopped]] = found[stopped]
        arrived = fine & (np.abs(b - at[going]) <= 0.25 * smallest)
        at[going[arrived]] = b
        going = going[~stopped & ~arrived]
    return q, speed, codes, at
