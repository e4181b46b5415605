"""Fitting of capsules and spheres that cover the meshes of links, for fast collision checks.

A mesh is cut by planes where that saves the most volume, and each part gets a small enclosing capsule, or the smallest
enclosing sphere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from typing import Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from mechanik.collision.collision_meshes import MESH_CACHE_SIZE, CollisionMesh, outer_points, read_collision_mesh
from mechanik.errors import InvalidArgument, ObjectiveError, UnknownName
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import Capsule, Mesh, ShapeInstance, Sphere
from mechanik.spatial import Pose, make_pose, rotation
from mechanik.spatial.array import Array

CANDIDATES_PER_STEP, SEARCH_STEPS, QUICK_SEARCH_STEPS = 24, 120, 15
"""Capsules tried in each step of the search, number of steps, and number of steps of the quick search. Tuned on
capsules of any size and length, which are found again to 0.01 % of their volume, nearly spherical ones to 3 %."""
DIRECTIONS = np.array([way for way in product((-1.0, 0.0, 1.0), repeat=3) if way > (0.0, 0.0, 0.0)])
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]
"""(13, 3), unit vectors along the edges and diagonals of a cube."""
ROUNDING = 1e-12
"""Share of the size by which radii are enlarged, so that rounding leaves no point outside."""


class CoverCapsule(NamedTuple):
    """Capsule from `a` to `b`, or a sphere if they are equal.

    Attributes:
        a, b: (3,), m, ends of the axis.
        radius: m.
    """

    a: Array
    b: Array
    radius: float

    @property
    def volume(self) -> float:
        """Volume, m^3."""
        length = float(np.linalg.norm(self.b - self.a))
        return float(np.pi * self.radius**2 * (length + 4.0 / 3.0 * self.radius))

    def signed_distance(self, points: Array) -> Array:
        """Return the signed distance of points (..., 3), m; negative inside."""
        along = self.b - self.a
        share = np.clip((points - self.a) @ along / max(float(along @ along), 1e-300), 0.0, 1.0)
        return np.linalg.norm(points - self.a - share[..., None] * along, axis=-1) - self.radius


def smallest_sphere(points: Array) -> CoverCapsule:
    """Return the smallest sphere that contains all points (n, 3), n > 0.

    At most four points determine it. They are found by adding the farthest point while one is outside (B. Gaertner,
    "Fast and robust smallest enclosing balls", ESA 1999).
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
        if grown <= radius:  # only rounding is left
            break
        radius = grown
    reach = float(np.linalg.norm(points - centre, axis=1).max())
    return CoverCapsule(centre, centre, reach + ROUNDING * size)


def _ball_of_few(points: Array) -> tuple[Array, float, Array]:
    """Return centre, radius and the points that determine the smallest sphere of at most five points."""
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
    if best is None:  # nearly coincident points
        centre = points.mean(axis=0)
        return centre, float(np.linalg.norm(points - centre, axis=1).max()), points[:4]
    return best


def small_capsule(points: Array, quick: bool = False) -> CoverCapsule:
    """Return a capsule of small volume that contains all points (n, 3), n > 0.

    A deterministic random search starts from the best of the principal axes and some fixed directions. Its step grows
    after an improvement and shrinks otherwise. Unless `quick`, the capsule is never larger than the smallest sphere.
    """
    ball = None if quick else smallest_sphere(points)
    middle = points.mean(axis=0) if ball is None else ball.a
    scale = float(np.abs(points - middle).max())
    if scale == 0.0:
        return CoverCapsule(middle, middle, 0.0)
    cloud = (points - middle) / scale
    axes = np.linalg.svd(cloud - cloud.mean(axis=0), full_matrices=False)[2]
    starts = np.concatenate([axes, DIRECTIONS])
    found = _around(cloud, starts, np.zeros_like(starts), np.zeros(len(starts)))
    rng = np.random.default_rng(0)
    tried: list[CoverCapsule] = []
    for first in np.argsort(found[3])[: 2 if quick else 4]:
        tried.append(
            _searched(cloud, starts[first], found, int(first), rng, QUICK_SEARCH_STEPS if quick else SEARCH_STEPS)
        )
    best = min(tried, key=lambda one: one.volume)
    capsule = CoverCapsule(middle + scale * best.a, middle + scale * best.b, scale * (best.radius + ROUNDING))
    capsule = capsule._replace(
        radius=capsule.radius + max(0.0, float(capsule.signed_distance(points).max()) + ROUNDING * scale)
    )
    return capsule if ball is None or capsule.volume < ball.volume else ball


