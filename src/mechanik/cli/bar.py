"""A bar on stderr for work of several stages, with its rate and the time that is left; only where somebody looks on."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from mechanik.cli.output import console


class Bar:
    """For `with`: `begin` a stage, and call the bar with how many rows are done, and of how many if that is known."""

    def __init__(self, quiet: bool = False) -> None:
        out = console(stderr=True)
        out.soft_wrap = False
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            _Counted(),
            _Rate(),
            TimeRemainingColumn(compact=True),
            console=out,
            transient=True,
            disable=quiet or not out.is_terminal,
        )
        self._task = self._progress.add_task("", total=None, visible=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def begin(self, label: str, total: int | None = None) -> None:
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(label, total=total)

    def __call__(self, done: int, total: int | None = None) -> None:
        if total is None:
            self._progress.update(self._task, completed=done)
        else:
            self._progress.update(self._task, completed=done, total=total)


class _Counted(ProgressColumn):
    """`12,000/100,000`."""

    def render(self, task: Task) -> Text:
        of = "" if task.total is None else f"/{int(task.total):,}"
        return Text(f"{int(task.completed):,}{of}")


class _Rate(ProgressColumn):
    """Rows a second, of late."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")
