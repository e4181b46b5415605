"""Numerical continuation of a driven mechanism along a branch of its configurations.

At a point (q, s) all residuals are zero: the loops are closed, and the driven joints have their values at the path
parameter s. The null space of the Jacobian A by (u, s) is the tangent. A step goes along the tangent, and Newton's
method projects back onto the curve, normal to the tangent (E. L. Allgower, K. Georg, "Numerical Continuation Methods",
Springer 1990). s grows while the driven joints approach their goal. Where the curve turns back in s is a dead point.
Where two branches cross, at a change point, A loses rank and the sign of a determinant flips; the continuation passes
it in one straight step from well before to well beyond. The sign also flips between two branches that only come close,
but there the curve bends, and the steps shrink until they follow the bend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanik.closure.driven_joints import DrivenJoints
from mechanik.closure.loop_system import LoopSystem, Mask
from mechanik.spatial.array import Array

RANK_TOLERANCE = 1e-7
"""Singular values below this share of the largest count as zero."""
RESIDUAL_TOLERANCE = 1e-12
"""Scaled units; residuals below this count as zero."""
ROUNDING_TOLERANCE = 1e-15
"""Scaled units; residuals below this are rounding errors."""
TINY = 1e-14
"""Regularization of the normal equations, in squared singular values, for redundant equations."""


class ContinuationPoint:
    """A point (q, s) of a continuation, with the Jacobian there.

    Attributes:
        q: (nq,) configuration.
        s: path parameter, scaled units.
        A: (m, n + 1) derivatives of all residuals, loops first, by u and s; columns of frozen dofs are zero.
        error: largest absolute residual, scaled units.
    """

    __slots__ = ("A", "_decomposed", "error", "q", "s")

    def __init__(self, q: Array, s: float, A: Array, error: float) -> None:
        self.q, self.s, self.A, self.error = q, s, A, error
        self._decomposed: tuple[Array, Array] | None = None

    @property
    def singular_values(self) -> Array:
        """Singular values of A in descending order."""
        return self._decompose()[0]

    @property
    def V(self) -> Array:
        """Right singular vectors of A as rows, (n + 1, n + 1)."""
        return self._decompose()[1]

    @property
    def rank(self) -> int:
        """Rank of A, by `RANK_TOLERANCE`."""
        return (
            int((self.singular_values > RANK_TOLERANCE * max(float(self.singular_values[0]), 1e-12)).sum())
            if len(self.singular_values)
            else 0
        )

    def relative_singular_value(self, rank: int) -> float:
        """Return the singular value number `rank` of A relative to the largest; zero if A has a lower rank."""
        if rank == 0 or not len(self.singular_values):
            return 1.0
        return (
            float(self.singular_values[rank - 1] / self.singular_values[0])
            if rank <= len(self.singular_values)
            else 0.0
        )

    def null_space_part(self, z: Array, rank: int) -> Array:
        """Return the part of `z` (n + 1,) in the null space of A, if A has this rank."""
        N = self.V[rank:]
        return N.T @ (N @ z)

    def _decompose(self) -> tuple[Array, Array]:
        if self._decomposed is None:
            if len(self.A):
                _, sizes, V = np.linalg.svd(self.A, full_matrices=True)
                self._decomposed = np.asarray(sizes), np.asarray(V)
            else:
                self._decomposed = np.zeros(0), np.eye(self.A.shape[1])
        return self._decomposed


class ContinuationProblem:
    """The residual of loops and driven joints as a function of (q, s).

    Attributes:
        loops: the loop equations.
        drives: the driven joints.
        frozen: (nv,) mask of the dofs that are frozen at a limit.
    """

    def __init__(self, loops: LoopSystem, drives: DrivenJoints) -> None:
        self.loops, self.drives = loops, drives
        self.frozen: Mask = np.zeros(loops.n, dtype=np.bool_)
        self._driven = drives.columns()

    @property
    def n(self) -> int:
        """Number of dofs, nv."""
        return self.loops.n

    @property
    def end(self) -> Array:
        """Unit vector (n + 1,) along s."""
        z = np.zeros(self.n + 1)
        z[-1] = 1.0
        return z

    def residual(self, q: Array, s: float) -> tuple[Array, Array]:
        """Return the residual (m,) and its Jacobian A (m, n + 1)."""
        e, J = self.loops.residual(q)
        drive, J_drive, by_s = self.drives.residual(q, s)
        A = np.zeros((len(e) + len(drive), self.n + 1))
        A[: len(e), :-1], A[len(e) :, :-1], A[len(e) :, -1] = J, J_drive, by_s
        A[:, :-1][:, self.frozen] = 0.0
        return np.concatenate([e, drive]), A

    def limit_violation(self, q: Array) -> tuple[float, str]:
        """Return the largest limit violation as `LoopSystem.limit_violation` does, without the driven joints.

        The path of the driven joints starts and ends inside their limits.
        """
        return self.loops.limit_violation(q, self._driven)

    def point_at(self, q: Array, s: float) -> ContinuationPoint:
        e, A = self.residual(q, s)
        return _place(q, s, e, A)

    def step(self, q: Array, s: float, z: Array) -> tuple[Array, float]:
        return self.loops.step(q, z[:-1]), s + float(z[-1])

    def difference(self, a: ContinuationPoint, b: ContinuationPoint) -> Array:
        """Return the step (n + 1,) from `a` to `b`."""
        return np.append(self.loops.scaled_difference(a.q, b.q), b.s - a.s)

    def is_same(self, a: Array, b: Array) -> bool:
        """Return whether two configurations are equal to 1e-6 (rad, m), up to full rotations of hinges."""
        u = self.loops.scaled_difference(a, b) * self.loops.unit
        is_angle = self.loops.mechanism.space.rotates & (self.loops.columns >= 0)
        u = np.where(is_angle, u - 2 * np.pi * np.round(u / (2 * np.pi)), u)
        return bool(np.abs(u).max(initial=0.0) < 1e-6)

    def project(
        self, q: Array, s: float, across: Array, steps: int = 8, enough: float = ROUNDING_TOLERANCE
    ) -> ContinuationPoint:
        """Project (q, s) onto the curve by Newton's method, with least-norm steps normal to `across` (k, n + 1).

        It stops if the largest residual is below `enough` or no longer falls. A step that increases it is not taken.
        """
        e, A = self.residual(q, s)
        error = float(np.abs(e).max(initial=0.0))
        for _ in range(steps):
            if error < enough:
                break
            M = np.concatenate([A, across])
            z = least_norm_step(M, np.append(-e, np.zeros(len(across))))
            z[:-1][self.frozen] = 0.0
            q_new, s_new = self.step(q, s, z)
            e_new, A_new = self.residual(q_new, s_new)
            error_new = float(np.abs(e_new).max(initial=0.0))
            if not error_new < error:
                break
            q, s, e, A = q_new, s_new, e_new, A_new
            error, gained = error_new, error_new < 0.5 * error
            if error < RESIDUAL_TOLERANCE and not gained:
                break
        return _place(q, s, e, A)

    def project_at(self, q: Array, s: float) -> ContinuationPoint:
        """Project onto the curve with constant s."""
        return self.project(q, s, self.end[None])


def _place(q: Array, s: float, e: Array, A: Array) -> ContinuationPoint:
    return ContinuationPoint(q, s, A, float(np.abs(e).max(initial=0.0)))


def least_norm_step(M: Array, r: Array) -> Array:
    """Return the shortest z with M z = r (m,), or the least-squares solution.

    It solves the normal equations, which is fast; the next Newton step corrects the digits that they lose.
    """
    m, n = M.shape
    if m <= n:
        return M.T @ np.linalg.solve(M @ M.T + TINY * np.eye(m), r)
    return np.asarray(np.linalg.solve(M.T @ M + TINY * np.eye(n), M.T @ r), dtype=np.float64)


def same_orientation(a: ContinuationPoint, ta: Array, b: ContinuationPoint, tb: Array) -> bool:
    """Return whether the curve has the same orientation at `a` and `b`, by the sign of a determinant."""
    both = a.A.T @ b.A + np.outer(ta, tb)
    return bool(np.linalg.slogdet(both)[0] > 0.0)


def hermite(x: float, chord: Array, a: Array, b: Array) -> Array:
    """Evaluate at x in 0 to 1 the cubic curve from 0 to `chord` with end tangents `a` and `b`."""
    return (x**3 - 2 * x**2 + x) * a + (3 * x**2 - 2 * x**3) * chord + (x**3 - x**2) * b


def interpolate_point(
    course: ContinuationProblem, a: ContinuationPoint, ta: Array, b: ContinuationPoint, tb: Array, s: float
) -> Array:
    """Estimate the configuration (nq,) of the curve at s, by a cubic through two points and their tangents."""
    chord = course.difference(a, b)
    far, sign = float(np.linalg.norm(chord)), np.sign(b.s - a.s)
    low, high = 0.0, 1.0
    for _ in range(40):
        x = 0.5 * (low + high)
        if sign * (a.s + float(hermite(x, chord, far * ta, far * tb)[-1]) - s) < 0.0:
            low = x
        else:
            high = x
    return course.step(a.q, a.s, hermite(low, chord, far * ta, far * tb))[0]


MAX_STEP, SHORTEST = 0.25, 1e-5
"""Longest and shortest step, scaled units. Branches that are closer than the shortest step are taken to cross: this
happens in linkages whose lengths are off by 1e-10.
"""
SMOOTH = 0.97
"""Smallest cosine of the angle between the tangents at both ends of a step."""
MAX_DEVIATION_RATIO = 0.3
"""Largest correction after a step, as a share of the step."""
AWAY = 0.02
"""Scaled units; shortest first step away from a change point."""
NEAR_SINGULAR = 1e-4
"""Relative singular value below which tangents are inaccurate; no step ends so near a change point."""
DEAD_POINT_TOLERANCE = 1e-9
"""Shares of a unit direction along s below this count as zero."""
ON_LIMIT = 1e-11
"""Scaled units; violation of a limit that a continuation may have."""
MOST_STEPS = 20_000
"""Maximum number of steps: about 400 rotations of a four-bar's crank, a few seconds. Longer paths take several."""
KEPT = 200
"""Number of last points to store, besides the first."""
ON_CURVE_TOLERANCE = 1e-10
"""Scaled units; points with smaller residuals are on the curve."""


