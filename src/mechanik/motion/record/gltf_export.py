"""Export of a motion as binary glTF: a node with shapes for each link, and an animation.

glTF has y up, so all links are children of a rotated node; their poses are in the world frame with z up. Links that do
not move have no animation channels. Coordinates and times are single-precision floats, as the format requires.
"""

from __future__ import annotations

import contextlib
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.errors import FormatError, InvalidOperation
from mechanik.model import Link, ShapeInstance
from mechanik.model.mesh_files import MeshSurface, read_surfaces
from mechanik.model.shapes import Mesh, Sphere
from mechanik.motion.record.recorded_motion import Motion, continuous_quaternions
from mechanik.motion.record.tessellation import tessellate
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

FLOAT, UINT = 5126, 5125
"""glTF component types."""
ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963
"""glTF targets of a buffer view: vertices and indices."""
ACCESSOR_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
"""glTF accessor type by number of components."""
JSON_CHUNK, BIN_CHUNK = 0x4E4F534A, 0x004E4942
"""Chunk types of a GLB file."""


class GlbBuilder:
    """Builder of a binary glTF file: a JSON document and a single buffer for all arrays.

    Attributes:
        document: the JSON document, with a list of objects for each glTF name such as "nodes".
    """

    def __init__(self) -> None:
        self.document: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "Mechanik"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [],
            "accessors": [],
            "bufferViews": [],
        }
        self._bytes = bytearray()

    def add(self, list_name: str, item: dict[str, Any]) -> int:
        """Append an object to a list of the document, such as "nodes", and return its index."""
        items: list[dict[str, Any]] = self.document.setdefault(list_name, [])
        items.append(item)
        return len(items) - 1

    def add_array(self, values: npt.NDArray[Any], target: int | None = None) -> int:
        """Append an array (n,), (n, 3) or (n, 4) to the buffer and return the index of its accessor.

        Integers are stored as 32-bit unsigned integers, all other numbers as single-precision floats.

        Args:
            values: the array.
            target: target of the buffer view; None: not set.
        """
        is_integer = values.dtype.kind in "ui"
        stored_values = np.ascontiguousarray(values, dtype="<u4" if is_integer else "<f4")
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self._bytes), "byteLength": stored_values.nbytes}
        if target is not None:
            view["target"] = target
        self._bytes += stored_values.tobytes()  # four bytes per number keep all views aligned
        rows = stored_values.reshape(len(stored_values), -1)
        return self.add(
            "accessors",
            {
                "bufferView": self.add("bufferViews", view),
                "componentType": UINT if is_integer else FLOAT,
                "count": len(rows),
                "type": ACCESSOR_TYPES[rows.shape[1]],
                "min": rows.min(axis=0).tolist(),
                "max": rows.max(axis=0).tolist(),
            },
        )

    def to_bytes(self) -> bytes:
        """Return the bytes of the .glb file."""
        self.document["buffers"] = [{"byteLength": len(self._bytes)}]
        text = json.dumps(self.document, separators=(",", ":"), allow_nan=False).encode()
        text += b" " * (-len(text) % 4)
        size = 12 + 8 + len(text) + 8 + len(self._bytes)
        header = struct.pack("<4sIIII", b"glTF", 2, size, len(text), JSON_CHUNK)
        return header + text + struct.pack("<II", len(self._bytes), BIN_CHUNK) + bytes(self._bytes)


Colour = tuple[float, float, float, float]
"""RGBA, each from 0 to 1."""
FileFinder = Callable[[str], bytes | None]
"""Maps the path or URI of a mesh, or of a file next to it, to its bytes; None if there is no such file."""
GREY: Colour = (0.7, 0.72, 0.75, 1.0)
"""Colour of shapes without a material."""
MAX_TRIANGLES = 1_000_000
"""Largest number of triangles of mesh files in total, where a mesh counts each time it is used; this gives a file of 20
to 50 MB, which viewers still display smoothly."""
MAX_FILE_BYTES = 256 * 2**20
"""Bytes; larger mesh files are left out, as missing ones are."""
MAX_COORDINATE = 1e9
"""m; meshes with larger coordinates in the frame of their link are omitted."""


