"""Other solutions of the present goals, looked for in a thread of its own, so that nothing waits for them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.errors import MechanikError
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism, structure
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import Ghosts
from mechanik.studio.session.plan import Plan
from mechanik.studio.session.poses import rows_of
from mechanik.studio.session.sizes import is_looked_into
from mechanik.studio.session.table import Table

SECONDS = 2.0
"""For which ways to put loops together are looked for."""
TRIES, SAMPLES = 200, 8
"""Starts at most of a chain without a formula, and samples along each self-motion."""
MOST_FREEDOMS = 16
"""A mechanism without loops that has more is not searched: its solutions are countless, and finding some takes long."""
SAME = 1e-4
"""Rad, and m: what is so near to where it stands is no other solution."""


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    number: int
    table: Table
    asked: Plan
    q: Array
    most: int


class GhostSearch:
    """One search at a time; of those that are asked for meanwhile the newest is begun next. What was dropped, because
    the goals have moved, is never told; pages that wait for some or draw some are told once that there are none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._next: _Question | None = None
        self._is_busy = self._is_closed = False
        self._found: tuple[int, Ghosts] | None = None
        self._thread: threading.Thread | None = None
        self._is_asked = False

    def begin(self, table: Table, asked: Plan, q: Array, most: int) -> None:
        with self._lock:
            self._number += 1
            self._next = _Question(self._number, table, asked, q, most)
            self._is_asked = True
            if not self._is_busy and not self._is_closed:
                self._is_busy = True
                self._thread = threading.Thread(target=self._work, name="mechanik ghosts", daemon=True)
                self._thread.start()

    def drop(self) -> None:
        """What was asked for is of no use any more."""
        with self._lock:
            self._number += 1
            self._next = None
            self._found = (self._number, self.none()) if self._is_asked else None
            self._is_asked = False

    def close(self) -> None:
        """No further search is begun."""
        self._is_closed = True
        self.drop()

    def join(self) -> None:
        """Wait for the search that is under way: a few seconds, and it takes them from others."""
        if self._thread is not None:
            self._thread.join()

    def news(self) -> Ghosts | None:
        """What was found since the last time, if it still counts."""
        with self._lock:
            found, self._found = self._found, None
            return found[1] if found is not None and found[0] == self._number else None

    @staticmethod
    def none() -> Ghosts:
        return Ghosts([], "")

    def _work(self) -> None:
        while True:
            with self._lock:
                question, self._next = self._next, None
                if question is None or self._is_closed:
                    self._is_busy = False
                    return
            try:
                answer = _searched(question)
            except MechanikError as error:
                answer = Ghosts([], str(error))
            except Exception:
                answer = Ghosts([], "other solutions could not be looked for here")
            with self._lock:
                if question.number == self._number:
                    self._found = question.number, answer


def _searched(question: _Question) -> Ghosts:
    mechanism = question.table.mechanism.copy()  # the one on the table may be edited meanwhile
    mechanism.q = question.q
    if not is_looked_into(mechanism):
        return Ghosts([], f"with {mechanism.nv} freedoms and loops it is too large for other ways to be looked for")
    if mechanism.closures or mechanism.laws:
        found, why = _modes(mechanism, question)
    elif not question.asked.goals:
        return Ghosts([], "there is no goal, so any configuration would do")
    elif mechanism.nv > MOST_FREEDOMS:
        return Ghosts([], f"with {mechanism.nv} freedoms there are too many solutions to look for")
    else:
        asked = question.asked
        keeping: dict[str, Any] = {}
        if asked.collider is not None:
            keeping = {"avoid": asked.collisions.collider(mechanism), "clearance": asked.collisions.clearance}
        solver = Solver(mechanism, asked.goals, lock=asked.lock, **keeping)
        all_of_them = solver.solve_all(q0=question.q, limit=question.most + 1, tries=TRIES, samples=SAMPLES)
        found, why = all_of_them.q, all_of_them.why
    others = [q for q in found if np.abs(mechanism.difference(question.q, q)).max(initial=0.0) > SAME]
    poses = [rows_of(mechanism.poses(q)).ravel().tolist() for q in others[: question.most]]
    return Ghosts(poses, f"{len(poses)} other solutions: {why}" if poses else f"no other solution: {why}")


def _modes(mechanism: Mechanism, question: _Question) -> tuple[Array, str]:
    """Other ways to put it together with its drives where they are."""
    values = mechanism.values(question.q)
    drives = {name: values[name] for name in structure(mechanism).drives if name in values}
    modes = mechanism.assembly_modes(drives or None, question.q, limit=question.most + 1, max_seconds=SECONDS)
    return modes.q, modes.why
