"""Execution of a batch: chunks of rows are solved in threads, and results are stored as they arrive."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TextIO

import numpy as np

from mechanik.errors import BatchMismatch, InvalidArgument, LimitsError
from mechanik.kernels.state_layout import BATCH_BAD_START, BATCH_BAD_TARGET, BATCH_PENDING
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.target_validation import as_rng
from mechanik.processor_clock import seconds_since
from mechanik.solver.batch import batch_store as files
from mechanik.solver.batch.batch_result import BatchResult, Interrupted, as_folder
from mechanik.solver.batch.batch_rows import (
    BatchBackend,
    BatchStarts,
    BatchTargets,
    RowNumbers,
    RowResults,
    as_batch_starts,
    as_batch_targets,
)
from mechanik.solver.batch.batch_store import BatchMetadata, fingerprint
from mechanik.spatial.array import ArrayLike
from mechanik.tiers import wait_for_kernels

Progress = Callable[[int, int], object]
"""Function that is called with the number of finished rows and the number of all rows."""
TERMINAL_INTERVAL_S, FILE_INTERVAL_S = 0.1, 10.0
"""s between two progress lines: on a terminal, where the line is overwritten, and in a file."""


class BatchProgressLine:
    """Progress line on stderr: finished rows, rows per second, and the estimated time left."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._rewrites = self._stream.isatty()
        self._began = self._last = time.monotonic()
        self._first = -1

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first < 0:
            self._first = done
        is_over = done == total
        if not is_over and now - self._last < (TERMINAL_INTERVAL_S if self._rewrites else FILE_INTERVAL_S):
            return
        self._last = now
        spent = now - self._began  # 0 or below if the clock is coarse or differs between cores: rate unknown
        rate = (done - self._first) / spent if spent > 0 else 0.0
        speed = f", {rate:,.0f} a second" if spent > 0 else ""
        left = f", {format_duration((total - done) / rate)} left" if rate > 0 and not is_over else ""
        share = 100 * done // total if total else 100
        text = f"{done:,} of {total:,} rows, {share} %{speed}{left}"
        if self._rewrites:
            width = max(20, shutil.get_terminal_size().columns - 1)
            text = f"\r{text[:width]:<{width}}"
        self._stream.write(text + ("\n" if is_over or not self._rewrites else ""))
        self._stream.flush()


