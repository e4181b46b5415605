"""Files that are held in memory, by their names in the zip that brought them. No file of this machine is ever meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote

from mechanik.errors import FormatError
from mechanik.formats.source import Source

MOST_TEXT = 16 * 2**20
"""Bytes of descriptions in all, the included ones each time; the largest robots have some two million."""

MOST_PARTS = 2_500
"""Links and joints in all; to build a chain takes a time that grows as the square of its length, here some seconds."""

SCHEMES = ("", "file", "package", "model")


class Members:
    """Finds what a model names among the files that came with it.

    The exact place counts first, seen from the model's folder; then the longest end of the path that is the end of a
    member's name, so that `package://robot/meshes/arm.stl` and `/home/me/robot/meshes/arm.stl` are `x/meshes/arm.stl`.

    Args:
        files: name, such as "robot/meshes/arm.stl", to content.
        model: the name of the model among them.
    """

    def __init__(self, files: Mapping[str, bytes], model: str) -> None:
        self.files = files
        self.folder = PurePosixPath(model).parent.parts
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        for name in files:
            parts = PurePosixPath(name).parts
            self._by_last.setdefault(parts[-1], []).append(parts)
        self._read = self._parts = 0

    def find(self, uri: str) -> str | None:
        """The name of the member that `uri` means, or None."""
        scheme, separator, rest = uri.strip().replace("\\", "/").partition("://")
        if not separator:
            scheme, rest = "", uri.strip().replace("\\", "/").removeprefix("file:")
        if scheme.lower() not in SCHEMES:
            return None
        parts = [
            part for part in (unquote(rest) if scheme.lower() == "file" else rest).split("/") if part not in ("", ".")
        ]
        if not parts or parts[-1] == "..":
            return None
        if scheme == "" and (exact := _walked(self.folder, parts)) in self.files:
            return exact
        return self._by_its_end([part for part in parts if part != ".."])

    def locate(self, uri: str, known: str | None = None) -> tuple[bool, str | None]:
        """Whether it came along; `known`, a path on the machine of whoever sent it, is not looked at."""
        return self.find(uri) is not None, None

    def open(self, uri: str) -> Source | None:
        found = self.find(uri)
        return None if found is None else self.source(found)

    def content(self, uri: str) -> bytes | None:
        found = self.find(uri)
        return None if found is None else self.files[found]

    def source(self, name: str) -> Source:
        """A member as a description. All that are read together may not be larger than `MOST_TEXT`."""
        data = self.files[name]
        self._read += len(data)
        if self._read > MOST_TEXT:
            raise FormatError(
                f"{PurePosixPath(name).name}: this and what was read before have {self._read / 2**20:.1f} MB of text; "
                f"at most {MOST_TEXT / 2**20:.0f} are read"
            )
        return Source(data, None, name, self)

    def count(self, parts: int, where: str) -> None:
        self._parts += parts
        if self._parts > MOST_PARTS:
            raise FormatError(
                f"{where}it has {self._parts} links and joints; of a file that was sent, at most {MOST_PARTS} are read"
            )

    def advice(self, uri: str) -> str:
        return "; pack it into the zip, in a folder of the same name"

    def _by_its_end(self, parts: list[str]) -> str | None:
        """The member with the longest end in common; of several, the least deep, and then the first by name."""
        best: tuple[int, int, str] | None = None
        for candidate in self._by_last.get(parts[-1], ()):
            common = 0
            for one, other in zip(reversed(parts), reversed(candidate), strict=False):
                if one != other:
                    break
                common += 1
            rank = (-common, len(candidate), "/".join(candidate))
            best = rank if best is None else min(best, rank)
        return None if best is None else best[2]


def _walked(folder: tuple[str, ...], parts: list[str]) -> str | None:
    """The name that `parts` leads to from `folder`, or None if it leads out of everything."""
    place = list(folder)
    for part in parts:
        if part != "..":
            place.append(part)
        elif place:
            place.pop()
        else:
            return None
    return "/".join(place)
