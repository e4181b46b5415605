"""Joints that are dragged, set, limited, locked: pins and loops hold, and what is not pinned comes along."""

from __future__ import annotations

import numpy as np
import pytest
from session_desk import Desk

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
    with Desk("panda") as desk:
        before, goal = desk.session.q.copy(), desk.session.goals[0]
        value = desk.frame.values[0] + 0.4
        frame = desk.turn(0, value)
        assert frame.values[0] == pytest.approx(value, abs=1e-6)
        assert np.abs(desk.session.q[1:] - before[1:]).max() < 1e-9, "the others stay"
        assert frame.goals[0][7:].max() < 1e-6, "the goal is where its link is"
        assert desk.session.goals[0].pose != goal.pose
        assert desk.last(History).undo == "turn panda_joint1"
        desk.ask(Undo())
        assert np.array_equal(desk.session.q, before)
        assert desk.session.goals[0].pose == goal.pose


def test_while_a_joint_is_dragged_the_frames_carry_the_goals_along() -> None:
    with Desk("ur5") as desk:
        desk.ask(StartJointDrag(0))
        desk.drag_dof_to(0, desk.frame.values[0] + 0.3)
        frame = desk.answered()
        tip = desk.session.mechanism.pose("tool0", desk.session.q)
        assert np.allclose(frame.goals[0][:3], tip[:3, 3], atol=1e-9)
        assert frame.goals[0][7:].max() < 1e-9


@pytest.mark.parametrize(("name", "joint"), [("four_bar", "crank_joint"), ("delta_robot", None), ("jansen_leg", None)])
def test_loops_stay_closed_while_a_joint_is_dragged(name: str, joint: str | None) -> None:
    with Desk(name) as desk:
        drive = joint or mk.structure(desk.session.mechanism).inputs[0]
        number = desk.dof_index(drive)
        value = desk.frame.values[desk.model.dofs[number].value] + 0.25
        frame = desk.turn(number, value)
        assert frame.values[desk.model.dofs[number].value] == pytest.approx(value, abs=1e-6)
        assert frame.closures.max() < 1e-8


def test_a_joint_that_closes_a_loop_can_be_dragged_too() -> None:
    with Desk("four_bar") as desk:
        number = desk.dof_index("closing_joint")
        at = desk.model.dofs[number].value
        value = desk.frame.values[at] + 0.1
        frame = desk.turn(number, value)
        assert frame.values[at] == pytest.approx(value, abs=1e-6)
        assert frame.closures.max() < 1e-8


def test_pins_hold_while_a_joint_is_dragged() -> None:
    with Desk("iiwa14") as desk:
        tip = desk.session.goals[0].link
        desk.ask(AddGoal("pose", tip, pinned=True))
        before = desk.session.mechanism.pose(tip, desk.session.q)
        value = desk.frame.values[2] + 0.2
        frame = desk.turn(2, value)
        assert np.abs(desk.session.mechanism.pose(tip, desk.session.q) - before).max() < 1e-5
        assert frame.values[2] == pytest.approx(value, abs=1e-5), "seven joints leave it one freedom"


def test_a_link_that_is_pulled_follows_and_the_pull_is_gone_afterwards() -> None:
    with Desk("humanoid") as desk:
        feet = [goal for goal in desk.session.goals if goal.pinned]
        numbers = [goal.number for goal in desk.session.goals]
        link = "left_forearm" if "left_forearm" in desk.session.mechanism.links else "left_hand"
        desk.ask(StartLinkDrag(link, (0.0, 0.0, 0.0)))
        pull = desk.session.goals[-1]
        assert pull.number == LINK_DRAG_GOAL
        assert desk.goals.goals[-1].is_link_drag
        desk.drag_goal_to(LINK_DRAG_GOAL, [pull.pose[0] + 0.05, pull.pose[1], pull.pose[2] + 0.02, *pull.pose[3:]])
        frame = desk.answered()
        assert frame.goals[-1][7] < 1e-4, "the link comes"
        for row, goal in zip(frame.goals, desk.session.goals, strict=True):
            if goal in feet:
                assert row[7:].max() < 1e-5, "the feet stay"
        desk.ask(EndDrag())
        assert [goal.number for goal in desk.session.goals] == numbers
        assert desk.rest().goals[:, 7:].max() < 1e-5


@pytest.mark.parametrize("name", ["panda", "four_bar", "gripper", "rover"])
def test_a_number_sets_a_joint_and_what_follows_it(name: str) -> None:
    with Desk(name) as desk:
        q = desk.session.q.copy()
        for number, dof in enumerate(desk.model.dofs):
            if dof.kind == "spherical":
                with pytest.raises(InvalidOperation, match="spherical joint"):
                    desk.ask(SetDofValue(number, 0.1))
                continue
            value = float(desk.frame.values[dof.value]) + (0.02 if dof.kind == "translation" else 0.05)
            value = min(max(value, dof.lower or -np.inf), np.inf if dof.upper is None else dof.upper)
            try:
                desk.ask(SetDofValue(number, value))
            except InvalidOperation:
                continue  # a joint that has several rotations and closes a loop
            frame = desk.rest()
            assert frame.closures.max(initial=0.0) < 1e-8
            if dof.mimics < 0 and not desk.session.mechanism.closures:
                assert frame.values[dof.value] == pytest.approx(value, abs=1e-6), dof.name
            desk.ask(Undo())
        assert np.array_equal(desk.session.q, q)


