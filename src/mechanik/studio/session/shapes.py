"""What links look like, as pages draw it, and the files of their meshes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from mechanik.errors import FileMissing, UnknownName
from mechanik.mechanism import Box, Capsule, Cylinder, Mechanism, Mesh, PlacedShape, Sphere
from mechanik.studio.messages.events import ShapeInfo

LARGEST_MESH = 256 * 1024 * 1024
"""Bytes; a larger file is not drawn."""
TYPES = {"stl": "model/stl", "obj": "model/obj", "dae": "model/vnd.collada+xml", "glb": "model/gltf-binary"}


class Meshes:
    """The files of a mechanism's meshes, each once, by number.

    Args:
        files: that came with the mechanism, by the name that its meshes carry as path or uri.
        may_read: whether files of this machine that a reader has found for the mechanism may be read. Never for a
            mechanism that came from a page.
    """

    def __init__(self, mechanism: Mechanism, files: Mapping[str, bytes], may_read: bool, address: str) -> None:
        self._files, self._may_read, self._address = files, may_read, address
        self._numbers: dict[str, int] = {}
        for link in mechanism.links.values():
            for placed in (*link.visuals, *link.collisions):
                if isinstance(placed.shape, Mesh) and (name := self._found(placed.shape)) is not None:
                    self._numbers.setdefault(name, len(self._numbers))

    def info(self, placed: PlacedShape) -> ShapeInfo:
        """As a page is told."""
        shape, mesh, ending = placed.shape, None, ""
        match shape:
            case Box():
                kind, sizes = "box", list(shape.size)
            case Sphere():
                kind, sizes = "sphere", [shape.radius]
            case Cylinder():
                kind, sizes = "cylinder", [shape.radius, shape.length]
            case Capsule():
                kind, sizes = "capsule", [shape.radius, shape.length]
            case Mesh():
                kind, sizes = "mesh", list(shape.scale)
                name = self._found(shape)
                mesh = None if name is None else f"{self._address}{self._numbers[name]}"
                ending = PurePosixPath(shape.uri.replace("\\", "/")).suffix.lower().lstrip(".")
        x, y, z = placed.pose.position.tolist()
        w, a, b, c = placed.pose.wxyz.tolist()
        rgba = None if placed.material is None else placed.material.rgba
        return ShapeInfo(kind, [float(one) for one in sizes], (x, y, z, w, a, b, c), rgba, mesh, ending)

    def read(self, number: int) -> tuple[bytes, str]:
        """The bytes of a mesh, and their media type."""
        name = next((name for name, k in self._numbers.items() if k == number), None)
        if name is None:
            raise UnknownName("mesh", number, [str(k) for k in self._numbers.values()])
        ending = PurePosixPath(name.replace("\\", "/")).suffix.lower().lstrip(".")
        media = TYPES.get(ending, "application/octet-stream")
        if name in self._files:
            return self._files[name], media
        try:
            path = Path(name)
            if path.stat().st_size > LARGEST_MESH:
                raise FileMissing(f"the mesh {path.name} is larger than {LARGEST_MESH} bytes and is not drawn")
            return path.read_bytes(), media
        except OSError as error:
            raise FileMissing(f"the mesh {Path(name).name} cannot be read: {error.strerror or error}") from None

    def all(self) -> dict[str, bytes]:
        """Every mesh that can be read, by its address."""
        found: dict[str, bytes] = {}
        for number in self._numbers.values():
            with contextlib.suppress(FileMissing):
                found[f"{self._address}{number}"] = self.read(number)[0]
        return found

    def _found(self, mesh: Mesh) -> str | None:
        """Under which name its bytes are known; None if they are not."""
        for name in (mesh.path, mesh.uri):
            if name is not None and name in self._files:
                return name
        return mesh.path if self._may_read else None
