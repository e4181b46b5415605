"""Legged robots: a walker with six legs, a biped with ankle rods, a humanoid with fixed feet and hands."""

import math

import numpy as np
import pytest
from robot_poses import apart, check_reached, moved, solve_circle

import mechanik as mk
from mechanik import gallery
from mechanik.model import mobility
from mechanik.model.mobility import closure_jacobian
from mechanik.spatial import make_pose, rotation

# ---- walker ---------------------------------------------------------------------------------

FEET = tuple(f"foot{k}" for k in range(1, 7))


def test_the_walker_stands_on_six_soles_and_is_rotationally_symmetric():
    robot = gallery.walker()
    assert robot.nv == 42
    sixth = make_pose(rotation.about_z(math.pi / 3), np.zeros(3))
    for foot, next_foot in zip(FEET, (*FEET[1:], FEET[0]), strict=True):
        X = robot.pose(foot)
        assert X[2, 3] == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(X[:3, 2], (0, 0, 1), rtol=0, atol=1e-12)
        np.testing.assert_allclose(sixth @ X, robot.pose(next_foot), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [{"radius": 0.2, "hip": 0.05, "thigh": 0.1, "shank": 0.15}, {"shank": 1.4}])
def test_walkers_of_other_sizes_stand_on_the_ground(sizes):
    robot = gallery.walker(**sizes)
    for foot in FEET:
        assert robot.pose(foot)[2, 3] == pytest.approx(0, abs=1e-12)


def test_with_all_six_feet_fixed_the_body_has_six_dofs_and_the_legs_have_none():
    robot = gallery.walker()
    J = np.concatenate([robot.jacobian(foot) for foot in FEET])
    motions = np.linalg.svd(J)[2][36:]
    assert np.linalg.matrix_rank(J, tol=1e-6) == 36
    assert np.linalg.matrix_rank(robot.jacobian("body") @ motions.T, tol=1e-6) == 6


def test_the_body_of_the_walker_moves_about_while_six_feet_stay_where_they_are():
    robot = gallery.walker()
    feet = {foot: robot.pose(foot) for foot in FEET}
    body = robot.pose("body")
    ik = mk.Solver(
        robot,
        [mk.PoseGoal("body", body, name="body"), *(mk.PoseGoal(f, X, level=0, name=f) for f, X in feet.items())],
    )
    q = robot.q
    for t in np.arange(0, 6.3, 0.15):
        shift = (0.2 * math.sin(t), 0.2 * math.sin(0.8 * t), 0.1 * math.sin(1.2 * t))
        wanted = moved(body, shift, (0.1 * math.sin(t), 0.1 * math.sin(0.7 * t), 0.2 * math.sin(0.6 * t)))
        solution = ik.solve({"body": wanted}, q)
        assert solution.success, solution
        assert np.abs(robot.difference(q, solution.q)).max() < 0.2
        q = solution.q
        assert apart(robot.pose("body", q), wanted) < 3e-6
        for foot, X in feet.items():
            assert apart(robot.pose(foot, q), X) < 3e-6, foot


