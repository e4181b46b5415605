"""All solutions of a target: isolated solutions, self-motion curves, and samples of self-motions with more dofs.

The same solution is found from many starts with different rounding errors. `DistinctSolutions` contains it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
from mechanik.value_object import ValueObject

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
    """Distinct solutions, each contained once.

    Attributes:
        q: (k, nq) configurations, in the order in which they were found.
    """

    def __init__(self, constraints: ConstraintSystem) -> None:
        self._constraints = constraints
        self.q = np.zeros((0, constraints.mechanism.nq))

    def add(self, q: Array) -> int:
        """Add the polished solutions of `q` (K, nq) that are new; return their number."""
        q, new_count = self.new_solutions(q), 0
        while len(q):
            self.q, new_count = np.vstack([self.q, q[0]]), new_count + 1
            q = q[1:][~self.is_same(q[1:], q[0])]
        return new_count

    def new_solutions(self, q: Array) -> Array:
        """Return the polished solutions of `q` (K, nq) that are not contained yet."""
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
            midpoint = constraints.step(
                np.broadcast_to(reference, (len(close_indices), len(reference))), 0.5 * step[close_indices]
            )
            is_equal[close_indices] = (
                np.abs(constraints.residual_and_jacobian(midpoint)[0]).max(axis=1, initial=0.0) < MIDPOINT_RESIDUAL
            )
        return is_equal


def farthest_point_sample(constraints: ConstraintSystem, q: Array, count: int, first_index: int = 0) -> list[int]:
    """Return up to `count` indices of configurations of `q` (K, nq), each as far as possible from all previous ones.

    Fewer are returned if all others are closer than `CLOSE_SOLUTION_DISTANCE` to a returned configuration.
    """
    if not len(q):
        return []
    sample_indices = [first_index]
    distances = np.full(len(q), np.inf)
    while len(sample_indices) < min(count, len(q)):
        step = constraints.wrapped_difference(np.broadcast_to(q[sample_indices[-1]], q.shape), q)
        distances = np.minimum(distances, np.sqrt((step * step).sum(axis=1)))
        farthest_index = int(np.argmax(distances))
        if distances[farthest_index] < CLOSE_SOLUTION_DISTANCE:
            break
        sample_indices.append(farthest_index)
    return sample_indices


CURVES_PER_TRACE = 8
"""Number of curves that are traced together."""
KNOWN_SOLUTION_DISTANCE = 1e-5
"""Scaled units; the end point of a descent that is closer to a known isolated solution is not polished."""


class SolutionPool:
    """Solutions of a target found so far, by the dimension of their self-motion.

    Attributes:
        constraints: the constraints.
        isolated_solutions: isolated solutions.
        curves: whole self-motions with one dof, also beyond the limits of revolute joints.
        curve_solutions: (k, nq) solutions on the curves.
        multi_dof_solutions: (k, nq) solutions with two or more free dofs.
        redundancy: largest number of free dofs of any solution.
    """

    def __init__(self, constraints: ConstraintSystem) -> None:
        self.constraints = constraints
        self.isolated_solutions = DistinctSolutions(constraints)
        self.curves: list[SelfMotionCurve] = []
        self.curve_solutions = np.zeros((0, constraints.mechanism.nq))
        self.multi_dof_solutions = np.zeros((0, constraints.mechanism.nq))
        self.redundancy = 0

    def filter_known(self, q: Array) -> Array:
        """Return the end points of descents `q` (K, nq) that are not near a known isolated solution."""
        for known_q in self.isolated_solutions.q:
            q = q[
                np.abs(self.constraints.wrapped_difference(known_q, q)).max(axis=1, initial=0.0)
                > KNOWN_SOLUTION_DISTANCE
            ]
        return q

    def add(self, q: Array) -> int:
        """Add polished solutions (K, nq); return the number of new isolated solutions and curves."""
        q = self._take_curve_solutions(self.isolated_solutions.new_solutions(q), self.curves)
        redundancy = self.constraints.redundancy(q)
        is_multi_dof = redundancy > 1
        if is_multi_dof.any():
            self.multi_dof_solutions = np.concatenate([self.multi_dof_solutions, q[is_multi_dof]])
            self.redundancy = max(self.redundancy, int(redundancy.max()))
        return self.isolated_solutions.add(q[redundancy == 0]) + self._add_on_curves(q[redundancy == 1])

    def _add_on_curves(self, q: Array) -> int:
        """Add solutions at which the Jacobian leaves one dof free, and trace their curves.

        Returns the number of new isolated solutions and curves.
        """
        new_count = 0
        while len(q):
            if self.constraints.is_exhausted:  # too late to trace curves
                self.curve_solutions, self.redundancy = (
                    np.concatenate([self.curve_solutions, q]),
                    max(self.redundancy, 1),
                )
                break
            sample_indices = farthest_point_sample(self.constraints, q, CURVES_PER_TRACE)
            curves: list[SelfMotionCurve] = []
            for k, curve in zip(sample_indices, trace_self_motions(self.constraints, q[sample_indices]), strict=True):
                if len(curve.q) == 1:
                    new_count += self.isolated_solutions.add(
                        q[k][None]
                    )  # no motion: two isolated solutions coincide here
                elif not any(is_on_curve(self.constraints, new_curve, q[k][None])[0] for new_curve in curves):
                    curves.append(curve)
                    self.curve_solutions, self.redundancy = (
                        np.vstack([self.curve_solutions, q[k]]),
                        max(self.redundancy, 1),
                    )
            self.curves += curves
            new_count += len(curves)
            q = self.isolated_solutions.new_solutions(np.delete(q, sample_indices, axis=0))
            q = self._take_curve_solutions(q, curves)
        return new_count

    def _take_curve_solutions(self, q: Array, curves: list[SelfMotionCurve]) -> Array:
        """Return the solutions of `q` that are on none of `curves`; add the others to `curve_solutions`."""
        for curve in curves:
            is_on_this_curve = is_on_curve(self.constraints, curve, q)
            self.curve_solutions, q = np.concatenate([self.curve_solutions, q[is_on_this_curve]]), q[~is_on_this_curve]
        return q


Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SolutionSet(ValueObject):
    """Distinct solutions of a target inside the limits, as returned by `Solver.solve_all`.

    Attributes:
        q: (k, nq) configurations, nearest to `q0` first; values that do not move are as in `q0`.
        distance: (k,) distance from `q0`: the Euclidean norm of the differences of all moving dofs, rad and m.
        component: (k,) index of the connected component; solutions on the same self-motion have the same index.
        redundancy: largest number of free dofs of a solution. 0: all solutions are isolated. 1: there are samples of
            curves, several per curve. 2 or more: there are samples as far apart as possible; it is unknown
            which of them are connected, and all have the same component.
        complete: whether a closed form proves that the search has found every solution (every self-motion, if
            redundant). `limit` and collisions may have removed solutions from this set.
        explanation: how the solutions were found, or why there is no solution.
        attempts: number of descents, each from another start; 0 for a closed form.

    Example:
        >>> arm = mk.gallery.ur5()
        >>> target = arm.pose("tool0", [0.3, -1.2, 1.1, -0.4, 0.9, 0.2])
        >>> solutions = mk.Solver(arm, mk.PoseGoal("tool0", target)).solve_all()
        >>> len(solutions), solutions.complete, solutions.redundancy
        (8, True, 0)
    """

    q: Array
    distance: Array
    component: Indices
    redundancy: int
    complete: bool
    explanation: str
    attempts: int
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
            return f"<no solution: {self.explanation}>"
        detail = ""
        if self.redundancy == 1:
            detail = f" of {format_count(len(set(self.component.tolist())), 'self-motion')}"
        elif self.redundancy:
            detail = f" sampled from self-motions with {format_count(self.redundancy, 'dof')}"
        return f"<{format_count(len(self), 'solution')}{detail}: {self.explanation}>"

    @property
    def errors(self) -> Array:
        """Largest position error (m) and rotation error (rad) of the objectives at each solution, (k, 2)."""
        self._check_fresh()
        return self._constraints.errors(self.q)

    def path(self, i: int, j: int) -> Array | None:
        """Return a path (m, nq) from solution i to solution j along which all constraints hold, inside the limits.

        Consecutive configurations are at most about 0.04 apart (rad, or lengths in units of the mechanism's size), and
        the residual of the constraints is below 1e-9 at each (same units). Angles are continuous, so the last
        configuration may differ from solution j by full rotations.

        Returns:
            The path; None if i and j are not connected, if the path collides, or, with two or more free dofs, if the
            projected straight path does not reach solution j.

        Raises:
            StructureError: if the mechanism has changed since the solutions were found.
        """
        self._check_fresh()
        path = self._path_ignoring_collisions(i, j)
        return (
            path
            if path is None or self._collision_constraint is None or self._collision_constraint.are_free(path).all()
            else None
        )

    def _path_ignoring_collisions(self, i: int, j: int) -> Array | None:
        a, b = self.q[i], self.q[j]
        if i == j:
            return a[None].copy()
        if self.component[i] != self.component[j]:
            return None
        arc = self._arcs[int(self.component[i])]
        if arc is not None:
            return path_along_arc(self._constraints, arc, a, b)
        return projected_straight_path(self._constraints, a, b) if self.redundancy > 1 else None

    def __reduce__(self) -> tuple[Any, ...]:
        is_fresh = self._constraints.mechanism.revision == self._revision
        return _restore_solutions, (ValueObject.__reduce__(self), is_fresh)

    def _check_fresh(self) -> None:
        if self._constraints.mechanism.revision != self._revision:
            raise StructureError("the mechanism has changed since these solutions were found; call solve_all again")


def _restore_solutions(reduction: tuple[Any, ...], is_fresh: bool) -> SolutionSet:
    """Make a pickled set of solutions; a copied mechanism has revisions of its own."""
    solutions: SolutionSet = reduction[0](*reduction[1])
    if is_fresh:
        object.__setattr__(solutions, "_revision", solutions._constraints.mechanism.revision)
    return solutions


def projected_straight_path(constraints: ConstraintSystem, a: Array, b: Array) -> Array | None:
    """Return a path from `a` to `b` in straight steps, each projected onto the constraints; None if `b` is not reached.

    The difference from `a` to `b` is not reduced by full rotations, so the straight path is inside the limits. A joint
    that the projection moves beyond a limit is moved back onto the limit.
    """
    q, path = a, [a]
    remaining_step = _difference(constraints, a, b)
    for _ in range(4 * int(step_length(remaining_step) / CURVE_SPACING) + 20):
        distance = float(step_length(remaining_step))
        if distance <= 1.5 * CURVE_SPACING:
            return np.array([*path, b])
        step = (CURVE_SPACING / distance) * remaining_step
        next_q, error = constraints.project(constraints.step(q[None], step[None]))
        if not is_within_limits(constraints, next_q)[0]:
            clipped_q = constraints.clip(next_q)
            is_at_limit = np.where(constraints.columns >= 0, (clipped_q != next_q)[:, constraints.columns], False)
            next_q, error = constraints.project(clipped_q, is_at_limit)
        is_small_step = step_length(_difference(constraints, q, next_q[0])) < 2 * CURVE_SPACING
        remaining_step = _difference(constraints, next_q[0], b)
        # without progress the path is blocked
        if not (
            error[0] < RESIDUAL_TOLERANCE
            and is_within_limits(constraints, next_q)[0]
            and is_small_step
            and step_length(remaining_step) < distance - 0.02 * CURVE_SPACING
        ):
            return None
        q = next_q[0]
        path.append(q)
    return None


def _difference(constraints: ConstraintSystem, a: Array, b: Array) -> Array:
    """Return the step (n,) from `a` to `b`, not reduced by full rotations."""
    return constraints.mechanism.space.difference(a, b)[constraints.moving_dofs] / constraints.unit
