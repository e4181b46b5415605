"""A bar on stderr for the compiler: how many modules are ready, and how much longer it may take."""

from __future__ import annotations

import time

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mechanik.cli.output import console
from mechanik.tiers.progress import CompileProgress
from mechanik.tiers.progress import Progress as TiersProgress

NAMES_SHOWN = 3


class KernelBar:
    """Shows how far `warm_up` is. The length of the bar is the work that is done, of all that is expected."""

    def __init__(self) -> None:
        out = console(stderr=True)
        out.soft_wrap = False
        self._out = out
        self._progress = Progress(
            TextColumn("compiling kernels"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[ready]} of {task.fields[count]} ready"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[names]}", markup=False),
            console=out,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, ready=0, count=0, names="", visible=False)
        self._left: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._begun = time.monotonic()

    def begin(self, seconds: dict[str, float]) -> None:
        self._seconds, self._left, self._begun = dict(seconds), dict(seconds), time.monotonic()
        if seconds:
            self._progress.update(self._task, total=sum(seconds.values()), visible=True)
            self._update()
            self._progress.start()

    def finish(self, module: str) -> None:
        self._left.pop(module, None)
        self._update()

    def show(self) -> None:
        """The bar draws itself."""

    def end(self) -> None:
        if not self._seconds:
            return
        self._progress.stop()
        ready, count = len(self._seconds) - len(self._left), len(self._seconds)
        took = max(0.0, time.monotonic() - self._begun)
        self._out.print(f"{ready} of {count} kernel modules compiled in {took:.0f} s")

    def _update(self) -> None:
        done = sum(self._seconds.values()) - sum(self._left.values())
        ready, count = len(self._seconds) - len(self._left), len(self._seconds)
        names = ", ".join(list(self._left)[:NAMES_SHOWN]) + (", ..." if len(self._left) > NAMES_SHOWN else "")
        self._progress.update(self._task, completed=done, ready=ready, count=count, names=names)


def kernel_progress() -> TiersProgress:
    """A bar on a terminal, lines elsewhere."""
    return KernelBar() if console(stderr=True).is_terminal else CompileProgress()
