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
        min_distance: smallest measured distance, m.
    """

    is_free: bool
    is_certain: bool
    min_distance: float


def certify_by_bisection(space: PlanningSpace, q: Array, clearance: float, deadline: float) -> PathCertificate:
    """Check the path with waypoints q (N, nq) densely, and prove by bisection that it is free between the checks.

    Along loops nothing is proven between the checks, which are 0.01 rad or 5 mm apart.

    Args:
        clearance: m.
        deadline: deadline by `time.perf_counter`.
    """
    dense = space.densify(q, CERTIFY_STEP)
    if dense is None:
        return PathCertificate(False, False, -np.inf)
    if space.collider is None:
        return PathCertificate(True, True, np.inf)
    space.check_count += len(dense)
    min_distance = float(np.min(space.collider.distance(dense)))
    if min_distance < clearance:
        return PathCertificate(False, False, min_distance)
    if space.has_loops:
        return PathCertificate(True, False, min_distance)
    return _certify_between(space, space.collider, dense, clearance, min_distance, deadline)


def _certify_between(
    space: PlanningSpace, collider: Collider, q: Array, clearance: float, min_distance: float, deadline: float
) -> PathCertificate:
    """Prove by bisection that all segments between the configurations q (N, nq) keep the clearance."""
    motion_bounds = _MotionBounds(collider)
    start, half = q[:-1], 0.5 * space.difference(q[:-1], q[1:])
    check_count = 0
    while len(start):
        check_count += len(start)
        if check_count > MAX_CHECKS or time.perf_counter() > deadline:
            return PathCertificate(True, False, min_distance)
        middle = space.integrate(start, half)
        motion = motion_bounds.approach_bound(middle, np.abs(half))
        reach = clearance + float(motion.max(initial=0.0)) + 1e-6
        distances = collider.distances_and_jacobian(middle, reach)[0]
        min_distance = min(min_distance, float(distances.min(initial=np.inf, where=distances < reach)))
        if min_distance < clearance:
            return PathCertificate(False, False, min_distance)
        is_unproven = (distances - clearance <= motion).any(axis=1)
        if (np.abs(half[is_unproven] / space.unit).max(axis=1, initial=0.0) < MIN_INTERVAL).any():
            return PathCertificate(True, False, min_distance)
        half = 0.5 * half[is_unproven]
        start = np.concatenate([start[is_unproven], middle[is_unproven]])
        half = np.concatenate([half, half])
    return PathCertificate(True, True, min_distance)


class _MotionBounds:
    """The moving bodies behind each row of a collider's distances, with a bounding sphere each."""

    def __init__(self, collider: Collider) -> None:
        tables = collider._current_pairs().tables
        self._mechanism = collider.mechanism
        bodies = tables.collision_bodies[: tables.moving]
        self._links = [body.name for body in bodies]
        self._spheres: list[tuple[Array, float]] = []
        for body, row in zip(bodies, tables.bodies, strict=False):
            # the table has the sphere in the frame of the node that carries the body
            centre = np.append(row[at.BODY_CENTRE : at.BODY_CENTRE + 3], 1.0)
            centre_link: Array = (inverse(body.frame) @ centre)[:3]
            self._spheres.append((centre_link, float(row[at.BODY_RADIUS])))
        self._bodies = list[int]()
        self._partners = list[npt.NDArray[np.int64]]()
        for body_index, first, count, _, rows in tables.pair_groups.tolist():
            partners = tables.partners[first : first + max(0, count)]
            self._bodies += [body_index] * rows
            self._partners += [partners] * rows

    def approach_bound(self, q: Array, steps: Array) -> Array:
        """Bound (N, m), in m, on the approach of the bodies of each row while the dofs move by `steps` from q.

        Args:
            q: (N, nq).
            steps: (N, nv), absolute values.
        """
        body_motion = np.stack([self._body_motion_bound(k, q, steps) for k in range(len(self._links))], axis=1)
        bounds = body_motion[:, self._bodies]
        for row, partners in enumerate(self._partners):
            if len(partners):
                bounds[:, row] += body_motion[:, partners].max(axis=1)
        return bounds

    def _body_motion_bound(self, k: int, q: Array, steps: Array) -> Array:
        """Bound (N,) on the motion of any point of body k, m.

        Lever arms grow during the motion, by at most twice the distance that any point has moved.
        """
        centre, radius = self._spheres[k]
        J = self._mechanism.jacobian(self._links[k], q, centre)
        rotation_rates = np.linalg.norm(J[:, 3:], axis=1)
        initial_bound = ((np.linalg.norm(J[:, :3], axis=1) + radius * rotation_rates) * steps).sum(axis=1)
        angle = (rotation_rates * steps).sum(axis=1)
        return np.where(angle < 0.25, initial_bound / np.maximum(1.0 - 2.0 * angle, 0.5), np.inf)


