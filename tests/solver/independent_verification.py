"""Verify solutions independently of the solver: costs by level, limits, loops, and whether a closest pose is closest.

Everything is computed by the plain NumPy reference of the objectives, with costs in m and rad; only which of them were
solved together is taken from the solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear
from solver_internals import bounds, packed_problem

from mechanik.objectives.constraint_relations import closure_limit_relations, closure_relations
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import RelationKind, band_violation, evaluate_relation, is_band_active

CONVERGED, CLOSEST = 0, 1
CLOSURE_TOL, FLAT, AT_BOUND = 1e-9, 1e-6, 1e-9


@dataclass(frozen=True, slots=True)
class Verification:
    """What is wrong with a solution; nothing, if it is empty.

    Attributes:
        faults: in words.
        slope: the largest projected gradient of a level that is not met, relative to its error.
    """

    faults: tuple[str, ...]
    slope: float = 0.0


@dataclass(frozen=True, slots=True)
class EvaluatedRelation:
    """A relation at a configuration.

    Attributes:
        value, J: residual and Jacobian of the reference; J is None where it is not needed.
        violation: part of the value outside its band.
        weight: of each component of the residual in the solver.
        met: whether it is within its tolerances.
    """

    relation: object
    value: np.ndarray
    J: np.ndarray | None
    violation: np.ndarray
    weight: np.ndarray
    met: bool

    @property
    def cost(self) -> float:
        return float(np.sum((self.weight * self.violation) ** 2))


class SolutionVerifier:
    """For one solver, many solutions."""

    def __init__(self, solver) -> None:
        self.solver, self.mechanism = solver, solver.mechanism
        self.program, self.space = packed_problem(solver), solver.mechanism.space
        self.lower, self.upper = bounds(solver)
        self.scale = np.where(self.space.rotates, 1.0, self.program.length_unit)
        self.where = {name: k for k, name in enumerate(self.space.q_names)}
        self.turns = {
            int(k): bool(self.space.rotates[v]) for k, v in zip(self.space.scalars_q, self.space.scalars_v, strict=True)
        }
        self.closures = [
            relation
            for relations in (closure_relations, closure_limit_relations)
            for closure in self.mechanism.closures.values()
            for relation in relations(self.mechanism, closure)
        ]

    def verify(self, solution, q0) -> Verification:
        """Verify a solution that started at q0, inside the limits."""
        q, faults = solution.q, []
        if not np.isfinite(q).all():
            return Verification((f"not finite: {q}",))
        excess = np.maximum(q - self.upper, self.lower - q).max(initial=-np.inf)
        if excess > 1e-12:
            faults.append(f"outside its limits by {excess:.3g}")
        for k in self.space.quaternions_q:
            if abs(np.linalg.norm(q[k : k + 4]) - 1.0) > 1e-9:
                faults.append("a ball is no unit quaternion")
        before, after = self._closure_violation(q0), self._closure_violation(q)
        if after > CLOSURE_TOL and after > before * (1 + 1e-9):
            faults.append(f"loops open by {after:.3g}, and were by {before:.3g}")
        success, required = solution.success, True
        if success != (solution.status.name == "CONVERGED"):
            faults.append(f"success is {success}, but the status {solution.status!r}")
        relations, slope = self._relations(solution.objectives, q0), 0.0
        for k, subproblem in enumerate(self.program.subproblems):
            levels = [
                (level, is_soft, *([self._evaluate(relations, *member, at) for member in members] for at in (q0, q)))
                for (level, is_soft), members in self._levels(subproblem)
            ]
            required &= all(is_soft or all(rows.met for rows in end) for _, is_soft, _, end in levels)
            if before <= CLOSURE_TOL:  # else closing the loops comes first, whatever it costs
                faults += self._worse_levels(levels)
            if not success:
                level_slope, more = self._not_closest(subproblem, levels, solution._kernel_reports[k], q)
                slope, faults = max(slope, level_slope), faults + more
        if success and not required:
            errors = [str(objective.error(self.mechanism, q)) for objective in solution.objectives]
            faults.append(f"success, but not met: {errors}")
        if success and after > CLOSURE_TOL:
            faults.append(f"success, but loops are open by {after:.3g}")
        if not success and required and after <= 1e-11:
            faults.append("everything is met, but it is no success")
        return Verification(tuple(faults), slope)

    # ---- relations --------------------------------------------------------------------------

    def _relations(self, objectives, q0):
        return [
            objective.nearest_relations(self.mechanism, q0, self.lower, self.upper)
            if isinstance(objective, JointObjective)
            else objective.relations(self.mechanism)
            for objective in objectives
        ]

    def _levels(self, subproblem):
        """For each level of a subproblem, whether it is soft, and its relations as (objective, number)."""
        levels = {}
        for owner, number in zip(subproblem.owners, subproblem.relation_indices, strict=True):
            if owner >= 0:
                objective = self.solver.objectives[owner]
                levels.setdefault((objective.level, not objective.required), []).append((owner, number))
        return [(key, levels[key]) for key in sorted(levels)]

    def _evaluate(self, relations, owner, number, q):
        relation, objective = relations[owner][number], self.solver.objectives[owner]
        if relation.kind is RelationKind.JOINT_VALUE:
            k = self.where[relation.dof_name]
            value, J = q[k : k + 1] - relation.target, None
            metres = np.array([not self.turns[k]])
        else:
            value, J = evaluate_relation(self.mechanism, relation, q)
            metres = length_row_mask(self.mechanism, relation, len(value))
        violation = band_violation(relation, value)
        weight = np.full(len(value), relation.weight)
        met = np.linalg.norm(violation[metres]) <= objective.tolerance * (1 + 1e-6)
        met &= np.linalg.norm(violation[~metres]) <= objective.angle_tolerance * (1 + 1e-6)
        return EvaluatedRelation(relation, value, J, violation, weight, bool(met))

    def _weighted_jacobian(self, rows):
        """(m, nv), the Jacobian in the weights and the units of the solver."""
        J = evaluate_relation(self.mechanism, rows.relation, self.at)[1] if rows.J is None else rows.J
        return J * self.scale * rows.weight[:, None]

    def _closure_violation(self, q):
        worst = 0.0
        for relation in self.closures:
            violation = band_violation(relation, evaluate_relation(self.mechanism, relation, q)[0])
            worst = max(worst, float(np.abs(violation).max(initial=0.0)))
        return worst

    # ---- laws -------------------------------------------------------------------------------

    def _worse_levels(self, levels):
        """At the first level that differs, the error must be smaller. What is within its tolerance counts as zero."""
        for level, is_soft, start, end in levels:
            # a soft level may get worse where a level above was met already and is met better now
            slack = 1e-4 if is_soft else 1e-8
            before, after = (sum(rows.cost for rows in relations) for relations in (start, end))
            if all(rows.met for rows in end):
                after = min(after, before)
            if after > before * (1 + slack) + 1e-18:
                return [f"level {level} is worse: {before:.12g} -> {after:.12g}"]
            if after < before * (1 - 1e-8):
                return []
        return []

    def _not_closest(self, subproblem, levels, report, q):
        """The projected gradient of the first unmet level, and a fault if its status is wrongly CLOSEST."""
        self.at = q
        if report.stage_status(0) != CONVERGED:  # its loops are not closed
            return 0.0, []
        equal, unequal = [], []
        for relation in self.closures:
            value, J = evaluate_relation(self.mechanism, relation, q)
            self._constrain(relation, value, J * self.scale, equal, unequal)
        for s, (level, is_soft, _, end) in enumerate(levels, start=1):
            status = report.stage_status(s)
            if status == CONVERGED:
                for rows in end:
                    self._constrain(rows.relation, rows.value, self._weighted_jacobian(rows), equal, unequal)
                continue
            if is_soft:
                return 0.0, []
            gradient, size = np.zeros(self.space.nv), 1.0
            for rows in end:
                J = self._weighted_jacobian(rows)
                gradient += J.T @ (rows.weight * rows.violation * is_band_active(rows.relation, rows.value))
                size = max(size, float(np.linalg.norm(J)))
            error = sum(rows.cost for rows in end) ** 0.5
            slope = self._projected_gradient(gradient, equal, unequal, subproblem.moving_dofs, q) / max(
                size * error, 1e-300
            )
            wrong = status == CLOSEST and slope > FLAT
            return slope, [f"level {level} is called closest, but slopes by {slope:.3g}"] if wrong else []
        return 0.0, []

    def _constrain(self, relation, value, J, equal, unequal):
        """Add the constraints of a relation: equalities, and inequalities for components at the edge of their band."""
        if relation.lower is None and relation.upper is None:
            equal.extend(J)
            return
        size = len(value)
        lower = np.full(size, -np.inf) if relation.lower is None else relation.lower
        upper = np.full(size, np.inf) if relation.upper is None else relation.upper
        for r in range(size):
            if lower[r] == upper[r]:
                equal.append(J[r])
            elif value[r] <= lower[r] + 1e-6:
                unequal.append(-J[r])
            elif value[r] >= upper[r] - 1e-6:
                unequal.append(J[r])

    def _projected_gradient(self, gradient, equal, unequal, moving, q):
        """The length of what is left of a gradient by constraints: equal'v = 0, unequal'v <= 0, and the limits."""
        space, inequalities, equal = self.space, list(unequal), list(equal)
        for k, v in zip(space.scalars_q, space.scalars_v, strict=True):
            if moving[v]:
                unit = np.eye(1, space.nv, v)[0]
                if self.lower[k] == self.upper[k]:
                    equal.append(unit)
                elif q[k] >= self.upper[k] - AT_BOUND:
                    inequalities.append(unit)
                elif q[k] <= self.lower[k] + AT_BOUND:
                    inequalities.append(-unit)
        remainder, basis = gradient[moving], np.array(equal).reshape(-1, space.nv)[:, moving]
        if not remainder.size:
            return 0.0
        if len(basis):
            # an orthonormal basis of the rows, without redundant ones
            _, s, vt = np.linalg.svd(basis, full_matrices=False)
            basis = vt[s > 1e-7 * max(s[0], 1e-300)]
            remainder = remainder - basis.T @ (basis @ remainder)
        if not inequalities or np.linalg.norm(remainder) < 1e-14:
            return float(np.linalg.norm(remainder))
        U = np.array(inequalities)[:, moving]
        U = U - (U @ basis.T) @ basis
        # the smallest sum of the gradient and nonnegative multiples of the rows
        fit = lsq_linear(U.T, -remainder, (0.0, np.inf), method="bvls", tol=1e-15)
        return float(np.linalg.norm(remainder + U.T @ fit.x))
