"""Self-motions of redundant mechanisms: tracing curves, arcs inside the limits, samples, paths, and nearest points.

A self-motion is a curve of solutions. It is traced by steps along the null space of the residual Jacobian, each
followed by Newton's method in the normal directions, until the curve closes or ends. A step could end on another curve
nearby; the sign of a determinant detects this. The trace does not stop at limits of angles that full rotations can
shift alone, because the curve may return inside the limits; in this way it reaches parts of the curve to which no start
leads. At the end the curve is cut into arcs at the limits.

The nearest point to a configuration is found by projected gradient descent on the squared distance, with step sizes by
J. Barzilai, J. M. Borwein, "Two-point step size gradient methods", IMA Journal of Numerical Analysis 8, 1988. A joint
at its limit stays there while the descent direction points outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.solver.search.constraint_system import (
    RESIDUAL_TOLERANCE,
    TWO_PI,
    ConstraintSystem,
    Mask,
    least_norm_step,
    step_length,
)
from mechanik.spatial.array import Array
from mechanik.spatial.vector_math import has_positive_determinant

CURVE_SPACING = 0.02
"""Scaled units; approximate maximum distance between consecutive points of a curve after `densify`."""
MAX_STEP, CAUTIOUS_STEP, MIN_STEP = 0.15, 0.03, 1e-3
"""Scaled units; lengths of steps along a curve. Steps above CAUTIOUS_STEP are at most about as long as the smallest
singular value of the Jacobian. Steps of MIN_STEP are accepted for any sign of the determinant, so the trace continues
straight where curves cross.
"""
MIN_TANGENT_COSINE = 0.97
"""Smallest cosine of the angle between the tangents at both ends of a step."""
CORRECTIONS = 4
"""Maximum number of Newton corrections per step."""
MAX_CURVE_STEPS = 4000
"""Maximum number of steps in a direction; typical curves need 50 to 300. Unbounded curves, possible with
prismatic joints, are cut.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SelfMotionCurve:
    """A curve of solutions.

    Attributes:
        q: (p, nq) consecutive solutions.
        is_closed: whether the first point follows the last, up to full rotations.
    """

    q: Array
    is_closed: bool

    def nearest_point(self, constraints: ConstraintSystem, q: Array) -> tuple[int, float]:
        """Return the index of the point nearest to `q` (nq,), and its distance in scaled units."""
        distances = step_length(constraints.wrapped_difference(self.q, q))
        k = int(np.argmin(distances))
        return k, float(distances[k])


def trace_self_motions(constraints: ConstraintSystem, q: Array) -> list[SelfMotionCurve]:
    """Trace the curves through solutions `q` (L, nq) with one free dof; a curve has one point if no motion is possible.

    All curves are traced together, which takes only a little longer than one curve.
    """
    if not len(q):
        return []
    J = constraints.residual_and_jacobian(q)[1]
    tangents = (
        np.linalg.svd(J, full_matrices=True)[2][:, -1] if J.shape[1] else np.eye(constraints.n)[:1].repeat(len(q), 0)
    )
    paths, is_closed = _trace(constraints, q, tangents)
    open_indices = np.flatnonzero(~is_closed)
    backward_paths, _ = _trace(constraints, q[open_indices], -tangents[open_indices])
    for k, path in zip(open_indices.tolist(), backward_paths, strict=True):
        paths[k] = np.concatenate([path[:0:-1], paths[k]])
    return [SelfMotionCurve(path, bool(closes)) for path, closes in zip(paths, is_closed, strict=True)]


