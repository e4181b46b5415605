"""The pseudo-inverse: exact where the Jacobian is regular, wild where it is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy_steps import NumpyProblem, cases, compare_steps, iterates
from solver_internals import packed_problem

import mechanik as mk

CASES = cases(2)
IDS = [case.name for case in CASES]


@pytest.mark.parametrize("hold", [True, False], ids=["held", "clamped"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_pseudo_inverse_step_from_its_predecessor(case, hold):
    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)

        def solve(J):
            return -np.linalg.pinv(J, rcond=1e-6) @ e

        return plain.step_within_limits(q, e, J, solve) if hold else solve(J)

    assert compare_steps(case, "pseudo_inverse", step, hold_at_limits=hold) > 0


def test_near_a_singular_pose_the_step_is_large_where_damping_keeps_it_small():
    arm = mk.gallery.planar_3r()
    tip = list(arm.links)[-1]
    q0 = np.array([0.3, 1e-4, 1e-4])  # all but stretched out
    goal = mk.PositionGoal(tip, arm.pose(tip, q0)[:3, 3] * 0.99)
    wild = mk.Solver(arm, goal, solver="pseudo_inverse", hold_at_limits=False, limits=WIDE).step(q0=q0).q - q0
    tame = mk.Solver(arm, goal, solver="dls", hold_at_limits=False, limits=WIDE).step(q0=q0).q - q0
    assert np.abs(wild).max() > 10.0
    assert np.abs(tame).max() < 0.5


WIDE = {f"joint{k}": (-1e6, 1e6) for k in (1, 2, 3)}


def test_directions_below_the_rank_tolerance_do_not_move():
    arm = mk.gallery.planar_3r()
    tip = list(arm.links)[-1]
    q0 = np.array([0.3, 1e-4, 1e-4])
    goal = mk.PositionGoal(tip, arm.pose(tip, q0)[:3, 3] * 0.99)
    after = mk.Solver(arm, goal, solver="pseudo_inverse", rank_tolerance=0.01).step(q0=q0).q
    assert np.abs(after - q0).max() < 0.01


def test_near_a_regular_solution_convergence_is_quadratic():
    arm, rng = mk.gallery.ur5(), np.random.default_rng(3)
    compared = 0
    while compared < 10:
        there = arm.random(rng)
        goal = mk.PoseGoal("tool0", arm.pose("tool0", there))
        solver = mk.Solver(arm, goal, solver="pseudo_inverse")
        plain = NumpyProblem(solver, [goal])
        q = arm.clamp(there + rng.uniform(-1e-3, 1e-3, 6))
        e, J = plain.residual_and_jacobian(q)
        smallest = np.linalg.svd(J, compute_uv=False)[-1]
        if smallest < 0.1 or np.any(plain.at_limits(q)):
            continue
        compared += 1
        assert (
            np.linalg.norm(plain.residual_and_jacobian(solver.step(q0=q).q)[0])
            < 10 * (np.linalg.norm(e) / smallest) ** 2
        )


def test_in_the_null_space_a_step_goes_towards_the_rest_pose_and_keeps_the_goal():
    arm, rng = mk.gallery.panda(), np.random.default_rng(5)
    for _ in range(10):
        q0, rest = arm.random(rng, 2)
        goal = mk.PoseGoal("panda_hand_tcp", arm.pose("panda_hand_tcp", q0 + rng.uniform(-0.1, 0.1, arm.nq)))
        solver = mk.Solver(arm, goal, solver="pseudo_inverse", rest=rest, gain=0.2, hold_at_limits=False)
        plain, moves = NumpyProblem(solver, [goal]), packed_problem(solver).subproblems[0].moving_dofs
        e, J = plain.residual_and_jacobian(q0)
        towards = np.where(moves, rest - q0, 0.0)
        free = towards - np.linalg.pinv(J) @ (J @ towards)
        assert np.abs(J @ free).max() < 1e-12
        expected = plain.move(q0, 0.2 * free - np.linalg.pinv(J) @ e)
        assert solver.step(q0=q0).q[moves] == pytest.approx(expected[moves], abs=1e-9)


@pytest.mark.parametrize("case", CASES[::3], ids=IDS[::3])
def test_no_iterate_leaves_the_limits_however_large_the_step(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="pseudo_inverse")
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank_tolerance": -1e-3}, "rank_tolerance cannot be below 0"),
        ({"rank_tolerance": math.nan}, "rank_tolerance is nan"),
        ({"gamma_max": 0}, "gamma_max must be above 0"),
        ({"gain": "all"}, "gain must be a number"),
        ({"hold_at_limits": None}, "hold_at_limits must be True or False"),
    ],
)
def test_invalid_options_are_rejected_when_the_solver_is_made(options, message):
    with pytest.raises(mk.errors.MechanikError, match=message):
        mk.Solver(mk.gallery.planar_3r(), mk.PositionGoal("link3", (1, 1, 0)), solver="pseudo_inverse", **options)
