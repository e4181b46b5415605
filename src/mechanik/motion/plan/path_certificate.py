"""Proof that a path keeps the clearance everywhere, not only at the configurations that are checked.

On a straight segment, the motion of a point of a link is bounded by the sum over all dofs of |dq_i| times the largest
speed of the point per unit speed of dof i. Where this bound is below the measured distance minus the clearance, the
clearance is kept.

`certify_path` uses a compiled kernel: each measured distance proves that an interval around it is free, so a path far
from obstacles needs few checks. `certify_by_bisection` halves segments until all are proven free. It handles all
mechanisms and is the reference for the kernel. For mechanisms with loops, it only checks densely and proves nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mechanik.collision import Collider
from mechanik.collision.collision_tables import CollisionTables
from mechanik.errors import NotFinite
from mechanik.kernels.distance.collision_layout import ALL_STATIC, QUERY_ALL_PAIRS, QUERY_SMALLEST
from mechanik.kernels.planning.motion_check import (
    BUDGET_SPENT,
    IN_COLLISION,
    NOT_FINITE,
    BodyPair,
    BoundingSphere,
    CertificateState,
)
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.spatial import inverse
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

CERTIFY_STEP = 0.01
"""Planning units (1 rad or 0.5 m): largest motion of a dof between two checks where nothing is proven."""
MAX_CHECKS = 40_000
"""Number of checked configurations after which the proof is abandoned."""
MIN_INTERVAL = 1e-5
"""Planning units: if half of an unproven interval is shorter than this, the path counts as not proven."""


@dataclass(frozen=True, slots=True)
class PathCertificate:
    """Result of the check of a path.

    Attributes:
        is_free: whether all measured distances keep the clearance.
        is_certain: whether it is proven that the clearance is kept everywhere on the path.
        min_distance: smallest measured distance, m; -inf if a waypoint cannot be reached from the waypoint before it.
    """

    is_free: bool
    is_certain: bool
    min_distance: float


def certify_by_bisection(space: PlanningSpace, q: Array, clearance: float, deadline: float) -> PathCertificate:
    """Check the path with waypoints q (N, nq) densely, and prove by bisection that it is free between the checks.

    The checks are at most 0.01 rad or 5 mm apart. For mechanisms with loops, nothing is proven between the checks.

    Args:
        clearance: m.
        deadline: time of `time.perf_counter` at which the proof is abandoned.
    """
    q_dense = space.densify(q, CERTIFY_STEP)
    if q_dense is None:
        return PathCertificate(False, False, -np.inf)
    if space.collider is None:
        return PathCertificate(True, True, np.inf)
    space.check_count += len(q_dense)
    min_distance = float(np.min(space.collider.distance(q_dense)))
    if min_distance < clearance:
        return PathCertificate(False, False, min_distance)
    if space.has_loops:
        return PathCertificate(True, False, min_distance)
    return _certify_between(space, space.collider, q_dense, clearance, min_distance, deadline)


def _certify_between(
    space: PlanningSpace, collider: Collider, q: Array, clearance: float, min_distance: float, deadline: float
) -> PathCertificate:
    """Prove by bisection that all segments between the configurations q (N, nq) keep the clearance.

    Args:
        min_distance: smallest distance at the configurations q, m.
    """
    motion_bounds = _MotionBounds(collider)
    q_start, half_steps = q[:-1], 0.5 * space.difference(q[:-1], q[1:])
    check_count = 0
    while len(q_start):
        check_count += len(q_start)
        if check_count > MAX_CHECKS or time.perf_counter() > deadline:
            return PathCertificate(True, False, min_distance)
        q_middle = space.integrate(q_start, half_steps)
        motion_bound = motion_bounds.approach_bound(q_middle, np.abs(half_steps))
        query_distance = clearance + float(motion_bound.max(initial=0.0)) + 1e-6
        distances = collider.distances_and_jacobian(q_middle, query_distance)[0]
        min_distance = min(min_distance, float(distances.min(initial=np.inf, where=distances < query_distance)))
        if min_distance < clearance:
            return PathCertificate(False, False, min_distance)
        is_unproven = (distances - clearance <= motion_bound).any(axis=1)
        if (np.abs(half_steps[is_unproven] / space.unit).max(axis=1, initial=0.0) < MIN_INTERVAL).any():
            return PathCertificate(True, False, min_distance)
        half_steps = 0.5 * half_steps[is_unproven]
        q_start = np.concatenate([q_start[is_unproven], q_middle[is_unproven]])
        half_steps = np.concatenate([half_steps, half_steps])
    return PathCertificate(True, True, min_distance)


class _MotionBounds:
    """Upper bounds on how much each of the m distances of a collider can decrease during a motion.

    A distance belongs to a moving body and its partners. Each body is bounded by a sphere.
    """

    def __init__(self, collider: Collider) -> None:
        tables = collider._current_pairs().tables
        self._mechanism = collider.mechanism
        bodies = tables.collision_bodies[: tables.moving_count]
        self._links = [body.name for body in bodies]
        self._spheres: list[tuple[Array, float]] = []
        for body, record in zip(bodies, tables.scene.bodies, strict=False):
            # the centre in the table is in the frame of the node to which the body belongs
            centre = np.append(record.centre, 1.0)
            p_link_centre: Array = (inverse(body.X_node_body) @ centre)[:3]
            self._spheres.append((p_link_centre, float(record.radius)))
        self._body_by_row = list[int]()
        self._partners_by_row = list[list[int]]()
        for pair_list in tables.scene.pair_lists:
            self._body_by_row += [pair_list.body] * pair_list.row_count
            self._partners_by_row += [tables.partners(pair_list)] * pair_list.row_count

    def approach_bound(self, q: Array, steps: Array) -> Array:
        """Bound (N, m), in m, on how much each distance can decrease while the dofs move by `steps` from q.

        Args:
            q: (N, nq).
            steps: (N, nv), absolute values, rad or m.
        """
        body_motion = np.stack([self._body_motion_bound(k, q, steps) for k in range(len(self._links))], axis=1)
        bounds = body_motion[:, self._body_by_row]
        for row, partners in enumerate(self._partners_by_row):
            if len(partners):
                bounds[:, row] += body_motion[:, partners].max(axis=1)
        return bounds

    def _body_motion_bound(self, k: int, q: Array, steps: Array) -> Array:
        """Bound (N,) on the motion of any point of body k, m.

        Let D be the largest distance that any point of the body moves. Both ends of a lever arm move by at most D, so
        the arm grows by at most 2 D, and D <= `initial_bound` + 2 `angle` D.
        """
        p_link_centre, radius = self._spheres[k]
        J = self._mechanism.jacobian(self._links[k], q, p_link_centre)
        rotation_rates = np.linalg.norm(J[:, 3:], axis=1)
        initial_bound = ((np.linalg.norm(J[:, :3], axis=1) + radius * rotation_rates) * steps).sum(axis=1)
        angle = (rotation_rates * steps).sum(axis=1)
        return np.where(angle < 0.25, initial_bound / np.maximum(1.0 - 2.0 * angle, 0.5), np.inf)


kernel = kernel_module("planning.motion_certificate")
CHECKS_PER_CALL = 4_000
"""Number of checks between two readings of the clock."""
FIRST_STRIDE = 0.1
"""Planning units: initial guess of how far on both sides of a check the path is proven free."""


def certify_path(space: PlanningSpace, q: Array, clearance: float, deadline: float) -> PathCertificate:
    """Check the path with waypoints q (N, nq), and prove that it is free between the checks.

    Where no interval can be proven free, checks are at most 0.01 rad or 5 mm apart. After the deadline, or after
    MAX_CHECKS checks, the remaining path is only checked densely. If the kernel proves the path, the reported distance
    exceeds the smallest distance by at most 1 cm or a quarter of the reported distance, whichever is larger.

    Args:
        clearance: m.
        deadline: time of `time.perf_counter` at which the proof is abandoned.

    Raises:
        NotFinite: a link pose is not finite.
    """
    collider = space.collider
    if collider is None or not space.is_euclidean or len(q) < 2:
        return certify_by_bisection(space, q, clearance, deadline)
    scene = _kernel_scene(collider._current_pairs().tables)
    waypoints, state = np.ascontiguousarray(q), CertificateState.allocate()
    state.smallest_distance, state.is_certain, state.last_stride = np.inf, True, FIRST_STRIDE
    while True:
        status = kernel.certify_path(
            *scene, waypoints, space.unit, clearance, CERTIFY_STEP, MIN_INTERVAL, CHECKS_PER_CALL, state.numbers
        )
        if status != BUDGET_SPENT:
            break
        if state.check_count > MAX_CHECKS or time.perf_counter() > deadline:
            state.is_certain = False
    space.check_count += state.check_count
    if status == NOT_FINITE:
        raise NotFinite(
            "a link pose is not finite although q is; check the lengths of the mechanism, one may be too large"
        )
    is_free = status != IN_COLLISION
    return PathCertificate(is_free, is_free and state.is_certain, float(state.smallest_distance))


@lru_cache(maxsize=8)
def _kernel_scene(tables: CollisionTables) -> tuple[Any, ...]:
    """Leading arguments of the kernel, from the collision tables to the pairs of bodies."""
    scene = tables.scene
    parents = [node.parent for node in scene.nodes]
    spheres = BoundingSphere.allocate_rows(tables.moving_count)
    for sphere, body in zip(spheres, scene.bodies, strict=False):
        sphere.node, sphere.radius = body.node, body.radius
        sphere.centre[:] = body.centre
    body_pairs = list[tuple[int, int, int, int]]()
    for row, pair_list in enumerate(scene.pair_lists):
        a = pair_list.body
        if pair_list.partner_count == ALL_STATIC:
            body_pairs.append((row, a, -1, -1))
        for b in tables.partners(pair_list):
            body_pairs.append((row, a, b, _common_ancestor(parents, spheres[a].node, spheres[b].node)))
    pairs = BodyPair.allocate_rows(len(body_pairs), np.int64)
    for pair, values in zip(pairs, body_pairs, strict=True):
        pair.set(*values)
    arrays = tables.with_one_row_per_list().arrays
    return (*arrays, QUERY_SMALLEST, QUERY_ALL_PAIRS, spheres.rows, pairs.rows)


def _common_ancestor(parents: list[int], a: int, b: int) -> int:
    """The deepest common ancestor of two nodes, which may be one of them; -1 if there is none."""
    while a != b:
        a, b = (parents[a], b) if a > b else (a, parents[b])
    return a
