"""The divergence threshold: which attempts it ends, when, and with which configuration."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_steps import NumpyProblem, cases

import mechanik as mk
from mechanik.errors import LimitsError
from mechanik.solver.methods.method_registry import find_method

CASES = cases()
DIVERGENT = {
    "jacobian_transpose": {"step": 30.0},
    "gradient_descent": {"step": 30.0},
    "momentum": {"alpha": 30.0, "restart": False},
    "adam": {"alpha": 50.0},
    "chan": {"damping": 1e-12},
    "sugihara": {"w_n_bar": 1e-12},
    "pseudo_inverse": {},
    "dls": {"damping": 1e-9, "gamma_max": np.inf},
    "sdls": {"gamma_max": 50.0},
    "fabrik": {},
}
"""Options with which a method diverges on some of the cases."""
MONOTONE = [name for name in mk.METHODS if not find_method(name).can_diverge]


def gantry():
    builder = mk.Builder("gantry without limits")
    builder.prismatic("x", "base", "bridge", axis="x")
    builder.prismatic("y", "bridge", "cart", axis="y")
    builder.prismatic("z", "cart", "tip", axis="z")
    return builder.build()


@pytest.mark.parametrize("method", ["jacobian_transpose", "gradient_descent", "momentum"])
def test_a_fixed_step_that_is_too_long_ends_at_the_threshold(method):
    """The error grew until it was not a finite number any more."""
    robot, errors = gantry(), []
    goal = mk.PositionGoal("tip", (0.1, 0.2, 0.3))
    solver = mk.Solver(robot, goal, solver=method, divergence_threshold=100.0, **DIVERGENT[method])
    solution = solver.solve(q0=np.zeros(3), callback=lambda iterate: errors.append(iterate.error))
    assert solution.status is mk.Status.DIVERGED
    assert not solution.success
    assert "divergence threshold" in solution.message
    assert max(errors[:-1], default=0.0) <= errors[-1]
    assert solution.iterations == len(errors) < 20
    np.testing.assert_array_equal(solution.q, np.zeros(3))  # every step increases the error


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(DIVERGENT)),
    number=st.integers(0, len(CASES) - 1),
    threshold=st.floats(1.0, 30.0),
)
def test_an_attempt_ends_at_the_first_error_above_the_threshold_and_nowhere_else(name, number, threshold):
    case = CASES[number]
    try:
        free = mk.Solver(case.mechanism, case.goals, solver=name, restarts=0, max_iterations=60, **DIVERGENT[name])
    except mk.errors.InvalidOperation:
        return
    start = case.mechanism.clamp(case.q0)
    residual, _ = NumpyProblem(free, case.goals).residual_and_jacobian(start)
    without = free.solve(q0=start, history=True)
    limit = threshold * np.linalg.norm(residual)
    above = np.flatnonzero(without.history > limit)
    if len(above) and abs(without.history[above[0]] / limit - 1) < 1e-9:
        return  # rounding decides
    solution = free.solve(q0=start, history=True, divergence_threshold=threshold)
    if len(above) == 0 or (without.success and above[0] >= without.iterations):
        np.testing.assert_array_equal(solution.q, without.q)
        assert solution.status is without.status
        return
    assert solution.status is mk.Status.DIVERGED
    assert solution.iterations == above[0] + 1
    np.testing.assert_array_equal(solution.history, without.history[: above[0] + 1])
    best, _ = NumpyProblem(free, case.goals).residual_and_jacobian(solution.q)
    lowest = min(np.linalg.norm(residual), solution.history.min())
    np.testing.assert_allclose(np.linalg.norm(best), lowest, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", MONOTONE)
def test_methods_that_cannot_diverge_ignore_the_threshold(method):
    arm, rng = mk.gallery.ur5(), np.random.default_rng(0)
    solver = mk.Solver(arm, mk.PoseGoal("tool0", arm.pose("tool0", arm.random(rng))), solver=method, max_iterations=20)
    q0 = arm.random(rng)
    without, solution = solver.solve(q0=q0), solver.solve(q0=q0, divergence_threshold=1.0)
    np.testing.assert_array_equal(solution.q, without.q)
    assert solution.status is without.status


def test_an_attempt_that_has_met_its_goals_does_not_diverge():
    """Steps towards a rest pose increase an error of almost zero many times."""
    arm = mk.arm_2d([0.5, 0.4, 0.3, 0.2])
    q0 = np.array([0.3, -0.5, 0.7, 0.4])
    goal = mk.PositionGoal("tool", arm.pose("tool", q0)[:3, 3] + 1e-9)
    solution = mk.Solver(arm, goal, solver="dls", rest=np.zeros(4), divergence_threshold=1.0).solve(q0=q0)
    assert solution.success
    assert np.linalg.norm(solution.q) < np.linalg.norm(q0)


def test_the_threshold_keeps_the_default_method_on_its_fast_path():
    arm, goal = mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5))
    assert mk.Solver(arm, goal, divergence_threshold=10.0).chain is not None


@pytest.mark.parametrize("threshold", [0.5, -1.0, "10", np.nan])
def test_an_invalid_threshold_is_rejected_by_name(threshold):
    with pytest.raises((LimitsError, mk.errors.NotFinite), match="divergence_threshold"):
        mk.Options(divergence_threshold=threshold)


def test_restarts_follow_an_attempt_that_diverged():
    """Near the stretched arm the pseudo-inverse jumps."""
    arm, rng = mk.arm_2d([1.0, 1.0]), np.random.default_rng(0)
    solver = mk.Solver(arm, mk.PositionGoal("tool", (0, 0, 0)), solver="pseudo_inverse", divergence_threshold=1.2)
    later_successes = 0
    for _ in range(20):
        target = arm.pose("tool", arm.random(rng))[:3, 3]
        q0 = [rng.uniform(-3, 3), rng.normal(scale=1e-3)]
        if solver.solve(target, q0).status is mk.Status.DIVERGED:
            solution = solver.solve(target, q0, restarts=20)
            assert solution.attempts > 1
            later_successes += solution.success
    assert later_successes > 0


# ---- declared attributes instead of classes -----------------------------------------------------------


def test_no_code_outside_the_registry_asks_for_the_class_of_a_method():
    """Annealing and evolution asked whether their local method was an instance of themselves."""
    names = {find_method(name).__name__ for name in mk.METHODS}
    root = Path(mk.__file__).parent
    class_checks = []
    for path in sorted(root.rglob("*.py")):
        if path.name == "method_registry.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_check = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass")
            if is_check or isinstance(node, (ast.Compare, ast.MatchClass)):
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                used |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                if used & names:
                    class_checks.append(f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}")
    assert class_checks == []


@pytest.mark.parametrize("method", ["annealing", "evolution"])
def test_a_method_is_not_its_own_local_method(method):
    with pytest.raises(LimitsError, match="local must be another method"):
        find_method(method)(local=method)
    assert find_method(method)(local="evolution" if method == "annealing" else "annealing").name == method
