"""Loops stay closed while they are driven through full turns and while their goals jump."""

from __future__ import annotations

import math

import numpy as np
import pytest
from closure_error import largest_closure_error

import mechanik as mk
from mechanik.spatial import from_position_wxyz, quaternion

GROUND, CRANK, COUPLER, ROCKER = 2.0, 0.5, 1.8, 1.2
CLOSURE_TOL = 1e-9


def four_bar():
    return mk.gallery.four_bar(ground=GROUND, crank=CRANK, coupler=COUPLER, rocker=ROCKER)


def rocker_angle(crank):
    """Elbow up, by Freudenstein's equation (1954): A cos + B sin = C."""
    x, y = GROUND - CRANK * math.cos(crank), -CRANK * math.sin(crank)
    away = math.hypot(x, y)
    cosine = (away**2 + ROCKER**2 - COUPLER**2) / (2 * away * ROCKER)
    return math.atan2(y, x) + math.pi - math.acos(cosine)


# ---- a four-bar ---------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", ["exact", "nearest"])
@pytest.mark.parametrize("step", [0.02, -0.05, 0.3, 1.0])
def test_the_rocker_follows_its_closed_form_through_ten_turns_of_the_crank(turns, step):
    mechanism = four_bar()
    solver = mk.Solver(mechanism, mk.JointValues({"crank_joint": 0.6}, angle_mode=turns, angle_tolerance=1e-11))
    q = mechanism.q
    for k in range(math.ceil(20 * math.pi / abs(step)) + 1):
        crank = 0.6 + step * k
        target = crank if turns == "exact" else math.remainder(crank, 2 * math.pi)
        solution = solver.solve({"crank_joint": target}, q)
        assert solution.success, (k, solution)
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert abs(solution["crank_joint"] - crank) < 1e-9  # full turns are counted
        error = solution["rocker_joint"] - rocker_angle(crank)
        assert abs(math.remainder(error, 2 * math.pi)) < 1e-9
        q = solution.q
    # a rocker swings and returns: it makes no full turn
    assert abs(q[2] - rocker_angle(crank)) < 1e-8


def test_a_number_and_a_dictionary_are_the_same_target():
    mechanism = four_bar()
    solver = mk.Solver(mechanism, mk.JointValues({"crank_joint": 0.6}, angle_mode="exact"))
    by_number, by_name = solver.solve(0.7, mechanism.q), solver.solve({"crank_joint": 0.7}, mechanism.q)
    np.testing.assert_allclose(by_number.q, by_name.q, atol=1e-9)


def test_a_target_of_the_graph_drives_the_crank():
    mechanism = four_bar()
    joint = mechanism.joint("crank_joint")
    solver = mk.Solver(mechanism)
    for crank in np.linspace(0.6, 7.5, 40):
        joint.set_targets([crank])
        solution = solver.solve(q0=mechanism.q)
        assert solution.success
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert abs(solution["rocker_joint"] - rocker_angle(crank)) < 1e-6
        mechanism.apply(solution)


@pytest.mark.parametrize("seed", range(5))
def test_the_loop_of_a_four_bar_stays_closed_while_its_goal_is_out_of_reach(seed):
    mechanism, rng = four_bar(), np.random.default_rng(seed)
    solver = mk.Solver(mechanism, mk.PositionGoal("coupler", (0, 0, 0), at=(0.9, 0.3, 0)))
    q = mechanism.q
    for _ in range(200):
        solution = solver.solve(rng.normal(scale=5.0, size=3), q)
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert solution.status in (mk.Status.CLOSEST, mk.Status.STALLED, mk.Status.CONVERGED)
        q = solution.q


def test_a_rocker_with_a_target_beyond_its_range_ends_at_its_extreme():
    mechanism = four_bar()
    angles = [rocker_angle(crank) for crank in np.linspace(0, 2 * math.pi, 100_001)]
    solver = mk.Solver(mechanism, mk.JointValues({"rocker_joint": 0.0}, angle_mode="exact"))
    for target, end in ((math.pi, max(angles)), (0.0, min(angles))):
        solution = solver.solve({"rocker_joint": target}, mechanism.q)
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert abs(solution["rocker_joint"] - end) < 1e-6, solution


def test_a_joint_limit_inside_the_loop_holds_and_the_loop_stays_closed():
    mechanism = four_bar()
    mechanism.joint("rocker_joint").set_limits([1.6], [2.2])
    solver = mk.Solver(mechanism, mk.JointValues({"crank_joint": 0.6}, angle_mode="exact"))
    q, stopped = mechanism.q, 0
    for crank in np.linspace(0.6, 6.5, 120):
        solution = solver.solve({"crank_joint": float(crank)}, q)
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert 1.6 - 1e-12 <= solution["rocker_joint"] <= 2.2 + 1e-12
        if 1.6 + 1e-6 < rocker_angle(crank) < 2.2 - 1e-6 and not stopped:
            assert solution.success
        stopped += not solution.success
        q = solution.q
    assert stopped > 10


