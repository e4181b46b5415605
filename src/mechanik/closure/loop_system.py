"""Loop closures and joint constraints of a mechanism as one residual in scaled units.

Scaled units: angles are in rad, lengths are divided by the mechanism's size. A step u (nv,) has one value per dof in
scaled units, multiplied by the weight of the dof. So one tolerance fits all residuals, and the step of least norm
follows the weights.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.model import Mechanism
from mechanik.objectives.constraint_relations import (
    closure_limit_relations,
    closure_relations,
    cone_relations,
    joint_constraint_relations,
)
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import Relation, band_violation, evaluate_relation
from mechanik.problem import Problem, ProblemSettings, compile_problem
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.options import as_weights
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LoopGroup:
    """Loops that share dofs, compiled as a least-squares problem.

    Attributes:
        problem: the compiled problem.
        rows: indices of the residual rows of the problem that are not limits.
        v: (n,) indices into v of the problem's columns.
    """

    problem: LeastSquaresProblem
    rows: npt.NDArray[np.int64]
    v: npt.NDArray[np.int64]


class LoopSystem:
    """The loop closures, joint constraints and limits of a mechanism, as functions of the configuration.

    Attributes:
        mechanism: the mechanism.
        unit: (nv,) joint step per unit of u, rad or m.
        size: unit of length, m.
        lower, upper: (nq,) joint limits, m or rad.
        columns: (nv,) index into q of each dof; -1 for dofs of spherical joints.
        relations: relations of all loop closures and joint constraints.
        groups: groups of loops that share dofs; None if closing joints have variables of their own in the compiled
            problem, which no step has.
        limit_relations: limits of closing joints and swing limits, with the name of their joint.
        cache: prepared steps by the names of the driven joints.
    """

    def __init__(self, mechanism: Mechanism, weights: Mapping[str, float] | None = None) -> None:
        self.mechanism = mechanism
        space = mechanism.space
        program = compile_problem(mechanism, (), (), ProblemSettings([True] * space.nv, {}, [1.0] * space.nv))
        self.size = program.length_unit
        ease = np.clip(as_weights(mechanism, (), dict(weights or {}))[1], 1e-3, 1e3)  # ranks need bounded ratios
        self.unit = np.where(space.rotates, 1.0, self.size) * ease
        self.lower, self.upper = space.lower, space.upper
        self.columns = np.full(space.nv, -1)
        self.columns[space.scalars_v] = space.scalars_q
        closures = list(mechanism.closures.values())
        self.relations = [relation for one in closures for relation in closure_relations(mechanism, one)]
        self.relations += joint_constraint_relations(mechanism).values()
        self.groups = _parts(mechanism, program)
        self.cache: dict[tuple[str, ...], object] = {}
        self.limit_relations = [
            (one.name, relation) for one in closures for relation in closure_limit_relations(mechanism, one)
        ]
        self.limit_relations += [
            (name, relation) for name, some in cone_relations(mechanism).items() for relation in some
        ]

    @property
    def n(self) -> int:
        """Number of dofs, nv."""
        return len(self.unit)

    def step(self, q: Array, u: Array) -> Array:
        """Return the configuration (nq,) at a step `u` (nv,) from `q`."""
        v, space, end = u * self.unit, self.mechanism.space, q.copy()
        end[space.scalars_q] += v[space.scalars_v]
        for k, i in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
            turned = quaternion.multiply(q[k : k + 4], quaternion.exp(v[i : i + 3]))
            end[k : k + 4] = turned / np.linalg.norm(turned)
        return end

    def scaled_difference(self, a: Array, b: Array) -> Array:
        """Return the step u (nv,) from configuration `a` to `b`, full rotations included."""
        return self.mechanism.difference(a, b) / self.unit

    def residual(self, q: Array) -> tuple[Array, Array]:
        """Return the residual (m,) of all loops and joint constraints at `q`, and its derivatives by u (m, nv)."""
        if self.groups is None:
            return self.evaluate(self.relations, q)
        values, slopes = [np.zeros(0)], [np.zeros((0, self.n))]
        for part in self.groups:
            part.problem.set_configuration(q)
            J = np.zeros((len(part.rows), self.n))
            J[:, part.v] = part.problem.jacobian[part.rows] * (self.unit[part.v] / part.problem.scale)
            values.append(part.problem.residual[part.rows])
            slopes.append(J)
        return np.concatenate(values), np.concatenate(slopes)

    def evaluate(self, relations: list[Relation], q: Array) -> tuple[Array, Array]:
        """Return the residual of the relations in scaled units, and its derivatives by u."""
        values, slopes = [np.zeros(0)], [np.zeros((0, self.n))]
        for relation in relations:
            value, J = evaluate_relation(self.mechanism, relation, q)
            scale = np.where(length_row_mask(self.mechanism, relation, len(value)), 1.0 / self.size, 1.0)
            values.append(value * scale)
            slopes.append(J * self.unit * scale[:, None])
        return np.concatenate(values), np.concatenate(slopes)

    def evaluate_unscaled(self, relation: Relation, q: Array) -> Array:
        """Return the residual of a relation in m and rad."""
        return evaluate_relation(self.mechanism, relation, q)[0]

    def limit_violation(self, q: Array, ignored_dofs: Sequence[int] = ()) -> tuple[float, str]:
        """Return the largest limit violation of `q` (scaled units), closing joints included, and the name of its joint.

        Args:
            ignored_dofs: indices into v of dofs whose limits are ignored.
        """
        worst, of = 0.0, ""
        space = self.mechanism.space
        over = np.maximum(self.lower - q, q - self.upper)[space.scalars_q]
        over = over / np.where(space.rotates[space.scalars_v], 1.0, self.size)
        over[np.isin(space.scalars_v, ignored_dofs)] = 0.0
        if len(over) and float(over.max()) > 0.0:
            worst, of = float(over.max()), space.q_names[int(space.scalars_q[int(over.argmax())])]
        for name, relation in self.limit_relations:
            far = float(
                np.abs(band_violation(relation, evaluate_relation(self.mechanism, relation, q)[0])).max(initial=0.0)
            )
            if far > worst:
                worst, of = far, name
        return worst, of


def _parts(mechanism: Mechanism, program: Problem) -> list[LoopGroup] | None:
    """Return the groups of a compiled problem; None if closing joints have variables of their own there."""
    found: list[LoopGroup] = []
    for part in program.subproblems:
        problem = LeastSquaresProblem(mechanism, program, part)
        v = np.array(part.packed.columns[: problem.n], dtype=np.int64)
        if (v < 0).any() or (v >= mechanism.nv).any():
            return None
        at = part.packed.tables
        at["lower"][:], at["upper"][:], at["bound_state"][:] = -np.inf, np.inf, 0
        has_band = at["slack"][::2][: len(problem.residual)] >= 0
        found.append(LoopGroup(problem, np.flatnonzero(~has_band), v))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    loops: LoopSystem
    weights: str


@contextmanager
def cached_loop_system(mechanism: Mechanism, weights: Mapping[str, float]) -> Generator[LoopSystem]:
    """Borrow the loop system of a mechanism for these weights; the last one is cached until the mechanism is edited.

    The caller has it exclusively: another thread makes its own.
    """
    _ = mechanism.revision  # clears the cache after an edit
    place, key = mechanism._cache, repr(dict(weights))
    kept = place.pop("assembly", None)  # no other thread may use it meanwhile
    if not isinstance(kept, _Kept) or kept.weights != key:
        kept = _Kept(LoopSystem(mechanism, weights), key)
    try:
        yield kept.loops
    finally:
        place["assembly"] = kept
