"""Context of a search for several solutions: the constraints, starts, descents and closed form of one solver call."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.errors import NoClosedForm
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import closing_values
from mechanik.solver.kernel_driver import run_kernel
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.options import Options
from mechanik.solver.search.closed_form import CLOSED_FORM_KEY, POSE_ROWS, POSITION_ROWS, ClosedForm, closed_form
from mechanik.solver.search.constraint_system import ConstraintSystem, Mask
from mechanik.solver.start_configurations import halton_configurations, random_configurations
from mechanik.spatial import inverse
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.solver.request import ResolvedRequest
    from mechanik.solver.search.chain_search import ChainSearch
    from mechanik.solver.workspace import Workspace, WorkspacePool

DescentFunction = Callable[[Array], tuple[Array, Mask]]
"""Function from starts (K, nq) to the end points (K, nq) of descents, and whether all constraints hold there (K,)."""
DESCENT_ITERATIONS = 60
"""Maximum number of iterations of a descent. Successful descents need about 10, and a new start is cheaper than more
iterations."""


def make_descent_function(workspace: Workspace, bounds: tuple[Array, Array], locked_dofs: Mask) -> DescentFunction:
    """Return a function that descends by the general kernel to the targets of a workspace.

    Args:
        workspace: memory with the targets; the function needs it until its last call.
        bounds: lower and upper limits, (nq,) each, rad or m.
        locked_dofs: (nv,) mask of locked dofs.
    """
    problem, mechanism = workspace.compiled.problem, workspace.compiled.mechanism
    options = LevenbergMarquardt().kernel_options(Options(max_iterations=DESCENT_ITERATIONS), problem.length_unit)
    no_starts = np.zeros((0, mechanism.nq))

    def descend(starts: Array) -> tuple[Array, Mask]:
        for part in workspace.parts:
            packed = part.subproblem.packed
            packed.write_bounds(*bounds)
            packed.lock_columns(part.subproblem.columns_of_dofs(locked_dofs))
            packed.set_options(options)
        end_points, is_solved = np.array(starts), np.ones(len(starts), dtype=np.bool_)
        for k in range(len(end_points)):
            extra_values = closing_values(mechanism, problem, end_points[k])
            for part in workspace.parts:
                packed = part.subproblem.packed
                packed.set_extra_values(extra_values)
                end_points[k] = run_kernel(mechanism, part.subproblem, part.relations, end_points[k], no_starts)
                if not packed.report.success:
                    is_solved[k] = False
                    break
        return end_points, is_solved

    return descend


PROBE_CONFIGURATIONS = 8
"""Number of random configurations at which the influence of each dof is sampled."""
MIN_INFLUENCE = 1e-9
"""Scaled units; smaller derivatives count as zero."""
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
        self.constraints.work += self.constraints.work_per_descent * len(starts)
        end_points, is_solved = descend(starts)
        return np.where(self.is_fixed, self.q0, end_points[is_solved])  # soft objectives may have moved fixed values


@contextmanager
def search_context(
    pool: WorkspacePool, request: ResolvedRequest, chain_search: ChainSearch | None
) -> Generator[SearchContext]:
    """Provide the context of a search for the targets of a request, with a workspace of its own.

    Args:
        pool: workspaces of the problem of the request.
        request: the request; its start is the reference of the search.
        chain_search: the chain kernel for the values of the locked joints at the start; None if it does not fit.
    """
    compiled, objectives = request.compiled, request.objectives
    mechanism, length_unit = compiled.mechanism, compiled.problem.length_unit
    start, locked_dofs = request.start.copy(), request.locked_dofs.copy()
    lower, upper = request.bounds
    is_moving = compiled.moving_dofs & ~locked_dofs
    space = mechanism.space
    for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        if is_moving[v] and lower[k] == upper[k]:  # equal limits lock a dof
            start[k], is_moving[v], locked_dofs[v] = lower[k], False, True
    with pool.loaded(request) as workspace:
        # the closed form depends on the mechanism and on the structure of the targets alone
        cache: dict[Any, Any] = workspace.parts[0].cache if workspace.parts else {}
        is_moving &= _influence_mask(
            ConstraintSystem(mechanism, objectives, compiled.moving_dofs, (lower, upper), length_unit)
        )
        constraints = ConstraintSystem(mechanism, objectives, is_moving, (lower, upper), length_unit)
        form, X_world_link = _find_closed_form(request, constraints, cache)
        descend_within = _chain_descent(chain_search, request)
        if descend_within is None:
            descend_within = make_descent_function(workspace, (lower, upper), locked_dofs)
        wide_limits = _limits_with_free_angles(constraints)
        angle_columns = constraints.columns[constraints.is_shiftable]
        is_wider = bool(((wide_limits[0] < lower) | (wide_limits[1] > upper))[angle_columns].any())
        descend_beyond = make_descent_function(workspace, wide_limits, locked_dofs) if is_wider else None
        yield SearchContext(
            constraints, start, _fixed_mask(constraints), form, X_world_link, descend_within, descend_beyond
        )


def _chain_descent(chain_search: ChainSearch | None, request: ResolvedRequest) -> DescentFunction | None:
    """Return the descent function of the chain kernel for the targets of a request; None if it does not fit."""
    if chain_search is None or request.restricts_dofs:
        return None
    X = chain_search.chain.target(request.relations[0])
    return None if X is None else lambda starts: chain_search.solve_from_starts(X, starts)[:2]


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
    request: ResolvedRequest, constraints: ConstraintSystem, cache: dict[Any, Any]
) -> tuple[ClosedForm | None, Array]:
    """Return the closed form of the only required objective, and its target pose (4, 4); None and the identity if
    there is no closed form."""
    pairs = zip(request.objectives, request.relations, strict=True)
    required_relations = [relation for objective, relations in pairs if objective.required for relation in relations]
    no_result = None, np.eye(4)
    compiled = request.compiled
    if len(required_relations) != 1 or compiled.has_constraints or not _is_link_goal(required_relations[0]):
        return no_result
    relation = required_relations[0]
    key = CLOSED_FORM_KEY, relation.b
    if key not in cache:
        try:
            cache[key] = closed_form(compiled.mechanism, relation.b or "")
        except NoClosedForm as error:
            cache[key] = error
    form = cache[key]
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
