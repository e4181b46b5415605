"""The search space of a planner: limits, collision checks, distances, and segments along which loops stay closed.

`Retraction` projects a configuration onto the closed loops by minimum-norm Newton steps, and moves with closed loops
towards a target. It is compiled, unless a residual is a Python function or joints that close loops add variables to the
system. Distances between configurations are measured in planning units: one unit is 1 rad or 0.5 m.
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
from mechanik.kernels.distance.collision_layout import QUERY_IS_FREE
from mechanik.model import Mechanism
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module
from mechanik.validation import read_only

retraction_kernel = kernel_module("planning.loop_retraction")

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

CLOSURE_TOLERANCE = 1e-10
"""rad, or ratio to the mechanism's size: loops with smaller residuals count as closed."""
MAX_NEWTON_STEPS = 25
"""Largest number of Newton steps of a projection in Python."""
MAX_NEWTON_STEP = 0.5
"""rad, or ratio to the mechanism's size: longest Newton step."""
GRAM_REGULARIZATION = 1e-12
"""Number that is added to the diagonal of J Jᵀ, because residuals may be redundant."""
MAX_STEP_RATIO = 2.0
"""Largest ratio of the length of a step after the loops are closed to its length before; a longer step has left its
branch."""
MIN_PROGRESS_RATIO = 0.02
"""Steering ends where a step decreases the distance to the target by less than this ratio of the step length."""


@dataclass(frozen=True, slots=True, eq=False)
class _LoopTables:
    """Kernel arguments for a group of loops that share dofs.

    Attributes:
        ints, floats: tables of the packed problem.
        rows: residual rows of the loops.
        can_move: 1.0 for each dof of the group that may move, else 0.0.
        q_indices: indices in q of the dofs of the group.
    """

    ints: Indices
    floats: Array
    rows: Indices
    can_move: Array
    q_indices: Indices

    @property
    def arrays(self) -> tuple[Indices, Array, Indices, Array, Indices]:
        return self.ints, self.floats, self.rows, self.can_move, self.q_indices


class Retraction:
    """Projection of configurations onto the closed loops by minimum-norm steps.

    Args:
        loops: the loops of the mechanism.
        can_move: (nv,) mask of the dofs that may move.

    Attributes:
        can_steer: whether `steer` can be used: the retraction is compiled, all loops are in one group, and there are no
            limits of joints that close loops, cone limits or spherical joints.
    """

    def __init__(self, loops: LoopSystem, can_move: Flags) -> None:
        self._loops, self._can_move = loops, can_move
        self._compiled: list[_LoopTables] | None = None
        if loops.groups is not None and not any(
            group.problem.subproblem.packed.has_functions for group in loops.groups
        ):
            self._compiled = [_loop_tables(loops, group, can_move) for group in loops.groups if len(group.rows)]
        self.can_steer = len(self._compiled or ()) == 1 and not (
            loops.limit_relations or len(loops.mechanism.space.quaternions_q)
        )

    def __call__(self, q: Array) -> Array | None:
        """Project q (nq,) to a nearby configuration (nq,) with closed loops, ignoring limits; None if it fails."""
        if self._compiled is None:
            return self._project_in_python(q)
        projected, is_closed = self.project_all(q[None])
        return projected[0] if is_closed[0] else None

    def project_all(self, q: Array) -> tuple[Array, Flags]:
        """Project all of q (N, nq): configurations (N, nq), and whether each projection succeeded (N,)."""
        if self._compiled is None:
            results = [self._project_in_python(row) for row in q]
            projected_rows = [
                original if result is None else result for result, original in zip(results, q, strict=True)
            ]
            return np.array(projected_rows).reshape(q.shape), np.array(
                [result is not None for result in results], dtype=np.bool_
            )
        projected = np.array(q, dtype=np.float64)
        is_closed = np.asarray(np.isfinite(projected).all(axis=1), dtype=np.bool_)
        for tables in self._compiled:
            retraction_kernel.retract(*tables.arrays, projected, is_closed)
        return projected, is_closed

    def steer(self, a: Array, b: Array, limits: tuple[Array, Array], unit: Array, step: float, max_count: int
    ) -> Array:  # fmt: skip
        """Configurations (N, nq) from a towards b with closed loops, as far as loops, limits and count allow.

        The first configuration is a.

        Args:
            a, b: (nq,).
            limits: lower and upper, (nq,) each.
            unit: (nv,) length of a planning unit, rad or m.
            step: planning units; largest distance between two configurations before the loops are closed.
            max_count: largest number of configurations.
        """
        assert self._compiled is not None
        out = np.empty((max_count, len(a)))
        q_arrays = np.array(a), np.array(b), np.array(limits[0]), np.array(limits[1])
        return out[
            : retraction_kernel.move_with_closed_loops(
                *self._compiled[0].arrays, *q_arrays, unit, step, MAX_STEP_RATIO, MIN_PROGRESS_RATIO, out
            )
        ]

    def _project_in_python(self, q: Array) -> Array | None:
        """Project q (nq,) by Newton's method in Python."""
        for _ in range(MAX_NEWTON_STEPS):
            residual, J = self._loops.residual(q)
            if float(np.abs(residual).max()) < CLOSURE_TOLERANCE:
                return q
            inverse = _minimum_norm_inverse(J * self._can_move)
            if inverse is None:
                return None
            step = inverse @ residual
            q = self._loops.step(q, -step * min(1.0, MAX_NEWTON_STEP / max(float(np.sqrt(step @ step)), 1e-300)))
        return None


