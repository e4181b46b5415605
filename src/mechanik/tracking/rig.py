"""A mechanism and tasks, compiled into one problem with the tables that the kernel of a step reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanik.kernels import problem
from mechanik.kernels.tracking import layout
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.relation import Kind, Relation
from mechanik.program import Part, Program, Settings, compile_program
from mechanik.program.program import _needs_nodes, _values_in_order
from mechanik.spatial.array import Array

SHUT = 1e-12
"""How far loops are shut, in m and rad, where rounding allows it."""
SINGULAR = 0.1
"""How small a singular value is where damping begins, lengths in sizes of the mechanism. A Panda at home has 0.2."""
BRAKING = 0.5
"""Which share of the acceleration is for slowing down before a limit where loops bind columns; the rest is for what
columns have to do as loops bend."""


@dataclass(frozen=True, slots=True, eq=False)
class Held(Objective):
    """An objective whose rows are known already: angles stand for the nearest of those that look the same."""

    found: tuple[Relation, ...] = ()

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        return self.found


def held(mechanism: Mechanism, objective: Objective, q: Array, bounds: tuple[Array, Array]) -> Objective:
    """The same wish with angles as they look from q; other objectives stay as they are."""
    if not isinstance(objective, Aimed):
        return objective
    found = objective.nearest(mechanism, q, *bounds)
    return Held(
        found=found, weight=objective.weight, level=objective.level, tolerance=objective.tolerance,
        angle_tolerance=objective.angle_tolerance, required=objective.required, name=objective.name,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Rig:
    """
    Attributes:
        program: of one part.
        part: that one.
        relations: of each block, for those that are functions.
        table, options, gains, before, ahead, more, edges, rooms, held: as `kernels/tracking/step.py` takes them.
        columns: (columns,) for each column that is no slack, the number of v that it moves; nv and more for closing
            joints.
        has_functions: whether some rows are written in Python.
    """

    program: Program
    part: Part
    relations: list[Relation]
    table: Array
    options: Array
    gains: Array
    before: Array
    ahead: Array
    more: Array
    edges: Array
    rooms: tuple[Array, Array, np.ndarray[tuple[int, int], np.dtype[np.int64]]]
    held: np.ndarray[tuple[int], np.dtype[np.int64]]
    columns: np.ndarray[tuple[int], np.dtype[np.int64]]
    has_functions: bool

    def rows_of(self, owner: int) -> list[int]:
        """The numbers of an objective's rows."""
        found: list[int] = []
        blocks = self.part.packed.at["blocks"].reshape(-1, problem.BLOCK_INTS)
        for block, one in zip(blocks, self.part.owners, strict=True):
            if one == owner:
                found += range(block[problem.FIRST_ROW], block[problem.FIRST_ROW] + block[problem.ROWS])
        return found


def build_rig(
    mechanism: Mechanism,
    objectives: Sequence[Objective],
    active: Sequence[bool],
    bounds: tuple[Array, Array],
    rates: tuple[Array, Array],
    gains: Sequence[float],
    further: int,
    dt: float,
    damping: float,
    follows: bool,
) -> Rig:
    """
    Args:
        active: (nv,) which freedoms may move.
        bounds: (nq,) limits.
        rates: (nv,) largest velocities and accelerations.
        gains: of each objective, 1/s.
        further: how many further rows there may be.
    """
    nothing = Relation(Kind.FUNCTION, (), function=_nothing)
    # no rows, but a look at every freedom: so all of them are in one part, and those of which nothing is asked too
    whole = Held(found=(nothing,), level=min(one.level for one in objectives), name="all freedoms")
    asked = [*objectives, whole]
    rows = [one.relations(mechanism) for one in asked]
    settings = Settings(list(active), {}, [1.0] * mechanism.nv)
    program = compile_program(mechanism, asked, rows, settings)
    part = max(program.parts, key=lambda one: one.packed.sizes["columns"])
    relations = [rows[owner][i] if owner >= 0 else nothing for owner, i in zip(part.owners, part.numbers, strict=True)]
    has_functions = any(one.kind is Kind.FUNCTION and bool(one.rows) for one in relations)
    packed = replace(part.packed, sizes={**part.packed.sizes, "functions": int(has_functions)})
    part = replace(part, packed=packed)
    program = replace(program, parts=(part,))
    at = packed.at
    columns = packed.columns[packed.columns >= 0]
    n, scale = len(columns), at["scale"]
    table = np.zeros((layout.TABLE_ROWS, n))
    table[[layout.VELOCITY, layout.ACCELERATION, layout.UPPER]], table[layout.LOWER] = math.inf, -math.inf
    mine = columns < mechanism.nv
    for row, rate in zip((layout.VELOCITY, layout.ACCELERATION), rates, strict=True):
        table[row, mine] = rate[columns[mine]] / scale[:n][mine]
    for k in range(n):
        x = at["column_x"][k]
        if 0 <= x < mechanism.nq:
            table[layout.LOWER, k], table[layout.UPPER, k] = bounds[0][x], bounds[1][x]
        elif x >= 0:
            table[layout.LOWER, k], table[layout.UPPER, k] = at["lower"][k], at["upper"][k]
    blocks = at["blocks"].reshape(-1, problem.BLOCK_INTS)
    for block, owner in zip(blocks, part.owners, strict=True):
        if owner < 0:
            some = at["block_columns"][block[problem.FIRST_COLUMN] :][: block[problem.COLUMNS]]
            table[layout.BOUND, some[some < n]] = 1.0
    both = np.isfinite(table[layout.VELOCITY]) & np.isfinite(table[layout.ACCELERATION])
    slowest = float(np.max(table[layout.VELOCITY, both] / table[layout.ACCELERATION, both], initial=0.0))
    options = np.zeros(layout.OPTIONS)
    options[layout.DT], options[layout.DAMPING], options[layout.SINGULAR] = dt, damping, SINGULAR
    options[layout.FOLLOWS] = follows
    options[layout.NEARING] = BRAKING / max(slowest, BRAKING * dt)
    options[layout.SHUT] = max(SHUT / program.size, 4e-15)
    height = packed.sizes["rows"]
    rig = Rig(
        program, part, relations, table, options, np.full(height, 1.0 / dt), np.zeros(height),
        np.zeros((packed.sizes["stages"], n + 1)), np.zeros((height + further, n)), np.zeros((height + further, 4)),
        _rooms(n, height, further), np.zeros(n, dtype=np.int64), columns, has_functions,
    )  # fmt: skip
    for number, gain in enumerate(gains):
        rig.gains[rig.rows_of(number)] = gain
    return rig


def closing_values(mechanism: Mechanism, q: Array) -> Array:
    """What joints that close loops, and have numbers of their own behind q, stand at where the mechanism is at q."""
    if not any(_needs_nodes(closure) for closure in mechanism.closures.values()):
        return np.zeros(0)
    twin = mechanism.copy()
    twin.q = q
    closures = [closure for closure in twin.closures.values() if _needs_nodes(closure)]
    return np.array([value for closure in closures for value in _values_in_order(closure)], dtype=np.float64)


def _rooms(
    columns: int, rows: int, further: int
) -> tuple[Array, Array, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """What the kernel works in."""
    longest = columns + rows + further + 3
    return (
        np.zeros((layout.MATRICES, longest, max(columns, rows, 3))),
        np.zeros((layout.VECTORS, longest)),
        np.zeros((layout.INTEGERS, longest), dtype=np.int64),
    )


def _nothing(mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
    return np.zeros(0), np.zeros((0, mechanism.nv))