def test_the_walker_steps_tripod_by_tripod_and_the_standing_feet_do_not_slip():
    robot = gallery.walker()
    ik = mk.Solver(
        robot,
        [
            mk.PoseGoal("body", np.eye(4), name="body"),
            *(mk.PositionGoal(f, np.zeros(3), level=0, name=f) for f in FEET),
        ],
    )
    body, q = robot.pose("body"), robot.q
    places = {foot: robot.pose(foot)[:3, 3] for foot in FEET}
    for tick in range(80):
        tripod, share = FEET[(tick // 20) % 2 :: 2], (tick % 20 + 1) / 20
        ahead = 0.01 * (tick + 1)
        targets = {"body": moved(body, (ahead, 0.0, 0.0)), **places}
        for foot in tripod:
            targets[foot] = places[foot] + (0.4 * share, 0.0, 0.2 * math.sin(math.pi * share))
        solution = ik.solve(targets, q)
        assert solution.success, (tick, solution)
        q = solution.q
        for foot in set(FEET) - set(tripod):
            assert apart(robot.pose(foot, q)[:3, 3], places[foot]) < 2e-6
        if share == 1:
            places.update({foot: targets[foot] for foot in tripod})
    assert robot.pose("body", q)[0, 3] == pytest.approx(0.8, abs=1e-5)


# ---- biped ----------------------------------------------------------------------------------

CRANK, ROD, WIDTH, MOTOR = 0.06, 0.28, 0.10, 0.28  # the motors stand as high above the ankle as the rods are long


def crank_angles(pitch, roll):
    """Of the cranks with their rods at y = -WIDTH/2 and WIDTH/2: ends of both circle their motors, rods away."""
    R = rotation.about_y(pitch) @ rotation.about_x(roll)
    angles = []
    for y in (-WIDTH / 2, WIDTH / 2):
        heel = R @ (-CRANK, y, 0.0)
        x, across, z = heel - (0.0, y, MOTOR)
        # |(-CRANK cos, 0, CRANK sin) - (x, across, z)| = ROD
        c = (x**2 + across**2 + z**2 + CRANK**2 - ROD**2) / (2 * CRANK)
        angles.append(min((math.remainder(a, 2 * math.pi) for a in solve_circle(-x, z, c)), key=abs))
    return angles


def cranks(side):
    """In the order of their y."""
    return [f"{side}_{name}_crank_joint" for name in (("inner", "outer") if side == "left" else ("outer", "inner"))]


def test_the_biped_stands_on_level_soles():
    robot = gallery.biped()
    for side, y in (("left", 0.1), ("right", -0.1)):
        np.testing.assert_allclose(robot.pose(f"{side}_sole"), make_pose(np.eye(3), (0.0, y, 0.0)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [{"shank": 0.5}, {"thigh": 0.6, "hips": 0.3}, {"crank": 0.04, "width": 0.06}])
def test_bipeds_of_other_sizes_stand_on_the_ground_with_their_rods_on(sizes):
    robot = gallery.biped(**sizes)
    assert all(closure.gap().is_closed(1e-12) for closure in robot.closures.values())
    for side in ("left", "right"):
        X = robot.pose(f"{side}_sole")
        np.testing.assert_allclose(X[:3, :3], np.eye(3), rtol=0, atol=1e-12)
        assert X[2, 3] == pytest.approx(0, abs=1e-12)


def test_cranks_move_only_the_ankle_so_a_leg_has_six_dofs():
    robot = gallery.biped()
    counts = mobility(robot)
    assert (counts.tree_dof, counts.constraints, counts.dof, counts.redundant_constraints) == (30, 12, 18, 0)
    # with the cranks held the ankles do not move
    rows = np.concatenate([closure_jacobian(robot, closure) for closure in robot.closures.values()])
    names = robot.space.v_names
    held = [k for k, name in enumerate(names) if "crank" in name]
    rest = np.delete(rows, held, axis=1)
    motions = np.linalg.svd(rest)[2][np.linalg.matrix_rank(rest, tol=1e-9) :]
    ankles = [k for k, name in enumerate(n for n in names if "crank" not in n) if "ankle" in name]
    assert len(held) == len(ankles) == 4
    np.testing.assert_allclose(motions[:, ankles], 0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("side", ["left", "right"])
def test_pitch_and_roll_of_the_ankle_say_where_its_cranks_are(side):
    robot, rng = gallery.biped(), np.random.default_rng(21)
    ik = mk.Solver(robot, mk.JointValues({f"{side}_ankle": (0.0, 0.0)}))
    for _ in range(40):
        roll, pitch = rng.uniform((-0.4, -0.8), (0.4, 0.6))
        solution = ik.solve({f"{side}_ankle": (roll, pitch)}, robot.q)
        check_reached(solution)
        np.testing.assert_allclose([solution[name] for name in cranks(side)], crank_angles(pitch, roll), atol=2e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_two_cranks_drive_pitch_and_roll(side):
    robot, rng = gallery.biped(), np.random.default_rng(22)
    names = cranks(side)
    ik = mk.Solver(robot, mk.JointValues(dict.fromkeys(names, 0.0)))
    for _ in range(40):
        roll, pitch = rng.uniform((-0.35, -0.7), (0.35, 0.5))
        solution = ik.solve(dict(zip(names, crank_angles(pitch, roll), strict=True)), robot.q)
        check_reached(solution)
        np.testing.assert_allclose(solution[f"{side}_ankle"], (roll, pitch), rtol=0, atol=1e-5)


def test_equal_crank_angles_pitch_the_foot_and_opposite_ones_roll_it():
    robot = gallery.biped()
    names = cranks("left")
    ik = mk.Solver(robot, mk.JointValues(dict.fromkeys(names, 0.0)))
    for angle in (-0.6, -0.2, 0.3):
        solution = ik.solve(dict.fromkeys(names, angle), robot.q)
        np.testing.assert_allclose(solution["left_ankle"], (0.0, angle), rtol=0, atol=1e-6)
    solution = ik.solve(dict(zip(names, (0.2, -0.2), strict=True)), robot.q)
    roll, pitch = solution["left_ankle"]
    assert abs(roll) > 0.15
    assert abs(pitch) < 0.02


def test_the_biped_squats_with_its_feet_on_the_ground_and_its_rods_on():
    robot = gallery.biped()
    soles = [mk.PoseGoal(f"{side}_sole", robot.pose(f"{side}_sole"), level=0) for side in ("left", "right")]
    pelvis = robot.pose("pelvis")
    ik, q = mk.Solver(robot, [*soles, mk.PoseGoal("pelvis", pelvis, name="pelvis")]), robot.q
    for t in np.linspace(0, 1, 40):
        wanted = moved(pelvis, (0.03 * t, 0.05 * math.sin(6 * t), -0.12 * t), (0.0, 0.0, 0.2 * math.sin(6 * t)))
        solution = ik.solve({"pelvis": wanted}, q)
        check_reached(solution)
        q = solution.q
        for side in ("left", "right"):
            roll, pitch = solution[f"{side}_ankle"]
            np.testing.assert_allclose([solution[n] for n in cranks(side)], crank_angles(pitch, roll), atol=1e-7)


# ---- humanoid -------------------------------------------------------------------------------


def test_a_person_keeps_both_feet_and_moves_both_hands():
    body = gallery.humanoid()
    feet = {f"{side}_foot": body.pose(f"{side}_foot") for side in ("left", "right")}
    hands = {f"{side}_hand": body.pose(f"{side}_hand")[:3, 3] for side in ("left", "right")}
    goals = [mk.PoseGoal(name, X, level=0, name=name) for name, X in feet.items()]
    goals += [mk.PositionGoal(name, p, name=name) for name, p in hands.items()]
    ik, q = mk.Solver(body, goals), body.q
    for t in np.arange(0, 6.3, 0.15):
        targets = {
            "left_hand": hands["left_hand"]
            + (0.15 + 0.1 * math.sin(t), 0.1 * math.cos(t), 0.2 + 0.1 * math.sin(2 * t)),
            "right_hand": hands["right_hand"] + (0.1 * math.cos(t), -0.1, 0.1 + 0.1 * math.sin(t)),
        }
        solution = ik.solve(targets, q)
        assert solution.success, solution
        q = solution.q
        assert body.space.within_limits(q)
        for name, X in feet.items():
            assert apart(body.pose(name, q), X) < 3e-6
        for name, p in targets.items():
            assert apart(body.pose(name, q)[:3, 3], p) < 2e-6


def test_a_person_who_reaches_too_far_keeps_the_feet_and_comes_as_near_as_can_be():
    body = gallery.humanoid()
    goals = [mk.PoseGoal(f"{side}_foot", body.pose(f"{side}_foot"), level=0) for side in ("left", "right")]
    far = mk.PositionGoal("left_hand", (3.0, 0.5, 1.0), name="far")
    solution = mk.Solver(body, [*goals, far]).solve(None, body.q)
    assert not solution.success
    assert solution.unmet == ("far",)
    for side in ("left", "right"):
        assert apart(body.pose(f"{side}_foot", solution.q), body.pose(f"{side}_foot")) < 3e-6


def test_four_goals_leave_the_dofs_that_they_do_not_constrain():
    body = gallery.humanoid()
    rows = [body.jacobian(f"{side}_foot") for side in ("left", "right")]
    rows += [body.jacobian(f"{side}_hand") for side in ("left", "right")]
    # 37 freedoms, 24 rows, all of them new: a base, two legs of six and two arms of seven
    assert np.linalg.matrix_rank(np.concatenate(rows), tol=1e-6) == 24
