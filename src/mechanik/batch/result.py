"""What a batch came to: arrays, in memory or in the files of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechanik.batch import folder as files
from mechanik.batch.about import About
from mechanik.batch.columns import Rows
from mechanik.batch.engine import Answers
from mechanik.errors import CannotSave, NotSolved
from mechanik.kernels.solver_state import PENDING_ROW
from mechanik.mechanism.door import counted, read_only
from mechanik.solvers.status import BY_CODE, Status
from mechanik.spatial.array import Array

NAMED = 5
"""How many rows an error names."""


class BatchResult:
    """Answers to N targets. Arrays are read-only; those of a folder are read from its files as they are needed.

    Attributes:
        q: (N, nq), a configuration for each row; that of a row that could not be tried is where it would have begun.
        status: (N,) int8, the place of a row's `Status` in `mechanik.solvers.status.BY_CODE`; 0 is CONVERGED.
        errors: (N, objectives, 2), m and rad; NaN where nothing was tried.
        iterations: (N,) int32, over all attempts.
        joints: a name for each number of q.
        objectives: a name for each objective.
        seconds: spent on what is done.
        folder: where its files are, if it has any.
    """

    def __init__(
        self, q: Array, status: npt.NDArray[np.int8], errors: Array, iterations: npt.NDArray[np.int32], about: About,
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        self._arrays = q, status, errors, iterations
        self._about, self.folder = about, folder

    @staticmethod
    def empty(about: About) -> BatchResult:
        """A result in memory of which no row is done."""
        shape = files.shapes(about)
        status = np.full(shape["status"], PENDING_ROW, dtype=np.int8)
        iterations = np.zeros(shape["iterations"], dtype=np.int32)
        return BatchResult(np.zeros(shape["q"]), status, np.full(shape["errors"], np.nan), iterations, about)

    @staticmethod
    def open(folder: str | os.PathLike[str]) -> BatchResult:
        """The result in a folder, finished or not; its files are not read before they are needed."""
        place = as_folder(folder)
        about = files.read_about(place)
        found = files.read_arrays(place, about)
        return BatchResult(found["q"], found["status"], found["errors"], found["iterations"], about, place)

    def save(self, folder: str | os.PathLike[str]) -> BatchResult:
        """Write it into a folder, new or empty, and return the result that lives there."""
        place = as_folder(folder)
        if files.is_begun(place):
            raise CannotSave(f"{place} holds the result of a batch already; it is left as it is. Give another place")
        q, status, errors, iterations = self._arrays
        files.make(place, self._about)
        writer = files.Writer(place, self._about)
        for first in range(0, len(self), files.AT_A_TIME):
            rows = slice(first, min(first + files.AT_A_TIME, len(self)))
            code, steps = status[rows].astype(np.int64), iterations[rows].astype(np.int64)
            writer.put(np.arange(rows.start, rows.stop), Answers(q[rows], code, errors[rows], steps))
            writer.commit()
        writer.close(0.0)
        return BatchResult.open(place)

    # ---- numbers ----------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        return read_only(self._arrays[0].view())

    @property
    def status(self) -> npt.NDArray[np.int8]:
        found = self._arrays[1].view()
        found.flags.writeable = False
        return found

    @property
    def errors(self) -> Array:
        return read_only(self._arrays[2].view())

    @property
    def iterations(self) -> npt.NDArray[np.int32]:
        found = self._arrays[3].view()
        found.flags.writeable = False
        return found

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """(N,), whether everything that a row required is within its tolerance, with all loops shut."""
        return np.asarray(self._arrays[1] == 0)

    @property
    def joints(self) -> tuple[str, ...]:
        return self._about.joints

    @property
    def objectives(self) -> tuple[str, ...]:
        return self._about.objectives

    @property
    def seconds(self) -> float:
        return self._about.seconds

    @property
    def seed(self) -> int | None:
        """Of all that is random; None: nothing is."""
        return self._about.seed

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._about.rows

    def __len__(self) -> int:
        return self.count

    @property
    def done(self) -> int:
        """How many rows are no longer PENDING."""
        return self.count - self.counts.get(Status.PENDING, 0)

    @property
    def is_finished(self) -> bool:
        return self.done == self.count

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many rows ended in each way, the most frequent first."""
        found: dict[Status, int] = {}
        for code, number in enumerate(np.bincount(self._arrays[1], minlength=len(BY_CODE)).tolist()):
            if number:
                found[BY_CODE[code]] = found.get(BY_CODE[code], 0) + number
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def status_of(self, row: int) -> Status:
        """How one row ended."""
        return BY_CODE[int(self._arrays[1][row])]

    def rows_with(self, status: Status) -> Rows:
        """Numbers of the rows that ended so."""
        codes = [code for code, one in enumerate(BY_CODE) if one is status]
        return np.flatnonzero(np.isin(self._arrays[1], codes))

    # ---- in words ---------------------------------------------------------------------------

    def __repr__(self) -> str:
        counts = self.counts
        pending = counts.get(Status.PENDING, 0)
        left = f", {pending:,} not solved yet" if pending else ""
        where = f" in {self.folder}" if self.folder is not None else ""
        return f"<batch of {counted(self.count, 'row')}{where}: {counts.get(Status.CONVERGED, 0):,} solved{left}>"

    def summary(self) -> str:
        """Some lines for people: how many rows ended in which way, how fast."""
        counts, done = self.counts, self.done
        solved = counts.get(Status.CONVERGED, 0)
        share = f" ({percent(solved, done)} %)" if done else ""
        speed = f", {done / self.seconds:,.0f} rows a second" if self.seconds > 0 and done else ""
        of_all = f"{done:,}" if done == self.count else f"{done:,} of {self.count:,}"
        lines = [f"{solved:,} of {of_all} rows solved{share} in {self.seconds:.3g} s{speed}"]
        width = len(f"{max(counts.values(), default=0):,}")
        wide = max((len(status.name) for status in counts), default=0)
        lines += [
            f"  {number:>{width},} {status.name:<{max(wide, 10)}} {status.value}" for status, number in counts.items()
        ]
        return "\n".join(lines)

    def require(self) -> BatchResult:
        """This result, or an exception that names rows which are not solved."""
        failed = np.flatnonzero(self._arrays[1] != 0)
        if len(failed):
            some = ", ".join(f"{row} ({self.status_of(row).name})" for row in failed[:NAMED].tolist())
            more = ", ..." if len(failed) > NAMED else ""
            raise NotSolved(f"{len(failed):,} of {self.count:,} rows are not solved: row {some}{more}", self)
        return self

    # ---- inside -----------------------------------------------------------------------------

    def _put(self, rows: Rows, found: Answers) -> None:
        """Answers into the arrays of a result in memory, the statuses last."""
        q, status, errors, iterations = self._arrays
        first, last = int(rows[0]), int(rows[-1])
        place = slice(first, last + 1) if last + 1 - first == len(rows) else rows  # a slice is quicker
        q[place], errors[place], iterations[place] = found.q, found.errors, found.iterations
        status[place] = found.code

    def _spent(self, seconds: float) -> None:
        self._about = replace(self._about, seconds=self._about.seconds + seconds)


def percent(some: int, of_all: int) -> str:
    """Four digits, and never 100 where a single one is missing."""
    text = f"{100 * some / of_all:.4g}"
    return "over 99.99" if text == "100" and some < of_all else text


def as_folder(folder: str | os.PathLike[str]) -> Path:
    """A path, with the user's home spelled out."""
    try:
        return Path(folder).expanduser()
    except (TypeError, RuntimeError) as error:
        raise CannotSave(f"{folder!r} is no folder: {error}") from None
