"""Nearly time-optimal profiles within velocity, acceleration and jerk limits, by optimization of the pace.

Let r(u) be the curve as a base profile runs through it with time u, and y(u) the pace, the square of du/dt. Then for
each dof

    velocity      r' y^1/2
    acceleration  r'' y + 1/2 r' y'
    jerk          (r''' y + 3/2 r'' y' + 1/2 r' y'') y^1/2

So limits on the acceleration are linear in y, and so is the limit on the velocity, y <= V^2 / r'^2. The jerk is within
J where an expression linear in y is within J y^-1/2. This bound is convex in y and lies above its tangents, so the
limit holds where the tangent bound holds. The pace is a quadratic B-spline; each parabola has three neighbouring
coefficients.

The duration is the integral of y^-1/2, which is convex in y. An interior-point method minimizes it. All limits are
linear except that of the jerk, which is replaced by its tangent at the current iterate in each step. The tangent is
stricter, so every iterate keeps the limits and the method may stop at any time (A. L. Yuille and A. Rangarajan, "The
concave-convex procedure", Neural Computation 15(4), 2003). Steps follow S. Mehrotra, "On the implementation of a
primal-dual interior point method", SIAM Journal on Optimization 2(4), 1992. The linear system has five diagonals, so
the cost is linear in the number of coefficients.

The first base profile is the largest steady speed at each s, averaged over time and smoothed. The best pace along it
gives the next base profile, with more samples where limits were exceeded. A small stretch of the time compensates the
rest. The result keeps all limits and takes a few percent longer than the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanik.motion.retime.joint_spline import JointSpline
from mechanik.motion.retime.time_optimal import LIMIT_MARGIN, grid_along, profile_from_speeds
from mechanik.motion.retime.time_profile import (
    CubicProfile,
    ReparameterizedProfile,
    breakpoints,
    fit_spline_profile,
    reparameterize,
    slowdown_factors,
)
from mechanik.spatial.array import Array

BESIDE = 1e-5
"""Ratio to the interval between two discontinuities: distance of the first sample from a discontinuity."""
LOOKS, ENDS = (3, 9), 4
"""Samples of the limits per interval: usually, and in the first and last ENDS parabolas."""
FREE = 1e12
"""Pace that counts as unlimited."""


@dataclass(frozen=True, slots=True, eq=False)
class PaceConstraints:
    """The limits as constraints on the coefficients of the pace.

    The slacks (G,) are the distances to all limits in one array: jerk above and below, acceleration above and below,
    (M, nv) each, velocity (M,), and all coefficients above 0 (K + 2,).

    Attributes:
        u: (K + 1,) knots of the pace, s of the base profile's time.
        shapes: (K, 3, 3) y, y' and y'' at the start of each parabola, by its three coefficients.
        first: (K,) index of the first sample in each parabola.
        piece: (M,) parabola of each sample.
        local: (M, 3, 3) y, y' and y'' at each sample, by the three coefficients of its parabola.
        max_pace: (M,) largest y at each sample by the velocity limit.
        accelerations: (2, M, nv) acceleration by y and y', relative to its limit.
        jerks: (3, M, nv) jerk by y, y' and y'' at y = 1, relative to its limit.
    """

    u: Array
    shapes: Array
    first: NDArray[np.int64]
    piece: NDArray[np.int64]
    local: Array
    max_pace: Array
    accelerations: Array
    jerks: Array

    def steady_pace(self) -> float:
        """Largest constant pace within all limits."""
        slowest = np.max(1.0 / self.max_pace)
        return 1.0 / max(slowest, np.abs(self.accelerations[0]).max(), np.abs(self.jerks[0]).max() ** (2.0 / 3.0))

    def pieces(self, coefficients: Array) -> Array:
        """y, y' and y'' (K, 3) at the start of each parabola."""
        return np.einsum("kdi,ki->kd", self.shapes, neighbours(coefficients))

    def at_places(self, coefficients: Array) -> Array:
        """y, y' and y'' (3, M) at the samples."""
        return np.einsum("mdi,mi->dm", self.local, neighbours(coefficients)[self.piece])

    def gaps(self, coefficients: Array) -> Array:
        """Slacks (G,), positive where limits hold."""
        at = self.at_places(coefficients)
        gaps = self._linear(at, coefficients)
        both, top, _ = self._parts(gaps)
        both[:2] += (at[0] ** -0.5)[:, None]
        both[2:] += 1.0
        top += 1.0
        return gaps

    def change(self, step: Array, y: Array) -> Array:
        """Change (G,) of the slacks by a step of all coefficients, along the tangents at the pace y (M,)."""
        at = self.at_places(step)
        gaps = self._linear(at, step)
        self._parts(gaps)[0][:2] += (_slope(y) * at[0])[:, None]
        return gaps

    def pull(self, by: Array, y: Array) -> Array:
        """Sum (K + 2,) of the gradients of all slacks, weighted by `by` (G,)."""
        (above, below, under, beneath), top, floor = self._parts(by)
        (a0, a1), (j0, j1, j2) = self.accelerations, self.jerks
        jerk, gain = below - above, beneath - under
        of_y = _dot(jerk, j0) + _dot(gain, a0) + (above + below).sum(axis=1) * _slope(y) - top / self.max_pace
        of_all = np.stack([of_y, _dot(jerk, j1) + _dot(gain, a1), _dot(jerk, j2)], axis=1)
        return sum_by_coefficient(np.add.reduceat(np.einsum("md,mdi->mi", of_all, self.local), self.first)) + floor

    def gap_hessian(self, by: Array, y: Array) -> tuple[Array, Array]:
        """Sum of the outer products of the slack gradients, weighted by `by` (G,).

        Returns:
            (K, 3, 3) for the coefficients of each parabola, and (K + 2,) to add to the diagonal.
        """
        (above, below, under, beneath), top, floor = self._parts(by)
        (a0, a1), (j0, j1, j2) = self.accelerations, self.jerks
        jerk, gain, slope = above + below, under + beneath, _slope(y)
        j0_jerk, j1_jerk, a1_gain = j0 * jerk, j1 * jerk, a1 * gain
        odd = (below - above) * slope[:, None]  # the tangent changes the upper and the lower slack in the same way
        of_all = np.empty((len(y), 3, 3))
        of_all[:, 0, 0] = _dot(j0_jerk, j0) + 2.0 * _dot(odd, j0) + jerk.sum(axis=1) * slope**2
        of_all[:, 0, 0] += _dot(gain, a0**2) + top / self.max_pace**2
        of_all[:, 0, 1] = of_all[:, 1, 0] = _dot(j0_jerk, j1) + _dot(odd, j1) + _dot(a1_gain, a0)
        of_all[:, 0, 2] = of_all[:, 2, 0] = _dot(j0_jerk, j2) + _dot(odd, j2)
        of_all[:, 1, 1] = _dot(j1_jerk, j1) + _dot(a1_gain, a1)
        of_all[:, 1, 2] = of_all[:, 2, 1] = _dot(j1_jerk, j2)
        of_all[:, 2, 2] = _dot(jerk, j2**2)
        return np.add.reduceat(np.swapaxes(self.local, 1, 2) @ of_all @ self.local, self.first), floor

    def _linear(self, at: Array, coefficients: Array) -> Array:
        """Part (G,) of the slacks that is linear in the coefficients."""
        (a0, a1), (j0, j1, j2) = self.accelerations, self.jerks
        y, rise, bend = at[..., None]
        gaps = np.empty(4 * a0.size + len(y) + len(coefficients))
        both, top, floor = self._parts(gaps)
        both[1] = j0 * y + j1 * rise + j2 * bend
        both[3] = a0 * y + a1 * rise
        both[0], both[2] = -both[1], -both[3]
        top[:] = -at[0] / self.max_pace
        floor[:] = coefficients
        return gaps

    def _parts(self, gaps: Array) -> tuple[Array, Array, Array]:
        """Views of the slacks: jerk and acceleration (4, M, nv), velocity (M,), coefficients (K + 2,)."""
        places, freedoms = self.accelerations.shape[1:]
        end = 4 * places * freedoms
        return gaps[:end].reshape(4, places, freedoms), gaps[end : end + places], gaps[end + places :]


