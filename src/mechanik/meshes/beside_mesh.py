"""What lies beside a mesh: the materials of an .obj, the numbers of a .gltf, the pictures of both and of a .dae.

A mesh names other files by paths from where it lies. Only such kinds are taken as meshes need, small enough to be
shown, and pictures only if their first bytes say that they are some; who asks decides where to look for a name.
"""

from __future__ import annotations

import html
import re
import struct
from collections.abc import Callable
from urllib.parse import unquote

MOST_NAMES = 64
"""Files beside one mesh; the most that robots have is some ten."""
END = 2**19
"""Bytes at the beginning and at the end of a file that are searched: names stand before the numbers, or behind them."""
MOST_SEARCHED = 2**29
"""Bytes in all; a model may name the same file thousands of times."""
LONGEST_NAME = 400
MOST_BYTES = {"mtl": 2**20, "png": 16 * 2**20, "jpg": 16 * 2**20, "bin": 64 * 2**20}
"""By kind; larger ones are not shown."""
MOST_PIXELS = 4096
"""Along each edge of a picture: unpacked, four bytes a pixel."""

_LIBRARY = re.compile(rb"^[ \t]*mtllib[ \t]+([^\r\n]+)", re.MULTILINE)
_PICTURE = re.compile(rb"^[ \t]*map_Kd[ \t]+([^\r\n]+)", re.MULTILINE | re.IGNORECASE)
_IMAGE = re.compile(rb"<init_from>([^<>]*)</init_from>")
_URI = re.compile(rb'"uri"\s*:\s*"([^"\\]*)"')
_ENDINGS = {"mtl": "mtl", "bin": "bin", "png": "png", "jpg": "jpg", "jpeg": "jpg"}
_NAMED_BY = {
    "obj": (_LIBRARY, ("mtl",)),
    "mtl": (_PICTURE, ("png", "jpg")),
    "dae": (_IMAGE, ("png", "jpg")),
    "gltf": (_URI, ("bin", "png", "jpg")),
}
NAMING = ("obj", "dae", "gltf")
"""Endings of meshes that name other files."""
_OPTIONS = re.compile(r"-[A-Za-z]+|on|off|[-+]?[\d.]+(?:e[-+]?\d+)?")
"""Words before the name of a picture in an .mtl: `-s 2 2 1 wood.png`."""


class BesideMeshes:
    """Finds the files beside meshes, also those that their materials name.

    Args:
        find: the bytes under a name such as `neighbour` makes, or None.
    """

    def __init__(self, find: Callable[[str], bytes | None]) -> None:
        self._find = find
        self._left = MOST_SEARCHED

    def of(self, uri: str, data: bytes) -> dict[str, str]:
        """
        Args:
            uri: how the mesh is called; its ending says the format.
        Returns:
            Name as the mesh or its materials say it, to the name under which `find` knows it.
        """
        found: dict[str, str] = {}
        waiting = [(uri, data)]
        while waiting and self._left > 0:
            place, content = waiting.pop()
            self._left -= min(len(content), 2 * END)
            for name, kind in names_in(place, content):
                if name in found or len(found) >= MOST_NAMES:
                    continue
                other = neighbour(place, name)
                beside = self._find(other)
                if beside is not None and is_shown(kind, beside):
                    found[name] = other
                    if kind == "mtl":
                        waiting.append((other, beside))
        return found


def names_in(uri: str, data: bytes) -> list[tuple[str, str]]:
    """The files that this one names, with their kinds, each once; those of other kinds are passed over."""
    ending = ending_of(uri)
    if ending not in _NAMED_BY:
        return []
    pattern, kinds = _NAMED_BY[ending]
    texts: list[bytes] = pattern.findall(data if len(data) <= 2 * END else data[:END] + b"\n" + data[-END:])
    found: dict[str, str] = {}
    for text in texts:
        if len(text) > LONGEST_NAME:
            continue
        name = text.decode("utf-8", errors="replace").strip()
        name = html.unescape(name) if ending == "dae" else _without_options(name) if ending == "mtl" else name
        kind = _ENDINGS.get(ending_of(name))
        if kind is not None and kind in kinds and unquote(name).isprintable():
            found.setdefault(name, kind)
    return list(found.items())[:MOST_NAMES]


def neighbour(uri: str, name: str) -> str:
    """The name `name`, which the file `uri` says, as seen from where `uri` itself is seen."""
    plain = unquote(name).replace("\\", "/")
    if "://" in plain or plain.startswith(("/", "file:")) or re.match("[A-Za-z]:", plain):
        return plain
    folder = uri.replace("\\", "/").split("/")[:-1]
    steps = [step for step in plain.split("/") if step not in ("", ".")]
    while steps and steps[0] == ".." and folder and folder[-1] not in ("", ".", "..") and folder[-1][-1] != ":":
        folder, steps = folder[:-1], steps[1:]
    return "/".join([*folder, *steps])


def ending_of(uri: str) -> str:
    """In small letters, without the dot."""
    last = re.split(r"[/\\]", uri)[-1]
    return last.rpartition(".")[2].lower() if "." in last else ""


def is_shown(kind: str, data: bytes) -> bool:
    """Whether the bytes are of the kind, and not more than a page should unpack."""
    if not 0 < len(data) <= MOST_BYTES[kind]:
        return False
    if kind not in ("png", "jpg"):
        return True
    size = picture_size(data)
    return size is not None and min(size) > 0 and max(size) <= MOST_PIXELS


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG or JPEG as its head says, pixels; None for other bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        mark, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + max(size, 2)
    return None


def _without_options(text: str) -> str:
    words = text.split(" ")
    first = 0
    if words[0].startswith("-"):
        while first < len(words) - 1 and (not words[first] or _OPTIONS.fullmatch(words[first])):
            first += 1
    return " ".join(words[first:])
