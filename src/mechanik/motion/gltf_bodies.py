"""What links look like, as triangles for glTF: simple shapes, and the meshes of files that can be read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechanik.errors import FormatError, Refused
from mechanik.mechanism import Link, PlacedShape
from mechanik.mechanism.shapes import Mesh
from mechanik.meshes.surface import Surface, read_surfaces
from mechanik.motion.solids import triangles
from mechanik.spatial.array import Array

Colour = tuple[float, float, float, float]
Find = Callable[[str], bytes | None]
GREY: Colour = (0.7, 0.72, 0.75, 1.0)
MOST_TRIANGLES = 1_000_000
"""Of all meshes together; a file of some 30 MB, which programs that show it still turn smoothly."""
LARGEST_FILE = 256 * 2**20
FARTHEST = 1e9
"""m: a mesh that a scale makes larger is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class GltfBody:
    """
    Attributes:
        points: (V, 3), m, in the frame of the link.
        normals: (V, 3), unit; None: programs show the triangles flat, as glTF has it.
        corners: (T, 3), numbers of points.
    """

    points: Array
    normals: Array | None
    corners: npt.NDArray[np.uint32]
    colour: Colour


def find_on_disk(name: str) -> bytes | None:
    """The content of a file of this machine, if there is one of this path."""
    with contextlib.suppress(OSError, ValueError):
        path = Path(name)
        if path.is_file() and path.stat().st_size <= LARGEST_FILE:
            return path.read_bytes()
    return None


class GltfBodies:
    """
    Args:
        find: the bytes under the path or uri of a mesh, or of a file beside it; None if there are none.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._read: dict[tuple[str | None, str], list[Surface]] = {}
        self._count = 0

    def of(self, link: Link) -> list[GltfBody]:
        """What can be drawn of a link; what it bumps with, where nothing that it looks like can be.

        Raises:
            Refused: the meshes so far have more than `MOST_TRIANGLES`.
        """
        for shapes in (link.visuals, link.collisions if link.visuals else ()):
            found = [body for placed in shapes for body in self._placed(placed)]
            if found:
                return found
        return []

    def _placed(self, placed: PlacedShape) -> list[GltfBody]:
        X = placed.pose.matrix
        R, p = X[:3, :3], X[:3, 3]
        said = None if placed.material is None else placed.material.rgba
        if isinstance(placed.shape, Mesh):
            scale = np.array(placed.shape.scale, dtype=np.float64)
            if not np.isfinite(scale).all() or not scale.all():
                return []
            order = [0, 2, 1] if scale.prod() < 0 else [0, 1, 2]  # a mirror turns triangles inside out
            return [
                GltfBody(points, None, surface.corners[:, order], said or surface.rgba or GREY)
                for surface in self._surfaces(placed.shape)
                if np.abs(points := (surface.points * scale) @ R.T + p).max() < FARTHEST
            ]
        body = triangles(placed.shape)
        return [] if body is None else [GltfBody(body.points @ R.T + p, body.normals @ R.T, body.corners, said or GREY)]

    def _surfaces(self, mesh: Mesh) -> list[Surface]:
        """None of a mesh that is not there or cannot be read."""
        key = (mesh.path, mesh.uri)
        if key not in self._read:
            self._read[key] = []
            for name in (mesh.path, mesh.uri):
                if name is not None and (data := self._find(name)) is not None:
                    with contextlib.suppress(FormatError):
                        self._read[key] = read_surfaces(name, data, self._find, MOST_TRIANGLES)
                    break
        found = self._read[key]
        self._count += sum(len(surface.corners) for surface in found)
        if self._count > MOST_TRIANGLES:
            raise Refused(f"the meshes have more than {MOST_TRIANGLES:,} triangles together, too many for a glTF file")
        return found
