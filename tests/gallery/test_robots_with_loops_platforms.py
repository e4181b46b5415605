"""Platforms compared with closed forms: leg lengths from a pose, and arms of the delta robot from a point."""

import math

import numpy as np
import pytest
from robot_poses import CLOSED, apart, moved, openness, solve_circle

import mechanik as mk
from mechanik import gallery
from mechanik.model import mobility
from mechanik.model.mobility import closure_jacobian
from mechanik.spatial import make_pose, rotation


def circle(radius, *degrees):
    return np.array([[radius * math.cos(math.radians(a)), radius * math.sin(math.radians(a)), 0.0] for a in degrees])


STEWART = circle(0.20, -15, 15, 105, 135, 225, 255), circle(0.12, -45, 45, 75, 165, 195, 285)
HEXAPOD = circle(0.060, -13, 13, 107, 133, 227, 253), circle(0.045, -45, 45, 75, 165, 195, 285)
PLATFORMS = {
    # how it is made, its joints on base and platform, the joint of a leg's length, how far it is sent: m and rad
    "6-UPS": (gallery.stewart_platform, STEWART, "leg{}_slide", 0.06, 0.25),
    "6-UPS with joints at the ends": (
        lambda: gallery.stewart_platform(ends="joint"),
        STEWART,
        "leg{}_slide",
        0.06,
        0.25,
    ),
    "6-SPS": (lambda: gallery.stewart_platform(legs="sps"), STEWART, "leg{}_slide", 0.06, 0.25),
    "6-UCU": (gallery.hexapod, HEXAPOD, "strut{}_slide", 0.004, 0.06),
}
platforms = pytest.mark.parametrize(("make_it", "points", "slide", "far", "turned"), PLATFORMS.values(), ids=PLATFORMS)


def leg_lengths(points, X):
    base, platform = points
    return np.linalg.norm(platform @ X[:3, :3].T + X[:3, 3] - base, axis=1)


def slides(solution, slide):
    return np.array([np.atleast_1d(solution[slide.format(k)])[0] for k in range(1, 7)])


@platforms
def test_the_leg_lengths_follow_from_the_pose(make_it, points, slide, far, turned):
    robot, rng = make_it(), np.random.default_rng(3)
    ik, home = mk.Solver(robot, mk.PoseGoal("platform", np.eye(4))), robot.pose("platform")
    for _ in range(40):
        X = moved(home, rng.uniform(-far, far, 3), rng.uniform(-turned, turned, 3))
        solution = ik.solve(X, robot.q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        np.testing.assert_allclose(slides(solution, slide), leg_lengths(points, X), rtol=0, atol=2e-6)
        np.testing.assert_allclose(
            slides(solution, slide), leg_lengths(points, robot.pose("platform", solution.q)), rtol=0, atol=CLOSED
        )


@platforms
def test_six_lengths_drive_the_platform_and_all_loops_stay_closed(make_it, points, slide, far, turned):
    robot, rng = make_it(), np.random.default_rng(4)
    names = [slide.format(k) for k in range(1, 7)]
    drives = [f"{name}.Z" if len(robot.joint(name).dof) > 1 else name for name in names]
    ik = mk.Solver(robot, mk.JointValues(dict.fromkeys(drives, 0.3)))
    home = robot.pose("platform")
    for _ in range(25):
        X = moved(home, rng.uniform(-far / 2, far / 2, 3), rng.uniform(-turned / 2, turned / 2, 3))
        solution = ik.solve(dict(zip(drives, leg_lengths(points, X), strict=True)), robot.q)
        assert openness(solution) < CLOSED
        assert apart(robot.pose("platform", solution.q), X) < 1e-4, (
            "it may be assembled otherwise, but not from so near"
        )


def test_a_leg_between_two_spherical_joints_has_an_idle_spin_only():
    robot = gallery.stewart_platform(legs="sps")
    counts = mobility(robot)
    assert (robot.nv, counts.gruebler, counts.dof, counts.redundant_constraints) == (30, 12, 12, 0)
    before = robot.pose("piston1")
    robot.joint("leg1_base_ball").set_values(0.0, 0.0, 0.7)
    after = robot.pose("piston1")
    assert apart(after[:3, 2:], before[:3, 2:]) < 1e-12, "it ends where it did"
    assert apart(after, before) > 0.1
    assert all(closure.gap().is_closed(1e-12) for closure in robot.closures.values())


def test_a_hexapod_whose_spindles_cannot_rotate_cannot_move():
    robot = gallery.hexapod()
    counts = mobility(robot)
    assert (robot.nv, counts.gruebler, counts.dof) == (30, 6, 6)
    # not at home, where it is so symmetric that it could still wobble
    X = moved(robot.pose("platform"), (0.004, 0.002, 0.001), (0.03, -0.05, 0.04))
    robot.apply(mk.solve(robot, mk.PoseGoal("platform", X)))
    rows = np.concatenate([closure_jacobian(robot, closure) for closure in robot.closures.values()])
    turns = [robot.space.v_names.index(f"strut{k}_slide.EZ") for k in range(1, 7)]
    held = np.delete(rows, turns, axis=1)
    assert held.shape[1] - np.linalg.matrix_rank(held, tol=1e-9) == 0


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    ("shift", "degrees"),
    [((0.02, 0, 0), (0, 0, 0)), ((0, 0.02, 0), (0, 0, 0)), ((0, 0, 0.008), (0, 0, 0)), ((0, 0, 0), (10, 0, 0)),
     ((0, 0, 0), (0, 10, 0)), ((0, 0, 0), (0, 0, 20))],
)  # fmt: skip
def test_the_hexapod_has_its_stated_travel_in_each_direction(shift, degrees, sign):
    robot = gallery.hexapod()
    X = moved(robot.pose("platform"), sign * np.array(shift), sign * np.radians(degrees))
    solution = mk.Solver(robot, mk.PoseGoal("platform", X)).solve(X, robot.q)
    assert solution.success, solution
    assert robot.space.within_limits(solution.q)
    np.testing.assert_allclose(slides(solution, "strut{}_slide"), leg_lengths(HEXAPOD, X), rtol=0, atol=2e-6)


