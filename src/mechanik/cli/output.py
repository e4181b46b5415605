"""Tables for people, JSON for programs, errors on stderr; readable in a pipe and in a narrow window."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from mechanik.formats.json_writer import laid_out

NARROWEST = 8
"""Letters to which a column of names may be folded; numbers never are."""

WIDEST = 100_000


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
    sys.stdout.write(laid_out(data) + "\n")


def table(names: Sequence[str], numbers: Sequence[str] = (), rest: Sequence[str] = ()) -> Table:
    """Columns of names, of numbers (never cut) and of more names."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in names:
        made.add_column(column, overflow="fold")
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
    width = _natural(out, made)
    if out.is_terminal:
        unbroken = sum(_width(made, k) for k, column in enumerate(made.columns) if column.no_wrap)
        folded = sum(min(NARROWEST, _width(made, k)) for k, column in enumerate(made.columns) if not column.no_wrap)
        width = min(width, max(out.width, unbroken + folded + 2 * len(made.columns)))
        Console(width=width, highlight=False).print(made, crop=False)
        return
    page = io.StringIO()
    Console(file=page, width=width, highlight=False, no_color=True).print(made, crop=False)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()))


def fits(made: Table) -> bool:
    """Whether a table can be printed without folding anything; in a pipe, always."""
    out = console()
    return not out.is_terminal or _natural(out, made) <= out.width


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


def _natural(out: Console, made: Table) -> int:
    return Measurement.get(out, out.options.update(max_width=WIDEST), made).maximum


def _width(made: Table, k: int) -> int:
    column = made.columns[k]
    return max(len(str(cell)) for cell in (column.header, *column.cells))
