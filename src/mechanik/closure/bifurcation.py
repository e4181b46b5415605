"""Branch directions at singular points of a continuation, its first direction, and exact solutions at change points.

Where the Jacobian A loses rank, its null space has two or more dimensions. The branches leave along the null vectors
along which the residual is zero to second order too: the common zeros of quadratic forms, two at a simple crossing. On
a change point the equations fix the configuration to half of the digits only, because the residual is flat along the
other branch. But the branch is smooth, so a polynomial through points at equal distances on both sides has all digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.closure.continuation import (
    DEAD_POINT_TOLERANCE,
    MAX_DEVIATION_RATIO,
    NEAR_SINGULAR,
    ON_CURVE_TOLERANCE,
    RANK_TOLERANCE,
    RESIDUAL_TOLERANCE,
    Continuation,
    ContinuationPoint,
    ContinuationProblem,
)
from mechanik.spatial.array import Array

PROBE = 1e-4
"""Scaled units; step of the finite differences for second derivatives."""
FLAT = 1e-6
"""Second derivatives below this count as zero (rounding)."""
PROBE_DISTANCE = 0.02
"""Scaled units; length of the trial step along a candidate direction."""
STARTS, MOST_WAYS = 24, 6
"""Random starts for the zeros of the quadratic forms, and the maximum number of zeros to keep."""


@dataclass(frozen=True, slots=True, eq=False)
class BranchDirections:
    """Directions of the branches that leave a point.

    Attributes:
        directions: (n + 1,) unit vectors, those with the largest gain in s first.
        is_crossing: whether A has a higher rank along the branches than at the point.
        advances: whether s grows along the first direction.
        rank: rank of A along the first direction.
        gain: change of s along the first direction, over `PROBE_DISTANCE`.
    """

    directions: list[Array]
    is_crossing: bool
    advances: bool
    rank: int
    gain: float = 0.0


def branch_directions(course: ContinuationProblem, here: ContinuationPoint) -> BranchDirections:
    """Find the branches that leave a point; `directions` is empty if there is none."""
    rank = here.rank
    null = here.V[rank:]
    found: list[tuple[Array, ContinuationPoint]] = []
    for t in _candidates(course, here, null):
        for way in (t, -t) if abs(t[-1]) < 1e-9 else (t if t[-1] > 0 else -t,):
            q, s = course.step(here.q, here.s, PROBE_DISTANCE * way)
            there = course.project(q, s, way[None], steps=12)
            aside = float(np.linalg.norm(course.difference(here, there) - PROBE_DISTANCE * way))
            if there.error < 1e-10 and aside < 0.3 * PROBE_DISTANCE:
                found.append((way, there))
    if not found:
        return BranchDirections([], False, False, rank)
    highest = max(there.rank for _, there in found)
    found = [one for one in found if one[1].rank == highest]
    found.sort(key=lambda one: -one[1].s)
    gain = found[0][1].s - here.s
    return BranchDirections([way for way, _ in found], highest > rank, gain > 0.0, highest, gain)


def _candidates(course: ContinuationProblem, here: ContinuationPoint, null: Array) -> list[Array]:
    """Return candidate directions in the null space of A (k, n + 1); the one along the path parameter comes first."""
    if len(null) < 2:
        return list(null)
    straight = null @ course.end
    curves = np.array([[_second(course, here, a, b) for b in null] for a in null])  # (k, k, m)
    starts = np.random.default_rng(0).standard_normal((STARTS, len(null)))
    starts = np.concatenate([_steepest(here, curves), starts])
    if float(np.linalg.norm(straight)) > 1e-9:
        starts = np.concatenate([straight[None], starts])
    left = np.linalg.svd(here.A)[0][:, here.rank :]
    Q = curves @ left  # (k, k, rows)
    Q = 0.5 * (Q + Q.transpose(1, 0, 2))
    ways: list[Array] = []
    for x in starts:
        x = _zero(Q, x / np.linalg.norm(x))
        if x is not None and all(abs(float(x @ other)) < 1 - 1e-6 for other in ways):
            ways.append(x)
        if len(ways) == MOST_WAYS:
            break
    return [x @ null for x in ways]


def _steepest(here: ContinuationPoint, curves: Array) -> Array:
    """Return unit directions (k, k), those with the largest second-order change of s first.

    At a dead point no direction changes s to first order. These directions leave dofs at rest that have no effect on s.
    """
    curving = np.einsum("r,ijr->ij", -np.linalg.pinv(here.A, rcond=RANK_TOLERANCE)[-1], curves)
    return np.asarray(np.linalg.eigh(curving + curving.T)[1].T[::-1], dtype=np.float64)


def _zero(Q: Array, x: Array) -> Array | None:
    """Find a unit `x` at which all quadratic forms Q (k, k, rows) are zero by Newton's method; None if it fails."""
    for _ in range(20):
        slope = np.asarray(np.einsum("ijr,j->ri", Q, x), dtype=np.float64)
        value = slope @ x
        if float(np.abs(value).max(initial=0.0)) < FLAT:
            return x
        step = np.asarray(np.linalg.lstsq(2 * slope, value, rcond=1e-10)[0], dtype=np.float64)
        x = (x - step) / max(float(np.linalg.norm(x - step)), 1e-9)
    return None


