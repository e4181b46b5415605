"""Newton and Raphson's method with a line search: never worse, and stopped where nothing helps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy_steps import NumpyProblem, cases, iterates
from solver_internals import packed_problem

import mechanik as mk

CASES = cases(3)
IDS = [case.name for case in CASES]


def newton_direction(e, J, damping):
    """- sum of (u_i . e) / (s_i + damping) v_i, over what J knows of."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    known = s > 1e-9 * s[0]
    return -Vt[known].T @ ((U.T @ e)[known] / (s[known] + damping))


def line_search(plain, q, step, slope, tolx=1e-12):
    """Dennis and Schnabel 1983, A6.3.1, on half the sum of squares, clamped to the limits as it is tried."""

    def half(share):
        return 0.5 * float(np.sum(plain.residual_and_jacobian(plain.move(q, share * step))[0] ** 2))

    f0, share, previous = half(0.0), 1.0, None
    while share >= tolx / np.abs(step).max():
        f = half(share)
        if f <= f0 + 1e-4 * share * slope:
            return plain.move(q, share * step)
        if previous is None:
            guess = -slope / (2.0 * (f - f0 - slope))
        else:
            last, f_last = previous
            a, b = np.linalg.solve(
                [[share**3, share**2], [last**3, last**2]], [f - f0 - share * slope, f_last - f0 - last * slope]
            )
            root = b * b - 3.0 * a * slope
            guess = 0.5 * share if root < 0.0 else (-b + np.sqrt(root)) / (3.0 * a)
        previous = share, f
        share = max(min(guess, 0.5 * share), 0.1 * share)
    return None


@pytest.mark.parametrize("damping", [0.01, 0.1])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_a_damped_newton_step_cut_by_the_line_search(case, damping):
    solver = mk.Solver(case.mechanism, case.goals, solver="newton", damping=damping)
    plain, columns = NumpyProblem(solver, case.goals), len(packed_problem(solver).subproblems[0].packed.columns)
    seen = iterates(solver, case.q0)
    for number, (q, after) in enumerate(pairwise(seen)):
        e, J = plain.residual_and_jacobian(q)
        step = plain.step_within_limits(q, e, J, lambda J, e=e: newton_direction(e, J, damping))
        step *= min(1.0, 10.0 * max(np.linalg.norm(q), columns) / np.linalg.norm(step))
        expected = line_search(plain, q, step, float((J.T @ e) @ step))
        assert expected is not None
        apart = case.mechanism.space.difference(expected, after)
        assert np.abs(apart).max() < 1e-9, f"{case.name}, iteration {number}: {apart}"
    assert len(seen) > 1


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_error_never_rises_and_no_iterate_leaves_the_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="newton")
    plain = NumpyProblem(solver, case.goals)
    seen = iterates(solver, case.q0, 40)
    costs = [float(np.sum(plain.residual_and_jacobian(q)[0] ** 2)) for q in seen]
    # where nothing is left to gain, two sums of squares differ by rounding
    assert all(after < before * (1 + 1e-14) for before, after in pairwise(costs))
    assert all(case.mechanism.space.within_limits(q) for q in seen)


def test_where_the_gradient_vanishes_the_method_stops_with_the_status_closest():
    arm = mk.gallery.planar_3r()
    tip = list(arm.links)[-1]
    beyond = mk.PositionGoal(tip, arm.pose(tip, np.zeros(3))[:3, 3] * 1.5)
    solution = mk.Solver(arm, beyond, solver="newton").solve(q0=np.zeros(3))
    assert (solution.status.name, solution.iterations) == ("CLOSEST", 0)
    assert np.array_equal(solution.q, np.zeros(3))


def test_out_of_reach_the_error_falls_and_success_is_false():
    arm, q0 = mk.gallery.ur5(), np.full(6, 0.3)
    goal = mk.PositionGoal("tool0", (2.0, 0.5, 0.5))
    solution = mk.Solver(arm, goal, solver="newton").solve(q0=q0)
    assert not solution.success
    assert goal.error(arm, solution.q).position < goal.error(arm, q0).position


@pytest.mark.parametrize("make", [mk.gallery.stewart_platform, mk.gallery.delta_robot])
def test_loops_are_closed_when_goals_are_met(make):
    platform = make()
    goal = mk.PositionGoal("platform", platform.pose("platform")[:3, 3] + (0.01, -0.02, 0.01))
    solution = mk.Solver(platform, goal, solver="newton").solve()
    assert solution.success
    assert max(error.position for error in solution.closure_errors.values()) < 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": -0.1}, "damping cannot be below 0"),
        ({"tolx": 0.0}, "tolx must be above 0"),
        ({"step_max": 0.0}, "step_max must be above 0"),
        ({"step_max": "far"}, "step_max must be a number"),
    ],
)
def test_invalid_options_are_rejected_when_the_solver_is_made(options, message):
    with pytest.raises(mk.errors.MechanikError, match=message):
        mk.Solver(mk.gallery.planar_3r(), mk.PositionGoal("link3", (1, 1, 0)), solver="newton", **options)