def is_on_curve(constraints: ConstraintSystem, curve: SelfMotionCurve, q: Array) -> Mask:
    """Return whether solutions `q` (K, nq) are on a curve, as a mask (K,).

    A solution is on the curve if a motion along the curve leads from the nearest curve point to the solution.
    """
    is_on = np.zeros(len(q), dtype=np.bool_)
    if not len(q):
        return is_on
    u = constraints.wrapped_difference(curve.q[None], q[:, None])
    distances = step_length(u)
    nearest_indices = np.argmin(distances, axis=1)
    close_indices = np.flatnonzero(distances[np.arange(len(q)), nearest_indices] < MAX_STEP)
    if len(close_indices):
        solutions = q[close_indices]
        projected_q = curve_points = curve.q[nearest_indices[close_indices]]
        for _ in range(4):  # converges to the nearest point of the curve
            difference = constraints.wrapped_difference(projected_q, solutions)
            projected_q, _ = constraints.project(
                constraints.step(
                    projected_q, _null_space_part(constraints.residual_and_jacobian(projected_q)[1], difference)
                ),
                steps=3,
            )
        J_a, J_b = constraints.residual_and_jacobian(curve_points)[1], constraints.residual_and_jacobian(solutions)[1]
        t_a = np.linalg.svd(J_a)[2][:, -1]
        t_b = _null_space_part(J_b, t_a)
        is_on[close_indices] = (
            step_length(constraints.wrapped_difference(projected_q, solutions)) < 1e-5
        ) & has_same_orientation(J_a, t_a, J_b, t_b)
    return is_on


def _null_space_part(J: Array, u: Array) -> Array:
    """Return the part of `u` (K, n) in the null space of `J` (K, m, n)."""
    m = J.shape[1]
    Jt = np.swapaxes(J, -1, -2)
    return u - (Jt @ np.linalg.solve(J @ Jt + 1e-12 * np.eye(m), J @ u[..., None]))[..., 0]


def _trace(constraints: ConstraintSystem, q: Array, first_tangents: Array) -> tuple[list[Array], Mask]:
    """Trace each curve from `q` (L, nq) in the direction `first_tangents` (L, n).

    Returns:
        The points of each curve, and whether the curve is closed (L,).
    """
    L = len(q)
    points: list[list[Array]] = [[start] for start in q]
    is_closed = np.zeros(L, dtype=np.bool_)
    all_q, tangents, steps, J = (
        q.copy(),
        first_tangents.copy(),
        np.full(L, 0.02),
        constraints.residual_and_jacobian(q)[1],
    )
    active_indices = np.arange(L)
    for _ in range(MAX_CURVE_STEPS):
        if not len(active_indices) or constraints.is_exhausted:
            break
        q_current, t_current = all_q[active_indices], tangents[active_indices]
        q_next, is_accepted, t_next, max_steps, J_next = _advance(
            constraints, q_current, t_current, steps[active_indices]
        )
        is_accepted &= (t_current * t_next).sum(axis=1) > MIN_TANGENT_COSINE
        is_accepted &= has_same_orientation(J[active_indices], t_current, J_next, t_next) | (
            steps[active_indices] <= MIN_STEP
        )
        is_accepted &= constraints.unshiftable_values_are_inside(q_next)
        is_stuck = ~is_accepted & (steps[active_indices] <= MIN_STEP)
        # a curve is closed if this step passes its start in the same direction
        to_start = constraints.wrapped_difference(q_current, q[active_indices])
        step_sizes = step_length(constraints.wrapped_difference(q_current, q_next))
        distance_ahead = (to_start * t_current).sum(axis=1)
        distance_aside = step_length(to_start - distance_ahead[:, None] * t_current)
        point_count = np.array([len(points[k]) for k in active_indices])
        closes_now = (
            is_accepted
            & (point_count > 3)
            & (distance_ahead > -1e-9)
            & (distance_ahead <= step_sizes)
            & (distance_aside < 0.3 * step_sizes)
        )
        closes_now &= (t_current * first_tangents[active_indices]).sum(axis=1) > 0.5
        is_closed[active_indices[closes_now]] = True
        for i in np.flatnonzero(is_accepted & ~closes_now).tolist():
            points[int(active_indices[i])].append(q_next[i])
        all_q[active_indices[is_accepted]], tangents[active_indices[is_accepted]], J[active_indices[is_accepted]] = (
            q_next[is_accepted],
            t_next[is_accepted],
            J_next[is_accepted],
        )
        step_limits = np.clip(max_steps, CAUTIOUS_STEP, MAX_STEP)
        steps[active_indices] = np.where(
            is_accepted,
            np.minimum(1.5 * steps[active_indices], step_limits),
            np.maximum(0.5 * steps[active_indices], MIN_STEP),
        )
        active_indices = active_indices[~(closes_now | is_stuck)]
    return [np.array(path) for path in points], is_closed


