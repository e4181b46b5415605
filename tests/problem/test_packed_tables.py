"""Packed tables are read and written in `kernels/`, `problem/` and the packing modules of other packages alone."""

from __future__ import annotations

import re
from pathlib import Path

import mechanik

SOURCES = Path(mechanik.__file__).parent
TABLE_ACCESS = re.compile(
    r"\bpacked\.tables\b"  # the tables of a `PackedProblem`
    r"|\.(?:ints|floats)\["  # its arrays
    r"|\bimport .*\b(?:ProblemTables|open_problem|RecordArray|SearchState|SearchReport|StageReport)\b"
    r"|\bimport (?:problem_layout|state_layout|chain_layout)\b"
    r"|\bSceneTables\b"  # the tables of a collision scene
    r"|\.scene\.\w+\.(?:rows|column)\b"
    r"|\b[A-Z]\w+\.\w+\.offset\b"  # columns of rows of records
    r"|\bchain_layout import .*\b(?:Chain\w+|[A-Z_]+_FLOATS|workspace_size|table_size)\b"
    r"|problem\.tables\b"  # the tables of a `TrackingProblem`
    r"|\b(?:TrackingTables|TrackingOptions|open_tracking|import tracking_layout)\b"
)
PACKING_MODULES = "problem/", "kernels/", "motion/tracking/tracking_problem.py", "collision/collision_tables.py"
"""Packages and modules that know where a number is; all others use the names of fields."""


def test_no_other_file_indexes_packed_tables():
    files = {
        file.relative_to(SOURCES).as_posix(): TABLE_ACCESS.findall(file.read_text(encoding="utf-8"))
        for file in sorted(SOURCES.rglob("*.py"))
        if not file.relative_to(SOURCES).as_posix().startswith(PACKING_MODULES)
    }
    assert {name: matches for name, matches in files.items() if matches} == {}
