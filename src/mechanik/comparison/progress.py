"""A bar on stderr while a comparison runs."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

Progress = Callable[[int, int, str], None]
"""Called with how many cells are done, how many there are, and which one comes next ("" at the end)."""
WIDTH = 24


class Bar:
    """One line that is written over itself, with the time that is left if it goes on as it went."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._began = time.monotonic()

    def __call__(self, done: int, total: int, label: str) -> None:
        share = done / total if total else 1.0
        spent = max(0.0, time.monotonic() - self._began)
        left = f"{clock(spent / share - spent)} left" if 0.0 < share < 1.0 else clock(spent)
        filled = round(WIDTH * share)
        text = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{total} {left}  {label}"
        width = max(20, shutil.get_terminal_size().columns - 1)
        self._stream.write(f"\r{text[:width]:<{width}}" + ("\n" if not label else ""))
        self._stream.flush()


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def as_progress(given: bool | Progress | None) -> Progress:
    """What to call: True is a bar, False nothing, None a bar where somebody may look on."""
    if callable(given):
        return given
    shown = sys.stderr is not None and sys.stderr.isatty() if given is None else given  # pyright: ignore[reportUnnecessaryComparison]
    return Bar() if shown else _silent


def _silent(done: int, total: int, label: str) -> None:
    """Nobody looks on."""
