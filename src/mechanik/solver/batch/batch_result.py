"""Result of a batch: arrays with a row for each target, in memory or in the files of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechanik.errors import CannotSave, NotSolved
from mechanik.kernels.state_layout import BATCH_PENDING
from mechanik.solver.batch import batch_store
from mechanik.solver.batch.batch_rows import RowIndices, RowResults
from mechanik.solver.batch.batch_store import BatchMetadata
from mechanik.solver.solution import STATUS_BY_CODE, Status
from mechanik.spatial.array import Array
from mechanik.validation import format_count, read_only


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a batch: `result` contains the finished rows, and the message explains how to resume.

    Args:
        message: text with the number of finished rows, and how to resume.
        result: the unfinished result; give it as `out` to the same call to resume.

    Example:
        >>> def stop(done, total):
        ...     if done:
        ...         raise KeyboardInterrupt
        >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
        >>> targets = np.array([[1.0, 1.0, 0.0], [0.5, 1.2, 0.0]])
        >>> try:
        ...     result = solver.solve_batch(targets, progress=stop, threads=1, chunk=1)
        ... except mk.Interrupted as error:
        ...     result = solver.solve_batch(targets, out=error.result)
        >>> result.success.tolist()
        [True, True]
    """

    def __init__(self, message: str, result: BatchResult) -> None:
        super().__init__(message)
        self.result = result


MAX_LISTED_ROWS = 5
"""Maximum number of rows that an error message lists."""


