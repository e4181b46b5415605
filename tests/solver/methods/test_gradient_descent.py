"""Gradient descent: the iterates of the papers, finite differences, limits, and rejected problems."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy_descent import compare_iterates, half_cost_and_gradient, line_search, step_bounds
from numpy_steps import cases, iterates

import mechanik as mk
from mechanik.solver.methods.gradient_methods import FiniteDifferenceGradient, GradientDescent

CASES = cases()
IDS = [case.name for case in CASES]


def descent(is_spectral, memory=10, largest=0.2):
    """Birgin, Martinez and Raydan 2000, algorithm 2.1 (SPG2), with a longest step; or Armijo's rule."""

    def iterates_from(plain, q):
        costs, alpha, s, before = [], np.inf, None, None
        while True:
            cost, g = half_cost_and_gradient(plain, q)
            costs.append(cost)
            if s is not None and is_spectral:
                along = s @ (g - before)
                alpha = s @ s / along if along > 0 else np.inf
            alpha = min(alpha, largest / np.abs(g).max())
            step = np.clip(-alpha * g, *step_bounds(plain, q))
            share, there = line_search(plain, q, step, cost, max(costs[-memory:]), g @ step)
            s, before, q = share * step, g, there
            alpha *= 2 * share
            yield q

    return iterates_from


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_iterates_are_those_of_the_paper(case):
    assert compare_iterates(case, "gradient_descent", descent(True)) > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_with_backtracking_the_iterates_are_those_of_armijo(case):
    assert compare_iterates(case, "gradient_descent", descent(False, memory=1), step="backtracking") > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_fixed_step_is_that_multiple_of_the_gradient(case):
    def iterates_from(plain, q):
        while True:
            q = plain.move(q, -0.03 * half_cost_and_gradient(plain, q)[1])
            yield q

    assert compare_iterates(case, "gradient_descent", iterates_from, step=0.03) > 0


@pytest.mark.parametrize("options", [{"step": "backtracking"}, {"memory": 1}], ids=str)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_without_memory_the_error_never_rises(case, options):
    solver = mk.Solver(case.mechanism, case.goals, solver="gradient_descent", **options)
    errors = solver.solve(q0=case.q0, history=True, max_iterations=200).history
    assert errors is not None
    assert np.all(np.diff(errors) <= 0)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_iterate_leaves_the_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="gradient_descent")
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


# ---- differences --------------------------------------------------------------------------------


class Stands(GradientDescent):
    """Does not move; only exposes the problem at the start."""

    def iterate(self, problem):
        shown.append(problem)
        return iter(())


shown = []


def problem_at(mechanism, goals, q):
    mk.Solver(mechanism, goals, solver=Stands(gradient="differences"), max_iterations=1).solve(q0=q)
    return shown.pop()


def by_differences(problem, d):
    gradient = np.full(problem.n, np.nan)
    FiniteDifferenceGradient(problem, d).write(gradient)
    return gradient


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_finite_differences_have_the_accuracy_of_finite_differences(case):
    """The error of forward differences is d / 2 times the curvature, so a tenth of d has a tenth of the error."""
    problem = problem_at(case.mechanism, case.goals, case.q0)
    exact, size = problem.gradient, 1.0 + problem.cost
    coarse, fine = (by_differences(problem, d) - exact for d in (1e-4, 1e-5))
    np.testing.assert_allclose(fine, coarse / 10, atol=1e-7 * size)
    assert np.abs(by_differences(problem, 1e-7) - exact).max() < 1e-5 * size
    assert np.abs(coarse).max() > 1e-9  # they are differences


@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_finite_differences_do_not_move_the_mechanism(case):
    problem = problem_at(case.mechanism, case.goals, case.q0)
    before = problem.x.copy()
    by_differences(problem, 1e-3)
    assert np.array_equal(problem.x, before)


def test_finite_differences_support_world_axes_and_partial_poses():
    rng = np.random.default_rng(3)
    arm = mk.gallery.panda()
    X = arm.pose("panda_hand_tcp", arm.random(rng))
    for goal in (
        mk.PoseGoal("panda_hand_tcp", X, dof=("X", "Z", "EY"), axes="world"),
        mk.PoseGoal("panda_hand_tcp", X, dof=("Y", "EX", "EZ")),
        mk.OrientationGoal("panda_hand_tcp", X[:3, :3]),
    ):
        problem = problem_at(arm, goal, arm.random(rng))
        np.testing.assert_allclose(by_differences(problem, 1e-7), problem.gradient, atol=1e-5)