@dataclass(frozen=True, slots=True, eq=False)
class GltfBody:
    """A triangle mesh of a link, in one colour.

    Attributes:
        points: (V, 3), m, in the frame of the link.
        normals: (V, 3), unit vectors; None: programs use flat shading, as glTF specifies.
        corners: (T, 3), indices of the points of each triangle.
        colour: RGBA.
    """

    points: Array
    normals: Array | None
    corners: npt.NDArray[np.uint32]
    colour: Colour


def find_on_disk(name: str) -> bytes | None:
    """Return the content of a file on this machine; None if the file does not exist, is unreadable or is too large."""
    with contextlib.suppress(OSError, ValueError):
        path = Path(name)
        if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
            return path.read_bytes()
    return None


class GltfBodyReader:
    """Converts the shapes of links to triangle meshes, with a cache of mesh files.

    Args:
        find: maps the path or URI of a mesh, or of a file next to it, to its bytes; None if there is no such file.
    """

    def __init__(self, find: FileFinder) -> None:
        self._find = find
        self._surface_cache: dict[tuple[str | None, str], list[MeshSurface]] = {}
        self._triangle_count = 0

    def link_bodies(self, link: Link) -> list[GltfBody]:
        """Return the meshes of the visual shapes of a link; if none can be drawn, those of its collision shapes.

        A link without visual shapes has no meshes, even if it has collision shapes.

        Raises:
            InvalidOperation: the mesh files of all links so far have more than `MAX_TRIANGLES` triangles in total, or a
                mesh file is too large to read.
        """
        for instances in (link.visuals, link.collisions if link.visuals else ()):
            bodies = [body for instance in instances for body in self._instance_bodies(instance)]
            if bodies:
                return bodies
        return []

    def _instance_bodies(self, instance: ShapeInstance) -> list[GltfBody]:
        X_link_shape = instance.pose.matrix
        R_link_shape, p_link_shape = X_link_shape[:3, :3], X_link_shape[:3, 3]
        colour = None if instance.material is None else instance.material.rgba
        if isinstance(instance.shape, Mesh):
            scale = np.array(instance.shape.scale, dtype=np.float64)
            if not np.isfinite(scale).all() or not scale.all():
                return []
            order = [0, 2, 1] if scale.prod() < 0 else [0, 1, 2]  # a reflection reverses the orientation of triangles
            return [
                GltfBody(points, None, surface.triangles[:, order], colour or surface.rgba or GREY)
                for surface in self._read_mesh_surfaces(instance.shape)
                if np.abs(points := (surface.vertices * scale) @ R_link_shape.T + p_link_shape).max() < MAX_COORDINATE
            ]
        mesh = tessellate(instance.shape)
        if mesh is None:
            return []
        points, normals = mesh.points @ R_link_shape.T + p_link_shape, mesh.normals @ R_link_shape.T
        return [GltfBody(points, normals, mesh.corners, colour or GREY)]

    def _read_mesh_surfaces(self, mesh: Mesh) -> list[MeshSurface]:
        """Return the surfaces of a mesh file; empty if the file is missing or cannot be read."""
        key = (mesh.path, mesh.uri)
        if key not in self._surface_cache:
            self._surface_cache[key] = []
            for name in (mesh.path, mesh.uri):
                if name is not None and (data := self._find(name)) is not None:
                    with contextlib.suppress(FormatError):
                        self._surface_cache[key] = read_surfaces(name, data, self._find, MAX_TRIANGLES)
                    break
        surfaces = self._surface_cache[key]
        self._triangle_count += sum(len(surface.triangles) for surface in surfaces)
        if self._triangle_count > MAX_TRIANGLES:
            raise InvalidOperation(
                f"the meshes have more than {MAX_TRIANGLES:,} triangles in total; use coarser meshes"
            )
        return surfaces


