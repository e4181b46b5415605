"""Records of a comparison, their CSV file, and the description of the machine on which they were measured.

Tables, plots and reports are made only from these records. While a comparison runs, the records are in `NAME.part`,
which is renamed to `NAME` when the comparison is complete. If `NAME` ends in .gz, both files are compressed with gzip.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import platform
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TextIO

from mechanik.errors import CannotSave, FileMissing, FormatError
from mechanik.validation import format_count
from mechanik.version import __version__

ATTEMPT, TRACK, BRANCH, CURVE, CALL = "attempt", "track", "branch", "curve", "call"
REFERENCE, UNSUPPORTED = "reference", "unsupported"
"""Kinds of records.

- attempt: the first attempt on a target, and the totals of all attempts within the time budget.
- track: an attempt on a point of a path.
- branch: an attempt from another start, to find further solutions of a target.
- curve: the convergence curve over several targets.
- call: the time of a call whose target is already met.
- reference: the smallest distance to a target that a long search found.
- unsupported: the reason why a solver cannot run the case.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRecord:
    """A record of a comparison: measurements of a solver on a target of a task, or on all targets of the task.

    Attributes:
        kind: "attempt", "track", "branch", "curve", "call", "reference" or "unsupported". Fields that a kind does not
            use keep their default. For kind "attempt", "one attempt" below means the first attempt on the target.
        robot, task, solver: names of the robot, the task and the solver.
        target: index of the target in the case; -1: none.
        start: 0: the start of the target; k > 0: row k - 1 of the restarts of the case; -1: neither.
        reported_success: whether the solver reported success after one attempt, within the time limit of an attempt.
        verified: whether the solver reported success and the independent check confirms the success.
        in_budget: whether a verified solution was found within the time budget, possibly after several attempts.
        seconds, iterations, status: processor time (s), iterations and status of one attempt. Kind "call": median time
            of a call.
        budget_seconds, attempts: processor time (s) and number of all attempts, until the first reported success or
            the end of the budget.
        position_error, rotation_error: largest errors of all tip links after one attempt; m and rad. For the task
            "direction" the rotation error is the angle between the directions; it is NaN for targets that are only
            positions.
        distance: root of the sum of squared position errors of the tip links after one attempt, m. Infinite if limits,
            loop closures or joint constraints are violated. Kind "reference": the smallest distance that a long search
            found.
        budget_distance: task "out_of_reach": the smallest `distance` of all attempts within the budget, m. Other tasks:
            the root of the sum of squared position errors after the last attempt, also if limits, loop closures or
            joint constraints are violated; m.
        closure_error: largest error of a loop closure, m or rad, or of a joint constraint; the error of a joint
            constraint is its residual divided by its scale.
        limit_violation: largest violation of a joint limit or swing limit; m or rad.
        step: largest joint step since the previous solution on the path; rad, or fraction of the reach.
        is_jump: whether this step is more than 5 times the largest reference step of the path.
        branch: index of the solution branch of the target; -1: none.
        curve_iterations: numbers of iterations, from 1.
        curve_errors: medians over several targets of the smallest error up to these iterations, in the units of
            `Solution.history`.
        note: reason why the solver cannot run the case, or message of its exception.

    Example:
        >>> record = mk.comparison.BenchmarkRecord(kind="attempt", robot="7r", task="pose", solver="lm", verified=True)
        >>> record.run_key
        ('7r', 'pose', 'lm')
    """

    kind: str
    robot: str
    task: str
    solver: str
    target: int = -1
    start: int = -1
    reported_success: bool = False
    verified: bool = False
    in_budget: bool = False
    seconds: float = math.nan
    iterations: int = 0
    status: str = ""
    budget_seconds: float = math.nan
    attempts: int = 0
    position_error: float = math.nan
    rotation_error: float = math.nan
    distance: float = math.nan
    budget_distance: float = math.nan
    closure_error: float = math.nan
    limit_violation: float = math.nan
    step: float = math.nan
    is_jump: bool = False
    branch: int = -1
    curve_iterations: tuple[float, ...] = ()
    curve_errors: tuple[float, ...] = ()
    note: str = ""

    @property
    def run_key(self) -> tuple[str, str, str]:
        """Robot, task and solver: the key of the table row of the record."""
        return self.robot, self.task, self.solver


