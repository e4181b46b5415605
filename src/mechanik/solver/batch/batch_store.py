"""Storage of a batch in .npy files, and fingerprints that prevent resuming a result with other inputs.

A fingerprint covers the inputs that solutions depend on: link poses instead of the text of a model file, and the
values of all targets and starts. Functions of the user are covered only by their names. `status.npy` marks finished
rows. A row is marked after its numbers have reached the disk, and `status.npy` is the last file that is created in a
new folder. So the process may be killed or the machine switched off at any time: a marked row is correct, and all other
rows are solved again.
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

from mechanik.errors import BatchMismatch, CannotSave, FileMissing, FormatError
from mechanik.kernels.state_layout import BATCH_PENDING
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.constraint_relations import closure_relations, joint_constraint_relations
from mechanik.objectives.target_spec import NEUTRAL_TARGETS
from mechanik.solver.batch.batch_rows import (
    BatchStarts,
    BatchTargets,
    NamedColumn,
    RowIndices,
    RowResults,
    TargetColumn,
)
from mechanik.spatial.array import Array
from mechanik.validation import format_count

ROWS_PER_DIGEST = 1 << 16
"""Number of rows that are read at a time for a digest."""
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
        settings: all other data that solutions depend on: numbers, texts, enums, arrays, dataclasses, and containers of
            these.
        targets, starts: inputs of all rows.
        cache: digests of the mechanism and the settings from an earlier call; filled if it is empty.
    """
    target_digest, start_digest = _row_digests(targets, starts)
    if not cache:
        cache |= {"mechanism": digest(_mechanism_data(mechanism)), "options": digest(settings)}
    return {
        "mechanism": cache["mechanism"],
        "goals": digest([_objective_data(mechanism, objective, targets, k) for k, objective in enumerate(objectives)]),
        "options": cache["options"],
        "targets": target_digest,
        "starts": start_digest,
    }


def _row_digests(targets: BatchTargets, starts: BatchStarts) -> tuple[str, str]:
    """Return digests of all targets and of all starts, read in chunks, so that files need not fit into memory."""
    target_hash, start_hash = (hashlib.blake2b(digest_size=8) for _ in range(2))
    # without starts, solutions depend on the present configuration
    _update_hash(
        start_hash.update, (starts.q0 is None, starts.count is None, starts.default_q if starts.q0 is None else None)
    )
    for first_row in range(0, targets.count, ROWS_PER_DIGEST):
        rows = np.arange(first_row, min(first_row + ROWS_PER_DIGEST, targets.count))
        target_rows, is_valid = targets.read(rows, True)
        for k, values in enumerate(target_rows.values):
            if isinstance(values, np.ndarray):
                _update_hash(target_hash.update, _checksum(cast("Array", values)))
            else:
                _update_hash(target_hash.update, [target_rows.target(k, i) for i in range(target_rows.count)])
        _update_hash(target_hash.update, is_valid)
        if (start_rows := starts.read(rows)[0]) is not None:
            _update_hash(start_hash.update, _checksum(start_rows))
        targets.release()
        starts.release()
    return target_hash.hexdigest(), start_hash.hexdigest()


def _checksum(numbers: Array) -> object:
    """Return the shape and a digest of the numbers; sums would be the same for rows with permuted numbers."""
    data = np.ascontiguousarray(numbers, dtype=np.float64)
    return numbers.shape, hashlib.blake2b(data.data, digest_size=16).hexdigest()


def mechanism_digest(mechanism: Mechanism) -> str:
    """Return a digest of all data of a mechanism that solutions depend on."""
    return digest(_mechanism_data(mechanism))


def row_seed(seed: int, target: object, q0: object) -> int:
    """Return the random seed of a row from the seed of the batch, the target and the start; the index has no effect."""
    return int(digest(seed, target, q0), 16)


def digest(*values: object) -> str:
    """Return a digest of `values`, 16 hexadecimal digits."""
    hasher = hashlib.blake2b(digest_size=8)
    _update_hash(hasher.update, values)
    return hasher.hexdigest()


