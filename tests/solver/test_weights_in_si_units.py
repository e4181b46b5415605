"""The closest configuration minimises the sum of (weight * residual)^2 in m and rad, for mechanisms of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

import mechanik as mk
from mechanik.solver.methods.method_registry import find_method


def random_arm(rng, size, joints=6):
    """An arm of about the given reach, m, with a prismatic joint among its revolute joints."""
    builder = mk.Builder("arm")
    for k in range(1, joints + 1):
        at = (0, 0, 0) if k == 1 else rng.uniform(-1, 1, 3) * size / joints
        limits = (-0.2 * size, 0.2 * size) if k == 3 else (-2.8, 2.8)
        make_joint = builder.prismatic if k == 3 else builder.revolute
        make_joint(f"joint{k}", f"link{k - 1}", f"link{k}", at=at, axis=rng.standard_normal(3), limits=limits)
    builder.fixed("tip", f"link{joints}", "tool", at=rng.uniform(-1, 1, 3) * size / joints)
    return builder.build()


def goals_out_of_reach(arm, rng, size, required, count):
    X = arm.pose("tool", arm.random(rng)).copy()
    X[:3, 3] *= 3.0
    elbow = arm.pose("link4", arm.random(rng))
    goals = [
        mk.PoseGoal("tool", X, weight=float(rng.uniform(0.3, 3.0)), required=required, name="pose"),
        mk.OrientationGoal("link4", elbow[:3, :3], weight=float(rng.uniform(0.3, 3.0)), required=required, name="turn"),
        mk.PositionGoal("link4", elbow[:3, 3], weight=float(rng.uniform(0.3, 3.0)), required=required, name="point"),
        mk.JointValues(dict.fromkeys(arm.space.q_names, 0.0), weight=0.1, required=required, name="rest"),
    ]
    return goals[:count]


def cost(arm, goals, q):
    return sum(np.sum((goal.weight * goal.residual(arm, q)) ** 2) for goal in goals)


def local_minimum(arm, goals, q):
    """Cost of the local minimum near q, within the limits, found by scipy."""
    lower, upper = arm.space.lower, arm.space.upper
    inside = 1e-10 * (upper - lower)
    result = least_squares(
        lambda x: np.concatenate([goal.weight * goal.residual(arm, x) for goal in goals]),
        np.clip(q, lower + inside, upper - inside), bounds=(lower, upper), x_scale="jac", ftol=1e-15, xtol=1e-15,
        gtol=1e-15, max_nfev=300,
    )  # fmt: skip
    return 2.0 * result.cost


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), size=st.sampled_from([0.2, 0.6, 1.0, 4.0, 50.0]), count=st.integers(1, 4),
    required=st.booleans(), restarts=st.sampled_from([None, 0]),
)  # fmt: skip
def test_closest_configuration_is_a_minimum_of_the_weighted_squares(seed, size, count, required, restarts):
    rng = np.random.default_rng(seed)
    arm = random_arm(rng, size)
    goals = goals_out_of_reach(arm, rng, size, required, count)
    solution = mk.Solver(arm, goals, restarts=restarts).solve(q0=arm.random(rng))
    if required:
        assume(solution.status is mk.Status.CLOSEST)
    reached = cost(arm, goals, solution.q)
    assert reached <= local_minimum(arm, goals, solution.q) * (1.0 + 1e-6) + 1e-15


@pytest.mark.parametrize("size", [0.2, 1.0, 50.0])
def test_gradient_of_the_cost_is_zero_in_all_directions_that_limits_leave_free(size):
    rng = np.random.default_rng(1)
    for _ in range(10):
        arm = random_arm(rng, size)
        goals = goals_out_of_reach(arm, rng, size, True, 2)
        solution = mk.Solver(arm, goals, restarts=0).solve(q0=arm.random(rng))
        assert solution.status is mk.Status.CLOSEST
        q, unit = solution.q, np.where(arm.space.rotates, 1.0, size)
        step = 1e-5 * unit
        gradient = np.array(
            [(cost(arm, goals, q + move) - cost(arm, goals, q - move)) / 2e-5 for move in np.diag(step)]
        )
        gradient[(q <= arm.space.lower + 1e-9 * unit) & (gradient > 0)] = 0.0
        gradient[(q >= arm.space.upper - 1e-9 * unit) & (gradient < 0)] = 0.0
        assert np.abs(gradient).max() < 1e-6 * cost(arm, goals, q)


def arm_with_goals(seed, unit):
    """An arm in a unit of length (the same numbers of m for `unit` 1), with two goals whose weights follow the unit."""
    rng, builder = np.random.default_rng(seed), mk.Builder("arm")
    for k in range(1, 5):
        at = unit * rng.uniform(-0.3, 0.3, 3)
        builder.revolute(f"joint{k}", f"link{k - 1}", f"link{k}", at=at, axis=rng.standard_normal(3))
    goals = [
        mk.PositionGoal("link4", unit * rng.uniform(-2, 2, 3), (0.1 * unit, 0, 0), weight=2.0 / unit),
        mk.OrientationGoal("link4", mk.spatial.rotation.exp(rng.standard_normal(3)), weight=0.7),
    ]
    return mk.Solver(builder.build(), goals)


@pytest.mark.parametrize("unit", [30.0, 0.5, 0.01])
def test_a_minimum_in_one_unit_of_length_is_one_in_another_unit_with_its_weights(unit):
    for seed in range(10):
        solution = arm_with_goals(seed, unit).solve(q0=np.zeros(4))
        if solution.status is mk.Status.CLOSEST:
            q = arm_with_goals(seed, 1.0).solve(q0=solution.q).q
            np.testing.assert_allclose(q, solution.q, atol=1e-5)


def test_one_goal_trades_one_metre_for_one_radian():
    """One joint, one link: the tip should be at a point and turned by an angle, with a closed form of the optimum."""
    length, target, turn = 2.0, np.array([0.0, 3.0, 0.0]), 0.2
    builder = mk.Builder("link")
    builder.revolute("joint", "base", "link", axis="z")
    builder.fixed("tip", "link", "tool", at=(length, 0, 0))
    arm = builder.build()
    X = mk.spatial.make_pose(mk.spatial.rotation.exp(np.array([0.0, 0.0, turn])), target)
    angle = mk.Solver(arm, mk.PoseGoal("tool", X)).solve(q0=[0.5]).q[0]
    # derivative of |p - target|^2 + (angle - turn)^2, where |p - target|^2 = 13 - 12 sin(angle)
    assert abs(-12.0 * np.cos(angle) + 2.0 * (angle - turn)) < 1e-6


def test_closest_pose_of_an_arm_after_its_chain_kernel_is_a_minimum_too():
    """The chain kernel has rows in units of the arm; the descent that follows has not."""
    arm, rng, compared = mk.gallery.panda(), np.random.default_rng(3), 0
    solver = mk.Solver(arm, mk.PoseGoal("panda_hand_tcp", np.eye(4)))
    for _ in range(20):
        X = arm.pose("panda_hand_tcp", arm.random(rng)).copy()
        X[:3, 3] *= 2.5
        solution = solver.solve(X, q0=arm.random(rng))
        goals = [mk.PoseGoal("panda_hand_tcp", X)]
        assert not solution.success
        if solution.status is mk.Status.CLOSEST:
            compared += 1
            assert cost(arm, goals, solution.q) <= local_minimum(arm, goals, solution.q) * (1.0 + 1e-6)
    assert compared > 10


DESCENT_METHODS = [name for name in mk.METHODS if name != "lm" and find_method(name).is_descent]


@pytest.mark.parametrize("method", DESCENT_METHODS)
def test_methods_in_python_end_at_the_minimum_in_metres_and_radians_too(method):
    """They search with balanced rows, then continue with rows in m and rad; else costs are up to 1.7 times higher."""
    compared = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        arm = random_arm(rng, 1.0)
        goals = goals_out_of_reach(arm, rng, 1.0, True, 1)
        solution = mk.Solver(arm, goals, solver=method, restarts=0).solve(q0=arm.random(rng))
        assert not solution.success
        ratio = cost(arm, goals, solution.q) / local_minimum(arm, goals, solution.q)
        if solution.status is mk.Status.CLOSEST:
            compared += 1
            assert ratio < 1.0 + 1e-6
        assert ratio < 1.25, "a descent that ends by its limit of iterations is near the minimum"
    assert compared or method in ("dls", "ccd"), "only these end by their limit, or without progress"
