"""Rows of the packed tables as records with named fields, for code that inspects a problem outside of the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.kernels import nodes as node_layout
from mechanik.kernels import problem_layout
from mechanik.objectives.relation import RelationKind

DOF_COUNTS = {node_layout.TRANSLATION: (3, 3), node_layout.SPHERICAL: (4, 3), node_layout.FIXED: (0, 0)}
"""Numbers of entries in q and in v of a node, by its kind; (1, 1) for all other kinds."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node of the kinematic tree of a subproblem.

    Attributes:
        kind: node kind of `kernels/nodes.py`.
        parent: index of the parent node; -1 for the world.
        q_index, q_count: first index in q and number of entries.
        v_index, v_count: first index in v and number of entries.
    """

    kind: int
    parent: int
    q_index: int
    q_count: int
    v_index: int
    v_count: int


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A block of residual rows.

    Attributes:
        kind: kind of the relation.
        row_mask: bits 0 to 2: rows of the position part; bits 3 to 5: rows of the rotation part.
        rows: range of its rows.
        node_a, node_b: nodes of the frames A and B; -1 for the world.
        in_world: whether the residuals are along axes that are fixed in the world.
        has_bands: whether a row has a band, an interval of values that count as zero.
        x_index: index in x of a joint's value or quaternion.
        column_indices: columns that the block depends on, (columns,).
    """

    kind: RelationKind
    row_mask: int
    rows: range
    node_a: int
    node_b: int
    in_world: bool
    has_bands: bool
    x_index: int
    column_indices: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def constrains_rotation(self) -> bool:
        """Whether the row mask has bits of the rotation part."""
        return self.row_mask > 7

    @property
    def position_row_count(self) -> int:
        """Number of rows of the position part."""
        return (self.row_mask & 7).bit_count()


def node_record(row: np.ndarray[Any, Any]) -> NodeRecord:
    """Return the record of a row of the table `nodes`."""
    kind = int(row[node_layout.NODE_KIND])
    q_count, v_count = DOF_COUNTS.get(kind, (1, 1))
    return NodeRecord(
        kind, int(row[node_layout.PARENT]), int(row[node_layout.FIRST_Q]), q_count, int(row[node_layout.FIRST_V]),
        v_count,
    )  # fmt: skip


def block_record(row: np.ndarray[Any, Any], block_columns: np.ndarray[Any, Any]) -> BlockRecord:
    """Return the record of a row of the table `blocks`.

    Args:
        row: the row.
        block_columns: the table of the columns of all blocks.
    """
    first_row, first_column = int(row[problem_layout.FIRST_ROW]), int(row[problem_layout.FIRST_COLUMN])
    return BlockRecord(
        RelationKind(int(row[problem_layout.BLOCK_KIND])),
        int(row[problem_layout.ROW_MASK]),
        range(first_row, first_row + int(row[problem_layout.ROW_COUNT])),
        int(row[problem_layout.NODE_A]),
        int(row[problem_layout.NODE_B]),
        bool(row[problem_layout.IN_WORLD]),
        bool(row[problem_layout.HAS_BANDS]),
        int(row[problem_layout.X_INDEX]),
        block_columns[first_column : first_column + int(row[problem_layout.COLUMN_COUNT])],
    )
