"""Paths that cannot be followed: where they break, and the reason."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_singular_paths import panda_two_branches

import mechanik as mk
from mechanik.errors import NotSolved
from mechanik.motion.follow import Line, follow
from mechanik.spatial import make_pose, rotation

ARM = mk.gallery.planar_2r()  # links of 1 and 0.8 m
TIP = np.array([0.8, 0.0, 0.0])
UR5 = mk.gallery.ur5()


def follow_tip(at, count: int = 100, **options):
    return follow(ARM, mk.PositionGoal("link2", at(0.0), TIP), at, count, **options)


def shoulder_offset(radius: float) -> float:
    """Angle (rad) from the line base-tip to the first link, for a tip at `radius` (m)."""
    return float(np.arccos((1.0 + radius**2 - 0.64) / (2.0 * radius)))


@settings(max_examples=10, deadline=None)
@given(st.floats(1.85, 4.0), st.integers(10, 60))
def test_path_out_of_reach_breaks_where_the_arm_is_stretched(far, count):
    result = follow_tip(lambda s: np.array([1.0 + (far - 1.0) * s, 0.0, 0.0]), count)
    assert not result.success
    assert result.broken_at == pytest.approx(0.8 / (far - 1.0), abs=1e-5)
    assert result.reason == "out of reach"
    assert result.path.s[-1] <= result.broken_at <= result.path.s[-1] + 1.0 / (count - 1) + 1e-9


@settings(max_examples=10, deadline=None)
@given(st.floats(0.2, 1.0))
def test_break_at_a_joint_limit_names_the_joint_and_its_s(limit):
    """The tip moves on a circle of 1.2 m about the base: joint 1 is the angle minus a constant, joint 2 is constant."""
    offset = shoulder_offset(1.2)
    result = follow_tip(
        lambda s: 1.2 * np.array([np.cos(2.0 * s), np.sin(2.0 * s), 0.0]),
        limits={"joint1": (-3.0, limit), "joint2": (0.0, 3.0)},
    )
    assert result.broken_at == pytest.approx((limit + offset) / 2.0, abs=1e-6)
    assert "at a limit of joint joint1" in result.reason


def test_path_that_needs_two_branches_reports_the_interval_of_each():
    """With elbow right the first link is a constant angle behind the line to the tip, with elbow left before it."""
    offset = shoulder_offset(1.2)
    low, high = -0.5, 1.7
    result = follow_tip(
        lambda s: 1.2 * np.array([np.cos(3.0 * s - 0.6), np.sin(3.0 * s - 0.6), 0.0]),
        limits={"joint1": (low, high)},
    )
    at = [(angle + 0.6) / 3.0 for angle in (low - offset, high - offset, low + offset, high + offset)]
    assert at[0] < 0.0 < at[2] < at[1] < 1.0 < at[3]
    assert not result.success
    assert result.broken_at == pytest.approx(at[1], abs=1e-6)
    assert result.segments[0] == pytest.approx((0.0, at[1]), abs=1e-6)
    assert result.segments[1][0] == pytest.approx(at[2], abs=2e-4)
    assert result.reason.startswith("no single branch: one exists from s = 0 to")


def test_more_rotations_than_the_wrist_allows_break_at_its_limit():
    X = UR5.pose("tool0")
    result = follow(
        UR5, mk.PoseGoal("tool0", X), lambda t: X @ make_pose(rotation.exp([0.0, 0.0, 14.0 * t]), np.zeros(3)), 400
    )
    assert not result.success
    assert result.broken_at == pytest.approx(4 * np.pi / 14.0, abs=1.0 / 399)
    assert "wrist_3_joint" in result.reason


def test_configurations_that_meet_the_first_goal_may_not_reach_the_last():
    """The last branch ends between y = 0.48 and 0.5, by flood fill of 3000 samples at each of 161 values of s."""
    result = follow(mk.gallery.panda(), "panda_hand_tcp", panda_two_branches(), 300)
    assert not result.success
    assert 0.90 < result.broken_at < 0.9195
    assert result.reason.startswith("no single branch")
    assert result.segments[1][1] == 1.0


def test_first_goal_out_of_reach_gives_no_path():
    result = follow_tip(lambda s: np.array([3.0 - 2.0 * s, 0.0, 0.0]))
    assert result.path is None
    assert result.broken_at == 0.0
    assert result.reason == "out of reach"
    assert result.segments[-1] == pytest.approx((0.6, 1.0), abs=1e-2)


def test_step_above_max_step_breaks_the_path_there():
    X = UR5.pose("tool0")
    Y = X.copy()
    Y[:3, 3] += -0.2, 0.3, -0.1
    result = follow(UR5, "tool0", Line(X, Y), 11, max_step=1e-3)
    assert not result.success
    assert result.broken_at == 0.0
    assert result.reason.startswith("too fast")


def test_single_reachable_waypoint_is_not_reported_as_an_interval():
    result = follow_tip(lambda s: np.array([1.0 + 3.0 * min(s, 2.0 - 2.0 * s), 0.0, 0.0]), 3)
    assert result.reason == "out of reach"
    assert len(result.segments) == 1


def test_path_starts_at_q0_although_another_branch_leads_farther():
    """With elbow right, as in q0, the first link reaches its limit; with elbow left it would not."""
    q0 = np.array([-shoulder_offset(1.2), np.arccos((1.44 - 1.64) / 1.6)])
    result = follow_tip(
        lambda s: 1.2 * np.array([np.cos(2.0 * s), -np.sin(2.0 * s), 0.0]), q0=q0, limits={"joint1": (-1.8, 2.0)}
    )
    assert result.broken_at == pytest.approx((1.8 - shoulder_offset(1.2)) / 2.0, abs=1e-6)
    assert result.reason.startswith("no single branch")
    np.testing.assert_allclose(result.path.q[0], q0, atol=1e-6)


def test_require_raises_for_a_broken_path():
    result = follow_tip(lambda s: np.array([1.0 + 2.0 * s, 0.0, 0.0]))
    with pytest.raises(NotSolved, match=r"beyond s = 0\.4: out of reach") as caught:
        result.require()
    assert caught.value.solution is result
    assert isinstance(caught.value, NotSolved)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
