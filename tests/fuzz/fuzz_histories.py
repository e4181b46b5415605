"""Whether a used solver answers like a fresh one: the same calls, in any order and from several threads."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from fuzz_cases import Call, FuzzCase, Interruption
from fuzz_checks import Fault, Tally

import mechanik as mk
from mechanik.errors import MechanikError

MAX_THREADS = 4
MAX_ROWS = 12
"""Largest number of rows of a batch. Rows are solved alike, and more of them would take half of the time."""
DIFFERENT = "used differs from fresh"


def check_history(case: FuzzCase) -> Tally:
    """Run the calls of a case by one solver from several threads, and each by a solver of its own; compare all bits."""
    tally = Tally(Counter())
    if not case.objectives:
        return tally
    try:
        used = case.make_solver()
    except MechanikError as error:
        tally.counts[f"rejected solver: {type(error).__name__}"] += 1
        return tally
    threads = 1 + case.seed % MAX_THREADS
    calls = [_first_rows(case, call) for call in case.calls if "max_seconds" not in call.options]  # not repeatable
    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(lambda call: _answer(case, used, call), calls))
    for k, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        expected = _answer(case, case.make_solver(), call)
        if difference := _difference(answer, expected):
            tally.faults.append((case.seed, Fault(DIFFERENT, f"{call.function} on {threads} threads: {difference}", k)))
    tally.counts.update({"histories": 1, "calls": len(calls), f"method {case.method}": 1})
    tally.counts[f"{threads} threads"] += 1
    return tally


def _first_rows(case: FuzzCase, call: Call) -> Call:
    """Return a call whose batch has at most MAX_ROWS rows."""
    if call.function != "batch":
        return call
    column_count = len(case.objectives) + ("rest" in case.solver_options)
    columns = [call.targets] if column_count == 1 or call.targets is None else call.targets
    columns = [None if column is None else column[:MAX_ROWS] for column in columns]
    q0 = call.q0[:MAX_ROWS] if call.q0 is not None and call.q0.ndim == 2 else call.q0
    return replace(call, targets=columns[0] if len(columns) == 1 else columns, q0=q0)


def _answer(case: FuzzCase, solver: mk.Solver, call: Call) -> dict[str, Any]:
    """Return all that is defined about an answer, or about the error that it ended in."""
    try:
        answer = case.run(solver, call)
    except MechanikError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    except Interruption:
        return {"error": "interrupted by a callback"}
    names = {
        "batch": ("q", "status", "errors", "iterations"),
        "all": ("q",),
    }.get(call.function, ("q", "status", "success", "iterations", "attempts", "history", "message"))
    return {name: getattr(answer, name) for name in names}


def _difference(answer: dict[str, Any], expected: dict[str, Any]) -> str:
    """Return what differs between two answers; empty if nothing does."""
    if answer.keys() != expected.keys():
        return f"{answer} instead of {expected}"
    for name, value in answer.items():
        if isinstance(value, np.ndarray):
            fresh_value = expected[name]
            if value.tobytes() != fresh_value.tobytes():
                differs = ~((value == fresh_value) | (np.isnan(value) & np.isnan(fresh_value)))
                where = np.argwhere(differs)[:3].tolist()
                return f"{name} at {where}: {value.tolist()} instead of {fresh_value.tolist()}"
        elif value != expected[name]:
            return f"{name} is {value!r} instead of {expected[name]!r}"
    return ""
