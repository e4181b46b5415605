"""The Jacobian transpose: the steps of the papers, limits, and rejected problems."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_descent import compare_iterates, is_blocked, step_bounds
from numpy_steps import cases, compare_steps, iterates

import mechanik as mk

CASES = cases()
IDS = [case.name for case in CASES]


@pytest.mark.parametrize("relaxation", [1.0, 0.9])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_optimal_step_from_its_predecessor(case, relaxation):
    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)
        J = np.where(is_blocked(J.T @ e, *step_bounds(plain, q)), 0.0, J)
        pulled = J @ J.T @ e
        return -relaxation * (e @ pulled) / (pulled @ pulled) * (J.T @ e)

    assert compare_steps(case, "jacobian_transpose", step, relaxation=relaxation) > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_fixed_step_from_its_predecessor(case):
    def iterates_from(plain, q):
        while True:
            e, J = plain.residual_and_jacobian(q)
            q = plain.move(q, -0.05 * J.T @ e)
            yield q

    assert compare_iterates(case, "jacobian_transpose", iterates_from, step=0.05) > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_iterate_leaves_the_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="jacobian_transpose")
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


def test_a_joint_pushed_against_its_limit_does_not_change_the_step_of_the_others():
    arm = mk.gallery.planar_3r()
    goal = mk.PositionGoal(list(arm.links)[-1], (0.3, 0.6, 0.0))
    first = next(iter(arm.joints))
    value = 0.2
    q0 = np.array([value, 0.5, 0.5])
    at_limit = mk.Solver(arm, goal, solver="jacobian_transpose", limits={first: (-3.0, value)}).step(q0=q0).q
    locked = mk.Solver(arm, goal, solver="jacobian_transpose", lock=first).step(q0=q0).q
    free = mk.Solver(arm, goal, solver="jacobian_transpose").step(q0=q0).q
    assert free[0] > value  # it would go over
    np.testing.assert_allclose(at_limit, locked, atol=1e-12)


def test_a_loop_is_closed_when_the_goal_is_met():
    bars = mk.gallery.four_bar()
    q0 = bars.clamp(bars.integrate(bars.q, np.full(bars.nv, 0.1)))
    solution = mk.Solver(bars, solver="jacobian_transpose").solve(None, q0)
    assert solution.success


def test_the_same_call_gives_the_same_solution():
    case = CASES[0]
    solver = mk.Solver(case.mechanism, case.goals, solver="jacobian_transpose")
    assert np.array_equal(solver.solve(q0=case.q0).q, solver.solve(q0=case.q0).q)


def test_soft_objectives_and_levels_are_rejected():
    arm = mk.gallery.ur5()
    goal = mk.PositionGoal("tool0", (0.3, 0.2, 0.5))
    with pytest.raises(mk.errors.InvalidOperation, match="Jacobian transpose does not support soft objectives"):
        mk.Solver(arm, goal, solver="jacobian_transpose", rest=arm.q)
    with pytest.raises(mk.errors.InvalidOperation, match="Jacobian transpose does not support priority levels"):
        mk.Solver(arm, [goal, mk.PositionGoal("wrist_3_link", (0, 0, 1), level=2)], solver="jacobian_transpose")


@pytest.mark.parametrize(
    "options", [{"step": 0.0}, {"step": -0.1}, {"step": "best"}, {"relaxation": 0.0}, {"relaxation": 2.0}], ids=str
)
def test_an_invalid_option_is_rejected_by_name(options):
    with pytest.raises(mk.errors.LimitsError, match=next(iter(options))):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="jacobian_transpose", **options)
