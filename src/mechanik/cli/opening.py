"""FILE on the command line: a file, a mechanism of the gallery, or standard input."""

from __future__ import annotations

import sys
from typing import Any

from mechanik.cli.usage import UsageError
from mechanik.formats import load
from mechanik.formats.source import is_text
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
    """The name of a file as it is; the text of standard input for `-`."""
    if file != STANDARD_INPUT:
        return file
    text = sys.stdin.read()
    if not text.strip():
        raise UsageError("standard input is empty")
    return text if is_text(text) else f"{text}\n"
