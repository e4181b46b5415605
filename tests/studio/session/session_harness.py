"""A session that stores all its events and frames, with methods that wait for its background solver."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mechanik.studio.messages.events import Event, Goals, Model
from mechanik.studio.messages.message_codec import (
    DRAG_DOF,
    DRAG_GOAL,
    DRAG_OBSTACLE,
    DragUpdate,
    StateFrame,
    read_state,
)
from mechanik.studio.messages.requests import EndDrag, OpenGallery, PageRequest, StartGoalDrag, StartJointDrag
from mechanik.studio.session import Session

E = TypeVar("E", bound=Event)
PATIENCE = 120.0
"""Seconds for anything to happen; the first solve of all compiles."""


class SessionHarness:
    def __init__(self, gallery: str = "", **options: Any) -> None:
        self.events: list[Event] = []
        self.frames: list[bytes] = []
        self.session = Session(self.events.append, self.frames.append, **options)
        readings = itertools.count()
        self.session.recorder._clock = lambda: 1e-3 * next(readings)  # so that no two states come within one tick of it
        self.tag = 0
        self.now = 0.0
        if gallery:
            self.ask(OpenGallery(gallery))
            self.rest()

    def __enter__(self) -> SessionHarness:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def ask(self, request: PageRequest) -> None:
        self.session.handle_request(request)

    def last(self, kind: type[E]) -> E:
        return next(event for event in reversed(self.events) if isinstance(event, kind))

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def model(self) -> Model:
        return self.last(Model)

    @property
    def goals(self) -> Goals:
        return self.last(Goals)

    @property
    def frame(self) -> StateFrame:
        """The newest frame of the main layer."""
        return next(state for state in map(read_state, reversed(self.frames)) if state.header.layer == 0)

    def rest(self) -> StateFrame:
        """Wait until nothing moves, and the newest frame says so."""
        active = self.session.active
        self.wait(lambda: active.is_at_rest and np.array_equal(self._links(), self._frame_links()))
        return self.frame

    def wait(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < until, "nothing came of it"
            time.sleep(0.001)

    def tick(self, seconds: float = 0.1) -> None:
        self.now += seconds
        self.session.tick(self.now)

    def drag_goal_to(self, number: int, pose: Any) -> None:
        self.tag += 1
        self.session.drag_to(DragUpdate(DRAG_GOAL, self.tag, number, tuple(float(number) for number in pose)))

    def drag_dof_to(self, number: int, *numbers: float) -> None:
        self.tag += 1
        self.session.drag_to(DragUpdate(DRAG_DOF, self.tag, number, (*numbers, *[0.0] * (7 - len(numbers)))))

    def drag_obstacle_to(self, place: int, pose: Any) -> None:
        """Send a drag update of an obstacle; place: its index at the start of the drag."""
        self.tag += 1
        self.session.drag_to(DragUpdate(DRAG_OBSTACLE, self.tag, place, tuple(float(number) for number in pose)))

    def answered(self) -> StateFrame:
        """Wait until the newest drag update is answered and nothing moves."""
        active = self.session.active
        self.wait(lambda: active.is_at_rest and self.frame.header.tag == self.tag)
        return self.rest()

    def drag(self, number: int, shift: Any, steps: int = 5) -> StateFrame:
        """Drag a goal along a straight line; return the state at rest before the end of the drag."""
        start = np.array(self.session.active.edit_state.goal(number).pose)
        self.ask(StartGoalDrag(number))
        for k in range(1, steps + 1):
            self.drag_goal_to(number, [*(start[:3] + np.array(shift) * k / steps), *start[3:]])
        frame = self.answered()
        self.ask(EndDrag())
        return frame

    def turn(self, dof: int, value: float, steps: int = 5) -> StateFrame:
        """Drag a dof to a value; return the state at rest after the end of the drag."""
        self.ask(StartJointDrag(dof))
        start = self.frame.values[self.model.dofs[dof].value]
        for k in range(1, steps + 1):
            self.drag_dof_to(dof, start + (value - start) * k / steps)
            self.answered()
        self.ask(EndDrag())
        return self.rest()

    def dof_index(self, name: str) -> int:
        return [dof.name for dof in self.model.dofs].index(name)

    def _links(self) -> np.ndarray:
        return self.session.mechanism.poses(self.session.q)[:, :3, 3]

    def _frame_links(self) -> np.ndarray:
        return self.frame.links[:, :3]


def threads_of_live() -> int:
    return sum(thread.name == "mechanik live" for thread in threading.enumerate())
