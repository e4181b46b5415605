"""Paths are free of collisions between their knots too."""

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

PANDA, HAND = mk.gallery.panda(), "panda_hand_tcp"
DOWN = rotation.exp([np.pi, 0.0, 0.0])
LINE = Line(*(make_pose(DOWN, np.array([0.5, y, 0.3])) for y in (-0.3, 0.3)))


def wall(y: float) -> Obstacle:
    """5 mm thick, across the line."""
    return Obstacle(mk.Box((0.3, 0.005, 0.3)), (0.5, y, 0.3), name="wall")


@settings(max_examples=4, deadline=None)
@given(st.floats(-0.1, 0.1), st.integers(2, 6))
def test_a_wall_between_two_knots_is_not_passed(y, count):
    collider = Collider(PANDA, [wall(y)])
    found = follow(PANDA, HAND, LINE, count, avoid=collider)
    assert not found.success
    assert "in collision" in found.why
    assert "'wall'" in found.why
    assert found.broken_at < (y + 0.3) / 0.6
    assert found.path.is_free(collider)
    assert collider.is_free(found.last_q)


@settings(max_examples=4, deadline=None)
@given(st.integers(2, 40))
def test_what_is_followed_is_free_however_few_knots_it_has(count):
    ball = Obstacle(mk.Sphere(0.05), (0.42, 0.0, 0.62), name="ball")
    collider = Collider(PANDA, ["self", ball])
    found = follow(PANDA, HAND, LINE, count, avoid=collider)
    assert found.path is not None
    assert found.path.is_free(collider)


def test_a_straight_way_between_knots_that_cuts_a_corner_is_reported():
    """At the knots, and where the goals hold between them, the tip is round the ball; straight on it is not."""
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
    assert coarse.why.startswith("in collision between two knots: 'link2'")
    assert 0.0 < coarse.broken_at < 0.5
    assert collider.is_free(coarse.last_q)
    fine = follow(arm, goal, around, 60, avoid=collider).require()
    assert fine.is_free(collider)


def test_a_loop_bumps_between_knots_where_it_does_with_its_loop_shut():
    bar = mk.gallery.four_bar()
    crank = next(iter(bar.joints))
    start = float(bar.values()[crank])
    half_way = mk.solve(bar, mk.JointValues({crank: start + 0.6}), q0=bar.q).require().q
    collider = Collider(bar, [Obstacle(mk.Sphere(0.02), bar.pose("coupler", half_way)[:3, 3], name="ball")])
    assert collider.is_free(bar.q)
    goal = mk.JointValues({crank: start}, angle_mode="exact")
    found = follow(bar, goal, lambda s: {crank: start + 1.2 * s}, 2, q0=bar.q, avoid=collider)
    assert not found.success
    assert "'ball'" in found.why
    assert 0.0 < found.broken_at < 0.5
    assert collider.is_free(found.last_q)
    np.testing.assert_allclose(found.path.q[0], bar.q, atol=1e-6)  # once it began in the other assembly


def test_a_start_in_collision_is_named_and_not_left_by_a_jump():
    bar = mk.gallery.four_bar()
    crank = next(iter(bar.joints))
    start = float(bar.values()[crank])
    ball = Obstacle(mk.Sphere(0.02), bar.pose("coupler")[:3, 3], name="ball")
    goal = mk.JointValues({crank: start}, angle_mode="exact")
    found = follow(bar, goal, lambda s: {crank: start + 1.2 * s}, 5, q0=bar.q, avoid=[ball])
    assert found.path is None
    assert found.broken_at == 0.0
    assert found.why.startswith("in collision where it stands")
    assert "'ball'" in found.why


def test_a_collider_of_another_mechanism_is_refused():
    with pytest.raises(StructureError, match="another mechanism"):
        follow(PANDA, HAND, LINE, 9, avoid=Collider(mk.gallery.ur5()))


def test_pairs_beside_a_collider_are_refused_and_not_forgotten():
    with pytest.raises(InvalidArgument, match="allow and forbid"):
        follow(PANDA, HAND, LINE, 9, avoid=Collider(PANDA), allow=[("panda_hand", "panda_link5")])
