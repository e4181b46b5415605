"""All solutions of one target: by formula where there is one, else from many starts, each solution once."""

from __future__ import annotations

import itertools
from numbers import Integral

import numpy as np

from mechanik.errors import LimitsError
from mechanik.mechanism.door import counted
from mechanik.search.approach import approach
from mechanik.search.arcs import arcs_of, overlooked, samples_of
from mechanik.search.closed_form import ClosedForm
from mechanik.search.clusters import spread
from mechanik.search.conditions import HOLDS, Conditions
from mechanik.search.findings import Findings
from mechanik.search.question import Question
from mechanik.search.self_motion import Curve
from mechanik.search.solution_set import Indices, SolutionSet
from mechanik.search.srs import SRS
from mechanik.search.unwinding import TURN
from mechanik.solvers.keeping_off import KeepingOff
from mechanik.spatial.array import Array

TRIES, SAMPLES = 2000, 8
"""Starts at most, and samples along each self-motion."""
BLOCK = 64
"""Starts at a time, at first; up to four times as many later."""
ENOUGH = 300
"""Descents in a row that lead to nothing new: then it is over; also after twice as many as the last new one took. Of
40 poses of random general 6R arms the rarest solution took 1.2 % of the starts, and most took 5 % and more."""
CLOSE_BY = 0.5
"""Between solutions nearer than this (rad, sizes) there may be another one."""
FORMULA_HOLDS = 1e-7
"""Rows (rad, sizes) below this hold, at what a formula gives."""
ELBOWS = 120
"""Elbow angles of an S-R-S arm at which the formula is asked: where its axes are not square, not all can be reached."""
DENSER = 8
"""Times as many samples along each self-motion where some may bump: so that free pieces are not overlooked."""
ENOUGH_OF_CURVES = 48
"""The same, where solutions lie on curves: there are few of these, and all are wide."""


