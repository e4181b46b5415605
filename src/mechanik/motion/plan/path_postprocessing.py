"""Post-processing of planned paths: shortcuts, rounded corners, smoothing along loops, waypoints for the spline.

Shortcuts and corners exist twice: in Python for loops and spherical joints, and compiled for Euclidean spaces.
"""

from __future__ import annotations

import time

import numpy as np

from mechanik.errors import MissingExtra
from mechanik.kernels.planning.motion_check import IN_COLLISION, TOO_MANY_SAMPLES
from mechanik.kernels.planning.search_state import CHECK_COUNT, SEARCH_DONE, SEARCH_STATE_INTS, WAYPOINT_COUNT
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
"""Number of failed shortcuts in a row (not shorter or not free) at which shortening ends."""
SIZES = (0.5, 0.35, 0.2, 0.1, 0.05)
"""Shares of the shorter side of a corner that its arc may use, tried in this order; the first that is free is used."""
BLEND_STEP = 0.06
"""Planning units: distance of the waypoints on a rounded corner."""
SWEEPS = 12
"""Number of smoothing sweeps over all waypoints."""
STILL = 1e-9
"""Planning units: closer configurations are the same."""
FLAT = 1e-3
"""rad: smaller changes of direction are not corners."""


def shortcut_path(ground: PlanningSpace, q: Array, rng: np.random.Generator, until: float) -> Array:
    """Shorten a path: skip waypoints, then try random shortcuts until no more are found.

    Args:
        q: (M, nq) waypoints.
        until: deadline by `time.perf_counter`.

    Returns:
        Waypoints (N, nq) with free segments between them, straight or along the loops.
    """
    q = _skipped(ground, q, until)
    vain = 0
    for _ in range(MAX_SHORTCUTS):
        if len(q) < 3 or vain > MAX_FAILED_SHORTCUTS or time.perf_counter() > until:
            break
        sides = np.linalg.norm(ground.scaled_difference(q[:-1], q[1:]), axis=1)
        along = np.append(0.0, np.cumsum(sides))
        low, high = np.sort(rng.uniform(0.0, along[-1], 2))
        i, j = np.searchsorted(along, (low, high), side="right") - 1
        i, j = int(min(i, len(sides) - 1)), int(min(j, len(sides) - 1))
        vain += 1
        if i == j:
            continue
        a, b = _between(ground, q, i, (low - along[i]) / sides[i]), _between(ground, q, j, (high - along[j]) / sides[j])
        if a is None or b is None:
            continue
        now = float(np.linalg.norm(ground.scaled_difference(a, b)))
        if now > 0.999 * (high - low):
            continue
        if not ground.are_free(np.array([a, b])).all():
            continue
        if ground.is_euclidean:
            if not ground.is_segment_free(a, b):
                continue
            new = np.array([a, b])
        else:
            way = ground.free_segment(a, b)
            if way is None:
                continue
            new = way if ground.has_loops else way[[0, -1]]
        if ground.has_loops and _length(ground, new) > 0.999 * (high - low):
            continue
        q = np.concatenate([q[: i + 1], new, q[j + 1 :]])
        q = remove_duplicates(ground, q)
        vain = 0
    return _skipped(ground, q, until)


def blend_corners(ground: PlanningSpace, q: Array, until: float) -> Array:
    """Replace each corner by a parabola tangent to both sides, where it is free."""
    if len(q) < 3:
        return q
    found = [q[0]]
    for k in range(1, len(q) - 1):
        before, after = ground.scaled_difference(q[k], q[k - 1]), ground.scaled_difference(q[k], q[k + 1])
        a, b = float(np.linalg.norm(before)), float(np.linalg.norm(after))
        if np.linalg.norm(before / a + after / b) < FLAT or time.perf_counter() > until:
            found.append(q[k])
            continue
        for size in SIZES:
            reach = size * min(a, b)
            arc = _arc(ground, q[k], before * (reach / a), after * (reach / b))
            if arc is not None:
                found += list(arc)
                break
        else:
            found.append(q[k])
    return remove_duplicates(ground, np.array([*found, q[-1]]))


