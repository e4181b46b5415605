"""Proof that a path keeps the clearance everywhere, not only at the configurations that are checked.

On a straight segment no point of a link moves farther than the sum over all dofs of the dof's motion times the largest
speed that it gives the point. Where this bound is below the measured distance, no contact is possible.

`certify_path` uses a compiled kernel: each distance measurement gives the interval around it that is free, so wide
spaces need few checks. `certify_by_bisection` halves segments until all are proven. It handles all mechanisms and is
the reference for the kernel; along loops it only checks densely.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision import Collider
from mechanik.collision.collision_tables import CollisionTables
from mechanik.errors import NotFinite
from mechanik.kernels.distance import collision_layout as at
from mechanik.kernels.nodes import PARENT
from mechanik.kernels.planning.motion_check import (
    BUDGET_SPENT,
    CERTIFICATE_CHECKS,
    CERTIFICATE_FLOATS,
    IN_COLLISION,
    IS_CERTAIN,
    LAST_STRIDE,
    NOT_FINITE,
    PAIR_INTS,
    SMALLEST_DISTANCE,
    SPHERE_CENTRE,
    SPHERE_FLOATS,
    SPHERE_NODE,
    SPHERE_RADIUS,
)
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.spatial import inverse
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

CERTIFY_STEP = 0.01
"""rad, and half of it in m: largest motion of a dof between two checks."""
MAX_CHECKS = 40_000
"""Largest number of checked configurations."""
MIN_INTERVAL = 1e-5
"""Planning units (1 rad or 0.5 m): shorter segments that are still unproven stay unproven."""


@dataclass(frozen=True, slots=True)
class PathCertificate:
    """Result of the check of a path.

    Attributes:
        is_free: whether no distance below the clearance was measured.
        is_certain: whether it is proven that there is none.
        gap: smallest measured distance, m.
    """

    is_free: bool
    is_certain: bool
    gap: float


def certify_by_bisection(ground: PlanningSpace, q: Array, clearance: float, until: float) -> PathCertificate:
    """Check the path with waypoints q (N, nq) densely, and prove by bisection that it is free between the checks.

    Along loops nothing is proven between the checks, which are 0.01 rad or 5 mm apart.

    Args:
        clearance: m.
        until: deadline by `time.perf_counter`.
    """
    dense = ground.densify(q, CERTIFY_STEP)
    if dense is None:
        return PathCertificate(False, False, -np.inf)
    if ground.collider is None:
        return PathCertificate(True, True, np.inf)
    ground.check_count += len(dense)
    gap = float(np.min(ground.collider.distance(dense)))
    if gap < clearance:
        return PathCertificate(False, False, gap)
    if ground.has_loops:
        return PathCertificate(True, False, gap)
    return _between(ground, ground.collider, dense, clearance, gap, until)


def _between(
    ground: PlanningSpace, collider: Collider, q: Array, clearance: float, gap: float, until: float
) -> PathCertificate:
    """Prove by bisection that all segments between the configurations q (N, nq) keep the clearance."""
    who = _Guards(collider)
    start, half = q[:-1], 0.5 * ground.difference(q[:-1], q[1:])
    looked = 0
    while len(start):
        looked += len(start)
        if looked > MAX_CHECKS or time.perf_counter() > until:
            return PathCertificate(True, False, gap)
        middle = ground.integrate(start, half)
        gone = who.farthest(middle, np.abs(half))
        reach = clearance + float(gone.max(initial=0.0)) + 1e-6
        gaps = collider.distances_and_jacobian(middle, reach)[0]
        gap = min(gap, float(gaps.min(initial=np.inf, where=gaps < reach)))
        if gap < clearance:
            return PathCertificate(False, False, gap)
        doubt = (gaps - clearance <= gone).any(axis=1)
        if (np.abs(half[doubt] / ground.unit).max(axis=1, initial=0.0) < MIN_INTERVAL).any():
            return PathCertificate(True, False, gap)
        half = 0.5 * half[doubt]
        start = np.concatenate([start[doubt], middle[doubt]])
        half = np.concatenate([half, half])
    return PathCertificate(True, True, gap)


class _Guards:
    """The moving bodies behind each row of a collider's distances, with a bounding sphere each."""

    def __init__(self, collider: Collider) -> None:
        tables = collider._current_pairs().tables
        self._mechanism = collider.mechanism
        bodies = tables.collision_bodies[: tables.moving]
        self._links = [body.name for body in bodies]
        self._balls: list[tuple[Array, float]] = []
        for body, row in zip(bodies, tables.bodies, strict=False):
            # the table has the sphere in the frame of the node that carries the body
            ball = np.append(row[at.BODY_CENTRE : at.BODY_CENTRE + 3], 1.0)
            middle: Array = (inverse(body.frame) @ ball)[:3]
            self._balls.append((middle, float(row[at.BODY_RADIUS])))
        self._first = list[int]()
        self._others = list[npt.NDArray[np.int64]]()
        for guarded, first, count, _, rows in tables.pair_groups.tolist():
            partners = tables.partners[first : first + max(0, count)]
            self._first += [guarded] * rows
            self._others += [partners] * rows

    def farthest(self, q: Array, steps: Array) -> Array:
        """Bound (N, m), in m, on the approach of the bodies of each row while the dofs move by `steps` from q.

        Args:
            q: (N, nq).
            steps: (N, nv), absolute values.
        """
        gone = np.stack([self._gone(k, q, steps) for k in range(len(self._links))], axis=1)
        found = gone[:, self._first]
        for row, others in enumerate(self._others):
            if len(others):
                found[:, row] += gone[:, others].max(axis=1)
        return found

    def _gone(self, k: int, q: Array, steps: Array) -> Array:
        """Bound (N,) on the motion of any point of body k, m.

        Lever arms grow during the motion, by at most twice the distance that any point has moved.
        """
        middle, radius = self._balls[k]
        J = self._mechanism.jacobian(self._links[k], q, middle)
        turns = np.linalg.norm(J[:, 3:], axis=1)
        at_first = ((np.linalg.norm(J[:, :3], axis=1) + radius * turns) * steps).sum(axis=1)
        turned = (turns * steps).sum(axis=1)
        return np.where(turned < 0.25, at_first / np.maximum(1.0 - 2.0 * turned, 0.5), np.inf)


