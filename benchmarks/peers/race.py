"""Alternating rounds of several libraries, each in its own process, so that noise affects all alike."""

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
TIMEOUT = 300.0
"""s, for a round or for getting ready; a library that takes longer is dropped."""
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")}


@dataclass(frozen=True)
class Entry:
    """A row of the tables: a driver, the Python that runs it, and its variant."""

    name: str
    driver: str
    python: Path
    tolerance: float
    variant: str = ""
    protocols: str = "A near B C"
    is_ours: bool = False


@dataclass(frozen=True)
class Solutions:
    """Solutions and times of all rounds of one entry; see `worker.Run`. `right` is the verdict of the oracle."""

    q: np.ndarray
    times: np.ndarray
    cpu: np.ndarray
    right: np.ndarray


class WorkerFailed(Exception):
    """The process of a library ended or took too long; the message is its last output."""


class Worker:
    """The process of one entry."""

    def __init__(self, entry: Entry, arm: str, protocol: str, budget: float) -> None:
        self.entry = entry
        name = f"{entry.name}_{arm}_{protocol}".replace(" ", "_").replace(",", "")
        self.log, self.result_file = WORK / "logs" / f"{name}.txt", WORK / "solutions" / f"{name}.npz"
        for path in (self.log, self.result_file):
            path.parent.mkdir(parents=True, exist_ok=True)
        arguments = {
            "driver": entry.driver, "arm": arm, "protocol": protocol, "tolerance": entry.tolerance,
            "variant": entry.variant, "budget": budget,
        }  # fmt: skip
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(entry.python), str(HERE / "worker.py"), json.dumps(arguments)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                env=process_environment(entry.is_ours),
            )  # fmt: skip

    def request(self, line: str) -> Any:
        try:
            _stream(self.process.stdin).write(line + "\n")
        except BrokenPipeError:
            raise WorkerFailed(self._last_output()) from None
        return self.reply()

    def reply(self) -> Any:
        stream = _stream(self.process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            if not selector.select(TIMEOUT):
                raise WorkerFailed(f"no reply within {TIMEOUT:.0f} s")
        line = stream.readline()
        if not line:
            raise WorkerFailed(self._last_output())
        return json.loads(line)

    def end(self) -> None:
        """Kill the process: its results are saved, or not needed."""
        self.process.kill()
        self.process.communicate()

    def _last_output(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        output = [line.strip() for line in lines if line.strip()]
        return output[-1][:120] if output else "ended without output"


def race(
    entries: list[Entry], arm: str, protocol: str, rounds: int, budget: float, oracle: Path
) -> dict[str, Solutions | str]:
    """Return the solutions of each entry, or the reason why there are none."""
    outcome: dict[str, Solutions | str] = {}
    workers: list[Worker] = []
    try:
        for entry in entries:
            workers.append(Worker(entry, arm, protocol, budget))
        for step in ["ready", *["round"] * rounds, "save"]:
            print_progress(f"{ARMS[arm].name}, {protocol}: {step}")
            for worker in list(workers):
                try:
                    if step == "ready":
                        worker.reply()
                    else:
                        worker.request(step if step == "round" else f"save {worker.result_file}")
                except WorkerFailed as error:
                    outcome[worker.entry.name] = str(error)
                    workers.remove(worker)
                    worker.end()
    finally:
        for worker in workers:
            worker.end()
    print_progress(f"{ARMS[arm].name}, {protocol}: verifying")
    targets = {"A": "T", "near": "Tnear", "B": "Tpath", "C": "Tb"}[protocol]
    for tolerance in {worker.entry.tolerance for worker in workers}:
        files = [str(worker.result_file) for worker in workers if worker.entry.tolerance == tolerance]
        command = [str(oracle), str(HERE / "oracle.py"), "check", arm, targets, str(tolerance), *files]
        subprocess.run(command, check=True, env=process_environment())
    for worker in workers:
        data = np.load(worker.result_file)
        right = np.load(str(worker.result_file).replace(".npz", ".right.npy"))
        outcome[worker.entry.name] = Solutions(data["q"], data["times"], data["cpu"], right)
    return outcome


def process_environment(is_ours: bool = False) -> dict[str, str]:
    """Environment variables of a process: one thread; PYTHONPATH only for our own."""
    variables = {name: value for name, value in os.environ.items() if is_ours or name != "PYTHONPATH"}
    return {**variables, **ONE_THREAD}


def print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
