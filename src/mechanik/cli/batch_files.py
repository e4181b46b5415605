"""Files of `mechanik batch`: tables of targets and starts, result files, and the work folder of an unfinished batch.

Input is .npy, .npz, .csv and other text, or .parquet (with pyarrow, an optional dependency). Large tables are never
in memory as a whole: an .npy file is memory-mapped; text and Parquet are read in blocks into a binary file, which is
then mapped. Results (.npz, .csv, .parquet) are written in blocks of rows, in the order of the targets.

In text, cells are separated by commas, semicolons, tabs or spaces, with or without a header. A line that starts with
# is a comment, or a header if it names columns. An empty cell, `nan` or `null` is NaN; any other text is an error
with its line number.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import importlib
import importlib.util
import itertools
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mechanik.cli.file_args import STANDARD_INPUT, UsageError, atomic_write, output_path
from mechanik.cli.output import print_note
from mechanik.errors import CannotSave, FormatError, MechanikError, MissingExtra, ShapeError
from mechanik.kernels.state_layout import CONVERGED
from mechanik.model import Mechanism
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.solver.batch import BatchResult


def find_columns(header: Sequence[str], column_sets: Sequence[Sequence[str]], where: str) -> list[int]:
    """Return the column indices of the first complete set of names in a header; other columns are ignored.

    An incomplete set is an error: a pose with one missing quaternion column must not be read as a position.

    Args:
        header: column names of the file, in any order.
        column_sets: possible sets of column names, the largest first.
        where: file and line, for messages.
    """
    names = [name.strip() for name in header]
    lower_names = [name.lower() for name in names]
    known = {name for choice in column_sets for name in choice}
    places = {name: _place(name, names, lower_names, where) for name in known}
    present = {name for name, k in places.items() if k is not None}
    for choice in column_sets:
        if present == set(choice):
            return [k for name in choice if (k := places[name]) is not None]
    needed = " or ".join(
        ", ".join(choice[:8]) + (", ..." if len(choice) > 8 else "") for choice in reversed(column_sets)
    )
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    larger = next((choice for choice in reversed(column_sets) if present <= set(choice)), column_sets[0])
    missing = [name for name in larger if name not in present]
    if present:
        raise FormatError(f"{where}: column {', '.join(missing[:8])} is missing; needed are {needed}")
    raise FormatError(f"{where}: the columns are called {listed}; needed are {needed}")


def check_column_count(count: int, column_sets: Sequence[Sequence[str]], where: str) -> int:
    """Return the number of columns if it matches a set; raises `FormatError` otherwise."""
    sizes = sorted(len(choice) for choice in column_sets)
    if count not in sizes:
        raise FormatError(f"{where}: a row must have {' or '.join(map(str, sizes))} numbers, but this one has {count}")
    return count


def _place(name: str, names: list[str], lower_names: list[str], where: str) -> int | None:
    matches = [k for k, column in enumerate(names) if column == name] or [
        k for k, column in enumerate(lower_names) if column == name.lower()
    ]
    if len(matches) > 1:
        raise FormatError(f"{where}: {len(matches)} columns are called {name!r}")
    return matches[0] if matches else None


CSV_BLOCK_LINES = 50_000
"""Lines per block; a few MB of text."""
COMMENT = "#"
MISSING_VALUES = ("", "nan", "na", "n/a", "null", "none")
LineSplitter = Callable[[str], list[str]]


def read_csv(path: Path, column_sets: Sequence[Sequence[str]], on_block: Callable[[Array], None]) -> int:
    """Read a text table in blocks; returns the number of columns.

    Args:
        column_sets: possible sets of column names, the largest first.
        on_block: called with each block, (rows, columns), float64.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            lines = enumerate(stream, start=1)
            number, first = _first_line(lines, column_sets)
            if not first:
                raise FormatError(f"{path.name} is empty")
            mark = _separator(first)
            split = _splitter(mark)
            cells, where = split(first.removeprefix(COMMENT)), f"{path.name}, line {number}"
            if all(_is_number(cell) for cell in cells):
                columns, exact = list(range(check_column_count(len(cells), column_sets, where))), len(cells)
                lines = itertools.chain([(number, first)], lines)
            else:
                columns, exact = find_columns(cells, column_sets, where), None
            while block := list(itertools.islice(lines, CSV_BLOCK_LINES)):
                block = [(k, line) for k, line in block if _has_data(line)]
                rows = _parse_fast([line for _, line in block], mark, columns, exact)
                on_block(rows if rows is not None else _parse_line_by_line(block, split, columns, exact, path.name))
            return len(columns)
    except UnicodeDecodeError:
        raise FormatError(f"{path.name} is no text in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise FormatError(f"{path.name} cannot be read as CSV: {error}") from None


def _first_line(lines: Iterator[tuple[int, str]], choices: Sequence[Sequence[str]]) -> tuple[int, str]:
    """Return the first line with data or column names, and its number; `numpy.savetxt` writes names as a comment."""
    known = {name.lower() for choice in choices for name in choice}
    for number, line in lines:
        text = line.removeprefix(COMMENT)
        if _has_data(line) or any(cell.strip().lower() in known for cell in _splitter(_separator(text))(text)):
            return number, line
    return 0, ""


def _has_data(line: str) -> bool:
    return not line.isspace() and not line.startswith(COMMENT)


def _separator(line: str) -> str | None:
    """Return the cell separator of a line; None: spaces."""
    return next((mark for mark in ";\t," if mark in line), None)


def _parse_fast(lines: list[str], mark: str | None, columns: list[int], exact: int | None) -> Array | None:
    """Parse lines with `numpy.loadtxt`; None if a line is malformed."""
    if not lines:
        return np.empty((0, len(columns)))
    try:
        read = np.loadtxt(
            lines, delimiter=mark, comments=None, ndmin=2, quotechar='"', usecols=columns if exact is None else None
        )
    except ValueError:
        return None
    return read if exact is None or read.shape[1] == exact else None


def _parse_line_by_line(
    block: list[tuple[int, str]], split: LineSplitter, columns: list[int], exact: int | None, name: str
) -> Array:
    rows: list[list[float]] = []
    for number, line in block:
        cells = split(line)
        if len(cells) <= max(columns) or (exact is not None and len(cells) != exact):
            column_count = exact or max(columns) + 1
            raise FormatError(f"{name}, line {number}: {column_count} columns are needed, and there are {len(cells)}")
        rows.append([_number(cells[k], f"{name}, line {number}") for k in columns])
    return np.array(rows).reshape(-1, len(columns))


def _number(cell: str, where: str) -> float:
    text = cell.strip()
    if text.lower() in MISSING_VALUES:
        return np.nan
    try:
        return float(text)
    except ValueError:
        hint = "; decimals have a point" if text.count(",") == 1 else ""
        raise FormatError(f"{where}: {text!r} is not a number{hint}") from None


def _is_number(cell: str) -> bool:
    try:
        _number(cell, "")
    except FormatError:
        return False
    return True


def _splitter(mark: str | None) -> LineSplitter:
    if mark is None:
        return str.split
    return lambda line: next(csv.reader([line.rstrip("\r\n")], delimiter=mark))


PARQUET_BLOCK_ROWS = 65_536
"""Rows per block."""


def require_pyarrow(path: Path) -> None:
    """Raise `MissingExtra` before any computation if pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra(path.name, "parquet")


def read_parquet(path: Path, column_sets: Sequence[Sequence[str]], on_block: Callable[[Array], None]) -> int:
    """Read a Parquet table in blocks; returns the number of columns.

    Args:
        column_sets: possible sets of column names, the largest first.
        on_block: called with each block, (rows, columns), float64; nulls are NaN.
    """
    require_pyarrow(path)
    pa, pq = _module("pyarrow"), _module("pyarrow.parquet")
    try:
        with pq.ParquetFile(path) as parquet_file:
            schema = parquet_file.schema_arrow
            column_names = [schema.names[k] for k in find_columns(schema.names, column_sets, path.name)]
            for name in column_names:
                kind = schema.field(name).type
                if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                    raise FormatError(f"{path.name}: column {name!r} holds {kind}, and numbers are needed")
            for block in parquet_file.iter_batches(batch_size=PARQUET_BLOCK_ROWS, columns=column_names):
                columns = [block.column(name).to_numpy(zero_copy_only=False) for name in column_names]
                on_block(np.column_stack([np.asarray(column, dtype=np.float64) for column in columns]))
            return len(column_names)
    except pa.ArrowException as error:
        raise FormatError(f"{path.name} cannot be read as Parquet: {' '.join(str(error).split())}") from None


def write_parquet(path: Path, blocks: Iterator[Mapping[str, Any]]) -> None:
    """Write blocks of named columns to a Parquet file; pyarrow dictionary-encodes texts."""
    pa, pq = _module("pyarrow"), _module("pyarrow.parquet")
    writer: Any = None
    try:
        for block in blocks:
            arrays = {name: pa.array(column) for name, column in block.items()}
            table = pa.table(arrays)
            writer = pq.ParquetWriter(path, table.schema) if writer is None else writer
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _module(name: str) -> Any:
    return importlib.import_module(name)


POSITION_COLUMNS, POSE_COLUMNS = ("x", "y", "z"), ("x", "y", "z", "qw", "qx", "qy", "qz")
INPUT_SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".txt", ".parquet")
RowProgress = Callable[[int], None]
"""Called from time to time with the number of rows read so far."""


def input_path(name: str, content: str) -> Path:
    """Return the path of an input file; raises `UsageError` if it cannot be read.

    Args:
        name: path as given on the command line.
        content: what the file holds ("targets", "starts"), for messages.
    """
    if name == STANDARD_INPUT:
        raise UsageError(f"{content} come from a file, not from standard input")
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{name} is a folder; {content} come from a file")
    if not path.is_file():
        raise UsageError(f"there is no file {name!r} with {content}")
    if path.suffix.lower() not in INPUT_SUFFIXES:
        raise UsageError(
            f"{name!r} must end in {', '.join(INPUT_SUFFIXES[:-1])} or {INPUT_SUFFIXES[-1]}, which says how to read it"
        )
    return path


def read_targets(path: Path, spool: Path, progress: RowProgress) -> Array:
    """Read targets as poses (N, 4, 4), positions and quaternions wxyz (N, 7), or positions (N, 3); world frame, m.

    Args:
        spool: binary file to write the numbers to if `path` cannot be memory-mapped.
    """
    targets = _read(path, "targets", (POSE_COLUMNS, POSITION_COLUMNS), spool, progress)
    if targets.shape[1:] not in ((4, 4), (7,), (3,)):
        raise ShapeError(
            f"{path.name}: targets are (N, 4, 4) poses, (N, 7) positions and quaternions wxyz, or (N, 3) positions, "
            f"and these are {targets.shape}"
        )
    return targets


def read_starts(path: Path, mechanism: Mechanism, count: int, spool: Path, progress: RowProgress) -> Array:
    """Read start configurations as (N, nq), or (nq,) if one start serves all targets.

    Args:
        count: number of targets N.
        spool: binary file to write the numbers to if `path` cannot be memory-mapped.
    """
    starts = _read(path, "q", (mechanism.space.q_names,), spool, progress)
    if starts.shape in ((mechanism.nq,), (1, mechanism.nq)):
        return np.array(starts).reshape(-1)
    if starts.shape != (count, mechanism.nq):
        raise ShapeError(
            f"{path.name}: starts are ({mechanism.nq},), one for all, or ({count}, {mechanism.nq}), one a target, "
            f"and these are {starts.shape}"
        )
    return starts


def _read(path: Path, key: str, choices: Sequence[Sequence[str]], spool: Path, watch: RowProgress) -> Array:
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
    if not rows:  # an empty file cannot be mapped
        return np.empty((0, columns))
    return np.memmap(spool, np.float64, "r", shape=(rows, columns))


def _open_array(path: Path, key: str) -> Array:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        if path.stat().st_size == 0:
            raise FormatError(f"{path.name} is empty") from None
        if "pickle" in str(error):
            raise FormatError(f"{path.name} holds Python objects, or is no {path.suffix} file; save numbers") from None
        raise FormatError(f"{path.name} cannot be read: {error}") from None
    if isinstance(array, np.ndarray):
        return cast("Array", array)
    with array:
        names = list(array.files)
        if key not in names and len(names) != 1:
            raise FormatError(f"{path.name} holds {', '.join(names) or 'nothing'}, and none is called {key!r}")
        try:
            return array[key if key in names else names[0]]
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise FormatError(f"{path.name} cannot be read: {error}") from None


def _numbers(array: Array, path: Path) -> Array:
    if array.dtype.kind not in "fiu":
        raise FormatError(f"{path.name} holds {array.dtype.name}, and numbers are needed")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


RESULT_SUFFIXES = (".npz", ".csv", ".parquet")
RESULT_BLOCK_ROWS = 65_536
"""Rows per block."""
RESULT_COLUMNS = ("success", "status", "position_error", "rotation_error", "iterations")
"""Result columns besides the joint values; errors in m and rad."""


def result_path(name: str) -> Path:
    """Return the path of the result file; raises `UsageError` if it cannot be written."""
    path = output_path(name, RESULT_SUFFIXES)
    if path.suffix.lower() == ".parquet":
        require_pyarrow(path)
    return path


def write_result(path: Path, result: BatchResult, statuses: Sequence[str], progress: Callable[[int], None]) -> None:
    """Write a batch result to a .npz, .csv or .parquet file.

    Args:
        statuses: status names, indexed by status code.
        progress: called from time to time with the number of rows written.
    """
    with atomic_write(path) as beside:
        if path.suffix.lower() == ".npz":
            _write_npz(beside, result, statuses, progress)
        else:
            write = write_parquet if path.suffix.lower() == ".parquet" else _write_csv
            write(beside, _blocks(result, statuses, progress))


def joint_column_names(joints: Sequence[str]) -> list[str]:
    """Return the joint columns of a result; a joint called like a result column gets the prefix `joint `."""
    return [f"joint {name}" if name in RESULT_COLUMNS else name for name in joints]


def _blocks(result: BatchResult, statuses: Sequence[str], watch: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    from mechanik.solver.batch.batch_rows import release_pages

    names, words = joint_column_names(result.joints), np.array(statuses)
    for first in range(0, max(len(result), 1), RESULT_BLOCK_ROWS):  # an empty result still needs a block: its header
        rows = slice(first, first + RESULT_BLOCK_ROWS)
        q, errors = np.asarray(result.q[rows]), np.asarray(result.errors[rows])
        block: dict[str, Any] = {name: q[:, k] for k, name in enumerate(names)}
        codes = np.asarray(result.status[rows])
        block["success"], block["status"] = codes == CONVERGED, words[codes]
        block["position_error"], block["rotation_error"] = errors[:, 0, 0], errors[:, 0, 1]
        block["iterations"] = np.asarray(result.iterations[rows])
        yield block
        for array in (result.q, result.errors, result.iterations):
            release_pages(array)
        watch(min(first + RESULT_BLOCK_ROWS, len(result)))


def _write_csv(path: Path, blocks: Iterator[dict[str, Any]]) -> None:
    with open(path, "x", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for k, block in enumerate(blocks):
            if k == 0:
                writer.writerow(block)
            block["success"] = np.where(block["success"], "true", "false")
            writer.writerows(zip(*(column.tolist() for column in block.values()), strict=True))


def _write_npz(path: Path, result: BatchResult, statuses: Sequence[str], watch: Callable[[int], None]) -> None:
    """Write what `numpy.savez` would write, but in blocks, so that a mapped result is never in memory as a whole."""
    from mechanik.solver.batch.batch_rows import release_pages

    arrays = {
        "q": result.q,
        "joints": np.array(result.joints),
        "success": result.success,
        "status": result.status,
        "statuses": np.array(statuses),
        "position_error": result.errors[:, 0, 0],
        "rotation_error": result.errors[:, 0, 1],
        "iterations": result.iterations,
    }
    with zipfile.ZipFile(path, "x") as packed:
        for name, array in arrays.items():
            with packed.open(f"{name}.npy", "w", force_zip64=True) as stream:
                kind = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False}
                np.lib.format.write_array_header_1_0(stream, {**kind, "shape": array.shape})
                for first in range(0, len(array), RESULT_BLOCK_ROWS):
                    stream.write(array[first : first + RESULT_BLOCK_ROWS].tobytes())
                    release_pages(array)
                    if name == "q":  # the bulk of the file
                        watch(first)
    watch(len(result))


REQUEST_FILE, RESULT_FOLDER, TARGETS_FILE, STARTS_FILE = "request.json", "result", "targets.numbers", "starts.numbers"
BatchArguments = Mapping[str, Any]
"""Arguments that identify a batch, by option name, as plain JSON data."""


class BatchWorkFolder:
    """Work folder of an unfinished batch, `R.npz.part` beside the result R.npz, from which it can resume.

    Attributes:
        path: the folder; it also holds the arguments of the batch.
        targets, starts: binary files with the targets and starts that were read from text or Parquet.
        result: folder with the rows solved so far.
    """

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f"{target.name}.part")
        self.targets, self.starts = self.path / TARGETS_FILE, self.path / STARTS_FILE
        self.result = self.path / RESULT_FOLDER

    def __str__(self) -> str:
        return self.path.name

    @property
    def has_solved_rows(self) -> bool:
        """Whether the folder holds solved rows; also true if its result cannot be read."""
        from mechanik.solver.batch import BatchResult

        if not self.result.exists():
            return False
        try:
            return BatchResult.open(self.result).done > 0
        except MechanikError:  # unreadable data may still be valuable, so it is not removed
            return True

    def open(self, request: BatchArguments, resume: bool) -> None:
        """Create the folder, or reopen it to resume the same batch.

        Raises:
            UsageError: the folder belongs to another batch or holds other files (it stays unchanged), or it holds
                solved rows and `resume` is not set.
            CannotSave: the folder cannot be written.
        """
        try:
            before = self._before() if self.path.exists() else None
            if before is not None and self.has_solved_rows:
                self._check(before, request, resume)
                return
            if resume:
                print_note("note: there is nothing to go on with, so this begins anew")
            if before is not None:
                self.remove()
            self.path.mkdir(exist_ok=True)
            (self.path / REQUEST_FILE).write_text(json.dumps(request, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise CannotSave(f"{self.path} cannot be written: {error.strerror or error}") from None

    def remove(self) -> None:
        """Remove the files of the batch, and the folder if it is empty then."""
        shutil.rmtree(self.result, ignore_errors=True)
        with contextlib.suppress(OSError):
            for name in (TARGETS_FILE, STARTS_FILE, REQUEST_FILE):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def _check(self, before: BatchArguments, arguments: BatchArguments, resume: bool) -> None:
        if not resume:
            raise UsageError(
                f"{self} holds an unfinished batch: add --resume to continue it, or delete it to start again"
            )
        changed = [name for name in {**before, **arguments} if before.get(name) != arguments.get(name)]
        if changed:
            raise UsageError(
                f"{self} holds an unfinished batch with different {', '.join(changed)}; "
                "use the same options to continue it, or delete it to start again"
            )

    def _before(self) -> BatchArguments:
        try:
            return json.loads((self.path / REQUEST_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            text = f"{self.path} exists and is not an unfinished batch; move it, or choose another --out"
            raise UsageError(text) from None


def file_digest(path: Path | None) -> str | None:
    """Return the SHA-256 digest of a file, which identifies its content under any name; None for None."""
    if path is None:
        return None
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
