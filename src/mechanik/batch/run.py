"""A batch from its arguments to its result: chunks of rows, handed to threads, kept as they come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from mechanik.batch import folder as files
from mechanik.batch.about import About
from mechanik.batch.columns import Rows
from mechanik.batch.engine import Answers, Engine
from mechanik.batch.fingerprint import fingerprint
from mechanik.batch.interrupted import Interrupted
from mechanik.batch.progress import Progress, as_progress
from mechanik.batch.result import BatchResult, as_folder
from mechanik.batch.starts import Starts, as_starts
from mechanik.batch.targets import Targets, as_targets
from mechanik.errors import LimitsError, OtherBatch, WrongKind
from mechanik.kernels.solver_state import BAD_START_ROW, BAD_TARGET_ROW, PENDING_ROW
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.door import as_generator
from mechanik.spatial.array import ArrayLike
from mechanik.stopwatch import seconds_since
from mechanik.tiers import wait_for

CHUNKS_EACH, SMALLEST = 4, 16
"""For each thread at least, in chunks of no less than that part of what is usual."""
BETWEEN_COMMITS_S = 1.0
"""At least: what a killed process loses at most, besides its chunks."""
COMMIT_SHARE = 0.1
"""Of the time, at most: a slow disk is asked less often."""
ROWS_KEPT = 1 << 16
"""Read from files before their pages are given back: some 10 MB."""
PLAIN_ROW_S = 0.003
"""What a row takes in plain Python: 2 ms (an arm of seven joints) to 12."""
LOOK_S = 0.2
"""How long the main thread sleeps at most, so that Ctrl-C is heard on every system."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a batch is about, besides its targets.

    Attributes:
        settings: whatever else answers depend on: limits, weights, method, options; see `fingerprint`.
        kept: what was found out of mechanism and settings; to be emptied when they change.
    """

    mechanism: Mechanism
    objectives: tuple[Objective, ...]
    settings: object = None
    kept: dict[str, str] = field(default_factory=dict[str, str])


def run_batch(
    asked: Asked,
    engine: Engine,
    targets: Any,
    q0: ArrayLike | None = None,
    *,
    threads: int | None = None,
    progress: bool | Progress | None = None,
    out: str | os.PathLike[str] | BatchResult | None = None,
    rng: np.random.Generator | None = None,
    chunk: int | None = None,
) -> BatchResult:
    """See `Solver.solve_batch`."""
    mechanism = asked.mechanism
    threads = usable_cores() if threads is None else _whole(threads, "threads")
    chunk = None if chunk is None else _whole(chunk, "chunk")
    starts = as_starts(mechanism.space, q0, mechanism.q)
    wanted = as_targets(asked.objectives, targets, starts.count, mechanism.nq)
    seed = None if rng is None else int(as_generator(rng).integers(2**63))
    about = About(
        wanted.count, mechanism.space.q_names, objective_names(asked.objectives), seed,
        fingerprint(mechanism, asked.objectives, asked.settings, wanted, starts, asked.kept),
    )  # fmt: skip
    told = as_progress(progress)
    result = _result(out, about)
    if result.is_finished:
        return result
    plain_seconds = PLAIN_ROW_S * (wanted.count - result.done)
    wait_for(*engine.kernels, what=f"a batch of {wanted.count:,}", plain_seconds=plain_seconds)
    if chunk is None:  # some for each thread, so that all end together
        each = engine.chunk if threads == 1 else wanted.count // (CHUNKS_EACH * threads)
        chunk = min(engine.chunk, max(engine.chunk // SMALLEST, each))
    threads = min(threads, -(-wanted.count // chunk))
    return _Run(engine, wanted, starts, result, told).run(threads, chunk)


def objective_names(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """One for each: its own if no other has it, else with its number."""
    own = [one.name or f"{type(one).__name__} {k}" for k, one in enumerate(objectives)]
    return tuple(name if own.count(name) == 1 else f"{name} {k}" for k, name in enumerate(own))


def usable_cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _whole(number: object, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 1:
        raise LimitsError(f"{what} must be a whole number of 1 or more, not {number!r}")
    return int(number)


def _result(out: object, about: About) -> BatchResult:
    """Where answers go: a new result, or one that is gone on with."""
    if out is None:
        return BatchResult.empty(about)
    if isinstance(out, BatchResult) and out.folder is None:
        _check(out._about, about, "out")
        return out
    if not isinstance(out, BatchResult | str | os.PathLike):
        raise WrongKind(f"out is a folder, or the result of a batch to go on with, not {out!r}")
    place = as_folder(out.folder if isinstance(out, BatchResult) and out.folder is not None else out)  # type: ignore[arg-type]
    if files.is_begun(place):
        begun = files.read_about(place)
        _check(begun, about, str(place))
        files.finish_making(place, begun)
    else:
        files.make(place, about)
    return BatchResult.open(place)


def _check(begun: About, about: About, where: str) -> None:
    begun.check(about, where)
    if about.seed is not None and about.seed != begun.seed:
        raise OtherBatch(f"{where} was begun with another rng; without one it goes on with its own")


class _Run:
    """One run, from the rows that are left to the last."""

    def __init__(self, engine: Engine, targets: Targets, starts: Starts, result: BatchResult, told: Progress) -> None:
        self._engine, self._targets, self._starts, self._told = engine, targets, starts, told
        self._result, self._seed = result, result.seed
        self._done, self._count = result.done, result.count
        folder = result.folder
        self._writer = None if folder is None else files.Writer(folder, result._about)
        self._put: Callable[[Rows, Answers], None] = result._put if self._writer is None else self._writer.put
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

    def _left(self, chunk: int) -> Iterator[Rows]:
        """Numbers of the rows to be solved, in order, some at a time."""
        status = self._result.status
        for first in range(0, self._count, chunk):
            pending = np.flatnonzero(status[first : first + chunk] == PENDING_ROW)
            if len(pending):
                yield pending + first

    def _in_threads(self, chunks: Iterator[Rows], threads: int) -> None:
        with ThreadPoolExecutor(threads, thread_name_prefix="mechanik-batch") as pool:
            flying: dict[Future[None], Rows] = {}
            try:
                for rows in chunks:
                    flying[pool.submit(self._solve, rows)] = rows
                    while len(flying) >= 2 * threads:
                        self._land(flying)
                while flying:
                    self._land(flying)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)  # each finishes the chunk that it has begun
                raise

    def _land(self, flying: dict[Future[None], Rows]) -> None:
        """Wait for a chunk, and see to those that are done."""
        over, _ = wait(flying, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        for one in over:
            one.result()
            self._tick(flying.pop(one))

    def _solve(self, rows: Rows) -> None:
        """In any thread: some rows from targets to answers."""
        engine = self._engine
        wanted, sound = self._targets.take(rows, engine.checks_poses)
        q0, can_start = self._starts.take(rows)
        q = np.tile(self._starts.home, (len(rows), 1)) if q0 is None else q0.copy()
        q[~can_start] = self._starts.home
        found = Answers.unsolved(q, len(wanted.columns))
        found.code[~sound] = BAD_TARGET_ROW
        found.code[~can_start] = BAD_START_ROW
        good = sound & can_start
        if good.all():
            engine.solve_rows(wanted, q0, self._seed, found)
        elif good.any():
            some = found.take(good)
            engine.solve_rows(wanted.some(good), None if q0 is None else q0[good], self._seed, some)
            found.put(good, some)
        self._put(rows, found)

    def _tick(self, rows: Rows) -> None:
        """In the main thread: some rows are done."""
        self._done += len(rows)
        self._read += len(rows)
        if self._read >= ROWS_KEPT:
            self._targets.release()
            self._starts.release()
            self._read = 0
        now = time.monotonic()
        if now - self._committed > max(BETWEEN_COMMITS_S, self._commit_takes / COMMIT_SHARE):
            self._commit()
            self._committed = time.monotonic()
            self._commit_takes = self._committed - now
        self._told(self._done, self._count)

    def _commit(self) -> None:
        if self._writer is not None:
            self._writer.commit()

    def _end(self, seconds: float) -> None:
        """Everything that was solved is kept."""
        self._commit()
        if self._writer is None:
            self._result._spent(seconds)
        else:
            self._writer.close(seconds)
