"""Overconstrained spatial loops and planar platforms compared with closed forms."""

import cmath
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from linkage_drive import CLOSED, cross, driven, flat, openness, same_angle, turn

import mechanik as mk
from mechanik import gallery
from mechanik.errors import StructureError

# ---- Bennett --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("twist", "other_twist"), [(0.7, 1.9), (1.9, 0.7), (0.4, 0.9), (1.0, math.pi - 1.0)])
def test_the_bennett_loop_makes_full_turns_by_the_ratio_of_half_angles(twist, other_twist):
    loop = gallery.bennett(twist=twist, other_twist=other_twist)
    ratio = math.sin((other_twist + twist) / 2) / math.sin((other_twist - twist) / 2)
    # in closed form the coupler is at most |ratio| or 1/|ratio| times as fast as the crank
    fastest = 1.01 * max(abs(ratio), 1 / abs(ratio))
    for solution in driven(loop, "crank_joint", turn(1.0, 240), fastest):
        crank, coupler, rocker = (solution[f"{bar}_joint"] for bar in ("crank", "coupler", "rocker"))
        assert same_angle(coupler, 2 * math.atan2(ratio * math.cos(crank / 2), math.sin(crank / 2)), 1e-8)
        assert same_angle(rocker, -crank, 1e-8)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.2, 2.9), st.floats(0.2, 2.9), st.floats(-6, 6), st.floats(0.01, 10))
def test_every_bennett_loop_has_one_dof_although_the_count_gives_minus_two(twist, other_twist, angle, length):
    assume(abs(twist - other_twist) > 0.05)
    loop = gallery.bennett(length, twist, other_twist, angle)
    assert loop.closures["closing_joint"].gap().is_closed(1e-12 * max(1.0, 20 * length))
    mobility = mk.mobility(loop)
    assert (mobility.gruebler, mobility.dof, mobility.redundant_constraints) == (-2, 1, 3)
    lengths = [np.linalg.norm(loop.joint(joint).position) for joint in ("coupler_joint", "rocker_joint")]
    assert lengths[0] / math.sin(twist) == pytest.approx(lengths[1] / math.sin(other_twist))


# ---- Sarrus ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", ["lower_x_joint", "lower_y_joint"])
def test_the_sarrus_platform_moves_straight_up_and_does_not_rotate(joint):
    lift = gallery.sarrus(width=0.4, plate=0.3)
    up_and_down = np.concatenate([np.linspace(0.8, 1.5, 40), np.linspace(1.5, 0.05, 80)])
    for solution in driven(lift, joint, up_and_down, fastest=2.0):
        X = lift.pose("top", solution.q)
        np.testing.assert_allclose(X[:3, :3], np.eye(3), rtol=0, atol=1e-9)
        np.testing.assert_allclose(X[:3, 3], [0, 0, 0.6 * math.sin(solution[joint])], rtol=0, atol=1e-9)


def test_the_sarrus_loop_of_six_hinges_has_one_dof_although_the_count_gives_none():
    mobility = mk.mobility(gallery.sarrus())
    assert (mobility.gruebler, mobility.dof, mobility.redundant_constraints) == (0, 1, 1)


# ---- the scissor lift -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_the_scissor_lift_is_as_high_as_its_formula_says_and_level(stages):
    lift = gallery.scissor_lift(stages, bar=0.8, angle=0.3)
    first, near = lift.values()["slider_joint"], 0.1 * 0.8
    # bars turn by 1 / height of a stage for each metre of slide, the crossings twice that; steepest where they are low
    for solution in driven(lift, "slider_joint", np.linspace(first, near, 80), fastest=2.01 / (0.8 * math.sin(0.3))):
        X = lift.pose("platform", solution.q)
        height = stages * math.sqrt(0.8**2 - solution["slider_joint"] ** 2)
        np.testing.assert_allclose(X[:3, 3], [0, 0, height], rtol=0, atol=1e-9 * stages)
        np.testing.assert_allclose(X[:3, :3], np.eye(3), rtol=0, atol=1e-9 * stages)
        assert solution["roller_joint"] == pytest.approx(solution["slider_joint"], abs=1e-9 * stages)


@pytest.mark.parametrize("stages", [1, 4, 8])
def test_a_scissor_lift_has_one_dof_for_any_number_of_stages(stages):
    lift = gallery.scissor_lift(stages)
    assert (lift.nv, len(lift.closures)) == (2 * stages + 3, stages + 1)
    assert mk.mobility(lift).dof == 1


# ---- the platform on three arms -------------------------------------------------------------------------------------


