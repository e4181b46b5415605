"""The loaded model of a session: mechanism, mesh files and source text, and their description for pages."""

from __future__ import annotations

import contextlib
import math
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from mechanik.errors import FileMissing, FormatError, InvalidOperation, UnknownName
from mechanik.model import Box, Capsule, ConvexMesh, Cylinder, DoF, HalfSpace, Mechanism, Mesh, ShapeInstance, Sphere
from mechanik.model.mesh_files import FORMATS_WITH_REFERENCES, MeshDependencies, file_extension, read_surfaces
from mechanik.model.shapes import HeightField, Shape
from mechanik.motion.record.tessellation import HALF_SPACE_SIZE, HALF_SPACE_THICKNESS, tessellate
from mechanik.spatial import Pose, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ClosureInfo, JointInfo, LinkInfo, Model, ShapeInfo
from mechanik.studio.messages.requests import Vector
from mechanik.studio.session.edit_state import pose_to_numbers
from mechanik.studio.session.model_index import ModelIndex, dof_infos

MAX_UPLOAD_LINKS = 1_000
MAX_UPLOAD_DOFS = 1_000
MAX_UPLOAD_LOOPS = 200
"""Maximum number of links, dofs and loops of an uploaded mechanism.

The set-up time grows with the square of these numbers and slows down all other sessions.
"""
MAX_ANALYSED_DOFS = 150
"""Maximum number of dofs of a mechanism with loops for the analysis of mobility and structure.

The analysis uses singular values of the whole mechanism, and its time grows with the cube: 600 dofs with 100 loops take
seconds, 1500 dofs with 250 loops take minutes.
"""


def check_upload_size(mechanism: Mechanism) -> None:
    """Reject a mechanism that is larger than a page may upload.

    Raises:
        FormatError: it has too many links, dofs or loops.
    """
    counted = (
        ("links", len(mechanism.links), MAX_UPLOAD_LINKS),
        ("degrees of freedom", mechanism.nv, MAX_UPLOAD_DOFS),
        ("loops", len(mechanism.closures), MAX_UPLOAD_LOOPS),
    )
    for label, count, limit in counted:
        if count > limit:
            raise FormatError(
                f"this mechanism has {count} {label}; at most {limit} can be uploaded. "
                "mk.Studio in Python opens larger mechanisms"
            )


def can_analyse(mechanism: Mechanism) -> bool:
    """Return whether the mechanism is small enough for the analysis of mobility and structure."""
    return mechanism.nv <= MAX_ANALYSED_DOFS or not (mechanism.closures or mechanism.joint_constraints)


