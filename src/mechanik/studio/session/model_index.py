"""Dofs, values and closures of a mechanism in the order that pages use, computed from q for each frame.

`ModelIndex` never changes after construction. `ClosureMeter` evaluates all closures at once: it fits the free dofs of
each closing joint to the relative pose of its two frames, and what remains is the closure error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mechanik.model import DoF, Joint, Link, Mechanism
from mechanik.model.dof import ROTATIONS, TRANSLATIONS, joint_values_from_pose
from mechanik.spatial import make_pose, quaternion, rotation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import DofInfo
from mechanik.studio.messages.requests import Vector

DOF_MOTION_ORDER = (*TRANSLATIONS, *reversed(ROTATIONS))
"""Order in which the dofs of a joint act."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexedDof:
    """A dof of a joint, or all rotations of a spherical joint, with its indices in q and in the frame values.

    Attributes:
        name: `elbow`, or `base.X` if the joint has several dofs.
        joint: name of the joint.
        joint_number: index of the joint.
        dof: None for a spherical joint.
        axis: in the frame of the joint.
        value_index: index of its first number in the frame values.
        q_index: index in q of its own coordinate, of that of its leader, or of the quaternion; -1 for a closing joint.
        ratio, offset: value = ratio * q[q_index] + offset.
        leader: index of the dof that it follows (mimic); -1: independent.
        closure: index of the loop that its joint closure_index; -1: none.
        other_dofs: number of other dofs of its joint.
    """

    name: str
    joint: str
    joint_number: int
    dof: DoF | None
    axis: Vector
    value_index: int
    q_index: int
    ratio: float = 1.0
    offset: float = 0.0
    leader: int = -1
    closure: int = -1
    other_dofs: int = 0

    @property
    def is_spherical(self) -> bool:
        return self.dof is None

    @property
    def is_rotational(self) -> bool:
        return self.dof is None or self.dof.is_rotation


def list_dofs(mechanism: Mechanism) -> tuple[IndexedDof, ...]:
    """Return all dofs that have a value, including those of closing joints, in the order of the joints."""
    indices_by_joint, names = mechanism.kinematics.joint_indices, list(mechanism.joints)
    closures = list(mechanism.closures)
    dofs: list[IndexedDof] = []
    leaders: dict[tuple[Joint, DoF], int] = {}
    value_count = 0
    for number, (name, joint) in enumerate(mechanism.joints.items()):
        indices = indices_by_joint.get(joint)
        closure_index = closures.index(name) if joint.is_closure else -1
        if indices is None and closure_index < 0:
            continue  # no link is attached to the joint, so it moves nothing
        axes = quaternion.to_matrix(joint.axes_wxyz)
        is_spherical = joint.has_quaternion
        scalar_dofs = [dof for dof in DOF_MOTION_ORDER if dof in joint.dof and not (is_spherical and dof.is_rotation)]
        other_dofs = len(scalar_dofs) + is_spherical - 1
        for dof in scalar_dofs:
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            x, y, z = axes[:, dof.axis_index].tolist()
            q_index = -1 if indices is None else indices.q.get(dof, -1)
            leaders[joint, dof] = len(dofs)
            dofs.append(
                IndexedDof(
                    label,
                    name,
                    number,
                    dof,
                    (x, y, z),
                    value_count,
                    q_index,
                    closure=closure_index,
                    other_dofs=other_dofs,
                )
            )
            value_count += 1
        if is_spherical:
            label = name if not scalar_dofs else f"{name}.rotation"
            x, y, z = axes[:, 2].tolist()
            q_index = -1 if indices is None or indices.quaternion_q is None else indices.quaternion_q
            dofs.append(
                IndexedDof(
                    label,
                    name,
                    number,
                    None,
                    (x, y, z),
                    value_count,
                    q_index,
                    closure=closure_index,
                    other_dofs=other_dofs,
                )
            )
            value_count += 3
    return tuple(_with_leader(dof, mechanism.joints[names[dof.joint_number]], leaders, dofs) for dof in dofs)


def _with_leader(
    indexed: IndexedDof, joint: Joint, leaders: dict[tuple[Joint, DoF], int], dofs: Sequence[IndexedDof]
) -> IndexedDof:
    """Return the dof with the data of its leader, if it is a mimic dof."""
    coupling = next((coupling for coupling in joint.couplings if coupling.dof is indexed.dof), None)
    if coupling is None:
        return indexed
    leader, dof, ratio, offset = coupling.resolve()
    leader_index = leaders[leader, dof]
    return replace(
        indexed, q_index=dofs[leader_index].q_index, ratio=ratio, offset=offset, leader=leader_index, closure=-1
    )


