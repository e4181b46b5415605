"""Where a description comes from: text, a file that is worth opening, or bytes that are held in memory."""

from __future__ import annotations

import codecs
import contextlib
import difflib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from mechanik.errors import FileMissing, FormatError, UnknownFormat

LARGEST = 256 * 2**20
"""Bytes; a description larger than that is some other file, or an accident."""

_LONGEST_PATH = 4096
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FilesAround(Protocol):
    """The files that a description may name: those of this machine (`Packages`), or what came with it (`Members`)."""

    def locate(self, uri: str, known: str | None = None) -> tuple[bool, str | None]:
        """Whether there is such a file, and its path, which is None for one that is held in memory.

        Args:
            known: where it was when the description was written, if that says so.
        """
        ...

    def open(self, uri: str) -> Source | None:
        """A description that another one includes."""
        ...

    def content(self, uri: str) -> bytes | None:
        """The bytes of a file that is no description; None if there is none, or it cannot be opened."""
        ...

    def count(self, parts: int, where: str) -> None:
        """Take note of so many more links and joints; more than are read in all is an error."""
        ...

    def advice(self, uri: str) -> str:
        """For the end of a message about a file that is not there: what could lead to it."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a description, and where they come from.

    Attributes:
        path: the file that held them, if one did.
        member: their name where they are held in memory, "folder/robot.urdf"; no file of this machine is meant by it.
        around: the only files that a description which is held in memory may name.
    """

    data: bytes
    path: Path | None
    member: str = ""
    around: FilesAround | None = None

    @property
    def name(self) -> str:
        """The file's name without folders; nothing for text."""
        return self.path.name if self.path is not None else PurePosixPath(self.member).name

    @property
    def stem(self) -> str:
        return self.path.stem if self.path is not None else PurePosixPath(self.member).stem

    @property
    def where(self) -> str:
        """For messages: the file's name and a colon, or nothing for text."""
        return f"{self.name}: " if self.name else ""

    def text(self) -> str:
        """Decoded; a byte order mark says how, otherwise it is UTF-8."""
        encoding, name = ("utf-16", "UTF-16") if self.data.startswith(_BOMS[1:]) else ("utf-8-sig", "UTF-8")
        try:
            return self.data.decode(encoding)
        except UnicodeDecodeError as error:
            raise FormatError(f"{self.where}byte {error.start} is no {name}; save it as UTF-8") from None


def is_text(source: object) -> bool:
    """Whether a string is the description itself: it begins with `<` or `{`, or cannot be the name of a file."""
    if not isinstance(source, str):
        return False
    start = source.lstrip("\ufeff \t\r\n")[:1]
    return start in ("<", "{") or "\n" in source or len(source) > _LONGEST_PATH


def open_source(source: str | os.PathLike[str]) -> Source:
    """Text as it is, or the contents of a file; every way in which a file can be none is named."""
    if isinstance(source, str) and is_text(source):
        try:
            data = source.encode()
        except UnicodeEncodeError as error:
            raise FormatError(f"character {error.start} of the text is half of a surrogate pair") from None
        if len(data) > LARGEST:
            raise FormatError(f"the text has {len(data) / 2**20:.0f} MB; at most {LARGEST / 2**20:.0f} are read")
        return Source(data, None)
    if not isinstance(source, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise FormatError(f"a path or text is needed, not {type(source).__name__}")
    if not os.fspath(source):
        raise FileMissing("the name of the file is empty")
    path = Path(source)
    with contextlib.suppress(RuntimeError):  # ~nobody is a name like any other
        path = path.expanduser()
    return Source(_read(path), path)


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise FormatError(f"{path} is a folder; name a file in it{_listed(_models_in(path))}")
        if not path.exists():
            raise _missing(path)
        if not path.is_file():
            raise FormatError(f"{path} is neither a file nor a folder; pass the text that it yields")
        size = path.stat().st_size
        if size > LARGEST:
            raise FormatError(f"{path} has {size / 2**20:.0f} MB; at most {LARGEST / 2**20:.0f} are read")
        data = path.read_bytes()
    except PermissionError:
        raise FormatError(f"{path} may not be read: permission denied") from None
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FileMissing(f"{str(path)!r} cannot be the name of a file: {error}") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
    if not data.strip():
        raise FormatError(f"{path} is empty")
    if b"\0" in data[:4096] and not data.startswith(_BOMS):
        raise UnknownFormat(f"{path} is a binary file, not the text of a URDF, MJCF, SDF or JSON mechanism")
    return data


def _missing(path: Path) -> FileMissing:
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    if folder != path.parent:
        return FileMissing(f"there is no file {path}: the folder {path.parent} does not exist")
    there = sorted(one.name for one in folder.iterdir())
    near = difflib.get_close_matches(path.name, there, n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else _listed(_models_in(folder)) + "."
    return FileMissing(f"there is no file {path.name!r} in {folder.resolve()}{'.' if near else ''}{hint}")


def _models_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.suffix.lower() in (".urdf", ".json", ".xml", ".sdf"))


def _listed(names: list[str]) -> str:
    return f", such as {', '.join(names[:5])}" if names else ""
