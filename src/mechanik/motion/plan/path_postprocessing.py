"""Post-processing of planned paths: shortcuts, rounded corners, smoothing with closed loops, waypoints for the spline.

Shortcuts and corners are implemented in kernels for Euclidean spaces, and in Python for other spaces (loops, spherical
joints, cone limits).
"""

from __future__ import annotations

import time

import numpy as np

from mechanik.errors import MissingExtra
from mechanik.kernels.planning.motion_check import IN_COLLISION, TOO_MANY_WAYPOINTS
from mechanik.kernels.planning.search_state import SEARCH_DONE, ShorteningState
from mechanik.motion.follow import Path
from mechanik.motion.plan.path_certificate import CERTIFY_STEP
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.motion.retime.joint_spline import (
    DUPLICATE_DISTANCE,
    MAX_REFINEMENTS,
    MAX_WAYPOINTS,
    JointSpline,
    fit_joint_spline,
)
from mechanik.motion.retime.trajectory import DEVIATION
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

MAX_SHORTCUTS = 120
"""Largest number of random shortcuts."""
MAX_FAILED_SHORTCUTS = 40
"""Number of consecutive failed shortcuts (both ends on one segment, not shorter, or not free) after which the kernel
tries no more; in Python it is one more."""
CORNER_SHARES = (0.5, 0.35, 0.2, 0.1, 0.05)
"""Shares of the shorter adjacent segment that a parabolic arc replaces at a corner, tried in this order; the first free
arc is used."""
ARC_SPACING = 0.06
"""Planning units: approximate distance between the waypoints of an arc."""
SMOOTHING_SWEEPS = 12
"""Number of smoothing sweeps over all waypoints."""
SAME_DISTANCE = 1e-9
"""Planning units: closer configurations are the same."""
MIN_CORNER_ANGLE = 1e-3
"""rad: smaller changes of direction are not corners."""


def shortcut_path(space: PlanningSpace, q: Array, rng: np.random.Generator, deadline: float) -> Array:
    """Shorten a path: skip waypoints, try random shortcuts until too many fail, then skip waypoints again.

    Args:
        q: (M, nq) waypoints.
        deadline: time of `time.perf_counter` at which shortening ends.

    Returns:
        Waypoints (N, nq) with free segments between them, straight or with closed loops.
    """
    q = _skip_waypoints(space, q, deadline)
    failed_count = 0
    for _ in range(MAX_SHORTCUTS):
        if len(q) < 3 or failed_count > MAX_FAILED_SHORTCUTS or time.perf_counter() > deadline:
            break
        lengths = np.linalg.norm(space.scaled_difference(q[:-1], q[1:]), axis=1)
        arc_lengths = np.append(0.0, np.cumsum(lengths))
        length_a, length_b = np.sort(rng.uniform(0.0, arc_lengths[-1], 2))
        i, j = np.searchsorted(arc_lengths, (length_a, length_b), side="right") - 1
        i, j = int(min(i, len(lengths) - 1)), int(min(j, len(lengths) - 1))
        failed_count += 1
        if i == j:
            continue
        a = _point_on_segment(space, q, i, (length_a - arc_lengths[i]) / lengths[i])
        b = _point_on_segment(space, q, j, (length_b - arc_lengths[j]) / lengths[j])
        if a is None or b is None:
            continue
        new_length = float(np.linalg.norm(space.scaled_difference(a, b)))
        if new_length > 0.999 * (length_b - length_a):
            continue
        if not space.are_free(np.array([a, b])).all():
            continue
        if space.is_euclidean:
            if not space.is_segment_free(a, b):
                continue
            replacement = np.array([a, b])
        else:
            segment = space.free_segment(a, b)
            if segment is None:
                continue
            replacement = segment if space.has_loops else segment[[0, -1]]
        if space.has_loops and _path_length(space, replacement) > 0.999 * (length_b - length_a):
            continue
        q = np.concatenate([q[: i + 1], replacement, q[j + 1 :]])
        q = remove_duplicates(space, q)
        failed_count = 0
    return _skip_waypoints(space, q, deadline)


def round_corners(space: PlanningSpace, q: Array, deadline: float) -> Array:
    """Replace each corner of the waypoints q (N, nq) by a parabolic arc tangent to both sides, if an arc is free.

    Args:
        deadline: time of `time.perf_counter` after which the remaining corners are not changed.
    """
    if len(q) < 3:
        return q
    waypoints = [q[0]]
    for k in range(1, len(q) - 1):
        to_previous, to_next = space.scaled_difference(q[k], q[k - 1]), space.scaled_difference(q[k], q[k + 1])
        length_before, length_after = float(np.linalg.norm(to_previous)), float(np.linalg.norm(to_next))
        if (
            np.linalg.norm(to_previous / length_before + to_next / length_after) < MIN_CORNER_ANGLE
            or time.perf_counter() > deadline
        ):
            waypoints.append(q[k])
            continue
        for share in CORNER_SHARES:
            size = share * min(length_before, length_after)
            arc = _rounded_corner(space, q[k], to_previous * (size / length_before), to_next * (size / length_after))
            if arc is not None:
                waypoints += list(arc)
                break
        else:
            waypoints.append(q[k])
    return remove_duplicates(space, np.array([*waypoints, q[-1]]))


