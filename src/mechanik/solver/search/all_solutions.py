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
"""Number of starts in a block; later blocks of `all_solutions` have up to four times as many."""
DESCENTS_WITHOUT_NEW_SOLUTION = 300
"""The search stops when this many consecutive descents have ended at known solutions, or twice as many descents as had
ended at solutions when the last new one was found, if that is more. A larger number costs time and misses fewer
solutions: in 40 poses of random general 6R arms, 1.2 % of the starts led to the rarest solution, and 5 % or more to
most others.
"""
NEIGHBOUR_DISTANCE = 0.5
"""Scaled units (`constraint_system.py`); between two isolated solutions closer than this, a third is searched."""
CLOSED_FORM_TOLERANCE = 1e-7
"""Scaled units; a closed-form solution is accepted if its residual is smaller."""
ELBOW_SAMPLES = 120
"""Number of elbow angles of an S-R-S arm at which the closed form is evaluated. If axes are not perpendicular, some
elbow angles have no solution.
"""
COLLISION_SAMPLE_FACTOR = 8
"""Factor for the samples per self-motion if collisions are checked, so that short collision-free parts are found."""
DESCENTS_WITHOUT_NEW_SOLUTION_ON_CURVES = 48
"""Number of successive solved descents without a new solution after which the search stops if there is a self-motion
curve. Curves are few, and many descents end on each of them.
"""


