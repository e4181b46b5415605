"""Paths that keep off obstacles."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.motion.follow import Line, follow
from mechanik.spatial import make_pose, rotation

PANDA, HAND = mk.gallery.panda(), "panda_hand_tcp"
DOWN = rotation.exp([np.pi, 0.0, 0.0])
LINE = Line(*(make_pose(DOWN, np.array([0.5, y, 0.3])) for y in (-0.3, 0.3)))


@pytest.fixture(scope="module")
def free():
    return follow(PANDA, HAND, LINE, 100).require()


def test_an_elbow_goes_around_what_stands_in_its_way(free):
    elbow = PANDA.pose("panda_link4", free.q[50])[:3, 3]
    ball = Obstacle(mk.Sphere(0.04), position=elbow, name="ball")
    collider = Collider(PANDA, ["self", ball])
    assert not free.is_free(collider)
    found = follow(PANDA, HAND, LINE, 100, avoid=["self", ball]).require()
    assert found.is_free(collider)
    assert found.largest_step <= 3.0 * found.median_step
    X, wanted = PANDA.pose(HAND, found.q), LINE.sample(100)
    assert np.abs(X - wanted).max() < 1e-6


def test_what_stands_on_the_path_itself_is_named_with_the_place():
    ball = Obstacle(mk.Sphere(0.05), position=(0.5, 0.1, 0.3), name="ball")
    collider = Collider(PANDA, [ball])
    found = follow(PANDA, HAND, LINE, 100, avoid=collider)
    assert not found.success
    assert "in collision" in found.why
    assert "'ball'" in found.why
    assert 0.0 < found.broken_at < (0.1 - 0.05 + 0.3) / 0.6  # the finger tips come to the ball there at the latest
    assert found.path.is_free(collider)


def test_what_stands_at_the_first_knot_is_named_too():
    """It said that everything touches something, and not what."""
    ball = Obstacle(mk.Sphere(0.1), position=(0.5, -0.3, 0.3), name="ball")
    found = follow(PANDA, HAND, LINE, 100, avoid=[ball])
    assert found.broken_at == 0.0
    assert "in collision" in found.why
    assert "inside 'ball'" in found.why


def test_clearance_breaks_a_path_earlier():
    ball = Obstacle(mk.Sphere(0.05), position=(0.5, 0.1, 0.3), name="ball")
    collider = Collider(PANDA, [ball])
    near, far = (follow(PANDA, HAND, LINE, 100, avoid=collider, clearance=room).broken_at for room in (0.0, 0.05))
    assert far < near


@pytest.mark.parametrize("depth", [0.01, 0.03, 0.06])
def test_an_elbow_that_comes_to_a_wall_slides_along_it(depth):
    """Once it stopped there, though it was free to go elsewhere: so did the spare arm of a person at a table."""
    arm, q0 = mk.gallery.planar_3r(), np.array([0.9, -0.8, -0.6])
    tip = arm.pose("tool", q0)[:3, 3]
    goals = [mk.PositionGoal("tool", tip, name="tip"), mk.PositionGoal("link0", (0.0, 0.0, 0.0), name="foot")]

    def way(s: float) -> dict[str, np.ndarray]:
        return {"tip": tip + s * np.array([-0.8, -0.3, 0.0])}

    free = follow(arm, goals, way, 40, q0=q0).require()
    highest = arm.poses(free.q, ["link2", "link3"])[..., 1, 3].max()
    wall = Obstacle(mk.Box((6.0, 0.1, 1.0)), (0.0, highest - depth + 0.08, 0.0), name="wall")
    collider = Collider(arm, [wall])
    assert collider.is_free(q0, 0.005)
    assert not free.is_free(collider, 0.005)
    found = follow(arm, goals, way, 40, q0=q0, avoid=collider, clearance=0.005).require()
    assert found.is_free(collider, 0.005)
    np.testing.assert_allclose(found.q[0], q0, atol=1e-6)
    wanted = np.array([way(s)["tip"] for s in found.s])
    np.testing.assert_allclose(arm.pose("tool", found.q)[:, :3, 3], wanted, atol=1e-6)
    assert found.largest_step <= 3.0 * found.median_step


def test_what_cannot_go_aside_is_still_said_to_collide():
    """The ball stands on the way of the tip itself."""
    arm, q0 = mk.gallery.planar_3r(), np.array([0.9, -0.8, -0.6])
    tip = arm.pose("tool", q0)[:3, 3]
    goals = [mk.PositionGoal("tool", tip, name="tip"), mk.PositionGoal("link0", (0.0, 0.0, 0.0), name="foot")]
    step = np.array([-0.8, -0.3, 0.0])
    ball = Obstacle(mk.Sphere(0.05), tip + 0.5 * step, name="ball")
    found = follow(arm, goals, lambda s: {"tip": tip + s * step}, 40, q0=q0, avoid=[ball])
    assert not found.success
    assert "in collision" in found.why
    assert "'ball'" in found.why
    assert 0.3 < found.broken_at < 0.5
