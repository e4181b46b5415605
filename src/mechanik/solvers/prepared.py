"""A mechanism and what is asked of it, compiled, and kept in step with both as they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mechanik.errors import ObjectiveError, WrongKind
from mechanik.mechanism import Frame, Mechanism
from mechanik.objectives import Objective, RestPose, jacobian, residual
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.objective import Definition, as_objectives
from mechanik.objectives.relation import Kind, Relation
from mechanik.program import Part, Settings, compile_program, rewrite, same_shape
from mechanik.solvers.freedoms import Names, as_bounds, as_mask, as_weights
from mechanik.solvers.graph import graph_objectives
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.method import Method
from mechanik.solvers.methods import make_method, option_names
from mechanik.solvers.new_targets import part_of_the_way
from mechanik.solvers.options import Options, check_names
from mechanik.solvers.running import set_options
from mechanik.spatial.array import Array, ArrayLike

NO_RELATION = Relation(Kind.POSE, ())
"""Stands for the rows of closures where a part's relations are listed: no function is among them."""


class Prepared:
    """What a solver knows before it is called: see `Solver` for the arguments.

    Attributes:
        mechanism: what moves.
        method: how it is moved.
        why: why by this method, in a sentence.
        options: what every method has.
    """

    def __init__(
        self,
        mechanism: Mechanism | Frame | Iterable[Frame],
        goals: Objective | Iterable[Objective] | None,
        solver: str | Method,
        active: Names | str | None,
        lock: Names | str | None,
        limits: Mapping[str, ArrayLike] | None,
        weights: Mapping[str, float] | None,
        rest: ArrayLike | Mapping[str, ArrayLike] | bool | None,
        options: dict[str, Any],
    ) -> None:
        self._is_auto = isinstance(solver, str) and solver == "auto"
        self.method, common = make_method("lm" if self._is_auto else solver, options)
        check_names(common, option_names(type(self.method)))
        self.options = Options(**common)
        if isinstance(mechanism, str):
            raise WrongKind(f"a solver takes a mechanism, not the name {mechanism!r}; mk.load reads a file into one")
        if weights is not None and not isinstance(weights, Mapping):
            raise WrongKind(f"weights are given by name, as in {{'elbow': 2}}, not as {weights!r}")
        self._moves_joints = not isinstance(mechanism, Mechanism)
        self.mechanism = mechanism if isinstance(mechanism, Mechanism) else Mechanism(mechanism)
        self._given = None if goals is None else as_objectives(goals)
        if self._given == ():
            raise ObjectiveError(
                "nothing is asked for: the list of goals is empty. To do no more than shut loops, leave the goals out"
            )
        self._active, self._lock, self._limits, self._rest = active, lock, limits, rest
        self._weights = dict(weights or {})
        self._may_read_off = True
        self._objectives: tuple[Objective, ...] = ()
        self.why = f"{self.method.title}, as asked"
        self._compile(self._wanted())

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What is asked for, as the solver was made or as the graph stands."""
        return self._objectives

    def residual(self, q: ArrayLike | None = None, definition: Definition = "mechanik") -> Array:
        """Of all objectives, one below the other, (m,), in m and rad, without weights."""
        self._refresh()
        return residual(self._objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

    def jacobian(self, q: ArrayLike | None = None, definition: Definition = "mechanik") -> Array:
        """Of `residual` by a step v, (m, nv)."""
        self._refresh()
        return jacobian(self._objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

    # ---- inside -----------------------------------------------------------------------------

    def _wanted(self) -> tuple[Objective, ...]:
        given, options = self._given, self.options
        found = graph_objectives(self.mechanism, options.tolerance, options.angle_tolerance) if given is None else given
        if self._rest is None or self._rest is False:
            return found
        return (*found, RestPose(None if self._rest is True else self._rest, name="rest"))

    def _relations(self, objectives: Sequence[Objective], q: Array | None) -> list[tuple[Relation, ...]]:
        """The rows of all objectives; angles that may be any of several are taken as they look from q."""
        mechanism, bounds = self.mechanism, self._bounds
        return [
            one.nearest(mechanism, q, *bounds) if isinstance(one, Aimed) and q is not None else one.relations(mechanism)
            for one in objectives
        ]

    def _compile(self, objectives: tuple[Objective, ...], relations: list[tuple[Relation, ...]] | None = None) -> None:
        mechanism = self.mechanism
        self._revision, self._edits = mechanism.revision, Frame.edits
        self._bounds = as_bounds(mechanism, self._limits)
        active = as_mask(mechanism, self._active, True)
        if self._lock is not None:
            active &= ~as_mask(mechanism, self._lock, False)
        self._objectives = objectives
        self._rows: list[tuple[Relation, ...]] = self._relations(objectives, None) if relations is None else relations
        factors, ease = as_weights(mechanism, objectives, self._weights)
        self._settings = Settings(
            active.tolist(), factors, ease.tolist(), self.options.position_weight, self.options.rotation_weight,
            isinstance(self.method, LevenbergMarquardt) and self._may_read_off,
        )  # fmt: skip
        self._program = compile_program(mechanism, objectives, self._rows, self._settings)
        self._moving = np.zeros(mechanism.nv, dtype=np.bool_)
        for part in self._program.parts:
            self._moving |= part.moving
        self._blocks = self._relations_of_blocks()
        self._is_aimed = False
        self._set_up()
        self._compiled()

    def _compiled(self) -> None:
        """For what has to be done besides whenever the program is new."""

    def _set_up(self) -> None:
        """Bounds and options as the solver was made."""
        program, options = self._program, self.options
        for part in program.parts:
            if isinstance(self.method, LevenbergMarquardt):
                set_options(part, options, self.method, program.size)
            self._bound(part, *self._bounds)
            part.packed.at["ban"][:] = 0
            beyond_q = part.packed.at["x"][self.mechanism.nq :]
            beyond_q[: len(program.extra)] = program.extra
            beyond_q[len(program.extra) :] = 0.0  # slacks, so that a call does not depend on the one before

    def _refresh(self) -> None:
        """Compile again if the mechanism, or what the graph asks for, has changed."""
        objectives = self._objectives
        if Frame.edits != self._edits or self._given is None:
            objectives = self._wanted() if self._given is None else self._objectives
            if self.mechanism.revision != self._revision or len(objectives) != len(self._objectives):
                self._compile(objectives)
            self._edits = Frame.edits
        self._objectives = objectives

    def _rewrite(self, objectives: Sequence[Objective], q: Array, rest_factor: float) -> None:
        """Put what is asked for now into the program; compile again only if its shape has changed."""
        relations = self._relations(objectives, q)
        if rest_factor < 1.0:
            relations = [
                part_of_the_way(self.mechanism, rows, q, rest_factor) if isinstance(one, RestPose) else rows
                for one, rows in zip(objectives, relations, strict=True)
            ]
        same = all(
            len(old) == len(new) and all(same_shape(a, b) for a, b in zip(old, new, strict=True))
            for old, new in zip(self._rows, relations, strict=True)
        )
        if not same:
            given = self._objectives
            self._compile(tuple(objectives), relations)
            self._objectives = given
            return
        for number, (old, new) in enumerate(zip(self._rows, relations, strict=True)):
            if self._is_aimed or any(a is not b for a, b in zip(old, new, strict=True)):
                rewrite(self._program, number, new)
        self._rows = relations
        self._blocks = self._relations_of_blocks()

    def _relations_of_blocks(self) -> list[list[Relation]]:
        """For each part, the relation that each of its blocks is."""
        return [
            [
                self._rows[owner][i] if owner >= 0 else NO_RELATION
                for owner, i in zip(part.owners, part.numbers, strict=True)
            ]
            for part in self._program.parts
        ]

    def _bound(self, part: Part, lower: Array, upper: Array) -> None:
        """Limits of q into the columns of a part."""
        at = part.packed.at
        x, nq = at["column_x"], self.mechanism.nq
        mine = (x >= 0) & (x < nq)
        at["lower"][mine], at["upper"][mine] = lower[x[mine]], upper[x[mine]]