def test_limits_of_the_loop_closing_joint_hold():
    mechanism = four_bar()
    mechanism.joint("closing_joint").set_limits([1.0], [1.6])  # it is at 1.07, and swings from 0.98 to 1.94
    solver = mk.Solver(mechanism, mk.JointValues({"crank_joint": 0.6}, angle_mode="exact"))
    q, stopped = mechanism.q, 0
    for crank in np.linspace(0.6, 4.0, 60):
        solution = solver.solve({"crank_joint": float(crank)}, q)
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert 1.0 - 1e-9 <= solution["closing_joint"] <= 1.6 + 1e-9
        assert solution.success == (crank < 1.85), (crank, solution)
        stopped += not solution.success
        q = solution.q
    assert stopped > 5
    assert abs(solution["closing_joint"] - 1.6) < 1e-8


def test_a_slider_crank_follows_its_closed_form():
    mechanism = mk.gallery.slider_crank(crank=0.3, rod=1.0, offset=0.1)
    solver = mk.Solver(mechanism, mk.JointValues({"crank_joint": 0.0}, angle_mode="exact", angle_tolerance=1e-11))
    q = mechanism.q
    for crank in np.arange(0.6, 14.0, 0.1):
        solution = solver.solve({"crank_joint": float(crank)}, q)
        assert solution.success
        assert largest_closure_error(solution) < CLOSURE_TOL
        rise = 0.1 - 0.3 * math.sin(crank)
        assert abs(solution["slider_joint"] - (0.3 * math.cos(crank) + math.sqrt(1 - rise**2))) < 1e-9
        q = solution.q


def test_a_slider_crank_driven_by_its_slider_stops_at_the_dead_point_and_stays_closed():
    mechanism = mk.gallery.slider_crank(crank=0.3, rod=1.0)
    solver = mk.Solver(mechanism, mk.JointValues({"slider_joint": 1.0}))
    solution = solver.solve({"slider_joint": 1.5}, mechanism.q)
    assert largest_closure_error(solution) < CLOSURE_TOL
    assert not solution.success
    assert abs(solution["slider_joint"] - 1.3) < 1e-6


# ---- platforms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["closure", "joint"])
def test_a_hexapod_follows_a_path_with_all_its_loops_closed(ends):
    mechanism = mk.gallery.stewart_platform(ends=ends)
    solver, q, largest = mk.Solver(mechanism, mk.PoseGoal("platform", np.eye(4))), mechanism.q, 0.0
    for k in range(300):
        t = 0.02 * k
        wxyz = quaternion.exp([0.15 * math.sin(0.5 * t), 0.10 * math.sin(1.1 * t), 0.10 * math.sin(0.9 * t)])
        X = from_position_wxyz((0.03 * math.sin(t), 0.03 * math.cos(t) - 0.03, 0.30 + 0.02 * math.sin(0.7 * t)), wxyz)
        solution = solver.solve(X, q)
        assert solution.success, (k, solution)
        assert largest_closure_error(solution) < CLOSURE_TOL
        largest = max(largest, np.abs(mechanism.difference(q, solution.q)).max())
        q = solution.q
    assert largest < 0.02  # nothing jumps


@pytest.mark.parametrize("ends", ["closure", "joint"])
@pytest.mark.parametrize("seed", range(3))
def test_a_hexapod_with_a_jumping_goal_stays_closed_and_within_limits(ends, seed):
    mechanism, rng = mk.gallery.stewart_platform(ends=ends), np.random.default_rng(seed)
    solver, q, space = mk.Solver(mechanism, mk.PoseGoal("platform", np.eye(4))), mechanism.q, mechanism.space
    for k in range(150):
        scale = 10.0 ** rng.uniform(-2, 1)
        X = from_position_wxyz(
            np.array([0, 0, 0.3]) + rng.normal(scale=scale, size=3), quaternion.exp(rng.normal(scale=scale, size=3))
        )
        solution = solver.solve(X, q)
        assert np.isfinite(solution.q).all()
        assert largest_closure_error(solution) < CLOSURE_TOL, (k, solution)
        assert (solution.q >= space.lower - 1e-12).all()
        assert (solution.q <= space.upper + 1e-12).all()
        q = solution.q
    # and it comes back
    home = mk.solve(mechanism, mk.PoseGoal("platform", mechanism.pose("platform")), q0=q, restarts=0)
    assert home.success or largest_closure_error(home) < CLOSURE_TOL


def test_a_hexapod_leans_towards_a_distant_goal():
    mechanism = mk.gallery.stewart_platform()
    solver = mk.Solver(mechanism, mk.PositionGoal("platform", (0, 0, 0)))
    start = mechanism.pose("platform")[:3, 3]
    for direction in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (-0.6, 0, 0.8)):
        goal = 10.0 * np.array(direction, dtype=float)
        solution = solver.solve(goal, mechanism.q)
        end = mechanism.pose("platform", solution.q)[:3, 3]
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert np.linalg.norm(end - goal) < np.linalg.norm(start - goal) - 0.05
        assert solution.active_limits  # legs at the end of their stroke


