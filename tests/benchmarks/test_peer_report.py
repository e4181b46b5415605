"""The arithmetic of the comparison with peers: what counts as solved, what it costs, and which goals that meets."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
sys.path.insert(0, str(PEERS))

from arms import ARMS  # noqa: E402
from race import Answers  # noqa: E402
from report import Figures, Goal, best_peer, figures, goals, largest_step, markdown, share  # noqa: E402

US = "ours"


def answers(right: list[list[bool]], seconds: list[list[float]], q: np.ndarray | None = None) -> Answers:
    """Rounds of a library with one joint, unless q is given; processor time is twice the wall's."""
    times = np.array(seconds)
    shape = (*np.shape(right), 1)
    return Answers(np.zeros(shape) if q is None else q, times, 2 * times.sum(axis=1), np.array(right))


def test_the_time_of_targets_that_are_not_solved_is_paid_by_those_that_are():
    it = figures(answers([[True, False]], [[1e-6, 5e-6]]), "A", "ur5", {})
    assert it.solved == 0.5
    assert it.us == pytest.approx(6.0)
    assert it.cpu_us == pytest.approx(12.0)


def test_a_round_that_was_disturbed_changes_nothing():
    quiet = figures(answers([[True, True]] * 3, [[1e-6, 2e-6]] * 3), "A", "ur5", {})
    noisy = figures(answers([[True, True]] * 3, [[1e-6, 2e-6], [1e-6, 9.0], [9.0, 2e-6]]), "A", "ur5", {})
    assert noisy.us == quiet.us


def test_a_batch_counts_with_its_best_round():
    it = figures(answers([[True, True]] * 2, [[8e-6], [4e-6]]), "C", "ur5", {})
    assert it.us == pytest.approx(2.0)


def test_nothing_solved_costs_infinitely_much():
    it = figures(answers([[False]], [[1e-6]]), "A", "ur5", {})
    assert it.us == math.inf
    assert "(0 %)" in markdown({("A", "ur5"): {US: it}}, US, "", "", [])


def test_a_branch_is_kept_by_an_answer_that_is_right_and_near_what_made_the_target():
    q_made = np.zeros((3, 2))
    q = np.array([[[0.01, -0.01], [0.0, 2 * math.pi], [0.0, 0.0]]])  # the same, a turn away, and the same but wrong
    data = {"q_made": q_made, "q_near": np.full((3, 2), 0.2)}
    it = figures(answers([[True, True, False]], [[1e-6] * 3], q), "near", "ur5", data)
    assert it.kept == pytest.approx(1 / 3)
    # nearer to the seed than what made the target: that is the seed's branch, too
    q[0, 1] = [0.3, 0.3]
    assert figures(answers([[True, True, False]], [[1e-6] * 3], q), "near", "ur5", data).kept == pytest.approx(2 / 3)


def test_a_missing_answer_on_a_path_is_no_jump_but_what_follows_may_be():
    q = np.array([[0.1], [np.nan], [0.2], [1.2]])
    assert largest_step(np.array([0.0]), q[:3]) == pytest.approx(0.1)
    assert largest_step(np.array([0.0]), q) == pytest.approx(1.0)


def test_the_best_peer_is_none_of_ours_and_solves_nine_of_ten():
    table = {
        US: Figures(10, 1.0, 1.0, 1.0),
        "hasty": Figures(10, 0.5, 2.0, 2.0),
        "good": Figures(10, 0.9, 9.0, 9.0),
        "slow": Figures(10, 1.0, 90.0, 90.0),
        "absent": "not installed",
    }
    found = best_peer(table, frozenset({US}))
    assert found is not None
    assert found[0] == "good"
    assert best_peer(table, frozenset({US}), only="absent") is None


def test_a_ratio_is_of_verified_answers_and_a_goal_is_met_from_its_figure_on():
    table = {US: Figures(10, 1.0, 2.0, 2.0), "peer": Figures(10, 1.0, 40.0, 40.0)}
    found = {goal.name: goal for goal in goals({("A", "panda"): table}, US, frozenset({US}))}
    ratio = found[f"A, {ARMS['panda'].name}: times as fast"]
    assert ratio.measured == pytest.approx(20.0)
    assert ratio.is_met
    assert not Goal("", 20.0, 19.999).is_met


def test_a_jump_is_a_step_that_is_too_large():
    for step, is_met in ((1.0, True), (3.1, False)):
        table = {US: Figures(10, 1.0, 2.0, 2.0, step=step)}
        found = [goal for goal in goals({("B", "ur5"): table}, US, frozenset({US})) if "step" in goal.name]
        assert [goal.is_met for goal in found] == [is_met]


def test_what_was_not_measured_is_not_met():
    assert all(not goal.is_met for goal in goals({}, US, frozenset({US})))


def test_one_target_missed_of_many_is_not_all_of_them():
    table = {US: Figures(10_000, 0.9999999, 2.0, 2.0)}
    unsolved = [goal for goal in goals({("A", "ur5"): table}, US, frozenset({US})) if goal.name.endswith("solves")]
    assert [goal.is_met for goal in unsolved] == [False]
    assert share(0.9999999) != share(1.0)


def test_a_peer_that_could_not_run_stays_in_the_table_with_the_reason():
    page = markdown(
        {("B", "panda"): {US: Figures(1, 1.0, 1.0, 1.0), "peer": "not installed: no wheel"}}, US, "", "", []
    )
    assert "| peer | not installed: no wheel |" in page


def test_the_oracle_refuses_what_is_outside_the_limits_though_it_is_there():
    pytest.importorskip("pinocchio")
    from oracle import Oracle

    oracle = Oracle(ARMS["ur5"])
    inside = np.array([0.3, -1.0, 1.2, 0.4, 0.9, -0.2])
    q = np.array([inside, inside + 1e-7, inside + 1e-3, np.full(6, np.nan), inside])
    q[4, 2] += 2 * math.pi  # the same pose; the elbow may turn half a turn either way
    wanted = np.repeat(oracle.poses(inside[None]), len(q), axis=0)
    assert oracle.right(q, wanted, 1e-5).tolist() == [True, True, False, False, False]