def describe_machine() -> dict[str, str]:
    """Return processor, number of cores, system, versions and date as texts, to report with measured times."""
    return {
        "processor": processor_name(),
        "cores": str(os.cpu_count() or 1),
        "system": f"{platform.system()} {platform.release()}".strip(),
        "python": platform.python_version(),
        "mechanik": __version__,
        "numpy": _package_version("numpy"),
        "numba": _package_version("numba"),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def processor_name() -> str:
    """Return the model name of the processor if the system provides it, else its architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


def _package_version(package: str) -> str:
    """Return the version of a package, or "unknown"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


RECORD_COLUMNS = tuple(field.name for field in fields(BenchmarkRecord))
HEADER_KIND = "about"
"""Kind of the first record in a file; its note is JSON with the settings and the machine."""
DIGITS = 4
"""Number of significant digits of numbers in the file; numbers of convergence curves have three."""


class RecordWriter:
    """Writer of records to a partial file in the folder of `path`; `finish` renames the partial file to `path`.

    Args:
        path: the final file.
        about: settings and machine, for the header.

    Attributes:
        path: the final file.
        partial_file: the partial file.
    """

    def __init__(self, path: str | Path, about: dict[str, Any]) -> None:
        self.path, self._about = Path(path), about
        self.partial_file = partial_path(self.path)
        self._file: TextIO | None = None

    def write(self, records: Iterable[BenchmarkRecord]) -> None:
        """Append records and flush the file; the first call replaces an existing partial file.

        Raises:
            CannotSave: the file cannot be written.
        """
        try:
            if self._file is None:
                self._file = _open_text(self.partial_file, "w")
                csv_writer = csv.writer(self._file)
                csv_writer.writerow(RECORD_COLUMNS)
                csv_writer.writerow([HEADER_KIND, *[""] * (len(RECORD_COLUMNS) - 2), json.dumps(self._about)])
            rows = ([_format_field(getattr(record, name)) for name in RECORD_COLUMNS] for record in records)
            csv.writer(self._file).writerows(rows)
            self._file.flush()
        except OSError as error:
            raise CannotSave(f"{self.partial_file} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the partial file without removing it, so that the comparison can be resumed."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def finish(self) -> None:
        """Rename the partial file to the final file; raises `CannotSave` if this is not possible."""
        self.write(())
        self.close()
        try:
            os.replace(self.partial_file, self.path)
        except OSError as error:
            raise CannotSave(f"{self.path} cannot be written: {error.strerror}") from None


def partial_path(path: Path) -> Path:
    """Return the path of the partial file of an incomplete comparison."""
    return path.with_name(f"{path.name}.part")


def write_records(path: str | Path, records: Iterable[BenchmarkRecord], about: dict[str, Any]) -> None:
    """Write all records to a file atomically: an existing file stays unchanged if writing fails.

    Raises:
        CannotSave: the file cannot be written.
    """
    writer = RecordWriter(path, about)
    writer.write(records)
    writer.finish()


def read_records(path: str | Path, is_partial: bool = False) -> tuple[list[BenchmarkRecord], dict[str, Any]]:
    """Read the records of a file, and the settings and machine in its header.

    Args:
        is_partial: whether the file may be truncated; then the first damaged line and all later lines are ignored.

    Raises:
        FileMissing: the file cannot be read.
        FormatError: the file does not contain records, or is damaged.
    """
    try:
        with _open_text(Path(path), "r") as file:
            rows = _read_rows(file, path, is_partial)
    except gzip.BadGzipFile:
        raise FormatError(f"{path} is not a gzip file, although its name ends in .gz") from None
    except (UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise FormatError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise FileMissing(f"{path} cannot be read: {error.strerror}") from None
    if not rows or rows[0].get("kind") != HEADER_KIND or list(rows[0]) != list(RECORD_COLUMNS):
        raise FormatError(
            f"{path} contains no records of a comparison, or records of another version of Mechanik; run the "
            "comparison again"
        )
    records: list[BenchmarkRecord] = []
    try:
        about: dict[str, Any] = json.loads(rows[0]["note"])
        for row in rows[1:]:
            try:
                records.append(_parse_record(row))
            except (AttributeError, TypeError, ValueError):
                if not is_partial:
                    raise
                break
    except (AttributeError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path} is damaged after {format_count(len(records), 'record')}: {error}; run the comparison again"
        ) from None
    return records, about


def _open_text(path: Path, mode: Literal["r", "w"]) -> TextIO:
    """Open a text file, with gzip if its name without ".part" ends in .gz."""
    if path.name.removesuffix(".part").endswith(".gz"):
        return gzip.open(path, f"{mode}t", encoding="utf-8", newline="")  # type: ignore[return-value]
    return path.open(mode, encoding="utf-8", newline="")


def _read_rows(file: TextIO, path: str | Path, is_partial: bool) -> list[dict[str, str]]:
    """Read the rows of a file, up to its end or to the point where a gzip file is truncated.

    Args:
        path: path of the file, for the message.
        is_partial: whether a gzip file may be truncated.

    Raises:
        FormatError: a gzip file is truncated, but `is_partial` is False.
    """
    rows: list[dict[str, str]] = []
    try:
        for row in csv.DictReader(file):
            rows.append(row)
    except EOFError:  # a truncated gzip file
        if not is_partial:
            raise FormatError(f"{path} is truncated; run the comparison again") from None
    return rows


def _format_field(value: Any) -> str:
    """Format the value of a field as text."""
    match value:
        case bool():
            return "1" if value else "0"
        case float():
            return "" if math.isnan(value) else f"{value:.{DIGITS}g}"
        case tuple():
            return " ".join(f"{number:.3g}" for number in value)  # type: ignore[reportUnknownVariableType]
        case _:
            return str(value)


def _parse_record(row: Mapping[str, str | None]) -> BenchmarkRecord:
    """Parse a record from the texts of its fields; raises `ValueError` for a damaged row."""
    values: dict[str, Any] = {}
    for field in fields(BenchmarkRecord):
        text = row[field.name]
        if text is None:
            raise ValueError("a line is truncated")
        match field.type:
            case "bool":
                values[field.name] = text == "1"
            case "int":
                values[field.name] = int(text)
            case "float":
                values[field.name] = float(text) if text else math.nan
            case "str":
                values[field.name] = text
            case _:
                values[field.name] = tuple(float(number) for number in text.split())
    return BenchmarkRecord(**values)
