"""`mechanik warmup`: compile all kernels now, with a progress bar, and show the state of every kernel module."""

from __future__ import annotations

import time
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mechanik.cli import EXIT_INTERRUPTED, EXIT_OK
from mechanik.cli.output import add_row, console, make_table, print_note, print_out, print_table
from mechanik.tiers import is_cache_private, kernel_states, warm_up
from mechanik.tiers.availability import failure_summary
from mechanik.tiers.code_cache import cache_folder
from mechanik.tiers.compile_progress import CompileMonitor, ProgressLine
from mechanik.validation import format_count

MAX_SHOWN_NAMES = 3
"""Largest number of module names in the progress bar."""


class CompileProgressBar:
    """Progress bar of `warm_up` on a terminal; its length shows the finished share of the expected compile time."""

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
        self._remaining_seconds: dict[str, float] = {}
        self._module_seconds: dict[str, float] = {}
        self._start_time = time.monotonic()

    def begin(self, seconds: dict[str, float]) -> None:
        """Show the bar; `seconds` is the expected compile time of each module."""
        self._module_seconds, self._remaining_seconds, self._start_time = dict(seconds), dict(seconds), time.monotonic()
        if seconds:
            self._progress.update(self._task, total=sum(seconds.values()), visible=True)
            self._update()
            self._progress.start()

    def finish(self, module: str) -> None:
        """Count a module as compiled."""
        self._remaining_seconds.pop(module, None)
        self._update()

    def show(self) -> None:
        """Do nothing: `rich` redraws the bar by itself."""

    def end(self) -> None:
        """Remove the bar and print a summary."""
        if not self._module_seconds:
            return
        self._progress.stop()
        ready_count, module_count = len(self._module_seconds) - len(self._remaining_seconds), len(self._module_seconds)
        elapsed_seconds = max(0.0, time.monotonic() - self._start_time)
        self._out.print(f"{ready_count} of {module_count} kernel modules compiled in {elapsed_seconds:.0f} s")

    def _update(self) -> None:
        finished_seconds = sum(self._module_seconds.values()) - sum(self._remaining_seconds.values())
        ready_count, module_count = len(self._module_seconds) - len(self._remaining_seconds), len(self._module_seconds)
        names = ", ".join(list(self._remaining_seconds)[:MAX_SHOWN_NAMES]) + (
            ", ..." if len(self._remaining_seconds) > MAX_SHOWN_NAMES else ""
        )
        self._progress.update(
            self._task, completed=finished_seconds, ready=ready_count, count=module_count, names=names
        )


def make_compile_progress() -> CompileMonitor:
    """Return a progress bar if stderr is a terminal, else a `ProgressLine`."""
    return CompileProgressBar() if console(stderr=True).is_terminal else ProgressLine()


AGE_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
"""Seconds and name of each unit of an age."""


def print_kernels() -> None:
    """Print tier, state and age of each kernel module."""
    states = kernel_states()
    table = make_table(["kernels", "tier", "state", "age"], [])
    for kernel in states:
        add_row(
            table,
            [kernel.module, str(kernel.tier), kernel.state, "" if kernel.age is None else _format_age(kernel.age)],
        )
    print_table(table)
    ready_count = sum(kernel.state == "ready" for kernel in states)
    folder = cache_folder()
    cache_note = "" if folder is None else f"; compiled kernels are cached in {folder}"
    print_out(f"{ready_count} of {len(states)} modules ready{cache_note}")
    for kernel in states:
        if kernel.state == "failed" and kernel.reason:
            print_note(f"{kernel.module} cannot be compiled: {failure_summary(kernel.reason)}")
    for state, effect in (("not compiled", "solves are slower"), ("missing", "nothing can be solved")):
        for reason in dict.fromkeys(kernel.reason for kernel in states if kernel.state == state and kernel.reason):
            print_note(f"{effect}: {reason}")


def kernel_data() -> dict[str, Any]:
    """Return the cache folder, and tier, state, age (s) and reason of each kernel module, as JSON data."""
    folder = cache_folder()
    modules = [
        {
            "module": kernel.module,
            "tier": str(kernel.tier),
            "state": kernel.state,
            "age": kernel.age,
            "reason": kernel.reason,
        }
        for kernel in kernel_states()
    ]
    return {"cache": None if folder is None else str(folder), "modules": modules}


def _format_age(seconds: float) -> str:
    unit_seconds, unit = next((age_unit for age_unit in AGE_UNITS if seconds >= age_unit[0]), AGE_UNITS[-1])
    return f"{seconds / unit_seconds:.0f} {unit}"


def warmup() -> int:
    """Compile all kernels now, in parallel, so that no kernel runs in plain Python later.

    Run this command once on a machine if Mechanik was installed from source; wheels contain compiled kernels. Ctrl-C
    ends the command, but the compiler continues in the background if the cache folder can be written.

    For example:

        mechanik warmup
        mechanik info --kernels
    """
    try:
        warm_up(make_compile_progress())
    except KeyboardInterrupt:
        print_note(_interruption_note())
        return EXIT_INTERRUPTED
    print_kernels()
    return EXIT_OK


def _interruption_note() -> str:
    compiling_count = sum(kernel.state == "compiling" for kernel in kernel_states())
    if not compiling_count:
        return "Interrupted: no kernel is being compiled in the background."
    if is_cache_private():
        return "Interrupted: compilation ends with this command, because the cache folder cannot be written."
    return (
        f"Interrupted: the compiler continues with {format_count(compiling_count, 'kernel module')} in the background; "
        "`mechanik info --kernels` shows the progress."
    )
