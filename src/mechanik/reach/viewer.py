"""A map of reach for viewers: colours, and compact JSON.

    {"mechanik_reach": 1, "mechanism": "panda", "link": "panda_hand_tcp", "asked": "pose", "orientations": 60,
     "resolution": 0.05, "origin": [x, y, z], "shape": [nx, ny, nz], "count": k, "volume": m3, "cells": "...",
     "shares": "..."}

`cells` and `shares` are base64: 3 k little-endian numbers of 16 bits, x y z x y z ..., and k numbers of 8 bits. The
centre of a voxel is origin + (cell + 0.5) * resolution, metres in the world's frame; its share is the number / 255. In
a browser: `new Uint16Array(Uint8Array.from(atob(map.cells), c => c.charCodeAt(0)).buffer)`.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mechanik.reach.map_file import VERSION
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.reach.reach_map import ReachMap

RAMP = ((94, 60, 153), (58, 98, 176), (38, 142, 166), (64, 176, 124), (158, 205, 74), (250, 222, 60))
"""Red, green and blue from share 0 to 1; also in shades of grey, and for eyes that see few colours, it only rises."""


def colours(shares: Array) -> npt.NDArray[np.uint8]:
    """(..., 3), 0 to 255."""
    at = np.linspace(0.0, 1.0, len(RAMP))
    bands = [np.interp(shares, at, [colour[k] for colour in RAMP]) for k in range(3)]
    return np.stack(bands, axis=-1).round().astype(np.uint8)


def as_json(map: ReachMap) -> dict[str, Any]:
    """Plain data, as described at the top of this file."""
    return {
        "mechanik_reach": VERSION,
        "mechanism": map.mechanism,
        "link": map.link,
        "asked": map.asked,
        "orientations": len(map.wxyz),
        "resolution": map.resolution,
        "origin": map.origin.tolist(),
        "shape": list(map.shape),
        "count": len(map),
        "volume": map.volume,
        "cells": b64encode(map.cells.astype("<u2").tobytes()).decode(),
        "shares": b64encode((255 * map.shares).round().astype(np.uint8).tobytes()).decode(),
    }
