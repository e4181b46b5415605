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
from mechanik.validation import format_count

MAX_UPLOAD_LINKS = 1_000
MAX_UPLOAD_DOFS = 1_000
MAX_UPLOAD_LOOPS = 200
"""Maximum number of links, dofs and loops of an uploaded mechanism.

The set-up time grows with the square of these numbers, and a long set-up slows down all other sessions.
"""
MAX_ANALYSED_DOFS = 150
"""Maximum number of dofs of a mechanism with loops or joint constraints for the analysis of mobility and structure.

The analysis uses singular values of the whole mechanism, and its time grows with the cube of the number of dofs: 600
dofs with 100 loops take seconds, 1500 dofs with 250 loops take minutes.
"""


def check_upload_size(mechanism: Mechanism) -> None:
    """Reject a mechanism that is larger than a page may upload.

    Raises:
        FormatError: the mechanism has too many links, dofs or loops.
    """
    counts = (
        ("links", len(mechanism.links), MAX_UPLOAD_LINKS),
        ("degrees of freedom", mechanism.nv, MAX_UPLOAD_DOFS),
        ("loops", len(mechanism.closures), MAX_UPLOAD_LOOPS),
    )
    for label, count, max_count in counts:
        if count > max_count:
            raise FormatError(
                f"this mechanism has {count} {label}; at most {max_count} can be uploaded. "
                "Open a larger mechanism with mk.Studio in Python"
            )


def can_analyse(mechanism: Mechanism) -> bool:
    """Return whether mobility and structure can be analysed: few dofs, or neither loops nor joint constraints."""
    return mechanism.nv <= MAX_ANALYSED_DOFS or not (mechanism.closures or mechanism.joint_constraints)


MAX_MESH_FILE_BYTES = 256 * 1024 * 1024
"""Maximum size of a mesh file on this machine that is drawn, bytes; uploaded files are not checked here."""
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
    """The mesh files of a mechanism and the files that they refer to, each with a number for its address.

    Height fields and convex meshes get STL files that are made here.

    Args:
        mechanism: the mechanism.
        files: uploaded files, by the path or uri in the meshes; files that a mesh refers to, by their name in
            `MeshDependencies`.
        may_read_disk: whether files on this machine that a file reader has found may be read; False for an uploaded
            mechanism.
        address: URL path of the meshes on the server; the number of a mesh follows it.
    """

    def __init__(self, mechanism: Mechanism, files: Mapping[str, bytes], may_read_disk: bool, address: str) -> None:
        self._files, self._may_read_disk = dict(files), may_read_disk
        self._generated_names: dict[HeightField | ConvexMesh, str] = {}
        self._numbers: dict[str, int] = {}
        self._dependencies: dict[str, dict[str, str]] = {}
        self._addresses: dict[str, str] = {}
        self._address = address
        links = mechanism.links.values()
        self.add_shapes(instance.shape for link in links for instance in (*link.visuals, *link.collisions))

    def add_shapes(self, shapes: Iterable[Shape]) -> None:
        """Add shapes that will be drawn, such as obstacles."""
        new_names: list[str] = []
        for shape in shapes:
            name = None
            if isinstance(shape, HeightField | ConvexMesh) and shape not in self._generated_names:
                name = self._generated_names[shape] = f"made/{len(self._generated_names)}.stl"
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

    def shape_info(self, instance: ShapeInstance) -> ShapeInfo:
        """Return a shape as pages receive it; meshes and height fields must have been added (`add_shapes`)."""
        shape, mesh, extension, dependencies = instance.shape, None, "", dict[str, str]()
        pose = instance.pose
        match shape:
            case Box():
                kind, sizes = "box", list(shape.size)
            case Sphere():
                kind, sizes = "sphere", [shape.radius]
            case Cylinder():
                kind, sizes = "cylinder", [shape.radius, shape.length]
            case Capsule():
                kind, sizes = "capsule", [shape.radius, shape.length]
            case HalfSpace():  # drawn as a flat box whose upper face is a part of the surface
                kind, sizes = "box", [HALF_SPACE_SIZE, HALF_SPACE_SIZE, HALF_SPACE_THICKNESS]
                pose = Pose.from_matrix(pose.matrix @ translation((0.0, 0.0, -0.5 * HALF_SPACE_THICKNESS)))
            case HeightField() | ConvexMesh():
                kind, sizes = "mesh", [1.0, 1.0, 1.0]
                mesh, extension = self._addresses[self._generated_names[shape]], "stl"
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
        qw, qx, qy, qz = pose.wxyz.tolist()
        rgba = None if instance.material is None else instance.material.rgba
        return ShapeInfo(
            kind, [float(size) for size in sizes], (x, y, z, qw, qx, qy, qz), rgba, mesh, extension, dependencies
        )

    def read(self, number: int) -> tuple[bytes, str]:
        """Return the bytes of a mesh file and its media type.

        Raises:
            UnknownName: there is no such number.
            FileMissing: the file cannot be read, or is a file on this machine larger than `MAX_MESH_FILE_BYTES`.
        """
        name = next((name for name, k in self._numbers.items() if k == number), None)
        if name is None:
            raise UnknownName("mesh", number, [str(k) for k in self._numbers.values()])
        content = self.read_file(name)
        if content is None:
            raise FileMissing(
                f"the mesh file {Path(name).name} cannot be read, or is larger than {MAX_MESH_FILE_BYTES // 2**20} MiB"
            )
        return content, MESH_MEDIA_TYPES.get(file_extension(name), "application/octet-stream")

    def all_files(self) -> dict[str, bytes]:
        """Return the contents of all readable mesh files and of the files to which they refer, by address."""
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
            if self._may_read_disk and path.is_file() and path.stat().st_size <= MAX_MESH_FILE_BYTES:
                return path.read_bytes()
        return None

    def _checksum(self, name: str) -> str:
        """Return a checksum for the address: browsers cache files by address, and each model numbers them from 0."""
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
        """Return the name with which `read_file` reads the file of a mesh; None if there is no file."""
        for name in (mesh.path, mesh.uri):
            if name is not None and name in self._files:
                return name
        return mesh.path if self._may_read_disk else None


