"""The robots that are compared on are of the classes that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.comparison.benchmark_robots import ROBOTS, find_tip_link, make_robot, user_robot
from mechanik.errors import StructureError

TURNS = {"3r_planar": 3, "5r_seed": 5, "6r_wrist": 6, "6r_general": 6, "7r": 7, "10r_seed": 10, "30r": 30, "100r": 100}


@pytest.mark.parametrize("name", ROBOTS)
def test_each_has_its_name_ends_that_move_and_limits_where_it_turns(name):
    robot = make_robot(name)
    assert robot.name == name
    for end in robot.tip_links:
        assert np.abs(robot.mechanism.jacobian(end, robot.mechanism.q)).max() > 0.01
    if name != "closed_loop":
        assert np.isfinite(robot.mechanism.space.lower).all()
        assert np.isfinite(robot.mechanism.space.upper).all()


@pytest.mark.parametrize(("name", "joints"), TURNS.items())
def test_arms_have_as_many_turning_joints_as_they_are_called_by(name, joints):
    space = make_robot(name).mechanism.space
    assert space.nv == joints
    assert space.rotates.all()


def test_the_others_are_what_they_are_called():
    assert not make_robot("prismatic").mechanism.space.rotates.all()
    assert len(make_robot("two_hands").tip_links) == 2
    assert len(make_robot("closed_loop").mechanism.closures) == 6


def test_no_neighbouring_axes_of_the_general_arm_are_parallel_or_meet():
    robot = make_robot("6r_general")
    arm, end = robot.mechanism, robot.tip_links[0]
    J = arm.jacobian(end, np.zeros(6))
    p_end = arm.pose(end, np.zeros(6))[:3, 3]
    axes = J[3:].T
    points = [p_end + np.cross(w, v) for v, w in zip(J[:3].T, axes, strict=True)]  # nearest to the end on each axis
    for (a, p), (b, q) in zip(zip(axes, points, strict=True), zip(axes[1:], points[1:], strict=False), strict=False):
        across = np.cross(a, b)
        assert np.linalg.norm(across) > 0.1
        assert abs((q - p) @ across) / np.linalg.norm(across) > 0.02


def test_the_two_hands_share_a_waist():
    robot = make_robot("two_hands")
    moved = [np.abs(robot.mechanism.jacobian(end, robot.mechanism.q)).max(axis=0) > 0 for end in robot.tip_links]
    assert (moved[0] & moved[1]).sum() == 2
    assert (moved[0] ^ moved[1]).sum() == 12


@pytest.mark.parametrize(
    ("name", "end"),
    [("panda", "panda_hand_tcp"), ("ur5", "tool0"), ("scara", "tool"), ("zalo5", "effector"), ("five_bar", "tool")],
)
def test_the_end_of_an_arm_is_found(name, end):
    assert find_tip_link(mk.gallery.make(name)) == end


def test_an_end_without_a_telling_name_is_the_one_that_most_freedoms_move():
    builder = mk.Builder("y")
    builder.revolute("a", "trunk", "fork")
    builder.revolute("b", "fork", "short")
    builder.revolute("c", "fork", "mid")
    builder.revolute("d", "mid", "long")
    assert find_tip_link(builder.build()) == "long"


def test_an_own_robot_may_name_its_links_and_gets_a_name_of_its_own():
    arm = mk.gallery.ur5()
    assert user_robot(arm, ["forearm_link"]).tip_links == ("forearm_link",)
    assert user_robot(arm, used_names=["ur5", "ur5 2"]).name == "ur5 3"
    with pytest.raises(mk.UnknownName, match="forarm_link"):
        user_robot(arm, ["forarm_link"])


def test_what_does_not_move_cannot_be_compared_on():
    builder = mk.Builder("rock")
    builder.fixed("stuck", "ground", "stone")
    with pytest.raises(StructureError, match="rock"):
        user_robot(builder.build())
    with pytest.raises(StructureError, match="nothing moves in rock"):
        user_robot(builder.build(), ["stone"])


def test_a_robot_that_is_not_built_in_is_named():
    with pytest.raises(mk.UnknownName, match="7r"):
        make_robot("7rr")
