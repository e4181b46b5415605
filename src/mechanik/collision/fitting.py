"""Capsules and balls that cover the meshes of links, for solvers that have to look often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from mechanik.collision.cover import Round, small_capsule, smallest_ball
from mechanik.collision.cutting import cut
from mechanik.collision.meshes import KEPT, Body, outer_points, read_body
from mechanik.errors import ObjectiveError, UnknownName, WrongKind
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.shapes import Capsule, Mesh, PlacedShape, Sphere
from mechanik.spatial import Pose, make, rotation
from mechanik.spatial.array import Array

Kind = Literal["capsules", "spheres"]
KINDS: tuple[Kind, ...] = ("capsules", "spheres")
MOST: dict[Kind, int] = {"capsules": 3, "spheres": 12}
"""For each mesh, if nothing is said."""
WORTH = 0.03
"""Share of the volume that one capsule more has to save, over all that are added."""
FEW = 100
"""Points, from which on it is quicker to find the outer ones first."""
CUTS = (0.35, 0.5, 0.65)
"""Where a part may be cut, as shares of its extent."""
SAMPLES = 4096
"""Places in the box around a mesh by which the volume of a union is judged; to some 2 %."""


def fit_shapes(
    mechanism: Mechanism, kind: Kind = "capsules", *, links: Iterable[str] | None = None, count: int | None = None
) -> Mechanism:
    """A copy of the mechanism whose links bump with capsules or spheres in place of their meshes.

    Every point of a mesh is in one of the shapes that stand for it (to rounding), and so is what a closed mesh holds;
    `fit_quality` says how much more that is. Links that bump with nothing get shapes for the meshes that they look
    like. Other shapes stay.

    Args:
        kind: "capsules", few and long, or "spheres", more and simpler.
        links: which; all that have meshes if it is not given.
        count: the most for each mesh: 3 capsules or 12 spheres if it is not given. Capsules are fewer where one more
            would hardly save any volume.
    Raises:
        MeshError: a mesh is not there, cannot be read, or holds no volume.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"shapes are fitted to the links of a mechanism, not to {mechanism!r}")
    _check(kind, count)
    fitted = mechanism.copy()
    names = list(fitted.links) if links is None else [links] if isinstance(links, str) else list(links)
    for name in names:
        if name not in fitted.links:
            raise UnknownName("link", name, known=fitted.links)
        link = fitted.links[name]
        shapes = link.collisions or tuple(one for one in link.visuals if isinstance(one.shape, Mesh))
        link.collisions = tuple(made for one in shapes for made in _fitted(one, name, kind, count))
    return fitted


def fit_mesh(mesh: Mesh, owner: str, kind: Kind = "capsules", count: int | None = None) -> tuple[PlacedShape, ...]:
    """The shapes that cover a mesh, in its frame.

    Args:
        owner: whose mesh it is, for messages: "link 'arm'".
    """
    _check(kind, count)
    return _fit(read_body(mesh, owner), kind, MOST[kind] if count is None else count)


def cover(triangles: Array, kind: Kind, count: int) -> list[Round]:
    """Capsules or balls, at most `count`, that cover triangles (T, 3, 3).

    The triangles are cut by planes, and each part is covered as a whole, which holds what is in between as well.
    """
    return _balls(triangles, count) if kind == "spheres" else _capsules(triangles, count)


def _check(kind: Kind, count: int | None) -> None:
    if kind not in KINDS:
        raise ObjectiveError(f"shapes of the kind {kind!r} are not fitted; there are {' and '.join(KINDS)}")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ObjectiveError(f"count is {count!r}; it is a whole number from 1")


def _fitted(placed: PlacedShape, link: str, kind: Kind, count: int | None) -> Sequence[PlacedShape]:
    if not isinstance(placed.shape, Mesh):
        return [placed]
    made = fit_mesh(placed.shape, f"link {link!r}", kind, count)
    return [replace(placed, shape=one.shape, pose=placed.pose @ one.pose) for one in made]


