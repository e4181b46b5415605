"""Limits, locked and active joints, weights of joints, rest poses, nearby and feasible solutions, and steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from random_mechanisms import mechanisms, seeds

import mechanik as mk


def arm(**options):
    return mk.arm_2d([1.0, 0.8, 0.5], **options)


def bent():
    return np.array([0.4, 0.7, 0.6])


def mixed():
    """A cart, a turret, an arm of two joints, a spherical wrist, and a gear that mimics the elbow."""
    builder = mk.Builder("mixed")
    builder.prismatic("cart", "base", "sledge", axis="x", limits=(-0.5, 0.5))
    builder.revolute("turret", "sledge", "tower", axis="z", limits=(-3, 3))
    builder.revolute("shoulder", "tower", "upper", at=(0, 0, 0.5), axis="y", limits=(-2, 2))
    builder.revolute("elbow", "upper", "fore", at=(0.5, 0, 0), axis="y", limits=(-2.5, 2.5), value=0.8)
    builder.spherical("wrist", "fore", "hand", at=(0.4, 0, 0))
    builder.revolute("gear", "fore", "wheel", at=(0.1, 0, 0), axis="z")
    builder.couple("gear", "elbow", ratio=-2.0, offset=0.3)
    return builder.build()


# ---- limits -------------------------------------------------------------------------------------


@given(mechanisms, seeds)
@settings(max_examples=60)
def test_no_value_leaves_its_limits(mechanism, seed):
    rng = np.random.default_rng(seed)
    link = list(mechanism.links)[-1]
    solution = mk.Solver(mechanism, mk.PositionGoal(link, rng.normal(scale=5, size=3))).solve(q0=mechanism.random(rng))
    assert mechanism.space.within_limits(solution.q)


def test_limits_of_a_solver_replace_those_of_the_mechanism():
    tight = mk.Solver(
        arm(limits=(-3, 3)), mk.PositionGoal("tool", (0, 2, 0)), limits={"joint1": (-0.2, 0.9), "joint3": (0, 0.1)}
    )
    solution = tight.solve(q0=bent())
    assert -0.2 <= solution["joint1"] <= 0.9
    assert 0.0 <= solution["joint3"] <= 0.1
    assert solution.active_limits["joint1"] == "upper"
    wide = mk.Solver(
        arm(limits=(-0.1, 0.1)), mk.PositionGoal("tool", (0, 2, 0)), limits={f"joint{k}": (-3, 3) for k in (1, 2, 3)}
    )
    assert wide.solve(q0=np.zeros(3)).success


def test_limits_of_one_call_hold_for_that_call_only():
    solver = mk.Solver(arm(), mk.PositionGoal("tool", (0, 2, 0)))
    solution = solver.solve(q0=bent(), limits={"joint1": (0.0, 0.5)})
    assert solution["joint1"] <= 0.5
    assert not solution.success
    assert solver.solve(q0=bent()).success
    assert solver.solve(np.array([0.0, 2.0, 0.0]), bent()).success  # on the fast path too


def test_limits_of_a_call_are_combined_with_those_of_the_solver():
    solver = mk.Solver(arm(), mk.PositionGoal("tool", (0, 2, 0)), limits={"joint2": (0.0, 0.3)})
    solution = solver.solve(q0=np.array([0.4, 0.2, 0.6]), limits={"joint1": (0.0, 0.5)})
    assert solution["joint1"] <= 0.5
    assert solution["joint2"] <= 0.3


def test_an_active_limit_is_released_when_the_goal_leads_away():
    """The arm starts at its limits and has to leave all of them; it meets another limit and leaves it again."""
    mechanism = arm(limits=(-1.2, 1.2))
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (1.8, 0.9, 0)))
    for sides in ((1, 1, 1), (-1, -1, -1), (1, -1, 1), (-1, 1, -1)):
        solution = solver.solve(q0=1.2 * np.array(sides))
        assert solution.success, (sides, solution)
        assert not solution.active_limits


def test_an_arm_at_its_limits_returns_when_the_goal_comes_back():
    mechanism = arm(limits=(-1.0, 1.0))
    solver, q = mk.Solver(mechanism, mk.PositionGoal("tool", (0, 0, 0))), bent()
    for _ in range(5):
        q = solver.solve(np.array([-3.0, 0.5, 0.0]), q).q
        assert np.abs(q).max() > 1 - 1e-9
        back = solver.solve(np.array([1.7, 1.0, 0.0]), q)
        assert back.success, back
        q = back.q


def test_a_start_outside_the_limits_is_clamped_and_reported():
    mechanism = arm(limits=(-1.0, 1.0))
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (1.8, 0.9, 0)))
    solution = solver.solve(q0=np.array([5.0, -3.0, 0.2]))
    assert mechanism.space.within_limits(solution.q)
    assert "outside the limits" in solution.message
    assert "outside" not in solver.solve(q0=bent()).message


def test_inactive_joints_stay_bit_for_bit():
    mechanism = mixed()
    q0 = mechanism.random(np.random.default_rng(1))
    q0[0] = 7.0  # even where it is outside its limits
    solution = mk.Solver(mechanism, mk.AxisGoal("hand", (0, 0, 1)), active=["wrist"]).solve(q0=q0)
    assert solution.success
    np.testing.assert_array_equal(solution.q[:4], q0[:4])


def test_limits_that_leave_one_value_fix_the_joint_there():
    solver = mk.Solver(arm(), mk.PositionGoal("tool", (0, 2, 0)), limits={"joint2": (0.3, 0.3)})
    solution = solver.solve(q0=bent())
    assert solution["joint2"] == 0.3
    assert solution.success


def test_one_sided_limits_hold_on_their_side():
    solver = mk.Solver(arm(), mk.PositionGoal("tool", (1.0, 0.0, 0)), limits={"joint2": (-math.inf, -0.5)})
    solution = solver.solve(q0=bent())
    assert solution["joint2"] <= -0.5
    assert solution.success


# ---- lock and active ----------------------------------------------------------------------------


def test_locked_joints_stay_bit_for_bit():
    mechanism = mixed()
    solver = mk.Solver(mechanism, mk.PositionGoal("hand", (0.5, 0.3, 0.8)), lock=["cart", "shoulder"])
    q0 = mechanism.random(np.random.default_rng(0))
    solution = solver.solve(q0=q0)
    assert solution["cart"] == q0[0]
    assert solution["shoulder"] == q0[2]
    assert np.abs(solution.q - q0).max() > 1e-3


def test_joints_locked_for_one_call_are_free_in_the_next():
    solver = mk.Solver(arm(), mk.PositionGoal("tool", (0, 2, 0)))
    locked = solver.solve(q0=bent(), lock="joint1")
    assert locked["joint1"] == 0.4
    assert not locked.success
    assert solver.solve(q0=bent()).success
    assert solver.solve(np.array([0.0, 2.0, 0.0]), bent()).success


def test_only_active_joints_move():
    solver = mk.Solver(arm(), mk.PositionGoal("tool", (1.2, 1.4, 0)), active=["joint2", "joint3"])
    solution = solver.solve(q0=bent())
    assert solution["joint1"] == 0.4
    assert solution["joint2"] != 0.7


def test_limits_of_a_call_win_over_those_of_the_solver():
    """A dof of a joint that the call limits as a whole kept its limits of the solver."""
    builder = mk.Builder("gantry")
    builder.joint("base", "world", "body", ("X", "Y"))
    goal = mk.PositionGoal("body", (9, 9, 0))
    solver = mk.Solver(builder.build(), goal, limits={"base": (-1, 1), "base.X": (-2, 2)})
    np.testing.assert_allclose(solver.solve(q0=[0.0, 0.0]).q, [2, 1], atol=1e-9)
    np.testing.assert_allclose(solver.solve(q0=[0.0, 0.0], limits={"base": (-3, 3)}).q, [3, 3], atol=1e-9)


def test_lock_wins_over_active():
    solution = mk.Solver(arm(), mk.PositionGoal("tool", (0, 2, 0)), active=["joint1", "joint2"], lock="joint1").solve(
        q0=bent()
    )
    assert solution["joint1"] == 0.4
    assert solution["joint3"] == 0.6
    assert solution["joint2"] != 0.7


def test_a_single_dof_of_a_joint_can_be_locked():
    builder = mk.Builder("floating")
    builder.joint("base", "world", "body", ("X", "Y", "Z", "EZ"), limits=(-5, 5))
    mechanism = builder.build()
    solution = mk.Solver(mechanism, mk.PositionGoal("body", (1, 2, 3)), lock="base.Y").solve(
        q0=np.array([0.0, 0.5, 0.0, 0.0])
    )
    np.testing.assert_allclose(mechanism.pose("body", solution.q)[:3, 3], (1, 0.5, 3), atol=1e-9)
    assert not solution.success


def test_a_spherical_joint_is_locked_as_a_whole():
    mechanism = mixed()
    q0 = mechanism.random(np.random.default_rng(4))
    solution = mk.Solver(mechanism, mk.OrientationGoal("hand", np.eye(3)), lock="wrist").solve(q0=q0)
    np.testing.assert_allclose(solution.q[4:8], q0[4:8], atol=1e-15)


def test_locking_a_mimic_joint_locks_its_leader():
    mechanism = mixed()
    q0 = mechanism.q
    solution = mk.Solver(mechanism, mk.PositionGoal("hand", (0.5, 0.3, 0.8)), lock="gear").solve(q0=q0)
    assert solution["elbow"] == q0[3]


@pytest.mark.parametrize("how", ["lock", "active", "limits", "call"])
def test_with_every_joint_locked_the_solution_is_the_start(how):
    mechanism, everything = arm(), ["joint1", "joint2", "joint3"]
    options = {
        "lock": {"lock": everything},
        "active": {"active": []},
        "limits": {"limits": {name: (value, value) for name, value in zip(everything, bent(), strict=True)}},
        "call": {},
    }[how]
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (0, 2, 0)), **options)
    solution = solver.solve(q0=bent(), **({"lock": everything} if how == "call" else {}))
    assert not solution.success
    assert solution.status is mk.Status.CLOSEST
    np.testing.assert_array_equal(solution.q, bent())
    assert solution.unmet == ("PositionGoal 0",)
    there = solver.solve(
        mechanism.pose("tool", bent())[:3, 3].copy(), bent(), **({"lock": everything} if how == "call" else {})
    )
    assert there.success
    str(solution), str(there)


def test_a_goal_for_an_immovable_link_is_met_or_reported_unmet():
    builder = mk.Builder()
    builder.revolute("joint", "base", "link")
    builder.fixed("stand", "base", "post", at=(0, 1, 0))
    mechanism = builder.build()
    assert mk.solve(mechanism, mk.PositionGoal("post", (0, 1, 0))).success
    solution = mk.solve(mechanism, mk.PositionGoal("post", (0, 2, 0)))
    assert not solution.success
    assert solution.errors["PositionGoal 0"].position == pytest.approx(1.0)


def test_a_loop_with_its_crank_locked_does_not_move_and_stays_closed():
    mechanism = mk.gallery.four_bar()
    solution = mk.Solver(mechanism, mk.PositionGoal("coupler", (1, 1, 0)), lock="crank_joint").solve(q0=mechanism.q)
    assert solution["crank_joint"] == mechanism.q[0]
    np.testing.assert_allclose(solution.q, mechanism.q, atol=1e-9)
    assert solution.closure_errors["closing_joint"].position < 1e-9
    assert not solution.success


def test_joints_locked_for_one_call_are_not_perturbed():
    """A straight arm leaves its singular pose by a perturbation, which must not move a locked joint."""
    mechanism = arm()
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (1.5, 0, 0)))
    for locked in ("joint1", "joint2", "joint3"):
        solution = solver.solve(q0=np.zeros(3), lock=locked)
        assert solution[locked] == 0.0, solution
        out_of_reach = solver.solve(np.array([5.0, 0.0, 0.0]), np.zeros(3), lock=locked)
        assert out_of_reach[locked] == 0.0


# ---- weights of joints --------------------------------------------------------------------------


def test_a_joint_of_larger_weight_moves_less():
    """Weights of joints choose one of many solutions; they do not change whether the goal is met."""
    goal = mk.PositionGoal("tool", (1.2, 1.6, 0))
    moved = {}
    for weight in (0.1, 1.0, 10.0):
        solution = mk.Solver(arm(), goal, weights={"joint1": weight}).solve(q0=bent())
        assert solution.success
        moved[weight] = abs(solution["joint1"] - 0.4)
    assert moved[10.0] < moved[1.0] < moved[0.1]


def test_a_joint_of_large_weight_moves_where_no_other_joint_can():
    solver = mk.Solver(mk.arm_2d([1.0]), mk.PositionGoal("tool", (0, 1, 0)), weights={"joint1": 100.0})
    assert solver.solve(q0=np.array([0.1])).success


# ---- rest pose ----------------------------------------------------------------------------------


def test_a_rest_pose_is_followed_in_the_null_space_of_the_goal():
    """Three joints reach a point with one redundant dof: the solution nearest to the rest pose is chosen."""
    mechanism, goal = arm(), np.array([1.2, 0.9, 0.0])
    rest = np.array([0.1, 0.9, 0.2])
    solution = mk.Solver(mechanism, mk.PositionGoal("tool", goal), rest=rest, max_iterations=300).solve(q0=bent())
    assert solution.success
    distance = np.linalg.norm(solution.q - rest)
    distances = []
    for last in np.linspace(-math.pi, math.pi, 20_001):  # the direction of the last link decides the rest
        x, y = goal[:2] - 0.5 * np.array([math.cos(last), math.sin(last)])
        cosine = (x * x + y * y - 1.0 - 0.64) / 1.6
        if abs(cosine) <= 1:
            elbow = math.acos(cosine)
            shoulder = math.atan2(y, x) - math.atan2(0.8 * math.sin(elbow), 1 + 0.8 * math.cos(elbow))
            distances.append(np.linalg.norm([shoulder - rest[0], elbow - rest[1], last - shoulder - elbow - rest[2]]))
    assert distance <= min(distances) + 1e-4
    assert distance < np.linalg.norm(bent() - rest) + 1.0


def test_a_rest_pose_is_followed_also_once_the_goal_is_met():
    """The original solver did nothing once its goals were met."""
    mechanism, goal = arm(), (1.2, 0.9, 0.0)
    met = mk.Solver(mechanism, mk.PositionGoal("tool", goal)).solve(q0=bent()).q
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", goal), rest=[0.1, 0.9, 0.2], max_iterations=300)
    solution = solver.solve(q0=met)
    assert solution.success
    assert np.linalg.norm(solution.q - [0.1, 0.9, 0.2]) < np.linalg.norm(met - [0.1, 0.9, 0.2]) - 1e-3
    again = solver.solve(q0=solution.q)
    np.testing.assert_allclose(again.q, solution.q, atol=1e-5)  # and there it stays


def test_locked_dofs_do_not_misalign_a_rest_pose():
    """The original solver skipped locked joints in the rest values, and moved joints to the values of others."""
    mechanism = mixed()
    rest = {"cart": 0.2, "turret": -0.7, "shoulder": 0.4, "elbow": 1.1}
    solver = mk.Solver(mechanism, mk.AxisGoal("hand", (0, 0, 1)), lock=["cart", "shoulder"], rest=rest)
    solution = solver.solve(q0=mechanism.q)
    assert solution["cart"] == mechanism.q[0]
    assert solution["shoulder"] == mechanism.q[2]
    assert solution["turret"] == pytest.approx(-0.7, abs=1e-6)
    assert solution["elbow"] == pytest.approx(1.1, abs=1e-6)
    assert solution.success


def test_a_rest_pose_inside_a_loop_is_reached_as_far_as_the_loop_allows():
    mechanism = mk.gallery.four_bar()
    solution = mk.Solver(mechanism, mk.RestPose({"crank_joint": 2.0})).solve(q0=mechanism.q)
    assert solution["crank_joint"] == pytest.approx(2.0, abs=1e-6)
    assert solution.closure_errors["closing_joint"].position < 1e-9


def test_rest_poses_of_the_joints_themselves_are_followed():
    mechanism = arm()
    mechanism.joint("joint2").set_rest_pose([0.9])
    solution = mk.Solver(mechanism, mk.PositionGoal("tool", (1.2, 0.9, 0)), rest=True, max_iterations=300).solve(
        q0=bent()
    )
    without = mk.Solver(mechanism, mk.PositionGoal("tool", (1.2, 0.9, 0))).solve(q0=bent())
    assert solution.success
    assert abs(solution["joint2"] - 0.9) < abs(without["joint2"] - 0.9)


def test_a_rest_factor_moves_that_share_of_the_distance_to_the_rest_pose():
    mechanism = arm()
    for share in (0.0, 0.25, 1.0):
        solution = mk.Solver(mechanism, mk.RestPose([1.0, 1.0, 1.0]), rest_factor=share).solve(q0=np.zeros(3))
        np.testing.assert_allclose(solution.q, share, atol=1e-6)


def test_a_rest_pose_never_worsens_the_goal():
    mechanism, rng = mk.gallery.panda(), np.random.default_rng(0)
    link = list(mechanism.links)[-1]
    solver = mk.Solver(mechanism, mk.PoseGoal(link, np.eye(4)), rest=mechanism.neutral(), restarts=0)
    plain = mk.Solver(mechanism, mk.PoseGoal(link, np.eye(4)), restarts=0)
    for _ in range(50):
        q0, q1 = mechanism.random(rng, 2)
        target = mechanism.pose(link, q1)
        assert solver.solve([target, None], q0).success == plain.solve(target, q0).success


# ---- nearby and feasible ------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [0.0, 0.05, 0.3])
def test_nearby_bounds_the_motion_of_every_dof(reach):
    mechanism, rng = mk.gallery.ur5(), np.random.default_rng(2)
    solver = mk.Solver(mechanism, mk.PositionGoal("tool0", (0, 0, 0)))
    for _ in range(20):
        q0 = mechanism.random(rng)
        goal = mechanism.pose("tool0", q0)[:3, 3] + rng.normal(scale=0.2, size=3)
        solution = solver.solve_nearby(reach, goal, q0, restarts=5)
        assert np.abs(solution.q - q0).max() <= reach + 1e-12
        assert solution.success == (solution.errors["PositionGoal 0"].position <= 1e-6)


def test_nearby_finds_solutions_that_are_near_enough():
    mechanism, rng = mk.gallery.ur5(), np.random.default_rng(3)
    solver, successes = mk.Solver(mechanism, mk.PoseGoal("tool0", np.eye(4))), 0
    for _ in range(50):
        q0 = mechanism.random(rng)
        q1 = mechanism.clamp(q0 + rng.uniform(-0.1, 0.1, 6))
        successes += solver.solve_nearby(0.1, mechanism.pose("tool0", q1), q0).success
    assert successes >= 48


def test_the_search_continues_after_a_solution_that_is_not_feasible():
    """The elbow must be up: only one of the two solutions is feasible."""
    mechanism = mk.arm_2d([1.0, 1.0])
    solver, q0 = mk.Solver(mechanism, mk.PositionGoal("tool", (1.2, 0.5, 0)), restarts=50), np.array([0.1, 1.0])
    for sign in (1, -1):
        solution = solver.solve(q0=q0, feasible=lambda q, sign=sign: sign * math.remainder(q[1], 2 * math.pi) > 0)
        assert solution.success
        assert sign * math.remainder(solution["joint2"], 2 * math.pi) > 0


def test_without_a_feasible_solution_there_is_no_success_and_the_message_says_why():
    candidates = []

    def never(q):
        candidates.append(q)
        return False

    mechanism = mk.arm_2d([1.0, 1.0])
    solution = mk.Solver(mechanism, mk.PositionGoal("tool", (1.2, 0.5, 0)), restarts=7).solve(
        q0=np.array([0.1, 1.0]), feasible=never
    )
    assert not solution.success
    assert "feasible" in solution.message
    assert 2 <= len(candidates) <= 8
    assert all(mk.PositionGoal("tool", (1.2, 0.5, 0)).error(mechanism, q).position < 1e-6 for q in candidates)


# ---- step ---------------------------------------------------------------------------------------


@given(mechanisms, seeds)
@settings(max_examples=40)
def test_a_step_is_never_worse(mechanism, seed):
    rng = np.random.default_rng(seed)
    link = list(mechanism.links)[-1]
    solver = mk.Solver(mechanism, mk.PositionGoal(link, rng.normal(scale=2, size=3)))
    q = mechanism.random(rng)
    for _ in range(10):
        before = np.linalg.norm(solver.residual(q))
        solution = solver.step(q0=q)
        assert np.linalg.norm(solver.residual(solution.q)) <= before * (1 + 1e-12) + 1e-9
        assert solution.iterations <= 1
        q = solution.q


def test_repeated_steps_converge_to_the_result_of_a_solve():
    mechanism = arm()
    solver, q = mk.Solver(mechanism, mk.PositionGoal("tool", (1.0, 1.2, 0))), bent()
    for _ in range(30):
        q = solver.step(q0=q).q
    assert np.linalg.norm(solver.residual(q)) < 1e-6


def test_a_step_keeps_loops_closed():
    mechanism = mk.gallery.five_bar()
    solver, q = mk.Solver(mechanism, mk.PositionGoal("tool", (0.2, 0.7, 0))), mechanism.q
    for _ in range(10):
        solution = solver.step(q0=q)
        assert solution.closure_errors["closing_joint"].position < 1e-9
        q = solution.q


@pytest.mark.parametrize("name", ["five_bar", "stewart_platform", "delta_robot"])
def test_repeated_steps_reach_the_goal_of_a_closed_loop(name):
    """A single iteration opened the loop and was undone, and the next started from the same configuration forever."""
    mechanism = mk.gallery.make(name)
    link = {"five_bar": "tool"}.get(name, "platform")
    position = mechanism.pose(link)[:3, 3]
    solver = mk.Solver(mechanism, mk.PositionGoal(link, position + np.array([0.03, 0.04, 0.0])))
    q = mechanism.q
    for _ in range(12):
        solution = solver.step(q0=q)
        assert all(error.position < 1e-9 for error in solution.closure_errors.values())
        q = solution.q
    assert solution.success


@pytest.mark.parametrize("method", ["lm", "dls", "newton", "lbfgsb", "evolution"])
@pytest.mark.parametrize("weight", [0.1, 10.0])
def test_weight_of_a_spherical_joint_changes_the_path_but_not_the_convergence(method, weight):
    """Once the weight was in the Jacobian but not in the step: 3 of 20 targets were solved."""
    builder = mk.Builder("arm on a ball")
    builder.spherical("ball", "ground", "link")
    builder.revolute("shoulder", "link", "upper", at=(0, 0, 0.5), axis="y", value=0.4)
    builder.revolute("elbow", "upper", "fore", at=(0, 0, 0.5), axis="y", value=0.6)
    builder.fixed("wrist", "fore", "tool", at=(0, 0, 0.5))
    mechanism = builder.build()
    rng = np.random.default_rng(0)
    targets = [mechanism.pose("tool", mechanism.space.random(rng))[:3, 3] for _ in range(20)]
    goal = mk.PositionGoal("tool", targets[0])
    solver = mk.Solver(mechanism, goal, solver=method, weights={"ball": weight}, restarts=0)
    solutions = [solver.solve(target, q0=mechanism.q) for target in targets]
    assert all(solution.success for solution in solutions)
    assert np.median([solution.iterations for solution in solutions]) < 40


@pytest.mark.parametrize("weight", [0.1, 1.0, 10.0])
def test_a_weighted_spherical_joint_reaches_its_target_in_a_few_steps(weight):
    builder = mk.Builder("ball")
    builder.spherical("ball", "ground", "link")
    goal = mk.JointValues({"ball": mk.spatial.quaternion.exp([0.4, -0.3, 0.9])})
    solution = mk.Solver(builder.build(), goal, weights={"ball": weight}, restarts=0).solve()
    assert solution.success
    assert solution.iterations <= 8


@pytest.mark.parametrize("scale", [0.001, 1.0, 100.0])
def test_an_arm_of_any_size_reports_that_its_start_was_clamped(scale):
    """A very small arm, searched twice, raised a NameError."""
    builder, parent = mk.Builder("arm"), "base"
    for k in range(4):
        at = (scale if k else 0.0, 0.0, 0.0)
        builder.revolute(f"joint{k}", parent, f"link{k}", at=at, axis="zyzy"[k], limits=(-1, 1))
        parent = f"link{k}"
    arm = builder.build()
    goals = [mk.PositionGoal(parent, (9 * scale, 0.3 * scale, 0)), mk.OrientationGoal(parent, (1, 0, 0, 0))]
    solution = mk.Solver(arm, goals, restarts=0).solve(q0=[1.5, 0, 0, 0])
    assert not solution.success
    assert "was clamped" in solution.message