def _minimum_norm_inverse(J: Array) -> Array | None:
    """Matrix (n, m) that maps a residual to the step of minimum norm, for J (m, n); None if J Jᵀ is singular."""
    gram = J @ J.T
    gram.flat[:: len(J) + 1] += GRAM_REGULARIZATION
    try:
        return J.T @ np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        return None


def _loop_tables(loops: LoopSystem, group: LoopGroup, can_move: Flags) -> _LoopTables:
    """Kernel arguments for a group of loops.

    Args:
        can_move: (nv,) mask of the dofs that may move.
    """
    packed = group.problem.subproblem.packed
    return _LoopTables(
        packed.ints, packed.floats, group.rows, can_move[group.v].astype(np.float64), _q_indices(loops, group)
    )


def _q_indices(loops: LoopSystem, group: LoopGroup) -> npt.NDArray[np.int64]:
    """Indices in q of the dofs of a group of loops."""
    space, group_dofs = loops.mechanism.space, set(group.v.tolist())
    indices = [k for v, k in enumerate(loops.q_index_by_dof.tolist()) if k >= 0 and v in group_dofs]
    for first_q, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True):
        indices += range(first_q, first_q + 4) if v in group_dofs else ()
    return np.array(indices, dtype=np.int64)


FREQUENCY_SAMPLES = 64
"""Number of random configurations from which the collision frequency of each pair list (a body and its partners)
is estimated."""


def collision_scene(collider: Collider, clearance: float, lower: Array, upper: Array) -> tuple[Any, ...]:
    """Collision arguments of the search kernels.

    Pair lists are ordered by their collision frequency at random configurations between lower and upper (nq,).
    """
    tables = collider._current_pairs().tables
    return (*_sorted_by_frequency(tables, lower.tobytes(), upper.tobytes()).arrays, QUERY_IS_FREE, clearance)


@lru_cache(maxsize=8)
def _sorted_by_frequency(tables: CollisionTables, lower: bytes, upper: bytes) -> CollisionTables:
    """Tables with the pair lists that collide most often first, because a check ends at the first collision.

    Args:
        lower, upper: limits (nq,) as bytes, which can be hashed.
    """
    q_min, q_max = np.frombuffer(lower), np.frombuffer(upper)
    q = q_min + (q_max - q_min) * np.random.default_rng(0).random((FREQUENCY_SAMPLES, len(q_min)))
    out, collision_counts = np.empty((FREQUENCY_SAMPLES, 1)), np.zeros(tables.scene.pair_list_count)
    for k in range(len(collision_counts)):
        arrays = tables.with_pair_lists([k]).arrays
        kernel.query(*arrays, q, QUERY_IS_FREE, 0.0, out, np.empty((0, 0, 0)), np.zeros(1, int))
        collision_counts[k] = np.count_nonzero(out == 0.0)
    return tables.with_pair_lists(np.argsort(-collision_counts, kind="stable").tolist())


SEARCH_CHECK_STEP = 0.06
"""Planning units (1 rad or 0.5 m): largest distance between collision checks during the search. The final path is
checked more finely."""
COARSE_CHECKS = 8
"""Approximate number of configurations of a segment that are checked first; after a collision there, the others need no
check."""


@lru_cache(maxsize=512)
def _fractions(count: int) -> Array:
    """Fractions (count, 1), evenly spaced from 1 / count to 1."""
    return read_only(np.arange(1.0, count + 1.0)[:, None] / count)


