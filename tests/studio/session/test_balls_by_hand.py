"""Balls that are turned by three numbers, or by a hand that has three."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_desk import Desk

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.spatial import quaternion
from mechanik.studio.messages.requests import EndDrag, SetDofValue, SetJointRotation, SetLocked, StartJointDrag, Undo

vectors = st.tuples(*[st.floats(-1.8, 1.8)] * 3)  # none is longer than pi, so that it reads as it was given


def desk_of_balls() -> Desk:
    """Two balls in a row, with a goal at the tip."""
    arm = mk.Builder("balls")
    arm.spherical("ball1", "base", "upper", at=(0.0, 0.0, 0.2))
    arm.spherical("ball2", "upper", "lower", at=(0.0, 0.0, 0.4))
    arm.fixed("tip_fix", "lower", "tip", at=(0.0, 0.0, 0.3))
    desk = Desk()
    desk.session.open(arm.build())
    desk.rest()
    return desk


def turn_of(desk: Desk, name: str) -> np.ndarray:
    at = desk.model.dofs[desk.dof_index(name)].value
    return desk.rest().values[at : at + 3]


@settings(deadline=None, max_examples=20)
@given(vectors)
def test_a_ball_stands_where_its_three_numbers_say(turn: tuple[float, float, float]) -> None:
    with desk_of_balls() as desk:
        before = np.array(desk.session.q)
        desk.ask(SetJointRotation(desk.dof_index("ball2"), turn))
        np.testing.assert_allclose(turn_of(desk, "ball2"), turn, atol=1e-9)
        np.testing.assert_allclose(turn_of(desk, "ball1"), 0.0, atol=1e-9)
        desk.ask(Undo())
        np.testing.assert_array_equal(desk.session.q, before)


@settings(deadline=None, max_examples=10)
@given(vectors)
def test_a_hand_that_has_a_ball_turns_it_to_where_it_lets_go(turn: tuple[float, float, float]) -> None:
    with desk_of_balls() as desk:
        number = desk.dof_index("ball1")
        before = np.array(desk.session.q)
        desk.ask(StartJointDrag(number))
        for share in (0.5, 1.0):
            desk.drag_dof_to(number, *(share * angle for angle in turn))
            desk.answered()
        desk.ask(EndDrag())
        np.testing.assert_allclose(turn_of(desk, "ball1"), turn, atol=1e-9)
        if np.linalg.norm(turn) > 1e-6:
            desk.ask(Undo())
            np.testing.assert_array_equal(desk.session.q, before)


def test_rotation_longer_than_half_a_turn_equals_the_shorter_one_in_the_opposite_direction() -> None:
    with desk_of_balls() as desk:
        desk.ask(SetJointRotation(desk.dof_index("ball1"), (3.0, 2.0, 0.0)))
        there = quaternion.exp(turn_of(desk, "ball1"))
        assert float(quaternion.angle_between(there, quaternion.exp([3.0, 2.0, 0.0]))) < 1e-7


def test_the_turn_of_a_body_that_floats_leaves_its_place_alone() -> None:
    made = mk.Builder("body")
    made.free("float", "world", "body")
    body = made.build()
    body.q = [0.1, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0]
    with Desk() as desk:
        desk.session.open(body)
        desk.rest()
        desk.ask(SetJointRotation(desk.dof_index("float.turn"), (0.3, -0.2, 0.5)))
        np.testing.assert_allclose(turn_of(desk, "float.turn"), (0.3, -0.2, 0.5), atol=1e-9)
        np.testing.assert_allclose(desk.session.q[:3], (0.1, 0.2, 0.3), atol=1e-9)


def test_loops_stay_closed_while_a_platform_is_rotated_by_numbers() -> None:
    with Desk("stewart_platform") as desk:
        name = "platform_joint.turn"
        wanted = turn_of(desk, name) + np.array([0.05, 0.04, 0.1])
        desk.ask(SetJointRotation(desk.dof_index(name), (float(wanted[0]), float(wanted[1]), float(wanted[2]))))
        np.testing.assert_allclose(turn_of(desk, name), wanted, atol=1e-6)
        assert desk.frame.closures.max() < 1e-8


def test_one_number_is_not_taken_for_a_ball_nor_three_for_a_hinge() -> None:
    with desk_of_balls() as desk:
        with pytest.raises(InvalidOperation, match="three numbers"):
            desk.ask(SetDofValue(desk.dof_index("ball1"), 0.1))
        desk.ask(SetLocked(desk.dof_index("ball1"), True))
        with pytest.raises(InvalidOperation, match="locked"):
            desk.ask(SetJointRotation(desk.dof_index("ball1"), (0.1, 0.0, 0.0)))
    with Desk("panda") as desk, pytest.raises(InvalidOperation, match="one number"):
        desk.ask(SetJointRotation(0, (0.1, 0.0, 0.0)))
    with Desk("stewart_platform") as desk, pytest.raises(InvalidOperation, match="closes a loop"):
        desk.ask(SetJointRotation(desk.dof_index("leg1_ball"), (0.1, 0.0, 0.0)))
