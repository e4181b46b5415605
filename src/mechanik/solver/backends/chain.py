"""Backend for a serial chain with one pose-like goal: the chain kernel with its seed table."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanik.errors import MechanikError
from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE
from mechanik.objectives import Objective
from mechanik.objectives.relation import Relation, TargetPart
from mechanik.objectives.target_spec import POINT, POSE
from mechanik.problem.serial_chain import ChainWeights, find_serial_chain
from mechanik.solver.backends.backend import Partial, PreparedCall, as_start
from mechanik.solver.compiled_problem import CompiledProblem, FixedQuaternions
from mechanik.solver.methods.method_registry import is_default_method
from mechanik.solver.options import Options
from mechanik.solver.request import ResolvedRequest
from mechanik.solver.search.chain_search import LONG_CHAIN_JOINTS, ChainResult, ChainSearch
from mechanik.solver.solution import Solution
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

chain_kernel = kernel_module("chain_kernel")

MIN_CHAIN_SECONDS = 2e-3
"""s: with less time the chain kernel is not used, since it does not check the clock and takes up to 1 ms."""
SUPPORTED_CHANGES = frozenset(("restarts", "max_seconds", "divergence_threshold"))
"""Options that a call may change."""


class ChainBackend:
    """Chain kernel for one compiled problem.

    Attributes:
        compiled: the compiled problem.
        search: the search, with a seed table for the values of the locked joints at the last call.
        takes_poses: whether the target of the goal, as a pose (4, 4), is the target of the chain.
        mid_configuration: start for calls without q0: the middle of the limits; None if the chain does not cover all
            of q, and the values of the other joints are those of the mechanism.
    """

    name = "chain kernel"

    def __init__(self, compiled: CompiledProblem, search: ChainSearch) -> None:
        self.compiled, self.search = compiled, search
        self.takes_poses = _target_value(compiled.all_objectives[0], compiled.relations[0], POSE) is not None
        chain = search.chain
        self.mid_configuration: Array | None = None
        if len(chain.columns) == compiled.mechanism.nq and not chain.locked_columns.any():
            low, high = (np.where(np.isfinite(bound), bound, 0.0) for bound in compiled.bounds)
            self.mid_configuration = np.clip(0.5 * (low + high), *compiled.bounds)

    def search_at(self, q: Array) -> ChainSearch:
        """Return the search with a seed table for the values of the locked joints at q (nq,)."""
        search = self.search
        if search.has_fixed_joints and not search.has_fixed_values_of(q):
            self.search = search = search.with_fixed_values_of(q)
        return search

    def default_start(self) -> Array:
        """Return the start of calls without q0, (nq,)."""
        if self.mid_configuration is not None:
            return self.mid_configuration
        return np.array(self.compiled.mechanism.q)

    def rejection(self, request: ResolvedRequest) -> str | None:
        if unsupported := sorted(request.changed_options - SUPPORTED_CHANGES):
            return f"the call changes the option {unsupported[0]}"
        if request.options.restarts == 0:
            return "restarts=0 asks for a single descent"
        if request.restricts_dofs:
            return "the call gives locks, limits or a largest deviation"
        if request.monitor.records_iterations or request.is_step:
            return "the call records iterations"
        if request.options.max_seconds < MIN_CHAIN_SECONDS:
            return f"max_seconds is below {MIN_CHAIN_SECONDS:g} s, and the chain kernel does not check the clock"
        if request.feasible is not None and request.options.restarts is not None:
            return "the number of restarts is given together with `feasible`"
        if self.search.chain.target(request.relations[0]) is None:
            return "the new target changes more than the target pose"
        return None

    def solve(self, request: ResolvedRequest, partial: Partial | None) -> Solution | Partial | None:
        search, options = self.search_at(request.start), request.options
        # the same start as that of prepared calls, for the same turns of the joints
        q = request.start if request.has_start or self.mid_configuration is None else self.mid_configuration
        X = search.chain.target(request.relations[0])
        assert X is not None
        key = 0.0 if request.rng is None else float(request.rng.integers(1 << 31))
        if options.restarts is not None and options.max_seconds < math.inf:
            deadline = request.start_time + options.max_seconds - MIN_CHAIN_SECONDS / 2
            result = search.search_until(deadline, X, q, request.has_start, key, options.restarts)
        else:
            result = search.search(X, q, request.has_start, key, options.restarts)
        if result is None:
            return None
        if not result.is_solved:
            return partial_answer(result)
        if request.feasible is not None and not bool(request.feasible(result.q.copy())):
            return None
        seconds = time.perf_counter() - request.start_time
        return Solution(self.compiled, request.visible_objectives, result.q, result.code, seconds)

    def continuation_starts(self, partial: Partial, q0: Array | None) -> tuple[Array, ...]:
        """Return the starts from which the general kernel continues (`fallback.py`).

        With a seed, it is the seed; for a long chain without a seed, the middle of the limits. The configuration of the
        partial answer follows.
        """
        if q0 is None and self.mid_configuration is not None and len(self.mid_configuration) > LONG_CHAIN_JOINTS:
            q0 = self.mid_configuration
        return (partial.q,) if q0 is None else (q0, partial.q)


def partial_answer(result: ChainResult) -> Partial:
    """Convert the result of a failed search of a chain to a partial answer."""
    return Partial(result.q, result.attempts, result.iterations, result.seconds)


def make_chain_backend(compiled: CompiledProblem) -> tuple[ChainBackend | None, str]:
    """Make the backend for a single pose-like goal of a serial chain, or return None and the reason.

    The chain kernel needs restarts, Levenberg-Marquardt with its default options, and the default values of most fields
    of `Options`.
    """
    definition, problem = compiled.definition, compiled.problem
    options = definition.options
    supported_options = Options(
        restarts=options.restarts, position_weight=options.position_weight, rotation_weight=options.rotation_weight,
        tolerance=options.tolerance, angle_tolerance=options.angle_tolerance, max_seconds=options.max_seconds,
        divergence_threshold=options.divergence_threshold,
    )  # fmt: skip
    if not is_default_method(definition.method):
        return None, "it supports only the default method with its default options"
    if options.restarts == 0:
        return None, "restarts=0 asks for a single descent"
    if options != supported_options:
        return None, "an option is not the default"
    if options.max_seconds < MIN_CHAIN_SECONDS:
        return None, "max_seconds is too short"
    if definition.moves_joints or definition.given_objectives is None:
        return None, "the solver was made from frames"
    if compiled.has_constraints:
        return None, "there are loops, joint constraints or cones"
    if len(compiled.all_objectives) != 1 or len(problem.subproblems) != 1:
        return None, "there is not exactly one goal"
    goal = compiled.all_objectives[0]
    if not goal.required:
        return None, "the goal is not required"
    if not all(weight == 1.0 for weight in compiled.settings.dof_weights):
        return None, "dofs have weights"
    weights = ChainWeights(
        goal.tolerance, goal.angle_tolerance, problem.length_unit, options.position_weight, options.rotation_weight,
        compiled.settings.objective_weights.get(0, 1.0),
    )  # fmt: skip
    target = _target_value(goal, compiled.relations[0], POSE)
    chain = find_serial_chain(
        problem.tree, compiled.relations[0], compiled.settings.active, compiled.bounds, weights, target
    )
    if chain is None:
        return None, "the goal is not a pose-like goal of a serial chain of at most 40 joints"
    return ChainBackend(compiled, ChainSearch(chain, compiled.mechanism.q, options.restarts)), ""


def make_prepared_chain_call(backend: ChainBackend) -> PreparedCall | None:
    """Make the function for calls with a target and a start alone, if the target is a pose or a point.

    Everything that does not change between calls is computed here. Returns None for a time limit, for a pose that moves
    more than X_a, and for a point of an X_a with a rotation.
    """
    compiled, mechanism = backend.compiled, backend.compiled.mechanism
    goal, relations = compiled.all_objectives[0], compiled.relations[0]
    if compiled.definition.options.max_seconds < math.inf:
        return None
    is_point = _target_value(goal, relations, POINT) is not None and len(relations) == 1
    is_point = is_point and np.array_equal(relations[0].X_a[:3, :3], np.eye(3))
    if not is_point and _target_value(goal, relations, POSE) is None:
        return None
    search, mid_q, nq = backend.search_at(mechanism.q), backend.mid_configuration, mechanism.nq
    fixed_quaternions = FixedQuaternions(compiled)
    has_fixed_quaternions = fixed_quaternions.exist
    has_fixed_joints, default_pool = search.has_fixed_joints, search.workspace_pool
    translation_pool: list[tuple[Array, Array]] = []  # poses for point targets, and views of their positions
    array, empty, perf_counter, float64 = np.ndarray, np.empty, time.perf_counter, np.dtype(np.float64)
    spec = goal.target_spec
    assert spec is not None
    assert spec.value is not None
    own_target, shape, parse = spec.value, spec.value.shape, spec.parse

    def read(target: Any) -> Array | None:
        """Return a target in another form as an array; None if it is not valid."""
        try:
            return np.array(own_target if target is None else parse(target))
        except MechanikError:
            return None

    def call(target: Any, q0: Any) -> Solution | Partial | None:
        start_time = perf_counter()
        if type(target) is not array or target.dtype is not float64:
            target = read(target)
            if target is None:
                return None
        X, mode, pool, given_q0 = target, FROM_SEED, default_pool, q0
        if is_point:
            if target.shape != (3,):
                return None
            try:
                X, position = translation_pool.pop()
            except IndexError:
                X, position = _new_translation()
            position[:] = target
        if q0 is None:
            q0, mode = mid_q if mid_q is not None else np.array(mechanism.q), FROM_TABLE
        elif type(q0) is not array:
            q0 = as_start(q0, (nq,))
            if q0 is None:
                return None
        if has_fixed_quaternions and (
            q0.dtype is not float64 or q0.shape != (nq,) or not fixed_quaternions.are_valid(q0)
        ):
            return None
        own_search = search
        if has_fixed_joints:
            if q0.shape != (nq,) or q0.dtype != np.float64:
                return None
            own_search = backend.search_at(q0)
            pool = own_search.workspace_pool
        try:
            work = pool.pop()
        except IndexError:
            work = own_search.allocate_workspace()
        q = empty(nq)
        try:
            code = chain_kernel.solve_target(work, X, q0, mode, 0.0, q)
        except TypeError:  # not contiguous arrays of float64, or of other dimensions
            pool.append(work)
            numbers = read(target) if target.shape != shape else None
            return None if numbers is None else call(numbers, given_q0)
        if code < 0:
            result = own_search.read_result(work, code, q, perf_counter() - start_time)
            pool.append(work)
            return None if result is None else partial_answer(result)
        pool.append(work)
        if is_point:
            translation_pool.append((X, X[:3, 3]))
        if has_fixed_quaternions:
            fixed_quaternions.normalize(q)
        return Solution(compiled, target.tobytes(), q, code, perf_counter() - start_time)

    return call


def _target_value(goal: Objective, relations: Sequence[Relation], shape: tuple[int, ...]) -> Array | None:
    """Return the target of a goal if it has this shape and moves only the frame A of the relations, else None."""
    spec = goal.target_spec
    moves_frame_a = all(
        relation.target_writes is not None
        and all(write.part in (TargetPart.A_POSITION, TargetPart.A_ROTATION) for write in relation.target_writes)
        for relation in relations
    )
    return spec.value if spec is not None and moves_frame_a and np.shape(spec.value) == shape else None  # type: ignore[arg-type]


def _new_translation() -> tuple[Array, Array]:
    """Return a pose with the identity rotation, and its position as a view."""
    X = np.eye(4)
    return X, X[:3, 3]
