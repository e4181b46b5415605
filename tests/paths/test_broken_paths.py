"""Paths that cannot be followed: where they break, and why."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hard_paths import panda_two_sheets
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import NotSolved, PathNotFollowed
from mechanik.motion.follow import Line, follow
from mechanik.spatial import make_pose, rotation

ARM = mk.gallery.planar_2r()  # links of 1 and 0.8 m
TIP = np.array([0.8, 0.0, 0.0])
UR5 = mk.gallery.ur5()


def reach(at, count: int = 100, **options):
    return follow(ARM, mk.PositionGoal("link2", at(0.0), TIP), at, count, **options)


def angles(radius: float) -> float:
    """Of the first link against the line to a tip that far away."""
    return float(np.arccos((1.0 + radius**2 - 0.64) / (2.0 * radius)))


@settings(max_examples=10, deadline=None)
@given(st.floats(1.85, 4.0), st.integers(10, 60))
def test_a_way_out_of_reach_breaks_where_the_arm_is_stretched(far, count):
    found = reach(lambda s: np.array([1.0 + (far - 1.0) * s, 0.0, 0.0]), count)
    assert not found.success
    assert found.broken_at == pytest.approx(0.8 / (far - 1.0), abs=1e-5)
    assert found.why == "out of reach"
    assert found.path.s[-1] <= found.broken_at <= found.path.s[-1] + 1.0 / (count - 1) + 1e-9


@settings(max_examples=10, deadline=None)
@given(st.floats(0.2, 1.0))
def test_a_joint_that_comes_to_its_limit_is_named_with_the_place(limit):
    """The tip goes round at 1.2 m from the base: each joint is a constant beside the angle, or constant."""
    turn = angles(1.2)
    found = reach(
        lambda s: 1.2 * np.array([np.cos(2.0 * s), np.sin(2.0 * s), 0.0]),
        limits={"joint1": (-3.0, limit), "joint2": (0.0, 3.0)},
    )
    assert found.broken_at == pytest.approx((limit + turn) / 2.0, abs=1e-6)
    assert "at a limit of joint joint1" in found.why


def test_a_path_that_needs_two_branches_says_where_each_can_be_followed():
    """Elbow right the first link stands a constant behind the line to the tip, elbow left as far before it."""
    turn = angles(1.2)
    low, high = -0.5, 1.7
    found = reach(
        lambda s: 1.2 * np.array([np.cos(3.0 * s - 0.6), np.sin(3.0 * s - 0.6), 0.0]),
        limits={"joint1": (low, high)},
    )
    at = [(angle + 0.6) / 3.0 for angle in (low - turn, high - turn, low + turn, high + turn)]
    assert at[0] < 0.0 < at[2] < at[1] < 1.0 < at[3]
    assert not found.success
    assert found.broken_at == pytest.approx(at[1], abs=1e-6)
    assert found.segments[0] == pytest.approx((0.0, at[1]), abs=1e-6)
    assert found.segments[1][0] == pytest.approx(at[2], abs=2e-4)
    assert found.why.startswith("no single branch: one is there from s = 0 to")


def test_turning_more_often_than_a_wrist_can_breaks_where_it_has_turned_all_it_can():
    X = UR5.pose("tool0")
    found = follow(
        UR5, mk.PoseGoal("tool0", X), lambda t: X @ make_pose(rotation.exp([0.0, 0.0, 14.0 * t]), np.zeros(3)), 400
    )
    assert not found.success
    assert found.broken_at == pytest.approx(4 * np.pi / 14.0, abs=1.0 / 399)
    assert "wrist_3_joint" in found.why


def test_configurations_that_fit_the_start_may_not_reach_the_end():
    """Between y = 0.48 and 0.5 the last of them ends: so says a flood of 3000 samples at each of 161 places."""
    found = follow(mk.gallery.panda(), "panda_hand_tcp", panda_two_sheets(), 300)
    assert not found.success
    assert 0.90 < found.broken_at < 0.9195
    assert found.why.startswith("no single branch")
    assert found.segments[1][1] == 1.0


def test_what_is_out_of_reach_from_the_start_has_no_path():
    found = reach(lambda s: np.array([3.0 - 2.0 * s, 0.0, 0.0]))
    assert found.path is None
    assert found.broken_at == 0.0
    assert found.why == "out of reach"
    assert found.segments[-1] == pytest.approx((0.6, 1.0), abs=1e-2)


def test_a_step_that_is_too_long_is_named_with_the_place():
    X = UR5.pose("tool0")
    Y = X.copy()
    Y[:3, 3] += -0.2, 0.3, -0.1
    found = follow(UR5, "tool0", Line(X, Y), 11, max_step=1e-3)
    assert not found.success
    assert found.broken_at == 0.0
    assert found.why.startswith("too fast")


def test_a_single_knot_that_is_in_reach_again_is_no_part():
    found = reach(lambda s: np.array([1.0 + 3.0 * min(s, 2.0 - 2.0 * s), 0.0, 0.0]), 3)
    assert found.why == "out of reach"
    assert len(found.segments) == 1


def test_where_it_stands_is_not_left_by_a_jump_to_a_branch_that_leads_farther():
    """Elbow right the first link comes to its limit; elbow left it would not, but there it does not stand."""
    q0 = np.array([-angles(1.2), np.arccos((1.44 - 1.64) / 1.6)])
    found = reach(
        lambda s: 1.2 * np.array([np.cos(2.0 * s), -np.sin(2.0 * s), 0.0]), q0=q0, limits={"joint1": (-1.8, 2.0)}
    )
    assert found.broken_at == pytest.approx((1.8 - angles(1.2)) / 2.0, abs=1e-6)
    assert found.why.startswith("no single branch")
    np.testing.assert_allclose(found.path.q[0], q0, atol=1e-6)


def test_a_broken_path_can_be_required_no_more():
    found = reach(lambda s: np.array([1.0 + 2.0 * s, 0.0, 0.0]))
    with pytest.raises(PathNotFollowed, match=r"beyond s = 0\.4: out of reach") as caught:
        found.require()
    assert caught.value.solution is found
    assert isinstance(caught.value, NotSolved)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
