"""Storage of a batch in .npy files, and fingerprints that prevent resuming a result with other inputs.

A fingerprint covers everything that solutions depend on: link poses instead of the text of a model file, and targets
and starts as given. `status.npy` marks a row as done. It is written after the numbers of the row have reached the disk,
and it is the last file that appears when a folder is made. So the process may be killed or the machine switched off at
any time: a marked row is correct, and all others are solved again.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from mechanik.errors import BatchMismatch, CannotSave, FileMissing, FormatError, JsonError, MechanikError
from mechanik.kernels.state_layout import BATCH_PENDING
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.constraint_relations import closure_relations, joint_constraint_relations
from mechanik.solver.batch.batch_rows import BatchStarts, BatchTargets, RowNumbers, RowResults
from mechanik.spatial.array import Array

ROWS_PER_DIGEST = 1 << 16
"""Rows that are read at a time for a digest."""
POSE_DIGITS = 9
"""Decimal digits of poses in a fingerprint, since the last bits differ between machines."""

Fingerprint = Mapping[str, str]
"""Digest of each part of a batch, by the name of the part."""


def fingerprint(
    mechanism: Mechanism,
    objectives: Sequence[Objective],
    settings: object,
    targets: BatchTargets,
    starts: BatchStarts,
    cache: dict[str, str],
) -> Fingerprint:
    """Return a digest of 16 hexadecimal digits for each part of a batch.

    Args:
        mechanism: the mechanism.
        objectives: the objectives.
        settings: all other data that solutions depend on: numbers, texts, arrays, dataclasses, and containers of these.
        targets, starts: inputs of all rows.
        cache: digests of the same mechanism and settings; filled here if empty.
    """
    wanted, began = _all_rows(targets, starts)
    if not cache:
        cache |= {"mechanism": digest(_mechanism(mechanism)), "options": digest(settings)}
    return {
        "mechanism": cache["mechanism"],
        "goals": digest([_objective(mechanism, one, targets, k) for k, one in enumerate(objectives)]),
        "options": cache["options"],
        "targets": wanted,
        "starts": began,
    }


def _all_rows(targets: BatchTargets, starts: BatchStarts) -> tuple[str, str]:
    """Return digests of all targets and of all starts, read in chunks, so that files need not fit into memory."""
    asked, began = (hashlib.blake2b(digest_size=8) for _ in range(2))
    # without starts the present configuration is the start, and holds the joints that do not move
    _feed(began.update, (starts.q0 is None, starts.count is None, starts.default_q if starts.q0 is None else None))
    for first in range(0, targets.count, ROWS_PER_DIGEST):
        rows = np.arange(first, min(first + ROWS_PER_DIGEST, targets.count))
        wanted, good = targets.take(rows, True)
        for k, taken in enumerate(wanted.values):
            if isinstance(taken, np.ndarray):
                _feed(asked.update, _checksum(cast("Array", taken)))
            else:
                _feed(asked.update, [wanted.target(k, i) for i in range(wanted.count)])
        _feed(asked.update, good)
        if (given := starts.take(rows)[0]) is not None:
            _feed(began.update, _checksum(given))
        targets.release()
        starts.release()
    return asked.hexdigest(), began.hexdigest()


def _checksum(numbers: Array) -> object:
    """Return the shape and position-weighted sums of all bits by rows and columns; much faster than a digest."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64).reshape(len(numbers), -1)
    by_row, by_column = bits.sum(axis=1), bits.sum(axis=0)
    return numbers.shape, int(by_row @ (2 * np.arange(len(by_row), dtype=np.uint64) + 1)), by_column


def row_seed(seed: int, row: object, q0: object) -> int:
    """Return a seed for a row that depends only on its contents, so that its index does not change its result."""
    return int(digest(seed, row, q0), 16)


def digest(*things: object) -> str:
    """Return 16 hexadecimal digits that change with any value in `things`."""
    sink = hashlib.blake2b(digest_size=8)
    _feed(sink.update, things)
    return sink.hexdigest()


