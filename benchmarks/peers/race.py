"""Rounds of several libraries that alternate, each in its own process, so that a noisy machine treats all alike."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from arms import ARMS, WORK

HERE = Path(__file__).parent
PATIENCE = 300.0
"""Seconds that a round, or getting ready, may take before a library is left out."""
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")}


@dataclass(frozen=True)
class Entry:
    """A row of the tables: a driver, the Python that runs it, and what of it."""

    name: str
    driver: str
    python: Path
    tolerance: float
    variant: str = ""
    protocols: str = "A near B C"
    is_ours: bool = False


@dataclass(frozen=True)
class Answers:
    """What came out of the rounds of one entry; see `worker.SolverRun`. `right` is the oracle's word."""

    q: np.ndarray
    times: np.ndarray
    cpu: np.ndarray
    right: np.ndarray


class Lost(Exception):
    """A library's process ended, or took too long; what it said last."""


class Worker:
    """The process of one entry."""

    def __init__(self, entry: Entry, arm: str, protocol: str, budget: float) -> None:
        self.entry = entry
        name = f"{entry.name}_{arm}_{protocol}".replace(" ", "_").replace(",", "")
        self.log, self.answers = WORK / "logs" / f"{name}.txt", WORK / "answers" / f"{name}.npz"
        for path in (self.log, self.answers):
            path.parent.mkdir(parents=True, exist_ok=True)
        asked = {
            "driver": entry.driver, "arm": arm, "protocol": protocol, "tolerance": entry.tolerance,
            "variant": entry.variant, "budget": budget,
        }  # fmt: skip
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(entry.python), str(HERE / "worker.py"), json.dumps(asked)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                env=surroundings(entry.is_ours),
            )  # fmt: skip

    def ask(self, line: str) -> Any:
        try:
            _stream(self.process.stdin).write(line + "\n")
        except BrokenPipeError:
            raise Lost(self._last_words()) from None
        return self.answer()

    def answer(self) -> Any:
        stream = _stream(self.process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise Lost(f"no answer within {PATIENCE:.0f} s")
        line = stream.readline()
        if not line:
            raise Lost(self._last_words())
        return json.loads(line)

    def end(self) -> None:
        """At once: what it has to say is saved, or not wanted any more."""
        self.process.kill()
        self.process.communicate()

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1][:120] if said else "ended without a word"


def race(
    entries: list[Entry], arm: str, protocol: str, rounds: int, budget: float, oracle: Path
) -> dict[str, Answers | str]:
    """By the names of entries: what they answered, or why they could not."""
    outcome: dict[str, Answers | str] = {}
    workers: list[Worker] = []
    try:
        for entry in entries:
            workers.append(Worker(entry, arm, protocol, budget))
        for step in ["ready", *["round"] * rounds, "save"]:
            say(f"{ARMS[arm].name}, {protocol}: {step}")
            for worker in list(workers):
                try:
                    if step == "ready":
                        worker.answer()
                    else:
                        worker.ask(step if step == "round" else f"save {worker.answers}")
                except Lost as lost:
                    outcome[worker.entry.name] = str(lost)
                    workers.remove(worker)
                    worker.end()
    finally:
        for worker in workers:
            worker.end()
    say(f"{ARMS[arm].name}, {protocol}: verifying")
    targets = {"A": "T", "near": "Tnear", "B": "Tpath", "C": "Tb"}[protocol]
    for tolerance in {worker.entry.tolerance for worker in workers}:
        files = [str(worker.answers) for worker in workers if worker.entry.tolerance == tolerance]
        command = [str(oracle), str(HERE / "oracle.py"), "check", arm, targets, str(tolerance), *files]
        subprocess.run(command, check=True, env=surroundings())
    for worker in workers:
        kept = np.load(worker.answers)
        right = np.load(str(worker.answers).replace(".npz", ".right.npy"))
        outcome[worker.entry.name] = Answers(kept["q"], kept["times"], kept["cpu"], right)
    return outcome


def surroundings(is_ours: bool = False) -> dict[str, str]:
    """The variables of a process: one thread; and what leads Python to our packages is not for peers."""
    kept = {name: value for name, value in os.environ.items() if is_ours or name != "PYTHONPATH"}
    return {**kept, **ONE_THREAD}


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
