"""Annealing: problems beyond a single descent, limits and locks, reproducibility, and Metropolis' rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from first_problem import problem_of

import mechanik as mk
from mechanik.errors import InvalidOperation, LimitsError, UnknownName
from mechanik.kernels.problem_layout import LOCKED
from mechanik.solver.methods.stochastic_methods import Annealing, random_step
from mechanik.spatial import quaternion

HAND = "panda_hand_tcp"


def point_and_direction(arm, q):
    X = arm.pose("effector", q)
    return [mk.PositionGoal("effector", X[:3, 3]), mk.AxisGoal("effector", X[:3, 0], (1, 0, 0))]


def shoulder():
    """A spherical, a revolute, a prismatic joint, and a spherical wrist."""
    robot = mk.Builder("shoulder")
    robot.spherical("shoulder", "world", "upper", at=(0, 0, 1))
    robot.revolute("elbow", "upper", "lower", at=(0, 0, 0.5), axis="y", limits=(0.1, 2.4))
    robot.prismatic("stretch", "lower", "end", at=(0, 0, 0.2), axis="z", limits=(0.0, 0.2))
    robot.spherical("wrist", "end", "hand", at=(0, 0, 0.1))
    return robot.build()


def test_annealing_solves_problems_that_a_single_descent_does_not():
    """The arm of five joints with a point and a direction: as many equations as joints, and limits on all of them."""
    arm = mk.gallery.zalo5()
    rng = np.random.default_rng(11)
    one_descent = annealed = 0
    for _ in range(100):
        goals = point_and_direction(arm, arm.random(rng))
        one_descent += mk.Solver(arm, goals, restarts=0).solve().success
        annealed += mk.Solver(arm, goals, solver="annealing").solve().success
    assert one_descent < 90
    assert annealed == 100


@pytest.mark.parametrize("local", ["lm", "dls", "lbfgsb", "newton"])
def test_annealing_escapes_the_local_minima_of_any_method(local):
    arm = mk.gallery.panda()
    rng = np.random.default_rng(2)
    alone = mk.Solver(arm, mk.PoseGoal(HAND, np.eye(4)), solver=local, restarts=0)
    search = mk.Solver(arm, mk.PoseGoal(HAND, np.eye(4)), solver="annealing", local=local)
    stuck = 0
    for _ in range(30):
        q_goal, q = arm.random(rng, 2)
        target = arm.pose(HAND, q_goal)
        stuck += not alone.solve(target, q).success
        assert search.solve(target, q).success
    assert stuck > 3


def test_the_same_generator_gives_identical_solutions_and_another_does_not():
    arm = mk.gallery.panda()
    solver = mk.Solver(arm, mk.PoseGoal(HAND, mk.Pose((2.0, 0, 0)).matrix), solver="annealing", max_iterations=30)
    reference, same, different = (solver.solve(rng=np.random.default_rng(seed), history=True) for seed in (4, 4, 5))
    assert np.array_equal(reference.q, same.q)
    assert np.array_equal(reference.history, same.history)
    assert not np.array_equal(reference.history, different.history)
    first, second = (solver.solve(history=True) for _ in range(2))  # without a generator, too
    assert np.array_equal(first.history, second.history)


def test_every_iterate_keeps_limits_locks_and_unit_quaternions():
    arm = shoulder()
    rng = np.random.default_rng(0)
    for _ in range(5):
        q_goal, q = arm.random(rng, 2)
        target = arm.pose("hand", q_goal) @ mk.Pose((0, 0, 0.4)).matrix  # at times out of reach
        seen = []
        solver = mk.Solver(arm, mk.PoseGoal("hand", target), solver="annealing", lock="wrist", max_iterations=30)
        solution = solver.solve(q0=q, callback=lambda now, seen=seen: seen.append(now.q))
        for x in [*seen, solution.q]:
            assert arm.space.within_limits(x).all()
            np.testing.assert_allclose(np.linalg.norm(x[:4]), 1.0, atol=1e-12)
            np.testing.assert_allclose(x[-4:], q[-4:], atol=1e-14)


def test_the_best_iterate_is_returned():
    arm = mk.gallery.zalo5()
    goal = mk.PositionGoal("effector", (2.0, 0.5, 0.5)), mk.AxisGoal("effector", (1, 0, 0), (0, 1, 0))
    solution = mk.Solver(arm, goal, solver="annealing", max_iterations=60).solve(history=True)
    errors = solution.history
    assert np.any(np.diff(errors) > 1e-9)  # worse configurations are accepted ...
    assert solution.subproblems[0].residual == pytest.approx(errors.min(), rel=1e-12)  # ... and not returned


def test_at_low_temperature_no_worse_configuration_is_accepted():
    arm = mk.gallery.zalo5()
    goal = mk.PositionGoal("effector", (2.0, 0.5, 0.5)), mk.AxisGoal("effector", (1, 0, 0), (0, 1, 0))
    solver = mk.Solver(arm, goal, solver="annealing", max_iterations=60, temperature=1e-9)
    assert np.all(np.diff(solver.solve(history=True).history) <= 1e-9)


def test_jumps_are_uniform_within_the_limits_and_bounded_by_the_temperature():
    arm = shoulder()
    problem = problem_of(mk.Solver(arm, mk.PositionGoal("hand", (0, 0, 2)), solver="annealing"))
    elbow, stretch = (list(problem.column_x).index(k) for k in (4, 5))
    problem.subproblem.packed.tables.bound_state[stretch] = LOCKED
    problem.set_configuration(np.array([1, 0, 0, 0, 0.3, 0.1, 1, 0, 0, 0.0]))
    steps = np.array([random_step(problem, 0.5) for _ in range(4000)])
    bounds = dict.fromkeys(range(problem.n), (-0.5, 0.5)) | {elbow: (-0.2, 0.5), stretch: (0.0, 0.0)}
    for k, (low, high) in bounds.items():
        assert low <= steps[:, k].min() <= steps[:, k].max() <= high
        # the mean and the spread of an even draw, to five standard errors
        width = high - low
        assert abs(steps[:, k].mean() - (low + high) / 2) <= 5 * width / math.sqrt(12 * 4000)
        assert abs(steps[:, k].std() - width / math.sqrt(12)) <= 0.02 * width


def test_loops_are_closed_at_the_end():
    mechanism = mk.gallery.five_bar()
    rng = np.random.default_rng(1)
    for _ in range(5):
        target = mechanism.pose("tool", mechanism.q)[:3, 3] + (*rng.uniform(-0.1, 0.1, 2), 0)
        solution = mk.Solver(mechanism, mk.PositionGoal("tool", target), solver="annealing").solve(
            q0=mechanism.random(rng)
        )
        assert solution.success
        assert max(error.position for error in solution.closure_errors.values()) < 1e-8


def test_a_rotation_of_a_spherical_joint_is_found():
    arm = shoulder()
    rng = np.random.default_rng(8)
    solver = mk.Solver(arm, mk.PoseGoal("hand", np.eye(4)), solver="annealing")
    for _ in range(20):
        q_goal, q = arm.random(rng, 2)
        solution = solver.solve(arm.pose("hand", q_goal), q)
        assert solution.success
        assert quaternion.angle_between(
            quaternion.from_matrix(arm.pose("hand", solution.q)[:3, :3]),
            quaternion.from_matrix(arm.pose("hand", q_goal)[:3, :3]),
        ) < 1e-5  # fmt: skip


def test_invalid_options_and_problems_unsupported_by_the_local_method_are_rejected():
    arm, goal = mk.gallery.panda(), mk.PositionGoal(HAND, (0.4, 0, 0.5))
    for options in (
        {"temperature": 0.0}, {"temperature": "hot"}, {"cooling": 1.0}, {"cooling": True}, {"jumps": 0},
        {"descent": 1.5}, {"local": Annealing()}, {"local": "annealing"},
    ):  # fmt: skip
        with pytest.raises(LimitsError, match=next(iter(options))):
            mk.Solver(arm, goal, solver="annealing", **options)
    with pytest.raises(UnknownName, match="ccdd"):
        mk.Solver(arm, goal, solver="annealing", local="ccdd")
    with pytest.raises(InvalidOperation, match="FABRIK"):
        mk.Solver(arm, mk.AxisGoal(HAND, (0, 0, -1)), solver="annealing", local="fabrik")
    with pytest.raises(InvalidOperation, match="levels"):
        mk.Solver(arm, [goal, mk.PositionGoal("panda_link4", (0, 0, 0.5), level=2)], solver="annealing")