class PlanningSpace:
    """The configurations that a planned path may contain, and the segments between them.

    Attributes:
        mechanism: the mechanism.
        loops: the loops of the mechanism as a system of residuals.
        collider: collision checks; None: nothing is avoided.
        clearance: m; during the search with a margin for the motion between two checks.
        lower, upper: (nq,) joint limits.
        can_move: (nv,) mask of the dofs that may move.
        moving_indices: indices of the entries of q that may change.
        moving_quaternions: index in q of the first entry of each quaternion that may change.
        unit: (nv,) length of a planning unit: 1 rad or 0.5 m.
        has_loops: whether there are loops or joint constraints.
        is_euclidean: whether every q within the joint limits is valid, apart from collisions: there are no loops, joint
            constraints, spherical joints or cone limits.
        step: largest distance between collision checks, planning units.
        check_count: number of configurations that have been checked for collisions.
    """

    def __init__(
        self, mechanism: Mechanism, loops: LoopSystem, collider: Collider | None, clearance: float, lower: Array,
        upper: Array, can_move: Flags,
    ) -> None:  # fmt: skip
        self.mechanism, self.loops, self.collider, self.clearance = mechanism, loops, collider, clearance
        self.lower, self.upper, self.can_move = lower, upper, can_move
        space = mechanism.space
        self.unit = np.where(space.rotates, 1.0, 0.5)
        self._has_quaternions = bool(len(space.quaternions_q))
        self.has_loops = bool(loops.relations)
        self.is_euclidean = not (self.has_loops or loops.limit_relations or self._has_quaternions)
        self.check_count, self.step = 0, SEARCH_CHECK_STEP
        scalar_indices = [int(q) for q, v in zip(space.scalars_q, space.scalars_v, strict=True) if can_move[v]]
        self.moving_quaternions = [
            int(q) for q, v in zip(space.quaternions_q, space.quaternions_v, strict=True) if can_move[v]
        ]
        quaternion_indices = [q + k for q in self.moving_quaternions for k in range(4)]
        self.moving_indices: Indices = np.array(sorted(scalar_indices + quaternion_indices), dtype=np.int64)
        self._scene: tuple[Any, ...] | None = None
        self._retraction = Retraction(loops, can_move)

    # ---- configurations ---------------------------------------------------------------------

    def are_free(self, q: Array) -> Flags:
        """Whether each of q (N, nq) keeps the clearance (N,)."""
        self.check_count += len(q)
        if self.collider is None or not len(q):
            return np.ones(len(q), dtype=np.bool_)
        return np.asarray(self.collider.is_free(q, self.clearance), dtype=np.bool_)

    def is_inside(self, q: Array) -> bool:
        """Whether q (nq,) is within all limits, including cone limits and those of joints that close loops."""
        if not bool(((q >= self.lower - 1e-9) & (q <= self.upper + 1e-9)).all()):
            return False
        return not self.loops.limit_relations or self.loops.limit_violation(q)[0] <= 1e-9

    def project(self, q: Array) -> Array | None:
        """Project q (nq,) onto the closed loops, approximately to the nearest configuration.

        None if the projection fails or is outside the limits. In a Euclidean space, q is returned without a check.
        """
        projected, is_valid = self.project_all(q[None])
        return projected[0] if is_valid[0] else None

    def project_all(self, q: Array) -> tuple[Array, Flags]:
        """Project all of q (N, nq): configurations (N, nq), and whether each is valid (N,).

        A configuration is valid if the projection succeeded and is within the limits. In a Euclidean space, q is
        returned without a check.
        """
        if self.is_euclidean:
            return q, np.ones(len(q), dtype=np.bool_)
        q, is_valid = q.copy(), np.ones(len(q), dtype=np.bool_)
        for k in self.mechanism.space.quaternions_q:
            norms = np.linalg.norm(q[:, k : k + 4], axis=1)
            is_valid &= norms >= 1e-3
            q[:, k : k + 4] /= np.maximum(norms, 1e-3)[:, None]
        if self.has_loops:
            q, is_closed = self._retraction.project_all(q)
            is_valid &= is_closed
        is_valid &= ((q >= self.lower - 1e-9) & (q <= self.upper + 1e-9)).all(axis=1)
        if self.loops.limit_relations:
            is_valid &= [
                bool(is_projected) and self.is_inside(row) for row, is_projected in zip(q, is_valid, strict=True)
            ]
        return q, is_valid

    def bounds(self, ends: Array) -> tuple[Array, Array]:
        """Lower and upper bounds (nq,) of the search between `ends` (N, nq).

        The bounds include the ends, which may lie slightly beyond a limit. The bounds of joints without limits are pi
        or 1 m beyond the ends. The bounds of quaternion entries are -1 and 1.
        """
        space = self.mechanism.space
        extra_range = np.ones(space.nq)
        extra_range[space.scalars_q] = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
        q_min, q_max = ends.min(axis=0), ends.max(axis=0)
        lower = np.where(np.isfinite(self.lower), np.minimum(self.lower, q_min), q_min - extra_range)
        upper = np.where(np.isfinite(self.upper), np.maximum(self.upper, q_max), q_max + extra_range)
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
        """Difference (..., nv) from a to b (..., nq)."""
        return self.mechanism.space.difference(a, b) if self._has_quaternions else b - a

    def integrate(self, q: Array, v: Array) -> Array:
        """Configuration q (..., nq) moved by v (..., nv)."""
        return self.mechanism.space.integrate(q, v) if self._has_quaternions else q + v

    def scaled_difference(self, a: Array, b: Array) -> Array:
        """Difference (..., nv) from a to b in planning units."""
        return self.difference(a, b) / self.unit

    def max_difference(self, a: Array, b: Array) -> float:
        """Largest absolute entry of the difference from a to b, in planning units."""
        return float(np.abs(self.scaled_difference(a, b)).max(initial=0.0))

    def segment(self, a: Array, b: Array, step: float = 0.0) -> Array | None:
        """Configurations (N, nq) from a to b, straight or with closed loops.

        None if b cannot be reached with closed loops, or if the segment violates a cone limit.

        Args:
            step: largest distance between two configurations before the loops are closed, planning units; 0:
                `self.step`.
        """
        step = step or self.step
        v = self.difference(a, b)
        count = max(1, int(np.ceil(float(np.abs(v / self.unit).max(initial=0.0)) / step)))
        if not self.has_loops:
            waypoints = np.concatenate([a[None], self.integrate(a, _fractions(count) * v)])
            waypoints[-1] = b
            if self.loops.limit_relations and not all(self.is_inside(row) for row in waypoints):
                return None
            return waypoints
        waypoints = self.steer(a, b, step)
        return waypoints if np.array_equal(waypoints[-1], b) else None

    def steer(self, a: Array, b: Array, step: float = 0.0) -> Array:
        """Configurations (N, nq) from a towards b, as far as loops and limits allow.

        Args:
            step: largest distance between two configurations before the loops are closed, planning units; 0:
                `self.step`.
        """
        step = step or self.step
        current, distance = a, self.max_difference(a, b)
        max_count = 4 * int(np.ceil(distance / step)) + 10
        if self._retraction.can_steer:
            return self._retraction.steer(a, b, (self.lower, self.upper), self.unit, step, max_count)
        waypoints = [a]
        while len(waypoints) < max_count:
            if distance <= step:
                waypoints.append(b)
                break
            candidate = self.project(self.integrate(current, self.difference(current, b) * (step / distance)))
            if candidate is None or self.max_difference(current, candidate) > MAX_STEP_RATIO * step:
                break
            new_distance = self.max_difference(candidate, b)
            if not new_distance < distance - MIN_PROGRESS_RATIO * step:
                break
            waypoints.append(candidate)
            current, distance = candidate, new_distance
        return np.array(waypoints)

    def free_segment(self, a: Array, b: Array, step: float = 0.0) -> Array | None:
        """The segment from a to b if it is collision-free, else None; the ends are assumed to be free."""
        q = self.segment(a, b, step)
        return q if q is not None and self.is_path_free(q) else None

    def is_segment_free(self, a: Array, b: Array) -> bool:
        """Whether the straight segment from a to b (nq,) is free, b included; only for Euclidean spaces."""
        if self.collider is None:
            return True
        v = b - a
        count = int(float(np.abs(v / self.unit).max(initial=0.0)) / self.step) + 1
        q = a + _fractions(count) * v
        stride = count // COARSE_CHECKS
        if stride > 2 and not self.are_free(q[::-1][::stride]).all():
            return False
        return bool(self.are_free(q).all())

    def is_path_free(self, q: Array) -> bool:
        """Whether all configurations q (N, nq) except the ends are free; a few that are far apart are checked first."""
        if self.collider is None:
            return True
        if len(q) > 4 * COARSE_CHECKS:
            sample_indices = np.linspace(0, len(q) - 1, COARSE_CHECKS + 2).astype(np.int64)[1:-1]
            if not self.are_free(q[sample_indices]).all():
                return False
        return bool(self.are_free(q[1:-1]).all())

    def densify(self, q: Array, step: float) -> Array | None:
        """Configurations (M, nq) along the waypoints q (N, nq).

        None if a waypoint cannot be reached from the waypoint before it (see `segment`).

        Args:
            step: largest distance between two configurations before the loops are closed, planning units.
        """
        segments: list[Array] = []
        for a, b in pairwise(q):
            segment = self.segment(a, b, step)
            if segment is None:
                return None
            segments.append(segment[:-1])
        return np.concatenate([*segments, q[-1:]])
