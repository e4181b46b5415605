"""Several methods that follow the same goals side by side, each with a background solver of its own."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from mechanik.errors import MechanikError
from mechanik.live import Live, LiveState
from mechanik.solvers.methods import find_method
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import CompareRow, Comparison
from mechanik.studio.session.fitting import fitted
from mechanik.studio.session.plan import Plan
from mechanik.studio.session.refusals import said_to_people
from mechanik.studio.session.stage import Stage
from mechanik.studio.session.state_picture import Moment, status_of

BUDGET = 0.008
"""Seconds a tick, less than for the one that is dragged."""
LAST = 50
"""Solves of which the median is told."""


class Runner:
    """One method, with its own q, on a layer of its own."""

    def __init__(self, solver: str, layer: int, stage: Stage, show: Callable[[bytes], None]) -> None:
        self.solver, self.layer, self._stage, self._show = solver, layer, stage, show
        self.refusal = ""
        self.live: Live | None = None
        self._sequence = count(1)
        self._seconds: deque[float] = deque(maxlen=LAST)
        self._asked = self._reached = 0
        self._state: LiveState | None = None
        self._plan = stage.asked

    def ask(self, asked: Plan, q: Array) -> None:
        """Follow these objectives, from q if it has not begun yet."""
        fit = self._plan = fitted(asked, self.solver)
        try:
            with said_to_people():
                if self.live is None:
                    self.live = Live(
                        self._stage.table.mechanism, fit.goals, fit.solver, q0=q, budget=BUDGET, lock=fit.lock,
                        rest=fit.rest, on_state=self._arrived, **fit.avoiding,
                    )  # fmt: skip
                    self.live.start()
                else:
                    self.live.set(goals=fit.goals, solver=fit.solver, lock=fit.lock, rest=fit.rest, **fit.avoiding)
            self.refusal = ""
        except MechanikError as error:
            self.refusal = str(error)
            self.end()

    def aim(self, targets: Mapping[str, Any]) -> None:
        """New targets by name, of those objectives that it follows: what a hand holds besides is not among them."""
        known = {one.name: targets[one.name] for one in self._plan.goals if one.name in targets}
        if self.live is not None and known:
            self.live.aim(self._plan.targets(known))

    def end(self) -> None:
        if self.live is not None:
            self.live.dispose()
            self.live = None

    def row(self) -> CompareRow:
        state = self._state
        return CompareRow(
            solver=self.solver,
            title=find_method(self.solver).title,
            layer=self.layer,
            status="" if state is None or self.refusal else status_of(state),
            error=0.0 if state is None else state.error,
            iterations=0 if state is None else state.iterations,
            microseconds=1e6 * statistics.median(self._seconds) if self._seconds else 0.0,
            solved=self._reached / self._asked if self._asked else 0.0,
            refusal=self.refusal,
            said="" if self.refusal else self._plan.said,
        )

    def _arrived(self, state: LiveState) -> None:
        """In its thread."""
        self._state = state
        self._seconds.append(state.seconds)
        if state.is_at_rest and state.solution is not None:
            self._asked += 1
            self._reached += state.solution.success
        picture = self._stage.picture
        if len(state.q) == picture.anatomy.nq:
            moment = Moment.of(state, state.tag, self.layer)
            self._show(picture.pack(state.q, next(self._sequence), moment))


class Comparing:
    """The methods that run beside the one of the session. Empty: none."""

    def __init__(self, show: Callable[[bytes], None]) -> None:
        self._show = show
        self.runners: tuple[Runner, ...] = ()

    def begin(self, stage: Stage, solvers: list[str]) -> None:
        self.end()
        self.runners = tuple(Runner(name, layer, stage, self._show) for layer, name in enumerate(solvers, 1))
        for runner in self.runners:
            runner.ask(stage.asked, stage.q)

    def end(self) -> None:
        for runner in self.runners:
            runner.end()
        self.runners = ()

    def ask(self, asked: Plan) -> None:
        """Other objectives."""
        for runner in self.runners:
            q = runner._stage.q if runner.live is None else runner.live.state.q
            runner.ask(asked, q)

    def aim(self, stage: Stage, targets: Mapping[str, Any]) -> None:
        """New targets by name; one that is None needs another objective."""
        if not self.runners:
            return
        if any(target is None for target in targets.values()):
            self.ask(stage.asked)
            return
        for runner in self.runners:
            runner.aim(targets)

    def move(self, q: Array) -> None:
        """All begin again at q (nq,)."""
        for runner in self.runners:
            if runner.live is not None:
                runner.live.move(np.array(q))

    def info(self) -> Comparison:
        return Comparison([runner.row() for runner in self.runners])


def without_times(told: Comparison) -> Comparison:
    """What has to differ for a comparison to be worth telling again."""
    return Comparison([replace(row, microseconds=0.0) for row in told.rows])
