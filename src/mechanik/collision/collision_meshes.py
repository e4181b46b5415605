"""Collision meshes of links: reading of triangles, and conversion to convex hulls or fitted capsules."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mechanik.errors import FormatError, InvalidOperation, MeshError, MissingExtra
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

MeshShapeMode = Literal["exact", "fitted", "auto"]
"""Shapes that replace meshes: "exact": convex hulls; "fitted": capsules; "auto": hulls if possible, else capsules."""
MESH_SHAPE_MODES: tuple[MeshShapeMode, ...] = ("exact", "fitted", "auto")
MAX_MESH_FILE_BYTES = 256 * 2**20
"""Bytes; larger mesh files are refused."""
MESH_CACHE_SIZE = 256
"""Number of meshes that stay in memory, with the shapes made of them."""

_Scale = tuple[float, float, float]
_bodies: dict[tuple[str, _Scale, bytes], CollisionMesh | str] = {}
"""Cache by extension, scale and content. A file's time is no key: a file may be written twice within one clock tick."""
log = logging.getLogger("mechanik")


@dataclass(frozen=True, slots=True, eq=False)
class CollisionMesh:
    """Triangles of one mesh.

    Attributes:
        points: (V, 3), m, in the frame of the shape, scaled; read-only.
        corners: (T, 3), indices of points.
    """

    points: Array
    corners: npt.NDArray[np.uint32]

    @property
    def is_closed(self) -> bool:
        """Whether every edge is shared by two triangles that run along it in opposite directions."""
        ends = self.corners[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).astype(np.int64)
        many = len(self.points)
        forth, back = ends[:, 0] * many + ends[:, 1], ends[:, 1] * many + ends[:, 0]
        return len(np.unique(forth)) == len(forth) and np.array_equal(np.sort(forth), np.sort(back))


def convex_shapes(placed: ShapeInstance, owner: str, meshes: MeshShapeMode = "auto") -> list[ShapeInstance]:
    """Return the convex shapes that replace a shape in distance queries; all shapes but meshes stay.

    Args:
        owner: link or obstacle, for messages: "link 'arm'".
        meshes: "exact": convex hulls, which need the extra `collision`; "fitted": a few capsules that cover the mesh;
            "auto": hulls if the extra is installed, else capsules, with a warning.

    Raises:
        MeshError: the file is missing, cannot be read, or has no volume.
        MissingExtra: `meshes` is "exact", and the extra `collision` is not installed.
    """
    mesh = placed.shape
    if not isinstance(mesh, Mesh):
        return [placed]
    read_collision_mesh(mesh, owner)  # report a bad file before a missing extra
    if meshes != "fitted":
        try:
            return [replace(placed, shape=mesh_hull(mesh, owner))]
        except MissingExtra:
            if meshes == "exact":
                raise
            _say_fitted()
    from mechanik.collision.shape_fitting import fit_mesh

    return [replace(placed, shape=one.shape, pose=placed.pose @ one.pose) for one in fit_mesh(mesh, owner)]


def mesh_hull(mesh: Mesh, owner: str) -> ConvexMesh:
    """Return the convex hull of a mesh, without inner points.

    Raises:
        MeshError: the file is missing, cannot be read, or has no volume.
        MissingExtra: the extra `collision` is not installed.
    """
    body = read_collision_mesh(mesh, owner)
    return ConvexMesh(_hull(body))


def read_collision_mesh(mesh: Mesh, owner: str) -> CollisionMesh:
    """Read the triangles of a mesh; files with the same content are parsed once and give the same object.

    Args:
        owner: link or obstacle, for messages: "link 'arm'", "obstacle 'cup'".

    Raises:
        MeshError: the file is missing, cannot be read, or has no volume.
    """
    where = f"{owner}: the mesh {mesh.uri!r}"
    if mesh.path is None:
        raise MeshError(
            f"{where} has no file that was found; load the model with packages={{name: folder}}, say where the mesh "
            "is by Mesh(uri, path=...), or put other shapes in its place"
        )
    path = Path(mesh.path)
    try:
        size = path.stat().st_size
        if size > MAX_MESH_FILE_BYTES:
            raise MeshError(f"{where} has {size / 2**20:.0f} MB; at most {MAX_MESH_FILE_BYTES / 2**20:.0f} are read")
        data = path.read_bytes()
    except OSError as error:
        raise MeshError(f"{where} cannot be opened at {path}: {error.strerror or error}") from None
    key = file_extension(str(path)), mesh.scale, _digest(str(path), data)
    try:
        body = _bodies.get(key)
        if body is None:
            body = _parse(str(path), data, mesh.scale)
            _keep(key, body)
    except (FormatError, InvalidOperation) as error:
        raise MeshError(f"{where}: {error}") from None
    except MissingExtra:
        raise MissingExtra(f"{where} ends with {path.suffix!r}, and reading that", "collision") from None
    if isinstance(body, str):
        raise MeshError(f"{where} {body}")
    if not body.is_closed:
        _say_open(owner, mesh.uri)
    return body