def smooth_along_loops(ground: PlanningSpace, q: Array, until: float) -> Array:
    """Move each waypoint halfway to the middle of its neighbours, repeatedly; for dense waypoints along loops."""
    q = q.copy()
    for sweep in range(2 * SWEEPS):
        some = np.arange(1 + sweep % 2, len(q) - 1, 2)
        if not len(some) or time.perf_counter() > until:
            break
        pull = (
            0.25
            * (ground.scaled_difference(q[some], q[some - 1]) + ground.scaled_difference(q[some], q[some + 1]))
            * ground.unit
        )
        moved, shut = ground.project_all(ground.integrate(q[some], pull))
        moved[~shut] = q[some[~shut]]
        beside = [_middles(ground, moved, q[some - 1]), _middles(ground, moved, q[some + 1])]
        free = ground.are_free(moved) & ground.are_free(beside[0]) & ground.are_free(beside[1])
        q[some[free]] = moved[free]
    return q


def _middles(ground: PlanningSpace, a: Array, b: Array) -> Array:
    return ground.integrate(a, 0.5 * ground.difference(a, b))


def _arc(ground: PlanningSpace, corner: Array, before: Array, after: Array) -> Array | None:
    """Waypoints (M, nq) of a parabola that rounds a corner, if it is free; else None.

    Args:
        corner: (nq,).
        before, after: (nv,) from the corner to the ends of the parabola, planning units.
    """
    count = max(4, int(np.ceil(float(np.abs(before - after).max()) / BLEND_STEP)))
    t = np.linspace(0.0, 1.0, count + 1)[:, None]
    v = ((1.0 - t) ** 2 * before + t**2 * after) * ground.unit
    points = ground.integrate(corner, v)
    if not ground.is_euclidean:
        points, shut = ground.project_all(points)
        if not shut.all():
            return None
    dense = ground.densify(points, ground.step)
    return points if dense is not None and ground.are_free(dense).all() else None


def _skipped(ground: PlanningSpace, q: Array, until: float) -> Array:
    """Skip waypoints: connect each to the farthest one that a free segment reaches, found by bisection."""
    found, k = [q[:1]], 0
    while k < len(q) - 1:
        jump = len(q) - 1
        way: Array | None = None
        while jump > k + 1 and time.perf_counter() < until:
            way = ground.free_segment(q[k], q[jump])
            if way is not None and (not ground.has_loops or _length(ground, way) < _length(ground, q[k : jump + 1])):
                break
            way, jump = None, k + (jump - k) // 2
        if way is None:
            jump = k + 1
        found.append(way[1:] if way is not None and ground.has_loops else q[jump : jump + 1])
        k = jump
    return np.concatenate(found)


def _between(ground: PlanningSpace, q: Array, k: int, share: float) -> Array | None:
    return ground.project(ground.integrate(q[k], share * ground.difference(q[k], q[k + 1])))


def _length(ground: PlanningSpace, q: Array) -> float:
    return float(np.linalg.norm(ground.scaled_difference(q[:-1], q[1:]), axis=1).sum())


def remove_duplicates(ground: PlanningSpace, q: Array) -> Array:
    """Remove waypoints that equal their predecessor; the first and the last stay."""
    kept = [0]
    for k in range(1, len(q) - 1):
        if ground.max_difference(q[kept[-1]], q[k]) > STILL and ground.max_difference(q[k], q[-1]) > STILL:
            kept.append(k)
    return q[[*kept, len(q) - 1]]


shortcuts = kernel_module("planning.path_shortening")
corners = kernel_module("planning.corner_rounding")

BUDGET = 1000
"""Number of collision checks in a kernel call, after which the clock is read."""


