"""Excavator, gripper and two arms with a box, over the whole range of their inputs."""

import math

import numpy as np
import pytest
from robot_poses import CLOSED, apart, check_reached, moved, openness

import mechanik as mk
from mechanik import gallery
from mechanik.errors import StructureError
from mechanik.model import mobility
from mechanik.spatial import inverse

# ---- excavator ------------------------------------------------------------------------------

CYLINDERS = ("boom_cylinder", "stick_cylinder", "bucket_cylinder")
SLIDES = tuple(f"{name}_slide" for name in CYLINDERS)


def pin(machine, q, link, point):
    X = machine.pose(link, q)
    return X[:3, :3] @ point + X[:3, 3]


def cosine_angle(a, b, c):
    """The angle opposite to side c."""
    return math.acos((a * a + b * b - c * c) / (2 * a * b))


def test_an_excavator_has_four_dofs_although_the_count_gives_another_number():
    counts = mobility(gallery.excavator())
    # four loops in a plane, of whose twenty rows the twelve out of the plane say nothing new
    assert (counts.tree_dof, counts.constraints, counts.gruebler, counts.dof, counts.redundant_constraints) == (
        12,
        20,
        -8,
        4,
        12,
    )


def test_cylinders_reach_every_length_and_the_arm_angles_follow_from_triangles():
    machine, rng = gallery.excavator(), np.random.default_rng(11)
    ik = mk.Solver(machine, mk.JointValues({"swing": 0.0, **dict.fromkeys(SLIDES, 0.0)}, angle_mode="exact"))
    for _ in range(60):
        lengths = {slide: rng.uniform(*machine.joint(slide).limits("Z")) for slide in SLIDES}
        solution = ik.solve({"swing": rng.uniform(-3, 3), **lengths}, machine.q)
        check_reached(solution)
        for slide, length in lengths.items():
            assert abs(solution[slide] - length) < 1e-6, solution
        # from the boom's foot: to the cylinder 0.123, -0.105 of the boom's length, to its piston 0.42, 0.10 of it
        a, b = 5.7 * math.hypot(0.123, 0.105), 5.7 * math.hypot(0.42, 0.10)
        boom = cosine_angle(a, b, solution[SLIDES[0]]) + math.atan2(-0.105, 0.123) - math.atan2(0.10, 0.42)
        assert solution["boom_joint"] == pytest.approx(boom, abs=1e-8)
        # from the stick's pin: back along the boom to the cylinder, and to the stick's rear end
        a, b = 5.7 * math.hypot(0.49 - 1, 0.17), 2.9 * math.hypot(-0.24, 0.09)
        stick = math.atan2(0.17, 0.49 - 1) - cosine_angle(a, b, solution[SLIDES[1]]) - math.atan2(0.09, -0.24)
        assert solution["stick_joint"] == pytest.approx(stick, abs=1e-8)


def test_rocker_and_coupler_of_the_excavator_keep_their_lengths_and_the_bucket_moves_monotonically():
    machine = gallery.excavator()
    ik = mk.Solver(machine, mk.JointValues({SLIDES[2]: 0.0}), lock=["swing", "boom_joint", "stick_joint"])
    q, angles = machine.q, []
    for length in np.linspace(*machine.joint(SLIDES[2]).limits("Z"), 60):
        solution = ik.solve(float(length), q)
        assert solution.success, solution
        q = solution.q
        knee = machine.pose("coupler", q)[:3, 3]
        lug = pin(
            machine, q, "bucket", 2.9 * 0.162 * np.array([math.cos(math.radians(95)), 0, math.sin(math.radians(95))])
        )
        assert np.linalg.norm(knee - machine.pose("rocker", q)[:3, 3]) == pytest.approx(2.9 * 0.225, abs=CLOSED)
        assert np.linalg.norm(knee - lug) == pytest.approx(2.9 * 0.207, abs=CLOSED)
        angles.append(solution["bucket_joint"])
    assert (np.diff(angles) < 0).all(), "a longer cylinder curls the bucket in"
    np.testing.assert_allclose(np.degrees([angles[0], angles[-1]]), [35, -120], rtol=0, atol=1e-6)


