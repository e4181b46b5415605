"""A drag that is given up: all is as if no hand had been there."""

from __future__ import annotations

import numpy as np
import pytest
from session_desk import Desk

from mechanik.studio.messages.events import History
from mechanik.studio.messages.message_codec import LINK_DRAG_GOAL
from mechanik.studio.messages.requests import EndDrag, SetDofValue, StartGoalDrag, StartJointDrag, StartLinkDrag, Undo


def hold(desk: Desk, what: str) -> None:
    """Where a hand goes with what it has taken."""
    if what == "freedom":
        desk.drag_dof_to(0, float(desk.session.q[0]) + 0.1)
    else:
        goal = desk.session.goals[-1 if what == "pull" else 0]
        desk.drag_goal_to(goal.number, [goal.pose[0] + 0.02, goal.pose[1] + 0.01, *goal.pose[2:]])


def take(desk: Desk, what: str) -> None:
    link = desk.session.goals[0].link
    page_requests = {
        "goal": StartGoalDrag(desk.session.goals[0].number),
        "freedom": StartJointDrag(0),
        "pull": StartLinkDrag(link, (0.0, 0.0, 0.0)),
    }
    desk.ask(page_requests[what])
    assert (desk.session.goals[-1].number == LINK_DRAG_GOAL) == (what == "pull")


@pytest.mark.parametrize("what", ["goal", "freedom", "pull"])
@pytest.mark.parametrize("name", ["panda", "five_bar"])
def test_what_is_put_back_leaves_nothing_to_undo_and_nothing_to_redo(name: str, what: str) -> None:
    """It was let go and undone once, so that a drag nobody had made could be made again."""
    with Desk(name) as desk:
        desk.ask(SetDofValue(0, float(desk.session.q[0]) + 0.05))
        desk.rest()
        desk.ask(Undo())
        desk.rest()
        q, goals, history = desk.session.q.copy(), desk.session.goals, desk.last(History)
        assert history.redo, "what was undone before can still be done again"
        take(desk, what)
        hold(desk, what)
        desk.answered()
        assert not np.array_equal(desk.session.q, q)
        desk.ask(EndDrag(cancel=True))
        assert np.array_equal(desk.rest().goals[:, :7], [goal.pose for goal in goals])
        assert np.array_equal(desk.session.q, q)
        assert desk.session.goals == goals
        assert [goal.number for goal in desk.goals.goals] == [goal.number for goal in goals]
        assert desk.last(History) == history


@pytest.mark.parametrize("what", ["goal", "freedom", "pull"])
def test_late_drag_update_moves_nothing_after_a_cancelled_drag(what: str) -> None:
    with Desk("panda") as desk:
        take(desk, what)
        hold(desk, what)
        number = desk.session.goals[-1].number
        desk.answered()
        desk.ask(EndDrag(cancel=True))
        q, goals = desk.rest() and desk.session.q.copy(), desk.session.goals
        if what == "freedom":
            desk.drag_dof_to(0, 1.0)
        else:
            desk.drag_goal_to(number, [0.3, 0.3, 0.3, 1.0, 0.0, 0.0, 0.0])
        assert desk.session.goals == goals
        assert np.array_equal(desk.session.q, q)


def test_after_something_was_put_back_the_next_drag_is_as_ever() -> None:
    with Desk("panda") as desk:
        for what in ("freedom", "goal"):
            take(desk, what)
            hold(desk, what)
            desk.answered()
            desk.ask(EndDrag(cancel=True))
            desk.rest()
        q = desk.session.q.copy()
        frame = desk.drag(desk.session.goals[0].number, (0.02, 0.0, 0.03))
        assert frame.goals[0, 7] < 1e-5
        desk.ask(Undo())
        assert np.array_equal(desk.session.q, q)
