"""Rounds of all contestants that alternate on one core, each in its own process, so that noise treats all alike."""

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
from judge import Errors, judge

HERE = Path(__file__).parent
PATIENCE = 300.0
"""Seconds that a round, or getting ready, may take before a contestant is left out."""
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


@dataclass(frozen=True)
class Entry:
    """A row of the tables.

    Attributes:
        command: what starts its process; one JSON object follows.
        settings: what that object has besides the case.
        cases: names of those that it takes part in; none: in all.
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
    """Of one entry in one case.

    Attributes:
        us: processor time, the mean over the ticks that count, each with the best of its rounds.
        cpu_us: processor time of all threads, over all ticks, in the best round.
        missed: of all ticks, also those that are not timed.
    """

    us: float
    cpu_us: float
    closure: float
    goal: float
    missed: int
    ticks: int


class Lost(Exception):
    """A contestant's process ended, or took too long; what it said last."""


class Contestant:
    """The process of one entry."""

    def __init__(self, entry: Entry, case: Path, work: Path) -> None:
        self.entry = entry
        stem = f"{entry.name}_{case.stem}".replace(" ", "_").replace(",", "")
        self.log, self.answers = work / f"{stem}.txt", work / f"{stem}.json"
        asked = {"case": str(case), "work": str(work), "variant": "", **entry.settings}
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*entry.command, json.dumps(asked)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                env=surroundings(entry.is_ours),
            )  # fmt: skip

    def ask(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
        except BrokenPipeError:
            raise Lost(self._last_words()) from None
        self.wait()

    def wait(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise Lost(f"no answer within {PATIENCE:.0f} s")
        if not stream.readline():
            raise Lost(self._last_words())

    def result(self, case: Case) -> Result:
        kept = json.loads(self.answers.read_text(encoding="utf-8"))
        return result(case, judge(case, np.array(kept["q"], dtype=float)), np.array(kept["times"]), kept["cpu"])

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _last_words(self) -> str:
        self.process.wait()
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line.strip() for line in lines if "Error" in line] or [line for line in lines if line.strip()]
        return said[-1][:120] if said else "ended without a word"


MISS = 3e-5
"""m or rad: a tick whose goal or loop is off by more is missed. All are asked for 1e-5 at least, the original to 1e-5
of half an angle's sine, in single precision."""


def result(case: Case, errors: Errors, times: np.ndarray, cpu: list[float]) -> Result:
    """
    Args:
        times: (rounds, ticks) seconds.
        cpu: (rounds,) seconds.
    """
    us = 1e6 * float(times.min(axis=0)[case.skip :].mean())
    # no answer is as far off as can be
    closure, goal = (float(np.nan_to_num(error, nan=np.inf).max()) for error in (errors.closure, errors.goal))
    ticks = times.shape[1]
    return Result(us, 1e6 * min(cpu) / ticks, closure, goal, int(errors.missed(MISS).sum()), ticks)


def contest(entries: list[Entry], case: Case, rounds: int, work: Path) -> dict[str, Result | str]:
    """By the names of entries: what came out, or why nothing did."""
    path = work / f"{case.name}.case.json"
    case.save(path)
    outcome: dict[str, Result | str] = {}
    running: list[Contestant] = []
    try:
        for entry in entries:  # ready one after the other, since compilers and caches want the core alone
            one = Contestant(entry, path, work)
            running.append(one)
            _try(one, running, outcome, one.wait)
        for step in range(rounds):
            print(f"{case.title}: round {step + 1} of {rounds}", file=sys.stderr, flush=True)
            for one in list(running):
                _try(one, running, outcome, lambda one=one: one.ask("round"))
        for one in list(running):
            _try(one, running, outcome, lambda one=one: one.ask(f"save {one.answers}"))
    finally:
        for one in running:
            one.end()
    for one in running:
        outcome[one.entry.name] = one.result(case)
    return {entry.name: outcome[entry.name] for entry in entries}


def _try(one: Contestant, running: list[Contestant], outcome: dict[str, Result | str], call: Any) -> None:
    try:
        call()
    except Lost as lost:
        outcome[one.entry.name] = str(lost)
        running.remove(one)
        one.end()


def surroundings(is_ours: bool) -> dict[str, str]:
    """The variables of a process: one thread; and what leads Python to our packages is not for others."""
    kept = {name: value for name, value in os.environ.items() if is_ours or name != "PYTHONPATH"}
    return {**kept, **ONE_THREAD}


def take_one_core() -> None:
    """For this process and all that it starts from now on."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