def pace_constraints(
    curve: JointSpline,
    profile: CubicProfile,
    velocity: Array,
    acceleration: Array,
    jerk: Array,
    closer: Array | None = None,
) -> PaceConstraints:
    """Sample the limits (nv,) along a curve and its base profile as constraints on the pace.

    Samples lie next to all discontinuities of the third derivatives of profile and curve, and between them.

    Args:
        closer: (any,) further s at which to sample.
    """
    u = profile.t
    places = _looks(breakpoints(curve, profile), u)
    if closer is not None and len(closer):
        places = np.union1d(places, np.interp(closer, profile.at(places)[0], places))
    piece = np.clip(np.searchsorted(u, places, side="right") - 1, 0, len(u) - 2).astype(np.int64)
    shapes = _shapes(np.diff(u))
    x = (places - u[piece])[:, None]
    y, rise, bend = np.moveaxis(shapes[piece], 1, 0)
    local = np.stack([y + x * (rise + 0.5 * x * bend), rise + x * bend, bend], axis=1)
    s, v, a, j = (one[:, None] for one in profile.at(places))
    _, *by_s = curve.at(s[:, 0])
    moves = by_s[0].any(axis=0)
    first, second, third = (one[:, moves] for one in by_s)
    r1, r2, r3 = first * v, second * v**2 + first * a, third * v**3 + 3 * second * v * a + first * j
    fastest = 1.0 / np.maximum((np.abs(r1) / velocity[moves]).max(axis=1) ** 2, 1.0 / FREE)
    return PaceConstraints(
        u, shapes, np.searchsorted(piece, np.arange(len(u) - 1)).astype(np.int64), piece, local, fastest,
        np.stack([r2, 0.5 * r1]) / acceleration[moves], np.stack([r3, 1.5 * r2, 0.5 * r1]) / jerk[moves],
    )  # fmt: skip


