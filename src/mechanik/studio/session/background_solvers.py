"""Solvers that run beside the main solver of a session: the search for alternative solutions, and compared methods."""

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
from mechanik.studio.session.loaded_model import MAX_ANALYSED_DOFS, LoadedModel, can_analyse
from mechanik.studio.session.solve_spec import SolveSpec, adapt_to_method, errors_for_users
from mechanik.studio.session.solver_session import SolverSession
from mechanik.validation import format_count

ASSEMBLY_SECONDS = 2.0
"""Time limit of the search for assembly modes, s."""
MAX_ATTEMPTS, SELF_MOTION_SAMPLES = 200, 8
"""Maximum number of attempts for a mechanism without a closed form, and of samples on self-motions."""
MAX_SEARCHED_DOFS = 16
"""Maximum number of dofs for the search in a mechanism without loops and joint constraints."""
SAME_SOLUTION_TOLERANCE = 1e-4
"""Solutions that differ by less in each dof are the same solution, rad and m."""


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    number: int
    model: LoadedModel
    spec: SolveSpec
    q: Array
    max_count: int


class AlternativeSearch:
    """Searches for alternative solutions in a background thread, one search at a time.

    If several requests arrive during a search, only the newest is run after it. If the problem changes, the session
    calls `cancel`: the search and its result are dropped, and pages receive one empty result.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._search_number = 0
        self._next_search: _Search | None = None
        self._is_busy = self._is_closed = False
        self._result: tuple[int, Alternatives] | None = None
        self._thread: threading.Thread | None = None
        # whether pages wait for a result or show one, so that `cancel` must send an empty one
        self._must_send_empty = False

    def start(self, model: LoadedModel, spec: SolveSpec, q: Array, max_count: int) -> None:
        """Request a search.

        Args:
            model: the mechanism.
            spec: the problem.
            q: present configuration, (nq,).
            max_count: maximum number of solutions, without the present configuration.
        """
        with self._lock:
            self._search_number += 1
            self._next_search = _Search(self._search_number, model, spec, q, max_count)
            self._must_send_empty = True
            if not self._is_busy and not self._is_closed:
                self._is_busy = True
                self._thread = threading.Thread(target=self._run, name="mechanik alternatives", daemon=True)
                self._thread.start()

    def cancel(self) -> None:
        """Drop the present search and its result; the result of a running computation is ignored."""
        with self._lock:
            if not self._must_send_empty:
                return  # an empty result that is not polled yet must stay
            self._search_number += 1
            self._next_search = None
            self._result = self._search_number, self.empty()
            self._must_send_empty = False

    def close(self) -> None:
        """Start no further search."""
        self._is_closed = True
        self.cancel()

    def join(self) -> None:
        """Wait for the end of the running search, which may take a few seconds."""
        if self._thread is not None:
            self._thread.join()

    def poll(self) -> Alternatives | None:
        """Return the result that has arrived since the last call; None if there is none or a newer search has begun."""
        with self._lock:
            result, self._result = self._result, None
            return result[1] if result is not None and result[0] == self._search_number else None

    @staticmethod
    def empty() -> Alternatives:
        """Return a result without solutions."""
        return Alternatives([], "")

    def _run(self) -> None:
        while True:
            with self._lock:
                search, self._next_search = self._next_search, None
                if search is None or self._is_closed:
                    self._is_busy = False
                    return
            try:
                result = _find_alternatives(search)
            except MechanikError as error:
                result = Alternatives([], str(error))
            except Exception as error:
                result = Alternatives(
                    [], f"the search for other solutions failed with an internal error: {type(error).__name__}"
                )
            with self._lock:
                if search.number == self._search_number:
                    self._result = search.number, result


def _find_alternatives(search: _Search) -> Alternatives:
    """Return the solutions other than the present configuration, with an explanation.

    For a mechanism with loops or joint constraints, the solutions are the assembly modes for the present inputs.
    """
    mechanism = search.model.mechanism.copy()  # the original may be edited during the search
    mechanism.q = search.q
    if not can_analyse(mechanism):
        return Alternatives(
            [],
            f"the search for other solutions supports at most {MAX_ANALYSED_DOFS} degrees of freedom if there are "
            f"loops or joint constraints; this mechanism has {mechanism.nv}",
        )
    if mechanism.closures or mechanism.joint_constraints:
        configurations, explanation = _find_assembly_modes(mechanism, search)
    elif not search.spec.goals:
        return Alternatives([], "there is no goal, so every configuration is a solution")
    elif mechanism.nv > MAX_SEARCHED_DOFS:
        return Alternatives(
            [],
            f"the search for other solutions supports at most {MAX_SEARCHED_DOFS} degrees of freedom; "
            f"this mechanism has {mechanism.nv}",
        )
    else:
        spec = search.spec
        avoidance_arguments: dict[str, Any] = {}
        if spec.collider is not None:
            avoidance_arguments = {
                "avoid": spec.collision_settings.make_collider(mechanism),
                "clearance": spec.collision_settings.clearance,
            }
        solver = Solver(mechanism, spec.goals, lock=spec.lock, **avoidance_arguments)
        solutions = solver.solve_all(
            q0=search.q, limit=search.max_count + 1, max_attempts=MAX_ATTEMPTS, samples=SELF_MOTION_SAMPLES
        )
        configurations, explanation = solutions.q, solutions.explanation
    other_solutions = [
        q
        for q in configurations
        if np.abs(mechanism.difference(search.q, q)).max(initial=0.0) > SAME_SOLUTION_TOLERANCE
    ]
    poses = [poses_to_array(mechanism.poses(q)).ravel().tolist() for q in other_solutions[: search.max_count]]
    count_text = format_count(len(poses), "other solution") if poses else "no other solution"
    return Alternatives(poses, f"{count_text}: {explanation}")


def _find_assembly_modes(mechanism: Mechanism, search: _Search) -> tuple[Array, str]:
    """Return the assembly modes for the present values of the driven joints, and an explanation."""
    values = mechanism.values(search.q)
    input_values = {name: values[name] for name in structure(mechanism).inputs if name in values}
    modes = mechanism.assembly_modes(
        input_values or None, search.q, limit=search.max_count + 1, max_seconds=ASSEMBLY_SECONDS
    )
    return modes.q, modes.explanation


TICK_SECONDS = 0.008
"""Time limit of a tick, which is one solve of a live solver, for a compared method, s; smaller than that of the main
solver."""
TIMED_TICK_COUNT = 50
"""Number of ticks over which the median time of a tick is computed."""


class ComparedMethod:
    """One compared method with its own live solver, configuration and layer of state frames.

    Attributes:
        method_name: name of the method.
        layer: layer of its state frames, from 1.
        error_message: why the method cannot solve the present problem; empty if it can.
        live: the live solver; None before `set_spec`, after `stop`, and if the method cannot solve the present problem.
    """

    def __init__(
        self, method_name: str, layer: int, solver_session: SolverSession, send_frame: Callable[[bytes], None]
    ) -> None:
        self.method_name, self.layer = method_name, layer
        self._solver_session, self._send_frame = solver_session, send_frame
        self.error_message = ""
        self.live: LiveSolver | None = None
        self._sequence = count(1)
        self._seconds: deque[float] = deque(maxlen=TIMED_TICK_COUNT)
        self._solve_count = self._success_count = 0
        self._state: LiveState | None = None
        self._spec = solver_session.solve_spec

    def set_spec(self, spec: SolveSpec, q: Array) -> None:
        """Set the problem; if there is no live solver yet, a new one starts at q (nq,)."""
        adapted_spec = self._spec = adapt_to_method(spec, self.method_name)
        try:
            with errors_for_users():
                if self.live is None:
                    self.live = LiveSolver(
                        self._solver_session.model.mechanism,
                        adapted_spec.goals,
                        adapted_spec.solver,
                        q0=q,
                        budget=TICK_SECONDS,
                        lock=adapted_spec.lock,
                        rest=adapted_spec.rest,
                        on_state=self._on_state,
                        **adapted_spec.avoidance_arguments,
                    )
                    self.live.start()
                else:
                    self.live.set(
                        goals=adapted_spec.goals,
                        solver=adapted_spec.solver,
                        lock=adapted_spec.lock,
                        rest=adapted_spec.rest,
                        **adapted_spec.avoidance_arguments,
                    )
            self.error_message = ""
        except MechanikError as error:
            self.error_message = str(error)
            self.stop()

    def set_targets(self, targets: Mapping[str, Any]) -> None:
        """Set new targets, by name; names of objectives that are not in the problem of this method are ignored."""
        known_targets = {
            objective.name: targets[objective.name] for objective in self._spec.goals if objective.name in targets
        }
        if self.live is not None and known_targets:
            self.live.set_targets(self._spec.format_targets(known_targets))

    def stop(self) -> None:
        if self.live is not None:
            self.live.dispose()
            self.live = None

    def row(self) -> CompareRow:
        """Return the newest result as pages receive it."""
        state = self._state
        return CompareRow(
            solver=self.method_name,
            title=find_method(self.method_name).title,
            layer=self.layer,
            status="" if state is None or self.error_message else status_name(state),
            error=0.0 if state is None else state.error,
            iterations=0 if state is None else state.iterations,
            microseconds=1e6 * statistics.median(self._seconds) if self._seconds else 0.0,
            solved=self._success_count / self._solve_count if self._solve_count else 0.0,
            refusal=self.error_message,
            message="" if self.error_message else self._spec.adaptation_text,
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
    """The compared methods, which run beside the main solver.

    Args:
        send_frame: receives the state frames of the methods, from any thread.

    Attributes:
        methods: the methods; empty if no comparison runs.
    """

    def __init__(self, send_frame: Callable[[bytes], None]) -> None:
        self._send_frame = send_frame
        self.methods: tuple[ComparedMethod, ...] = ()

    def start(self, solver_session: SolverSession, method_names: list[str]) -> None:
        """Solve the present problem with these methods; a running comparison ends."""
        self.stop()
        self.methods = tuple(
            ComparedMethod(name, layer, solver_session, self._send_frame) for layer, name in enumerate(method_names, 1)
        )
        for method in self.methods:
            method.set_spec(solver_session.solve_spec, solver_session.q)

    def stop(self) -> None:
        for method in self.methods:
            method.stop()
        self.methods = ()

    def set_spec(self, spec: SolveSpec) -> None:
        """Set another problem for all methods."""
        for method in self.methods:
            q = method._solver_session.q if method.live is None else method.live.state.q
            method.set_spec(spec, q)

    def set_targets(self, solver_session: SolverSession, targets: Mapping[str, Any]) -> None:
        """Set new targets, by name; if a target is None, all objectives are replaced by those of `solver_session`."""
        if not self.methods:
            return
        if any(target is None for target in targets.values()):
            self.set_spec(solver_session.solve_spec)
            return
        for method in self.methods:
            method.set_targets(targets)

    def move_to(self, q: Array) -> None:
        """Continue all methods from q (nq,)."""
        for method in self.methods:
            if method.live is not None:
                method.live.move(np.array(q))

    def info(self) -> ComparisonChanged:
        """Return the results of all methods."""
        return ComparisonChanged([method.row() for method in self.methods])


def without_timings(comparison: ComparisonChanged) -> ComparisonChanged:
    """Return the comparison with zero times, to decide whether it must be sent again."""
    return ComparisonChanged([structs.replace(row, microseconds=0.0) for row in comparison.rows])


class BackgroundSolvers:
    """The solvers beside the main solver: compared methods and the search for alternative solutions.

    Args:
        send_frame: receives the state frames of compared methods, from any thread.

    Attributes:
        comparison: compared methods.
        alternatives: search for alternative solutions.
    """

    def __init__(self, send_frame: Callable[[bytes], None]) -> None:
        self.comparison = MethodComparison(send_frame)
        self.alternatives = AlternativeSearch()

    def set_spec(self, spec: SolveSpec) -> None:
        """Set another problem for all compared methods, and drop alternative solutions of the previous problem."""
        self.comparison.set_spec(spec)
        self.alternatives.cancel()

    def set_targets(self, solver_session: SolverSession, targets: Mapping[str, Any]) -> None:
        """Set new targets, by name, see `MethodComparison.set_targets`; drop alternative solutions."""
        self.comparison.set_targets(solver_session, targets)
        self.alternatives.cancel()

    def stop(self) -> None:
        """End the comparison and drop alternative solutions."""
        self.comparison.stop()
        self.alternatives.cancel()

    def close(self) -> None:
        """End the comparison and start no further search."""
        self.comparison.stop()
        self.alternatives.close()
