"""Mechanism to URDF and back: the same poses, names, limits and shapes, and the same text the second time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import mechanisms, random_mechanism, random_turn, seeds

from mechanik.errors import FormatError
from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.urdf_geometry import origin_attributes
from mechanik.formats.urdf.writer import write_urdf
from mechanik.model import (
    Box,
    Builder,
    Capsule,
    Cylinder,
    Frame,
    Inertial,
    Joint,
    Link,
    Material,
    Mechanism,
    Mesh,
    ShapeInstance,
    Sphere,
)
from mechanik.spatial import Pose, quaternion


def values_for(written: Mechanism, mechanism: Mechanism, q: np.ndarray) -> dict[str, Any]:
    """Values of `mechanism` at q by the names under which `written` knows them."""
    values: dict[str, Any] = {}
    for name, value in mechanism.values(q).items():
        joint = mechanism.joints[name]
        if name in written.joints and written.joints[name].dof:
            values[name] = value
        else:
            parts = {
                f"{name}.{dof.name}": dof_value for dof, dof_value in zip(joint.dof, np.atleast_1d(value), strict=True)
            }
            values |= parts
    return values


def assert_same_poses(mechanism: Mechanism, again: Mechanism, seed: int = 0) -> None:
    for q in mechanism.random(np.random.default_rng(seed), 3):
        theirs = again.configuration(values_for(again, mechanism, q), again.neutral())
        # coupled slides can make a random tree a kilometre long, and digits are relative to that
        X = mechanism.poses(q)
        reach = 1.0 + np.abs(X[..., :3, 3]).max()
        assert np.abs(again.poses(theirs, list(mechanism.links)) - X).max() < 1e-12 * reach


# ---- round trips -------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(mechanisms)
def test_urdf_round_trip_keeps_poses_names_and_limits(mechanism: Mechanism) -> None:
    text = write_urdf(mechanism)
    again = read_urdf(text)
    assert set(mechanism.links) <= set(again.links)
    assert_same_poses(mechanism, again)
    ours = {
        name: limits
        for name, limits in limits_by_name(mechanism).items()
        if not name.endswith((".qw", ".qx", ".qy", ".qz"))
    }
    theirs = limits_by_name(again)
    assert ours == {name: theirs[name] for name in ours}


@settings(max_examples=60, deadline=None)
@given(mechanisms)
def test_urdf_text_is_stable(mechanism: Mechanism) -> None:
    text = write_urdf(mechanism)
    assert write_urdf(read_urdf(text)) == text


def limits_by_name(mechanism: Mechanism) -> dict[str, tuple[float, float]]:
    space = mechanism.space
    return {space.q_names[k]: (space.lower[k], space.upper[k]) for k in space.scalars_q}


@given(seeds, st.sampled_from([0.0, 1e-13, 1e-9, 3.7e-6, 1e-3]), st.sampled_from([-1, 1]))
def test_orientation_is_written_exactly_even_near_gimbal_lock(seed: int, off: float, sign: int) -> None:
    rng = np.random.default_rng(seed)
    pitch = sign * (np.pi / 2 - off)
    yaw = quaternion.from_axis_angle([0, 0, 1], rng.uniform(-3, 3))
    wxyz = quaternion.multiply(yaw, quaternion.from_axis_angle([0, 1, 0], pitch))
    wxyz = Frame(wxyz=quaternion.multiply(wxyz, random_turn(rng)) if rng.random() < 0.5 else wxyz).wxyz
    mechanism = hinge(wxyz)
    again = read_urdf(write_urdf(mechanism))
    assert np.array_equal(again.joints["j"].matrix, mechanism.joints["j"].matrix)
    assert write_urdf(again) == write_urdf(mechanism)


def hinge(wxyz: np.ndarray, **options: Any) -> Mechanism:
    root, joint = Link("a"), Joint("j", dof="EZ", wxyz=wxyz, **options)
    root.add_child(joint)
    joint.add_child(Link("b"))
    return Mechanism(root, name="hinge")


@given(seeds)
def test_axis_is_stable_after_one_round_trip(seed: int) -> None:
    mechanism = hinge(np.array([1.0, 0, 0, 0]), axes_wxyz=random_turn(np.random.default_rng(seed)))
    text = write_urdf(mechanism)
    again = read_urdf(text)
    # written in 15 digits, and moved by some of the last until it stays
    assert np.abs(again.joints["j"].axis - mechanism.joints["j"].axis).max() < 1e-14
    assert write_urdf(again) == text


@pytest.mark.parametrize(
    "rpy", [(0.1, -0.2, 0.3), (np.pi / 2, 0, 0), (0, np.pi / 2, 0), (0, 1.5708, 0), (0, 0, 3.14159)]
)
def test_short_rpy_angles_are_written_unchanged(rpy: tuple[float, float, float]) -> None:
    joint = read_urdf(
        '<robot name="r"><link name="a"/><link name="b"/>'
        '<joint name="j" type="fixed"><parent link="a"/><child link="b"/>'
        f'<origin rpy="{rpy[0]!r} {rpy[1]!r} {rpy[2]!r}"/></joint></robot>'
    ).joints["j"]
    attributes = origin_attributes(joint.position, joint.wxyz)
    assert "wxyz" not in attributes
    assert np.array([float(word) for word in attributes["rpy"].split()]).tolist() == list(rpy)


# ---- one to one -------------------------------------------------------------------------------


def dressed() -> Mechanism:
    red, blue = Material("red", (1, 0, 0, 1), "red.png"), Material("blue", (0, 0, 0.25, 1))
    other_red = Material("red", (0.9, 0, 0, 1))
    shapes = [
        ShapeInstance(Box((1, 2, 3)), Pose((1, 2, 3), (0.5, 0.5, 0.5, 0.5)), red, "a & b <c>"),
        ShapeInstance(Cylinder(0.1, 0.2), Pose(), blue),
        ShapeInstance(Sphere(1 / 3), Pose(), red),
        ShapeInstance(Capsule(0.1, 0.2), Pose(), other_red),
        ShapeInstance(Mesh("package://p/m.stl", (0.001, 0.001, -0.001)), Pose(), Material("", (0, 1, 0, 1))),
    ]
    builder = Builder("dressed")
    builder.link(
        "a", visuals=shapes, collisions=shapes[:2], inertial=Inertial(0.1, Pose((1, 0, 0)), (1, 2, 3, 4, 5, 6))
    )
    builder.revolute("j1", "a", "b", axis="x", limits=(-1, 2), at=(0.1, 0.2, 0.3))
    builder.prismatic("j2", "b", "c", axis="-y", limits=(0, 0.3))
    builder.revolute("j3", "c", "d", axis=(0, 0.6, 0.8))
    builder.planar("j4", "d", "e", axis="x")
    builder.free("j5", "e", "f")
    builder.fixed("j6", "f", "g", at=(0, 0, 1))
    builder.prismatic("j7", "g", "h")
    builder.couple("j2", "j1", 0.5, 0.1)
    return builder.build()


def test_standard_urdf_content_is_written_one_to_one() -> None:
    mechanism = dressed()
    again = read_urdf(write_urdf(mechanism))
    assert again.name == "dressed"
    assert list(again.links) == list(mechanism.links)
    assert list(again.joints) == list(mechanism.joints)
    assert again.space.q_names == mechanism.space.q_names
    assert np.array_equal(again.space.lower, mechanism.space.lower)
    assert np.array_equal(again.space.upper, mechanism.space.upper)
    for name, link in mechanism.links.items():
        link_again = again.links[name]
        assert (link_again.visuals, link_again.collisions, link_again.inertial) == (
            link.visuals,
            link.collisions,
            link.inertial,
        )
    coupling = again.joints["j2"].couplings[0]
    assert (coupling.leader.name, coupling.ratio, coupling.offset) == ("j1", 0.5, 0.1)
    assert_same_poses(mechanism, again)


def test_extras_are_written_back() -> None:
    mechanism = dressed()
    mechanism.extras["limits"] = {"j1": {"effort": 5.0, "velocity": 2.5}, "j3": {"effort": 1.0}}
    mechanism.extras["safety"] = {"j1": {"soft_lower_limit": -0.5, "k_velocity": 3.0}}
    mechanism.extras["dynamics"] = {"j3": {"damping": 0.1}}
    extras = read_urdf(write_urdf(mechanism)).extras
    assert extras["limits"]["j1"] == {"effort": 5.0, "velocity": 2.5}
    assert extras["limits"]["j3"] == {"effort": 1.0}
    assert extras["safety"] == mechanism.extras["safety"]
    assert extras["dynamics"] == mechanism.extras["dynamics"]


def test_floating_base_is_read_back_without_the_base_option() -> None:
    text = '<robot name="r"><link name="a"/></robot>'
    mechanism = read_urdf(text, base="free")
    again = read_urdf(write_urdf(mechanism))
    assert again.space.q_names == mechanism.space.q_names
    assert list(again.links) == ["a"]
    assert read_urdf(write_urdf(mechanism), base="fixed").nv == 0


@pytest.mark.pinocchio
def test_pinocchio_reads_written_urdfs_with_the_same_poses() -> None:
    """Pinocchio, whose reader is that of ROS, accepts every joint, and gives the same link poses."""
    pin = pytest.importorskip("pinocchio")
    mechanism = random_mechanism(3, 12)
    text = write_urdf(mechanism)
    model, again = pin.buildModelFromXML(text), read_urdf(text, mimic=False)
    assert "<mechanik>" not in text
    data, q = model.createData(), again.neutral()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    for name in mechanism.links:
        expected = data.oMf[model.getFrameId(name, pin.FrameType.BODY)].homogeneous
        assert np.abs(again.pose(name, q) - expected).max() < 1e-12, name


# ---- content beyond standard URDF ---------------------------------------------------------------------


def test_joint_with_several_dofs_becomes_a_chain_with_the_same_value_names() -> None:
    builder = Builder("hand")
    builder.universal("wrist", "arm", "hand", limits=((-1, -2), (1, 2)), at=(0, 0, 1), axis="y")
    builder.cylindrical("piston", "hand", "tool")
    mechanism = builder.build()
    again = read_urdf(write_urdf(mechanism))
    assert again.space.q_names == mechanism.space.q_names == ("wrist.EX", "wrist.EY", "piston.Z", "piston.EZ")
    assert np.array_equal(again.space.lower, mechanism.space.lower)
    assert set(again.links) == {"arm", "hand", "tool", "wrist.EY", "wrist", "piston.Z"}
    assert_same_poses(mechanism, again)


def test_names_of_intermediate_links_avoid_existing_names() -> None:
    builder = Builder()
    builder.cylindrical("j", "a", "j.Z")
    builder.revolute("j.EZ", "j.Z", "b")
    again = read_urdf(write_urdf(builder.build()))
    assert set(again.links) == {"a", "j.Z", "b", "j.Z_"}
    assert set(again.joints) == {"j.Z", "j.EZ_", "j.EZ"}


def test_one_of_several_dofs_can_lead_and_mimic() -> None:
    builder = Builder()
    builder.planar("cart", "a", "b")
    builder.cylindrical("screw", "b", "c")
    builder.couple("screw", "cart", 2.0, 0.1, dof="Z", leader_dof="EZ")
    mechanism = builder.build()
    again = read_urdf(write_urdf(mechanism))
    assert again.space.q_names == mechanism.space.q_names
    assert_same_poses(mechanism, again)


def test_several_roots_get_a_common_world_link() -> None:
    builder = Builder()
    builder.link("a", at=(1, 0, 0))
    builder.revolute("j", "a", "b")
    builder.link("ground", at=(0, 1, 0))
    builder.close("loop", "b", "ground", "ball")
    mechanism = builder.build()
    again = read_urdf(write_urdf(mechanism))
    assert list(again.links) == ["world", "a", "b", "ground"]
    assert_same_poses(mechanism, again)


def test_joint_without_child_gets_a_link() -> None:
    root = Link("a")
    root.add_child(Joint("j", dof="EZ"))
    assert list(read_urdf(write_urdf(Mechanism(root))).links) == ["a", "j.end"]


def test_urdf_round_trip_keeps_closures() -> None:
    builder = Builder("four_bar")
    builder.revolute("crank", "ground", "input", value=0.6)
    builder.revolute("elbow", "input", "coupler", at=(0.5, 0, 0))
    builder.revolute("pivot", "ground", "output", at=(2, 0, 0))
    builder.close("pin", "coupler", "output", "pin", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    closure = builder.close(
        "odd", "input", "output", ["X", "EY"], at=Pose((1, 2, 3), (0.5, 0.5, 0.5, 0.5)), axis=(1, 2, 3)
    )
    assert isinstance(closure.joint, Joint)
    closure.joint.set_limits([-1, -np.inf], [np.inf, 2])
    mechanism = builder.build()
    text = write_urdf(mechanism)
    again = read_urdf(text)
    assert list(again.closures) == ["pin", "odd"]
    for name, ours in mechanism.closures.items():
        theirs = again.closures[name]
        assert theirs.free_dof == ours.free_dof
        assert theirs.link.name == ours.link.name
        assert np.array_equal(theirs.at.matrix, ours.at.matrix)
        assert np.array_equal(theirs.joint.matrix, ours.joint.matrix)
        assert np.array_equal(theirs.joint.axes_wxyz, ours.joint.axes_wxyz)
        assert np.array_equal([theirs.joint.lower, theirs.joint.upper], [ours.joint.lower, ours.joint.upper])  # type: ignore[union-attr]
    assert write_urdf(again) == text


def test_plain_frame_raises_an_error() -> None:
    frame = Frame("stand")
    frame.add_child(Link("a"))
    with pytest.raises(FormatError, match="stand"):
        write_urdf(Mechanism(frame))


def test_name_with_characters_not_allowed_in_xml_raises_an_error() -> None:
    with pytest.raises(FormatError, match="XML does not allow"):
        write_urdf(Mechanism(Link("a\x00")))


@pytest.mark.parametrize("name", ["a & b", "<a>", 'quote"s', "größe", "a b", "tab\there", "line\nbreak"])
def test_urdf_round_trip_keeps_any_other_name(name: str) -> None:
    assert list(read_urdf(write_urdf(Mechanism(Link(name)))).links) == [name]
