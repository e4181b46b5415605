"""Joint values in a URDF round trip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from random_mechanisms import random_joint, random_mechanism, random_turn, seeds

from mechanik import gallery
from mechanik.errors import FormatError
from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import write_urdf
from mechanik.model import Builder, Joint, Link, Mechanism
from mechanik.spatial import quaternion


def random_configured_mechanism(seed: int) -> Mechanism:
    """Return a random tree with loops, closed or violated, at a random configuration."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, int(rng.integers(1, 15)))
    links = list(mechanism.links.values())
    for k in range(int(rng.integers(0, 3))):
        a, b = (links[int(i)] for i in rng.integers(len(links), size=2))
        if a is not b:
            joint = random_joint(rng, f"closing{k}")
            a.add_child(joint)
            joint.make_closure(b)
    mechanism.q = mechanism.random(rng)
    if rng.random() < 0.5:
        for closure in mechanism.closures.values():
            assert isinstance(closure.joint, Joint)
            closure.joint.set_values(rng.uniform(-9, 9, len(closure.joint.dof)))
    return mechanism


def gaps(mechanism: Mechanism) -> np.ndarray:
    return np.array([[*c.gap().position, *c.gap().rotation] for c in mechanism.closures.values()]).reshape(-1, 6)


# ---- round trips -------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(seeds)
def test_urdf_round_trip_keeps_link_poses_and_loop_gaps(seed: int) -> None:
    mechanism = random_configured_mechanism(seed)
    again = read_urdf(write_urdf(mechanism))
    for name, link in mechanism.links.items():
        assert np.abs(again.links[name].world_matrix - link.world_matrix).max() < 1e-13
    assert np.abs(gaps(again) - gaps(mechanism)).max(initial=0.0) < 1e-11
    for name, closure in mechanism.closures.items():
        theirs = again.closures[name].joint.values  # type: ignore[union-attr]
        assert np.abs(theirs - closure.joint.values).max(initial=0.0) < 1e-8  # type: ignore[union-attr]


@settings(max_examples=60)
@given(seeds)
@example(100000)  # a unit quaternion was normalized again, which changed its last digits
def test_urdf_text_is_stable_at_any_configuration(seed: int) -> None:
    text = write_urdf(random_configured_mechanism(seed))
    assert write_urdf(read_urdf(text)) == text


@given(seeds)
def test_urdf_round_trip_keeps_quaternion_joints_to_the_last_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    builder = Builder()
    ball, body = builder.spherical("ball", "a", "b"), builder.free("body", "a", "c")
    ball.rotation_wxyz, body.rotation_wxyz = random_turn(rng), random_turn(rng)
    again = read_urdf(write_urdf(builder.build()))
    assert np.array_equal(again.link("c").world_matrix, body.child_world_matrix)
    assert np.abs(again.link("b").world_matrix - ball.child_world_matrix).max() < 2e-15


@pytest.mark.parametrize("name", gallery.names())
def test_urdf_round_trip_keeps_the_poses_of_the_gallery(name: str) -> None:
    """A four-bar was read back with a loop gap of 0.9 m."""
    mechanism = gallery.make(name)
    again = read_urdf(write_urdf(mechanism))
    assert np.abs(again.poses(None, list(mechanism.links)) - mechanism.poses()).max() < 1e-14
    assert all(closure.gap().is_closed() for closure in again.closures.values())


# ---- written values -----------------------------------------------------------------------------


def values_elements(mechanism: Mechanism) -> list[str]:
    return [line.strip() for line in write_urdf(mechanism).splitlines() if "<values" in line]


def test_only_values_that_differ_from_the_default_are_written() -> None:
    builder = Builder()
    joints = [
        builder.revolute("zero", "a", "b"),
        builder.revolute("nearest", "a", "c", limits=(0.5, 1)),
        builder.revolute("away", "a", "d", limits=(0.5, 1), value=0.75),
        builder.planar("cart", "a", "e", value=(0, 0.5, 0)),
        builder.universal("wrist", "a", "f", value=(0, 0.25)),
        builder.free("body", "a", "g"),
        builder.revolute("follower", "a", "h"),
    ]
    builder.couple("follower", "away", 2.0)
    assert values_elements(builder.build()) == [
        '<values joint="away" values="0.75" />',
        '<values joint="cart" values="0 0.5 0" />',
        '<values joint="wrist.EY" values="0.25" />',
    ]
    joints[5].set_values(0, 0, 1, 0, 0, 0)
    assert values_elements(builder.build())[-1] == '<values joint="body" values="0 0 1 0 0 0" />'


def test_floating_base_keeps_its_pose_unless_base_is_fixed() -> None:
    mechanism = read_urdf('<robot name="r"><link name="a"/></robot>', base="free")
    base = mechanism.joint("floating_base")
    base.set_values(1, 2, 3, 0, 0, 0)
    base.rotation_wxyz = quaternion.from_axis_angle([1, 2, 3], 2.0)
    text = write_urdf(mechanism)
    assert "wxyz" in text
    assert np.array_equal(read_urdf(text).link("a").world_matrix, mechanism.link("a").world_matrix)
    assert np.array_equal(read_urdf(text, base="fixed").link("a").world_matrix, np.eye(4))