def _feed(put: Callable[[bytes], None], thing: object) -> None:
    if isinstance(thing, np.ndarray | np.generic):
        numbers = np.ascontiguousarray(cast("Any", thing))
        put(f"array {numbers.dtype.str} {numbers.shape} ".encode())
        put(numbers.tobytes())
    elif isinstance(thing, Enum):
        put(f"{type(thing).__name__}.{thing.name} ".encode())
    elif isinstance(thing, bool) or thing is None:
        put(f"{thing} ".encode())
    elif isinstance(thing, int | str):
        put(f"{type(thing).__name__} {len(str(thing))} {thing} ".encode())
    elif isinstance(thing, float):
        put(b"float " + struct.pack("<d", thing))
    elif isinstance(thing, Mapping):
        items = cast("Mapping[Any, Any]", thing)
        put(f"mapping {len(items)} ".encode())
        for key in sorted(items, key=str):
            _feed(put, (str(key), items[key]))
    elif isinstance(thing, list | tuple):
        items = cast("Sequence[Any]", thing)
        put(f"items {len(items)} ".encode())
        for item in items:
            _feed(put, item)
    elif is_dataclass(thing) and not isinstance(thing, type):
        put(f"{type(thing).__name__} ".encode())
        _feed(put, {field.name: getattr(thing, field.name, None) for field in fields(thing)})
    else:  # a function or a user object: by its name, since its contents are unknown
        put(f"{getattr(thing, '__qualname__', type(thing).__qualname__)} ".encode())


def _mechanism(mechanism: Mechanism) -> object:
    space = mechanism.space
    q = mechanism.random(np.random.default_rng(0), 2)
    poses = np.round(mechanism.poses(q), POSE_DIGITS) + 0.0  # converts -0 to 0
    closures = {name: closure_relations(mechanism, closure) for name, closure in mechanism.closures.items()}
    return (
        space.q_names,
        space.v_names,
        space.lower,
        space.upper,
        space.rotates,
        tuple(mechanism.links),
        poses,
        closures,
        joint_constraint_relations(mechanism),
        {name: joint.cone and (joint.cone.angle, joint.cone.axes) for name, joint in mechanism.joints.items()},
    )


def _objective(mechanism: Mechanism, objective: Objective, targets: BatchTargets, k: int) -> object:
    """Return all data of an objective except a target that the batch replaces."""
    column = targets.columns[k]
    target = None if column is None else column.sample_target()
    aimed = objective
    if target is not None:
        try:
            aimed = objective.with_target(target)  # type: ignore[arg-type]
        except MechanikError:
            aimed = objective
    wish = (aimed.weight, aimed.level, aimed.tolerance, aimed.angle_tolerance, aimed.required, aimed.name)
    return (type(aimed).__name__, wish, aimed.relations(mechanism))


