"""How well fitted shapes stand for meshes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.collision.cover import Round
from mechanik.collision.cutting import spread
from mechanik.collision.meshes import read_body
from mechanik.errors import MissingExtra
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.shapes import Capsule, Mesh, Sphere
from mechanik.spatial.array import Array

PLACES = 100_000
"""In the box around the shapes, by which their volume is judged; to about 1 %."""
SURFACE = 20_000
"""Points all over a mesh, by which overhangs and what is left out are judged."""
AROUND = 2_000
"""Directions in which each shape is looked at from outside."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Of one link.

    Attributes:
        shapes: how many.
        volume: of all shapes together, m^3.
        hull: volume of the convex hulls of its meshes, m^3.
        overhang: how far a shape stands out beyond the nearest point of a mesh, at most, m.
        outside: how far a point of a mesh is outside all shapes, at most, m; not above zero if they cover it.
    """

    shapes: int
    volume: float
    hull: float
    overhang: float
    outside: float

    @property
    def ratio(self) -> float:
        """Volume of the shapes to that of the hulls."""
        return self.volume / self.hull

    def __str__(self) -> str:
        many = "1 shape" if self.shapes == 1 else f"{self.shapes} shapes"
        return f"{many}, {self.ratio:.2f} times the hull, at most {self.overhang * 1e3:.0f} mm beyond it"


def fit_quality(mechanism: Mechanism, fitted: Mechanism) -> dict[str, Fit]:
    """By link, how well the capsules and spheres of `fit_shapes` stand for the meshes of the mechanism.

    Volumes are judged by points, to about 1 %, and overhangs to some mm.
    """
    return {
        name: _fit(triangles, rounds)
        for name, link in mechanism.links.items()
        if len(triangles := _triangles(link, name)) and (rounds := rounds_of(fitted.link(name)))
    }


def rounds_of(link: Link) -> list[Round]:
    """The capsules and spheres that a link bumps with, in its frame."""
    found: list[Round] = []
    for placed in link.collisions:
        shape = placed.shape
        if isinstance(shape, Capsule | Sphere):
            half = 0.5 * shape.length if isinstance(shape, Capsule) else 0.0
            a, b = placed.pose.apply([[0.0, 0.0, -half], [0.0, 0.0, half]])
            found.append(Round(a, b, shape.radius))
    return found


def nearest_outside(rounds: Sequence[Round], points: Array) -> Array:
    """How far each of the points (n, 3) is outside all shapes; below zero inside one."""
    found = rounds[0].outside(points)
    for one in rounds[1:]:
        found = np.minimum(found, one.outside(points))
    return found


def _triangles(link: Link, name: str) -> Array:
    """Of the meshes that are fitted, (T, 3, 3), in the link's frame."""
    found = [np.zeros((0, 3, 3))]
    for placed in link.collisions or link.visuals:
        if isinstance(placed.shape, Mesh):
            body = read_body(placed.shape, f"link {name!r}")
            found.append(placed.pose.apply(body.points)[body.corners])
    return np.concatenate(found)


def _fit(triangles: Array, rounds: Sequence[Round]) -> Fit:
    try:
        import scipy.spatial
    except ImportError:
        raise MissingExtra("judging how well shapes fit", "collision") from None
    spatial: Any = scipy.spatial
    points = np.concatenate([triangles.reshape(-1, 3), spread(triangles, SURFACE)])
    skin = np.concatenate([_skin(one) for one in rounds])
    skin = skin[nearest_outside(rounds, skin) > -1e-9]
    hull = spatial.ConvexHull(triangles.reshape(-1, 3))
    beyond = skin[(skin @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1) > 0.0]
    away = np.array(spatial.cKDTree(points).query(beyond)[0], dtype=np.float64)
    low, high = skin.min(axis=0), skin.max(axis=0)
    places = np.random.default_rng(0).uniform(low, high, (PLACES, 3))
    share = float(np.count_nonzero(nearest_outside(rounds, places) <= 0.0)) / PLACES
    outside = float(nearest_outside(rounds, points).max())
    return Fit(
        len(rounds), share * math.prod((high - low).tolist()), float(hull.volume), float(away.max(initial=0.0)), outside
    )


def _skin(one: Round) -> Array:
    """Points (AROUND, 3) on the surface: those farthest out in each direction, which are on the round ends, and some
    on the straight part."""
    k = np.arange(AROUND) + 0.5
    height, turn = 1.0 - 2.0 * k / AROUND, np.pi * (1.0 + 5.0**0.5) * k
    flat = np.sqrt(1.0 - height**2)
    out = np.column_stack([flat * np.cos(turn), flat * np.sin(turn), height])
    along = one.b - one.a
    ends = one.a + (out @ along > 0)[:, None] * along + one.radius * out
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return ends
    axis = along / length
    across = out - (out @ axis)[:, None] * axis
    good = np.linalg.norm(across, axis=1) > 0.1
    sides = across[good] / np.linalg.norm(across[good], axis=1)[:, None]
    shares = (k[good] * 0.6180339887498949) % 1.0
    return np.concatenate([ends, one.a + shares[:, None] * along + one.radius * sides])