def format_duration(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def as_progress(given: bool | Progress | None) -> Progress:
    """Return the progress function: a line on stderr for True, no output for None and False."""
    if callable(given):
        return given
    if given is None or given is False or (given is True and sys.stderr is None):  # pyright: ignore[reportUnnecessaryComparison]
        return _silent
    if given is True:
        return BatchProgressLine()
    raise InvalidArgument(f"progress is True, or a function of the rows done and of all rows, not {given!r}")


def _silent(done: int, total: int) -> None:
    """Ignore progress."""


CHUNKS_PER_THREAD, MIN_CHUNK_DIVISOR = 4, 16
"""Minimum number of chunks for each thread, so that threads end together, and the smallest chunk as a fraction of the
backend's chunk.
"""
COMMIT_INTERVAL_S = 1.0
"""s: minimum time between two commits. A killed process loses at most this, and the chunks in progress."""
COMMIT_SHARE = 0.1
"""Maximum share of the time that is spent on commits; a slow disk has fewer commits."""
ROWS_BEFORE_RELEASE = 1 << 16
"""Rows that are read from files before their pages are released: about 10 MB."""
PLAIN_ROW_S = 0.003
"""s: time of a row without compiled kernels: 2 ms (an arm of seven joints) to 12 ms."""
WAIT_INTERVAL_S = 0.2
"""s: longest wait of the main thread, so that Ctrl-C works on every system."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchRequest:
    """Problem of a batch, without its targets.

    Attributes:
        mechanism: the mechanism.
        objectives: the objectives.
        settings: all other data that solutions depend on: limits, weights, method, options; see `fingerprint`.
        fingerprint_cache: digests of mechanism and settings; to be cleared when they change.
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
        BatchMismatch: if `out` holds the result of another batch.
        Interrupted: at Ctrl-C; its `result` holds the finished rows.
        LimitsError: if `threads` or `chunk` is not a whole number of 1 or more.
    """
    mechanism = request.mechanism
    threads = usable_cores() if threads is None else _whole(threads, "threads")
    chunk = None if chunk is None else _whole(chunk, "chunk")
    starts = as_batch_starts(mechanism.space, q0, mechanism.q)
    wanted = as_batch_targets(request.objectives, targets, starts.count, mechanism.nq)
    seed = None if rng is None else int(as_rng(rng).integers(2**63))
    about = BatchMetadata(
        wanted.count, mechanism.space.q_names, objective_names(request.objectives), seed,
        fingerprint(mechanism, request.objectives, request.settings, wanted, starts, request.fingerprint_cache),
    )  # fmt: skip
    told = as_progress(progress)
    result = _result(out, about)
    if result.is_finished:
        return result
    plain_seconds = PLAIN_ROW_S * (wanted.count - result.done)
    wait_for_kernels(*backend.kernels, what=f"a batch of {wanted.count:,}", plain_seconds=plain_seconds)
    if chunk is None:  # several chunks for each thread, so that threads end together
        each = backend.chunk if threads == 1 else wanted.count // (CHUNKS_PER_THREAD * threads)
        chunk = min(backend.chunk, max(backend.chunk // MIN_CHUNK_DIVISOR, each))
    threads = min(threads, -(-wanted.count // chunk))
    return _Run(backend, wanted, starts, result, told).run(threads, chunk)


def objective_names(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Return a unique name for each objective: its own or its class, followed by its index where not unique."""
    own = [one.name or f"{type(one).__name__} {k}" for k, one in enumerate(objectives)]
    return tuple(name if own.count(name) == 1 else f"{name} {k}" for k, name in enumerate(own))


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _whole(number: object, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 1:
        raise LimitsError(f"{what} must be a whole number of 1 or more, not {number!r}")
    return int(number)


def _result(out: object, about: BatchMetadata) -> BatchResult:
    """Return the result to write to: a new one, or the one to resume."""
    if out is None:
        return BatchResult.empty(about)
    if isinstance(out, BatchResult) and out.folder is None:
        _check(out._metadata, about, "out")
        return out
    if not isinstance(out, BatchResult | str | os.PathLike):
        raise InvalidArgument(f"out is a folder, or the result of a batch to go on with, not {out!r}")
    place = as_folder(out.folder if isinstance(out, BatchResult) and out.folder is not None else out)  # type: ignore[arg-type]
    if files.has_batch(place):
        begun = files.read_metadata(place)
        _check(begun, about, str(place))
        files.create_missing_files(place, begun)
    else:
        files.create_files(place, about)
    return BatchResult.open(place)


def _check(begun: BatchMetadata, about: BatchMetadata, where: str) -> None:
    begun.check_same_batch(about, where)
    if about.seed is not None and about.seed != begun.seed:
        raise BatchMismatch(f"{where} was begun with another rng; without one it goes on with its own")


class _Run:
    """Run of a batch over the rows that are left."""

    def __init__(
        self, engine: BatchBackend, targets: BatchTargets, starts: BatchStarts, result: BatchResult, told: Progress
    ) -> None:
        self._engine, self._targets, self._starts, self._told = engine, targets, starts, told
        self._result, self._seed = result, result.seed
        self._done, self._count = result.done, result.count
        folder = result.folder
        self._writer = None if folder is None else files.BatchWriter(folder, result._metadata)
        self._put: Callable[[RowNumbers, RowResults], None] = result._put if self._writer is None else self._writer.put
        self._committed, self._commit_takes, self._read = time.monotonic(), 0.0, 0

    def run(self, threads: int, chunk: int) -> BatchResult:
        folder, began = self._result.folder, time.perf_counter()
        stopped = False
        try:
            self._all(threads, chunk)
        except KeyboardInterrupt:
            stopped = True
        except Exception as error:
            if folder is not None:
                error.add_note(f"what was done before is kept in {folder}; the same call goes on from there")
            raise
        finally:
            self._end(seconds_since(began))
        result = self._result if folder is None else BatchResult.open(folder)
        if stopped:
            so_far = f"{result.done:,} of {len(result):,} rows are done"
            kept = "are in `result` of this exception: the same call with it as out="
            where = kept if folder is None else f"are in {folder}: the same call"
            raise Interrupted(f"{so_far} and {where} goes on from there", result)
        return result

    def _all(self, threads: int, chunk: int) -> None:
        self._told(self._done, self._count)
        chunks = self._left(chunk)
        if threads > 1:
            self._in_threads(chunks, threads)
            return
        for rows in chunks:
            self._solve(rows)
            self._tick(rows)

    def _left(self, chunk: int) -> Iterator[RowNumbers]:
        """Yield the indices of the pending rows in order, chunk by chunk."""
        status = self._result.status
        for first in range(0, self._count, chunk):
            pending = np.flatnonzero(status[first : first + chunk] == BATCH_PENDING)
            if len(pending):
                yield pending + first

    def _in_threads(self, chunks: Iterator[RowNumbers], threads: int) -> None:
        with ThreadPoolExecutor(threads, thread_name_prefix="mechanik-batch") as pool:
            flying: dict[Future[None], RowNumbers] = {}
            try:
                for rows in chunks:
                    flying[pool.submit(self._solve, rows)] = rows
                    while len(flying) >= 2 * threads:
                        self._land(flying)
                while flying:
                    self._land(flying)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)  # each thread finishes its present chunk
                raise

    def _land(self, flying: dict[Future[None], RowNumbers]) -> None:
        """Wait for a chunk, and process the finished chunks."""
        over, _ = wait(flying, timeout=WAIT_INTERVAL_S, return_when=FIRST_COMPLETED)
        for one in over:
            one.result()
            self._tick(flying.pop(one))

    def _solve(self, rows: RowNumbers) -> None:
        """Solve rows, in any thread."""
        engine = self._engine
        wanted, sound = self._targets.take(rows, engine.checks_poses)
        q0, can_start = self._starts.take(rows)
        q = np.tile(self._starts.default_q, (len(rows), 1)) if q0 is None else q0.copy()
        q[~can_start] = self._starts.default_q
        found = RowResults.unsolved(q, len(wanted.columns))
        found.code[~sound] = BATCH_BAD_TARGET
        found.code[~can_start] = BATCH_BAD_START
        good = sound & can_start
        if good.all():
            engine.solve_rows(wanted, q0, self._seed, found)
        elif good.any():
            some = found.take(good)
            engine.solve_rows(wanted.subset(good), None if q0 is None else q0[good], self._seed, some)
            found.put(good, some)
        self._put(rows, found)

    def _tick(self, rows: RowNumbers) -> None:
        """Count finished rows, release pages, commit and report progress; in the main thread."""
        self._done += len(rows)
        self._read += len(rows)
        if self._read >= ROWS_BEFORE_RELEASE:
            self._targets.release()
            self._starts.release()
            self._read = 0
        now = time.monotonic()
        if now - self._committed > max(COMMIT_INTERVAL_S, self._commit_takes / COMMIT_SHARE):
            self._commit()
            self._committed = time.monotonic()
            self._commit_takes = self._committed - now
        self._told(self._done, self._count)

    def _commit(self) -> None:
        if self._writer is not None:
            self._writer.commit()

    def _end(self, seconds: float) -> None:
        """Commit all solved rows and store the time spent."""
        self._commit()
        if self._writer is None:
            self._result._spent(seconds)
        else:
            self._writer.close(seconds)
