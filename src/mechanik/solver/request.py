"""Request of a solve: the arguments of a call, and their meaning for one compiled problem."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mechanik.errors import InvalidArgument, ObjectiveError
from mechanik.model.configuration_space import normalize_quaternions
from mechanik.objectives import Objective, RestPose
from mechanik.objectives.relation import Relation
from mechanik.solver.compiled_problem import CompiledProblem, Mask, ProblemDefinition
from mechanik.solver.methods.method import Method
from mechanik.solver.methods.method_registry import make_method, option_names
from mechanik.solver.monitor import Callback, Monitor
from mechanik.solver.options import DofNames, Options, as_bounds, as_dof_mask, check_option_names
from mechanik.solver.target_writer import Targets, scaled_rest, with_targets
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_rng


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolveRequest:
    """Arguments of a call; see `Solver.solve`.

    Attributes:
        max_deviation: largest change of each joint value from q0 (clamped to the limits), rad or m; spherical joints
            are not bounded. None: no such limit.
        is_step: whether to return the result of the last iteration, even if the error increases; no other backend
            follows.
    """

    targets: Targets | None = None
    q0: ArrayLike | None = None
    nearest: bool = False
    lock: DofNames | str | None = None
    limits: Mapping[str, ArrayLike] | None = None
    rng: np.random.Generator | None = None
    feasible: Callable[[Array], bool] | None = None
    history: bool = False
    callback: Callback | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    max_deviation: float | None = None
    is_step: bool = False

    @property
    def has_only_targets(self) -> bool:
        """Whether nothing but targets, a start and options is given, so that a prepared call may answer."""
        if self.nearest or self.history or self.is_step:
            return False
        return self.lock is self.limits is self.rng is self.feasible is self.callback is self.max_deviation is None

    def check(self, method: Method) -> None:
        """Raise for an unknown option, or for a generator or functions of the wrong type."""
        check_option_names(self.options, option_names(type(method)))
        if self.rng is not None:
            as_rng(self.rng)
        if self.feasible is not None and not callable(self.feasible):
            raise InvalidArgument(f"feasible must be a function of q, not {self.feasible!r}")
        if self.callback is not None and not callable(self.callback):
            raise InvalidArgument(f"callback must be a function of an Iterate, not {self.callback!r}")

    def with_options(self, **changes: Any) -> SolveRequest:
        """Return the request with other options."""
        return replace(self, options={**self.options, **changes})

    def with_time_limit(self, seconds: float, **changes: Any) -> SolveRequest:
        """Return the request with `changes` of its options and a time limit of `seconds` (s; infinite: no change)."""
        return self.with_options(**changes, **({"max_seconds": max(seconds, 0.0)} if seconds < math.inf else {}))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedRequest:
    """A request for one compiled problem: all names, targets and options are resolved.

    Attributes:
        compiled: the compiled problem.
        objectives: all objectives with the targets of the call, and with the constraints of the solver.
        relations: relations of each objective; angles are nearest to the start.
        start: start configuration, (nq,), with unit quaternions.
        has_start: whether the caller gave the start.
        bounds: lower and upper limits, (nq,) each, rad or m.
        locked_dofs: (nv,) mask of the dofs that the call locks.
        method, options: method and options of the call.
        rng: random generator of starts and of random steps; None for fixed sequences.
        feasible: function that returns whether a solution q (nq,) is accepted, or None.
        monitor: deadline, history and callback.
        is_step: as for `SolveRequest`.
        changed_options: names of the options that the call gives.
        restricts_dofs: whether the call gives locks, limits or a largest deviation.
        start_time: time of `time.perf_counter` at the beginning of the call, s.
    """

    compiled: CompiledProblem
    objectives: tuple[Objective, ...]
    relations: list[tuple[Relation, ...]]
    start: Array
    has_start: bool
    bounds: tuple[Array, Array]
    locked_dofs: Mask
    method: Method
    options: Options
    rng: np.random.Generator | None
    feasible: Callable[[Array], bool] | None
    monitor: Monitor
    is_step: bool
    changed_options: frozenset[str]
    restricts_dofs: bool
    start_time: float

    @property
    def visible_objectives(self) -> tuple[Objective, ...]:
        """The objectives without the constraints of the solver."""
        return self.objectives[: len(self.objectives) - len(self.compiled.definition.constraints)]


def resolve_request(
    request: SolveRequest, compiled: CompiledProblem, start_time: float | None = None
) -> ResolvedRequest:
    """Resolve a request for a compiled problem; targets may have another structure than the compiled relations.

    Args:
        request: the request.
        compiled: the compiled problem.
        start_time: time of `time.perf_counter` at the beginning of the call, s; None: now.

    Raises:
        ObjectiveError: for a change of `position_weight` or `rotation_weight`.
        ShapeError, NotFinite, UnknownName, LimitsError: for invalid arguments.
    """
    start_time = time.perf_counter() if start_time is None else start_time
    definition, mechanism = compiled.definition, compiled.mechanism
    method, options = _method_and_options(definition, request.options)
    q = np.array(mechanism.q if request.q0 is None else mechanism._single_q(request.q0))
    normalize_quaternions(q, mechanism.space.quaternions_q)
    locked_dofs = (
        np.zeros(mechanism.nv, dtype=np.bool_) if request.lock is None else as_dof_mask(mechanism, request.lock, False)
    )
    base_objectives = compiled.objectives
    if definition.given_objectives is None:
        base_objectives = definition.current_objectives()
    objectives = (*with_targets(base_objectives, request.targets), *definition.constraints)
    lower, upper = (
        compiled.bounds if request.limits is None else as_bounds(mechanism, definition.limits, request.limits)
    )
    if request.max_deviation is not None:
        clamped_q = np.clip(q, lower, upper)
        lower = np.maximum(lower, clamped_q - request.max_deviation)
        upper = np.minimum(upper, clamped_q + request.max_deviation)
        for k in mechanism.space.quaternions_q:  # quaternion components have no limits
            lower[k : k + 4], upper[k : k + 4] = -np.inf, np.inf
    relations = compiled.relations_of(objectives, q)
    if options.rest_factor < 1.0:
        relations = [
            scaled_rest(mechanism, objective_relations, q, options.rest_factor)
            if isinstance(objective, RestPose)
            else objective_relations
            for objective, objective_relations in zip(objectives, relations, strict=True)
        ]
    return ResolvedRequest(
        compiled=compiled,
        objectives=objectives,
        relations=relations,
        start=q,
        has_start=request.q0 is not None,
        bounds=(lower, upper),
        locked_dofs=locked_dofs,
        method=method,
        options=options,
        rng=request.rng,
        feasible=request.feasible,
        monitor=Monitor(start_time + options.max_seconds, request.history, request.callback),
        is_step=request.is_step,
        changed_options=frozenset(request.options),
        restricts_dofs=not (request.lock is request.limits is request.max_deviation is None),
        start_time=start_time,
    )


def _method_and_options(definition: ProblemDefinition, changes: Mapping[str, Any]) -> tuple[Method, Options]:
    """Return method and options of a call that changes some of those of the definition."""
    if not changes:
        return definition.method, definition.options
    method, common_options = make_method(definition.method, dict(changes))
    options = replace(definition.options, **common_options)
    if not options.has_weights_of(definition.options):
        raise ObjectiveError("position_weight and rotation_weight cannot change in a call; make another solver")
    return method, options
