"""The set of all solutions of a target: isolated solutions, self-motion curves, and samples of wider self-motions.

The same solution is found from many starts, with different rounding errors; `DistinctSolutions` contains it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.errors import StructureError
from mechanik.solver.collision_constraint import CollisionConstraint
from mechanik.solver.search.constraint_system import RESIDUAL_TOLERANCE, ConstraintSystem, Mask, step_length
from mechanik.solver.search.self_motion import (
    CURVE_SPACING,
    SelfMotionCurve,
    is_on_curve,
    is_within_limits,
    path_along_arc,
    trace_self_motions,
)
from mechanik.spatial.array import Array
from mechanik.validation import format_count

SAME_SOLUTION_DISTANCE = 1e-6
"""Scaled units (rad, or lengths in units of the mechanism's size), modulo full rotations; solutions closer than this
are the same. Polished regular solutions agree to 1e-10.
"""
CLOSE_SOLUTION_DISTANCE = 0.02
"""Scaled units; solutions closer than this need a second check. At a singular pose, where two solutions coincide, a
residual of the size of rounding errors determines the configuration to half of the digits only.
"""
MIDPOINT_RESIDUAL = 1e-11
"""Scaled units; two close solutions are the same if the residual at their midpoint is smaller, because no computation
can separate them. The residual there is about d^2 / 8 for two true solutions at a distance d.
"""


class DistinctSolutions:
    """List of distinct solutions.

    Attributes:
        q: (k, nq) configurations, in the order in which they were found.
    """

    def __init__(self, constraints: ConstraintSystem) -> None:
        self._constraints = constraints
        self.q = np.zeros((0, constraints.mechanism.nq))

    def add(self, q: Array) -> int:
        """Add those of the polished solutions (K, nq) that are new; return their number."""
        q, new_count = self.new_solutions(q), 0
        while len(q):
            self.q, new_count = np.vstack([self.q, q[0]]), new_count + 1
            q = q[1:][~self.is_same(q[1:], q[0])]
        return new_count

    def new_solutions(self, q: Array) -> Array:
        """Return those of polished solutions (K, nq) that are not in the list."""
        for known_q in self.q:
            q = q[~self.is_same(q, known_q)]
        return q

    def is_same(self, q: Array, reference: Array) -> Mask:
        """Return whether each of the solutions `q` (K, nq) is the same as `reference` (nq,), as a mask (K,)."""
        constraints = self._constraints
        step = constraints.wrapped_difference(np.broadcast_to(reference, q.shape), q)
        distances = np.abs(step).max(axis=1, initial=0.0)
        is_equal = distances < SAME_SOLUTION_DISTANCE
        close_indices = np.flatnonzero(~is_equal & (distances < CLOSE_SOLUTION_DISTANCE))
        if len(close_indices):
            middle = constraints.step(
                np.broadcast_to(reference, (len(close_indices), len(reference))), 0.5 * step[close_indices]
            )
            is_equal[close_indices] = (
                np.abs(constraints.residual_and_jacobian(middle)[0]).max(axis=1, initial=0.0) < MIDPOINT_RESIDUAL
            )
        return is_equal


def farthest_point_sample(constraints: ConstraintSystem, q: Array, count: int, first_index: int = 0) -> list[int]:
    """Return the indices of up to `count` configurations of `q` (K, nq), each as far as possible from the previous."""
    if not len(q):
        return []
    sample_indices = [first_index]
    distances = np.full(len(q), np.inf)
    while len(sample_indices) < min(count, len(q)):
        step = constraints.wrapped_difference(np.broadcast_to(q[sample_indices[-1]], q.shape), q)
        distances = np.minimum(distances, np.sqrt((step * step).sum(axis=1)))
        farthest = int(np.argmax(distances))
        if distances[farthest] < CLOSE_SOLUTION_DISTANCE:
            break
        sample_indices.append(farthest)
    return sample_indices


CURVES_PER_TRACE = 8
"""Number of curves that are traced together."""
KNOWN_SOLUTION_DISTANCE = 1e-5
"""Scaled units; the end point of a descent that is closer to a known isolated solution is not polished."""


class SolutionPool:
    """Solutions of a target found so far, by the dimension of their self-motion.

    Attributes:
        constraints: the constraints.
        isolated: isolated solutions.
        curves: one-dimensional self-motions, complete, also beyond the limits of revolute joints.
        seeds: (k, nq) solutions on the curves.
        multi_dof: (k, nq) solutions with two or more free dofs.
        redundant: largest number of free dofs of any solution.
    """

    def __init__(self, constraints: ConstraintSystem) -> None:
        self.constraints = constraints
        self.isolated = DistinctSolutions(constraints)
        self.curves: list[SelfMotionCurve] = []
        self.seeds = np.zeros((0, constraints.mechanism.nq))
        self.multi_dof = np.zeros((0, constraints.mechanism.nq))
        self.redundant = 0

    def filter_known(self, q: Array) -> Array:
        """Return those of the descent results `q` (K, nq) that are not near a known isolated solution."""
        for known_q in self.isolated.q:
            q = q[
                np.abs(self.constraints.wrapped_difference(known_q, q)).max(axis=1, initial=0.0)
                > KNOWN_SOLUTION_DISTANCE
            ]
        return q

    def add(self, q: Array) -> int:
        """Add polished solutions (K, nq); return the number of new solutions and curves."""
        q = self._off_curves(self.isolated.new_solutions(q), self.curves)
        redundant_dofs = self.constraints.redundancy(q)
        is_multi_dof = redundant_dofs > 1
        if is_multi_dof.any():
            self.multi_dof = np.concatenate([self.multi_dof, q[is_multi_dof]])
            self.redundant = max(self.redundant, int(redundant_dofs.max()))
        return self.isolated.add(q[redundant_dofs == 0]) + self._add_on_curves(q[redundant_dofs == 1])

    def _add_on_curves(self, q: Array) -> int:
        """Add solutions with one free dof to first order, trace their curves, and return the number of new results."""
        new_count = 0
        while len(q):
            sample_indices = farthest_point_sample(self.constraints, q, CURVES_PER_TRACE)
            curves: list[SelfMotionCurve] = []
            for k, curve in zip(sample_indices, trace_self_motions(self.constraints, q[sample_indices]), strict=True):
                if len(curve.q) == 1:
                    new_count += self.isolated.add(q[k][None])  # no motion: two isolated solutions coincide here
                elif not any(is_on_curve(self.constraints, new_curve, q[k][None])[0] for new_curve in curves):
                    curves.append(curve)
                    self.seeds, self.redundant = np.vstack([self.seeds, q[k]]), max(self.redundant, 1)
            self.curves += curves
            new_count += len(curves)
            q = self._off_curves(self.isolated.new_solutions(np.delete(q, sample_indices, axis=0)), curves)
        return new_count

    def _off_curves(self, q: Array, curves: list[SelfMotionCurve]) -> Array:
        """Return the solutions that are on none of the curves; add the solutions on a curve to `seeds`."""
        for curve in curves:
            is_on = is_on_curve(self.constraints, curve, q)
            self.seeds, q = np.concatenate([self.seeds, q[is_on]]), q[~is_on]
        return q


Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SolutionSet:
    """Distinct solutions of a target inside the limits, as returned by `Solver.solve_all`.

    Attributes:
        q: (k, nq) configurations, nearest to `q0` first; values that do not move are as in `q0`.
        distance: (k,) distance from `q0`: the Euclidean norm of the differences of all moving dofs, rad and m.
        component: (k,) number of the connected component; solutions on the same self-motion have the same number.
        redundant: largest number of free dofs of a solution. 0: all solutions are isolated. 1: the solutions are
            samples of curves, several per curve. 2 or more: samples as far apart as possible; their connectivity is
            unknown, and all have the same component.
        complete: whether a closed form proves that there are no other solutions (no other self-motions, if redundant).
        why: how the solutions were found, or why there is no solution.
        tries: number of starts; 0 for a closed form.

    Example:
        >>> arm = mk.gallery.ur5()
        >>> target = arm.pose("tool0", [0.3, -1.2, 1.1, -0.4, 0.9, 0.2])
        >>> solutions = mk.Solver(arm, mk.PoseGoal("tool0", target)).solve_all()
        >>> len(solutions), solutions.complete, solutions.redundant
        (8, True, 0)
    """

    q: Array
    distance: Array
    component: Indices
    redundant: int
    complete: bool
    why: str
    tries: int
    _arcs: tuple[SelfMotionCurve | None, ...]
    _constraints: ConstraintSystem
    _revision: tuple[int, ...]
    _collision_constraint: CollisionConstraint | None = None

    def __len__(self) -> int:
        return len(self.q)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.q)

    def __getitem__(self, k: int) -> Array:
        return self.q[k]

    def __repr__(self) -> str:
        if not len(self):
            return f"<no solution: {self.why}>"
        detail = ""
        if self.redundant == 1:
            detail = f" of {format_count(len(set(self.component.tolist())), 'self-motion')}"
        elif self.redundant:
            detail = f" sampled from self-motions with {self.redundant} dofs"
        return f"<{format_count(len(self), 'solution')}{detail}: {self.why}>"

    @property
    def errors(self) -> Array:
        """Largest position error (m) and rotation error (rad) of the objectives at each solution, (k, 2)."""
        self._check_fresh()
        return self._constraints.errors(self.q)

    def path(self, i: int, j: int) -> Array | None:
        """Return a path (m, nq) from solution i to solution j along which all constraints hold, inside the limits.

        Consecutive configurations are at most 0.03 apart (rad, or lengths in units of the mechanism's size), and the
        constraints hold to 1e-9 at each. Angles are continuous, so the last configuration may differ from solution j by
        full rotations.

        Returns:
            The path; None if i and j are not connected, if the path collides, or, with two or more free dofs, if the
            projected straight path does not reach solution j.

        Raises:
            StructureError: if the mechanism has changed since the solutions were found.
        """
        self._check_fresh()
        path = self._path_on_solutions(i, j)
        return (
            path
            if path is None or self._collision_constraint is None or self._collision_constraint.are_free(path).all()
            else None
        )

    def _path_on_solutions(self, i: int, j: int) -> Array | None:
        a, b = self.q[i], self.q[j]
        if i == j:
            return a[None].copy()
        if self.component[i] != self.component[j]:
            return None
        arc = self._arcs[int(self.component[i])]
        if arc is not None:
            return path_along_arc(self._constraints, arc, a, b)
        return projected_straight_path(self._constraints, a, b) if self.redundant > 1 else None

    def _check_fresh(self) -> None:
        if self._constraints.mechanism.revision != self._revision:
            raise StructureError("the mechanism has changed since these solutions were found; call solve_all again")


def projected_straight_path(constraints: ConstraintSystem, a: Array, b: Array) -> Array | None:
    """Return a path from `a` to `b` in straight steps, each projected onto the constraints; None if `b` is not reached.

    Full rotations count, so the straight path is inside the limits. A joint that the projection moves beyond a limit is
    moved back onto the limit.
    """
    q, path = a, [a]
    remaining = _difference(constraints, a, b)
    for _ in range(4 * int(step_length(remaining) / CURVE_SPACING) + 20):
        distance = float(step_length(remaining))
        if distance <= 1.5 * CURVE_SPACING:
            return np.array([*path, b])
        next_q, error = constraints.project(constraints.step(q[None], (CURVE_SPACING / distance) * remaining[None]))
        if not is_within_limits(constraints, next_q)[0]:
            clipped_q = np.clip(next_q, constraints.lower, constraints.upper)
            is_at_limit = np.where(constraints.columns >= 0, (clipped_q != next_q)[:, constraints.columns], False)
            next_q, error = constraints.project(clipped_q, is_at_limit)
        is_small_step = step_length(_difference(constraints, q, next_q[0])) < 2 * CURVE_SPACING
        remaining = _difference(constraints, next_q[0], b)
        # without progress the path is blocked
        if not (
            error[0] < RESIDUAL_TOLERANCE
            and is_within_limits(constraints, next_q)[0]
            and is_small_step
            and step_length(remaining) < distance - 0.02 * CURVE_SPACING
        ):
            return None
        q = next_q[0]
        path.append(q)
    return None


def _difference(constraints: ConstraintSystem, a: Array, b: Array) -> Array:
    """Return the step (n,) from `a` to `b`, full rotations included."""
    return constraints.mechanism.space.difference(a, b)[constraints.moving] / constraints.unit
