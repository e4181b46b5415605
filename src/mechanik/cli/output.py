"""Tables for people, JSON for programs, errors on stderr; readable in a pipe and in a narrow window."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

NARROWEST = 8
"""Letters to which a column of names may be folded; numbers never are."""


def say_anything() -> None:
    """Let no letter of a name stop the program on a terminal that cannot show it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def console(stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str = "", style: str = "") -> None:
    console().print(text, style=style or None)


def aside(text: str, style: str = "yellow") -> None:
    """A remark that is no part of the result."""
    console(stderr=True).print(text, style=style)


def fail(text: str) -> None:
    """An error, on one line."""
    console(stderr=True).print(Text.assemble(("error: ", "bold red"), (" ".join(text.split()), "red")))


def say_json(data: Any) -> None:
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def table(names: Sequence[str], numbers: Sequence[str] = (), rest: Sequence[str] = (), title: str = "") -> Table:
    """Columns of names, of numbers (never cut) and of more names."""
    made = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for column in names:
        made.add_column(column, overflow="fold", min_width=min(NARROWEST, len(column)))
    for column in numbers:
        made.add_column(column, justify="right", no_wrap=True)
    for column in rest:
        made.add_column(column, overflow="fold")
    return made


def row(made: Table, cells: Iterable[str], style: str = "") -> None:
    made.add_row(*(Text(cell) for cell in cells), style=style or None)


def show(made: Table) -> None:
    """Print a table: as wide as it likes in a pipe; on a terminal as wide as that, but no number is cut."""
    out = console()
    natural = Measurement.get(out, out.options.update(max_width=100_000), made).maximum
    width = natural
    if out.is_terminal and natural > out.width:
        unbroken = sum(_width(made, k) for k, column in enumerate(made.columns) if column.no_wrap)
        folded = sum(NARROWEST for column in made.columns if not column.no_wrap)
        width = max(out.width, unbroken + folded + 2 * len(made.columns))
    out.print(made, width=width, crop=False, no_wrap=False, soft_wrap=False)


def number(x: float, digits: int = 4) -> str:
    """For people: fixed digits, an infinity as a word, no minus zero."""
    if not math.isfinite(x):
        return "-inf" if x < 0 else "inf"
    text = f"{x:.{digits}f}" if abs(x) < 1e6 else f"{x:.{digits}e}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def vector(values: Iterable[float]) -> str:
    """A direction: `z`, `-x`, or its numbers."""
    parts = [float(x) for x in values]
    for k, letter in enumerate("xyz"):
        if abs(abs(parts[k]) - 1) < 1e-9:
            return letter if parts[k] > 0 else f"-{letter}"
    return " ".join(number(x, 3) for x in parts)


def count(many: int, what: str) -> str:
    """`1 link`, `2 links`."""
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def _width(made: Table, k: int) -> int:
    column = made.columns[k]
    return max(len(str(cell)) for cell in (column.header, *column.cells))
