"""Loop closures and joint constraints of a mechanism as one residual in scaled units, and the violation of its limits.

Scaled units: angles are in rad, and lengths are divided by a third of the mechanism's reach. So one tolerance fits all
residuals. A step u (nv,) has one value for each dof; a unit of u moves the dof by its mobility weight (1 divided by the
weight that the user gives, within bounds), in scaled units. So in the step of least norm, dofs with larger mobility
weights move more.
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
    """Loop closures, joint constraints and limits of a mechanism, as functions of the configuration.

    Attributes:
        mechanism: the mechanism.
        unit: (nv,) joint motion for a unit of u, rad or m.
        length_unit: length that is 1 in scaled units, m.
        lower, upper: (nq,) joint limits, m and rad.
        q_index_by_dof: (nv,) index into q of each dof; -1 for dofs of spherical joints.
        relations: relations of all loop closures and joint constraints.
        groups: groups of loops that share dofs; None if the compiled problem has additional variables for closing
            joints, which are not part of a step u.
        limit_relations: limits of closing joints and swing limits, each with the name of its joint.
        cache: the `NewtonStep` by the names of the driven joints; None if only a continuation is possible.
    """

    def __init__(self, mechanism: Mechanism, weights: Mapping[str, float] | None = None) -> None:
        self.mechanism = mechanism
        space = mechanism.space
        problem = compile_problem(mechanism, (), (), ProblemSettings([True] * space.nv, {}, [1.0] * space.nv))
        self.length_unit = problem.length_unit
        # rank decisions need bounded ratios
        mobility_weights = np.clip(as_weights(mechanism, (), dict(weights or {}))[1], 1e-3, 1e3)
        self.unit = np.where(space.rotates, 1.0, self.length_unit) * mobility_weights
        self.lower, self.upper = space.lower, space.upper
        self.q_index_by_dof = np.full(space.nv, -1)
        self.q_index_by_dof[space.scalars_v] = space.scalars_q
        closures = list(mechanism.closures.values())
        self.relations = [relation for closure in closures for relation in closure_relations(mechanism, closure)]
        self.relations += joint_constraint_relations(mechanism).values()
        self.groups = _loop_groups(mechanism, problem)
        self.cache: dict[tuple[str, ...], object] = {}
        self.limit_relations = [
            (closure.name, relation) for closure in closures for relation in closure_limit_relations(mechanism, closure)
        ]
        self.limit_relations += [
            (name, relation) for name, relations in cone_relations(mechanism).items() for relation in relations
        ]

    @property
    def n(self) -> int:
        """Number of dofs, nv."""
        return len(self.unit)

    def step(self, q: Array, u: Array) -> Array:
        """Return the configuration (nq,) after a step `u` (nv,) from `q`."""
        v, space, new_q = u * self.unit, self.mechanism.space, q.copy()
        new_q[space.scalars_q] += v[space.scalars_v]
        for k, i in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
            wxyz = quaternion.multiply(q[k : k + 4], quaternion.exp(v[i : i + 3]))
            new_q[k : k + 4] = wxyz / np.linalg.norm(wxyz)
        return new_q

    def scaled_difference(self, a: Array, b: Array) -> Array:
        """Return the step u (nv,) from configuration `a` to `b`; full rotations of revolute joints count."""
        return self.mechanism.difference(a, b) / self.unit

    def residual(self, q: Array) -> tuple[Array, Array]:
        """Return the residual (m,) of all loops and joint constraints, and its Jacobian (m, nv) with respect to u."""
        if self.groups is None:
            return self.evaluate(self.relations, q)
        values, jacobians = [np.zeros(0)], [np.zeros((0, self.n))]
        for group in self.groups:
            group.problem.set_configuration(q)
            J = np.zeros((len(group.rows), self.n))
            J[:, group.v] = group.problem.jacobian[group.rows] * (self.unit[group.v] / group.problem.scale)
            values.append(group.problem.residual[group.rows])
            jacobians.append(J)
        return np.concatenate(values), np.concatenate(jacobians)

    def evaluate(self, relations: list[Relation], q: Array) -> tuple[Array, Array]:
        """Return the residual (m,) of the relations in scaled units, and its Jacobian (m, nv) with respect to u."""
        values, jacobians = [np.zeros(0)], [np.zeros((0, self.n))]
        for relation in relations:
            value, J = evaluate_relation(self.mechanism, relation, q)
            scale = np.where(length_row_mask(self.mechanism, relation, len(value)), 1.0 / self.length_unit, 1.0)
            values.append(value * scale)
            jacobians.append(J * self.unit * scale[:, None])
        return np.concatenate(values), np.concatenate(jacobians)

    def evaluate_unscaled(self, relation: Relation, q: Array) -> Array:
        """Return the residual of a relation in m and rad."""
        return evaluate_relation(self.mechanism, relation, q)[0]

    def limit_violation(self, q: Array, ignored_dofs: Sequence[int] = ()) -> tuple[float, str]:
        """Return the largest limit violation at `q`, and the name of its joint or dof; 0 and "" without violation.

        Violations are in scaled units; those of closing joints are in m or rad, and those of swing limits are
        differences of cosines.

        Args:
            ignored_dofs: indices into v of dofs whose limits are ignored.
        """
        max_violation, joint_name = 0.0, ""
        space = self.mechanism.space
        violations = np.maximum(self.lower - q, q - self.upper)[space.scalars_q]
        violations = violations / np.where(space.rotates[space.scalars_v], 1.0, self.length_unit)
        violations[np.isin(space.scalars_v, ignored_dofs)] = 0.0
        if len(violations) and float(violations.max()) > 0.0:
            max_violation = float(violations.max())
            joint_name = space.q_names[int(space.scalars_q[int(violations.argmax())])]
        for name, relation in self.limit_relations:
            residual = evaluate_relation(self.mechanism, relation, q)[0]
            violation = float(np.abs(band_violation(relation, residual)).max(initial=0.0))
            if violation > max_violation:
                max_violation, joint_name = violation, name
        return max_violation, joint_name


def _loop_groups(mechanism: Mechanism, problem: Problem) -> list[LoopGroup] | None:
    """Return the groups of a compiled problem; None if the problem has additional variables for closing joints."""
    groups: list[LoopGroup] = []
    for subproblem in problem.subproblems:
        group_problem = LeastSquaresProblem(mechanism, problem, subproblem)
        v = np.array(subproblem.packed.columns[: group_problem.n], dtype=np.int64)
        if (v < 0).any() or (v >= mechanism.nv).any():
            return None
        subproblem.packed.remove_bounds()
        has_band = subproblem.packed.rows_with_bands[: len(group_problem.residual)]
        groups.append(LoopGroup(group_problem, np.flatnonzero(~has_band), v))
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class _CachedLoopSystem:
    loops: LoopSystem
    weights: str


@contextmanager
def cached_loop_system(mechanism: Mechanism, weights: Mapping[str, float]) -> Generator[LoopSystem]:
    """Provide the loop system of a mechanism for given weights; the last one is cached until the mechanism is edited.

    The caller has exclusive use of the loop system; a second thread creates another one.
    """
    _ = mechanism.revision  # clears the cache after an edit
    cache, key = mechanism._cache, repr(dict(weights))
    entry = cache.pop("assembly", None)  # removed while in use, so that no other thread uses it
    if not isinstance(entry, _CachedLoopSystem) or entry.weights != key:
        entry = _CachedLoopSystem(LoopSystem(mechanism, weights), key)
    try:
        yield entry.loops
    finally:
        cache["assembly"] = entry
