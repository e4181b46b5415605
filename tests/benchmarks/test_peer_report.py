"""The arithmetic of the comparison with peers: what counts as solved, its cost, and the goals it meets."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
sys.path.insert(0, str(PEERS))

from arms import ARMS  # noqa: E402
from race import Solutions  # noqa: E402
from report import Figures, Goal, best_peer, figures, goals, largest_step, markdown, share  # noqa: E402

US = "ours"


def make_solutions(right: list[list[bool]], seconds: list[list[float]], q: np.ndarray | None = None) -> Solutions:
    """Rounds of a library with one joint, unless q is given; processor time is twice the wall time."""
    times = np.array(seconds)
    shape = (*np.shape(right), 1)
    return Solutions(np.zeros(shape) if q is None else q, times, 2 * times.sum(axis=1), np.array(right))


def test_time_per_solution_includes_unsolved_targets():
    row = figures(make_solutions([[True, False]], [[1e-6, 5e-6]]), "A", "ur5", {})
    assert row.solved == 0.5
    assert row.us == pytest.approx(6.0)
    assert row.cpu_us == pytest.approx(12.0)


def test_disturbed_round_does_not_change_the_median():
    quiet = figures(make_solutions([[True, True]] * 3, [[1e-6, 2e-6]] * 3), "A", "ur5", {})
    noisy = figures(make_solutions([[True, True]] * 3, [[1e-6, 2e-6], [1e-6, 9.0], [9.0, 2e-6]]), "A", "ur5", {})
    assert noisy.us == quiet.us


def test_batch_time_is_that_of_the_best_round():
    row = figures(make_solutions([[True, True]] * 2, [[8e-6], [4e-6]]), "C", "ur5", {})
    assert row.us == pytest.approx(2.0)


def test_time_without_solutions_is_infinite():
    row = figures(make_solutions([[False]], [[1e-6]]), "A", "ur5", {})
    assert row.us == math.inf
    assert "(0 %)" in markdown({("A", "ur5"): {US: row}}, US, "", "", [])


def test_verified_solution_near_the_seed_is_in_the_same_branch():
    q_made = np.zeros((3, 2))
    # the same, a full turn away, and the same but not verified
    q = np.array([[[0.01, -0.01], [0.0, 2 * math.pi], [0.0, 0.0]]])
    data = {"q_made": q_made, "q_near": np.full((3, 2), 0.2)}
    row = figures(make_solutions([[True, True, False]], [[1e-6] * 3], q), "near", "ur5", data)
    assert row.same_branch == pytest.approx(1 / 3)
    # nearer to the seed than the values that made the target: also the branch of the seed
    q[0, 1] = [0.3, 0.3]
    row = figures(make_solutions([[True, True, False]], [[1e-6] * 3], q), "near", "ur5", data)
    assert row.same_branch == pytest.approx(2 / 3)


def test_missing_solution_on_a_path_is_no_jump_but_the_next_may_be():
    q = np.array([[0.1], [np.nan], [0.2], [1.2]])
    assert largest_step(np.array([0.0]), q[:3]) == pytest.approx(0.1)
    assert largest_step(np.array([0.0]), q) == pytest.approx(1.0)


def test_best_peer_is_not_ours_and_solves_90_percent():
    table = {
        US: Figures(10, 1.0, 1.0, 1.0),
        "hasty": Figures(10, 0.5, 2.0, 2.0),
        "good": Figures(10, 0.9, 9.0, 9.0),
        "slow": Figures(10, 1.0, 90.0, 90.0),
        "absent": "not installed",
    }
    best = best_peer(table, frozenset({US}))
    assert best is not None
    assert best[0] == "good"
    assert best_peer(table, frozenset({US}), only="absent") is None


def test_ratio_uses_verified_solutions_and_goal_includes_its_value():
    table = {US: Figures(10, 1.0, 2.0, 2.0), "peer": Figures(10, 1.0, 40.0, 40.0)}
    by_name = {goal.name: goal for goal in goals({("A", "panda"): table}, US, frozenset({US}))}
    ratio = by_name[f"A, {ARMS['panda'].name}: times as fast"]
    assert ratio.measured == pytest.approx(20.0)
    assert ratio.is_met
    assert not Goal("", 20.0, 19.999).is_met


def test_jump_is_a_too_large_step():
    for step, is_met in ((1.0, True), (3.1, False)):
        table = {US: Figures(10, 1.0, 2.0, 2.0, step=step)}
        step_goals = [goal for goal in goals({("B", "ur5"): table}, US, frozenset({US})) if "step" in goal.name]
        assert [goal.is_met for goal in step_goals] == [is_met]


def test_unmeasured_goal_is_not_met():
    assert all(not goal.is_met for goal in goals({}, US, frozenset({US})))


def test_one_missed_target_of_many_misses_the_goal():
    table = {US: Figures(10_000, 0.9999999, 2.0, 2.0)}
    unsolved = [goal for goal in goals({("A", "ur5"): table}, US, frozenset({US})) if goal.name.endswith("solves")]
    assert [goal.is_met for goal in unsolved] == [False]
    assert share(0.9999999) != share(1.0)


def test_missing_peer_is_in_the_table_with_the_reason():
    page = markdown(
        {("B", "panda"): {US: Figures(1, 1.0, 1.0, 1.0), "peer": "not installed: no wheel"}}, US, "", "", []
    )
    assert "| peer | not installed: no wheel |" in page


def test_oracle_rejects_solutions_outside_limits():
    pytest.importorskip("pinocchio")
    from oracle import Oracle

    oracle = Oracle(ARMS["ur5"])
    inside = np.array([0.3, -1.0, 1.2, 0.4, 0.9, -0.2])
    q = np.array([inside, inside + 1e-7, inside + 1e-3, np.full(6, np.nan), inside])
    q[4, 2] += 2 * math.pi  # the same pose; the elbow is limited to half a turn in both directions
    X_target = np.repeat(oracle.poses(inside[None]), len(q), axis=0)
    assert oracle.right(q, X_target, 1e-5).tolist() == [True, True, False, False, False]
