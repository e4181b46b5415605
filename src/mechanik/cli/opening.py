"""FILE on the command line: a file, a mechanism of the gallery, or standard input."""

from __future__ import annotations

import os
import sys
from typing import Any

from mechanik.cli.usage import UsageError
from mechanik.errors import FileMissing, FormatError, UnknownFormat
from mechanik.formats import load
from mechanik.formats.source import is_text, open_source
from mechanik.mechanism import Mechanism, trim

GALLERY = "gallery:"
STANDARD_INPUT = "stdin:"
"""What `-` is called while arguments are parsed, since it looks like an option."""


def open_mechanism(file: str, **options: Any) -> Mechanism:
    """The mechanism that FILE means; options are those of the reader."""
    if file.startswith(GALLERY):
        from mechanik import gallery

        mechanism = gallery.make(file.removeprefix(GALLERY))
        if options.pop("trim", False):
            trim(mechanism)
        if options:
            raise UsageError(f"{', '.join(f'--{name}' for name in options)} is for URDF files, not for the gallery")
        return mechanism
    return load(text_of(file), **options)


def text_of(file: str) -> str:
    """The name of a file as it is, if it is one; the text of standard input for `-`."""
    if file == STANDARD_INPUT:
        return _standard_input()
    if not is_text(file) and not os.path.isfile(os.path.expanduser(file)):
        _refuse(file)
    return file


def _refuse(file: str) -> None:
    """Wrong use, in the words of the reader: FILE is missing, a folder, or a device."""
    from mechanik import gallery

    try:
        open_source(file)
    except FileMissing as error:
        hint = f" The gallery has one: {GALLERY}{file}" if file in gallery.names() else ""
        raise UsageError(f"{error}{hint}") from None
    except FormatError as error:
        raise UsageError(str(error)) from None
    except RuntimeError:  # the home of somebody unknown
        raise UsageError(f"there is no file {file!r}, nor the home folder that it names") from None


def _standard_input() -> str:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] (started with `<&-`)
        raise UsageError("standard input is closed")
    try:
        text = sys.stdin.read()
        if "\0" in text[:4096]:
            raise UnknownFormat("standard input is binary, not the text of a URDF, MJCF, SDF or JSON mechanism")
    except UnicodeDecodeError:
        raise FormatError("standard input is no UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from None
    if not text.strip():
        raise UsageError("standard input is empty")
    return text if is_text(text) else f"{text}\n"
