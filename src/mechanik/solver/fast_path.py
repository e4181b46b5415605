"""Fast solve paths from a new target to a kernel or to the loop of a method, for solvers that are called many times.

A path handles the common arguments without the checks of the general path. It returns None for all other arguments;
then the general path handles the call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE
from mechanik.kernels.problem_layout import AT_BLOCK_DATA, BLOCK_FLOATS, FRAME_A, TARGET_BLOCK
from mechanik.kernels.state_layout import ATTEMPTS_OUT, DONE, ITERATIONS_OUT, SUCCESS
from mechanik.objectives import PoseGoal, PositionGoal
from mechanik.objectives.relation import Relation
from mechanik.problem import write_targets
from mechanik.problem.serial_chain import ChainWeights, find_serial_chain
from mechanik.solver.compiled_problem import CompiledProblem
from mechanik.solver.kernel_driver import NO_TARGET, descent_kernel
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.methods.method import Method, run_method
from mechanik.solver.methods.method_registry import select_fallback_method
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options
from mechanik.solver.restarts import nearly_closed_starts
from mechanik.solver.search.chain_search import LONG_CHAIN_JOINTS, MAX_COST_RATIO, ChainResult, ChainSearch
from mechanik.solver.solution import Solution, goal_cost
from mechanik.solver.start_configurations import halton_configurations
from mechanik.solver.target_writer import (
    PROBE_POSE,
    UNCHANGED,
    MultiTargetWriter,
    Targets,
    append_end_poses,
    is_pose,
    make_multi_target_writer,
    make_target_writer,
    pass_pose,
)
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

chain_kernel = kernel_module("chain_kernel")


def new_translation() -> tuple[Array, Array]:
    """Return a pose with the identity rotation, and its position as a view."""
    X = np.eye(4)
    return X, X[:3, 3]


ChainSolver = Callable[[Any, Any], Solution | ChainResult | None]
"""(target, q0) -> the solution, the best result of a failed search, or None: the general path must handle the call."""


def make_chain_solver(solver: FastPath, chain_search: ChainSearch, relations: Sequence[Relation]) -> ChainSolver | None:
    """Make the fast path to the chain kernel: poses (4, 4) for a `PoseGoal`, positions (3,) for a `PositionGoal`.

    Everything that does not change between calls is computed here. Returns None for other goals, for a `PoseGoal` whose
    target changes X_b, and for a `PositionGoal` whose X_a has a rotation.
    """
    goal, mechanism, mid_q, bounds = solver.objectives[0], solver.mechanism, solver._mid_configuration, solver._bounds
    is_point = type(goal) is PositionGoal and np.array_equal(relations[0].X_a[:3, :3], np.eye(3))
    if type(goal) is PoseGoal:
        # a new target may change only the argument X of the kernel
        probe_relations = goal.with_target(PROBE_POSE).relations(mechanism)
        if not all(
            np.array_equal(relation.X_b, probe_relation.X_b)
            for relation, probe_relation in zip(relations, probe_relations, strict=True)
        ):
            return None
    elif not is_point:
        return None
    default_pool, has_fixed_joints, nq = chain_search.workspace_pool, chain_search.has_fixed_joints, mechanism.nq
    translation_pool: list[tuple[Array, Array]] = []  # pool of poses for point targets, and views of their positions
    array, empty = np.ndarray, np.empty

    def solve(target: Any, q0: Any) -> Solution | ChainResult | None:
        start_time = perf_counter()
        if type(target) is not array:
            return None
        X, mode, position = target, FROM_SEED, None
        if is_point:
            if X.shape != (3,) or X.dtype != np.float64:
                return None
            X, position = translation_pool.pop() if translation_pool else new_translation()
            position[:] = target
        if q0 is None:
            q0, mode = mid_q if mid_q is not None else np.array(mechanism.q), FROM_TABLE
        elif type(q0) is not array:
            return None
        pool = default_pool
        if has_fixed_joints:
            if q0.shape != (nq,) or q0.dtype != np.float64:
                return None
            chain_search.rebuild_table_if_moved(q0)
            pool = chain_search.workspace_pool  # a new table has a new pool
        work = pool.pop() if pool else chain_search.allocate_workspace()
        q = empty(nq)
        try:
            code = chain_kernel.solve_target(work, X, q0, mode, 0.0, q)
        except TypeError:  # not contiguous arrays of float64, or of other dimensions
            return None
        if code < 0:
            result = chain_search.read_result(work, code, q, perf_counter() - start_time)
            pool.append(work)
            return result
        pool.append(work)
        if position is not None:
            translation_pool.append((X, position))
        return Solution(solver, target.copy(), q, code, perf_counter() - start_time, bounds)

    return solve


MIN_CHAIN_SECONDS = 2e-3
"""s: with less time the chain kernel is not used, since it does not check the clock and takes up to 1 ms."""
NO_STARTS = np.zeros((0, 0))
"""Starts argument of the kernel for a search without restarts."""
MIN_QUATERNION_NORM2 = 1e-6
"""Squared norm below which a quaternion is left to the checks of the general path; the kernel uses the same value."""


class FastPath(CompiledProblem):
    """Compiled problem with its fast paths: the chain kernel, the descent kernel, and the loop of a method."""

    def __init__(self, *arguments: Any) -> None:
        self._table_lock = threading.Lock()  # all paths except the chain kernel use the same tables
        super().__init__(*arguments)

    def _on_compiled(self) -> None:
        """Set up the fast paths; raise `InvalidOperation` if the method does not support the problem."""
        self._q_shape = (self.mechanism.nq,)
        self._start_tables: dict[int, Array] = {}
        self._supports_lanes: bool | None = None
        self._restart_count = self.options.restart_count
        self._fingerprint_cache: dict[str, str] = {}
        self._target_writer = None
        self._fallback_method: Method | None = None
        self._problems = [
            LeastSquaresProblem(self.mechanism, self._problem, subproblem) for subproblem in self._problem.subproblems
        ]
        for problem, relations in zip(self._problems, self._block_relations, strict=True):
            problem.set_request(self._objectives, relations, self._bounds, None)
        if self._is_auto:
            self._fallback_method, self.method_reason = select_fallback_method(self._problems)
        elif not isinstance(self.method, LevenbergMarquardt):
            for problem in self._problems:
                self.method.check(problem)
        may_write_targets = isinstance(self.method, LevenbergMarquardt) or self.options.restart_count == 0
        if may_write_targets and not self._moves_joints and self.options.max_seconds == np.inf:
            self._target_writer = make_target_writer(
                self._problem, self._objectives, self._objective_relations, *self._bounds
            )
        self._save_extra_state()
        self._multi_target_writer: MultiTargetWriter | None = None
        self._compiled_relations: list[tuple[Relation, ...]] = self._objective_relations
        if self._target_writer is None and self._can_write_multiple_targets():
            self._multi_target_writer = make_multi_target_writer(
                self.mechanism, self._problem, self._objectives, self._objective_relations, self._bounds
            )
        self._chain_search = self._make_chain_search()
        is_time_unlimited = self.options.max_seconds == math.inf
        self._chain_solver = (
            None
            if self._chain_search is None or not is_time_unlimited
            else make_chain_solver(self, self._chain_search, self._objective_relations[0])
        )
        if self._target_writer is not None:
            packed = self._problem.subproblems[0].packed
            self._ints, self._floats, self._report_table = packed.ints, packed.floats, packed.tables["report"]
            self._start_cache: Array | None = None
            self._uses_kernel = isinstance(self.method, LevenbergMarquardt)
            self._frame_a_index = (
                int(packed.ints[AT_BLOCK_DATA]) + BLOCK_FLOATS * int(packed.ints[TARGET_BLOCK]) + FRAME_A
            )

    def _make_chain_search(self) -> ChainSearch | None:
        """Return the chain search for a single pose-like goal of a serial chain; None if the chain kernel does not fit.

        The chain kernel needs restarts, `LevenbergMarquardt` with its default options, and the default values of most
        fields of `Options`.
        """
        self._mid_configuration: Array | None = None
        problem, options, method = self._problem, self.options, self.method
        supported_options = Options(
            restarts=options.restarts, position_weight=options.position_weight, rotation_weight=options.rotation_weight,
            tolerance=options.tolerance, angle_tolerance=options.angle_tolerance, max_seconds=options.max_seconds,
        )  # fmt: skip
        is_supported = options == supported_options and method == LevenbergMarquardt() and options.restarts != 0
        is_supported = is_supported and options.max_seconds >= MIN_CHAIN_SECONDS
        if not is_supported or self._moves_joints or self._given_objectives is None or len(problem.subproblems) != 1:
            return None
        if self.mechanism.closures or self.mechanism.joint_constraints or problem.cone_joints:
            return None
        if len(self._objectives) != 1 or not self._objectives[0].required:
            return None
        if not all(weight == 1.0 for weight in self._settings.dof_weights):
            return None
        goal = self._objectives[0]
        weights = ChainWeights(
            goal.tolerance, goal.angle_tolerance, problem.length_unit, options.position_weight, options.rotation_weight,
            self._settings.objective_weights.get(0, 1.0),
        )  # fmt: skip
        is_pose = type(goal) is PoseGoal
        target = goal.target if is_pose else None
        chain = find_serial_chain(
            problem.tree, self._objective_relations[0], self._settings.active, self._bounds, weights, target
        )
        if chain is None:
            return None
        # if the chain covers all of q, the start does not depend on `mechanism.q`
        if len(chain.columns) == self.mechanism.nq and not chain.locked_columns.any():
            low, high = (np.where(np.isfinite(bound), bound, 0.0) for bound in self._bounds)
            self._mid_configuration = np.clip(0.5 * (low + high), *self._bounds)
        return ChainSearch(chain, self.mechanism.q, options.restarts)

    def _refine_failed_chain(self, target: Targets, chain_result: ChainResult, q0: Any) -> Solution | None:
        """Descend to the closest pose after a failed chain search; None if the general path must handle the call.

        With a seed, the result is the closest pose that the seed leads to, unless the chain search found a clearly
        closer pose. So small changes of the target do not cause jumps.
        """
        if self._target_writer is None or self._fallback_method is not None or self.options.restarts is not None:
            return None
        start_time = perf_counter()
        best_result: tuple[Array, Array] | None = None
        with self._table_lock:
            for start in self._refinement_starts(chain_result, q0):
                if best_result is not None and (
                    best_result[1][SUCCESS] == 1.0 or not chain_result.cost < MAX_COST_RATIO * goal_cost(best_result[1])
                ):
                    break
                refined_q = self._run_kernel(target, start, None, {}, start_time)
                if refined_q is None:
                    return None
                report = self._report_table.copy()
                if (
                    best_result is None
                    or report[SUCCESS] == 1.0
                    or goal_cost(report) < MAX_COST_RATIO * goal_cost(best_result[1])
                ):
                    best_result = refined_q, report
            self._targets_changed = True
        assert best_result is not None
        q, report = best_result
        report[ATTEMPTS_OUT], report[ITERATIONS_OUT] = (
            chain_result.attempts,
            report[ITERATIONS_OUT] + chain_result.iterations,
        )
        return Solution(
            self, target.copy(), q, (report,), chain_result.seconds + perf_counter() - start_time, self._bounds
        )

    def _refinement_starts(self, chain_result: ChainResult, q0: Any) -> tuple[Array, ...]:
        """Return the starts of a refinement: the seed, or the mid configuration of a long chain; then the best result.

        Other chains without a seed start from the best result alone.
        """
        if q0 is None and self._mid_configuration is not None and len(self._mid_configuration) > LONG_CHAIN_JOINTS:
            q0 = self._mid_configuration
        return (chain_result.q,) if q0 is None else (q0, chain_result.q)

    def _run_kernel(
        self, targets: Targets, q0: Array, rng: np.random.Generator | None, options: dict[str, Any], start_time: float
    ) -> Array | None:
        """Run the descent kernel or the loop of the method; None if the general path must handle the call."""
        assert self._target_writer is not None
        target = self._target_writer(targets, q0)
        if target is None or not self._reset_extra_state(q0):
            return None
        if not self._uses_kernel:
            return self._run_method(target, q0, rng, options, start_time)
        if options or rng is not None:
            return None
        q = np.empty(self._q_shape)
        starts = self._starts if self._start_cache is None else self._start_cache
        try:
            code = descent_kernel.search(self._ints, self._floats, target, q0, starts, q)
        except TypeError:  # not a contiguous array of float64
            return None
        is_final = self._fallback_method is None and len(starts) == self._restart_count
        self._normalize_unmoved_quaternions(q)
        return q if code == DONE and (is_final or self._report_table[SUCCESS] == 1.0) else None

    def _save_extra_state(self) -> None:
        """Save the variables after q in x, and list the quaternions that the kernel does not move."""
        nq, space = self.mechanism.nq, self.mechanism.space
        self._extra_state = [
            (subproblem.packed.tables["x"][nq:], subproblem.packed.tables["x"][nq:].copy())
            for subproblem in self._problem.subproblems
            if len(subproblem.packed.tables["x"]) > nq
        ]
        self._unmoved_quaternion_indices = [
            k
            for k, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True)
            if not self._moving_dofs[v]
        ]

    def _reset_extra_state(self, q0: Array) -> bool:
        """Reset the variables after q in x; False if a quaternion that the kernel does not move is nearly zero."""
        for values, initial_values in self._extra_state:
            values[:] = initial_values
        return all(q0[k : k + 4] @ q0[k : k + 4] > MIN_QUATERNION_NORM2 for k in self._unmoved_quaternion_indices)

    def _normalize_unmoved_quaternions(self, q: Array) -> None:
        """Normalize the quaternions in q that the kernel does not move."""
        for k in self._unmoved_quaternion_indices:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])

    def _can_write_multiple_targets(self) -> bool:
        """Return whether the descent kernel can run with new targets of the given objectives and no other changes."""
        has_kernel = isinstance(self.method, LevenbergMarquardt) and not self._is_auto and not self._moves_joints
        are_given = self._given_objectives is not None and len(self._given_objectives) == len(self._objectives)
        are_unchanged = are_given and all(
            given_objective is objective
            for given_objective, objective in zip(self._given_objectives or (), self._objectives, strict=True)
        )
        return has_kernel and are_unchanged and self.options.max_seconds == math.inf and self.options.rest_factor == 1.0

    def _run_kernel_multi_target(self, targets: Targets, q0: Array, start_time: float) -> Solution | None:
        """Run the descent kernel on each subproblem with new targets for several objectives.

        Returns None if the general path must handle the call, for example to make restarts.
        """
        writer = self._multi_target_writer
        assert writer is not None
        values = writer.pack_targets(targets)
        if values is None or not self._reset_extra_state(q0):
            return None
        try:
            if not writer.write(values, q0):
                return None
        except TypeError:  # not a contiguous array of float64
            return None
        if self._objective_relations is not self._compiled_relations:
            # the general path may have written other targets for objectives that the writer does not support
            for index, kind in enumerate(writer.kinds):
                if kind == UNCHANGED:
                    write_targets(self._problem, index, self._compiled_relations[index])
            self._objective_relations = self._compiled_relations
            self._block_relations = self._relations_by_block()
        reports: list[Array] = []
        q = q0
        for subproblem in self._problem.subproblems:
            packed, next_q = subproblem.packed, np.empty(self._q_shape)
            try:
                code = descent_kernel.search(packed.ints, packed.floats, NO_TARGET, q, NO_STARTS, next_q)
            except TypeError:  # not a contiguous array of float64
                return None
            report = packed.tables["report"]
            if code != DONE or (report[SUCCESS] != 1.0 and self.options.restart_count):
                return None
            reports.append(report.copy())
            q = next_q
        self._targets_changed = True
        self._normalize_unmoved_quaternions(q)
        objectives_source = partial(writer.objectives, self._objectives, values)
        return Solution(self, objectives_source, q, tuple(reports), perf_counter() - start_time, self._bounds)

    def _run_method(
        self, target: Array, q0: Array, rng: np.random.Generator | None, options: dict[str, Any], start_time: float
    ) -> Array | None:
        """Check and write the target, and run an attempt of a Python method; None if the general path must do it."""
        deadline = math.inf
        if options:
            seconds = options.get("max_seconds") if len(options) == 1 else None
            if type(seconds) is not float or not seconds >= 0.0:
                return None
            deadline = start_time + seconds
        if q0.dtype != np.float64 or target.dtype != np.float64 or not math.isfinite(float(q0.sum())):
            return None
        if any(not q0[k : k + 4] @ q0[k : k + 4] > MIN_QUATERNION_NORM2 for k in self.mechanism.space.quaternions_q):
            return None
        if not (rng is None or isinstance(rng, np.random.Generator)):
            return None
        if len(target) == 4:
            if not is_pose(target):
                return None
            frame = self._floats[self._frame_a_index :]
            frame[:9], frame[9:12] = target[:3, :3].ravel(), target[:3, 3]
        problem = self._problems[0]
        problem.set_request(self._objectives, problem.relations, self._bounds, rng)
        return run_method(problem, self.method, q0, self.options, Monitor(deadline))

    @property
    def _starts(self) -> Array:
        """Restart configurations of the fast path; made at first use, since their poses load another kernel."""
        if self._start_cache is None:
            starts = self._start_table(self.options.restart_count)
            if self._problems[0].constraint_block_count:
                # only starts whose loops are nearly closed; if they fail, the general path handles the call
                starts = nearly_closed_starts(self._problems[0], self._bounds, len(starts))
            # for a pose goal, the kernel ranks the starts by the distance of their end poses to the target
            is_ranked = self._target_writer is pass_pose and len(starts) > 0
            self._start_cache = (
                append_end_poses(self.mechanism, starts, self._objective_relations[0][0]) if is_ranked else starts
            )
        return self._start_cache

    def _start_table(self, count: int) -> Array:
        """Return `count` configurations (count, nq) of the Halton sequence within the limits, from a cache."""
        if count not in self._start_tables:
            space = replace(self.mechanism.space, lower=self._bounds[0], upper=self._bounds[1])
            self._start_tables[count] = np.ascontiguousarray(halton_configurations(space, count))
        return self._start_tables[count]
