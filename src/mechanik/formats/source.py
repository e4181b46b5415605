"""Sources of model data (text, files, memory), and resolution of the files that a model names.

A model names files by `package://`, `model://`, `file://`, relative or absolute paths. On disk, a file of a package
(`package://` or `model://`) is searched in this order:

1. the folders that the caller gave by package name, even if a copy is nearer to the model;
2. the folder of the model and the folders above it, if they have the name of the package or contain a folder of that
   name;
3. the end of the path, in the folder of the model and up to seven folders above it;
4. ROS_PACKAGE_PATH and AMENT_PREFIX_PATH. They come last: a robot copied with its meshes has priority over an installed
   one.

A path, also after `file://`, is first tried as it is, from the folder of the model if it is relative; then step 3
follows.
"""

from __future__ import annotations

import codecs
import contextlib
import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import unquote

from mechanik.errors import FileMissing, FormatError

MAX_MODEL_BYTES = 256 * 2**20
"""Bytes; a larger file or text is rejected."""

_MAX_PATH_LENGTH = 4096
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileResolver(Protocol):
    """Finds the files that a model names: on disk (`DiskFileResolver`), or in memory (`ArchiveFileResolver` in
    `load_bytes.py`).
    """

    def locate(self, uri: str, stored_path: str | None = None) -> tuple[bool, str | None]:
        """Return whether a file exists, and its path.

        The path is None for a file in memory. For a missing file on disk it is `stored_path`.

        Args:
            uri: the file as the model names it.
            stored_path: the path of the file when the model was written, if the model states it.
        """
        ...

    def open(self, uri: str) -> Source | None:
        """Open a model that another model includes; None if it does not exist."""
        ...

    def content(self, uri: str) -> bytes | None:
        """Return the bytes of a file that is not a model; None if it is missing, unreadable or too large."""
        ...

    def count_parts(self, count: int, message_prefix: str) -> None:
        """Add to the number of links and joints read so far, and raise an error above the limit.

        Args:
            count: the number of links and joints to add.
            message_prefix: prefix of the error message.
        """
        ...

    def search_hint(self, uri: str) -> str:
        """Return the end of a message about a missing file: what the user can do."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a model and their origin.

    Attributes:
        data: the bytes.
        path: the file on disk; None for text and for a model in memory.
        member: the name of a model in memory, such as "folder/robot.urdf"; it never means a file on disk.
        resolver: finds the files that a model in memory may name; None for a model on disk and for text.
    """

    data: bytes
    path: Path | None
    member: str = ""
    resolver: FileResolver | None = None

    @property
    def name(self) -> str:
        """File name without folders; empty for text."""
        return self.path.name if self.path is not None else PurePosixPath(self.member).name

    @property
    def stem(self) -> str:
        return self.path.stem if self.path is not None else PurePosixPath(self.member).stem

    @property
    def message_prefix(self) -> str:
        """Prefix of messages: the file name and a colon, or nothing for text."""
        return f"{self.name}: " if self.name else ""

    def text(self) -> str:
        """Decode the bytes as UTF-16 if they begin with its byte order mark, otherwise as UTF-8."""
        encoding, name = ("utf-16", "UTF-16") if self.data.startswith(_BOMS[1:]) else ("utf-8-sig", "UTF-8")
        try:
            return self.data.decode(encoding)
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{self.message_prefix}byte {error.start} is not valid {name}; save the file as UTF-8"
            ) from None


def is_text(source: object) -> bool:
    """Return whether a string is the model itself, and not a path.

    It is the model if it begins with `<` or `{`, is a list in brackets, has a line break, or is longer than a path can
    be.
    """
    if not isinstance(source, str):
        return False
    text = source.strip("\ufeff \t\r\n")
    is_list = text.startswith("[") and text.endswith("]")
    return text[:1] in ("<", "{") or is_list or "\n" in source or len(source) > _MAX_PATH_LENGTH


