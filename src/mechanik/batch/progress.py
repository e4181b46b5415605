"""How far a batch has come, for those who look on."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from mechanik.errors import WrongKind

Progress = Callable[[int, int], object]
"""Called with how many rows are done, and how many there are."""
ON_A_TERMINAL_S, IN_A_FILE_S = 0.1, 10.0
"""Between two lines: one that is written over itself, or one below the other."""


class Line:
    """One line on stderr: rows done, rows a second, and the time that is left if it goes on as it went."""

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
        if not is_over and now - self._last < (ON_A_TERMINAL_S if self._rewrites else IN_A_FILE_S):
            return
        self._last = now
        spent = now - self._began  # 0 or below where the clock is coarse or its cores disagree: then no rate is known
        rate = (done - self._first) / spent if spent > 0 else 0.0
        speed = f", {rate:,.0f} a second" if spent > 0 else ""
        left = f", {clock((total - done) / rate)} left" if rate > 0 and not is_over else ""
        share = 100 * done // total if total else 100
        text = f"{done:,} of {total:,} rows, {share} %{speed}{left}"
        if self._rewrites:
            width = max(20, shutil.get_terminal_size().columns - 1)
            text = f"\r{text[:width]:<{width}}"
        self._stream.write(text + ("\n" if is_over or not self._rewrites else ""))
        self._stream.flush()


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def as_progress(given: bool | Progress | None) -> Progress:
    """What to call: True is a line on stderr, None and False nothing."""
    if callable(given):
        return given
    if given is None or given is False or (given is True and sys.stderr is None):  # pyright: ignore[reportUnnecessaryComparison]
        return _silent
    if given is True:
        return Line()
    raise WrongKind(f"progress is True, or a function of the rows done and of all rows, not {given!r}")


def _silent(done: int, total: int) -> None:
    """Nobody looks on."""
