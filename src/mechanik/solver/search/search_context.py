"""Context of a search for several solutions: the constraints, starts, descents and closed form of one solver call."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.errors import NoClosedForm
from mechanik.kernels.problem_layout import LOCKED
from mechanik.kernels.state_layout import SUCCESS
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.solver.compiled_problem import CompiledProblem
from mechanik.solver.kernel_driver import run_kernel
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.options import DofNames, Options, as_bounds, as_dof_mask, write_options
from mechanik.solver.search.closed_form import POSE_ROWS, POSITION_ROWS, ClosedForm, closed_form
from mechanik.solver.search.constraint_system import ConstraintSystem, Mask
from mechanik.solver.start_configurations import halton_configurations, random_configurations
from mechanik.solver.target_writer import Targets, with_targets
from mechanik.spatial import inverse
from mechanik.spatial.array import Array, ArrayLike

DescentFunction = Callable[[Array], tuple[Array, Mask]]
"""Function from starts (K, nq) to the end points (K, nq) of descents, and whether all constraints hold there (K,)."""
DESCENT_ITERATIONS = 60
"""Maximum number of iterations of a descent. Successful descents need about 10, and a new start is cheaper than more
iterations."""


def make_descent_function(solver: CompiledProblem, bounds: tuple[Array, Array], locked_dofs: Mask) -> DescentFunction:
    """Return a function that descends by the general kernel to the present targets of a solver.

    Args:
        bounds: lower and upper limits, (nq,) each, rad or m.
        locked_dofs: (nv,) mask of locked dofs.
    """
    method, options, subproblems = LevenbergMarquardt(), Options(), solver._problem.subproblems
    no_starts = np.zeros((0, solver.mechanism.nq))

    def descend(starts: Array) -> tuple[Array, Mask]:
        for subproblem in subproblems:
            solver._write_bounds(subproblem, *bounds)
            subproblem.packed.tables["bound_state"][:] = np.where(subproblem.columns_of_dofs(locked_dofs), LOCKED, 0)
            write_options(subproblem, options, method, solver._problem.length_unit, DESCENT_ITERATIONS)
        end_points, is_solved = np.array(starts), np.ones(len(starts), dtype=np.bool_)
        for k in range(len(end_points)):
            for subproblem, relations in zip(subproblems, solver._block_relations, strict=True):
                end_points[k] = run_kernel(solver.mechanism, subproblem, relations, end_points[k], no_starts)
                if subproblem.packed.tables["report"][SUCCESS] != 1.0:
                    is_solved[k] = False
                    break
        return end_points, is_solved

    return descend


PROBE_CONFIGURATIONS = 8
"""Number of random configurations at which the influence of each dof is sampled."""
MIN_INFLUENCE = 1e-9
"""Scaled units; smaller derivatives count as zero."""
INFLUENCE_KEY = "influence mask"
"""Cache key of the influence mask. The closed form of a link, or the error that there is none, has the link's name as
key."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchContext:
    """Constraints, starts and descent functions of a search.

    Attributes:
        constraints: the constraints and limits.
        q0: (nq,) reference configuration.
        is_fixed: (nq,) mask of the values that stay as in `q0`, because they may not move, or because no constraint
            depends on them.
        closed_form: the closed form with the limits of this call; None if the problem has no closed form.
        X_world_link: (4, 4) target of the closed form.
        descend_within_limits: descent function inside the limits.
        descend_beyond_limits: descent function that ignores the limits of shiftable dofs (`ConstraintSystem`) with a
            range of less than a full rotation; None if there are no such dofs.
    """

    constraints: ConstraintSystem
    q0: Array
    is_fixed: Mask
    closed_form: ClosedForm | None
    X_world_link: Array
    descend_within_limits: DescentFunction
    descend_beyond_limits: DescentFunction | None

    def starts(
        self, first_index: int, count: int, rng: np.random.Generator | None, ignore_limits: bool = False
    ) -> Array:
        """Return `count` start configurations (count, nq); values of `is_fixed` are as in `q0`.

        Args:
            first_index: index of the first start in the Halton sequence; not used with `rng`.
            rng: random generator; None for the Halton sequence.
            ignore_limits: whether to ignore the limits that `descend_beyond_limits` ignores.
        """
        constraints = self.constraints
        bounds = _limits_with_free_angles(constraints) if ignore_limits else (constraints.lower, constraints.upper)
        space = replace(constraints.mechanism.space, lower=bounds[0], upper=bounds[1])
        samples = (
            halton_configurations(space, count, first_index)
            if rng is None
            else random_configurations(space, count, rng)
        )
        return np.where(self.is_fixed, self.q0, samples)

    def descend(self, starts: Array, ignore_limits: bool = False) -> Array:
        """Descend from starts (K, nq), and return the end points of the descents that lead to a solution."""
        descend = (
            self.descend_beyond_limits
            if ignore_limits and self.descend_beyond_limits is not None
            else self.descend_within_limits
        )
        end_points, is_solved = descend(starts)
        return np.where(self.is_fixed, self.q0, end_points[is_solved])  # soft objectives may have moved fixed values


DescentAndCache = Callable[[], tuple[DescentFunction | None, dict[str, Any]]]
"""Function without arguments. It returns a faster descent function inside the limits of the solver, or None, and the
cache of the compiled problem."""


def _no_fast_descent() -> tuple[None, dict[str, Any]]:
    return None, {}


