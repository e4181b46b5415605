"""All solutions of a target, or the nearest one: by closed form if there is one, else by descents from many starts."""

from __future__ import annotations

import itertools
from numbers import Integral

import numpy as np

from mechanik.errors import LimitsError
from mechanik.solver.collision_constraint import CollisionConstraint
from mechanik.solver.search.arm_families import SRS
from mechanik.solver.search.closed_form import ClosedForm
from mechanik.solver.search.constraint_system import RESIDUAL_TOLERANCE, TWO_PI, ConstraintSystem
from mechanik.solver.search.search_context import SearchContext
from mechanik.solver.search.self_motion import (
    SelfMotionCurve,
    approach_along_self_motion,
    arcs_within_limits,
    sample_arc,
    single_point_arcs,
)
from mechanik.solver.search.solution_set import Indices, SolutionPool, SolutionSet, farthest_point_sample
from mechanik.spatial.array import Array
from mechanik.validation import format_count

MAX_STARTS, SELF_MOTION_SAMPLES = 2000, 8
"""Default maximum number of starts, and of samples per self-motion."""
STARTS_PER_BLOCK = 64
"""Starts of the first block; later blocks have up to four times as many."""
DESCENTS_WITHOUT_NEW = 300
"""Descents in a row without a new solution after which the search stops, but at least twice as many as the last new one
took. Trades time for completeness: in 40 poses of random general 6R arms the rarest solution got 1.2 % of the starts,
and most got 5 % or more.
"""
NEIGHBOUR_DISTANCE = 0.5
"""Scaled units; between isolated solutions nearer than this another one is searched for."""
CLOSED_FORM_TOLERANCE = 1e-7
"""Scaled units; a closed-form solution holds if its residual is smaller."""
ELBOW_SAMPLES = 120
"""Elbow angles of an S-R-S arm at which the closed form is evaluated; if axes are not perpendicular, not all can be
reached.
"""
COLLISION_SAMPLE_FACTOR = 8
"""Factor for the samples per self-motion if collisions are checked, so that short free pieces are found."""
DESCENTS_WITHOUT_NEW_CURVE = 48
"""The same as `DESCENTS_WITHOUT_NEW` for solutions on curves, which are few and attract many descents."""


def all_solutions(
    context: SearchContext,
    *,
    limit: int | None = None,
    tries: int = MAX_STARTS,
    samples: int = SELF_MOTION_SAMPLES,
    windings: bool = False,
    rng: np.random.Generator | None = None,
    collision_constraint: CollisionConstraint | None = None,
) -> SolutionSet:
    """Find all solutions of a target.

    Args:
        context: the problem, the start q0 and the descents.
        limit: maximum number of solutions, the nearest ones; None for all.
        tries: maximum number of starts, without a closed form.
        samples: maximum number of samples per self-motion; with two or more free dofs, in total.
        windings: whether to return all solutions inside the limits that differ by full rotations (not for joints
            without limits), instead of the nearest to q0.
        rng: random generator for the starts; the default is the Halton sequence, the same in each call.
        collision_constraint: if given, only collision-free solutions are returned.

    Returns:
        The solutions, nearest to q0 first.

    Raises:
        LimitsError: if `limit`, `tries` or `samples` is not a positive integer.
    """
    for name, value in (("tries", tries), ("samples", samples), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise LimitsError(f"{name} must be a whole number of 1 or more, not {value!r}")
    c, q0 = context.constraints, context.q0
    findings = SolutionPool(c)
    used, descents, complete = 0, 0, False
    if context.closed_form is not None:
        complete = _by_formula(context, context.closed_form, findings)
    else:
        used, descents = _from_starts(context, findings, tries, samples, rng)
    q, component, arcs = collect_solutions(
        findings, q0, samples if collision_constraint is None else COLLISION_SAMPLE_FACTOR * samples
    )
    if windings and len(q):
        q, component = _all_windings(c, q, component)
    why = _why(context, findings, len(q), used, descents)
    if collision_constraint is not None and len(q):
        free, whole = collision_constraint.are_free(q), len(q)
        why += f"; {whole - int(free.sum())} of {format_count(whole, 'solution')} bump into something and are left out"
        q, component = _thinned(c, q[free], component[free], samples)
    distance = c.distance(q0, q)
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
        _constraints=c,
        _revision=c.mechanism.revision,
        _collision_constraint=collision_constraint,
    )


