"""Damping that follows the error: Chan and Lawrence, and Sugihara."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy_steps import NumpyProblem, cases, compare_steps, iterates

import mechanik as mk

CASES = cases(4)
IDS = [case.name for case in CASES]


def chan(e, damping):
    return damping * 0.5 * (e @ e)


def sugihara(e, w_n_bar):
    return 0.5 * (e @ e) + w_n_bar


RULES = {"chan": (chan, "damping"), "sugihara": (sugihara, "w_n_bar")}


@pytest.mark.parametrize("number", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("method", RULES)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_step_of_the_paper_from_its_predecessor(case, method, number):
    rule, option = RULES[method]

    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)
        W_n = rule(e, number)
        stacked = np.zeros(J.shape[1])

        def solve(J):  # as a least squares problem, so that a small W_n is no trouble for the reference
            A = np.vstack([J, math.sqrt(W_n) * np.eye(J.shape[1])])
            return np.linalg.lstsq(A, np.concatenate([-e, stacked]), rcond=None)[0]

        return plain.step_within_limits(q, e, J, solve)

    def rounding(plain, q):  # of the normal equations: the condition of J'J + W_n times the rounding unit of float64
        e, J = plain.residual_and_jacobian(q)
        return np.finfo(float).eps * np.linalg.norm(J) ** 2 / rule(e, number) * np.linalg.norm(step(plain, q))

    assert compare_steps(case, method, step, rounding, **{option: number}) > 0


@pytest.mark.parametrize("method", RULES)
@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_no_iterate_leaves_the_limits(case, method):
    solver = mk.Solver(case.mechanism, case.goals, solver=method)
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


def test_near_a_solution_chan_is_quadratic_and_sugihara_is_limited_by_w_n_bar():
    arm, rng = mk.gallery.ur5(), np.random.default_rng(3)
    compared = 0
    while compared < 10:
        there = arm.random(rng)
        goal = mk.PoseGoal("tool0", arm.pose("tool0", there))
        solvers = {name: mk.Solver(arm, goal, solver=name, hold_at_limits=False) for name in RULES}
        plain = NumpyProblem(solvers["chan"], [goal])
        q = arm.clamp(there + rng.uniform(-1e-5, 1e-5, 6))
        e, J = plain.residual_and_jacobian(q)
        U, s, _ = np.linalg.svd(J)
        if s[-1] < 0.1:
            continue
        compared += 1
        after = {name: plain.residual_and_jacobian(solver.step(q0=q).q)[0] for name, solver in solvers.items()}
        assert np.linalg.norm(after["chan"]) < 10 * (np.linalg.norm(e) / s[-1]) ** 2
        assert U.T @ after["sugihara"] == pytest.approx(1e-3 / (s**2 + 1e-3) * (U.T @ e), abs=1e-8)


@pytest.mark.parametrize("method", RULES)
@pytest.mark.parametrize("make", [mk.gallery.stewart_platform, mk.gallery.delta_robot])
def test_loops_with_redundant_equations_are_closed_when_goals_are_met(make, method):
    platform = make()
    goal = mk.PositionGoal("platform", platform.pose("platform")[:3, 3] + (0.01, -0.02, 0.01))
    solution = mk.Solver(platform, goal, solver=method).solve()
    assert solution.success
    assert max(error.position for error in solution.closure_errors.values()) < 1e-9


@pytest.mark.parametrize("method", RULES)
def test_invalid_numbers_are_rejected_when_the_solver_is_made(method):
    option, goal = RULES[method][1], mk.PositionGoal("link3", (1, 1, 0))
    for wrong in (0.0, -1.0, "much", math.nan, True):
        with pytest.raises(mk.errors.MechanikError, match=option):
            mk.Solver(mk.gallery.planar_3r(), goal, solver=method, **{option: wrong})