@lru_cache(KEPT)
def _fit(body: Body, kind: Kind, count: int) -> tuple[PlacedShape, ...]:
    return tuple(as_shape(one) for one in cover(body.points[body.corners], kind, count))


def as_shape(one: Round) -> PlacedShape:
    """A sphere if it has no length, else a capsule."""
    along = one.b - one.a
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return PlacedShape(Sphere(one.radius), Pose(one.a))
    R = rotation.between((0.0, 0.0, 1.0), along / length)
    return PlacedShape(Capsule(one.radius, length), Pose.from_matrix(make(R, 0.5 * (one.a + one.b))))


def _capsules(triangles: Array, count: int) -> list[Round]:
    """Cut the part where that saves the most, again and again; taken are as many as are worth it."""
    places = _places(triangles)
    parts, found = [triangles], [small_capsule(_points(triangles))]
    chosen, price = found, _share(found, places) * (1.0 + WORTH)
    while len(found) < count:
        best: tuple[int, list[Array], list[Round]] | None = None
        for k, part in enumerate(parts):
            others = found[:k] + found[k + 1 :]
            left = places[~_inside(others, places)]
            for two in _halves(part):
                made = [small_capsule(_points(half), quick=True) for half in two]
                share = int(np.count_nonzero(_inside(made, left))) - len(left)
                if best is None or share < best[0]:
                    best = share, [*parts[:k], *parts[k + 1 :], *two], others
        if best is None:
            break
        parts = best[1]
        found = [*best[2], *(small_capsule(_points(half)) for half in parts[-2:])]
        asked = _share(found, places) * (1.0 + WORTH * len(found))
        if asked < price:
            chosen, price = found, asked
    return chosen


def _balls(triangles: Array, count: int) -> list[Round]:
    """Cut the part with the largest ball in two, across its longest extent, again and again."""
    parts, found = [triangles], [smallest_ball(_points(triangles))]
    while len(found) < count:
        k = int(np.argmax([one.radius for one in found]))
        axis, low, high = next(iter(_extents(parts[k])))
        two = [half for half in cut(parts[k], axis, 0.5 * (low + high)) if len(half)]
        if len(two) < 2:
            break
        parts[k : k + 1] = two
        found[k : k + 1] = [smallest_ball(_points(half)) for half in two]
    return found


def _halves(part: Array) -> Iterable[tuple[Array, Array]]:
    for axis, low, high in [*_extents(part), *_extents(part, np.eye(3))]:  # parts are often drawn along their frame
        for share in CUTS:
            below, above = cut(part, axis, low + share * (high - low))
            if len(below) and len(above):
                yield below, above


def _extents(part: Array, axes: Array | None = None) -> list[tuple[Array, float, float]]:
    """Axes, or the principal ones of a part, that of the largest extent first, with the lowest and highest along it."""
    points = _points(part)
    if axes is None:
        axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    along = points @ axes.T
    found = [(axis, float(low), float(high)) for axis, low, high in zip(axes, along.min(0), along.max(0), strict=True)]
    return sorted(found, key=lambda one: one[1] - one[2])


def _points(triangles: Array) -> Array:
    points = triangles.reshape(-1, 3)
    return outer_points(points) if len(points) > FEW else points


def _places(triangles: Array) -> Array:
    """(SAMPLES, 3), evenly spread over more than the box around the triangles; the same each time."""
    points = triangles.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = 0.5 * (low + high), 0.7 * (high - low) + 0.1 * (high - low).max()
    steps = np.array([0.8191725133961645, 0.6710436067037893, 0.5497004779019703])  # R. Roberts' R3 sequence
    return middle + (2.0 * ((0.5 + np.arange(SAMPLES)[:, None] * steps) % 1.0) - 1.0) * size


def _share(found: Sequence[Round], places: Array) -> float:
    """Of the places, how many are in one of the shapes."""
    return np.count_nonzero(_inside(found, places)) / len(places)


def _inside(found: Sequence[Round], places: Array) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(places), dtype=np.bool_)
    for one in found:
        inside |= one.outside(places) <= 0.0
    return inside
