"""The meshes of links as triangles, and as shapes that the kernels know: hulls of their points, or fitted capsules."""

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

from mechanik.errors import FormatError, MeshError, MissingExtra, Refused
from mechanik.mechanism.shapes import ConvexMesh, Mesh, PlacedShape, is_flat
from mechanik.meshes.beside_mesh import ending_of, names_in, neighbour
from mechanik.meshes.nowhere import refuse_nowhere
from mechanik.meshes.surface import READ, read_surfaces
from mechanik.spatial.array import Array

How = Literal["exact", "fitted", "auto"]
HOW: tuple[How, ...] = ("exact", "fitted", "auto")
LARGEST_FILE = 256 * 2**20
"""Bytes."""
KEPT = 256
"""Meshes that stay in memory, with what was made of them."""

_Scale = tuple[float, float, float]
_bodies: dict[tuple[str, _Scale, bytes], Body | str] = {}
"""By ending, scale and content. The time of a file says too little: a file may be written twice within one tick."""
log = logging.getLogger("mechanik")


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Triangles of one mesh, m.

    Attributes:
        points: (V, 3), in the frame of the shape, scaled; read-only.
        corners: (T, 3), numbers of points.
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


def kernel_shapes(placed: PlacedShape, owner: str, how: How = "auto") -> list[PlacedShape]:
    """What stands for a shape where gaps are measured; all but meshes stand for themselves.

    Args:
        owner: whose it is, for messages: "link 'arm'".
        how: with meshes. "exact": as their convex hulls, which needs the extra `collision`; "fitted": as a few capsules
            that cover them; "auto": as hulls where they can be found, else as capsules, which a message says.
    Raises:
        MeshError: the file is not there, cannot be read, or holds no volume.
        MissingExtra: "exact" is asked for, and what finds hulls is not installed.
    """
    mesh = placed.shape
    if not isinstance(mesh, Mesh):
        return [placed]
    read_body(mesh, owner)  # what is wrong with the file is no matter of hulls
    if how != "fitted":
        try:
            return [replace(placed, shape=hull_of(mesh, owner))]
        except MissingExtra:
            if how == "exact":
                raise
            _say_fitted()
    from mechanik.collision.fitting import fit_mesh

    return [replace(placed, shape=one.shape, pose=placed.pose @ one.pose) for one in fit_mesh(mesh, owner)]


def hull_of(mesh: Mesh, owner: str) -> ConvexMesh:
    """The corners of the convex hull, and no points inside it."""
    body = read_body(mesh, owner)
    return ConvexMesh(_hull(body))


def read_body(mesh: Mesh, owner: str) -> Body:
    """The triangles of a mesh; files with the same content are parsed once, and give the same body.

    Args:
        owner: whose it is, for messages: "link 'arm'", "obstacle 'cup'".
    Raises:
        MeshError: the file is not there, cannot be read, or holds no volume.
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
        if size > LARGEST_FILE:
            raise MeshError(f"{where} has {size / 2**20:.0f} MB; at most {LARGEST_FILE / 2**20:.0f} are read")
        data = path.read_bytes()
    except OSError as error:
        raise MeshError(f"{where} cannot be opened at {path}: {error.strerror or error}") from None
    key = ending_of(str(path)), mesh.scale, _digest(str(path), data)
    try:
        body = _bodies.get(key)
        if body is None:
            body = _parse(str(path), data, mesh.scale)
            _keep(key, body)
    except (FormatError, Refused) as error:
        raise MeshError(f"{where}: {error}") from None
    except MissingExtra:
        raise MissingExtra(f"{where} ends with {path.suffix!r}, and reading that", "collision") from None
    if isinstance(body, str):
        raise MeshError(f"{where} {body}")
    if not body.is_closed:
        _say_open(owner, mesh.uri)
    return body


def _digest(path: str, data: bytes) -> bytes:
    """Of the content of a mesh file, and of the files beside it that hold its numbers, as a .gltf has them."""
    digest = hashlib.sha256(data)
    for name, kind in names_in(path, data):
        if kind == "bin":
            with contextlib.suppress(OSError, ValueError):
                digest.update(hashlib.sha256(Path(neighbour(path, name)).read_bytes()).digest())
    return digest.digest()


def _keep(key: tuple[str, _Scale, bytes], body: Body | str) -> None:
    """Remember a body; the oldest makes room."""
    while len(_bodies) >= KEPT:
        with contextlib.suppress(StopIteration, RuntimeError):  # another thread may have done so
            _bodies.pop(next(iter(_bodies)), None)
    _bodies[key] = body


def _parse(path: str, data: bytes, scale: _Scale) -> Body | str:
    """The triangles, or what is wrong with them."""
    if not np.isfinite(scale).all() or not np.all(scale):
        return f"has the scale {scale}, which leaves nothing of it"
    if ending_of(path) in READ:
        surfaces = read_surfaces(path, data, whole=True)
        firsts = np.cumsum([0, *(len(one.points) for one in surfaces)])
        points = np.concatenate([np.zeros((0, 3)), *(one.points for one in surfaces)])
        numbered = [one.corners + np.uint32(first) for one, first in zip(surfaces, firsts, strict=False)]
        corners = np.concatenate([np.zeros((0, 3), dtype=np.uint32), *numbered])
        if len(surfaces) > 1:  # those of two colours share points
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
    return Body(points, corners)


def _by_trimesh(path: str) -> tuple[Array, npt.NDArray[np.uint32]]:
    try:
        import trimesh
    except ImportError:
        raise MissingExtra("reading such a mesh", "collision") from None
    loader: Any = trimesh
    try:
        loaded = loader.load(path, force="mesh", process=False)  # which would drop what is not finite, and say nothing
        points = np.array(loaded.vertices, dtype=np.float64).reshape(-1, 3)
        corners = np.array(loaded.faces, dtype=np.int64).reshape(-1, 3)
    except ImportError as error:
        raise FormatError(f"it needs a package that is not there ({error}); write it as STL") from None
    except Exception as error:  # whatever its many readers raise on broken files
        raise FormatError(f"it cannot be read ({type(error).__name__}: {error}); write it as STL") from None
    refuse_nowhere(Path(path).name, points[corners])
    points, same = np.unique(points + 0.0, axis=0, return_inverse=True)
    return points, same.reshape(-1).astype(np.uint32)[corners]


@lru_cache(KEPT)
def _hull(body: Body) -> Array:
    return hull_points(body.points)


def hull_points(points: Array) -> Array:
    """Those of the points (n, 3) that are corners of their convex hull."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        raise MissingExtra("finding the convex hull of a mesh", "collision") from None
    hull: Any = ConvexHull
    try:
        corners: npt.NDArray[np.int32] = hull(points).vertices
    except QhullError:  # so thin that it is a matter of rounding which they are
        return points
    return points[corners]


def outer_points(points: Array) -> Array:
    """`hull_points` where it can be found, else all of them: fewer points are quicker to cover."""
    with contextlib.suppress(MissingExtra):
        return hull_points(points)
    return points


@lru_cache(1)
def _say_fitted() -> None:
    log.warning(
        "the meshes of links stand as fitted capsules: finding their hulls needs pip install 'mechanik[collision]'"
    )


@lru_cache(KEPT)
def _say_open(owner: str, uri: str) -> None:
    log.info("%s: the mesh %r is not closed; its convex hull is taken all the same", owner, uri)