def open_source(source: str | os.PathLike[str]) -> Source:
    """Return the source for a text, or read a file; each reason why a file cannot be read has its own message.

    Raises:
        FileMissing: the file does not exist, or its name is empty or invalid.
        FormatError: the source is neither a path nor text, or is a folder, binary, empty, too large or not readable.
    """
    if isinstance(source, str) and is_text(source):
        try:
            data = source.encode()
        except UnicodeEncodeError as error:
            raise FormatError(f"character {error.start} of the text is half of a surrogate pair") from None
        if len(data) > MAX_MODEL_BYTES:
            raise FormatError(f"the text has {len(data) / 2**20:.0f} MB; the limit is {MAX_MODEL_BYTES / 2**20:.0f} MB")
        return Source(data, None)
    if not isinstance(source, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise FormatError(f"a model must be a path or text, not {type(source).__name__}")
    if not os.fspath(source):
        raise FileMissing("the name of the file is empty")
    path = Path(source)
    with contextlib.suppress(RuntimeError):  # "~nobody" is a valid file name if there is no such user
        path = path.expanduser()
    return Source(_read_file(path), path)


def _read_file(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise FormatError(f"{path} is a folder; pass a file in it{_examples(_models_in(path))}")
        if not path.exists():
            raise _missing_file(path)
        if not path.is_file():
            raise FormatError(f"{path} is neither a file nor a folder; read it and pass its text")
        size = path.stat().st_size
        if size > MAX_MODEL_BYTES:
            raise FormatError(f"{path} has {size / 2**20:.0f} MB; the limit is {MAX_MODEL_BYTES / 2**20:.0f} MB")
        data = path.read_bytes()
    except PermissionError:
        raise FormatError(f"{path} cannot be read: permission denied") from None
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FileMissing(f"{str(path)!r} is not a valid file name: {error}") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
    if not data.strip():
        raise FormatError(f"{path} is empty")
    if b"\0" in data[:4096] and not data.startswith(_BOMS):
        raise FormatError(
            f"{path} is a binary file, not the text of a URDF, MJCF, SDF or JSON mechanism", code="unknown-format"
        )
    return data


def _missing_file(path: Path) -> FileMissing:
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    if folder != path.parent:
        return FileMissing(f"there is no file {path}: the folder {path.parent} does not exist")
    names = sorted(path.name for path in folder.iterdir())
    similar_names = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    hint = (
        f" Did you mean {' or '.join(repr(name) for name in similar_names)}?"
        if similar_names
        else _examples(_models_in(folder)) + "."
    )
    return FileMissing(f"there is no file {path.name!r} in {folder.resolve()}{'.' if similar_names else ''}{hint}")


def _models_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix.lower() in (".urdf", ".json", ".xml", ".sdf"))


def _examples(names: list[str]) -> str:
    return f", such as {', '.join(names[:5])}" if names else ""


MAX_SEARCH_FOLDERS = 8
"""Number of folders in which the end of a path is searched: the folder of the model and those above it."""


class DiskFileResolver:
    """Finds the files of one model on disk, with a cache of the results.

    Args:
        folder: the folder of the model; None for a model that is text.
        packages: folder of each package, by package name.
    """

    def __init__(self, folder: Path | None, packages: Mapping[str, str | Path] | None = None) -> None:
        if packages is not None and not isinstance(packages, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise FormatError(
                f"packages= must map package names to folders, such as {{'robot': '/path'}}, not {packages!r}"
            )
        self._package_folders = {name: Path(path).expanduser() for name, path in (packages or {}).items()}
        self._search_folders: list[Path] = []  # the folder of the model and all folders above it
        if folder is not None:
            absolute_folder = folder.absolute()
            self._search_folders = [absolute_folder, *absolute_folder.parents]
        self._cache: dict[str, Path | None] = {}
        # for the folder part of a uri: the folder and the first path part of the last file found by its path ending
        self._last_match: dict[str, tuple[Path, int]] = {}

    def find(self, uri: str) -> Path | None:
        """Return the file that `uri` means, or None."""
        if uri not in self._cache:
            self._cache[uri] = self._search(uri)
        return self._cache[uri]

    def locate(self, uri: str, stored_path: str | None = None) -> tuple[bool, str | None]:
        if stored_path is not None and os.path.isfile(stored_path):
            return True, stored_path
        path = self.find(uri)
        return path is not None, stored_path if path is None else str(path)

    def open(self, uri: str) -> Source | None:
        path = self.find(uri)
        return None if path is None else open_source(path)

    def content(self, uri: str) -> bytes | None:
        path = self.find(uri)
        try:
            return None if path is None or path.stat().st_size > MAX_MODEL_BYTES else path.read_bytes()
        except OSError:
            return None

    def count_parts(self, count: int, message_prefix: str) -> None:
        """Accept any number of links and joints, because the file is the user's own."""

    def search_hint(self, uri: str) -> str:
        return package_hint(uri)

    def _search(self, uri: str) -> Path | None:
        scheme, separator, uri_path = uri.strip().replace("\\", "/").partition("://")
        if not separator:
            scheme, uri_path = "", uri.strip().replace("\\", "/").removeprefix("file:")
        parts = [part for part in uri_path.split("/") if part not in ("", ".")]
        if not parts or scheme.lower() not in ("", "file", "package", "model"):
            return None
        if scheme == "":
            candidates = self._path_candidates(uri_path)
        elif scheme.lower() == "file":
            candidates = self._path_candidates(_file_uri_path(uri_path))
        else:
            candidates = self._package_candidates(parts[0], parts[1:])
        for candidate in candidates:
            if os.path.isfile(candidate):
                return Path(os.path.normpath(candidate))
        path = self._find_by_path_ending(parts)
        if path is None and scheme.lower() in ("package", "model"):
            path = next((file for file in self._ros_path_candidates(parts[0], parts[1:]) if os.path.isfile(file)), None)
        return path

    def _path_candidates(self, path: str) -> Iterator[Path]:
        if os.path.isabs(path):
            yield Path(path)
        elif self._search_folders:
            yield self._search_folders[0] / path

    def _package_candidates(self, name: str, parts: list[str]) -> Iterator[Path]:
        if name in self._package_folders:
            yield self._package_folders[name].joinpath(*parts)
            yield self._package_folders[name].joinpath(name, *parts)  # the caller gave the folder around the package
        for folder in self._search_folders:
            if folder.name == name:
                yield folder.joinpath(*parts)
            yield folder.joinpath(name, *parts)

    def _find_by_path_ending(self, parts: list[str]) -> Path | None:
        """Find a file by the end of its path, such as `b/c.stl` of `package://a/b/c.stl`.

        The search begins in the folder of the model and goes upwards. In each folder the longest ending is tried first.
        The file name alone, `c.stl`, is searched only in the folder of the model.
        """
        key = "/".join(parts[:-1])
        if key in self._last_match:  # files that a model names in one folder are usually in one folder on disk
            folder, start = self._last_match[key]
            candidate = folder.joinpath(*parts[start:])
            if os.path.isfile(candidate):
                return candidate
        for level, folder in enumerate(self._search_folders[:MAX_SEARCH_FOLDERS]):
            for start in range(len(parts) if level == 0 else len(parts) - 1):
                candidate = folder.joinpath(*parts[start:])
                if os.path.isfile(candidate):
                    self._last_match[key] = folder, start
                    return candidate
        return None

    def _ros_path_candidates(self, name: str, parts: list[str]) -> Iterator[Path]:
        for entry in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
            if Path(entry).name == name:
                yield Path(entry, *parts)
            yield Path(entry, name, *parts)
        for entry in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
            yield Path(entry, "share", name, *parts)


def file_resolver(model_source: Source, packages: Mapping[str, str | Path] | None = None) -> FileResolver:
    """Return the resolver that a source in memory has, or a new one that searches the disk."""
    if model_source.resolver is not None:
        return model_source.resolver
    return DiskFileResolver(None if model_source.path is None else model_source.path.parent, packages)


def package_hint(uri: str) -> str:
    """Return the end of a message about a missing file: how to give the folder of its package; empty for a path."""
    if not uri.strip().lower().startswith(("package://", "model://")):
        return ""
    return "; give the folder of its package by packages= or by the environment variable ROS_PACKAGE_PATH"


def _file_uri_path(uri_path: str) -> str:
    """Return the path of `file://` + uri_path without the host `localhost`; on Windows `/C:/...` becomes `C:/...`."""
    path = unquote(uri_path).removeprefix("localhost/") if uri_path.startswith("localhost/") else unquote(uri_path)
    if uri_path.startswith("localhost/"):
        path = "/" + path
    return path[1:] if os.name == "nt" and len(path) > 2 and path[0] == "/" and path[2] == ":" else path
