"""Stopping by progress, where no configuration meets all goals and the last decreases are tiny."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

import mechanik as mk

LINKS = ("link2", "link4", "link6", "tool")


def random_tree(rng):
    """An arm of six revolute joints, with points on its links that should be at random places nearby."""
    builder = mk.Builder("arm")
    for k in range(1, 7):
        at = (0, 0, 0) if k == 1 else rng.uniform(-0.4, 0.4, 3)
        builder.revolute(f"joint{k}", f"link{k - 1}", f"link{k}", at=at, axis=rng.standard_normal(3))
    builder.fixed("tip", "link6", "tool", at=rng.uniform(-0.3, 0.3, 3))
    return builder.build()


def contradicting_goals(arm, rng, scatter, required=True, links=LINKS):
    """Goals for points of links, which a configuration meets up to `scatter`, m."""
    q = arm.integrate(np.array(arm.q), 0.7 * rng.standard_normal(arm.nv))
    points = rng.uniform(-0.2, 0.2, (len(links), 3))
    goals = [
        mk.PositionGoal(
            link, arm.pose(link, q)[:3, :3] @ point + arm.pose(link, q)[:3, 3] + scatter * rng.standard_normal(3),
            point, weight=float(weight), required=required, name=link,
        )
        for link, point, weight in zip(links, points, rng.choice([0.3, 1.0, 3.0], len(links)), strict=True)
    ]  # fmt: skip
    return goals, arm.integrate(q, 0.2 * rng.standard_normal(arm.nv))


def weighted_residual(arm, goals, q):
    return np.concatenate([goal.weight * goal.residual(arm, q) for goal in goals])


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), scatter=st.sampled_from([0.01, 0.1]), required=st.booleans(),
    tolerance=st.sampled_from([None, 1e-6, 1e-8, 1e-10]),
)  # fmt: skip
def test_cost_is_within_the_tolerance_of_a_local_minimum(seed, scatter, required, tolerance):
    rng = np.random.default_rng(seed)
    arm = random_tree(rng)
    goals, q0 = contradicting_goals(arm, rng, scatter, required)
    # in the valley of a nearly singular Jacobian, 100 iterations may not be enough
    solution = mk.solve(arm, goals, q0=q0, progress_tolerance=tolerance, restarts=0, max_iterations=2000)
    cost = np.sum(weighted_residual(arm, goals, solution.q) ** 2)
    if not required and tolerance:  # without second derivatives, a search of soft objectives may end near a saddle
        J = np.concatenate([goal.weight * goal.jacobian(arm, solution.q) for goal in goals])
        gauss_newton_decrease = np.sum((J @ np.linalg.lstsq(J, weighted_residual(arm, goals, solution.q))[0]) ** 2)
        assert gauss_newton_decrease <= 100.0 * tolerance * cost
        return
    oracle = least_squares(
        lambda q: weighted_residual(arm, goals, q), solution.q, ftol=1e-15, xtol=1e-15, gtol=1e-15, max_nfev=1000
    )
    # the factor is for decreases that are not a geometric series
    assert cost <= 2.0 * oracle.cost * (1.0 + 10.0 * (tolerance or 1e-9))
    if required:
        assert solution.status is mk.Status.CLOSEST


def test_small_progress_ends_an_overdetermined_solve_earlier_than_a_zero_gradient():
    """A humanoid with 48 rows for 37 dofs used to take twice as many iterations, for the same cost."""
    body, rng = mk.gallery.humanoid(), np.random.default_rng(0)
    links = [link for link in body.links if link != "world"]
    iterations = np.zeros((10, 2), dtype=int)
    for row in iterations:
        goals, q0 = contradicting_goals(body, rng, 0.05, links=links)
        costs = []
        for column, tolerance in enumerate((1e-8, 0.0)):
            solution = mk.solve(body, goals, q0=q0, progress_tolerance=tolerance, restarts=0)
            row[column] = solution.iterations
            costs.append(np.sum(weighted_residual(body, goals, solution.q) ** 2))
        assert costs[0] <= costs[1] * (1.0 + 3e-8)
    assert (iterations[:, 0] <= iterations[:, 1]).all()
    assert iterations[:, 0].sum() < 0.7 * iterations[:, 1].sum()


def test_a_goal_with_fewer_rows_than_dofs_still_ends_at_a_zero_gradient():
    """Only large overdetermined problems stop by progress by default."""
    arm = mk.gallery.ur5()
    goal = mk.PositionGoal("tool0", (2.0, 0.3, 0.4))
    q0 = np.array([0.3, -0.4, 0.2, -1.5, 0.1, 1.2])
    by_gradient = mk.solve(arm, goal, q0=q0, restarts=0, progress_tolerance=0.0)
    np.testing.assert_array_equal(mk.solve(arm, goal, q0=q0, restarts=0).q, by_gradient.q)


def test_small_progress_does_not_end_a_solve_at_a_saddle():
    """The straight arm is a stationary configuration of both goals, but a maximum of the cost across its line."""
    arm = mk.arm_2d([1.0, 1.0])
    goals = [mk.PositionGoal("tool", (1.0, 0.0, 0.0)), mk.PositionGoal("link1", (1.0, 0.0, 0.1))]
    for q0 in (np.zeros(2), np.array([1e-9, 0.0])):
        solution = mk.solve(arm, goals, q0=q0, restarts=0)
        assert abs(solution.q[1]) > 0.5


def test_a_negative_progress_tolerance_is_rejected():
    with pytest.raises(mk.errors.LimitsError, match="progress_tolerance"):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.4)), progress_tolerance=-1e-3)
    with pytest.raises(mk.errors.LimitsError, match="progress_tolerance"):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.4)), progress_tolerance="small")
