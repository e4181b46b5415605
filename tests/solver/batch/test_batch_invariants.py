"""Invariants of every batch: results do not depend on other rows, threads, chunks or interruptions."""

from __future__ import annotations

import numpy as np
import pytest
from batch_backends import batch_request, general, lanes
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.solver.batch import Interrupted, run_batch
from mechanik.solver.solution import Status

NAMES = ("q", "status", "errors", "iterations")
N = 24


def cases() -> dict[str, tuple[mk.Solver, np.ndarray, np.ndarray | None]]:
    """A solver, targets of which some are out of reach, and starts."""
    rng = np.random.default_rng(1)
    planar, ur5 = mk.gallery.planar_3r(), mk.gallery.ur5()
    tip, X = next(reversed(planar.links)), ur5.pose("tool0", ur5.random(rng, N))
    points = planar.pose(tip, planar.random(rng, N))[:, :3, 3].copy()
    points[::5] *= 4.0
    X[3::7, :3, 3] += 3.0
    one_by_one = mk.Solver(planar, mk.PositionGoal(tip, points[0]), restarts=0)
    poses = mk.Solver(ur5, mk.PoseGoal("tool0", X[0]), restarts=3)
    return {
        "points of 3R": (one_by_one, points, planar.random(rng, N)),
        "poses of 6R": (poses, X, ur5.random(rng, N)),
        "poses of 6R in lanes": (poses, X, ur5.random(rng, N)),
        "poses of 6R in lanes, without starts": (poses, X, None),
    }


CASES = cases()


def solve(name, order=slice(None), targets=None, **how):
    """A case, its rows in another order, or with other targets."""
    solver, own, starts = CASES[name]
    engine = lanes(solver) if "lanes" in name else general(solver)
    given = (own if targets is None else targets)[order]
    return run_batch(batch_request(solver), engine, given, None if starts is None else starts[order], **how)


WHOLE = {name: solve(name, threads=1) for name in CASES}
some_case = st.sampled_from(list(CASES))


def assert_same(result, whole, rows=slice(None), of=slice(None)) -> None:
    for name in NAMES:
        assert np.array_equal(getattr(result, name)[rows], getattr(whole, name)[of], equal_nan=True), name


@pytest.mark.parametrize("name", [name for name in CASES if "lanes" not in name])
def test_a_batch_equals_single_solves(name):
    solver, targets, starts = CASES[name]
    whole = WHOLE[name]
    assert {Status.CONVERGED, Status.CLOSEST} <= set(whole.counts)
    for i in range(N):
        solution = solver.solve(targets[i], starts[i])
        assert np.array_equal(solution.q, whole.q[i])
        assert (solution.success, solution.status, solution.iterations) == (
            whole.success[i],
            whole.status_of(i),
            whole.iterations[i],
        )
        error = next(iter(solution.errors.values()))
        assert whole.errors[i, 0] == pytest.approx([error.position, error.rotation], rel=1e-9, abs=1e-14)


@settings(max_examples=30)
@given(some_case, st.integers(1, 4), st.integers(1, N + 3), st.booleans())
def test_results_do_not_depend_on_threads_or_chunks(name, threads, chunk, random):
    rng = (lambda: np.random.default_rng(7)) if random else (lambda: None)
    whole = solve(name, threads=1, rng=rng()) if random else WHOLE[name]
    assert_same(solve(name, threads=threads, chunk=chunk, rng=rng()), whole)


@settings(max_examples=30)
@given(some_case, st.permutations(range(N)), st.booleans())
def test_results_do_not_depend_on_the_order_of_rows(name, order, random):
    rng = (lambda: np.random.default_rng(7)) if random else (lambda: None)
    assert_same(solve(name, order, rng=rng()), solve(name, rng=rng()), of=order)


@settings(max_examples=60)
@given(some_case, st.data(), st.integers(1, N), st.sampled_from([np.nan, np.inf, -np.inf, 1e308, 1e9, 0.5]))
def test_a_bad_row_does_not_change_the_others(name, data, chunk, number):
    targets = CASES[name][1]
    bad = np.array(sorted(data.draw(st.sets(st.integers(0, N - 1), max_size=N))), dtype=np.int64)
    entry = data.draw(st.integers(0, targets[0].size - 1))
    spoiled = targets.copy()
    spoiled.reshape(N, -1)[bad, entry] = number
    result = solve(name, targets=spoiled, chunk=chunk, threads=1)
    others = np.setdiff1d(np.arange(N), bad)
    assert_same(result, WHOLE[name], others, others)
    if not np.isfinite(number):
        assert (result.rows_with(Status.BAD_TARGET) == bad).all()


@settings(max_examples=40)
@given(
    some_case, st.lists(st.integers(0, N), min_size=1, max_size=4), st.integers(1, 9), st.integers(1, 3), st.booleans()
)
def test_a_batch_stopped_anywhere_and_resumed_is_the_same(name, stops, chunk, threads, random):
    whole = solve(name, threads=1, rng=np.random.default_rng(2)) if random else WHOLE[name]
    out, rng = None, np.random.default_rng(2) if random else None
    for stop in sorted(stops):

        def stop_there(done, total, stop=stop):
            if done >= stop:
                raise KeyboardInterrupt

        before = None if out is None else {name: getattr(out, name).copy() for name in NAMES}
        try:
            out = solve(name, out=out, progress=stop_there, chunk=chunk, threads=threads, rng=rng)
        except Interrupted as error:
            out = error.result
        rng = None  # a result goes on with its own
        if before is not None:
            was_done = before["status"] != 9
            assert all(
                np.array_equal(getattr(out, name)[was_done], before[name][was_done], equal_nan=True) for name in NAMES
            )
        chunk += 1
    assert_same(solve(name, out=out, threads=threads), whole)


def test_the_same_seed_gives_the_same_batch_and_another_seed_does_not():
    first, same, different = (solve("poses of 6R", rng=np.random.default_rng(k)) for k in (1, 1, 2))
    assert_same(same, first)
    assert (first.seed, first.seed == different.seed) == (same.seed, False)
