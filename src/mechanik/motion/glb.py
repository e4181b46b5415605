"""A binary glTF file as it grows: its arrays in one buffer, its description in JSON."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

FLOAT, UINT = 5126, 5125
VERTICES, CORNERS = 34962, 34963
"""What a view of the buffer is for."""
KINDS = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
JSON_CHUNK, BIN_CHUNK = 0x4E4F534A, 0x004E4942


class Glb:
    """
    Attributes:
        top: the JSON object; lists of things by their glTF names.
    """

    def __init__(self) -> None:
        self.top: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "Mechanik"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [],
            "accessors": [],
            "bufferViews": [],
        }
        self._bytes = bytearray()

    def add(self, kind: str, thing: dict[str, Any]) -> int:
        """Put it into the list of its kind; its number there."""
        things: list[dict[str, Any]] = self.top.setdefault(kind, [])
        things.append(thing)
        return len(things) - 1

    def array(self, values: npt.NDArray[Any], used_as: int | None = None) -> int:
        """An accessor for (n,), (n, 3) or (n, 4): whole numbers of 32 bits, or single floats; with its range."""
        is_whole = values.dtype.kind in "ui"
        stored = np.ascontiguousarray(values, dtype="<u4" if is_whole else "<f4")
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self._bytes), "byteLength": stored.nbytes}
        if used_as is not None:
            view["target"] = used_as
        self._bytes += stored.tobytes()  # four bytes a number, so that all begin where they may
        rows = stored.reshape(len(stored), -1)
        return self.add(
            "accessors",
            {
                "bufferView": self.add("bufferViews", view),
                "componentType": UINT if is_whole else FLOAT,
                "count": len(rows),
                "type": KINDS[rows.shape[1]],
                "min": rows.min(axis=0).tolist(),
                "max": rows.max(axis=0).tolist(),
            },
        )

    def file(self) -> bytes:
        self.top["buffers"] = [{"byteLength": len(self._bytes)}]
        text = json.dumps(self.top, separators=(",", ":"), allow_nan=False).encode()
        text += b" " * (-len(text) % 4)
        size = 12 + 8 + len(text) + 8 + len(self._bytes)
        head = struct.pack("<4sIIII", b"glTF", 2, size, len(text), JSON_CHUNK)
        return head + text + struct.pack("<II", len(self._bytes), BIN_CHUNK) + bytes(self._bytes)
