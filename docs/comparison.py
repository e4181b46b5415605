"""Make docs/comparison.md, .html and .csv.gz: python docs/comparison.py [--resume | --pages]

Every solver on every robot and task; about ten minutes on two cores. Leave the machine alone while it runs: one thing
is timed after the other. Ctrl-C keeps what is done, and --resume continues. --pages measures nothing, and makes the
pages from the records that there are.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
from pathlib import Path

import mechanik as mk
from mechanik.comparison.comparison_result import TABLE_COLUMNS, markdown_by_task, markdown_overview, markdown_table

HERE = Path(__file__).parent
INTRODUCTION = """# Solvers compared

Every method of `mk.METHODS` on one robot of each class and on each task, measured by `docs/comparison.py`. All get the
same targets, starts, tolerances and seeds; each runs with the options that it has by default. The page
[comparison.html](comparison.html) has the same with plots, [comparison.csv.gz](comparison.csv.gz) every single attempt.
To compare on a robot of your own: `mechanik compare robot.urdf --html report.html`.

Measured on {date}: {processor}, {cores} cores, one in use; {system}, Python {python}, NumPy {numpy}, Numba {numba};
seed {seed}.

A success is one that holds when it is checked from outside: the tip links within {tolerance:g} m and
{angle_tolerance:g} rad by forward kinematics, all joints within their limits, all loops closed, and the solver says so.
*One attempt* is one descent from a random start; *in budget* goes on from further random starts until {budget:g} s are
over. What a solver refuses, it does not try to do; the reason is below each table. A solver that needs more than
{patience:g} s for a task gets fewer targets: n says how many.

The columns:

{columns}

## Success in the time budget

Percent of targets; the mean over the tasks, in which what a solver refuses counts as a miss.

{overview}
## By task

Percent of targets at the first attempt / in the time budget: the mean over the robots on which the solver does not
refuse, each of which counts alike.

{by_task}
## The table

{table}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--pages", action="store_true", help="make the pages from the existing records")
    arguments = parser.parse_args()
    records = HERE / "comparison.csv.gz"
    if arguments.pages:
        comparison = mk.comparison.Comparison.from_csv(records)
    else:
        comparison = mk.compare(
            targets=100,
            patience=1.0,
            csv=records,
            resume=arguments.resume,
            progress=True,
            command="python docs/comparison.py",
        )
    if not comparison.is_complete:
        sys.stderr.write("interrupted; --resume continues\n")
        return 130
    comparison.to_html(HERE / "comparison.html")
    (HERE / "comparison.md").write_text(document(comparison), encoding="utf-8")
    return 0


def document(comparison: mk.comparison.Comparison) -> str:
    """The page in Markdown."""
    return INTRODUCTION.format(
        **comparison.about["machine"],
        **comparison.about["settings"],
        columns="\n".join(f"- *{name}*: {what}." for name, what in TABLE_COLUMNS.items() if what),
        overview=markdown_overview(comparison.rows, comparison.titles),
        by_task=markdown_by_task(comparison.rows),
        table=markdown_table(comparison.rows, comparison.titles),
    )


if __name__ == "__main__":
    sys.exit(main())
