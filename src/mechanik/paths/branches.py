"""Branches at one place of the way: configurations at which all holds there, all of them or some of many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechanik.paths.course import CLASH, FINE, Course
from mechanik.search.question import asked
from mechanik.solvers.starts import halton_starts
from mechanik.spatial.array import Array

TRIES = 256
"""Starts for all branches at a knot, where there is no formula."""
APART = 0.1
"""Samples are at least so far from each other, rad and m."""
SAME = 1e-4
"""rad or m: branches nearer to each other than this are one."""
BLOCK = 64
"""Starts at a time."""
PLENTY = 2
"""Times as many branches as are wanted: then no more are looked for."""


def branches_at(course: Course, s: float, near: Array, samples: int, whatever: bool = False) -> Array:
    """(n, nq) configurations at which all holds at s, as many as there are, or some of many.

    Args:
        near: (nq,) of some, the nearest to this is one.
        samples: how many at most, where the goals leave a freedom; half as many where every one has to be carried by
            itself, as with loops. A hexapod has 64, since each strut can stand turned by half a turn.
        whatever: also those that come too near to something.
    """
    if course.spare:
        return _spread(course, near, _sampled(course, s, near, whatever), samples)
    if course.has_all:
        solver, target = course.solver_at(s)
        found = solver.solve_all(target, q0=near, tries=TRIES).q
    else:
        found = _from_starts(course, s, near, max(samples // 2, 1))
    if not len(found) or whatever:
        return found
    q, codes = course.settle(np.full(len(found), s), found)
    return q[codes == FINE]


def _from_starts(course: Course, s: float, near: Array, count: int) -> Array:
    """(n, nq) of those that descents from everywhere lead to, n up to `count`."""
    solver, target = course.solver_at(s)
    found = np.zeros((0, course.space.nq))
    with asked(solver, target, near, aids=solver._aids) as question:
        for first in range(0, TRIES, BLOCK):
            starts = question.starts(first, BLOCK, None)
            if first == 0:
                starts[0] = near
            turned, inside = question.conditions.unwind(question.descend(starts), near)
            for q in turned[inside]:
                if not (np.abs(course.apart(q, found)).max(axis=1, initial=0.0) < SAME).any():
                    found = np.concatenate([found, q[None]])
            if len(found) >= PLENTY * count:
                break
    return _spread(course, near, found, count)


def _sampled(course: Course, s: float, near: Array, whatever: bool) -> Array:
    """(n, nq) of those that descents from everywhere lead to, where the goals leave a freedom."""
    space = replace(course.space, lower=course.lower, upper=course.upper)
    starts = halton_starts(space, TRIES if course.is_quick else TRIES // 8)
    still = np.ones(space.nq, dtype=np.bool_)
    still[space.scalars_q] = ~course.matters[space.scalars_v]
    for k, v in zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True):
        still[k : k + 4] = not course.matters[v]
    starts = np.concatenate([near[None], np.where(still, near, starts)])
    q, codes = course.settle(np.full(len(starts), s), starts)
    return q[(codes == FINE) | ((codes == CLASH) if whatever else False)]


def _spread(course: Course, near: Array, found: Array, count: int) -> Array:
    """Of configurations (n, nq) the one that is nearest to `near`, and some that are far from each other."""
    if not len(found):
        return found
    chosen = [int(np.argmin(np.linalg.norm(course.apart(near, found), axis=1)))]
    away = np.full(len(found), np.inf)
    while len(chosen) < count:
        away = np.minimum(away, np.linalg.norm(course.apart(found[chosen[-1]], found), axis=1))
        if away.max() < (APART if course.spare else SAME):
            break
        chosen.append(int(np.argmax(away)))
    return found[chosen]
