"""Elements of a URDF and the mechanism that is built from them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mechanik.errors import FormatError
from mechanik.formats.urdf.reader import read_urdf
from mechanik.model import Box, Capsule, Cylinder, DoF, Joint, Material, Mechanism, Mesh, Sphere
from mechanik.spatial import euler

LIMIT = '<limit lower="-1" upper="2" effort="5" velocity="3"/>'


def robot(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


def links(*names: str) -> str:
    return "".join(f'<link name="{name}"/>' for name in names)


def joint(name: str, kind: str, parent: str, child: str, *inside: str) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{"".join(inside)}</joint>'


def single_joint_robot(kind: str, *inside: str) -> Mechanism:
    """A robot of two links and a joint `j` between them."""
    return read_urdf(robot(links("a", "b"), joint("j", kind, "a", "b", *inside)))


# ---- joints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "dof"),
    [("1 0 0", DoF.EX), ("0 1 0", DoF.EY), ("0 0 1", DoF.EZ), ("0 0 2.5", DoF.EZ), ("1 1e-17 0", DoF.EX)],
)
def test_axis_along_x_y_or_z_needs_no_rotation(axis: str, dof: DoF) -> None:
    joint = single_joint_robot("revolute", f'<axis xyz="{axis}"/>', LIMIT).joints["j"]
    assert joint.dof == (dof,)
    assert joint.axes_wxyz.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("axis", ["-1 0 0", "0 -1 0", "0 0 -1", "0 0.6 0.8", "1 2 -3", "1e-8 1e-8 0"])
@pytest.mark.parametrize(("kind", "dof"), [("revolute", DoF.EZ), ("continuous", DoF.EZ), ("prismatic", DoF.Z)])
def test_any_other_axis_is_one_dof_about_a_rotated_z(axis: str, kind: str, dof: DoF) -> None:
    mechanism = single_joint_robot(kind, f'<axis xyz="{axis}"/>', LIMIT)
    joint, direction = mechanism.joints["j"], np.array(axis.split(), dtype=float)
    direction /= np.linalg.norm(direction)
    assert joint.dof == (dof,)
    assert np.abs(joint.axis - direction).max() < 1e-15
    X = mechanism.pose("b", np.array([0.5]))
    if kind == "prismatic":
        assert np.abs(X[:3, 3] - 0.5 * direction).max() < 1e-15
    else:
        assert np.abs(X[:3, :3] @ direction - direction).max() < 1e-15
        assert abs(np.trace(X[:3, :3]) - 1 - 2 * np.cos(0.5)) < 1e-15


def test_rpy_rotates_about_fixed_x_then_y_then_z() -> None:
    X = single_joint_robot("fixed", '<origin xyz="1 2 3" rpy="0.1 -0.2 0.3"/>').pose("b", np.zeros(0))
    assert np.abs(X[:3, :3] - euler.matrix_from_euler([0.1, -0.2, 0.3], order="xyz", axes="fixed")).max() < 1e-15
    assert X[:3, 3].tolist() == [1, 2, 3]


def test_planar_joint_moves_in_the_plane_normal_to_its_axis() -> None:
    mechanism = single_joint_robot("planar", '<axis xyz="0 0.6 0.8"/>')
    joint, normal = mechanism.joints["j"], np.array([0, 0.6, 0.8])
    assert joint.dof == (DoF.X, DoF.Y, DoF.EZ)
    X = mechanism.pose("b", np.array([0.3, -0.4, 1.1]))
    assert abs(X[:3, 3] @ normal) < 1e-15
    assert np.linalg.norm(X[:3, 3]) == pytest.approx(0.5, abs=1e-15)
    assert np.abs(X[:3, :3] @ normal - normal).max() < 1e-15


@pytest.mark.pinocchio
def test_planar_and_floating_joints_match_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    turn = '<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>'
    text = robot(
        links("a", "b", "c", "d"),
        joint("cart", "planar", "a", "b", turn, '<axis xyz="0 0 1"/>'),
        joint("drone", "floating", "b", "c", turn),
        joint("hand", "revolute", "c", "d", turn, '<axis xyz="0 -1 0"/>', LIMIT),
    )
    mechanism, model = read_urdf(text), pin.buildModelFromXML(text)
    data = model.createData()
    for q in mechanism.random(np.random.default_rng(0), 5):
        x, y, angle, px, py, pz, w, i, j, k, hand = q
        theirs = np.array([x, y, np.cos(angle), np.sin(angle), px, py, pz, i, j, k, w, hand])
        pin.framesForwardKinematics(model, data, theirs)
        for name in mechanism.links:
            expected = data.oMf[model.getFrameId(name)].homogeneous
            assert np.abs(mechanism.pose(name, q) - expected).max() < 1e-12, name


def test_continuous_joint_ignores_limits() -> None:
    assert single_joint_robot("continuous", '<axis xyz="0 0 1"/>', LIMIT).joints["j"].limits("EZ") == (-np.inf, np.inf)


def test_missing_side_of_a_limit_is_zero() -> None:
    assert single_joint_robot("revolute", '<axis xyz="0 0 1"/>', '<limit upper="2"/>').joints["j"].limits("EZ") == (
        0,
        2,
    )


def test_limits_beyond_1e30_are_no_limits() -> None:
    joint = single_joint_robot(
        "prismatic", '<axis xyz="0 0 1"/>', '<limit lower="-1e30" upper="1.7976931348623157e308"/>'
    ).joints["j"]
    assert joint.limits("Z") == (-np.inf, np.inf)


def test_controller_attributes_become_extras() -> None:
    mechanism = single_joint_robot(
        "revolute",
        '<axis xyz="0 0 1"/>',
        '<safety_controller soft_lower_limit="-0.9" soft_upper_limit="1.9" k_position="10" k_velocity="2"/>',
        LIMIT,
        '<dynamics damping="0.1" friction="0.2"/><calibration rising="0.5"/>',
    )
    assert mechanism.extras["limits"]["j"] == {"effort": 5, "velocity": 3}
    assert mechanism.extras["safety"]["j"]["soft_lower_limit"] == -0.9
    assert mechanism.extras["safety"]["j"]["k_velocity"] == 2
    assert mechanism.extras["dynamics"]["j"] == {"damping": 0.1, "friction": 0.2}
    assert mechanism.extras["calibration"]["j"] == {"rising": 0.5}


def test_links_and_joints_are_in_the_order_of_the_file() -> None:
    mechanism = read_urdf(
        robot(
            joint("second", "continuous", "b", "c", '<axis xyz="0 0 1"/>'),
            links("c", "a", "b"),
            joint("first", "continuous", "a", "b", '<axis xyz="0 0 1"/>'),
        )
    )
    assert list(mechanism.links) == ["c", "a", "b"]
    assert list(mechanism.joints) == ["second", "first"]
    assert mechanism.space.q_names == ("second", "first")


# ---- mimic ------------------------------------------------------------------------------------

Z = '<axis xyz="0 0 1"/>'
CHAINED = robot(
    links("a", "b", "c", "d"),
    joint("last", "continuous", "c", "d", Z, '<mimic joint="middle" multiplier="3" offset="0.25"/>'),
    joint("middle", "continuous", "b", "c", Z, '<mimic joint="first" multiplier="-2" offset="0.5"/>'),
    joint("first", "continuous", "a", "b", Z),
)


def test_mimic_joints_can_be_chained_in_any_order() -> None:
    mechanism = read_urdf(CHAINED)
    assert mechanism.space.q_names == ("first",)
    values = mechanism.values(np.array([0.1]))
    assert values["middle"] == pytest.approx(-2 * 0.1 + 0.5)
    assert values["last"] == pytest.approx(3 * (-2 * 0.1 + 0.5) + 0.25)


def test_mimic_false_makes_every_joint_independent() -> None:
    assert read_urdf(CHAINED, mimic=False).space.q_names == ("last", "middle", "first")


def test_mimic_of_a_missing_joint_is_ignored_with_a_warning() -> None:
    mechanism = single_joint_robot("continuous", Z, '<mimic joint="k"/>')
    assert mechanism.nv == 1
    assert any("there is no joint 'k'" in warning and "joint 'j'" in warning for warning in mechanism.warnings)


def test_mimic_of_a_fixed_joint_is_ignored_with_a_warning() -> None:
    text = robot(
        links("a", "b", "c"), joint("i", "fixed", "a", "b"), joint("j", "continuous", "b", "c", Z, '<mimic joint="i"/>')
    )
    mechanism = read_urdf(text)
    assert not mechanism.joints["j"].couplings
    assert any("'i' does not have exactly one dof" in warning for warning in mechanism.warnings)


def test_many_mimics_of_fixed_joints_give_one_warning() -> None:
    """A hand with a fixed tendon gave the same warning twelve times."""
    followers = [joint(f"f{k}", "continuous", "b", f"c{k}", Z, '<mimic joint="i"/>') for k in range(12)]
    text = robot(links("a", "b", *(f"c{k}" for k in range(12))), joint("i", "fixed", "a", "b"), *followers)
    (warning,) = read_urdf(text).warnings
    assert "the <mimic> of 12 joints is ignored" in warning
    assert warning.endswith("do not have exactly one dof: f0, f1, f2 and 9 more")


@pytest.mark.parametrize(("ratio", "warns"), [("-1", True), ("1", False), ("0.5", False), ("0", False)])
def test_mimic_joint_with_contradicting_limits_is_a_warning(ratio: str, warns: bool) -> None:
    """The fingers of the PR2 mimic with ratio -1, and both have limits of 0 to 0.548."""
    limit = '<limit lower="0" upper="0.548" effort="1" velocity="1"/>'
    mechanism = read_urdf(
        robot(
            links("a", "b", "c"),
            joint("r", "revolute", "a", "c", Z, limit, f'<mimic joint="l" multiplier="{ratio}"/>'),
            joint("l", "revolute", "a", "b", Z, limit),
        )
    )
    message = (
        "joint 'r' mimics 'l' with ratio -1, and the limits of 'r' contradict those of 'l'; "
        "the limits of 'r' are ignored"
    )
    assert [message in warning for warning in mechanism.warnings] == [True] * warns
    assert mechanism.joint("l").effective_limits("EZ")[1] == 0.548


# ---- links ------------------------------------------------------------------------------------


def test_shapes_materials_and_inertias_are_read() -> None:
    visuals = [
        '<box size="1 2 3"/>',
        '<cylinder radius="0.1" length="0.4"/>',
        '<sphere radius="0.2"/>',
        '<capsule radius="0.1" length="0.3"/>',
        '<mesh filename="no.stl" scale="0.001 0.001 0.002"/>',
    ]
    inside = "".join(f'<visual name="v{i}"><geometry>{v}</geometry></visual>' for i, v in enumerate(visuals))
    inside += '<collision><origin xyz="0 0 1"/><geometry><sphere radius="3"/></geometry></collision>'
    inside += '<inertial><origin xyz="0.1 0 0"/><mass value="2"/>'
    inside += '<inertia ixx="1" ixy="2" ixz="3" iyy="4" iyz="5" izz="6"/></inertial>'
    link = read_urdf(robot(f'<link name="a">{inside}</link>')).links["a"]
    assert [placed.shape for placed in link.visuals] == [
        Box((1, 2, 3)),
        Cylinder(0.1, 0.4),
        Sphere(0.2),
        Capsule(0.1, 0.3),
        Mesh("no.stl", (0.001, 0.001, 0.002)),
    ]
    assert [placed.name for placed in link.visuals] == ["v0", "v1", "v2", "v3", "v4"]
    assert link.collisions[0].pose.position.tolist() == [0, 0, 1]
    assert link.inertial is not None
    assert link.inertial.mass == 2
    assert link.inertial.inertia == (1, 2, 3, 4, 5, 6)
    assert link.inertial.pose.position.tolist() == [0.1, 0, 0]


def test_material_can_be_used_before_and_outside_its_definition() -> None:
    uses_red, uses_blue = '<material name="red"/>', '<material name="blue"/>'
    defines_blue = '<material name="blue"><color rgba="0 0 1 1"/></material>'
    text = robot(
        f'<link name="a">{visual(BALL, uses_red)}{visual(BALL, uses_blue)}</link>',
        f'<link name="b">{visual(BALL, defines_blue)}</link>',
        joint("j", "fixed", "a", "b"),
        '<material name="red"><color rgba="1 0 0 1"/><texture filename="red.png"/></material>',
    )
    mechanism = read_urdf(text)
    red, blue = Material("red", (1, 0, 0, 1), "red.png"), Material("blue", (0, 0, 1, 1))
    assert [placed.material for placed in mechanism.links["a"].visuals] == [red, blue]
    assert mechanism.links["b"].visuals[0].material == blue
    assert not mechanism.warnings


# ---- base, trim, text -------------------------------------------------------------------------


def test_floating_base_is_first_in_q_and_moves_all_links() -> None:
    text = robot(links("a", "b"), joint("j", "continuous", "a", "b", Z))
    mechanism = read_urdf(text, base="free")
    assert mechanism.space.q_names[0] == "floating_base.X"
    assert (mechanism.nq, mechanism.nv) == (8, 7)
    assert mechanism.pose("a", mechanism.configuration({"floating_base": [1, 2, 3, 0, 0, 0]}))[:3, 3].tolist() == [
        1,
        2,
        3,
    ]


def test_floating_base_is_renamed_if_a_joint_has_its_name() -> None:
    text = robot(links("a", "b"), joint("floating_base", "fixed", "a", "b"))
    assert list(read_urdf(text, base="free").joints) == ["floating_base_", "floating_base"]


def test_unknown_base_option_raises_an_error() -> None:
    with pytest.raises(FormatError, match="base must be"):
        read_urdf(robot(links("a")), base="wheels")  # type: ignore[arg-type]


def test_trim_removes_links_without_moving_joints() -> None:
    text = robot(
        links("a", "b", "c", "d"),
        joint("j", "continuous", "a", "b", Z),
        joint("tool", "fixed", "b", "c"),
        joint("plate", "fixed", "c", "d"),
    )
    assert list(read_urdf(text).links) == ["a", "b", "c", "d"]
    assert list(read_urdf(text, trim=True).links) == ["a", "b"]


@pytest.mark.parametrize("head", ["", "\n  ", "\ufeff", '<?xml version="1.0" encoding="utf-16"?>', "<!DOCTYPE robot>"])
def test_text_is_recognised_by_its_first_character(head: str) -> None:
    assert list(read_urdf(head + robot(links("a"))).links) == ["a"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_declared_encoding_of_a_file_is_used(encoding: str, tmp_path: Path) -> None:
    declared = encoding.removesuffix("-sig")
    path = tmp_path / "größe.urdf"
    path.write_bytes(f'<?xml version="1.0" encoding="{declared}"?>{robot(links("größe"))}'.encode(encoding))
    assert list(read_urdf(path).links) == ["größe"]


def test_unnamed_robot_gets_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(f"<robot>{links('a')}</robot>")
    mechanism = read_urdf(path)
    assert mechanism.name == "arm"
    assert mechanism.warnings == ["arm.urdf, line 1: <robot> has no name"]


def test_elements_of_other_tools_are_ignored() -> None:
    text = robot(
        links("a"),
        '<gazebo reference="a"><sensor:camera x="${y}"/></gazebo>',
        '<transmission name="t"><joint name="j"/></transmission>',
        "<controller:gazebo_ros_time/><unheard_of/>",
    )
    mechanism = read_urdf(text)
    assert list(mechanism.links) == ["a"]
    assert not mechanism.joints


def test_unused_xacro_namespace_is_ignored() -> None:
    assert read_urdf(f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{links("a")}</robot>').links


def test_chain_of_1000_links_is_read() -> None:
    names = [f"l{i}" for i in range(1001)]
    rows = [
        joint(f"j{i}", "continuous", a, b, '<origin xyz="0.01 0 0"/>', Z) for i, (a, b) in enumerate(pairwise(names))
    ]
    mechanism = read_urdf(robot(links(*names), *rows))
    assert mechanism.pose("l1000", np.zeros(1000))[0, 3] == pytest.approx(10)


def test_edited_rpy_has_priority_over_wxyz() -> None:
    mechanism = single_joint_robot("fixed", '<origin rpy="0 0 1" wxyz="1 0 0 0"/>')
    assert any("disagree" in warning for warning in mechanism.warnings)
    assert np.arctan2(*mechanism.pose("b", np.zeros(0))[[1, 0], 0]) == pytest.approx(1)


def test_quaternion_can_replace_rpy() -> None:
    half = np.sqrt(0.5)
    X = single_joint_robot("fixed", f'<origin quat_xyzw="0 0 {half} {half}"/>').pose("b", np.zeros(0))
    assert np.abs(X[:3, :3] - [[0, -1, 0], [1, 0, 0], [0, 0, 1]]).max() < 1e-15


# ---- warnings ---------------------------------------------------------------------------------

ODD = {
    "no axis": (joint("j", "continuous", "a", "b"), "joint 'j' has no axis; the default is 1 0 0"),
    "no limit": (joint("j", "revolute", "a", "b", Z), "joint 'j' is revolute and has no lower and upper limit"),
    "two origins": (joint("j", "fixed", "a", "b", "<origin/><origin/>"), "<origin> of joint 'j' is a duplicate of"),
}


@pytest.mark.parametrize("case", ODD)
def test_suspicious_joint_gives_a_warning_that_names_it(case: str) -> None:
    part, sentence = ODD[case]
    mechanism = read_urdf(robot(links("a", "b"), part))
    assert any(sentence in warning for warning in mechanism.warnings), mechanism.warnings


def visual(solid: str, material: str = "") -> str:
    return f"<visual><geometry>{solid}</geometry>{material}</visual>"


BALL = '<sphere radius="1"/>'
ODD_LINKS = {
    visual('<mesh filename="package://p/m.stl"/>'): "<mesh> of link 'odd' names the file 'package://p/m.stl', which",
    visual('<mesh filename="m.stl" scale="1 -1 1"/>'): "<mesh> of link 'odd' has the negative scale '1 -1 1'",
    "<visual/>": "<visual> of link 'odd' has no geometry",
    visual("<torus/>"): "<torus> of link 'odd' is not a shape of URDF",
    visual("<mesh/>"): "<mesh> of link 'odd' names no file",
    visual(BALL, '<material name="m"/>'): "material 'm' is used here but is not defined in the file",
    visual(BALL, '<material name="m"><color rgba="255 0 0 1"/></material>'): "<color> of material 'm' has rgba='255 0",
    "<inertial/>": "<inertial> of link 'odd' has no mass",
    '<inertial><mass value="1"/><inertia ixx="1"/></inertial>': "<inertia> of link 'odd' does not have all of",
}


@pytest.mark.parametrize("inside", ODD_LINKS)
def test_suspicious_link_gives_a_warning_that_names_it(inside: str) -> None:
    mechanism = read_urdf(robot(f'<link name="odd">{inside}</link>'))
    assert any(ODD_LINKS[inside] in warning for warning in mechanism.warnings), mechanism.warnings


def test_valid_file_has_no_warnings() -> None:
    assert not single_joint_robot("revolute", Z, LIMIT).warnings
    assert isinstance(single_joint_robot("revolute", Z, LIMIT).joints["j"], Joint)
