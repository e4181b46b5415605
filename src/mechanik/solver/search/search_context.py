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
from mechanik.solver.dof_selection import DofNames, as_bounds, as_dof_mask
from mechanik.solver.kernel_driver import run_kernel, write_options
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.options import Options
from mechanik.solver.search.closed_form import ClosedForm, closed_form
from mechanik.solver.search.constraint_system import ConstraintSystem, Mask
from mechanik.solver.start_configurations import halton_configurations, random_configurations
from mechanik.solver.target_writer import Targets, with_targets
from mechanik.spatial import inverse
from mechanik.spatial.array import Array, ArrayLike

DescentFunction = Callable[[Array], tuple[Array, Mask]]
"""Map starts (K, nq) to the end points (K, nq) of descents, and whether all constraints hold there (K,)."""
DESCENT_ITERATIONS = 60
"""Maximum iterations of a descent: successful ones need about 10, and a new start is cheaper than more iterations."""


def make_descents(solver: CompiledProblem, bounds: tuple[Array, Array], locked: Mask) -> DescentFunction:
    """Make descents by the general kernel for the present targets of a solver.

    Args:
        bounds: lower and upper limits, (nq,) each, rad or m.
        locked: (nv,) mask of locked dofs.
    """
    method, options, parts = LevenbergMarquardt(), Options(), solver._problem.subproblems
    no_starts = np.zeros((0, solver.mechanism.nq))

    def attempts(starts: Array) -> tuple[Array, Mask]:
        for part in parts:
            solver._write_bounds(part, *bounds)
            part.packed.tables["ban"][:] = np.where(part.columns_moving(locked), LOCKED, 0)
            write_options(part, options, method, solver._problem.length_unit, DESCENT_ITERATIONS)
        found, success = np.array(starts), np.ones(len(starts), dtype=np.bool_)
        for k in range(len(found)):
            for part, relations in zip(parts, solver._block_relations, strict=True):
                found[k] = run_kernel(solver.mechanism, part, relations, found[k], no_starts)
                if part.packed.tables["out"][SUCCESS] != 1.0:
                    success[k] = False
                    break
        return found, success

    return attempts


POSE_ROWS, POSITION_ROWS = (0, 1, 2, 3, 4, 5), (0, 1, 2)
PROBE_CONFIGURATIONS = 8
"""Random configurations at which the influence of each dof is sampled."""
MIN_INFLUENCE = 1e-9
"""Derivatives (scaled units) below this count as zero."""
INFLUENCE_KEY = "what matters"
"""Cache key of the influence mask; no link has this name."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchContext:
    """The constraints, starts and descents of a search.

    Attributes:
        constraints: the constraints and limits.
        q0: (nq,) reference configuration.
        is_fixed: (nq,) mask of the values that stay as in `q0`, because they may not move, or because no constraint
            depends on them.
        closed_form: the closed form, if there is one, with the limits of this call.
        X_world_link: (4, 4) target of the closed form.
        descents_within_limits: descents inside the limits.
        descents_beyond_limits: descents that ignore the limits of revolute joints; None if no limit matters.
    """

    constraints: ConstraintSystem
    q0: Array
    is_fixed: Mask
    closed_form: ClosedForm | None
    X_world_link: Array
    descents_within_limits: DescentFunction
    descents_beyond_limits: DescentFunction | None

    def starts(self, first: int, count: int, rng: np.random.Generator | None, ignore_limits: bool = False) -> Array:
        """Return `count` evenly distributed configurations (count, nq), from sequence number `first` on.

        Values that may not move are as in `q0`.

        Args:
            rng: random generator; None for the Halton sequence.
            ignore_limits: whether to ignore the limits of revolute joints.
        """
        c = self.constraints
        lower, upper = _wide(c) if ignore_limits else (c.lower, c.upper)
        space = replace(c.mechanism.space, lower=lower, upper=upper)
        drawn = halton_configurations(space, count, first) if rng is None else random_configurations(space, count, rng)
        return np.where(self.is_fixed, self.q0, drawn)

    def descend(self, starts: Array, ignore_limits: bool = False) -> Array:
        """Return the end points of those descents from starts (K, nq) that lead to a solution."""
        attempts = (
            self.descents_beyond_limits
            if ignore_limits and self.descents_beyond_limits is not None
            else self.descents_within_limits
        )
        found, success = attempts(starts)
        return np.where(self.is_fixed, self.q0, found[success])  # soft objectives may have moved fixed values


SearchHelpers = Callable[[], tuple[DescentFunction | None, dict[str, Any]]]
"""Return faster descents inside the solver's own limits, or None, and a cache that is empty for each new problem."""


def _none() -> tuple[None, dict[str, Any]]:
    return None, {}


