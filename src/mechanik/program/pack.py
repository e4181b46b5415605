"""From relations to the two flat arrays of the general kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.kernels import problem
from mechanik.kernels.layout import PARENT
from mechanik.mechanism.configuration import Indices
from mechanik.objectives.relation import Kind
from mechanik.program.draft import Draft
from mechanik.program.numbers import count_numbers, field_numbers, law_numbers
from mechanik.program.read_off import ReadOff
from mechanik.program.skeleton import Skeleton
from mechanik.program.stage_shapes import stage_shape
from mechanik.spatial.array import Array

SHUT = 1e-10
"""How far (m and rad) what is hard may be from zero."""
LARGEST_SQUARE = 128
"""Up to so many columns there is room for a matrix of second derivatives, even if no step needs a matrix so large."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """
    Attributes:
        ints, floats: the problem.
        at: every table of the problem by name, as a view.
        sizes: by name.
        columns: for each column the number of v that it moves; -1 for slacks.
    """

    ints: np.ndarray[tuple[int], np.dtype[np.int64]]
    floats: Array
    at: Mapping[str, np.ndarray[Any, Any]]
    sizes: Mapping[str, int]
    columns: Indices


def pack(
    skeleton: Skeleton,
    drafts: Sequence[Draft],
    wishes: Sequence[bool],
    size: float,
    ease: Sequence[float],
    balls: Sequence[ReadOff] = (),
) -> Packed:
    """
    Args:
        drafts: the blocks, sorted by stage.
        wishes: for each stage, whether it is one on which success does not depend.
        size: what counts as one unit of length.
        ease: for each number of v how readily it moves.
        balls: those that are turned in the end.
    """
    used = sorted({v for draft in drafts for v in draft.columns})
    column_of = {v: k for k, v in enumerate(used)}
    banded = [(b, r) for b, draft in enumerate(drafts) for r in range(draft.height) if draft.is_banded(r)]
    slack_column = {key: len(used) + k for k, key in enumerate(banded)}
    c, nx = len(used) + len(banded), skeleton.nx + len(banded)
    members = [
        [column_of[v] for v in draft.columns] + [slack_column[b, r] for r in range(draft.height) if draft.is_banded(r)]
        for b, draft in enumerate(drafts)
    ]
    order = _order(c, members)
    place = np.argsort(order)
    members = [sorted(some, key=lambda k: place[k]) for some in members]
    base = _base(skeleton, drafts)
    needed = sorted({node for draft in drafts for node in draft.nodes} - set(_above(skeleton, base)))
    node_of = {node: k for k, node in enumerate(needed)} | {base: -1, -1: -1}
    heights = [draft.height for draft in drafts]
    stages = len(wishes)
    shapes = [stage_shape(s, drafts, members, place.tolist()) for s in range(stages)]
    hard, wide = (max(0, *found) for found in zip(*[(one.hard, one.is_wide * one.rows) for one in shapes], strict=True))
    square = c * c if c <= LARGEST_SQUARE or any(one.is_narrow for one in shapes) else 0
    sizes = {
        "nodes": len(needed), "columns": c, "x": nx, "blocks": len(drafts), "rows": sum(heights),
        "terms": sum(len(draft.terms) for draft in drafts), "stages": stages,
        "balls": sum(v in column_of for _, v in skeleton.balls), "masses": sum(len(draft.masses) for draft in drafts),
        "jacobian": sum(h * len(some) for h, some in zip(heights, members, strict=True)),
        "block_columns": sum(map(len, members)), "widest": max([1, *heights]), "q": skeleton.nq,
        "functions": sum(draft.relation.kind is Kind.FUNCTION for draft in drafts), "target": 0, "zero": 0,
        "hard": hard, "wide": wide, "square": square, "matrix": max(square, wide * wide),
        "follow": min(c * c // 4, hard * c) + c,
        "chain": max([0, *[len(drafts[one.chain].terms) for one in shapes if one.chain >= 0]]),
        "numbers": count_numbers(draft.relation for draft in drafts), "read_off": len(balls),
    }  # fmt: skip
    packed = _room(sizes, np.array([*used, *[-1] * len(banded)], dtype=np.int64))
    at = packed.at

    nodes = at["nodes"].reshape(-1, 18)
    nodes[:] = skeleton.nodes[needed]
    nodes[:, PARENT] = [node_of[int(node)] for node in nodes[:, PARENT]]
    _fill_columns(packed, skeleton, used, drafts, banded, size, ease)
    at["order"][:] = order
    for row, ball in zip(at["read_off"].reshape(-1, problem.READ_OFF_FLOATS), balls, strict=True):
        row[: problem.R_FIXED] = node_of[ball.carrier], node_of[ball.other], ball.x
        row[problem.R_FIXED :] = *ball.R_carrier_ball.ravel(), *ball.R_other_ball.ravel()
    for s in range(stages):
        start, end = (sum(draft.stage < limit for draft in drafts) for limit in (s, s + 1))
        at["stages"].reshape(-1, problem.STAGE_INTS)[s] = start, end, wishes[s], shapes[s].is_wide, shapes[s].chain
        for b in range(start):
            at["private"].reshape(stages, c)[s, members[b]] += 1
    _fill_blocks(packed, skeleton, drafts, members, column_of, node_of, slack_column)
    return packed


def _base(skeleton: Skeleton, drafts: Sequence[Draft]) -> int:
    """The last node that carries all frames of all rows, so that nobody has to know where it stands; -1: the world."""
    ways: list[list[int]] = []
    for draft in drafts:
        relation = draft.relation
        if relation.kind in (Kind.VALUE, Kind.TURN, Kind.LAW):
            continue
        if relation.kind > Kind.DISTANCE or relation.world_axes is not None:
            return -1
        ways += [skeleton.path(relation.a), skeleton.path(relation.b)]
    base = -1
    for nodes in zip(*ways, strict=False):  # the shortest way decides
        if len(set(nodes)) > 1:
            break
        base = nodes[0]
    return base


def _above(skeleton: Skeleton, node: int) -> list[int]:
    found: list[int] = []
    while node >= 0:
        found.append(node)
        node = int(skeleton.nodes[node, PARENT])
    return found


def _order(columns: int, members: Sequence[Sequence[int]]) -> list[int]:
    """Columns that few blocks know come first, so that the envelope of H stays narrow."""
    uses, first = [0] * columns, [len(members)] * columns
    for b, some in enumerate(members):
        for k in some:
            uses[k] += 1
            first[k] = min(first[k], b)
    return sorted(range(columns), key=lambda k: (uses[k], first[k], k))


def _room(sizes: Mapping[str, int], columns: Indices) -> Packed:
    """All tables, empty."""
    names = [*problem.INT_TABLES, *problem.FLOAT_TABLES]
    lengths = {name: _length(text, sizes) for name, text in {**problem.INT_TABLES, **problem.FLOAT_TABLES}.items()}
    header = problem.OFFSETS + len(names)
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
            ints[problem.OFFSETS + k] = int_at
            at[name] = ints[int_at : int_at + length]
            int_at += length
        else:
            ints[problem.OFFSETS + k] = float_at
            at[name] = floats[float_at : float_at + length]
            float_at += length
    return Packed(ints, floats, at, dict(sizes), columns)


def _length(text: str, sizes: Mapping[str, int]) -> int:
    """The size of a table, which `problem.py` states as a product or sum of sizes."""
    return int(eval(text, {"__builtins__": {}}, dict(sizes)))


def _fill_columns(
    packed: Packed,
    skeleton: Skeleton,
    used: Sequence[int],
    drafts: Sequence[Draft],
    banded: Sequence[tuple[int, int]],
    size: float,
    ease: Sequence[float],
) -> None:
    at = packed.at
    x_of_v = {int(v): x for x, v in enumerate(skeleton.v_of_x) if v >= 0}
    for k, v in enumerate(used):
        x = x_of_v.get(v, -1)
        at["column_x"][k] = x
        at["scale"][k] = ease[v] * (1.0 if skeleton.rotates[v] else size)
        at["lower"][k], at["upper"][k] = (skeleton.lower[x], skeleton.upper[x]) if x >= 0 else (-np.inf, np.inf)
    balls = [(x, list(used).index(v)) for x, v in skeleton.balls if v in used]
    at["balls"][:] = np.array(balls, dtype=np.int64).ravel()
    for k, (b, r) in enumerate(banded, start=len(used)):
        at["column_x"][k] = skeleton.nx + k - len(used)
        at["scale"][k] = 1.0 / drafts[b].weights[r]
        at["lower"][k], at["upper"][k] = drafts[b].band(r)


def _fill_blocks(
    packed: Packed,
    skeleton: Skeleton,
    drafts: Sequence[Draft],
    members: Sequence[Sequence[int]],
    column_of: Mapping[int, int],
    node_of: Mapping[int, int],
    slack_column: Mapping[tuple[int, int], int],
) -> None:
    at = packed.at
    blocks, data = at["blocks"].reshape(-1, problem.BLOCK_INTS), at["data"].reshape(-1, problem.BLOCK_FLOATS)
    terms, slack = at["terms"].reshape(-1, problem.TERM_INTS), at["slack"].reshape(-1, 2)
    masses = at["masses"].reshape(-1, problem.MASS_FLOATS)
    row = column = j = term = mass = slacks = number = 0
    fields: dict[int, int] = {}  # where the numbers of a terrain begin
    slack[:] = -1
    size = packed.sizes
    for b, (draft, some) in enumerate(zip(drafts, members, strict=True)):
        relation = draft.relation
        local = {k: i for i, k in enumerate(some)}
        own = local[column_of[draft.columns[0]]] if draft.is_direct and draft.columns else -1
        start, count = own if draft.is_direct else mass, len(draft.masses)
        numbers: list[float] = []
        if relation.kind is Kind.LAW:
            own_columns = {v: local[column_of[v]] for v in draft.columns}
            x = [skeleton.x_of[name] for name, _ in relation.polynomials]
            numbers = law_numbers(relation, x, [own_columns.get(int(skeleton.v_of_x[k]), -1) for k in x])
            start, count = number, len(relation.polynomials)
        elif relation.terrain is not None:
            numbers = [] if id(relation.terrain) in fields else field_numbers(relation.terrain)
            start = fields.setdefault(id(relation.terrain), number)
        has_bands = any(draft.is_banded(r) for r in range(draft.height))
        blocks[b] = (
            relation.kind, draft.mask, draft.height, row, node_of.get(draft.node_a, -1), node_of.get(draft.node_b, -1),
            len(some), column, j, len(draft.terms), term, draft.x_index, relation.world_axes is not None,
            start, count, has_bands,
        )  # fmt: skip
        data[b, problem.FRAME_A : problem.FRAME_B] = flat_pose(draft.X_a)
        data[b, problem.FRAME_B : problem.AXES_C] = flat_pose(draft.X_b)
        data[b, problem.METRES2], data[b, problem.RADIANS2] = draft.tolerances()
        if relation.kind in (Kind.VALUE, Kind.TURN, Kind.LAW):
            data[b, : len(relation.target)] = relation.target
        if relation.world_axes is not None:
            data[b, problem.AXES_C : problem.METRES2] = relation.world_axes.ravel()
        at["block_columns"][column : column + len(some)] = some
        at["weight"][row : row + draft.height] = draft.weights
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
        for r in range(draft.height):
            if (b, r) in slack_column:
                slack[row + r] = skeleton.nx + slacks, local[slack_column[b, r]]
                slacks += 1
        row, column, j = row + draft.height, column + len(some), j + draft.height * len(some)
    assert (row, j, term, number) == (size["rows"], size["jacobian"], size["terms"], size["numbers"])


def flat_pose(X: Array) -> Array:
    """(12,), R row by row and p."""
    return np.concatenate([X[:3, :3].ravel(), X[:3, 3]])