CapsuleCandidates = tuple[Array, Array, Array, Array]


def _around(cloud: Array, axes: Array, through: Array, more: Array) -> CapsuleCandidates:
    """For each of m lines return the capsule along it: start and end on the line (m,), radius (m,), volume (m,).

    Args:
        axes: (m, 3), unit vectors.
        through: (m, 3), a point of each line.
        more: (m,), share by which the radius exceeds the largest distance of a point; it allows a shorter capsule.
    """
    apart = cloud[None] - through[:, None]  # (m, n, 3)
    along = np.einsum("mni,mi->mn", apart, axes)
    off = np.maximum(np.einsum("mni,mni->mn", apart, apart) - along**2, 0.0)
    radius = np.sqrt(off.max(axis=1)) * (1.0 + more)
    spare = np.sqrt(np.maximum(radius[:, None] ** 2 - off, 0.0))
    begin, end = (along + spare).min(axis=1), (along - spare).max(axis=1)
    middle, length = 0.5 * (begin + end), np.maximum(end - begin, 0.0)  # length 0: a sphere
    volume = np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
    return middle - 0.5 * length, middle + 0.5 * length, radius, volume


def _searched(
    cloud: Array, axis: Array, found: CapsuleCandidates, first: int, rng: np.random.Generator, steps: int
) -> CoverCapsule:
    through, more, volume = np.zeros(3), 0.0, float(found[3][first])
    begin, end, radius = (float(one[first]) for one in found[:3])
    step = 0.3  # as a share of the radius, since a thin capsule allows only small rotations
    for _ in range(steps):
        axes = axis + step * radius * rng.normal(size=(CANDIDATES_PER_STEP, 3))
        axes /= np.linalg.norm(axes, axis=1)[:, None]
        places = through + step * radius * rng.normal(size=(CANDIDATES_PER_STEP, 3))
        mores = np.abs(more + 0.5 * step * rng.normal(size=CANDIDATES_PER_STEP))
        mores[::3] = more
        begins, ends, radii, volumes = _around(cloud, axes, places, mores)
        best = int(np.argmin(volumes))
        if volumes[best] < volume:
            axis, through, more, volume = axes[best], places[best], float(mores[best]), float(volumes[best])
            begin, end, radius = float(begins[best]), float(ends[best]), float(radii[best])
            step *= 1.2
        else:
            step *= 0.8
    return CoverCapsule(through + begin * axis, through + end * axis, radius)


def cut_triangles(triangles: Array, normal: Array, level: float) -> tuple[Array, Array]:
    """Split triangles (T, 3, 3) at the plane normal . x = level into those below and those above, (., 3, 3) each.

    A triangle across the plane is cut into three of the same total area. One that only touches the plane is on the side
    of its other corners. One in the plane is below.
    """
    high = triangles @ normal - level  # (T, 3)
    is_above, is_below = high > 0, high < 0
    crosses = is_above.any(axis=1) & is_below.any(axis=1)
    whole_above = is_above.any(axis=1) & ~crosses
    below, above = [triangles[~crosses & ~whole_above]], [triangles[whole_above]]
    if crosses.any():
        some, heights = triangles[crosses], high[crosses]
        # reordered so that the first corner is alone on its side; a corner in the plane belongs to the other side
        one_up = np.count_nonzero(heights > 0, axis=1) == 1
        alone = heights.argmax(axis=1) * one_up + heights.argmin(axis=1) * ~one_up
        order = (alone[:, None] + np.arange(3)) % 3
        some = np.take_along_axis(some, order[..., None], axis=1)
        heights = np.take_along_axis(heights, order, axis=1)
        a, b, c = some[:, 0], some[:, 1], some[:, 2]
        ha, hb, hc = heights.T[:, :, None]
        ab, ac = a + (b - a) * (ha / (ha - hb)), a + (c - a) * (ha / (ha - hc))
        tip = np.stack([a, ab, ac], axis=1)
        rest = np.concatenate([np.stack([ab, b, c], axis=1), np.stack([ab, c, ac], axis=1)])
        up = ha[:, 0] > 0
        above += [tip[up], rest[np.tile(~up, 2)]]
        below += [tip[~up], rest[np.tile(up, 2)]]
    return np.concatenate(below), np.concatenate(above)


