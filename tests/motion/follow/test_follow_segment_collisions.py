"""Followed paths are collision-free between their waypoints too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.errors import InvalidArgument, StructureError
from mechanik.motion.follow import Line, follow
from mechanik.spatial import make_pose, rotation

PANDA, TIP = mk.gallery.panda(), "panda_hand_tcp"
DOWN = rotation.exp([np.pi, 0.0, 0.0])
LINE = Line(*(make_pose(DOWN, np.array([0.5, y, 0.3])) for y in (-0.3, 0.3)))


def wall(y: float) -> Obstacle:
    """A wall 5 mm thick across the line."""
    return Obstacle(mk.Box((0.3, 0.005, 0.3)), (0.5, y, 0.3), name="wall")


@settings(max_examples=4, deadline=None)
@given(st.floats(-0.1, 0.1), st.integers(2, 6))
def test_wall_between_two_waypoints_breaks_the_path(y, count):
    collider = Collider(PANDA, [wall(y)])
    result = follow(PANDA, TIP, LINE, count, avoid=collider)
    assert not result.success
    assert "in collision" in result.reason
    assert "'wall'" in result.reason
    assert result.broken_at < (y + 0.3) / 0.6
    assert result.path.is_free(collider)
    assert collider.is_free(result.last_q)


@settings(max_examples=4, deadline=None)
@given(st.integers(2, 40))
def test_followed_path_is_free_with_any_number_of_waypoints(count):
    ball = Obstacle(mk.Sphere(0.05), (0.42, 0.0, 0.62), name="ball")
    collider = Collider(PANDA, ["self", ball])
    result = follow(PANDA, TIP, LINE, count, avoid=collider)
    assert result.path is not None
    assert result.path.is_free(collider)


def test_straight_segment_through_an_obstacle_is_reported():
    """The goals lead around the ball; the straight segment between two waypoints does not."""
    arm = mk.gallery.planar_2r()
    arm.links["link2"].collisions = (mk.ShapeInstance(mk.Sphere(0.01), mk.Pose((0.8, 0.0, 0.0))),)

    def around(s: float) -> np.ndarray:
        angle = np.pi * s
        return np.array([1.2 + 0.3 * np.sin(angle), -0.3 * np.cos(angle), 0.0])

    ball = Obstacle(mk.Sphere(0.25), (1.2, 0.0, 0.0), name="ball")
    collider = Collider(arm, [ball])
    goal = mk.PositionGoal("link2", around(0.0), (0.8, 0.0, 0.0))
    coarse = follow(arm, goal, around, 3, avoid=collider)
    assert not coarse.success
    assert coarse.reason.startswith("in collision between two waypoints: 'link2'")
    assert 0.0 < coarse.broken_at < 0.5
    assert collider.is_free(coarse.last_q)
    fine = follow(arm, goal, around, 60, avoid=collider).require()
    assert fine.is_free(collider)


def test_collision_between_waypoints_is_checked_with_closed_loops():
    bar = mk.gallery.four_bar()
    crank = next(iter(bar.joints))
    start = float(bar.values()[crank])
    q_middle = mk.solve(bar, mk.JointValues({crank: start + 0.6}), q0=bar.q).require().q
    collider = Collider(bar, [Obstacle(mk.Sphere(0.02), bar.pose("coupler", q_middle)[:3, 3], name="ball")])
    assert collider.is_free(bar.q)
    goal = mk.JointValues({crank: start}, angle_mode="exact")
    result = follow(bar, goal, lambda s: {crank: start + 1.2 * s}, 2, q0=bar.q, avoid=collider)
    assert not result.success
    assert "'ball'" in result.reason
    assert 0.0 < result.broken_at < 0.5
    assert collider.is_free(result.last_q)
    np.testing.assert_allclose(result.path.q[0], bar.q, atol=1e-6)  # it once started in the other assembly mode


def test_start_in_collision_is_reported():
    bar = mk.gallery.four_bar()
    crank = next(iter(bar.joints))
    start = float(bar.values()[crank])
    ball = Obstacle(mk.Sphere(0.02), bar.pose("coupler")[:3, 3], name="ball")
    goal = mk.JointValues({crank: start}, angle_mode="exact")
    result = follow(bar, goal, lambda s: {crank: start + 1.2 * s}, 5, q0=bar.q, avoid=[ball])
    assert result.path is None
    assert result.broken_at == 0.0
    assert result.reason.startswith("in collision at the start")
    assert "'ball'" in result.reason


def test_collider_of_another_mechanism_raises():
    with pytest.raises(StructureError, match="another mechanism"):
        follow(PANDA, TIP, LINE, 9, avoid=Collider(mk.gallery.ur5()))


def test_allow_and_forbid_with_a_collider_raise():
    with pytest.raises(InvalidArgument, match="allow and forbid"):
        follow(PANDA, TIP, LINE, 9, avoid=Collider(PANDA), allow=[("panda_hand", "panda_link5")])