def smooth_with_closed_loops(space: PlanningSpace, q: Array, deadline: float) -> Array:
    """Smooth dense waypoints q (N, nq) of a mechanism with loops.

    Each waypoint moves repeatedly halfway to the midpoint of its neighbours. It is not moved if its loops cannot be
    closed there, or if the waypoint or the middle of an adjacent segment would violate the clearance.
    The first and the last waypoint stay.

    Args:
        deadline: time of `time.perf_counter` at which smoothing ends.
    """
    q = q.copy()
    for sweep in range(2 * SMOOTHING_SWEEPS):
        indices = np.arange(1 + sweep % 2, len(q) - 1, 2)
        if not len(indices) or time.perf_counter() > deadline:
            break
        to_previous = space.scaled_difference(q[indices], q[indices - 1])
        to_next = space.scaled_difference(q[indices], q[indices + 1])
        steps = 0.25 * (to_previous + to_next) * space.unit
        q_moved, is_closed = space.project_all(space.integrate(q[indices], steps))
        q_moved[~is_closed] = q[indices[~is_closed]]
        midpoints = [_midpoints(space, q_moved, q[indices - 1]), _midpoints(space, q_moved, q[indices + 1])]
        is_free = space.are_free(q_moved) & space.are_free(midpoints[0]) & space.are_free(midpoints[1])
        q[indices[is_free]] = q_moved[is_free]
    return q


def _midpoints(space: PlanningSpace, a: Array, b: Array) -> Array:
    """Configurations (N, nq) in the middle between a (N, nq) and b (N, nq); loops are not closed."""
    return space.integrate(a, 0.5 * space.difference(a, b))


def _rounded_corner(space: PlanningSpace, corner: Array, to_start: Array, to_end: Array) -> Array | None:
    """Waypoints (M, nq) of a parabolic arc that rounds a corner; None if it is not free.

    Args:
        corner: (nq,).
        to_start, to_end: (nv,) from the corner to the ends of the arc, planning units.
    """
    count = max(4, int(np.ceil(float(np.abs(to_start - to_end).max()) / ARC_SPACING)))
    t = np.linspace(0.0, 1.0, count + 1)[:, None]
    v = ((1.0 - t) ** 2 * to_start + t**2 * to_end) * space.unit
    waypoints = space.integrate(corner, v)
    if not space.is_euclidean:
        waypoints, is_closed = space.project_all(waypoints)
        if not is_closed.all():
            return None
    q_dense = space.densify(waypoints, space.step)
    return waypoints if q_dense is not None and space.are_free(q_dense).all() else None


def _skip_waypoints(space: PlanningSpace, q: Array, deadline: float) -> Array:
    """Skip waypoints: connect each waypoint to a far waypoint, searched by halving the number of skipped waypoints."""
    pieces, k = [q[:1]], 0
    while k < len(q) - 1:
        target = len(q) - 1
        segment: Array | None = None
        while target > k + 1 and time.perf_counter() < deadline:
            segment = space.free_segment(q[k], q[target])
            if segment is not None and (
                not space.has_loops or _path_length(space, segment) < _path_length(space, q[k : target + 1])
            ):
                break
            segment, target = None, k + (target - k) // 2
        if segment is None:
            target = k + 1
        pieces.append(segment[1:] if segment is not None and space.has_loops else q[target : target + 1])
        k = target
    return np.concatenate(pieces)


def _point_on_segment(space: PlanningSpace, q: Array, k: int, share: float) -> Array | None:
    """Configuration (nq,) at a share (0 to 1) of the segment from waypoint k to the next; None if it is not valid."""
    return space.project(space.integrate(q[k], share * space.difference(q[k], q[k + 1])))


def _path_length(space: PlanningSpace, q: Array) -> float:
    """Length of the path with waypoints q (N, nq), planning units."""
    return float(np.linalg.norm(space.scaled_difference(q[:-1], q[1:]), axis=1).sum())


def remove_duplicates(space: PlanningSpace, q: Array) -> Array:
    """Remove waypoints that equal the previous or the last waypoint; the first and the last waypoint stay."""
    indices = [0]
    for k in range(1, len(q) - 1):
        if (
            space.max_difference(q[indices[-1]], q[k]) > SAME_DISTANCE
            and space.max_difference(q[k], q[-1]) > SAME_DISTANCE
        ):
            indices.append(k)
    return q[[*indices, len(q) - 1]]


shortcut_kernel = kernel_module("planning.path_shortening")
corner_kernel = kernel_module("planning.corner_rounding")