def shortcut_in_kernel(ground: PlanningSpace, q: Array, rng: np.random.Generator, until: float) -> Array:
    """Shorten the waypoints q (N, nq) in a kernel, in a Euclidean space; unchanged after the deadline."""
    scene = ground.scene()
    if scene is None:
        return q[[0, -1]]
    x = np.empty((len(q) + MAX_SHORTCUTS + 1, q.shape[1]))
    x[: len(q)] = q
    state = np.zeros(SEARCH_STATE_INTS, np.int64)
    state[WAYPOINT_COUNT] = len(q)
    seed, answer = int(rng.integers(2**62)), -1
    while answer != SEARCH_DONE and time.perf_counter() < until:
        answer = shortcuts.shorten_path(
            *scene, ground.unit, ground.step, seed, MAX_SHORTCUTS, MAX_FAILED_SHORTCUTS, BUDGET, x, state
        )
    ground.check_count += int(state[CHECK_COUNT])
    return x[: int(state[WAYPOINT_COUNT])]


def blend_corners_in_kernel(ground: PlanningSpace, q: Array) -> Array:
    """Replace each corner by a parabola tangent to both sides, where it is free; in a kernel, in a Euclidean space."""
    scene = ground.scene()
    if scene is None or len(q) < 3:
        return q
    far = float(np.abs(ground.scaled_difference(q[:-1], q[1:])).max(axis=1).sum())
    out = np.empty((int(far / BLEND_STEP) + 6 * len(q), q.shape[1]))
    state = np.zeros(SEARCH_STATE_INTS, np.int64)
    count = corners.round_corners(*scene, ground.unit, ground.step, np.ascontiguousarray(q), out, state)
    ground.check_count += int(state[CHECK_COUNT])
    return out[:count]


kernel = kernel_module("planning.spline_clearance")
CLOSER = (0.4, 0.2, 0.1, 0.05, 0.02)
"""Planning units: distances of waypoints, tried in this order until the spline is free."""


def refine_for_spline(ground: PlanningSpace, q: Array, clearance: float) -> Array:
    """Insert waypoints on the path until the spline of `retime` through them keeps the clearance.

    If no distance in CLOSER suffices, the waypoints stay as they are.
    """
    if ground.collider is None or len(q) < 3:
        return q
    for step in (None, *CLOSER):
        closer = q if step is None else ground.densify(q, step)
        if closer is None:
            break
        if is_spline_free(ground, closer, clearance):
            return closer
    return q


def is_spline_free(ground: PlanningSpace, q: Array, clearance: float) -> bool:
    """Whether the spline through the waypoints q (N, nq) keeps the clearance, checked about every 0.01 rad or 5 mm.

    Without SciPy the spline of a mechanism with loops or spherical joints cannot be fitted; it counts as free, because
    it cannot be retimed either.
    """
    scene, collider = ground.scene(), ground.collider
    if scene is None or collider is None:
        return True
    moved = np.linalg.norm(ground.difference(q[:-1], q[1:]), axis=1) > DUPLICATE_DISTANCE
    knots = q[np.append(True, moved)]
    if len(knots) < 3:
        return True
    if ground.is_euclidean:
        looks = np.zeros(1, np.int64)
        answer = kernel.spline_is_free(
            *scene[:-1], clearance, knots, ground.unit, DEVIATION, CERTIFY_STEP, MAX_REFINEMENTS, MAX_WAYPOINTS, looks
        )
        ground.check_count += int(looks[0])
        if answer != TOO_MANY_SAMPLES:
            return bool(answer != IN_COLLISION)
    try:
        curve = fit_joint_spline(Path(ground.mechanism, knots), DEVIATION)
    except MissingExtra:
        return True
    return bool(np.all(collider.is_free(curve.configurations(_close(ground, curve)), clearance)))


def _close(ground: PlanningSpace, curve: JointSpline) -> Array:
    """Parameters s (M,) along a spline at which no dof moves by more than about 0.01 rad or 5 mm."""
    knots = curve.coefficients[3]
    ends = np.vstack([knots, curve.configurations(curve.s[-1:])])
    far = np.abs(ground.scaled_difference(ends[:-1], ends[1:])).max(axis=1)
    parts = np.maximum(np.ceil(far / CERTIFY_STEP), 1.0).astype(np.int64)
    k = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(k)) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.append(curve.s[k] + number / parts[k] * np.diff(curve.s)[k], curve.s[-1])
