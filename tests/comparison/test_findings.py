"""What the README says of the comparison is what the records in docs/ say."""

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
def readme():
    return re.sub(r"\s+", " ", (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"))


def percents(rows, task, share, *solvers):
    return [round(100 * (mean_over_robots(rows, solver, task, share) or 0.0)) for solver in solvers]


def test_at_the_first_attempt_methods_are_alike_and_in_the_budget_they_are_not(rows, readme):
    kinds = ("lm", "dls", "sdls", "pseudo_inverse", "newton", "chan", "sugihara")
    first = percents(rows, "pose", first_attempt_share, *kinds)
    assert f"All least-squares methods reach {min(first)} to {max(first)} % of poses" in readme
    tried, missed = (
        sum(x) for x in zip(*((r.trials, r.trials - r.within_budget) for r in rows if r.solver == "lm"), strict=True)
    )
    assert f"all but {missed} of {tried:,} targets" in readme
    a, b, c = percents(rows, "pose", within_budget_share, "sugihara", "dls", "jacobian_transpose")
    assert f"`sugihara`, reached {a} %, `dls` {b} %, `jacobian_transpose` {c} %" in readme
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


def test_what_animators_use_is_good_for_points(rows, readme):
    for task, text in (
        ("point", "reach {} and {} % of positions at the first attempt, more than `lm` ({} %)"),
        ("tight_limits", "{} and {} % within tight limits (`lm` {} %)"),
        ("near_singular", "{} and {} % near singular poses ({} %)"),
    ):
        assert text.format(*percents(rows, task, first_attempt_share, "ccd", "fabrik", "lm")) in readme
    assert all(row.refused for row in rows if row.solver in ("ccd", "fabrik") and row.robot == "closed_loop")


def test_out_of_reach_fixed_damping_stays_away(rows, readme):
    dls, pseudo, lm, ccd = percents(rows, "out_of_reach", within_budget_share, "dls", "pseudo_inverse", "lm", "ccd")
    assert lm == 100
    assert f"in {dls} % of cases, `pseudo_inverse` in {pseudo} %, `lm` in all, `ccd` in {ccd} %" in readme


def test_nobody_lied_and_no_limit_was_violated(rows):
    assert sum(row.false_claims for row in rows if not row.refused) == 0
    assert sum(row.violations for row in rows if not row.refused) == 0


def test_the_page_by_task_is_made_from_the_records(rows):
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    table = markdown_by_task(rows)
    assert table in page
    first, last = percents(rows, "pose", first_attempt_share, "dls") + percents(
        rows, "pose", within_budget_share, "dls"
    )
    line = next(line for line in table.splitlines() if line.startswith("| `dls`"))
    assert line.split(" | ")[3] == f"{first} / {last}"
    assert len(set(line.split(" | ")[1:])) > 3, "tasks differ"
