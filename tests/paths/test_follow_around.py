"""Paths that keep off obstacles."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.paths import Line, follow
from mechanik.spatial import make, rotation

PANDA, HAND = mk.gallery.panda(), "panda_hand_tcp"
DOWN = rotation.exp([np.pi, 0.0, 0.0])
LINE = Line(*(make(DOWN, np.array([0.5, y, 0.3])) for y in (-0.3, 0.3)))


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
    X, wanted = PANDA.pose(HAND, found.q), LINE.sampled(100)
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


def test_clearance_breaks_a_path_earlier():
    ball = Obstacle(mk.Sphere(0.05), position=(0.5, 0.1, 0.3), name="ball")
    collider = Collider(PANDA, [ball])
    near, far = (follow(PANDA, HAND, LINE, 100, avoid=collider, clearance=room).broken_at for room in (0.0, 0.05))
    assert far < near