def dof_infos(mechanism: Mechanism, dofs: Sequence[IndexedDof], locked: frozenset[int]) -> list[DofInfo]:
    """Return the dofs as pages receive them."""
    return [_dof_info(mechanism.joints[dof.joint], dof, k in locked) for k, dof in enumerate(dofs)]


def _dof_info(joint: Joint, dof: IndexedDof, locked: bool) -> DofInfo:
    lower, upper, rest_value = -math.inf, math.inf, None
    if dof.dof is not None:
        lower, upper = joint.effective_limits(dof.dof)
        rest_value = joint.rest_value(dof.dof)
    return DofInfo(
        name=dof.name,
        joint=dof.joint_number,
        kind="spherical" if dof.dof is None else "rotation" if dof.dof.is_rotation else "translation",
        axis=dof.axis,
        value=dof.value_index,
        lower=lower if math.isfinite(lower) else None,
        upper=upper if math.isfinite(upper) else None,
        rest=rest_value,
        locked=locked,
        mimics=dof.leader,
    )


class DofValueReader:
    """Computes the values of all dofs, (V,), from q and from the closure measurements."""

    def __init__(self, dofs: Sequence[IndexedDof]) -> None:
        tree = [dof for dof in dofs if dof.closure < 0 and not dof.is_spherical]
        spherical = [dof for dof in dofs if dof.closure < 0 and dof.is_spherical]
        closing = [dof for dof in dofs if dof.closure >= 0 and dof.dof is not None]
        closing_spherical = [dof for dof in dofs if dof.closure >= 0 and dof.is_spherical]
        self.count = sum(3 if dof.is_spherical else 1 for dof in dofs)
        self._tree_to = np.array([dof.value_index for dof in tree], dtype=np.int64)
        self._tree_from = np.array([dof.q_index for dof in tree], dtype=np.int64)
        self._ratio, self._offset = np.array([dof.ratio for dof in tree]), np.array([dof.offset for dof in tree])
        self._spherical_to = np.array(
            [range(dof.value_index, dof.value_index + 3) for dof in spherical], dtype=np.int64
        ).reshape(-1, 3)
        self._spherical_from = np.array(
            [range(dof.q_index, dof.q_index + 4) for dof in spherical], dtype=np.int64
        ).reshape(-1, 4)
        self._closing_to = np.array([dof.value_index for dof in closing], dtype=np.int64)
        self._closing_from = (
            np.array([dof.closure for dof in closing], dtype=np.int64),
            np.array([int(dof.dof or 0) for dof in closing], dtype=np.int64),
        )
        self._rotation_vector_to = np.array(
            [range(dof.value_index, dof.value_index + 3) for dof in closing_spherical], dtype=np.int64
        ).reshape(-1, 3)
        self._rotation_vector_from = np.array([dof.closure for dof in closing_spherical], dtype=np.int64)

    def read(self, q: Array, measured: Array, rotation_vectors: Array) -> Array:
        """Return the values of all dofs, (V,), m and rad.

        Args:
            q: configuration, (nq,).
            measured: dof values of closing joints, (C, 6), see `ClosureState.values`.
            rotation_vectors: of closing spherical joints, (C, 3).
        """
        values = np.empty(self.count)
        values[self._tree_to] = self._ratio * q[self._tree_from] + self._offset
        if len(self._spherical_to):
            values[self._spherical_to] = quaternion.log(q[self._spherical_from])
        if len(self._closing_to):
            values[self._closing_to] = measured[self._closing_from]
        if len(self._rotation_vector_to):
            values[self._rotation_vector_to] = rotation_vectors[self._rotation_vector_from]
        return values


FULL_ROTATION = 2 * np.pi
Indices = npt.NDArray[np.int64]


class ClosureState(NamedTuple):
    """Errors and joint values of all closures.

    Attributes:
        gaps: closure errors, (C, 2), m and rad, that remain with the best values of the free dofs.
        values: X Y Z EX EY EZ of each closing joint, (C, 6), m and rad; zero where not free.
        rotation_vectors: of closing spherical joints, (C, 3), rad.
    """

    gaps: Array
    values: Array
    rotation_vectors: Array