CHECKS_PER_CALL = 1000
"""Number of collision checks after which a kernel call pauses; the deadline is checked between calls."""


def shortcut_in_kernel(space: PlanningSpace, q: Array, rng: np.random.Generator, deadline: float) -> Array:
    """Shorten the path with waypoints q (N, nq) in a kernel; only for Euclidean spaces.

    Args:
        deadline: time of `time.perf_counter` at which shortening ends, after the current kernel call.
    """
    scene = space.scene()
    if scene is None:
        return q[[0, -1]]
    waypoints = np.empty((len(q) + MAX_SHORTCUTS + 1, q.shape[1]))
    waypoints[: len(q)] = q
    state = ShorteningState.allocate(np.int64)
    state.waypoint_count = len(q)
    seed, status = int(rng.integers(2**62)), -1
    while status != SEARCH_DONE and time.perf_counter() < deadline:
        status = shortcut_kernel.shorten_path(
            *scene, space.unit, space.step, seed, MAX_SHORTCUTS, MAX_FAILED_SHORTCUTS, CHECKS_PER_CALL, waypoints,
            state.numbers,
        )  # fmt: skip
    space.check_count += state.check_count
    return waypoints[: state.waypoint_count]


def round_corners_in_kernel(space: PlanningSpace, q: Array) -> Array:
    """Replace each corner of the waypoints q (N, nq) by a parabolic arc tangent to both sides, if an arc is free.

    Only for Euclidean spaces.
    """
    scene = space.scene()
    if scene is None or len(q) < 3:
        return q
    length = float(np.abs(space.scaled_difference(q[:-1], q[1:])).max(axis=1).sum())
    out = np.empty((int(length / ARC_SPACING) + 6 * len(q), q.shape[1]))
    check_count = np.zeros(1, np.int64)
    count = corner_kernel.round_corners(*scene, space.unit, space.step, np.ascontiguousarray(q), out, check_count)
    space.check_count += int(check_count[0])
    return out[:count]


spline_kernel = kernel_module("planning.spline_clearance")
REFINEMENT_STEPS = (0.4, 0.2, 0.1, 0.05, 0.02)
"""Planning units: distances between waypoints, tried in this order until the spline is free."""


def refine_for_spline(space: PlanningSpace, q: Array, clearance: float) -> Array:
    """Insert waypoints on the path until the spline that `retime` fits through them by default keeps the clearance.

    If no distance in REFINEMENT_STEPS suffices, the waypoints q (N, nq) are returned unchanged.

    Args:
        clearance: m.
    """
    if space.collider is None or len(q) < 3:
        return q
    for step in (None, *REFINEMENT_STEPS):
        candidate = q if step is None else space.densify(q, step)
        if candidate is None:
            break
        if is_spline_free(space, candidate, clearance):
            return candidate
    return q


def is_spline_free(space: PlanningSpace, q: Array, clearance: float) -> bool:
    """Whether the spline that `retime` fits through the waypoints q (N, nq) by default keeps the clearance.

    It is checked about every 0.01 rad or 5 mm. Without SciPy, a spline that the kernel cannot check (loops, spherical
    joints, cone limits or too many waypoints) counts as free, because it cannot be retimed either.
    """
    scene, collider = space.scene(), space.collider
    if scene is None or collider is None:
        return True
    is_distinct = np.linalg.norm(space.difference(q[:-1], q[1:]), axis=1) > DUPLICATE_DISTANCE
    waypoints = q[np.append(True, is_distinct)]
    if len(waypoints) < 3:
        return True
    if space.is_euclidean:
        check_count = np.zeros(1, np.int64)
        status = spline_kernel.spline_is_free(
            *scene[:-1],
            clearance,
            waypoints,
            space.unit,
            DEVIATION,
            CERTIFY_STEP,
            MAX_REFINEMENTS,
            MAX_WAYPOINTS,
            check_count,
        )
        space.check_count += int(check_count[0])
        if status != TOO_MANY_WAYPOINTS:
            return bool(status != IN_COLLISION)
    try:
        curve = fit_joint_spline(Path(space.mechanism, waypoints), DEVIATION)
    except MissingExtra:
        return True
    return bool(np.all(collider.is_free(curve.configurations(_dense_parameters(space, curve)), clearance)))


def _dense_parameters(space: PlanningSpace, curve: JointSpline) -> Array:
    """Parameters s (M,) along a spline, between which no dof moves by more than about 0.01 rad or 5 mm."""
    q_waypoints = np.vstack([curve.coefficients[3], curve.configurations(curve.s[-1:])])
    changes = np.abs(space.scaled_difference(q_waypoints[:-1], q_waypoints[1:])).max(axis=1)
    counts = np.maximum(np.ceil(changes / CERTIFY_STEP), 1.0).astype(np.int64)
    k = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(len(k)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(curve.s[k] + index / counts[k] * np.diff(curve.s)[k], curve.s[-1])
