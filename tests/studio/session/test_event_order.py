"""The last frame has the order of the last `Goals` event."""

from __future__ import annotations

import time

from session_harness import PATIENCE, SessionHarness

from mechanik.studio.messages.events import Event, Goals, StatusText
from mechanik.studio.messages.message_codec import read_state
from mechanik.studio.messages.requests import MoveGoal, OpenGallery
from mechanik.studio.session import Session

TELLING, SHOWING = 0.02, 0.06
"""s that goals and a frame take to be handed on; so much happens while other threads have the turn."""


def test_state_that_arrives_during_a_broadcast_of_goals_is_not_the_last_with_an_old_order() -> None:
    """It was once: after a goal was moved by number, pages waited for ever for a frame that fits to its goals."""
    events: list[Event] = []
    frames: list[bytes] = []

    def tell(event: Event) -> None:
        if isinstance(event, Goals):
            time.sleep(TELLING)
        events.append(event)

    def show(frame: bytes) -> None:
        time.sleep(SHOWING)
        frames.append(frame)

    session = Session(tell, show)
    try:
        session.handle_request(OpenGallery("planar_3r"))
        for k in range(1, 6):
            goal = session.goals[0]
            x, *rest = goal.pose
            session.handle_request(MoveGoal(goal.number, (x - 0.01 * k, *rest)))  # type: ignore[arg-type]
            until = time.monotonic() + PATIENCE
            while not session.active.is_at_rest and time.monotonic() < until:
                time.sleep(0.001)
            session.active.settle()
            order = next(event.order for event in reversed(events) if isinstance(event, Goals))
            assert read_state(frames[-1]).header.order == order
    finally:
        session.close()


def test_a_page_that_connects_while_nothing_moves_gets_the_status_text():
    """Once the status was sent only after a change, so that a reloaded page had none."""
    with SessionHarness("planar_2r") as harness:
        harness.session.tick(1.0)
        status = harness.last(StatusText)
        harness.events.clear()
        harness.session.send_everything()
        harness.session.tick(2.0)
        assert harness.all(StatusText) == [status]
