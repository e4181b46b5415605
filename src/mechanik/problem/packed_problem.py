"""Packing of residual blocks into the two flat arrays of the general kernel (`kernels/problem_layout.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.kernels import problem_layout as problem
from mechanik.kernels.nodes import PARENT
from mechanik.model.configuration_space import Indices
from mechanik.objectives.relation import RelationKind
from mechanik.problem.kinematic_tree import KinematicTree, PassiveSpherical
from mechanik.problem.residual_block import (
    ResidualBlock,
    count_parameters,
    joint_constraint_parameters,
    stage_layout,
    terrain_parameters,
)
from mechanik.spatial.array import Array

CLOSURE_TOLERANCE = 1e-10
"""m and rad; largest residual of a hard constraint that counts as zero."""
MAX_HESSIAN_COLUMNS = 128
"""Number of columns up to which memory for a Hessian is reserved, even if no step needs so large a matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedProblem:
    """Flat arrays of one subproblem.

    Attributes:
        ints, floats: the arrays that the kernel reads and writes.
        tables: views into the arrays, by table name.
        sizes: sizes by name, as in `problem_layout.SIZES`.
        columns: for each column the index in v that it moves; -1 for slacks.
    """

    ints: np.ndarray[tuple[int], np.dtype[np.int64]]
    floats: Array
    tables: Mapping[str, np.ndarray[Any, Any]]
    sizes: Mapping[str, int]
    columns: Indices


def pack_problem(
    tree: KinematicTree,
    drafts: Sequence[ResidualBlock],
    optional_stages: Sequence[bool],
    length_unit: float,
    dof_weights: Sequence[float],
    passive_sphericals: Sequence[PassiveSpherical] = (),
) -> PackedProblem:
    """Pack residual blocks into the flat arrays of one subproblem.

    Args:
        drafts: the blocks, sorted by stage.
        optional_stages: for each stage whether success does not depend on it.
        length_unit: m.
        dof_weights: mobility of each entry of v; 1 is the default.
        passive_sphericals: spherical joints whose rotation is computed after the solve.
    """
    used = sorted({v for draft in drafts for v in draft.columns})
    column_of = {v: k for k, v in enumerate(used)}
    banded = [(b, r) for b, draft in enumerate(drafts) for r in range(draft.row_count) if draft.is_banded(r)]
    slack_column = {key: len(used) + k for k, key in enumerate(banded)}
    c, nx = len(used) + len(banded), tree.nx + len(banded)
    members = [
        [column_of[v] for v in draft.columns]
        + [slack_column[b, r] for r in range(draft.row_count) if draft.is_banded(r)]
        for b, draft in enumerate(drafts)
    ]
    order = _order(c, members)
    place = np.argsort(order)
    members = [sorted(some, key=lambda k: place[k]) for some in members]
    base = _base(tree, drafts)
    needed = sorted({node for draft in drafts for node in draft.nodes} - set(_above(tree, base)))
    node_of = {node: k for k, node in enumerate(needed)} | {base: -1, -1: -1}
    heights = [draft.row_count for draft in drafts]
    stages = len(optional_stages)
    shapes = [stage_layout(s, drafts, members, place.tolist()) for s in range(stages)]
    hard, wide = (
        max(0, *found) for found in zip(*[(one.hard_rows, one.use_dual_form * one.rows) for one in shapes], strict=True)
    )
    square = c * c if c <= MAX_HESSIAN_COLUMNS or any(one.use_primal_form for one in shapes) else 0
    sizes = {
        "nodes": len(needed), "columns": c, "x": nx, "blocks": len(drafts), "rows": sum(heights),
        "terms": sum(len(draft.terms) for draft in drafts), "stages": stages,
        "balls": sum(v in column_of for _, v in tree.spherical_joints),
        "masses": sum(len(draft.masses) for draft in drafts),
        "jacobian": sum(h * len(some) for h, some in zip(heights, members, strict=True)),
        "block_columns": sum(map(len, members)), "widest": max([1, *heights]), "q": tree.nq,
        "functions": sum(draft.relation.kind is RelationKind.FUNCTION for draft in drafts), "target": 0, "zero": 0,
        "hard": hard, "wide": wide, "square": square, "matrix": max(square, wide * wide),
        "follow": min(c * c // 4, hard * c) + c,
        "chain": max([0, *[len(drafts[one.chain_block].terms) for one in shapes if one.chain_block >= 0]]),
        "numbers": count_parameters(draft.relation for draft in drafts), "read_off": len(passive_sphericals),
    }  # fmt: skip
    packed = _room(sizes, np.array([*used, *[-1] * len(banded)], dtype=np.int64))
    at = packed.tables

    nodes = at["nodes"].reshape(-1, 18)
    nodes[:] = tree.nodes[needed]
    nodes[:, PARENT] = [node_of[int(node)] for node in nodes[:, PARENT]]
    _fill_columns(packed, tree, used, drafts, banded, length_unit, dof_weights)
    at["order"][:] = order
    for row, ball in zip(at["read_off"].reshape(-1, problem.PASSIVE_FLOATS), passive_sphericals, strict=True):
        row[: problem.PASSIVE_CARRIER_AXES] = node_of[ball.carrier], node_of[ball.other], ball.x
        row[problem.PASSIVE_CARRIER_AXES :] = *ball.R_carrier_joint.ravel(), *ball.R_other_joint.ravel()
    for s in range(stages):
        start, end = (sum(draft.stage < limit for draft in drafts) for limit in (s, s + 1))
        at["stages"].reshape(-1, problem.STAGE_INTS)[s] = (
            start,
            end,
            optional_stages[s],
            shapes[s].use_dual_form,
            shapes[s].chain_block,
        )
        for b in range(start):
            at["private"].reshape(stages, c)[s, members[b]] += 1
    _fill_blocks(packed, tree, drafts, members, column_of, node_of, slack_column)
    return packed


def _base(skeleton: KinematicTree, drafts: Sequence[ResidualBlock]) -> int:
    """Return the last node that carries all frames, whose pose the residuals do not depend on; -1: the world."""
    ways: list[list[int]] = []
    for draft in drafts:
        relation = draft.relation
        if relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT, RelationKind.JOINT_CONSTRAINT):
            continue
        if relation.kind > RelationKind.DISTANCE or relation.world_axes is not None:
            return -1
        ways += [skeleton.path(relation.a), skeleton.path(relation.b)]
    base = -1
    for nodes in zip(*ways, strict=False):  # up to the end of the shortest path
        if len(set(nodes)) > 1:
            break
        base = nodes[0]
    return base


