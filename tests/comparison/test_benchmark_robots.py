"""Robots of the comparison: each belongs to the class that its name says."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.comparison.benchmark_robots import ROBOTS, find_tip_link, make_robot, user_robot
from mechanik.errors import StructureError

REVOLUTE_JOINTS = {
    "3r_planar": 3,
    "5r_seed": 5,
    "6r_wrist": 6,
    "6r_general": 6,
    "7r": 7,
    "10r_seed": 10,
    "30r": 30,
    "100r": 100,
}


@pytest.mark.parametrize("name", ROBOTS)
def test_each_robot_has_its_name_moving_tip_links_and_finite_limits(name):
    robot = make_robot(name)
    assert robot.name == name
    for tip in robot.tip_links:
        assert np.abs(robot.mechanism.jacobian(tip, robot.mechanism.q)).max() > 0.01
    if name != "closed_loop":
        assert np.isfinite(robot.mechanism.space.lower).all()
        assert np.isfinite(robot.mechanism.space.upper).all()


@pytest.mark.parametrize(("name", "joints"), REVOLUTE_JOINTS.items())
def test_arms_have_the_number_of_revolute_joints_in_their_name(name, joints):
    space = make_robot(name).mechanism.space
    assert space.nv == joints
    assert space.rotates.all()


def test_other_robots_have_the_structure_in_their_name():
    assert not make_robot("prismatic").mechanism.space.rotates.all()
    assert len(make_robot("two_hands").tip_links) == 2
    assert len(make_robot("closed_loop").mechanism.closures) == 6


def test_adjacent_axes_of_the_general_arm_are_neither_parallel_nor_intersecting():
    robot = make_robot("6r_general")
    arm, tip = robot.mechanism, robot.tip_links[0]
    J = arm.jacobian(tip, np.zeros(6))
    p_tip = arm.pose(tip, np.zeros(6))[:3, 3]
    axes = J[3:].T
    points = [p_tip + np.cross(w, v) for v, w in zip(J[:3].T, axes, strict=True)]  # nearest to the tip on each axis
    for (a, p), (b, q) in zip(zip(axes, points, strict=True), zip(axes[1:], points[1:], strict=False), strict=False):
        normal = np.cross(a, b)
        assert np.linalg.norm(normal) > 0.1
        assert abs((q - p) @ normal) / np.linalg.norm(normal) > 0.02


def test_the_two_hands_share_a_waist():
    robot = make_robot("two_hands")
    moved = [np.abs(robot.mechanism.jacobian(tip, robot.mechanism.q)).max(axis=0) > 0 for tip in robot.tip_links]
    assert (moved[0] & moved[1]).sum() == 2
    assert (moved[0] ^ moved[1]).sum() == 12


@pytest.mark.parametrize(
    ("name", "tip"),
    [
        ("panda", "panda_hand_tcp"),
        ("ur5", "tool0"),
        ("scara", "tool"),
        ("zalo5", "effector"),
        ("five_bar", "tool"),
        ("excavator", "teeth"),
    ],
)
def test_tip_link_of_gallery_arms(name, tip):
    assert find_tip_link(mk.gallery.make(name)) == tip


def test_tip_link_defaults_to_the_leaf_with_the_most_dofs():
    builder = mk.Builder("y")
    builder.revolute("a", "trunk", "fork")
    builder.revolute("b", "fork", "short")
    builder.revolute("c", "fork", "mid")
    builder.revolute("d", "mid", "long")
    assert find_tip_link(builder.build()) == "long"


def test_tip_link_words_inside_other_words_do_not_count():
    """The letters "ee" made left_wheel the tip link."""
    builder = mk.Builder("mobile")
    builder.revolute("axle", "base", "left_wheel")
    builder.revolute("shoulder", "base", "arm")
    builder.revolute("elbow", "arm", "arm_end")
    assert find_tip_link(builder.build()) == "arm_end"


@pytest.mark.parametrize(
    "tip", ["tool0", "leftHand", "left_fingertip", "EndEffector", "ee_link", "EELink", "right-eef", "TCPframe"]
)
def test_tip_link_words_are_found_in_all_usual_spellings(tip):
    builder = mk.Builder("mobile")
    builder.revolute("axle", "base", tip)
    builder.revolute("hip", "base", "thigh")
    builder.revolute("bend", "thigh", "knee")
    assert find_tip_link(builder.build()) == tip


def test_user_robot_can_name_its_links_and_gets_a_unique_name():
    arm = mk.gallery.ur5()
    assert user_robot(arm, ["forearm_link"]).tip_links == ("forearm_link",)
    assert user_robot(arm, used_names=["ur5", "ur5 2"]).name == "ur5 3"
    with pytest.raises(mk.UnknownName, match="forarm_link"):
        user_robot(arm, ["forarm_link"])


def test_mechanism_without_dofs_is_rejected():
    builder = mk.Builder("rock")
    builder.fixed("stuck", "ground", "stone")
    with pytest.raises(StructureError, match=r"no link of rock can move, so there is no tip link$"):
        user_robot(builder.build())
    with pytest.raises(StructureError, match="no link of rock can move"):
        user_robot(builder.build(), ["stone"])


def test_unknown_robot_raises_with_a_suggestion():
    with pytest.raises(mk.UnknownName, match="7r"):
        make_robot("7rr")