kernel = kernel_module("planning.motion_certificate")
CHECKS_PER_CALL = 4_000
"""Number of checks between two readings of the clock."""
FIRST_INTERVAL = 0.1
"""Planning units: expected free interval of the first check."""


def certify_path(space: PlanningSpace, q: Array, clearance: float, deadline: float) -> PathCertificate:
    """Check the path with waypoints q (N, nq), and prove that it is free between the checks.

    Checks are at most 0.01 rad or 5 mm apart. The reported distance is the smallest of the path, to 1 cm or a quarter
    of it. After the deadline the rest is only checked densely.

    Args:
        clearance: m.
        deadline: deadline by `time.perf_counter`.

    Raises:
        NotFinite: a link pose is not finite.
    """
    collider = space.collider
    if collider is None or not space.is_euclidean or len(q) < 2:
        return certify_by_bisection(space, q, clearance, deadline)
    scene = _kernel_scene(collider._current_pairs().tables)
    waypoints, state = np.ascontiguousarray(q), np.zeros(CERTIFICATE_FLOATS)
    state[SMALLEST_DISTANCE], state[IS_CERTAIN], state[LAST_STRIDE] = np.inf, 1.0, FIRST_INTERVAL
    while True:
        status = kernel.certify_path(
            *scene, waypoints, space.unit, clearance, CERTIFY_STEP, MIN_INTERVAL, CHECKS_PER_CALL, state
        )
        if status != BUDGET_SPENT:
            break
        if state[CERTIFICATE_CHECKS] > MAX_CHECKS or time.perf_counter() > deadline:
            state[IS_CERTAIN] = 0.0
    space.check_count += int(state[CERTIFICATE_CHECKS])
    if status == NOT_FINITE:
        raise NotFinite(
            "a link pose is not finite although q is; check the lengths of the mechanism, one may be too large"
        )
    is_free = status != IN_COLLISION
    return PathCertificate(is_free, is_free and bool(state[IS_CERTAIN] == 1.0), float(state[SMALLEST_DISTANCE]))


@lru_cache(maxsize=8)
def _kernel_scene(tables: CollisionTables) -> tuple[Any, ...]:
    """Arguments of the kernel from the collision tables up to the pairs of bodies."""
    pair_groups = tables.pair_groups.copy()
    # only the nearest pair of each group
    pair_groups[:, at.FIRST_PAIR_ROW], pair_groups[:, at.PAIR_ROWS] = np.arange(len(pair_groups)), 1
    rows, spheres = tables.bodies[: tables.moving], np.empty((tables.moving, SPHERE_FLOATS))
    spheres[:, SPHERE_NODE], spheres[:, SPHERE_RADIUS] = rows[:, at.BODY_NODE], rows[:, at.BODY_RADIUS]
    spheres[:, SPHERE_CENTRE : SPHERE_CENTRE + 3] = rows[:, at.BODY_CENTRE : at.BODY_CENTRE + 3]
    parents = tables.nodes[:, PARENT].astype(np.int64).tolist()
    nodes = spheres[:, SPHERE_NODE].astype(np.int64).tolist()
    pair_rows = list[tuple[int, int, int, int]]()
    for row, (body, first, count, *_) in enumerate(tables.pair_groups.tolist()):
        if count < 0:
            pair_rows.append((row, body, -1, -1))
        for partner in tables.partners[first : first + max(count, 0)].tolist():
            pair_rows.append((row, body, partner, _common_ancestor(parents, nodes[body], nodes[partner])))
    pairs = np.array(pair_rows, np.int64).reshape(-1, PAIR_INTS)
    return (*tables.arrays[:7], pair_groups, tables.partners, at.QUERY_SMALLEST, at.QUERY_ALL_PAIRS, spheres, pairs)


def _common_ancestor(parents: list[int], a: int, b: int) -> int:
    """The deepest common ancestor of two nodes; -1 if there is none."""
    while a != b:
        a, b = (parents[a], b) if a > b else (a, parents[b])
    return a
