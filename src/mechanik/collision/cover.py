"""The smallest ball and a small capsule around points."""

from __future__ import annotations

from itertools import combinations, product
from typing import NamedTuple, cast

import numpy as np

from mechanik.spatial.array import Array

TRIES, STEPS, QUICK = 24, 120, 15
"""Capsules that are tried at once, and how often; less often if it has to be quick. Tuned on capsules of
any size and length, which are found again to 0.01 % of their volume, nearly round ones to 3 %."""
DIRECTIONS = np.array([way for way in product((-1.0, 0.0, 1.0), repeat=3) if way > (0.0, 0.0, 0.0)])
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]
"""(13, 3), along the edges and diagonals of a cube."""
ROUNDING = 1e-12
"""Share of the size by which radii are larger than they need to be, so that rounding leaves no point outside."""


class Round(NamedTuple):
    """A capsule from `a` to `b` (3,), or a ball if they are the same."""

    a: Array
    b: Array
    radius: float

    @property
    def volume(self) -> float:
        length = float(np.linalg.norm(self.b - self.a))
        return float(np.pi * self.radius**2 * (length + 4.0 / 3.0 * self.radius))

    def outside(self, points: Array) -> Array:
        """How far points (..., 3) are outside; below zero inside."""
        along = self.b - self.a
        share = np.clip((points - self.a) @ along / max(float(along @ along), 1e-300), 0.0, 1.0)
        return np.linalg.norm(points - self.a - share[..., None] * along, axis=-1) - self.radius


def smallest_ball(points: Array) -> Round:
    """The smallest ball that holds all points (n, 3), n > 0.

    It is held by at most four of them. They are found by taking in the farthest point as long as one is outside
    (B. Gaertner, "Fast and robust smallest enclosing balls", ESA 1999).
    """
    held = points[:1]
    centre, radius = held[0], 0.0
    size = float(np.abs(points - points.mean(axis=0)).max())
    for _ in range(10 * len(points) + 10):
        away = np.linalg.norm(points - centre, axis=1)
        far = int(np.argmax(away))
        if away[far] <= radius + 1e-10 * size:
            break
        centre, grown, held = _ball_of_few(np.vstack([held, points[far]]))
        if grown <= radius:  # by rounding alone
            break
        radius = grown
    reach = float(np.linalg.norm(points - centre, axis=1).max())
    return Round(centre, centre, reach + ROUNDING * size)


def _ball_of_few(points: Array) -> tuple[Array, float, Array]:
    """Centre, radius and those points that hold it, of at most five points."""
    best: tuple[Array, float, Array] | None = None
    for count in range(2, min(4, len(points)) + 1):
        for some in combinations(range(len(points)), count):
            held = points[list(some)]
            edges = held[1:] - held[0]
            gram = edges @ edges.T
            inverse = cast("Array", np.linalg.pinv(gram, rcond=1e-12))
            centre: Array = held[0] + 0.5 * (inverse @ np.diag(gram)) @ edges
            radius = float(np.linalg.norm(held - centre, axis=1).max())
            holds_all = np.linalg.norm(points - centre, axis=1).max() <= radius * (1 + 1e-10)
            if holds_all and (best is None or radius < best[1]):
                best = centre, radius, held
    if best is None:  # points that are nearly one
        centre = points.mean(axis=0)
        return centre, float(np.linalg.norm(points - centre, axis=1).max()), points[:4]
    return best


def small_capsule(points: Array, quick: bool = False) -> Round:
    """A capsule of small volume that holds all points (n, 3), n > 0.

    From the best of their principal axes and some directions, by a search with steps that grow where it gets better and
    shrink where it does not; the same each time. Never larger than the smallest ball, unless it has to be quick.
    """
    ball = None if quick else smallest_ball(points)
    middle = points.mean(axis=0) if ball is None else ball.a
    scale = float(np.abs(points - middle).max())
    if scale == 0.0:
        return Round(middle, middle, 0.0)
    cloud = (points - middle) / scale
    axes = np.linalg.svd(cloud - cloud.mean(axis=0), full_matrices=False)[2]
    starts = np.concatenate([axes, DIRECTIONS])
    found = _around(cloud, starts, np.zeros_like(starts), np.zeros(len(starts)))
    rng = np.random.default_rng(0)
    tried: list[Round] = []
    for first in np.argsort(found[3])[: 2 if quick else 4]:
        tried.append(_searched(cloud, starts[first], found, int(first), rng, QUICK if quick else STEPS))
    best = min(tried, key=lambda one: one.volume)
    capsule = Round(middle + scale * best.a, middle + scale * best.b, scale * (best.radius + ROUNDING))
    capsule = capsule._replace(
        radius=capsule.radius + max(0.0, float(capsule.outside(points).max()) + ROUNDING * scale)
    )
    return capsule if ball is None or capsule.volume < ball.volume else ball


Found = tuple[Array, Array, Array, Array]


def _around(cloud: Array, axes: Array, through: Array, more: Array) -> Found:
    """For each of m lines the capsule along it: where it begins and ends on the line (m,), radius (m,), volume (m,).

    Args:
        axes: (m, 3), unit.
        through: (m, 3), a point of each line.
        more: (m,), share by which the radius is larger than the farthest point asks for: ends may then be nearer.
    """
    apart = cloud[None] - through[:, None]  # (m, n, 3)
    along = np.einsum("mni,mi->mn", apart, axes)
    off = np.maximum(np.einsum("mni,mni->mn", apart, apart) - along**2, 0.0)
    radius = np.sqrt(off.max(axis=1)) * (1.0 + more)
    spare = np.sqrt(np.maximum(radius[:, None] ** 2 - off, 0.0))
    begin, end = (along + spare).min(axis=1), (along - spare).max(axis=1)
    middle, length = 0.5 * (begin + end), np.maximum(end - begin, 0.0)  # a ball where the round ends alone hold all
    volume = np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
    return middle - 0.5 * length, middle + 0.5 * length, radius, volume


def _searched(cloud: Array, axis: Array, found: Found, first: int, rng: np.random.Generator, steps: int) -> Round:
    through, more, volume = np.zeros(3), 0.0, float(found[3][first])
    begin, end, radius = (float(one[first]) for one in found[:3])
    step = 0.3  # as a share of the radius: the thinner it is, the less it may turn
    for _ in range(steps):
        axes = axis + step * radius * rng.normal(size=(TRIES, 3))
        axes /= np.linalg.norm(axes, axis=1)[:, None]
        places = through + step * radius * rng.normal(size=(TRIES, 3))
        mores = np.abs(more + 0.5 * step * rng.normal(size=TRIES))
        mores[::3] = more
        begins, ends, radii, volumes = _around(cloud, axes, places, mores)
        best = int(np.argmin(volumes))
        if volumes[best] < volume:
            axis, through, more, volume = axes[best], places[best], float(mores[best]), float(volumes[best])
            begin, end, radius = float(begins[best]), float(ends[best]), float(radii[best])
            step *= 1.2
        else:
            step *= 0.8
    return Round(through + begin * axis, through + end * axis, radius)
