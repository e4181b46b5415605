"""A motion as arrays, for NumPy; reads back to an equal one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from mechanik.errors import FormatError
from mechanik.formats import read_json, write_json
from mechanik.motion.motion import Motion

NEEDED = ("times", "q", "names", "mechanism", "name")


def to_npz(motion: Motion) -> bytes:
    """`times` (N,), `q` (N, nq), `names` (nq,), `links` (L,), `poses` (N, L, 4, 4); `mechanism` (JSON), `name`."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        times=motion.times,
        q=motion.q,
        names=np.array(motion.mechanism.space.q_names, dtype=np.str_),
        links=np.array(list(motion.mechanism.links), dtype=np.str_),
        poses=motion.poses(),
        mechanism=np.array(write_json(motion.mechanism)),
        name=np.array(motion.name),
    )
    return file.getvalue()


def from_npz(data: bytes) -> Motion:
    """A motion from what `to_npz` wrote. Nothing in it is ever run; how large it may be is for the caller to say."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: Mapping[str, Any] = {name: file[name] for name in NEEDED if name in file}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise FormatError(f"these bytes are no NPZ file of a motion: {error}") from None
    for name in NEEDED:
        if name not in arrays:
            raise FormatError(f"an NPZ file of a motion holds {', '.join(NEEDED)}; {name!r} is missing")
    for name in ("mechanism", "name"):
        if arrays[name].dtype.kind != "U" or arrays[name].ndim:
            raise FormatError(f"{name!r} of an NPZ file of a motion is one text, not {arrays[name].dtype}")
    mechanism = read_json(str(arrays["mechanism"]))
    if arrays["names"].tolist() != list(mechanism.space.q_names):
        raise FormatError("the names of an NPZ file of a motion are not those of its mechanism's q")
    return Motion(mechanism, arrays["times"], arrays["q"], str(arrays["name"]))
