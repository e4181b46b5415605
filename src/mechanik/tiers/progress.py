"""The progress line of a program that waits for the compiler."""

from __future__ import annotations

import logging
import sys
import time

log = logging.getLogger("mechanik")


class CompileProgress:
    """Says on stderr what is compiled and how far it is: one line that changes on a terminal, two lines elsewhere.

    Args:
        seconds: the modules that are compiled, with the seconds that each is expected to take.
        what: what waits for them.
    """

    def __init__(self, seconds: dict[str, float], what: str = "") -> None:
        self._left = dict(seconds)
        self._count = len(seconds)
        self._what = f" for {what}" if what else ""
        self._begun = time.monotonic()
        self._is_terminal = bool(sys.stderr) and sys.stderr.isatty()
        self._shown = 0.0

    def __enter__(self) -> CompileProgress:
        expected = sum(self._left.values())
        if self._count and not self._is_terminal:
            _print(f"mechanik: compiling {self._count} kernel modules{self._what}, about {expected:.0f} s of one core")
        return self

    def finish(self, module: str) -> None:
        """A module is ready."""
        self._left.pop(module, None)
        self.show(is_new=True)

    def show(self, is_new: bool = False) -> None:
        """Update the line, at most five times a second."""
        now = time.monotonic()
        if not self._is_terminal or not self._count or not (is_new or now - self._shown > 0.2):
            return
        self._shown = now
        names = ", ".join(list(self._left)[:3]) + (", ..." if len(self._left) > 3 else "")
        done = self._count - len(self._left)
        text = f"compiling kernels{self._what}, {done} of {self._count} ready, {now - self._begun:.0f} s: {names}"
        sys.stderr.write(f"\r\x1b[Kmechanik: {text}"[:200])
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if not self._count:
            return
        end = f"mechanik: {self._count - len(self._left)} of {self._count} kernel modules compiled in "
        end += f"{max(0.0, time.monotonic() - self._begun):.0f} s"
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
        _print(end)


def _print(text: str) -> None:
    log.info(text)
    if sys.stderr:  # a program without a console has none
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
