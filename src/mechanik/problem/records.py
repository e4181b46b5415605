"""Rows of the packed tables as records with named fields, for code that inspects a problem outside of the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.kernels.nodes import FIXED, SPHERICAL, TRANSLATION, Node
from mechanik.kernels.problem_layout import Block
from mechanik.objectives.relation import RelationKind

DOF_COUNTS = {TRANSLATION: (3, 3), SPHERICAL: (4, 3), FIXED: (0, 0)}
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


def node_record(node: Node) -> NodeRecord:
    """Return an independent record of a node."""
    q_count, v_count = DOF_COUNTS.get(node.kind, (1, 1))
    return NodeRecord(node.kind, node.parent, node.first_q, q_count, node.first_v, v_count)


def block_record(block: Block, block_columns: np.ndarray[Any, np.dtype[np.int64]]) -> BlockRecord:
    """Return an independent record of a block.

    Args:
        block: the block.
        block_columns: the table of the columns of all blocks.
    """
    return BlockRecord(
        RelationKind(block.kind),
        block.row_mask,
        range(block.first_row, block.first_row + block.row_count),
        block.node_a,
        block.node_b,
        block.in_world,
        block.has_bands,
        block.x_index,
        block_columns[block.first_column : block.first_column + block.column_count],
    )
