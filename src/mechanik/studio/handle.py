"""A goal of a studio that a program holds as well as people."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from mechanik.errors import UnknownName
from mechanik.live import LiveState
from mechanik.spatial.array import Array
from mechanik.studio.callbacks import Callbacks
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.poses import Place, as_matrix
from mechanik.studio.session.session import Session


class Handle:
    """What `Studio.handle` and `Studio.pin` give.

    Attributes:
        number: of the goal, as the page knows it.
    """

    def __init__(self, session: Session, callbacks: Callbacks, number: int) -> None:
        self.number = number
        self._session, self._callbacks = session, callbacks

    @property
    def pose(self) -> Array:
        """Where it is now, (4, 4) in the world, read-only: as people or the program moved it last."""
        return self._goal().X

    @property
    def is_there(self) -> bool:
        """Whether nobody has removed it."""
        return any(goal.number == self.number for goal in self._session.goals)

    def move(self, pose: Place) -> None:
        """Want it there: (4, 4), position and wxyz (7,), or a position (3,), which leaves its turn."""
        self._session.move_goal(self.number, as_matrix(pose, self._goal().X[:3, :3]))

    def on_move(self, callback: Callable[[Array], Any]) -> Callable[[], None]:
        """Call back with the pose (4, 4) after each move, whoever moves it; from a thread of its own, with the first
        state that answers it. Returns what ends it."""
        last = self.pose

        def look(_: LiveState) -> None:
            nonlocal last
            if self.is_there:
                before, last = last, self.pose
                if last is not before and (last != before).any():
                    callback(last)

        return self._callbacks.add(look)

    def remove(self) -> None:
        """Let go; again does nothing."""
        with contextlib.suppress(UnknownName):
            self._session.remove_goal(self.number)

    def __repr__(self) -> str:
        return f"Handle({self._goal().name!r})" if self.is_there else "Handle(removed)"

    def _goal(self) -> Goal:
        for goal in self._session.goals:
            if goal.number == self.number:
                return goal
        raise UnknownName("handle", self.number, [str(goal.number) for goal in self._session.goals])
