"""A cancelled drag restores the state before it."""

from __future__ import annotations

import numpy as np
import pytest
from session_harness import SessionHarness

from mechanik.studio.messages.events import History
from mechanik.studio.messages.message_codec import LINK_DRAG_GOAL
from mechanik.studio.messages.requests import EndDrag, SetDofValue, StartGoalDrag, StartJointDrag, StartLinkDrag, Undo


def hold(harness: SessionHarness, what: str) -> None:
    """Where a hand goes with what it has taken."""
    if what == "freedom":
        harness.drag_dof_to(0, float(harness.session.q[0]) + 0.1)
    else:
        goal = harness.session.goals[-1 if what == "pull" else 0]
        harness.drag_goal_to(goal.number, [goal.pose[0] + 0.02, goal.pose[1] + 0.01, *goal.pose[2:]])


def take(harness: SessionHarness, what: str) -> None:
    link = harness.session.goals[0].link
    page_requests = {
        "goal": StartGoalDrag(harness.session.goals[0].number),
        "freedom": StartJointDrag(0),
        "pull": StartLinkDrag(link, (0.0, 0.0, 0.0)),
    }
    harness.ask(page_requests[what])
    assert (harness.session.goals[-1].number == LINK_DRAG_GOAL) == (what == "pull")


@pytest.mark.parametrize("what", ["goal", "freedom", "pull"])
@pytest.mark.parametrize("name", ["panda", "five_bar"])
def test_what_is_put_back_leaves_nothing_to_undo_and_nothing_to_redo(name: str, what: str) -> None:
    """It was let go and undone once, so that a drag nobody had made could be made again."""
    with SessionHarness(name) as harness:
        harness.ask(SetDofValue(0, float(harness.session.q[0]) + 0.05))
        harness.rest()
        harness.ask(Undo())
        harness.rest()
        q, goals, history = harness.session.q.copy(), harness.session.goals, harness.last(History)
        assert history.redo, "what was undone before can still be done again"
        take(harness, what)
        hold(harness, what)
        harness.answered()
        assert not np.array_equal(harness.session.q, q)
        harness.ask(EndDrag(cancel=True))
        assert np.array_equal(harness.rest().goals[:, :7], [goal.pose for goal in goals])
        assert np.array_equal(harness.session.q, q)
        assert harness.session.goals == goals
        assert [goal.number for goal in harness.goals.goals] == [goal.number for goal in goals]
        assert harness.last(History) == history


@pytest.mark.parametrize("what", ["goal", "freedom", "pull"])
def test_late_drag_update_moves_nothing_after_a_cancelled_drag(what: str) -> None:
    with SessionHarness("panda") as harness:
        take(harness, what)
        hold(harness, what)
        number = harness.session.goals[-1].number
        harness.answered()
        harness.ask(EndDrag(cancel=True))
        q, goals = harness.rest() and harness.session.q.copy(), harness.session.goals
        if what == "freedom":
            harness.drag_dof_to(0, 1.0)
        else:
            harness.drag_goal_to(number, [0.3, 0.3, 0.3, 1.0, 0.0, 0.0, 0.0])
        assert harness.session.goals == goals
        assert np.array_equal(harness.session.q, q)


def test_after_something_was_put_back_the_next_drag_is_as_ever() -> None:
    with SessionHarness("panda") as harness:
        for what in ("freedom", "goal"):
            take(harness, what)
            hold(harness, what)
            harness.answered()
            harness.ask(EndDrag(cancel=True))
            harness.rest()
        q = harness.session.q.copy()
        frame = harness.drag(harness.session.goals[0].number, (0.02, 0.0, 0.03))
        assert frame.goals[0, 7] < 1e-5
        harness.ask(Undo())
        assert np.array_equal(harness.session.q, q)
