"""Execution of a batch: chunks of rows are solved in threads, and results are stored as they arrive."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TextIO

import numpy as np

from mechanik.errors import BatchMismatch, InvalidArgument, LimitsError
from mechanik.kernels.state_layout import BATCH_BAD_START, BATCH_BAD_TARGET, BATCH_PENDING
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.processor_clock import seconds_since
from mechanik.solver.batch import batch_store
from mechanik.solver.batch.batch_result import BatchResult, Interrupted, as_folder
from mechanik.solver.batch.batch_rows import (
    BatchBackend,
    BatchStarts,
    BatchTargets,
    RowIndices,
    RowResults,
    as_batch_starts,
    as_batch_targets,
)
from mechanik.solver.batch.batch_store import BatchMetadata, fingerprint
from mechanik.solver.solution import objective_names
from mechanik.spatial.array import ArrayLike
from mechanik.tiers import wait_for_kernels
from mechanik.validation import as_rng

Progress = Callable[[int, int], object]
"""Function that is called with the number of finished rows and the number of all rows."""
TERMINAL_INTERVAL_S, FILE_INTERVAL_S = 0.1, 10.0
"""Minimum time between two updates of the progress line, s: on a terminal, and elsewhere."""


class BatchProgressLine:
    """Progress line on a stream (default: stderr): finished rows, rows per second, and the estimated time left.

    On a terminal, the line is overwritten; elsewhere each update is a new line.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._start_time = self._last_time = time.monotonic()
        self._initial_count = -1

    def __call__(self, finished_count: int, row_count: int) -> None:
        now = time.monotonic()
        if self._initial_count < 0:
            self._initial_count = finished_count
        is_finished = finished_count == row_count
        if not is_finished and now - self._last_time < (TERMINAL_INTERVAL_S if self._is_terminal else FILE_INTERVAL_S):
            return
        self._last_time = now
        elapsed_seconds = now - self._start_time  # not positive if the clock is coarse or differs between cores
        rate = (finished_count - self._initial_count) / elapsed_seconds if elapsed_seconds > 0 else 0.0
        speed_text = f", {rate:,.0f} a second" if elapsed_seconds > 0 else ""
        remaining_text = (
            f", {format_duration((row_count - finished_count) / rate)} left" if rate > 0 and not is_finished else ""
        )
        percent = 100 * finished_count // row_count if row_count else 100
        text = f"{finished_count:,} of {row_count:,} rows, {percent} %{speed_text}{remaining_text}"
        if self._is_terminal:
            width = max(20, shutil.get_terminal_size().columns - 1)
            text = f"\r{text[:width]:<{width}}"
        self._stream.write(text + ("\n" if is_finished or not self._is_terminal else ""))
        self._stream.flush()