def _stl(shape: HeightField | ConvexMesh) -> bytes:
    """Return a shape as a binary STL file, which pages can draw."""
    body = tessellate(shape)
    assert body is not None
    facets = np.zeros(len(body.corners), dtype=[("normal", "<f4", 3), ("points", "<f4", (3, 3)), ("attributes", "<u2")])
    facets["normal"] = body.normals[body.corners[:, 0]]
    facets["points"] = body.points[body.corners]
    return bytes(80) + struct.pack("<I", len(facets)) + facets.tobytes()


SourceKind = Literal["", "dh", "arm_2d", "arm_3d", "json", "urdf"]
ModelSource = tuple[SourceKind, str]
"""Kind and text for `EditModel`; both empty if the model was not made from text."""


class LoadedModel:
    """A mechanism that belongs to one session; its structure never changes, since an edit makes another model.

    Args:
        mechanism: the mechanism; not copied.
        title: title for users.
        files, may_read_disk: see `MeshStore`.
        source: kind and text for `EditModel`; both empty if the model was not made from text.
        mesh_address: URL path of its meshes on the server; the number of a mesh follows it.

    Attributes:
        meshes: mesh files.
        index: kinematics for state frames.
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
        """Update `index` after a change of limits, which `ClosureMeter` uses."""
        self.index = ModelIndex(self.mechanism)


DEFAULT_VIEW: Vector = (0.62, -0.68, 0.39)
"""Direction from a mechanism that is not planar to the camera: between x and -y, 23 degrees above the horizontal."""
MIN_RADIUS = 0.02
"""Minimum radius of the bounding sphere, m."""
PARALLEL_TOLERANCE = 1e-6
"""Largest component of an angular (rad) or linear (m) velocity per unit of a dof that counts as zero."""
MAX_WARNINGS = 12
"""Maximum number of warnings of the file reader that pages show."""


def model_info(
    model: LoadedModel,
    q: Array,
    revision: int,
    locked_dofs: frozenset[int],
    hidden_links: frozenset[str],
    resets_view: bool,
) -> Model:
    """Return the `Model` event of a model at q (nq,)."""
    mechanism, X = model.mechanism, model.index.link_poses(q)
    centre, radius = bounding_sphere(mechanism, X)
    source_kind, source = model.source
    return Model(
        revision=revision,
        name=mechanism.name,
        title=model.title or mechanism.name,
        links=_link_infos(model, hidden_links),
        joints=_joint_infos(model),
        dofs=dof_infos(mechanism, model.index.dofs, locked_dofs),
        closures=_closure_infos(model),
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


def _link_infos(model: LoadedModel, hidden_links: frozenset[str]) -> list[LinkInfo]:
    joint_indices = {joint: k for k, joint in enumerate(model.mechanism.joints.values())}
    return [
        LinkInfo(
            name=name,
            parent=joint_indices.get(link.parent, -1),  # type: ignore[arg-type]
            visuals=[model.meshes.shape_info(shape) for shape in link.visuals],
            collisions=[model.meshes.shape_info(shape) for shape in link.collisions],
            visible=name not in hidden_links,
        )
        for name, link in model.mechanism.links.items()
    ]


def _joint_infos(model: LoadedModel) -> list[JointInfo]:
    link_indices = {link: k for k, link in enumerate(model.mechanism.links.values())}
    dof_indices: dict[int, list[int]] = {}
    for k, dof in enumerate(model.index.dofs):
        dof_indices.setdefault(dof.joint_index, []).append(k)
    return [
        JointInfo(
            name=name,
            kind=joint_kind(joint.dof),
            parent=link_indices.get(joint.parent, -1),  # type: ignore[arg-type]
            child=-1 if joint.is_closure or joint.child is None else link_indices[joint.child],
            pose=pose_to_numbers(joint.matrix),
            dofs=dof_indices.get(joint_index, []),
        )
        for joint_index, (name, joint) in enumerate(model.mechanism.joints.items())
    ]


def _closure_infos(model: LoadedModel) -> list[ClosureInfo]:
    link_indices = {link: k for k, link in enumerate(model.mechanism.links.values())}
    return [
        ClosureInfo(
            name=name,
            kind=joint_kind(closure.free_dof),
            link_a=link_indices.get(closure.joint.parent, -1),  # type: ignore[arg-type]
            pose_a=pose_to_numbers(closure.joint.matrix),
            link_b=link_indices[closure.link],
            pose_b=pose_to_numbers(closure.at.matrix),
        )
        for name, closure in model.mechanism.closures.items()
    ]


def joint_kind(free_dofs: tuple[DoF, ...]) -> str:
    """Return the common name of a joint with these dofs, or the names of the dofs if there is no common name.

    Only the numbers of translations and rotations are compared, not their axes.
    """
    rotation_count = sum(dof.is_rotation for dof in free_dofs)
    names = {
        (0, 0): "fixed", (0, 1): "revolute", (1, 0): "prismatic", (0, 2): "universal", (0, 3): "spherical",
        (1, 1): "cylindrical", (2, 1): "planar", (3, 0): "translational", (3, 3): "floating",
    }  # fmt: skip
    translation_count = len(free_dofs) - rotation_count
    return names.get((translation_count, rotation_count), " ".join(dof.name for dof in free_dofs))


def describe(mechanism: Mechanism) -> list[str]:
    """Return sentences for users: loops and mobility first, then warnings of the file reader."""
    if can_analyse(mechanism):
        mobility_text = mechanism.explain(next(iter(mechanism.links), None)).split("\n\n")[0].replace("\n", " ")
    else:
        name, loop_text = mechanism.name or "This mechanism", format_count(len(mechanism.closures), "loop")
        mobility_text = (
            f"{name} has {mechanism.nv} degrees of freedom and {loop_text}: too many to compute its mobility."
        )
    warnings = [str(warning) for warning in mechanism.warnings]
    omitted_count = len(warnings) - MAX_WARNINGS
    omission_text = [f"And {format_count(omitted_count, 'more warning')}."] if omitted_count > 0 else []
    return [mobility_text, *warnings[:MAX_WARNINGS], *omission_text]


def bounding_sphere(mechanism: Mechanism, X: Array) -> tuple[Vector, float]:
    """Return centre (m, world) and radius (m) of a sphere around all link origins and most shapes.

    Mesh files are ignored. Half-spaces count as points, and height fields without their heights.

    Args:
        mechanism: the mechanism.
        X: poses of all links in the world, (L, 4, 4).
    """
    positions: list[Array] = [np.zeros(3)]
    shape_radii: list[float] = [0.0]
    for X_world_link, link in zip(X, mechanism.links.values(), strict=True):
        positions.append(X_world_link[:3, 3])
        shape_radii.append(0.0)
        for instance in (*link.visuals, *link.collisions):
            if not isinstance(instance.shape, Mesh):
                positions.append(X_world_link[:3, :3] @ instance.pose.position + X_world_link[:3, 3])
                shape_radii.append(_shape_radius(instance))
    points, radii = np.array(positions[1:] or positions), np.array(shape_radii[1:] or shape_radii)[:, None]
    low, high = (points - radii).min(axis=0), (points + radii).max(axis=0)
    centre = (low + high) / 2
    radius = float((np.linalg.norm(points - centre, axis=1) + radii[:, 0]).max())
    x, y, z = centre.tolist()
    return (x, y, z), max(radius, MIN_RADIUS)


def _shape_radius(instance: ShapeInstance) -> float:
    """Return the radius (m) of a sphere around the origin of a shape that contains the shape.

    The radius is 0 for half-spaces; for height fields it is half the horizontal diagonal, without the heights.
    """
    shape = instance.shape
    if isinstance(shape, ConvexMesh):
        return float(np.linalg.norm(shape.points, axis=1).max())
    sizes = getattr(shape, "size", None)
    if sizes is not None:
        return 0.5 * math.hypot(*sizes)
    return getattr(shape, "radius", 0.0) + 0.5 * getattr(shape, "length", 0.0)


def view_direction(mechanism: Mechanism, q: Array) -> Vector:
    """Return the direction from the mechanism to the camera, a unit vector in the world.

    For a planar mechanism this is the normal of the plane of motion, else `DEFAULT_VIEW`. A mechanism without rotations
    does not count as planar.
    """
    axis: Array | None = None
    translations: list[Array] = []  # linear velocities of links before the first rotation is found
    for name in mechanism.links:  # link by link, since all Jacobians at once would need too much memory
        J = mechanism.jacobian(name, q)
        axes = J[3:, np.linalg.norm(J[3:], axis=0) > PARALLEL_TOLERANCE]
        if axis is None and axes.size:
            axis = axes[:, 0] / np.linalg.norm(axes[:, 0])
        if axis is None:
            translations.append(J[:3, np.linalg.norm(J[:3], axis=0) > PARALLEL_TOLERANCE])
        elif not _is_in_plane(axis, axes, J[:3]):
            return DEFAULT_VIEW
    if axis is None or not all(_is_in_plane(axis, None, velocities) for velocities in translations):
        return DEFAULT_VIEW
    # the camera looks from +x, -y or +z: it sees x to the right, and z up, or y up if the plane is horizontal
    is_reversed = axis @ np.array([1.0, -1.0, 1.0]) < 0.0
    x, y, z = (-axis if is_reversed else axis).tolist()
    return x, y, z


def is_planar_linkage(mechanism: Mechanism, q: Array) -> bool:
    """Return whether the mechanism has loops and moves in a plane.

    The bars of a real linkage lie in parallel layers. In the model they overlap, so their self-collisions mean nothing.
    """
    return bool(mechanism.closures) and view_direction(mechanism, q) is not DEFAULT_VIEW


def _is_in_plane(axis: Array, axes: Array | None, velocities: Array) -> bool:
    """Return whether rotation axes (3, n) are parallel to `axis` and linear velocities (3, n) are normal to it."""
    are_parallel = axes is None or np.abs(axes - axis[:, None] * (axis @ axes)).max(initial=0.0) <= PARALLEL_TOLERANCE
    return bool(are_parallel) and bool(np.abs(axis @ velocities).max(initial=0.0) <= PARALLEL_TOLERANCE)
