"""Stand-ins for the meshes and pictures that an MJCF names and that are not there.

MuJoCo refuses a model without them, and they say nothing about how it moves. What MuJoCo infers from a stand-in, the
mass of its body, is not believed: it is compiled with stand-ins of two sizes, and what differs is dropped.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

MOST = 1000
"""Files; each one that is missing costs an attempt to compile."""

Compile = Callable[[dict[str, bytes]], Any]
_MISSING = re.compile(r"Error opening file '([^']+)'")


def compile_without_files(compile_model: Compile, known: Sequence[str] = ()) -> tuple[Any, list[str], list[int]]:
    """Compile, with a stand-in for each mesh and picture that cannot be opened.

    Args:
        compile_model: called with the stand-ins, by file name.
        known: the names of files that have to have one.
    Returns:
        the model, the names of the files that are missing, and the numbers of bodies whose mass is not known.
    Raises:
        ValueError: whatever else MuJoCo has to say.
    """
    missing = list(known)
    while True:
        try:
            model = compile_model(_stand_ins(missing, 0.01))
            break
        except ValueError as error:
            found = _MISSING.search(str(error))
            is_new = found is not None and found[1] not in missing and "'include'" not in str(error)
            if found is None or not is_new or len(missing) >= MOST or not _stand_ins([found[1]], 1.0):
                if missing:  # what fails may be a stand-in, for a picture of a certain size, say
                    raise ValueError(f"{error} ({missing[-1]!r} could not be opened)") from None
                raise
            missing.append(found[1])
    if not missing:
        return model, [], []
    other = compile_model(_stand_ins(missing, 0.02))
    same = np.isclose(model.body_mass, other.body_mass, rtol=1e-9) & np.isclose(
        model.body_inertia, other.body_inertia, rtol=1e-9, atol=0.0
    ).all(axis=1)
    return model, missing, np.flatnonzero(~same).tolist()


def _stand_ins(names: list[str], size: float) -> dict[str, bytes]:
    """A small tetrahedron for a mesh, four grey points for a picture; nothing for what is neither."""
    made: dict[str, bytes] = {}
    for name in names:
        suffix = PurePath(name).suffix.lower()
        if suffix == ".stl":
            made[name] = _stl(size)
        elif suffix == ".obj":
            made[name] = _obj(size)
        elif suffix == ".png":
            made[name] = _png()
    return made


CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float64)
SIDES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def _stl(size: float) -> bytes:
    sides = [struct.pack("<12fH", 0, 0, 0, *(size * CORNERS[list(side)]).ravel(), 0) for side in SIDES]
    return bytes(80) + struct.pack("<I", len(sides)) + b"".join(sides)


def _obj(size: float) -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in (size * CORNERS).tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in SIDES]
    return "\n".join([*lines, ""]).encode()


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">2I5B", 2, 2, 8, 2, 0, 0, 0)  # as large as a height field has to be
    pixels = zlib.compress(2 * (b"\0" + 6 * b"\x80"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
