"""A batch's result as plain .npy files in a folder.

`status.npy` is what says that a row is done, so it is written after the row's numbers have reached the disk, and it is
the last file to appear when a folder is made. So a process may be killed at any time, or the machine be switched off: a
row that is marked is right, and all others are solved again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mechanik.batch.about import About
from mechanik.batch.columns import Rows
from mechanik.batch.engine import Answers
from mechanik.errors import CannotSave, FileMissing, FormatError
from mechanik.kernels.solver_state import PENDING_ROW

ABOUT, STATUS = "about.json", "status"
KINDS: Mapping[str, npt.DTypeLike] = {"q": "<f8", "errors": "<f8", "iterations": "<i4", STATUS: "|i1"}
AT_A_TIME = 1 << 20
"""Rows, where many have to be written at once."""
Arrays = dict[str, npt.NDArray[Any]]


def shapes(about: About) -> dict[str, tuple[int, ...]]:
    """Of each array."""
    rows = about.rows
    return {
        "q": (rows, len(about.joints)),
        "errors": (rows, len(about.objectives), 2),
        "iterations": (rows,),
        STATUS: (rows,),
    }


def is_begun(folder: Path) -> bool:
    """Whether a batch has been started there; what else a folder holds is refused."""
    try:
        held = sorted(one.name for one in folder.iterdir())
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise CannotSave(f"{folder} is a file; a batch is written into a folder of its own") from None
    except (OSError, ValueError) as error:
        raise CannotSave(f"{folder} cannot be looked into: {getattr(error, 'strerror', None) or error}") from None
    if ABOUT in held:
        return True
    others = [name for name in held if name != f"{ABOUT}.part"]
    if others:
        raise CannotSave(f"{folder} holds other things ({others[0]}); a batch is written into a folder of its own")
    return False


def read_about(folder: Path) -> About:
    """What the folder says of itself."""
    try:
        text = (folder / ABOUT).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileMissing(f"{folder} holds no result of a batch: there is no {ABOUT} in it") from None
    except (OSError, ValueError) as error:
        raise FormatError(f"{folder / ABOUT} cannot be read: {error}") from None
    return About.read(text, str(folder / ABOUT))


def write_about(folder: Path, about: About) -> None:
    """Beside its place first, so that it is there as a whole or not at all."""
    beside = folder / f"{ABOUT}.part"
    with saving(folder):
        with open(beside, "w", encoding="utf-8") as stream:
            stream.write(about.text())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, folder / ABOUT)


def make(folder: Path, about: About) -> None:
    """Files for a batch of which nothing is done; or those that are missing, if making them was cut short."""
    with saving(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_about(folder, about)
    finish_making(folder, about)


def finish_making(folder: Path, about: About) -> None:
    """All files but `about.json`, unless they are there."""
    if (folder / f"{STATUS}.npy").exists():
        return
    with saving(folder):
        for name, shape in shapes(about).items():
            beside = folder / f"{name}.npy.part"
            dtype = np.dtype(KINDS[name])
            with open(beside, "wb") as stream:
                head = {"descr": dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, head)
                if name == STATUS:
                    for first in range(0, about.rows, AT_A_TIME):
                        count = min(AT_A_TIME, about.rows - first)
                        stream.write(np.full(count, PENDING_ROW, dtype=dtype).tobytes())
                else:  # a hole, which takes no room on the disk yet
                    stream.truncate(stream.tell() + dtype.itemsize * int(np.prod(shape)))
            os.replace(beside, folder / f"{name}.npy")


def read_arrays(folder: Path, about: About) -> Arrays:
    """All arrays, memory-mapped and read-only."""
    found: Arrays = {}
    for name, shape in shapes(about).items():
        path = folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r" if about.rows and all(shape) else None, allow_pickle=False)
        except FileNotFoundError:
            raise FileMissing(f"{path} is missing, so that {folder} is no whole result of a batch") from None
        except (OSError, ValueError) as error:
            raise FormatError(f"{path} cannot be read: {error}") from None
        if array.shape != shape or array.dtype != np.dtype(KINDS[name]):
            raise FormatError(f"{path} is {array.dtype} {array.shape}, and {ABOUT} says {KINDS[name]} {shape}")
        array.flags.writeable = False
        found[name] = array
    return found


class Writer:
    """Writes answers into the files of a folder; they count from the next `commit` on."""

    def __init__(self, folder: Path, about: About) -> None:
        self._folder, self._about = folder, about
        self._lock = threading.Lock()
        self._waiting: list[tuple[Rows, npt.NDArray[np.int8]]] = []
        self._files: dict[str, BinaryIO] = {}
        self._begins: dict[str, int] = {}
        with saving(folder):
            for name in KINDS:
                file = open(folder / f"{name}.npy", "r+b", buffering=0)  # noqa: SIM115 - closed in `close`
                self._files[name] = file
                np.lib.format.read_magic(file)
                np.lib.format.read_array_header_1_0(file)
                self._begins[name] = file.tell()

    def put(self, rows: Rows, found: Answers) -> None:
        """From any thread."""
        with self._lock, saving(self._folder):
            for name, numbers in (("q", found.q), ("errors", found.errors), ("iterations", found.iterations)):
                self._write(name, rows, numbers)
            self._waiting.append((rows, found.code.astype(np.int8)))

    def commit(self) -> None:
        """What was put before is done, and stays so whatever happens next."""
        with self._lock, saving(self._folder):
            for name in KINDS:
                if name != STATUS and self._waiting:
                    os.fsync(self._files[name].fileno())
            while self._waiting:
                self._write(STATUS, *self._waiting[-1])
                self._waiting.pop()

    def close(self, seconds: float) -> None:
        """After the last commit; `seconds` have been spent since it was opened."""
        with self._lock:
            for file in self._files.values():
                file.close()
        if seconds:
            write_about(self._folder, self._about.after(seconds))

    def _write(self, name: str, rows: Rows, numbers: npt.NDArray[Any]) -> None:
        file, dtype = self._files[name], np.dtype(KINDS[name])
        size = dtype.itemsize * int(np.prod(numbers.shape[1:]))
        ends = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        for first, last in pairwise(ends):
            file.seek(self._begins[name] + size * int(rows[first]))
            left = memoryview(np.ascontiguousarray(numbers[first:last], dtype=dtype).tobytes())
            while left:
                left = left[file.write(left) :]


@contextmanager
def saving(folder: Path) -> Generator[None]:
    """What the disk has against it, said with the folder's name."""
    try:
        yield
    except OSError as error:
        raise CannotSave(f"{folder} cannot be written: {error.strerror or error}") from error
