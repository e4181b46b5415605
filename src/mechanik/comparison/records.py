"""Records in a CSV file: written as they come, read back whole.

While a comparison runs, its records stand beside the file, in `NAME.part`; the file itself appears when all is there.
A name that ends in .gz is packed by gzip.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TextIO

from mechanik.comparison.trial import Trial
from mechanik.errors import CannotSave, FileMissing, FormatError

COLUMNS = tuple(field.name for field in fields(Trial))
ABOUT = "about"
"""The kind of the first line, whose note is JSON: the settings and the machine."""
DIGITS = 4


class Recorder:
    """Keeps records in a file beside `path` until `finish` puts them in its place."""

    def __init__(self, path: str | Path, about: dict[str, Any]) -> None:
        self.path, self._about = Path(path), about
        self.part = part_of(self.path)
        self._file: TextIO | None = None

    def write(self, trials: Iterable[Trial]) -> None:
        """Add records; they are on the disk when this returns."""
        try:
            if self._file is None:
                self._file = _open(self.part, "w")
                head = csv.writer(self._file)
                head.writerow(COLUMNS)
                head.writerow([ABOUT, *[""] * (len(COLUMNS) - 2), json.dumps(self._about)])
            rows = csv.writer(self._file)
            rows.writerows([_text(getattr(one, name)) for name in COLUMNS] for one in trials)
            self._file.flush()
        except OSError as error:
            raise CannotSave(f"{self.part} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Leave what there is beside the file, to go on with later."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def finish(self) -> None:
        """Put the file in its place."""
        self.write(())
        self.close()
        try:
            os.replace(self.part, self.path)
        except OSError as error:
            raise CannotSave(f"{self.path} cannot be written: {error.strerror}") from None


def part_of(path: Path) -> Path:
    """Where records stand while there are more to come."""
    return path.with_name(f"{path.name}.part")


def write_records(path: str | Path, trials: Iterable[Trial], about: dict[str, Any]) -> None:
    """All at once; what stood there before stays if it fails."""
    recorder = Recorder(path, about)
    recorder.write(trials)
    recorder.finish()


def read_records(path: str | Path, is_part: bool = False) -> tuple[list[Trial], dict[str, Any]]:
    """The records of a file, and what its first line says about them.

    Args:
        is_part: whether writing may have been cut off; what is behind the first damaged line is then left out.
    """
    try:
        with _open(Path(path), "r") as file:
            rows = _whole_rows(file, is_part)
    except gzip.BadGzipFile:
        raise FormatError(f"{path} is not packed by gzip, as its name says") from None
    except OSError as error:
        raise FileMissing(f"{path} cannot be read: {error.strerror}") from None
    if not rows or rows[0].get("kind") != ABOUT or list(rows[0]) != list(COLUMNS):
        raise FormatError(f"{path} holds no records of a comparison, or those of another version of Mechanik")
    trials: list[Trial] = []
    try:
        about: dict[str, Any] = json.loads(rows[0]["note"])
        for row in rows[1:]:
            try:
                trials.append(_trial(row))
            except (AttributeError, TypeError, ValueError):
                if not is_part:
                    raise
                break
    except (AttributeError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged after {len(trials)} records: {error}") from None
    return trials, about


def _open(path: Path, mode: Literal["r", "w"]) -> TextIO:
    if path.name.removesuffix(".part").endswith(".gz"):
        return gzip.open(path, f"{mode}t", encoding="utf-8", newline="")  # type: ignore[return-value]
    return path.open(mode, encoding="utf-8", newline="")


def _whole_rows(file: TextIO, is_part: bool) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    try:
        for row in csv.DictReader(file):
            rows.append(row)
    except EOFError:  # packed, and cut off
        if not is_part:
            raise FormatError("the records are cut off; the comparison was interrupted") from None
    return rows


def _text(value: Any) -> str:
    match value:
        case bool():
            return "1" if value else "0"
        case float():
            return "" if math.isnan(value) else f"{value:.{DIGITS}g}"
        case tuple():
            return " ".join(f"{x:.3g}" for x in value)  # type: ignore[reportUnknownVariableType]
        case _:
            return str(value)


def _trial(row: Mapping[str, str | None]) -> Trial:
    values: dict[str, Any] = {}
    for field in fields(Trial):
        text = row[field.name]
        if text is None:
            raise ValueError("a line is cut off")
        match field.type:
            case "bool":
                values[field.name] = text == "1"
            case "int":
                values[field.name] = int(text)
            case "float":
                values[field.name] = float(text) if text else math.nan
            case "str":
                values[field.name] = text
            case _:
                values[field.name] = tuple(float(x) for x in text.split())
    return Trial(**values)