@contextmanager
def search_context(
    solver: CompiledProblem,
    targets: Targets | None,
    q0: ArrayLike | None,
    lock: DofNames | str | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    helpers: SearchHelpers = _none,
) -> Generator[SearchContext]:
    """Write targets into a solver as `Solver.solve` does, and yield the context of the search.

    The tables of the solver belong to the search until the context ends.

    Args:
        solver: the compiled problem.
        targets: new targets; None for those of the objectives.
        q0: (nq,) reference; None for the present configuration.
        lock: dofs that are locked in this call, besides those of the solver.
        limits: (lower, upper) by joint or dof name for this call, rad or m.
        helpers: called after the targets are written.
    """
    solver._recompile_if_stale()
    mechanism = solver.mechanism
    start = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
    for k in mechanism.space.quaternions_q:
        start[k : k + 4] /= np.linalg.norm(start[k : k + 4])
    objectives = with_targets(solver._objectives, targets)
    solver._update_targets(objectives, start, 1.0)
    lower, upper = solver._bounds if limits is None else as_bounds(mechanism, {**(solver._limits or {}), **limits})
    locked = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_dof_mask(mechanism, lock, False)
    moving = solver._moving_dofs & ~locked
    space = mechanism.space
    for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        if moving[v] and lower[k] == upper[k]:  # equal limits lock a dof
            start[k], moving[v], locked[v] = lower[k], False, True
    attempts, kept = helpers()
    size = solver._problem.length_unit
    if INFLUENCE_KEY not in kept:
        kept[INFLUENCE_KEY] = _matters(
            ConstraintSystem(mechanism, objectives, solver._moving_dofs, (lower, upper), size)
        )
    moving &= kept[INFLUENCE_KEY]
    conditions = ConstraintSystem(mechanism, objectives, moving, (lower, upper), size)
    form, X_world_link = _form(solver, conditions, kept)
    if attempts is None or lock is not None or limits is not None:
        attempts = make_descents(solver, (lower, upper), locked)
    wide = _wide(conditions)
    matter = conditions.columns[conditions.is_angle]
    is_wider = bool(((wide[0] < lower) | (wide[1] > upper))[matter].any())
    beyond = make_descents(solver, wide, locked) if is_wider else None
    try:
        yield SearchContext(conditions, start, _stays(conditions), form, X_world_link, attempts, beyond)
    finally:
        solver._targets_changed = True
        solver._reset_options()


def _wide(conditions: ConstraintSystem) -> tuple[Array, Array]:
    """Return limits (nq,) without those of angles; limits that allow a full rotation stay."""
    k = conditions.columns[conditions.is_angle]
    lower, upper = conditions.lower.copy(), conditions.upper.copy()
    narrow = k[upper[k] - lower[k] < 2 * np.pi]
    lower[narrow], upper[narrow] = -np.inf, np.inf
    return lower, upper


def _matters(conditions: ConstraintSystem) -> Mask:
    """Return the mask (nv,) of the dofs that change a required residual at a random configuration."""
    space = conditions.mechanism.space
    J = conditions.residual_and_jacobian(space.random(np.random.default_rng(0), PROBE_CONFIGURATIONS))[1]
    matters = np.zeros(space.nv, dtype=np.bool_)
    matters[conditions.moving] = np.abs(J).max(axis=(0, 1), initial=0.0) > MIN_INFLUENCE
    return matters


def _stays(conditions: ConstraintSystem) -> Mask:
    """Return the mask (nq,) of the values that do not move."""
    space = conditions.mechanism.space
    moves = np.zeros(space.nv, dtype=np.bool_)
    moves[conditions.moving] = True
    stays = np.ones(space.nq, dtype=np.bool_)
    stays[space.scalars_q] = ~moves[space.scalars_v]
    for k, i in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
        stays[k : k + 4] = not moves[i]
    return stays


def _form(
    solver: CompiledProblem, conditions: ConstraintSystem, kept: dict[str, Any]
) -> tuple[ClosedForm | None, Array]:
    """Return the closed form of the only required objective, and its target pose (4, 4); None if there is none."""
    each = zip(solver._objectives, solver._objective_relations, strict=True)
    rows = [relation for one, relations in each if one.required for relation in relations]
    none = None, np.eye(4)
    program = solver._problem
    if (
        len(rows) != 1
        or program.closures
        or program.joint_constraints
        or program.cones
        or not _is_for_formulas(rows[0])
    ):
        return none
    relation = rows[0]
    name = relation.b or ""
    if name not in kept:
        try:
            kept[name] = closed_form(solver.mechanism, name)
        except NoClosedForm as error:
            kept[name] = error
    form = kept[name]
    if not isinstance(form, ClosedForm):
        return none
    columns = form.axes.columns
    if set(columns.tolist()) != set(conditions.columns.tolist()):
        return none
    if relation.rows == POSITION_ROWS and form.formula.constrains_rotation:
        return none
    axes = replace(form.axes, lower=conditions.lower[columns], upper=conditions.upper[columns])
    return replace(form, axes=axes), relation.X_a @ inverse(relation.X_b)


def _is_for_formulas(relation: Relation) -> bool:
    """Return whether a relation is the pose, or the position, of a link in the world frame."""
    if relation.kind is not RelationKind.POSE or relation.a is not None or relation.b is None:
        return False
    if relation.world_axes is not None or relation.lower is not None or relation.upper is not None:
        return False
    return relation.rows == POSE_ROWS or (relation.rows == POSITION_ROWS and not np.any(relation.X_b[:3, 3]))
