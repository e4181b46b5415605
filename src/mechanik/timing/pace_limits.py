"""What limits of velocity, acceleration and jerk say about the pace at which a profile is gone.

Let r(u) be the curve as it is gone along a profile with the time u, and y(u) the pace, the square of how fast u passes.
Then of each freedom

    velocity      r' y^1/2
    acceleration  r'' y + 1/2 r' y'
    jerk          (r''' y + 3/2 r'' y' + 1/2 r' y'') y^1/2

so that limits of the acceleration are linear in y, and those of the velocity, V^2 / r'^2. The jerk is within J where
something linear in y is within J y^-1/2. That is convex in y and lies above its tangents: who keeps to a tangent keeps
the limit. The pace is a spline of parabolas, each of three neighbouring coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanik.spatial.array import Array
from mechanik.timing.curve import Curve
from mechanik.timing.jumps import jumps
from mechanik.timing.profile import Profile

BESIDE = 1e-5
"""How far from a jump one looks, in shares of the time to the next."""
LOOKS, ENDS = (3, 9), 4
"""In how many places of a parabola limits are looked at: usually, and in so many parabolas at either end."""
FREE = 1e12
"""A pace that is as good as none."""


@dataclass(frozen=True, slots=True, eq=False)
class PaceLimits:
    """Gaps, as one array (G,), are how far all limits are from being met: of the jerk from above and from below, of the
    acceleration likewise, (M, nv) each, of the velocity (M,), and of all coefficients from zero (K + 2,).

    Attributes:
        u: (K + 1,) knots of the pace, s of the profile's time.
        shapes: (K, 3, 3) y, y' and y'' where each parabola begins, by its three coefficients.
        first: (K,) the first of the places looked at in each parabola.
        piece: (M,) which parabola each place belongs to.
        local: (M, 3, 3) y, y' and y'' at each place, by the three coefficients of its parabola.
        fastest: (M,) how large y may be at each place.
        gains: (2, M, nv) acceleration by y and y', in shares of its limit.
        jerks: (3, M, nv) jerk by y, y' and y'', where y is 1, in shares of its limit.
    """

    u: Array
    shapes: Array
    first: NDArray[np.int64]
    piece: NDArray[np.int64]
    local: Array
    fastest: Array
    gains: Array
    jerks: Array

    def steady(self) -> float:
        """The largest pace that could be kept all along."""
        slowest = np.max(1.0 / self.fastest)
        return 1.0 / max(slowest, np.abs(self.gains[0]).max(), np.abs(self.jerks[0]).max() ** (2.0 / 3.0))

    def pieces(self, coefficients: Array) -> Array:
        """(K, 3) y, y' and y'' where each parabola begins."""
        return np.einsum("kdi,ki->kd", self.shapes, neighbours(coefficients))

    def at_places(self, coefficients: Array) -> Array:
        """(3, M) y, y' and y''."""
        return np.einsum("mdi,mi->dm", self.local, neighbours(coefficients)[self.piece])

    def gaps(self, coefficients: Array) -> Array:
        """(G,), above zero where limits hold."""
        at = self.at_places(coefficients)
        gaps = self._linear(at, coefficients)
        both, top, _ = self._parts(gaps)
        both[:2] += (at[0] ** -0.5)[:, None]
        both[2:] += 1.0
        top += 1.0
        return gaps

    def change(self, step: Array, y: Array) -> Array:
        """(G,) of gaps by a step of all coefficients, along the tangents where the pace is y (M,)."""
        at = self.at_places(step)
        gaps = self._linear(at, step)
        self._parts(gaps)[0][:2] += (_slope(y) * at[0])[:, None]
        return gaps

    def pull(self, by: Array, y: Array) -> Array:
        """(K + 2,) the gradients of all gaps by the coefficients, each so many times (G,), in sum."""
        (above, below, under, beneath), top, floor = self._parts(by)
        (a0, a1), (j0, j1, j2) = self.gains, self.jerks
        jerk, gain = below - above, beneath - under
        of_y = _dot(jerk, j0) + _dot(gain, a0) + (above + below).sum(axis=1) * _slope(y) - top / self.fastest
        of_all = np.stack([of_y, _dot(jerk, j1) + _dot(gain, a1), _dot(jerk, j2)], axis=1)
        return gathered(np.add.reduceat(np.einsum("md,mdi->mi", of_all, self.local), self.first)) + floor

    def squares(self, by: Array, y: Array) -> tuple[Array, Array]:
        """The sum of the gradients' outer products, each so many times (G,): (K, 3, 3) of each parabola's coefficients,
        and (K + 2,) on the diagonal, besides."""
        (above, below, under, beneath), top, floor = self._parts(by)
        (a0, a1), (j0, j1, j2) = self.gains, self.jerks
        jerk, gain, slope = above + below, under + beneath, _slope(y)
        j0_jerk, j1_jerk, a1_gain = j0 * jerk, j1 * jerk, a1 * gain
        odd = (below - above) * slope[:, None]  # the tangent bends gaps from above and from below alike
        of_all = np.empty((len(y), 3, 3))
        of_all[:, 0, 0] = _dot(j0_jerk, j0) + 2.0 * _dot(odd, j0) + jerk.sum(axis=1) * slope**2
        of_all[:, 0, 0] += _dot(gain, a0**2) + top / self.fastest**2
        of_all[:, 0, 1] = of_all[:, 1, 0] = _dot(j0_jerk, j1) + _dot(odd, j1) + _dot(a1_gain, a0)
        of_all[:, 0, 2] = of_all[:, 2, 0] = _dot(j0_jerk, j2) + _dot(odd, j2)
        of_all[:, 1, 1] = _dot(j1_jerk, j1) + _dot(a1_gain, a1)
        of_all[:, 1, 2] = of_all[:, 2, 1] = _dot(j1_jerk, j2)
        of_all[:, 2, 2] = _dot(jerk, j2**2)
        return np.add.reduceat(np.swapaxes(self.local, 1, 2) @ of_all @ self.local, self.first), floor

    def _linear(self, at: Array, coefficients: Array) -> Array:
        (a0, a1), (j0, j1, j2) = self.gains, self.jerks
        y, rise, bend = at[..., None]
        gaps = np.empty(4 * a0.size + len(y) + len(coefficients))
        both, top, floor = self._parts(gaps)
        both[1] = j0 * y + j1 * rise + j2 * bend
        both[3] = a0 * y + a1 * rise
        both[0], both[2] = -both[1], -both[3]
        top[:] = -at[0] / self.fastest
        floor[:] = coefficients
        return gaps

    def _parts(self, gaps: Array) -> tuple[Array, Array, Array]:
        places, freedoms = self.gains.shape[1:]
        end = 4 * places * freedoms
        return gaps[:end].reshape(4, places, freedoms), gaps[end : end + places], gaps[end + places :]


