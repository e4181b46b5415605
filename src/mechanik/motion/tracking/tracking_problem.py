"""The compiled problem of a tracker: kernel tables from a mechanism and tasks, and fast writers for new targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.errors import ObjectiveError
from mechanik.kernels import problem_layout as problem
from mechanik.kernels.tracking import level_qp as layout
from mechanik.model import Mechanism
from mechanik.objectives import JointValues, Objective
from mechanik.objectives.joint_goals import JointObjective, nearest_equivalent_value
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import Problem, ProblemSettings, Subproblem, compile_problem, same_structure, write_targets
from mechanik.problem.compilation import _closing_joint_values, _needs_nodes
from mechanik.solver.target_writer import UNCHANGED, Targets, _initial_target, make_multi_target_writer, with_targets
from mechanik.spatial.array import Array

SHUT = 1e-12
"""m and rad: tolerance to which loops are closed, where rounding allows it."""
SINGULAR = 0.1
"""Singular value at which damping starts, lengths relative to the mechanism's size; a Panda at its home pose has
0.2."""
BRAKING = 0.5
"""Share of the acceleration limit for braking before a position limit, where loops couple dofs. The rest is for the
accelerations that the curvature of the loops requires."""


@dataclass(frozen=True, slots=True, eq=False)
class FrozenObjective(Objective):
    """An objective with fixed relations, in which periodic joint targets are the nearest equivalent values."""

    fixed_relations: tuple[Relation, ...] = ()

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        return self.fixed_relations


def freeze_angles(mechanism: Mechanism, objective: Objective, q: Array, bounds: tuple[Array, Array]) -> Objective:
    """The objective with periodic joint targets replaced by the equivalents nearest to q (nq,).

    Objectives that are not joint objectives are returned unchanged.

    Args:
        bounds: lower and upper limits, (nq,) each.
    """
    if not isinstance(objective, JointObjective):
        return objective
    found = objective.nearest_relations(mechanism, q, *bounds)
    return FrozenObjective(
        fixed_relations=found, weight=objective.weight, level=objective.level, tolerance=objective.tolerance,
        angle_tolerance=objective.angle_tolerance, required=objective.required, name=objective.name,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class TrackingProblem:
    """A problem with a single subproblem, and the arrays that `kernels/tracking/tracking_step.py` reads and writes.

    Attributes:
        program: the problem.
        part: its only subproblem.
        relations: relation of each residual block, for those that are Python functions.
        table: (COLUMN_TABLE_ROWS, columns) limits and rates of each column.
        options: (OPTION_COUNT,) options of the step.
        gains: (rows,) 1/s.
        before: (rows,) residuals with the last targets.
        ahead: (stages, columns + 1) last motion of the targets, and whether it was a jump.
        extra_jacobian, extra_bounds: (rows + extra rows, columns) and (rows + extra rows, 4), rows for distances to
            obstacles.
        workspaces: memory of the kernel.
        limit_codes: (columns,) the active limit of each column.
        columns: (columns,) index in v of each column that is not a slack; nv and above for joints that close loops.
        has_functions: whether residuals are written in Python.
    """

    program: Problem
    part: Subproblem
    relations: list[Relation]
    table: Array
    options: Array
    gains: Array
    before: Array
    ahead: Array
    extra_jacobian: Array
    extra_bounds: Array
    workspaces: tuple[Array, Array, np.ndarray[tuple[int, int], np.dtype[np.int64]]]
    limit_codes: np.ndarray[tuple[int], np.dtype[np.int64]]
    columns: np.ndarray[tuple[int], np.dtype[np.int64]]
    has_functions: bool

    def rows_of(self, owner: int) -> list[int]:
        """Indices of the residual rows of an objective."""
        found: list[int] = []
        blocks = self.part.packed.tables["blocks"].reshape(-1, problem.BLOCK_INTS)
        for block, one in zip(blocks, self.part.owners, strict=True):
            if one == owner:
                found += range(block[problem.FIRST_ROW], block[problem.FIRST_ROW] + block[problem.ROW_COUNT])
        return found


def build_tracking_problem(
    mechanism: Mechanism,
    objectives: Sequence[Objective],
    active: Sequence[bool],
    bounds: tuple[Array, Array],
    rates: tuple[Array, Array],
    gains: Sequence[float],
    extra_rows: int,
    dt: float,
    damping: float,
    follows: bool,
) -> TrackingProblem:
    """Compile a mechanism and objectives into a problem with the tables of the tracking kernel.

    Args:
        active: (nv,) dofs that may move.
        bounds: lower and upper limits, (nq,) each.
        rates: largest velocities and accelerations, (nv,) each.
        gains: of each objective, 1/s.
        extra_rows: largest number of extra rows, for distances to obstacles.
        dt: s.
        damping: at singularities.
        follows: whether the velocity of moving targets is fed forward.
    """
    nothing = Relation(RelationKind.FUNCTION, (), function=_nothing)
    # an empty residual that depends on all dofs, so that all are in the same subproblem, also those without a goal
    whole = FrozenObjective(fixed_relations=(nothing,), level=min(one.level for one in objectives), name="all freedoms")
    asked = [*objectives, whole]
    rows = [one.relations(mechanism) for one in asked]
    settings = ProblemSettings(list(active), {}, [1.0] * mechanism.nv)
    program = compile_problem(mechanism, asked, rows, settings)
    part = max(program.subproblems, key=lambda one: one.packed.sizes["columns"])
    relations = [
        rows[owner][i] if owner >= 0 else nothing for owner, i in zip(part.owners, part.relation_indices, strict=True)
    ]
    has_functions = any(one.kind is RelationKind.FUNCTION and bool(one.rows) for one in relations)
    packed = replace(part.packed, sizes={**part.packed.sizes, "functions": int(has_functions)})
    part = replace(part, packed=packed)
    program = replace(program, subproblems=(part,))
    at = packed.tables
    columns = packed.columns[packed.columns >= 0]
    n, scale = len(columns), at["scale"]
    table = np.zeros((layout.COLUMN_TABLE_ROWS, n))
    table[[layout.MAX_VELOCITY, layout.MAX_ACCELERATION, layout.VALUE_MAX]], table[layout.VALUE_MIN] = (
        math.inf,
        -math.inf,
    )
    mine = columns < mechanism.nv
    for row, rate in zip((layout.MAX_VELOCITY, layout.MAX_ACCELERATION), rates, strict=True):
        table[row, mine] = rate[columns[mine]] / scale[:n][mine]
    for k in range(n):
        x = at["column_x"][k]
        if 0 <= x < mechanism.nq:
            table[layout.VALUE_MIN, k], table[layout.VALUE_MAX, k] = bounds[0][x], bounds[1][x]
        elif x >= 0:
            table[layout.VALUE_MIN, k], table[layout.VALUE_MAX, k] = at["lower"][k], at["upper"][k]
    blocks = at["blocks"].reshape(-1, problem.BLOCK_INTS)
    for block, owner in zip(blocks, part.owners, strict=True):
        if owner < 0:
            some = at["block_columns"][block[problem.FIRST_COLUMN] :][: block[problem.COLUMN_COUNT]]
            table[layout.IS_COUPLED, some[some < n]] = 1.0
    both = np.isfinite(table[layout.MAX_VELOCITY]) & np.isfinite(table[layout.MAX_ACCELERATION])
    slowest = float(np.max(table[layout.MAX_VELOCITY, both] / table[layout.MAX_ACCELERATION, both], initial=0.0))
    options = np.zeros(layout.OPTION_COUNT)
    options[layout.TIME_STEP], options[layout.SINGULARITY_DAMPING], options[layout.SINGULARITY_DISTANCE] = (
        dt,
        damping,
        SINGULAR,
    )
    options[layout.FOLLOWS_TARGET_VELOCITY] = follows
    options[layout.LIMIT_APPROACH_RATE] = BRAKING / max(slowest, BRAKING * dt)
    options[layout.HARD_RESIDUAL_TOLERANCE] = max(SHUT / program.length_unit, 4e-15)
    height = packed.sizes["rows"]
    rig = TrackingProblem(
        program, part, relations, table, options, np.full(height, 1.0 / dt), np.zeros(height),
        np.zeros((packed.sizes["stages"], n + 1)), np.zeros((height + extra_rows, n)), np.zeros((height + extra_rows,
            4)),
        _rooms(n, height, extra_rows), np.zeros(n, dtype=np.int64), columns, has_functions,
    )  # fmt: skip
    for number, gain in enumerate(gains):
        rig.gains[rig.rows_of(number)] = gain
    return rig


def closure_joint_values(mechanism: Mechanism, q: Array) -> Array:
    """Values of the joints that close loops and have columns of their own, at configuration q (nq,)."""
    if not any(_needs_nodes(closure) for closure in mechanism.closures.values()):
        return np.zeros(0)
    twin = mechanism.copy()
    twin.q = q
    closures = [closure for closure in twin.closures.values() if _needs_nodes(closure)]
    return np.array([value for closure in closures for value in _closing_joint_values(closure)], dtype=np.float64)


def _rooms(
    columns: int, rows: int, further: int
) -> tuple[Array, Array, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Workspace arrays of the kernel."""
    longest = columns + rows + further + 3
    return (
        np.zeros((layout.MATRIX_COUNT, longest, max(columns, rows, 3))),
        np.zeros((layout.VECTOR_COUNT, longest)),
        np.zeros((layout.INDEX_COUNT, longest), dtype=np.int64),
    )