def _above(skeleton: KinematicTree, node: int) -> list[int]:
    found: list[int] = []
    while node >= 0:
        found.append(node)
        node = int(skeleton.nodes[node, PARENT])
    return found


def _order(columns: int, members: Sequence[Sequence[int]]) -> list[int]:
    """Order the columns for elimination: those in few blocks come first, so that the envelope of H stays narrow."""
    uses, first = [0] * columns, [len(members)] * columns
    for b, some in enumerate(members):
        for k in some:
            uses[k] += 1
            first[k] = min(first[k], b)
    return sorted(range(columns), key=lambda k: (uses[k], first[k], k))


def _room(sizes: Mapping[str, int], columns: Indices) -> PackedProblem:
    """Allocate all tables, filled with zeros."""
    names = [*problem.INT_TABLES, *problem.FLOAT_TABLES]
    lengths = {name: _length(text, sizes) for name, text in {**problem.INT_TABLES, **problem.FLOAT_TABLES}.items()}
    header = problem.FIRST_TABLE_OFFSET + len(names)
    int_count = header + sum(lengths[name] for name in problem.INT_TABLES)
    ints = np.zeros(int_count, dtype=np.int64)
    floats = np.zeros(sum(lengths[name] for name in problem.FLOAT_TABLES) + 1)
    for k, name in enumerate(problem.SIZES):
        ints[k] = sizes[name]
    at: dict[str, np.ndarray[Any, Any]] = {}
    int_at, float_at = header, 0
    for k, name in enumerate(names):
        length = lengths[name]
        if name in problem.INT_TABLES:
            ints[problem.FIRST_TABLE_OFFSET + k] = int_at
            at[name] = ints[int_at : int_at + length]
            int_at += length
        else:
            ints[problem.FIRST_TABLE_OFFSET + k] = float_at
            at[name] = floats[float_at : float_at + length]
            float_at += length
    return PackedProblem(ints, floats, at, dict(sizes), columns)


def _length(text: str, sizes: Mapping[str, int]) -> int:
    """Evaluate the size of a table, which `problem_layout.py` gives as an expression of sizes."""
    return int(eval(text, {"__builtins__": {}}, dict(sizes)))


