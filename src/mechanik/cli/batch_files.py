"""Files of `mechanik batch`: tables of targets and starts, result files, and the work folder of an unfinished batch.

Input is .npy, .npz, .csv and other text, or .parquet (with pyarrow, an optional dependency). An .npy file is
memory-mapped. Text and Parquet are read in blocks into a binary file, which is then memory-mapped. Arrays from .npz
files and arrays of integers are loaded completely. Results (.npz, .csv, .parquet) are written in blocks of rows, in the
order of the targets.

A text file separates cells by commas, semicolons, tabs or spaces, and may have a header. A line that starts with # is a
comment; a comment before the first row is the header if it contains a column name. A cell of `MISSING_VALUES`, such as
an empty cell, is NaN; any other cell that is not a number is an error with its line number.
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
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.solver.batch import BatchResult


def find_columns(header: Sequence[str], column_sets: Sequence[Sequence[str]], location: str) -> list[int]:
    """Return the column indices of the set of names that a header contains; other columns are ignored.

    An incomplete set is an error: a pose with one missing quaternion column must not be read as a position.

    Args:
        header: column names of the file, in any order.
        column_sets: possible sets of column names, the largest first.
        location: file and line, for messages.

    Raises:
        FormatError: a column is missing or has a duplicate.
    """
    names = [name.strip() for name in header]
    lower_names = [name.lower() for name in names]
    known_names = {name for column_set in column_sets for name in column_set}
    column_indices = {name: _find_column(name, names, lower_names, location) for name in known_names}
    present_names = {name for name, k in column_indices.items() if k is not None}
    for column_set in column_sets:
        if present_names == set(column_set):
            return [k for name in column_set if (k := column_indices[name]) is not None]
    needed_columns = " or ".join(
        ", ".join(column_set[:8]) + (", ..." if len(column_set) > 8 else "") for column_set in reversed(column_sets)
    )
    header_list = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    closest_set = next(
        (column_set for column_set in reversed(column_sets) if present_names <= set(column_set)), column_sets[0]
    )
    missing_names = [name for name in closest_set if name not in present_names]
    if present_names:
        noun = "column" if len(missing_names) == 1 else "columns"
        raise FormatError(f"{location}: missing {noun} {', '.join(missing_names[:8])}; needed are {needed_columns}")
    raise FormatError(f"{location}: the columns are {header_list}; needed are {needed_columns}")


def check_column_count(count: int, column_sets: Sequence[Sequence[str]], location: str) -> int:
    """Return `count` if a set has this number of columns; raises `FormatError` otherwise."""
    sizes = sorted(len(column_set) for column_set in column_sets)
    if count not in sizes:
        raise FormatError(
            f"{location}: a row must have {' or '.join(map(str, sizes))} numbers, but this row has {count}"
        )
    return count


def _find_column(name: str, names: list[str], lower_names: list[str], location: str) -> int | None:
    """Return the index of a column by its exact name, else by its name in any case; None if there is none."""
    matches = [k for k, column in enumerate(names) if column == name] or [
        k for k, column in enumerate(lower_names) if column == name.lower()
    ]
    if len(matches) > 1:
        raise FormatError(f"{location}: {len(matches)} columns are called {name!r}")
    return matches[0] if matches else None


CSV_BLOCK_LINES = 50_000
"""Number of lines per block; a few MB of text."""
COMMENT = "#"
MISSING_VALUES = ("", "nan", "na", "n/a", "null", "none")
LineSplitter = Callable[[str], list[str]]


def read_csv(path: Path, column_sets: Sequence[Sequence[str]], on_block: Callable[[Array], None]) -> int:
    """Read a text table in blocks and return the number of columns.

    Args:
        column_sets: possible sets of column names, the largest first.
        on_block: called with each block, (rows, columns), float64.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            lines = enumerate(stream, start=1)
            line_number, first_line = _first_line(lines, column_sets)
            if not first_line:
                raise FormatError(f"{path.name} is empty")
            separator = _separator(first_line)
            split = _splitter(separator)
            cells, location = split(first_line.removeprefix(COMMENT)), f"{path.name}, line {line_number}"
            if all(_is_number(cell) for cell in cells):
                columns, exact_count = list(range(check_column_count(len(cells), column_sets, location))), len(cells)
                lines = itertools.chain([(line_number, first_line)], lines)
            else:
                columns, exact_count = find_columns(cells, column_sets, location), None
            while block := list(itertools.islice(lines, CSV_BLOCK_LINES)):
                block = [(line_number, line) for line_number, line in block if _has_data(line)]
                rows = _parse_fast([line for _, line in block], separator, columns, exact_count)
                on_block(
                    rows if rows is not None else _parse_line_by_line(block, split, columns, exact_count, path.name)
                )
            return len(columns)
    except UnicodeDecodeError:
        raise FormatError(f"{path.name} is not text in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise FormatError(f"{path.name} cannot be read as CSV: {error}") from None


def _first_line(lines: Iterator[tuple[int, str]], column_sets: Sequence[Sequence[str]]) -> tuple[int, str]:
    """Return the number and the text of the first line with data or column names; (0, "") if there is none.

    A comment may contain column names, because `numpy.savetxt` writes them as a comment.
    """
    known_names = {name.lower() for column_set in column_sets for name in column_set}
    for line_number, line in lines:
        text = line.removeprefix(COMMENT)
        if _has_data(line) or any(cell.strip().lower() in known_names for cell in _splitter(_separator(text))(text)):
            return line_number, line
    return 0, ""


def _has_data(line: str) -> bool:
    """Whether a line is neither empty nor a comment."""
    return not line.isspace() and not line.startswith(COMMENT)


def _separator(line: str) -> str | None:
    """Return the cell separator of a line; None: spaces."""
    return next((separator for separator in ";\t," if separator in line), None)


def _parse_fast(lines: list[str], separator: str | None, columns: list[int], exact_count: int | None) -> Array | None:
    """Parse lines with `numpy.loadtxt`; None if a cell or the number of cells is invalid.

    Args:
        separator: separator of cells; None: spaces.
        columns: indices of the columns to read.
        exact_count: required number of cells per line; None: any number.
    """
    if not lines:
        return np.empty((0, len(columns)))
    try:
        table = np.loadtxt(
            lines,
            delimiter=separator,
            comments=None,
            ndmin=2,
            quotechar='"',
            usecols=columns if exact_count is None else None,
        )
    except ValueError:
        return None
    return table if exact_count is None or table.shape[1] == exact_count else None


def _parse_line_by_line(
    block: list[tuple[int, str]], split: LineSplitter, columns: list[int], exact_count: int | None, name: str
) -> Array:
    """Parse lines one by one, for precise messages and missing values; the arguments are as for `_parse_fast`.

    Args:
        block: line numbers and lines.
        split: function that splits a line into cells.
        name: name of the file, for messages.
    """
    rows: list[list[float]] = []
    for line_number, line in block:
        cells = split(line)
        if len(cells) <= max(columns) or (exact_count is not None and len(cells) != exact_count):
            column_count = exact_count or max(columns) + 1
            raise FormatError(
                f"{name}, line {line_number}: {format_count(column_count, 'column')} needed, but there are {len(cells)}"
            )
        rows.append([_parse_number(cells[k], f"{name}, line {line_number}") for k in columns])
    return np.array(rows).reshape(-1, len(columns))


def _parse_number(cell: str, location: str) -> float:
    """Parse a number; NaN for a missing value."""
    text = cell.strip()
    if text.lower() in MISSING_VALUES:
        return np.nan
    try:
        return float(text)
    except ValueError:
        hint = "; use a decimal point instead of a comma" if text.count(",") == 1 else ""
        raise FormatError(f"{location}: {text!r} is not a number{hint}") from None


def _is_number(cell: str) -> bool:
    try:
        _parse_number(cell, "")
    except FormatError:
        return False
    return True


def _splitter(separator: str | None) -> LineSplitter:
    """Return a function that splits a line into cells."""
    if separator is None:
        return str.split
    return lambda line: next(csv.reader([line.rstrip("\r\n")], delimiter=separator))


PARQUET_BLOCK_ROWS = 65_536
"""Number of rows per block."""


def require_pyarrow(path: Path) -> None:
    """Raise `MissingExtra` if pyarrow is not installed; called before any computation."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra(path.name, "parquet")


def read_parquet(path: Path, column_sets: Sequence[Sequence[str]], on_block: Callable[[Array], None]) -> int:
    """Read a Parquet table in blocks and return the number of columns.

    Args:
        column_sets: possible sets of column names, the largest first.
        on_block: called with each block, (rows, columns), float64; nulls are NaN.
    """
    require_pyarrow(path)
    pa, pq = _import_module("pyarrow"), _import_module("pyarrow.parquet")
    try:
        with pq.ParquetFile(path) as parquet_file:
            schema = parquet_file.schema_arrow
            column_names = [schema.names[k] for k in find_columns(schema.names, column_sets, path.name)]
            for name in column_names:
                column_type = schema.field(name).type
                if not (pa.types.is_floating(column_type) or pa.types.is_integer(column_type)):
                    raise FormatError(f"{path.name}: column {name!r} contains {column_type}, but numbers are needed")
            for block in parquet_file.iter_batches(batch_size=PARQUET_BLOCK_ROWS, columns=column_names):
                columns = [block.column(name).to_numpy(zero_copy_only=False) for name in column_names]
                on_block(np.column_stack([np.asarray(column, dtype=np.float64) for column in columns]))
            return len(column_names)
    except pa.ArrowException as error:
        raise FormatError(f"{path.name} cannot be read as Parquet: {' '.join(str(error).split())}") from None


def write_parquet(path: Path, blocks: Iterator[Mapping[str, Any]]) -> None:
    """Write blocks of columns by name to a Parquet file."""
    pa, pq = _import_module("pyarrow"), _import_module("pyarrow.parquet")
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


def _import_module(name: str) -> Any:
    return importlib.import_module(name)


POSITION_COLUMNS, POSE_COLUMNS = ("x", "y", "z"), ("x", "y", "z", "qw", "qx", "qy", "qz")
INPUT_SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".txt", ".parquet")
RowProgress = Callable[[int], None]
"""Function that is called after each block with the number of rows read so far."""


def input_path(name: str, content: str) -> Path:
    """Return the path of an input file; raises `UsageError` if it cannot be read.

    Args:
        name: path as given on the command line.
        content: content of the file ("targets" or "starts"), for messages.
    """
    if name == STANDARD_INPUT:
        raise UsageError(f"{content} must be in a file; standard input is not supported")
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{name} is a folder; {content} must be in a file")
    if not path.is_file():
        raise UsageError(f"there is no file {name!r} with {content}")
    if path.suffix.lower() not in INPUT_SUFFIXES:
        raise UsageError(
            f"{name!r} must end in {', '.join(INPUT_SUFFIXES[:-1])} or {INPUT_SUFFIXES[-1]}, which selects the format"
        )
    return path


def read_targets(path: Path, binary_path: Path, progress: RowProgress) -> Array:
    """Read targets as poses (N, 4, 4), positions and quaternions wxyz (N, 7), or positions (N, 3); world frame, m.

    Args:
        binary_path: binary file to write the numbers to if `path` cannot be memory-mapped.
    """
    targets = _read_table(path, "targets", (POSE_COLUMNS, POSITION_COLUMNS), binary_path, progress)
    if targets.shape[1:] not in ((4, 4), (7,), (3,)):
        raise ShapeError(
            f"{path.name}: targets must be (N, 4, 4) poses, (N, 7) positions and quaternions wxyz, or (N, 3) "
            f"positions, not of shape {targets.shape}"
        )
    return targets


def read_starts(path: Path, mechanism: Mechanism, target_count: int, binary_path: Path, progress: RowProgress) -> Array:
    """Read start configurations as (N, nq), or as (nq,) if there is one start for all targets.

    Args:
        target_count: number of targets N.
        binary_path: binary file to write the numbers to if `path` cannot be memory-mapped.
    """
    starts = _read_table(path, "q", (mechanism.space.q_names,), binary_path, progress)
    if starts.shape in ((mechanism.nq,), (1, mechanism.nq)):
        return np.array(starts).reshape(-1)
    if starts.shape != (target_count, mechanism.nq):
        raise ShapeError(
            f"{path.name}: starts must be ({mechanism.nq},), one for all targets, or "
            f"({target_count}, {mechanism.nq}), one for each target, not of shape {starts.shape}"
        )
    return starts


def _read_table(
    path: Path, key: str, column_sets: Sequence[Sequence[str]], binary_path: Path, progress: RowProgress
) -> Array:
    """Read a table as an array; it is memory-mapped, except from an .npz file or integers.

    Args:
        key: name of the array in an .npz file.
        column_sets: possible sets of column names, the largest first.
        binary_path: binary file to write the numbers to if `path` cannot be memory-mapped.
    """
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz"):
        return _as_floats(_open_array(path, key), path)
    with open(binary_path, "wb") as stream:

        def append_block(block: Array) -> None:
            nonlocal row_count
            block.tofile(stream)
            row_count += len(block)
            progress(row_count)

        row_count = 0
        column_count = (read_parquet if suffix == ".parquet" else read_csv)(path, column_sets, append_block)
    if not row_count:  # an empty file cannot be memory-mapped
        return np.empty((0, column_count))
    return np.memmap(binary_path, np.float64, "r", shape=(row_count, column_count))


def _open_array(path: Path, key: str) -> Array:
    """Open the array in an .npy or .npz file; `key` is its name in an .npz file with several arrays."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        if path.stat().st_size == 0:
            raise FormatError(f"{path.name} is empty") from None
        if "pickle" in str(error):
            raise FormatError(
                f"{path.name} contains Python objects, or is not a {path.suffix} file; save an array of numbers"
            ) from None
        raise FormatError(f"{path.name} cannot be read: {error}") from None
    if isinstance(array, np.ndarray):
        return cast("Array", array)
    with array:
        names = list(array.files)
        if key not in names and len(names) != 1:
            raise FormatError(f"{path.name} contains {', '.join(names) or 'nothing'}, but no array {key!r}")
        try:
            return array[key if key in names else names[0]]
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise FormatError(f"{path.name} cannot be read: {error}") from None


def _as_floats(array: Array, path: Path) -> Array:
    """Return an array of floats unchanged and integers as float64; raises `FormatError` for other types."""
    if array.dtype.kind not in "fiu":
        raise FormatError(f"{path.name} contains {array.dtype.name}, but numbers are needed")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


RESULT_SUFFIXES = (".npz", ".csv", ".parquet")
RESULT_BLOCK_ROWS = 65_536
"""Number of rows per block."""
RESULT_COLUMNS = ("success", "status", "position_error", "rotation_error", "iterations")
"""Result columns in addition to the joint values; errors in m and rad."""


def result_path(name: str) -> Path:
    """Return the path of the result file; raises `UsageError` if it cannot be written."""
    path = output_path(name, RESULT_SUFFIXES)
    if path.suffix.lower() == ".parquet":
        require_pyarrow(path)
    return path


def write_result(path: Path, result: BatchResult, status_names: Sequence[str], progress: Callable[[int], None]) -> None:
    """Write a batch result to a .npz, .csv or .parquet file.

    Args:
        status_names: status names, indexed by status code.
        progress: called after each block with the number of rows written so far.
    """
    with atomic_write(path) as temporary_path:
        if path.suffix.lower() == ".npz":
            _write_npz(temporary_path, result, status_names, progress)
        else:
            write = write_parquet if path.suffix.lower() == ".parquet" else _write_csv
            write(temporary_path, _result_blocks(result, status_names, progress))


def joint_column_names(joints: Sequence[str]) -> list[str]:
    """Return the joint columns of a result; a joint with the name of a result column gets the prefix `joint `."""
    return [f"joint {name}" if name in RESULT_COLUMNS else name for name in joints]


def _result_blocks(
    result: BatchResult, status_names: Sequence[str], progress: Callable[[int], None]
) -> Iterator[dict[str, Any]]:
    """Yield blocks of columns by name."""
    from mechanik.solver.batch.batch_rows import release_pages

    names, name_by_code = joint_column_names(result.joints), np.array(status_names)
    # an empty result also needs a block, for its header
    for first_row in range(0, max(len(result), 1), RESULT_BLOCK_ROWS):
        rows = slice(first_row, first_row + RESULT_BLOCK_ROWS)
        q, errors = np.asarray(result.q[rows]), np.asarray(result.errors[rows])
        block: dict[str, Any] = {name: q[:, k] for k, name in enumerate(names)}
        codes = np.asarray(result.status[rows])
        block["success"], block["status"] = codes == CONVERGED, name_by_code[codes]
        block["position_error"], block["rotation_error"] = errors[:, 0, 0], errors[:, 0, 1]
        block["iterations"] = np.asarray(result.iterations[rows])
        yield block
        for array in (result.q, result.errors, result.iterations):
            release_pages(array)
        progress(min(first_row + RESULT_BLOCK_ROWS, len(result)))


def _write_csv(path: Path, blocks: Iterator[dict[str, Any]]) -> None:
    """Write blocks of columns by name to a CSV file with a header."""
    with open(path, "x", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for k, block in enumerate(blocks):
            if k == 0:
                writer.writerow(block)
            block["success"] = np.where(block["success"], "true", "false")
            writer.writerows(zip(*(column.tolist() for column in block.values()), strict=True))


def _write_npz(path: Path, result: BatchResult, status_names: Sequence[str], progress: Callable[[int], None]) -> None:
    """Write the arrays as `numpy.savez` does, but in blocks: a memory-mapped result is never completely in memory."""
    from mechanik.solver.batch.batch_rows import release_pages

    arrays = {
        "q": result.q,
        "joints": np.array(result.joints),
        "success": result.success,
        "status": result.status,
        "statuses": np.array(status_names),
        "position_error": result.errors[:, 0, 0],
        "rotation_error": result.errors[:, 0, 1],
        "iterations": result.iterations,
    }
    with zipfile.ZipFile(path, "x") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                array_format = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False}
                np.lib.format.write_array_header_1_0(stream, {**array_format, "shape": array.shape})
                for first_row in range(0, len(array), RESULT_BLOCK_ROWS):
                    stream.write(array[first_row : first_row + RESULT_BLOCK_ROWS].tobytes())
                    release_pages(array)
                    if name == "q":  # the largest array of the file
                        progress(first_row)
    progress(len(result))


REQUEST_FILE, RESULT_FOLDER, TARGETS_FILE, STARTS_FILE = "request.json", "result", "targets.numbers", "starts.numbers"
BatchArguments = Mapping[str, Any]
"""Arguments that identify a batch, by option name, as JSON data."""


class BatchWorkFolder:
    """Work folder of an unfinished batch, from which the batch can be resumed: `R.npz.part` for the result `R.npz`.

    Attributes:
        path: the folder; it also contains the arguments of the batch.
        targets_path, starts_path: binary files with the targets and starts that were read from text or Parquet.
        result_folder: folder with the rows solved so far.

    Args:
        result_path: path of the result file.
    """

    def __init__(self, result_path: Path) -> None:
        self.path = result_path.with_name(f"{result_path.name}.part")
        self.targets_path, self.starts_path = self.path / TARGETS_FILE, self.path / STARTS_FILE
        self.result_folder = self.path / RESULT_FOLDER

    def __str__(self) -> str:
        return self.path.name

    @property
    def has_solved_rows(self) -> bool:
        """Whether the folder contains solved rows; also true if its result cannot be read."""
        from mechanik.solver.batch import BatchResult

        if not self.result_folder.exists():
            return False
        try:
            return BatchResult.open(self.result_folder).done > 0
        except MechanikError:  # unreadable data may still be valuable, so it is not removed
            return True

    def open(self, arguments: BatchArguments, resume: bool) -> None:
        """Create the folder, or reopen it to resume the same batch.

        Raises:
            UsageError: the path exists but is not the work folder of a batch; or the folder contains solved rows, and
                `resume` is False or the arguments differ. The folder is not changed.
            CannotSave: the folder cannot be written.
        """
        try:
            stored_arguments = self._read_arguments() if self.path.exists() else None
            if stored_arguments is not None and self.has_solved_rows:
                self._check_resumable(stored_arguments, arguments, resume)
                return
            if resume:
                print_note("note: there is no unfinished batch to resume, so all targets are solved")
            if stored_arguments is not None:
                self.remove()
            self.path.mkdir(exist_ok=True)
            (self.path / REQUEST_FILE).write_text(json.dumps(arguments, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise CannotSave(f"{self.path} cannot be written: {error.strerror or error}") from None

    def remove(self) -> None:
        """Remove the files of the batch, and the folder if no other files are in it."""
        shutil.rmtree(self.result_folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            for name in (TARGETS_FILE, STARTS_FILE, REQUEST_FILE):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def _check_resumable(self, stored_arguments: BatchArguments, arguments: BatchArguments, resume: bool) -> None:
        """Raise `UsageError` if `resume` is False, or if the unfinished batch has other arguments."""
        if not resume:
            raise UsageError(
                f"{self} contains an unfinished batch: add --resume to continue it, or delete it to start again"
            )
        changed_names = [
            name for name in {**stored_arguments, **arguments} if stored_arguments.get(name) != arguments.get(name)
        ]
        if changed_names:
            raise UsageError(
                f"{self} contains an unfinished batch with different {', '.join(changed_names)}; "
                "use the same options to continue it, or delete it to start again"
            )

    def _read_arguments(self) -> BatchArguments:
        """Read the arguments of the unfinished batch in the folder."""
        try:
            return json.loads((self.path / REQUEST_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            message = f"{self.path} exists and is not an unfinished batch; move it, or choose another --out"
            raise UsageError(message) from None


def file_digest(path: Path | None) -> str | None:
    """Return the SHA-256 digest of a file, which identifies its content under any name; None for None."""
    if path is None:
        return None
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
