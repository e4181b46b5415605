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

EXAMPLES = settings(max_examples=25, deadline=None)
TOLERANCE = 1e-6
"""m; coal stops at about 1e-7 where it has no closed form."""


def slider(shape: Shape) -> Mechanism:
    """Return a free body with the shape."""
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
@EXAMPLES
@given(st.integers(0, 10**6))
def test_distances_and_contacts_agree(kind: str, seed: int) -> None:
    robot = slider(SHAPES[kind])
    collider = Collider(robot, OBSTACLES)
    coal_collider = CoalCollider(collider)
    rng = np.random.default_rng(seed)
    q = robot.space.clamp(np.concatenate([rng.uniform((-2, -2, 0), (2, 2, 2)), rng.normal(size=robot.nq - 3)]))
    distance = float(np.asarray(collider.distance(q)))
    if distance > TOLERANCE:  # at penetration coal is less accurate, and several normals may be equally good
        assert coal_collider.distance(q) == pytest.approx(distance, abs=TOLERANCE)
    assert (
        coal_collider.is_free(q, clearance=0.05) == collider.is_free(q, clearance=0.05)
        or abs(distance - 0.05) < TOLERANCE
    )
    assert {contact.b for contact in coal_collider.contacts(q, distance + 0.3)} == {
        contact.b for contact in collider.contacts(q, distance + 0.3)
    }
    for contact in coal_collider.contacts(q, 1.0):
        np.testing.assert_allclose(contact.point_b - contact.point_a, contact.distance * contact.normal, atol=TOLERANCE)


def test_batches_equal_single_configurations() -> None:
    robot = slider(Sphere(0.3))
    coal_collider = CoalCollider(Collider(robot, OBSTACLES))
    configurations = np.tile(robot.neutral(), (4, 1))
    configurations[:, 0] = np.linspace(-2, 2, len(configurations))
    assert coal_collider.distance(configurations).shape == (len(configurations),)  # type: ignore[union-attr]
    assert coal_collider.is_free(configurations).tolist() == [coal_collider.is_free(row) for row in configurations]  # type: ignore[union-attr]


def test_contacts_are_sorted_by_depth_and_name_both_bodies() -> None:
    robot = slider(Box((3, 3, 0.2)))
    contacts = CoalCollider(Collider(robot, OBSTACLES)).contacts(robot.configuration({"free.Z": 1.0}))
    assert len(contacts) >= 3
    assert {contact.a for contact in contacts} == {"thing"}
    assert [contact.distance for contact in contacts] == sorted(contact.distance for contact in contacts)
    assert all(contact.depth == -contact.distance > 0 for contact in contacts)


def test_distances_to_a_height_field_agree() -> None:
    heights = np.random.default_rng(0).uniform(0, 0.5, (4, 5))
    field = Obstacle(HeightField(heights, (4, 3), -0.3), (0.2, 0, 0), name="hill")
    robot = slider(Sphere(0.1))
    collider = Collider(robot, [field])
    coal_collider = CoalCollider(collider)
    for x, y in np.random.default_rng(1).uniform((-2, -1.5), (2, 1.5), (30, 2)):
        q = robot.configuration({"free.X": x, "free.Y": y, "free.Z": 0.9})
        assert coal_collider.distance(q) == pytest.approx(float(np.asarray(collider.distance(q))), abs=TOLERANCE)


def test_a_moved_obstacle_has_its_new_pose() -> None:
    robot = slider(Sphere(0.1))
    collider = Collider(robot, [Obstacle(Sphere(0.1), (5, 0, 0), name="ball")])
    collider.move("ball", Pose((2.1, 0, 0)))
    q = robot.neutral()
    assert CoalCollider(collider).distance(q) == pytest.approx(1.8)


def test_the_panda_is_free_at_home_and_distances_agree_at_random_configurations() -> None:
    panda = mk.gallery.panda()
    table = Obstacle(Box((1, 1, 0.1)), (0.8, 0, 0.2), name="table")
    collider = Collider(panda, ["self", table])
    coal_collider = CoalCollider(collider)
    assert CoalCollider(Collider(panda)).is_free(panda.configurations["home"])
    q = panda.random(np.random.default_rng(0), 100)
    distances = np.asarray(collider.distance(q))
    np.testing.assert_array_equal(
        coal_collider.is_free(q)[np.abs(distances) > TOLERANCE], distances[np.abs(distances) > TOLERANCE] > 0
    )  # type: ignore[index]
    separated = distances > TOLERANCE
    assert 10 < np.count_nonzero(separated) < 100
    np.testing.assert_allclose(coal_collider.distance(q[separated]), distances[separated], atol=TOLERANCE)
