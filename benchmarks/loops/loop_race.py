"""Alternating rounds of all libraries on one core, each in its own process, so that noise affects all alike."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from case import Case
from solution_errors import Errors, solution_errors

HERE = Path(__file__).parent
TIMEOUT = 300.0
"""s, for a round or for getting ready; a library that takes longer is dropped."""
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


@dataclass(frozen=True)
class Entry:
    """A row of the tables.

    Attributes:
        command: command of its process; one JSON object is appended.
        settings: further entries of that object.
        cases: names of the cases that it runs; empty: all.
    """

    name: str
    command: tuple[str, ...]
    settings: dict[str, str]
    cases: tuple[str, ...] = ()
    is_ours: bool = False

    def runs(self, case: str) -> bool:
        return not self.cases or case in self.cases


@dataclass(frozen=True)
class Result:
    """Result of one entry in one case.

    Attributes:
        us: processor time, the mean over the ticks that count, each with the best of its rounds.
        cpu_us: processor time of all threads, over all ticks, in the best round.
        missed: number of missed ticks, those that are not timed included.
    """

    us: float
    cpu_us: float
    closure: float
    goal: float
    missed: int
    ticks: int


class WorkerFailed(Exception):
    """The process of a library ended or took too long; the message is its last output."""


class Worker:
    """The process of one entry."""

    def __init__(self, entry: Entry, case: Path, work: Path) -> None:
        self.entry = entry
        stem = f"{entry.name}_{case.stem}".replace(" ", "_").replace(",", "")
        self.log, self.result_file = work / f"{stem}.txt", work / f"{stem}.json"
        arguments = {"case": str(case), "work": str(work), "variant": "", **entry.settings}
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*entry.command, json.dumps(arguments)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                env=process_environment(entry.is_ours),
            )  # fmt: skip

    def request(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
        except BrokenPipeError:
            raise WorkerFailed(self._last_output()) from None
        self.wait()

    def wait(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            if not selector.select(TIMEOUT):
                raise WorkerFailed(f"no reply within {TIMEOUT:.0f} s")
        if not stream.readline():
            raise WorkerFailed(self._last_output())

    def result(self, case: Case) -> Result:
        data = json.loads(self.result_file.read_text(encoding="utf-8"))
        return result(
            case, solution_errors(case, np.array(data["q"], dtype=float)), np.array(data["times"]), data["cpu"]
        )

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _last_output(self) -> str:
        self.process.wait()
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        output = [line.strip() for line in lines if "Error" in line] or [line for line in lines if line.strip()]
        return output[-1][:120] if output else "ended without output"


MISS = 3e-5
"""m or rad: a tick with a larger goal or closure error is missed. All have a tolerance of 1e-5 or less, the original
1e-5 for the sine of half an angle, in single precision."""


def result(case: Case, errors: Errors, times: np.ndarray, cpu: list[float]) -> Result:
    """
    Args:
        times: (rounds, ticks) seconds.
        cpu: (rounds,) seconds.
    """
    us = 1e6 * float(times.min(axis=0)[case.skip :].mean())
    # the error of a missing solution is infinite
    closure, goal = (float(np.nan_to_num(error, nan=np.inf).max()) for error in (errors.closure, errors.goal))
    ticks = times.shape[1]
    return Result(us, 1e6 * min(cpu) / ticks, closure, goal, int(errors.missed(MISS).sum()), ticks)


def race(entries: list[Entry], case: Case, rounds: int, work: Path) -> dict[str, Result | str]:
    """Return the result of each entry, or the reason why there is none."""
    path = work / f"{case.name}.case.json"
    case.save(path)
    outcome: dict[str, Result | str] = {}
    running: list[Worker] = []
    try:
        for entry in entries:  # started one after the other, since compilers need the core alone
            worker = Worker(entry, path, work)
            running.append(worker)
            _try(worker, running, outcome, worker.wait)
        for step in range(rounds):
            print(f"{case.title}: round {step + 1} of {rounds}", file=sys.stderr, flush=True)
            for worker in list(running):
                _try(worker, running, outcome, lambda worker=worker: worker.request("round"))
        for worker in list(running):
            _try(worker, running, outcome, lambda worker=worker: worker.request(f"save {worker.result_file}"))
    finally:
        for worker in running:
            worker.end()
    for worker in running:
        outcome[worker.entry.name] = worker.result(case)
    return {entry.name: outcome[entry.name] for entry in entries}


def _try(worker: Worker, running: list[Worker], outcome: dict[str, Result | str], call: Any) -> None:
    try:
        call()
    except WorkerFailed as error:
        outcome[worker.entry.name] = str(error)
        running.remove(worker)
        worker.end()


def process_environment(is_ours: bool) -> dict[str, str]:
    """Environment variables of a process: one thread; PYTHONPATH only for our own."""
    variables = {name: value for name, value in os.environ.items() if is_ours or name != "PYTHONPATH"}
    return {**variables, **ONE_THREAD}


def take_one_core() -> None:
    """Restrict this process and those that it starts to one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
