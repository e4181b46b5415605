"""Settings of the whole suite.

Hypothesis: no deadlines, since machines are noisy; the same examples each time where nobody looks on.
Kernels: compiled by Numba unless the environment says otherwise, so that each test runs the same code each time.
Clock: at the end of a run, a sentence if the clock of this machine runs backwards between its cores.
"""

from __future__ import annotations

import os

os.environ.setdefault("MECHANIK_KERNELS", "jit")

import pytest
from find_browser import one_core
from hypothesis import settings

settings.register_profile("mechanik", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("mechanik")

RUNS_BACKWARDS = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Test the clock before any test keeps this process to one core, where it cannot be tested."""
    if not hasattr(config, "workerinput"):
        config.stash[RUNS_BACKWARDS] = one_core().clock_runs_backwards()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(RUNS_BACKWARDS, False):
        terminalreporter.write_line(f"{one_core().PINNED_MESSAGE} This holds for the tests that need a browser.")