kernel = kernel_module("planning.motion_certificate")
SOME = 4_000
"""Number of checks between two readings of the clock."""
BEGIN = 0.1
"""Planning units: expected free interval of the first check."""


def certify_path(ground: PlanningSpace, q: Array, clearance: float, until: float) -> PathCertificate:
    """Check the path with waypoints q (N, nq), and prove that it is free between the checks.

    Checks are at most 0.01 rad or 5 mm apart. The reported distance is the smallest of the path, to 1 cm or a quarter
    of it. After the deadline the rest is only checked densely.

    Args:
        clearance: m.
        until: deadline by `time.perf_counter`.

    Raises:
        NotFinite: a link pose is not finite.
    """
    collider = ground.collider
    if collider is None or not ground.is_euclidean or len(q) < 2:
        return certify_by_bisection(ground, q, clearance, until)
    scene = _scene(collider._current_pairs().tables)
    knots, state = np.ascontiguousarray(q), np.zeros(CERTIFICATE_FLOATS)
    state[SMALLEST_DISTANCE], state[IS_CERTAIN], state[LAST_STRIDE] = np.inf, 1.0, BEGIN
    while True:
        answer = kernel.certify_path(*scene, knots, ground.unit, clearance, CERTIFY_STEP, MIN_INTERVAL, SOME, state)
        if answer != BUDGET_SPENT:
            break
        if state[CERTIFICATE_CHECKS] > MAX_CHECKS or time.perf_counter() > until:
            state[IS_CERTAIN] = 0.0
    ground.check_count += int(state[CERTIFICATE_CHECKS])
    if answer == NOT_FINITE:
        raise NotFinite("a link is nowhere, although q is finite: a length of the mechanism is too large")
    is_free = answer != IN_COLLISION
    return PathCertificate(is_free, is_free and bool(state[IS_CERTAIN] == 1.0), float(state[SMALLEST_DISTANCE]))


@lru_cache(maxsize=8)
def _scene(tables: CollisionTables) -> tuple[Any, ...]:
    """Arguments of the kernel from the collision tables up to the pairs of bodies."""
    guards = tables.pair_groups.copy()
    guards[:, at.FIRST_PAIR_ROW], guards[:, at.PAIR_ROWS] = (
        np.arange(len(guards)),
        1,
    )  # only the nearest pair of each group
    rows, balls = tables.bodies[: tables.moving], np.empty((tables.moving, SPHERE_FLOATS))
    balls[:, SPHERE_NODE], balls[:, SPHERE_RADIUS] = rows[:, at.BODY_NODE], rows[:, at.BODY_RADIUS]
    balls[:, SPHERE_CENTRE : SPHERE_CENTRE + 3] = rows[:, at.BODY_CENTRE : at.BODY_CENTRE + 3]
    parents, nodes = tables.nodes[:, PARENT].astype(np.int64).tolist(), balls[:, SPHERE_NODE].astype(np.int64).tolist()
    couples = list[tuple[int, int, int, int]]()
    for row, (body, first, count, *_) in enumerate(tables.pair_groups.tolist()):
        if count < 0:
            couples.append((row, body, -1, -1))
        for other in tables.partners[first : first + max(count, 0)].tolist():
            couples.append((row, body, other, _above(parents, nodes[body], nodes[other])))
    pairs = np.array(couples, np.int64).reshape(-1, PAIR_INTS)
    return (*tables.arrays[:7], guards, tables.partners, at.QUERY_SMALLEST, at.QUERY_ALL_PAIRS, balls, pairs)


def _above(parents: list[int], a: int, b: int) -> int:
    """The deepest common ancestor of two nodes; -1 if there is none."""
    while a != b:
        a, b = (parents[a], b) if a > b else (a, parents[b])
    return a
