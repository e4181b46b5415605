"""Parquet, by pyarrow, which is an optional part: numbers in, a block of rows at a time, and results out."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mechanik.cli.columns import find_columns
from mechanik.errors import FormatError, MissingExtra
from mechanik.spatial.array import Array

BLOCK = 65_536
"""Rows."""


def need_pyarrow(path: Path) -> None:
    """Say at once that it is missing, before anything is computed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra(path.name, "parquet")


def read_parquet(path: Path, choices: Sequence[Sequence[str]], take: Callable[[Array], None]) -> int:
    """Hand the rows to `take` as (rows, columns), float64, nulls as NaN; returns how many columns there are."""
    need_pyarrow(path)
    pa, pq = _module("pyarrow"), _module("pyarrow.parquet")
    try:
        with pq.ParquetFile(path) as opened:
            schema = opened.schema_arrow
            wanted = [schema.names[k] for k in find_columns(schema.names, choices, path.name)]
            for name in wanted:
                kind = schema.field(name).type
                if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                    raise FormatError(f"{path.name}: column {name!r} holds {kind}, and numbers are needed")
            for block in opened.iter_batches(batch_size=BLOCK, columns=wanted):
                columns = [block.column(name).to_numpy(zero_copy_only=False) for name in wanted]
                take(np.column_stack([np.asarray(column, dtype=np.float64) for column in columns]))
            return len(wanted)
    except pa.ArrowException as error:
        raise FormatError(f"{path.name} cannot be read as Parquet: {' '.join(str(error).split())}") from None


def write_parquet(path: Path, blocks: Iterator[Mapping[str, Any]]) -> None:
    """A column for each name; texts are kept as numbers into a list of them."""
    pa, pq = _module("pyarrow"), _module("pyarrow.parquet")
    writer: Any = None
    try:
        for block in blocks:
            arrays = {name: pa.array(column) for name, column in block.items()}
            made = pa.table(arrays)
            writer = pq.ParquetWriter(path, made.schema) if writer is None else writer
            writer.write_table(made)
    finally:
        if writer is not None:
            writer.close()


def _module(name: str) -> Any:
    return importlib.import_module(name)