Z_TO_Y = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]
"""Quaternion xyzw, in the order of glTF, that rotates the z axis to the y axis."""
SPHERE_RATIO = 0.02
"""Radius of the spheres that represent links if no link has a shape that can be drawn, as a ratio of the extent of all
link origins."""
MIN_MOTION = 1e-9
"""m, or difference of quaternion entries; a link that moves less has no animation channel."""


def to_gltf(motion: Motion, find: FileFinder = find_on_disk) -> bytes:
    """Write a motion as a binary glTF file (.glb).

    STL and OBJ meshes are embedded, OBJ meshes with the colours of their materials. Meshes in other formats are not
    drawn; if no visual shape of a link can be drawn, its collision shapes are drawn.

    Args:
        motion: the motion.
        find: maps the path or URI of a mesh, or of a file next to it (such as a material file), to its bytes; None if
            there is no such file.

    Returns:
        Bytes of the file.

    Raises:
        InvalidOperation: the meshes have too many triangles, or a mesh file is too large to read.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.to_gltf(motion)[:4]
        b'glTF'
    """
    glb, mechanism = GlbBuilder(), motion.mechanism
    X_world_link = motion.poses()
    p_world_link = X_world_link[..., :3, 3]
    wxyz = continuous_quaternions(quaternion.from_matrix(X_world_link[..., :3, :3]))
    extent = float(np.ptp(p_world_link.reshape(-1, 3), axis=0).max(initial=0.0)) or 1.0
    root_node = {"name": motion.name, "rotation": Z_TO_Y, "children": list(range(1, len(mechanism.links) + 1))}
    glb.add("nodes", root_node)
    body_reader = GltfBodyReader(find)
    bodies = [body_reader.link_bodies(link) for link in mechanism.links.values()]
    sphere = tessellate(Sphere(SPHERE_RATIO * extent))
    if sphere is not None and not any(bodies):
        bodies = [[GltfBody(sphere.points, sphere.normals, sphere.corners, GREY)] for _ in bodies]
    materials: dict[Colour, int] = {}
    times_accessor = glb.add_array(motion.times - motion.times[0])
    channels: list[dict[str, Any]] = []
    samplers: list[dict[str, Any]] = []
    for k, name in enumerate(mechanism.links):
        tracks = {"translation": p_world_link[:, k], "rotation": np.roll(wxyz[:, k], -1, axis=-1)}
        node: dict[str, Any] = {"name": name, **{path: track[0].tolist() for path, track in tracks.items()}}
        if bodies[k]:
            primitives = [_add_primitive(glb, body, materials) for body in bodies[k]]
            node["mesh"] = glb.add("meshes", {"name": name, "primitives": primitives})
        node_index = glb.add("nodes", node)
        for path, track in tracks.items():
            if np.abs(track - track[0]).max() <= MIN_MOTION:
                continue
            channels.append({"sampler": len(samplers), "target": {"node": node_index, "path": path}})
            samplers.append({"input": times_accessor, "output": glb.add_array(track), "interpolation": "LINEAR"})
    if channels:
        glb.add("animations", {"name": motion.name, "channels": channels, "samplers": samplers})
    return glb.to_bytes()


def _add_primitive(glb: GlbBuilder, body: GltfBody, materials: dict[Colour, int]) -> dict[str, Any]:
    colour = body.colour
    if colour not in materials:
        rgba = [min(max(float(channel), 0.0), 1.0) for channel in colour]
        surface = {"baseColorFactor": rgba, "metallicFactor": 0.1, "roughnessFactor": 0.7}
        material: dict[str, Any] = {"pbrMetallicRoughness": surface}
        materials[colour] = glb.add("materials", material | ({"alphaMode": "BLEND"} if rgba[3] < 1.0 else {}))
    attributes = {"POSITION": glb.add_array(body.points, ARRAY_BUFFER)}
    if body.normals is not None:
        attributes["NORMAL"] = glb.add_array(body.normals, ARRAY_BUFFER)
    return {
        "attributes": attributes,
        "indices": glb.add_array(body.corners.reshape(-1), ELEMENT_ARRAY_BUFFER),
        "material": materials[colour],
    }