MAX_MESH_FILE_BYTES = 256 * 1024 * 1024
"""Maximum size of a mesh file that is drawn, bytes."""
MESH_MEDIA_TYPES = {
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


class MeshStore:
    """The mesh files of a mechanism and the files they refer to, each stored once, by number.

    Args:
        mechanism: the mechanism.
        files: uploaded files, by the path or uri in the meshes; files that a mesh refers to, by their name in
            `MeshDependencies`.
        may_read_disk: whether files on this machine that a file reader has found may be read; never for an uploaded
            mechanism.
        address: prefix of the address of a mesh on the server.
    """

    def __init__(self, mechanism: Mechanism, files: Mapping[str, bytes], may_read_disk: bool, address: str) -> None:
        self._files, self._may_read = dict(files), may_read_disk
        self._generated: dict[HeightField | ConvexMesh, str] = {}
        self._numbers: dict[str, int] = {}
        self._dependencies: dict[str, dict[str, str]] = {}
        self._addresses: dict[str, str] = {}
        self._address = address
        links = mechanism.links.values()
        self.add_shapes(placed.shape for link in links for placed in (*link.visuals, *link.collisions))

    def add_shapes(self, shapes: Iterable[Shape]) -> None:
        """Add shapes that will be drawn, such as obstacles."""
        new_names: list[str] = []
        for shape in shapes:
            name = None
            if isinstance(shape, HeightField | ConvexMesh) and shape not in self._generated:
                name = self._generated[shape] = f"made/{len(self._generated)}.stl"
                self._files[name] = _stl(shape)
            elif isinstance(shape, Mesh):
                name = self._file_name(shape)
            if name is not None and name not in self._numbers:
                self._numbers[name] = len(self._numbers)
                new_names.append(name)
        dependencies = MeshDependencies(self.read_file)
        for name in list(new_names):
            self._dependencies[name] = (
                dependencies.files_of(name, self.read_file(name) or b"")
                if file_extension(name) in FORMATS_WITH_REFERENCES
                else {}
            )
            for path in self._dependencies[name].values():
                if path not in self._numbers:
                    self._numbers[path] = len(self._numbers)
                    new_names.append(path)
        self._addresses |= {name: f"{self._address}{self._numbers[name]}?{self._checksum(name)}" for name in new_names}

    def shape_info(self, placed: ShapeInstance) -> ShapeInfo:
        """Return a shape as pages receive it."""
        shape, mesh, extension, dependencies = placed.shape, None, "", dict[str, str]()
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
            case HalfSpace():  # drawn as a slab with the true upper face
                kind, sizes = "box", [HALF_SPACE_SIZE, HALF_SPACE_SIZE, HALF_SPACE_THICKNESS]
                pose = Pose.from_matrix(pose.matrix @ translation((0.0, 0.0, -0.5 * HALF_SPACE_THICKNESS)))
            case HeightField() | ConvexMesh():
                kind, sizes = "mesh", [1.0, 1.0, 1.0]
                mesh, extension = self._addresses[self._generated[shape]], "stl"
            case Mesh():
                kind, sizes = "mesh", list(shape.scale)
                name = self._file_name(shape)
                mesh = None if name is None else self._addresses[name]
                extension = file_extension(shape.uri)
                dependencies = {
                    reference: self._addresses[path]
                    for reference, path in self._dependencies.get(name or "", {}).items()
                }
        x, y, z = pose.position.tolist()
        w, a, b, c = pose.wxyz.tolist()
        rgba = None if placed.material is None else placed.material.rgba
        return ShapeInfo(
            kind, [float(size) for size in sizes], (x, y, z, w, a, b, c), rgba, mesh, extension, dependencies
        )

    def read(self, number: int) -> tuple[bytes, str]:
        """Return the bytes of a mesh file and its media type.

        Raises:
            UnknownName: there is no such number.
            FileMissing: the file cannot be read or is too large.
        """
        name = next((name for name, k in self._numbers.items() if k == number), None)
        if name is None:
            raise UnknownName("mesh", number, [str(k) for k in self._numbers.values()])
        content = self.read_file(name)
        if content is None:
            raise FileMissing(
                f"the file {Path(name).name} cannot be read, or has more than {MAX_MESH_FILE_BYTES} bytes"
            )
        return content, MESH_MEDIA_TYPES.get(file_extension(name), "application/octet-stream")

    def all_files(self) -> dict[str, bytes]:
        """Return every mesh that can be read and the files they refer to, by address."""
        files: dict[str, bytes] = {}
        for name, address in self._addresses.items():
            if (data := self.read_file(name)) is not None:
                files[address] = data
        return files

    def read_file(self, name: str) -> bytes | None:
        """Return the content of an uploaded file, or of a file on this machine if that is allowed; else None."""
        if name in self._files:
            return self._files[name]
        path = Path(name)
        with contextlib.suppress(OSError, ValueError):
            if self._may_read and path.is_file() and path.stat().st_size <= MAX_MESH_FILE_BYTES:
                return path.read_bytes()
        return None

    def _checksum(self, name: str) -> str:
        """Return a checksum for the address: browsers cache files, and each model numbers its meshes from 0."""
        return f"{zlib.crc32(self.read_file(name) or b''):x}"

    def mesh_points(self, mesh: Mesh) -> Array | None:
        """Return the scaled vertices of a mesh, (n, 3), m; None if its file is not available or cannot be parsed."""
        name = self._file_name(mesh)
        data = None if name is None else self.read_file(name)
        if name is None or data is None:
            return None
        with contextlib.suppress(FormatError, InvalidOperation):
            surfaces = read_surfaces(name, data)
            points = np.concatenate([np.zeros((0, 3)), *(surface.vertices for surface in surfaces)])
            return points * np.array(mesh.scale)
        return None

    def _file_name(self, mesh: Mesh) -> str | None:
        """Return the name under which the bytes of a mesh are available, or None."""
        for name in (mesh.path, mesh.uri):
            if name is not None and name in self._files:
                return name
        return mesh.path if self._may_read else None


def _stl(shape: HeightField | ConvexMesh) -> bytes:
    """Return a shape as a binary STL file, which pages can draw."""
    body = tessellate(shape)
    assert body is not None
    facets = np.zeros(len(body.corners), dtype=[("normal", "<f4", 3), ("at", "<f4", (3, 3)), ("rest", "<u2")])
    facets["normal"] = body.normals[body.corners[:, 0]]
    facets["at"] = body.points[body.corners]
    return bytes(80) + struct.pack("<I", len(facets)) + facets.tobytes()


SourceKind = Literal["", "dh", "arm_2d", "arm_3d", "json", "urdf"]
ModelSource = tuple[SourceKind, str]
"""Kind and text from which `EditModel` would make the model; both empty if there are none."""


class LoadedModel:
    """A mechanism that belongs to one session; its structure never changes, since an edit makes another model.

    Args:
        mechanism: the mechanism; not copied.
        title: title for users.
        files, may_read_disk: see `MeshStore`.
        source: kind and text for `EditModel`.
        mesh_address: address of its meshes on the server, without the number.

    Attributes:
        meshes: mesh files.
        index: kinematics for frames.
        has_collision_shapes: whether any link has a collision shape.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        title: str = "",
        files: Mapping[str, bytes] | None = None,
        source: ModelSource = ("", ""),
        may_read_disk: bool = False,
        mesh_address: str = "/mesh//",
    ) -> None:
        self.mechanism, self.title, self.source = mechanism, title, source
        self.files: Mapping[str, bytes] = {} if files is None else files
        self.may_read_disk, self.mesh_address = may_read_disk, mesh_address
        self.meshes = MeshStore(mechanism, self.files, may_read_disk, mesh_address)
        self.index = ModelIndex(mechanism)
        self.has_collision_shapes = any(link.collisions for link in mechanism.links.values())

    @property
    def file_bytes(self) -> int:
        """Size of all uploaded files, bytes."""
        return sum(map(len, self.files.values()))

    def rebuild_index(self) -> None:
        """Update `index` after a change of limits, which the closure measurement uses."""
        self.index = ModelIndex(self.mechanism)


DEFAULT_VIEW: Vector = (0.62, -0.68, 0.39)
"""View direction for mechanisms that are not planar: from the front, slightly from the side and from above."""
MIN_RADIUS = 0.02
"""Minimum radius of the bounding sphere, m."""
PARALLEL_TOLERANCE = 1e-6
MAX_WARNINGS = 12


def model_info(
    model: LoadedModel, q: Array, revision: int, locked: frozenset[int], hidden: frozenset[str], resets_view: bool
) -> Model:
    mechanism, X = model.mechanism, model.index.link_poses(q)
    centre, radius = bounding_sphere(mechanism, X)
    source_kind, source = model.source
    return Model(
        revision=revision,
        name=mechanism.name,
        title=model.title or mechanism.name,
        links=_links(model, hidden),
        joints=_joints(model),
        dofs=dof_infos(mechanism, model.index.dofs, locked),
        closures=_closures(model),
        configurations=list(mechanism.configurations),
        about=describe(mechanism),
        centre=centre,
        radius=radius,
        view_from=view_direction(mechanism, q),
        has_mass=model.index.centre_of_mass(X) is not None,
        source_kind=source_kind,
        source=source,
        resets_view=resets_view,
    )


def _links(model: LoadedModel, hidden: frozenset[str]) -> list[LinkInfo]:
    joints = {joint: k for k, joint in enumerate(model.mechanism.joints.values())}
    return [
        LinkInfo(
            name=name,
            parent=joints.get(link.parent, -1),  # type: ignore[arg-type]
            visuals=[model.meshes.shape_info(shape) for shape in link.visuals],
            collisions=[model.meshes.shape_info(shape) for shape in link.collisions],
            visible=name not in hidden,
        )
        for name, link in model.mechanism.links.items()
    ]


def _joints(model: LoadedModel) -> list[JointInfo]:
    links = {link: k for k, link in enumerate(model.mechanism.links.values())}
    dofs: dict[int, list[int]] = {}
    for k, dof in enumerate(model.index.dofs):
        dofs.setdefault(dof.joint_number, []).append(k)
    return [
        JointInfo(
            name=name,
            kind=joint_kind(joint.dof),
            parent=links.get(joint.parent, -1),  # type: ignore[arg-type]
            child=-1 if joint.is_closure or joint.child is None else links[joint.child],
            pose=pose_to_numbers(joint.matrix),
            dofs=dofs.get(number, []),
        )
        for number, (name, joint) in enumerate(model.mechanism.joints.items())
    ]


def _closures(model: LoadedModel) -> list[ClosureInfo]:
    links = {link: k for k, link in enumerate(model.mechanism.links.values())}
    return [
        ClosureInfo(
            name=name,
            kind=joint_kind(closure.free_dof),
            link_a=links.get(closure.joint.parent, -1),  # type: ignore[arg-type]
            pose_a=pose_to_numbers(closure.joint.matrix),
            link_b=links[closure.link],
            pose_b=pose_to_numbers(closure.at.matrix),
        )
        for name, closure in model.mechanism.closures.items()
    ]


def joint_kind(free: tuple[DoF, ...]) -> str:
    """Return the common name of a joint with these dofs."""
    turns = sum(dof.is_rotation for dof in free)
    names = {
        (0, 0): "fixed", (0, 1): "revolute", (1, 0): "prismatic", (0, 2): "universal", (0, 3): "spherical",
        (1, 1): "cylindrical", (2, 1): "planar", (3, 0): "translational", (3, 3): "floating",
    }  # fmt: skip
    return names.get((len(free) - turns, turns), " ".join(dof.name for dof in free))


def describe(mechanism: Mechanism) -> list[str]:
    """Return sentences for users: loops and mobility first, then warnings of the file reader."""
    if can_analyse(mechanism):
        first = mechanism.explain(next(iter(mechanism.links), None)).split("\n\n")[0].replace("\n", " ")
    else:
        name, loops = mechanism.name or "This mechanism", len(mechanism.closures)
        first = f"{name} has {mechanism.nv} degrees of freedom and {loops} loops: too many to compute its mobility."
    warnings = [str(warning) for warning in mechanism.warnings]
    omitted_warnings = [f"And {len(warnings) - MAX_WARNINGS} more warnings."] if len(warnings) > MAX_WARNINGS else []
    return [first, *warnings[:MAX_WARNINGS], *omitted_warnings]


def bounding_sphere(mechanism: Mechanism, X: Array) -> tuple[Vector, float]:
    """Return centre and radius (m) of a sphere around all frames and simple shapes, for link poses X (L, 4, 4)."""
    places: list[Array] = [np.zeros(3)]
    sizes: list[float] = [0.0]
    for X_link, link in zip(X, mechanism.links.values(), strict=True):
        places.append(X_link[:3, 3])
        sizes.append(0.0)
        for shape in (*link.visuals, *link.collisions):
            if not isinstance(shape.shape, Mesh):
                places.append(X_link[:3, :3] @ shape.pose.position + X_link[:3, 3])
                sizes.append(_shape_radius(shape))
    points, radii = np.array(places[1:] or places), np.array(sizes[1:] or sizes)[:, None]
    low, high = (points - radii).min(axis=0), (points + radii).max(axis=0)
    centre = (low + high) / 2
    radius = float((np.linalg.norm(points - centre, axis=1) + radii[:, 0]).max())
    x, y, z = centre.tolist()
    return (x, y, z), max(radius, MIN_RADIUS)


def _shape_radius(placed: ShapeInstance) -> float:
    """Return the distance of the farthest point of a shape from its origin, m."""
    shape = placed.shape
    if isinstance(shape, ConvexMesh):
        return float(np.linalg.norm(shape.points, axis=1).max())
    sizes = getattr(shape, "size", None)
    if sizes is not None:
        return 0.5 * math.hypot(*sizes)
    return getattr(shape, "radius", 0.0) + 0.5 * getattr(shape, "length", 0.0)


def view_direction(mechanism: Mechanism, q: Array) -> Vector:
    """Return the best view direction: the normal of the plane of motion of a planar mechanism, else `DEFAULT_VIEW`."""
    axis: Array | None = None
    slides: list[Array] = []
    for name in mechanism.links:  # link by link: all Jacobians at once would take memory of links times dofs
        J = mechanism.jacobian(name, q)
        axes = J[3:, np.linalg.norm(J[3:], axis=0) > PARALLEL_TOLERANCE]
        if axis is None and axes.size:
            axis = axes[:, 0] / np.linalg.norm(axes[:, 0])
        if axis is None:
            slides.append(J[:3, np.linalg.norm(J[:3], axis=0) > PARALLEL_TOLERANCE])
        elif not _is_in_plane(axis, axes, J[:3]):
            return DEFAULT_VIEW
    if axis is None or not all(_is_in_plane(axis, None, velocities) for velocities in slides):
        return DEFAULT_VIEW
    # so that x is to the right and z up, or y up when seen from above
    against = axis @ np.array([1.0, -1.0, 1.0]) < 0.0
    x, y, z = (-axis if against else axis).tolist()
    return x, y, z


def is_planar_linkage(mechanism: Mechanism, q: Array) -> bool:
    """Return whether the mechanism has loops and moves in a plane.

    The bars of such a linkage lie in layers, but are drawn as if they could pass through each other.
    """
    return bool(mechanism.closures) and view_direction(mechanism, q) is not DEFAULT_VIEW


def _is_in_plane(axis: Array, axes: Array | None, linear: Array) -> bool:
    """Return whether rotation axes (3, n) are parallel to `axis` and linear velocities (3, n) normal to it."""
    about = axes is None or np.abs(axes - axis[:, None] * (axis @ axes)).max(initial=0.0) <= PARALLEL_TOLERANCE
    return bool(about) and bool(np.abs(axis @ linear).max(initial=0.0) <= PARALLEL_TOLERANCE)
