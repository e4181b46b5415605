"""Certified Newton step: move the driven joints a small distance in one step that provably stays on the branch.

The passive joints follow the tangent, then Newton's method closes the loops. Let J be the derivatives of the residual
by the passive joints and B the inverse of J. If B (J' - J) is smaller than 1 at all points on and around the step, the
map u - B residual(u) is a contraction: it has one fixed point for each value of the driven joints, so exactly one
branch leads from the start to the end (Banach; L. V. Kantorovich 1948). J' is evaluated at the end of the tangent step.
Between and around, its change is bounded by the curvature of joint motion: no lever is longer than a column of J.
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
from mechanik.kernels.problem_layout import BLOCK_INTS, COLUMN_COUNT
from mechanik.objectives.joint_goals import joint_targets_by_name
from mechanik.objectives.relation import RelationKind
from mechanik.problem.compilation import LENGTH_UNIT_SHARE
from mechanik.solver.solution import Status
from mechanik.spatial.array import Array
from mechanik.validation import format_count

Indices = npt.NDArray[np.int64]

FARTHEST = 0.25
"""Scaled units; maximum length of a step, the same as in a continuation."""
SURE = 0.5
"""Maximum bound of B (J' - J). Smaller is safer and needs more steps."""
SOUND = 1e3
"""Maximum of the norm of J times the norm of B; above it a change point or a dead point is near."""
FITS = 1e-6
"""Maximum share of the inputs' motion that the passive joints cannot compensate; above it the inputs are dependent."""
MOST = 6
"""Maximum number of Newton iterations; two or three are typical."""
MOST_PIECES = 16
"""Maximum number of pieces; a motion that needs more is left to the continuation."""


class _TooLongError(Exception):
    """A step that cannot be certified, but a shorter one may be.

    Attributes:
        times: estimated number of pieces that it needs.
    """

    def __init__(self, times: float) -> None:
        self.times = times


class NewtonStep:
    """Certified step for a set of driven joints that are single values of q.

    Attributes:
        loops: the loop equations.
        names: names of the driven joints.
        k: (m,) their indices into q.
    """

    def __init__(self, loops: LoopSystem, names: tuple[str, ...], k: Indices, parts: list[LoopGroup]) -> None:
        self.loops, self.names, self.k = loops, names, k
        space, lower, upper = loops.mechanism.space, loops.lower, loops.upper
        self._v = np.array([int(np.flatnonzero(loops.columns == one)[0]) for one in k])
        self._unit = np.where(space.rotates[self._v], 1.0, loops.size)
        self._parts = [_PartStep(loops, part, k) for part in parts]
        has_limit = np.isfinite(lower) | np.isfinite(upper)
        self._limited = np.array([i for i in space.scalars_q.tolist() if has_limit[i]], dtype=np.int64)
        self._lower, self._upper = lower[self._limited], upper[self._limited]
        self._follows = np.array([i not in k for i in self._limited.tolist()], dtype=np.float64)
        shut = f"{format_count(len(loops.mechanism.closures), 'loop')} shut"
        self._text = f"{len(names)} of {format_count(len(names), 'drive')} met, {shut}"

    def solve(self, values: Mapping[str, Array], q: Array, heading: Array) -> Assembly | None:
        """Move the driven joints from their values in `q` (nq,) to `values`, in pieces if necessary.

        Returns:
            The assembly; None if the step cannot be certified, so that a continuation is necessary.
        """
        wanted = np.concatenate([*values.values()])
        if len(wanted) != len(self.k) or not self._is_inside(q, 0.0):
            return None
        start, along = q[self.k], heading
        way = (wanted - start) / self._unit
        far, pieces, done = _size(way), 1, 0
        if far > FARTHEST * MOST_PIECES / 4:
            return None
        while done < pieces:
            there = wanted if done + 1 == pieces else start + (done + 1) / pieces * (wanted - start)
            try:
                made = self._piece(q, there, way / pieces)
            except _TooLongError as why:
                if not pieces * why.times <= MOST_PIECES:
                    return None
                finer = 1 << max(1, math.ceil(math.log2(why.times)))
                pieces, done = finer * pieces, finer * done
                continue
            if made is None:
                return None
            (q, along), done = made, done + 1
        if far > RESIDUAL_TOLERANCE:
            heading = along * (pieces / far)
        errors = dict.fromkeys(self.names, 0.0)
        return Assembly(self.loops.mechanism, values, q, True, Status.CONVERGED, self._text, errors, (), heading)

    def _piece(self, q: Array, wanted: Array, way: Array) -> tuple[Array, Array] | None:
        """Move the driven joints from `q` to `wanted` (m,); None if a continuation is necessary.

        Args:
            way: (m,) motion of the driven joints, scaled units.

        Returns:
            q (nq,), and the motion (nv,) of all joints at the end for the whole of `way`, m and rad.
        """
        end, along, aside = q.copy(), np.zeros(self.loops.n), 0.0
        end[self.k] = wanted
        along[self._v] = way * self._unit
        for part in self._parts:
            bulge = part.go(q, end, way, along)
            if bulge is None:
                return None
            aside = max(aside, bulge)
        is_inside = self._is_inside(end, aside) and not (
            self.loops.limit_relations and self.loops.limit_violation(end)[0] > 0.0
        )
        return (end, along) if is_inside else None

    def _is_inside(self, q: Array, margin: float) -> bool:
        """Return whether the driven joints are inside their limits, and all other joints are by a margin (m, rad)."""
        if not len(self._limited):
            return True
        here, spare = q[self._limited], margin * self._follows
        return bool((here - spare >= self._lower).all() and (here + spare <= self._upper).all())


class _PartStep:
    """Certified step for one group of loops that share dofs.

    All columns are in scaled units. Derivatives at the end of a step are reused by the next step.
    """

    def __init__(self, loops: LoopSystem, part: LoopGroup, k: Indices) -> None:
        problem, space, mine = part.problem, loops.mechanism.space, part.v.tolist()
        driven = {int(np.flatnonzero(loops.columns == one)[0]): i for i, one in enumerate(k.tolist())}
        self._problem, self._x = problem, problem.x[: space.nq]
        self._rows = None if len(part.rows) == len(problem.residual) else part.rows
        self._d = np.array([c for c, v in enumerate(mine) if v in driven], dtype=np.int64)
        self._f = np.array([c for c, v in enumerate(mine) if v not in driven], dtype=np.int64)
        self._drives = np.array([driven[v] for v in mine if v in driven], dtype=np.int64)
        self._unit, self._v = problem.scale[self._f], part.v[self._f]
        self._longest = float(self._unit.max(initial=0.0))
        numbers = [c for v, c in enumerate(loops.columns.tolist()) if c >= 0 and v in mine]
        for first, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
            numbers += range(first, first + 4) if v in mine else ()
        self._numbers = np.array(numbers, dtype=np.int64)
        self._curves, self._levers = _curving(loops, part)
        self._at: bytes | None = None
        self._by_drives, self._by_followers = np.zeros((0, 0)), np.zeros((0, 0))
        self._inverse: Array | None = None

    def go(self, q: Array, end: Array, way: Array, along: Array) -> float | None:
        """Close the loops with the driven joints of this group at their values; None if a continuation is necessary.

        Args:
            q: (nq,) start.
            end: (nq,) configuration with the driven joints at their values; the values of this group are written into
                it.
            way: (m,) motion of all driven joints, scaled units.
            along: (nv,) output: motion of the passive joints at the end, m and rad.

        Returns:
            Upper bound of the distance (m, rad) of the passive joints from their straight path.

        Raises:
            _TooLongError: if a shorter step may be certified.
        """
        problem, f = self._problem, self._f
        if self._at != q[self._numbers].tobytes():
            self._x[:] = q
            problem.evaluate()
            if not _size(self._errors()) < RESIDUAL_TOLERANCE:
                return None
            self._learn(q)
        way = way[self._drives]
        if not (gone := _size(way)) > 0.0:
            return 0.0
        if self._inverse is None:
            self._inverse = _inverse(self._by_followers)
        if self._inverse is None or not _size(self._inverse) * _size(self._by_followers) < SOUND:
            return None
        push = self._by_drives.dot(way)
        ahead = -self._inverse.dot(push)
        left = push + self._by_followers.dot(ahead)
        far = math.hypot(_size(ahead), gone)
        if not _size(left) <= FITS * _size(push):
            return None
        if not far < FARTHEST:
            raise _TooLongError(far / FARTHEST)
        self._x[:] = end
        problem.step.fill(0.0)
        problem.step[f] = ahead
        problem.advance()
        by_drives, by_followers = self._derivatives()
        B = _inverse(by_followers)
        if B is None:
            raise _TooLongError(2.0)
        size, inverse = math.hypot(_size(by_followers), _size(by_drives)), _size(B)
        bend, aside, error = _size(B.dot(by_followers - self._by_followers)), 0.0, math.inf
        if not (bend < SURE and size * inverse < SOUND):
            raise _TooLongError(max(2.0, bend / SURE))
        for _ in range(MOST):
            e = self._errors()
            last, error = error, _size(e)
            if error < ROUNDING_TOLERANCE or not error < 0.5 * last:
                break
            u = B.dot(e)
            aside += _size(u)
            problem.step[f] = -u
            problem.advance()
        # J' was evaluated at the end only: bound its change along the step, and around it, where another branch may be
        around = inverse * self._curves * (size + self._levers) * (2.0 * aside + far * far / 8.0)
        if not (error < RESIDUAL_TOLERANCE and bend + around < SURE):
            times = (bend + math.sqrt(bend * bend + 4.0 * SURE * around)) / (2.0 * SURE)  # `around` is quadratic
            raise _TooLongError(max(1.0, times))
        end[self._numbers] = self._x[self._numbers]
        self._learn(end)
        self._inverse = B = _inverse(self._by_followers)
        if B is None:
            raise _TooLongError(2.0)
        along[self._v] = -B.dot(self._by_drives.dot(way)) * self._unit
        return aside * self._longest

    def _learn(self, q: Array) -> None:
        """Store the derivatives at the problem's present configuration `q`."""
        self._at, self._inverse = q[self._numbers].tobytes(), None
        self._by_drives, self._by_followers = self._derivatives()

    def _derivatives(self) -> tuple[Array, Array]:
        """Return copies of the derivatives of the residual by driven and by passive joints."""
        J = self._problem.jacobian if self._rows is None else self._problem.jacobian[self._rows]
        return J.take(self._d, 1), J.take(self._f, 1)

    def _errors(self) -> Array:
        return self._problem.residual if self._rows is None else self._problem.residual[self._rows]


def _curving(loops: LoopSystem, part: LoopGroup) -> tuple[float, float]:
    """Return bounds for the change of J per unit step: a factor of J, and the levers that J does not show.

    A second derivative is a rotated column, at most as long as the column, and a unit step rotates it by at most the
    square root of the number of dofs of the loop. A residual may leave out directions, and columns of mimic joints may
    cancel, so the levers of all joints (scaled units) are added; gear ratios lengthen them.
    """
    blocks = part.problem.subproblem.packed.tables["blocks"].reshape(-1, BLOCK_INTS)
    ratios = [abs(one.ratio) for joint in loops.mechanism.joints.values() for one in joint.couplings]
    gear = max(1.0, *ratios) if ratios else 1.0
    return 2.0 * gear * math.sqrt(blocks[:, COLUMN_COUNT].max(initial=1)), gear * math.sqrt(
        len(part.v)
    ) / LENGTH_UNIT_SHARE


def newton_step_for(loops: LoopSystem, values: Mapping[str, Array]) -> NewtonStep | None:
    """Return the cached certified step for these driven joints; None if only a continuation is possible."""
    names = tuple(values)
    if names not in loops.cache:
        if len(loops.cache) > 16:
            loops.cache.clear()
        loops.cache[names] = _make(loops, values)
    found = loops.cache[names]
    return found if isinstance(found, NewtonStep) else None


def _make(loops: LoopSystem, values: Mapping[str, Array]) -> NewtonStep | None:
    mechanism = loops.mechanism
    curved = any(len(factors) > 1 for one in loops.relations for _, factors in one.polynomials)
    if not values or loops.groups is None or curved:  # nonlinear joint constraints have no known bound
        return None
    k: list[int] = []
    for name, numbers in values.items():
        for probe in (numbers, numbers + 1.0):  # a mimic joint maps to its leader, with other values
            relations = [aim.relation for aim in joint_targets_by_name(mechanism, {name: probe})]
            if any(one.kind is not RelationKind.JOINT_VALUE for one in relations):
                return None
            if [float(one.target[0]) for one in relations] != probe.tolist():
                return None
        k += [mechanism.space.q_names.index(one.dof_name) for one in relations]
    if len(set(k)) < len(k):
        return None
    return NewtonStep(loops, tuple(values), np.array(k, dtype=np.int64), loops.groups)


def _inverse(J: Array) -> Array | None:
    """Return the (pseudo-)inverse (n, m) of `J` (m, n); None if it has no full column rank.

    It solves the normal equations if there are more rows than columns, as the continuation does.
    """
    m, n = J.shape
    if not 0 < n <= m:
        return None
    try:
        squares: Any = np.linalg.inv(J.T.dot(J) if m > n else J)
    except np.linalg.LinAlgError:
        return None
    return squares.dot(J.T) if m > n else squares


def _size(M: Array) -> float:
    flat = M.ravel()
    return math.sqrt(flat.dot(flat))