@pytest.mark.parametrize("seed", range(3))
def test_a_delta_robot_reaches_its_workspace_and_stays_level(seed):
    mechanism, rng = mk.gallery.delta_robot(), np.random.default_rng(seed)
    solver, q = mk.Solver(mechanism, mk.PositionGoal("platform", (0, 0, 0))), mechanism.q
    home = mechanism.pose("platform")[:3, 3]
    for k in range(100):
        reachable = k % 2 == 0
        goal = home + rng.uniform(-0.08, 0.08, 3) if reachable else rng.normal(scale=2.0, size=3)
        solution = solver.solve(goal, q)
        assert largest_closure_error(solution) < CLOSURE_TOL
        np.testing.assert_allclose(mechanism.pose("platform", solution.q)[:3, :3], np.eye(3), atol=1e-7)
        if reachable:
            assert solution.success, (k, solution)
        q = solution.q


# ---- open starts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        mk.gallery.four_bar,
        mk.gallery.five_bar,
        mk.gallery.slider_crank,
        mk.gallery.stewart_platform,
        mk.gallery.delta_robot,
    ],
    ids=lambda make: make.__name__,
)
def test_a_loop_that_starts_open_is_closed_first(make):
    mechanism, rng = make(), np.random.default_rng(2)
    solver = mk.Solver(mechanism, mk.PositionGoal(list(mechanism.links)[1], (0.1, 0.2, 0.3)))
    for _ in range(50):
        q0 = mechanism.clamp(mechanism.integrate(mechanism.q, rng.normal(scale=0.1, size=mechanism.nv)))
        solution = solver.solve(q0=q0)
        assert largest_closure_error(solution) < CLOSURE_TOL, solution


def test_without_goals_a_solver_only_closes_loops():
    mechanism = four_bar()
    q0 = mechanism.q + np.array([0.0, 0.2, -0.1])
    solution = mk.Solver(mechanism).solve(q0=q0)
    assert solution.success
    assert largest_closure_error(solution) < CLOSURE_TOL


def test_a_loop_that_cannot_be_closed_has_the_status_open():
    builder = mk.Builder("too short")
    builder.revolute("a", "ground", "left")
    builder.revolute("b", "ground", "right", at=(3, 0, 0))
    builder.close("pin", "left", "right", "pin", at=(1, 0, 0), onto=(1, 0, 0))
    mechanism = builder.build()
    solution = mk.solve(mechanism, mk.JointValues({"a": 0.3}), restarts=5)
    assert not solution.success
    assert solution.status is mk.Status.NOT_CLOSED
    assert largest_closure_error(solution) < 1.0 + 1e-6  # as little as can be: 3 m between, 2 m of links
    assert "loop" in solution.message


def test_a_loop_with_redundant_equations_is_solved():
    """A planar four-bar closed by a spatial pin: three of its five equations are redundant. And a Bennett linkage."""
    mechanism = four_bar()
    assert sum(len(closure.constrained_dof) for closure in mechanism.closures.values()) == 5
    a, b, alpha = 1.0, 0.8, 0.9
    beta = math.asin(b * math.sin(alpha) / a)
    rows = [(a, alpha), (b, beta), (a, alpha), (b, beta)]
    builder = mk.Builder("bennett")
    theta = 0.7
    # Bennett's closed form: tan(t1/2) tan(t2/2) = sin((beta + alpha)/2) / sin((beta - alpha)/2)
    ratio = math.sin(0.5 * (beta + alpha)) / math.sin(0.5 * (beta - alpha))
    second_angle = 2 * math.atan(ratio / math.tan(theta / 2))
    values, X, parent = [theta, second_angle, -theta, -second_angle], np.eye(4), "link0"
    for k, (length, twist) in enumerate(rows[:3]):
        builder.revolute(f"joint{k + 1}", parent, f"link{k + 1}", at=X, value=values[k])
        X = np.eye(4)
        X[0, 3] = length
        X[1:3, 1:3] = [[math.cos(twist), -math.sin(twist)], [math.sin(twist), math.cos(twist)]]
        parent = f"link{k + 1}"
    end = np.linalg.inv(
        np.array(
            [
                [1, 0, 0, b],
                [0, math.cos(beta), -math.sin(beta), 0],
                [0, math.sin(beta), math.cos(beta), 0],
                [0, 0, 0, 1],
            ]
        )
    )
    builder.close("joint4", "link3", "link0", "pin", at=X, onto=end)
    mechanism = builder.build()
    solver, q = (
        mk.Solver(mechanism, mk.JointValues({"joint1": theta}, angle_mode="exact", angle_tolerance=1e-11)),
        mechanism.q,
    )
    assert largest_closure_error(solver.solve(q0=q)) < CLOSURE_TOL
    for crank in np.linspace(theta, theta + 2.0, 50):
        solution = solver.solve({"joint1": float(crank)}, q)
        assert solution.success, (crank, solution)
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert abs(math.tan(crank / 2) * math.tan(solution["joint2"] / 2) - ratio) < 1e-7
        q = solution.q