@dataclass(slots=True, eq=False)
class Continuation:
    """A continuation: the curve followed so far, and its state.

    Attributes:
        problem: the equations to follow.
        points: points of the curve; the last one is the present point.
        headings: tangent (n + 1,) at each point.
        rank: rank of A away from change points.
        is_at_change_point: whether the present point is a change point, so that only its heading defines the tangent.
        change_points: points next to the change points that were passed.
        stop_reason: why it cannot go on: "dead point", "limit", "stuck", "conflict" or "steps" (step limit reached);
            empty if it can.
        limit: name of the joint or dof whose limit stopped it.
        step_length: maximum length of the next step, scaled units.
        sign: -1 if s falls along the curve, else 1.
        ignore_limits: whether limits are ignored.
        step_count: number of steps taken.
    """

    problem: ContinuationProblem
    points: list[ContinuationPoint]
    headings: list[Array]
    rank: int
    is_at_change_point: bool = False
    change_points: list[ContinuationPoint] = field(default_factory=list[ContinuationPoint])
    stop_reason: str = ""
    limit: str = ""
    step_length: float = MAX_STEP
    sign: float = 1.0
    ignore_limits: bool = False
    step_count: int = 0

    @property
    def here(self) -> ContinuationPoint:
        """The present point."""
        return self.points[-1]

    @property
    def heading(self) -> Array:
        """Tangent (n + 1,) at the present point."""
        return self.headings[-1]

    @property
    def redundancy(self) -> int:
        """Number of dofs that the driven joints leave free."""
        return self.problem.n + 1 - int(self.problem.frozen.sum()) - self.rank - 1

    def advance_to(self, goal: float, longest: float = MAX_STEP, most: int = MOST_STEPS) -> None:
        """Follow the curve until s reaches `goal`, or it stops; `at` gives the point exactly at `goal`.

        Args:
            longest: maximum step length, scaled units.
            most: maximum number of steps.
        """
        self.step_length = min(self.step_length, longest)
        for _ in range(most):
            if self.stop_reason or self.sign * (self.here.s - goal) >= -RESIDUAL_TOLERANCE:
                return
            self._advance(goal, longest)
            self.step_count += 1
            if len(self.points) > 2 * KEPT:
                del self.points[1:-KEPT], self.headings[1:-KEPT]
        if self.sign * (self.here.s - goal) < -RESIDUAL_TOLERANCE:
            self.stop_reason = self.stop_reason or "steps"

    def at(self, s: float) -> ContinuationPoint:
        """Return the point of the stored curve at s; if there is none, its `error` is large."""
        if len(self.points) == 1:
            return self.problem.project_at(self.here.q, s)
        last = len(self.points) - 1
        k = next((k for k in range(1, last) if self.sign * (self.points[k].s - s) >= 0.0), last)
        before, after, t = self.points[k - 1], self.points[k], self.headings[k - 1]
        far = float(np.linalg.norm(self.problem.difference(before, after)))
        guess = interpolate_point(self.problem, before, t, after, self.headings[k], s)
        there = self.problem.project_at(guess, s)
        if (
            there.error < ON_CURVE_TOLERANCE
            and float(np.linalg.norm(self.problem.loops.scaled_difference(guess, there.q))) < 0.1 * far + 1e-9
        ):
            return there
        # s changes little here, so search along the curve
        found = self._seek(before, t, far, lambda place, _: self.sign * (place.s - s))
        there = self.problem.project_at(found.q, s)
        return there if there.error < ON_CURVE_TOLERANCE else found

    # ---- steps ------------------------------------------------------------------------------

    def _advance(self, goal: float, longest: float) -> None:
        here, t = self.here, self.heading
        ahead = self.sign * (goal - here.s) / max(self.sign * float(t[-1]), 1e-3)
        least = AWAY if self.is_at_change_point else 0.0  # a short step would end where tangents are inaccurate
        made = self._step(max(min(self.step_length, longest, 1.02 * ahead + 1e-6), least), longest)
        if made is None:
            return
        there, turned, h = made
        limit = None if self.ignore_limits else self._first_limit(here, t, there, h, goal)
        if limit is not None:
            there, turned = limit
        elif not self.redundancy and self.sign * float(turned[-1]) < 0.0:
            top = self._seek(here, t, h, lambda _, way: -self.sign * float(way[-1]))
            if self.sign * (goal - top.s) > RESIDUAL_TOLERANCE:
                self.stop_reason = "dead point"
            there, turned = top, self._direction(top, t)
        elif self.redundancy and self.sign * float(turned[-1]) < 1e-4:
            self.stop_reason = "dead point"
        self.points.append(there)
        self.headings.append(turned)
        if limit is None:
            self._release()

    def trace_closed_curve(
        self, most: int, longest: float = MAX_STEP, period: float = math.inf
    ) -> list[ContinuationPoint]:
        """Follow the curve, also where s turns back, until it closes; return the points at which s is zero again.

        Args:
            most: maximum number of steps.
            longest: maximum step length, scaled units.
            period: values of s that differ by this are equivalent.
        """
        start, found = self.here, list[ContinuationPoint]()
        for _ in range(most):
            made = self._step(min(self.step_length, longest), longest)
            if made is None:
                break
            before, (there, turned, _) = self.here, made
            self.points, self.headings = [before, there], [self.heading, turned]
            low, high = sorted((before.s, there.s))
            zero = period * math.floor(high / period) if math.isfinite(period) else 0.0
            if before is not start and low < zero <= high:
                self.sign = 1.0 if there.s > before.s else -1.0
                place = self.at(zero)
                if place.error < ON_CURVE_TOLERANCE:
                    if any(self.problem.is_same(place.q, one.q) for one in (start, *found)):
                        break
                    found.append(place)
        return found

    def _step(self, h: float, longest: float) -> tuple[ContinuationPoint, Array, float] | None:
        """Take a step of length `h` or less along the branch; return the new point, its tangent and the length."""
        here, t = self.here, self.heading
        while True:
            there, turned, fine = self._try(here, t, h)
            if (
                fine
                and there.relative_singular_value(self.rank) < NEAR_SINGULAR
                and not self.redundancy
                and h > 10 * SHORTEST
            ):
                beyond = self._try(here, t, 1.37 * h)
                if beyond[2] and beyond[0].relative_singular_value(self.rank) >= NEAR_SINGULAR:
                    h, (there, turned, fine) = 1.37 * h, beyond
            crossing: ContinuationPoint | None = None
            if (
                fine
                and not self.is_at_change_point
                and not self.redundancy
                and not same_orientation(here, t, there, turned)
            ):
                crossing = self._crossing(here, t, h)
                fine = crossing is not None
            if fine:
                break
            h *= 0.5
            if h < SHORTEST:
                self.stop_reason = "stuck"
                return None
        if crossing is not None:
            self.change_points.append(crossing)
        self.is_at_change_point = False
        self.step_length = min(1.7 * h, longest) if h >= 0.99 * self.step_length else max(self.step_length, h)
        return there, turned, h

    def _try(self, here: ContinuationPoint, t: Array, h: float) -> tuple[ContinuationPoint, Array, bool]:
        """Step `h` along `t` and project; return the point, its tangent, and whether the step is acceptable."""
        q, s = self.problem.step(here.q, here.s, h * t)
        there = self.problem.project(q, s, t[None], enough=RESIDUAL_TOLERANCE)
        if not there.error < ON_CURVE_TOLERANCE:
            return there, t, False
        turned = self._direction(there, t)
        aside = float(np.linalg.norm(self.problem.difference(here, there) - h * t))
        return there, turned, aside < MAX_DEVIATION_RATIO * h and float(turned @ t) > SMOOTH

    def _direction(self, place: ContinuationPoint, before: Array) -> Array:
        """Return the unit tangent (n + 1,) at a point.

        If dofs are free, it is the null vector nearest to the axis of s.
        """
        if self.redundancy > 0:
            t = place.null_space_part(self.sign * self.problem.end, self.rank)
        else:
            M = np.concatenate([place.A, before[None]])
            t = least_norm_step(M, np.append(np.zeros(len(place.A)), 1.0))
            t[:-1][self.problem.frozen] = 0.0
        size = float(np.linalg.norm(t))
        return t / size if size > 1e-12 else before

    def _crossing(self, here: ContinuationPoint, t: Array, h: float) -> ContinuationPoint | None:
        """Return a point next to the change point within a step; None if the curve only bends there."""
        low, high = 0.0, h
        middle = here
        while high - low > SHORTEST:
            middle, turned, fine = self._try(here, t, 0.5 * (low + high))
            if not fine:
                return None
            if same_orientation(here, t, middle, turned):
                low = 0.5 * (low + high)
            else:
                high = 0.5 * (low + high)
        return middle

    def _seek(
        self,
        here: ContinuationPoint,
        t: Array,
        h: float,
        g: Callable[[ContinuationPoint, Array], float],
        halves: bool = False,
    ) -> ContinuationPoint:
        """Return the point within a step at which g(point, tangent) is zero.

        g is negative at the start of the step and positive at its end.

        Args:
            halves: whether to bisect only, because g is not smooth.
        """
        low, high = 0.0, h
        g_low, g_high = g(here, t), np.inf
        place = here
        for k in range(60):
            if np.isfinite(g_high) and k % 3 and not halves:
                x = low - g_low * (high - low) / (g_high - g_low) if g_high > g_low else 0.5 * (low + high)
            else:
                x = 0.5 * (low + high)
            place, turned, _ = self._try(here, t, x)
            value = g(place, turned)
            if abs(value) < 1e-14 or high - low < 1e-14 * max(1.0, h):
                break
            if value < 0.0:
                low, g_low = x, value
            else:
                high, g_high = x, value
        return place

    # ---- limits -----------------------------------------------------------------------------

    def _first_limit(
        self, here: ContinuationPoint, t: Array, there: ContinuationPoint, h: float, goal: float
    ) -> tuple[ContinuationPoint, Array] | None:
        """Return the first point of a step at a limit, and its tangent; None if no limit is crossed.

        The dof at the limit is frozen if free dofs remain; else the continuation stops.
        """
        course, loops = self.problem, self.problem.loops
        worst, name = course.limit_violation(there.q)
        if worst <= ON_LIMIT or course.limit_violation(here.q)[0] >= worst:
            return None
        at = self._seek(here, t, h, lambda place, _: course.limit_violation(place.q)[0] - 0.5 * ON_LIMIT, halves=True)
        if self.sign * (at.s - goal) >= 0.0:
            return None
        name = course.limit_violation(at.q)[1] or name
        space = loops.mechanism.space
        k = space.q_names.index(name) if name in space.q_names else -1
        if self.redundancy and k >= 0:
            course.frozen |= loops.columns == k
            at = course.project_at(np.clip(at.q, loops.lower, loops.upper), at.s)
            self.rank = at.rank
            if float(np.linalg.norm(at.null_space_part(course.end, at.rank))) > NEAR_SINGULAR:
                return at, self._direction(at, course.end)
            course.frozen &= loops.columns != k
        self.stop_reason, self.limit = "limit", name
        return at, self._direction(at, t)

    def _release(self) -> None:
        """Release frozen dofs that would move inside their limits."""
        course = self.problem
        if not course.frozen.any():
            return
        q, before = self.here.q, course.frozen.copy()
        course.frozen[:] = False
        free = course.point_at(q, self.here.s)
        way = free.null_space_part(course.end, free.rank)
        k = np.maximum(course.loops.columns, 0)
        out = ((way[:-1] > 0) & (q[k] >= course.loops.upper[k] - 1e-9)) | (
            (way[:-1] < 0) & (q[k] <= course.loops.lower[k] + 1e-9)
        )
        course.frozen[:] = before & out
        if (course.frozen != before).any():
            here = course.point_at(q, self.here.s)
            self.points[-1], self.rank = here, here.rank
            self.headings[-1] = self._direction(here, course.end)
