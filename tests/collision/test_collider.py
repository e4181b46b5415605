"""Collision queries against brute force over all pairs, closed forms and finite differences."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from derivatives import by_differences
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mechanisms_with_shapes import pair_distances, random_mechanism_with_shapes, random_obstacles
from random_mechanisms import random_turn, seeds

import mechanik as mk
from mechanik.collision import Collider, Contact, Obstacle
from mechanik.errors import (
    InvalidArgument,
    MechanikError,
    NotFinite,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.model import Builder
from mechanik.model.shapes import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, HeightField, ShapeInstance, Sphere
from mechanik.spatial import Pose

joints = st.integers(1, 12)


def collider_and_configuration(
    seed: int, count: int, *, spheres: bool = False, obstacles: int = 6
) -> tuple[Collider, np.ndarray]:
    """Return a collider of a random tree among obstacles that checks every pair, and a configuration."""
    mechanism, rng = random_mechanism_with_shapes(seed, count, spheres=spheres), np.random.default_rng(seed)
    mechanism.allowed_collisions = {}
    obstacle_list = random_obstacles(rng, obstacles, spheres)
    return Collider(mechanism, ["self", *obstacle_list]), mechanism.random(rng)


# ---- general properties -------------------------------------------------------------------------


@settings(max_examples=60)
@given(seeds, joints)
def test_distance_is_the_smallest_distance_of_all_pairs(seed: int, count: int) -> None:
    collider, q = collider_and_configuration(seed, count)
    distances = pair_distances(collider, q)
    assert collider.distance(q) == pytest.approx(min(distances.values(), default=math.inf), abs=1e-12)


@settings(max_examples=60)
@given(seeds, joints, st.floats(-0.2, 0.5))
def test_contacts_are_the_pairs_closer_than_the_clearance(seed: int, count: int, clearance: float) -> None:
    collider, q = collider_and_configuration(seed, count)
    distances = pair_distances(collider, q)
    assume(all(abs(distance - clearance) > 1e-9 for distance in distances.values()))
    contacts = collider.contacts(q, clearance)
    assert {(contact.a, contact.b) for contact in contacts} == {
        pair for pair, distance in distances.items() if distance < clearance
    }
    assert [contact.distance for contact in contacts] == sorted(contact.distance for contact in contacts)
    for contact in contacts:
        assert contact.distance == pytest.approx(distances[contact.a, contact.b], abs=1e-12)
        assert contact.point_b - contact.point_a == pytest.approx(contact.distance * contact.normal, abs=1e-9)
    assert collider.is_free(q, clearance) == (not contacts)


@settings(max_examples=40)
@given(seeds, joints, st.integers(1, 8))
def test_nearest_pairs_have_the_smallest_distances(seed: int, count: int, pair_count: int) -> None:
    collider, q = collider_and_configuration(seed, count)
    distances = sorted(pair_distances(collider, q).values())
    assert [contact.distance for contact in collider.nearest_pairs(q, pair_count)] == pytest.approx(
        distances[:pair_count], abs=1e-12
    )


@settings(max_examples=60)
@given(seeds, st.integers(1, 9))
def test_the_jacobian_is_the_derivative_of_the_distances(seed: int, count: int) -> None:
    collider, q = collider_and_configuration(seed, count, spheres=True, obstacles=3)
    distances, J = collider.distances_and_jacobian(q)
    names = collider.distance_names
    for k in range(1, len(distances)):  # rows have a kink where the order of the nearest two changes
        assume(names[k - 1].split(" - ")[0] != names[k].split(" - ")[0] or abs(distances[k] - distances[k - 1]) > 1e-3)
    numeric = by_differences(collider.mechanism, lambda other_q: collider.distances_and_jacobian(other_q)[0], q)
    assert pytest.approx(numeric, abs=2e-7) == J


@settings(max_examples=40)
@given(seeds, joints)
def test_a_derivative_is_the_relative_velocity_along_the_normal(seed: int, count: int) -> None:
    collider, q = collider_and_configuration(seed, count, obstacles=3)
    assume(collider.pairs)
    mechanism, (contact,) = collider.mechanism, collider.nearest_pairs(q)
    expected = np.zeros(mechanism.nv)
    for name, point, sign in ((contact.a, contact.point_a, -1.0), (contact.b, contact.point_b, 1.0)):
        if name in mechanism.links:
            p_link = np.linalg.inv(mechanism.pose(name, q)) @ [*point, 1.0]
            expected += sign * contact.normal @ mechanism.jacobian(name, q, p_link[:3])[:3]
    distances, J = collider.distances_and_jacobian(q)
    assert distances.min() == contact.distance
    assert J[distances.argmin()] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=30)
@given(seeds, joints, st.floats(-0.2, 1.0))
def test_larger_distances_are_given_as_max_distance_with_zero_derivatives(
    seed: int, count: int, max_distance: float
) -> None:
    collider, q = collider_and_configuration(seed, count)
    distances, J = collider.distances_and_jacobian(q)
    limited_distances, limited_J = collider.distances_and_jacobian(q, max_distance)
    assert limited_distances == pytest.approx(np.minimum(distances, max_distance), abs=1e-12)
    assert limited_J == pytest.approx(np.where((distances < max_distance)[:, None], J, 0.0), abs=1e-9)


@settings(max_examples=20)
@given(seeds, joints)
def test_batch_queries_equal_single_queries(seed: int, count: int) -> None:
    collider, _ = collider_and_configuration(seed, count)
    q = collider.mechanism.random(np.random.default_rng(seed), (2, 3))
    free, distances, (row_distances, J) = (
        collider.is_free(q, 0.05),
        collider.distance(q),
        collider.distances_and_jacobian(q, 0.3),
    )
    assert free.shape == distances.shape == (2, 3)
    for k in np.ndindex(2, 3):
        assert free[k] == collider.is_free(q[k], 0.05)
        assert distances[k] == collider.distance(q[k])
        single_distances, single_J = collider.distances_and_jacobian(q[k], 0.3)
        assert np.array_equal(row_distances[k], single_distances)
        assert np.array_equal(J[k], single_J)


@settings(max_examples=20)
@given(seeds, st.integers(1, 40))
def test_a_moved_obstacle_gives_the_results_of_a_new_collider(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    mechanism, obstacles = random_mechanism_with_shapes(seed, 5), random_obstacles(rng, count)
    collider = Collider(mechanism, ["self", *obstacles])
    for name in rng.choice([obstacle.name for obstacle in collider.obstacles], 3):
        collider.move(name, Pose(rng.uniform(-2, 2, 3), random_turn(rng)))
    fresh = Collider(mechanism, ["self", *collider.obstacles])
    q = mechanism.random(rng)
    assert collider.distance(q) == fresh.distance(q)
    assert collider.is_free(q) == fresh.is_free(q)
    assert np.array_equal(collider.distances_and_jacobian(q)[0], fresh.distances_and_jacobian(q)[0])
    assert collider.obstacle_version == 3


@pytest.mark.parametrize("name", ["five_bar", "hexapod", "panda", "rover"])
def test_derivatives_are_by_all_of_v_with_mimic_joints_and_loops(name: str) -> None:
    """Mimic joints, such as a finger or wheels on coupled arms, move by the column of their leader."""
    mechanism, rng = getattr(mk.gallery, name)(), np.random.default_rng(0)
    for link in mechanism.links.values():
        link.collisions = (ShapeInstance(Sphere(0.02), Pose(rng.uniform(-0.2, 0.2, 3))),)
    mechanism.allowed_collisions = {}
    collider = Collider(mechanism, ["self", Obstacle(Sphere(0.05), (0.3, 0.2, 0.4))])
    q = mechanism.integrate(mechanism.q, rng.uniform(-0.01, 0.01, mechanism.nv))
    numeric = by_differences(mechanism, lambda at: collider.distances_and_jacobian(at)[0], q)
    assert collider.distances_and_jacobian(q)[1] == pytest.approx(numeric, abs=1e-7)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.3))
def test_the_deepest_penetration_is_found_among_near_obstacles(height: float, radius: float) -> None:
    """A lower bound clipped at zero hid the deepest pair behind a shallower one."""
    robot = Builder("probe")
    robot.prismatic("slide", "base", "probe", axis="z")
    robot.link("base")
    robot.link("probe", collisions=[ShapeInstance(Sphere(radius))])
    crate = Obstacle(Box((4.0, 4.0, 2.0)), name="crate")
    spheres = [Obstacle(Sphere(0.2), (x, 0.0, height), name=f"ball{x}") for x in (0.0, 0.05, 9.0)]
    collider = Collider(robot.build(), [*spheres, crate])
    assert collider.distance([height]) == pytest.approx(-max(1.0 - height, 0.2) - radius)
    assert collider.is_free([height], -max(1.0 - height, 0.2) - radius - 1e-9)
    assert not collider.is_free([height], -max(1.0 - height, 0.2) - radius + 1e-9)


# ---- bodies -------------------------------------------------------------------------------------


def arm_with_tool() -> mk.Mechanism:
    robot = Builder("arm")
    robot.link("base", collisions=[ShapeInstance(Box((0.2, 0.2, 0.2)))])
    robot.revolute("shoulder", "base", "upper", at=(0, 0, 0.2), axis="y")
    robot.link("upper", collisions=[ShapeInstance(Capsule(0.05, 0.4), Pose((0, 0, 0.25)))])
    robot.revolute("elbow", "upper", "lower", at=(0, 0, 0.5), axis="y")
    robot.link("lower", collisions=[ShapeInstance(Capsule(0.05, 0.4), Pose((0, 0, 0.25)))])
    robot.fixed("flange", "lower", "tool", at=(0, 0, 0.5))
    robot.link("tool", collisions=[ShapeInstance(Sphere(0.08))])
    return robot.build()


def test_a_welded_link_is_a_body_that_is_not_checked_against_its_parent() -> None:
    collider = Collider(arm_with_tool(), ["self", Obstacle(Sphere(0.1), (0, 0, 1.3), name="ball")])
    assert collider.bodies == ("base", "upper", "lower", "tool", "ball")
    assert collider.allowed_collisions["lower", "tool"] == "same body"
    assert collider.allowed_collisions["upper", "tool"] == "adjacent"
    (contact,) = collider.contacts([0.0, 0.0])
    assert str(contact) == "'tool' is 80 mm inside 'ball'"
    assert contact.depth == pytest.approx(0.08)
    assert contact.normal == pytest.approx([0, 0, 1])


def test_bodies_that_just_touch_are_free() -> None:
    collider = Collider(arm_with_tool(), [Obstacle(Sphere(0.25), (0, 0, 1.5), name="ball")], allow=[("lower", "ball")])
    assert collider.distance([0.0, 0.0]) == pytest.approx(-0.03)
    collider.move("ball", Pose((0, 0, 1.2 + 0.08 + 0.25)))
    distance = collider.distance([0.0, 0.0])
    assert abs(distance) < 1e-15
    assert collider.is_free([0.0, 0.0], distance)
    assert "touches" in str(collider.nearest_pairs([0.0, 0.0])[0])


def test_bodies_that_do_not_move_are_not_checked_against_each_other() -> None:
    collider = Collider(
        arm_with_tool(), ["self", Obstacle(Box((1, 1, 1)), name="crate"), Obstacle(HalfSpace(), name="floor")]
    )
    assert not {("base", "crate"), ("crate", "base"), ("base", "floor"), ("crate", "floor")} & set(collider.pairs)


def test_distances_to_half_spaces_are_exact() -> None:
    wall = Obstacle(HalfSpace(), (0.9, 0, 0), (math.sqrt(0.5), 0, -math.sqrt(0.5), 0), name="wall")
    collider = Collider(arm_with_tool(), [Obstacle(HalfSpace(), (0, 0, -0.5), name="floor"), wall])
    assert collider.distance([0.0, 0.0]) == pytest.approx(0.2 + 0.05 - 0.05 + 0.5)  # the end of the upper arm is lowest
    tool, lower = collider.contacts([math.pi / 2, 0.0])  # straight along x: the tool reaches 1.08, the arm 1 m
    assert (tool.a, tool.b, lower.a, lower.b) == ("tool", "wall", "lower", "wall")
    assert (tool.distance, lower.distance) == pytest.approx((0.9 - 1.08, 0.9 - 1.0))


@pytest.mark.parametrize(
    "shape",
    [
        Cylinder(0.2, 0.5),
        ConvexMesh([[0, 0, 0], [0.4, 0, 0], [0, 0.4, 0], [0, 0, 0.4], [0.3, 0.3, 0.3]]),
        HeightField([[0, 0.1, 0], [0.2, 0.3, 0.1], [0, 0.1, 0.4]], (2.0, 2.0), -0.5),
    ],
)
def test_shapes_of_every_kind_can_be_obstacles(shape: Cylinder | ConvexMesh | HeightField) -> None:
    rng = np.random.default_rng(1)
    mechanism = arm_with_tool()
    for _ in range(20):
        collider = Collider(mechanism, [Obstacle(shape, rng.uniform(-1, 1, 3), random_turn(rng))])
        q = mechanism.random(rng)
        assert collider.distance(q) == pytest.approx(min(pair_distances(collider, q).values()), abs=1e-9)


def test_few_pairs_are_measured_among_ten_thousand_obstacles() -> None:
    rng = np.random.default_rng(0)
    mechanism = mk.gallery.panda()
    obstacles = [Obstacle(Box(tuple(rng.uniform(0.02, 0.1, 3))), rng.uniform(-8, 8, 3)) for _ in range(10_000)]
    collider = Collider(mechanism, obstacles)
    assert len(collider.pairs) == 10_000 * 10
    centres = np.array([obstacle.pose.position for obstacle in obstacles])
    for q in mechanism.random(rng, 3):
        assert collider.count_measured_pairs(q) < 200
        nearest = np.argsort(np.linalg.norm(centres - mechanism.pose("panda_link4", q)[:3, 3], axis=1))[:300]
        assert collider.distance(q) == Collider(mechanism, [obstacles[k] for k in nearest]).distance(q)


# ---- edits and copies ---------------------------------------------------------------------------


def test_an_edit_of_the_mechanism_is_noticed() -> None:
    mechanism = arm_with_tool()
    collider = Collider(mechanism, [Obstacle(Sphere(0.1), (0, 0, 1.5), name="ball")])
    before = collider.distance([0.0, 0.0])
    mechanism.joint("elbow").position = (0, 0, 0.6)
    assert collider.distance([0.0, 0.0]) == pytest.approx(before - 0.1)
    mechanism.link("tool").name = "hand"
    assert collider.nearest_pairs([0.0, 0.0])[0].a == "hand"


def test_a_collider_survives_pickling() -> None:
    collider = Collider(arm_with_tool(), ["self", Obstacle(Sphere(0.1), (0, 0, 1.5), name="ball")])
    collider.move("ball", Pose((0.3, 0, 1)))
    restored = pickle.loads(pickle.dumps(collider))
    assert restored.distance([0.1, 0.2]) == collider.distance([0.1, 0.2])


def test_threads_may_query_while_an_obstacle_moves() -> None:
    collider = Collider(arm_with_tool(), [Obstacle(Box((0.2, 0.2, 0.2)), (0.5, 0, 1), name="crate")])
    poses = [Pose((x, 0, 1)) for x in (0.5, 2.0)]
    allowed = set()
    for pose in poses:
        collider.move("crate", pose)
        allowed.add(collider.distance([0.3, 0.4]))

    def query(_: int) -> set[float]:
        return {collider.distance([0.3, 0.4]) for _ in range(300)}

    with ThreadPoolExecutor(3) as pool:
        results = pool.map(query, range(3))
        for k in range(200):
            collider.move("crate", poses[k % 2])
        assert set().union(*results) <= allowed


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("avoid", "error", "text"),
    [
        (["selv"], UnknownName, "Did you mean 'self'"),
        (Box((1, 1, 1)), InvalidArgument, r"not shapes; write Obstacle\(Box"),
        ([Box((1, 1, 1))], InvalidArgument, r"not shapes; write Obstacle\(Box"),
        ([1.0], InvalidArgument, "avoid takes 'self' and obstacles"),
        (None, InvalidArgument, "avoid takes 'self' and obstacles"),
        ([Obstacle(Sphere(1), name="tool")], StructureError, "an obstacle and a link"),
        ([Obstacle(Sphere(1), name="a"), Obstacle(Sphere(1), name="a")], StructureError, "two obstacles"),
    ],
)
def test_wrong_items_of_avoid_are_refused(avoid: object, error: type[MechanikError], text: str) -> None:
    with pytest.raises(error, match=text):
        Collider(arm_with_tool(), avoid)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (Sphere(0.0), "no volume"),
        (Capsule(0.0, 1.0), "no volume"),
        (Cylinder(1.0, 0.0), "no volume"),
        (Box((1.0, 0.0, 1.0)), "no volume"),
    ],
)
def test_a_shape_without_volume_is_refused_by_name(shape: Sphere, text: str) -> None:
    with pytest.raises(ShapeError, match=f"obstacle 'thin'.*{text}"):
        Obstacle(shape, name="thin")
    mechanism = arm_with_tool()
    mechanism.link("lower").collisions = (ShapeInstance(shape),)
    with pytest.raises(ShapeError, match=f"link 'lower'.*{text}"):
        Collider(mechanism)


def test_wrong_arguments_of_obstacles_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="needs a shape"):
        Obstacle("box")  # type: ignore[arg-type]
    with pytest.raises(NotFinite):
        Obstacle(Sphere(1), (math.nan, 0, 0))
    with pytest.raises(ShapeError):
        Obstacle(Sphere(1), (0, 0))
    collider = Collider(arm_with_tool(), [Obstacle(Sphere(0.1), name="ball")])
    with pytest.raises(UnknownName, match="Did you mean 'ball'"):
        collider.move("bal", Pose())
    with pytest.raises(NotFinite):
        collider.move("ball", np.full((4, 4), np.nan))
    assert collider.obstacle_version == 0


def test_wrong_configurations_are_refused() -> None:
    collider = Collider(arm_with_tool())
    for method in (
        collider.is_free,
        collider.distance,
        collider.contacts,
        collider.nearest_pairs,
        collider.distances_and_jacobian,
    ):
        with pytest.raises(NotFinite, match="elbow"):
            method(np.array([0.0, math.nan]))
        with pytest.raises(ShapeError, match="2 numbers"):
            method(np.zeros(3))
        with pytest.raises(ShapeError):
            method("home")  # type: ignore[arg-type]
    for clearance in (math.nan, "much"):
        with pytest.raises((NotFinite, ShapeError), match="clearance"):
            collider.is_free(np.zeros(2), clearance)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="count"):
        collider.nearest_pairs([0.0, 0.0], 0)
    free_body = Builder("ball")
    free_body.link("base")
    free_body.spherical("joint", "base", "end")
    free_body.link("end", collisions=[ShapeInstance(Sphere(0.1))])
    sphere_collider = Collider(free_body.build(), [Obstacle(Sphere(0.1))])
    with pytest.raises(MechanikError, match="quaternion"):
        sphere_collider.is_free(np.zeros(4))


def test_wrong_arguments_of_a_collider_are_refused() -> None:
    with pytest.raises(StructureError, match="no link of 'arm_2d' has a collision shape"):
        Collider(mk.arm_2d([1, 1]))
    with pytest.raises(InvalidArgument, match="needs a Mechanism"):
        Collider("arm")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match=r"mesh mode .*exact"):
        Collider(arm_with_tool(), meshes="exakt")  # type: ignore[arg-type]


def test_without_pairs_everything_is_free() -> None:
    collider = Collider(arm_with_tool(), [])
    assert collider.pairs == ()
    assert collider.distance([0.0, 0.0]) == math.inf
    assert collider.is_free([0.0, 0.0], 10.0)
    assert collider.nearest_pairs([0.0, 0.0]) == collider.contacts([0.0, 0.0]) == ()
    assert collider.distances_and_jacobian([0.0, 0.0])[1].shape == (0, 2)
    assert collider.is_free(np.empty((0, 2))).shape == (0,)


def test_a_half_space_on_a_moving_link_is_refused() -> None:
    mechanism = arm_with_tool()
    mechanism.link("tool").collisions = (ShapeInstance(HalfSpace()),)
    with pytest.raises(ShapeError, match="'tool' moves and has a half-space"):
        Collider(mechanism)


def test_the_text_of_a_contact_has_the_distance() -> None:
    zero = np.zeros(3)
    assert str(Contact("a", "b", 0.0123, zero, zero, zero)) == "'a' is 12.3 mm from 'b'"
    assert str(Contact("a", "b", -1.5, zero, zero, zero)) == "'a' is 1.5 m inside 'b'"
    assert Contact("a", "b", 0.5, zero, zero, zero).depth == 0.0


def test_a_link_renamed_to_the_name_of_an_obstacle_is_refused_at_each_query() -> None:
    """The second query returned the result from before the edit."""
    arm = mk.gallery.planar_2r()
    collider = Collider(arm, [Obstacle(Sphere(0.1), (3, 0, 0), name="ball")])
    arm.links["link2"].name = "ball"
    for _ in range(2):
        with pytest.raises(StructureError, match="'ball'; rename the link"):
            collider.distance(arm.q)
    arm.links["ball"].name = "link2"
    assert collider.distance(arm.q) > 0
