"""Fitting of capsules and spheres that cover the meshes of links and obstacles, for fast collision checks.

A mesh is cut into parts by planes. Each part gets a small enclosing capsule, or the smallest enclosing sphere. For
capsules, each cut is the one of several that saves the most volume; for spheres, each cut halves the longest extent.
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
"""Number of capsules that are tried in each step of the search, number of steps, and number of steps of the quick
search. Tuned on points of known capsules of any size and length: the capsules are found with a volume error of 0.01 %,
or 3 % if they are nearly spherical."""
DIRECTIONS = np.array([direction for direction in product((-1.0, 0.0, 1.0), repeat=3) if direction > (0.0, 0.0, 0.0)])
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]
"""(13, 3), unit vectors along the edges and diagonals of a cube."""
ROUNDING = 1e-12
"""Fraction of the size by which radii are enlarged, so that no point is outside because of rounding."""


class CoverCapsule(NamedTuple):
    """Capsule with the axis from `a` to `b`, or a sphere if both are equal.

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
        axis_vector = self.b - self.a
        fraction = np.clip((points - self.a) @ axis_vector / max(float(axis_vector @ axis_vector), 1e-300), 0.0, 1.0)
        return np.linalg.norm(points - self.a - fraction[..., None] * axis_vector, axis=-1) - self.radius


def smallest_sphere(points: Array) -> CoverCapsule:
    """Return the smallest sphere that contains all points (n, 3), n > 0.

    At most four points determine the sphere. They are found by adding the farthest point as long as a point is outside
    (B. Gaertner, "Fast and robust smallest enclosing balls", ESA 1999).
    """
    support_points = points[:1]
    centre, radius = support_points[0], 0.0
    size = float(np.abs(points - points.mean(axis=0)).max())
    for _ in range(10 * len(points) + 10):
        distances = np.linalg.norm(points - centre, axis=1)
        farthest_index = int(np.argmax(distances))
        if distances[farthest_index] <= radius + 1e-10 * size:
            break
        centre, new_radius, support_points = _sphere_of_few_points(np.vstack([support_points, points[farthest_index]]))
        if new_radius <= radius:  # only rounding errors remain
            break
        radius = new_radius
    largest_distance = float(np.linalg.norm(points - centre, axis=1).max())
    return CoverCapsule(centre, centre, largest_distance + ROUNDING * size)


def _sphere_of_few_points(points: Array) -> tuple[Array, float, Array]:
    """Return centre, radius and the points that determine the smallest sphere of at most five points."""
    best_sphere: tuple[Array, float, Array] | None = None
    for count in range(2, min(4, len(points)) + 1):
        for support_indices in combinations(range(len(points)), count):
            support_points = points[list(support_indices)]
            edges = support_points[1:] - support_points[0]
            gram = edges @ edges.T
            inverse = cast("Array", np.linalg.pinv(gram, rcond=1e-12))
            centre: Array = support_points[0] + 0.5 * (inverse @ np.diag(gram)) @ edges
            radius = float(np.linalg.norm(support_points - centre, axis=1).max())
            contains_all = np.linalg.norm(points - centre, axis=1).max() <= radius * (1 + 1e-10)
            if contains_all and (best_sphere is None or radius < best_sphere[1]):
                best_sphere = centre, radius, support_points
    if best_sphere is None:  # nearly coincident points
        centre = points.mean(axis=0)
        return centre, float(np.linalg.norm(points - centre, axis=1).max()), points[:4]
    return best_sphere


