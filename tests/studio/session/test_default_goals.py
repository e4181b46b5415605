"""Goals that a mechanism gets when it is opened."""

from __future__ import annotations

import pytest

import mechanik as mk
from mechanik.formats.load_bytes import load_bytes
from mechanik.studio.session.default_goals import DefaultGoal, default_goals

ARM = b"""<robot name="arm"><link name="base"/><link name="arm"/>
<link name="fore"><visual><origin xyz="0 0 0.2"/><geometry><box size="0.05 0.05 0.4"/></geometry></visual></link>
<joint name="a" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
<joint name="b" type="continuous"><parent link="arm"/><child link="fore"/><origin xyz="0 0 0.5"/><axis xyz="1 0 0"/>
</joint></robot>"""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ur5", [DefaultGoal("tool0", "pose")]),
        ("planar_2r", [DefaultGoal("tool", "point")]),
        ("panda", [DefaultGoal("panda_hand_tcp", "pose")]),
        ("four_bar", [DefaultGoal("coupler", "point")]),
        ("hexapod", [DefaultGoal("platform", "pose")]),
        ("delta_robot", [DefaultGoal("platform", "point")]),
        ("jansen_leg", [DefaultGoal("foot", "point")]),
        ("two_arms", [DefaultGoal("box", "pose")]),
        ("rover", [DefaultGoal("body", "pose")]),
        ("walker", [DefaultGoal("body", "pose"), *(DefaultGoal(f"foot{k}", "pose", pinned=True) for k in range(1, 7))]),
    ],
)
def test_a_mechanism_of_the_gallery_gets_the_handles_that_one_would_take(name: str, wanted: list[DefaultGoal]) -> None:
    assert list(default_goals(mk.gallery.make(name))) == wanted


def test_a_humanoid_is_dragged_by_its_hands_and_stands_on_its_feet() -> None:
    handles = default_goals(mk.gallery.humanoid())
    assert [handle.link for handle in handles if handle.pinned] == ["left_foot", "right_foot"]
    assert [handle.link for handle in handles[:2]] == ["left_hand", "right_hand"]


def test_what_cannot_move_gets_none() -> None:
    assert default_goals(mk.Mechanism(mk.Link("stone"))) == ()


def test_an_arm_without_a_tool_is_dragged_by_the_far_end_of_its_last_link() -> None:
    """At the joint of that link it could not be aimed."""
    arm, _ = load_bytes("arm.urdf", ARM)
    (handle,) = default_goals(arm)
    assert (handle.link, handle.kind) == ("fore", "point")
    assert handle.at == pytest.approx((0.0, 0.0, 0.4))
