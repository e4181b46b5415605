"""Results of a batch as files: .npz, .csv, .parquet; written a block of rows at a time, in the order of the targets."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.cli.parquet_files import need_pyarrow, write_parquet
from mechanik.cli.replacing import file_to_write, replacing
from mechanik.kernels.solver_state import CONVERGED

if TYPE_CHECKING:
    from mechanik.batch import BatchResult

WRITTEN = (".npz", ".csv", ".parquet")
BLOCK = 65_536
"""Rows."""
OWN = ("success", "status", "position_error", "rotation_error", "iterations")
"""Columns besides the values of the joints; errors in m and rad."""


def result_file(name: str) -> Path:
    """Where to write; refused at once if it cannot be."""
    path = file_to_write(name, WRITTEN)
    if path.suffix.lower() == ".parquet":
        need_pyarrow(path)
    return path


def write_result(path: Path, result: BatchResult, statuses: Sequence[str], watch: Callable[[int], None]) -> None:
    """
    Args:
        statuses: names, by code.
        watch: called now and then with how many rows are written.
    """
    with replacing(path) as beside:
        if path.suffix.lower() == ".npz":
            _write_npz(beside, result, statuses, watch)
        else:
            write = write_parquet if path.suffix.lower() == ".parquet" else _write_csv
            write(beside, _blocks(result, statuses, watch))


def column_names(joints: Sequence[str]) -> list[str]:
    """Those of the joints, changed only where one is called like a column of ours."""
    return [f"joint {name}" if name in OWN else name for name in joints]


def _blocks(result: BatchResult, statuses: Sequence[str], watch: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    from mechanik.batch.mapped import release

    names, words = column_names(result.joints), np.array(statuses)
    for first in range(0, max(len(result), 1), BLOCK):  # one without rows too, for the names of its columns
        some = slice(first, first + BLOCK)
        q, errors = np.asarray(result.q[some]), np.asarray(result.errors[some])
        block: dict[str, Any] = {name: q[:, k] for k, name in enumerate(names)}
        codes = np.asarray(result.status[some])
        block["success"], block["status"] = codes == CONVERGED, words[codes]
        block["position_error"], block["rotation_error"] = errors[:, 0, 0], errors[:, 0, 1]
        block["iterations"] = np.asarray(result.iterations[some])
        yield block
        for array in (result.q, result.errors, result.iterations):
            release(array)
        watch(min(first + BLOCK, len(result)))


def _write_csv(path: Path, blocks: Iterator[dict[str, Any]]) -> None:
    with open(path, "x", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for k, block in enumerate(blocks):
            if k == 0:
                writer.writerow(block)
            block["success"] = np.where(block["success"], "true", "false")
            writer.writerows(zip(*(column.tolist() for column in block.values()), strict=True))


def _write_npz(path: Path, result: BatchResult, statuses: Sequence[str], watch: Callable[[int], None]) -> None:
    """As `numpy.savez` does, but a block at a time, so that not all of a mapped result has to be in memory."""
    from mechanik.batch.mapped import release

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
                for first in range(0, len(array), BLOCK):
                    stream.write(array[first : first + BLOCK].tobytes())
                    release(array)
                    if name == "q":  # most of it
                        watch(first)
    watch(len(result))
