"""Joints that are dragged, set, limited and locked: pins and loops hold, and other goals move with their links."""

from __future__ import annotations

import numpy as np
import pytest
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import InvalidOperation, MechanikError
from mechanik.studio.messages.events import DofsChanged, History
from mechanik.studio.messages.message_codec import LINK_DRAG_GOAL
from mechanik.studio.messages.requests import (
    AddGoal,
    EndDrag,
    GoTo,
    Redo,
    SetDofValue,
    SetLimits,
    SetLocked,
    SetRest,
    StartGoalDrag,
    StartJointDrag,
    StartLinkDrag,
    Undo,
)

TIP = "panda_hand_tcp"


def test_a_joint_is_where_the_hand_has_it_and_goals_come_along() -> None:
    with SessionHarness("panda") as harness:
        before, goal = harness.session.q.copy(), harness.session.goals[0]
        value = harness.frame.values[0] + 0.4
        frame = harness.turn(0, value)
        assert frame.values[0] == pytest.approx(value, abs=1e-6)
        assert np.abs(harness.session.q[1:] - before[1:]).max() < 1e-9, "the others stay"
        assert frame.goals[0][7:].max() < 1e-6, "the goal is where its link is"
        assert harness.session.goals[0].pose != goal.pose
        assert harness.last(History).undo == "rotate panda_joint1"
        harness.ask(Undo())
        assert np.array_equal(harness.session.q, before)
        assert harness.session.goals[0].pose == goal.pose


def test_while_a_joint_is_dragged_the_frames_carry_the_goals_along() -> None:
    with SessionHarness("ur5") as harness:
        harness.ask(StartJointDrag(0))
        harness.drag_dof_to(0, harness.frame.values[0] + 0.3)
        frame = harness.answered()
        tip = harness.session.mechanism.pose("tool0", harness.session.q)
        assert np.allclose(frame.goals[0][:3], tip[:3, 3], atol=1e-9)
        assert frame.goals[0][7:].max() < 1e-9


@pytest.mark.parametrize(("name", "joint"), [("four_bar", "crank_joint"), ("delta_robot", None), ("jansen_leg", None)])
def test_loops_stay_closed_while_a_joint_is_dragged(name: str, joint: str | None) -> None:
    with SessionHarness(name) as harness:
        drive = joint or mk.structure(harness.session.mechanism).inputs[0]
        number = harness.dof_index(drive)
        value = harness.frame.values[harness.model.dofs[number].value] + 0.25
        frame = harness.turn(number, value)
        assert frame.values[harness.model.dofs[number].value] == pytest.approx(value, abs=1e-6)
        assert frame.closures.max() < 1e-8


def test_a_joint_that_closes_a_loop_can_be_dragged_too() -> None:
    with SessionHarness("four_bar") as harness:
        number = harness.dof_index("closing_joint")
        at = harness.model.dofs[number].value
        value = harness.frame.values[at] + 0.1
        frame = harness.turn(number, value)
        assert frame.values[at] == pytest.approx(value, abs=1e-6)
        assert frame.closures.max() < 1e-8


def test_pins_hold_while_a_joint_is_dragged() -> None:
    with SessionHarness("iiwa14") as harness:
        tip = harness.session.goals[0].link
        harness.ask(AddGoal("pose", tip, pinned=True))
        before = harness.session.mechanism.pose(tip, harness.session.q)
        value = harness.frame.values[2] + 0.2
        frame = harness.turn(2, value)
        assert np.abs(harness.session.mechanism.pose(tip, harness.session.q) - before).max() < 1e-5
        assert frame.values[2] == pytest.approx(value, abs=1e-5), "seven joints leave it one freedom"


def test_a_link_that_is_pulled_follows_and_the_pull_is_gone_afterwards() -> None:
    with SessionHarness("humanoid") as harness:
        feet = [goal for goal in harness.session.goals if goal.pinned]
        numbers = [goal.number for goal in harness.session.goals]
        link = "left_forearm" if "left_forearm" in harness.session.mechanism.links else "left_hand"
        harness.ask(StartLinkDrag(link, (0.0, 0.0, 0.0)))
        pull = harness.session.goals[-1]
        assert pull.number == LINK_DRAG_GOAL
        assert harness.goals.goals[-1].is_link_drag
        harness.drag_goal_to(LINK_DRAG_GOAL, [pull.pose[0] + 0.05, pull.pose[1], pull.pose[2] + 0.02, *pull.pose[3:]])
        frame = harness.answered()
        assert frame.goals[-1][7] < 1e-4, "the link comes"
        for row, goal in zip(frame.goals, harness.session.goals, strict=True):
            if goal in feet:
                assert row[7:].max() < 1e-5, "the feet stay"
        harness.ask(EndDrag())
        assert [goal.number for goal in harness.session.goals] == numbers
        assert harness.rest().goals[:, 7:].max() < 1e-5