def test_closure_keeps_its_full_turns() -> None:
    builder = Builder()
    builder.revolute("j", "a", "b", value=0.5)
    builder.close("loop", "a", "b", "pin")
    mechanism = builder.build()
    assert values_elements(mechanism) == ['<values joint="j" values="0.5" />']
    loop = mechanism.joint("loop")
    loop.set_values(loop.values + 2 * np.pi)
    assert read_urdf(write_urdf(mechanism)).joint("loop").values == loop.values


def test_closure_without_onto_is_closed_at_the_written_values() -> None:
    loop = '<closure name="loop" kind="weld" link="b" onto_link="c"/>'
    mechanism = read_urdf(PAIR.format(loop + '<values joint="j" values="0.5"/>'))
    assert mechanism.closures["loop"].gap().is_closed()
    mechanism.joint("j").set_values(0)
    assert mechanism.closures["loop"].gap().angle == pytest.approx(0.5)


# ---- invalid values ----------------------------------------------------------------------------

PAIR = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d"/><link name="e"/>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="0" velocity="0"/></joint>
<joint name="k" type="continuous"><parent link="a"/><child link="c"/><axis xyz="0 0 1"/>
<mimic joint="j" multiplier="2"/></joint>
<joint name="fixed" type="fixed"><parent link="a"/><child link="d"/></joint>
<joint name="body" type="floating"><parent link="a"/><child link="e"/></joint>
<mechanik>{}</mechanik></robot>"""

WRONG = {
    '<values joint="jj" values="0"/>': r"line 8: <values> names the joint 'jj'; .*did you mean 'j'",
    '<values values="0"/>': r"<values> has no 'joint'",
    '<values joint="j"/>': r"<values> has no 'values'",
    '<values joint="j" values="0 1"/>': r"of joint 'j' has 2 numbers; the joint has 1 dof \(EZ\)",
    '<values joint="body" values="0 1"/>': r"of joint 'body' has 2 numbers; the joint has 6 dofs \(X Y Z EX EY EZ\)",
    '<values joint="fixed" values="0"/>': r"of joint 'fixed' has 1 number; the joint has 0 dofs",
    '<values joint="j" values="one"/>': r"'one' is not a number",
    '<values joint="j" values="nan"/>': r"'nan' is not a finite number",
    '<values joint="j" values="2"/>': r"sets joint 'j' to 2 rad, outside its limits -1 to 1 rad",
    '<values joint="j" values="0"/><values joint="j" values="0"/>': r"of joint 'j' is a duplicate of line",
    '<values joint="j" values="0" wxyz="1 0 0 0"/>': r"has a wxyz; only a spherical or floating joint may have one",
    '<values joint="body" values="0 0 0 0 0 0" wxyz="0 0 0 0"/>': r"the norm of a quaternion must be 1e-9 to 1e9",
    '<values joint="k" values="1"/>': r"sets joint 'k' to 1 rad, but it mimics 'j', which gives 0 rad",
    '<value joint="j" values="1"/>': r"which may contain <base>, <closure>, <values>",
}


@pytest.mark.parametrize("block", WRONG)
def test_invalid_values_raise_an_error_that_names_them(block: str) -> None:
    with pytest.raises(FormatError, match=WRONG[block]):
        read_urdf(PAIR.format(block))


def test_values_of_a_mimic_joint_are_read_if_they_agree_with_its_leader() -> None:
    text = PAIR.format('<values joint="k" values="1"/><values joint="j" values="0.5"/>')
    assert read_urdf(text).values()["k"] == 1.0
    assert read_urdf(text, mimic=False).values()["k"] == 1.0


def test_edited_values_have_priority_over_wxyz() -> None:
    mechanism = read_urdf(PAIR.format('<values joint="body" values="0 0 0 0 0 0.5" wxyz="1 0 0 0"/>'))
    assert mechanism.joint("body").rotation_wxyz == pytest.approx(quaternion.from_axis_angle([0, 0, 1], 0.5))
    assert any("of joint 'body' has values and a wxyz that disagree" in warning for warning in mechanism.warnings)


def test_quaternion_has_priority_over_stale_angles_of_a_spherical_joint() -> None:
    root, ball = Link("a"), Joint("ball", dof=("EX", "EY", "EZ"))
    root.add_child(ball)
    ball.add_child(Link("b"))
    ball.set_values(0.1, 0.2, 0.3)
    ball._rotation_wxyz = quaternion.multiply(ball.rotation_wxyz, quaternion.from_axis_angle([1, 2, 3], 1e-7))
    again = read_urdf(write_urdf(Mechanism(root)))
    assert np.abs(again.link("b").world_matrix - ball.child_world_matrix).max() < 1e-15
