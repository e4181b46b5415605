"""The space of a plan: limits, collision checks, distances, and segments along which loops stay closed.

`Retraction` projects a configuration onto the closed loops by minimum-norm Newton steps, and steers along them. It is
compiled, unless a residual is a Python function. Distances are measured in planning units: 1 rad or 0.5 m is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.closure.loop_system import LoopGroup, LoopSystem
from mechanik.collision import Collider
from mechanik.collision.collision_tables import CollisionTables, kernel
from mechanik.kernels.distance import collision_layout as at
from mechanik.model import Mechanism
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module
from mechanik.validation import read_only

retraction_kernel = kernel_module("planning.loop_retraction")

Flags = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.int64]

SHUT = 1e-10
"""rad, or share of the mechanism's size: loops with smaller residuals count as closed."""
STEPS = 25
"""Largest number of Newton steps of a projection."""
LONGEST = 0.5
"""rad, or share of the mechanism's size: longest Newton step."""
ROUNDING = 1e-12
"""Regularization of the Gram matrix, because residuals may be redundant."""
MAX_STEP_RATIO = 2.0
"""Largest ratio by which closing the loops may lengthen a step; a longer step has left its branch."""
MIN_PROGRESS_RATIO = 0.02
"""Ratio to a step: smallest approach to the target for which steering continues."""


@dataclass(frozen=True, slots=True, eq=False)
class _Loop:
    """Kernel arguments for a group of loops that share dofs."""

    ints: IndexArray
    floats: Array
    rows: IndexArray
    free: Array
    numbers: IndexArray

    @property
    def arrays(self) -> tuple[IndexArray, Array, IndexArray, Array, IndexArray]:
        return self.ints, self.floats, self.rows, self.free, self.numbers


class Retraction:
    """Projection of configurations onto the closed loops by minimum-norm steps.

    Args:
        loops: the loops of the mechanism.
        free: (nv,) dofs that may move.

    Attributes:
        can_steer: whether `steer` can be used: all loops are in one group, and there are no spherical joints.
    """

    def __init__(self, loops: LoopSystem, free: Flags) -> None:
        self._loops, self._free = loops, free
        self._compiled: list[_Loop] | None = None
        if loops.groups is not None and not any(
            part.problem.subproblem.packed.sizes["functions"] for part in loops.groups
        ):
            self._compiled = [_loop(loops, part, free) for part in loops.groups if len(part.rows)]
        self.can_steer = len(self._compiled or ()) == 1 and not (
            loops.limit_relations or len(loops.mechanism.space.quaternions_q)
        )

    def __call__(self, q: Array) -> Array | None:
        """A configuration (nq,) near q with closed loops, regardless of limits; None if there is none nearby."""
        if self._compiled is None:
            return self._by_rows(q)
        there, done = self.project_all(q[None])
        return there[0] if done[0] else None

    def project_all(self, q: Array) -> tuple[Array, Flags]:
        """Project all of q (N, nq): configurations (N, nq), and whether each projection succeeded (N,)."""
        if self._compiled is None:
            found = [self._by_rows(one) for one in q]
            there = np.array([old if new is None else new for new, old in zip(found, q, strict=True)]).reshape(q.shape)
            return there, np.array([one is not None for one in found], dtype=np.bool_)
        there = np.array(q, dtype=np.float64)
        done = np.asarray(np.isfinite(there).all(axis=1), dtype=np.bool_)
        for loop in self._compiled:
            retraction_kernel.retract(*loop.arrays, there, done)
        return there, done

    def steer(self, a: Array, b: Array, limits: tuple[Array, Array], unit: Array, step: float, most: int
    ) -> Array:  # fmt: skip
        """Configurations (N, nq) from a towards b (nq,) along the loops, as far as loops, limits and `most` allow.

        Args:
            limits: lower and upper, (nq,) each.
            unit: (nq,) length of a planning unit, rad or m.
            step: planning units: largest distance of two configurations before loops are closed.
            most: largest number of configurations.
        """
        assert self._compiled is not None
        out = np.empty((most, len(a)))
        ends = np.array(a), np.array(b), np.array(limits[0]), np.array(limits[1])
        return out[
            : retraction_kernel.walk_along_loops(
                *self._compiled[0].arrays, *ends, unit, step, MAX_STEP_RATIO, MIN_PROGRESS_RATIO, out
            )
        ]

    def _by_rows(self, q: Array) -> Array | None:
        """Project q (nq,) by Newton's method in Python."""
        for _ in range(STEPS):
            e, J = self._loops.residual(q)
            if float(np.abs(e).max()) < SHUT:
                return q
            B = _inverse(J * self._free)
            if B is None:
                return None
            u = B @ e
            q = self._loops.step(q, -u * min(1.0, LONGEST / max(float(np.sqrt(u @ u)), 1e-300)))
        return None


