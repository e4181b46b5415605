"""Numbers that the documentation cites equal those of the records in docs/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mechanik as mk
from mechanik.comparison.comparison_result import (
    first_attempt_share,
    markdown_by_task,
    mean_over_robots,
    within_budget_share,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rows():
    return mk.comparison.Comparison.from_csv(ROOT / "docs" / "comparison.csv.gz").rows


@pytest.fixture(scope="module")
def tour():
    return re.sub(r"\s+", " ", (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"))


def percents(rows, task, share, *solvers):
    return [round(100 * (mean_over_robots(rows, solver, task, share) or 0.0)) for solver in solvers]


def test_documented_success_rates_for_poses_match_the_records(rows, tour):
    kinds = ("lm", "dls", "sdls", "pseudo_inverse", "newton", "chan", "sugihara")
    first = percents(rows, "pose", first_attempt_share, *kinds)
    assert f"All least-squares methods reach {min(first)} to {max(first)} % of poses" in tour
    total, missed = (
        sum(x) for x in zip(*((r.trials, r.trials - r.within_budget) for r in rows if r.solver == "lm"), strict=True)
    )
    assert f"all but {missed} of {total:,} targets" in tour
    a, b, c = percents(rows, "pose", within_budget_share, "sugihara", "dls", "jacobian_transpose")
    assert f"`sugihara`, reached {a} %, `dls` {b} %, `jacobian_transpose` {c} %" in tour
    others = (
        "dls",
        "sdls",
        "pseudo_inverse",
        "newton",
        "chan",
        "jacobian_transpose",
        "ccd",
        "fabrik",
        "adam",
        "lbfgsb",
    )
    assert a >= max(percents(rows, "pose", within_budget_share, *others))


def test_documented_success_rates_of_ccd_and_fabrik_match_the_records(rows, tour):
    for task, text in (
        ("point", "reach {} and {} % of positions at the first attempt, more than `lm` ({} %)"),
        ("tight_limits", "{} and {} % within tight limits (`lm` {} %)"),
        ("near_singular", "{} and {} % near singular poses ({} %)"),
    ):
        assert text.format(*percents(rows, task, first_attempt_share, "ccd", "fabrik", "lm")) in tour
    assert all(row.unsupported_reason for row in rows if row.solver in ("ccd", "fabrik") and row.robot == "closed_loop")


def test_documented_rates_for_unreachable_targets_match_the_records(rows, tour):
    dls, pseudo, lm, ccd = percents(rows, "out_of_reach", within_budget_share, "dls", "pseudo_inverse", "lm", "ccd")
    assert lm > max(dls, pseudo, ccd)
    assert f"in {dls} % of cases, `pseudo_inverse` in {pseudo} %, `lm` in {lm} %, `ccd` in {ccd} %" in tour


def test_records_have_no_false_claims_and_no_limit_violations(rows):
    assert sum(row.false_claims for row in rows if not row.unsupported_reason) == 0
    assert sum(row.violations for row in rows if not row.unsupported_reason) == 0


def test_page_by_task_is_made_from_the_records(rows):
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    table = markdown_by_task(rows)
    assert table in page
    first, last = percents(rows, "pose", first_attempt_share, "dls") + percents(
        rows, "pose", within_budget_share, "dls"
    )
    line = next(line for line in table.splitlines() if line.startswith("| `dls`"))
    assert line.split(" | ")[3] == f"{first} / {last}"
    assert len(set(line.split(" | ")[1:])) > 3, "tasks differ"