def test_a_locked_joint_has_no_finite_difference_and_does_not_move():
    arm = mk.gallery.ur5()
    rng = np.random.default_rng(0)
    q0 = arm.random(rng)
    goal = mk.PoseGoal("tool0", arm.pose("tool0", arm.random(rng)))
    solver = mk.Solver(arm, goal, solver="gradient_descent", gradient="differences")
    for name in (str(joint) for joint in arm.joints):
        if len(arm.joint(name).dof) == 0:
            continue
        solution = solver.solve(q0=q0, lock=name, max_iterations=20)
        k = arm.space.q_names.index(name)
        assert solution.q[k] == q0[k]
        assert np.count_nonzero(solution.q != q0) > 1


def test_finite_differences_converge():
    rng = np.random.default_rng(1)
    arm = mk.gallery.grippy10()
    targets = arm.pose("tool", arm.random(rng, 20))
    solver = mk.Solver(arm, mk.PoseGoal("tool", targets[0]), solver="gradient_descent", gradient="differences")
    assert all(solver.solve(target, arm.q, restarts=3).success for target in targets)


COUNT = """
import numpy as np
import mechanik as mk
from mechanik.kernels.methods import difference_gradient as where
counted = []
for joints in (5, 10, 20, 40):
    arm = mk.arm_3d([0.1] * joints, "zy" * (joints // 2) + "z" * (joints % 2))
    goal = mk.PoseGoal(list(arm.links)[-1], np.eye(4))
    calls = [0]
    def count(function):
        def counts(*arguments):
            calls[0] += 1
            return function(*arguments)
        return counts
    original = where.compose, where.child_pose
    where.compose, where.child_pose = map(count, original)
    mk.Solver(arm, goal, solver="gradient_descent", gradient="differences").step(q0=np.full(joints, 0.1))
    where.compose, where.child_pose = original
    counted.append(calls[0])
print(counted)
"""


def test_each_further_joint_costs_two_multiplications_besides_the_pass_that_stores_the_products():
    """The pass from the hand to the root needs two a joint: its own matrix, and what lies behind it."""
    root = Path(mk.__file__).parents[1]
    environment = {**os.environ, "MECHANIK_KERNELS": "plain", "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([4 * joints + 1 for joints in (5, 10, 20, 40)])


@pytest.mark.parametrize(
    ("goals", "what"),
    [
        (lambda: mk.PositionGoal("upper_arm_link", (0.1, 0, 0), relative_to="tool0"), "fixed in the world"),
        (lambda: mk.JointValues({"elbow_joint": 0.3}), "no joint values"),
        (lambda: mk.LookAt("tool0", (1.0, 0.0, 0.5)), "fixed in the world"),
        (lambda: mk.InBox("tool0", (0.1, 0.1, 0.1), (0.2, 0.2, 0.2)), "not support bands"),
    ],
    ids=["relative", "values", "look", "band"],
)
def test_finite_differences_reject_problems_other_than_a_chain_from_the_world(goals, what):
    arm = mk.gallery.ur5()
    with pytest.raises(mk.errors.InvalidOperation, match=what) as refused:
        mk.Solver(arm, goals(), solver="gradient_descent", gradient="differences")
    assert "gradient='analytic'" in str(refused.value)
    mk.Solver(arm, goals(), solver="gradient_descent").step()


def test_loops_are_rejected_by_finite_differences_and_closed_by_the_jacobian():
    bars = mk.gallery.four_bar()
    with pytest.raises(mk.errors.InvalidOperation, match="does not support closed loops"):
        mk.Solver(bars, solver="gradient_descent", gradient="differences")
    q0 = bars.clamp(bars.integrate(bars.q, np.full(bars.nv, 0.1)))
    assert mk.Solver(bars, solver="gradient_descent").solve(None, q0).success


@pytest.mark.parametrize(
    "options",
    [
        {"step": 0.0}, {"step": "long"}, {"gradient": "guessed"}, {"memory": 0}, {"memory": 2.5}, {"largest_step": 0},
        {"difference": 0.0}, {"difference": "small"},
    ],
    ids=str,
)  # fmt: skip
def test_an_invalid_option_is_rejected_by_name(options):
    with pytest.raises(mk.errors.LimitsError, match=next(iter(options))):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="gradient_descent", **options)
