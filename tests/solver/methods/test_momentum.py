"""Momentum: Polyak's heavy ball and Nesterov's method, limits, and rejected problems."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_descent import compare_iterates, half_cost_and_gradient, step_bounds
from numpy_steps import NumpyProblem, cases, iterates

import mechanik as mk

CASES = cases()
IDS = [case.name for case in CASES]


def rolling(beta, nesterov=False, restart=True, alpha=None):
    def iterates_from(plain, q):
        velocity = np.zeros(plain.mechanism.nv)
        while True:
            g, J = half_cost_and_gradient(plain, q)[1], plain.residual_and_jacobian(q)[1]
            rate = 1 / np.sum(J**2) if alpha is None else alpha
            momentum = 0.0 if restart and g @ velocity > 0 else beta
            velocity = momentum * velocity - rate * g
            wanted = beta * velocity - rate * g if nesterov else velocity
            step = np.clip(wanted, *step_bounds(plain, q))
            velocity = np.where(step == wanted, velocity, 0.0)
            q = plain.move(q, step)
            yield q

    return iterates_from


@pytest.mark.parametrize("restart", [True, False], ids=["restart", "as it was"])
@pytest.mark.parametrize("nesterov", [True, False], ids=["Nesterov", "Polyak"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_iterates_are_those_of_the_papers(case, nesterov, restart):
    reference = rolling(0.9, nesterov, restart)
    assert compare_iterates(case, "momentum", reference, beta=0.9, nesterov=nesterov, restart=restart) > 0


@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_a_fixed_rate_is_used_unchanged(case):
    assert compare_iterates(case, "momentum", rolling(0.5, alpha=0.02), alpha=0.02, beta=0.5) > 0


def free_arm():
    builder = mk.Builder("free")
    above = "world"
    for k in range(4):
        builder.revolute(f"j{k}", above, f"l{k}", at=(0.0 if k == 0 else 0.5, 0, 0), axis="zyzy"[k])
        above = f"l{k}"
    return builder.build()


def test_the_iterates_of_nesterov_are_the_points_of_the_gradients():
    """x' = y - alpha g(y), y' = x' + beta (x' - x), as in his paper."""
    arm = free_arm()
    goal = mk.PositionGoal("l3", (0.3, 0.7, 0.4))
    solver = mk.Solver(arm, goal, solver="momentum", alpha=0.1, beta=0.8, nesterov=True, restart=False)
    plain, q0 = NumpyProblem(solver, (goal,)), np.array([0.1, 0.2, 0.3, 0.4])
    x = y = q0
    expected = [q0]
    for _ in range(20):
        ahead = y - 0.1 * half_cost_and_gradient(plain, y)[1]
        x, y = ahead, ahead + 0.8 * (ahead - x)
        expected.append(y)
    seen = iterates(solver, q0, 20)
    np.testing.assert_allclose(seen, expected[: len(seen)], atol=1e-9)
    assert len(seen) > 10


def test_without_momentum_it_is_gradient_descent():
    case = CASES[0]
    rolled = iterates(mk.Solver(case.mechanism, case.goals, solver="momentum", alpha=0.05, beta=0.0), case.q0)
    slid = iterates(mk.Solver(case.mechanism, case.goals, solver="gradient_descent", step=0.05), case.q0)
    np.testing.assert_allclose(rolled, slid, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_iterate_leaves_the_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="momentum")
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


def test_a_loop_is_closed():
    bars = mk.gallery.four_bar()
    q0 = bars.clamp(bars.integrate(bars.q, np.full(bars.nv, 0.1)))
    assert mk.Solver(bars, solver="momentum").solve(None, q0).success


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": "fast"}, {"beta": 1.0}, {"beta": -0.1}], ids=str)
def test_an_invalid_option_is_rejected_by_name(options):
    with pytest.raises(mk.errors.LimitsError, match=next(iter(options))):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="momentum", **options)


def test_a_rest_pose_is_rejected():
    arm = mk.gallery.ur5()
    with pytest.raises(mk.errors.InvalidOperation, match="momentum does not support soft objectives"):
        mk.Solver(arm, mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="momentum", rest=arm.q)
