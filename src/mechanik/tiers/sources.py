"""The sources of a module of kernels, and a stamp of their contents: machine code is used with the sources it is of."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

import mechanik.kernels

FOLDER = Path(mechanik.kernels.__file__).parent
PACKAGE = "mechanik.kernels"

_IMPORT = re.compile(r"^\s*from (\.+)([\w.]*) import \(?([\w, ]*)", re.MULTILINE)
ALWAYS = ("compiler", "numba_pipeline")
"""Modules that decide how all others are compiled."""


@functools.cache
def imported_sources(module: str) -> tuple[Path, ...]:
    """The file of a module of kernels (`distance.watch`), and all files of kernels that it imports, sorted."""
    found: dict[Path, None] = {}
    waiting = [FOLDER / f"{name.replace('.', '/')}.py" for name in (module, *ALWAYS)]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found[file] = None
        for dots, name, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
            base = file.parents[len(dots) - 1].joinpath(*name.split("."))
            waiting.append(base.with_suffix(".py"))
            waiting += [base / f"{one.strip()}.py" for one in names.split(",") if one.strip()]
    return tuple(sorted(found))


@functools.cache
def source_stamp(module: str) -> str:
    """A name for the present contents of all sources of a module of kernels."""
    digest = hashlib.sha256()
    for file in imported_sources(module):
        digest.update(file.relative_to(FOLDER).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