def all_solutions(
    context: SearchContext,
    *,
    limit: int | None = None,
    max_attempts: int = MAX_STARTS,
    samples: int = SELF_MOTION_SAMPLES,
    windings: bool = False,
    rng: np.random.Generator | None = None,
    collision_constraint: CollisionConstraint | None = None,
) -> SolutionSet:
    """Find all solutions of a target; of self-motions, samples.

    Args:
        context: the constraints, the reference q0, the starts and the descent functions.
        limit: maximum number of solutions, the nearest ones; None for all.
        max_attempts: maximum number of starts, without a closed form.
        samples: maximum number of samples per self-motion; all self-motions with two or more free dofs count as one.
        windings: whether to return all solutions inside the limits that differ by full rotations (not for joints
            without limits), instead of the nearest to q0.
        rng: random generator for the starts; the default is the Halton sequence, the same in each call.
        collision_constraint: if given, only collision-free solutions are returned.

    Returns:
        The solutions, nearest to q0 first.

    Raises:
        LimitsError: if `limit`, `max_attempts` or `samples` is not a positive integer.
    """
    for name, value in (("max_attempts", max_attempts), ("samples", samples), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise LimitsError(f"{name} must be an integer of 1 or more, not {value!r}")
    constraints, q0 = context.constraints, context.q0
    pool = SolutionPool(constraints)
    start_count, solved_count, complete = 0, 0, False
    if context.closed_form is not None:
        complete = _add_closed_form(context, context.closed_form, pool)
    else:
        start_count, solved_count = _add_from_starts(context, pool, max_attempts, samples, rng)
    q, component, arcs = collect_solutions(
        pool, q0, samples if collision_constraint is None else COLLISION_SAMPLE_FACTOR * samples
    )
    if windings and len(q):
        q, component = _all_windings(constraints, q, component)
    explanation = _explanation(context, pool, len(q), start_count, solved_count, complete)
    if collision_constraint is not None and len(q):
        is_free, count = collision_constraint.are_free(q), len(q)
        explanation += (
            f"; {count - int(is_free.sum())} of {format_count(count, 'solution')} removed because of collisions"
        )
        q, component = _thin_out(constraints, q[is_free], component[is_free], samples)
    distance = constraints.distance(q0, q)
    order = np.argsort(distance, kind="stable")[:limit]
    return SolutionSet(
        q=q[order],
        distance=distance[order],
        component=component[order],
        redundancy=pool.redundancy,
        complete=complete,
        explanation=explanation,
        attempts=start_count,
        _arcs=tuple(arcs),
        _constraints=constraints,
        _revision=constraints.mechanism.revision,
        _collision_constraint=collision_constraint,
    )


def _add_closed_form(context: SearchContext, form: ClosedForm, pool: SolutionPool) -> bool:
    """Add the solutions of a closed form to the pool; return whether they are complete."""
    constraints, q0, columns = context.constraints, context.q0, form.axes.columns
    X_world_link = context.X_world_link
    if isinstance(form.formula, SRS):
        elbow_angles = form.elbow_angle(q0) + TWO_PI * np.arange(ELBOW_SAMPLES) / ELBOW_SAMPLES
        angles, exists = form.solve_all(X_world_link, near=q0[columns], elbow=elbow_angles)
        complete = bool(exists.all())
        if complete:  # every self-motion contains every elbow angle; three are used, since one may be singular
            angles, exists = angles[:: ELBOW_SAMPLES // 3], exists[:: ELBOW_SAMPLES // 3]
    else:
        angles, exists = form.solve_all(X_world_link, near=q0[columns])
        complete = True
    solutions = angles[exists]
    q = np.tile(q0, (len(solutions), 1))
    q[:, columns] = solutions
    # the formula of a planar 2R arm solves for the position only, but the target may have a rotation
    pool.add(q[np.abs(constraints.residual_and_jacobian(q)[0]).max(axis=1, initial=0.0) < CLOSED_FORM_TOLERANCE])
    return complete and (isinstance(form.formula, SRS) or pool.redundancy == 0)


def _add_from_starts(
    context: SearchContext, pool: SolutionPool, max_attempts: int, samples: int, rng: np.random.Generator | None
) -> tuple[int, int]:
    """Add solutions from descents to the pool; return the numbers of starts and of starts that led to a solution."""
    constraints, q0 = context.constraints, context.q0
    start_count = solved_count = solved_count_at_last_solution = 0
    ignore_limits = False
    while start_count < max_attempts and not constraints.is_exhausted:
        count = min(max(STARTS_PER_BLOCK, min(start_count, 4 * STARTS_PER_BLOCK)), max_attempts - start_count)
        starts = context.starts(start_count, count, rng, ignore_limits)
        if start_count == 0:
            starts[0] = q0
        end_points = context.descend(starts, ignore_limits)
        start_count += count
        solved_count += len(end_points)
        candidates = pool.filter_known(end_points)
        if not len(candidates):
            pass
        elif ignore_limits:
            candidates, error = constraints.project(candidates)
            candidates = candidates[
                (error < RESIDUAL_TOLERANCE) & constraints.unshiftable_values_are_inside(candidates)
            ]
        else:
            candidates, is_valid = constraints.polish(candidates, q0)
            candidates = candidates[is_valid]
        if pool.add(candidates):
            solved_count_at_last_solution = solved_count
        if len(pool.multi_dof_solutions) >= 16 * samples:
            break
        max_count_without_solution = (
            DESCENTS_WITHOUT_NEW_SOLUTION_ON_CURVES
            if pool.curves
            else max(DESCENTS_WITHOUT_NEW_SOLUTION, 2 * solved_count_at_last_solution)
        )
        if solved_count - solved_count_at_last_solution >= max_count_without_solution:
            break
        ignore_limits = bool(pool.curves) and context.descend_beyond_limits is not None and not ignore_limits
    while not constraints.is_exhausted and _search_between(pool, q0):
        pass
    return start_count, solved_count


def _search_between(pool: SolutionPool, q0: Array) -> int:
    """Search between close isolated solutions by Newton's method; return the number of new solutions.

    Near a pose at which three solutions coincide, very few other starts lead to the middle solution.
    """
    constraints, known_q = pool.constraints, pool.isolated_solutions.q
    i, j = np.triu_indices(len(known_q), 1)
    step = constraints.wrapped_difference(known_q[i], known_q[j])
    close_pairs = np.flatnonzero(np.abs(step).max(axis=1, initial=0.0) < NEIGHBOUR_DISTANCE)
    starts = [constraints.step(known_q[i[close_pairs]], fraction * step[close_pairs]) for fraction in (0.25, 0.5, 0.75)]
    polished_q, is_valid = constraints.polish(np.concatenate(starts), q0)
    return pool.add(polished_q[is_valid])


def collect_solutions(
    pool: SolutionPool, q0: Array, samples: int
) -> tuple[Array, Indices, list[SelfMotionCurve | None]]:
    """Return the solutions (k, nq) of a pool inside the limits, the component of each (k,), and the arcs.

    A component is an isolated solution, an arc of a self-motion curve, or all solutions with two or more free dofs
    together. The list has the arc of each component; None for a component that is no arc.

    Args:
        q0: (nq,) reference for full rotations and distances.
        samples: maximum number of samples per self-motion; all self-motions with two or more free dofs count as one.
    """
    constraints = pool.constraints
    points, is_inside = constraints.unwrap(pool.isolated_solutions.q, q0)
    groups: list[Array] = [point[None] for point in points[is_inside]]
    component_arcs: list[SelfMotionCurve | None] = [None] * len(groups)
    arcs = [arc for curve in pool.curves for arc in arcs_within_limits(constraints, curve)]
    curve_solutions, is_inside = constraints.unwrap(pool.curve_solutions, q0)
    arcs += single_point_arcs(constraints, arcs, curve_solutions[is_inside])
    groups += [sample_arc(constraints, arc, q0, samples) for arc in arcs]
    component_arcs += arcs
    solutions, is_inside = constraints.unwrap(pool.multi_dof_solutions, q0)
    solutions = solutions[is_inside]
    if len(solutions):
        candidates = approach_along_self_motion(
            constraints, solutions[np.argsort(constraints.distance(q0, solutions))[:SELF_MOTION_SAMPLES]], q0
        )
        nearest_q = candidates[np.argmin(constraints.distance(q0, candidates))]
        solutions = np.concatenate([nearest_q[None], solutions])
        groups.append(solutions[farthest_point_sample(constraints, solutions, samples)])
        component_arcs.append(None)
    component = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return np.concatenate([np.zeros((0, constraints.mechanism.nq)), *groups]), component, component_arcs


def _all_windings(constraints: ConstraintSystem, q: Array, component: Indices) -> tuple[Array, Indices]:
    """Return each solution with all full rotations inside the limits; joints without limits are not changed.

    Combinations that change a joint constraint or a custom objective are left out.
    """
    angle_columns = constraints.columns[constraints.is_periodic]
    angle_columns = angle_columns[
        np.isfinite(constraints.lower[angle_columns]) & np.isfinite(constraints.upper[angle_columns])
    ]
    configurations: list[Array] = []
    unshifted_configurations: list[Array] = []
    components: list[int] = []
    for solution, index in zip(q, component.tolist(), strict=True):
        min_revolutions, max_revolutions = (
            np.ceil((constraints.lower[angle_columns] - solution[angle_columns]) / TWO_PI - 1e-10),
            np.floor((constraints.upper[angle_columns] - solution[angle_columns]) / TWO_PI + 1e-10),
        )
        ranges = [range(int(a), int(b) + 1) for a, b in zip(min_revolutions, max_revolutions, strict=True)]
        for revolutions in itertools.product(*ranges):
            configuration = solution.copy()
            configuration[angle_columns] = np.clip(
                configuration[angle_columns] + TWO_PI * np.array(revolutions, dtype=np.float64),
                constraints.lower[angle_columns],
                constraints.upper[angle_columns],
            )
            configurations.append(configuration)
            unshifted_configurations.append(solution)
            components.append(index)
    shifted_q = np.array(configurations)
    is_equivalent = constraints.are_equivalent(np.array(unshifted_configurations), shifted_q)
    return shifted_q[is_equivalent], np.array(components, dtype=np.int64)[is_equivalent]


def _thin_out(constraints: ConstraintSystem, q: Array, component: Indices, samples: int) -> tuple[Array, Indices]:
    """Return at most `samples` solutions per component, as far apart as possible, including its first solution."""
    chosen_indices: list[int] = []
    for index in dict.fromkeys(component.tolist()):
        component_indices = np.flatnonzero(component == index)
        chosen_indices += (
            component_indices[farthest_point_sample(constraints, q[component_indices], samples)].tolist()
            if len(component_indices) > samples
            else component_indices.tolist()
        )
    return q[chosen_indices], component[chosen_indices]


def _explanation(
    context: SearchContext, pool: SolutionPool, count: int, start_count: int, solved_count: int, complete: bool
) -> str:
    pool_size = len(pool.isolated_solutions.q) + len(pool.curves) + len(pool.multi_dof_solutions)
    if context.closed_form is not None:
        source = f"the closed form of the family {context.closed_form.kind!r}"
        if count:
            return f"by {source}"
        if pool_size:
            return f"{source} has solutions, but none inside the limits"
        if complete:
            return f"out of reach: {source} has no solution"
        return f"not reached: {source} has no solution at {ELBOW_SAMPLES} elbow angles"
    starts = format_count(start_count, "start")
    if not count:
        return f"not reached from {starts}: no descent ended at a solution inside the limits"
    return f"from {starts}, of which {solved_count} led to a solution"


BLOCKS_WITHOUT_PROGRESS = 2
"""Number of consecutive blocks of starts that lead to solutions, but to none nearer to q0, after which
`nearest_solution` stops. Tuned on a Panda by comparison with all points of all its self-motions. More blocks cost time
and find rarer self-motions.
"""
FIRST_APPROACH_STEPS, APPROACH_CANDIDATES = 10, 8
"""Number of steps towards q0 for all candidates, and number of nearest candidates that are moved further after them."""
MIN_PROGRESS = 1e-6
"""rad and m; a smaller decrease of the distance does not count as progress."""
NEAREST_MAX_STARTS = 512
"""Default maximum number of starts of `nearest_solution`."""


def nearest_solution(
    context: SearchContext, *, max_attempts: int = NEAREST_MAX_STARTS, rng: np.random.Generator | None = None
) -> Array | None:
    """Return the solution (nq,) nearest to q0; None if no solution is found.

    If a descent finds an isolated solution, the result is the nearest one of `all_solutions`. Otherwise the results of
    the closed form or of descents from many starts are moved along their self-motions to the point nearest to q0.

    Args:
        max_attempts: maximum number of starts, if no solution is isolated.
        rng: random generator for the starts; the default is the Halton sequence.
    """
    form = context.closed_form
    if form is not None and not isinstance(form.formula, SRS):
        return _nearest_by_closed_form(context, form)
    constraints, q0 = context.constraints, context.q0
    best_q: Array | None = None
    best_distance, idle_blocks, start_count = np.inf, 0, 0
    while start_count < max_attempts and idle_blocks < BLOCKS_WITHOUT_PROGRESS and not constraints.is_exhausted:
        starts = context.starts(start_count, min(STARTS_PER_BLOCK, max_attempts - start_count), rng)
        if start_count == 0:
            starts[0] = q0
        start_count += len(starts)
        candidates, is_valid = constraints.polish(context.descend(starts), q0)
        candidates = candidates[is_valid]
        if (
            start_count <= STARTS_PER_BLOCK
            and form is not None
            and (nearest_q := form.nearest(context.X_world_link, q0)) is not None
        ):
            candidates = np.vstack([candidates, nearest_q])  # for an S-R-S arm the nearest solution, or one close to it
        if not len(candidates):
            continue
        if not (constraints.redundancy(candidates) > 0).all():
            return _nearest_of_all_solutions(context, rng)
        candidates = approach_along_self_motion(constraints, candidates, q0, FIRST_APPROACH_STEPS)
        candidates = approach_along_self_motion(
            constraints, candidates[np.argsort(constraints.distance(q0, candidates))[:APPROACH_CANDIDATES]], q0
        )
        distances = constraints.distance(q0, candidates)
        idle_blocks += 1
        if distances.min() < best_distance - MIN_PROGRESS:
            best_q, best_distance, idle_blocks = candidates[int(np.argmin(distances))], float(distances.min()), 0
    return best_q


def _nearest_by_closed_form(context: SearchContext, form: ClosedForm) -> Array | None:
    constraints, q0 = context.constraints, context.q0
    branches = form.branches(context.X_world_link, q0)
    branches = branches[
        np.abs(constraints.residual_and_jacobian(branches)[0]).max(axis=1, initial=0.0) < CLOSED_FORM_TOLERANCE
    ]
    if not len(branches):
        return None
    is_redundant = constraints.redundancy(branches) > 0
    if is_redundant.any():  # at a singular pose solutions are on self-motions
        branches[is_redundant] = approach_along_self_motion(constraints, branches[is_redundant], q0)
    return branches[int(np.argmin(constraints.distance(q0, branches)))]


def _nearest_of_all_solutions(context: SearchContext, rng: np.random.Generator | None) -> Array | None:
    solutions = all_solutions(context, samples=1, rng=rng)
    return solutions.q[0] if len(solutions) else None
