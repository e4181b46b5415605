"""The nearest of all solutions to where a mechanism is."""

from __future__ import annotations

import numpy as np

from mechanik.search.all_solutions import BLOCK, FORMULA_HOLDS, all_solutions
from mechanik.search.approach import approach
from mechanik.search.closed_form import ClosedForm
from mechanik.search.question import Question
from mechanik.search.srs import SRS
from mechanik.spatial.array import Array

QUIET = 2
"""Blocks of starts in a row that lead no nearer: then it is over. Tuned on a Panda, against all points of all its
self-motions."""
FIRST_STEPS, CHOSEN = 10, 8
"""All go that far; then only so many, those that are nearest, go on."""
NEARER = 1e-6
"""rad and m: what is less is no progress."""
TRIES = 512


def nearest_of_all(question: Question, *, tries: int = TRIES, rng: np.random.Generator | None = None) -> Array | None:
    """The solution (nq,) with the shortest way from q0, or None: out of reach.

    The first of all solutions, unless these hang together: then what formulas or descents from many starts give is
    moved along its self-motion to where it is nearest.
    """
    form = question.form
    if form is not None and not isinstance(form.formula, SRS):
        return _by_formula(question, form)
    c, q0 = question.conditions, question.q0
    best: Array | None = None
    way, quiet, used = np.inf, 0, 0
    while used < tries and quiet < QUIET:
        starts = question.starts(used, min(BLOCK, tries - used), rng)
        if used == 0:
            starts[0] = q0
        used += len(starts)
        found, holds = c.polish(question.descend(starts), q0)
        found = found[holds]
        if used <= BLOCK and form is not None and (seed := form.nearest(question.X_world_link, q0)) is not None:
            found = np.vstack([found, seed])  # of an S-R-S arm: the nearest, or another that is near
        if not len(found):
            continue
        if not (c.freedoms(found) > 0).all():
            return _first_of_all(question, rng)
        found = approach(c, found, q0, FIRST_STEPS)
        found = approach(c, found[np.argsort(c.far(q0, found))[:CHOSEN]], q0)
        far = c.far(q0, found)
        quiet += 1
        if far.min() < way - NEARER:
            best, way, quiet = found[int(np.argmin(far))], float(far.min()), 0
    return best


def _by_formula(question: Question, form: ClosedForm) -> Array | None:
    c, q0 = question.conditions, question.q0
    found = form.branches(question.X_world_link, q0)
    found = found[np.abs(c.rows(found)[0]).max(axis=1, initial=0.0) < FORMULA_HOLDS]
    if not len(found):
        return None
    free = c.freedoms(found) > 0
    if free.any():  # a singular pose
        found[free] = approach(c, found[free], q0)
    return found[int(np.argmin(c.far(q0, found)))]


def _first_of_all(question: Question, rng: np.random.Generator | None) -> Array | None:
    every = all_solutions(question, samples=1, rng=rng)
    return every.q[0] if len(every) else None