def neighbours(coefficients: Array) -> Array:
    """The three coefficients (K, 3) of each parabola, from all coefficients (K + 2,)."""
    return np.stack([coefficients[:-2], coefficients[1:-1], coefficients[2:]], axis=1)


def sum_by_coefficient(of_pieces: Array) -> Array:
    """Sum (K + 2,) over all parabolas of values by coefficient (K, 3)."""
    found = np.zeros(len(of_pieces) + 2)
    for k in range(3):
        found[k : k + len(of_pieces)] += of_pieces[:, k]
    return found


def _slope(y: Array) -> Array:
    """Derivative of y^-1/2."""
    return -0.5 * y**-1.5


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("mv,mv->m", a, b)


def _shapes(wide: Array) -> Array:
    """Values and derivatives (K, 3, 3) of a quadratic B-spline on uneven knots with intervals `wide` (K,)."""
    h = np.concatenate([wide[:1], wide, wide[-1:]])
    left, right = h[:-2] + wide, wide + h[2:]
    found = np.zeros((len(wide), 3, 3))
    found[:, 0, 0], found[:, 0, 1] = wide / left, h[:-2] / left
    found[:, 1, 0], found[:, 1, 1] = -2.0 / left, 2.0 / left
    found[:, 2, 0], found[:, 2, 2] = 2.0 / (left * wide), 2.0 / (right * wide)
    found[:, 2, 1] = -found[:, 2, 0] - found[:, 2, 2]
    return found


def _looks(times: Array, u: Array) -> Array:
    """Sample times next to all discontinuities and between them; more near the ends, where the profile bends most."""
    begin, wide = times[:-1, None], np.diff(times)[:, None]
    ends = (times[:-1] < u[ENDS]) | (times[1:] > u[-1 - ENDS])
    few, many = (begin + wide * np.linspace(BESIDE, 1.0 - BESIDE, count) for count in LOOKS)
    return np.sort(np.concatenate([few[~ends].ravel(), many[ends].ravel()]))


STEPS = 60
"""Largest number of interior-point steps."""
INSIDE = 0.98
"""Ratio to the steady pace of the initial pace, which is strictly feasible."""
SHORT = 0.99
"""Ratio of a step to the distance to the nearest constraint."""
LOWEST = 1e-3
"""Smallest ratio of the target to the current complementarity."""
EVEN = 1e-2
"""Ratio to the gradient of the duration: largest residual of stationarity at the end."""


