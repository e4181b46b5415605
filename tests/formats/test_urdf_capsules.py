"""Capsules in a URDF: the round trip is exact, and other programs read the same volume."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_full_mechanisms import TURNS, VECTORS

from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import write_urdf
from mechanik.model import Box, Builder, Capsule, Cylinder, HalfSpace, Inertial, Material, ShapeInstance, Sphere
from mechanik.model.mechanism import Mechanism
from mechanik.spatial import Pose

RED = Material("red", (1.0, 0.0, 0.0, 1.0))
TURNED = Pose((0.1, -0.2, 0.3), (0.9, 0.1, -0.3, 0.2))
sizes = st.floats(0.0, 10.0)
names = st.sampled_from(["", "palm", "thumb.side", "hand.collision7"])


def placed(shape: st.SearchStrategy) -> st.SearchStrategy[ShapeInstance]:
    poses = st.builds(Pose, VECTORS, TURNS) | st.just(Pose())
    return st.builds(ShapeInstance, shape, poses, st.none() | st.just(RED), names)


capsules = placed(st.builds(Capsule, sizes, sizes))
others = placed(st.builds(Cylinder, sizes, sizes) | st.builds(Sphere, sizes) | st.just(Box((1, 2, 3))))


def hand(collisions: list[ShapeInstance], visuals: list[ShapeInstance] | None = None) -> Mechanism:
    mass = Inertial(1.0, inertia=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    robot = Builder("robot")
    robot.link("arm", inertial=mass)
    robot.revolute("wrist", "arm", "hand", axis="y", limits=(-1, 1))
    robot.link("hand", collisions=collisions, visuals=visuals or [], inertial=mass)
    return robot.build()


def unnamed(shapes: tuple[ShapeInstance, ...]) -> list[ShapeInstance]:
    """A capsule that has the default name is read back without a name."""
    return [
        ShapeInstance(shape.shape, shape.pose, shape.material)
        if isinstance(shape.shape, Capsule) and shape.name == "hand.collision7"
        else shape
        for shape in shapes
    ]


@settings(max_examples=100, deadline=None)
@given(st.lists(capsules | others, max_size=5))
@example([ShapeInstance(Capsule(0.1, 0.0), TURNED), ShapeInstance(Capsule(0.1, 0.0))])
@example([ShapeInstance(Sphere(0.1), name="palm.lower"), ShapeInstance(Capsule(0.1, 0.2), name="palm")])
def test_urdf_round_trip_of_capsules_is_exact(shapes: list[ShapeInstance]) -> None:
    text = write_urdf(hand(shapes))
    assert "<capsule" not in text
    again = read_urdf(text)
    assert not again.warnings
    assert list(again.links["hand"].collisions) == unnamed(tuple(shapes))
    assert write_urdf(again) == write_urdf(hand(unnamed(tuple(shapes))))


def test_visual_capsules_keep_their_colour() -> None:
    seen = [ShapeInstance(Capsule(0.1, 0.2), TURNED, RED), ShapeInstance(Capsule(0.3, 0.2), TURNED, RED, "palm")]
    again = read_urdf(write_urdf(hand(seen[1:], seen))).links["hand"]
    assert (list(again.visuals), list(again.collisions)) == (seen, seen[1:])


def test_shape_names_are_unique_in_a_file() -> None:
    shapes = [ShapeInstance(Capsule(0.1, length)) for length in (0.2, 0.0, 0.3)]
    root = ElementTree.fromstring(write_urdf(hand(shapes, shapes)))
    names = [element.get("name") for tag in ("visual", "collision") for element in root.iter(tag)]
    assert None not in names
    assert len(set(names)) == len(names) == 16


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('name="palm.upper"', 'name="palm.top"'),
        ('xyz="0 0 0.1"', 'xyz="0 0 0.11"'),
        ('<sphere radius="0.05" />', '<sphere radius="0.06" />'),
        ('length="0.2"', 'length="0.3"'),
    ],
)
def test_edited_capsule_parts_are_read_as_three_shapes(was: str, now: str) -> None:
    text = write_urdf(hand([ShapeInstance(Capsule(0.05, 0.2), name="palm")]))
    assert len(read_urdf(text).links["hand"].collisions) == 1
    assert was in text
    kinds = [type(collision.shape) for collision in read_urdf(text.replace(was, now)).links["hand"].collisions]
    assert kinds == [Cylinder, Sphere, Sphere]


def test_cylinder_between_spheres_of_another_program_stays_three_shapes() -> None:
    parts = [ShapeInstance(Cylinder(0.1, 0.2)), *(ShapeInstance(Sphere(0.1), Pose((0, 0, z))) for z in (-0.1, 0.1))]
    assert list(read_urdf(write_urdf(hand(parts))).links["hand"].collisions) == parts


def test_capsule_after_an_unwritten_shape_is_read_back() -> None:
    robot = hand([ShapeInstance(HalfSpace()), ShapeInstance(Capsule(0.1, 0.2))])
    assert list(read_urdf(write_urdf(robot)).links["hand"].collisions) == [ShapeInstance(Capsule(0.1, 0.2))]


# ---- other programs ---------------------------------------------------------------------------

MANY = [
    ShapeInstance(Capsule(0.05, 0.2), TURNED),
    ShapeInstance(Capsule(0.07, 0.0), TURNED, name="ball"),
    ShapeInstance(Box((0.1, 0.2, 0.3)), TURNED),
]


@pytest.mark.pinocchio
def test_pinocchio_reads_every_shape_of_a_capsule_with_its_pose(tmp_path: Path) -> None:
    """Pinocchio dropped all shapes of a link with a capsule, with only a line on the console."""
    pin = pytest.importorskip("pinocchio")
    robot = hand(MANY)
    path = tmp_path / "hand.urdf"
    path.write_text(write_urdf(robot))
    model = pin.buildModelFromUrdf(str(path))
    geometry_objects = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION).geometryObjects
    shapes = [
        (type(geometry_object.geometry).__name__, np.array(geometry_object.placement.translation))
        for geometry_object in geometry_objects
    ]
    assert [kind for kind, _ in shapes] == ["Cylinder", "Sphere", "Sphere", "Sphere", "Sphere", "Box"]
    ends = TURNED.apply([[0, 0, -0.1], [0, 0, 0.1]])
    wanted = [TURNED.position, *ends, *[TURNED.position] * 3]
    np.testing.assert_allclose([at for _, at in shapes], wanted, atol=1e-12)
    assert (geometry_objects[0].geometry.radius, 2 * geometry_objects[0].geometry.halfLength) == pytest.approx(
        (0.05, 0.2)
    )


@pytest.mark.mujoco
def test_mujoco_distances_to_written_capsules_are_exact() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(write_urdf(hand(MANY[:1])))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert model.ngeom == 3
    rng = np.random.default_rng(0)
    low, high = TURNED.apply([[0, 0, -0.1], [0, 0, 0.1]])
    for toward in rng.normal(size=(50, 3)):  # rays from outside towards a point on the core of the capsule
        core = low + rng.random() * (high - low)
        start = core + 2.0 * toward / np.linalg.norm(toward)
        length = mujoco.mj_ray(model, data, start, -toward / 2, None, 1, -1, np.zeros(1, np.int32), None)
        hit = start - length * toward / 2
        share = np.clip((hit - low) @ (high - low) / ((high - low) @ (high - low)), 0, 1)
        assert abs(np.linalg.norm(hit - low - share * (high - low)) - 0.05) < 1e-9