def format_duration(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds."""
    minutes, remaining_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remaining_seconds:02}" if hours else f"{minutes}:{remaining_seconds:02}"


def as_progress(progress: bool | Progress | None) -> Progress:
    """Return the progress function: a given function, a line on stderr for True, no output for None and False."""
    if callable(progress):
        return progress
    if progress is None or progress is False or (progress is True and sys.stderr is None):  # pyright: ignore[reportUnnecessaryComparison]
        return _ignore_progress
    if progress is True:
        return BatchProgressLine()
    raise InvalidArgument(
        f"progress must be True, False, None, or a function of the numbers of finished rows and of all rows, "
        f"not {progress!r}"
    )


def _ignore_progress(finished_count: int, row_count: int) -> None:
    """Do nothing; the progress function without output."""


CHUNKS_PER_THREAD, MIN_CHUNK_DIVISOR = 4, 16
"""Desired number of chunks for each thread, so that all threads end at about the same time. There may be more or fewer
chunks, since a chunk has at most the backend's default number of rows, and at least this default divided by
`MIN_CHUNK_DIVISOR`.
"""
COMMIT_INTERVAL_S = 1.0
"""Minimum time between two commits, s, except before the last one. A commit marks rows as finished in the files of the
result. If the process is killed, the rows since the last commit and the chunks in progress are lost.
"""
COMMIT_SHARE = 0.1
"""Maximum ratio of the duration of a commit to the time until the next one, so a slow disk has fewer commits."""
ROWS_BEFORE_RELEASE = 1 << 16
"""Number of rows that are read from memory-mapped files before their memory is released: about 10 MB."""
UNCOMPILED_ROW_S = 0.003
"""Estimated time for a row without compiled kernels, s; measured: 2 ms (an arm of seven joints) to 12 ms."""
WAIT_INTERVAL_S = 0.2
"""Longest wait of the calling thread for a chunk, s; short enough for Ctrl-C to work on every system."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchRequest:
    """Problem of a batch, without its targets.

    Attributes:
        mechanism: the mechanism.
        objectives: the objectives.
        settings: all other data that solutions depend on, such as limits, method and options; see `fingerprint`.
        fingerprint_cache: digests of mechanism and settings; the caller clears it when they change.
    """

    mechanism: Mechanism
    objectives: tuple[Objective, ...]
    settings: object = None
    fingerprint_cache: dict[str, str] = field(default_factory=dict[str, str])


def run_batch(
    request: BatchRequest,
    backend: BatchBackend,
    targets: Any,
    q0: ArrayLike | None = None,
    *,
    threads: int | None = None,
    progress: bool | Progress | None = None,
    out: str | os.PathLike[str] | BatchResult | None = None,
    rng: np.random.Generator | None = None,
    chunk: int | None = None,
) -> BatchResult:
    """Solve a batch; see `Solver.solve_batch`.

    Args:
        request: mechanism, objectives and settings.
        backend: solves rows.
        targets, q0, threads, progress, out, rng, chunk: as in `Solver.solve_batch`.

    Returns:
        The result.

    Raises:
        BatchMismatch: if `out` contains the result of another batch.
        Interrupted: at Ctrl-C; its `result` contains the finished rows.
        LimitsError: if `threads` or `chunk` is not an integer of 1 or more.
    """
    mechanism = request.mechanism
    threads = usable_cores() if threads is None else _positive_integer(threads, "threads")
    chunk = None if chunk is None else _positive_integer(chunk, "chunk")
    starts = as_batch_starts(mechanism.space, q0, mechanism.q)
    batch_targets = as_batch_targets(request.objectives, targets, starts.count, mechanism.nq)
    seed = None if rng is None else int(as_rng(rng).integers(2**63))
    metadata = BatchMetadata(
        batch_targets.count, mechanism.space.q_names, objective_names(request.objectives), seed,
        fingerprint(mechanism, request.objectives, request.settings, batch_targets, starts, request.fingerprint_cache),
    )  # fmt: skip
    report_progress = as_progress(progress)
    result = _open_result(out, metadata)
    if result.is_finished:
        return result
    uncompiled_seconds = UNCOMPILED_ROW_S * (batch_targets.count - result.done)
    wait_for_kernels(*backend.kernels, what=f"a batch of {batch_targets.count:,}", plain_seconds=uncompiled_seconds)
    backend_rows = backend.chunk_rows
    if chunk is None:
        balanced_rows = backend_rows if threads == 1 else batch_targets.count // (CHUNKS_PER_THREAD * threads)
        chunk = min(backend_rows, max(backend_rows // MIN_CHUNK_DIVISOR, balanced_rows))
    threads = min(threads, -(-batch_targets.count // chunk))
    return _BatchRun(backend, batch_targets, starts, result, report_progress).run(threads, chunk)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _positive_integer(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise LimitsError(f"{name} must be an integer of 1 or more, not {value!r}")
    return int(value)


def _open_result(out: object, metadata: BatchMetadata) -> BatchResult:
    """Return the result to write to: a new one, or the one to resume, which may already be finished."""
    if out is None:
        return BatchResult.empty(metadata)
    if isinstance(out, BatchResult) and out.folder is None:
        _check_same_batch(out._metadata, metadata, "out")
        return out
    if not isinstance(out, BatchResult | str | os.PathLike):
        raise InvalidArgument(f"out must be a folder or the result of a batch to resume, not {out!r}")
    path = as_folder(out.folder if isinstance(out, BatchResult) and out.folder is not None else out)  # type: ignore[arg-type]
    if batch_store.has_batch(path):
        stored_metadata = batch_store.read_metadata(path)
        _check_same_batch(stored_metadata, metadata, str(path))
        batch_store.create_missing_files(path, stored_metadata)
    else:
        batch_store.create_files(path, metadata)
    return BatchResult.open(path)


def _check_same_batch(stored_metadata: BatchMetadata, metadata: BatchMetadata, location: str) -> None:
    stored_metadata.check_same_batch(metadata, location)
    if metadata.seed is not None and metadata.seed != stored_metadata.seed:
        raise BatchMismatch(f"{location} was started with another rng; omit rng to resume with the stored seed")


class _BatchRun:
    """Run of a batch over all pending rows."""

    def __init__(
        self,
        backend: BatchBackend,
        targets: BatchTargets,
        starts: BatchStarts,
        result: BatchResult,
        report_progress: Progress,
    ) -> None:
        self._backend, self._targets, self._starts, self._report_progress = backend, targets, starts, report_progress
        self._result, self._seed = result, result.seed
        self._finished_count, self._row_count = result.done, result.count
        folder = result.folder
        self._writer = None if folder is None else batch_store.BatchWriter(folder, result._metadata)
        self._write_rows: Callable[[RowIndices, RowResults], None] = (
            result._write_rows if self._writer is None else self._writer.write_rows
        )
        self._last_commit, self._commit_seconds, self._unreleased_row_count = time.monotonic(), 0.0, 0

    def run(self, threads: int, chunk_rows: int) -> BatchResult:
        folder, start_time = self._result.folder, time.perf_counter()
        is_interrupted = False
        try:
            self._solve_all(threads, chunk_rows)
        except KeyboardInterrupt:
            is_interrupted = True
        except Exception as error:
            if folder is not None:
                error.add_note(f"finished rows are in {folder}; repeat the call to resume")
            raise
        finally:
            self._finish(seconds_since(start_time))
        result = self._result if folder is None else BatchResult.open(folder)
        if is_interrupted:
            count_text = f"{result.done:,} of {len(result):,} rows are finished"
            if folder is None:
                location = "in `result` of this exception; to resume, repeat the call with this result as out"
            else:
                location = f"in {folder}; to resume, repeat the call"
            raise Interrupted(f"{count_text} and are {location}", result)
        return result

    def _solve_all(self, threads: int, chunk_rows: int) -> None:
        self._report_progress(self._finished_count, self._row_count)
        chunks = self._pending_chunks(chunk_rows)
        if threads > 1:
            self._solve_in_threads(chunks, threads)
            return
        for rows in chunks:
            self._solve(rows)
            self._record_chunk(rows)

    def _pending_chunks(self, chunk_rows: int) -> Iterator[RowIndices]:
        """Yield the indices of the pending rows in order, chunk by chunk."""
        status = self._result.status
        for first_row in range(0, self._row_count, chunk_rows):
            pending_rows = np.flatnonzero(status[first_row : first_row + chunk_rows] == BATCH_PENDING)
            if len(pending_rows):
                yield pending_rows + first_row

    def _solve_in_threads(self, chunks: Iterator[RowIndices], threads: int) -> None:
        with ThreadPoolExecutor(threads, thread_name_prefix="mechanik-batch") as pool:
            futures: dict[Future[None], RowIndices] = {}
            try:
                for rows in chunks:
                    futures[pool.submit(self._solve, rows)] = rows
                    while len(futures) >= 2 * threads:
                        self._collect_finished(futures)
                while futures:
                    self._collect_finished(futures)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)  # each thread finishes its present chunk
                raise

    def _collect_finished(self, futures: dict[Future[None], RowIndices]) -> None:
        """Wait until a chunk is finished or `WAIT_INTERVAL_S` has passed, and record all finished chunks."""
        finished_futures, _ = wait(futures, timeout=WAIT_INTERVAL_S, return_when=FIRST_COMPLETED)
        for future in finished_futures:
            future.result()
            self._record_chunk(futures.pop(future))

    def _solve(self, rows: RowIndices) -> None:
        """Solve rows and write their results; any thread may call this."""
        backend = self._backend
        targets, has_valid_target = self._targets.read(rows, backend.checks_poses)
        q0, has_valid_start = self._starts.read(rows)
        q = np.tile(self._starts.default_q, (len(rows), 1)) if q0 is None else q0.copy()
        q[~has_valid_start] = self._starts.default_q
        results = RowResults.pending(q, len(targets.columns))
        results.code[~has_valid_target] = BATCH_BAD_TARGET
        results.code[~has_valid_start] = BATCH_BAD_START
        is_valid = has_valid_target & has_valid_start
        if is_valid.all():
            backend.solve_rows(targets, q0, self._seed, results)
        elif is_valid.any():
            valid_results = results.subset(is_valid)
            backend.solve_rows(
                targets.subset(is_valid), None if q0 is None else q0[is_valid], self._seed, valid_results
            )
            results.write_subset(is_valid, valid_results)
        self._write_rows(rows, results)

    def _record_chunk(self, rows: RowIndices) -> None:
        """Count finished rows, release memory, commit, and report progress; only the calling thread does this."""
        self._finished_count += len(rows)
        self._unreleased_row_count += len(rows)
        if self._unreleased_row_count >= ROWS_BEFORE_RELEASE:
            self._targets.release()
            self._starts.release()
            self._unreleased_row_count = 0
        now = time.monotonic()
        if now - self._last_commit > max(COMMIT_INTERVAL_S, self._commit_seconds / COMMIT_SHARE):
            self._commit()
            self._last_commit = time.monotonic()
            self._commit_seconds = self._last_commit - now
        self._report_progress(self._finished_count, self._row_count)

    def _commit(self) -> None:
        if self._writer is not None:
            self._writer.commit()

    def _finish(self, seconds: float) -> None:
        """Commit all finished rows and store the time spent."""
        self._commit()
        if self._writer is None:
            self._result._add_seconds(seconds)
        else:
            self._writer.close(seconds)
