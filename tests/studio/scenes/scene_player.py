"""A scene in a session without a page: opens it, sets controls, advances time, and stores events and frames."""

import time

import numpy as np

from mechanik.studio.messages.events import Notice
from mechanik.studio.messages.message_codec import STATUSES, read_state
from mechanik.studio.messages.requests import OpenScene, SetControl
from mechanik.studio.scenes import SCENES
from mechanik.studio.session.session import Session

STEP = 1 / 30
"""Seconds from one tick to the next."""
PATIENCE = 120.0
"""Seconds for anything to happen; the first solve of all compiles."""


class ScenePlayer:
    """A session with a scene; `frames` and `events` are what it sent."""

    def __init__(self, name):
        self.frames, self.events = [], []
        self.session = Session(self.events.append, self.frames.append, scenes=SCENES)
        self.now = 0.0
        self.session.handle_request(OpenScene(name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    @property
    def scene(self):
        assert self.session.scene is not None, [event.text for event in self.events if isinstance(event, Notice)]
        return self.session.scene

    @property
    def mechanism(self):
        return self.session.mechanism

    @property
    def q(self):
        return self.session.q

    def set(self, name, value):
        self.session.handle_request(SetControl(name, value))

    def tick(self, times=1, follows=False):
        """Advance by a number of ticks; `follows`: wait until the mechanism is at rest after each."""
        for _ in range(times):
            self.now += STEP
            self.session.tick(self.now)
            if follows:
                self.rest()
        assert self.scene is not None

    def rest(self):
        """Wait until the solver is at rest with the newest goals."""
        state = self.session.live.solve().result(PATIENCE)
        end = time.monotonic() + PATIENCE
        active = self.session.active
        while active.latest_state is None or not all(
            np.array_equal(q, state.q) for q in (self.q, active.latest_state.q)
        ):
            # the session hears of it a moment later
            assert time.monotonic() < end, "the session has not heard of it"
            time.sleep(1e-4)

    def states(self):
        return [read_state(frame) for frame in self.frames]

    def check(self):
        """Check what holds for every frame of every scene."""
        for state in self.states():
            assert np.isfinite(state.links).all()
            assert np.isfinite(state.values).all()
            status = STATUSES[int(state.header.status)]
            assert status not in ("DIVERGED", "NOT_CLOSED", "PROBLEM"), status
            # loops are shut at every moment, and to rounding where the goals are met
            assert np.all(state.closures < (1e-8 if status == "CONVERGED" else 1e-6))


def settings_of(control):
    """Return all choices, both values of a switch, or four values of a slider."""
    match control.kind:
        case "slider":
            return [control.low, control.high, (control.low + control.high) / 2, control.value]
        case "switch":
            return [not control.value, control.value]
        case "choice":
            return [*control.choices, control.value]
        case _:
            return [True]