def _digest(path: str, data: bytes) -> bytes:
    """Return the digest of a mesh file and of the binary files that it refers to, as a .gltf does."""
    digest = hashlib.sha256(data)
    for name, kind in referenced_files(path, data):
        if kind == "bin":
            with contextlib.suppress(OSError, ValueError):
                digest.update(hashlib.sha256(Path(resolve_relative_uri(path, name)).read_bytes()).digest())
    return digest.digest()


def _keep(key: tuple[str, _Scale, bytes], body: CollisionMesh | str) -> None:
    """Put a mesh into the cache; the oldest entry is removed if it is full."""
    while len(_bodies) >= MESH_CACHE_SIZE:
        with contextlib.suppress(StopIteration, RuntimeError):  # another thread may have removed it
            _bodies.pop(next(iter(_bodies)), None)
    _bodies[key] = body


def _parse(path: str, data: bytes, scale: _Scale) -> CollisionMesh | str:
    """Return the triangles, or a message that says what is wrong with them."""
    if not np.isfinite(scale).all() or not np.all(scale):
        return f"has the scale {scale}, which leaves nothing of it"
    if file_extension(path) in READABLE_EXTENSIONS:
        surfaces = read_surfaces(path, data, reject_invalid=True)
        firsts = np.cumsum([0, *(len(one.vertices) for one in surfaces)])
        points = np.concatenate([np.zeros((0, 3)), *(one.vertices for one in surfaces)])
        numbered = [one.triangles + np.uint32(first) for one, first in zip(surfaces, firsts, strict=False)]
        corners = np.concatenate([np.zeros((0, 3), dtype=np.uint32), *numbered])
        if len(surfaces) > 1:  # surfaces of different colours share points
            points, same = np.unique(points, axis=0, return_inverse=True)
            corners = same.reshape(-1).astype(np.uint32)[corners]
    else:
        points, corners = _by_trimesh(path)
    if len(corners) == 0:
        return "has no triangles"
    points = points * np.array(scale, dtype=np.float64)
    if is_flat(points):
        return "is flat and holds no volume; put a thin box in its place"
    points.setflags(write=False)
    corners.setflags(write=False)
    return CollisionMesh(points, corners)


def _by_trimesh(path: str) -> tuple[Array, npt.NDArray[np.uint32]]:
    try:
        import trimesh
    except ImportError:
        raise MissingExtra("reading such a mesh", "collision") from None
    loader: Any = trimesh
    try:
        loaded = loader.load(path, force="mesh", process=False)  # process=True drops non-finite points
        points = np.array(loaded.vertices, dtype=np.float64).reshape(-1, 3)
        corners = np.array(loaded.faces, dtype=np.int64).reshape(-1, 3)
    except ImportError as error:
        raise FormatError(f"it needs a package that is not there ({error}); write it as STL") from None
    except Exception as error:  # trimesh's readers raise many types on broken files
        raise FormatError(f"it cannot be read ({type(error).__name__}: {error}); write it as STL") from None
    check_vertices(Path(path).name, points[corners])
    points, same = np.unique(points + 0.0, axis=0, return_inverse=True)
    return points, same.reshape(-1).astype(np.uint32)[corners]


@lru_cache(MESH_CACHE_SIZE)
def _hull(body: CollisionMesh) -> Array:
    return hull_points(body.points)


def hull_points(points: Array) -> Array:
    """Return those points of (n, 3) that are corners of their convex hull.

    Raises:
        MissingExtra: the extra `collision` is not installed.
    """
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        raise MissingExtra("finding the convex hull of a mesh", "collision") from None
    hull: Any = ConvexHull
    try:
        corners: npt.NDArray[np.int32] = hull(points).vertices
    except QhullError:  # too thin: the corners depend on rounding
        return points
    return points[corners]


def outer_points(points: Array) -> Array:
    """Return `hull_points`, or all points without the extra `collision`; fewer points are faster to cover."""
    with contextlib.suppress(MissingExtra):
        return hull_points(points)
    return points


@lru_cache(1)
def _say_fitted() -> None:
    log.warning(
        "the meshes of links stand as fitted capsules: finding their hulls needs pip install 'mechanik[collision]'"
    )


@lru_cache(MESH_CACHE_SIZE)
def _say_open(owner: str, uri: str) -> None:
    log.info("%s: the mesh %r is not closed; its convex hull is taken all the same", owner, uri)
