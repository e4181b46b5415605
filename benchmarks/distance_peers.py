"""Signed distances by coal and by MuJoCo, for the pairs of `shape_pairs.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from processor_clock import MIN_SECONDS, clock, clock_overhead
from shape_pairs import Array, Pairs

from mechanik.kernels.distance.collision_layout import (
    BOX,
    CAPSULE,
    CYLINDER,
    HALF_SPACE,
    HULL,
    SPHERE,
    Shape,
)

FAR = 1e6
"""Metres: MuJoCo cuts distances off there."""


class CoalGaps:
    """Signed gaps by coal, its iterations as tight as they go; fields are not among its distances."""

    kinds = (SPHERE, CAPSULE, BOX, HALF_SPACE, CYLINDER, HULL)

    def __init__(self, tolerance: float = 1e-14) -> None:
        import coal

        self.coal = coal
        self.request = coal.DistanceRequest(True)
        self.request.enable_signed_distance = True
        self.request.gjk_tolerance = self.request.epa_tolerance = tolerance
        self.request.gjk_max_iterations, self.request.epa_max_iterations = 1000, 1000

    def gaps(self, pairs: Pairs) -> tuple[Array, float]:
        """(n, 4) gaps and normals, and seconds a pair, the call from Python included."""
        coal, n = self.coal, pairs.count
        hulls: dict[float, object] = {}
        shapes = [self._shape(shape, pairs.P, hulls) for shape in pairs.S]
        poses = [coal.Transform3s(row[:9].reshape(3, 3), row[9:]) for row in pairs.X]
        out, seconds = np.empty((n, 4)), 0.0
        for k in range(n):
            # a new result for each call: a result keeps the smallest distance of all calls
            result, first, second, X, Y = coal.DistanceResult(), shapes[k], shapes[n + k], poses[k], poses[n + k]
            start = clock()
            coal.distance(first, X, second, Y, self.request, result)
            seconds += clock() - start
            out[k, 0], out[k, 1:] = result.min_distance, np.asarray(result.normal).ravel()
        return out, max(seconds / n - clock_overhead(), MIN_SECONDS)

    def _shape(self, shape: Shape, P: Array, hulls: dict[float, object]) -> object:
        coal, kind, (x, y, z) = self.coal, shape.kind, shape.sizes
        if kind == SPHERE:
            return coal.Sphere(x)
        if kind == CAPSULE:
            return coal.Capsule(x, 2.0 * y)
        if kind == BOX:
            return coal.Box(2.0 * x, 2.0 * y, 2.0 * z)
        if kind == HALF_SPACE:
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        if kind == CYLINDER:
            return coal.Cylinder(x, 2.0 * y)
        if x not in hulls:
            points = coal.StdVec_Vec3s()
            points.extend(list(P[int(x) : int(x + y)]))
            hulls[x] = coal.Convex.convexHull(points, True, None)
        return hulls[x]


class MujocoGaps:
    """Signed gaps by `mj_geomDistance`, its iterations as tight as they go; not of height fields."""

    kinds = (SPHERE, CAPSULE, BOX, HALF_SPACE, CYLINDER, HULL)

    def __init__(self, tolerance: float = 1e-14) -> None:
        import mujoco

        self.mujoco, self.tolerance = mujoco, tolerance
        self._stored_model: tuple[Array, tuple[Any, dict[float, int]]] | None = None

    def as_stored(self, pairs: Pairs) -> Pairs:
        """The pairs with the hulls that MuJoCo makes of theirs: it centres and rotates them, and rounds to 32 bits."""
        model, geom_indices = self._model(pairs)
        P = pairs.P.copy()
        for mesh, first in enumerate(self._hulls(pairs)):
            start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
            P[int(first) : int(first) + count] = model.mesh_vert[start : start + count]
        self._stored_model = P, (model, geom_indices)
        return Pairs(pairs.S, P, pairs.X)

    def gaps(self, pairs: Pairs) -> tuple[Array, float]:
        """(n, 4) gaps and normals, and seconds a pair, the call from Python included; hulls `as_stored`."""
        mujoco, n = self.mujoco, pairs.count
        is_stored = self._stored_model is not None and self._stored_model[0] is pairs.P
        model, geom_indices = self._stored_model[1] if is_stored else self._model(pairs)
        data = mujoco.MjData(model)
        out, line, seconds = np.empty((n, 4)), np.empty(6), 0.0
        for k in range(n):
            ids = [0, 0]
            for side, row in enumerate((k, n + k)):
                shape = pairs.S[row]
                hull = shape.kind == HULL
                ids[side] = geom = side + 2 * (geom_indices[shape.sizes[0]] if hull else 0)
                if not hull:
                    model.geom_size[geom] = shape.sizes
                data.geom_xpos[geom], data.geom_xmat[geom] = pairs.X[row, 9:], pairs.X[row, :9]
            start = clock()
            d = mujoco.mj_geomDistance(model, data, ids[0], ids[1], FAR, line)
            seconds += clock() - start
            direction = line[3:] - line[:3]
            out[k, 0], out[k, 1:] = d, direction / max(np.linalg.norm(direction), 1e-300) * (1.0 if d > 0.0 else -1.0)
        return out, max(seconds / n - clock_overhead(), MIN_SECONDS)

    def _hulls(self, pairs: Pairs) -> list[float]:
        """The first rows in P of all hulls."""
        return sorted({shape.sizes[0] for shape in pairs.S if shape.kind == HULL})

    def _model(self, pairs: Pairs) -> tuple[Any, dict[float, int]]:
        """Geoms 2 k for the first shapes and 2 k + 1 for the second; hulls have a k for each set of points."""
        spec, types = self.mujoco.MjSpec(), self.mujoco.mjtGeom
        spec.option.ccd_tolerance, spec.option.ccd_iterations = self.tolerance, 1000
        names = {
            SPHERE: types.mjGEOM_SPHERE, CAPSULE: types.mjGEOM_CAPSULE, BOX: types.mjGEOM_BOX,
            HALF_SPACE: types.mjGEOM_PLANE, CYLINDER: types.mjGEOM_CYLINDER, HULL: types.mjGEOM_MESH,
        }  # fmt: skip
        hulls = self._hulls(pairs)
        counts = {shape.sizes[0]: shape.sizes[1] for shape in pairs.S if shape.kind == HULL}
        for k, first in enumerate(hulls):
            count = counts[first]
            spec.add_mesh(name=f"hull{k}", uservert=pairs.P[int(first) : int(first + count)].ravel().tolist())
        for k in range(max(len(hulls), 1)):
            for kind in (pairs.S[0].kind, pairs.S[-1].kind):
                geom = spec.worldbody.add_geom(type=names[kind], size=[0.1, 0.1, 0.1])
                if kind == HULL:
                    geom.meshname = f"hull{k}"
        return spec.compile(), {first: k for k, first in enumerate(hulls)}
