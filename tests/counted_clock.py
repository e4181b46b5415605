"""A clock that advances by a millisecond at each reading, so that results do not depend on the machine."""

from __future__ import annotations

import itertools

import pytest

PLACES = ("time", "mechanik.solver.avoidance", "mechanik.solver.search.chain_search")
"""Where solvers look at it."""


def count_clock_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here to the end of the test."""
    readings = itertools.count()
    for place in PLACES:
        monkeypatch.setattr(f"{place}.perf_counter", lambda: 1e-3 * next(readings))
