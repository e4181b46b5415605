"""Following with collision avoidance."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.motion.follow import Line, follow
from mechanik.spatial import make_pose, rotation

PANDA, TIP = mk.gallery.panda(), "panda_hand_tcp"
DOWN = rotation.exp([np.pi, 0.0, 0.0])
LINE = Line(*(make_pose(DOWN, np.array([0.5, y, 0.3])) for y in (-0.3, 0.3)))


@pytest.fixture(scope="module")
def free_path():
    return follow(PANDA, TIP, LINE, 100).require()


def test_elbow_avoids_an_obstacle(free_path):
    elbow = PANDA.pose("panda_link4", free_path.q[50])[:3, 3]
    ball = Obstacle(mk.Sphere(0.04), position=elbow, name="ball")
    collider = Collider(PANDA, ["self", ball])
    assert not free_path.is_free(collider)
    result = follow(PANDA, TIP, LINE, 100, avoid=["self", ball]).require()
    assert result.is_free(collider)
    assert result.largest_step <= 3.0 * result.median_step
    X, expected = PANDA.pose(TIP, result.q), LINE.sample(100)
    assert np.abs(X - expected).max() < 1e-6


def test_obstacle_on_the_path_is_named_with_its_s():
    ball = Obstacle(mk.Sphere(0.05), position=(0.5, 0.1, 0.3), name="ball")
    collider = Collider(PANDA, [ball])
    result = follow(PANDA, TIP, LINE, 100, avoid=collider)
    assert not result.success
    assert "in collision" in result.reason
    assert "'ball'" in result.reason
    assert 0.0 < result.broken_at < (0.1 - 0.05 + 0.3) / 0.6  # the fingertips touch the ball there at the latest
    assert result.path.is_free(collider)


def test_obstacle_at_the_first_waypoint_is_named():
    """The reason once did not name the obstacle."""
    ball = Obstacle(mk.Sphere(0.1), position=(0.5, -0.3, 0.3), name="ball")
    result = follow(PANDA, TIP, LINE, 100, avoid=[ball])
    assert result.broken_at == 0.0
    assert "in collision" in result.reason
    assert "inside 'ball'" in result.reason


def test_larger_clearance_breaks_the_path_earlier():
    ball = Obstacle(mk.Sphere(0.05), position=(0.5, 0.1, 0.3), name="ball")
    collider = Collider(PANDA, [ball])
    near, far = (
        follow(PANDA, TIP, LINE, 100, avoid=collider, clearance=clearance).broken_at for clearance in (0.0, 0.05)
    )
    assert far < near


@pytest.mark.parametrize("depth", [0.01, 0.03, 0.06])
def test_elbow_slides_along_a_wall(depth):
    """The elbow once stopped at the wall although redundancy allowed it to move on."""
    arm, q0 = mk.gallery.planar_3r(), np.array([0.9, -0.8, -0.6])
    tip = arm.pose("tool", q0)[:3, 3]
    goals = [mk.PositionGoal("tool", tip, name="tip"), mk.PositionGoal("link0", (0.0, 0.0, 0.0), name="foot")]

    def tip_target(s: float) -> dict[str, np.ndarray]:
        return {"tip": tip + s * np.array([-0.8, -0.3, 0.0])}

    free_path = follow(arm, goals, tip_target, 40, q0=q0).require()
    highest = arm.poses(free_path.q, ["link2", "link3"])[..., 1, 3].max()
    wall = Obstacle(mk.Box((6.0, 0.1, 1.0)), (0.0, highest - depth + 0.08, 0.0), name="wall")
    collider = Collider(arm, [wall])
    assert collider.is_free(q0, 0.005)
    assert not free_path.is_free(collider, 0.005)
    result = follow(arm, goals, tip_target, 40, q0=q0, avoid=collider, clearance=0.005).require()
    assert result.is_free(collider, 0.005)
    np.testing.assert_allclose(result.q[0], q0, atol=1e-6)
    expected = np.array([tip_target(s)["tip"] for s in result.s])
    np.testing.assert_allclose(arm.pose("tool", result.q)[:, :3, 3], expected, atol=1e-6)
    assert result.largest_step <= 3.0 * result.median_step


def test_unavoidable_collision_is_reported():
    """The ball is on the path of the tip."""
    arm, q0 = mk.gallery.planar_3r(), np.array([0.9, -0.8, -0.6])
    tip = arm.pose("tool", q0)[:3, 3]
    goals = [mk.PositionGoal("tool", tip, name="tip"), mk.PositionGoal("link0", (0.0, 0.0, 0.0), name="foot")]
    step = np.array([-0.8, -0.3, 0.0])
    ball = Obstacle(mk.Sphere(0.05), tip + 0.5 * step, name="ball")
    result = follow(arm, goals, lambda s: {"tip": tip + s * step}, 40, q0=q0, avoid=[ball])
    assert not result.success
    assert "in collision" in result.reason
    assert "'ball'" in result.reason
    assert 0.3 < result.broken_at < 0.5