def small_capsule(points: Array, is_quick: bool = False) -> CoverCapsule:
    """Return a capsule of small volume that contains all points (n, 3), n > 0.

    Random searches with a fixed seed start from the four best axes (two if `is_quick`) among the principal axes and
    `DIRECTIONS`. The step of a search grows after an improvement and shrinks otherwise. Unless `is_quick`, the volume
    is never larger than that of the smallest sphere.
    """
    sphere = None if is_quick else smallest_sphere(points)
    middle = points.mean(axis=0) if sphere is None else sphere.a
    scale = float(np.abs(points - middle).max())
    if scale == 0.0:
        return CoverCapsule(middle, middle, 0.0)
    scaled_points = (points - middle) / scale
    axes = np.linalg.svd(scaled_points - scaled_points.mean(axis=0), full_matrices=False)[2]
    start_axes = np.concatenate([axes, DIRECTIONS])
    candidates = _capsules_along_lines(scaled_points, start_axes, np.zeros_like(start_axes), np.zeros(len(start_axes)))
    rng = np.random.default_rng(0)
    results: list[CoverCapsule] = []
    for axis_index in np.argsort(candidates[3])[: 2 if is_quick else 4]:
        results.append(
            _search_capsule(
                scaled_points,
                start_axes[axis_index],
                candidates,
                int(axis_index),
                rng,
                QUICK_SEARCH_STEPS if is_quick else SEARCH_STEPS,
            )
        )
    scaled_capsule = min(results, key=lambda result: result.volume)
    capsule = CoverCapsule(
        middle + scale * scaled_capsule.a,
        middle + scale * scaled_capsule.b,
        scale * (scaled_capsule.radius + ROUNDING),
    )
    capsule = capsule._replace(
        radius=capsule.radius + max(0.0, float(capsule.signed_distance(points).max()) + ROUNDING * scale)
    )
    return capsule if sphere is None or capsule.volume < sphere.volume else sphere


CapsuleCandidates = tuple[Array, Array, Array, Array]
"""Coordinates of start and end along the axis, radius and volume of m capsules, (m,) each."""


def _capsules_along_lines(
    scaled_points: Array, axes: Array, line_points: Array, radius_excess: Array
) -> CapsuleCandidates:
    """Return the capsule along each of m lines: start and end on the line, radius and volume, (m,) each.

    Args:
        scaled_points: (n, 3), points that the capsules contain.
        axes: (m, 3), unit vectors along the lines.
        line_points: (m, 3), a point of each line.
        radius_excess: (m,), fraction by which the radius exceeds the largest distance of a point from the line; with a
            larger radius the capsule can be shorter.
    """
    line_offsets = scaled_points[None] - line_points[:, None]  # (m, n, 3)
    axial_coordinates = np.einsum("mni,mi->mn", line_offsets, axes)
    squared_distances = np.maximum(np.einsum("mni,mni->mn", line_offsets, line_offsets) - axial_coordinates**2, 0.0)
    radius = np.sqrt(squared_distances.max(axis=1)) * (1.0 + radius_excess)
    cap_lengths = np.sqrt(np.maximum(radius[:, None] ** 2 - squared_distances, 0.0))
    start, end = (axial_coordinates + cap_lengths).min(axis=1), (axial_coordinates - cap_lengths).max(axis=1)
    middle, length = 0.5 * (start + end), np.maximum(end - start, 0.0)  # length 0: a sphere
    volume = np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
    return middle - 0.5 * length, middle + 0.5 * length, radius, volume


def _search_capsule(
    scaled_points: Array,
    axis: Array,
    candidates: CapsuleCandidates,
    candidate_index: int,
    rng: np.random.Generator,
    steps: int,
) -> CoverCapsule:
    """Return the best capsule of a random search that starts from the candidate `candidate_index` along `axis`."""
    line_point, radius_excess, volume = np.zeros(3), 0.0, float(candidates[3][candidate_index])
    start, end, radius = (float(values[candidate_index]) for values in candidates[:3])
    step = 0.3  # ratio to the radius, since a thin capsule allows only small rotations
    for _ in range(steps):
        axes = axis + step * radius * rng.normal(size=(CANDIDATES_PER_STEP, 3))
        axes /= np.linalg.norm(axes, axis=1)[:, None]
        line_points = line_point + step * radius * rng.normal(size=(CANDIDATES_PER_STEP, 3))
        excesses = np.abs(radius_excess + 0.5 * step * rng.normal(size=CANDIDATES_PER_STEP))
        excesses[::3] = radius_excess
        starts, ends, radii, volumes = _capsules_along_lines(scaled_points, axes, line_points, excesses)
        best_index = int(np.argmin(volumes))
        if volumes[best_index] < volume:
            axis, line_point, radius_excess, volume = (
                axes[best_index],
                line_points[best_index],
                float(excesses[best_index]),
                float(volumes[best_index]),
            )
            start, end, radius = float(starts[best_index]), float(ends[best_index]), float(radii[best_index])
            step *= 1.2
        else:
            step *= 0.8
    return CoverCapsule(line_point + start * axis, line_point + end * axis, radius)


