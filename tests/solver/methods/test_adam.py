"""Adam: algorithm 1 of the paper, limits, and rejected problems."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_descent import compare_iterates, half_cost_and_gradient, is_blocked, step_bounds
from numpy_steps import cases, iterates

import mechanik as mk

CASES = cases()
IDS = [case.name for case in CASES]


def adam(alpha=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8):
    def iterates_from(plain, q):
        m, v, t = np.zeros(plain.mechanism.nv), np.zeros(plain.mechanism.nv), 0
        while True:
            t += 1
            g, (low, high) = half_cost_and_gradient(plain, q)[1], step_bounds(plain, q)
            g = np.where(is_blocked(g, low, high), 0.0, g)
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
            q = plain.move(q, np.clip(-alpha * m_hat / (np.sqrt(v_hat) + epsilon), low, high))
            yield q

    return iterates_from


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_iterates_are_those_of_the_paper(case):
    # a gradient that is zero but for rounding is divided by its own size: epsilon hides it
    assert compare_iterates(case, "adam", adam(epsilon=1e-3), epsilon=1e-3) > 0


@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_every_option_has_the_effect_of_the_paper(case):
    options = {"alpha": 0.03, "beta1": 0.7, "beta2": 0.95, "epsilon": 1e-2}
    assert compare_iterates(case, "adam", adam(**options), **options) > 0


def test_the_default_options_are_those_of_the_paper():
    method = mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="adam").method
    assert (method.beta1, method.beta2, method.epsilon) == (0.9, 0.999, 1e-8)


def test_the_first_step_of_every_joint_is_alpha():
    """Section 2.1 of the paper: the size of a step does not depend on the size of the gradient."""
    arm = mk.gallery.panda()
    q0 = 0.5 * (arm.space.lower + arm.space.upper)
    goal = mk.PositionGoal("panda_hand_tcp", (0.3, 0.4, 0.5))
    solver = mk.Solver(arm, goal, solver="adam", alpha=0.01)
    step = solver.step(q0=q0).q - q0
    moved = np.abs(solver.jacobian(q0).T @ solver.residual(q0)) > 1e-6
    assert np.count_nonzero(moved) > 3
    np.testing.assert_allclose(np.abs(step[moved]), 0.01, rtol=1e-2)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_iterate_leaves_the_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="adam")
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


def test_a_loop_is_closed():
    bars = mk.gallery.four_bar()
    q0 = bars.clamp(bars.integrate(bars.q, np.full(bars.nv, 0.1)))
    assert mk.Solver(bars, solver="adam").solve(None, q0).success


@pytest.mark.parametrize(
    "options", [{"alpha": 0.0}, {"alpha": "fast"}, {"beta1": 1.0}, {"beta2": -0.1}, {"epsilon": 0.0}], ids=str
)
def test_an_invalid_option_is_rejected_by_name(options):
    with pytest.raises(mk.errors.LimitsError, match=next(iter(options))):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="adam", **options)