def _update_hash(update: Callable[[bytes], None], value: object) -> None:
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(cast("Any", value))
        update(f"array {array.dtype.str} {array.shape} ".encode())
        update(array.tobytes())
    elif isinstance(value, Enum):
        update(f"{type(value).__name__}.{value.name} ".encode())
    elif isinstance(value, bool) or value is None:
        update(f"{value} ".encode())
    elif isinstance(value, int | str):
        update(f"{type(value).__name__} {len(str(value))} {value} ".encode())
    elif isinstance(value, float):
        update(b"float " + struct.pack("<d", value))
    elif isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        update(f"mapping {len(items)} ".encode())
        for key in sorted(items, key=str):
            _update_hash(update, (str(key), items[key]))
    elif isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        update(f"items {len(items)} ".encode())
        for item in items:
            _update_hash(update, item)
    elif is_dataclass(value) and not isinstance(value, type):
        update(f"{type(value).__name__} ".encode())
        _update_hash(update, {field.name: getattr(value, field.name, None) for field in fields(value)})
    else:  # a function or a user object: only its name, since its contents are unknown
        update(f"{getattr(value, '__qualname__', type(value).__qualname__)} ".encode())


def _mechanism_data(mechanism: Mechanism) -> object:
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


def _without_target(objective: Objective, column: TargetColumn | None) -> Objective:
    """Return an objective with a neutral target if the batch replaces its target, and if its target is declared."""
    spec = objective.target_spec
    if column is None or spec is None or spec.value is None:
        return objective
    if isinstance(column, NamedColumn):
        return objective.with_target(column.neutral_target())  # type: ignore[arg-type]
    target = NEUTRAL_TARGETS.get(spec.value.shape)
    return objective if spec.takes_names or target is None else objective.with_target(target)


def _objective_data(mechanism: Mechanism, objective: Objective, targets: BatchTargets, k: int) -> object:
    """Return all data of an objective except a target that the batch replaces."""
    sample = _without_target(objective, targets.columns[k])
    options = (sample.weight, sample.level, sample.tolerance, sample.angle_tolerance, sample.required, sample.name)
    return (type(sample).__name__, options, sample.relations(mechanism))


FORMAT, VERSION = "mechanik batch", 2


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """Metadata of a batch: its inputs and the time spent.

    Attributes:
        rows: number of targets.
        joints: name of each entry of q.
        objectives: name of each objective.
        seed: random seed; None: restarts follow a fixed sequence.
        fingerprint: digest of each part of the batch.
        seconds: time spent on the finished rows, s.
    """

    rows: int
    joints: tuple[str, ...]
    objectives: tuple[str, ...]
    seed: int | None
    fingerprint: Fingerprint
    seconds: float = 0.0

    def with_seconds_added(self, seconds: float) -> BatchMetadata:
        """Return the same metadata with `seconds` added to the time spent, s."""
        return replace(self, seconds=self.seconds + seconds)

    def check_same_batch(self, new_batch: BatchMetadata, location: str) -> None:
        """Raise `BatchMismatch` if a new batch differs from this stored batch.

        Args:
            new_batch: metadata of the new batch.
            location: folder or argument with the stored batch, for the message.
        """
        if self.rows != new_batch.rows:
            raise BatchMismatch(
                f"{location} contains results for {format_count(self.rows, 'target')}, but this batch has "
                f"{new_batch.rows}; {OTHER_FOLDER_HINT}"
            )
        if (len(self.joints), len(self.objectives)) != (len(new_batch.joints), len(new_batch.objectives)):
            new_text, stored_text = (
                f"{format_count(len(metadata.joints), 'number')} in q and "
                f"{format_count(len(metadata.objectives), 'objective')}"
                for metadata in (new_batch, self)
            )
            raise BatchMismatch(
                f"{location} contains a result with {stored_text}, but this batch has {new_text}; {OTHER_FOLDER_HINT}"
            )
        parts = [part for part in new_batch.fingerprint if self.fingerprint.get(part) != new_batch.fingerprint[part]]
        if parts:
            raise BatchMismatch(
                f"{location} contains the result of another batch, with other {' and '.join(parts)}; "
                f"{OTHER_FOLDER_HINT}"
            )

    def to_json(self) -> str:
        """Return the metadata as JSON."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2) + "\n"

    @staticmethod
    def from_json(text: str, location: str) -> BatchMetadata:
        """Return the metadata from a text that `to_json` wrote.

        Args:
            text: the JSON text.
            location: path of the file, for messages.

        Raises:
            FormatError: if the text is not the metadata of a batch.
        """
        try:
            data: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{location}: this is not JSON: {error}") from None
        table = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        if table.get("format") != FORMAT:
            raise FormatError(f"{location}: format is {table.get('format')!r}, but must be {FORMAT!r}")
        if table.get("version") != VERSION:
            raise FormatError(
                f"{location}: version is {table.get('version')!r}, but this version of Mechanik reads {VERSION}"
            )
        rows, seed, seconds = table.get("rows"), table.get("seed"), table.get("seconds")
        joints, objectives, digests = table.get("joints"), table.get("objectives"), table.get("fingerprint")
        if (
            not (_is_count(rows) and (seed is None or _is_count(seed)))
            or not (_are_names(joints) and _are_names(objectives))
            or not (isinstance(digests, Mapping) and isinstance(seconds, float | int))
        ):
            raise FormatError(
                f"{location}: rows, joints, objectives, seed, fingerprint or seconds is missing or invalid"
            )
        name_lists = [tuple(cast("Sequence[str]", names)) for names in (joints, objectives)]
        return BatchMetadata(
            cast("int", rows), name_lists[0], name_lists[1], seed, dict(cast("Fingerprint", digests)), float(seconds)
        )


OTHER_FOLDER_HINT = "this result is not changed; give another folder as out"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[object]", value))


METADATA_FILE, STATUS = "about.json", "status"
ARRAY_DTYPES: Mapping[str, npt.DTypeLike] = {"q": "<f8", "errors": "<f8", "iterations": "<i4", STATUS: "|i1"}
ROWS_PER_WRITE = 1 << 20
"""Number of rows that are written at a time."""
Arrays = dict[str, npt.NDArray[Any]]


def array_shapes(metadata: BatchMetadata) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array."""
    row_count = metadata.rows
    return {
        "q": (row_count, len(metadata.joints)),
        "errors": (row_count, len(metadata.objectives), 2),
        "iterations": (row_count,),
        STATUS: (row_count,),
    }