def pace_limits(
    curve: Curve, profile: Profile, velocity: Array, acceleration: Array, jerk: Array, closer: Array | None = None
) -> PaceLimits:
    """Within limits (nv,) beside every jump of the profile's and of the curve's third derivative, and in between.

    Args:
        closer: s (any,) where to look besides.
    """
    u = profile.t
    places = _looks(jumps(curve, profile), u)
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
    return PaceLimits(
        u, shapes, np.searchsorted(piece, np.arange(len(u) - 1)).astype(np.int64), piece, local, fastest,
        np.stack([r2, 0.5 * r1]) / acceleration[moves], np.stack([r3, 1.5 * r2, 0.5 * r1]) / jerk[moves],
    )  # fmt: skip


def neighbours(coefficients: Array) -> Array:
    """(K, 3) of (K + 2,)."""
    return np.stack([coefficients[:-2], coefficients[1:-1], coefficients[2:]], axis=1)


def gathered(of_pieces: Array) -> Array:
    """(K + 2,) of (K, 3): the sum of what each parabola says about its coefficients."""
    found = np.zeros(len(of_pieces) + 2)
    for k in range(3):
        found[k : k + len(of_pieces)] += of_pieces[:, k]
    return found


def _slope(y: Array) -> Array:
    """Of y^-1/2."""
    return -0.5 * y**-1.5


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("mv,mv->m", a, b)


def _shapes(wide: Array) -> Array:
    """(K, 3, 3) of parabolas that are so wide (K,): a quadratic B-spline on uneven knots."""
    h = np.concatenate([wide[:1], wide, wide[-1:]])
    left, right = h[:-2] + wide, wide + h[2:]
    found = np.zeros((len(wide), 3, 3))
    found[:, 0, 0], found[:, 0, 1] = wide / left, h[:-2] / left
    found[:, 1, 0], found[:, 1, 1] = -2.0 / left, 2.0 / left
    found[:, 2, 0], found[:, 2, 2] = 2.0 / (left * wide), 2.0 / (right * wide)
    found[:, 2, 1] = -found[:, 2, 0] - found[:, 2, 2]
    return found


def _looks(times: Array, u: Array) -> Array:
    """Places beside all jumps and between them; more where it begins and ends, since the profile bends most there."""
    begin, wide = times[:-1, None], np.diff(times)[:, None]
    ends = (times[:-1] < u[ENDS]) | (times[1:] > u[-1 - ENDS])
    few, many = (begin + wide * np.linspace(BESIDE, 1.0 - BESIDE, count) for count in LOOKS)
    return np.sort(np.concatenate([few[~ends].ravel(), many[ends].ravel()]))
