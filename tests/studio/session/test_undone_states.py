"""Status and words belong to what is shown, also after an undo that ends at rest."""

from __future__ import annotations

import numpy as np
import pytest
from session_desk import Desk

from mechanik.motion.live import LiveState
from mechanik.studio.messages.events import StatusText
from mechanik.studio.messages.message_codec import STATUSES
from mechanik.studio.messages.requests import EditModel, EndDrag, Redo, SetRunning, StartGoalDrag, Undo


def status(desk: Desk) -> str:
    return STATUSES[int(desk.rest().header.status)]


def words(desk: Desk) -> StatusText:
    desk.tick(0.2)  # words are told ten times a second at most
    return desk.last(StatusText)


def pull_far_out(desk: Desk) -> None:
    goal = desk.session.goals[-1]
    desk.ask(StartGoalDrag(goal.number))
    desk.drag_goal_to(goal.number, [goal.pose[0] + 5.0, *goal.pose[1:]])
    desk.rest()
    desk.ask(EndDrag())
    desk.rest()


@pytest.mark.parametrize("name", ["panda", "humanoid"])
def test_status_text_after_undo_and_redo_is_that_of_the_restored_state(name: str) -> None:
    """It stayed "as close as it gets" beside an error of 4e-11 m."""
    with Desk(name) as desk:
        before = status(desk), words(desk)
        pull_far_out(desk)
        out = status(desk), words(desk)
        assert before[0] == "CONVERGED" != out[0]
        assert before[1].text != out[1].text
        for _ in range(2):
            desk.ask(Undo())
            assert (status(desk), words(desk)) == before
            desk.ask(Redo())
            assert (status(desk), words(desk)) == out


def test_undo_to_a_replaced_mechanism_restores_its_status_text() -> None:
    with Desk("panda") as desk:
        before = status(desk), words(desk)
        desk.ask(EditModel("arm_3d", '{"mechanik": 1, "arm": {"lengths": [0.3, 0.4], "axes": "zy"}}'))
        desk.rest()
        desk.ask(Undo())
        assert (status(desk), words(desk)) == before


def test_those_who_hear_of_states_hear_of_an_undo_that_ends_at_rest() -> None:
    with Desk("panda") as desk:
        heard: list[LiveState] = []
        desk.session.subscribe(heard.append)
        q = np.array(desk.session.q)
        pull_far_out(desk)
        desk.wait(lambda: bool(heard) and np.array_equal(heard[-1].q, desk.session.q))
        desk.ask(Undo())
        desk.wait(lambda: np.array_equal(heard[-1].q, q))
        assert heard[-1].is_at_rest
        assert heard[-1].solution is not None
        assert heard[-1].solution.success
        assert [state.sequence for state in heard] == sorted(state.sequence for state in heard)


def test_an_undo_while_it_is_paused_says_so_and_the_next_run_goes_on() -> None:
    with Desk("panda") as desk:
        before = status(desk)
        pull_far_out(desk)
        desk.ask(SetRunning(False))
        desk.ask(Undo())
        assert status(desk) == "PAUSED" == words(desk).status
        desk.ask(SetRunning(True))
        assert status(desk) == before == words(desk).status
