"""Solvers keep joint constraints as they keep loops closed, whatever the goals, and report violated ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import mechanik as mk
from mechanik.solver.methods.method_registry import METHODS, find_method
from mechanik.solver.solution import Status


def two_arms():
    """Two planar arms of two joints each, side by side."""
    builder = mk.Builder("two arms")
    for side, y in (("left", 1.0), ("right", -1.0)):
        builder.revolute(f"{side} shoulder", "body", f"{side} upper", at=(0, y, 0))
        builder.revolute(f"{side} elbow", f"{side} upper", f"{side} lower", at=(1, 0, 0))
        builder.fixed(f"{side} wrist", f"{side} lower", f"{side} hand", at=(1, 0, 0))
    return builder


def four_bars(count):
    """Four-bars side by side, elbow up, each with its crank at 0.6 rad, and closed."""
    builder = mk.Builder("four-bars")
    tip = 0.5 * np.exp(0.6j)
    diagonal = 2.0 - tip
    angle = np.angle(diagonal) + math.acos((1.8**2 + abs(diagonal) ** 2 - 1.2**2) / (2 * 1.8 * abs(diagonal)))
    rocker = float(np.angle(tip + 1.8 * np.exp(1j * angle) - 2.0))
    for k in range(count):
        builder.revolute(f"crank{k}", "ground", f"crank link{k}", at=(0, 0, 1.0 * k), value=0.6)
        builder.revolute(f"knee{k}", f"crank link{k}", f"coupler{k}", at=(0.5, 0, 0), value=float(angle - 0.6))
        builder.revolute(f"rocker{k}", "ground", f"rocker link{k}", at=(2.0, 0, 1.0 * k), value=rocker)
        builder.close(f"pin{k}", f"coupler{k}", f"rocker link{k}", "ball", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    return builder


# ---- satisfied ----------------------------------------------------------------------------------


def test_a_joint_constraint_holds_while_a_goal_is_followed():
    builder = two_arms()
    builder.joint_constraint("cam", {"left shoulder": [1.0, 0.3, -0.2, 0.05], "right shoulder": -1.5}, 0.2)
    mechanism = builder.build()
    solver = mk.Solver(mechanism, mk.PositionGoal("left hand", (1.2, 1.5, 0)))
    q = mechanism.q
    for t in np.linspace(0, 2 * math.pi, 60):
        solution = solver.solve((1.2 + 0.3 * math.cos(t), 1.3 + 0.4 * math.sin(t), 0), q)
        assert solution.success, solution
        a, b = solution["left shoulder"], solution["right shoulder"]
        off = a + 0.3 * a**2 - 0.2 * a**3 + 0.05 * a**4 - 1.5 * b - 0.2
        assert abs(off) < 1.5e-10
        assert solution.joint_constraint_errors["cam"] == pytest.approx(off, abs=1e-14)
        q = solution.q


def test_a_joint_constraint_joins_otherwise_separate_subproblems():
    builder = two_arms()
    mechanism = builder.build()
    goals = [mk.PositionGoal("left hand", (1.2, 1.5, 0)), mk.PositionGoal("right hand", (1.2, -1.5, 0))]
    assert len(mk.solve(mechanism, goals).subproblems) == 2
    builder.joint_constraint("mirror", {"left shoulder": 1.0, "right shoulder": 1.0})
    solution = mk.solve(mechanism, goals)
    assert solution.success
    (chain,) = solution.subproblems
    assert chain.joint_constraints == ("mirror",)
    assert solution["left shoulder"] == pytest.approx(-solution["right shoulder"], abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_out_of_reach_the_joint_constraint_holds_at_the_closest_pose(seed):
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(-1, 1, 3)
    builder = two_arms()
    builder.joint_constraint("cam", {"left shoulder": [1.0, a], "left elbow": [b, 0.3], "right shoulder": 0.8}, c)
    builder.joint_constraint("mirror", {"left elbow": 1.0, "right elbow": 1.0})
    mechanism = builder.build()
    targets = rng.uniform(-3, 3, 2), rng.uniform(-3, 3, 2)
    goals = [
        mk.PositionGoal(f"{side} hand", (*target, 0)) for side, target in zip(("left", "right"), targets, strict=True)
    ]
    solution = mk.solve(mechanism, goals, q0=np.zeros(4), restarts=0)
    assert not solution.success
    assert max(map(abs, solution.joint_constraint_errors.values())) < 1e-9

    def cost(q):
        hands = [mechanism.pose(f"{side} hand", q)[:2, 3] for side in ("left", "right")]
        return sum(float(np.sum((hand - target) ** 2)) for hand, target in zip(hands, targets, strict=True))

    sides, joints, names = ("left", "right"), ("shoulder", "elbow"), mechanism.space.q_names
    left, left_elbow, right, right_elbow = (names.index(f"{side} {joint}") for side in sides for joint in joints)
    equations = [
        lambda q: q[left] + a * q[left] ** 2 + b * q[left_elbow] + 0.3 * q[left_elbow] ** 2 + 0.8 * q[right] - c,
        lambda q: q[left_elbow] + q[right_elbow],
    ]
    best = minimize(
        cost, solution.q, method="SLSQP", constraints=[{"type": "eq", "fun": equation} for equation in equations],
        options={"ftol": 1e-14, "maxiter": 300},
    )  # fmt: skip
    assert cost(solution.q) <= best.fun + 1e-7


def test_a_joint_constraint_between_loops_holds():
    builder = four_bars(2)
    builder.joint_constraint("phase", {"crank0": 1.0, "crank1": -2.0}, -0.6)
    mechanism = builder.build()
    assert mk.mobility(mechanism).dof == 1
    solver = mk.Solver(mechanism, mk.JointValues({"crank1": 0.6}, angle_mode="exact"))
    q = mechanism.q
    for crank in 0.6 + 0.05 * np.arange(1, 80):
        solution = solver.solve({"crank1": crank}, q)
        assert solution.success, solution
        assert solution["crank0"] == pytest.approx(2 * crank - 0.6, abs=1e-9)
        assert max(max(error.position, error.rotation) for error in solution.closure_errors.values()) < 1e-9
        q = solution.q


def test_gears_and_racks_keep_their_ratios_while_a_loop_is_solved():
    builder = four_bars(2)
    builder.gear("crank1", "crank0", teeth=(36, 12), offset=0.6 + 0.2)
    builder.prismatic("rack", "ground", "rack link", axis="x")
    builder.rack("rack", "crank0", radius=0.02)
    builder.revolute("idler", "ground", "idler link")
    builder.gear("idler", "crank1", teeth=(24, 36), internal=True)
    mechanism = builder.build()
    solver = mk.Solver(mechanism, mk.JointValues({"crank0": 0.6}, angle_mode="exact"))
    q = mechanism.q
    for crank in 0.6 + 0.05 * np.arange(1, 80):
        solution = solver.solve({"crank0": crank}, q)
        assert solution.success, solution
        crank_angle = solution["crank0"]
        assert abs(solution["crank1"] - (0.8 - crank_angle / 3)) < 1e-12
        assert abs(solution["rack"] - 0.02 * crank_angle) < 1e-12
        assert abs(solution["idler"] - 1.5 * (0.8 - crank_angle / 3)) < 1e-12
        assert max(error.position for error in solution.closure_errors.values()) < 1e-9
        q = solution.q


@pytest.mark.parametrize("radius", [0.02, 5.0])
@pytest.mark.parametrize("factor", [1.0, 1e-3, 1e4])
def test_a_joint_constraint_holds_in_any_units(radius, factor):
    builder = two_arms()
    builder.prismatic("rack", "body", "cart")
    builder.joint_constraint("rack", {"left shoulder": -radius * factor, "rack": factor})
    mechanism = builder.build()
    solution = mk.solve(mechanism, mk.PositionGoal("left hand", (1.2, 1.5, 0)))
    assert solution.success
    assert solution["rack"] == pytest.approx(radius * solution["left shoulder"], abs=2e-10 * max(radius, 1.0))


@pytest.mark.parametrize("limits", [None, (0.0, 0.02)])
@pytest.mark.parametrize("angle", [0.01, 0.1, 0.5, 2.0])
def test_a_steep_cam_holds_as_accurately_as_a_gentle_cam(angle, limits):
    """Its fifth power has a factor of 1e9, for a lift of some mm: relative to that its error was 1e-4 rad."""
    builder = mk.Builder()
    builder.revolute("cam", "ground", "disc")
    builder.prismatic("lift", "ground", "follower", axis="y", limits=limits)
    builder.joint_constraint("profile", {"cam": 1.0, "lift": [-30.0, 0, 0, 0, -1e9]})
    mechanism = builder.build()
    solved = mk.solve(mechanism, mk.JointValues({"cam": angle}, angle_mode="exact"), q0=np.zeros(2))
    for result in (solved, mechanism.assemble({"cam": angle}, q0=np.zeros(2))):
        assert result.success
        cam_angle, lift = result.q
        assert cam_angle == pytest.approx(angle, abs=1e-6)  # a goal, to its tolerance
        true = brentq(lambda x, cam_angle=cam_angle: 30 * x + 1e9 * x**5 - cam_angle, 0.0, 0.05, xtol=1e-15)
        assert lift == pytest.approx(true, rel=1e-14, abs=1e-9)
        assert abs(cam_angle - 30 * lift - 1e9 * lift**5) <= 1e-9 * mechanism.joint_constraint("profile").scale < 2e-7


@pytest.mark.parametrize("method", [name for name in METHODS if find_method(name).supports_loops])
def test_every_method_that_closes_loops_keeps_joint_constraints(method):
    builder = two_arms()
    builder.joint_constraint("cam", {"left shoulder": [1.0, 0.3], "left elbow": 1.0, "right shoulder": 1.0}, 0.2)
    mechanism = builder.build()
    solver = mk.Solver(mechanism, mk.PositionGoal("left hand", (1.2, 1.5, 0)), solver=method)
    solution = solver.solve(q0=np.full(4, 0.3))
    assert solution.success, solution
    assert abs(solution.joint_constraint_errors["cam"]) < 1e-9


def test_joint_constraints_hold_with_locked_joints_and_within_limits():
    builder = two_arms()
    builder.joint_constraint("sum", {"left shoulder": 1.0, "left elbow": 1.0, "right shoulder": 1.0}, 1.0)
    mechanism = builder.build()
    mechanism.joint("right shoulder").set_limits(-0.2, 0.2)
    q0 = mechanism.configuration({"left shoulder": 0.4})
    solution = mk.solve(mechanism, mk.PositionGoal("left hand", (0.0, 3.0, 0)), q0=q0, lock=["left shoulder"])
    assert solution["left shoulder"] == 0.4
    assert abs(solution.joint_constraint_errors["sum"]) < 1e-9
    assert abs(solution["right shoulder"]) <= 0.2 + 1e-12
    assert solution["left elbow"] == pytest.approx(0.8, abs=1e-8)  # as far as the limit and the joint constraint allow


# ---- violated -----------------------------------------------------------------------------------


def test_a_joint_constraint_that_cannot_hold_gives_the_status_open_and_is_named():
    builder = two_arms()
    builder.joint_constraint("impossible", {"left shoulder": [0.0, 1.0], "left elbow": [0.0, 1.0]}, -1.0)
    builder.joint_constraint("fine", {"left shoulder": 1.0, "right shoulder": 1.0})
    solution = mk.solve(builder.build(), mk.PositionGoal("left hand", (1.2, 1.5, 0)))
    assert not solution.success
    assert solution.status is Status.NOT_CLOSED
    assert "joint constraint impossible (error 1" in solution.message
    assert "joint constraint fine" not in solution.message
    with pytest.raises(mk.errors.NotSolved, match="joint constraint impossible"):
        solution.require()


def test_joint_constraints_that_limits_forbid_are_named():
    builder = two_arms()
    builder.joint_constraint("far", {"left shoulder": 1.0}, 2.0)
    mechanism = builder.build()
    mechanism.joint("left shoulder").set_limits(-1, 1)
    solution = mk.solve(mechanism, mk.PositionGoal("left hand", (1.2, 1.5, 0)))
    assert solution.status is Status.NOT_CLOSED
    assert "joint constraint far (error -1)" in solution.message


@pytest.mark.parametrize(("offset", "holds"), [(0.7, True), (0.8, False)])
def test_a_joint_constraint_decided_by_a_coupling_is_reported_as_such(offset, holds):
    builder = two_arms()
    builder.couple("right shoulder", "left shoulder", -0.3, offset)
    builder.joint_constraint("same", {"right shoulder": 1.0, "left shoulder": 0.3}, 0.7)
    solution = mk.solve(builder.build(), mk.PositionGoal("left hand", (1.2, 1.5, 0)))
    assert solution.success == holds
    assert holds or "joint constraint same (error 0.1)" in solution.message


# ---- changed ------------------------------------------------------------------------------------


def test_a_solver_notices_new_and_removed_joint_constraints():
    mechanism = two_arms().build()
    solver = mk.Solver(mechanism, mk.PositionGoal("left hand", (1.2, 1.5, 0)))
    assert solver.solve(q0=np.zeros(4)).success
    constraint = mk.JointConstraint({mechanism.joint("left elbow"): 1.0}, 0.0, name="stiff")
    solution = solver.solve(q0=np.full(4, 0.1), restarts=0)
    assert not solution.success  # a stretched arm cannot be there
    assert abs(solution["left elbow"]) < 1e-9
    constraint.undo()
    assert solver.solve(q0=np.full(4, 0.1)).success


def test_joints_without_goals_are_moved_to_their_joint_constraint():
    builder = two_arms()
    builder.joint_constraint("mirror", {"left shoulder": 1.0, "right shoulder": 1.0}, 0.5)
    mechanism = builder.build()
    solution = mk.solve(mechanism, None)
    assert solution.success
    assert solution["left shoulder"] + solution["right shoulder"] == pytest.approx(0.5, abs=1e-10)


def test_all_solutions_and_batches_keep_joint_constraints():
    builder = two_arms()
    builder.joint_constraint("mirror", {"left elbow": 1.0, "right elbow": 1.0})
    mechanism = builder.build()
    goals = [mk.PositionGoal("left hand", (1.2, 1.5, 0)), mk.PositionGoal("right hand", (1.2, -1.5, 0))]
    solutions = mk.Solver(mechanism, goals).solve_all(rng=np.random.default_rng(0))
    assert len(solutions) == 2  # each arm alone has two, and the elbows mirror each other
    both = [mechanism.space.q_names.index(f"{side} elbow") for side in ("left", "right")]
    for q in solutions:
        assert abs(q[both].sum()) < 1e-9
        assert abs(q[both[0]]) > 0.1
    targets = np.array([[1.2, 1.5, 0], [1.0, 1.8, 0], [0.5, 0.2, 0]])
    result = mk.Solver(mechanism, goals[:1]).solve_batch(targets)
    assert result.success.all()
    np.testing.assert_allclose(result.q[:, both].sum(axis=1), 0, atol=1e-9)
