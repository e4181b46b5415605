"""Shapes and inertia of the bodies of an MJCF model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mechanik.errors import ShapeError
from mechanik.formats.ellipsoid_hull import ellipsoid_shape
from mechanik.formats.mjcf.compiled_model import MjcfModel
from mechanik.model.shapes import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    HeightField,
    Inertial,
    Material,
    Mesh,
    Shape,
    ShapeInstance,
    Sphere,
)
from mechanik.spatial import Pose, from_position_wxyz, inverse

FIRST_HIDDEN_GROUP = 3
"""Lowest geom group that MuJoCo's viewer hides by default; by convention, such groups are only for collisions."""


class GeomReader:
    """Converts the geoms of a model to shapes; `report` warns about the geoms without a matching shape."""

    def __init__(self, model: MjcfModel, folder: Path | None) -> None:
        self.model, self.folder = model, folder
        self._ignored_counts: dict[str, int] = {}

    def read_shapes(self, body: int) -> tuple[list[ShapeInstance], list[ShapeInstance]]:
        """Return the visuals (drawn geoms) and the collisions (geoms with contacts) of a body; a geom can be both."""
        mj_model = self.model.mj_model
        visuals: list[ShapeInstance] = []
        collisions: list[ShapeInstance] = []
        first_geom = int(mj_model.body_geomadr[body])
        for geom in range(first_geom, first_geom + int(mj_model.body_geomnum[body])):
            instance = self._read_shape_instance(geom)
            if instance is None:
                continue
            if int(mj_model.geom_group[geom]) < FIRST_HIDDEN_GROUP:
                visuals.append(instance)
            if mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom]:
                collisions.append(instance)
        return visuals, collisions

    def report(self) -> None:
        """Add one warning for all geoms of the model without a matching shape."""
        if self._ignored_counts:
            counts_text = ", ".join(f"{count} of type {kind}" for kind, count in self._ignored_counts.items())
            self.model.warn(f"geoms without a matching shape are ignored: {counts_text}")

    def _read_shape_instance(self, geom: int) -> ShapeInstance | None:
        shape, X_body_shape = self._read_shape(geom), self.model.pose_of("geom", geom)
        if shape is None:
            return None
        if isinstance(shape, Mesh):  # MuJoCo moves a mesh to its principal axes; `Mesh` uses the frame of the file
            mesh, mj_model = int(self.model.mj_model.geom_dataid[geom]), self.model.mj_model
            X_body_shape = X_body_shape @ inverse(from_position_wxyz(mj_model.mesh_pos[mesh], mj_model.mesh_quat[mesh]))
        name = self.model.name_of("geom", geom)
        return ShapeInstance(shape, Pose.from_matrix(X_body_shape), self._read_material(geom), name)

    def _read_shape(self, geom: int) -> Shape | None:
        mj_model, geom_types = self.model.mj_model, self.model.mujoco.mjtGeom
        geom_type = int(mj_model.geom_type[geom])
        a, b, c = (float(size) for size in mj_model.geom_size[geom])
        if geom_type == geom_types.mjGEOM_BOX:
            return Box((2 * a, 2 * b, 2 * c))
        if geom_type == geom_types.mjGEOM_SPHERE:
            return Sphere(a)
        if geom_type == geom_types.mjGEOM_CYLINDER:
            return Cylinder(a, 2 * b)
        if geom_type == geom_types.mjGEOM_CAPSULE:
            return Capsule(a, 2 * b)
        if geom_type == geom_types.mjGEOM_ELLIPSOID:
            return self._read_ellipsoid((a, b, c))
        if geom_type == geom_types.mjGEOM_MESH:
            return self._read_mesh(int(mj_model.geom_dataid[geom]))
        if geom_type == geom_types.mjGEOM_PLANE:  # infinite for contacts; its size is for display
            return HalfSpace()
        if geom_type == geom_types.mjGEOM_HFIELD:
            return self._read_height_field(int(mj_model.geom_dataid[geom]))
        self._count_ignored(geom_types(geom_type).name.removeprefix("mjGEOM_").lower())
        return None

    def _read_height_field(self, field: int) -> HeightField:
        """Return a height field. MuJoCo stores heights from 0 to 1, a row for each y, and half sizes along x and y."""
        mj_model = self.model.mj_model
        x, y, top, bottom = (float(size) for size in mj_model.hfield_size[field])
        row_count, column_count, data_start = (
            int(values[field]) for values in (mj_model.hfield_nrow, mj_model.hfield_ncol, mj_model.hfield_adr)
        )
        heights = np.array(
            mj_model.hfield_data[data_start : data_start + row_count * column_count], dtype=np.float64
        ).reshape(row_count, column_count)
        return HeightField(top * heights, (2 * x, 2 * y), -bottom)

    def _read_ellipsoid(self, radii: tuple[float, float, float]) -> Shape | None:
        try:
            return ellipsoid_shape(radii)
        except ShapeError:
            self._count_ignored("ellipsoid without a volume")
            return None

    def _read_mesh(self, mesh: int) -> Mesh | None:
        file = self.model.mesh_file(mesh)
        if not file:
            self._count_ignored("mesh without a file")
            return None
        sx, sy, sz = (float(scale) for scale in self.model.mj_model.mesh_scale[mesh])
        if self.model.sanitized_mjcf is not None:
            return Mesh(self.model.sanitized_mjcf.mesh_uris.get(file, file), (sx, sy, sz))
        folder = self.folder or Path()
        # MuJoCo stores the path that it opened, or, in some versions, the path as the MJCF file gives it
        path = next((path for path in (Path(file), folder / file) if path.is_file()), None)
        uri = Path(file).relative_to(folder).as_posix() if Path(file).is_relative_to(folder) else file
        return Mesh(uri, (sx, sy, sz), None if path is None else str(path))

    def _read_material(self, geom: int) -> Material:
        mj_model = self.model.mj_model
        material = int(mj_model.geom_matid[geom])
        r, g, b, a = (
            float(channel) for channel in (mj_model.geom_rgba[geom] if material < 0 else mj_model.mat_rgba[material])
        )
        return Material("" if material < 0 else self.model.name_of("material", material), (r, g, b, a))

    def _count_ignored(self, kind: str) -> None:
        self._ignored_counts[kind] = self._ignored_counts.get(kind, 0) + 1


def read_body_inertial(model: MjcfModel, body: int) -> Inertial | None:
    """Return the mass (kg), the pose of the principal axes and the principal moments of inertia (kg m²) of a body.

    MuJoCo took them from the file or computed them from the geoms. None if the mass is zero, or unknown because MuJoCo
    had placeholders for meshes.
    """
    mj_model = model.mj_model
    mass = float(mj_model.body_mass[body])
    if mass <= 0.0 or body in model.bodies_without_mass:
        return None
    xx, yy, zz = (float(moment) for moment in mj_model.body_inertia[body])
    pose = Pose(mj_model.body_ipos[body].copy(), mj_model.body_iquat[body].copy())
    return Inertial(mass, pose, (xx, 0.0, 0.0, yy, 0.0, zz))
