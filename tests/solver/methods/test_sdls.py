"""Selectively damped least squares: the paper's formulas, vector by vector."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy_steps import NumpyProblem, cases, compare_steps, iterates

import mechanik as mk

CASES = cases(1)
IDS = [case.name for case in CASES]


def clamp_max_abs(step, most):
    return step * min(1.0, most / max(np.abs(step).max(), 1e-300))


def selective(plain, e, J, gamma_max):
    """Buss and Kim 2005: N_i, M_i and gamma_i of each singular vector, without the last clamp."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    groups = [rows for rows, _, _ in plain.effectors]
    rho = np.array([np.linalg.norm(J[rows], axis=0) for rows in groups])  # (effectors, nv)
    step = np.zeros(J.shape[1])
    for u, sigma, v in zip(U.T, s, Vt, strict=True):
        if sigma > 1e-10:
            N = sum(np.linalg.norm(u[rows]) for rows in groups)
            M = (rho @ np.abs(v)).sum() / sigma
            step -= clamp_max_abs((u @ e) / sigma * v, gamma_max * min(1.0, N / M))
    return step


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_step_of_the_paper_from_its_predecessor(case):
    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)
        return clamp_max_abs(
            plain.step_within_limits(q, e, J, lambda J: selective(plain, e, J, math.pi / 4)), math.pi / 4
        )

    assert compare_steps(case, "sdls", step) > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_with_clamped_targets_and_simple_limits_the_steps_are_those_of_the_paper(case):
    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)
        return clamp_max_abs(selective(plain, plain.clamped(e, 0.1, 0.2), J, 0.3), 0.3)

    options = {"gamma_max": 0.3, "D_max": 0.1, "D_max_angle": 0.2, "hold_at_limits": False}
    assert compare_steps(case, "sdls", step, **options) > 0


@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_no_joint_moves_more_than_gamma_max_in_a_step_or_leaves_its_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="sdls", gamma_max=0.1)
    seen, scale = iterates(solver, case.q0, 20), NumpyProblem(solver, case.goals).scale
    for before, after in pairwise(seen):
        assert np.abs(case.mechanism.space.difference(before, after) / scale).max() <= 0.1 * (1 + 1e-12)
        assert case.mechanism.space.within_limits(after)


def test_near_a_regular_solution_nothing_is_damped_and_convergence_is_quadratic():
    arm, rng = mk.gallery.ur5(), np.random.default_rng(3)
    compared = 0
    while compared < 10:
        there = arm.random(rng)
        goal = mk.PoseGoal("tool0", arm.pose("tool0", there))
        solver = mk.Solver(arm, goal, solver="sdls", hold_at_limits=False)
        plain = NumpyProblem(solver, [goal])
        q = arm.clamp(there + rng.uniform(-1e-3, 1e-3, 6))
        e, J = plain.residual_and_jacobian(q)
        smallest = np.linalg.svd(J, compute_uv=False)[-1]
        if smallest < 0.1:
            continue
        compared += 1
        after = plain.residual_and_jacobian(solver.step(q0=q).q)[0]
        assert np.linalg.norm(after) < 10 * (np.linalg.norm(e) / smallest) ** 2


@pytest.mark.parametrize("make", [mk.gallery.stewart_platform, mk.gallery.delta_robot])
def test_loops_are_closed_when_goals_are_met(make):
    platform = make()
    goal = mk.PositionGoal("platform", platform.pose("platform")[:3, 3] + (0.01, -0.02, 0.01))
    solution = mk.Solver(platform, goal, solver="sdls").solve()
    assert solution.success
    assert max(error.position for error in solution.closure_errors.values()) < 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma_max": 0.0}, "gamma_max must be above 0"),
        ({"gamma_max": "wide"}, "gamma_max must be a number"),
        ({"D_max": -1}, "D_max must be above 0"),
        ({"hold_at_limits": 1}, "hold_at_limits must be True or False"),
        ({"damping": 0.1}, "no option is called 'damping'"),
    ],
)
def test_invalid_options_are_rejected_when_the_solver_is_made(options, message):
    with pytest.raises(mk.errors.MechanikError, match=message):
        mk.Solver(mk.gallery.planar_3r(), mk.PositionGoal("link3", (1, 1, 0)), solver="sdls", **options)


def test_a_rest_pose_is_rejected_with_a_method_that_supports_it():
    arm = mk.gallery.panda()
    with pytest.raises(
        mk.errors.InvalidOperation,
        match=r"selectively damped least squares does not support soft objectives.*'lm' or 'dls'",
    ):
        mk.Solver(arm, mk.PositionGoal("panda_hand_tcp", (0.4, 0, 0.4)), solver="sdls", rest=arm.q)