def _fill_columns(
    packed: PackedProblem,
    skeleton: KinematicTree,
    used: Sequence[int],
    drafts: Sequence[ResidualBlock],
    banded: Sequence[tuple[int, int]],
    size: float,
    ease: Sequence[float],
) -> None:
    at = packed.tables
    x_of_v = {int(v): x for x, v in enumerate(skeleton.v_of_x) if v >= 0}
    for k, v in enumerate(used):
        x = x_of_v.get(v, -1)
        at["column_x"][k] = x
        at["scale"][k] = ease[v] * (1.0 if skeleton.rotates[v] else size)
        at["lower"][k], at["upper"][k] = (skeleton.lower[x], skeleton.upper[x]) if x >= 0 else (-np.inf, np.inf)
    balls = [(x, list(used).index(v)) for x, v in skeleton.spherical_joints if v in used]
    at["balls"][:] = np.array(balls, dtype=np.int64).ravel()
    for k, (b, r) in enumerate(banded, start=len(used)):
        at["column_x"][k] = skeleton.nx + k - len(used)
        at["scale"][k] = 1.0 / drafts[b].weights[r]
        at["lower"][k], at["upper"][k] = drafts[b].band(r)


def _fill_blocks(
    packed: PackedProblem,
    skeleton: KinematicTree,
    drafts: Sequence[ResidualBlock],
    members: Sequence[Sequence[int]],
    column_of: Mapping[int, int],
    node_of: Mapping[int, int],
    slack_column: Mapping[tuple[int, int], int],
) -> None:
    at = packed.tables
    blocks, data = at["blocks"].reshape(-1, problem.BLOCK_INTS), at["data"].reshape(-1, problem.BLOCK_FLOATS)
    terms, slack = at["terms"].reshape(-1, problem.TERM_INTS), at["slack"].reshape(-1, 2)
    masses = at["masses"].reshape(-1, problem.MASS_FLOATS)
    row = column = j = term = mass = slacks = number = 0
    fields: dict[int, int] = {}  # first parameter of each terrain, by id
    slack[:] = -1
    size = packed.sizes
    for b, (draft, some) in enumerate(zip(drafts, members, strict=True)):
        relation = draft.relation
        local = {k: i for i, k in enumerate(some)}
        own = local[column_of[draft.columns[0]]] if draft.is_joint_space and draft.columns else -1
        start, count = own if draft.is_joint_space else mass, len(draft.masses)
        numbers: list[float] = []
        if relation.kind is RelationKind.JOINT_CONSTRAINT:
            own_columns = {v: local[column_of[v]] for v in draft.columns}
            x = [skeleton.x_of[name] for name, _ in relation.polynomials]
            numbers = joint_constraint_parameters(
                relation, x, [own_columns.get(int(skeleton.v_of_x[k]), -1) for k in x]
            )
            start, count = number, len(relation.polynomials)
        elif relation.terrain is not None:
            numbers = [] if id(relation.terrain) in fields else terrain_parameters(relation.terrain)
            start = fields.setdefault(id(relation.terrain), number)
        has_bands = any(draft.is_banded(r) for r in range(draft.row_count))
        blocks[b] = (
            relation.kind, draft.mask, draft.row_count, row,
            node_of.get(draft.node_a, -1), node_of.get(draft.node_b, -1),
            len(some), column, j, len(draft.terms), term, draft.x_index, relation.world_axes is not None,
            start, count, has_bands,
        )  # fmt: skip
        data[b, problem.FRAME_A : problem.FRAME_B] = flat_pose(draft.X_a)
        data[b, problem.FRAME_B : problem.AXES_C] = flat_pose(draft.X_b)
        data[b, problem.POSITION_TOLERANCE2], data[b, problem.ROTATION_TOLERANCE2] = draft.tolerances()
        if relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT, RelationKind.JOINT_CONSTRAINT):
            data[b, : len(relation.target)] = relation.target
        if relation.world_axes is not None:
            data[b, problem.AXES_C : problem.POSITION_TOLERANCE2] = relation.world_axes.ravel()
        at["block_columns"][column : column + len(some)] = some
        at["weight"][row : row + draft.row_count] = draft.weights
        for v, node, axis, turns, side, ratio in draft.terms:
            k = column_of[v]
            terms[term] = node_of[node], axis, turns, local[k], side
            at["term_factor"][term] = ratio * at["scale"][k]
            term += 1
        total = sum(weight for *_, weight in draft.masses)
        for node, place, weight in draft.masses:
            masses[mass] = node_of.get(node, -1), weight / total, *place
            mass += 1
        at["numbers"][number : number + len(numbers)] = numbers
        number += len(numbers)
        for r in range(draft.row_count):
            if (b, r) in slack_column:
                slack[row + r] = skeleton.nx + slacks, local[slack_column[b, r]]
                slacks += 1
        row, column, j = row + draft.row_count, column + len(some), j + draft.row_count * len(some)
    assert (row, j, term, number) == (size["rows"], size["jacobian"], size["terms"], size["numbers"])


def flat_pose(X: Array) -> Array:
    """Return a pose (4, 4) as (12,): R row by row, then p."""
    return np.concatenate([X[:3, :3].ravel(), X[:3, 3]])
