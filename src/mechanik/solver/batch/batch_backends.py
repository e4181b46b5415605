"""Batch backends: row by row with a solver, in SIMD lanes for a serial chain, and in lanes with collision avoidance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mechanik.errors import MechanikError
from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE
from mechanik.kernels.state_layout import BATCH_BAD_TARGET, CONVERGED
from mechanik.model import Mechanism
from mechanik.model.dof import ALL_DOFS
from mechanik.objectives import Objective, PoseGoal, PositionGoal
from mechanik.objectives.pose_constraints import FixedRotation, PointConstraint
from mechanik.objectives.pose_goals import LinkGoal
from mechanik.objectives.relation import TargetPart
from mechanik.objectives.target_spec import POINT, POSE, WXYZ
from mechanik.problem.chain_tables import ChainReports
from mechanik.solver.backends.backend import Partial
from mechanik.solver.batch.batch_rows import (
    Mask,
    RowResults,
    TargetRows,
    validate_targets,
)
from mechanik.solver.batch.batch_store import row_seed
from mechanik.solver.collision_constraint import CollisionConstraint
from mechanik.solver.search.collision_free_search import CollisionFreeSearch
from mechanik.solver.solution import IN_COLLISION_CODE, STATUS_BY_CODE, Solution
from mechanik.spatial import apply, quaternion, rotation
from mechanik.spatial.array import Array


def goal_poses(objective: LinkGoal, values: Array | None, count: int) -> Array:
    """Return the target pose of a goal for each row, (count, 4, 4).

    A position or rotation that a target does not define is that of the goal, or else zero or the identity.

    Args:
        objective: the goal.
        values: targets (count, ...) of shape (4, 4), (3, 3), (4,) or (3,) each; None: the target of the goal.
        count: number of rows.
    """
    shape = None if values is None else values.shape[1:]
    if values is not None and shape == POSE and objective.position is not None:
        return values
    X = np.tile(np.eye(4), (count, 1, 1))
    if isinstance(objective.rotation, FixedRotation):
        X[:, :3, :3] = objective.rotation.target
    if objective.position is not None:
        X[:, :3, 3] = objective.position.target
    if values is not None and shape == POINT:
        X[:, :3, 3] = values
    elif values is not None:
        X[:, :3, :3] = quaternion.to_matrix(values) if shape == WXYZ else values[:, :3, :3]
    return X


def row_errors(mechanism: Mechanism, objectives: Sequence[Objective], targets: TargetRows, q: Array) -> Array:
    """Return the errors (M, number of objectives, 2), m and rad, of the configurations q (M, nq).

    `Objective.error` defines the errors.
    """
    errors = np.zeros((len(q), len(objectives), 2))
    with np.errstate(over="ignore"):  # a target at 1e200 m has an infinite error
        for k, objective in enumerate(objectives):
            is_list = isinstance(targets.values[k], list)
            if not is_list and (
                type(objective) is PositionGoal or (type(objective) is PoseGoal and objective.dof == ALL_DOFS)
            ):
                X_target = goal_poses(objective, targets.values[k], len(q))
                errors[:, k] = _link_goal_errors(mechanism, objective, X_target, q)
                continue
            for i in range(len(q)):
                target = targets.target(k, i)
                error = (objective if target is None else objective.with_target(target)).error(mechanism, q[i])
                errors[i, k] = error.position, error.rotation
    return errors


def _link_goal_errors(mechanism: Mechanism, objective: LinkGoal, X_target: Array, q: Array) -> Array:
    """Return the errors (M, 2), m and rad, of a goal for a point, a full rotation, or both."""
    position, orientation = objective.position, objective.rotation
    X_world_link = mechanism.pose(objective.link, q)
    if objective.relative_to is not None:
        X_target = mechanism.pose(objective.relative_to, q) @ X_target
    errors = np.zeros((len(q), 2))
    if isinstance(position, PointConstraint):
        offset = apply(X_world_link, position.local) - X_target[:, :3, 3]
        errors[:, 0] = np.sqrt((offset * offset).sum(axis=1))
    if isinstance(orientation, FixedRotation):
        R_target_local = np.swapaxes(X_target[:, :3, :3], 1, 2) @ (X_world_link[:, :3, :3] @ orientation.local)
        rotation_vectors = rotation.log(R_target_local)
        errors[:, 1] = np.sqrt((rotation_vectors * rotation_vectors).sum(axis=1))
    return errors


SEQUENTIAL_CHUNK_ROWS = 64
"""Number of rows in a chunk: 3 to 64 ms of work, at 0.05 to 1 ms for each row."""
CODE_BY_STATUS = {status: code for code, status in reversed(list(enumerate(STATUS_BY_CODE)))}
"""Status code of each status; the first, if a status has several codes."""


class RowSolver(Protocol):
    """Function that solves one row; several threads may call it at once."""

    def __call__(
        self, targets: Any, q0: Array | None, rng: np.random.Generator | None, partial: Partial | None
    ) -> Solution: ...


class SequentialBackend:
    """Backend that solves rows one by one; it supports every mechanism, objective and method.

    Args:
        mechanism: the mechanism.
        objectives: the objectives.
        solve_row: solves a row from its targets and its start, or continues from a partial answer.
    """

    def __init__(self, mechanism: Mechanism, objectives: Sequence[Objective], solve_row: RowSolver) -> None:
        self._mechanism, self._objectives, self._solve_row = mechanism, objectives, solve_row
        self.chunk_rows, self.checks_poses, self.kernels = (
            SEQUENTIAL_CHUNK_ROWS,
            False,
            ("descent", "forward", "write_targets"),
        )

    def solve_rows(
        self,
        targets: TargetRows,
        q0: Array | None,
        seed: int | None,
        results: RowResults,
        partials: Sequence[Partial] | None = None,
    ) -> None:
        """Solve rows as `BatchBackend.solve_rows`, or continue from a partial answer for each row."""
        is_tried = np.ones(targets.count, dtype=np.bool_)
        for i in range(targets.count):
            # `with_targets` would read a mapping that is no target as targets by name
            if any(isinstance(targets.target(k, i), Mapping) for k in range(len(self._objectives))) and (
                self._is_bad_target(targets, i)
            ):
                results.code[i], is_tried[i] = BATCH_BAD_TARGET, False
                continue
            start = None if q0 is None else q0[i]
            target = targets.row(i)
            rng = None if seed is None else np.random.default_rng(row_seed(seed, target, start))
            try:
                solution = self._solve_row(target, start, rng, None if partials is None else partials[i])
            except MechanikError:
                if not self._is_bad_target(targets, i):
                    raise
                results.code[i], is_tried[i] = BATCH_BAD_TARGET, False
                continue
            results.q[i], results.iterations[i] = solution.q, solution.iterations
            results.code[i] = CODE_BY_STATUS[solution.status]
        if is_tried.all():
            results.errors[:] = row_errors(self._mechanism, self._objectives, targets, results.q)
        elif is_tried.any():
            results.errors[is_tried] = row_errors(
                self._mechanism, self._objectives, targets.subset(is_tried), results.q[is_tried]
            )

    def _is_bad_target(self, targets: TargetRows, i: int) -> bool:
        """Return whether the target of a row is invalid."""
        for k, objective in enumerate(self._objectives):
            target = targets.target(k, i)
            if target is not None:
                try:
                    objective.with_target(target).relations(self._mechanism)
                except MechanikError:
                    return True
        return False


LANE_CHUNK_ROWS = 4096
"""Number of rows in a chunk: a few milliseconds of work, at 1 us for each row. Larger chunks exceed the cache."""
KEY_COUNT = 1 << 31
"""Number of different keys (random seeds) that are given to the kernel."""


class ChainRowSolver(Protocol):
    """Part of the `ChainSearch` interface that the lane backend needs."""

    def solve_rows(self, X: Array, q0: Array, mode: int, key: float, q: Array, report: Array) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class LaneBackend:
    """Backend that solves a single serial chain with a single goal in SIMD lanes.

    Attributes:
        search: search of the chain.
        sequential_backend: backend for the rows that the chain kernel does not solve: it descends to the closest pose,
            or solves a row that the kernel rejects although its target is valid.
        objective: the goal; see `supports_lanes`.
        default_q: configuration (nq,) with the values of joints outside the chain, for rows without a start.
        chunk_rows, checks_poses, kernels: as for `BatchBackend`.
    """

    search: ChainRowSolver
    sequential_backend: SequentialBackend
    objective: LinkGoal
    default_q: Array
    chunk_rows: int = LANE_CHUNK_ROWS
    checks_poses: bool = True
    kernels: tuple[str, ...] = ("lane_kernel", "chain_kernel")

    def solve_rows(self, targets: TargetRows, q0: Array | None, seed: int | None, results: RowResults) -> None:
        values: Any = targets.values[0]
        if isinstance(values, list | tuple):  # targets that are not an array
            self.sequential_backend.solve_rows(targets, q0, seed, results)
            return
        X = np.ascontiguousarray(goal_poses(self.objective, values, targets.count))
        q, reports = np.empty_like(results.q), ChainReports.allocate(targets.count)
        starts = np.tile(self.default_q, (targets.count, 1)) if q0 is None else q0
        mode = FROM_TABLE if q0 is None else FROM_SEED  # in FROM_SEED, "seed" means the start configuration
        key = 0.0 if seed is None else float(seed % KEY_COUNT)
        self.search.solve_rows(X, starts, mode, key, q, reports.numbers)
        is_rejected, is_unsolved = reports.is_rejected, reports.is_unsolved
        results.code[:] = CONVERGED
        np.copyto(results.q, q, where=~is_rejected[:, None])
        results.iterations[:] = reports.iterations
        results.errors[:, 0] = reports.errors
        if is_unsolved.any():
            self._refine_unsolved(targets, q0, results, is_unsolved)
        if is_rejected.any():
            is_valid = is_rejected.copy()
            is_valid[is_rejected] = validate_targets(X[is_rejected])[1]
            self._solve_rejected(targets, q0, seed, results, is_rejected, is_valid)

    def _refine_unsolved(self, targets: TargetRows, q0: Array | None, results: RowResults, rows: Mask) -> None:
        """Continue the rows that the kernel did not solve: they end at the closest pose."""
        kernel_results = results.subset(rows)
        partials = [
            Partial(q, 1, iterations)
            for q, iterations in zip(kernel_results.q.copy(), kernel_results.iterations.tolist(), strict=True)
        ]
        starts = None if q0 is None else q0[rows].copy()
        self.sequential_backend.solve_rows(targets.subset(rows), starts, None, kernel_results, partials)
        results.write_subset(rows, kernel_results)

    def _solve_rejected(
        self,
        targets: TargetRows,
        q0: Array | None,
        seed: int | None,
        results: RowResults,
        is_rejected: Mask,
        is_valid: Mask,
    ) -> None:
        """Solve the valid rows among those that the chain kernel rejects, and mark the others as BAD_TARGET.

        The kernel rejects inaccurate or invalid poses, and starts with very large values.
        """
        results.code[is_rejected], results.errors[is_rejected] = BATCH_BAD_TARGET, np.nan
        if is_valid.any():
            valid_results = results.subset(is_valid)
            self.sequential_backend.solve_rows(
                targets.subset(is_valid), None if q0 is None else q0[is_valid], seed, valid_results
            )
            results.write_subset(is_valid, valid_results)


def supports_lanes(mechanism: Mechanism, objective: Objective) -> bool:
    """Return whether lanes can solve an objective: whether a target only changes its target pose, as in `goal_poses`.

    Args:
        mechanism: the mechanism.
        objective: the only objective of a solver.

    Example:
        >>> from mechanik.solver.batch import supports_lanes
        >>> supports_lanes(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
        True
    """
    if not isinstance(objective, LinkGoal):
        return False
    relations = objective.relations(mechanism)
    target_writes = relations[0].target_writes
    return (
        len(relations) == 1
        and bool(target_writes)
        and all(
            write.part in (TargetPart.A_POSITION, TargetPart.A_ROTATION) and write.right is None
            for write in target_writes
        )
        and np.array_equal(relations[0].X_a, goal_poses(objective, None, 1)[0])
    )


COLLISION_FREE_CHUNK_ROWS = 1024
"""Number of rows in a chunk: tens of milliseconds of work."""


@dataclass(frozen=True, slots=True, eq=False)
class CollisionFreeLaneBackend:
    """Backend that solves a serial chain in lanes, checks clearances, and solves colliding rows again.

    A configuration is free if it keeps the required clearance, and colliding if not.

    Attributes:
        lane_backend: backend that solves without regard to collisions.
        constraint: the required clearance.
        free_search: search for free solutions.
        constrained_backend: solves the remaining rows one by one, from the solution whose closest pair is farthest
            apart.
        chunk_rows, checks_poses, kernels: as for `BatchBackend`.
    """

    lane_backend: LaneBackend
    constraint: CollisionConstraint
    free_search: CollisionFreeSearch
    constrained_backend: SequentialBackend
    chunk_rows: int = COLLISION_FREE_CHUNK_ROWS
    checks_poses: bool = True
    kernels: tuple[str, ...] = ("lane_kernel", "chain_kernel", "distance.collision_query")

    def solve_rows(self, targets: TargetRows, q0: Array | None, seed: int | None, results: RowResults) -> None:
        self.lane_backend.solve_rows(targets, q0, seed, results)
        is_colliding = results.code == CONVERGED
        is_colliding[is_colliding] = ~self.constraint.are_free(results.q[is_colliding])
        if is_colliding.any() and not isinstance(targets.values[0], list | tuple):
            is_colliding[is_colliding] = ~self._find_other_solutions(targets, q0, results, is_colliding)
        if is_colliding.any():
            results.code[is_colliding] = IN_COLLISION_CODE
            self._solve_constrained(targets, seed, results, is_colliding)

    def _find_other_solutions(self, targets: TargetRows, q0: Array | None, results: RowResults, rows: Mask) -> Mask:
        """Search for other solutions of rows, write them, and return for each row whether a free one was found.

        A colliding solution replaces the first solution only if its closest pair is farther apart.
        """
        values: Any = targets.subset(rows).values[0]
        X = np.ascontiguousarray(goal_poses(self.lane_backend.objective, values, int(rows.sum())))
        row_results, row_starts = results.subset(rows), None if q0 is None else q0[rows]
        candidates = self.free_search.find_free(X, row_results.q, row_starts)
        is_better = candidates.is_free.copy()
        is_colliding = candidates.exists & ~candidates.is_free
        if is_colliding.any():
            is_better[is_colliding] = self.constraint.distances(candidates.q[is_colliding]) > self.constraint.distances(
                row_results.q[is_colliding]
            )
        row_results.q[is_better], row_results.errors[is_better, 0] = (
            candidates.q[is_better],
            candidates.errors[is_better],
        )
        row_results.iterations[:] += candidates.iterations
        results.write_subset(rows, row_results)
        return candidates.is_free

    def _solve_constrained(self, targets: TargetRows, seed: int | None, results: RowResults, rows: Mask) -> None:
        row_results = results.subset(rows)
        earlier_iterations = row_results.iterations.copy()
        self.constrained_backend.solve_rows(targets.subset(rows), row_results.q.copy(), seed, row_results)
        row_results.iterations[:] += earlier_iterations
        results.write_subset(rows, row_results)
