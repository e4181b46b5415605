"""Frame status and status text describe what is shown, also after an undo that ends at rest."""

from __future__ import annotations

import numpy as np
import pytest
from session_harness import SessionHarness

from mechanik.motion.live import LiveState
from mechanik.studio.messages.events import StatusText
from mechanik.studio.messages.message_codec import STATUSES
from mechanik.studio.messages.requests import EditModel, EndDrag, Redo, SetRunning, StartGoalDrag, Undo


def status(harness: SessionHarness) -> str:
    return STATUSES[int(harness.rest().header.status)]


def words(harness: SessionHarness) -> StatusText:
    harness.tick(0.2)  # words are told ten times a second at most
    return harness.last(StatusText)


def pull_far_out(harness: SessionHarness) -> None:
    goal = harness.session.goals[-1]
    harness.ask(StartGoalDrag(goal.number))
    harness.drag_goal_to(goal.number, [goal.pose[0] + 5.0, *goal.pose[1:]])
    harness.rest()
    harness.ask(EndDrag())
    harness.rest()


@pytest.mark.parametrize("name", ["panda", "humanoid"])
def test_status_text_after_undo_and_redo_is_that_of_the_restored_state(name: str) -> None:
    """It stayed "as close as it gets" beside an error of 4e-11 m."""
    with SessionHarness(name) as harness:
        before = status(harness), words(harness)
        pull_far_out(harness)
        out = status(harness), words(harness)
        assert before[0] == "CONVERGED" != out[0]
        assert before[1].text != out[1].text
        for _ in range(2):
            harness.ask(Undo())
            assert (status(harness), words(harness)) == before
            harness.ask(Redo())
            assert (status(harness), words(harness)) == out


def test_undo_to_a_replaced_mechanism_restores_its_status_text() -> None:
    with SessionHarness("panda") as harness:
        before = status(harness), words(harness)
        harness.ask(EditModel("arm_3d", '{"mechanik": 1, "arm": {"lengths": [0.3, 0.4], "axes": "zy"}}'))
        harness.rest()
        harness.ask(Undo())
        assert (status(harness), words(harness)) == before


def test_those_who_hear_of_states_hear_of_an_undo_that_ends_at_rest() -> None:
    with SessionHarness("panda") as harness:
        heard: list[LiveState] = []
        harness.session.subscribe(heard.append)
        q = np.array(harness.session.q)
        pull_far_out(harness)
        harness.wait(lambda: bool(heard) and np.array_equal(heard[-1].q, harness.session.q))
        harness.ask(Undo())
        harness.wait(lambda: np.array_equal(heard[-1].q, q))
        assert heard[-1].is_at_rest
        assert heard[-1].solution is not None
        assert heard[-1].solution.success
        assert [state.sequence for state in heard] == sorted(state.sequence for state in heard)


def test_an_undo_while_it_is_paused_says_so_and_the_next_run_goes_on() -> None:
    with SessionHarness("panda") as harness:
        before = status(harness)
        pull_far_out(harness)
        harness.ask(SetRunning(False))
        harness.ask(Undo())
        assert status(harness) == "PAUSED" == words(harness).status
        harness.ask(SetRunning(True))
        assert status(harness) == before == words(harness).status