def test_the_teeth_of_the_excavator_follow_a_line_on_the_ground_while_the_bucket_keeps_its_angle():
    machine = gallery.excavator()
    X = machine.pose("teeth")
    ik, q = mk.Solver(machine, mk.PoseGoal("teeth", X)), machine.q
    for back in np.linspace(0, 1.5, 60):
        wanted = moved(X, (-back, 0.0, -0.2 * back))
        solution = ik.solve(wanted, q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        q = solution.q


@pytest.mark.parametrize(("boom", "stick"), [(5.7, 2.9), (3.0, 1.5), (8.0, 2.5), (4.0, 3.5)])
def test_excavators_of_other_sizes_are_closed_and_no_cylinder_exceeds_its_stroke(boom, stick):
    machine = gallery.excavator(boom=boom, stick=stick)
    assert all(closure.gap().is_closed(1e-12) for closure in machine.closures.values())
    for slide in SLIDES:
        shortest, longest = machine.joint(slide).limits("Z")
        assert shortest < machine.values()[slide] < longest < 2 * shortest, "a piston comes out of its own length only"


# ---- gripper --------------------------------------------------------------------------------

COUPLERS = ("left_coupler_joint", "right_coupler_joint")
SPRING_LINKS = ("left_spring_link_joint", "right_spring_link_joint")


def pads(hand, q):
    return hand.pose("left_pad", q), hand.pose("right_pad", q)


def gap(hand, q):
    left, right = pads(hand, q)
    return left[0, 3] - right[0, 3]


def test_the_gripper_has_one_motor_and_two_springs():
    hand = gallery.gripper()
    counts = mobility(hand)
    # two loops in a plane, of whose ten rows the six out of the plane say nothing new
    assert (counts.tree_dof, counts.constraints, counts.dof, counts.redundant_constraints) == (7, 10, 3, 6)


@pytest.mark.parametrize("opening", [0.05, 0.085, 0.14])
def test_open_is_as_far_as_it_says_and_closed_the_pads_touch(opening):
    hand = gallery.gripper(opening)
    for name, wide in (("open", opening), ("closed", 0.0)):
        hand.q = hand.configurations[name]
        assert all(closure.gap().is_closed(1e-12) for closure in hand.closures.values())
        assert gap(hand, hand.q) == pytest.approx(wide, abs=1e-12)


def test_pads_stay_parallel_and_as_wide_as_the_formula_says_while_the_couplers_are_at_their_stops():
    hand, rng = gallery.gripper(), np.random.default_rng(12)
    ik = mk.Solver(hand, mk.JointValues({"left_driver_joint": 0.0}), lock=COUPLERS)
    length = 0.085 / 2 / (math.sin(0.55) - math.sin(0.55 - 0.8))
    for turned in rng.uniform(0, 0.8, 40):
        solution = ik.solve(float(turned), hand.q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        left, right = pads(hand, solution.q)
        np.testing.assert_allclose(left[:3, :3], np.eye(3), rtol=0, atol=CLOSED)
        np.testing.assert_allclose(right[:3, :3], np.diag([-1.0, -1.0, 1.0]), rtol=0, atol=CLOSED)
        wide = 2 * length * (math.sin(0.55 - solution["left_driver_joint"]) - math.sin(0.55 - 0.8))
        assert gap(hand, solution.q) == pytest.approx(wide, abs=CLOSED)
        assert left[0, 3] == pytest.approx(-right[0, 3], abs=CLOSED)


def test_with_its_springs_the_gripper_closes_in_parallel():
    hand = gallery.gripper()
    ik = mk.Solver(hand, mk.JointValues({"left_driver_joint": 0.0}, name="motor"), rest=dict.fromkeys(COUPLERS, 0.0))
    q = hand.configurations["open"]
    for turned in np.linspace(0, 0.8, 30):
        solution = ik.solve({"motor": float(turned)}, q)
        assert solution.success, solution
        q = solution.q
        assert max(abs(solution[name]) for name in COUPLERS) < 1e-6


def test_a_finger_held_below_leans_in_around_what_it_holds():
    hand = gallery.gripper()
    ik = mk.Solver(hand, mk.JointValues({"left_driver_joint": 0.0}), lock=SPRING_LINKS)
    leans = []
    for turned in np.linspace(0.4, 0.8, 9):
        solution = ik.solve(float(turned), hand.q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        left, right = pads(hand, solution.q)
        leans.append(-math.asin(left[0, 2]) + 0.0)
        assert -math.asin(-right[0, 2]) == pytest.approx(leans[-1], abs=1e-8)
    assert leans[0] == pytest.approx(0, abs=1e-9)
    assert (np.diff(leans) > 0).all()
    assert leans[-1] > 0.3
    # back past its stop the coupler does not go
    assert not ik.solve(0.3, hand.q).success


# ---- two arms with a box --------------------------------------------------------------------


@pytest.mark.parametrize(("joints", "dof"), [(7, 8), (6, 6)])
def test_two_arms_with_a_box_have_the_mobility_of_their_joints_minus_a_weld(joints, dof):
    pair = gallery.two_arms(joints=joints)
    counts = mobility(pair)
    assert (counts.tree_dof, counts.constraints, counts.dof, counts.redundant_constraints) == (2 * joints, 6, dof, 0)


def test_an_arm_of_five_joints_is_rejected():
    with pytest.raises(StructureError, match="joints must be 6 or 7, not 5"):
        gallery.two_arms(joints=5)


@pytest.mark.parametrize("joints", [6, 7])
def test_two_arms_carry_a_box_level_along_a_path_and_neither_hand_slips(joints):
    pair = gallery.two_arms(joints=joints)
    home = pair.pose("box")
    np.testing.assert_allclose(home[:3, :3], np.eye(3), rtol=0, atol=1e-12)
    grips = {hand: inverse(home) @ pair.pose(hand) for hand in ("left_hand", "right_hand")}
    ik, q = mk.Solver(pair, mk.PoseGoal("box", home)), pair.q
    for t in np.arange(0, 6.3, 0.1):
        path = (0.1 * math.sin(t), 0.15 * math.sin(0.7 * t), 0.1 * math.sin(1.3 * t))
        solution = ik.solve(moved(home, path, (0.0, 0.0, 0.3 * math.sin(0.5 * t))), q)
        check_reached(solution)
        assert np.abs(solution.q - q).max() < 0.2
        q = solution.q
        box = pair.pose("box", q)
        assert abs(box[2, 2] - 1) < 1e-9, "level"
        for hand, grip in grips.items():
            assert apart(inverse(box) @ pair.pose(hand, q), grip) < 3 * CLOSED, hand


def test_elbows_move_while_the_box_stays_at_rest():
    pair = gallery.two_arms()
    box = pair.pose("box")
    goals = [
        mk.PoseGoal("box", box, level=0, name="box"),
        mk.JointValues({"left_upper_arm_roll": 0.0, "right_upper_arm_roll": 0.0}, name="elbows"),
    ]
    ik, q = mk.Solver(pair, goals), pair.q
    for turn in np.linspace(0, 0.6, 13):
        solution = ik.solve({"elbows": {"left_upper_arm_roll": turn, "right_upper_arm_roll": -turn / 2}}, q)
        assert solution.success, solution
        q = solution.q
        assert apart(pair.pose("box", q), box) < 2e-6
    lifted = [
        pair.pose(f"{side}_forearm", q)[:3, 3] - pair.pose(f"{side}_forearm")[:3, 3] for side in ("left", "right")
    ]
    assert min(np.linalg.norm(p) for p in lifted) > 0.01
