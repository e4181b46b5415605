"""From records to rows, by hand-made records."""

from __future__ import annotations

import math

import pytest

from mechanik.comparison.benchmark_records import ATTEMPT, BRANCH, CALL, REFERENCE, REFUSED, TRACK, Trial
from mechanik.comparison.comparison_result import (
    format_seconds,
    markdown_table,
    nearest_rank,
    overview_text,
    row_cells,
    success_matrix,
    summarise,
    text_table,
)

USUAL = {
    "robot": "7r",
    "task": "pose",
    "solver": "lm",
    "position": 1e-5,
    "rotation": 1e-5,
    "gap": 0.0,
    "violation": 0.0,
}


def record(**changes):
    return Trial(**{"kind": ATTEMPT, **USUAL, **changes})


def success(seconds, **changes):
    facts = {"claimed": True, "verified": True, "in_budget": True, "seconds": seconds, "budget_seconds": seconds}
    return record(**{**facts, "iterations": 5, **changes})


MISS = record(seconds=0.01, budget_seconds=0.02, iterations=100, attempts=4, position=0.5)


def only(trials):
    (row,) = summarise(trials)
    return row


def test_successes_are_counted_with_their_interval():
    row = only([success(0.001), success(0.002), success(0.003), MISS])
    assert (row.trials, row.first_attempt, row.within_budget) == (4, 3, 3)
    assert row.first_attempt_share == 0.75
    assert row.first_attempt_interval[0] < 0.75 < row.first_attempt_interval[1]
    assert row.iterations == 5
    assert row.iteration_seconds == pytest.approx(0.0003)  # of 0.2, 0.4, 0.6 and 0.1 ms


def test_the_time_of_an_iteration_is_what_a_call_takes_beyond_an_idle_one():
    row = only([record(kind=CALL, seconds=0.0005), success(0.001), success(0.0015), success(0.5)])
    assert row.call_seconds == 0.0005
    assert row.iteration_seconds == pytest.approx(0.001 / 5)  # a stutter of the machine does not count


def test_what_came_only_with_restarts_counts_in_the_budget_alone():
    later = record(seconds=0.01, budget_seconds=0.015, in_budget=True)
    row = only([success(0.001), later])
    assert (row.first_attempt, row.within_budget) == (1, 2)
    assert row.p99_seconds == 0.015


def test_a_failure_takes_forever():
    assert only([success(0.001), success(0.002), MISS]).median_seconds == 0.002
    row = only([success(0.001), MISS, MISS])
    assert row.median_seconds == math.inf
    assert format_seconds(row.median_seconds) == "never"


def test_a_claim_that_does_not_hold_is_no_success_and_is_told():
    row = only([success(0.001), record(claimed=True, seconds=0.001, violation=0.2, iterations=3)])
    assert (row.first_attempt, row.false_claims, row.violations, row.worst_violation) == (1, 1, 1, 0.2)


def test_out_of_reach_counts_what_is_as_close_as_anything_known():
    def reached(solver, target, distance, in_budget):
        return record(
            task="out_of_reach", solver=solver, target=target, seconds=0.001, iterations=9, distance=distance,
            budget_distance=in_budget,
        )  # fmt: skip

    rows = summarise(
        [
            record(kind=REFERENCE, task="out_of_reach", solver="", target=0, distance=1.0),
            reached("lm", 0, 1.0005, 1.0005),
            reached("lm", 1, 2.0, 2.0),
            reached("ccd", 0, 1.5, 1.0),
            reached("ccd", 1, 3.0, 2.5),
        ]
    )
    lm, ccd = rows
    assert (lm.first_attempt, lm.within_budget) == (2, 2)
    assert (ccd.first_attempt, ccd.within_budget) == (0, 1)
    assert ccd.optimality == pytest.approx(1.5)
    assert lm.median_seconds == 0.001


def test_answers_outside_limits_are_infinitely_far_from_the_best():
    some = {"task": "out_of_reach", "target": 0, "seconds": 0.001, "iterations": 1}
    rows = summarise([record(**some, distance=1.0, budget_distance=1.0), record(**some, solver="x", distance=math.inf)])
    assert rows[1].first_attempt == 0
    assert rows[1].optimality == math.inf


def test_branches_are_counted_by_target_against_what_all_have_found():
    def found(solver, target, branch):
        return record(kind=BRANCH, solver=solver, target=target, branch=branch)

    trials = [success(0.001), success(0.001, solver="ccd")]
    trials += [found("lm", 0, 0), found("lm", 0, 1), found("lm", 0, 1), found("lm", 1, 0)]
    trials += [found("ccd", 0, 2), found("ccd", 0, -1), found("ccd", 1, 0)]
    lm, ccd = summarise(trials)
    assert (lm.branches, lm.branches_known) == (3, 4)
    assert (ccd.branches, ccd.branches_known) == (2, 4)
    assert row_cells(lm)[-1] == "3 of 4"


def test_jumps_are_counted_along_paths_only():
    track = {"kind": TRACK, "task": "path"}
    assert only([success(0.001, **track), success(0.001, jumped=True, **track)]).jumps == 1
    assert only([success(0.001)]).jumps is None


def test_a_refusal_is_shown_with_its_reason_everywhere_and_is_a_miss_in_the_mean():
    why = "refuses: fabrik cannot shut loops"
    rows = summarise([success(0.001), record(kind=REFUSED, task="path", note=why)])
    assert rows[1].refused == why
    assert why in text_table(rows, {})
    assert f"`lm` {why}" in markdown_table(rows, {})
    assert success_matrix(rows, {})[2] == {("lm", "7r"): 0.5}
    refused = summarise([record(kind=REFUSED, note=why)])
    assert success_matrix(refused, {})[2] == {("lm", "7r"): None}
    assert "refuses" in overview_text(refused, {})


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1.0), (0.25, 1.0), (0.5, 2.0), (0.51, 3.0), (0.99, 4.0), (1.0, 4.0)]
)
def test_the_nearest_rank_is_a_value_that_was_seen(share, value):
    assert nearest_rank([4.0, 2.0, 1.0, 3.0], share) == value
    assert nearest_rank([], share) is None


def test_every_line_of_a_text_table_is_aligned_and_a_row_has_a_cell_for_each_column():
    rows = summarise([success(0.001), MISS, success(0.5, solver="jacobian_transpose")])
    lines = text_table(rows, {"7r": "7R (Panda)"}).splitlines()
    assert lines[0] == "7R (Panda), pose"
    place = lines[1].index("one attempt") + len("one attempt")
    assert all(line[place - 1] == ")" for line in lines[2:])


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (12.3e-6, "12 us"), (4.56e-3, "4.56 ms"), (1.5, "1.5 s"), (math.inf, "never")]
)
def test_durations_are_for_people(seconds, text):
    assert format_seconds(seconds) == text
