"""Damped least squares: the steps of the paper, clamped errors, limits, and rest poses in the null space."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy_steps import NumpyProblem, cases, compare_steps, iterates, two_hands
from solver_internals import packed_problem

import mechanik as mk

CASES = cases()
IDS = [case.name for case in CASES]
SOME = CASES[::4]


def damped(e, J, damping):
    """Buss 2009, equation (11)."""
    return -J.T @ np.linalg.solve(J @ J.T + damping**2 * np.eye(len(e)), e)


@pytest.mark.parametrize("svd", [False, True], ids=["normal equations", "singular values"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_step_of_the_paper_from_its_predecessor(case, svd):
    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)
        dq = plain.step_within_limits(q, e, J, lambda J: damped(e, J, 0.05))
        return dq * min(1.0, math.pi / 4 / max(np.abs(dq).max(), 1e-300))

    assert compare_steps(case, "dls", step, svd=svd) > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_with_clamped_errors_simple_limits_and_no_step_limit_the_steps_are_those_of_the_paper(case):
    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)
        return damped(plain.clamped(e, 0.2, 0.3), J, 0.3)

    options = {"damping": 0.3, "D_max": 0.2, "D_max_angle": 0.3, "gamma_max": math.inf, "hold_at_limits": False}
    assert compare_steps(case, "dls", step, **options) > 0


def test_errors_are_clamped_in_metres_whatever_the_weight_of_a_goal():
    arm = mk.gallery.panda()
    far = mk.PositionGoal("panda_hand_tcp", arm.pose("panda_hand_tcp")[:3, 3] + (0.0, 0.0, 0.5), weight=7.0)
    for D_max, same in ((0.49, False), (0.51, True)):
        held = mk.Solver(arm, far, solver="dls", D_max=D_max).step().q
        free = mk.Solver(arm, far, solver="dls").step().q
        assert np.array_equal(held, free) == same


@pytest.mark.parametrize("case", SOME, ids=[case.name for case in SOME])
def test_a_step_moves_no_joint_farther_than_gamma_max(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="dls", gamma_max=0.05)
    seen, scale = iterates(solver, case.q0), NumpyProblem(solver, case.goals).scale
    for before, after in pairwise(seen):
        assert np.abs(case.mechanism.space.difference(before, after) / scale).max() <= 0.05 * (1 + 1e-12)


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_iterate_leaves_the_limits(case, hold):
    solver = mk.Solver(case.mechanism, case.goals, solver="dls", hold_at_limits=hold)
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


def test_a_joint_blocked_by_its_limit_is_removed_and_the_others_compensate():
    arm = mk.gallery.planar_3r()
    arm.joint("joint1").set_limits([-3.0], [0.2])
    q0, target = np.array([0.2, 0.5, 0.5]), np.array([0.2, 0.9, 0.8])
    tip = list(arm.links)[-1]
    goal = mk.PositionGoal(tip, arm.pose(tip, target)[:3, 3])
    counts = [mk.solve(arm, goal, q0, solver="dls", hold_at_limits=hold).iterations for hold in (True, False)]
    assert counts[0] < counts[1]


# ---- soft objectives ----------------------------------------------------------------------------


def redundant():
    """Cases with redundant dofs."""
    rng = np.random.default_rng(5)
    for arm, link in ((mk.gallery.panda(), "panda_hand_tcp"), (mk.gallery.iiwa14(), None), (two_hands(), "left_hand")):
        link = link or list(arm.links)[-1]
        for _ in range(4):
            there, q0, rest = arm.random(rng, 3)
            q0 = there + 0.2 * (q0 - there)
            yield arm, mk.PoseGoal(link, arm.pose(link, there)), q0, there + 0.3 * (rest - there)


def test_in_the_null_space_a_step_follows_the_soft_objective_by_the_formula():
    for arm, goal, q0, rest in redundant():
        options = {"damping": 0.2, "gain": 0.3, "hold_at_limits": False, "gamma_max": math.inf}
        solver = mk.Solver(arm, goal, solver="dls", rest=rest, **options)
        plain, moves = NumpyProblem(solver, [goal]), packed_problem(solver).subproblems[0].moving_dofs
        after = solver.step(q0=q0).q
        e, J = plain.residual_and_jacobian(arm.clamp(q0))
        J_rest = np.eye(arm.nv)[moves]
        towards = damped(J_rest @ (arm.clamp(q0) - rest), J_rest, 0.2)
        step = damped(e, J, 0.2) + 0.3 * (towards - np.linalg.pinv(J) @ (J @ towards))
        assert after[moves] == pytest.approx(plain.move(arm.clamp(q0), step)[moves], abs=1e-9)


def test_solutions_with_a_rest_pose_are_nearer_to_it_and_almost_optimal():
    compared = 0
    for arm, goal, q0, rest in redundant():
        without = mk.Solver(arm, goal, solver="dls").solve(q0=q0)
        solver = mk.Solver(arm, goal, solver="dls", rest=rest)
        towards, plain, moves = (
            solver.solve(q0=q0),
            NumpyProblem(solver, [goal]),
            packed_problem(solver).subproblems[0].moving_dofs,
        )
        if not (without.success and towards.success):
            continue
        compared += 1
        assert np.linalg.norm(towards.q - rest) < np.linalg.norm(without.q - rest)
        J = plain.residual_and_jacobian(towards.q)[1]
        left = np.where(moves, rest - towards.q, 0.0)
        left -= np.linalg.pinv(J) @ (J @ left)
        if not np.any(plain.at_limits(towards.q)):
            # it ends once the goal is met to 1e-6, which what is left disturbs by its square
            assert np.linalg.norm(left) < 1e-2
    assert compared >= 8


# ---- whole solves -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["panda", "ur5", "iiwa14", "puma560"])
def test_nearby_targets_are_always_reached_unless_they_are_singular(name):
    arm, rng = mk.gallery.make(name), np.random.default_rng(2)
    link = list(arm.links)[-1]
    compared = 0
    while compared < 40:
        there = arm.random(rng)
        goal = mk.PoseGoal(link, arm.pose(link, there))
        solver = mk.Solver(arm, goal, solver="dls")
        if np.linalg.svd(NumpyProblem(solver, [goal]).residual_and_jacobian(there)[1], compute_uv=False)[-1] < 0.05:
            continue  # where the smallest singular value is below the damping, not even half an error goes in a step
        compared += 1
        near = arm.clamp(there + rng.uniform(-0.1, 0.1, arm.nq))
        assert solver.solve(q0=near).success


def test_near_a_solution_errors_shrink_at_the_rate_of_the_singular_values():
    arm, rng = mk.gallery.ur5(), np.random.default_rng(3)
    for _ in range(10):
        there = arm.random(rng)
        goal = mk.PoseGoal("tool0", arm.pose("tool0", there))
        solver = mk.Solver(arm, goal, solver="dls", damping=0.3, hold_at_limits=False)
        plain = NumpyProblem(solver, [goal])
        q = arm.clamp(there + rng.uniform(-1e-5, 1e-5, 6))
        (e, J), (e_after, _) = plain.residual_and_jacobian(q), plain.residual_and_jacobian(solver.step(q0=q).q)
        U, s, _ = np.linalg.svd(J)
        assert U.T @ e_after == pytest.approx(0.09 / (s**2 + 0.09) * (U.T @ e), abs=1e-8)


def test_loops_are_closed_when_goals_are_met():
    platform = mk.gallery.stewart_platform()
    X = platform.pose("platform")
    X[:3, 3] += (0.02, -0.03, 0.02)
    solution = mk.solve(platform, mk.PoseGoal("platform", X), solver="dls")
    assert solution.success
    assert max(error.position for error in solution.closure_errors.values()) < 1e-9


def test_the_same_solve_twice_is_equal_bit_for_bit():
    arm, rng = mk.gallery.panda(), np.random.default_rng(4)
    goal = mk.PoseGoal("panda_hand_tcp", arm.pose("panda_hand_tcp", arm.random(rng)))
    q0 = arm.random(rng)
    assert np.array_equal(mk.solve(arm, goal, q0, solver="dls").q, mk.solve(arm, goal, q0, solver="dls").q)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 0.0}, "damping must be above 0"),
        ({"damping": "a lot"}, "damping must be a number"),
        ({"damping": math.nan}, "damping is nan"),
        ({"damping": True}, "damping must be a number"),
        ({"D_max": 0.0}, "D_max must be above 0"),
        ({"D_max_angle": -1.0}, "D_max_angle must be above 0"),
        ({"gamma_max": 0.0}, "gamma_max must be above 0"),
        ({"gain": -0.1}, "gain cannot be below 0"),
        ({"svd": 1}, "svd must be True or False"),
        ({"hold_at_limits": "yes"}, "hold_at_limits must be True or False"),
        ({"lambda_": 1.0}, "no option is called 'lambda_'"),
    ],
)
def test_invalid_options_are_rejected_when_the_solver_is_made(options, message):
    with pytest.raises(mk.errors.MechanikError, match=message):
        mk.Solver(mk.gallery.planar_3r(), mk.PositionGoal("link3", (1, 1, 0)), solver="dls", **options)


def test_levels_are_rejected_with_a_method_that_supports_them():
    arm = mk.gallery.panda()
    goals = [mk.PositionGoal("panda_hand_tcp", (0.4, 0, 0.4), level=level) for level in (1, 2)]
    with pytest.raises(
        mk.errors.InvalidOperation,
        match="damped least squares does not support priority levels, and the problem has 2; use solver='lm'",
    ):
        mk.Solver(arm, goals, solver="dls")
