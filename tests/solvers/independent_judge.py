"""Judging solutions without asking the solver: costs by level, limits, loops, and whether a closest pose is one.

Everything is computed by the plain NumPy reference of the objectives; only how rows are weighed (weights, and the unit
of length) and which of them were solved together is taken from the solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from mechanik.objectives.aimed import Aimed
from mechanik.objectives.closures import closure_limits, closure_relations
from mechanik.objectives.evaluate import counts, evaluate, outside
from mechanik.objectives.objective import lengths

STAGES, STAGE_NUMBERS = 8, 5  # where the kernel's report of a stage begins, and how long it is
CONVERGED, CLOSEST = 0, 1
SHUT = 1e-9
FLAT = 1e-6
AT_BOUND = 1e-9


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a solution; nothing, if it is empty.

    Attributes:
        faults: in words.
        slope: the largest projected gradient of a level that is not met, relative to its error.
    """

    faults: tuple[str, ...]
    slope: float = 0.0


class Judge:
    """For one solver, many solutions."""

    def __init__(self, solver) -> None:
        self.solver, self.mechanism = solver, solver.mechanism
        self.program = solver._program
        self.lower, self.upper = solver._bounds
        space = self.mechanism.space
        self.space = space
        self.scale = np.where(space.rotates, 1.0, self.program.size)
        self.closures = [
            (relation, False)
            for one in self.mechanism.closures.values()
            for relation in closure_relations(self.mechanism, one)
        ] + [
            (relation, True)
            for one in self.mechanism.closures.values()
            for relation in closure_limits(self.mechanism, one)
        ]

    def look(self, solution, q0) -> Verdict:
        """Everything that can be said of a solution that began at q0, inside the limits."""
        q, faults = solution.q, []
        if not np.isfinite(q).all():
            return Verdict((f"not finite: {q}",))
        over = np.maximum(q - self.upper, self.lower - q).max(initial=-np.inf)
        if over > 1e-12:
            faults.append(f"outside its limits by {over:.3g}")
        for k in self.space.balls_q:
            if abs(np.linalg.norm(q[k : k + 4]) - 1.0) > 1e-9:
                faults.append("a ball is no unit quaternion")
        before, after = self._open(q0), self._open(q)
        if after > SHUT and after > before * (1 + 1e-9):
            faults.append(f"loops open by {after:.3g}, and were by {before:.3g}")
        if solution.success != (solution.status.name == "CONVERGED"):
            faults.append(f"success is {solution.success}, but the status {solution.status!r}")
        if solution.success:
            faults += self._false_success(solution)
            if after > SHUT:
                faults.append(f"success, but loops are open by {after:.3g}")
        elif not faults and not solution.unmet and after <= SHUT:
            faults.append("everything is met, but it is no success")
        relations = self._relations(solution.objectives, q0)
        slope = 0.0
        for k, part in enumerate(self.program.parts):
            stages = self._stages(part)
            if before <= SHUT:  # else shutting the loops comes first, whatever it costs
                faults += self._worse(part, stages, relations, q0, q)
            steep, more = self._not_closest(part, stages, relations, solution._outs[k], q)
            slope, faults = max(slope, steep), faults + more
        return Verdict(tuple(faults), slope)

    # ---- parts of it ------------------------------------------------------------------------

    def _relations(self, objectives, q0):
        return [
            one.nearest(self.mechanism, q0, self.lower, self.upper)
            if isinstance(one, Aimed)
            else one.relations(self.mechanism)
            for one in objectives
        ]

    def _stages(self, part):
        """For each level of a part, whether it is a wish, and its relations as (objective, number)."""
        found = {}
        for owner, number in zip(part.owners, part.numbers, strict=True):
            if owner >= 0:
                one = self.solver.objectives[owner]
                found.setdefault((one.level, not one.required), []).append((owner, number))
        return [(key, found[key]) for key in sorted(found)]

    def _weight(self, relation):
        metres = lengths(self.mechanism, relation, len(relation.rows))
        return relation.weight * np.where(metres, 1.0 / self.program.size, 1.0)

    def _open(self, q):
        worst = 0.0
        for relation, _ in self.closures:
            rows = outside(relation, evaluate(self.mechanism, relation, q)[0])
            worst = max(worst, float(np.abs(rows).max(initial=0.0)))
        return worst

    def _false_success(self, solution):
        faults = []
        for one in solution.objectives:
            if one.required:
                error = one.error(self.mechanism, solution.q)
                if error.position > one.tolerance * (1 + 1e-6) or error.rotation > one.angle_tolerance * (1 + 1e-6):
                    faults.append(f"success, but {one!r} is off by {error}")
        return faults

    def _cost(self, members, relations, q):
        total = 0.0
        for owner, number in members:
            relation = relations[owner][number]
            rows = self._weight(relation) * outside(relation, evaluate(self.mechanism, relation, q)[0])
            total += float(rows @ rows)
        return total

    def _is_met(self, members, relations, q):
        for owner, number in members:
            relation, one = relations[owner][number], self.solver.objectives[owner]
            rows = outside(relation, evaluate(self.mechanism, relation, q)[0])
            metres = lengths(self.mechanism, relation, len(rows))
            if np.linalg.norm(rows[metres]) > one.tolerance or np.linalg.norm(rows[~metres]) > one.angle_tolerance:
                return False
        return True

    def _worse(self, part, stages, relations, q0, q):
        """At the first level that differs, the error must be smaller. What is within its tolerance counts as zero."""
        for (level, _), members in stages:
            start, end = (self._cost(members, relations, each) for each in (q0, q))
            if self._is_met(members, relations, q):
                end = min(end, start)
            if end > start * (1 + 1e-8) + 1e-18:
                return [f"level {level} is worse: {start:.12g} -> {end:.12g}"]
            if end < start * (1 - 1e-8):
                return []
        return []

    def _not_closest(self, part, stages, relations, out, q):
        """The slope of the first level that is not met, and whether it is called closest without being so."""
        if out[STAGES] != CONVERGED:  # its loops are not shut
            return 0.0, []
        equal, unequal = [], []
        for relation, is_limit in self.closures:
            self._constrain(relation, q, equal, unequal, is_limit)
        for s, ((level, is_wish), members) in enumerate(stages, start=1):
            status = int(out[STAGES + STAGE_NUMBERS * s])
            if status == CONVERGED:
                for owner, number in members:
                    self._constrain(
                        relations[owner][number], q, equal, unequal, relations[owner][number].lower is not None
                    )
                continue
            if is_wish:
                return 0.0, []
            gradient, error, size = np.zeros(self.mechanism.nv), 0.0, 1.0
            for owner, number in members:
                relation = relations[owner][number]
                rows, J = evaluate(self.mechanism, relation, q)
                weight = self._weight(relation)
                far, J = weight * outside(relation, rows), J * self.scale * weight[:, None]
                gradient += J.T @ (far * counts(relation, rows))
                error += float(far @ far)
                size = max(size, float(np.linalg.norm(J)))
            slope = self._slope(gradient, equal, unequal, part.moving, q) / max(size * error**0.5, 1e-300)
            wrong = status == CLOSEST and slope > FLAT
            return slope, [f"level {level} is called closest, but slopes by {slope:.3g}"] if wrong else []
        return 0.0, []

    def _constrain(self, relation, q, equal, unequal, is_band):
        """What may not change: rows, or, for a row at the edge of its band, rows that may change one way only."""
        rows, J = evaluate(self.mechanism, relation, q)
        J = J * self.scale * self._weight(relation)[:, None]
        if not is_band and relation.lower is None and relation.upper is None:
            equal.extend(J)
            return
        size = len(rows)
        lower = np.full(size, -np.inf) if relation.lower is None else relation.lower
        upper = np.full(size, np.inf) if relation.upper is None else relation.upper
        for r in range(size):
            if lower[r] == upper[r]:
                equal.append(J[r])
            elif rows[r] <= lower[r] + 1e-6:
                unequal.append(-J[r])
            elif rows[r] >= upper[r] - 1e-6:
                unequal.append(J[r])

    def _slope(self, gradient, equal, unequal, moving, q):
        """The length of what is left of a gradient by constraints: equal'v = 0, unequal'v <= 0, and the limits."""
        space = self.space
        rising = list(unequal)
        for k, v in zip(space.scalars_q, space.scalars_v, strict=True):
            if moving[v] and self.lower[k] < self.upper[k]:
                unit = np.eye(1, space.nv, v)[0]
                if q[k] >= self.upper[k] - AT_BOUND:
                    rising.append(unit)
                elif q[k] <= self.lower[k] + AT_BOUND:
                    rising.append(-unit)
            elif moving[v]:
                equal = [*equal, np.eye(1, space.nv, v)[0]]
        g = gradient[moving]
        E = np.array(equal).reshape(-1, space.nv)[:, moving]
        if len(E):
            # an orthonormal basis of the rows, those left out that say nothing new
            u, s, vt = np.linalg.svd(E, full_matrices=False)
            E = vt[s > 1e-7 * max(s[0], 1e-300)]
        left = g - E.T @ (E @ g)
        if not rising or np.linalg.norm(left) < 1e-14:
            return float(np.linalg.norm(left))
        U = np.array(rising)[:, moving]
        U = U - (U @ E.T) @ E
        # g + sum of multipliers times rows, multipliers >= 0: as small as it can be
        found = lsq_linear(U.T, -left, (0.0, np.inf), method="bvls", tol=1e-15)
        return float(np.linalg.norm(left + U.T @ found.x))