FORMAT, VERSION = "mechanik batch", 1


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """Metadata of a batch: its inputs and the time spent.

    Attributes:
        rows: number of targets.
        joints: name of each entry of q.
        objectives: name of each objective.
        seed: seed of all random numbers; None if there are none.
        asked: fingerprint of each part of the batch.
        seconds: time spent on the finished rows, s.
    """

    rows: int
    joints: tuple[str, ...]
    objectives: tuple[str, ...]
    seed: int | None
    asked: Fingerprint
    seconds: float = 0.0

    def with_seconds_added(self, seconds: float) -> BatchMetadata:
        """Return the same metadata with more time spent, s."""
        return replace(self, seconds=self.seconds + seconds)

    def check_same_batch(self, other: BatchMetadata, where: str) -> None:
        """Raise `BatchMismatch` if `other`, the present batch, differs from this one."""
        if self.rows != other.rows:
            raise BatchMismatch(
                f"{where} is a result for {self.rows} targets, and there are {other.rows}; {OTHER_FOLDER_HINT}"
            )
        if (len(self.joints), len(self.objectives)) != (len(other.joints), len(other.objectives)):
            mine, its = (f"{len(a.joints)} numbers in q and {len(a.objectives)} objectives" for a in (other, self))
            raise BatchMismatch(f"{where} is a result with {its}, and now there are {mine}; {OTHER_FOLDER_HINT}")
        parts = [part for part in other.asked if self.asked.get(part) != other.asked[part]]
        if parts:
            raise BatchMismatch(
                f"{where} is the result of another batch: other {' and '.join(parts)}; {OTHER_FOLDER_HINT}"
            )

    def to_json(self) -> str:
        """Return the metadata as JSON."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2) + "\n"

    @staticmethod
    def from_json(text: str, where: str) -> BatchMetadata:
        """Read what `to_json` wrote.

        Raises:
            JsonError: if the text is not the metadata of a batch.
        """
        try:
            data: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise JsonError(f"{where}: this is no JSON: {error}") from None
        table = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        if table.get("format") != FORMAT:
            raise JsonError(f"{where}: format is {table.get('format')!r}, and that of a batch is {FORMAT!r}")
        if table.get("version") != VERSION:
            raise JsonError(f"{where}: version is {table.get('version')!r}, and this Mechanik reads {VERSION}")
        rows, seed, seconds = table.get("rows"), table.get("seed"), table.get("seconds")
        joints, objectives, asked = table.get("joints"), table.get("objectives"), table.get("asked")
        if (
            not (_is_count(rows) and (seed is None or _is_count(seed)))
            or not (_are_names(joints) and _are_names(objectives))
            or not (isinstance(asked, Mapping) and isinstance(seconds, float | int))
        ):
            raise JsonError(f"{where}: rows, joints, objectives, seed, asked and seconds are not what a batch writes")
        named = [tuple(cast("Sequence[str]", names)) for names in (joints, objectives)]
        return BatchMetadata(
            cast("int", rows), named[0], named[1], seed, dict(cast("Fingerprint", asked)), float(seconds)
        )


OTHER_FOLDER_HINT = "it is left as it is; give another place with out="


def _is_count(thing: object) -> bool:
    return isinstance(thing, int) and not isinstance(thing, bool) and thing >= 0


def _are_names(thing: object) -> bool:
    return isinstance(thing, list) and all(isinstance(one, str) for one in cast("list[object]", thing))


METADATA_FILE, STATUS = "about.json", "status"
ARRAY_DTYPES: Mapping[str, npt.DTypeLike] = {"q": "<f8", "errors": "<f8", "iterations": "<i4", STATUS: "|i1"}
ROWS_PER_WRITE = 1 << 20
"""Rows that are written at a time."""
Arrays = dict[str, npt.NDArray[Any]]


def array_shapes(metadata: BatchMetadata) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array."""
    rows = metadata.rows
    return {
        "q": (rows, len(metadata.joints)),
        "errors": (rows, len(metadata.objectives), 2),
        "iterations": (rows,),
        STATUS: (rows,),
    }


def has_batch(folder: Path) -> bool:
    """Return whether a folder holds a batch.

    Raises:
        CannotSave: if the folder holds other files, or is not a folder.
    """
    try:
        held = sorted(one.name for one in folder.iterdir())
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise CannotSave(f"{folder} is a file; a batch is written into a folder of its own") from None
    except (OSError, ValueError) as error:
        raise CannotSave(f"{folder} cannot be looked into: {getattr(error, 'strerror', None) or error}") from None
    if METADATA_FILE in held:
        return True
    others = [name for name in held if name != f"{METADATA_FILE}.part"]
    if others:
        raise CannotSave(f"{folder} holds other things ({others[0]}); a batch is written into a folder of its own")
    return False


def read_metadata(folder: Path) -> BatchMetadata:
    """Read the metadata of a folder."""
    try:
        text = (folder / METADATA_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileMissing(f"{folder} holds no result of a batch: there is no {METADATA_FILE} in it") from None
    except (OSError, ValueError) as error:
        raise FormatError(f"{folder / METADATA_FILE} cannot be read: {error}") from None
    return BatchMetadata.from_json(text, str(folder / METADATA_FILE))


def write_metadata(folder: Path, metadata: BatchMetadata) -> None:
    """Write the metadata atomically: to a temporary file that is then renamed."""
    beside = folder / f"{METADATA_FILE}.part"
    with reporting_write_errors(folder):
        with open(beside, "w", encoding="utf-8") as stream:
            stream.write(metadata.to_json())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, folder / METADATA_FILE)


def create_files(folder: Path, metadata: BatchMetadata) -> None:
    """Create the files of a batch without finished rows, or those that are missing after an interruption."""
    with reporting_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_metadata(folder, metadata)
    create_missing_files(folder, metadata)


