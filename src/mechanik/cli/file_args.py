"""File arguments of the command line: read FILE as a mechanism, check output paths, and write files atomically.

FILE is a model file, `gallery:NAME`, or `-` for standard input. Output paths are checked before any computation.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from mechanik.errors import CannotSave, FileMissing, FormatError, MechanikError
from mechanik.formats import load
from mechanik.formats.source import is_text, open_source
from mechanik.model import Mechanism, trim


class UsageError(MechanikError):
    """Wrong use of the command line; exit code 2."""


GALLERY_PREFIX = "gallery:"
STANDARD_INPUT = "stdin:"
"""Replacement for `-` while arguments are parsed, because the parser reads `-` as an option."""


def open_mechanism(file: str, **options: Any) -> Mechanism:
    """Open the mechanism that FILE names; `options` are passed to the reader."""
    if file.startswith(GALLERY_PREFIX):
        from mechanik import gallery

        mechanism = gallery.make(file.removeprefix(GALLERY_PREFIX))
        if options.pop("trim", False):
            trim(mechanism)
        if options:
            raise UsageError(
                f"{', '.join(f'--{name}' for name in options)} is for URDF and SDF files, not for the gallery"
            )
        return mechanism
    return load(file_name_or_stdin_text(file), **options)


def file_name_or_stdin_text(file: str) -> str:
    """Return FILE unchanged if it is a file or the text of a model; for `-`, return the text of standard input.

    Raises:
        UsageError: there is no such file, or standard input cannot be read or is empty.
        FormatError: standard input is not text.
    """
    if file == STANDARD_INPUT:
        return _read_standard_input()
    if not is_text(file) and not os.path.isfile(os.path.expanduser(file)):
        _raise_unreadable(file)
    return file


def _raise_unreadable(file: str) -> None:
    """Raise `UsageError` with the reason why FILE is not a file that can be read: missing, a folder, or a device."""
    from mechanik import gallery

    try:
        open_source(file)
    except FileMissing as error:
        hint = f" The gallery has a mechanism of this name: {GALLERY_PREFIX}{file}" if file in gallery.names() else ""
        raise UsageError(f"{error}{hint}") from None
    except FormatError as error:
        raise UsageError(str(error)) from None
    except RuntimeError:  # `~user` with an unknown user
        raise UsageError(f"there is no file {file!r}: its home folder does not exist") from None


def _read_standard_input() -> str:
    """Read a mechanism as text from standard input."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] (started with `<&-`)
        raise UsageError("standard input is closed")
    try:
        text = sys.stdin.read()
        if "\0" in text[:4096]:
            raise FormatError(
                "standard input is binary, not the text of a URDF, MJCF, SDF or JSON mechanism", code="unknown-format"
            )
    except UnicodeDecodeError:
        raise FormatError("standard input is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from None
    if not text.strip():
        raise UsageError("standard input is empty")
    return text if is_text(text) else f"{text}\n"


def output_path(name: str, suffixes: Sequence[str]) -> Path:
    """Return the absolute path of an output file; raises `UsageError` if it cannot be written.

    Args:
        name: path as given on the command line.
        suffixes: allowed file name endings, in lower case.
    """
    suffix_list = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
    if name == STANDARD_INPUT:
        raise UsageError(f"'-' is not supported as output; name a file that ends in {suffix_list}")
    try:
        path = Path(name).expanduser().resolve()  # resolved, because replacing a symbolic link would remove the link
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        path, mode = Path(name).expanduser().resolve(), None
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{name!r} cannot be written: {getattr(error, 'strerror', None) or error}") from None
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"{name} is a folder; name a file in it that ends in {suffix_list}")
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{name!r} must end in {suffix_list}, which selects the format")
    if not path.parent.is_dir():
        raise UsageError(f"{name} cannot be written: there is no folder {path.parent}")
    if mode is not None and not stat.S_ISREG(mode):
        raise UsageError(f"{name} is not a regular file and cannot be replaced")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{name} cannot be written: the folder {path.parent} is not writable")
    return path


@contextlib.contextmanager
def atomic_write(path: Path) -> Generator[Path]:
    """Yield a temporary path for a new file, which replaces `path` on success and is removed on an error."""
    temporary_path = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield temporary_path
        with open(temporary_path, "rb+") as stream:
            os.fsync(stream.fileno())
        if path.exists():
            shutil.copymode(path, temporary_path)
        os.replace(temporary_path, path)
    except MechanikError:
        raise
    except OSError as error:
        raise CannotSave(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary_path.unlink()
