"""Certified Newton step: a small motion of the driven joints in one step that provably stays on the branch.

The passive joints move along the tangent; then Newton's method closes the loops. Let J be the derivatives of the
residual with respect to the passive joints at the end of the tangent step, J' the same at another point, and B the
(pseudo-)inverse of J. If the norm of B (J' - J) is below 1 at all points on and around the step, the map
u - B residual(u) is a contraction: it has one fixed point for each value of the driven joints, so exactly one branch
connects the start and the end (Banach; L. V. Kantorovich 1948). J' is evaluated at the start of the step. At other
points its change is bounded by the curvature of joint motion (`_curvature_bounds`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.closure.assembly import Assembly
from mechanik.closure.continuation import RESIDUAL_TOLERANCE, ROUNDING_TOLERANCE
from mechanik.closure.loop_system import LoopGroup, LoopSystem
from mechanik.objectives.joint_goals import joint_targets_by_name
from mechanik.objectives.relation import RelationKind
from mechanik.problem.compilation import LENGTH_UNIT_SHARE
from mechanik.solver.solution import Status
from mechanik.spatial.array import Array
from mechanik.validation import format_count

Indices = npt.NDArray[np.int64]

MAX_STEP_LENGTH = 0.25
"""Maximum length of a step, scaled units; the same as in a continuation."""
MAX_CONTRACTION = 0.5
"""Maximum bound of the norm of B (J' - J). A smaller value is safer and needs more steps."""
MAX_CONDITION = 1e3
"""Maximum product of the norms of the derivatives and of B; a larger product means that a change point or a
dead point is near."""
MAX_UNCOMPENSATED_RATIO = 1e-6
"""Maximum share of the residual change caused by the inputs that the passive joints cannot compensate. If the share is
larger, the inputs depend on each other.
"""
MAX_ITERATIONS = 6
"""Maximum number of Newton iterations; two or three are typical."""
MAX_PIECES = 16
"""Maximum estimated number of pieces of a motion; a motion that needs more is left to the continuation."""


class _StepTooLongError(Exception):
    """Raised if a step cannot be certified, but a shorter step may be.

    Attributes:
        piece_count: estimated number of pieces into which the step must be divided.
    """

    def __init__(self, piece_count: float) -> None:
        self.piece_count = piece_count


class NewtonStep:
    """Certified step for a set of driven joints that are single values of q.

    Attributes:
        loops: the loop equations.
        names: names of the driven joints or dofs.
        q_indices: (m,) indices of the driven joints in q.
    """

    def __init__(self, loops: LoopSystem, names: tuple[str, ...], q_indices: Indices, groups: list[LoopGroup]) -> None:
        self.loops, self.names, self.q_indices = loops, names, q_indices
        space, lower, upper = loops.mechanism.space, loops.lower, loops.upper
        self._v = np.array([int(np.flatnonzero(loops.q_index_by_dof == index)[0]) for index in q_indices])
        self._unit = np.where(space.rotates[self._v], 1.0, loops.length_unit)
        self._group_steps = [_GroupStep(loops, group, q_indices) for group in groups]
        has_limit = np.isfinite(lower) | np.isfinite(upper)
        self._limited_q = np.array([i for i in space.scalars_q.tolist() if has_limit[i]], dtype=np.int64)
        self._lower, self._upper = lower[self._limited_q], upper[self._limited_q]
        self._is_passive = np.array([i not in q_indices for i in self._limited_q.tolist()], dtype=np.float64)
        closed_text = f"{format_count(len(loops.mechanism.closures), 'loop')} closed"
        self._message = f"{len(names)} of {format_count(len(names), 'input')} reached, {closed_text}"

    def solve(self, values: Mapping[str, Array], q: Array, heading: Array) -> Assembly | None:
        """Move the driven joints from their values in `q` (nq,) to `values`, in pieces if necessary.

        Args:
            values: goal values by name, as in `names`, m or rad.
            heading: (nv,) heading of the returned assembly if the driven joints do not move.

        Returns:
            The assembly; None if the step cannot be certified and a continuation is necessary.
        """
        goal = np.concatenate([*values.values()])
        if len(goal) != len(self.q_indices) or not self._is_inside(q, 0.0):
            return None
        start, motion = q[self.q_indices], heading
        input_motion = (goal - start) / self._unit
        length, piece_count, finished_count = _norm(input_motion), 1, 0
        # the passive joints move too, so the inputs move by much less than MAX_STEP_LENGTH in a piece
        if length > MAX_STEP_LENGTH * MAX_PIECES / 4:
            return None
        while finished_count < piece_count:
            piece_goal = (
                goal
                if finished_count + 1 == piece_count
                else start + (finished_count + 1) / piece_count * (goal - start)
            )
            try:
                piece_result = self._solve_piece(q, piece_goal, input_motion / piece_count)
            except _StepTooLongError as error:
                if not piece_count * error.piece_count <= MAX_PIECES:
                    return None
                factor = 1 << max(1, math.ceil(math.log2(error.piece_count)))
                piece_count, finished_count = factor * piece_count, factor * finished_count
                continue
            if piece_result is None:
                return None
            (q, motion), finished_count = piece_result, finished_count + 1
        if length > RESIDUAL_TOLERANCE:
            heading = motion * (piece_count / length)
        errors = dict.fromkeys(self.names, 0.0)
        return Assembly(self.loops.mechanism, values, q, True, Status.CONVERGED, self._message, errors, (), heading)

    def _solve_piece(self, q: Array, goal: Array, input_motion: Array) -> tuple[Array, Array] | None:
        """Move the driven joints from `q` to `goal` (m,); None if a continuation is necessary.

        Args:
            input_motion: (m,) motion of the driven joints, scaled units.

        Returns:
            The configuration (nq,) at the end, and the tangent there as a motion (nv,) for `input_motion`, m and rad.

        Raises:
            _StepTooLongError: if the step cannot be certified, but a shorter step may be.
        """
        end_q, motion, margin = q.copy(), np.zeros(self.loops.n), 0.0
        end_q[self.q_indices] = goal
        motion[self._v] = input_motion * self._unit
        for group_step in self._group_steps:
            deviation = group_step.solve(q, end_q, input_motion, motion)
            if deviation is None:
                return None
            margin = max(margin, deviation)
        is_inside = self._is_inside(end_q, margin) and not (
            self.loops.limit_relations and self.loops.limit_violation(end_q)[0] > 0.0
        )
        return (end_q, motion) if is_inside else None

    def _is_inside(self, q: Array, margin: float) -> bool:
        """Return whether the driven joints are inside their limits, and the passive joints by a margin (m, rad)."""
        if not len(self._limited_q):
            return True
        values, margins = q[self._limited_q], margin * self._is_passive
        return bool((values - margins >= self._lower).all() and (values + margins <= self._upper).all())


class _GroupStep:
    """Certified step for one group of loops that share dofs.

    All derivatives are in scaled units. Those at the end of a step are reused for the next step.
    """

    def __init__(self, loops: LoopSystem, group: LoopGroup, driven_q: Indices) -> None:
        problem, space, dofs = group.problem, loops.mechanism.space, group.v.tolist()
        input_index_by_dof = {
            int(np.flatnonzero(loops.q_index_by_dof == index)[0]): i for i, index in enumerate(driven_q.tolist())
        }
        self._problem, self._x = problem, problem.x[: space.nq]
        self._rows = None if len(group.rows) == len(problem.residual) else group.rows
        self._driven_columns = np.array([c for c, v in enumerate(dofs) if v in input_index_by_dof], dtype=np.int64)
        self._passive_columns = np.array([c for c, v in enumerate(dofs) if v not in input_index_by_dof], dtype=np.int64)
        self._input_indices = np.array([input_index_by_dof[v] for v in dofs if v in input_index_by_dof], dtype=np.int64)
        self._unit, self._v = problem.scale[self._passive_columns], group.v[self._passive_columns]
        self._max_unit = float(self._unit.max(initial=0.0))
        q_indices = [k for v, k in enumerate(loops.q_index_by_dof.tolist()) if k >= 0 and v in dofs]
        for first_index, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
            q_indices += range(first_index, first_index + 4) if v in dofs else ()
        self._q_indices = np.array(q_indices, dtype=np.int64)
        self._curvature, self._lever_norm = _curvature_bounds(loops, group)
        self._evaluated_q: bytes | None = None
        self._J_inputs, self._J_passive = np.zeros((0, 0)), np.zeros((0, 0))
        self._inverse: Array | None = None

    def solve(self, q: Array, end_q: Array, input_motion: Array, motion: Array) -> float | None:
        """Close the loops with the driven joints of this group at their values; None if a continuation is necessary.

        Args:
            q: (nq,) start.
            end_q: (nq,) input and output: configuration with the driven joints at their values; the values of this
                group are overwritten.
            input_motion: (m,) motion of all driven joints, scaled units.
            motion: (nv,) output: the entries of this group's passive joints are set to the tangent at the end for
                `input_motion`, m and rad.

        Returns:
            Length of the Newton corrections, converted to m or rad: an estimate of the distance of the passive joints
            from their straight path.

        Raises:
            _StepTooLongError: if the step cannot be certified, but a shorter step may be.
        """
        problem, passive_columns = self._problem, self._passive_columns
        if self._evaluated_q != q[self._q_indices].tobytes():
            self._x[:] = q
            problem.evaluate()
            if not _norm(self._residual()) < RESIDUAL_TOLERANCE:
                return None
            self._store_derivatives(q)
        group_motion = input_motion[self._input_indices]
        if not (input_length := _norm(group_motion)) > 0.0:
            return 0.0
        if self._inverse is None:
            self._inverse = _inverse(self._J_passive)
        if self._inverse is None or not _norm(self._inverse) * _norm(self._J_passive) < MAX_CONDITION:
            return None
        residual_change = self._J_inputs.dot(group_motion)
        tangent_step = -self._inverse.dot(residual_change)
        uncompensated_change = residual_change + self._J_passive.dot(tangent_step)
        length = math.hypot(_norm(tangent_step), input_length)
        if not _norm(uncompensated_change) <= MAX_UNCOMPENSATED_RATIO * _norm(residual_change):
            return None
        if not length < MAX_STEP_LENGTH:
            raise _StepTooLongError(length / MAX_STEP_LENGTH)
        self._x[:] = end_q
        problem.step.fill(0.0)
        problem.step[passive_columns] = tangent_step
        problem.advance()
        J_inputs, J_passive = self._derivatives()
        B = _inverse(J_passive)
        if B is None:
            raise _StepTooLongError(2.0)
        J_norm, B_norm = math.hypot(_norm(J_passive), _norm(J_inputs)), _norm(B)
        relative_change, correction, error = _norm(B.dot(J_passive - self._J_passive)), 0.0, math.inf
        if not (relative_change < MAX_CONTRACTION and J_norm * B_norm < MAX_CONDITION):
            raise _StepTooLongError(max(2.0, relative_change / MAX_CONTRACTION))
        for _ in range(MAX_ITERATIONS):
            e = self._residual()
            previous_error, error = error, _norm(e)
            if error < ROUNDING_TOLERANCE or not error < 0.5 * previous_error:
                break
            u = B.dot(e)
            correction += _norm(u)
            problem.step[passive_columns] = -u
            problem.advance()
        # the derivatives were evaluated only at both ends of the tangent step: bound their change between the ends and
        # around the step, where another branch may be; length² / 8: deviation of a curve of curvature 1 from its chord
        radius = 2.0 * correction + length * length / 8.0
        bound = B_norm * self._curvature * (J_norm + self._lever_norm) * radius
        if not (error < RESIDUAL_TOLERANCE and relative_change + bound < MAX_CONTRACTION):
            # `relative_change` is linear in the step length, and `bound` is quadratic: solve for the number of pieces
            root = math.sqrt(relative_change * relative_change + 4.0 * MAX_CONTRACTION * bound)
            raise _StepTooLongError(max(1.0, (relative_change + root) / (2.0 * MAX_CONTRACTION)))
        end_q[self._q_indices] = self._x[self._q_indices]
        self._store_derivatives(end_q)
        self._inverse = B = _inverse(self._J_passive)
        if B is None:
            raise _StepTooLongError(2.0)
        motion[self._v] = -B.dot(self._J_inputs.dot(group_motion)) * self._unit
        return correction * self._max_unit

    def _store_derivatives(self, q: Array) -> None:
        """Store the derivatives at the problem's present configuration `q`."""
        self._evaluated_q, self._inverse = q[self._q_indices].tobytes(), None
        self._J_inputs, self._J_passive = self._derivatives()

    def _derivatives(self) -> tuple[Array, Array]:
        """Return copies of the derivatives of the residual with respect to driven and to passive joints."""
        J = self._problem.jacobian if self._rows is None else self._problem.jacobian[self._rows]
        return J.take(self._driven_columns, 1), J.take(self._passive_columns, 1)

    def _residual(self) -> Array:
        return self._problem.residual if self._rows is None else self._problem.residual[self._rows]


def _curvature_bounds(loops: LoopSystem, group: LoopGroup) -> tuple[float, float]:
    """Return two numbers: in a unit step, J changes by at most factor * (norm of J + lever_norm).

    The derivative of a column of J is a rotated column, at most as long as the column, and a unit step rotates it by at
    most the square root of the number of dofs of the loop. A residual may omit directions, and columns of mimic joints
    may cancel. So `lever_norm` is added, the norm of a vector with one bound for each dof: the mechanism's reach
    (scaled units), which is the longest lever arm, multiplied by the largest gear ratio.
    """
    blocks = group.problem.subproblem.packed.block_records()
    ratios = [abs(coupling.ratio) for joint in loops.mechanism.joints.values() for coupling in joint.couplings]
    max_ratio = max(1.0, *ratios) if ratios else 1.0
    factor = 2.0 * max_ratio * math.sqrt(max([1, *(len(block.column_indices) for block in blocks)]))
    lever_norm = max_ratio * math.sqrt(len(group.v)) / LENGTH_UNIT_SHARE
    return factor, lever_norm


def newton_step_for(loops: LoopSystem, values: Mapping[str, Array]) -> NewtonStep | None:
    """Return the cached certified step for these driven joints; None if only a continuation is possible."""
    names = tuple(values)
    if names not in loops.cache:
        if len(loops.cache) > 16:
            loops.cache.clear()
        loops.cache[names] = _make_newton_step(loops, values)
    newton_step = loops.cache[names]
    return newton_step if isinstance(newton_step, NewtonStep) else None


def _make_newton_step(loops: LoopSystem, values: Mapping[str, Array]) -> NewtonStep | None:
    mechanism = loops.mechanism
    is_nonlinear = any(
        len(coefficients) > 1 for relation in loops.relations for _, coefficients in relation.polynomials
    )
    if not values or loops.groups is None or is_nonlinear:  # no curvature bound is known for nonlinear constraints
        return None
    q_indices: list[int] = []
    for name, numbers in values.items():
        for probe in (numbers, numbers + 1.0):  # excludes mimic joints, whose leader has other values
            relations = [target.relation for target in joint_targets_by_name(mechanism, {name: probe})]
            if any(relation.kind is not RelationKind.JOINT_VALUE for relation in relations):
                return None
            if [float(relation.target[0]) for relation in relations] != probe.tolist():
                return None
        q_indices += [mechanism.space.q_names.index(relation.dof_name) for relation in relations]
    if len(set(q_indices)) < len(q_indices):
        return None
    return NewtonStep(loops, tuple(values), np.array(q_indices, dtype=np.int64), loops.groups)


def _inverse(J: Array) -> Array | None:
    """Return the inverse or pseudo-inverse (n, m) of `J` (m, n); None if m < n, n = 0 or the matrix is singular.

    With more rows than columns the normal equations are solved, as in the continuation.
    """
    m, n = J.shape
    if not 0 < n <= m:
        return None
    try:
        inverse: Any = np.linalg.inv(J.T.dot(J) if m > n else J)
    except np.linalg.LinAlgError:
        return None
    return inverse.dot(J.T) if m > n else inverse


def _norm(M: Array) -> float:
    entries = M.ravel()
    return math.sqrt(entries.dot(entries))
