"""Background solvers beside the main one: the search for alternative solutions and the comparison of methods."""

from __future__ import annotations

import statistics
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from msgspec import structs

from mechanik.errors import MechanikError
from mechanik.model import Mechanism, structure
from mechanik.motion.live import LiveSolver, LiveState
from mechanik.solver import Solver
from mechanik.solver.methods.method_registry import find_method
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import Alternatives, CompareRow, ComparisonChanged
from mechanik.studio.session.edit_state import poses_to_array
from mechanik.studio.session.frame_packer import FrameStatus, status_name
from mechanik.studio.session.loaded_model import LoadedModel, can_analyse
from mechanik.studio.session.solve_spec import SolveSpec, adapt_to_method, errors_for_users
from mechanik.studio.session.solver_session import SolverSession

ASSEMBLY_SECONDS = 2.0
"""Time limit of the search for assembly modes, s."""
CHAIN_TRIES, SELF_MOTION_SAMPLES = 200, 8
"""Maximum number of starts for a chain without a closed form, and samples along each self-motion."""
MAX_SEARCHED_DOFS = 16
"""Maximum number of dofs of an open mechanism for the search; with more there are too many solutions."""
SAME_SOLUTION_TOLERANCE = 1e-4
"""Solutions nearer than this to the present configuration are the same solution, rad and m."""


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    number: int
    model: LoadedModel
    spec: SolveSpec
    q: Array
    max_count: int


