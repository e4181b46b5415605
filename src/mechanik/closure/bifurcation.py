"""Branches at singular points of a continuation: their directions, first steps, and exact solutions at change points.

The symbols are those of `continuation`: the path parameter s, and the Jacobian A with respect to a joint step and s.
Where A loses rank, its null space has two or more dimensions. A branch leaves along a null vector along which the
residual is zero to second order too. These vectors are the common zeros of quadratic forms, two at a simple crossing.

At a change point the equations determine the configuration only to half of the digits, because along the other branch
the residual is zero to first order. The branch is smooth, so a polynomial through points at equal distances on both
sides is accurate to all digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.closure.continuation import (
    DEAD_POINT_TOLERANCE,
    MAX_DEVIATION_RATIO,
    NEAR_SINGULAR_RATIO,
    ON_CURVE_TOLERANCE,
    RANK_TOLERANCE,
    RESIDUAL_TOLERANCE,
    Continuation,
    ContinuationPoint,
    ContinuationProblem,
)
from mechanik.spatial.array import Array

DIFFERENCE_STEP = 1e-4
"""Step of the finite differences for second derivatives, scaled units."""
MIN_CURVATURE = 1e-6
"""Values of the quadratic forms below this count as zero (rounding)."""
PROBE_DISTANCE = 0.02
"""Length of a trial step along a branch, scaled units."""
RANDOM_STARTS, MAX_DIRECTIONS = 24, 6
"""Number of random starts in the search for zeros of the quadratic forms, and the maximum number of zeros."""


@dataclass(frozen=True, slots=True, eq=False)
class BranchDirections:
    """Directions of the branches through a point.

    Attributes:
        directions: (n + 1,) unit vectors, in descending order of their gain in s.
        is_crossing: whether A has a higher rank along the branches than at the point.
        advances: whether s increases along the first direction.
        rank: rank of A along the first direction.
        gain: change of s along the first direction, over `PROBE_DISTANCE`.
    """

    directions: list[Array]
    is_crossing: bool
    advances: bool
    rank: int
    gain: float = 0.0


def branch_directions(problem: ContinuationProblem, present_point: ContinuationPoint) -> BranchDirections:
    """Find the branches through `present_point` along which A has the highest rank.

    For a branch along which s changes to first order, only the direction of increasing s is returned; for other
    branches both directions are. `directions` is empty if there is no branch.
    """
    rank = present_point.rank
    null_vectors = present_point.V[rank:]
    branches: list[tuple[Array, ContinuationPoint]] = []
    for t in _candidate_directions(problem, present_point, null_vectors):
        for direction in (t, -t) if abs(t[-1]) < 1e-9 else (t if t[-1] > 0 else -t,):
            q, s = problem.step(present_point.q, present_point.s, PROBE_DISTANCE * direction)
            probe = problem.project(q, s, direction[None], steps=12)
            deviation = float(np.linalg.norm(problem.difference(present_point, probe) - PROBE_DISTANCE * direction))
            if probe.error < 1e-10 and deviation < 0.3 * PROBE_DISTANCE:
                branches.append((direction, probe))
    if not branches:
        return BranchDirections([], False, False, rank)
    max_rank = max(probe.rank for _, probe in branches)
    branches = [branch for branch in branches if branch[1].rank == max_rank]
    branches.sort(key=lambda branch: -branch[1].s)
    gain = branches[0][1].s - present_point.s
    return BranchDirections([direction for direction, _ in branches], max_rank > rank, gain > 0.0, max_rank, gain)


def _candidate_directions(
    problem: ContinuationProblem, present_point: ContinuationPoint, null_vectors: Array
) -> list[Array]:
    """Return candidate directions (n + 1,) in the span of `null_vectors` (k, n + 1).

    The first search starts from the component of the s axis in the span, if it is not zero.
    """
    if len(null_vectors) < 2:
        return list(null_vectors)
    along_s = null_vectors @ problem.s_axis
    second_derivatives = np.array(
        [[_second_derivative(problem, present_point, a, b) for b in null_vectors] for a in null_vectors]
    )  # (k, k, m)
    starts = np.random.default_rng(0).standard_normal((RANDOM_STARTS, len(null_vectors)))
    starts = np.concatenate([_steepest_directions(present_point, second_derivatives), starts])
    if float(np.linalg.norm(along_s)) > 1e-9:
        starts = np.concatenate([along_s[None], starts])
    left_null = np.linalg.svd(present_point.A)[0][:, present_point.rank :]
    Q = second_derivatives @ left_null  # (k, k, rows)
    Q = 0.5 * (Q + Q.transpose(1, 0, 2))
    zeros: list[Array] = []
    for start in starts:
        x = _common_zero(Q, start / np.linalg.norm(start))
        if x is not None and all(abs(float(x @ zero)) < 1 - 1e-6 for zero in zeros):
            zeros.append(x)
        if len(zeros) == MAX_DIRECTIONS:
            break
    return [x @ null_vectors for x in zeros]


def _steepest_directions(present_point: ContinuationPoint, second_derivatives: Array) -> Array:
    """Return unit directions (k, k) as coefficients of the null vectors, by descending second-order change of s.

    At a dead point no direction changes s to first order. Directions with a nonzero second-order change are good
    starts, since they do not move dofs that have no effect on s.
    """
    weights = -np.linalg.pinv(present_point.A, rcond=RANK_TOLERANCE)[-1]
    hessian = np.einsum("r,ijr->ij", weights, second_derivatives)
    return np.asarray(np.linalg.eigh(hessian + hessian.T)[1].T[::-1], dtype=np.float64)


def _common_zero(Q: Array, x: Array) -> Array | None:
    """Find a unit `x` at which all quadratic forms Q (k, k, rows) are zero, by Newton's method; None if not found."""
    for _ in range(20):
        gradient = np.asarray(np.einsum("ijr,j->ri", Q, x), dtype=np.float64)
        value = gradient @ x
        if float(np.abs(value).max(initial=0.0)) < MIN_CURVATURE:
            return x
        step = np.asarray(np.linalg.lstsq(2 * gradient, value, rcond=1e-10)[0], dtype=np.float64)
        x = (x - step) / max(float(np.linalg.norm(x - step)), 1e-9)
    return None