def cut_triangles(triangles: Array, normal: Array, offset: float) -> tuple[Array, Array]:
    """Split triangles (T, 3, 3) at the plane normal . x = offset into triangles below and above, (., 3, 3) each.

    A triangle across the plane is cut into three triangles of the same total area. A triangle that only touches the
    plane is on the side of its other corners. A triangle in the plane is below.
    """
    all_heights = triangles @ normal - offset  # (T, 3)
    is_above, is_below = all_heights > 0, all_heights < 0
    is_crossing = is_above.any(axis=1) & is_below.any(axis=1)
    is_fully_above = is_above.any(axis=1) & ~is_crossing
    below_triangles, above_triangles = [triangles[~is_crossing & ~is_fully_above]], [triangles[is_fully_above]]
    if is_crossing.any():
        crossing_triangles, heights = triangles[is_crossing], all_heights[is_crossing]
        # reordered so that the first corner is alone on its side; a corner in the plane belongs to the other side
        has_one_above = np.count_nonzero(heights > 0, axis=1) == 1
        single_corner = heights.argmax(axis=1) * has_one_above + heights.argmin(axis=1) * ~has_one_above
        order = (single_corner[:, None] + np.arange(3)) % 3
        crossing_triangles = np.take_along_axis(crossing_triangles, order[..., None], axis=1)
        heights = np.take_along_axis(heights, order, axis=1)
        a, b, c = crossing_triangles[:, 0], crossing_triangles[:, 1], crossing_triangles[:, 2]
        ha, hb, hc = heights.T[:, :, None]
        ab, ac = a + (b - a) * (ha / (ha - hb)), a + (c - a) * (ha / (ha - hc))
        tip_triangles = np.stack([a, ab, ac], axis=1)
        base_triangles = np.concatenate([np.stack([ab, b, c], axis=1), np.stack([ab, c, ac], axis=1)])
        is_tip_above = ha[:, 0] > 0
        above_triangles += [tip_triangles[is_tip_above], base_triangles[np.tile(~is_tip_above, 2)]]
        below_triangles += [tip_triangles[~is_tip_above], base_triangles[np.tile(is_tip_above, 2)]]
    return np.concatenate(below_triangles), np.concatenate(above_triangles)


def triangle_areas(triangles: Array) -> Array:
    """Return the areas (T,) of triangles (T, 3, 3), m^2."""
    return 0.5 * np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)


def sample_surface(triangles: Array, count: int, seed: int = 0) -> Array:
    """Return random points (count, 3) on triangles (T, 3, 3), uniform by area; deterministic for a seed."""
    rng = np.random.default_rng(seed)
    areas = triangle_areas(triangles)
    sampled_triangles = triangles[rng.choice(len(triangles), count, p=areas / areas.sum())]
    u, v = np.sort(rng.random((2, count)), axis=0)
    return (
        sampled_triangles[:, 0] * u[:, None]
        + sampled_triangles[:, 1] * (v - u)[:, None]
        + sampled_triangles[:, 2] * (1 - v)[:, None]
    )


FittedKind = Literal["capsules", "spheres"]
FITTED_KINDS: tuple[FittedKind, ...] = ("capsules", "spheres")
MAX_SHAPES: dict[FittedKind, int] = {"capsules": 3, "spheres": 12}
"""Default for the largest number of shapes for each mesh."""
MIN_VOLUME_SAVING = 0.03
"""Approximate fraction of the volume that each additional capsule must save, on average."""
MIN_POINTS_FOR_HULL = 100
"""Number of points above which it is faster to compute the convex hull first."""
CUT_FRACTIONS = (0.35, 0.5, 0.65)
"""Positions where a part may be cut for capsules, as fractions of its extent."""
VOLUME_SAMPLES = 4096
"""Number of points in the enlarged box around a mesh for the estimate of the volume of a union, to about 2 %."""


