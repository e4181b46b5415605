"""Packing of residual blocks into the two flat arrays of the general kernel (`kernels/problem_layout.py`).

The Jacobian has a column for each moving dof, and one for the slack variable of each banded row. A banded row has
a band, an interval of values that count as zero.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.kernels import problem_layout, state_layout
from mechanik.kernels.curvature import MAX_PROBED_COLUMNS
from mechanik.kernels.nodes import NODE_FLOATS, PARENT
from mechanik.model.configuration_space import Indices
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem.kernel_options import PROGRESS_TOLERANCE, KernelOptions
from mechanik.problem.kernel_report import KernelReport
from mechanik.problem.kinematic_tree import KinematicTree, PassiveSpherical
from mechanik.problem.records import BlockRecord, NodeRecord, block_record, node_record
from mechanik.problem.residual_block import (
    ResidualBlock,
    count_parameters,
    joint_constraint_parameters,
    stage_layout,
    terrain_parameters,
)
from mechanik.spatial.array import Array

CLOSURE_TOLERANCE = 1e-10
"""m and rad; largest error of a hard constraint that counts as zero."""
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
MAX_HESSIAN_COLUMNS = 128
"""Largest number of columns for which memory for a Hessian is always reserved. With more columns, it is reserved only
if a stage uses the primal step (`residual_block.py`)."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedProblem:
    """Flat arrays of one subproblem, and all access to them from Python.

    The problem that the compiler packs is a template and stays unchanged; a search runs on a `copy`.

    Attributes:
        ints, floats: the arrays that the kernel reads and writes.
        tables: views into the arrays, by table name.
        sizes: sizes by name, as in `problem_layout.SIZES`.
        columns: for each Jacobian column the index in v of its dof; -1 for slack variables.
        report: the report of the last search, as a view.
        stops_by_progress: whether `progress_tolerance` has the default PROGRESS_TOLERANCE: the objectives of a stage
            have more rows, without those with bands, than there are dofs, so that they can hardly all be met; and there
            are too many dofs for second derivatives, so that the last decreases are slow.
    """

    ints: np.ndarray[tuple[int], np.dtype[np.int64]]
    floats: Array
    tables: Mapping[str, np.ndarray[Any, Any]]
    sizes: Mapping[str, int]
    columns: Indices
    report: KernelReport
    stops_by_progress: bool = False

    # ---- copies of a template ----------------------------------------------------------------

    def copy(self) -> PackedProblem:
        """Return an independent copy: the workspace of one thread."""
        ints, floats = self.ints.copy(), self.floats.copy()
        tables = _table_views(ints, floats, {name: len(table) for name, table in self.tables.items()})
        return replace(self, ints=ints, floats=floats, tables=tables, report=KernelReport(tables["report"]))

    def reset(self, template: PackedProblem) -> None:
        """Restore all inputs of a search from the template: targets, bounds, options, and the variables after q.

        The tables behind the options are memory of the kernel, which a search initializes.
        """
        end = int(self.ints[problem_layout.AT_STATE])
        self.floats[:end] = template.floats[:end]
        self.tables["x"][:] = template.tables["x"]
        self.tables["bound_state"][:] = 0

    # ---- inputs of a search --------------------------------------------------------------------

    def set_options(self, options: KernelOptions) -> None:
        """Write the options of the next searches."""
        self.tables["options"][:] = options.table
        if options.progress_tolerance is None and self.stops_by_progress:
            self.tables["options"][problem_layout.PROGRESS_TOLERANCE] = PROGRESS_TOLERANCE

    def write_bounds(self, lower: Array, upper: Array) -> None:
        """Write limits of q, (nq,) each, rad or m; bands and closing joints keep theirs."""
        indices, nq = self.tables["column_x"], len(lower)
        is_in_q = (indices >= 0) & (indices < nq)
        self.tables["lower"][is_in_q], self.tables["upper"][is_in_q] = (
            lower[indices[is_in_q]],
            upper[indices[is_in_q]],
        )

    def remove_bounds(self) -> None:
        """Remove the limits of all columns, also those of bands."""
        self.tables["lower"][:], self.tables["upper"][:], self.tables["bound_state"][:] = -np.inf, np.inf, 0

    def lock_columns(self, is_locked: Mask) -> None:
        """Lock the columns of a mask (columns,): their values stay as in the start, also beyond the limits."""
        self.tables["bound_state"][:] = np.where(is_locked, problem_layout.LOCKED, 0)
        if is_locked.any():
            self.tables["lower"][is_locked], self.tables["upper"][is_locked] = -np.inf, np.inf

    @property
    def is_locked(self) -> Mask:
        """Mask of the locked columns, (columns,)."""
        return self.tables["bound_state"] == problem_layout.LOCKED

    def release_bounds(self) -> None:
        """Empty the active set; locked columns stay locked."""
        bound_state = self.tables["bound_state"]
        bound_state[bound_state != problem_layout.LOCKED] = 0

    @property
    def column_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of x of each column, (columns,) each, as views; rad or m."""
        return self.tables["lower"], self.tables["upper"]

    def set_extra_values(self, values: Array) -> None:
        """Set the variables after q: values (m and rad) of closing joints with nodes; those of slacks become zero."""
        extra_state = self.tables["x"][self.sizes["q"] :]
        extra_state[: len(values)] = values
        extra_state[len(values) :] = 0.0

    @property
    def extra_state(self) -> Array:
        """View of the variables after q: values of closing joints with nodes, then slack variables."""
        return self.tables["x"][self.sizes["q"] :]

    def write_relation(self, block_index: int, relation: Relation, X_node_a: Array, X_node_b: Array) -> None:
        """Write the target, frames and bands of a relation into a block.

        Args:
            block_index: index of the block; its relation had the same structure when it was packed.
            relation: the new relation.
            X_node_a, X_node_b: poses (4, 4) of the links A and B of the relation in their nodes.
        """
        tables = self.tables
        data, block = self._block_data(block_index), self._block(block_index)
        if relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT, RelationKind.JOINT_CONSTRAINT):
            data[: len(relation.target)] = relation.target
        elif relation.kind is not RelationKind.FUNCTION:
            data[problem_layout.FRAME_A : problem_layout.FRAME_B] = flat_pose(X_node_a @ relation.X_a)
            data[problem_layout.FRAME_B : problem_layout.AXES_C] = flat_pose(X_node_b @ relation.X_b)
        if relation.world_axes is not None:
            data[problem_layout.AXES_C : problem_layout.POSITION_TOLERANCE2] = relation.world_axes.ravel()
        if block[problem_layout.HAS_BANDS]:
            first_row, slack = int(block[problem_layout.FIRST_ROW]), tables["slack"].reshape(-1, 2)
            block_columns = tables["block_columns"][block[problem_layout.FIRST_COLUMN] :]
            for row in range(len(relation.rows)):
                column = block_columns[slack[first_row + row, 1]]
                tables["lower"][column] = -np.inf if relation.lower is None else relation.lower[row]
                tables["upper"][column] = np.inf if relation.upper is None else relation.upper[row]

    def target_view(self, block_index: int) -> Array:
        """Return the target numbers of a block as a view: frame A (12,), or the target of a joint value."""
        return self._block_data(block_index)[problem_layout.FRAME_A : problem_layout.FRAME_B]

    def target_index(self, block_index: int) -> int:
        """Return the index in `floats` of the first target number of a block."""
        block_data = int(self.ints[problem_layout.AT_BLOCK_DATA])
        return block_data + problem_layout.BLOCK_FLOATS * block_index + problem_layout.FRAME_A

    def set_target_block(self, block_index: int) -> None:
        """Choose the block whose frame A the target argument of the kernel replaces."""
        self.ints[problem_layout.TARGET_BLOCK] = block_index

    @contextmanager
    def constraints_only(self) -> Generator[None]:
        """Let searches end after the first stage, which has the closures, joint constraints and cone limits."""
        stage_count = int(self.ints[problem_layout.N_STAGES])
        self.ints[problem_layout.N_STAGES] = 1
        try:
            yield
        finally:
            self.ints[problem_layout.N_STAGES] = stage_count

    # ---- a search that pauses --------------------------------------------------------------------

    def begin_search(self, iterations_per_call: float) -> None:
        """Let the next kernel call begin a search, and pause after a number of iterations (infinite: never)."""
        self.tables["state"][state_layout.IS_RESUMED] = 0.0
        self.pause_after(iterations_per_call)

    def pause_after(self, iterations: float) -> None:
        """Set the number of iterations until the next pause."""
        self.tables["options"][problem_layout.ITERATIONS_PER_CALL] = iterations

    def end_search(self, start_count: int) -> int:
        """Let the paused search end: no stage continues, and no attempt begins.

        Args:
            start_count: number of starts after the first.

        Returns:
            The number of attempts.
        """
        options, state = self.tables["options"], self.tables["state"]
        options[problem_layout.MAX_ITERATIONS] = 0
        self.pause_after(np.inf)
        attempts = int(state[state_layout.ATTEMPT]) + 1
        state[state_layout.ATTEMPT] = start_count + 1
        return attempts

    @property
    def cost(self) -> float:
        """Cost of the present stage of a paused or ended search."""
        return float(self.tables["state"][state_layout.COST])

    def forget_search(self) -> None:
        """Let the next kernel call begin a search, also if the last one has not ended."""
        self.tables["state"][state_layout.IS_RESUMED] = 0.0

    def use_first_buffer(self) -> None:
        """Make buffer 0 that of the accepted state, as for evaluations outside of a search."""
        self.tables["state"][state_layout.CURRENT_BUFFER] = 0.0

    @property
    def accepted_q(self) -> Array:
        """Accepted configuration of a paused search, (nq,), as a view."""
        return self.tables["x"][: self.sizes["q"]]

    @property
    def trial(self) -> Array:
        """The trial x: q, then the variables after it, (x,), as a view."""
        return self.tables["trial"]

    @property
    def step(self) -> Array:
        """Step from the accepted x, in units of the columns, (columns,), as a view."""
        return self.tables["step"]

    @property
    def trial_q(self) -> Array:
        """Configuration of the trial that the kernel evaluates next, (nq,)."""
        return self.tables["trial"][: self.sizes["q"]]

    def write_function_rows(self, block_index: int, value: Array, J: Array) -> None:
        """Write residual and Jacobian of a block that is a Python function, at the trial.

        Args:
            block_index: index of the block.
            value: residual without weights, (m,).
            J: its Jacobian, (m, nv).
        """
        tables = self.tables
        buffer = 1 - int(tables["state"][state_layout.CURRENT_BUFFER])
        block = self._block(block_index)
        first_row, row_count, column_count = (
            int(block[k]) for k in (problem_layout.FIRST_ROW, problem_layout.ROW_COUNT, problem_layout.COLUMN_COUNT)
        )
        block_columns = tables["block_columns"][block[problem_layout.FIRST_COLUMN] :][:column_count]
        weight = tables["weight"][first_row : first_row + row_count]
        residual = tables["residual"][buffer * self.sizes["rows"] + first_row :][:row_count]
        residual[:] = weight * value
        first_entry = buffer * self.sizes["jacobian"] + int(block[problem_layout.FIRST_JACOBIAN])
        jacobian = tables["jacobian"][first_entry : first_entry + row_count * column_count]
        jacobian = jacobian.reshape(row_count, column_count)
        jacobian[:] = 0.0
        v = self.columns[block_columns]
        is_moving = np.flatnonzero(v >= 0)
        jacobian[:, is_moving] = weight[:, None] * J[:, v[is_moving]] * tables["scale"][block_columns[is_moving]]
        if block[problem_layout.HAS_BANDS]:
            slack_x, slack_column = tables["slack"].reshape(-1, 2)[first_row : first_row + row_count].T
            residual -= weight * tables["trial"][slack_x]
            jacobian[np.arange(row_count), slack_column] = -1.0

    # ---- properties of the problem ---------------------------------------------------------------

    @property
    def has_functions(self) -> bool:
        """Whether a block is a Python function."""
        return self.sizes["functions"] > 0

    def node_records(self) -> list[NodeRecord]:
        """Return a record of each node."""
        return [node_record(row) for row in self.tables["nodes"].reshape(-1, NODE_FLOATS)]

    def block_records(self) -> list[BlockRecord]:
        """Return a record of each block."""
        blocks = self.tables["blocks"].reshape(-1, problem_layout.BLOCK_INTS)
        return [block_record(row, self.tables["block_columns"]) for row in blocks]

    def stage_blocks(self, stage: int) -> range:
        """Return the blocks that a stage minimises; the blocks before them are its hard constraints."""
        first = problem_layout.STAGE_INTS * stage
        stage_ints = self.tables["stages"][first : first + problem_layout.STAGE_INTS]
        return range(int(stage_ints[problem_layout.HARD_END]), int(stage_ints[problem_layout.SOFT_END]))

    def row_range(self, block_index: int) -> range:
        """Return the rows of a block."""
        block = self._block(block_index)
        first_row = int(block[problem_layout.FIRST_ROW])
        return range(first_row, first_row + int(block[problem_layout.ROW_COUNT]))

    @property
    def row_count(self) -> int:
        """Number of residual rows."""
        return self.sizes["rows"]

    @property
    def stage_count(self) -> int:
        """Number of stages."""
        return self.sizes["stages"]

    @property
    def column_x_indices(self) -> Indices:
        """Index in x of each column, (columns,), as a view; -1 for the columns of spherical joints."""
        return self.tables["column_x"]

    @property
    def column_scales(self) -> Array:
        """Change of x for one unit of each column, (columns,), as a view; rad or m."""
        return self.tables["scale"]

    @property
    def rows_with_bands(self) -> Mask:
        """Mask of the rows with a band, an interval of values that count as zero, (rows,)."""
        return self.tables["slack"][::2] >= 0

    def row_weights(self, block_index: int) -> Array:
        """Return the weights of the rows of a block, per m and per rad."""
        rows = self.row_range(block_index)
        return self.tables["weight"][rows.start : rows.stop]

    def _block(self, block_index: int) -> np.ndarray[Any, Any]:
        first = problem_layout.BLOCK_INTS * block_index
        return self.tables["blocks"][first : first + problem_layout.BLOCK_INTS]

    def _block_data(self, block_index: int) -> Array:
        first = problem_layout.BLOCK_FLOATS * block_index
        return self.tables["block_data"][first : first + problem_layout.BLOCK_FLOATS]


def pack_problem(
    tree: KinematicTree,
    blocks: Sequence[ResidualBlock],
    is_optional_stage: Sequence[bool],
    length_unit: float,
    dof_weights: Sequence[float],
    passive_sphericals: Sequence[PassiveSpherical] = (),
) -> PackedProblem:
    """Pack residual blocks into the flat arrays of one subproblem.

    Args:
        blocks: the blocks, sorted by stage.
        is_optional_stage: for each stage whether it is optional: success does not depend on it.
        length_unit: m; lengths are divided by it.
        dof_weights: mobility weight of each entry of v; a dof with a smaller weight moves less. 1 is the default.
        passive_sphericals: spherical joints whose rotation is computed after the solve.
    """
    moving_v = sorted({v for block in blocks for v in block.v_indices})
    column_of = {v: k for k, v in enumerate(moving_v)}
    banded_rows = [(b, r) for b, block in enumerate(blocks) for r in range(block.row_count) if block.has_bands]
    slack_column = {key: len(moving_v) + k for k, key in enumerate(banded_rows)}
    column_count, x_count = len(moving_v) + len(banded_rows), tree.nx + len(banded_rows)
    columns_by_block = [
        [column_of[v] for v in block.v_indices]
        + [slack_column[b, r] for r in range(block.row_count) if block.has_bands]
        for b, block in enumerate(blocks)
    ]
    elimination_order = _elimination_order(column_count, columns_by_block)
    elimination_rank = np.argsort(elimination_order)
    columns_by_block = [sorted(columns, key=lambda k: elimination_rank[k]) for columns in columns_by_block]
    base_node = _common_base(tree, blocks)
    needed_nodes = sorted({node for block in blocks for node in block.nodes} - set(_ancestors(tree, base_node)))
    node_of = {node: k for k, node in enumerate(needed_nodes)} | {base_node: -1, -1: -1}
    row_counts = [block.row_count for block in blocks]
    stage_count = len(is_optional_stage)
    layouts = [stage_layout(stage, blocks, columns_by_block, elimination_rank.tolist()) for stage in range(stage_count)]
    hard_row_count = max([0, *(layout.hard_row_count for layout in layouts)])
    dual_row_count = max([0, *(layout.uses_dual_form * layout.row_count for layout in layouts)])
    square_size = (
        column_count * column_count
        if column_count <= MAX_HESSIAN_COLUMNS or any(layout.uses_primal_form for layout in layouts)
        else 0
    )
    sizes = {
        "nodes": len(needed_nodes), "columns": column_count, "x": x_count, "blocks": len(blocks),
        "rows": sum(row_counts), "terms": sum(len(block.terms) for block in blocks), "stages": stage_count,
        "sphericals": sum(v in column_of for _, v in tree.spherical_joints),
        "masses": sum(len(block.masses) for block in blocks),
        "jacobian": sum(rows * len(columns) for rows, columns in zip(row_counts, columns_by_block, strict=True)),
        "block_columns": sum(map(len, columns_by_block)), "max_block_rows": max([1, *row_counts]), "q": tree.nq,
        "functions": sum(block.relation.kind is RelationKind.FUNCTION for block in blocks),
        "target_block": 0, "runtime_zero": 0,
        "hard_rows": hard_row_count, "dual_rows": dual_row_count,
        "square": square_size, "matrix": max(square_size, dual_row_count * dual_row_count),
        "null_space_entries": min(column_count * column_count // 4, hard_row_count * column_count) + column_count,
        "chain": max([0, *[len(blocks[layout.chain_block].terms) for layout in layouts if layout.chain_block >= 0]]),
        "coefficients": count_parameters(block.relation for block in blocks), "passive": len(passive_sphericals),
    }  # fmt: skip
    packed = _allocate(sizes, np.array([*moving_v, *[-1] * len(banded_rows)], dtype=np.int64))
    packed = replace(packed, stops_by_progress=_stops_by_progress(blocks, stage_count, len(moving_v)))
    tables = packed.tables

    nodes = tables["nodes"].reshape(-1, 18)
    nodes[:] = tree.nodes[needed_nodes]
    nodes[:, PARENT] = [node_of[int(node)] for node in nodes[:, PARENT]]
    _fill_columns(packed, tree, moving_v, blocks, banded_rows, length_unit, dof_weights)
    tables["elimination_order"][:] = elimination_order
    for row, joint in zip(
        tables["passive"].reshape(-1, problem_layout.PASSIVE_FLOATS), passive_sphericals, strict=True
    ):
        row[: problem_layout.PASSIVE_PARENT_AXES] = node_of[joint.parent_node], node_of[joint.weld_node], joint.x
        row[problem_layout.PASSIVE_PARENT_AXES :] = *joint.R_parent_joint.ravel(), *joint.R_weld_joint.ravel()
    for stage in range(stage_count):
        start, end = (sum(block.stage < stage_limit for block in blocks) for stage_limit in (stage, stage + 1))
        tables["stages"].reshape(-1, problem_layout.STAGE_INTS)[stage] = (
            start,
            end,
            is_optional_stage[stage],
            layouts[stage].uses_dual_form,
            layouts[stage].chain_block,
        )
        for b in range(start):
            tables["hard_block_count"].reshape(stage_count, column_count)[stage, columns_by_block[b]] += 1
    _fill_blocks(packed, tree, blocks, columns_by_block, column_of, node_of, slack_column)
    return packed


def _stops_by_progress(blocks: Sequence[ResidualBlock], stage_count: int, dof_count: int) -> bool:
    """Return `PackedProblem.stops_by_progress`."""
    return dof_count > MAX_PROBED_COLUMNS and any(
        sum(block.row_count for block in blocks if block.stage == stage and not block.has_bands) > dof_count
        for stage in range(1, stage_count)
    )


def _common_base(tree: KinematicTree, blocks: Sequence[ResidualBlock]) -> int:
    """Return the last common ancestor node of all frames; -1 (the world) if a residual may depend on world poses."""
    paths: list[list[int]] = []
    for block in blocks:
        relation = block.relation
        if relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT, RelationKind.JOINT_CONSTRAINT):
            continue
        if relation.kind > RelationKind.DISTANCE or relation.world_axes is not None:
            return -1
        paths += [tree.path(relation.a), tree.path(relation.b)]
    base_node = -1
    for nodes in zip(*paths, strict=False):  # up to the end of the shortest path
        if len(set(nodes)) > 1:
            break
        base_node = nodes[0]
    return base_node


def _ancestors(tree: KinematicTree, node: int) -> list[int]:
    """Return a node and all of its ancestors."""
    ancestors: list[int] = []
    while node >= 0:
        ancestors.append(node)
        node = int(tree.nodes[node, PARENT])
    return ancestors


def _elimination_order(column_count: int, columns_by_block: Sequence[Sequence[int]]) -> list[int]:
    """Return the order in which columns are eliminated.

    Columns that occur in few blocks come first, so that the envelope of the Hessian stays narrow.
    """
    block_counts, first_block = [0] * column_count, [len(columns_by_block)] * column_count
    for b, block_columns in enumerate(columns_by_block):
        for k in block_columns:
            block_counts[k] += 1
            first_block[k] = min(first_block[k], b)
    return sorted(range(column_count), key=lambda k: (block_counts[k], first_block[k], k))


def _allocate(sizes: Mapping[str, int], columns: Indices) -> PackedProblem:
    """Allocate the two arrays, write the sizes and the offsets of the tables, and fill the tables with zeros."""
    names = [*problem_layout.INT_TABLES, *problem_layout.FLOAT_TABLES]
    lengths = {
        name: _table_length(expression, sizes)
        for name, expression in {**problem_layout.INT_TABLES, **problem_layout.FLOAT_TABLES}.items()
    }
    header_size = problem_layout.FIRST_TABLE_OFFSET + len(names)
    int_count = header_size + sum(lengths[name] for name in problem_layout.INT_TABLES)
    ints = np.zeros(int_count, dtype=np.int64)
    floats = np.zeros(sum(lengths[name] for name in problem_layout.FLOAT_TABLES) + 1)
    for k, name in enumerate(problem_layout.SIZES):
        ints[k] = sizes[name]
    int_offset, float_offset = header_size, 0
    for k, name in enumerate(names):
        if name in problem_layout.INT_TABLES:
            ints[problem_layout.FIRST_TABLE_OFFSET + k] = int_offset
            int_offset += lengths[name]
        else:
            ints[problem_layout.FIRST_TABLE_OFFSET + k] = float_offset
            float_offset += lengths[name]
    tables = _table_views(ints, floats, lengths)
    return PackedProblem(ints, floats, tables, dict(sizes), columns, KernelReport(tables["report"]))


def _table_views(
    ints: np.ndarray[tuple[int], np.dtype[np.int64]], floats: Array, lengths: Mapping[str, int]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return views of all tables by name; the header of `ints` has their offsets."""
    tables: dict[str, np.ndarray[Any, Any]] = {}
    for k, (name, length) in enumerate(lengths.items()):
        offset = int(ints[problem_layout.FIRST_TABLE_OFFSET + k])
        tables[name] = (ints if name in problem_layout.INT_TABLES else floats)[offset : offset + length]
    return tables


