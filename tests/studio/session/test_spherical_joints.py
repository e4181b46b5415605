"""Spherical joints that are set or dragged by three numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.spatial import quaternion
from mechanik.studio.messages.requests import EndDrag, SetDofValue, SetJointRotation, SetLocked, StartJointDrag, Undo

vectors = st.tuples(*[st.floats(-1.8, 1.8)] * 3)  # none is longer than pi, so that it reads as it was given


def desk_of_balls() -> SessionHarness:
    """Two balls in a row, with a goal at the tip."""
    arm = mk.Builder("balls")
    arm.spherical("ball1", "base", "upper", at=(0.0, 0.0, 0.2))
    arm.spherical("ball2", "upper", "lower", at=(0.0, 0.0, 0.4))
    arm.fixed("tip_fix", "lower", "tip", at=(0.0, 0.0, 0.3))
    harness = SessionHarness()
    harness.session.open(arm.build())
    harness.rest()
    return harness


def turn_of(harness: SessionHarness, name: str) -> np.ndarray:
    at = harness.model.dofs[harness.dof_index(name)].value
    return harness.rest().values[at : at + 3]


@settings(deadline=None, max_examples=20)
@given(vectors)
def test_a_ball_stands_where_its_three_numbers_say(turn: tuple[float, float, float]) -> None:
    with desk_of_balls() as harness:
        before = np.array(harness.session.q)
        harness.ask(SetJointRotation(harness.dof_index("ball2"), turn))
        np.testing.assert_allclose(turn_of(harness, "ball2"), turn, atol=1e-9)
        np.testing.assert_allclose(turn_of(harness, "ball1"), 0.0, atol=1e-9)
        harness.ask(Undo())
        np.testing.assert_array_equal(harness.session.q, before)


@settings(deadline=None, max_examples=10)
@given(vectors)
def test_a_hand_that_has_a_ball_turns_it_to_where_it_lets_go(turn: tuple[float, float, float]) -> None:
    with desk_of_balls() as harness:
        number = harness.dof_index("ball1")
        before = np.array(harness.session.q)
        harness.ask(StartJointDrag(number))
        for share in (0.5, 1.0):
            harness.drag_dof_to(number, *(share * angle for angle in turn))
            harness.answered()
        harness.ask(EndDrag())
        np.testing.assert_allclose(turn_of(harness, "ball1"), turn, atol=1e-9)
        if np.linalg.norm(turn) > 1e-6:
            harness.ask(Undo())
            np.testing.assert_array_equal(harness.session.q, before)


def test_rotation_longer_than_half_a_turn_equals_the_shorter_one_in_the_opposite_direction() -> None:
    with desk_of_balls() as harness:
        harness.ask(SetJointRotation(harness.dof_index("ball1"), (3.0, 2.0, 0.0)))
        there = quaternion.exp(turn_of(harness, "ball1"))
        assert float(quaternion.angle_between(there, quaternion.exp([3.0, 2.0, 0.0]))) < 1e-7


def test_the_turn_of_a_body_that_floats_leaves_its_place_alone() -> None:
    made = mk.Builder("body")
    made.free("float", "world", "body")
    body = made.build()
    body.q = [0.1, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0]
    with SessionHarness() as harness:
        harness.session.open(body)
        harness.rest()
        harness.ask(SetJointRotation(harness.dof_index("float.rotation"), (0.3, -0.2, 0.5)))
        np.testing.assert_allclose(turn_of(harness, "float.rotation"), (0.3, -0.2, 0.5), atol=1e-9)
        np.testing.assert_allclose(harness.session.q[:3], (0.1, 0.2, 0.3), atol=1e-9)


def test_loops_stay_closed_while_a_platform_is_rotated_by_numbers() -> None:
    with SessionHarness("stewart_platform") as harness:
        name = "platform_joint.rotation"
        wanted = turn_of(harness, name) + np.array([0.05, 0.04, 0.1])
        harness.ask(SetJointRotation(harness.dof_index(name), (float(wanted[0]), float(wanted[1]), float(wanted[2]))))
        np.testing.assert_allclose(turn_of(harness, name), wanted, atol=1e-6)
        assert harness.frame.closures.max() < 1e-8


def test_one_number_is_not_taken_for_a_ball_nor_three_for_a_hinge() -> None:
    with desk_of_balls() as harness:
        with pytest.raises(InvalidOperation, match="three numbers"):
            harness.ask(SetDofValue(harness.dof_index("ball1"), 0.1))
        harness.ask(SetLocked(harness.dof_index("ball1"), True))
        with pytest.raises(InvalidOperation, match="locked"):
            harness.ask(SetJointRotation(harness.dof_index("ball1"), (0.1, 0.0, 0.0)))
    with SessionHarness("panda") as harness, pytest.raises(InvalidOperation, match="one number"):
        harness.ask(SetJointRotation(0, (0.1, 0.0, 0.0)))
    with SessionHarness("stewart_platform") as harness, pytest.raises(InvalidOperation, match="closes a loop"):
        harness.ask(SetJointRotation(harness.dof_index("leg1_ball"), (0.1, 0.0, 0.0)))
