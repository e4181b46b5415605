"""Where the files that a model names are: `package://`, `model://`, `file://`, relative and absolute paths.

The order is: the folders that the caller gave by name (who names a folder means it, even if a
copy stands closer), then walking up from the model to a folder of the package's name, then the
end of the path searched for in the folders above the model, then ROS_PACKAGE_PATH and
AMENT_PREFIX_PATH (last: a robot that was copied here with its meshes is meant, not the one installed).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from mechanik.errors import FormatError
from mechanik.formats.source import LARGEST, FilesAround, Source, open_source

HIGHEST = 8
"""Folders above the model in which the end of a path is searched for."""


class Packages:
    """Finds files for one model, and remembers what it has found.

    Args:
        folder: of the model; None for a model that is text.
        folders: package name to its folder.
    """

    def __init__(self, folder: Path | None, folders: Mapping[str, str | Path] | None = None) -> None:
        if folders is not None and not isinstance(folders, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise FormatError(f"packages= takes names with their folders, as in {{'robot': '/path'}}, not {folders!r}")
        self._folders = {name: Path(place).expanduser() for name, place in (folders or {}).items()}
        self._above: list[Path] = []
        if folder is not None:
            absolute = folder.absolute()
            self._above = [absolute, *absolute.parents]
        self._found: dict[str, Path | None] = {}
        self._last: dict[str, tuple[Path, int]] = {}

    def find(self, uri: str) -> Path | None:
        """The file that `uri` means, or None if there is none."""
        if uri not in self._found:
            self._found[uri] = self._search(uri)
        return self._found[uri]

    def locate(self, uri: str, known: str | None = None) -> tuple[bool, str | None]:
        if known is not None and os.path.isfile(known):
            return True, known
        found = self.find(uri)
        return found is not None, known if found is None else str(found)

    def open(self, uri: str) -> Source | None:
        found = self.find(uri)
        return None if found is None else open_source(found)

    def content(self, uri: str) -> bytes | None:
        found = self.find(uri)
        try:
            return None if found is None or found.stat().st_size > LARGEST else found.read_bytes()
        except OSError:
            return None

    def count(self, parts: int, where: str) -> None:
        """Who reads a file of their own may wait for it."""

    def advice(self, uri: str) -> str:
        return where_to_look(uri)

    def _search(self, uri: str) -> Path | None:
        scheme, separator, rest = uri.strip().replace("\\", "/").partition("://")
        if not separator:
            scheme, rest = "", uri.strip().replace("\\", "/").removeprefix("file:")
        parts = [part for part in rest.split("/") if part not in ("", ".")]
        if not parts or scheme.lower() not in ("", "file", "package", "model"):
            return None
        if scheme == "":
            candidates = self._plain(rest)
        elif scheme.lower() == "file":
            candidates = self._plain(_local(rest))
        else:
            candidates = self._in_package(parts[0], parts[1:])
        for candidate in candidates:
            if os.path.isfile(candidate):
                return Path(os.path.normpath(candidate))
        found = self._by_its_end(parts)
        if found is None and scheme.lower() in ("package", "model"):
            found = next((c for c in self._installed(parts[0], parts[1:]) if os.path.isfile(c)), None)
        return found

    def _plain(self, path: str) -> Iterator[Path]:
        if os.path.isabs(path):
            yield Path(path)
        elif self._above:
            yield self._above[0] / path

    def _in_package(self, name: str, rest: list[str]) -> Iterator[Path]:
        if name in self._folders:
            yield self._folders[name].joinpath(*rest)
            yield self._folders[name].joinpath(name, *rest)  # the folder that holds the package was given
        for folder in self._above:
            if folder.name == name:
                yield folder.joinpath(*rest)
            yield folder.joinpath(name, *rest)

    def _by_its_end(self, parts: list[str]) -> Path | None:
        """`b/c.stl` of `package://a/b/c.stl` in a folder above the model; `c.stl` alone only beside it."""
        key = "/".join(parts[:-1])
        if key in self._last:  # the files of one folder are found in one place
            folder, start = self._last[key]
            candidate = folder.joinpath(*parts[start:])
            if os.path.isfile(candidate):
                return candidate
        for height, folder in enumerate(self._above[:HIGHEST]):
            for start in range(len(parts) if height == 0 else len(parts) - 1):
                candidate = folder.joinpath(*parts[start:])
                if os.path.isfile(candidate):
                    self._last[key] = folder, start
                    return candidate
        return None

    def _installed(self, name: str, rest: list[str]) -> Iterator[Path]:
        for entry in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
            if Path(entry).name == name:
                yield Path(entry, *rest)
            yield Path(entry, name, *rest)
        for entry in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
            yield Path(entry, "share", name, *rest)


def files_around(opened: Source, packages: Mapping[str, str | Path] | None = None) -> FilesAround:
    """What `opened` may name: the files that came with it, or else those of this machine."""
    if opened.around is not None:
        return opened.around
    return Packages(None if opened.path is None else opened.path.parent, packages)


def where_to_look(uri: str) -> str:
    """For the end of a message about a file that was not found: what could lead there."""
    if not uri.strip().lower().startswith(("package://", "model://")):
        return ""
    return "; packages= or the environment variable ROS_PACKAGE_PATH can say where its package is"


def _local(rest: str) -> str:
    """The path of `file://` + rest: with or without a host, and on Windows `/C:/...` is `C:/...`."""
    path = unquote(rest).removeprefix("localhost/") if rest.startswith("localhost/") else unquote(rest)
    if rest.startswith("localhost/"):
        path = "/" + path
    return path[1:] if os.name == "nt" and len(path) > 2 and path[0] == "/" and path[2] == ":" else path
