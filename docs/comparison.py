"""Make docs/comparison.md, .html and .csv.gz: python docs/comparison.py [--resume | --pages]

Every solver on every robot and task; about ten minutes on two cores. Run nothing else on the machine meanwhile, because
times are measured. After Ctrl-C, --resume continues with the existing records. --pages measures nothing and makes the
pages from the existing records.
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

Every method of `mk.METHODS` on one robot of each class and on each task, measured by `docs/comparison.py`. All methods
have the same targets, starts, tolerances and random seeds, and run with their default options. The page
[comparison.html](comparison.html) also has plots; [comparison.csv.gz](comparison.csv.gz) has a record of each attempt.
To compare on your own robot: `mechanik compare robot.urdf --html report.html`.

Measured on {date}: {processor}, {cores} cores, one in use; {system}, Python {python}, NumPy {numpy}, Numba {numba};
seed {seed}.

A solve is a success if the solver reports success and an independent check confirms it: the tip links are within
{tolerance:g} m and {angle_tolerance:g} rad by forward kinematics, all joints are within their limits, and all loops are
closed. *One attempt* is one descent from a random start; *in budget* continues from further random starts until
{budget:g} s have passed. If a solver does not support a case, it does not run; the reason is below each table. A solver
that needs more than {patience:g} s for a task gets fewer targets; the column n has their number.

The columns:

{columns}

## Success in the time budget

Percent of targets, mean over the tasks. A task that a solver does not support counts as 0.

{overview}
## By task

Percent of targets at the first attempt / in the time budget: mean over the robots that the solver supports, with equal
weights.

{by_task}
## The table

{table}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--pages", action="store_true", help="make the pages from the existing records")
    arguments = parser.parse_args()
    records = HERE / "comparison.csv.gz"
    if not arguments.pages:
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
    comparison = mk.comparison.Comparison.from_csv(records)  # whose digits are rounded, so that --pages makes the same
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