def _table_length(expression: str, sizes: Mapping[str, int]) -> int:
    """Evaluate the length of a table, which `problem_layout.py` defines as an expression of sizes."""
    return int(eval(expression, {"__builtins__": {}}, dict(sizes)))


def _fill_columns(
    packed: PackedProblem,
    tree: KinematicTree,
    moving_v: Sequence[int],
    blocks: Sequence[ResidualBlock],
    banded_rows: Sequence[tuple[int, int]],
    length_unit: float,
    dof_weights: Sequence[float],
) -> None:
    """Write the tables of columns: first the columns of moving dofs, then those of slack variables."""
    tables = packed.tables
    x_of_v = {int(v): x for x, v in enumerate(tree.v_of_x) if v >= 0}
    for k, v in enumerate(moving_v):
        x = x_of_v.get(v, -1)
        tables["column_x"][k] = x
        tables["scale"][k] = dof_weights[v] * (1.0 if tree.rotates[v] else length_unit)
        tables["lower"][k], tables["upper"][k] = (tree.lower[x], tree.upper[x]) if x >= 0 else (-np.inf, np.inf)
    sphericals = [(x, list(moving_v).index(v)) for x, v in tree.spherical_joints if v in moving_v]
    tables["spherical"][:] = np.array(sphericals, dtype=np.int64).ravel()
    for k, (b, r) in enumerate(banded_rows, start=len(moving_v)):
        tables["column_x"][k] = tree.nx + k - len(moving_v)
        tables["scale"][k] = 1.0 / blocks[b].weights[r]
        tables["lower"][k], tables["upper"][k] = blocks[b].band(r)


