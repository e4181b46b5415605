"""Evolution: the best is never lost, the run repeats, limits hold, and hard problems are solved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from first_problem import problem_of

import mechanik as mk
from mechanik.errors import InvalidOperation, LimitsError
from mechanik.kernels.problem_layout import LOCKED
from mechanik.solver.methods.stochastic_methods import Evolution, Population

HAND = "panda_hand_tcp"


def bodies():
    """A floating base, a spherical joint, and a revolute joint with limits."""
    robot = mk.Builder("bodies")
    robot.free("base", "world", "body")
    robot.spherical("shoulder", "body", "upper", at=(0, 0, 0.5))
    robot.revolute("elbow", "upper", "lower", at=(0, 0, 0.5), axis="y", limits=(-0.3, 2.0))
    return robot.build()


def narrow_limits(arm, q, rng, width):
    """Limits by joint, a narrow range somewhere about each value of q."""
    low = q - width * rng.random(len(q))
    return {name: (a, a + width) for name, a in zip(arm.space.q_names, low, strict=True)}


@pytest.mark.parametrize("local", ["lm", "jacobian_transpose"])
def test_the_best_of_a_generation_is_never_worse_than_that_of_the_previous(local):
    arm = mk.gallery.panda()
    rng = np.random.default_rng(1)
    for k in range(6):
        target = arm.pose(HAND, arm.random(rng)) @ mk.Pose((0.5 * (k % 2), 0, 0)).matrix  # at times out of reach
        solver = mk.Solver(arm, mk.PoseGoal(HAND, target), solver="evolution", local=local, descent=1)
        errors = solver.solve(q0=arm.random(rng), history=True, max_iterations=40).history
        assert np.all(np.diff(errors) <= 1e-12)


@pytest.mark.parametrize("width", [0.4, 2.0])
@pytest.mark.parametrize(("name", "link"), [("panda", HAND), ("ur5", "tool0")])
def test_random_poses_within_tight_limits_are_found(name, link, width):
    """The start is in a corner of them, where one descent often gets stuck."""
    arm = mk.gallery.make(name)
    rng = np.random.default_rng(6)
    stuck = 0
    for _ in range(30):
        q_goal = arm.random(rng)
        limits = narrow_limits(arm, q_goal, rng, width)
        goal = mk.PoseGoal(link, arm.pose(link, q_goal))
        start = np.array(
            [low if q - low > high - q else high for q, (low, high) in zip(q_goal, limits.values(), strict=True)]
        )
        stuck += not mk.Solver(arm, goal, limits=limits, restarts=0).solve(q0=start).success
        solution = mk.Solver(arm, goal, limits=limits, solver="evolution").solve(q0=start)
        assert solution.success
        for q, (low, high) in zip(solution.q, limits.values(), strict=True):
            assert low <= q <= high
    assert width < 1.0 or stuck > 10


@pytest.mark.parametrize(("name", "link"), [("panda", HAND), ("ur5", "tool0"), ("dh6", "tool"), ("grippy10", "seg10")])
def test_random_poses_of_arms_are_found_from_random_starts(name, link):
    arm = mk.gallery.make(name)
    rng = np.random.default_rng(3)
    solver = mk.Solver(arm, mk.PoseGoal(link, np.eye(4)), solver="evolution")
    for _ in range(60):
        q_goal, q = arm.random(rng, 2)
        assert solver.solve(arm.pose(link, q_goal), q).success


def test_evolution_solves_problems_that_its_local_method_does_not():
    arm = mk.gallery.zalo5()
    rng = np.random.default_rng(11)
    alone = bred = 0
    for _ in range(50):
        X = arm.pose("effector", arm.random(rng))
        goals = [mk.PositionGoal("effector", X[:3, 3]), mk.AxisGoal("effector", X[:3, 0], (1, 0, 0))]
        alone += mk.Solver(arm, goals, restarts=0).solve().success
        bred += mk.Solver(arm, goals, solver="evolution").solve().success
    assert alone < 45
    assert bred == 50


def test_the_same_generator_gives_identical_solutions_and_another_does_not():
    arm = mk.gallery.zalo5()
    goals = [mk.PositionGoal("effector", (0.5, 0.3, 0.4)), mk.AxisGoal("effector", (0, 1, 0.3), (0, 1, 0))]
    solver = mk.Solver(arm, goals, solver="evolution", max_iterations=15, descent=1, population=8)
    reference, same, different = (solver.solve(rng=np.random.default_rng(seed), history=True) for seed in (4, 4, 5))
    assert np.array_equal(reference.q, same.q)
    assert np.array_equal(reference.history, same.history)
    assert not np.array_equal(reference.history, different.history)
    first, second = (solver.solve(history=True) for _ in range(2))  # without a generator, too
    assert np.array_equal(first.history, second.history)


def test_children_keep_limits_locks_and_unit_quaternions():
    arm = bodies()
    solver = mk.Solver(arm, mk.PoseGoal("lower", mk.Pose((1, 2, 3)).matrix), solver="evolution")
    problem = problem_of(solver, np.random.default_rng(0))
    problem.subproblem.packed.tables.bound_state[: problem.n] = np.where(problem.column_x == 0, LOCKED, 0)
    problem.set_configuration(arm.q)
    folk = Population(problem, 40)
    for _ in range(20):
        folk.sort()
        before = folk.x[:4].copy()
        folk.breed(4)
        np.testing.assert_array_equal(folk.x[:4], before)  # elites live on
        q = folk.x[:, : arm.nq]
        assert arm.space.within_limits(q).all()
        for k in arm.space.quaternions_q:
            np.testing.assert_allclose(np.linalg.norm(q[:, k : k + 4], axis=1), 1.0, atol=1e-12)
        assert np.all(q[:, 0] == arm.q[0])
        for x, cost in zip(folk.x, folk.cost, strict=True):  # and each cost is that of its configuration
            problem.set_state(x)
            assert problem.cost == pytest.approx(cost, rel=1e-12)


def test_the_difference_of_two_individuals_leads_from_one_to_the_other():
    arm = bodies()
    problem = problem_of(
        mk.Solver(arm, mk.PositionGoal("lower", (1, 2, 3)), solver="evolution"), np.random.default_rng(0)
    )
    problem.set_configuration(arm.q)
    folk = Population(problem, 10)
    a, b = np.arange(5), np.arange(5, 10)
    steps, there = folk._difference(a, b), folk.x[b].copy()
    for i in range(5):
        problem.set_state(folk.x[i])
        problem.step[:] = steps[i]
        problem.advance()
        x = problem.x[: arm.nq]
        for k in arm.space.scalars_q:
            assert x[k] == pytest.approx(there[i, k], abs=1e-12)
        for k in arm.space.quaternions_q:
            assert abs(x[k : k + 4] @ there[i, k : k + 4]) == pytest.approx(1.0, abs=1e-12)


def test_a_population_is_drawn_uniformly():
    arm = bodies()
    problem = problem_of(
        mk.Solver(arm, mk.PositionGoal("lower", (1, 2, 3)), solver="evolution"), np.random.default_rng(0)
    )
    problem.set_configuration(arm.q)
    q = Population(problem, 3000).x[1:, : arm.nq]
    elbow = q[:, -1]
    assert abs(elbow.mean() - 0.85) < 5 * 2.3 / math.sqrt(12 * 3000)
    for k in arm.space.quaternions_q:
        # of an even rotation the four squares are alike
        assert abs((q[:, k] ** 2).mean() - 0.25) < 0.02


def test_loops_are_closed_at_the_end():
    mechanism = mk.gallery.five_bar()
    rng = np.random.default_rng(1)
    for _ in range(5):
        target = mechanism.pose("tool", mechanism.q)[:3, 3] + (*rng.uniform(-0.1, 0.1, 2), 0)
        solution = mk.Solver(mechanism, mk.PositionGoal("tool", target), solver="evolution").solve(
            q0=mechanism.random(rng)
        )
        assert solution.success
        assert max(error.position for error in solution.closure_errors.values()) < 1e-8


def test_functions_written_in_python_are_solved():
    arm = mk.gallery.planar_3r()
    goals = [
        mk.PositionGoal("tool", (1.2, 0.9, 0)),
        mk.Custom(lambda mechanism, q: np.array([q[0] - 0.2]), residual_size=1),
    ]
    solution = mk.Solver(arm, goals, solver="evolution", max_iterations=20).solve()
    assert solution.success
    assert solution.q[0] == pytest.approx(0.2, abs=1e-5)


def test_invalid_options_are_rejected():
    arm, goal = mk.gallery.panda(), mk.PositionGoal(HAND, (0.4, 0, 0.5))
    for options in (
        {"population": 2}, {"elites": 0}, {"elites": 16}, {"descent": 0}, {"patience": 1.5}, {"local": Evolution()}
    ):  # fmt: skip
        with pytest.raises(LimitsError, match=next(iter(options))):
            mk.Solver(arm, goal, solver="evolution", **options)
    with pytest.raises(InvalidOperation, match="soft objectives"):
        mk.Solver(arm, [goal, mk.RestPose(arm.q)], solver="evolution")
