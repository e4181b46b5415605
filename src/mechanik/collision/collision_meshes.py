"""Collision meshes of links and obstacles: reading of triangles, and conversion to convex hulls or fitted capsules."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision.collision_body import MeshMode
from mechanik.errors import FormatError, InvalidOperation, MissingExtra
from mechanik.model.mesh_files import (
    READABLE_EXTENSIONS,
    check_vertices,
    file_extension,
    read_surfaces,
    referenced_files,
    resolve_relative_uri,
)
from mechanik.model.shapes import ConvexMesh, Mesh, ShapeInstance, is_flat
from mechanik.spatial.array import Array

MAX_MESH_FILE_BYTES = 256 * 2**20
"""Bytes; larger mesh files raise an error."""
MESH_CACHE_SIZE = 256
"""Number of meshes in the cache; also the number of entries of the caches of shapes made from meshes."""

_Scale = tuple[float, float, float]
_mesh_cache: dict[tuple[str, _Scale, bytes], CollisionMesh | str] = {}
"""Cache by extension, scale and hash of the content; a value is a mesh or an error message. The modification
time of a file is not part of the key, since a file may be written twice within one clock tick."""
log = logging.getLogger("mechanik")


@dataclass(frozen=True, slots=True, eq=False)
class CollisionMesh:
    """Triangles of one mesh.

    Attributes:
        points: (V, 3), m, in the frame of the shape, scaled; read-only.
        triangles: (T, 3), indices of the corners of each triangle into `points`.
    """

    points: Array
    triangles: npt.NDArray[np.uint32]

    @property
    def is_closed(self) -> bool:
        """Whether every edge belongs to exactly two triangles, which contain it in opposite directions."""
        edges = self.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).astype(np.int64)
        point_count = len(self.points)
        directed_edges, reversed_edges = (
            edges[:, 0] * point_count + edges[:, 1],
            edges[:, 1] * point_count + edges[:, 0],
        )
        return len(np.unique(directed_edges)) == len(directed_edges) and np.array_equal(
            np.sort(directed_edges), np.sort(reversed_edges)
        )


def convex_shapes(instance: ShapeInstance, owner: str, meshes: MeshMode = "auto") -> list[ShapeInstance]:
    """Return the convex shapes that replace a shape in distance queries; only meshes are replaced.

    Args:
        instance: the shape with its pose.
        owner: link or obstacle, for messages: "link 'arm'".
        meshes: "exact": convex hulls, which need the extra `collision`; "fitted": a few capsules that cover the mesh;
            "auto": hulls if the extra is installed, else capsules, with a warning. In each mode some types of files
            need the extra.

    Raises:
        FormatError: the file is missing, cannot be read, or has no volume.
        MissingExtra: the extra `collision` is not installed, and `meshes` is "exact" or the file has a type that only
            this extra can read.
    """
    mesh = instance.shape
    if not isinstance(mesh, Mesh):
        return [instance]
    read_collision_mesh(mesh, owner)  # an invalid file is reported before a missing extra
    if meshes != "fitted":
        try:
            return [replace(instance, shape=mesh_hull(mesh, owner))]
        except MissingExtra:
            if meshes == "exact":
                raise
            _warn_fitted()
    from mechanik.collision.shape_fitting import fit_mesh

    return [
        replace(instance, shape=capsule.shape, pose=instance.pose @ capsule.pose) for capsule in fit_mesh(mesh, owner)
    ]


def mesh_hull(mesh: Mesh, owner: str) -> ConvexMesh:
    """Return the convex hull of a mesh; its points are those of `hull_points`.

    Raises:
        FormatError: the file is missing, cannot be read, or has no volume.
        MissingExtra: the extra `collision` is not installed.
    """
    collision_mesh = read_collision_mesh(mesh, owner)
    return ConvexMesh(_mesh_hull_points(collision_mesh))


def read_collision_mesh(mesh: Mesh, owner: str) -> CollisionMesh:
    """Return the triangles of a mesh, from a cache if an equal file was read before with the same scale.

    Args:
        owner: link or obstacle, for messages: "link 'arm'", "obstacle 'cup'".

    Raises:
        FormatError: the file is missing, cannot be read, or has no volume.
        MissingExtra: the file has a type that needs the extra `collision`, which is not installed.
    """
    label = f"{owner}: the mesh {mesh.uri!r}"
    if mesh.path is None:
        raise FormatError(
            f"{label} has no file; load the model with packages={{name: folder}}, give the path as "
            "Mesh(uri, path=...), or replace the mesh by other shapes"
        )
    path = Path(mesh.path)
    try:
        size = path.stat().st_size
        if size > MAX_MESH_FILE_BYTES:
            raise FormatError(f"{label} has {size / 2**20:.0f} MB; the limit is {MAX_MESH_FILE_BYTES / 2**20:.0f} MB")
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{label} cannot be opened at {path}: {error.strerror or error}") from None
    key = file_extension(str(path)), mesh.scale, _digest(str(path), data)
    try:
        entry = _mesh_cache.get(key)
        if entry is None:
            entry = _parse(str(path), data, mesh.scale)
            _add_to_cache(key, entry)
    except (FormatError, InvalidOperation) as error:
        raise FormatError(f"{label}: {error}") from None
    except MissingExtra:
        raise MissingExtra(f"{label}: reading files of type {path.suffix!r}", "collision") from None
    if isinstance(entry, str):
        raise FormatError(f"{label} {entry}")
    if not entry.is_closed:
        _log_open_mesh(owner, mesh.uri)
    return entry


def _digest(path: str, data: bytes) -> bytes:
    """Return a digest of a mesh file and of the binary files to which it refers, such as those of a .gltf file."""
    digest = hashlib.sha256(data)
    for name, kind in referenced_files(path, data):
        if kind == "bin":
            with contextlib.suppress(OSError, ValueError):
                digest.update(hashlib.sha256(Path(resolve_relative_uri(path, name)).read_bytes()).digest())
    return digest.digest()


def _add_to_cache(key: tuple[str, _Scale, bytes], entry: CollisionMesh | str) -> None:
    """Add a mesh to the cache; if the cache is full, its oldest entry is removed."""
    while len(_mesh_cache) >= MESH_CACHE_SIZE:
        with contextlib.suppress(StopIteration, RuntimeError):  # another thread may have changed the cache
            _mesh_cache.pop(next(iter(_mesh_cache)), None)
    _mesh_cache[key] = entry


def _parse(path: str, data: bytes, scale: _Scale) -> CollisionMesh | str:
    """Return the triangles, or the end of an error message if they cannot be used."""
    if not np.isfinite(scale).all() or not np.all(scale):
        return f"has the scale {scale}; every factor must be finite and not zero"
    if file_extension(path) in READABLE_EXTENSIONS:
        surfaces = read_surfaces(path, data, reject_invalid=True)
        first_indices = np.cumsum([0, *(len(surface.vertices) for surface in surfaces)])
        points = np.concatenate([np.zeros((0, 3)), *(surface.vertices for surface in surfaces)])
        offset_triangles = [
            surface.triangles + np.uint32(first_index)
            for surface, first_index in zip(surfaces, first_indices, strict=False)
        ]
        triangles = np.concatenate([np.zeros((0, 3), dtype=np.uint32), *offset_triangles])
        if len(surfaces) > 1:  # surfaces of different colours have points in common
            points, merged_indices = np.unique(points, axis=0, return_inverse=True)
            triangles = merged_indices.reshape(-1).astype(np.uint32)[triangles]
    else:
        points, triangles = _read_with_trimesh(path)
    if len(triangles) == 0:
        return "has no triangles"
    points = points * np.array(scale, dtype=np.float64)
    if is_flat(points):
        return "is flat and has no volume; replace it by a thin box"
    points.setflags(write=False)
    triangles.setflags(write=False)
    return CollisionMesh(points, triangles)


def _read_with_trimesh(path: str) -> tuple[Array, npt.NDArray[np.uint32]]:
    try:
        import trimesh
    except ImportError:
        raise MissingExtra("reading this mesh", "collision") from None
    loader: Any = trimesh
    try:
        mesh = loader.load(path, force="mesh", process=False)  # process=True would drop non-finite points
        points = np.array(mesh.vertices, dtype=np.float64).reshape(-1, 3)
        triangles = np.array(mesh.faces, dtype=np.int64).reshape(-1, 3)
    except ImportError as error:
        raise FormatError(f"it needs a package that is not installed ({error}); convert it to STL") from None
    except Exception as error:  # the readers of trimesh raise many types of errors for invalid files
        raise FormatError(f"it cannot be read ({type(error).__name__}: {error}); convert it to STL") from None
    check_vertices(Path(path).name, points[triangles])
    points, merged_indices = np.unique(points + 0.0, axis=0, return_inverse=True)
    return points, merged_indices.reshape(-1).astype(np.uint32)[triangles]


@lru_cache(MESH_CACHE_SIZE)
def _mesh_hull_points(mesh: CollisionMesh) -> Array:
    return hull_points(mesh.points)


def hull_points(points: Array) -> Array:
    """Return those points of (n, 3) that are corners of their convex hull; all points if the hull is very thin.

    Raises:
        MissingExtra: the extra `collision` is not installed.
    """
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        raise MissingExtra("computing the convex hull of a mesh", "collision") from None
    hull_class: Any = ConvexHull
    try:
        corner_indices: npt.NDArray[np.int32] = hull_class(points).vertices
    except QhullError:  # the hull is so thin that its corners depend on rounding
        return points
    return points[corner_indices]


def outer_points(points: Array) -> Array:
    """Return the corners of the convex hull of points (n, 3), or all points without the extra `collision`.

    A convex shape that covers the corners of the hull covers all points, and fitting is faster with fewer points.
    """
    with contextlib.suppress(MissingExtra):
        return hull_points(points)
    return points


@lru_cache(1)
def _warn_fitted() -> None:
    log.warning(
        "collision meshes are replaced by fitted capsules; to use their convex hulls: pip install 'mechanik[collision]'"
    )


@lru_cache(MESH_CACHE_SIZE)
def _log_open_mesh(owner: str, uri: str) -> None:
    log.info("%s: the mesh %r is not closed; collision checks use shapes that enclose it", owner, uri)
