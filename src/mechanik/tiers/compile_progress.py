"""Display of the progress while kernels are compiled: the protocol of monitors, and a progress line on stderr."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from typing import Protocol

from mechanik.validation import format_count

log = logging.getLogger("mechanik")


class CompileMonitor(Protocol):
    """Protocol of objects that show the progress while a program waits for compiled kernels; see `warm_up`.

    Example:
        >>> class Names:
        ...     def begin(self, seconds): print("to compile:", sorted(seconds))
        ...     def finish(self, module): print("compiled:", module)
        ...     def show(self): pass
        ...     def end(self): print("end")
        >>> monitor: mk.tiers.CompileMonitor = Names()
        >>> monitor.begin({"forward": 3.0})
        to compile: ['forward']
    """

    def begin(self, seconds: dict[str, float]) -> None:
        """Called at the start with the kernel modules to compile and the expected processor time of each, s."""
        ...

    def finish(self, module: str) -> None:
        """Called when a kernel module is ready."""
        ...

    def show(self) -> None:
        """Called about ten times per second to refresh the display."""
        ...

    def end(self) -> None:
        """Called when all modules are ready, or when waiting ends with an error."""
        ...


class ProgressLine:
    """A progress display on stderr: a line that is updated on a terminal; a first and a last line otherwise.

    Args:
        work: the work that needs the kernels, for the text of the line.
    """

    def __init__(self, work: str = "") -> None:
        self._remaining_modules: dict[str, float] = {}
        self._module_count = 0
        self._work_label = f" for {work}" if work else ""
        self._start_time = time.monotonic()
        self._is_terminal = is_terminal()
        self._last_shown_time = 0.0

    def begin(self, seconds: dict[str, float]) -> None:
        self._remaining_modules, self._module_count, self._start_time = dict(seconds), len(seconds), time.monotonic()
        expected_seconds = sum(seconds.values())
        if self._module_count and not self._is_terminal:
            modules = f"{format_count(self._module_count, 'kernel module')}{self._work_label}"
            _print(f"mechanik: compiling {modules}, about {expected_seconds:.0f} s of processor time")

    def finish(self, module: str) -> None:
        self._remaining_modules.pop(module, None)
        self.show(has_finished=True)

    def show(self, has_finished: bool = False) -> None:
        """Update the line, at most five times per second unless a module has just finished."""
        now = time.monotonic()
        if not self._is_terminal or not self._module_count or not (has_finished or now - self._last_shown_time > 0.2):
            return
        self._last_shown_time = now
        names = ", ".join(list(self._remaining_modules)[:3]) + (", ..." if len(self._remaining_modules) > 3 else "")
        ready_count, seconds = self._module_count - len(self._remaining_modules), max(0.0, now - self._start_time)
        counts = f"{ready_count} of {self._module_count} ready"
        text = f"compiling kernels{self._work_label}, {counts}, {seconds:.0f} s: {names}"
        write_stderr(f"\r\x1b[Kmechanik: {text}"[:200])

    def end(self) -> None:
        if not self._module_count:
            return
        ready_count = self._module_count - len(self._remaining_modules)
        text = f"mechanik: {ready_count} of {format_count(self._module_count, 'kernel module')} compiled in "
        text += f"{max(0.0, time.monotonic() - self._start_time):.0f} s"
        if self._is_terminal:
            write_stderr("\r\x1b[K")
        _print(text)


def is_terminal() -> bool:
    """Return whether stderr is a terminal; in a program without a console, stderr may be missing or closed."""
    with suppress(AttributeError, OSError, ValueError):
        return sys.stderr.isatty()
    return False


def write_stderr(text: str) -> None:
    """Write to stderr and ignore errors of a missing or closed stream."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _print(text: str) -> None:
    log.info(text)
    write_stderr(text + "\n")