def _by_formula(question: SearchContext, form: ClosedForm, findings: SolutionPool) -> bool:
    """Add the solutions of a closed form to the pool; return whether they are complete."""
    c, q0, X, columns = question.constraints, question.q0, question.X_world_link, form.axes.columns
    if isinstance(form.formula, SRS):
        elbows = form.elbow_angle(q0) + TWO_PI * np.arange(ELBOW_SAMPLES) / ELBOW_SAMPLES
        angles, exists = form.solve_all(X, near=q0[columns], elbow=elbows)
        complete = bool(exists.all())
        if complete:  # every self-motion passes every elbow angle, so three will do, in case one is singular
            angles, exists = angles[:: ELBOW_SAMPLES // 3], exists[:: ELBOW_SAMPLES // 3]
    else:
        angles, exists = form.solve_all(X, near=q0[columns])
        complete = True
    found = angles[exists]
    q = np.tile(q0, (len(found), 1))
    q[:, columns] = found
    # the formula of a planar 2R arm solves for the position only, but the target may have a rotation
    findings.add(q[np.abs(c.residual_and_jacobian(q)[0]).max(axis=1, initial=0.0) < CLOSED_FORM_TOLERANCE])
    return complete and (isinstance(form.formula, SRS) or findings.redundant == 0)


def _from_starts(
    question: SearchContext, findings: SolutionPool, tries: int, samples: int, rng: np.random.Generator | None
) -> tuple[int, int]:
    """Add solutions found by descents to the pool; return the number of starts, and of those that led to a solution."""
    c, q0 = question.constraints, question.q0
    used = ended = last_new = 0
    beyond = False
    while used < tries:
        count = min(max(STARTS_PER_BLOCK, min(used, 4 * STARTS_PER_BLOCK)), tries - used)
        starts = question.starts(used, count, rng, beyond)
        if used == 0:
            starts[0] = q0
        found = question.descend(starts, beyond)
        used += count
        ended += len(found)
        fresh = findings.filter_known(found)
        if not len(fresh):
            pass
        elif beyond:
            fresh, error = c.project(fresh)
            fresh = fresh[(error < RESIDUAL_TOLERANCE) & c.are_prismatic_within_limits(fresh)]
        else:
            fresh, holds = c.polish(fresh, q0)
            fresh = fresh[holds]
        if findings.add(fresh):
            last_new = ended
        if len(findings.multi_dof) >= 16 * samples:
            break
        enough = DESCENTS_WITHOUT_NEW_CURVE if findings.curves else max(DESCENTS_WITHOUT_NEW, 2 * last_new)
        if ended - last_new >= enough:
            break
        beyond = bool(findings.curves) and question.descents_beyond_limits is not None and not beyond
    while _look_between(findings, q0):
        pass
    return used, ended


def _look_between(findings: SolutionPool, q0: Array) -> int:
    """Start Newton's method between close isolated solutions; return the number of new ones.

    Near a pose at which three solutions coincide, hardly any start leads to the middle one.
    """
    c, known = findings.conditions, findings.isolated.q
    i, j = np.triu_indices(len(known), 1)
    step = c.wrapped_difference(known[i], known[j])
    near = np.flatnonzero(np.abs(step).max(axis=1, initial=0.0) < NEIGHBOUR_DISTANCE)
    starts = [c.step(known[i[near]], share * step[near]) for share in (0.25, 0.5, 0.75)]
    found, holds = c.polish(np.concatenate(starts), q0)
    return findings.add(found[holds])


def collect_solutions(
    pool: SolutionPool, q0: Array, samples: int
) -> tuple[Array, Indices, list[SelfMotionCurve | None]]:
    """Return the solutions (k, nq) of a pool inside the limits, their components, and the arc of each component.

    Args:
        q0: (nq,) reference for full rotations and distances.
        samples: maximum number of samples per self-motion.
    """
    c = pool.conditions
    points, inside = c.unwrap(pool.isolated.q, q0)
    groups: list[Array] = [one[None] for one in points[inside]]
    components: list[SelfMotionCurve | None] = [None] * len(groups)
    arcs = [arc for curve in pool.curves for arc in arcs_within_limits(c, curve)]
    seeds, inside = c.unwrap(pool.seeds, q0)
    arcs += single_point_arcs(c, arcs, seeds[inside])
    groups += [sample_arc(c, arc, q0, samples) for arc in arcs]
    components += arcs
    wide, inside = c.unwrap(pool.multi_dof, q0)
    wide = wide[inside]
    if len(wide):
        nearest = approach_along_self_motion(c, wide[np.argsort(c.distance(q0, wide))[:SELF_MOTION_SAMPLES]], q0)
        nearest = nearest[np.argmin(c.distance(q0, nearest))]
        wide = np.concatenate([nearest[None], wide])
        groups.append(wide[farthest_point_sample(c, wide, samples)])
        components.append(None)
    component = np.repeat(np.arange(len(groups)), [len(one) for one in groups])
    return np.concatenate([np.zeros((0, c.mechanism.nq)), *groups]), component, components


def _all_windings(c: ConstraintSystem, q: Array, component: Indices) -> tuple[Array, Indices]:
    """Return each solution with all full rotations inside the limits; joints without limits stay as they are."""
    k = c.columns[c.is_angle]
    k = k[np.isfinite(c.lower[k]) & np.isfinite(c.upper[k])]
    found: list[Array] = []
    owner: list[int] = []
    for one, number in zip(q, component.tolist(), strict=True):
        fewest, most = np.ceil((c.lower[k] - one[k]) / TWO_PI - 1e-10), np.floor((c.upper[k] - one[k]) / TWO_PI + 1e-10)
        ranges = [range(int(a), int(b) + 1) for a, b in zip(fewest, most, strict=True)]
        for turns in itertools.product(*ranges):
            other = one.copy()
            other[k] = np.clip(one[k] + TWO_PI * np.array(turns, dtype=np.float64), c.lower[k], c.upper[k])
            found.append(other)
            owner.append(number)
    return np.array(found), np.array(owner, dtype=np.int64)


def _thinned(c: ConstraintSystem, q: Array, component: Indices, samples: int) -> tuple[Array, Indices]:
    """Return at most `samples` solutions per component, as far apart as possible; the first, nearest one stays."""
    kept: list[int] = []
    for number in dict.fromkeys(component.tolist()):
        mine = np.flatnonzero(component == number)
        kept += mine[farthest_point_sample(c, q[mine], samples)].tolist() if len(mine) > samples else mine.tolist()
    return q[kept], component[kept]


def _why(question: SearchContext, findings: SolutionPool, count: int, used: int, descents: int) -> str:
    known = len(findings.isolated.q) + len(findings.curves) + len(findings.multi_dof)
    if question.closed_form is not None:
        how = f"by the closed form of a {question.closed_form.kind} arm"
        if not count:
            return f"{how}, which has solutions, but none inside the limits" if known else f"out of reach, {how}"
        return how
    if not count:
        return f"out of reach, as far as {used} starts can tell: none led to a solution inside the limits"
    return f"from {used} starts, of which {descents} led to a solution"


BLOCKS_WITHOUT_PROGRESS = 2
"""Blocks of starts in a row without progress after which the search stops. Tuned on a Panda, against all points of all
its self-motions; more blocks cost time and find rarer self-motions.
"""
FIRST_APPROACH_STEPS, APPROACH_CANDIDATES = 10, 8
"""Steps that all candidates take towards q0, and the number of nearest candidates that go on after them."""
MIN_PROGRESS = 1e-6
"""rad and m; a smaller decrease of the distance is no progress."""
NEAREST_MAX_STARTS = 512
"""Default maximum number of starts of `nearest_solution`."""


def nearest_solution(
    context: SearchContext, *, tries: int = NEAREST_MAX_STARTS, rng: np.random.Generator | None = None
) -> Array | None:
    """Return the solution (nq,) nearest to q0; None if no solution is found.

    If the solutions are isolated, it is the first of all solutions. On self-motions, the results of the closed form or
    of descents from many starts are moved along their self-motion to the point nearest to q0.

    Args:
        tries: maximum number of starts.
        rng: random generator for the starts; the default is the Halton sequence.
    """
    form = context.closed_form
    if form is not None and not isinstance(form.formula, SRS):
        return _nearest_by_closed_form(context, form)
    c, q0 = context.constraints, context.q0
    best: Array | None = None
    way, quiet, used = np.inf, 0, 0
    while used < tries and quiet < BLOCKS_WITHOUT_PROGRESS:
        starts = context.starts(used, min(STARTS_PER_BLOCK, tries - used), rng)
        if used == 0:
            starts[0] = q0
        used += len(starts)
        found, holds = c.polish(context.descend(starts), q0)
        found = found[holds]
        if (
            used <= STARTS_PER_BLOCK
            and form is not None
            and (seed := form.nearest(context.X_world_link, q0)) is not None
        ):
            found = np.vstack([found, seed])  # for an S-R-S arm the nearest solution, or one close to it
        if not len(found):
            continue
        if not (c.redundancy(found) > 0).all():
            return _nearest_of_all_solutions(context, rng)
        found = approach_along_self_motion(c, found, q0, FIRST_APPROACH_STEPS)
        found = approach_along_self_motion(c, found[np.argsort(c.distance(q0, found))[:APPROACH_CANDIDATES]], q0)
        far = c.distance(q0, found)
        quiet += 1
        if far.min() < way - MIN_PROGRESS:
            best, way, quiet = found[int(np.argmin(far))], float(far.min()), 0
    return best


def _nearest_by_closed_form(question: SearchContext, form: ClosedForm) -> Array | None:
    c, q0 = question.constraints, question.q0
    found = form.branches(question.X_world_link, q0)
    found = found[np.abs(c.residual_and_jacobian(found)[0]).max(axis=1, initial=0.0) < CLOSED_FORM_TOLERANCE]
    if not len(found):
        return None
    free = c.redundancy(found) > 0
    if free.any():  # a singular pose
        found[free] = approach_along_self_motion(c, found[free], q0)
    return found[int(np.argmin(c.distance(q0, found)))]


def _nearest_of_all_solutions(question: SearchContext, rng: np.random.Generator | None) -> Array | None:
    every = all_solutions(question, samples=1, rng=rng)
    return every.q[0] if len(every) else None
