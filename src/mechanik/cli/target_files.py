"""Tables of numbers in files: .npy and .npz, .csv and other text, .parquet; large ones are never in memory at once.

An .npy file is mapped. Text and Parquet are read in blocks into a file of plain numbers, which is mapped then.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from mechanik.cli.csv_reader import read_csv
from mechanik.cli.opening import STANDARD_INPUT
from mechanik.cli.parquet_files import read_parquet
from mechanik.cli.usage import UsageError
from mechanik.errors import FormatError, ShapeError
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array

POSITION, POSE = ("x", "y", "z"), ("x", "y", "z", "qw", "qx", "qy", "qz")
READ = (".npy", ".npz", ".csv", ".tsv", ".txt", ".parquet")
Watcher = Callable[[int], None]
"""Called now and then with how many rows have been read."""


def file_to_read(name: str, what: str) -> Path:
    """Where to read; what cannot be meant is refused before anything is computed."""
    if name == STANDARD_INPUT:
        raise UsageError(f"{what} come from a file, not from standard input")
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{name} is a folder; {what} come from a file")
    if not path.is_file():
        raise UsageError(f"there is no file {name!r} with {what}")
    if path.suffix.lower() not in READ:
        raise UsageError(f"{name!r} must end in {', '.join(READ[:-1])} or {READ[-1]}, which says how to read it")
    return path


def read_targets(path: Path, spool: Path, watch: Watcher) -> Array:
    """Targets as (N, 4, 4), (N, 7) position and wxyz, or (N, 3) positions.

    Args:
        spool: a file to write numbers to, if `path` is one that cannot be mapped.
    """
    targets = _read(path, "targets", (POSE, POSITION), spool, watch)
    if targets.shape[1:] not in ((4, 4), (7,), (3,)):
        raise ShapeError(
            f"{path.name}: targets are (N, 4, 4) poses, (N, 7) positions and quaternions wxyz, or (N, 3) positions, "
            f"and these are {targets.shape}"
        )
    return targets


def read_starts(path: Path, mechanism: Mechanism, count: int, spool: Path, watch: Watcher) -> Array:
    """Starts as (N, nq), or (nq,) if there is one for all."""
    starts = _read(path, "q", (mechanism.space.q_names,), spool, watch)
    if starts.shape in ((mechanism.nq,), (1, mechanism.nq)):
        return np.array(starts).reshape(-1)
    if starts.shape != (count, mechanism.nq):
        raise ShapeError(
            f"{path.name}: starts are ({mechanism.nq},), one for all, or ({count}, {mechanism.nq}), one a target, "
            f"and these are {starts.shape}"
        )
    return starts


def _read(path: Path, key: str, choices: Sequence[Sequence[str]], spool: Path, watch: Watcher) -> Array:
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        return _numbers(_open_array(path, key), path)
    with open(spool, "wb") as stream:

        def take(block: Array) -> None:
            nonlocal rows
            block.tofile(stream)
            rows += len(block)
            watch(rows)

        rows = 0
        columns = (read_parquet if suffix == ".parquet" else read_csv)(path, choices, take)
    if not rows:  # which cannot be mapped
        return np.empty((0, columns))
    return np.memmap(spool, np.float64, "r", shape=(rows, columns))


def _open_array(path: Path, key: str) -> Array:
    try:
        opened = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        if path.stat().st_size == 0:
            raise FormatError(f"{path.name} is empty") from None
        if "pickle" in str(error):
            raise FormatError(f"{path.name} holds Python objects, or is no {path.suffix} file; save numbers") from None
        raise FormatError(f"{path.name} cannot be read: {error}") from None
    if isinstance(opened, np.ndarray):
        return cast("Array", opened)
    with opened:
        names = list(opened.files)
        if key not in names and len(names) != 1:
            raise FormatError(f"{path.name} holds {', '.join(names) or 'nothing'}, and none is called {key!r}")
        try:
            return opened[key if key in names else names[0]]
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise FormatError(f"{path.name} cannot be read: {error}") from None


def _numbers(array: Array, path: Path) -> Array:
    if array.dtype.kind not in "fiu":
        raise FormatError(f"{path.name} holds {array.dtype.name}, and numbers are needed")
    return array if array.dtype.kind == "f" else array.astype(np.float64)