@contextmanager
def search_context(
    solver: CompiledProblem,
    targets: Targets | None,
    q0: ArrayLike | None,
    lock: DofNames | str | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    descent_and_cache: DescentAndCache = _no_fast_descent,
) -> Generator[SearchContext]:
    """Write targets into a solver as `Solver.solve` does, and yield the context of the search.

    Until the context ends, nothing else may use the tables of the solver.

    Args:
        solver: the solver, whose tables and objectives are used.
        targets: new targets; None for the targets of the objectives.
        q0: (nq,) reference; None for the present configuration.
        lock: dofs that are locked in this call, in addition to the locked dofs of the solver.
        limits: (lower, upper) by joint or dof name for this call, rad or m.
        descent_and_cache: called after the targets are written.
    """
    solver._recompile_if_stale()
    mechanism = solver.mechanism
    start = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
    for k in mechanism.space.quaternions_q:
        start[k : k + 4] /= np.linalg.norm(start[k : k + 4])
    objectives = with_targets(solver._objectives, targets)
    solver._update_targets(objectives, start, 1.0)
    lower, upper = solver._bounds if limits is None else as_bounds(mechanism, {**(solver._limits or {}), **limits})
    locked_dofs = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_dof_mask(mechanism, lock, False)
    is_moving = solver._moving_dofs & ~locked_dofs
    space = mechanism.space
    for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        if is_moving[v] and lower[k] == upper[k]:  # equal limits lock a dof
            start[k], is_moving[v], locked_dofs[v] = lower[k], False, True
    descend_within, cache = descent_and_cache()
    length_unit = solver._problem.length_unit
    if INFLUENCE_KEY not in cache:
        cache[INFLUENCE_KEY] = _influence_mask(
            ConstraintSystem(mechanism, objectives, solver._moving_dofs, (lower, upper), length_unit)
        )
    is_moving &= cache[INFLUENCE_KEY]
    constraints = ConstraintSystem(mechanism, objectives, is_moving, (lower, upper), length_unit)
    form, X_world_link = _find_closed_form(solver, constraints, cache)
    if descend_within is None or lock is not None or limits is not None:
        descend_within = make_descent_function(solver, (lower, upper), locked_dofs)
    wide_limits = _limits_with_free_angles(constraints)
    angle_columns = constraints.columns[constraints.is_shiftable]
    is_wider = bool(((wide_limits[0] < lower) | (wide_limits[1] > upper))[angle_columns].any())
    descend_beyond = make_descent_function(solver, wide_limits, locked_dofs) if is_wider else None
    try:
        yield SearchContext(
            constraints, start, _fixed_mask(constraints), form, X_world_link, descend_within, descend_beyond
        )
    finally:
        solver._targets_changed = True
        solver._reset_tables()


def _limits_with_free_angles(constraints: ConstraintSystem) -> tuple[Array, Array]:
    """Return the limits (nq,), rad or m; shiftable angles with a range of less than a full rotation have none."""
    k = constraints.columns[constraints.is_shiftable]
    lower, upper = constraints.lower.copy(), constraints.upper.copy()
    narrow_columns = k[upper[k] - lower[k] < 2 * np.pi]
    lower[narrow_columns], upper[narrow_columns] = -np.inf, np.inf
    return lower, upper


def _influence_mask(constraints: ConstraintSystem) -> Mask:
    """Return the mask (nv,) of the dofs that change the residual at one of the random configurations or more."""
    space = constraints.mechanism.space
    J = constraints.residual_and_jacobian(space.random(np.random.default_rng(0), PROBE_CONFIGURATIONS))[1]
    mask = np.zeros(space.nv, dtype=np.bool_)
    mask[constraints.moving_dofs] = np.abs(J).max(axis=(0, 1), initial=0.0) > MIN_INFLUENCE
    return mask


def _fixed_mask(constraints: ConstraintSystem) -> Mask:
    """Return the mask (nq,) of the values of q that do not move."""
    space = constraints.mechanism.space
    is_moving = np.zeros(space.nv, dtype=np.bool_)
    is_moving[constraints.moving_dofs] = True
    mask = np.ones(space.nq, dtype=np.bool_)
    mask[space.scalars_q] = ~is_moving[space.scalars_v]
    for k, i in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
        mask[k : k + 4] = not is_moving[i]
    return mask


def _find_closed_form(
    solver: CompiledProblem, constraints: ConstraintSystem, cache: dict[str, Any]
) -> tuple[ClosedForm | None, Array]:
    """Return the closed form of the only required objective, and its target pose (4, 4); None and the identity if
    there is no closed form."""
    pairs = zip(solver._objectives, solver._objective_relations, strict=True)
    required_relations = [relation for objective, relations in pairs if objective.required for relation in relations]
    no_result = None, np.eye(4)
    problem = solver._problem
    if (
        len(required_relations) != 1
        or problem.closures
        or problem.joint_constraints
        or problem.cone_joints
        or not _is_link_goal(required_relations[0])
    ):
        return no_result
    relation = required_relations[0]
    name = relation.b or ""
    if name not in cache:
        try:
            cache[name] = closed_form(solver.mechanism, name)
        except NoClosedForm as error:
            cache[name] = error
    form = cache[name]
    if not isinstance(form, ClosedForm):
        return no_result
    columns = form.axes.columns
    if set(columns.tolist()) != set(constraints.columns.tolist()):
        return no_result
    if relation.rows == POSITION_ROWS and form.formula.constrains_rotation:
        return no_result
    axes = replace(form.axes, lower=constraints.lower[columns], upper=constraints.upper[columns])
    return replace(form, axes=axes), relation.X_a @ inverse(relation.X_b)


def _is_link_goal(relation: Relation) -> bool:
    """Return whether a relation is the pose, or the position, of a link in the world frame."""
    if relation.kind is not RelationKind.POSE or relation.a is not None or relation.b is None:
        return False
    if relation.world_axes is not None or relation.lower is not None or relation.upper is not None:
        return False
    return relation.rows == POSE_ROWS or (relation.rows == POSITION_ROWS and not np.any(relation.X_b[:3, 3]))
