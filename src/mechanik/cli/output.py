"""Output of the command line: tables, JSON, messages on stderr, and a progress bar.

Tables are never cut, neither in a pipe nor in a narrow terminal. The progress bar appears only on a terminal.
"""

from __future__ import annotations

import io
import math
import sys
import textwrap
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from mechanik.formats.json.writer import format_json

MAX_TABLE_WIDTH = 100_000
"""Width in characters that is larger than every table, for measuring tables without a limit."""


def escape_unprintable() -> None:
    """Escape characters that the encoding of stdout or stderr cannot show, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def console(stderr: bool = False) -> Console:
    """Return a console for plain text on stdout or stderr."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_out(text: str = "", style: str = "") -> None:
    """Print a line of the result on stdout."""
    console().print(text, style=style or None)


def print_note(text: str, style: str = "yellow") -> None:
    """Print a note on stderr that is not part of the result."""
    console(stderr=True).print(text, style=style)


def print_error(text: str) -> None:
    """Print an error message on stderr, on one line."""
    console(stderr=True).print(Text.assemble(("error: ", "bold red"), (" ".join(text.split()), "red")))


def print_json(data: Any) -> None:
    """Print data as JSON on stdout."""
    sys.stdout.write(format_json(data) + "\n")


def make_table(
    text_columns: Sequence[str], number_columns: Sequence[str] = (), last_columns: Sequence[str] = ()
) -> Table:
    """Make an empty table: left-aligned text columns, right-aligned number columns, then more text columns.

    Cells are never wrapped or cut.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in text_columns:
        table.add_column(column, no_wrap=True)
    for column in number_columns:
        table.add_column(column, justify="right", no_wrap=True)
    for column in last_columns:
        table.add_column(column, no_wrap=True)
    return table


def add_row(table: Table, cells: Iterable[str], style: str = "") -> None:
    """Add a row of plain texts to a table."""
    table.add_row(*(Text(cell) for cell in cells), style=style or None)


def print_table(table: Table) -> None:
    """Print a table at its natural width; a narrow terminal breaks the lines, but no cell is cut."""
    out = console()
    width = _natural_width(out, table)
    lines = out.render_lines(table, out.options.update(width=width), pad=False)
    if out.is_terminal:  # only the line below the header may be cut
        lines[1] = Segment.adjust_line_length(lines[1], min(width, out.width), pad=False)
    out.print(Segments([segment for line in lines for segment in (*_trim_line(line), Segment.line())]), end="")


def print_labelled(label: str, text: str, indent: int, style: str = "") -> None:
    """Print a label and a text on one line, or the text wrapped below the label if the terminal is too narrow.

    Args:
        indent: number of spaces before each line of a wrapped text.
    """
    out = console()
    if not out.is_terminal or len(label) + 2 + len(text) <= out.width:
        print_out(f"{label}  {text}", style)
        return
    print_out(label, style)
    width = max(out.width - indent, 20)
    for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        print_out(" " * indent + line)


def fits_terminal(table: Table) -> bool:
    """Whether a table fits into the width of the terminal; always true in a pipe."""
    out = console()
    return not out.is_terminal or _natural_width(out, table) <= out.width


def format_number(value: float, digits: int = 4) -> str:
    """Format a number with `digits` decimals, from 1e6 on in scientific notation; zero has no sign."""
    if math.isnan(value):
        return "nan"
    if not math.isfinite(value):
        return "-inf" if value < 0 else "inf"
    text = f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.{digits}e}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def format_direction(values: Iterable[float]) -> str:
    """Format a direction (3,) as `z` or `-x` if it is along an axis, else as three numbers."""
    components = [float(x) for x in values]
    for k, letter in enumerate("xyz"):
        if abs(abs(components[k]) - 1) < 1e-9:
            return letter if components[k] > 0 else f"-{letter}"
    return " ".join(format_number(x, 3) for x in components)


def _natural_width(out: Console, table: Table) -> int:
    """Return the width of a table without line breaks, in characters."""
    return Measurement.get(out, out.options.update(max_width=MAX_TABLE_WIDTH), table).maximum


def _trim_line(line: list[Segment]) -> list[Segment]:
    """Remove trailing spaces, which would give extra lines on a narrow terminal."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else line


class ProgressBar:
    """Progress bar on stderr for work in several phases, with rate and remaining time.

    Use the bar in a `with` block. `start_phase` starts a phase. Calling the bar sets the number of finished items, such
    as rows of a file, and optionally the total.

    Args:
        quiet: whether to hide the bar.
    """

    def __init__(self, quiet: bool = False) -> None:
        out = console(stderr=True)
        out.soft_wrap = False
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            _CountColumn(),
            _RateColumn(),
            TimeRemainingColumn(compact=True),
            console=out,
            transient=True,
            disable=quiet or not out.is_terminal,
        )
        self._task = self._progress.add_task("", total=None, visible=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def start_phase(self, label: str, total: int | None = None) -> None:
        """Start a phase with a new count; `total` is None if the number of items is not known yet."""
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(label, total=total)

    def __call__(self, finished_count: int, total: int | None = None) -> None:
        if total is None:
            self._progress.update(self._task, completed=finished_count)
        else:
            self._progress.update(self._task, completed=finished_count, total=total)


class _CountColumn(ProgressColumn):
    """Column with the finished and total counts, such as `12,000/100,000`."""

    def render(self, task: Task) -> Text:
        total_text = "" if task.total is None else f"/{int(task.total):,}"
        return Text(f"{int(task.completed):,}{total_text}")


class _RateColumn(ProgressColumn):
    """Column with the recent rate in items per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")
