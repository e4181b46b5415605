"""The triangles of an OBJ file by material, and the colours in the MTL files beside it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mechanik.errors import FormatError, Refused
from mechanik.meshes.nowhere import is_somewhere, nowhere
from mechanik.spatial.array import Array

MOST_TEXT = 32 * 2**20
"""Bytes; one triangle takes some 60."""
MOST_CORNERS = 1000
"""Of one face."""


def read_obj(name: str, data: bytes, most: int, whole: bool = False) -> dict[str, Array]:
    """
    Args:
        whole: whether a triangle that is nowhere is an error.
    Returns:
        Name of a material ("" before any is named), to (T, 3, 3), places of the corners of its triangles. They may
        be anything that a file can hold, NaN as well, unless `whole`. Faces of more corners are fans of triangles.
    Raises:
        FormatError: a line cannot be read, or `whole` is asked for, and a triangle is nowhere.
        Refused: it is too large, or has more than `most` triangles.
    """
    if len(data) > MOST_TEXT:
        raise Refused(f"{name}: an OBJ of {len(data) / 2**20:.0f} MB; at most {MOST_TEXT / 2**20:.0f} are read")
    places: list[tuple[float, float, float]] = []
    faces: dict[str, list[int]] = {"": []}
    corners, count = faces[""], 0
    astray: set[int] = set()
    for number, line in enumerate(data.splitlines(), start=1):
        words = line.split(None, MOST_CORNERS + 1)
        try:
            if not words:
                continue
            if words[0] == b"v":
                places.append((float(words[1]), float(words[2]), float(words[3])))
                if whole and not is_somewhere(places[-1]):
                    astray.add(len(places) - 1)
            elif words[0] == b"f":
                face = [_number(word, len(places)) for word in words[1:]]
                if astray and len(face) > 2 and not astray.isdisjoint(face):
                    first = next(k for k, corner in enumerate(face) if corner in astray)
                    raise nowhere(f"{name}, line {number}", count + max(1, first - 1), places[face[first]])
                count += max(0, len(face) - 2)
                for one, other in pairwise(face[1:]):
                    corners += (face[0], one, other)
            elif words[0] == b"usemtl":
                corners = faces.setdefault(_text(b" ".join(words[1:])), [])
        except FormatError:
            raise
        except (ValueError, IndexError):
            raise FormatError(f"{name}, line {number}: {_text(line[:60])!r} is no line of an OBJ file") from None
        if count > most:
            raise Refused(f"{name}: this OBJ file has more than the {most:,} triangles that are read")
    points = np.array(places, dtype=np.float64).reshape(-1, 3)
    return {material: points[np.array(found, dtype=np.int64)].reshape(-1, 3, 3) for material, found in faces.items()}


def read_mtl(data: bytes) -> dict[str, tuple[float, float, float, float]]:
    """The colour (r, g, b, a, each 0 to 1) of each material; lines that cannot be read are passed over."""
    colours: dict[str, tuple[float, float, float, float]] = {}
    material, rgb, opacity = "", None, 1.0
    for line in [*data.splitlines(), b"newmtl"]:
        words = line.split()
        key = words[0].lower() if words else b""
        try:
            if key == b"newmtl":
                if rgb is not None:
                    colours[material] = (*rgb, opacity)
                material, rgb, opacity = _text(b" ".join(words[1:])), None, 1.0
            elif key == b"kd":
                rgb = (_share(words[1]), _share(words[2]), _share(words[3]))
            elif key == b"d":
                opacity = _share(words[1])
            elif key == b"tr":
                opacity = 1.0 - _share(words[1])
        except (ValueError, IndexError):
            continue
    return colours


def _number(word: bytes, count: int) -> int:
    """Of a corner such as `7/2/3`; below zero it counts from the last place so far."""
    said = int(word.split(b"/", 1)[0])
    number = said - 1 if said > 0 else count + said
    if not 0 <= number < count or said == 0:
        raise ValueError
    return number


def _share(word: bytes) -> float:
    value = float(word)
    if not 0.0 <= value <= 1.0:
        raise ValueError
    return value


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