def triangle_areas(triangles: Array) -> Array:
    """Return the areas (T,) of triangles (T, 3, 3), m^2."""
    return 0.5 * np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)


def sample_surface(triangles: Array, count: int, seed: int = 0) -> Array:
    """Return random points (count, 3) on triangles (T, 3, 3), uniform by area; deterministic for a seed."""
    rng = np.random.default_rng(seed)
    sizes = triangle_areas(triangles)
    chosen = triangles[rng.choice(len(triangles), count, p=sizes / sizes.sum())]
    u, v = np.sort(rng.random((2, count)), axis=0)
    return chosen[:, 0] * u[:, None] + chosen[:, 1] * (v - u)[:, None] + chosen[:, 2] * (1 - v)[:, None]


FittedKind = Literal["capsules", "spheres"]
FITTED_KINDS: tuple[FittedKind, ...] = ("capsules", "spheres")
MAX_SHAPES: dict[FittedKind, int] = {"capsules": 3, "spheres": 12}
"""Default for the largest number of shapes for each mesh."""
MIN_VOLUME_SAVING = 0.03
"""Share of the volume that each additional capsule must save."""
HULL_FIRST_POINTS = 100
"""Number of points above which computing the hull first is faster."""
CUT_SHARES = (0.35, 0.5, 0.65)
"""Positions where a part may be cut, as shares of its extent."""
VOLUME_SAMPLES = 4096
"""Number of points in the box around a mesh to estimate the volume of a union, to some 2 %."""


