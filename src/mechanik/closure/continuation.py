"""Numerical continuation of a driven mechanism along a branch of its configurations.

At a point (q, s) of the curve all residuals are zero: the loops are closed, and the driven joints have their values at
the path parameter s. The tangent is the null space of A, the Jacobian of the residual with respect to a joint step u
and s. The predictor is a step along the tangent; the corrector is Newton's method, which projects back onto the curve,
normal to the tangent (E. L. Allgower, K. Georg, "Numerical Continuation Methods", Springer 1990). s increases while the
driven joints approach their goal. A point at which s changes from increasing to decreasing is a dead point. At a change
point two branches cross, A loses rank, and the orientation of the curve changes (`have_same_orientation`); the
continuation passes it with one straight step across it. The orientation may also change between two branches that only
come close, but there the curve bends, and the steps get shorter until they follow the bend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanik.closure.driven_joints import DrivenJoints
from mechanik.closure.loop_system import LoopSystem, Mask
from mechanik.spatial.array import Array
from mechanik.spatial.vector_math import has_positive_determinant

RANK_TOLERANCE = 1e-7
"""Ratio to the largest singular value; smaller singular values count as zero."""
RESIDUAL_TOLERANCE = 1e-12
"""Residuals below this count as zero, scaled units."""
ROUNDING_TOLERANCE = 1e-15
"""Residuals below this are rounding errors, scaled units."""
REGULARIZATION = 1e-14
"""Regularization of the normal equations, in squared singular values, for redundant equations."""


class ContinuationPoint:
    """A point (q, s) of a continuation, with the Jacobian at this point.

    Attributes:
        q: (nq,) configuration.
        s: path parameter, scaled units.
        A: (m, n + 1) derivatives of all residuals, loops first, with respect to u and s; zero for frozen dofs.
        error: largest absolute residual, scaled units.
    """

    __slots__ = ("A", "_svd", "error", "q", "s")

    def __init__(self, q: Array, s: float, A: Array, error: float) -> None:
        self.q, self.s, self.A, self.error = q, s, A, error
        self._svd: tuple[Array, Array] | None = None

    @property
    def singular_values(self) -> Array:
        """Singular values of A in descending order."""
        return self._singular_value_decomposition()[0]

    @property
    def V(self) -> Array:
        """Right singular vectors of A as rows, (n + 1, n + 1)."""
        return self._singular_value_decomposition()[1]

    @property
    def rank(self) -> int:
        """Rank of A, by `RANK_TOLERANCE`."""
        return (
            int((self.singular_values > RANK_TOLERANCE * max(float(self.singular_values[0]), 1e-12)).sum())
            if len(self.singular_values)
            else 0
        )

    def relative_singular_value(self, rank: int) -> float:
        """Return the `rank`-th singular value of A, counted from 1, as a ratio to the largest.

        0 if A has fewer singular values; 1 if `rank` is 0 or A has no rows.
        """
        if rank == 0 or not len(self.singular_values):
            return 1.0
        return (
            float(self.singular_values[rank - 1] / self.singular_values[0])
            if rank <= len(self.singular_values)
            else 0.0
        )

    def null_space_part(self, z: Array, rank: int) -> Array:
        """Return the component of `z` (n + 1,) in the null space of A, if A has the rank `rank`."""
        N = self.V[rank:]
        return N.T @ (N @ z)

    def _singular_value_decomposition(self) -> tuple[Array, Array]:
        if self._svd is None:
            if len(self.A):
                _, singular_values, V = np.linalg.svd(self.A, full_matrices=True)
                self._svd = np.asarray(singular_values), np.asarray(V)
            else:
                self._svd = np.zeros(0), np.eye(self.A.shape[1])
        return self._svd


class ContinuationProblem:
    """Residual of loops and driven joints as a function of (q, s).

    Attributes:
        loops: the loop equations.
        inputs: the driven joints.
        frozen_dofs: (nv,) mask of the dofs that are frozen at a limit.
    """

    def __init__(self, loops: LoopSystem, inputs: DrivenJoints) -> None:
        self.loops, self.inputs = loops, inputs
        self.frozen_dofs: Mask = np.zeros(loops.n, dtype=np.bool_)
        self._driven_dofs = inputs.driven_dofs()

    @property
    def n(self) -> int:
        """Number of dofs, nv."""
        return self.loops.n

    @property
    def s_axis(self) -> Array:
        """Unit vector (n + 1,) along s."""
        z = np.zeros(self.n + 1)
        z[-1] = 1.0
        return z

    def residual(self, q: Array, s: float) -> tuple[Array, Array]:
        """Return the residual (m,) and its Jacobian A (m, n + 1)."""
        e, J = self.loops.residual(q)
        e_inputs, J_inputs, s_derivatives = self.inputs.residual(q, s)
        A = np.zeros((len(e) + len(e_inputs), self.n + 1))
        A[: len(e), :-1], A[len(e) :, :-1], A[len(e) :, -1] = J, J_inputs, s_derivatives
        A[:, :-1][:, self.frozen_dofs] = 0.0
        return np.concatenate([e, e_inputs]), A

    def limit_violation(self, q: Array) -> tuple[float, str]:
        """Return the largest limit violation as `LoopSystem.limit_violation` does, without the driven joints.

        Driven joints need no check: their path starts and ends inside their limits.
        """
        return self.loops.limit_violation(q, self._driven_dofs)

    def point_at(self, q: Array, s: float) -> ContinuationPoint:
        e, A = self.residual(q, s)
        return _make_point(q, s, e, A)

    def step(self, q: Array, s: float, z: Array) -> tuple[Array, float]:
        return self.loops.step(q, z[:-1]), s + float(z[-1])

    def difference(self, a: ContinuationPoint, b: ContinuationPoint) -> Array:
        """Return the step (n + 1,) from `a` to `b`."""
        return np.append(self.loops.scaled_difference(a.q, b.q), b.s - a.s)

    def is_same(self, a: Array, b: Array) -> bool:
        """Return whether two configurations are equal to 1e-6 (rad, m), up to full rotations of single dofs."""
        u = self.loops.scaled_difference(a, b) * self.loops.unit
        is_angle = self.loops.mechanism.space.rotates & (self.loops.q_index_by_dof >= 0)
        u = np.where(is_angle, u - 2 * np.pi * np.round(u / (2 * np.pi)), u)
        return bool(np.abs(u).max(initial=0.0) < 1e-6)

    def project(
        self, q: Array, s: float, directions: Array, steps: int = 8, tolerance: float = ROUNDING_TOLERANCE
    ) -> ContinuationPoint:
        """Project (q, s) onto the curve by Newton's method, with least-norm steps.

        The steps are perpendicular to the rows of `directions` (k, n + 1).

        The iteration ends if the largest residual is below `tolerance`, after `steps` steps, or if a step does not
        decrease the residual; that step is discarded.
        """
        e, A = self.residual(q, s)
        error = float(np.abs(e).max(initial=0.0))
        for _ in range(steps):
            if error < tolerance:
                break
            M = np.concatenate([A, directions])
            z = least_norm_step(M, np.append(-e, np.zeros(len(directions))))
            z[:-1][self.frozen_dofs] = 0.0
            q_new, s_new = self.step(q, s, z)
            e_new, A_new = self.residual(q_new, s_new)
            error_new = float(np.abs(e_new).max(initial=0.0))
            if not error_new < error:
                break
            q, s, e, A = q_new, s_new, e_new, A_new
            error, is_converging = error_new, error_new < 0.5 * error
            if error < RESIDUAL_TOLERANCE and not is_converging:
                break
        return _make_point(q, s, e, A)

    def project_at(self, q: Array, s: float) -> ContinuationPoint:
        """Project onto the curve with constant s."""
        return self.project(q, s, self.s_axis[None])


def _make_point(q: Array, s: float, e: Array, A: Array) -> ContinuationPoint:
    return ContinuationPoint(q, s, A, float(np.abs(e).max(initial=0.0)))


def least_norm_step(M: Array, r: Array) -> Array:
    """Return the shortest z with M z = r (m,), or the least-squares solution.

    The solution of the normal equations is fast but less accurate; the next Newton step corrects the error.
    """
    m, n = M.shape
    if m <= n:
        return M.T @ np.linalg.solve(M @ M.T + REGULARIZATION * np.eye(m), r)
    return np.asarray(np.linalg.solve(M.T @ M + REGULARIZATION * np.eye(n), M.T @ r), dtype=np.float64)


def have_same_orientation(a: ContinuationPoint, tangent_a: Array, b: ContinuationPoint, tangent_b: Array) -> bool:
    """Return whether the curve has the same orientation at `a` and `b`, from the sign of a determinant.

    Args:
        tangent_a, tangent_b: (n + 1,) unit tangents at `a` and `b`.
    """
    product = a.A.T @ b.A + np.outer(tangent_a, tangent_b)
    return bool(has_positive_determinant(product))


def hermite(x: float, chord: Array, a: Array, b: Array) -> Array:
    """Evaluate the cubic curve from 0 to `chord` with end tangents `a` and `b`, at `x` from 0 to 1."""
    return (x**3 - 2 * x**2 + x) * a + (3 * x**2 - 2 * x**3) * chord + (x**3 - x**2) * b


def interpolate_point(
    problem: ContinuationProblem,
    a: ContinuationPoint,
    tangent_a: Array,
    b: ContinuationPoint,
    tangent_b: Array,
    s: float,
) -> Array:
    """Estimate the configuration (nq,) of the curve at s, by a cubic through two points and their tangents."""
    chord = problem.difference(a, b)
    length, sign = float(np.linalg.norm(chord)), np.sign(b.s - a.s)
    low, high = 0.0, 1.0
    for _ in range(40):
        x = 0.5 * (low + high)
        if sign * (a.s + float(hermite(x, chord, length * tangent_a, length * tangent_b)[-1]) - s) < 0.0:
            low = x
        else:
            high = x
    return problem.step(a.q, a.s, hermite(low, chord, length * tangent_a, length * tangent_b))[0]


MAX_STEP, MIN_STEP = 0.25, 1e-5
"""Longest and shortest step, scaled units. Branches that are closer than the shortest step are treated as crossing:
this happens in linkages whose lengths have errors of 1e-10.
"""
MIN_TANGENT_COSINE = 0.97
"""Smallest cosine of the angle between the tangents at both ends of a step."""
MAX_DEVIATION_RATIO = 0.3
"""Largest ratio of the correction after a step to the length of the step."""
MIN_FIRST_STEP = 0.02
"""Shortest first step away from a change point, scaled units; tangents are inaccurate nearer to the change point."""
NEAR_SINGULAR_RATIO = 1e-4
"""Ratio to the largest singular value; if the smallest is below it, tangents are inaccurate. A step should not end so
near a change point.
"""
MIN_S_COMPONENT = 1e-4
"""If a redundant mechanism has no unit direction with at least this component along s, it is at a dead point."""
DEAD_POINT_TOLERANCE = 1e-9
"""A unit direction whose component along s is below this does not change s."""
LIMIT_TOLERANCE = 1e-11
"""Largest violation of a limit that is accepted, scaled units."""
MAX_STEPS = 20_000
"""Default of the maximum number of steps in a call: about 400 rotations of a four-bar's crank, a few seconds. Longer
paths need several calls.
"""
STORED_POINTS = 200
"""Number of last points that stay stored, in addition to the first point."""
ON_CURVE_TOLERANCE = 1e-10
"""Largest residual of a point that counts as on the curve, scaled units."""


@dataclass(slots=True, eq=False)
class Continuation:
    """A continuation: the curve so far, and the state at its end.

    Attributes:
        problem: the equations to follow.
        points: points of the curve; the last one is the present point.
        tangents: unit tangent (n + 1,) at each point.
        rank: rank of A away from change points.
        is_at_change_point: whether the present point is a change point, where A does not determine the tangent.
        change_points: points next to the change points that were passed.
        stop_reason: reason why the continuation has stopped: "dead point", "limit", "stuck", "steps" (maximum
            number of steps reached) or "conflict" (no direction is compatible with all inputs, see `bifurcation.py`);
            empty if it can continue.
        limit_name: name of the joint or dof whose limit has stopped the continuation.
        step_length: desired length of the next step, scaled units.
        sign: -1 if s decreases along the curve, else 1.
        ignore_limits: whether limits are ignored.
        step_count: number of steps so far.
    """

    problem: ContinuationProblem
    points: list[ContinuationPoint]
    tangents: list[Array]
    rank: int
    is_at_change_point: bool = False
    change_points: list[ContinuationPoint] = field(default_factory=list[ContinuationPoint])
    stop_reason: str = ""
    limit_name: str = ""
    step_length: float = MAX_STEP
    sign: float = 1.0
    ignore_limits: bool = False
    step_count: int = 0

    @property
    def present_point(self) -> ContinuationPoint:
        """The present point."""
        return self.points[-1]

    @property
    def tangent(self) -> Array:
        """Tangent (n + 1,) at the present point."""
        return self.tangents[-1]

    @property
    def redundancy(self) -> int:
        """Number of dofs that the driven joints leave free."""
        return self.problem.n + 1 - int(self.problem.frozen_dofs.sum()) - self.rank - 1

    def advance_to(self, goal: float, max_step_length: float = MAX_STEP, max_steps: int = MAX_STEPS) -> None:
        """Follow the curve until s reaches `goal` or the continuation stops.

        The last point may be beyond `goal`; `curve_point` returns the point exactly at `goal`.

        Args:
            max_step_length: maximum step length, scaled units.
            max_steps: maximum number of steps.
        """
        self.step_length = min(self.step_length, max_step_length)
        for _ in range(max_steps):
            if self.stop_reason or self.sign * (self.present_point.s - goal) >= -RESIDUAL_TOLERANCE:
                return
            self._advance(goal, max_step_length)
            self.step_count += 1
            if len(self.points) > 2 * STORED_POINTS:
                del self.points[1:-STORED_POINTS], self.tangents[1:-STORED_POINTS]
        if self.sign * (self.present_point.s - goal) < -RESIDUAL_TOLERANCE:
            self.stop_reason = self.stop_reason or "steps"

    def curve_point(self, s: float) -> ContinuationPoint:
        """Return the point of the stored curve at s.

        If it is not found, the returned point has a large `error` or another s.
        """
        if len(self.points) == 1:
            return self.problem.project_at(self.present_point.q, s)
        last_index = len(self.points) - 1
        k = next((k for k in range(1, last_index) if self.sign * (self.points[k].s - s) >= 0.0), last_index)
        previous_point, next_point, tangent = self.points[k - 1], self.points[k], self.tangents[k - 1]
        length = float(np.linalg.norm(self.problem.difference(previous_point, next_point)))
        estimated_q = interpolate_point(self.problem, previous_point, tangent, next_point, self.tangents[k], s)
        point = self.problem.project_at(estimated_q, s)
        if (
            point.error < ON_CURVE_TOLERANCE
            and float(np.linalg.norm(self.problem.loops.scaled_difference(estimated_q, point.q))) < 0.1 * length + 1e-9
        ):
            return point
        # near a dead point s changes little, so search along the curve
        root = self._find_root(previous_point, tangent, length, lambda point, _: self.sign * (point.s - s))
        point = self.problem.project_at(root.q, s)
        return point if point.error < ON_CURVE_TOLERANCE else root

    # ---- steps ------------------------------------------------------------------------------

    def _advance(self, goal: float, max_step_length: float) -> None:
        present_point, t = self.present_point, self.tangent
        distance = self.sign * (goal - present_point.s) / max(self.sign * float(t[-1]), 1e-3)
        min_length = MIN_FIRST_STEP if self.is_at_change_point else 0.0
        result = self._step(
            max(min(self.step_length, max_step_length, 1.02 * distance + 1e-6), min_length), max_step_length
        )
        if result is None:
            return
        next_point, tangent, h = result
        limit_result = None if self.ignore_limits else self._first_limit(present_point, t, next_point, h, goal)
        if limit_result is not None:
            next_point, tangent = limit_result
        elif not self.redundancy and self.sign * float(tangent[-1]) < 0.0:
            dead_point = self._find_root(present_point, t, h, lambda _, direction: -self.sign * float(direction[-1]))
            if self.sign * (goal - dead_point.s) > RESIDUAL_TOLERANCE:
                self.stop_reason = "dead point"
            next_point, tangent = dead_point, self._tangent(dead_point, t)
        elif self.redundancy and self.sign * float(tangent[-1]) < MIN_S_COMPONENT:
            self.stop_reason = "dead point"
        self.points.append(next_point)
        self.tangents.append(tangent)
        if limit_result is None:
            self._release_frozen_dofs()

    def trace_closed_curve(
        self, max_steps: int, max_step_length: float = MAX_STEP, period: float = math.inf
    ) -> list[ContinuationPoint]:
        """Follow the curve until it closes, also past dead points; return the points at which s is zero again.

        Args:
            max_steps: maximum number of steps.
            max_step_length: maximum step length, scaled units.
            period: values of s that differ by this are equivalent.
        """
        start, zero_points = self.present_point, list[ContinuationPoint]()
        for _ in range(max_steps):
            result = self._step(min(self.step_length, max_step_length), max_step_length)
            if result is None:
                break
            previous_point, (next_point, tangent, _) = self.present_point, result
            self.points, self.tangents = [previous_point, next_point], [self.tangent, tangent]
            low, high = sorted((previous_point.s, next_point.s))
            zero = period * math.floor(high / period) if math.isfinite(period) else 0.0
            if previous_point is not start and low < zero <= high:
                self.sign = 1.0 if next_point.s > previous_point.s else -1.0
                point = self.curve_point(zero)
                if point.error < ON_CURVE_TOLERANCE:
                    if any(self.problem.is_same(point.q, known.q) for known in (start, *zero_points)):
                        break
                    zero_points.append(point)
        return zero_points

    def _step(self, h: float, max_step_length: float) -> tuple[ContinuationPoint, Array, float] | None:
        """Make a step along the branch; return the new point, its tangent and the length of the step.

        Return None and set `stop_reason` if no step is acceptable.

        Args:
            h: desired length; the step may be shorter, or longer if it would end near a change point.
            max_step_length: maximum of `step_length` for the next step.
        """
        present_point, t = self.present_point, self.tangent
        while True:
            end_point, tangent, is_acceptable = self._try_step(present_point, t, h)
            if (
                is_acceptable
                and end_point.relative_singular_value(self.rank) < NEAR_SINGULAR_RATIO
                and not self.redundancy
                and h > 10 * MIN_STEP
            ):
                longer_step = self._try_step(present_point, t, 1.37 * h)
                if longer_step[2] and longer_step[0].relative_singular_value(self.rank) >= NEAR_SINGULAR_RATIO:
                    h, (end_point, tangent, is_acceptable) = 1.37 * h, longer_step
            crossing_point: ContinuationPoint | None = None
            if (
                is_acceptable
                and not self.is_at_change_point
                and not self.redundancy
                and not have_same_orientation(present_point, t, end_point, tangent)
            ):
                crossing_point = self._find_crossing(present_point, t, h)
                is_acceptable = crossing_point is not None
            if is_acceptable:
                break
            h *= 0.5
            if h < MIN_STEP:
                self.stop_reason = "stuck"
                return None
        if crossing_point is not None:
            self.change_points.append(crossing_point)
        self.is_at_change_point = False
        self.step_length = min(1.7 * h, max_step_length) if h >= 0.99 * self.step_length else max(self.step_length, h)
        return end_point, tangent, h

    def _try_step(self, present_point: ContinuationPoint, t: Array, h: float) -> tuple[ContinuationPoint, Array, bool]:
        """Step `h` along `t` and project; return the point, its tangent, and whether the step is acceptable."""
        q, s = self.problem.step(present_point.q, present_point.s, h * t)
        end_point = self.problem.project(q, s, t[None], tolerance=RESIDUAL_TOLERANCE)
        if not end_point.error < ON_CURVE_TOLERANCE:
            return end_point, t, False
        tangent = self._tangent(end_point, t)
        deviation = float(np.linalg.norm(self.problem.difference(present_point, end_point) - h * t))
        return end_point, tangent, deviation < MAX_DEVIATION_RATIO * h and float(tangent @ t) > MIN_TANGENT_COSINE

    def _tangent(self, point: ContinuationPoint, previous_tangent: Array) -> Array:
        """Return the unit tangent (n + 1,) at a point.

        If the driven joints leave dofs free, it is the null vector nearest to the axis of s.
        """
        if self.redundancy > 0:
            t = point.null_space_part(self.sign * self.problem.s_axis, self.rank)
        else:
            M = np.concatenate([point.A, previous_tangent[None]])
            t = least_norm_step(M, np.append(np.zeros(len(point.A)), 1.0))
            t[:-1][self.problem.frozen_dofs] = 0.0
        length = float(np.linalg.norm(t))
        return t / length if length > 1e-12 else previous_tangent

    def _find_crossing(self, present_point: ContinuationPoint, t: Array, h: float) -> ContinuationPoint | None:
        """Return a point next to the change point within a step; None if the curve only bends."""
        low, high = 0.0, h
        middle_point = present_point
        while high - low > MIN_STEP:
            middle_point, tangent, is_acceptable = self._try_step(present_point, t, 0.5 * (low + high))
            if not is_acceptable:
                return None
            if have_same_orientation(present_point, t, middle_point, tangent):
                low = 0.5 * (low + high)
            else:
                high = 0.5 * (low + high)
        return middle_point

    def _find_root(
        self,
        present_point: ContinuationPoint,
        t: Array,
        h: float,
        g: Callable[[ContinuationPoint, Array], float],
        bisect_only: bool = False,
    ) -> ContinuationPoint:
        """Return the point within a step at which g(point, tangent) is zero.

        g is negative at the start of the step and positive at its end.

        Args:
            bisect_only: whether to bisect only, because g is not smooth.
        """
        low, high = 0.0, h
        g_low, g_high = g(present_point, t), np.inf
        point = present_point
        for k in range(60):
            if np.isfinite(g_high) and k % 3 and not bisect_only:
                x = low - g_low * (high - low) / (g_high - g_low) if g_high > g_low else 0.5 * (low + high)
            else:
                x = 0.5 * (low + high)
            point, tangent, _ = self._try_step(present_point, t, x)
            value = g(point, tangent)
            if abs(value) < 1e-14 or high - low < 1e-14 * max(1.0, h):
                break
            if value < 0.0:
                low, g_low = x, value
            else:
                high, g_high = x, value
        return point

    # ---- limits -----------------------------------------------------------------------------

    def _first_limit(
        self, present_point: ContinuationPoint, t: Array, end_point: ContinuationPoint, h: float, goal: float
    ) -> tuple[ContinuationPoint, Array] | None:
        """Return the first point of a step at a limit, and its tangent; None if no limit is crossed before the goal.

        The dof at the limit is frozen if s can still advance without it; otherwise the continuation stops.
        """
        problem, loops = self.problem, self.problem.loops
        violation, name = problem.limit_violation(end_point.q)
        if violation <= LIMIT_TOLERANCE or problem.limit_violation(present_point.q)[0] >= violation:
            return None
        limit_point = self._find_root(
            present_point,
            t,
            h,
            lambda point, _: problem.limit_violation(point.q)[0] - 0.5 * LIMIT_TOLERANCE,
            bisect_only=True,
        )
        if self.sign * (limit_point.s - goal) >= 0.0:
            return None
        name = problem.limit_violation(limit_point.q)[1] or name
        space = loops.mechanism.space
        k = space.q_names.index(name) if name in space.q_names else -1
        if self.redundancy and k >= 0:
            problem.frozen_dofs |= loops.q_index_by_dof == k
            limit_point = problem.project_at(np.clip(limit_point.q, loops.lower, loops.upper), limit_point.s)
            self.rank = limit_point.rank
            if float(np.linalg.norm(limit_point.null_space_part(problem.s_axis, limit_point.rank))) > MIN_S_COMPONENT:
                return limit_point, self._tangent(limit_point, problem.s_axis)
            problem.frozen_dofs &= loops.q_index_by_dof != k
        self.stop_reason, self.limit_name = "limit", name
        return limit_point, self._tangent(limit_point, t)

    def _release_frozen_dofs(self) -> None:
        """Release frozen dofs whose next motion does not lead beyond their limit."""
        problem = self.problem
        if not problem.frozen_dofs.any():
            return
        q, was_frozen = self.present_point.q, problem.frozen_dofs.copy()
        problem.frozen_dofs[:] = False
        free_point = problem.point_at(q, self.present_point.s)
        direction = free_point.null_space_part(problem.s_axis, free_point.rank)
        k = np.maximum(problem.loops.q_index_by_dof, 0)
        exceeds_limit = ((direction[:-1] > 0) & (q[k] >= problem.loops.upper[k] - 1e-9)) | (
            (direction[:-1] < 0) & (q[k] <= problem.loops.lower[k] + 1e-9)
        )
        problem.frozen_dofs[:] = was_frozen & exceeds_limit
        if (problem.frozen_dofs != was_frozen).any():
            present_point = problem.point_at(q, self.present_point.s)
            self.points[-1], self.rank = present_point, present_point.rank
            self.tangents[-1] = self._tangent(present_point, problem.s_axis)