def create_missing_files(folder: Path, metadata: BatchMetadata) -> None:
    """Create all files except `about.json`, unless they exist."""
    if (folder / f"{STATUS}.npy").exists():
        return
    with reporting_write_errors(folder):
        for name, shape in array_shapes(metadata).items():
            beside = folder / f"{name}.npy.part"
            dtype = np.dtype(ARRAY_DTYPES[name])
            with open(beside, "wb") as stream:
                head = {"descr": dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, head)
                if name == STATUS:
                    for first in range(0, metadata.rows, ROWS_PER_WRITE):
                        count = min(ROWS_PER_WRITE, metadata.rows - first)
                        stream.write(np.full(count, BATCH_PENDING, dtype=dtype).tobytes())
                else:  # a sparse file, which takes no disk space yet
                    stream.truncate(stream.tell() + dtype.itemsize * int(np.prod(shape)))
            os.replace(beside, folder / f"{name}.npy")


def read_arrays(folder: Path, metadata: BatchMetadata) -> Arrays:
    """Return all arrays, memory-mapped and read-only."""
    found: Arrays = {}
    for name, shape in array_shapes(metadata).items():
        path = folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r" if metadata.rows and all(shape) else None, allow_pickle=False)
        except FileNotFoundError:
            raise FileMissing(f"{path} is missing, so that {folder} is no whole result of a batch") from None
        except (OSError, ValueError) as error:
            raise FormatError(f"{path} cannot be read: {error}") from None
        if array.shape != shape or array.dtype != np.dtype(ARRAY_DTYPES[name]):
            raise FormatError(
                f"{path} is {array.dtype} {array.shape}, and {METADATA_FILE} says {ARRAY_DTYPES[name]} {shape}"
            )
        array.flags.writeable = False
        found[name] = array
    return found


class BatchWriter:
    """Writer of results to the files of a folder; rows count as done after the next `commit`."""

    def __init__(self, folder: Path, metadata: BatchMetadata) -> None:
        self._folder, self._metadata = folder, metadata
        self._lock = threading.Lock()
        self._waiting: list[tuple[RowNumbers, npt.NDArray[np.int8]]] = []
        self._files: dict[str, BinaryIO] = {}
        self._begins: dict[str, int] = {}
        with reporting_write_errors(folder):
            for name in ARRAY_DTYPES:
                file = open(folder / f"{name}.npy", "r+b", buffering=0)  # noqa: SIM115 - closed in `close`
                self._files[name] = file
                np.lib.format.read_magic(file)
                np.lib.format.read_array_header_1_0(file)
                self._begins[name] = file.tell()

    def put(self, rows: RowNumbers, found: RowResults) -> None:
        """Write results of rows; any thread may call this."""
        with self._lock, reporting_write_errors(self._folder):
            for name, numbers in (("q", found.q), ("errors", found.errors), ("iterations", found.iterations)):
                self._write(name, rows, numbers)
            self._waiting.append((rows, found.code.astype(np.int8)))

    def commit(self) -> None:
        """Mark all rows that were put as done, after their numbers are on the disk."""
        with self._lock, reporting_write_errors(self._folder):
            for name in ARRAY_DTYPES:
                if name != STATUS and self._waiting:
                    os.fsync(self._files[name].fileno())
            while self._waiting:
                self._write(STATUS, *self._waiting[-1])
                self._waiting.pop()

    def close(self, seconds: float) -> None:
        """Close the files after the last commit, and add the seconds since they were opened to the metadata."""
        with self._lock:
            for file in self._files.values():
                file.close()
        if seconds:
            write_metadata(self._folder, self._metadata.with_seconds_added(seconds))

    def _write(self, name: str, rows: RowNumbers, numbers: npt.NDArray[Any]) -> None:
        file, dtype = self._files[name], np.dtype(ARRAY_DTYPES[name])
        size = dtype.itemsize * int(np.prod(numbers.shape[1:]))
        ends = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        for first, last in pairwise(ends):
            file.seek(self._begins[name] + size * int(rows[first]))
            left = memoryview(np.ascontiguousarray(numbers[first:last], dtype=dtype).tobytes())
            while left:
                left = left[file.write(left) :]


@contextmanager
def reporting_write_errors(folder: Path) -> Generator[None]:
    """Convert an `OSError` to `CannotSave` with the name of the folder."""
    try:
        yield
    except OSError as error:
        raise CannotSave(f"{folder} cannot be written: {error.strerror or error}") from error