def optimize_pace(limits: PaceConstraints, tolerance: float) -> Array:
    """Coefficients (K + 2,) of the pace with the shortest duration, by a primal-dual interior-point method.

    Args:
        tolerance: relative excess over the shortest duration that the tangents at the result allow.
    """
    linalg: Any = import_module("scipy.linalg")
    wide, middles = _middles(limits)
    b = np.full(len(limits.u) + 1, INSIDE * limits.steady_pace())
    gap = limits.gaps(b)
    time, down, curved = _time(wide, middles, b)
    price = 0.1 * time / len(gap) / gap
    for _ in range(STEPS):
        y = limits.at_places(b)[0]
        left = float(price @ gap)
        if left < tolerance * time and np.abs(down - limits.pull(price, y)).max() < EVEN * np.abs(down).max():
            break
        stiff = price / gap
        of_pieces, diagonal = limits.gap_hessian(stiff, y)
        bands = _bands(curved + of_pieces)
        bands[0] += diagonal
        try:
            factor = linalg.cholesky_banded(bands, lower=True)
        except (linalg.LinAlgError, ValueError):  # singular by rounding: the current iterate is as good as possible
            break

        towards = partial(_towards, limits, linalg, factor, down, y)
        _, change = towards(np.zeros_like(gap))
        dearer = -price - stiff * change
        then = (price + min(1.0, _room(price, dearer)) * dearer) @ (gap + min(1.0, _room(gap, change)) * change)
        aim = min(1.0, max((float(then) / left) ** 3, LOWEST)) * left / len(gap)
        by = (aim - dearer * change) / gap
        step, change = towards(by)
        dearer = by - price - stiff * change
        b = b + min(1.0, SHORT * _room(gap, change)) * step
        price = price + min(1.0, SHORT * _room(price, dearer)) * dearer
        gap = limits.gaps(b)
        time, down, curved = _time(wide, middles, b)
    return b


def _towards(
    limits: PaceConstraints, linalg: Any, factor: Array, down: Array, y: Array, prices: Array
) -> tuple[Array, Array]:
    """Newton step (K + 2,) for the multipliers (G,), and the change (G,) of the slacks by it.

    At the end of the step the multipliers balance the gradient of the duration.
    """
    step = linalg.cho_solve_banded((factor, True), limits.pull(prices, y) - down, check_finite=False)
    return step, limits.change(step, y)


def _middles(limits: PaceConstraints) -> tuple[Array, Array]:
    """Widths (K, 1) of the parabolas, and y at the two Gauss points of each by its coefficients (K, 2, 3)."""
    wide = np.diff(limits.u)[:, None]
    x = (wide * (0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)))[..., None]
    y, rise, bend = (limits.shapes[:, None, order] for order in range(3))
    return wide, y + x * (rise + 0.5 * x * bend)


def _time(wide: Array, middles: Array, b: Array) -> tuple[float, Array, Array]:
    """Duration, its gradient (K + 2,), and its second derivatives by the coefficients of each parabola (K, 3, 3)."""
    y = np.einsum("kgi,ki->kg", middles, neighbours(b))
    down = sum_by_coefficient(np.einsum("kg,kgi->ki", -0.25 * wide * y**-1.5, middles))
    curved = np.einsum("kg,kgi,kgj->kij", 0.375 * wide * y**-2.5, middles, middles)
    return 0.5 * float((wide * y**-0.5).sum()), down, curved


def _room(now: Array, change: Array) -> float:
    """Step length at which the first of the positive values `now` reaches 0."""
    return 1.0 / max(1e-300, float(-(change / now).min()))


def _bands(of_pieces: Array) -> Array:
    """Lower diagonals (3, K + 2) of the sum of all (K, 3, 3)."""
    count = len(of_pieces)
    found = np.zeros((3, count + 2))
    for row in range(3):
        for column in range(row + 1):
            found[row - column, column : column + count] += of_pieces[:, row, column]
    return found


