"""The triangles of an STL file, in binary or as text."""

from __future__ import annotations

import re

import numpy as np

from mechanik.errors import FormatError, Refused
from mechanik.spatial.array import Array

HEAD, FACET = 84, 50
"""Bytes before the first triangle of a binary file, and of each."""
MOST_TEXT = 32 * 2**20
"""Bytes; one triangle takes some 250."""
_VERTEX = re.compile(rb"vertex\s+(\S{1,40})\s+(\S{1,40})\s+(\S{1,40})")


def read_stl(name: str, data: bytes, most: int) -> Array:
    """
    Returns:
        (T, 3, 3), places of the corners; they may be anything that a file can hold, NaN as well.
    Raises:
        FormatError: it is broken.
        Refused: it is too large, or has more than `most` triangles.
    """
    count = int.from_bytes(data[80:HEAD], "little")
    if len(data) >= HEAD and len(data) == HEAD + FACET * count:  # which texts never are; some binary ones begin "solid"
        return _binary(name, data, count, most)
    if data[:512].lstrip()[:5].lower() == b"solid":
        return _text(name, data, most)
    if len(data) > HEAD and len(data) > HEAD + FACET * count:  # with something behind the last triangle
        return _binary(name, data, count, most)
    raise FormatError(f"{name}: this STL file is cut off, or is none; write it anew")


def _binary(name: str, data: bytes, count: int, most: int) -> Array:
    _check(name, count, most)
    kind = np.dtype([("normal", "<f4", 3), ("at", "<f4", (3, 3)), ("rest", "<u2")])
    facets = np.frombuffer(data, kind, count, HEAD)
    return facets["at"].astype(np.float64)


def _text(name: str, data: bytes, most: int) -> Array:
    if len(data) > MOST_TEXT:
        raise Refused(f"{name}: an STL of {len(data) / 2**20:.0f} MB as text; write it in binary, a fifth of that")
    words = _VERTEX.findall(data)
    _check(name, len(words) // 3, most)
    if len(words) % 3:
        raise FormatError(f"{name}: a triangle of this STL file has not three corners; write it anew")
    try:
        return np.array(words, dtype=np.bytes_).reshape(-1, 3, 3).astype(np.float64)
    except ValueError:
        raise FormatError(f"{name}: a corner in this STL file is not three numbers; write it anew") from None


def _check(name: str, count: int, most: int) -> None:
    if count > most:
        raise Refused(f"{name}: this STL file has {count:,} triangles; at most {most:,} are read")