def arms(x, y, angle):
    """Of the default sizes: the three motors' angles, each from its own triangle."""
    angles = []
    for spoke in (math.pi / 2, math.pi * 7 / 6, math.pi * 11 / 6):
        motor, pin = cmath.rect(0.5, spoke), complex(x, y) + cmath.rect(0.15, spoke + angle)
        angles.append(cmath.phase(cross(motor, 0.3, pin, 0.3, +1) - motor))
    return angles


def test_the_motor_angles_of_the_planar_platform_follow_from_triangles():
    robot = gallery.planar_3rrr()
    assert mk.mobility(robot).dof == 3
    solver = mk.Solver(robot, mk.PoseGoal("tool", robot.pose("tool")))
    q = robot.q
    for t in np.linspace(0, 2 * math.pi, 80):
        x, y, angle = 0.1 * math.sin(t), 0.1 * math.sin(2 * t), 0.4 * math.sin(3 * t)
        X = np.eye(4)
        X[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        X[:2, 3] = x, y
        solution = solver.solve(X, q)
        assert solution.success, (t, solution)
        assert openness(solution) < CLOSED
        for k, motor in enumerate(arms(x, y, angle)):
            assert same_angle(solution[f"arm{k + 1}_joint"], motor, 1e-5), (t, k)
        q = solution.q


def test_the_planar_platform_follows_its_motors():
    robot = gallery.planar_3rrr()
    motors = [f"arm{k}_joint" for k in (1, 2, 3)]
    solver = mk.Solver(robot, mk.JointValues(dict.fromkeys(motors, 0.0), angle_tolerance=1e-9))
    q = robot.q
    for t in np.linspace(0, 2 * math.pi, 80):
        pose = 0.1 * math.sin(t), 0.1 * math.sin(2 * t), 0.4 * math.sin(3 * t)
        solution = solver.solve(dict(zip(motors, arms(*pose), strict=True)), q)
        assert solution.success, (t, solution)
        assert openness(solution) < CLOSED
        X = robot.pose("tool", solution.q)
        actual = X[0, 3], X[1, 3], math.atan2(X[1, 0], X[0, 0])
        np.testing.assert_allclose(actual, pose, rtol=0, atol=1e-7)
        q = solution.q


@pytest.mark.parametrize("pose", [(0.0, 0.0, 0.0), (0.1, -0.05, 0.3), (-0.08, 0.1, -0.5)])
def test_the_planar_platform_can_be_built_wherever_its_arms_reach(pose):
    robot = gallery.planar_3rrr(position=pose[:2], angle=pose[2])
    X = robot.pose("tool")
    assert abs(flat(X[:3, 3]) - complex(*pose[:2])) < 1e-12
    assert math.atan2(X[1, 0], X[0, 0]) == pytest.approx(pose[2], abs=1e-12)
    np.testing.assert_allclose([robot.values()[f"arm{k}_joint"] for k in (1, 2, 3)], arms(*pose), rtol=0, atol=1e-12)
    assert all(closure.gap().is_closed(1e-12) for closure in robot.closures.values())


# ---- what is refused ------------------------------------------------------------------------------------------------

BAD = {
    "a twist of half a turn": (lambda: gallery.bennett(twist=math.pi), "bennett: twist must .*not 3.14"),
    "no twist": (lambda: gallery.bennett(other_twist=0.0), "bennett: other_twist must .*not 0"),
    "twists alike": (lambda: gallery.bennett(twist=1.0, other_twist=1.0), "both are 1"),
    "a flat lift": (lambda: gallery.sarrus(angle=0.0), "sarrus: angle must .*not 0"),
    "a lift bent over": (lambda: gallery.sarrus(angle=2.0), "sarrus: angle must .*not 2"),
    "no stages": (lambda: gallery.scissor_lift(0), "stages must .*not 0"),
    "half a stage": (lambda: gallery.scissor_lift(2.5), "stages must .*not 2.5"),
    "scissors upright": (lambda: gallery.scissor_lift(angle=1.6), "scissor_lift: angle must .*not 1.6"),
    "arms too short": (lambda: gallery.planar_3rrr(arm=0.05, forearm=0.05), "planar_3rrr cannot be assembled"),
    "a position in space": (lambda: gallery.planar_3rrr(position=(0.0, 0.0, 0.0)), "two finite numbers"),
    "a position nowhere": (lambda: gallery.planar_3rrr(position=(math.nan, 0.0)), "two finite numbers"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_impossible_loops_are_rejected_by_name(call, message):
    with pytest.raises(StructureError, match=message):
        call()
