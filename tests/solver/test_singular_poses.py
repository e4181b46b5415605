"""Singular poses: kind, distance, and the motion without effect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from graph_arms import planar_arm
from special_loops import bennett, parallelogram, planar_platform, sarrus, six_sps, slot_crank, stretched_truss

import mechanik as mk

TRIANGLE = np.array([[math.cos(a), math.sin(a)] for a in np.radians([90, 210, 330])])


def arm(values=(0.3, 0.3, 0.3)):
    root, joints, _ = planar_arm()
    for joint, value in zip(joints, values, strict=True):
        joint.set_values(value)
    return mk.Mechanism(root)


def solve_met_goals(mechanism, *goals):
    """The solution of goals that are met at the current configuration."""
    return mk.solve(mechanism, goals, q0=mechanism.q).require()


def solve_current_input(mechanism, *names):
    return solve_met_goals(
        mechanism, mk.JointValues({name: mechanism.joint(name).values for name in names}, angle_mode="exact")
    )


def solve_current_pose(mechanism, link):
    return solve_met_goals(mechanism, mk.PoseGoal(link, mechanism.pose(link)))


def moving_joints(part):
    return set(part.motion)


# ---- serial chains ------------------------------------------------------------------------------


def test_a_bent_arm_is_regular():
    singularity = solve_met_goals(arm(), mk.PositionGoal("arm_tip", arm().pose("arm_tip")[:3, 3])).singularity
    assert not singularity
    assert singularity.kinds == ()
    assert singularity.singular_value_ratio > 0.02
    assert "regular" in repr(singularity)


def test_a_stretched_arm_cannot_reach_further():
    mechanism = arm((0.4, 0.0, 0.0))
    singularity = solve_met_goals(mechanism, mk.PositionGoal("arm_tip", mechanism.pose("arm_tip")[:3, 3])).singularity
    assert singularity.kinds == ("lost direction",)
    assert singularity.singular_value_ratio < 1e-12
    v = np.array([singularity.direction("lost direction").motion.get(name, 0.0) for name in mechanism.space.v_names])
    np.testing.assert_allclose(mechanism.jacobian("arm_tip")[:3] @ v, 0, atol=1e-9)
    assert "cannot move" in repr(singularity)


@pytest.mark.parametrize("x", [3.0, 3.5])
def test_a_solve_to_the_border_of_the_reach_ends_at_a_singular_pose(x):
    assert mk.solve(arm(), mk.PositionGoal("arm_tip", (x, 0, 0))).singularity.kinds == ("lost direction",)


def test_the_distance_to_singularity_is_proportional_to_the_bend():
    bends = np.array([0.2, 0.1, 0.05])
    near = []
    for bend in bends:
        mechanism = arm((0.4, bend, bend))
        near.append(
            solve_met_goals(
                mechanism, mk.PositionGoal("arm_tip", mechanism.pose("arm_tip")[:3, 3])
            ).singularity.singular_value_ratio
        )
    np.testing.assert_allclose(near / bends, near[-1] / bends[-1], rtol=0.05)


@pytest.mark.parametrize(("name", "value"), [("wrist_2_joint", 0.0), ("elbow_joint", 0.0)])
def test_the_known_singular_poses_of_a_ur5(name, value):
    robot = mk.gallery.ur5()
    robot.q = robot.configuration(dict(zip(robot.space.q_names, (0.3, -1.1, 0.9, -0.7, 0.8, 0.2), strict=True)))
    assert not solve_current_pose(robot, "tool0").singularity
    robot.joint(name).set_values(value)
    singularity = solve_current_pose(robot, "tool0").singularity
    assert singularity.kinds == ("lost direction",)


def test_random_poses_of_arms_are_regular():
    robot, rng = mk.gallery.panda(), np.random.default_rng(3)
    for q in robot.random(rng, 20):
        robot.q = q
        assert not solve_current_pose(robot, "panda_hand").singularity


def test_locked_joints_do_not_count():
    """An arm with one joint locked is singular where the other two are in line."""
    mechanism = arm((0.4, 0.7, 0.0))
    goal = mk.PositionGoal("arm_tip", mechanism.pose("arm_tip")[:3, 3])
    assert not solve_met_goals(mechanism, goal).singularity
    locked = mk.Solver(mechanism, goal, lock="arm1_joint").solve(q0=mechanism.q).require()
    assert locked.singularity.kinds == ("lost direction",)


# ---- change points ------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [(0.0, 0.0, 0.0), (math.pi, -math.pi, math.pi)])
def test_a_flat_parallelogram_has_two_branches(q):
    mechanism = parallelogram()
    mechanism.q = q
    singularity = solve_current_input(mechanism, "crank").singularity
    assert singularity.kinds == ("change point",)
    assert singularity.singular_value_ratio < 1e-12


def test_elsewhere_a_parallelogram_is_regular():
    assert not solve_current_input(parallelogram(), "crank").singularity


def test_a_truss_with_only_infinitesimal_mobility_is_at_a_change_point():
    assert "change point" in mk.Solver(stretched_truss()).solve().singularity.kinds


@pytest.mark.parametrize("make", [bennett, sarrus])
def test_redundant_equations_are_not_singular(make):
    mechanism = make()
    assert not solve_current_input(mechanism, mechanism.space.v_names[0]).singularity


# ---- dead points --------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, math.pi])
def test_a_piston_cannot_start_its_crank_from_a_dead_point(angle):
    mechanism = mk.gallery.slider_crank(angle=angle)
    singularity = solve_current_input(mechanism, "slider_joint").singularity
    assert singularity.kinds == ("dead point",)
    assert moving_joints(singularity.direction("dead point")) == {"crank_joint", "rod_joint"}
    assert not solve_current_input(mechanism, "crank_joint").singularity
    assert not solve_current_input(mk.gallery.slider_crank(angle=angle + 0.5), "slider_joint").singularity


def test_the_dead_point_of_a_crank_is_detected_where_the_slider_closes_the_loop():
    assert solve_current_input(slot_crank(), "crank").singularity.kinds == ("dead point",)


def test_a_rocker_cannot_start_its_crank_where_crank_and_coupler_are_in_line():
    """The extreme of the rocker: ground 2.0 and rocker 1.2, crank and coupler together 2.3 long."""
    inner = math.acos((2.0**2 + 2.3**2 - 1.2**2) / (2 * 2.0 * 2.3))
    rocker = math.pi - math.acos((2.0**2 + 1.2**2 - 2.3**2) / (2 * 2.0 * 1.2))
    mechanism = mk.gallery.four_bar()
    mechanism.q = mechanism.configuration({"crank_joint": inner, "coupler_joint": 0.0, "rocker_joint": rocker})
    singularity = solve_current_input(mechanism, "rocker_joint").singularity
    assert singularity.kinds == ("dead point",)
    assert moving_joints(singularity.direction("dead point")) == {"crank_joint", "coupler_joint"}


def five_bar_with_rods_in_line():
    """Elbows as far apart as both rods are long."""
    mechanism = mk.gallery.five_bar(ground=1.2, crank=0.5, rod=0.8, left=1.8, right=math.pi - 1.8)
    right = math.acos(0.4)
    return mechanism, mechanism.configuration(
        {
            "left_crank_joint": math.pi - right,
            "left_rod_joint": right - math.pi,
            "right_crank_joint": right,
            "right_rod_joint": math.pi - right,
        }
    )


def test_a_five_bar_with_its_rods_in_line_cannot_hold_its_tool():
    mechanism, q = five_bar_with_rods_in_line()
    mechanism.q = q
    singularity = solve_met_goals(mechanism, mk.PositionGoal("tool", mechanism.pose("tool")[:3, 3])).singularity
    assert singularity.kinds == ("dead point",)
    assert moving_joints(singularity.direction("dead point")) == {"left_rod_joint", "right_rod_joint"}


def test_a_five_bar_with_an_arm_stretched_cannot_move_its_tool_along_it():
    left = math.radians(60)
    mechanism = mk.gallery.five_bar()
    tip = np.array([-0.3, 0]) + 1.3 * np.array([math.cos(left), math.sin(left)])
    reach = tip - (0.3, 0)
    apart = np.linalg.norm(reach)
    right = math.atan2(reach[1], reach[0]) - math.acos((0.5**2 + apart**2 - 0.8**2) / (2 * 0.5 * apart))
    rod = tip - np.array([0.3, 0]) - 0.5 * np.array([math.cos(right), math.sin(right)])
    mechanism.q = mechanism.configuration(
        {
            "left_crank_joint": left,
            "left_rod_joint": 0.0,
            "right_crank_joint": right,
            "right_rod_joint": math.atan2(rod[1], rod[0]) - right,
        }
    )
    singularity = solve_met_goals(mechanism, mk.PositionGoal("tool", mechanism.pose("tool")[:3, 3])).singularity
    assert singularity.kinds == ("lost direction",)


# ---- platforms ----------------------------------------------------------------------------------


def three_rrr(elbows):
    return planar_platform(0.8 * TRIANGLE, elbows, 0.2 * TRIANGLE)


def test_a_planar_platform_is_singular_where_all_rods_meet_in_a_point():
    """C. Gosselin and J. Angeles: where the lines of the rods meet, the platform rotates with fixed cranks."""
    tops, meeting = 0.2 * TRIANGLE, np.array([0.05, -0.03])
    away = tops - meeting
    elbows = tops + 0.45 * away / np.linalg.norm(away, axis=1)[:, None]
    singularity = solve_current_pose(three_rrr(elbows), "platform").singularity
    assert singularity.kinds == ("dead point",)
    motion = singularity.direction("dead point").motion
    shift = np.array([motion["platform_joint.X"], motion["platform_joint.Y"]]) / motion["platform_joint.EZ"]
    np.testing.assert_allclose(shift, [meeting[1], -meeting[0]], atol=1e-9)  # a rotation about the meeting point


def test_a_planar_platform_is_singular_where_a_leg_is_stretched():
    tops, feet = 0.2 * TRIANGLE, 0.8 * TRIANGLE
    elbows = (tops + feet) / 2 + 0.15 * np.array([[0.0, 0.0], [1.0, 0.3], [0.2, 1.0]])
    singularity = solve_current_pose(three_rrr(elbows), "platform").singularity
    assert singularity.kinds == ("lost direction",)
    assert moving_joints(singularity.direction("lost direction")) == {"crank0", "elbow0"}  # the platform does not move


@pytest.mark.parametrize("aside", [0.1, 0.2, 0.3])
def test_elsewhere_a_planar_platform_is_regular(aside):
    """All elbows bent to the same side: the lines of the rods touch a circle, and meet nowhere."""
    elbows = 0.5 * TRIANGLE + aside * TRIANGLE[:, ::-1] * (-1, 1)
    assert not solve_current_pose(three_rrr(elbows), "platform").singularity


@pytest.mark.parametrize("turn", [math.pi / 2, -math.pi / 2])
def test_a_platform_on_six_legs_is_singular_after_a_quarter_turn(turn):
    """E. F. Fichter, International Journal of Robotics Research 5(2) (1986), of hexagons 60 degrees apart."""
    robot = six_sps(foot="universal", angles=(15.0, 45.0), pose=(0, 0, 0.3, 0, 0, turn))
    singularity = solve_current_pose(robot, "platform").singularity
    assert singularity.kinds == ("dead point",)
    assert singularity.singular_value_ratio < 1e-9
    motion = singularity.direction("dead point").motion
    # a screw about the axis of both hexagons
    assert {name for name in motion if name.startswith("platform")} == {"platform_joint.Z", "platform_joint.EZ"}
    assert not any(name.startswith("slide") for name in motion)


def test_elsewhere_a_platform_is_regular():
    rng = np.random.default_rng(5)
    for _ in range(5):
        pose = np.array([0, 0, 0.3, 0, 0, 0]) + rng.uniform(-1, 1, 6) * [0.05, 0.05, 0.05, 0.3, 0.3, 0.3]
        assert not solve_current_pose(six_sps(foot="universal", pose=pose), "platform").singularity


def test_a_leg_that_spins_is_not_singular():
    assert not solve_current_pose(six_sps(), "platform").singularity


# ---- odd ends -----------------------------------------------------------------------------------


def test_an_open_loop_is_not_reported_as_singular():
    mechanism = mk.gallery.four_bar()
    far = mechanism.configuration({"rocker_joint": 0.0})
    mechanism.closures["closing_joint"].undo()
    mechanism.joint("closing_joint").make_closure(mechanism.link("rocker"), mk.Pose((9.0, 0, 0), (1, 0, 0, 0)))
    solution = mk.Solver(mechanism).solve(q0=far)
    assert not solution.success
    assert not solution.singularity


def test_a_mechanism_that_cannot_move_is_regular():
    builder = mk.Builder()
    builder.fixed("f", "a", "b")
    assert not mk.Solver(builder.build()).solve().singularity


def test_bands_do_not_make_a_pose_singular():
    mechanism = arm()
    p = mechanism.pose("arm_tip")[:3, 3]
    inside = mk.InBox("arm_tip", p - 1, p + 1)
    assert not solve_met_goals(mechanism, inside).singularity