def _fill_blocks(
    packed: PackedProblem,
    tree: KinematicTree,
    blocks: Sequence[ResidualBlock],
    columns_by_block: Sequence[Sequence[int]],
    column_of: Mapping[int, int],
    node_of: Mapping[int, int],
    slack_column: Mapping[tuple[int, int], int],
) -> None:
    """Write the tables of blocks, with their columns, terms, masses, parameters and slack variables."""
    tables = packed.tables
    block_table, block_data = (
        tables["blocks"].reshape(-1, problem_layout.BLOCK_INTS),
        tables["block_data"].reshape(-1, problem_layout.BLOCK_FLOATS),
    )
    terms, slack = tables["terms"].reshape(-1, problem_layout.TERM_INTS), tables["slack"].reshape(-1, 2)
    masses = tables["masses"].reshape(-1, problem_layout.MASS_FLOATS)
    first_row = first_column = first_jacobian = term_index = mass_index = slack_count = first_parameter = 0
    first_parameter_by_terrain: dict[int, int] = {}  # first parameter of each terrain, by id
    slack[:] = -1
    sizes = packed.sizes
    for b, (block, columns) in enumerate(zip(blocks, columns_by_block, strict=True)):
        relation = block.relation
        local_column = {k: i for i, k in enumerate(columns)}
        first_local_column = (
            local_column[column_of[block.v_indices[0]]] if block.is_joint_space and block.v_indices else -1
        )
        first_entry, entry_count = first_local_column if block.is_joint_space else mass_index, len(block.masses)
        parameters: list[float] = []
        if relation.kind is RelationKind.JOINT_CONSTRAINT:
            local_column_of_v = {v: local_column[column_of[v]] for v in block.v_indices}
            x_indices = [tree.x_of[name] for name, _ in relation.polynomials]
            parameters = joint_constraint_parameters(
                relation, x_indices, [local_column_of_v.get(int(tree.v_of_x[k]), -1) for k in x_indices]
            )
            first_entry, entry_count = first_parameter, len(relation.polynomials)
        elif relation.terrain is not None:
            parameters = (
                [] if id(relation.terrain) in first_parameter_by_terrain else terrain_parameters(relation.terrain)
            )
            first_entry = first_parameter_by_terrain.setdefault(id(relation.terrain), first_parameter)
        has_bands = block.has_bands
        block_table[b] = (
            relation.kind, block.mask, block.row_count, first_row,
            node_of.get(block.node_a, -1), node_of.get(block.node_b, -1),
            len(columns), first_column, first_jacobian, len(block.terms), term_index, block.x_index,
            relation.world_axes is not None, first_entry, entry_count, has_bands,
        )  # fmt: skip
        block_data[b, problem_layout.FRAME_A : problem_layout.FRAME_B] = flat_pose(block.X_a)
        block_data[b, problem_layout.FRAME_B : problem_layout.AXES_C] = flat_pose(block.X_b)
        block_data[b, problem_layout.POSITION_TOLERANCE2], block_data[b, problem_layout.ROTATION_TOLERANCE2] = (
            block.squared_tolerances()
        )
        if relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT, RelationKind.JOINT_CONSTRAINT):
            block_data[b, : len(relation.target)] = relation.target
        if relation.world_axes is not None:
            block_data[b, problem_layout.AXES_C : problem_layout.POSITION_TOLERANCE2] = relation.world_axes.ravel()
        tables["block_columns"][first_column : first_column + len(columns)] = columns
        tables["weight"][first_row : first_row + block.row_count] = block.weights
        for v, node, axis, is_rotation, side, ratio in block.terms:
            k = column_of[v]
            terms[term_index] = node_of[node], axis, is_rotation, local_column[k], side
            tables["term_factor"][term_index] = ratio * tables["scale"][k]
            term_index += 1
        total_mass = sum(link_mass for *_, link_mass in block.masses)
        for node, position, link_mass in block.masses:
            masses[mass_index] = node_of.get(node, -1), link_mass / total_mass, *position
            mass_index += 1
        tables["coefficients"][first_parameter : first_parameter + len(parameters)] = parameters
        first_parameter += len(parameters)
        for r in range(block.row_count):
            if (b, r) in slack_column:
                slack[first_row + r] = tree.nx + slack_count, local_column[slack_column[b, r]]
                slack_count += 1
        first_row, first_column, first_jacobian = (
            first_row + block.row_count,
            first_column + len(columns),
            first_jacobian + block.row_count * len(columns),
        )
    assert (first_row, first_jacobian, term_index, first_parameter) == (
        sizes["rows"],
        sizes["jacobian"],
        sizes["terms"],
        sizes["coefficients"],
    )


def flat_pose(X: Array) -> Array:
    """Return a pose (4, 4) as (12,): R row by row, then p."""
    return np.concatenate([X[:3, :3].ravel(), X[:3, 3]])