class BatchResult:
    """Solutions for N targets. Arrays are read-only; those of a folder are memory-mapped.

    Attributes:
        q: configuration of each row, (N, nq); with an invalid target, its start; with an invalid start, the
            configuration of the mechanism. The values of pending rows have no meaning.
        status: index of each row's `Status` in `mechanik.solver.solution.STATUS_BY_CODE`, (N,) int8; 0 is CONVERGED.
        errors: position and rotation error of each objective, (N, objectives, 2), m and rad; NaN with an invalid target
            or start. The values of pending rows have no meaning.
        iterations: iterations over all attempts, (N,) int32.
        joints: name of each entry of q.
        objectives: name of each objective.
        seconds: time spent on the finished rows, s.
        folder: folder of its files, or None.

    `solve_batch`, `open` and `save` create results; the constructor argument `metadata` is internal.

    Example:
        >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
        >>> result = solver.solve_batch(np.array([[1.0, 1.0, 0.0], [0.5, 1.2, 0.0], [3.0, 0.0, 0.0]]))
        >>> result
        <batch of 3 rows: 2 solved>
        >>> result.q.shape, result.rows_with(mk.Status.CLOSEST).tolist()
        ((3, 2), [2])
    """

    def __init__(
        self, q: Array, status: npt.NDArray[np.int8], errors: Array, iterations: npt.NDArray[np.int32],
        metadata: BatchMetadata,
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        self._arrays = q, status, errors, iterations
        self._metadata, self.folder = metadata, folder

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, BatchResult):
            return NotImplemented
        return (
            (self.joints, self.objectives) == (value.joints, value.objectives)
            and all(map(np.array_equal, self._arrays[:2], value._arrays[:2]))
            and np.array_equal(self.errors, value.errors, equal_nan=True)
            and np.array_equal(self.iterations, value.iterations)
        )

    def __hash__(self) -> int:
        return hash((len(self.q), self.joints, self.objectives))

    @staticmethod
    def empty(metadata: BatchMetadata) -> BatchResult:
        """Return a result in memory without finished rows.

        Args:
            metadata: rows, names of joints and objectives, seed and fingerprint of the batch.
        """
        shapes = batch_store.array_shapes(metadata)
        status = np.full(shapes["status"], BATCH_PENDING, dtype=np.int8)
        iterations = np.zeros(shapes["iterations"], dtype=np.int32)
        return BatchResult(np.zeros(shapes["q"]), status, np.full(shapes["errors"], np.nan), iterations, metadata)

    @staticmethod
    def open(folder: str | os.PathLike[str]) -> BatchResult:
        """Open the result in a folder, finished or not; its files are memory-mapped.

        Args:
            folder: folder that a batch was written to.

        Raises:
            FileMissing: if the folder contains no result.
            FormatError: if a file cannot be read.
        """
        path = as_folder(folder)
        metadata = batch_store.read_metadata(path)
        arrays = batch_store.read_arrays(path, metadata)
        return BatchResult(arrays["q"], arrays["status"], arrays["errors"], arrays["iterations"], metadata, path)

    def save(self, folder: str | os.PathLike[str]) -> BatchResult:
        """Write the result to a new or empty folder, and return the result that is stored there.

        Args:
            folder: folder to write to.

        Raises:
            CannotSave: if the folder is not empty, or cannot be written.
        """
        path = as_folder(folder)
        if batch_store.has_batch(path):
            raise CannotSave(
                f"{path} already contains the result of a batch, which is not overwritten; give another folder"
            )
        q, status, errors, iterations = self._arrays
        batch_store.create_files(path, self._metadata)
        writer = batch_store.BatchWriter(path, self._metadata)
        for first_row in range(0, len(self), batch_store.ROWS_PER_WRITE):
            rows = slice(first_row, min(first_row + batch_store.ROWS_PER_WRITE, len(self)))
            codes, iteration_counts = status[rows].astype(np.int64), iterations[rows].astype(np.int64)
            writer.write_rows(
                np.arange(rows.start, rows.stop), RowResults(q[rows], codes, errors[rows], iteration_counts)
            )
            writer.commit()
        writer.close(0.0)
        return BatchResult.open(path)

    # ---- arrays and counts ------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Configuration of each row, (N, nq), read-only.

        With an invalid target, it is the start; with an invalid start, it is the configuration of the mechanism. The
        values of pending rows have no meaning.
        """
        return read_only(self._arrays[0].view())

    @property
    def status(self) -> npt.NDArray[np.int8]:
        """Status code of each row, (N,) int8, read-only; 0 is CONVERGED.

        A code is the index of the `Status` in `mechanik.solver.solution.STATUS_BY_CODE`.
        """
        view = self._arrays[1].view()
        view.flags.writeable = False
        return view

    @property
    def errors(self) -> Array:
        """Position error (m) and rotation error (rad) of each objective in each row, (N, objectives, 2), read-only.

        NaN with an invalid target or start. The values of pending rows have no meaning.
        """
        return read_only(self._arrays[2].view())

    @property
    def iterations(self) -> npt.NDArray[np.int32]:
        """Number of iterations of each row over all attempts, (N,) int32, read-only."""
        view = self._arrays[3].view()
        view.flags.writeable = False
        return view

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Whether each row has the status CONVERGED, (N,)."""
        return np.asarray(self._arrays[1] == 0)

    @property
    def joints(self) -> tuple[str, ...]:
        """Name of each entry of `q`, nq names."""
        return self._metadata.joints

    @property
    def objectives(self) -> tuple[str, ...]:
        """Name of each objective, in the order of `errors`."""
        return self._metadata.objectives

    @property
    def seconds(self) -> float:
        """Time spent on the finished rows, s."""
        return self._metadata.seconds

    @property
    def seed(self) -> int | None:
        """Random seed, drawn from the `rng` of the call; None without `rng`."""
        return self._metadata.seed

    @property
    def count(self) -> int:
        """Number of rows."""
        return self._metadata.rows

    def __len__(self) -> int:
        return self.count

    @property
    def done(self) -> int:
        """Number of finished rows: those whose status is not PENDING."""
        return self.count - self.counts.get(Status.PENDING, 0)

    @property
    def is_finished(self) -> bool:
        """Whether all rows are finished, solved or not."""
        return self.done == self.count

    @property
    def counts(self) -> Mapping[Status, int]:
        """Number of rows by status, the most frequent first."""
        row_counts: dict[Status, int] = {}
        for code, row_count in enumerate(np.bincount(self._arrays[1], minlength=len(STATUS_BY_CODE)).tolist()):
            if row_count:
                row_counts[STATUS_BY_CODE[code]] = row_counts.get(STATUS_BY_CODE[code], 0) + row_count
        return dict(sorted(row_counts.items(), key=lambda item: -item[1]))

    def status_of(self, row: int) -> Status:
        """Return the status of a row."""
        return STATUS_BY_CODE[int(self._arrays[1][row])]

    def rows_with(self, status: Status) -> RowIndices:
        """Return the indices of the rows with a status."""
        codes = [code for code, row_status in enumerate(STATUS_BY_CODE) if row_status is status]
        return np.flatnonzero(np.isin(self._arrays[1], codes))

    # ---- text -------------------------------------------------------------------------------

    def __repr__(self) -> str:
        counts = self.counts
        pending_count = counts.get(Status.PENDING, 0)
        pending_text = f", {pending_count:,} not solved yet" if pending_count else ""
        folder_text = f" in {self.folder}" if self.folder is not None else ""
        return (
            f"<batch of {format_count(self.count, 'row')}{folder_text}: "
            f"{counts.get(Status.CONVERGED, 0):,} solved{pending_text}>"
        )

    def summary(self) -> str:
        """Return a summary of several lines: the number of rows by status, and the speed."""
        counts, finished_count = self.counts, self.done
        solved_count = counts.get(Status.CONVERGED, 0)
        percent_text = f" ({format_percent(solved_count, finished_count)} %)" if finished_count else ""
        speed_text = (
            f", {finished_count / self.seconds:,.0f} rows a second" if self.seconds > 0 and finished_count else ""
        )
        total_text = f"{finished_count:,}" if finished_count == self.count else f"{finished_count:,} of {self.count:,}"
        lines = [f"{solved_count:,} of {total_text} rows solved{percent_text} in {self.seconds:.3g} s{speed_text}"]
        width = len(f"{max(counts.values(), default=0):,}")
        name_width = max((len(status.name) for status in counts), default=0)
        lines += [
            f"  {row_count:>{width},} {status.name:<{max(name_width, 10)}} {status.value}"
            for status, row_count in counts.items()
        ]
        return "\n".join(lines)

    def require(self) -> BatchResult:
        """Return this result if every row has the status CONVERGED.

        Raises:
            NotSolved: if a row is not solved; the message lists the first such rows, and the exception has the result.
        """
        failed_rows = np.flatnonzero(self._arrays[1] != 0)
        if len(failed_rows):
            row_list = ", ".join(
                f"{row} ({self.status_of(row).name})" for row in failed_rows[:MAX_LISTED_ROWS].tolist()
            )
            ellipsis_text = ", ..." if len(failed_rows) > MAX_LISTED_ROWS else ""
            raise NotSolved(
                f"{len(failed_rows):,} of {self.count:,} rows are not solved: row {row_list}{ellipsis_text}", self
            )
        return self

    # ---- internals ---------------------------------------------------------------------------

    def _write_rows(self, rows: RowIndices, results: RowResults) -> None:
        """Write results to the arrays of a result in memory, the statuses last."""
        q, status, errors, iterations = self._arrays
        first_row, last_row = int(rows[0]), int(rows[-1])
        index = slice(first_row, last_row + 1) if last_row + 1 - first_row == len(rows) else rows  # a slice is faster
        q[index], errors[index], iterations[index] = results.q, results.errors, results.iterations
        status[index] = results.code

    def _add_seconds(self, seconds: float) -> None:
        self._metadata = replace(self._metadata, seconds=self._metadata.seconds + seconds)


def format_percent(part: int, total: int) -> str:
    """Format a percentage, up to four digits; "over 99.99" if it rounds to 100 although `part` is below `total`."""
    text = f"{100 * part / total:.4g}"
    return "over 99.99" if text == "100" and part < total else text


def as_folder(folder: str | os.PathLike[str]) -> Path:
    """Return a folder as a path, with `~` expanded.

    Raises:
        CannotSave: if it is not a path.
    """
    try:
        return Path(folder).expanduser()
    except (TypeError, RuntimeError) as error:
        raise CannotSave(f"{folder!r} is not a path of a folder: {error}") from None
