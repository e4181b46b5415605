"""Many cases in several processes: resumable, with progress, a table at the end, and small cases for all faults."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path

from fuzz_cases import FuzzCase
from fuzz_checks import CATEGORIES, Fault, Tally, check_case
from fuzz_histories import DIFFERENT, check_history
from fuzz_shrinking import shrink

CASES_PER_CHUNK = 20
PROCESS_DIED = "process died"
OUTSIDE_A_CALL = "outside a call"
"""Start of the description of a fault that is no answer of a solver, such as a case that cannot be made."""
SHRUNK_PER_CATEGORY = 5
FUNCTIONS: dict[str, tuple[Callable[[FuzzCase], Tally], str, tuple[str, ...]]] = {
    "solves": (check_case, "solves", (*CATEGORIES, PROCESS_DIED)),
    "histories": (check_history, "histories", (DIFFERENT, PROCESS_DIED)),
}
"""By name: the check of a case, what is counted, and the categories of faults."""


def run_chunk(
    function: str, first_seed: int, running_prefix: str
) -> tuple[Counter[str], list[tuple[int, Fault]], float, int]:
    """Check the cases of a chunk.

    Args:
        function: a key of FUNCTIONS.
        first_seed: of the first case of the chunk.
        running_prefix: start of the path of the file with the seed of the running case.

    Returns:
        Counts, faults, and time (s) and seed of the slowest case.
    """
    warnings.simplefilter("error")  # a warning of NumPy is a fault, too
    tally, slowest, running = Tally(), (0.0, first_seed), Path(f"{running_prefix}{os.getpid()}")
    for seed in range(first_seed, first_seed + CASES_PER_CHUNK):
        running.write_text(str(seed))
        start = time.process_time()
        tally.add(check_seed(function, seed))
        slowest = max(slowest, (time.process_time() - start, seed))
    running.unlink(missing_ok=True)
    return tally.counts, tally.faults, *slowest


def check_seed(function: str, seed: int) -> Tally:
    """Check the case of a seed. A case that cannot be made is a fault, too."""
    try:
        return FUNCTIONS[function][0](FuzzCase(seed))
    except Exception as error:
        return Tally(Counter(), [(seed, Fault("raw exception", f"{OUTSIDE_A_CALL}: {type(error).__name__}: {error}"))])


class Campaign:
    """A run of many cases, whose state is a file.

    Args:
        function: a key of FUNCTIONS.
        seed: of the first case.
        folder: of the state and of the faults.
    """

    def __init__(self, function: str, seed: int, folder: Path) -> None:
        self.function, self.seed, self.folder = function, seed, folder
        self.check, self.unit, self.categories = FUNCTIONS[function]
        self.state_file = folder / f"{function}-{seed}.json"
        self.running_prefix = f"running-{function}-{seed}-"  # other campaigns may run in the same folder
        self.tally, self.finished, self.seconds, self.slowest = Tally(), set[int](), 0.0, (0.0, seed)
        folder.mkdir(parents=True, exist_ok=True)
        if self.state_file.exists():
            self._load()

    def run(self, count: int, workers: int) -> None:
        """Check cases until `count` solves or histories are done; Ctrl-C ends the run, which can be resumed."""
        self.report_progress(count)
        start, before = time.monotonic(), self.seconds
        try:
            while self.tally.counts[self.unit] < count:
                try:
                    for _ in self._run_pool(count, workers):
                        self.seconds = before + time.monotonic() - start
                        self.save()
                        self.report_progress(count)
                except BrokenProcessPool:
                    self._record_dead_processes()
        except KeyboardInterrupt:
            print(f"\nstopped; the same command continues from {self.state_file}", file=sys.stderr)
        self.save()

    def _run_pool(self, count: int, workers: int) -> Iterator[None]:
        chunks = (k for k in range(sys.maxsize) if k not in self.finished)
        with ProcessPoolExecutor(workers) as pool:
            pending: dict[Future, int] = {}
            try:
                while self.tally.counts[self.unit] < count:
                    while len(pending) < 2 * workers:
                        k = next(chunks)
                        seed = self.seed + k * CASES_PER_CHUNK
                        pending[pool.submit(run_chunk, self.function, seed, str(self.folder / self.running_prefix))] = k
                    for future in wait(pending, return_when=FIRST_COMPLETED).done:
                        counts, faults, seconds, seed = future.result()
                        self.finished.add(pending.pop(future))
                        self.tally.add(Tally(counts, faults))
                        self.slowest = max(self.slowest, (seconds, seed))
                        yield
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _record_dead_processes(self) -> None:
        """Record the cases that ran while a process died, and go on after them."""
        for file in self.folder.glob(f"{self.running_prefix}*"):
            seed = int(file.read_text() or self.seed)
            self.tally.faults.append((seed, Fault(PROCESS_DIED, "the process ended while the case ran")))
            self.finished.add((seed - self.seed) // CASES_PER_CHUNK)
            file.unlink(missing_ok=True)

    def shrink_faults(self) -> None:
        """Write the smallest case found for some faults of each category, one file each.

        Faults outside calls have no file, since their case may not exist.
        """
        done: Counter[str] = Counter()
        for seed, fault in self.tally.faults:
            file = self.folder / f"{fault.category.replace(' ', '-')}-{seed}.txt"
            if fault.category == PROCESS_DIED or fault.detail.startswith(OUTSIDE_A_CALL):
                continue
            if done[fault.category] >= SHRUNK_PER_CATEGORY:
                continue
            done[fault.category] += 1
            if file.exists():
                continue
            category = fault.category
            small = shrink(seed, lambda case, category=category: category in self._categories_of(case))
            faults = [item for _, item in self.check(small.make()).faults]
            details = [f"{item.category} in call {item.call}: {item.detail}" for item in faults]
            text = [small.command(self.function), "", *details, "", small.make().describe(), ""]
            file.write_text("\n".join(text))
            print(file, file=sys.stderr)

    def _categories_of(self, case: FuzzCase) -> set[str]:
        return {fault.category for _, fault in self.check(case).faults}

    # ---- reports ----------------------------------------------------------------------------

    def report_progress(self, count: int) -> None:
        done = self.tally.counts[self.unit]
        rate = done / self.seconds if self.seconds else 0.0
        line = f"{done:,} of {count:,} {self.unit}, {rate:.0f} a second, {len(self.tally.faults)} faults"
        print(f"\r{line:70}", end="", file=sys.stderr, flush=True)

    def table(self) -> str:
        """Return counts by kind, and faults by category with the seeds of the first ones."""
        counts = self.tally.counts
        lines = [f"seeds from {self.seed}: {counts[self.unit]:,} {self.unit} in {self.seconds:.0f} s"]
        lines += [f"  {counts[name]:>9,}  {name}" for name in sorted(counts) if name != self.unit]
        lines.append(f"slowest case: {self.slowest[0]:.1f} s of processor time, seed {self.slowest[1]}")
        by_category: dict[str, list[int]] = {name: [] for name in self.categories}
        for seed, fault in self.tally.faults:
            by_category.setdefault(fault.category, []).append(seed)
        for name, seeds in by_category.items():
            examples = f": seeds {', '.join(map(str, dict.fromkeys(seeds[:20])))}" if seeds else ""
            lines.append(f"  {len(seeds):>9,}  {name}{examples}")
        return "\n".join(lines)

    # ---- state ------------------------------------------------------------------------------

    def save(self) -> None:
        first = next(k for k in range(len(self.finished) + 1) if k not in self.finished)
        state = {
            "counts": dict(self.tally.counts),
            "faults": [[seed, asdict(fault)] for seed, fault in self.tally.faults],
            "finished_before": first,
            "finished": sorted(k for k in self.finished if k > first),
            "seconds": self.seconds,
            "slowest": self.slowest,
        }
        unfinished_file = self.state_file.with_suffix(".part")
        unfinished_file.write_text(json.dumps(state))
        unfinished_file.replace(self.state_file)

    def _load(self) -> None:
        state = json.loads(self.state_file.read_text())
        self.tally = Tally(Counter(state["counts"]), [(seed, Fault(**fault)) for seed, fault in state["faults"]])
        self.finished = {*range(state["finished_before"]), *state["finished"]}
        self.seconds, self.slowest = state["seconds"], tuple(state["slowest"])
