"""Rows of the comparison from hand-made records."""

from __future__ import annotations

import gzip
import math

import pytest

from mechanik.comparison.benchmark_records import (
    ATTEMPT,
    BRANCH,
    CALL,
    REFERENCE,
    TRACK,
    UNSUPPORTED,
    BenchmarkRecord,
    read_records,
)
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
from mechanik.errors import FormatError

DEFAULTS = {
    "robot": "7r",
    "task": "pose",
    "solver": "lm",
    "position_error": 1e-5,
    "rotation_error": 1e-5,
    "closure_error": 0.0,
    "limit_violation": 0.0,
}


def record(**changes):
    return BenchmarkRecord(**{"kind": ATTEMPT, **DEFAULTS, **changes})


def success(seconds, **changes):
    facts = {
        "reported_success": True,
        "verified": True,
        "in_budget": True,
        "seconds": seconds,
        "budget_seconds": seconds,
    }
    return record(**{**facts, "iterations": 5, **changes})


MISS = record(seconds=0.01, budget_seconds=0.02, iterations=100, attempts=4, position_error=0.5)


def only(records):
    (row,) = summarise(records)
    return row


def test_successes_are_counted_with_a_confidence_interval():
    row = only([success(0.001), success(0.002), success(0.003), MISS])
    assert (row.trials, row.first_attempt, row.within_budget) == (4, 3, 3)
    assert row.first_attempt_share == 0.75
    assert row.first_attempt_interval[0] < 0.75 < row.first_attempt_interval[1]
    assert row.iterations == 5
    assert row.iteration_seconds == pytest.approx(0.0003)  # of 0.2, 0.4, 0.6 and 0.1 ms


def test_iteration_time_excludes_the_time_of_an_idle_call():
    row = only([record(kind=CALL, seconds=0.0005), success(0.001), success(0.0015), success(0.5)])
    assert row.call_seconds == 0.0005
    assert row.iteration_seconds == pytest.approx(0.001 / 5)  # a stutter of the machine does not count


def test_success_by_restarts_counts_only_within_the_budget():
    later = record(seconds=0.01, budget_seconds=0.015, in_budget=True)
    row = only([success(0.001), later])
    assert (row.first_attempt, row.within_budget) == (1, 2)
    assert row.p99_seconds == 0.015


def test_time_of_a_failure_is_infinite():
    assert only([success(0.001), success(0.002), MISS]).median_seconds == 0.002
    row = only([success(0.001), MISS, MISS])
    assert row.median_seconds == math.inf
    assert format_seconds(row.median_seconds) == "never"


def test_false_claim_is_no_success_and_is_counted():
    row = only([success(0.001), record(reported_success=True, seconds=0.001, limit_violation=0.2, iterations=3)])
    assert (row.first_attempt, row.false_claims, row.violations, row.worst_violation) == (1, 1, 1, 0.2)


def test_unreachable_target_succeeds_at_the_smallest_known_distance():
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


def test_solutions_outside_limits_have_infinite_optimality_ratio():
    options = {"task": "out_of_reach", "target": 0, "seconds": 0.001, "iterations": 1}
    rows = summarise(
        [record(**options, distance=1.0, budget_distance=1.0), record(**options, solver="x", distance=math.inf)]
    )
    assert rows[1].first_attempt == 0
    assert rows[1].optimality == math.inf


def test_branches_are_counted_per_target_against_those_of_all_solvers():
    def branch_record(solver, target, branch):
        return record(kind=BRANCH, solver=solver, target=target, branch=branch)

    records = [success(0.001), success(0.001, solver="ccd")]
    records += [
        branch_record("lm", 0, 0),
        branch_record("lm", 0, 1),
        branch_record("lm", 0, 1),
        branch_record("lm", 1, 0),
    ]
    records += [branch_record("ccd", 0, 2), branch_record("ccd", 0, -1), branch_record("ccd", 1, 0)]
    lm, ccd = summarise(records)
    assert (lm.branches, lm.branches_known) == (3, 4)
    assert (ccd.branches, ccd.branches_known) == (2, 4)
    assert row_cells(lm)[-1] == "3 of 4"


def test_jumps_are_counted_only_along_paths():
    track = {"kind": TRACK, "task": "path"}
    assert only([success(0.001, **track), success(0.001, is_jump=True, **track)]).jumps == 1
    assert only([success(0.001)]).jumps is None


def test_refusal_is_shown_with_its_reason_and_counts_as_failure_in_the_mean():
    reason = "does not support this task: fabrik cannot close loops"
    rows = summarise([success(0.001), record(kind=UNSUPPORTED, task="path", note=reason)])
    assert rows[1].unsupported_reason == reason
    assert reason in text_table(rows, {})
    assert f"`lm` {reason}" in markdown_table(rows, {})
    assert success_matrix(rows)[2] == {("lm", "7r"): 0.5}
    unsupported = summarise([record(kind=UNSUPPORTED, note=reason)])
    assert success_matrix(unsupported)[2] == {("lm", "7r"): None}
    assert "unsupported" in overview_text(unsupported)


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1.0), (0.25, 1.0), (0.5, 2.0), (0.51, 3.0), (0.99, 4.0), (1.0, 4.0)]
)
def test_nearest_rank_is_one_of_the_values(share, value):
    assert nearest_rank([4.0, 2.0, 1.0, 3.0], share) == value
    assert nearest_rank([], share) is None


def test_lines_of_a_text_table_are_aligned():
    rows = summarise([success(0.001), MISS, success(0.5, solver="jacobian_transpose")])
    lines = text_table(rows, {"7r": "7R (Panda)"}).splitlines()
    assert lines[0] == "7R (Panda), pose"
    column = lines[1].index("one attempt") + len("one attempt")
    assert all(line[column - 1] == ")" for line in lines[2:])


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (12.3e-6, "12 us"), (4.56e-3, "4.56 ms"), (1.5, "1.5 s"), (math.inf, "never")]
)
def test_durations_are_formatted_with_units(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("bytes.csv", bytes(range(128, 256))),
        ("long.csv", b"kind\n" + 200_000 * b"x"),
        ("damaged.csv.gz", gzip.compress(b"kind,robot\n" * 1000, mtime=0)[:30] + bytes(20)),
    ],
)
def test_a_damaged_file_of_records_raises_a_format_error(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FormatError):
        read_records(path)
