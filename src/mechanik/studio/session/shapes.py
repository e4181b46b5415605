"""What links look like, as pages draw it, and the files of their meshes."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from mechanik.errors import FileMissing, FormatError, Refused, UnknownName
from mechanik.mechanism import Box, Capsule, Cylinder, HalfSpace, Mechanism, Mesh, PlacedShape, Sphere
from mechanik.mechanism.shapes import ConvexMesh, HeightField, Shape
from mechanik.meshes.beside_mesh import NAMING, BesideMeshes, ending_of
from mechanik.meshes.surface import read_surfaces
from mechanik.motion.solids import FLOOR, THICKNESS, triangles
from mechanik.spatial import Pose, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ShapeInfo

LARGEST_MESH = 256 * 1024 * 1024
"""Bytes; a larger file is not drawn."""
TYPES = {
    "stl": "model/stl",
    "obj": "model/obj",
    "mtl": "model/mtl",
    "dae": "model/vnd.collada+xml",
    "glb": "model/gltf-binary",
    "gltf": "model/gltf+json",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
}


class Meshes:
    """The files of a mechanism's meshes and what lies beside them, each once, by number.

    Args:
        files: that came with the mechanism, by the name that its meshes carry as path or uri, and what lies beside
            them by the name that `BesideMeshes` has for it.
        may_read: whether files of this machine that a reader has found for the mechanism may be read. Never for a
            mechanism that came from a page.
    """

    def __init__(self, mechanism: Mechanism, files: Mapping[str, bytes], may_read: bool, address: str) -> None:
        self._files, self._may_read = dict(files), may_read
        self._made: dict[HeightField | ConvexMesh, str] = {}
        self._numbers: dict[str, int] = {}
        self._beside: dict[str, dict[str, str]] = {}
        self._addresses: dict[str, str] = {}
        self._address = address
        links = mechanism.links.values()
        self.include(placed.shape for link in links for placed in (*link.visuals, *link.collisions))

    def include(self, shapes: Iterable[Shape]) -> None:
        """Let these be drawn as well, from now on."""
        new: list[str] = []
        for shape in shapes:
            name = None
            if isinstance(shape, HeightField | ConvexMesh) and shape not in self._made:
                name = self._made[shape] = f"made/{len(self._made)}.stl"
                self._files[name] = _stl(shape)
            elif isinstance(shape, Mesh):
                name = self._found(shape)
            if name is not None and name not in self._numbers:
                self._numbers[name] = len(self._numbers)
                new.append(name)
        beside = BesideMeshes(self.find)
        for name in list(new):
            self._beside[name] = beside.of(name, self.find(name) or b"") if ending_of(name) in NAMING else {}
            for place in self._beside[name].values():
                if place not in self._numbers:
                    self._numbers[place] = len(self._numbers)
                    new.append(place)
        self._addresses |= {name: f"{self._address}{self._numbers[name]}?{self._tag(name)}" for name in new}

    def info(self, placed: PlacedShape) -> ShapeInfo:
        """As a page is told."""
        shape, mesh, ending, beside = placed.shape, None, "", dict[str, str]()
        pose = placed.pose
        match shape:
            case Box():
                kind, sizes = "box", list(shape.size)
            case Sphere():
                kind, sizes = "sphere", [shape.radius]
            case Cylinder():
                kind, sizes = "cylinder", [shape.radius, shape.length]
            case Capsule():
                kind, sizes = "capsule", [shape.radius, shape.length]
            case HalfSpace():  # a slab whose top is the true one
                kind, sizes = "box", [FLOOR, FLOOR, THICKNESS]
                pose = Pose.from_matrix(pose.matrix @ translation((0.0, 0.0, -0.5 * THICKNESS)))
            case HeightField() | ConvexMesh():
                kind, sizes = "mesh", [1.0, 1.0, 1.0]
                mesh, ending = self._addresses[self._made[shape]], "stl"
            case Mesh():
                kind, sizes = "mesh", list(shape.scale)
                name = self._found(shape)
                mesh = None if name is None else self._addresses[name]
                ending = ending_of(shape.uri)
                beside = {said: self._addresses[place] for said, place in self._beside.get(name or "", {}).items()}
        x, y, z = pose.position.tolist()
        w, a, b, c = pose.wxyz.tolist()
        rgba = None if placed.material is None else placed.material.rgba
        return ShapeInfo(kind, [float(one) for one in sizes], (x, y, z, w, a, b, c), rgba, mesh, ending, beside)

    def read(self, number: int) -> tuple[bytes, str]:
        """The bytes of a mesh, and their media type."""
        name = next((name for name, k in self._numbers.items() if k == number), None)
        if name is None:
            raise UnknownName("mesh", number, [str(k) for k in self._numbers.values()])
        data = self.find(name)
        if data is None:
            raise FileMissing(f"the file {Path(name).name} cannot be read, or has more than {LARGEST_MESH} bytes")
        return data, TYPES.get(ending_of(name), "application/octet-stream")

    def all(self) -> dict[str, bytes]:
        """Every mesh that can be read, and what lies beside them, by their addresses."""
        found: dict[str, bytes] = {}
        for name, address in self._addresses.items():
            if (data := self.find(name)) is not None:
                found[address] = data
        return found

    def find(self, name: str) -> bytes | None:
        """The content of a file that came along, or of one on this machine if those may be read."""
        if name in self._files:
            return self._files[name]
        path = Path(name)
        with contextlib.suppress(OSError, ValueError):
            if self._may_read and path.is_file() and path.stat().st_size <= LARGEST_MESH:
                return path.read_bytes()
        return None

    def _tag(self, name: str) -> str:
        """Another for another content: pages keep what they have fetched, and numbers begin anew with each model."""
        return f"{zlib.crc32(self.find(name) or b''):x}"

    def points(self, mesh: Mesh) -> Array | None:
        """Of the triangles of a mesh whose file came along, (n, 3), scaled; None if it did not, or cannot be read."""
        name = self._found(mesh)
        data = None if name is None else self.find(name)
        if name is None or data is None:
            return None
        with contextlib.suppress(FormatError, Refused):
            surfaces = read_surfaces(name, data)
            return np.concatenate([np.zeros((0, 3)), *(one.points for one in surfaces)]) * np.array(mesh.scale)
        return None

    def _found(self, mesh: Mesh) -> str | None:
        """Under which name its bytes are known; None if they are not."""
        for name in (mesh.path, mesh.uri):
            if name is not None and name in self._files:
                return name
        return mesh.path if self._may_read else None


def _stl(shape: HeightField | ConvexMesh) -> bytes:
    """As a file of triangles, which pages can draw."""
    body = triangles(shape)
    assert body is not None
    facets = np.zeros(len(body.corners), dtype=[("normal", "<f4", 3), ("at", "<f4", (3, 3)), ("rest", "<u2")])
    facets["normal"] = body.normals[body.corners[:, 0]]
    facets["at"] = body.points[body.corners]
    return bytes(80) + struct.pack("<I", len(facets)) + facets.tobytes()