GRID = 300
"""Number of grid points of the first base profile."""
BEND = 0.3
"""Share of the jerk limit that the curvature may use in the first base profile."""
TINY = 1e-100
"""Smallest derivative, to avoid division by 0."""
WINDOWS = (0.01, 0.03, 0.1, 0.3)
"""Averaging windows as shares of the duration; the one that gives the shortest steady profile is used."""
SAMPLES = 2000
"""Number of intervals of the averaged profile."""
FEW, MANY, BY_KNOT = 200, 1000, 3
"""Pieces of the pace: at first, at most, and additionally for each waypoint of the curve."""
TOLERANCES = (1e-2, 3e-3, 3e-3)
"""Relative tolerance of the duration in each round; the last round is only run while limits are exceeded."""
BROKEN = 1.003
"""Slowdown factor above which more samples and another round are worth their cost."""


def jerk_limited_profile(
    curve: JointSpline, velocity: Array, acceleration: Array, jerk: Array
) -> ReparameterizedProfile:
    """Nearly time-optimal profile within velocity, acceleration and jerk limits, (nv,) each."""
    limits = velocity, acceleration, jerk
    rough = _rough(curve, *limits)
    starts = [_averaged(rough, share * rough.duration) for share in WINDOWS]
    profile = min((_laid_out(*one, FEW) for one in starts), key=lambda one: _kept_steadily(curve, one, limits))
    closer = np.zeros(0)
    found: list[ReparameterizedProfile] = []
    for tolerance in TOLERANCES:
        allowed = pace_constraints(curve, profile, *limits, closer)
        course = reparameterize(profile, allowed.u, allowed.pieces(optimize_pace(allowed, tolerance)))
        times = breakpoints(curve, course)
        broken = slowdown_factors(curve, course, times, limits)
        found.append(replace(course, stretch=float(broken.max()) * (1.0 + LIMIT_MARGIN)))
        if len(found) > 1 and broken.max() < BROKEN:
            break
        where = np.flatnonzero(broken > BROKEN)
        inside = times[where, None] + np.diff(times)[where, None] * np.linspace(0.1, 0.9, 9)
        closer = np.union1d(closer, course.at(inside.ravel())[0])
        count = min(FEW + BY_KNOT * len(curve.s), MANY)
        profile = _laid_out(course.duration, lambda t, course=course: course.at(t)[0], count)
    return min(found, key=lambda one: one.duration)


def _rough(curve: JointSpline, velocity: Array, acceleration: Array, jerk: Array) -> CubicProfile:
    """Profile with the largest steady speed at each s, from rest to rest; changes of the speed are not limited."""
    s = grid_along(curve, GRID)
    _, first, second, third = (np.maximum(np.abs(one), TINY) for one in curve.at(s))
    speeds = velocity / first, np.sqrt(acceleration / second), np.cbrt(BEND * jerk / third)
    ends = np.sqrt(2.0 * np.minimum(s, curve.length - s) * (acceleration / first).min(axis=1))
    return profile_from_speeds(s, np.minimum(np.min(speeds, axis=(0, 2)), ends))


def _averaged(profile: CubicProfile, window: float) -> tuple[float, Callable[[Array], Array]]:
    """Duration, and a function from times (M,) to s (M,), of a profile averaged over `window` seconds."""
    t = np.linspace(0.0, profile.duration, SAMPLES + 1)
    s = profile.at(t)[0]
    sums = np.append(0.0, np.cumsum(0.5 * (s[1:] + s[:-1]) * np.diff(t)))

    def whole(when: Array) -> Array:
        return np.interp(when, t, sums) + np.maximum(when - t[-1], 0.0) * s[-1]

    return float(t[-1]) + window, lambda when: (whole(when) - whole(when - window)) / window


def _laid_out(duration: float, gone: Callable[[Array], Array], count: int) -> CubicProfile:
    """Cubic profile with `count` intervals that approximates the function `gone` from time to s."""
    return fit_spline_profile(np.linspace(0.0, duration, count + 1), gone)


def _kept_steadily(curve: JointSpline, profile: CubicProfile, limits: tuple[Array, Array, Array]) -> float:
    """Duration of a profile that is stretched as a whole until the limits hold, s."""
    return profile.duration / np.sqrt(pace_constraints(curve, profile, *limits).steady_pace())