def _second_derivative(problem: ContinuationProblem, present_point: ContinuationPoint, a: Array, b: Array) -> Array:
    """Return the second derivative (m,) of the residual along `a` and `b`."""
    forward, backward = (
        problem.residual(*problem.step(present_point.q, present_point.s, x * DIFFERENCE_STEP * a))[1]
        for x in (1.0, -1.0)
    )
    return (forward - backward) @ b / (2 * DIFFERENCE_STEP)


def start_continuation(problem: ContinuationProblem, q: Array, heading: Array | None = None) -> Continuation:
    """Start a continuation at `q` (nq,), where all loops are closed and s = 0.

    Args:
        heading: (n + 1,) direction of the curve at `q` from an earlier continuation, or None.
    """
    present_point = problem.point_at(q, 0.0)
    rank = present_point.rank
    continuation = Continuation(problem, [present_point], [problem.s_axis], rank)
    tangent = present_point.null_space_part(problem.s_axis, rank)
    tangent_length = float(np.linalg.norm(tangent))
    is_regular = problem.n + 1 - rank == 1 and present_point.relative_singular_value(rank) > NEAR_SINGULAR_RATIO
    if heading is not None and not is_regular:
        q_ahead, s_ahead = problem.step(q, 0.0, PROBE_DISTANCE * heading)
        point_ahead = problem.project(q_ahead, s_ahead, heading[None])
        is_near = (
            float(np.linalg.norm(problem.difference(present_point, point_ahead) - PROBE_DISTANCE * heading))
            < MAX_DEVIATION_RATIO * PROBE_DISTANCE
        )
        if (
            point_ahead.error < ON_CURVE_TOLERANCE
            and is_near
            and present_point.relative_singular_value(point_ahead.rank) < NEAR_SINGULAR_RATIO
        ):
            continuation.tangents[0], continuation.is_at_change_point, continuation.rank = (
                heading,
                True,
                point_ahead.rank,
            )
            return continuation
    if problem.n + 1 - rank == 1 and tangent_length > 1e-3:
        continuation.tangents[0] = tangent / tangent_length
        return continuation
    branches = branch_directions(problem, present_point)
    if branches.is_crossing:
        continuation.rank, continuation.is_at_change_point = branches.rank, True
        continuation.tangents[0] = branches.directions[0]
        continuation.change_points.append(present_point)
        return continuation
    if tangent_length > DEAD_POINT_TOLERANCE:
        continuation.tangents[0] = tangent / tangent_length
    elif branches.directions:
        continuation.tangents[0] = branches.directions[0]
        continuation.stop_reason = "" if branches.advances else "dead point"
    else:
        continuation.stop_reason = "conflict"
    return continuation


