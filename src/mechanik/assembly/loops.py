"""The loops of a mechanism as rows that are zero where they are shut, in units that are all alike; laws among them.

A step u has one number for each freedom, rad or sizes of the mechanism, times the freedom's weight; lengths among the
rows are in sizes too. So one tolerance fits all rows, and the shortest step is the one that the weights want.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.mechanism import Mechanism
from mechanik.objectives.closures import closure_limits, closure_relations
from mechanik.objectives.cones import cone_relations
from mechanik.objectives.evaluate import evaluate, outside
from mechanik.objectives.laws import law_relations
from mechanik.objectives.objective import lengths
from mechanik.objectives.relation import Relation
from mechanik.program import Program, Settings, compile_program
from mechanik.solvers.freedoms import as_weights
from mechanik.solvers.problem import Problem
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Loops that share freedoms, as compiled rows.

    Attributes:
        rows: which of the problem's rows are no limits.
        v: (n,) the numbers of v that its columns are.
    """

    problem: Problem
    rows: npt.NDArray[np.int64]
    v: npt.NDArray[np.int64]


class Loops:
    """
    Attributes:
        unit: (nv,) what a step of 1 is, in rad or m.
        size: the unit of length, m.
        lower, upper: (nq,) limits.
        columns: (nv,) where each number of a step stands in q; -1 for those of balls.
        parts: loops that share freedoms; None if closing joints have numbers of their own, which no step has.
        kept: what is worked out for drives of some names, to be found again.
    """

    def __init__(self, mechanism: Mechanism, weights: Mapping[str, float] | None = None) -> None:
        self.mechanism = mechanism
        space = mechanism.space
        program = compile_program(mechanism, (), (), Settings([True] * space.nv, {}, [1.0] * space.nv))
        self.size = program.size
        ease = np.clip(as_weights(mechanism, (), dict(weights or {}))[1], 1e-3, 1e3)  # else ranks could not be told
        self.unit = np.where(space.rotates, 1.0, self.size) * ease
        self.lower, self.upper = space.lower, space.upper
        self.columns = np.full(space.nv, -1)
        self.columns[space.scalars_v] = space.scalars_q
        closures = list(mechanism.closures.values())
        self.relations = [relation for one in closures for relation in closure_relations(mechanism, one)]
        self.relations += law_relations(mechanism).values()
        self.parts = _parts(mechanism, program)
        self.kept: dict[tuple[str, ...], object] = {}
        self.bands = [(one.name, relation) for one in closures for relation in closure_limits(mechanism, one)]
        self.bands += [(name, relation) for name, some in cone_relations(mechanism).items() for relation in some]

    @property
    def n(self) -> int:
        return len(self.unit)

    def step(self, q: Array, u: Array) -> Array:
        """The configuration (nq,) that is a step u (nv,) from q."""
        v, space, end = u * self.unit, self.mechanism.space, q.copy()
        end[space.scalars_q] += v[space.scalars_v]
        for k, i in zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True):
            turned = quaternion.multiply(q[k : k + 4], quaternion.exp(v[i : i + 3]))
            end[k : k + 4] = turned / np.linalg.norm(turned)
        return end

    def apart(self, a: Array, b: Array) -> Array:
        """The step u (nv,) from a to b; full turns count."""
        return self.mechanism.difference(a, b) / self.unit

    def rows(self, q: Array) -> tuple[Array, Array]:
        """The rows (m,) at q, zero where all loops are shut, and their derivatives by u (m, nv)."""
        if self.parts is None:
            return self.evaluate(self.relations, q)
        values, slopes = [np.zeros(0)], [np.zeros((0, self.n))]
        for part in self.parts:
            part.problem.place(q)
            J = np.zeros((len(part.rows), self.n))
            J[:, part.v] = part.problem.jacobian[part.rows] * (self.unit[part.v] / part.problem.scale)
            values.append(part.problem.rows[part.rows])
            slopes.append(J)
        return np.concatenate(values), np.concatenate(slopes)

    def evaluate(self, relations: list[Relation], q: Array) -> tuple[Array, Array]:
        """The rows of some relations, and their derivatives by u."""
        values, slopes = [np.zeros(0)], [np.zeros((0, self.n))]
        for relation in relations:
            value, J = evaluate(self.mechanism, relation, q)
            scale = np.where(lengths(self.mechanism, relation, len(value)), 1.0 / self.size, 1.0)
            values.append(value * scale)
            slopes.append(J * self.unit * scale[:, None])
        return np.concatenate(values), np.concatenate(slopes)

    def evaluate_plain(self, relation: Relation, q: Array) -> Array:
        """The rows of a relation in m and rad."""
        return evaluate(self.mechanism, relation, q)[0]

    def beyond(self, q: Array, apart_from: Sequence[int] = ()) -> tuple[float, str]:
        """How far (rad, sizes) q is outside the limits, at worst, and of what; closing joints count.

        Args:
            apart_from: numbers of v whose limits do not matter.
        """
        worst, of = 0.0, ""
        space = self.mechanism.space
        over = np.maximum(self.lower - q, q - self.upper)[space.scalars_q]
        over = over / np.where(space.rotates[space.scalars_v], 1.0, self.size)
        over[np.isin(space.scalars_v, apart_from)] = 0.0
        if len(over) and float(over.max()) > 0.0:
            worst, of = float(over.max()), space.q_names[int(space.scalars_q[int(over.argmax())])]
        for name, relation in self.bands:
            far = float(np.abs(outside(relation, evaluate(self.mechanism, relation, q)[0])).max(initial=0.0))
            if far > worst:
                worst, of = far, name
        return worst, of


def _parts(mechanism: Mechanism, program: Program) -> list[Part] | None:
    """The parts of a program; None if closing joints have numbers of their own there, which no step has."""
    found: list[Part] = []
    for part in program.parts:
        problem = Problem(mechanism, program, part)
        v = np.array(part.packed.columns[: problem.n], dtype=np.int64)
        if (v < 0).any() or (v >= mechanism.nv).any():
            return None
        at = part.packed.at
        at["lower"][:], at["upper"][:], at["ban"][:] = -np.inf, np.inf, 0
        has_band = at["slack"][::2][: len(problem.rows)] >= 0
        found.append(Part(problem, np.flatnonzero(~has_band), v))
    return found
