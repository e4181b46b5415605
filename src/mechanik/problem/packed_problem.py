"""Packing of residual blocks into the two flat arrays of the general kernel (`kernels/problem_layout.py`).

The Jacobian has a column for each moving dof, and one for the slack variable of each banded row. A banded row has
a band, an interval of values that count as zero.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from mechanik.kernels.curvature import MAX_PROBED_COLUMNS
from mechanik.kernels.problem_layout import LOCKED, BlockData, ProblemTables, Slack
from mechanik.kernels.tables import Ints, matrix_at
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
class RowScaling:
    """Factors of the residual rows, and all that depends on them.

    Attributes:
        weights: factor of each row, (rows,): the weight of the user divided by the unit.
        units: unit of each row, (rows,): m, rad or the unit of a function.
        squared_tolerances: squared tolerances of each block, (blocks, 2), in weighted units.
    """

    weights: Array
    units: Array
    squared_tolerances: Array

    @classmethod
    def of_blocks(cls, blocks: Sequence[ResidualBlock]) -> RowScaling:
        """Return the present scaling of the rows of blocks."""
        return cls(
            np.array([weight for block in blocks for weight in block.weights]),
            np.array([unit for block in blocks for unit in block.row_units]),
            np.array([block.squared_tolerances() for block in blocks]).reshape(-1, 2),
        )


@dataclass(frozen=True, slots=True, eq=False)
class PackedProblem:
    """Flat arrays of one subproblem, and all access to them from Python.

    The problem that the compiler packs is a template and stays unchanged; a search runs on a `copy`.

    Attributes:
        tables: the arrays that the kernel reads and writes, and views of all tables in them.
        columns: for each Jacobian column the index in v of its dof; -1 for slack variables.
        report: the report of the last search, as a view.
        stops_by_progress: whether `progress_tolerance` has the default PROGRESS_TOLERANCE: the objectives of a stage
            have more rows, without those with bands, than there are dofs, so that they can hardly all be met; and there
            are too many dofs for second derivatives, so that the last decreases are slow.
    """

    tables: ProblemTables
    columns: Indices
    report: KernelReport
    stops_by_progress: bool = False

    @property
    def ints(self) -> Ints:
        """The array of integers."""
        return self.tables.ints

    @property
    def floats(self) -> Array:
        """The array of floats."""
        return self.tables.floats

    # ---- copies of a template ----------------------------------------------------------------

    def copy(self) -> PackedProblem:
        """Return an independent copy: the workspace of one thread."""
        tables = self.tables.copy()
        return replace(self, tables=tables, report=KernelReport.of_tables(tables))

    def reset(self, template: PackedProblem) -> None:
        """Restore all inputs of a search from the template: targets, bounds, options, and the variables after q.

        The tables behind the options are memory of the kernel, which a search initializes.
        """
        end = self.tables.first_entry(ProblemTables.state)
        self.floats[:end] = template.floats[:end]
        self.tables.x[:] = template.tables.x
        self.tables.bound_state[:] = 0

    # ---- inputs of a search --------------------------------------------------------------------

    def set_options(self, options: KernelOptions) -> None:
        """Write the options of the next searches."""
        self.tables.options.assign(options.table)
        if options.progress_tolerance is None and self.stops_by_progress:
            self.tables.options.progress_tolerance = PROGRESS_TOLERANCE

    def write_row_scaling(self, scaling: RowScaling) -> None:
        """Write weights and tolerances of all rows, with the scales of the slack variables that depend on them."""
        self.tables.weight[:] = scaling.weights
        for data, squared_tolerances in zip(self.tables.block_data, scaling.squared_tolerances, strict=True):
            data.position_tolerance2, data.rotation_tolerance2 = squared_tolerances
        self.tables.scale[self.columns < 0] = 1.0 / scaling.weights[self.rows_with_bands]

    def write_bounds(self, lower: Array, upper: Array) -> None:
        """Write limits of q, (nq,) each, rad or m; bands and closing joints keep theirs."""
        indices, nq = self.tables.column_x, len(lower)
        is_in_q = (indices >= 0) & (indices < nq)
        self.tables.lower[is_in_q], self.tables.upper[is_in_q] = (
            lower[indices[is_in_q]],
            upper[indices[is_in_q]],
        )

    def remove_bounds(self) -> None:
        """Remove the limits of all columns, also those of bands."""
        self.tables.lower[:], self.tables.upper[:], self.tables.bound_state[:] = -np.inf, np.inf, 0

    def lock_columns(self, is_locked: Mask) -> None:
        """Lock the columns of a mask (columns,): their values stay as in the start, also beyond the limits."""
        self.tables.bound_state[:] = np.where(is_locked, LOCKED, 0)
        if is_locked.any():
            self.tables.lower[is_locked], self.tables.upper[is_locked] = -np.inf, np.inf

    @property
    def is_locked(self) -> Mask:
        """Mask of the locked columns, (columns,)."""
        return self.tables.bound_state == LOCKED

    def release_bounds(self) -> None:
        """Empty the active set; locked columns stay locked."""
        bound_state = self.tables.bound_state
        bound_state[bound_state != LOCKED] = 0

    @property
    def column_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of x of each column, (columns,) each, as views; rad or m."""
        return self.tables.lower, self.tables.upper

    def set_extra_values(self, values: Array) -> None:
        """Set the variables after q: values (m and rad) of closing joints with nodes; those of slacks become zero."""
        extra_state = self.tables.x[self.tables.nq :]
        extra_state[: len(values)] = values
        extra_state[len(values) :] = 0.0

    @property
    def extra_state(self) -> Array:
        """View of the variables after q: values of closing joints with nodes, then slack variables."""
        return self.tables.x[self.tables.nq :]

    def write_relation(self, block_index: int, relation: Relation, X_node_a: Array, X_node_b: Array) -> None:
        """Write the target, frames and bands of a relation into a block.

        Args:
            block_index: index of the block; its relation had the same structure when it was packed.
            relation: the new relation.
            X_node_a, X_node_b: poses (4, 4) of the links A and B of the relation in their nodes.
        """
        tables = self.tables
        data, block = tables.block_data[block_index], tables.blocks[block_index]
        if relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT, RelationKind.JOINT_CONSTRAINT):
            data.target[: len(relation.target)] = relation.target
        elif relation.kind is not RelationKind.FUNCTION:
            data.frame_a[:] = flat_pose(X_node_a @ relation.X_a)
            data.frame_b[:] = flat_pose(X_node_b @ relation.X_b)
        if relation.world_axes is not None:
            data.axes_c[:] = relation.world_axes.ravel()
        if block.has_bands:
            for row in range(len(relation.rows)):
                column = tables.block_columns[block.first_column + tables.slacks[block.first_row + row].column]
                tables.lower[column] = -np.inf if relation.lower is None else relation.lower[row]
                tables.upper[column] = np.inf if relation.upper is None else relation.upper[row]

    def target_index(self, block_index: int, of_b: bool = False) -> int:
        """Return the index in `floats` of the first number of frame A (`of_b`: B) of a block, or of its target."""
        first_entry = self.tables.first_entry(ProblemTables.block_data)
        frame = BlockData.frame_b if of_b else BlockData.frame_a
        return first_entry + BlockData.size * block_index + frame.offset

    def bound_indices(self, block_index: int) -> tuple[int, int]:
        """Return the indices in `floats` of the lower and upper bound of the first row of a block with a band."""
        tables = self.tables
        block = tables.blocks[block_index]
        column = int(tables.block_columns[block.first_column + tables.slacks[block.first_row].column])
        return tables.first_entry(ProblemTables.lower) + column, tables.first_entry(ProblemTables.upper) + column

    def write_target_numbers(self, numbers: Iterable[tuple[int, float]]) -> None:
        """Write single target numbers; each has an index in `floats`, see `target_index`."""
        for index, value in numbers:
            self.floats[index] = value

    def set_target_block(self, block_index: int) -> None:
        """Choose the block whose frame A the target argument of the kernel replaces."""
        self.tables.target_block = block_index

    @contextmanager
    def constraints_only(self) -> Generator[None]:
        """Let searches end after the first stage, which has the closures, joint constraints and cone limits."""
        stage_count = self.tables.stage_count
        self.tables.stage_count = 1
        try:
            yield
        finally:
            self.tables.stage_count = stage_count

    # ---- a search that pauses --------------------------------------------------------------------

    def begin_search(self, iterations_per_call: float) -> None:
        """Let the next kernel call begin a search, and pause after a number of iterations (infinite: never)."""
        self.tables.state.is_resumed = False
        self.pause_after(iterations_per_call)

    def pause_after(self, iterations: float) -> None:
        """Set the number of iterations until the next pause."""
        self.tables.options.iterations_per_call = iterations

    def end_search(self, start_count: int) -> int:
        """Let the paused search end: no stage continues, and no attempt begins.

        Args:
            start_count: number of starts after the first.

        Returns:
            The number of attempts.
        """
        options, state = self.tables.options, self.tables.state
        options.max_iterations = 0
        self.pause_after(np.inf)
        attempts = state.attempt + 1
        state.attempt = start_count + 1
        return attempts

    @property
    def cost(self) -> float:
        """Cost of the present stage of a paused or ended search."""
        return float(self.tables.state.cost)

    def forget_search(self) -> None:
        """Let the next kernel call begin a search, also if the last one has not ended."""
        self.tables.state.is_resumed = False

    def use_first_buffer(self) -> None:
        """Make buffer 0 that of the accepted state, as for evaluations outside of a search."""
        self.tables.state.current_buffer = 0

    @property
    def accepted_q(self) -> Array:
        """Accepted configuration of a paused search, (nq,), as a view."""
        return self.tables.x[: self.tables.nq]

    @property
    def trial(self) -> Array:
        """The trial x: q, then the variables after it, (x,), as a view."""
        return self.tables.trial

    @property
    def step(self) -> Array:
        """Step from the accepted x, in units of the columns, (columns,), as a view."""
        return self.tables.step

    @property
    def trial_q(self) -> Array:
        """Configuration of the trial that the kernel evaluates next, (nq,)."""
        return self.tables.trial[: self.tables.nq]

    def write_function_rows(self, block_index: int, value: Array, J: Array) -> None:
        """Write residual and Jacobian of a block that is a Python function, at the trial.

        Args:
            block_index: index of the block.
            value: residual without weights, (m,).
            J: its Jacobian, (m, nv).
        """
        tables = self.tables
        buffer, block = 1 - tables.state.current_buffer, tables.blocks[block_index]
        rows = slice(block.first_row, block.first_row + block.row_count)
        block_columns = tables.block_columns[block.first_column : block.first_column + block.column_count]
        weight, residual = tables.weight[rows], tables.residual[buffer, rows]
        residual[:] = weight * value
        jacobian = matrix_at(tables.jacobian[buffer], block.first_jacobian, block.row_count, block.column_count)
        jacobian[:] = 0.0
        v = self.columns[block_columns]
        is_moving = np.flatnonzero(v >= 0)
        jacobian[:, is_moving] = weight[:, None] * J[:, v[is_moving]] * tables.scale[block_columns[is_moving]]
        if block.has_bands:
            slack_x, slack_column = tables.slacks.rows[rows].T
            residual -= weight * tables.trial[slack_x]
            jacobian[np.arange(block.row_count), slack_column] = -1.0

    # ---- properties of the problem ---------------------------------------------------------------

    @property
    def has_functions(self) -> bool:
        """Whether a block is a Python function."""
        return self.tables.function_count > 0

    def node_records(self) -> list[NodeRecord]:
        """Return a record of each node."""
        return [node_record(node) for node in self.tables.nodes]

    def block_records(self) -> list[BlockRecord]:
        """Return a record of each block."""
        return [block_record(block, self.tables.block_columns) for block in self.tables.blocks]

    def stage_blocks(self, stage: int) -> range:
        """Return the blocks that a stage minimises; the blocks before them are its hard constraints."""
        blocks = self.tables.stages[stage]
        return range(blocks.hard_end, blocks.soft_end)

    def row_range(self, block_index: int) -> range:
        """Return the rows of a block."""
        block = self.tables.blocks[block_index]
        return range(block.first_row, block.first_row + block.row_count)

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return self.tables.block_count

    @property
    def row_count(self) -> int:
        """Number of residual rows."""
        return self.tables.row_count

    @property
    def stage_count(self) -> int:
        """Number of stages."""
        return self.tables.stage_count

    @property
    def column_x_indices(self) -> Indices:
        """Index in x of each column, (columns,), as a view; -1 for the columns of spherical joints."""
        return self.tables.column_x

    @property
    def column_scales(self) -> Array:
        """Change of x for one unit of each column, (columns,), as a view; rad or m."""
        return self.tables.scale

    @property
    def rows_with_bands(self) -> Mask:
        """Mask of the rows with a band, an interval of values that count as zero, (rows,)."""
        return self.tables.slacks.column(Slack.x) >= 0

    @property
    def spherical_columns(self) -> list[tuple[int, int]]:
        """For each spherical joint the index in x of its quaternion, and its first column."""
        return [(spherical.x, spherical.first_column) for spherical in self.tables.sphericals]

    @property
    def node_table(self) -> Array:
        """Nodes for kernels, (nodes, 18), in the layout of `kernels/nodes.py`, as a view."""
        return self.tables.nodes.rows

    @property
    def node_poses(self) -> Array:
        """World poses of the nodes at the last evaluation, (nodes, 12), as a view."""
        return self.tables.poses

    def frames(self, block_index: int) -> tuple[Array, Array]:
        """Return the frames A and B of a block in their nodes, (12,) each, as views."""
        data = self.tables.block_data[block_index]
        return data.frame_a, data.frame_b

    def row_weights(self, block_index: int) -> Array:
        """Return the weights of the rows of a block, per m and per rad."""
        rows = self.row_range(block_index)
        return self.tables.weight[rows.start : rows.stop]


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
    tables = ProblemTables.allocate(
        node_count=len(needed_nodes),
        column_count=column_count,
        x_count=x_count,
        block_count=len(blocks),
        row_count=sum(row_counts),
        term_count=sum(len(block.terms) for block in blocks),
        stage_count=stage_count,
        spherical_count=sum(v in column_of for _, v in tree.spherical_joints),
        mass_count=sum(len(block.masses) for block in blocks),
        jacobian_size=sum(rows * len(columns) for rows, columns in zip(row_counts, columns_by_block, strict=True)),
        block_column_count=sum(map(len, columns_by_block)),
        max_block_rows=max([1, *row_counts]),
        nq=tree.nq,
        function_count=sum(block.relation.kind is RelationKind.FUNCTION for block in blocks),
        target_block=0,
        runtime_zero=0,
        hard_row_count=hard_row_count,
        dual_row_count=dual_row_count,
        square_size=square_size,
        matrix_size=max(square_size, dual_row_count * dual_row_count),
        null_space_size=min(column_count * column_count // 4, hard_row_count * column_count) + column_count,
        chain_joint_count=max(
            [0, *[len(blocks[layout.chain_block].terms) for layout in layouts if layout.chain_block >= 0]]
        ),
        coefficient_count=count_parameters(block.relation for block in blocks),
        passive_count=len(passive_sphericals),
    )

    tables.nodes.rows[:] = tree.nodes[needed_nodes]
    for node in tables.nodes:
        node.parent = node_of[node.parent]
    _fill_columns(tables, tree, moving_v, blocks, banded_rows, length_unit, dof_weights)
    tables.elimination_order[:] = elimination_order
    for passive_joint, joint in zip(tables.passive_joints, passive_sphericals, strict=True):
        passive_joint.parent_node, passive_joint.weld_node = node_of[joint.parent_node], node_of[joint.weld_node]
        passive_joint.x = joint.x
        passive_joint.parent_axes[:], passive_joint.weld_axes[:] = (
            joint.R_parent_joint.ravel(),
            joint.R_weld_joint.ravel(),
        )
    for stage in range(stage_count):
        start, end = (sum(block.stage < stage_limit for block in blocks) for stage_limit in (stage, stage + 1))
        layout = layouts[stage]
        tables.stages[stage].set(start, end, is_optional_stage[stage], layout.uses_dual_form, layout.chain_block)
        for b in range(start):
            tables.hard_block_count[stage, columns_by_block[b]] += 1
    _fill_blocks(tables, tree, blocks, columns_by_block, column_of, node_of, slack_column)
    columns = np.array([*moving_v, *[-1] * len(banded_rows)], dtype=np.int64)
    stops_by_progress = _stops_by_progress(blocks, stage_count, len(moving_v))
    packed = PackedProblem(tables, columns, KernelReport.of_tables(tables), stops_by_progress)
    packed.write_row_scaling(RowScaling.of_blocks(blocks))
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
        node = tree.node(node).parent
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


def _fill_columns(
    tables: ProblemTables,
    tree: KinematicTree,
    moving_v: Sequence[int],
    blocks: Sequence[ResidualBlock],
    banded_rows: Sequence[tuple[int, int]],
    length_unit: float,
    dof_weights: Sequence[float],
) -> None:
    """Write the tables of columns: first the columns of moving dofs, then those of slack variables."""
    x_of_v = {int(v): x for x, v in enumerate(tree.v_of_x) if v >= 0}
    for k, v in enumerate(moving_v):
        x = x_of_v.get(v, -1)
        tables.column_x[k] = x
        tables.scale[k] = dof_weights[v] * (1.0 if tree.rotates[v] else length_unit)
        tables.lower[k], tables.upper[k] = (tree.lower[x], tree.upper[x]) if x >= 0 else (-np.inf, np.inf)
    sphericals = [(x, list(moving_v).index(v)) for x, v in tree.spherical_joints if v in moving_v]
    for spherical, (x, column) in zip(tables.sphericals, sphericals, strict=True):
        spherical.set(x, column)
    for k, (b, r) in enumerate(banded_rows, start=len(moving_v)):
        tables.column_x[k] = tree.nx + k - len(moving_v)
        tables.lower[k], tables.upper[k] = blocks[b].band(r)


def _fill_blocks(
    tables: ProblemTables,
    tree: KinematicTree,
    blocks: Sequence[ResidualBlock],
    columns_by_block: Sequence[Sequence[int]],
    column_of: Mapping[int, int],
    node_of: Mapping[int, int],
    slack_column: Mapping[tuple[int, int], int],
) -> None:
    """Write the tables of blocks, with their columns, terms, masses, parameters and slack variables."""
    first_row = first_column = first_jacobian = term_index = mass_index = slack_count = first_parameter = 0
    first_parameter_by_terrain: dict[int, int] = {}  # first parameter of each terrain, by id
    tables.slacks.rows[:] = -1
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
        tables.blocks[b].set(
            relation.kind, block.mask, block.row_count, first_row,
            node_of.get(block.node_a, -1), node_of.get(block.node_b, -1),
            len(columns), first_column, first_jacobian, len(block.terms), term_index, block.x_index,
            relation.world_axes is not None, first_entry, entry_count, has_bands,
        )  # fmt: skip
        data = tables.block_data[b]
        data.frame_a[:], data.frame_b[:] = flat_pose(block.X_a), flat_pose(block.X_b)
        if relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT, RelationKind.JOINT_CONSTRAINT):
            data.target[: len(relation.target)] = relation.target
        if relation.world_axes is not None:
            data.axes_c[:] = relation.world_axes.ravel()
        tables.block_columns[first_column : first_column + len(columns)] = columns
        for v, node, axis, is_rotation, side, ratio in block.terms:
            k = column_of[v]
            tables.terms[term_index].set(node_of[node], axis, is_rotation, local_column[k], side)
            tables.term_factor[term_index] = ratio * tables.scale[k]
            term_index += 1
        total_mass = sum(link_mass for *_, link_mass in block.masses)
        for node, position, link_mass in block.masses:
            tables.masses[mass_index].set(node_of.get(node, -1), link_mass / total_mass, *position)
            mass_index += 1
        tables.coefficients[first_parameter : first_parameter + len(parameters)] = parameters
        first_parameter += len(parameters)
        for r in range(block.row_count):
            if (b, r) in slack_column:
                tables.slacks[first_row + r].set(tree.nx + slack_count, local_column[slack_column[b, r]])
                slack_count += 1
        first_row, first_column, first_jacobian = (
            first_row + block.row_count,
            first_column + len(columns),
            first_jacobian + block.row_count * len(columns),
        )
    assert (first_row, first_jacobian, term_index, first_parameter) == (
        tables.row_count,
        tables.jacobian_size,
        tables.term_count,
        tables.coefficient_count,
    )


def flat_pose(X: Array) -> Array:
    """Return a pose (4, 4) as (12,): R row by row, then p."""
    return np.concatenate([X[:3, :3].ravel(), X[:3, 3]])