SAMPLE_DISTANCE = 0.02
"""Distance between interpolation points along s, scaled units."""
INTERPOLATION_WEIGHTS = np.array([-1.0, 8.0, -28.0, 56.0, 56.0, -28.0, 8.0, -1.0]) / 70.0
"""Interpolation weights of the points at `SAMPLE_OFFSETS`, exact for polynomials of degree 7."""
REGULAR_RATIO = 1e-3
"""Ratio of the smallest singular value that is nonzero on the branch to the largest; a point with a larger ratio is far
enough from a change point."""
SAMPLE_OFFSETS = np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
"""Interpolation points in units of `SAMPLE_DISTANCE`, without the change point itself."""


def solve_at_change_point(continuation: Continuation, s: float) -> tuple[ContinuationPoint, Array] | None:
    """Find the point of the branch at s near a change point by interpolation.

    Returns:
        The point and the direction (n + 1,) of the branch; None if the branch cannot be followed on both sides, or if
        the residual at an interpolation point or at the result is too large.
    """
    problem = continuation.problem
    regular_point = _regular_point(continuation, s)
    if regular_point is None:
        return None
    start, heading = regular_point
    side_curves: list[Continuation] = []
    for sign in (-1.0, 1.0):
        side_curve = Continuation(problem, [start], [sign * heading], continuation.rank, sign=sign, ignore_limits=True)
        side_curve.advance_to(s + sign * 4.5 * SAMPLE_DISTANCE, max_step_length=0.1)
        if side_curve.stop_reason:
            return None
        side_curves.append(side_curve)
    curve = Continuation(
        problem, side_curves[0].points[:0:-1] + side_curves[1].points, [], continuation.rank, ignore_limits=True
    )
    curve.tangents = [-t for t in side_curves[0].tangents[:0:-1]] + side_curves[1].tangents
    steps: list[Array] = []
    for offset in SAMPLE_OFFSETS:
        point = curve.curve_point(s + offset * SAMPLE_DISTANCE)
        if not point.error < 1e-10:
            return None
        steps.append(problem.loops.scaled_difference(continuation.points[0].q, point.q))
    samples = np.array(steps)
    q = problem.inputs.with_values(problem.loops.step(continuation.points[0].q, INTERPOLATION_WEIGHTS @ samples), s)
    exact_point = problem.point_at(q, s)
    tangent = np.append((samples[4] - samples[3]) / (2 * SAMPLE_DISTANCE), 1.0)
    return (exact_point, tangent / np.linalg.norm(tangent)) if exact_point.error < RESIDUAL_TOLERANCE else None


def _regular_point(continuation: Continuation, s: float) -> tuple[ContinuationPoint, Array] | None:
    """Return a point of the branch that is far from change points, and its tangent; the point may be beyond s."""
    for point, tangent in zip(reversed(continuation.points), reversed(continuation.tangents), strict=True):
        if point.relative_singular_value(continuation.rank) > REGULAR_RATIO:
            return point, tangent
    ahead_continuation = Continuation(
        continuation.problem,
        continuation.points[:1],
        continuation.tangents[:1],
        continuation.rank,
        is_at_change_point=True,
        ignore_limits=True,
    )
    ahead_continuation.advance_to(s + 4.5 * SAMPLE_DISTANCE, max_step_length=0.1)
    is_regular = (
        not ahead_continuation.stop_reason
        and ahead_continuation.present_point.relative_singular_value(continuation.rank) > REGULAR_RATIO
    )
    return (ahead_continuation.present_point, ahead_continuation.tangent) if is_regular else None
