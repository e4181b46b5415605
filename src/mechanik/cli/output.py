"""Tables for people, JSON for programs, errors on stderr; readable in a pipe and in a narrow window."""

from __future__ import annotations

import io
import math
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from mechanik.formats.json_writer import laid_out

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
    """Columns of names, of numbers and of more names; nothing is ever folded or cut."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in names:
        made.add_column(column, no_wrap=True)
    for column in numbers:
        made.add_column(column, justify="right", no_wrap=True)
    for column in rest:
        made.add_column(column, no_wrap=True)
    return made


def row(made: Table, cells: Iterable[str], style: str = "") -> None:
    made.add_row(*(Text(cell) for cell in cells), style=style or None)


def show(made: Table) -> None:
    """Print a table as wide as it likes: a terminal breaks long lines, but no name and no number is lost."""
    out = console()
    width = _natural(out, made)
    lines = out.render_lines(made, out.options.update(width=width), pad=False)
    if out.is_terminal:  # the rule below the header is no loss
        lines[1] = Segment.adjust_line_length(lines[1], min(width, out.width), pad=False)
    out.print(Segments([segment for line in lines for segment in (*_trimmed(line), Segment.line())]), end="")


def say_with(head: str, text: str, indent: int, style: str = "") -> None:
    """A head and free text behind it, or below it and folded between words where the terminal is too narrow."""
    out = console()
    if not out.is_terminal or len(head) + 2 + len(text) <= out.width:
        say(f"{head}  {text}", style)
        return
    say(head, style)
    width = max(out.width - indent, 20)
    for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        say(" " * indent + line)


def fits(made: Table) -> bool:
    """Whether no line of a table is longer than the terminal's; in a pipe, always."""
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


def _trimmed(line: list[Segment]) -> list[Segment]:
    """Without the spaces at its end, which would fill further lines of a narrow terminal."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else line