def fit_shapes(
    mechanism: Mechanism, kind: FittedKind = "capsules", *, links: Iterable[str] | None = None, count: int | None = None
) -> Mechanism:
    """Return a copy of the mechanism with capsules or spheres in place of its collision meshes.

    Every point of a mesh is inside its shapes (to rounding), and so is the interior of a closed mesh; `fit_quality`
    tells how much larger the shapes are. Links without collision shapes get shapes for their visual meshes. Other
    shapes stay.

    Args:
        mechanism: not changed.
        kind: "capsules", few and long, or "spheres", more and simpler.
        links: names of links; None: all.
        count: largest number of shapes for each mesh; default 3 capsules or 12 spheres. There are fewer capsules where
            another one would hardly save volume.

    Returns:
        The copy.

    Raises:
        MeshError: a mesh is missing, cannot be read, or has no volume.
        ObjectiveError: `kind` or `count` is invalid.
        UnknownName: there is no such link.

    Example:
        >>> import pathlib, tempfile
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> wedge = "v 0 0 0,v 0.3 0 0,v 0 0.1 0,v 0 0 0.1,f 1 3 2,f 1 2 4,f 1 4 3,f 2 3 4".split(",")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "wedge.obj")
        ...     _ = path.write_text(chr(10).join(wedge))
        ...     arm.link("link2").collisions = (mk.ShapeInstance(mk.Mesh("wedge.obj", path=str(path))),)
        ...     fitted = mk.fit_shapes(arm, count=1)
        >>> type(fitted.link("link2").collisions[0].shape).__name__
        'Capsule'
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"shapes are fitted to the links of a mechanism, not to {mechanism!r}")
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


def fit_mesh(
    mesh: Mesh, owner: str, kind: FittedKind = "capsules", count: int | None = None
) -> tuple[ShapeInstance, ...]:
    """Return the shapes that cover a mesh, in its frame.

    Args:
        owner: link or obstacle, for messages: "link 'arm'".
        kind, count: as in `fit_shapes`.

    Raises:
        MeshError: the mesh is missing, cannot be read, or has no volume.
    """
    _check(kind, count)
    return _fit(read_collision_mesh(mesh, owner), kind, MAX_SHAPES[kind] if count is None else count)


def cover_triangles(triangles: Array, kind: FittedKind, count: int) -> list[CoverCapsule]:
    """Return at most `count` capsules or spheres that cover triangles (T, 3, 3).

    The triangles are cut by planes, and each part is covered as a whole, with the space between its triangles.
    """
    return _balls(triangles, count) if kind == "spheres" else _capsules(triangles, count)


def _check(kind: FittedKind, count: int | None) -> None:
    if kind not in FITTED_KINDS:
        raise ObjectiveError(f"shapes of the kind {kind!r} are not fitted; there are {' and '.join(FITTED_KINDS)}")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ObjectiveError(f"count is {count!r}; it is a whole number from 1")


def _fitted(placed: ShapeInstance, link: str, kind: FittedKind, count: int | None) -> Sequence[ShapeInstance]:
    if not isinstance(placed.shape, Mesh):
        return [placed]
    made = fit_mesh(placed.shape, f"link {link!r}", kind, count)
    return [replace(placed, shape=one.shape, pose=placed.pose @ one.pose) for one in made]


@lru_cache(MESH_CACHE_SIZE)
def _fit(body: CollisionMesh, kind: FittedKind, count: int) -> tuple[ShapeInstance, ...]:
    return tuple(as_placed_shape(one) for one in cover_triangles(body.points[body.corners], kind, count))


def as_placed_shape(one: CoverCapsule) -> ShapeInstance:
    """Return a sphere if it has no length, else a capsule."""
    along = one.b - one.a
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return ShapeInstance(Sphere(one.radius), Pose(one.a))
    R = rotation.between((0.0, 0.0, 1.0), along / length)
    return ShapeInstance(Capsule(one.radius, length), Pose.from_matrix(make_pose(R, 0.5 * (one.a + one.b))))


def _capsules(triangles: Array, count: int) -> list[CoverCapsule]:
    """Cut the part where that saves the most volume, repeatedly; keep the number of capsules that pays off."""
    places = _places(triangles)
    parts, found = [triangles], [small_capsule(_points(triangles))]
    chosen, price = found, _share(found, places) * (1.0 + MIN_VOLUME_SAVING)
    while len(found) < count:
        best: tuple[int, list[Array], list[CoverCapsule]] | None = None
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
        asked = _share(found, places) * (1.0 + MIN_VOLUME_SAVING * len(found))
        if asked < price:
            chosen, price = found, asked
    return chosen


def _balls(triangles: Array, count: int) -> list[CoverCapsule]:
    """Cut the part with the largest sphere in two, across its longest extent, repeatedly."""
    parts, found = [triangles], [smallest_sphere(_points(triangles))]
    while len(found) < count:
        k = int(np.argmax([one.radius for one in found]))
        axis, low, high = next(iter(_extents(parts[k])))
        two = [half for half in cut_triangles(parts[k], axis, 0.5 * (low + high)) if len(half)]
        if len(two) < 2:
            break
        parts[k : k + 1] = two
        found[k : k + 1] = [smallest_sphere(_points(half)) for half in two]
    return found


def _halves(part: Array) -> Iterable[tuple[Array, Array]]:
    for axis, low, high in [*_extents(part), *_extents(part, np.eye(3))]:  # often drawn along their frame
        for share in CUT_SHARES:
            below, above = cut_triangles(part, axis, low + share * (high - low))
            if len(below) and len(above):
                yield below, above


def _extents(part: Array, axes: Array | None = None) -> list[tuple[Array, float, float]]:
    """Return axes (default: principal) with smallest and largest coordinate along each, longest extent first."""
    points = _points(part)
    if axes is None:
        axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    along = points @ axes.T
    found = [(axis, float(low), float(high)) for axis, low, high in zip(axes, along.min(0), along.max(0), strict=True)]
    return sorted(found, key=lambda one: one[1] - one[2])


def _points(triangles: Array) -> Array:
    points = triangles.reshape(-1, 3)
    return outer_points(points) if len(points) > HULL_FIRST_POINTS else points


def _places(triangles: Array) -> Array:
    """Return points (VOLUME_SAMPLES, 3), spread evenly over an enlarged box around the triangles; deterministic."""
    points = triangles.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = 0.5 * (low + high), 0.7 * (high - low) + 0.1 * (high - low).max()
    steps = np.array([0.8191725133961645, 0.6710436067037893, 0.5497004779019703])  # R. Roberts' R3 sequence
    return middle + (2.0 * ((0.5 + np.arange(VOLUME_SAMPLES)[:, None] * steps) % 1.0) - 1.0) * size


def _share(found: Sequence[CoverCapsule], places: Array) -> float:
    """Return the share of the points that are inside a shape."""
    return np.count_nonzero(_inside(found, places)) / len(places)


def _inside(found: Sequence[CoverCapsule], places: Array) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(places), dtype=np.bool_)
    for one in found:
        inside |= one.signed_distance(places) <= 0.0
    return inside