class ClosureMeter:
    """Measures all closures of a mechanism; angles are unwrapped to be nearest to those at construction.

    Frame a is the frame of the closing joint on its parent link (or the world), frame b its frame on the closed link.
    Closures are grouped by the number of free rotations of the joint, since each number has its own formulas.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        links = {link: k for k, link in enumerate(mechanism.links.values())}
        closures = list(mechanism.closures.values())
        self.count = len(closures)
        frames: list[tuple[Array, Array]] = []
        ends: list[tuple[int, int]] = []
        for closure in closures:
            axes = make_pose(quaternion.to_matrix(closure.joint.axes_wxyz), np.zeros(3))
            parent = closure.joint.parent
            ends.append((links[parent] if isinstance(parent, Link) else -1, links[closure.link]))
            frames.append((closure.joint.matrix @ axes, closure.at.matrix @ axes))
        self._a = np.array([a for a, _ in ends], dtype=np.int64)
        self._b = np.array([b for _, b in ends], dtype=np.int64)
        self._attached_to_world = np.flatnonzero(self._a < 0)
        self._X_a = np.array([a for a, _ in frames]).reshape(-1, 4, 4)
        self._X_b = np.array([b for _, b in frames]).reshape(-1, 4, 4)
        free = np.array([[dof in closure.free_dof for dof in DoF] for closure in closures], dtype=bool).reshape(-1, 6)
        self._free_translations = free[:, :3]
        self._is_spherical = np.array(
            [isinstance(closure.joint, Joint) and closure.joint.has_quaternion for closure in closures], dtype=bool
        )
        ranges = [closure.joint._values_and_limits() for closure in closures]
        self._lower = np.array([lower for _, lower, _ in ranges]).reshape(-1, 6)
        self._upper = np.array([upper for _, _, upper in ranges]).reshape(-1, 6)
        self._reference_values = np.array([value for value, _, _ in ranges]).reshape(-1, 6)
        self._free = [tuple(dof for dof in DoF if row[dof]) for row in free]
        rotation_counts = free[:, 3:].sum(axis=1)
        self._one_rotation = [(k, np.flatnonzero((rotation_counts == 1) & free[:, 3 + k])) for k in range(3)]
        self._one_rotation = [(k, rows) for k, rows in self._one_rotation if rows.size]
        self._no_rotation = np.flatnonzero(rotation_counts == 0)
        two_rotations = [
            (pair, np.flatnonzero((rotation_counts == 2) & free[:, pair].all(axis=1))) for pair in TWO_ROTATIONS
        ]
        self._two_rotations = [(pair, rows) for pair, rows in two_rotations if rows.size]
        self._three_rotations = [int(k) for k in np.flatnonzero((rotation_counts == 3) & ~self._is_spherical)]

    def measure(self, X: Array) -> ClosureState:
        """Return errors and joint values of all closures.

        Args:
            X: poses of all links in the world, (L, 4, 4).
        """
        if not self.count:
            return ClosureState(np.zeros((0, 2)), np.zeros((0, 6)), np.zeros((0, 3)))
        X_parent = X[self._a]
        X_parent[self._attached_to_world] = np.eye(4)
        X_world_a = X_parent @ self._X_a
        X_world_b = X[self._b] @ self._X_b
        R_a_world = X_world_a[:, :3, :3].swapaxes(1, 2)
        R = R_a_world @ X_world_b[:, :3, :3]
        p = (R_a_world @ (X_world_b[:, :3, 3] - X_world_a[:, :3, 3])[:, :, None])[:, :, 0]
        gaps, values, rotation_vectors = np.zeros((self.count, 2)), np.zeros((self.count, 6)), np.zeros((self.count, 3))
        values[:, :3] = np.where(self._free_translations, np.clip(p, self._lower[:, :3], self._upper[:, :3]), 0.0)
        gaps[:, 0] = np.sqrt(((p - values[:, :3]) ** 2).sum(axis=1))
        for k, rows in self._one_rotation:
            i, j, R_rows = (k + 1) % 3, (k + 2) % 3, R[rows]
            values[rows, 3 + k] = self._unwrap(_angle_about(k, R_rows), rows, 3 + k)
            gaps[rows, 1] = np.arctan2(np.hypot(R_rows[:, i, k], R_rows[:, j, k]), R_rows[:, k, k])
        for pair, rows in self._two_rotations:
            angles, R_joint = TWO_ROTATIONS[pair](R[rows])
            for k in pair:
                values[rows, k] = self._unwrap(angles[k], rows, k)
            gaps[rows, 1] = _rotation_angles(R[rows] @ R_joint.swapaxes(1, 2))
        if self._no_rotation.size:
            gaps[self._no_rotation, 1] = _rotation_angles(R[self._no_rotation])
        for k in self._three_rotations:
            joint_values = joint_values_from_pose(
                make_pose(R[k], p[k]), self._free[k], self._reference_values[k], self._lower[k], self._upper[k]
            )
            values[k, 3:] = joint_values[3:]
            R_joint = (
                rotation.about_z(joint_values[5])
                @ rotation.about_y(joint_values[4])
                @ rotation.about_x(joint_values[3])
            )
            gaps[k, 1] = _rotation_angles((R[k] @ R_joint.T)[None])[0]
        if self._is_spherical.any():
            rotation_vectors[self._is_spherical] = rotation.log(R[self._is_spherical])
        return ClosureState(gaps, values, rotation_vectors)

    def _unwrap(self, angle: Array, rows: Indices, k: int) -> Array:
        """Add full rotations to angles: nearest to those at construction, and inside the limits if possible."""
        reference, lower, upper = (values[rows][:, k] for values in (self._reference_values, self._lower, self._upper))
        unwrapped: Array = angle + FULL_ROTATION * np.round((reference - angle) / FULL_ROTATION)
        unwrapped = np.where(
            (unwrapped < lower) & (unwrapped + FULL_ROTATION <= upper), unwrapped + FULL_ROTATION, unwrapped
        )
        return np.where(
            (unwrapped > upper) & (unwrapped - FULL_ROTATION >= lower), unwrapped - FULL_ROTATION, unwrapped
        )


def _angle_about(k: int, R: Array) -> Array:
    """Return the rotation angles about axis k that are closest to R (n, 3, 3)."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return np.arctan2(R[:, j, i] - R[:, i, j], R[:, i, i] + R[:, j, j])


