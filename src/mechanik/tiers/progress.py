"""What a program that waits for the compiler shows."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from typing import Protocol

log = logging.getLogger("mechanik")


class Progress(Protocol):
    """Is told how far the compiler is, by a program that waits for it."""

    def begin(self, seconds: dict[str, float]) -> None:
        """These modules are compiled from now on, each with the seconds of one core that it is expected to take."""
        ...

    def finish(self, module: str) -> None:
        """A module is ready."""
        ...

    def show(self) -> None:
        """Called about ten times a second."""
        ...

    def end(self) -> None:
        """All are ready, or waiting was given up."""
        ...


class CompileProgress:
    """Says on stderr what is compiled and how far it is: one line that changes on a terminal, two lines elsewhere.

    Args:
        what: what waits for the compiler.
    """

    def __init__(self, what: str = "") -> None:
        self._left: dict[str, float] = {}
        self._count = 0
        self._what = f" for {what}" if what else ""
        self._begun = time.monotonic()
        self._is_terminal = is_terminal()
        self._shown = 0.0

    def begin(self, seconds: dict[str, float]) -> None:
        self._left, self._count, self._begun = dict(seconds), len(seconds), time.monotonic()
        expected = sum(seconds.values())
        if self._count and not self._is_terminal:
            _print(f"mechanik: compiling {self._count} kernel modules{self._what}, about {expected:.0f} s of one core")

    def finish(self, module: str) -> None:
        self._left.pop(module, None)
        self.show(is_new=True)

    def show(self, is_new: bool = False) -> None:
        """Update the line, at most five times a second."""
        now = time.monotonic()
        if not self._is_terminal or not self._count or not (is_new or now - self._shown > 0.2):
            return
        self._shown = now
        names = ", ".join(list(self._left)[:3]) + (", ..." if len(self._left) > 3 else "")
        done, seconds = self._count - len(self._left), max(0.0, now - self._begun)
        text = f"compiling kernels{self._what}, {done} of {self._count} ready, {seconds:.0f} s: {names}"
        write(f"\r\x1b[Kmechanik: {text}"[:200])

    def end(self) -> None:
        if not self._count:
            return
        end = f"mechanik: {self._count - len(self._left)} of {self._count} kernel modules compiled in "
        end += f"{max(0.0, time.monotonic() - self._begun):.0f} s"
        if self._is_terminal:
            write("\r\x1b[K")
        _print(end)


def is_terminal() -> bool:
    """Whether somebody sees what is written to stderr. A program without a console has none, or a closed one."""
    with suppress(AttributeError, OSError, ValueError):
        return sys.stderr.isatty()
    return False


def write(text: str) -> None:
    """Write to stderr, if that can be."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _print(text: str) -> None:
    log.info(text)
    write(text + "\n")