def _advance(
    constraints: ConstraintSystem, q: Array, tangents: Array, step_sizes: Array
) -> tuple[Array, Mask, Array, Array, Array]:
    """Step by `step_sizes` (L,) along `tangents` (L, n) from `q` (L, nq), and project back normal to the tangents.

    Returns:
        The end points; whether the residual is zero there and the correction is small; the new tangents; the
        approximate smallest singular values of the Jacobians; and the Jacobians.
    """
    q_next = predicted = constraints.step(q, step_sizes[:, None] * tangents)
    e, normal_inverse, Jte, J = _normal_system(constraints, q_next, tangents)
    for _ in range(CORRECTIONS):
        if e.max(initial=0.0) < RESIDUAL_TOLERANCE:
            break
        q_next = constraints.step(q_next, -(normal_inverse @ Jte)[..., 0])
        e, normal_inverse, Jte, J = _normal_system(constraints, q_next, tangents)
    next_tangents = (normal_inverse @ tangents[..., None])[..., 0]
    next_tangents /= step_length(next_tangents)[:, None]
    is_accepted = (e < RESIDUAL_TOLERANCE) & (
        step_length(constraints.wrapped_difference(predicted, q_next)) < 0.5 * step_sizes
    )
    return q_next, is_accepted, next_tangents, np.abs(normal_inverse).max(axis=(1, 2)) ** -0.5, J


def has_same_orientation(J_a: Array, t_a: Array, J_b: Array, t_b: Array) -> Mask:
    """Return whether the curve has the same orientation at a and b, as a mask (L,).

    J (L, m, n) are the residual Jacobians, t (L, n) tangents in the same direction of travel. If m = n - 1, this tests
    whether the determinants of J stacked on t have the same sign.
    """
    product = np.swapaxes(J_a, -1, -2) @ J_b + t_a[:, :, None] * t_b[:, None, :]
    return has_positive_determinant(product)


def _normal_system(constraints: ConstraintSystem, q: Array, t: Array) -> tuple[Array, Array, Array, Array]:
    """Return at `q` (L, nq) the largest residual (L,), the inverse (L, n, n) of J'J + t t', J'e (L, n, 1), and J.

    The inverse times J'e is the Newton step normal to t; the inverse times t is the null direction.
    """
    e, J = constraints.residual_and_jacobian(q)
    Jt = np.swapaxes(J, -1, -2)
    A = Jt @ J + t[:, :, None] * t[:, None, :] + 1e-14 * np.eye(constraints.n)
    M = np.asarray(np.linalg.inv(A), dtype=np.float64)
    return np.abs(e).max(axis=1, initial=0.0), M, Jt @ e[..., None], J