def all_solutions(
    question: Question,
    *,
    limit: int | None = None,
    tries: int = TRIES,
    samples: int = SAMPLES,
    windings: bool = False,
    rng: np.random.Generator | None = None,
    keeping: KeepingOff | None = None,
) -> SolutionSet:
    """
    Args:
        limit: how many are given, the nearest; None: all.
        tries: starts, at most, where there is no closed form.
        samples: along each self-motion, at most; where two and more freedoms are left, in all.
        windings: of angles that differ by full turns, whether all inside the limits are given (not of joints without
            limits). If not, the nearest to q0.
        rng: for the starts; without it they follow Halton's sequence, the same each time.
        keeping: what must not be bumped into: then only those are given that are free.
    """
    for name, value in (("tries", tries), ("samples", samples), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise LimitsError(f"{name} must be a whole number of 1 or more, not {value!r}")
    c, q0 = question.conditions, question.q0
    findings = Findings(c)
    used, descents, complete = 0, 0, False
    if question.form is not None:
        complete = _by_formula(question, question.form, findings)
    else:
        used, descents = _from_starts(question, findings, tries, samples, rng)
    q, component, arcs = _given(findings, q0, samples if keeping is None else DENSER * samples)
    if windings and len(q):
        q, component = _all_windings(c, q, component)
    why = _why(question, findings, len(q), used, descents)
    if keeping is not None and len(q):
        free, whole = keeping.are_free(q), len(q)
        why += f"; {whole - int(free.sum())} of {counted(whole, 'solution')} bump into something and are left out"
        q, component = _thinned(c, q[free], component[free], samples)
    distance = c.far(q0, q)
    order = np.argsort(distance, kind="stable")[:limit]
    return SolutionSet(
        q=q[order],
        distance=distance[order],
        component=component[order],
        redundant=findings.redundant,
        complete=complete,
        why=why,
        tries=used,
        _arcs=tuple(arcs),
        _conditions=c,
        _revision=c.mechanism.revision,
        _keeping=keeping,
    )


def _by_formula(question: Question, form: ClosedForm, findings: Findings) -> bool:
    """Returns whether nothing can be missing."""
    c, q0, X, columns = question.conditions, question.q0, question.X_world_link, form.axes.columns
    if isinstance(form.formula, SRS):
        elbows = form.elbow_of(q0) + TURN * np.arange(ELBOWS) / ELBOWS
        angles, exists = form.solve_all(X, near=q0[columns], elbow=elbows)
        complete = bool(exists.all())
        if complete:  # then every self-motion takes every elbow angle; where one is singular, another is not
            angles, exists = angles[:: ELBOWS // 3], exists[:: ELBOWS // 3]
    else:
        angles, exists = form.solve_all(X, near=q0[columns])
        complete = True
    found = angles[exists]
    q = np.tile(q0, (len(found), 1))
    q[:, columns] = found
    # of some arms the formula knows the place only, and the rotation is asked for too
    findings.add(q[np.abs(c.rows(q)[0]).max(axis=1, initial=0.0) < FORMULA_HOLDS])
    return complete and (isinstance(form.formula, SRS) or findings.redundant == 0)


def _from_starts(
    question: Question, findings: Findings, tries: int, samples: int, rng: np.random.Generator | None
) -> tuple[int, int]:
    """Returns how many starts were tried, and how many of them led to a solution."""
    c, q0 = question.conditions, question.q0
    used = ended = last_new = 0
    beyond = False
    while used < tries:
        count = min(max(BLOCK, min(used, 4 * BLOCK)), tries - used)
        starts = question.starts(used, count, rng, beyond)
        if used == 0:
            starts[0] = q0
        found = question.descend(starts, beyond)
        used += count
        ended += len(found)
        fresh = findings.fresh(found)
        if not len(fresh):
            pass
        elif beyond:
            fresh, error = c.settle(fresh)
            fresh = fresh[(error < HOLDS) & c.slides_inside(fresh)]
        else:
            fresh, holds = c.polish(fresh, q0)
            fresh = fresh[holds]
        if findings.add(fresh):
            last_new = ended
        if len(findings.wide) >= 16 * samples:
            break
        enough = ENOUGH_OF_CURVES if findings.curves else max(ENOUGH, 2 * last_new)
        if ended - last_new >= enough:
            break
        beyond = bool(findings.curves) and question.beyond is not None and not beyond
    while _look_between(findings, q0):
        pass
    return used, ended


def _look_between(findings: Findings, q0: Array) -> int:
    """Newton's method from between single solutions that are close; returns how many are new.

    Near a pose where three fall together hardly a start leads to the one in the middle.
    """
    c, known = findings.conditions, findings.points.q
    i, j = np.triu_indices(len(known), 1)
    step = c.apart(known[i], known[j])
    near = np.flatnonzero(np.abs(step).max(axis=1, initial=0.0) < CLOSE_BY)
    starts = [c.step(known[i[near]], share * step[near]) for share in (0.25, 0.5, 0.75)]
    found, holds = c.polish(np.concatenate(starts), q0)
    return findings.add(found[holds])


def _given(findings: Findings, q0: Array, samples: int) -> tuple[Array, Indices, list[Curve | None]]:
    """Solutions inside the limits (k, nq), the component of each, and the arc of each component, if it has one."""
    c = findings.conditions
    points, inside = c.unwind(findings.points.q, q0)
    groups: list[Array] = [one[None] for one in points[inside]]
    components: list[Curve | None] = [None] * len(groups)
    arcs = [arc for curve in findings.curves for arc in arcs_of(c, curve)]
    seeds, inside = c.unwind(findings.seeds, q0)
    arcs += overlooked(c, arcs, seeds[inside])
    groups += [samples_of(c, arc, q0, samples) for arc in arcs]
    components += arcs
    wide, inside = c.unwind(findings.wide, q0)
    wide = wide[inside]
    if len(wide):
        nearest = approach(c, wide[np.argsort(c.far(q0, wide))[:SAMPLES]], q0)
        nearest = nearest[np.argmin(c.far(q0, nearest))]
        wide = np.concatenate([nearest[None], wide])
        groups.append(wide[spread(c, wide, samples)])
        components.append(None)
    component = np.repeat(np.arange(len(groups)), [len(one) for one in groups])
    return np.concatenate([np.zeros((0, c.mechanism.nq)), *groups]), component, components


def _all_windings(c: Conditions, q: Array, component: Indices) -> tuple[Array, Indices]:
    """Each solution with all full turns that the limits allow; joints that lack one stay as they are."""
    k = c.columns[c.is_angle]
    k = k[np.isfinite(c.lower[k]) & np.isfinite(c.upper[k])]
    found: list[Array] = []
    owner: list[int] = []
    for one, number in zip(q, component.tolist(), strict=True):
        fewest, most = np.ceil((c.lower[k] - one[k]) / TURN - 1e-10), np.floor((c.upper[k] - one[k]) / TURN + 1e-10)
        ranges = [range(int(a), int(b) + 1) for a, b in zip(fewest, most, strict=True)]
        for turns in itertools.product(*ranges):
            other = one.copy()
            other[k] = np.clip(one[k] + TURN * np.array(turns, dtype=np.float64), c.lower[k], c.upper[k])
            found.append(other)
            owner.append(number)
    return np.array(found), np.array(owner, dtype=np.int64)


def _thinned(c: Conditions, q: Array, component: Indices, samples: int) -> tuple[Array, Indices]:
    """Of each component no more than so many, as far apart as can be; the first of each, which is nearest, stays."""
    kept: list[int] = []
    for number in dict.fromkeys(component.tolist()):
        mine = np.flatnonzero(component == number)
        kept += mine[spread(c, q[mine], samples)].tolist() if len(mine) > samples else mine.tolist()
    return q[kept], component[kept]


def _why(question: Question, findings: Findings, count: int, used: int, descents: int) -> str:
    known = len(findings.points.q) + len(findings.curves) + len(findings.wide)
    if question.form is not None:
        how = f"by the closed form of a {question.form.kind} arm"
        if not count:
            return f"{how}, which has solutions, but none inside the limits" if known else f"out of reach, {how}"
        return how
    if not count:
        return f"out of reach, as far as {used} starts can tell: none led to a solution inside the limits"
    return f"from {used} starts, of which {descents} led to a solution"
