"""From a request to a solution: backends in order, each with the partial answer of the one before.

A pipeline belongs to one definition. It holds the backends of the compiled problem. An edit of the mechanism replaces
them as a whole; targets with another structure get backends of their own (`_variant`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mechanik.errors import InvalidOperation
from mechanik.model import Frame, Mechanism
from mechanik.solver.backends.backend import Backend, Partial, PreparedCall
from mechanik.solver.backends.chain import SUPPORTED_CHANGES, make_chain_backend, make_prepared_chain_call
from mechanik.solver.backends.prepared_kernel import (
    compiled_target_writer,
    make_prepared_kernel_call,
    rejection_of_prepared_call,
)
from mechanik.solver.backends.search import (
    ClosedFormBackend,
    SearchBackend,
    default_restart_count,
)
from mechanik.solver.compiled_problem import CompiledProblem, ProblemDefinition, compile_definition
from mechanik.solver.methods.method import Method
from mechanik.solver.methods.method_registry import make_method, option_names, select_fallback_method
from mechanik.solver.options import check_option_names
from mechanik.solver.request import ResolvedRequest, SolveRequest, resolve_request
from mechanik.solver.search.search_context import SearchContext, search_context
from mechanik.solver.solution import Solution, objective_names
from mechanik.solver.target_writer import Targets
from mechanik.solver.workspace import Workspace, WorkspacePool

MAX_PREPARED_CALLS = 16
"""Number of combinations of options with a prepared call of their own; with more, the calls are prepared again."""
MAX_VARIANTS = 4
"""Number of compiled problems for targets with another structure that are kept."""


RESOLVED_CALLS = {
    "max_seconds": "a time limit needs a clock",
    "nearest": "all solutions are computed",
    "lock": "the columns of locked dofs are found for each call",
    "limits": "limits are checked for each call",
    "rng": "restarts are drawn in Python",
    "feasible": "solutions are checked in Python",
    "history": "iterations are recorded in Python",
    "callback": "the function is called in Python",
}
"""Arguments of calls that are never prepared, and why."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """A kind of call, and whether it is prepared: only its targets are written before the kernel runs.

    A prepared call is resolved, too, if an argument is not valid, and if the first start does not reach the targets
    and other starts or backends follow.

    Attributes:
        call: what the call gives: "targets and q0" or the name of a further argument.
        reason: why it is not prepared; empty if it is.
    """

    call: str
    reason: str

    @property
    def is_prepared(self) -> bool:
        """Whether the call is prepared."""
        return not self.reason

    def __str__(self) -> str:
        return f"{self.call}: prepared" if self.is_prepared else f"{self.call}: not prepared, since {self.reason}"


@dataclass(frozen=True, slots=True)
class BackendReport:
    """A backend, and when it answers.

    Attributes:
        name: the backend.
        use: when it is used, or why it is not.
    """

    name: str
    use: str


class ProblemBackends:
    """Backends of one compiled problem, in the order in which they are tried.

    The backends after the chain kernel are created when they are first needed.

    Attributes:
        compiled: the compiled problem.
        chain: the chain kernel, or None.
        call: prepared call for a target and a start alone, without options, or None.
        fingerprint_cache: digests of the mechanism and of the settings, for batches.
    """

    def __init__(self, compiled: CompiledProblem) -> None:
        """Create the backends.

        Raises:
            InvalidOperation: the method does not support the problem.
        """
        self.compiled = compiled
        self.fingerprint_cache: dict[str, str] = {}
        self.chain, self._chain_rejection = make_chain_backend(compiled)
        if not compiled.definition.method.is_compiled:
            for part in Workspace(compiled).parts:
                compiled.definition.method.check(part)
        self.call: PreparedCall | None = None if self.chain is None else make_prepared_chain_call(self.chain)
        self._calls: dict[tuple[Any, ...], PreparedCall | None] = {}
        if self.chain is None:
            self.call = self.prepared_call({})

    @cached_property
    def pool(self) -> WorkspacePool:
        """Workspaces of the compiled problem."""
        return WorkspacePool(self.compiled)

    @cached_property
    def method_choice(self) -> tuple[Method | None, str]:
        """The closed form that follows a failure, or None; and a sentence with the reason for the method."""
        definition = self.compiled.definition
        if definition.is_auto:
            return select_fallback_method(Workspace(self.compiled).parts)
        return None, f"{definition.method.title}, selected by the argument `solver`"

    @cached_property
    def _ordered(self) -> list[Backend]:
        ordered: list[Backend] = [] if self.chain is None else [self.chain]
        ordered.append(SearchBackend(self.pool, self.compiled.definition.method, self.chain))
        closed_form, _ = self.method_choice
        if closed_form is not None:
            ordered.append(ClosedFormBackend(self.pool, closed_form))
        return ordered

    def prepared_call(self, changes: dict[str, Any]) -> PreparedCall | None:
        """Return the prepared call of the general kernel for some options, or None."""
        types: list[type[Any]] = [type(value) for value in changes.values()]  # 50 and 50.0 are equal
        key = *changes.items(), *types
        try:
            return self._calls[key]
        except (KeyError, TypeError):  # not prepared yet, or a value that cannot be a key
            pass
        definition = self.compiled.definition
        check_option_names(changes, option_names(type(definition.method)))
        method, common_options = make_method(definition.method, changes)
        options = replace(definition.options, **common_options)
        if self.chain is not None and changes.keys() <= SUPPORTED_CHANGES and options.restarts != 0:
            call = None  # the chain kernel comes first
        elif not method.is_compiled or any(
            getattr(options, name) != getattr(definition.options, name)
            for name in ("position_weight", "rotation_weight")
        ):
            call = None
        else:
            may_fail = options.restart_count == 0 and not definition.is_auto
            if options.restarts is None:
                may_fail = may_fail and default_restart_count(self.compiled, method, options) == 0
            kernel_options = method.kernel_options(options, self.compiled.problem.length_unit)
            call, _ = make_prepared_kernel_call(self.compiled, options, kernel_options, may_fail, self.chain is None)
        if len(self._calls) >= MAX_PREPARED_CALLS:
            self._calls.clear()
        with suppress(TypeError):
            self._calls[key] = call
        return call

    def solve(self, request: ResolvedRequest, partial: Partial | None = None) -> Solution:
        """Return the first success, or the best partial answer.

        Args:
            request: the request.
            partial: answer of the chain kernel for the same request, if it has been called.
        """
        for backend in self._ordered:
            if (backend is self.chain and partial is not None) or backend.rejection(request) is not None:
                continue
            answer = backend.solve(request, partial)
            if isinstance(answer, Solution):
                return answer
            partial = answer or partial
        assert partial is not None
        assert partial.solution is not None
        return partial.solution

    def reports(self) -> list[BackendReport]:
        """Return how each backend is used, for `Solver.explain`."""
        reports = [
            BackendReport("chain kernel", f"not used: {self._chain_rejection}")
            if self.chain is None
            else BackendReport(
                "chain kernel",
                "first; not for calls with lock, limits, max_deviation, history, callback, restarts=0, or options "
                f"other than {', '.join(sorted(SUPPORTED_CHANGES))}",
            )
        ]
        later = "" if self.chain is None else "continues from the best configuration of the chain kernel"
        reports.append(BackendReport(self._ordered[1 if self.chain is not None else 0].name, later or "first"))
        if isinstance(self._ordered[-1], ClosedFormBackend):
            reports.append(BackendReport("closed form", "if the kernels fail; not for calls that lock joints"))
        return reports

    def call_reports(self) -> list[CallReport]:
        """Return which calls are prepared, and why others are not, for `Solver.explain`."""
        definition, objectives = self.compiled.definition, self.compiled.objectives
        reason = rejection_of_prepared_call(self.compiled, definition.options)
        writer = None
        if not reason:
            writer, reason = compiled_target_writer(self.compiled)
        if self.chain is None:
            reports = [CallReport("targets and q0", reason), CallReport("without q0", reason)]
        else:
            own_reason = "" if self.call is not None else "the target is not a pose or a point that moves one frame"
            reports = [CallReport("targets and q0", own_reason), CallReport("without q0", own_reason)]
            reports.append(CallReport("restarts", "the chain kernel gets other tables for other restarts"))
        reports.append(CallReport("options", reason))
        if writer is not None and not reason:
            reports += [
                CallReport(f"target of {name}", "the relations of the objective are made again for each target")
                for name, objective, item in zip(objective_names(objectives), objectives, writer.slices, strict=True)
                if objective.has_target and item.spec is None
            ]
        return reports + [CallReport(call, reason) for call, reason in RESOLVED_CALLS.items()]


class Pipeline:
    """Solves requests for one definition; threads may share it.

    Attributes:
        definition: what the solver was made for.
        edit_count: `Frame.edit_count` at the last check for edits; while it stays, `call` is valid.
        call: prepared call for a target and a start alone, or None.
    """

    def __init__(self, definition: ProblemDefinition) -> None:
        """Compile the definition.

        Raises:
            InvalidOperation: the method does not support the problem.
        """
        self.definition = definition
        self.edit_count = Frame.edit_count
        self._set_backends(ProblemBackends(compile_definition(definition)))
        self._variants: list[ProblemBackends] = []
        self._compile_lock = threading.Lock()

    def _set_backends(self, backends: ProblemBackends) -> None:
        self._backends, self.call = backends, backends.call

    @property
    def current_backends(self) -> ProblemBackends:
        """The backends of the definition, without a check for edits."""
        return self._backends

    def backends(self) -> ProblemBackends:
        """Return the backends for the present revision of the mechanism; compile again after an edit."""
        if Frame.edit_count != self.edit_count:
            with self._compile_lock:
                edit_count = Frame.edit_count
                if self._backends.compiled.is_stale:
                    self._set_backends(ProblemBackends(compile_definition(self.definition)))
                    self._variants = []
                self.edit_count = edit_count
        return self._backends

    def resolve(
        self, request: SolveRequest, start_time: float | None = None
    ) -> tuple[ProblemBackends, ResolvedRequest]:
        """Resolve a request, and return it with the backends whose tables have the structure of its targets.

        Raises:
            InvalidOperation: the mechanism was edited meanwhile.
        """
        mechanism = self.definition.mechanism
        with reject_edits(mechanism, mechanism.revision):
            backends = self.backends()
            resolved = resolve_request(request, backends.compiled, start_time)
            if not _fits(backends.compiled, resolved):
                with self._compile_lock:
                    backends = self._variant(resolved)
                resolved = replace(resolved, compiled=backends.compiled)
        return backends, resolved

    def _variant(self, request: ResolvedRequest) -> ProblemBackends:
        """Return backends for targets with another structure, or for locked spherical joints."""
        definition, locked_dofs = self.definition, request.locked_dofs
        locks_spherical = any(locked_dofs[v : v + 3].any() for v in definition.mechanism.space.quaternions_v.tolist())
        eliminates_sphericals = definition.method.is_compiled and not locks_spherical
        for variant in self._variants:
            has_same_columns = variant.compiled.settings.eliminate_passive_sphericals == eliminates_sphericals
            if has_same_columns and not variant.compiled.is_stale and _fits(variant.compiled, request):
                return variant
        variant = ProblemBackends(
            compile_definition(
                definition,
                request.objectives,
                request.relations,
                eliminates_sphericals=eliminates_sphericals,
            )
        )
        if definition.given_objectives is None and not locks_spherical:  # the graph has other goals now
            self._set_backends(variant)
        self._variants = [variant, *self._variants][:MAX_VARIANTS]
        return variant

    def solve_call(self, targets: Targets | None, q0: Any, options: dict[str, Any]) -> Solution:
        """Solve for targets and a start, with a prepared call if there is one."""
        partial: Partial | None = None
        if Frame.edit_count == self.edit_count:
            call = self._backends.prepared_call(options) if options else self.call
            answer = None if call is None else call(targets, q0)
            if isinstance(answer, Solution):
                return answer
            partial = answer
        return self.solve(SolveRequest(targets=targets, q0=q0, options=options), partial)

    def solve(self, request: SolveRequest, partial: Partial | None = None, *, writes_joints: bool = True) -> Solution:
        """Solve a request.

        Args:
            request: the request.
            partial: answer of the prepared call of the chain for the same request.
            writes_joints: whether a solver of frames writes the result to the graph.

        Raises:
            InvalidOperation: the mechanism was edited during the solve.
        """
        start_time = time.perf_counter() - (0.0 if partial is None else partial.seconds)
        backends, resolved = self.resolve(request, start_time)
        with reject_edits(backends.compiled.mechanism, backends.compiled.revision):
            solution = backends.solve(resolved, partial)
        if self.definition.moves_joints and writes_joints:
            self.definition.mechanism.q = solution.q
            edit_count = Frame.edit_count  # read first: an edit during the comparison is noticed in the next call
            if not backends.compiled.is_stale:
                self.edit_count = edit_count
        return solution

    @contextmanager
    def search_context(self, request: SolveRequest) -> Generator[SearchContext]:
        """Provide the context of a search for several solutions of a request.

        Raises:
            InvalidOperation: the mechanism was edited inside the context.
        """
        backends, resolved = self.resolve(request)
        chain_search = None if backends.chain is None else backends.chain.search_at(resolved.start)
        compiled = backends.compiled
        with (
            reject_edits(compiled.mechanism, compiled.revision),
            search_context(backends.pool, resolved, chain_search) as context,
        ):
            yield context


@contextmanager
def reject_edits(mechanism: Mechanism, revision: tuple[int, ...]) -> Generator[None]:
    """Raise `InvalidOperation` if the mechanism is not at a revision any more, also in place of another error."""
    error: Exception | None = None
    try:
        yield
    except Exception as caught_error:
        if mechanism.revision == revision:
            raise
        error = caught_error
    if mechanism.revision != revision:
        raise InvalidOperation(
            "the mechanism was edited while it was solved, by a callback or by another thread; edit it between solves, "
            "and solve again"
        ) from error


def _fits(compiled: CompiledProblem, request: ResolvedRequest) -> bool:
    """Return whether the tables have the structure of the targets, and columns for all locked dofs."""
    return (
        len(request.relations) == len(compiled.relations)
        and compiled.has_structure_of(request.objectives, request.relations)
        and not _locks_passive_spherical(compiled, request)
    )


def _locks_passive_spherical(compiled: CompiledProblem, request: ResolvedRequest) -> bool:
    return any(
        request.locked_dofs[v : v + 3].any()
        for subproblem in compiled.problem.subproblems
        for v in subproblem.passive_spherical_v
    )
