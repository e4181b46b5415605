"""Numbers from text, a block of lines at a time: with a header or without, between commas, semicolons, tabs or spaces.

A line that begins with # is a comment, though one may name the columns. A cell that is empty, or says nan or null, is
NaN; any other text is an error with the number of its line.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from mechanik.cli.columns import count_columns, find_columns
from mechanik.errors import FormatError
from mechanik.spatial.array import Array

BLOCK = 50_000
"""Lines; some MB of text."""
COMMENT = "#"
MISSING = ("", "nan", "na", "n/a", "null", "none")
Split = Callable[[str], list[str]]


def read_csv(path: Path, choices: Sequence[Sequence[str]], take: Callable[[Array], None]) -> int:
    """Hand the rows to `take` as (rows, columns), float64; returns how many columns there are.

    Args:
        choices: names of columns that can be meant, the largest choice first.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            lines = enumerate(stream, start=1)
            number, first = _first_line(lines, choices)
            if not first:
                raise FormatError(f"{path.name} is empty")
            mark = _mark(first)
            split = _splitter(mark)
            cells, where = split(first.removeprefix(COMMENT)), f"{path.name}, line {number}"
            if all(_is_number(cell) for cell in cells):
                wanted, exact = list(range(count_columns(len(cells), choices, where))), len(cells)
                lines = itertools.chain([(number, first)], lines)
            else:
                wanted, exact = find_columns(cells, choices, where), None
            while block := list(itertools.islice(lines, BLOCK)):
                block = [(k, line) for k, line in block if _says_something(line)]
                rows = _quickly([line for _, line in block], mark, wanted, exact)
                take(rows if rows is not None else _carefully(block, split, wanted, exact, path.name))
            return len(wanted)
    except UnicodeDecodeError:
        raise FormatError(f"{path.name} is no text in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise FormatError(f"{path.name} cannot be read as CSV: {error}") from None


def _first_line(lines: Iterator[tuple[int, str]], choices: Sequence[Sequence[str]]) -> tuple[int, str]:
    """The first that is neither blank nor a comment, or a comment that names columns, as `numpy.savetxt` writes it."""
    known = {name.lower() for choice in choices for name in choice}
    for number, line in lines:
        text = line.removeprefix(COMMENT)
        if _says_something(line) or any(cell.strip().lower() in known for cell in _splitter(_mark(text))(text)):
            return number, line
    return 0, ""


def _says_something(line: str) -> bool:
    return not line.isspace() and not line.startswith(COMMENT)


def _mark(line: str) -> str | None:
    """What stands between two cells; None: spaces."""
    return next((mark for mark in ";\t," if mark in line), None)


def _quickly(lines: list[str], mark: str | None, wanted: list[int], exact: int | None) -> Array | None:
    """By NumPy's reader; None if a line is not as it should be."""
    if not lines:
        return np.empty((0, len(wanted)))
    try:
        read = np.loadtxt(
            lines, delimiter=mark, comments=None, ndmin=2, quotechar='"', usecols=wanted if exact is None else None
        )
    except ValueError:
        return None
    return read if exact is None or read.shape[1] == exact else None


def _carefully(block: list[tuple[int, str]], split: Split, wanted: list[int], exact: int | None, name: str) -> Array:
    rows: list[list[float]] = []
    for number, line in block:
        cells = split(line)
        if len(cells) <= max(wanted) or (exact is not None and len(cells) != exact):
            needed = exact or max(wanted) + 1
            raise FormatError(f"{name}, line {number}: {needed} columns are needed, and there are {len(cells)}")
        rows.append([_number(cells[k], f"{name}, line {number}") for k in wanted])
    return np.array(rows).reshape(-1, len(wanted))


def _number(cell: str, where: str) -> float:
    text = cell.strip()
    if text.lower() in MISSING:
        return np.nan
    try:
        return float(text)
    except ValueError:
        hint = "; decimals have a point" if text.count(",") == 1 else ""
        raise FormatError(f"{where}: {text!r} is not a number{hint}") from None


def _is_number(cell: str) -> bool:
    try:
        _number(cell, "")
    except FormatError:
        return False
    return True


def _splitter(mark: str | None) -> Split:
    if mark is None:
        return str.split
    return lambda line: next(csv.reader([line.rstrip("\r\n")], delimiter=mark))
