"""L-BFGS-B: steps by the inverse Hessian from its pairs, limits, and rejected problems."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_descent import compare_iterates, half_cost_and_gradient, is_blocked, line_search, step_bounds
from numpy_steps import cases, iterates

import mechanik as mk

CASES = cases()
IDS = [case.name for case in CASES]


def limited_memory(memory=10, largest=0.4):
    """With the whole inverse, made anew from the pairs each time: H = V'HV + s s' / y's, V = 1 - y s' / y's."""

    def iterates_from(plain, q):
        pairs = []
        while True:
            cost, g = half_cost_and_gradient(plain, q)
            low, high = step_bounds(plain, q)
            free = ~is_blocked(g, low, high)
            bent = plain.residual_and_jacobian(q)[1][:, free] @ g[free]
            curved_pairs = [(s[free], y[free]) for s, y in pairs]
            curved_pairs = [(s, y) for s, y in curved_pairs if s @ y > 1e-12 * (y @ y)]
            gamma = (
                curved_pairs[-1][0] @ curved_pairs[-1][1] / (curved_pairs[-1][1] @ curved_pairs[-1][1])
                if curved_pairs
                else (g[free] @ g[free]) / (bent @ bent)
            )
            H = gamma * np.eye(int(free.sum()))
            for s, y in curved_pairs:
                V = np.eye(len(s)) - np.outer(y, s) / (y @ s)
                H = V.T @ H @ V + np.outer(s, s) / (y @ s)
            step = np.zeros(len(g))
            for descent in (-H @ g[free], -gamma * g[free]):
                step[free] = descent * min(1.0, largest / np.abs(descent).max())
                step = np.clip(step, low, high)
                if g @ step < -1e-10 * np.linalg.norm(step) * np.linalg.norm(g[free]):
                    break
            share, there = line_search(plain, q, step, cost, cost, g @ step)
            pairs = [*pairs, (share * step, half_cost_and_gradient(plain, there)[1] - g)][-memory:]
            q = there
            yield q

    return iterates_from


@pytest.mark.parametrize("m", [10, 3])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_steps_are_those_of_the_inverse_hessian_from_the_pairs(case, m):
    assert compare_iterates(case, "lbfgsb", limited_memory(m), m=m) > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_error_never_rises_and_no_iterate_leaves_the_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="lbfgsb")
    errors = solver.solve(q0=case.q0, history=True, max_iterations=100).history
    assert errors is not None
    assert np.all(np.diff(errors) <= 0)
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


def test_near_the_goal_convergence_is_superlinear():
    """Each of the last steps gains more than the one before; descent along the gradient gains the same share."""
    arm = mk.gallery.ur5()
    q0 = np.array([0.3, -1.0, 1.2, -0.8, 0.9, 0.2])
    goal = mk.PoseGoal("tool0", arm.pose("tool0", q0 + 0.2), tolerance=1e-12, angle_tolerance=1e-12)
    errors = mk.Solver(arm, goal, solver="lbfgsb").solve(q0=q0, history=True).history
    plain = (
        mk.Solver(arm, goal, solver="gradient_descent").solve(q0=q0, history=True, max_iterations=len(errors)).history
    )
    assert errors[-1] < 1e-11
    assert plain[-1] > 1e-6


def test_a_loop_is_closed():
    bars = mk.gallery.four_bar()
    q0 = bars.clamp(bars.integrate(bars.q, np.full(bars.nv, 0.1)))
    assert mk.Solver(bars, solver="lbfgsb").solve(None, q0).success


def test_a_goal_out_of_reach_ends_where_the_gradient_vanishes():
    arm = mk.gallery.planar_3r()
    goal = mk.PositionGoal(list(arm.links)[-1], (9.0, 4.0, 0.0))
    solution = mk.Solver(arm, goal, solver="lbfgsb").solve(q0=np.array([0.1, 0.2, 0.3]))
    assert not solution.success
    assert solution.status in (mk.Status.CLOSEST, mk.Status.STALLED)
    best = mk.Solver(arm, goal).solve(q0=np.array([0.1, 0.2, 0.3]))
    assert goal.error(arm, solution.q).position <= goal.error(arm, best.q).position * (1 + 1e-9)


@pytest.mark.parametrize("options", [{"m": 0}, {"m": 2.5}, {"largest_step": 0.0}, {"largest_step": "long"}], ids=str)
def test_an_invalid_option_is_rejected_by_name(options):
    with pytest.raises(mk.errors.LimitsError, match=next(iter(options))):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="lbfgsb", **options)