def test_a_follower_moves_its_leader() -> None:
    with Desk("panda") as desk:
        follower = next(k for k, dof in enumerate(desk.model.dofs) if dof.mimics >= 0)
        leader = desk.model.dofs[follower].mimics
        desk.ask(SetDofValue(follower, 0.01))
        values = desk.rest().values
        assert values[desk.model.dofs[follower].value] == pytest.approx(0.01, abs=1e-9)
        assert values[desk.model.dofs[leader].value] == pytest.approx(0.01, abs=1e-9)
        with pytest.raises(InvalidOperation, match="follows"):
            desk.ask(SetLocked(follower, True))


def test_limits_bring_the_joint_inside_and_undo_gives_them_back() -> None:
    with Desk("panda") as desk:
        dof, q = desk.model.dofs[0], desk.session.q.copy()
        desk.ask(SetLimits(0, 0.3, 0.5))
        assert desk.last(DofsChanged).dofs[0].lower == 0.3
        frame = desk.rest()
        assert 0.3 <= frame.values[0] <= 0.5
        desk.ask(Undo())
        assert desk.last(DofsChanged).dofs[0] == dof
        assert np.array_equal(desk.session.q, q)
        desk.ask(Redo())
        assert desk.session.mechanism.joints["panda_joint1"].limits("EZ") == (0.3, 0.5)


def test_what_is_locked_does_not_move() -> None:
    with Desk("iiwa14") as desk:
        value = float(desk.frame.values[1])
        desk.ask(SetLocked(1, True))
        frame = desk.drag(desk.session.goals[0].number, (0.03, 0.02, -0.03))
        assert frame.values[1] == pytest.approx(value, abs=1e-12)
        with pytest.raises(InvalidOperation, match="locked"):
            desk.ask(StartJointDrag(1))
        desk.ask(SetLocked(1, False))
        frame = desk.drag(desk.session.goals[0].number, (0.03, 0.02, -0.03))
        assert frame.values[1] != pytest.approx(value, abs=1e-6)


def test_joint_goes_to_its_rest_value_as_far_as_the_goal_allows() -> None:
    with Desk("iiwa14") as desk:
        before = float(desk.frame.values[2])
        desk.ask(SetRest(2, before + 0.5))
        frame = desk.rest()
        assert frame.values[2] > before + 0.2, "it goes towards its rest"
        assert frame.goals[0][7:].max() < 1e-5
        desk.ask(SetRest(2, None))
        assert desk.last(DofsChanged).dofs[2].rest is None


@pytest.mark.parametrize("name", ["panda", "four_bar", "hexapod", "humanoid"])
def test_named_neutral_and_random_configurations_have_closed_loops(name: str) -> None:
    with Desk(name) as desk:
        for where in ("home", "random", "neutral"):
            try:
                desk.ask(GoTo(where))
            except InvalidOperation:
                assert where == "neutral", "not every mechanism can be put together near to zero"
                continue
            frame = desk.rest()
            assert frame.closures.max(initial=0.0) < 1e-8
            if where == "home":
                home = desk.session.mechanism.configurations["home"]
                assert np.abs(desk.session.q - home).max() < 1e-6
        with pytest.raises(MechanikError, match="configuration"):
            desk.ask(GoTo("nowhere"))


def test_a_hand_that_holds_nothing_is_refused() -> None:
    with Desk("panda") as desk:
        number = desk.session.goals[0].number
        with pytest.raises(InvalidOperation):
            desk.drag_dof_to(0, 0.1)
        with pytest.raises(InvalidOperation):
            desk.drag_goal_to(number, desk.session.goals[0].pose)
        desk.ask(StartGoalDrag(number))
        with pytest.raises(InvalidOperation):
            desk.drag_dof_to(0, 0.1)
        desk.ask(EndDrag())
        desk.drag_goal_to(number, desk.session.goals[0].pose)  # one that was on its way when it was let go


def test_rejected_limits_are_reported_in_both_units_that_pages_show() -> None:
    with Desk("panda") as desk:
        with pytest.raises(MechanikError, match=r"2\.0944 rad \(120°\).*1\.74533 rad \(100°\)"):
            desk.ask(SetLimits(0, np.radians(120.0), np.radians(100.0)))
        finger = next(k for k, dof in enumerate(desk.model.dofs) if dof.kind == "translation" and dof.mimics < 0)
        with pytest.raises(MechanikError, match=r"0\.03 m, is above the upper, 0\.01 m"):
            desk.ask(SetLimits(finger, 0.03, 0.01))
