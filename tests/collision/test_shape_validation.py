"""Messages about wrong shapes, links, obstacles and SRDF files."""

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
    ("arguments", "error", "message"),
    [
        ({"position": (math.nan, 0, 0)}, NotFinite, "obstacle 'table': position of a pose .* not finite"),
        ({"position": (0, 0)}, ShapeError, r"obstacle 'table': .*\(3,\), not \(2,\)"),
        ({"position": [[1], [2, 3]]}, MechanikError, "obstacle 'table': "),
        ({"position": "table"}, InvalidArgument, "position must be three numbers; give the name as name='table'"),
        ({"position": np.eye(4)}, InvalidArgument, r"give a pose as pose\.position, pose\.wxyz"),
        ({"position": Pose((1, 0, 0))}, InvalidArgument, r"give a pose as pose\.position, pose\.wxyz"),
        ({"wxyz": (0, 0, 0, 0)}, NotARotation, "obstacle 'table': a quaternion is zero"),
        ({"wxyz": (math.inf, 0, 0, 0)}, NotFinite, "obstacle 'table': wxyz"),
    ],
)
def test_a_wrong_pose_is_reported_with_the_obstacle(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        mk.Obstacle(BOX, name="table", **arguments)


@pytest.mark.parametrize(
    ("collisions", "message"),
    [
        ([mk.Sphere(1.0)], r"link 'hand': collisions must be shape instances such as ShapeInstance\(.*not Sphere"),
        (mk.ShapeInstance(mk.Sphere(1.0)), "link 'hand': collisions must be a list"),
        (mk.Sphere(1.0), "link 'hand': collisions must be a list"),
        ("box", "link 'hand': collisions must be a list"),
        (None, "link 'hand': collisions must be a list"),
    ],
)
def test_wrong_collisions_of_a_link_are_refused_at_assignment(collisions: Any, message: str) -> None:
    """The error appeared much later, in a collider, or not at all."""
    with pytest.raises(InvalidArgument, match=message):
        mk.Link("hand", collisions=collisions)
    link = mk.Link("hand")
    with pytest.raises(InvalidArgument, match=message):
        link.collisions = collisions
    with pytest.raises(InvalidArgument, match=message.replace("collisions", "visuals")):
        mk.Link("hand", visuals=collisions)
    assert link.collisions == ()


def test_a_list_of_shapes_is_copied() -> None:
    shapes, link = [mk.ShapeInstance(mk.Sphere(1.0))], mk.Link("hand")
    link.collisions = shapes
    shapes.clear()
    assert link.collisions == (mk.ShapeInstance(mk.Sphere(1.0)),)


@pytest.mark.parametrize("pose", [np.eye(4), (0, 0, 1), None])
def test_the_pose_of_a_shape_instance_must_be_a_pose(pose: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"pose must be a Pose such as Pose\(\(0, 0, 1\)\)"):
        mk.ShapeInstance(mk.Sphere(1.0), pose)


@pytest.mark.parametrize("shape", [None, "box", mk.Box, mk.ShapeInstance(mk.Sphere(1.0))])
def test_the_shape_of_a_shape_instance_must_be_a_shape(shape: Any) -> None:
    with pytest.raises(InvalidArgument, match="shape must be a shape"):
        mk.ShapeInstance(shape)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scale": 0.001}, ShapeError, "three factors"),
        ({"scale": (1, 1)}, ShapeError, "three factors"),
        ({"scale": (1, 1, "1")}, ShapeError, "three factors"),
        ({"scale": None}, ShapeError, "three factors"),
        ({"uri": None}, InvalidArgument, "strings"),
        ({"path": 3}, InvalidArgument, "strings"),
    ],
)
def test_wrong_arguments_of_a_mesh_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mk.Mesh(**{"uri": "cup.stl", **arguments})


@pytest.mark.parametrize("scale", [[1, 2, 3], np.array([1.0, 2.0, 3.0])])
def test_meshes_with_equal_scales_are_equal_and_hashable(scale: Any) -> None:
    """A mesh with a list as scale was not hashable."""
    mesh = mk.Mesh("cup.stl", scale)
    assert mesh == mk.Mesh("cup.stl", (1.0, 2.0, 3.0))
    assert hash(mesh) == hash(mk.Mesh("cup.stl", (1.0, 2.0, 3.0)))


def test_a_second_shape_in_one_geometry_gives_a_warning() -> None:
    shapes = '<sphere radius="1"/><box size="1 1 1"/>'
    (warning,) = mk.load(ROBOT.format(shapes)).warnings
    assert "<box> of link 'b' is a second shape in the same <geometry>; it is ignored" in warning
    shapes = "<sphere><radius>1</radius></sphere><box><size>1 1 1</size></box>"
    text = (
        '<sdf version="1.9"><model name="m"><link name="b"><collision name="c"><geometry>'
        f"{shapes}</geometry></collision></link></model></sdf>"
    )
    (warning,) = mk.load(text).warnings
    assert "a second shape in the same <geometry>" in warning


def test_a_misspelt_srdf_element_gives_a_warning_and_foreign_elements_none() -> None:
    robot = mk.load(ROBOT.format('<sphere radius="1"/>'))
    inside = '<disable_colisions link1="a" link2="b"/><rotor_params/><group name="arm"/><end_effector name="hand"/>'
    srdf = parse_srdf(f'<robot name="r">{inside}</robot>', robot)
    assert srdf.allowed_collisions == {}
    (warning,) = srdf.warnings
    assert "<disable_colisions> is unknown and ignored; did you mean <disable_collisions>?" in warning


def test_fit_shapes_takes_a_single_link_name() -> None:
    """The letters of the name were taken for names."""
    arm = mk.gallery.ur5()
    assert mk.fit_shapes(arm, links="wrist_1_link").links["wrist_1_link"].collisions
    with pytest.raises(mk.errors.UnknownName, match="Did you mean 'wrist_1_link'"):
        mk.fit_shapes(arm, links="wrist_1_lnk")