def _nothing(mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
    return np.zeros(0), np.zeros((0, mechanism.nv))


class JointTargetWriter:
    """Fast writer for the targets of a joint-value task: from names and numbers to the floats of the problem.

    Args:
        names: of the joints.
        slots: index of each target in the floats of the problem.
        q_indices: index of each joint in q.
        is_periodic: whether the target means the nearest equivalent angle.
        limits: (lower, upper) of each joint.
    """

    def __init__(
        self,
        names: Sequence[str],
        slots: Sequence[int],
        q_indices: Sequence[int],
        is_periodic: Sequence[bool],
        limits: Sequence[tuple[float, float]],
    ) -> None:
        self._all = tuple(zip(names, slots, q_indices, is_periodic, limits, strict=True))

    def read(self, target: Any, q: Array) -> list[tuple[int, float]] | None:
        """Slots with their values for a target; None if the target needs full validation."""
        if type(target) is not dict or len(target) != len(self._all):  # type: ignore[arg-type]
            return None
        found: list[tuple[int, float]] = []
        for name, slot, place, turns, (low, high) in self._all:
            value: Any = target.get(name)  # type: ignore[union-attr]
            if not isinstance(value, float) or not math.isfinite(value):
                return None
            found.append((slot, nearest_equivalent_value(value, float(q[place]), low, high) if turns else value))
        return found


def joint_target_writer(
    tracking_problem: TrackingProblem,
    number: int,
    objective: Objective,
    rows: Sequence[Relation],
    bounds: tuple[Array, Array],
) -> JointTargetWriter | None:
    """Fast writer for a task whose objective is joint values with a single entry of q each; None for other tasks."""
    if not isinstance(objective, JointValues) or any(one.kind is not RelationKind.JOINT_VALUE for one in rows):
        return None
    names = [one.dof_name for one in rows]
    if names != list(objective.values):
        return None
    skeleton, part = tracking_problem.program.tree, tracking_problem.part
    places = [skeleton.x_of[name] for name in names]
    if max(places) >= len(bounds[0]):
        return None
    data = int(part.packed.ints[problem.AT_BLOCK_DATA])
    blocks = {
        i: b for b, (owner, i) in enumerate(zip(part.owners, part.relation_indices, strict=True)) if owner == number
    }
    if len(blocks) != len(names):
        return None
    return JointTargetWriter(
        names,
        [data + problem.BLOCK_FLOATS * blocks[i] for i in range(len(names))],
        places,
        [objective.angle_mode == "nearest" and skeleton.is_rotational(name) for name in names],
        [(float(bounds[0][k]), float(bounds[1][k])) for k in places],
    )


class TaskTargets:
    """Current targets of the tasks, and writers of new ones into the compiled problem.

    Args:
        tracking_problem: the compiled problem.
        given: the objectives as the user gave them.
        rows: relations of each objective, as compiled.
        bounds: lower and upper limits, (nq,) each.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        tracking_problem: TrackingProblem,
        given: Sequence[Objective],
        rows: Sequence[tuple[Relation, ...]],
        bounds: tuple[Array, Array],
    ) -> None:
        self._mechanism, self._rig, self._bounds = mechanism, tracking_problem, bounds
        self._given, self._rows = tuple(given), list(rows)
        # the multi-target writer does not handle periodic joint targets
        self._several = make_multi_target_writer(
            mechanism, tracking_problem.program, tracking_problem.program.objectives, [*self._rows, ()], bounds
        )
        found = {k: joint_target_writer(tracking_problem, k, one, self._rows[k], bounds) for k, one in enumerate(given)}
        self._joints = {k: one for k, one in found.items() if one is not None}
        self._values: dict[int, dict[str, float]] = {}
        self._numbers = {one.name: k for k, one in enumerate(given) if one.name}

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives with their current targets."""
        found = list(self._given)
        if self._several is not None:
            stand_ins = self._rig.program.objectives
            whole = [stand_ins[k] if isinstance(one, JointObjective) else one for k, one in enumerate(found)]
            now = self._several.objectives((*whole, stand_ins[-1]), self._several.initial_values)
            found = [one if isinstance(one, JointObjective) else now[k] for k, one in enumerate(found)]
        for k, values in self._values.items():
            found[k] = self._given[k].with_target(values)  # type: ignore[arg-type]
        return tuple(found)

    def set_targets(self, targets: Targets, q: Array) -> None:
        """Write new targets, with periodic angles nearest to q; if any target is invalid, all stay."""
        if not self._aim_shortly(targets, q):
            self._aim_at_length(targets, q)

    # ---- internals --------------------------------------------------------------------------

    def _aim_shortly(self, targets: Targets, q: Array) -> bool:
        """Write targets by the fast writers; return False, without any change, if they need full validation."""
        count, rest = len(self._given), targets
        values: list[tuple[int, float]] = []
        chosen: dict[int, dict[str, float]] = {}
        if self._joints:
            listed = self._listed(targets)
            if listed is None:
                return False
            for k, joints in self._joints.items():
                if listed[k] is not None:
                    found = joints.read(listed[k], q)
                    if found is None:
                        return False
                    values += found
                    chosen[k], listed[k] = listed[k], None
            rest = listed if any(one is not None for one in listed) else None
        if rest is not None:
            several = self._several
            if several is None:
                return False
            if not isinstance(rest, Mapping):
                rest = (rest, None) if count == 1 and not self._joints else (*rest, None)
            numbers = several.pack_targets(rest)
            if numbers is None:
                return False
            if not several.write(numbers, q):
                several.write(several.initial_values, q)
                return False
            several.initial_values[:] = numbers
        floats = self._rig.part.packed.floats
        for slot, value in values:
            floats[slot] = value
        self._values.update(chosen)
        return True

    def _listed(self, targets: Any) -> list[Any] | None:
        """A target or None for each task; None if the assignment is not clear."""
        count = len(self._given)
        if count == 1:
            return [targets]
        if isinstance(targets, Mapping):
            found: list[Any] = [None] * count
            for name, target in targets.items():  # type: ignore[misc]
                if name not in self._numbers:
                    return None
                found[self._numbers[name]] = target  # type: ignore[index]
            return found
        if not isinstance(targets, list | tuple) or len(targets) != count:  # type: ignore[arg-type]
            return None
        return list(targets)  # type: ignore[arg-type]

    def _aim_at_length(self, targets: Targets, q: Array) -> None:
        """Validate new targets, compile their relations and write them."""
        mechanism, rig = self._mechanism, self._rig
        given = with_targets(self.objectives, targets)
        objectives = tuple(freeze_angles(mechanism, one, q, self._bounds) for one in given)
        rows = [one.relations(mechanism) for one in objectives]
        for one, old, new in zip(given, self._rows, rows, strict=True):
            if len(old) != len(new) or not all(same_structure(a, b) for a, b in zip(old, new, strict=True)):
                raise ObjectiveError(f"{one!r} has other rows than the task was made with; make a new tracker")
        for number, new in enumerate(rows):
            write_targets(rig.program, number, new)
        self._given, self._rows = given, rows
        self._values.clear()
        if self._several is not None:
            kinds = self._several.kinds[: len(given)]
            own = [
                _initial_target(one, some)
                for one, some, kind in zip(objectives, rows, kinds, strict=True)
                if kind != UNCHANGED
            ]
            self._several.initial_values[:] = np.concatenate(own)
        places = zip(rig.part.owners, rig.part.relation_indices, strict=True)
        rig.relations[:] = [
            rows[owner][i] if 0 <= owner < len(rows) else one
            for (owner, i), one in zip(places, rig.relations, strict=True)
        ]
