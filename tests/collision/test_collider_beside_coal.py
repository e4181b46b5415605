"""Distances and contacts of a `Collider` are those that the library coal computes."""

from __future__ import annotations

import numpy as np
import pytest
from coal_collider import CoalCollider
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.model import (
    Box,
    Builder,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    HeightField,
    Mechanism,
    ShapeInstance,
    Sphere,
)
from mechanik.model.shapes import Shape
from mechanik.spatial import Pose

pytest.importorskip("coal")

LAW = settings(max_examples=25, deadline=None)
CLOSE = 1e-6
"""m; the other program stops at about 1e-7 where it has no closed form."""


def slider(shape: Shape) -> Mechanism:
    """A shape that moves in all directions."""
    robot = Builder("slider")
    robot.joint("free", "base", "thing", dof=["X", "Y", "Z", "EX", "EY", "EZ"])
    robot.link("thing", collisions=[ShapeInstance(shape, Pose((0.1, 0, 0), (1, 0.2, 0, 0)))])
    return robot.build()


HULL = ConvexMesh(np.random.default_rng(1).normal(size=(12, 3)) * 0.3)
SHAPES = {
    "sphere": Sphere(0.3),
    "capsule": Capsule(0.2, 0.6),
    "box": Box((0.4, 0.5, 0.7)),
    "cylinder": Cylinder(0.25, 0.6),
    "hull": HULL,
}
OBSTACLES = [
    Obstacle(Sphere(0.4), (1.5, 0, 1), name="ball"),
    Obstacle(Capsule(0.2, 0.8), (-1.5, 0, 1), (1, 1, 0, 0), name="bar"),
    Obstacle(Box((0.5, 1, 0.5)), (0, 1.5, 1), (1, 0, 0.3, 0), name="block"),
    Obstacle(Cylinder(0.3, 0.9), (0, -1.5, 1), (1, 0.5, 0, 0), name="drum"),
    Obstacle(HULL, (1.2, 1.2, 1.5), name="stone"),
    Obstacle(HalfSpace(), (0, 0, -0.2), (1, 0.1, 0, 0), name="floor"),
]


@pytest.mark.parametrize("kind", SHAPES)
@LAW
@given(st.integers(0, 10**6))
def test_distances_and_clashes_agree(kind: str, seed: int) -> None:
    robot = slider(SHAPES[kind])
    mine = Collider(robot, OBSTACLES)
    other = CoalCollider(mine)
    rng = np.random.default_rng(seed)
    q = robot.space.clamp(np.concatenate([rng.uniform((-2, -2, 0), (2, 2, 2)), rng.normal(size=robot.nq - 3)]))
    gap = float(np.asarray(mine.distance(q)))
    if gap > CLOSE:  # in each other the other program is coarser, and several ways out may be as short
        assert other.distance(q) == pytest.approx(gap, abs=CLOSE)
    assert other.is_free(q, clearance=0.05) == mine.is_free(q, clearance=0.05) or abs(gap - 0.05) < CLOSE
    assert {one.b for one in other.contacts(q, gap + 0.3)} == {one.b for one in mine.contacts(q, gap + 0.3)}
    for clash in other.contacts(q, 1.0):
        np.testing.assert_allclose(clash.point_b - clash.point_a, clash.distance * clash.normal, atol=CLOSE)


def test_many_configurations_are_answered_one_by_one() -> None:
    robot = slider(Sphere(0.3))
    other = CoalCollider(Collider(robot, OBSTACLES))
    many = np.tile(robot.neutral(), (4, 1))
    many[:, 0] = np.linspace(-2, 2, len(many))
    assert other.distance(many).shape == (len(many),)  # type: ignore[union-attr]
    assert other.is_free(many).tolist() == [other.is_free(one) for one in many]  # type: ignore[union-attr]


def test_clashes_come_with_the_deepest_first_and_name_both() -> None:
    robot = slider(Box((3, 3, 0.2)))
    found = CoalCollider(Collider(robot, OBSTACLES)).contacts(robot.configuration({"free.Z": 1.0}))
    assert len(found) >= 3
    assert {one.a for one in found} == {"thing"}
    assert [one.distance for one in found] == sorted(one.distance for one in found)
    assert all(one.depth == -one.distance > 0 for one in found)


def test_a_height_field_is_met_where_its_triangles_are() -> None:
    heights = np.random.default_rng(0).uniform(0, 0.5, (4, 5))
    field = Obstacle(HeightField(heights, (4, 3), -0.3), (0.2, 0, 0), name="hill")
    robot = slider(Sphere(0.1))
    mine = Collider(robot, [field])
    other = CoalCollider(mine)
    for x, y in np.random.default_rng(1).uniform((-2, -1.5), (2, 1.5), (30, 2)):
        q = robot.configuration({"free.X": x, "free.Y": y, "free.Z": 0.9})
        assert other.distance(q) == pytest.approx(float(np.asarray(mine.distance(q))), abs=CLOSE)


def test_an_obstacle_that_was_moved_is_where_the_collider_has_it() -> None:
    robot = slider(Sphere(0.1))
    collider = Collider(robot, [Obstacle(Sphere(0.1), (5, 0, 0), name="ball")])
    collider.move("ball", Pose((2.1, 0, 0)))
    q = robot.neutral()
    assert CoalCollider(collider).distance(q) == pytest.approx(1.8)


def test_the_panda_of_the_gallery_is_free_at_home_and_agrees_in_random_poses() -> None:
    panda = mk.gallery.panda()
    table = Obstacle(Box((1, 1, 0.1)), (0.8, 0, 0.2), name="table")
    mine = Collider(panda, ["self", table])
    other = CoalCollider(mine)
    assert CoalCollider(Collider(panda)).is_free(panda.configurations["home"])
    q = panda.random(np.random.default_rng(0), 100)
    gaps = np.asarray(mine.distance(q))
    np.testing.assert_array_equal(other.is_free(q)[np.abs(gaps) > CLOSE], gaps[np.abs(gaps) > CLOSE] > 0)  # type: ignore[index]
    apart = gaps > CLOSE
    assert 10 < np.count_nonzero(apart) < 100
    np.testing.assert_allclose(other.distance(q[apart]), gaps[apart], atol=CLOSE)