def _x_and_y_rotation(R: Array) -> tuple[dict[DoF, Array], Array]:
    """Return the angles about x and y that are closest to R (n, 3, 3), and their rotations."""
    Y = rotation.about_y(y := np.arctan2(-R[:, 2, 0], R[:, 0, 0]))
    x = _angle_about(0, Y.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EY: y}, Y @ rotation.about_x(x)


def _y_and_z_rotation(R: Array) -> tuple[dict[DoF, Array], Array]:
    """Return the angles about y and z that are closest to R (n, 3, 3), and their rotations."""
    Y = rotation.about_y(y := np.arctan2(-R[:, 2, 0], R[:, 2, 2]))
    z = _angle_about(2, R @ Y.swapaxes(1, 2))
    return {DoF.EY: y, DoF.EZ: z}, rotation.about_z(z) @ Y


def _x_and_z_rotation(R: Array) -> tuple[dict[DoF, Array], Array]:
    """Return the angles about x and z that are closest to R (n, 3, 3), and their rotations."""
    Z = rotation.about_z(z := np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    x = _angle_about(0, Z.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EZ: z}, Z @ rotation.about_x(x)


TWO_ROTATIONS = {
    (DoF.EX, DoF.EY): _x_and_y_rotation,
    (DoF.EY, DoF.EZ): _y_and_z_rotation,
    (DoF.EX, DoF.EZ): _x_and_z_rotation,
}
"""For two free rotations: a function of R (n, 3, 3) to the closest angles (n,) and their rotations.

The convention is that of `joint_values_from_pose`.
"""


def _rotation_angles(R: Array) -> Array:
    """Return the angles of rotations (n, 3, 3) as (n,), rad, accurate near zero."""
    x, y, z = R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]
    return np.arctan2(np.sqrt(x * x + y * y + z * z), np.einsum("nii->n", R) - 1.0)


class ModelIndex:
    """Kinematics of a mechanism for frames; its methods may be called from any thread.

    Attributes:
        link_names: names of the links, in order.
        link_numbers: index of each link, by name.
        dofs: dofs as pages show them.
        nq: size of q.
        value_count: size of the values of all dofs.
        closure_meter: measures the closures.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._kinematics = mechanism.kinematics
        self.link_names: tuple[str, ...] = tuple(mechanism.links)
        self.link_numbers: Mapping[str, int] = {name: k for k, name in enumerate(self.link_names)}
        self.dofs = list_dofs(mechanism)
        self.nq = mechanism.nq
        self.closure_meter = ClosureMeter(mechanism)
        self._values = DofValueReader(self.dofs)
        self.value_count = self._values.count
        masses = [link.inertial.mass if link.inertial is not None else 0.0 for link in mechanism.links.values()]
        self._total_mass = float(sum(masses))
        self._masses = np.array(masses)
        self._centres = np.array(
            [np.zeros(3) if link.inertial is None else link.inertial.pose.position for link in mechanism.links.values()]
        ).reshape(-1, 3)

    def link_poses(self, q: Array) -> Array:
        """Return the poses of all links in the world, (L, 4, 4)."""
        return self._kinematics.poses(q)

    def measure_closures(self, X: Array) -> ClosureState:
        return self.closure_meter.measure(X)

    def dof_values(self, q: Array, closures: ClosureState) -> Array:
        """Return the values of all dofs, (V,), m and rad."""
        return self._values.read(q, closures.values, closures.rotation_vectors)

    def dof_values_at(self, q: Array) -> Array:
        return self.dof_values(q, self.measure_closures(self.link_poses(q)))

    def centre_of_mass(self, X: Array) -> Array | None:
        """Return the centre of mass in the world, (3,), m; None if no link has mass."""
        if self._total_mass <= 0.0:
            return None
        centres = (X[:, :3, :3] @ self._centres[:, :, None])[:, :, 0] + X[:, :3, 3]
        return self._masses @ centres / self._total_mass