def densify(constraints: ConstraintSystem, curve: SelfMotionCurve) -> SelfMotionCurve:
    """Return the curve with points at most about CURVE_SPACING apart and continuous angles.

    New points are interpolated by cubic polynomials. All points are projected onto the constraints; a point for which
    this fails is dropped. A curve of one point is returned unchanged.
    """
    coarse_q = curve.q
    if len(coarse_q) == 1:
        return curve
    u = constraints.wrapped_difference(coarse_q[:-1], coarse_q[1:])
    if curve.is_closed:
        u = np.concatenate([u, constraints.wrapped_difference(coarse_q[-1:], coarse_q[:1])])
    t = _tangents(constraints, coarse_q, u, curve.is_closed)
    segment_lengths = step_length(u)
    counts = np.maximum(1, np.ceil(segment_lengths / CURVE_SPACING)).astype(np.int64)
    k = np.repeat(np.arange(len(u)), counts)  # segment of each point
    s = ((np.arange(len(k)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[k])[:, None]
    a, b = t[k] * segment_lengths[k, None], t[(k + 1) % len(t)] * segment_lengths[k, None]
    cubic = (s**3 - 2 * s**2 + s) * a + (3 * s**2 - 2 * s**3) * u[k] + (s**3 - s**2) * b
    unwrapped_q = unwrap_along(constraints, coarse_q)
    points = constraints.step(unwrapped_q[k], cubic)
    if not curve.is_closed:
        points = np.concatenate([points, unwrapped_q[-1:]])
    q, error = constraints.project(points, steps=6)
    return SelfMotionCurve(q[error < RESIDUAL_TOLERANCE], curve.is_closed)


def unwrap_along(constraints: ConstraintSystem, path: Array) -> Array:
    """Return the path (p, nq) with angles shifted by full rotations such that they are continuous."""
    path, k = path.copy(), constraints.columns[constraints.is_periodic]
    path[:, k] = np.unwrap(path[:, k], axis=0)
    return path


def _tangents(constraints: ConstraintSystem, q: Array, u: Array, is_closed: bool) -> Array:
    """Return the forward unit tangents (p, n) of a curve at its points."""
    J = constraints.residual_and_jacobian(q)[1]
    forward = u if is_closed else np.concatenate([u, u[-1:]])
    t = _null_space_part(J, forward)
    return t / np.maximum(step_length(t), 1e-12)[:, None]


BISECTIONS = 20
"""Number of bisections that move the end of an arc onto its limit: from 0.02 rad to 2e-8 rad."""
MIN_SAMPLE_SPACING = 0.1
"""Scaled units; approximate minimum distance between samples along an arc."""
LIMIT_TOLERANCE = 1e-9
"""rad and m; a value within this distance of a limit is at the limit."""


def arcs_within_limits(constraints: ConstraintSystem, curve: SelfMotionCurve) -> list[SelfMotionCurve]:
    """Return the arcs of a curve inside the limits, modulo full rotations.

    An arc ends at a limit or at an end of the curve. A closed curve inside the limits is one closed arc. Points are at
    most about CURVE_SPACING apart, and angles are continuous. An arc shorter than CURVE_SPACING may be missed.
    """
    curve = densify(constraints, curve)
    q, is_inside = curve.q, constraints.unwrap(curve.q, curve.q[0])[1]
    if is_inside.all() or not is_inside.any():
        return [curve] if is_inside.all() else []
    if curve.is_closed:  # start outside the limits, so that no arc is split
        k, k_angle = int(np.argmin(is_inside)), constraints.columns[constraints.is_periodic]
        revolution = np.zeros_like(q[0])
        revolution[k_angle] = TWO_PI * np.round((q[-1] - q[0])[k_angle] / TWO_PI)
        q = np.concatenate([q[k:], q[: k + 1] + revolution])
        is_inside = np.concatenate([is_inside[k:], is_inside[: k + 1]])
    change_indices = np.flatnonzero(is_inside[:-1] != is_inside[1:])
    is_exit = is_inside[change_indices]
    limit_points = _limit_points(
        constraints,
        q[np.where(is_exit, change_indices, change_indices + 1)],
        q[np.where(is_exit, change_indices + 1, change_indices)],
    )
    arcs: list[SelfMotionCurve] = []
    for index, points in enumerate(np.split(q, change_indices + 1)):
        # limit_points[index] is between these points and the next
        if is_exit[index] if index < len(is_exit) else is_inside[-1]:
            arcs.append(
                SelfMotionCurve(
                    np.concatenate([limit_points[max(index - 1, 0) : index], points, limit_points[index : index + 1]]),
                    False,
                )
            )
    return arcs


def single_point_arcs(
    constraints: ConstraintSystem, arcs: list[SelfMotionCurve], solutions: Array
) -> list[SelfMotionCurve]:
    """Return arcs of a single point for `solutions` (K, nq) that are near no arc, since their own arc is too short."""
    new_arcs: list[SelfMotionCurve] = []
    for solution in solutions:
        if all(arc.nearest_point(constraints, solution)[1] > 2 * CURVE_SPACING for arc in (*arcs, *new_arcs)):
            new_arcs.append(SelfMotionCurve(solution[None], False))
    return new_arcs


def sample_arc(constraints: ConstraintSystem, arc: SelfMotionCurve, q0: Array, count: int) -> Array:
    """Return up to `count` points (k, nq) evenly along an arc, unwrapped; the first is the nearest to `q0` (nq,)."""
    unwrapped_q = constraints.unwrap(arc.q, q0)[0]
    distances = constraints.distance(q0, unwrapped_q)
    k = int(np.argmin(distances))
    arc_lengths = np.concatenate([[0.0], np.cumsum(step_length(constraints.wrapped_difference(arc.q[:-1], arc.q[1:])))])
    total_length = float(arc_lengths[-1])
    if arc.is_closed:
        total_length += float(step_length(constraints.wrapped_difference(arc.q[-1], arc.q[0])))
    count = min(count, 1 + int(total_length / MIN_SAMPLE_SPACING))
    if arc.is_closed:
        positions = (arc_lengths[k] + total_length * np.arange(1, count) / count) % total_length
    else:
        positions = np.linspace(0.0, total_length, count)
        positions = np.delete(positions, int(np.argmin(np.abs(positions - arc_lengths[k]))))
    indices = np.minimum(np.searchsorted(arc_lengths, positions), len(arc_lengths) - 1)
    return np.concatenate([_nearest_point(constraints, arc, distances, k, q0)[None], unwrapped_q[indices]])


def path_along_arc(constraints: ConstraintSystem, arc: SelfMotionCurve, a: Array, b: Array) -> Array | None:
    """Return a path (m, nq) from `a` to `b`, both on the arc, along its points and inside the limits.

    Angles are continuous from `a` on, so the end may differ from `b` by full rotations. The result is None if every
    path leaves the limits, for example because a joint would have to rotate farther than its limits allow.
    """
    i, j = arc.nearest_point(constraints, a)[0], arc.nearest_point(constraints, b)[0]
    p = len(arc.q)
    orders = [np.arange(i, j + 1) if i <= j else np.arange(i, j - 1, -1)]
    if arc.is_closed:
        other_order = np.arange(i, j + p + 1) if j < i else np.arange(i, j - p - 1, -1)
        orders = sorted([orders[0], other_order % p], key=len)
    for order in orders:
        q = unwrap_along(constraints, np.concatenate([a[None], arc.q[order], b[None]]))
        if is_within_limits(constraints, q).all():
            return _without_reversals(constraints, q)
    return None


def is_within_limits(constraints: ConstraintSystem, q: Array) -> Mask:
    """Return whether the moving values are inside their limits, not modulo full rotations, as a mask (K,)."""
    k = constraints.columns[constraints.columns >= 0]
    lower, upper = constraints.lower[k] - LIMIT_TOLERANCE, constraints.upper[k] + LIMIT_TOLERANCE
    return np.asarray(((q[:, k] >= lower) & (q[:, k] <= upper)).all(axis=1))


def _without_reversals(constraints: ConstraintSystem, q: Array) -> Array:
    """Return the path (m, nq) without its second and its second-last point, each only if the path reverses there.

    Of fewer than four points only the first and the last remain.
    """
    if len(q) < 4:
        return q[[0, -1]]
    u = constraints.wrapped_difference(q[:-1], q[1:])
    mask = np.ones(len(q), dtype=np.bool_)
    mask[1], mask[-2] = u[0] @ u[1] > 0.0, u[-1] @ u[-2] > 0.0
    return q[mask]


def _limit_points(constraints: ConstraintSystem, inner: Array, outer: Array) -> Array:
    """Return the last points inside the limits between points `inner` and `outer` (E, nq), by bisection."""
    for _ in range(BISECTIONS):
        middle_q = constraints.step(inner, 0.5 * constraints.wrapped_difference(inner, outer))
        middle_q, _ = constraints.project(middle_q, steps=3)
        is_inside = constraints.unwrap(middle_q, inner[0])[1][:, None]
        inner, outer = np.where(is_inside, middle_q, inner), np.where(is_inside, outer, middle_q)
    return inner


def _nearest_point(constraints: ConstraintSystem, arc: SelfMotionCurve, distances: Array, k: int, q0: Array) -> Array:
    """Return the point near arc point `k` that is nearest to `q0`, by a parabola through three squared distances."""
    p = len(arc.q)
    i, j = (k - 1) % p, (k + 1) % p
    point = constraints.unwrap(arc.q[k : k + 1], q0)[0][0]
    if p < 3 or (not arc.is_closed and k in (0, p - 1)):
        return point
    a, b, c = distances[i] ** 2, distances[k] ** 2, distances[j] ** 2
    curvature = a - 2 * b + c
    fraction = 0.5 * (a - c) / curvature if curvature > 1e-12 else 0.0
    step = min(abs(fraction), 1.0) * constraints.wrapped_difference(arc.q[k], arc.q[j] if fraction > 0 else arc.q[i])
    q, error = constraints.project(constraints.step(arc.q[k : k + 1], step[None]))
    q, is_inside = constraints.unwrap(q, q0)
    return (
        q[0]
        if is_inside[0] and error[0] < RESIDUAL_TOLERANCE and constraints.distance(q0, q[0]) < distances[k]
        else point
    )


MAX_APPROACH_STEPS = 80
"""Maximum number of steps; 10 to 30 are typical."""
MIN_GRADIENT = 1e-6
"""rad and m; the descent ends at smaller gradients, since the squared distance then decreases by their square only."""
MIN_STEP_FACTOR, MAX_STEP_FACTOR, MAX_STEP_LENGTH = 0.05, 5.0, 0.4
"""Bounds of the ratio of step to gradient after an accepted step; maximum length of a step, rad and m. Rejected steps
may make the ratio smaller than its lower bound.
"""
MAX_REJECTED_STEPS = 8
"""Number of successive rejected steps after which the descent stops."""


def approach_along_self_motion(
    constraints: ConstraintSystem, q: Array, q0: Array, max_steps: int = MAX_APPROACH_STEPS
) -> Array:
    """Move solutions `q` (K, nq) along their self-motions as near to `q0` (nq,) as the limits allow.

    The descent is local: the result depends on the start.

    Args:
        max_steps: maximum number of steps.
    """
    q = q.copy()
    K = len(q)
    direction, gradient, is_at_limit = _descent_direction(constraints, q, q0)
    factor, rejections = np.ones(K), np.zeros(K, dtype=np.int64)
    distance = constraints.distance(q0, q)
    for _ in range(max_steps):
        k = np.flatnonzero(
            (np.abs(direction).max(axis=1, initial=0.0) > MIN_GRADIENT) & (rejections < MAX_REJECTED_STEPS)
        )
        if not len(k) or constraints.is_exhausted:
            break
        step = factor[k, None] * direction[k]
        step *= np.minimum(1.0, MAX_STEP_LENGTH / np.maximum(np.linalg.norm(step, axis=1), 1e-300))[:, None]
        trial_q, reaches_limit = _step_within_limits(constraints, q[k], step)
        trial_q, error = constraints.project(trial_q, reaches_limit | is_at_limit[k], steps=6)
        new_distance = constraints.distance(q0, trial_q)
        is_accepted = (
            (error < RESIDUAL_TOLERANCE) & is_within_limits(constraints, trial_q) & (new_distance < distance[k])
        )
        rejections[k[~is_accepted]] += 1
        factor[k[~is_accepted]] *= 0.3
        k, trial_q = k[is_accepted], trial_q[is_accepted]
        if not len(k):
            continue
        previous_q = q[k]
        q[k], distance[k], rejections[k] = trial_q, new_distance[is_accepted], 0
        direction[k], new_gradient, is_at_limit[k] = _descent_direction(constraints, trial_q, q0)
        s = constraints.mechanism.space.difference(previous_q, trial_q)[:, constraints.moving_dofs]
        y = new_gradient - gradient[k]
        curvature = (s * y).sum(axis=1)
        new_factor = np.where(
            curvature > 0.0, (s * s).sum(axis=1) / np.where(curvature > 0.0, curvature, 1.0), 2 * factor[k]
        )
        factor[k], gradient[k] = np.clip(new_factor, MIN_STEP_FACTOR, MAX_STEP_FACTOR), new_gradient
    return q


def _descent_direction(constraints: ConstraintSystem, q: Array, q0: Array) -> tuple[Array, Array, Mask]:
    """Return the descent direction, the projected gradient and the mask of dofs at active limits, (K, n) each.

    Direction and gradient are in rad and m. Active limits change the direction, not the gradient.
    """
    difference = constraints.mechanism.space.difference(q0, q)[:, constraints.moving_dofs]
    J = constraints.residual_and_jacobian(q)[1] / constraints.unit
    is_at_lower, is_at_upper = _at_limits(constraints, q)
    is_at_limit = np.zeros_like(is_at_lower)
    reduced_gradient = gradient = _project_gradient(J, difference, is_at_limit)
    for _ in range(4):
        leaves_limits = ((reduced_gradient > 0) & is_at_lower) | ((reduced_gradient < 0) & is_at_upper)
        if not (leaves_limits & ~is_at_limit).any():
            break
        is_at_limit |= leaves_limits
        reduced_gradient = _project_gradient(J, difference, is_at_limit)
    return -reduced_gradient, gradient, is_at_limit


def _project_gradient(J: Array, g: Array, is_at_limit: Mask) -> Array:
    J, g = np.where(is_at_limit[:, None], 0.0, J), np.where(is_at_limit, 0.0, g)
    return g - least_norm_step(J, (J @ g[..., None])[..., 0])


def _at_limits(constraints: ConstraintSystem, q: Array) -> tuple[Mask, Mask]:
    """Return the masks (K, n) of the dofs at their lower and at their upper limit."""
    is_scalar, k = constraints.columns >= 0, np.maximum(constraints.columns, 0)
    return is_scalar & (q[:, k] <= constraints.lower[k] + LIMIT_TOLERANCE), is_scalar & (
        q[:, k] >= constraints.upper[k] - LIMIT_TOLERANCE
    )


def _step_within_limits(constraints: ConstraintSystem, q: Array, v: Array) -> tuple[Array, Mask]:
    """Step by `v` (K, n), rad or m, as far as the limits allow; return end points and the mask of dofs that stop it."""
    is_scalar, k = constraints.columns >= 0, np.maximum(constraints.columns, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        max_fraction = np.where(
            v > 0, (constraints.upper[k] - q[:, k]) / v, np.where(v < 0, (constraints.lower[k] - q[:, k]) / v, np.inf)
        )
    max_fraction = np.where(is_scalar & (np.abs(v) > 1e-14), np.maximum(max_fraction, 0.0), np.inf)
    fraction = np.minimum(1.0, max_fraction.min(axis=1, initial=np.inf))
    q_end = constraints.step(q, fraction[:, None] * v / constraints.unit)
    is_at_lower, is_at_upper = _at_limits(constraints, q_end)
    return constraints.clip(q_end), (max_fraction <= fraction[:, None]) & (is_at_lower | is_at_upper)