def _inverse(J: Array) -> Array | None:
    """Matrix (n, m) that maps a residual to its minimum-norm step, for J (m, n); None if it is singular."""
    squares = J @ J.T
    squares.flat[:: len(J) + 1] += ROUNDING  # residuals may be redundant
    try:
        return J.T @ np.linalg.inv(squares)
    except np.linalg.LinAlgError:
        return None


def _loop(loops: LoopSystem, part: LoopGroup, free: Flags) -> _Loop:
    packed = part.problem.subproblem.packed
    return _Loop(packed.ints, packed.floats, part.rows, free[part.v].astype(np.float64), _numbers(loops, part))


def _numbers(loops: LoopSystem, part: LoopGroup) -> npt.NDArray[np.int64]:
    """Indices in q of the dofs of a group of loops."""
    space, mine = loops.mechanism.space, set(part.v.tolist())
    found = [c for v, c in enumerate(loops.columns.tolist()) if c >= 0 and v in mine]
    for first, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
        found += range(first, first + 4) if v in mine else ()
    return np.array(found, dtype=np.int64)


SAMPLES = 64
"""Number of random configurations from which the collision frequency of each group of pairs is estimated."""


def collision_scene(collider: Collider, clearance: float, lower: Array, upper: Array) -> tuple[Any, ...]:
    """Collision arguments of the search kernels, ordered for configurations between lower and upper (nq,)."""
    tables = collider._current_pairs().tables
    guards = _ordered(tables, lower.tobytes(), upper.tobytes())
    return (*tables.arrays[:7], guards, tables.partners, at.QUERY_IS_FREE, clearance)


@lru_cache(maxsize=8)
def _ordered(tables: CollisionTables, lower: bytes, upper: bytes) -> npt.NDArray[np.int64]:
    """Groups of pairs (g, 5), the most frequent collision first: a check ends at the first collision."""
    low, high = np.frombuffer(lower), np.frombuffer(upper)
    q = low + (high - low) * np.random.default_rng(0).random((SAMPLES, len(low)))
    out, hits = np.empty((SAMPLES, 1)), np.zeros(len(tables.pair_groups))
    for k in range(len(hits)):
        one = tables.pair_groups[k : k + 1]
        kernel.query(
            *tables.arrays[:7],
            one,
            tables.partners,
            q,
            at.QUERY_IS_FREE,
            0.0,
            out,
            np.empty((0, 0, 0)),
            np.zeros(1, int),
        )
        hits[k] = np.count_nonzero(out == 0.0)
    return tables.pair_groups[np.argsort(-hits, kind="stable")]


Indices = npt.NDArray[np.int64]

SEARCH_CHECK_STEP = 0.06
"""rad, and half of it in m: distance of collision checks during the search. Results are checked more finely."""
FIRST = 8
"""Number of configurations of a segment that are checked before all others."""


@lru_cache(maxsize=512)
def _shares(count: int) -> Array:
    """Fractions (count, 1), evenly spaced from 1 / count to 1."""
    return read_only(np.arange(1.0, count + 1.0)[:, None] / count)