def _second(course: ContinuationProblem, here: ContinuationPoint, a: Array, b: Array) -> Array:
    """Return the second derivative (m,) of the residual along `a` and `b`."""
    ahead, back = (course.residual(*course.step(here.q, here.s, x * PROBE * a))[1] for x in (1.0, -1.0))
    return (ahead - back) @ b / (2 * PROBE)


def start_continuation(course: ContinuationProblem, q: Array, heading: Array | None = None) -> Continuation:
    """Start a continuation at `q` (nq,), where all loops are closed and s = 0.

    Args:
        heading: (n + 1,) direction of the curve at `q`, if it is known from an earlier continuation.
    """
    here = course.point_at(q, 0.0)
    rank = here.rank
    walk = Continuation(course, [here], [course.end], rank)
    t = here.null_space_part(course.end, rank)
    size = float(np.linalg.norm(t))
    is_clear = course.n + 1 - rank == 1 and here.relative_singular_value(rank) > NEAR_SINGULAR
    if heading is not None and not is_clear:
        q_ahead, s_ahead = course.step(q, 0.0, PROBE_DISTANCE * heading)
        ahead = course.project(q_ahead, s_ahead, heading[None])
        is_near = (
            float(np.linalg.norm(course.difference(here, ahead) - PROBE_DISTANCE * heading))
            < MAX_DEVIATION_RATIO * PROBE_DISTANCE
        )
        if ahead.error < ON_CURVE_TOLERANCE and is_near and here.relative_singular_value(ahead.rank) < NEAR_SINGULAR:
            walk.headings[0], walk.is_at_change_point, walk.rank = heading, True, ahead.rank
            return walk
    if course.n + 1 - rank == 1 and size > 1e-3:
        walk.headings[0] = t / size
        return walk
    found = branch_directions(course, here)
    if found.is_crossing:
        walk.rank, walk.is_at_change_point = found.rank, True
        walk.headings[0] = found.directions[0]
        walk.change_points.append(here)
        return walk
    if size > DEAD_POINT_TOLERANCE:
        walk.headings[0] = t / size
    elif found.directions:
        walk.headings[0] = found.directions[0]
        walk.stop_reason = "" if found.advances else "dead point"
    else:
        walk.stop_reason = "conflict"
    return walk


REACH = 0.02
"""Scaled units of s; distance between interpolation points."""
WEIGHTS = np.array([-1.0, 8.0, -28.0, 56.0, 56.0, -28.0, 8.0, -1.0]) / 70.0
"""Interpolation weights of the points at `OFFSETS`, exact for polynomials of degree 7."""
CLEAR = 1e-3
"""Relative singular value above which a point is far enough from a change point."""
OFFSETS = np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
"""Interpolation points in units of `REACH`, without the change point itself."""


def solve_at_change_point(walk: Continuation, s: float) -> tuple[ContinuationPoint, Array] | None:
    """Return the point of the branch at s, and its direction (n + 1,), where a change point is near.

    Returns:
        None if the branch cannot be followed on both sides.
    """
    course = walk.problem
    found = _clear(walk, s)
    if found is None:
        return None
    clear, heading = found
    sides: list[Continuation] = []
    for sign in (-1.0, 1.0):
        side = Continuation(course, [clear], [sign * heading], walk.rank, sign=sign, ignore_limits=True)
        side.advance_to(s + sign * 4.5 * REACH, longest=0.1)
        if side.stop_reason:
            return None
        sides.append(side)
    whole = Continuation(course, sides[0].points[:0:-1] + sides[1].points, [], walk.rank, ignore_limits=True)
    whole.headings = [-t for t in sides[0].headings[:0:-1]] + sides[1].headings
    steps: list[Array] = []
    for offset in OFFSETS:
        place = whole.at(s + offset * REACH)
        if not place.error < 1e-10:
            return None
        steps.append(course.loops.scaled_difference(walk.points[0].q, place.q))
    samples = np.array(steps)
    q = course.drives.set_values(course.loops.step(walk.points[0].q, WEIGHTS @ samples), s)
    there = course.point_at(q, s)
    along = np.append((samples[4] - samples[3]) / (2 * REACH), 1.0)
    return (there, along / np.linalg.norm(along)) if there.error < RESIDUAL_TOLERANCE else None


def _clear(walk: Continuation, s: float) -> tuple[ContinuationPoint, Array] | None:
    """Return a point of the branch far enough from change points, and its direction; beyond s if necessary."""
    for place, heading in zip(reversed(walk.points), reversed(walk.headings), strict=True):
        if place.relative_singular_value(walk.rank) > CLEAR:
            return place, heading
    ahead = Continuation(
        walk.problem, walk.points[:1], walk.headings[:1], walk.rank, is_at_change_point=True, ignore_limits=True
    )
    ahead.advance_to(s + 4.5 * REACH, longest=0.1)
    is_clear = not ahead.stop_reason and ahead.here.relative_singular_value(walk.rank) > CLEAR
    return (ahead.here, ahead.heading) if is_clear else None
