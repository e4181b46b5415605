"""Files that commands write: refused early when they cannot be, and put in the old one's place only when whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Generator, Sequence
from pathlib import Path

from mechanik.cli.opening import STANDARD_INPUT
from mechanik.cli.usage import UsageError
from mechanik.errors import CannotSave, MechanikError


def file_to_write(name: str, suffixes: Sequence[str]) -> Path:
    """Where to write; what cannot be meant is refused before anything is computed."""
    kinds = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
    if name == STANDARD_INPUT:
        raise UsageError(f"an output file is needed in place of '-'; its ending, {kinds}, says how to write it")
    try:
        path = Path(name).expanduser().resolve()  # a symbolic link stays one
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        path, mode = Path(name).expanduser().resolve(), None
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{name!r} cannot be written: {getattr(error, 'strerror', None) or error}") from None
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"{name} is a folder; name a file in it that ends in {kinds}")
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{name!r} must end in {kinds}, which says how to write it")
    if not path.parent.is_dir():
        raise UsageError(f"{name} cannot be written: there is no folder {path.parent}")
    if mode is not None and not stat.S_ISREG(mode):
        raise UsageError(f"{name} is no ordinary file and cannot be replaced")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{name} cannot be written: nothing may be written in {path.parent}")
    return path


@contextlib.contextmanager
def replacing(target: Path) -> Generator[Path]:
    """A file beside `target` to write to; it takes its place when all went well, else it goes."""
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield beside
        with open(beside, "rb+") as written:
            os.fsync(written.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except MechanikError:
        raise
    except OSError as error:
        raise CannotSave(f"{target} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
