"""Long arms: hundreds of joints that follow a moving goal, at a cost that grows with their number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from solver_internals import packed_problem

import mechanik as mk
from mechanik.spatial import make_pose, rotation


def snake(joints, limits=(-2.0, 2.0)):
    """An arm of 1 m with axes zyyzyy..., and a configuration in which it is an arc, a little out of its plane."""
    arm = mk.arm_3d([1.0 / joints] * joints, ("zyy" * joints)[:joints], limits=limits)
    i = np.arange(joints)
    return arm, np.where(i % 3 == 0, 0.6 * np.sin(7.0 * i), 4.5 * (1 + 0.3 * np.sin(i))) / joints


def path(X, ticks):
    """Poses from X and back: a figure eight 12 cm wide, with rotations of up to 0.3 rad."""
    for t in 2 * math.pi * np.arange(ticks) / ticks:
        offset = np.array([0.06 * math.sin(t), 0.06 * (math.cos(t) - 1), 0.04 * math.sin(2 * t)])
        R = rotation.about_z(0.3 * math.sin(t)) @ rotation.about_y(0.2 * math.sin(2 * t))
        yield make_pose(X[:3, :3] @ R, X[:3, 3] + offset)


def make_goal(kind, X):
    return mk.PositionGoal("tool", X[:3, 3]) if kind == "point" else mk.PoseGoal("tool", X)


# ---- following ------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [(-2.0, 2.0), (-0.1, 0.1)], ids=["free", "near its limits"])
@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("joints", [100, 500])
def test_a_long_arm_follows_a_moving_goal_at_every_tick(joints, kind, limits):
    arm, q = snake(joints, limits)
    q = arm.clamp(q)
    X = arm.pose("tool", q)
    solver, last = mk.Solver(arm, make_goal(kind, X)), q
    for target in path(X, 150):
        solution = solver.solve(target if kind == "pose" else np.array(target[:3, 3]), q)
        assert solution.status is mk.Status.CONVERGED, solution
        q = solution.q
        X_tool = arm.pose("tool", q)
        assert np.linalg.norm(X_tool[:3, 3] - target[:3, 3]) <= 1e-6 * (1 + 1e-6)
        if kind == "pose":
            assert np.linalg.norm(rotation.log(X_tool[:3, :3].T @ target[:3, :3])) <= 1e-6 * (1 + 1e-6)
        assert (np.abs(q) <= limits[1]).all()
        assert np.abs(q - last).max() < 0.05
        last = q


def test_a_long_arm_converges_from_a_distant_start():
    arm, q = snake(100)
    solver, rng = mk.Solver(arm, mk.PoseGoal("tool", arm.pose("tool", q))), np.random.default_rng(2)
    for _ in range(10):
        start = 0.3 * rng.standard_normal(100)
        assert solver.solve(arm.pose("tool", q), start).success


@pytest.mark.parametrize("joints", [40, 100])
def test_a_rest_pose_is_approached_in_the_null_space_of_the_goal(joints):
    """No direction of the null space leads closer."""
    arm, q = snake(joints)
    X, rest = arm.pose("tool", q), 0.02 * np.cos(np.arange(joints))
    goal = mk.PoseGoal("tool", X)
    solution = mk.Solver(arm, goal, rest=rest).solve(q0=q)
    assert solution.success
    null = np.linalg.svd(goal.jacobian(arm, solution.q))[2][6:]
    assert np.linalg.norm(null @ (solution.q - rest)) < 1e-5 * np.linalg.norm(solution.q - rest)
    assert np.linalg.norm(solution.q - rest) < np.linalg.norm(q - rest)


# ---- out of reach ---------------------------------------------------------------------------


@pytest.mark.parametrize("joints", [100, 500])
@pytest.mark.parametrize("distance", [1.02, 1.5, 10.0])
def test_out_of_reach_the_arm_is_straight_and_the_status_is_closest(joints, distance):
    arm, q = snake(joints, None)
    direction = np.array([0.6, 0.48, 0.64])
    base = np.array([0.0, 0.0, 2.0 / joints])  # the second joint; the link before it is upright
    solver = mk.Solver(arm, mk.PositionGoal("tool", base + distance * direction), max_iterations=300)
    solution = solver.solve(q0=q)
    assert solution.status is mk.Status.CLOSEST, solution
    tip = arm.pose("tool", solution.q)[:3, 3]
    np.testing.assert_allclose(tip, base + (1 - 2 / joints) * direction, atol=1e-6)


def test_a_pose_out_of_reach_ends_where_the_gradient_vanishes():
    arm, q = snake(100)
    goal = mk.PoseGoal("tool", make_pose(rotation.about_x(0.4), np.array([0.9, 0.8, 0.7])))
    solution = mk.Solver(arm, goal).solve(q0=q)
    assert solution.status is mk.Status.CLOSEST, solution
    assert (np.abs(solution.q) <= 2.0).all()


def test_a_straight_long_arm_bends_to_reach_a_target_on_its_axis():
    arm = mk.arm_3d([0.01] * 100, ("zyy" * 100)[:100])
    solution = mk.Solver(arm, mk.PositionGoal("tool", (0.0, 0.0, 0.6))).solve(q0=np.zeros(100))
    assert solution.success, solution


# ---- cost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", [False, True], ids=["goal", "goal and rest pose"])
@pytest.mark.parametrize("kind", ["point", "pose"])
def test_the_problem_grows_with_the_number_of_joints_and_not_with_its_square(kind, rest):
    """All that a step touches is in these tables; none has a number for each pair of joints."""
    sizes = []
    for joints in (200, 400, 800):
        arm, q = snake(joints)
        packed = packed_problem(mk.Solver(arm, make_goal(kind, arm.pose("tool", q)), rest=rest)).subproblems[0].packed
        sizes.append(len(packed.ints) + len(packed.floats))
    assert (sizes[2] - sizes[1]) == 2 * (sizes[1] - sizes[0])
    assert sizes[2] < 800 * 500


@pytest.mark.parametrize("joints", [12, 30, 100])
def test_long_arms_use_the_dual_form_and_short_arms_do_not(joints):
    arm, q = snake(joints)
    solver = mk.Solver(arm, mk.PoseGoal("tool", arm.pose("tool", q)))
    stage = packed_problem(solver).subproblems[0].packed.tables.stages[1]
    assert (stage.uses_dual_form, stage.chain_block) == (True, 0)
    panda = mk.gallery.panda()
    for kind in ("point", "pose"):
        goal = (
            mk.PositionGoal("panda_hand_tcp", (0.4, 0.2, 0.5))
            if kind == "point"
            else mk.PoseGoal("panda_hand_tcp", np.eye(4))
        )
        stage = packed_problem(mk.Solver(panda, goal)).subproblems[0].packed.tables.stages[1]
        assert (stage.uses_dual_form, stage.chain_block) == (False, -1)