class AlternativeSearch:
    """Searches alternative solutions in a thread, one search at a time.

    Of requests that arrive during a search only the newest is started next. Results of goals that have moved since are
    dropped; pages that wait for them or show them then receive one empty result.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._next: _Search | None = None
        self._is_busy = self._is_closed = False
        self._result: tuple[int, Alternatives] | None = None
        self._thread: threading.Thread | None = None
        self._is_requested = False

    def start(self, model: LoadedModel, spec: SolveSpec, q: Array, limit: int) -> None:
        with self._lock:
            self._number += 1
            self._next = _Search(self._number, model, spec, q, limit)
            self._is_requested = True
            if not self._is_busy and not self._is_closed:
                self._is_busy = True
                self._thread = threading.Thread(target=self._run, name="mechanik alternatives", daemon=True)
                self._thread.start()

    def cancel(self) -> None:
        """Drop the present search and its result."""
        with self._lock:
            if not self._is_requested:
                return  # an empty result that is not polled yet must stay
            self._number += 1
            self._next = None
            self._result = self._number, self.empty()
            self._is_requested = False

    def close(self) -> None:
        """Start no further search."""
        self._is_closed = True
        self.cancel()

    def join(self) -> None:
        """Wait for the running search, which takes a few seconds."""
        if self._thread is not None:
            self._thread.join()

    def poll(self) -> Alternatives | None:
        """Return the result found since the last call, if it is still valid."""
        with self._lock:
            result, self._result = self._result, None
            return result[1] if result is not None and result[0] == self._number else None

    @staticmethod
    def empty() -> Alternatives:
        return Alternatives([], "")

    def _run(self) -> None:
        while True:
            with self._lock:
                search, self._next = self._next, None
                if search is None or self._is_closed:
                    self._is_busy = False
                    return
            try:
                answer = _find_alternatives(search)
            except MechanikError as error:
                answer = Alternatives([], str(error))
            except Exception:
                answer = Alternatives([], "other solutions cannot be searched for this mechanism")
            with self._lock:
                if search.number == self._number:
                    self._result = search.number, answer


def _find_alternatives(search: _Search) -> Alternatives:
    mechanism = search.model.mechanism.copy()  # the original may be edited during the search
    mechanism.q = search.q
    if not can_analyse(mechanism):
        return Alternatives(
            [],
            f"this mechanism is too large to search for other solutions: {mechanism.nv} degrees of freedom, with loops",
        )
    if mechanism.closures or mechanism.joint_constraints:
        configurations, why = _find_assembly_modes(mechanism, search)
    elif not search.spec.goals:
        return Alternatives([], "there is no goal, so every configuration is a solution")
    elif mechanism.nv > MAX_SEARCHED_DOFS:
        return Alternatives([], f"this mechanism has too many solutions to search: {mechanism.nv} degrees of freedom")
    else:
        spec = search.spec
        avoidance: dict[str, Any] = {}
        if spec.collider is not None:
            avoidance = {"avoid": spec.collisions.make_collider(mechanism), "clearance": spec.collisions.clearance}
        solver = Solver(mechanism, spec.goals, lock=spec.lock, **avoidance)
        solutions = solver.solve_all(
            q0=search.q, limit=search.max_count + 1, tries=CHAIN_TRIES, samples=SELF_MOTION_SAMPLES
        )
        configurations, why = solutions.q, solutions.why
    other_solutions = [
        q
        for q in configurations
        if np.abs(mechanism.difference(search.q, q)).max(initial=0.0) > SAME_SOLUTION_TOLERANCE
    ]
    poses = [poses_to_array(mechanism.poses(q)).ravel().tolist() for q in other_solutions[: search.max_count]]
    return Alternatives(poses, f"{len(poses)} other solutions: {why}" if poses else f"no other solution: {why}")


def _find_assembly_modes(mechanism: Mechanism, search: _Search) -> tuple[Array, str]:
    """Return the assembly modes for the present values of the driven joints, and an explanation."""
    values = mechanism.values(search.q)
    drives = {name: values[name] for name in structure(mechanism).inputs if name in values}
    modes = mechanism.assembly_modes(drives or None, search.q, limit=search.max_count + 1, max_seconds=ASSEMBLY_SECONDS)
    return modes.q, modes.why


TICK_SECONDS = 0.008
"""Time budget per tick, s; smaller than that of the main solver."""
TIMED_SOLVES = 50
"""Number of solves for the median solve time."""


class ComparedMethod:
    """One compared method with its own live solver, configuration and frame layer."""

    def __init__(
        self, solver: str, layer: int, solver_session: SolverSession, send_frame: Callable[[bytes], None]
    ) -> None:
        self.solver, self.layer, self._solver_session, self._send_frame = solver, layer, solver_session, send_frame
        self.refusal = ""
        self.live: LiveSolver | None = None
        self._sequence = count(1)
        self._seconds: deque[float] = deque(maxlen=TIMED_SOLVES)
        self._solve_count = self._success_count = 0
        self._state: LiveState | None = None
        self._spec = solver_session.solve_spec

    def set_spec(self, spec: SolveSpec, q: Array) -> None:
        """Track these objectives, starting at q if the solver does not run yet."""
        adapted = self._spec = adapt_to_method(spec, self.solver)
        try:
            with errors_for_users():
                if self.live is None:
                    self.live = LiveSolver(
                        self._solver_session.model.mechanism,
                        adapted.goals,
                        adapted.solver,
                        q0=q,
                        budget=TICK_SECONDS,
                        lock=adapted.lock,
                        rest=adapted.rest,
                        on_state=self._on_state,
                        **adapted.avoidance_arguments,
                    )
                    self.live.start()
                else:
                    self.live.set(
                        goals=adapted.goals,
                        solver=adapted.solver,
                        lock=adapted.lock,
                        rest=adapted.rest,
                        **adapted.avoidance_arguments,
                    )
            self.refusal = ""
        except MechanikError as error:
            self.refusal = str(error)
            self.stop()

    def set_targets(self, targets: Mapping[str, Any]) -> None:
        """Set new targets by name; names of objectives that this method does not track are ignored."""
        known = {objective.name: targets[objective.name] for objective in self._spec.goals if objective.name in targets}
        if self.live is not None and known:
            self.live.set_targets(self._spec.format_targets(known))

    def stop(self) -> None:
        if self.live is not None:
            self.live.dispose()
            self.live = None

    def row(self) -> CompareRow:
        state = self._state
        return CompareRow(
            solver=self.solver,
            title=find_method(self.solver).title,
            layer=self.layer,
            status="" if state is None or self.refusal else status_name(state),
            error=0.0 if state is None else state.error,
            iterations=0 if state is None else state.iterations,
            microseconds=1e6 * statistics.median(self._seconds) if self._seconds else 0.0,
            solved=self._success_count / self._solve_count if self._solve_count else 0.0,
            refusal=self.refusal,
            message="" if self.refusal else self._spec.adaptation_text,
        )

    def _on_state(self, state: LiveState) -> None:
        """Handle a state, in the thread of the solver."""
        self._state = state
        self._seconds.append(state.seconds)
        if state.is_at_rest and state.solution is not None:
            self._solve_count += 1
            self._success_count += state.solution.success
        packer = self._solver_session.frame_packer
        if len(state.q) == packer.index.nq:
            status = FrameStatus.from_state(state, state.tag, self.layer)
            self._send_frame(packer.pack(state.q, next(self._sequence), status))


class MethodComparison:
    """The methods that run beside the main solver; none if no comparison runs."""

    def __init__(self, send_frame: Callable[[bytes], None]) -> None:
        self._send_frame = send_frame
        self.methods: tuple[ComparedMethod, ...] = ()

    def start(self, solver_session: SolverSession, solvers: list[str]) -> None:
        self.stop()
        self.methods = tuple(
            ComparedMethod(name, layer, solver_session, self._send_frame) for layer, name in enumerate(solvers, 1)
        )
        for method in self.methods:
            method.set_spec(solver_session.solve_spec, solver_session.q)

    def stop(self) -> None:
        for method in self.methods:
            method.stop()
        self.methods = ()

    def set_spec(self, spec: SolveSpec) -> None:
        """Give all methods another problem."""
        for method in self.methods:
            q = method._solver_session.q if method.live is None else method.live.state.q
            method.set_spec(spec, q)

    def set_targets(self, solver_session: SolverSession, targets: Mapping[str, Any]) -> None:
        """Set new targets by name; a target None means that the objective must be made again."""
        if not self.methods:
            return
        if any(target is None for target in targets.values()):
            self.set_spec(solver_session.solve_spec)
            return
        for method in self.methods:
            method.set_targets(targets)

    def move_to(self, q: Array) -> None:
        """Restart all methods at q (nq,)."""
        for method in self.methods:
            if method.live is not None:
                method.live.move(np.array(q))

    def info(self) -> ComparisonChanged:
        return ComparisonChanged([method.row() for method in self.methods])


def without_timings(comparison: ComparisonChanged) -> ComparisonChanged:
    """Return the comparison with zero times, to decide whether it must be sent again."""
    return ComparisonChanged([structs.replace(row, microseconds=0.0) for row in comparison.rows])


class BackgroundSolvers:
    """The solvers beside the main one: compared methods and the search for alternative solutions.

    Args:
        send_frame: receives the frames of compared methods, from any thread.

    Attributes:
        comparison: methods that run side by side.
        alternatives: search for alternative solutions.
    """

    def __init__(self, send_frame: Callable[[bytes], None]) -> None:
        self.comparison = MethodComparison(send_frame)
        self.alternatives = AlternativeSearch()

    def set_spec(self, spec: SolveSpec) -> None:
        """Give all compared methods another problem, and drop alternative solutions of the previous one."""
        self.comparison.set_spec(spec)
        self.alternatives.cancel()

    def set_targets(self, solver_session: SolverSession, targets: Mapping[str, Any]) -> None:
        """Set new targets by name, see `MethodComparison.set_targets`, and drop alternative solutions."""
        self.comparison.set_targets(solver_session, targets)
        self.alternatives.cancel()

    def stop(self) -> None:
        """End the comparison and drop alternative solutions."""
        self.comparison.stop()
        self.alternatives.cancel()

    def close(self) -> None:
        """Stop all compared methods and start no further search."""
        self.comparison.stop()
        self.alternatives.close()
