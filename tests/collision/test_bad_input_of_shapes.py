"""What people give by mistake to shapes, links, obstacles and SRDFs, and what they are told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import InvalidArgument, MechanikError, NotARotation, NotFinite, ShapeError
from mechanik.formats.srdf import parse_srdf
from mechanik.spatial import Pose

ROBOT = """<robot name="r"><link name="a"/><link name="b"><collision><geometry>{}</geometry></collision></link>
<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>"""
BOX: Any = mk.Box((1, 1, 1))


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"position": (math.nan, 0, 0)}, NotFinite, "obstacle 'table': position of a pose .* not finite"),
        ({"position": (0, 0)}, ShapeError, r"obstacle 'table': .*\(3,\), not \(2,\)"),
        ({"position": [[1], [2, 3]]}, MechanikError, "obstacle 'table': "),
        ({"position": "table"}, InvalidArgument, "the position is three numbers; a name is given by name='table'"),
        ({"position": np.eye(4)}, InvalidArgument, r"a pose is given by pose\.position, pose\.wxyz"),
        ({"position": Pose((1, 0, 0))}, InvalidArgument, r"a pose is given by pose\.position, pose\.wxyz"),
        ({"wxyz": (0, 0, 0, 0)}, NotARotation, "obstacle 'table': a quaternion is zero"),
        ({"wxyz": (math.inf, 0, 0, 0)}, NotFinite, "obstacle 'table': wxyz"),
    ],
)
def test_a_pose_that_is_none_names_the_obstacle(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        mk.Obstacle(BOX, name="table", **given)


@pytest.mark.parametrize(
    ("collisions", "said"),
    [
        ([mk.Sphere(1.0)], r"link 'hand': collisions must be shape instances such as ShapeInstance\(.*not Sphere"),
        (mk.ShapeInstance(mk.Sphere(1.0)), "link 'hand': collisions must be a list"),
        (mk.Sphere(1.0), "link 'hand': collisions must be a list"),
        ("box", "link 'hand': collisions must be a list"),
        (None, "link 'hand': collisions must be a list"),
    ],
)
def test_what_is_no_list_of_placed_shapes_is_refused_where_it_is_given(collisions: Any, said: str) -> None:
    """A collider said much later that 'numpy.ndarray' has no attribute 'matrix', or nothing at all."""
    with pytest.raises(InvalidArgument, match=said):
        mk.Link("hand", collisions=collisions)
    link = mk.Link("hand")
    with pytest.raises(InvalidArgument, match=said):
        link.collisions = collisions
    with pytest.raises(InvalidArgument, match=said.replace("collisions", "visuals")):
        mk.Link("hand", visuals=collisions)
    assert link.collisions == ()


def test_a_list_of_shapes_becomes_a_value_of_its_own() -> None:
    shapes, link = [mk.ShapeInstance(mk.Sphere(1.0))], mk.Link("hand")
    link.collisions = shapes
    shapes.clear()
    assert link.collisions == (mk.ShapeInstance(mk.Sphere(1.0)),)


@pytest.mark.parametrize("pose", [np.eye(4), (0, 0, 1), None])
def test_a_shape_is_placed_by_a_pose(pose: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"pose must be a Pose such as Pose\(\(0, 0, 1\)\)"):
        mk.ShapeInstance(mk.Sphere(1.0), pose)


@pytest.mark.parametrize("shape", [None, "box", mk.Box, mk.ShapeInstance(mk.Sphere(1.0))])
def test_only_shapes_are_placed(shape: Any) -> None:
    with pytest.raises(InvalidArgument, match="shape must be a shape"):
        mk.ShapeInstance(shape)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"scale": 0.001}, ShapeError, "three factors"),
        ({"scale": (1, 1)}, ShapeError, "three factors"),
        ({"scale": (1, 1, "1")}, ShapeError, "three factors"),
        ({"scale": None}, ShapeError, "three factors"),
        ({"uri": None}, InvalidArgument, "strings"),
        ({"path": 3}, InvalidArgument, "strings"),
    ],
)
def test_a_mesh_has_texts_and_three_factors(given: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        mk.Mesh(**{"uri": "cup.stl", **given})


@pytest.mark.parametrize("scale", [[1, 2, 3], np.array([1.0, 2.0, 3.0])])
def test_a_mesh_is_a_value_whatever_its_scale_is_given_as(scale: Any) -> None:
    """A list could not be looked up among the meshes that are read."""
    mesh = mk.Mesh("cup.stl", scale)
    assert mesh == mk.Mesh("cup.stl", (1.0, 2.0, 3.0))
    assert hash(mesh) == hash(mk.Mesh("cup.stl", (1.0, 2.0, 3.0)))


def test_a_second_shape_in_one_geometry_is_named() -> None:
    two = '<sphere radius="1"/><box size="1 1 1"/>'
    (warning,) = mk.load(ROBOT.format(two)).warnings
    assert "<box> of link 'b' is a second shape in one <geometry>; only the first counts" in warning
    two = "<sphere><radius>1</radius></sphere><box><size>1 1 1</size></box>"
    text = (
        '<sdf version="1.9"><model name="m"><link name="b"><collision name="c"><geometry>'
        f"{two}</geometry></collision></link></model></sdf>"
    )
    (warning,) = mk.load(text).warnings
    assert "a second shape in one <geometry>" in warning


def test_a_misspelt_element_of_an_srdf_is_named_and_those_of_others_are_not() -> None:
    robot = mk.load(ROBOT.format('<sphere radius="1"/>'))
    inside = '<disable_colisions link1="a" link2="b"/><rotor_params/><group name="arm"/><end_effector name="hand"/>'
    found = parse_srdf(f'<robot name="r">{inside}</robot>', robot)
    assert found.allowed_collisions == {}
    (warning,) = found.warnings
    assert "<disable_colisions> is passed over; did you mean <disable_collisions>?" in warning


def test_one_link_may_be_named_without_a_list() -> None:
    """Its letters were taken for names."""
    arm = mk.gallery.ur5()
    assert mk.fit_shapes(arm, links="wrist_1_link").links["wrist_1_link"].collisions
    with pytest.raises(mk.errors.UnknownName, match="Did you mean 'wrist_1_link'"):
        mk.fit_shapes(arm, links="wrist_1_lnk")