@pytest.mark.parametrize("name", ["panda", "four_bar", "gripper", "rover"])
def test_a_number_sets_a_joint_and_what_follows_it(name: str) -> None:
    with SessionHarness(name) as harness:
        q = harness.session.q.copy()
        for number, dof in enumerate(harness.model.dofs):
            if dof.kind == "spherical":
                with pytest.raises(InvalidOperation, match="spherical joint"):
                    harness.ask(SetDofValue(number, 0.1))
                continue
            value = float(harness.frame.values[dof.value]) + (0.02 if dof.kind == "translation" else 0.05)
            value = min(max(value, dof.lower or -np.inf), np.inf if dof.upper is None else dof.upper)
            try:
                harness.ask(SetDofValue(number, value))
            except InvalidOperation:
                continue  # a joint that has several rotations and closes a loop
            frame = harness.rest()
            assert frame.closures.max(initial=0.0) < 1e-8
            if dof.mimics < 0 and not harness.session.mechanism.closures:
                assert frame.values[dof.value] == pytest.approx(value, abs=1e-6), dof.name
            harness.ask(Undo())
        assert np.array_equal(harness.session.q, q)


def test_a_follower_moves_its_leader() -> None:
    with SessionHarness("panda") as harness:
        follower = next(k for k, dof in enumerate(harness.model.dofs) if dof.mimics >= 0)
        leader = harness.model.dofs[follower].mimics
        harness.ask(SetDofValue(follower, 0.01))
        values = harness.rest().values
        assert values[harness.model.dofs[follower].value] == pytest.approx(0.01, abs=1e-9)
        assert values[harness.model.dofs[leader].value] == pytest.approx(0.01, abs=1e-9)
        with pytest.raises(InvalidOperation, match="mimic"):
            harness.ask(SetLocked(follower, True))


def test_limits_bring_the_joint_inside_and_undo_gives_them_back() -> None:
    with SessionHarness("panda") as harness:
        dof, q = harness.model.dofs[0], harness.session.q.copy()
        harness.ask(SetLimits(0, 0.3, 0.5))
        assert harness.last(DofsChanged).dofs[0].lower == 0.3
        frame = harness.rest()
        assert 0.3 <= frame.values[0] <= 0.5
        harness.ask(Undo())
        assert harness.last(DofsChanged).dofs[0] == dof
        assert np.array_equal(harness.session.q, q)
        harness.ask(Redo())
        assert harness.session.mechanism.joints["panda_joint1"].limits("EZ") == (0.3, 0.5)


def test_what_is_locked_does_not_move() -> None:
    with SessionHarness("iiwa14") as harness:
        value = float(harness.frame.values[1])
        harness.ask(SetLocked(1, True))
        frame = harness.drag(harness.session.goals[0].number, (0.03, 0.02, -0.03))
        assert frame.values[1] == pytest.approx(value, abs=1e-12)
        with pytest.raises(InvalidOperation, match="locked"):
            harness.ask(StartJointDrag(1))
        harness.ask(SetLocked(1, False))
        frame = harness.drag(harness.session.goals[0].number, (0.03, 0.02, -0.03))
        assert frame.values[1] != pytest.approx(value, abs=1e-6)


def test_joint_goes_to_its_rest_value_as_far_as_the_goal_allows() -> None:
    with SessionHarness("iiwa14") as harness:
        before = float(harness.frame.values[2])
        harness.ask(SetRest(2, before + 0.5))
        frame = harness.rest()
        assert frame.values[2] > before + 0.2, "it goes towards its rest"
        assert frame.goals[0][7:].max() < 1e-5
        harness.ask(SetRest(2, None))
        assert harness.last(DofsChanged).dofs[2].rest is None


@pytest.mark.parametrize("name", ["panda", "four_bar", "hexapod", "humanoid"])
def test_named_neutral_and_random_configurations_have_closed_loops(name: str) -> None:
    with SessionHarness(name) as harness:
        for where in ("home", "random", "neutral"):
            try:
                harness.ask(GoTo(where))
            except InvalidOperation:
                assert where == "neutral", "not every mechanism can be put together near to zero"
                continue
            frame = harness.rest()
            assert frame.closures.max(initial=0.0) < 1e-8
            if where == "home":
                home = harness.session.mechanism.configurations["home"]
                assert np.abs(harness.session.q - home).max() < 1e-6
        with pytest.raises(MechanikError, match="configuration"):
            harness.ask(GoTo("nowhere"))


def test_a_hand_that_holds_nothing_is_refused() -> None:
    with SessionHarness("panda") as harness:
        number = harness.session.goals[0].number
        with pytest.raises(InvalidOperation):
            harness.drag_dof_to(0, 0.1)
        with pytest.raises(InvalidOperation):
            harness.drag_goal_to(number, harness.session.goals[0].pose)
        harness.ask(StartGoalDrag(number))
        with pytest.raises(InvalidOperation):
            harness.drag_dof_to(0, 0.1)
        harness.ask(EndDrag())
        harness.drag_goal_to(number, harness.session.goals[0].pose)  # one that was on its way when it was let go


def test_rejected_limits_are_reported_in_both_units_that_pages_show() -> None:
    with SessionHarness("panda") as harness:
        with pytest.raises(MechanikError, match=r"2\.0944 rad \(120°\).*1\.74533 rad \(100°\)"):
            harness.ask(SetLimits(0, np.radians(120.0), np.radians(100.0)))
        finger = next(k for k, dof in enumerate(harness.model.dofs) if dof.kind == "translation" and dof.mimics < 0)
        with pytest.raises(MechanikError, match=r"0\.03 m, is above the upper limit, 0\.01 m"):
            harness.ask(SetLimits(finger, 0.03, 0.01))