def fit_shapes(
    mechanism: Mechanism, kind: FittedKind = "capsules", *, links: Iterable[str] | None = None, count: int | None = None
) -> Mechanism:
    """Return a copy of the mechanism with capsules or spheres in place of its collision meshes.

    Every point of a mesh is inside its shapes (to rounding). So is the interior of a closed mesh that gets at most
    3 shapes; many small spheres may cover only the surface. `fit_quality` measures how much larger the shapes are.
    Links without collision shapes get shapes for their visual meshes. Collision shapes other than meshes are copied.

    Args:
        mechanism: the mechanism; it is not changed.
        kind: "capsules", few and long, or "spheres", more and simpler.
        links: names of links; None: all.
        count: largest number of shapes for each mesh; default 3 capsules or 12 spheres. A mesh gets fewer capsules if
            another capsule would save little volume.

    Returns:
        The copy.

    Raises:
        InvalidArgument: `mechanism` is not a mechanism.
        FormatError: a mesh is missing, cannot be read, or has no volume.
        MissingExtra: a mesh file has a type that needs the extra `collision`, which is not installed.
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
        ...     fitted_mechanism = mk.fit_shapes(arm, count=1)
        >>> type(fitted_mechanism.link("link2").collisions[0].shape).__name__
        'Capsule'
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"fit_shapes needs a Mechanism, not {mechanism!r}")
    _check_arguments(kind, count)
    fitted_mechanism = mechanism.copy()
    names = list(fitted_mechanism.links) if links is None else [links] if isinstance(links, str) else list(links)
    for name in names:
        if name not in fitted_mechanism.links:
            raise UnknownName("link", name, known=fitted_mechanism.links)
        link = fitted_mechanism.links[name]
        shapes = link.collisions or tuple(instance for instance in link.visuals if isinstance(instance.shape, Mesh))
        link.collisions = tuple(
            fitted_instance for instance in shapes for fitted_instance in _fit_instance(instance, name, kind, count)
        )
    return fitted_mechanism


def fit_mesh(
    mesh: Mesh, owner: str, kind: FittedKind = "capsules", count: int | None = None
) -> tuple[ShapeInstance, ...]:
    """Return the shapes that cover a mesh, in the frame of the mesh.

    Args:
        owner: link or obstacle, for messages: "link 'arm'".
        kind, count: as in `fit_shapes`.

    Raises:
        FormatError: the mesh is missing, cannot be read, or has no volume.
        MissingExtra: the file has a type that needs the extra `collision`, which is not installed.
    """
    _check_arguments(kind, count)
    return _fit_collision_mesh(read_collision_mesh(mesh, owner), kind, MAX_SHAPES[kind] if count is None else count)


def cover_triangles(triangles: Array, kind: FittedKind, count: int) -> list[CoverCapsule]:
    """Return at most `count` capsules or spheres that cover triangles (T, 3, 3).

    The triangles are cut by planes, and each part is covered as a whole, with the space between its triangles.
    """
    return _cover_by_spheres(triangles, count) if kind == "spheres" else _cover_by_capsules(triangles, count)


def _check_arguments(kind: FittedKind, count: int | None) -> None:
    if kind not in FITTED_KINDS:
        raise ObjectiveError(f"kind must be {' or '.join(map(repr, FITTED_KINDS))}, not {kind!r}")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ObjectiveError(f"count must be an integer of 1 or more, not {count!r}")


def _fit_instance(instance: ShapeInstance, link: str, kind: FittedKind, count: int | None) -> Sequence[ShapeInstance]:
    if not isinstance(instance.shape, Mesh):
        return [instance]
    shapes = fit_mesh(instance.shape, f"link {link!r}", kind, count)
    return [replace(instance, shape=shape.shape, pose=instance.pose @ shape.pose) for shape in shapes]


@lru_cache(MESH_CACHE_SIZE)
def _fit_collision_mesh(mesh: CollisionMesh, kind: FittedKind, count: int) -> tuple[ShapeInstance, ...]:
    return tuple(as_shape_instance(capsule) for capsule in cover_triangles(mesh.points[mesh.triangles], kind, count))


def as_shape_instance(capsule: CoverCapsule) -> ShapeInstance:
    """Return the shape instance of a capsule; a capsule without length becomes a sphere."""
    axis_vector = capsule.b - capsule.a
    length = float(np.linalg.norm(axis_vector))
    if length == 0.0:
        return ShapeInstance(Sphere(capsule.radius), Pose(capsule.a))
    R_mesh_capsule = rotation.between((0.0, 0.0, 1.0), axis_vector / length)
    return ShapeInstance(
        Capsule(capsule.radius, length), Pose.from_matrix(make_pose(R_mesh_capsule, 0.5 * (capsule.a + capsule.b)))
    )


def _cover_by_capsules(triangles: Array, count: int) -> list[CoverCapsule]:
    """Return at most `count` capsules that cover triangles; fewer if another capsule would save too little volume.

    The parts are cut repeatedly, each time with the cut that saves the most volume.
    """
    samples = _volume_samples(triangles)
    parts, capsules = [triangles], [small_capsule(_points(triangles))]
    best_capsules, best_cost = capsules, _covered_fraction(capsules, samples) * (1.0 + MIN_VOLUME_SAVING)
    while len(capsules) < count:
        best_cut: tuple[int, list[Array], list[CoverCapsule]] | None = None
        for k, part in enumerate(parts):
            other_capsules = capsules[:k] + capsules[k + 1 :]
            samples_outside_others = samples[~_inside_mask(other_capsules, samples)]
            for pieces in _candidate_cuts(part):
                piece_capsules = [small_capsule(_points(piece), is_quick=True) for piece in pieces]
                # the number of samples that no capsule contains measures the saved volume
                outside_count = int(np.count_nonzero(~_inside_mask(piece_capsules, samples_outside_others)))
                if best_cut is None or outside_count > best_cut[0]:
                    best_cut = outside_count, [*parts[:k], *parts[k + 1 :], *pieces], other_capsules
        if best_cut is None:
            break
        parts = best_cut[1]
        capsules = [*best_cut[2], *(small_capsule(_points(piece)) for piece in parts[-2:])]
        cost = _covered_fraction(capsules, samples) * (1.0 + MIN_VOLUME_SAVING * len(capsules))
        if cost < best_cost:
            best_capsules, best_cost = capsules, cost
    return best_capsules


def _cover_by_spheres(triangles: Array, count: int) -> list[CoverCapsule]:
    """Return spheres that cover triangles.

    The part with the largest sphere is cut in two across its longest extent, repeatedly.
    """
    parts, spheres = [triangles], [smallest_sphere(_points(triangles))]
    while len(spheres) < count:
        k = int(np.argmax([sphere.radius for sphere in spheres]))
        axis, low, high = next(iter(_extents(parts[k])))
        halves = [half for half in cut_triangles(parts[k], axis, 0.5 * (low + high)) if len(half)]
        if len(halves) < 2:
            break
        parts[k : k + 1] = halves
        spheres[k : k + 1] = [smallest_sphere(_points(half)) for half in halves]
    return spheres


def _candidate_cuts(part: Array) -> Iterable[tuple[Array, Array]]:
    """Yield the two pieces of a part for each cut to try."""
    # besides the principal axes, the axes of the frame, since many meshes are aligned with their frame
    for axis, low, high in [*_extents(part), *_extents(part, np.eye(3))]:
        for fraction in CUT_FRACTIONS:
            lower_piece, upper_piece = cut_triangles(part, axis, low + fraction * (high - low))
            if len(lower_piece) and len(upper_piece):
                yield lower_piece, upper_piece


def _extents(part: Array, axes: Array | None = None) -> list[tuple[Array, float, float]]:
    """Return the given axes with the smallest and largest coordinate along each, longest extent first.

    Args:
        axes: (k, 3), unit vectors; default: the principal axes.
    """
    points = _points(part)
    if axes is None:
        axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    coordinates = points @ axes.T
    extents = [
        (axis, float(low), float(high))
        for axis, low, high in zip(axes, coordinates.min(0), coordinates.max(0), strict=True)
    ]
    return sorted(extents, key=lambda extent: extent[1] - extent[2])


def _points(triangles: Array) -> Array:
    points = triangles.reshape(-1, 3)
    return outer_points(points) if len(points) > MIN_POINTS_FOR_HULL else points


def _volume_samples(triangles: Array) -> Array:
    """Return points (VOLUME_SAMPLES, 3), spread evenly over an enlarged box around the triangles; deterministic."""
    points = triangles.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half_size = 0.5 * (low + high), 0.7 * (high - low) + 0.1 * (high - low).max()
    steps = np.array([0.8191725133961645, 0.6710436067037893, 0.5497004779019703])  # R3 sequence of M. Roberts (2018)
    return middle + (2.0 * ((0.5 + np.arange(VOLUME_SAMPLES)[:, None] * steps) % 1.0) - 1.0) * half_size


def _covered_fraction(capsules: Sequence[CoverCapsule], samples: Array) -> float:
    """Return the fraction of the points that are inside a shape."""
    return np.count_nonzero(_inside_mask(capsules, samples)) / len(samples)


def _inside_mask(capsules: Sequence[CoverCapsule], samples: Array) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(samples), dtype=np.bool_)
    for capsule in capsules:
        mask |= capsule.signed_distance(samples) <= 0.0
    return mask
