"""Batches of problems other than a single chain: loops, trees with several goals, levels, methods of all kinds."""

from __future__ import annotations

import numpy as np
import pytest
from batch_backends import solve_batch

import mechanik as mk
from mechanik.errors import InvalidArgument, LimitsError, ObjectiveError
from mechanik.solver.solution import Status


def assert_one_by_one(solver, result, row, starts) -> None:
    for i in range(len(result)):
        solution = solver.solve(row(i), starts[i])
        assert np.array_equal(solution.q, result.q[i])
        assert solution.success == result.success[i]
        for k, error in enumerate(solution.errors.values()):
            assert result.errors[i, k] == pytest.approx([error.position, error.rotation], rel=1e-9, abs=1e-14)


def test_a_four_bar_stays_closed_in_every_row():
    bar = mk.gallery.four_bar()
    crank = bar.space.q_names[0]
    solver = mk.Solver(bar, mk.JointValues({crank: 0.0}))
    angles, starts = np.linspace(0.3, 0.9, 12), np.tile(bar.q, (12, 1))
    result = solve_batch(solver, angles, starts, threads=2, chunk=5)
    assert result.success.all()
    assert np.abs(result.q[:, 0] - angles).max() < 1e-6
    assert_one_by_one(solver, result, lambda i: angles[i], starts)
    for q in result.q:
        assert all(error.position < 1e-9 for error in solver.solve(float(q[0]), q).closure_errors.values())


def test_a_body_with_two_arms_and_levels_is_solved():
    body = mk.gallery.humanoid()
    links = [link for link in body.links if "hand" in link][:2]
    rng = np.random.default_rng(0)
    q = body.clamp(body.integrate(body.q, rng.uniform(-0.1, 0.1, (6, body.nv))))
    hands = [body.pose(link, q)[:, :3, 3].copy() for link in links]
    hands[1][4] += 9.0
    goals = [
        mk.PositionGoal(links[0], hands[0][0], name="one"),
        mk.PositionGoal(links[1], hands[1][0], name="other", level=2),
    ]
    solver, starts = mk.Solver(body, goals), np.tile(body.q, (6, 1))
    result = solve_batch(solver, hands, starts, threads=2, chunk=1)
    assert np.flatnonzero(~result.success).tolist() == [4]
    assert result.errors[4, 0, 0] < 1e-6  # the first level holds
    assert result.errors[4, 1, 0] > 1.0
    assert_one_by_one(solver, result, lambda i: (hands[0][i], hands[1][i]), starts)


@pytest.mark.parametrize("method", ["dls", "closed_form"])
def test_any_method_solves_batches(method):
    arm = mk.gallery.ur5()
    q = np.array([0.3, -1.2, 1.4, -0.8, 0.9, 0.2]) + np.random.default_rng(2).uniform(-0.2, 0.2, (5, 6))
    X, starts = arm.pose("tool0", q), q + 0.05
    solver = mk.Solver(arm, mk.PoseGoal("tool0", X[0]), solver=method)
    result = solve_batch(solver, X, starts, threads=2, chunk=2)
    assert result.success.any()
    assert_one_by_one(solver, result, lambda i: X[i], starts)


def test_residuals_written_in_python_are_solved_with_their_errors():
    arm = mk.gallery.planar_3r()
    wanted = mk.PositionGoal("tool", (1.0, 0.5, 0.0))
    level = mk.Custom(lambda mechanism, q: np.array([q[0] + q[1] + q[2]]), name="level")
    result = solve_batch(mk.Solver(arm, [wanted, level]), [[(1.0, 0.5, 0.0), (9.0, 0.0, 0.0)], None], np.full(3, 0.2))
    assert result.status_of(0) is Status.CONVERGED
    assert abs(result.q[0].sum()) < 1e-6
    assert not result.success[1]


def test_an_error_in_a_user_function_propagates(tmp_path):
    arm = mk.gallery.planar_3r()
    calls = []

    def fails(mechanism, q):
        calls.append(1)
        if len(calls) > 1000:
            raise ZeroDivisionError("in my function")
        return np.array([q[0] - 0.1])

    solver = mk.Solver(arm, [mk.PositionGoal("tool", (1.0, 0.5, 0.0)), mk.Custom(fails)])
    points = np.tile([1.0, 0.5, 0.0], (50, 1))
    with pytest.raises(ObjectiveError, match="ZeroDivisionError: in my function") as raised:
        solve_batch(solver, [points, None], np.full(3, 0.2), out=tmp_path / "out", chunk=1, threads=2)
    assert "finished rows are in" in raised.value.__notes__[0]
    assert 0 < mk.BatchResult.open(tmp_path / "out").done < 50


@pytest.mark.parametrize("how", [{"threads": 0}, {"threads": 1.5}, {"threads": True}, {"chunk": 0}, {"chunk": "a"}])
def test_threads_and_chunks_must_be_integers(how):
    arm = mk.gallery.planar_3r()
    with pytest.raises(LimitsError, match=f"{next(iter(how))} must be an integer of 1 or more"):
        solve_batch(mk.Solver(arm, mk.PositionGoal("tool", (1, 0, 0))), np.zeros((2, 3)), **how)


def test_rng_and_progress_are_validated():
    arm = mk.gallery.planar_3r()
    solver = mk.Solver(arm, mk.PositionGoal("tool", (1, 0, 0)))
    with pytest.raises(InvalidArgument, match="rng must be a generator"):
        solve_batch(solver, np.zeros((2, 3)), rng=3)
    with pytest.raises(InvalidArgument, match="progress must be True, False, None, or a function"):
        solve_batch(solver, np.zeros((2, 3)), progress="bar")