def has_batch(folder: Path) -> bool:
    """Return whether a folder contains a batch.

    Raises:
        CannotSave: if the folder contains only other files, is not a folder, or cannot be read.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise CannotSave(f"{folder} is a file; a batch needs a new or empty folder") from None
    except (OSError, ValueError) as error:
        raise CannotSave(f"{folder} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if METADATA_FILE in names:
        return True
    other_names = [name for name in names if name != f"{METADATA_FILE}.part"]
    if other_names:
        raise CannotSave(f"{folder} contains other files ({other_names[0]}); a batch needs a new or empty folder")
    return False


def read_metadata(folder: Path) -> BatchMetadata:
    """Read the metadata of a folder."""
    try:
        text = (folder / METADATA_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileMissing(f"{folder} contains no result of a batch: {METADATA_FILE} is missing") from None
    except (OSError, ValueError) as error:
        raise FormatError(f"{folder / METADATA_FILE} cannot be read: {error}") from None
    return BatchMetadata.from_json(text, str(folder / METADATA_FILE))


def write_metadata(folder: Path, metadata: BatchMetadata) -> None:
    """Write the metadata atomically: to a temporary file that is then renamed."""
    temporary_path = folder / f"{METADATA_FILE}.part"
    with reporting_write_errors(folder):
        with open(temporary_path, "w", encoding="utf-8") as stream:
            stream.write(metadata.to_json())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary_path, folder / METADATA_FILE)


def create_files(folder: Path, metadata: BatchMetadata) -> None:
    """Create the folder and all files of a batch without finished rows."""
    with reporting_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_metadata(folder, metadata)
    create_missing_files(folder, metadata)


def create_missing_files(folder: Path, metadata: BatchMetadata) -> None:
    """Create the array files if `status.npy`, the last of them, is missing, for example after an interruption."""
    if (folder / f"{STATUS}.npy").exists():
        return
    with reporting_write_errors(folder):
        for name, shape in array_shapes(metadata).items():
            temporary_path = folder / f"{name}.npy.part"
            dtype = np.dtype(ARRAY_DTYPES[name])
            with open(temporary_path, "wb") as stream:
                header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
                if name == STATUS:
                    for first_row in range(0, metadata.rows, ROWS_PER_WRITE):
                        row_count = min(ROWS_PER_WRITE, metadata.rows - first_row)
                        stream.write(np.full(row_count, BATCH_PENDING, dtype=dtype).tobytes())
                else:  # a sparse file, which needs no disk space yet
                    stream.truncate(stream.tell() + dtype.itemsize * int(np.prod(shape)))
            os.replace(temporary_path, folder / f"{name}.npy")


def read_arrays(folder: Path, metadata: BatchMetadata) -> Arrays:
    """Return all arrays by name, read-only; arrays that are not empty are memory-mapped."""
    arrays: Arrays = {}
    for name, shape in array_shapes(metadata).items():
        path = folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r" if metadata.rows and all(shape) else None, allow_pickle=False)
        except FileNotFoundError:
            raise FileMissing(f"{path} is missing, so the result in {folder} is not complete") from None
        except (OSError, ValueError) as error:
            raise FormatError(f"{path} cannot be read: {error}") from None
        if array.shape != shape or array.dtype != np.dtype(ARRAY_DTYPES[name]):
            raise FormatError(
                f"{path} is {array.dtype} {array.shape}, but {METADATA_FILE} requires {ARRAY_DTYPES[name]} {shape}"
            )
        array.flags.writeable = False
        arrays[name] = array
    return arrays


class BatchWriter:
    """Writer of results to the files of a folder; rows count as finished after the next `commit`."""

    def __init__(self, folder: Path, metadata: BatchMetadata) -> None:
        self._folder, self._metadata = folder, metadata
        self._lock = threading.Lock()
        self._uncommitted_rows: list[tuple[RowIndices, npt.NDArray[np.int8]]] = []
        self._files: dict[str, BinaryIO] = {}
        self._offsets: dict[str, int] = {}
        with reporting_write_errors(folder):
            for name in ARRAY_DTYPES:
                file = open(folder / f"{name}.npy", "r+b", buffering=0)  # noqa: SIM115 - closed in `close`
                self._files[name] = file
                np.lib.format.read_magic(file)
                np.lib.format.read_array_header_1_0(file)
                self._offsets[name] = file.tell()

    def write_rows(self, rows: RowIndices, results: RowResults) -> None:
        """Write results of rows; any thread may call this."""
        with self._lock, reporting_write_errors(self._folder):
            for name, numbers in (("q", results.q), ("errors", results.errors), ("iterations", results.iterations)):
                self._write(name, rows, numbers)
            self._uncommitted_rows.append((rows, results.code.astype(np.int8)))

    def commit(self) -> None:
        """Mark all written rows as finished, after their numbers are on the disk."""
        with self._lock, reporting_write_errors(self._folder):
            for name in ARRAY_DTYPES:
                if name != STATUS and self._uncommitted_rows:
                    os.fsync(self._files[name].fileno())
            while self._uncommitted_rows:
                self._write(STATUS, *self._uncommitted_rows[-1])
                self._uncommitted_rows.pop()

    def close(self, seconds: float) -> None:
        """Close the files without a commit, and add `seconds` to the time spent in the metadata."""
        with self._lock:
            for file in self._files.values():
                file.close()
        if seconds:
            write_metadata(self._folder, self._metadata.with_seconds_added(seconds))

    def _write(self, name: str, rows: RowIndices, numbers: npt.NDArray[Any]) -> None:
        file, dtype = self._files[name], np.dtype(ARRAY_DTYPES[name])
        row_bytes = dtype.itemsize * int(np.prod(numbers.shape[1:]))
        run_bounds = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        for first, end in pairwise(run_bounds):
            file.seek(self._offsets[name] + row_bytes * int(rows[first]))
            unwritten_bytes = memoryview(np.ascontiguousarray(numbers[first:end], dtype=dtype).tobytes())
            while unwritten_bytes:
                unwritten_bytes = unwritten_bytes[file.write(unwritten_bytes) :]


@contextmanager
def reporting_write_errors(folder: Path) -> Generator[None]:
    """Convert an `OSError` to `CannotSave` with the name of the folder."""
    try:
        yield
    except OSError as error:
        raise CannotSave(f"{folder} cannot be written: {error.strerror or error}") from error