class PlanningSpace:
    """The configurations a plan may use, and the segments between them.

    Attributes:
        mechanism: the mechanism.
        loops: its loops, as a system of residuals.
        collider: collision checks; None: nothing is avoided.
        clearance: m, with a margin for motion between two checks.
        lower, upper: (nq,) joint limits.
        free: (nv,) dofs that may move.
        moving: indices of q that may change.
        unit: (nv,) length of a planning unit: 1 rad or 0.5 m.
        has_loops: whether there are loops or joint constraints.
        is_euclidean: whether every q within the limits is valid: no loops, joint constraints, spherical joints or cone
            limits.
        step: planning units: distance of collision checks.
        check_count: number of configurations checked so far.
    """

    def __init__(
        self, mechanism: Mechanism, loops: LoopSystem, collider: Collider | None, clearance: float, lower: Array,
        upper: Array, free: Flags,
    ) -> None:  # fmt: skip
        self.mechanism, self.loops, self.collider, self.clearance = mechanism, loops, collider, clearance
        self.lower, self.upper, self.free = lower, upper, free
        space = mechanism.space
        self.unit = np.where(space.rotates, 1.0, 0.5)
        self._has_balls = bool(len(space.quaternions_q))
        self.has_loops = bool(loops.relations)
        self.is_euclidean = not (self.has_loops or loops.limit_relations or self._has_balls)
        self.check_count, self.step = 0, SEARCH_CHECK_STEP
        single = [int(q) for q, v in zip(space.scalars_q, space.scalars_v, strict=True) if free[v]]
        balls = [
            int(q) + k
            for q, v in zip(space.quaternions_q, space.quaternions_v, strict=True)
            if free[v]
            for k in range(4)
        ]
        self.moving: Indices = np.array(sorted(single + balls), dtype=np.int64)
        self._scene: tuple[Any, ...] | None = None
        self._retract = Retraction(loops, free)

    # ---- configurations ---------------------------------------------------------------------

    def are_free(self, q: Array) -> Flags:
        """Whether each of q (N, nq) keeps the clearance (N,)."""
        self.check_count += len(q)
        if self.collider is None or not len(q):
            return np.ones(len(q), dtype=np.bool_)
        return np.asarray(self.collider.is_free(q, self.clearance), dtype=np.bool_)

    def is_inside(self, q: Array) -> bool:
        """Whether q (nq,) is within all limits, also those of joints that close loops."""
        if not bool(((q >= self.lower - 1e-9) & (q <= self.upper + 1e-9)).all()):
            return False
        return not self.loops.limit_relations or self.loops.limit_violation(q)[0] <= 1e-9

    def project(self, q: Array) -> Array | None:
        """Project q (nq,) onto the closed loops, about to the nearest configuration; None if none is within limits."""
        there, done = self.project_all(q[None])
        return there[0] if done[0] else None

    def project_all(self, q: Array) -> tuple[Array, Flags]:
        """Project all of q (N, nq): configurations (N, nq), and whether each projection succeeded (N,)."""
        if self.is_euclidean:
            return q, np.ones(len(q), dtype=np.bool_)
        q, done = q.copy(), np.ones(len(q), dtype=np.bool_)
        for k in self.mechanism.space.quaternions_q:
            sizes = np.linalg.norm(q[:, k : k + 4], axis=1)
            done &= sizes >= 1e-3
            q[:, k : k + 4] /= np.maximum(sizes, 1e-3)[:, None]
        if self.has_loops:
            q, there = self._retract.project_all(q)
            done &= there
        done &= ((q >= self.lower - 1e-9) & (q <= self.upper + 1e-9)).all(axis=1)
        if self.loops.limit_relations:
            done &= [bool(fine) and self.is_inside(one) for one, fine in zip(q, done, strict=True)]
        return q, done

    def bounds(self, ends: Array) -> tuple[Array, Array]:
        """Lower and upper bounds (nq,) of the search between `ends` (N, nq).

        They contain the ends, which may lie slightly beyond a limit. Without limits: pi or 1 m around all ends.
        Quaternion entries: -1 to 1.
        """
        space = self.mechanism.space
        spare = np.ones(space.nq)
        spare[space.scalars_q] = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
        least, most = ends.min(axis=0), ends.max(axis=0)
        lower = np.where(np.isfinite(self.lower), np.minimum(self.lower, least), least - spare)
        upper = np.where(np.isfinite(self.upper), np.maximum(self.upper, most), most + spare)
        for k in space.quaternions_q:
            lower[k : k + 4], upper[k : k + 4] = -1.0, 1.0
        return lower, upper

    def scene(self) -> tuple[Any, ...] | None:
        """Collision arguments of the search kernels; None if nothing is avoided."""
        if self.collider is None:
            return None
        if self._scene is None or self._scene[-1] != self.clearance:
            self._scene = collision_scene(self.collider, self.clearance, *self.bounds(np.zeros((1, len(self.lower)))))
        return self._scene

    # ---- segments ---------------------------------------------------------------------------

    def difference(self, a: Array, b: Array) -> Array:
        """Difference (..., nv) from a to b, without input validation."""
        return self.mechanism.space.difference(a, b) if self._has_balls else b - a

    def integrate(self, q: Array, v: Array) -> Array:
        """q (..., nq) moved by v (..., nv), without input validation."""
        return self.mechanism.space.integrate(q, v) if self._has_balls else q + v

    def scaled_difference(self, a: Array, b: Array) -> Array:
        """Difference (..., nv) from a to b in planning units."""
        return self.difference(a, b) / self.unit

    def max_difference(self, a: Array, b: Array) -> float:
        """Largest entry of the difference from a to b in planning units; it is compared with a step."""
        return float(np.abs(self.scaled_difference(a, b)).max(initial=0.0))

    def segment(self, a: Array, b: Array, step: float = 0.0) -> Array | None:
        """Configurations (N, nq) from a to b, at most a step (planning units) apart; None if loops do not lead to b."""
        step = step or self.step
        v = self.difference(a, b)
        count = max(1, int(np.ceil(float(np.abs(v / self.unit).max(initial=0.0)) / step)))
        if not self.has_loops:
            found = np.concatenate([a[None], self.integrate(a, _shares(count) * v)])
            found[-1] = b
            if self.loops.limit_relations and not all(self.is_inside(one) for one in found):
                return None
            return found
        found = self.steer(a, b, step)
        return found if np.array_equal(found[-1], b) else None

    def steer(self, a: Array, b: Array, step: float = 0.0) -> Array:
        """Configurations (N, nq) from a towards b, as far as loops and limits allow.

        Args:
            step: approximate distance of two configurations, planning units; 0: `self.step`.
        """
        step = step or self.step
        here, left = a, self.max_difference(a, b)
        most = 4 * int(np.ceil(left / step)) + 10
        if self._retract.can_steer:
            return self._retract.steer(a, b, (self.lower, self.upper), self.unit, step, most)
        found = [a]
        while len(found) < most:
            if left <= step:
                found.append(b)
                break
            there = self.project(self.integrate(here, self.difference(here, b) * (step / left)))
            if there is None or self.max_difference(here, there) > MAX_STEP_RATIO * step:
                break
            now = self.max_difference(there, b)
            if not now < left - MIN_PROGRESS_RATIO * step:
                break
            found.append(there)
            here, left = there, now
        return np.array(found)

    def free_segment(self, a: Array, b: Array, step: float = 0.0) -> Array | None:
        """The segment from a to b if it is collision-free, else None; the ends are assumed to be free."""
        q = self.segment(a, b, step)
        return q if q is not None and self.is_path_free(q) else None

    def is_segment_free(self, a: Array, b: Array) -> bool:
        """Whether the straight segment from a to b (nq,) is free, b included; not for loops or spherical joints."""
        if self.collider is None:
            return True
        v = b - a
        count = int(float(np.abs(v / self.unit).max(initial=0.0)) / self.step) + 1
        q = a + _shares(count) * v
        every = count // FIRST
        if every > 2 and not self.are_free(q[::-1][::every]).all():
            return False
        return bool(self.are_free(q).all())

    def is_path_free(self, q: Array) -> bool:
        """Whether all configurations (N, nq) except the ends are free; a few that are far apart are checked first."""
        if self.collider is None:
            return True
        if len(q) > 4 * FIRST:
            some = np.linspace(0, len(q) - 1, FIRST + 2).astype(np.int64)[1:-1]
            if not self.are_free(q[some]).all():
                return False
        return bool(self.are_free(q[1:-1]).all())

    def densify(self, q: Array, step: float) -> Array | None:
        """Configurations (M, nq) along the waypoints q (N, nq); None if loops do not lead from a waypoint to the next.

        Args:
            step: largest distance of two configurations, planning units.
        """
        parts: list[Array] = []
        for a, b in pairwise(q):
            way = self.segment(a, b, step)
            if way is None:
                return None
            parts.append(way[:-1])
        return np.concatenate([*parts, q[-1:]])
