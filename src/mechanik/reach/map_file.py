"""Maps of reach in .npz files.

One array each of what a `ReachMap` holds, the orientations that are reached packed into bits, and `about`, a line of
JSON: {"mechanik_reach": 1, "mechanism": name, "link": name, "resolution": m, "asked": "pose", "orientations": n}.
"""

from __future__ import annotations

import json
import os
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from mechanik.errors import CannotSave, FileMissing, FormatError
from mechanik.reach.cells import MOST_CELLS
from mechanik.reach.reach_map import ReachMap
from mechanik.reach.shares import Asked

VERSION = 1
ARRAYS = ("base", "first", "shape", "cells", "q", "positions", "wxyz", "reached")


def save(map: ReachMap, path: str | PathLike[str]) -> None:
    """Write beside `path`, and put it in its place when all is there."""
    place = _path(path)
    part = place.with_name(f"{place.name}.part")
    about = {
        "mechanik_reach": VERSION,
        "mechanism": map.mechanism,
        "link": map.link,
        "resolution": map.resolution,
        "asked": map.asked,
        "orientations": len(map.wxyz),
    }
    arrays: dict[str, npt.NDArray[Any]] = {name: np.asarray(getattr(map, name)) for name in ARRAYS}
    arrays["cells"] = map.cells.astype(np.int32)
    arrays["reached"] = np.packbits(map.reached, axis=1)
    try:
        with open(part, "wb") as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
        os.replace(part, place)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CannotSave(f"{place} cannot be written: {error.strerror}") from None


def load(path: str | PathLike[str]) -> ReachMap:
    """Read what `save` wrote; anything else is refused."""
    place = _path(path)
    if not place.exists():
        raise FileMissing(f"there is no file {str(path)!r}")
    try:
        with open(place, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            if "about" not in file:
                raise FormatError(f"{place} is no map of reach: it does not say what it is about")
            about = json.loads(str(file["about"]))
            _check_version(about, place)
            arrays = {name: file[name] for name in ARRAYS}
        return _checked(about, arrays)
    except FormatError:
        raise
    except KeyError as error:
        raise FormatError(f"{place} is no whole map of reach: {error.args[0]} is missing") from None
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"{place} is no map of reach, or a broken one: {error}") from None
    except Exception as error:
        # what a damaged archive raises depends on where it is damaged
        raise FormatError(f"{place} is a broken file: {error}") from None


def _check_version(about: Any, place: Path) -> None:
    version = about.get("mechanik_reach") if isinstance(about, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(version, int):
        raise FormatError(f"{place} is no map of reach: it does not say what it is about")
    if version > VERSION:
        raise FormatError(f"{place} is of version {version}, and this program reads up to {VERSION}; update Mechanik")


def _checked(about: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> ReachMap:
    """A map, if the arrays fit each other; a ValueError says what does not."""
    count, voxels = int(about["orientations"]), len(arrays["cells"])
    resolution, asked = float(about["resolution"]), about["asked"]
    shape, cells = arrays["shape"], arrays["cells"].astype(np.int64)
    wanted = {
        "base": (3,), "first": (3,), "shape": (3,), "cells": (voxels, 3), "positions": (voxels, 3), "wxyz": (count, 4),
        "reached": (voxels, (count + 7) // 8), "q": (voxels, *arrays["q"].shape[1:2]),
    }  # fmt: skip
    for name, size in wanted.items():
        if arrays[name].shape != size:
            raise ValueError(f"{name} is of shape {arrays[name].shape}, not {size}")
    for name in ("base", "positions", "wxyz", "q"):
        if arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} holds what is no finite number")
    if not (resolution > 0.0 and np.isfinite(resolution)) or asked not in get_args(Asked):
        raise ValueError(f"resolution {resolution!r} with {asked!r} makes no sense")
    if (shape < 0).any() or shape.prod(dtype=np.float64) > MOST_CELLS:
        raise ValueError(f"it would be {shape.tolist()} voxels wide")
    if ((cells < 0) | (cells >= shape)).any() or len(np.unique(cells, axis=0)) < voxels:
        raise ValueError("a voxel stands outside the map, or twice in it")
    first, wide = (tuple(int(x) for x in arrays[name]) for name in ("first", "shape"))
    reached = np.unpackbits(arrays["reached"], axis=1, count=count).astype(np.bool_)
    return ReachMap(
        str(about["mechanism"]), str(about["link"]), resolution, arrays["base"],
        (first[0], first[1], first[2]), (wide[0], wide[1], wide[2]),
        cells, arrays["q"], arrays["positions"], asked, arrays["wxyz"], reached,
    )  # fmt: skip


def _path(path: str | PathLike[str]) -> Path:
    return Path(path).expanduser()