def test_a_platform_at_home_has_six_equal_legs():
    for name in ("stewart_platform", "hexapod"):
        robot = gallery.make(name)
        lengths = [np.atleast_1d(v)[0] for joint, v in robot.values().items() if joint.endswith("slide")]
        assert len(lengths) == 6
        assert np.ptp(lengths) < 1e-12


# ---- the delta robot: base 0.20, arm 0.30, forearm 0.70, platform 0.06 ----------------------

BASE, ARM, FOREARM, PLATFORM = 0.20, 0.30, 0.70, 0.06


def delta_arms(p):
    """Angles of the arms that carry the platform to p; of two ways the one with elbows out."""
    angles = []
    for k in range(3):
        x, y, z = rotation.about_z(math.radians(120 * k)).T @ p
        out = x - (BASE - PLATFORM)
        # |(out - ARM cos, y, z + ARM sin)| = FOREARM
        c = (out**2 + y**2 + z**2 + ARM**2 - FOREARM**2) / (2 * ARM)
        angles.append(min(solve_circle(out, -z, c), key=lambda angle: abs(math.remainder(angle, 2 * math.pi))))
    return [math.remainder(angle, 2 * math.pi) for angle in angles]


def delta_point(angles):
    """Where three spheres about the elbows meet, below the base."""
    centres = [
        rotation.about_z(math.radians(120 * k)) @ (BASE - PLATFORM + ARM * math.cos(a), 0.0, -ARM * math.sin(a))
        for k, a in enumerate(angles)
    ]
    first, second, third = centres
    M = 2 * np.array([second - first, third - first])
    level = np.array([second @ second - first @ first, third @ third - first @ first])
    start, along = np.linalg.lstsq(M, level, rcond=None)[0], np.cross(M[0], M[1])
    along = along / np.linalg.norm(along)
    b, c = along @ (start - first), (start - first) @ (start - first) - FOREARM**2
    return min((start + (-b + s * math.sqrt(b * b - c)) * along for s in (-1, 1)), key=lambda p: p[2])


ARMS = ("arm1_joint", "arm2_joint", "arm3_joint")


def test_the_arm_angles_of_the_delta_robot_are_those_of_the_formula():
    robot, rng = gallery.delta_robot(), np.random.default_rng(5)
    ik, home = mk.Solver(robot, mk.PositionGoal("platform", (0, 0, 0))), robot.pose("platform")[:3, 3]
    for _ in range(60):
        p = home + rng.uniform(-0.12, 0.12, 3)
        solution = ik.solve(p, robot.q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        reached = robot.pose("platform", solution.q)
        np.testing.assert_allclose([solution[arm] for arm in ARMS], delta_arms(reached[:3, 3]), rtol=0, atol=1e-8)
        assert apart(reached, make_pose(np.eye(3), p)) < 2e-6, "it does not turn"


def test_the_platform_of_the_delta_robot_is_where_three_spheres_meet():
    robot, rng = gallery.delta_robot(), np.random.default_rng(6)
    ik = mk.Solver(robot, mk.JointValues(dict.fromkeys(ARMS, 0.0)))
    for _ in range(60):
        angles = rng.uniform(-0.2, 0.9, 3)
        solution = ik.solve(dict(zip(ARMS, angles, strict=True)), robot.q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        X = robot.pose("platform", solution.q)
        np.testing.assert_allclose(X[:3, 3], delta_point([solution[arm] for arm in ARMS]), rtol=0, atol=1e-8)
        np.testing.assert_allclose(X[:3, :3], np.eye(3), rtol=0, atol=1e-8)
