"""Index of the dofs of a mechanism in the order that pages use, and their values and closure gaps for state frames.

`ModelIndex` never changes after construction. `ClosureMeter` evaluates all closures at once: it fits the free dofs of
each closing joint to the relative pose of its two frames. The part of the relative pose that no free dof can produce is
the closure gap.

Shapes: L links, C closures, V values of all dofs (three for a spherical joint, one for any other dof).
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
    """A dof of a joint, or all rotations of a spherical joint, with its indices in q and in the values of state frames.

    Attributes:
        name: `elbow` if the joint has one entry; else `base.X`, and `base.rotation` for its spherical entry.
        joint: name of the joint.
        joint_index: index of the joint.
        dof: the dof of the joint; None for the rotations of a spherical joint.
        axis: unit vector in the frame of the joint; its z axis for a spherical joint.
        value_index: index of its first value in the values of a state frame.
        q_index: index in q of its coordinate, or of the first entry of its quaternion. A mimic dof has the index of its
            leader. -1 for an independent dof of a closing joint.
        ratio, offset: value = ratio * q[q_index] + offset; 1 and 0 for an independent dof.
        leader_index: index of the dof that a mimic dof follows; -1: the dof is independent.
        closure_index: index of the closure, if the joint closes a loop and the dof is independent; else -1.
        other_dof_count: number of other entries of its joint; the rotations of a spherical joint are one entry.
    """

    name: str
    joint: str
    joint_index: int
    dof: DoF | None
    axis: Vector
    value_index: int
    q_index: int
    ratio: float = 1.0
    offset: float = 0.0
    leader_index: int = -1
    closure_index: int = -1
    other_dof_count: int = 0

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
    index_by_dof: dict[tuple[Joint, DoF], int] = {}
    value_count = 0
    for joint_index, (name, joint) in enumerate(mechanism.joints.items()):
        indices = indices_by_joint.get(joint)
        closure_index = closures.index(name) if joint.is_closure else -1
        if indices is None and closure_index < 0:
            continue  # no link is attached to the joint, so it moves nothing
        axes = quaternion.to_matrix(joint.axes_wxyz)
        is_spherical = joint.has_quaternion
        scalar_dofs = [dof for dof in DOF_MOTION_ORDER if dof in joint.dof and not (is_spherical and dof.is_rotation)]
        other_dof_count = len(scalar_dofs) + is_spherical - 1
        for dof in scalar_dofs:
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            x, y, z = axes[:, dof.axis_index].tolist()
            q_index = -1 if indices is None else indices.q.get(dof, -1)
            index_by_dof[joint, dof] = len(dofs)
            dofs.append(
                IndexedDof(
                    label,
                    name,
                    joint_index,
                    dof,
                    (x, y, z),
                    value_count,
                    q_index,
                    closure_index=closure_index,
                    other_dof_count=other_dof_count,
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
                    joint_index,
                    None,
                    (x, y, z),
                    value_count,
                    q_index,
                    closure_index=closure_index,
                    other_dof_count=other_dof_count,
                )
            )
            value_count += 3
    return tuple(_with_leader(dof, mechanism.joints[names[dof.joint_index]], index_by_dof, dofs) for dof in dofs)


def _with_leader(
    indexed_dof: IndexedDof, joint: Joint, index_by_dof: dict[tuple[Joint, DoF], int], dofs: Sequence[IndexedDof]
) -> IndexedDof:
    """Return the dof with the data of its leader, if it is a mimic dof."""
    coupling = next((coupling for coupling in joint.couplings if coupling.dof is indexed_dof.dof), None)
    if coupling is None:
        return indexed_dof
    leader, dof, ratio, offset = coupling.resolve()
    leader_index = index_by_dof[leader, dof]
    return replace(
        indexed_dof,
        q_index=dofs[leader_index].q_index,
        ratio=ratio,
        offset=offset,
        leader_index=leader_index,
        closure_index=-1,
    )


def dof_infos(mechanism: Mechanism, dofs: Sequence[IndexedDof], locked_dofs: frozenset[int]) -> list[DofInfo]:
    """Return the dofs as pages receive them."""
    return [_dof_info(mechanism.joints[dof.joint], dof, k in locked_dofs) for k, dof in enumerate(dofs)]


def _dof_info(joint: Joint, dof: IndexedDof, is_locked: bool) -> DofInfo:
    lower, upper, rest_value = -math.inf, math.inf, None
    if dof.dof is not None:
        lower, upper = joint.effective_limits(dof.dof)
        rest_value = joint.rest_value(dof.dof)
    return DofInfo(
        name=dof.name,
        joint=dof.joint_index,
        kind="spherical" if dof.dof is None else "rotation" if dof.dof.is_rotation else "translation",
        axis=dof.axis,
        value=dof.value_index,
        lower=lower if math.isfinite(lower) else None,
        upper=upper if math.isfinite(upper) else None,
        rest=rest_value,
        locked=is_locked,
        mimics=dof.leader_index,
    )


class DofValueReader:
    """Computes the values of all dofs, (V,), from q and from the measured closures."""

    def __init__(self, dofs: Sequence[IndexedDof]) -> None:
        tree_dofs = [dof for dof in dofs if dof.closure_index < 0 and not dof.is_spherical]
        spherical_dofs = [dof for dof in dofs if dof.closure_index < 0 and dof.is_spherical]
        closing_dofs = [dof for dof in dofs if dof.closure_index >= 0 and dof.dof is not None]
        closing_spherical_dofs = [dof for dof in dofs if dof.closure_index >= 0 and dof.is_spherical]
        self.count = sum(3 if dof.is_spherical else 1 for dof in dofs)
        self._tree_value_indices = np.array([dof.value_index for dof in tree_dofs], dtype=np.int64)
        self._tree_q_indices = np.array([dof.q_index for dof in tree_dofs], dtype=np.int64)
        self._ratios, self._offsets = (
            np.array([dof.ratio for dof in tree_dofs]),
            np.array([dof.offset for dof in tree_dofs]),
        )
        self._spherical_value_indices = np.array(
            [range(dof.value_index, dof.value_index + 3) for dof in spherical_dofs], dtype=np.int64
        ).reshape(-1, 3)
        self._spherical_q_indices = np.array(
            [range(dof.q_index, dof.q_index + 4) for dof in spherical_dofs], dtype=np.int64
        ).reshape(-1, 4)
        self._closing_value_indices = np.array([dof.value_index for dof in closing_dofs], dtype=np.int64)
        self._closing_entries = (
            np.array([dof.closure_index for dof in closing_dofs], dtype=np.int64),
            np.array([int(dof.dof or 0) for dof in closing_dofs], dtype=np.int64),
        )
        self._rotation_vector_value_indices = np.array(
            [range(dof.value_index, dof.value_index + 3) for dof in closing_spherical_dofs], dtype=np.int64
        ).reshape(-1, 3)
        self._rotation_vector_closures = np.array([dof.closure_index for dof in closing_spherical_dofs], dtype=np.int64)

    def read(self, q: Array, closure_values: Array, rotation_vectors: Array) -> Array:
        """Return the values of all dofs, (V,), m and rad.

        Args:
            q: configuration, (nq,).
            closure_values: dof values of closing joints, (C, 6), see `ClosureState.values`.
            rotation_vectors: rotation vectors of closing spherical joints, (C, 3), rad.
        """
        values = np.empty(self.count)
        values[self._tree_value_indices] = self._ratios * q[self._tree_q_indices] + self._offsets
        if len(self._spherical_value_indices):
            values[self._spherical_value_indices] = quaternion.log(q[self._spherical_q_indices])
        if len(self._closing_value_indices):
            values[self._closing_value_indices] = closure_values[self._closing_entries]
        if len(self._rotation_vector_value_indices):
            values[self._rotation_vector_value_indices] = rotation_vectors[self._rotation_vector_closures]
        return values


FULL_ROTATION = 2 * np.pi
Indices = npt.NDArray[np.int64]


class ClosureState(NamedTuple):
    """Gaps and joint values of all closures.

    Attributes:
        gaps: closure gaps with the best values of the free dofs, (C, 2), m and rad.
        values: X Y Z EX EY EZ of each closing joint, (C, 6), m and rad; zero for dofs that are not free, and for the
            rotations of a spherical joint.
        rotation_vectors: rotation vectors of closing spherical joints, (C, 3), rad; zero for other joints.
    """

    gaps: Array
    values: Array
    rotation_vectors: Array


class ClosureMeter:
    """Measures all closures of a mechanism; full rotations are added to angles, see `_unwrap`.

    Frame a is the frame of the closing joint on its parent link (or the world). Frame b is the frame of the closure on
    the other link. Closures are grouped by the number of free rotations of the joint, since each number has its own
    formulas.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        links = {link: k for k, link in enumerate(mechanism.links.values())}
        closures = list(mechanism.closures.values())
        self.count = len(closures)
        closure_frames: list[tuple[Array, Array]] = []
        closure_links: list[tuple[int, int]] = []
        for closure in closures:
            axes = make_pose(quaternion.to_matrix(closure.joint.axes_wxyz), np.zeros(3))
            parent = closure.joint.parent
            closure_links.append((links[parent] if isinstance(parent, Link) else -1, links[closure.link]))
            closure_frames.append((closure.joint.matrix @ axes, closure.at.matrix @ axes))
        self._link_a_indices = np.array([a for a, _ in closure_links], dtype=np.int64)
        self._link_b_indices = np.array([b for _, b in closure_links], dtype=np.int64)
        self._closures_to_world = np.flatnonzero(self._link_a_indices < 0)
        self._X_link_a = np.array([X_link_a for X_link_a, _ in closure_frames]).reshape(-1, 4, 4)
        self._X_link_b = np.array([X_link_b for _, X_link_b in closure_frames]).reshape(-1, 4, 4)
        is_free = np.array([[dof in closure.free_dof for dof in DoF] for closure in closures], dtype=bool).reshape(
            -1, 6
        )
        self._is_free_translation = is_free[:, :3]
        self._is_spherical = np.array(
            [isinstance(closure.joint, Joint) and closure.joint.has_quaternion for closure in closures], dtype=bool
        )
        values_and_limits = [closure.joint._values_and_limits() for closure in closures]
        self._lower = np.array([lower for _, lower, _ in values_and_limits]).reshape(-1, 6)
        self._upper = np.array([upper for _, _, upper in values_and_limits]).reshape(-1, 6)
        self._reference_values = np.array([value for value, _, _ in values_and_limits]).reshape(-1, 6)
        self._free_dofs = [tuple(dof for dof in DoF if row[dof]) for row in is_free]
        rotation_counts = is_free[:, 3:].sum(axis=1)
        self._one_rotation = [(k, np.flatnonzero((rotation_counts == 1) & is_free[:, 3 + k])) for k in range(3)]
        self._one_rotation = [(k, rows) for k, rows in self._one_rotation if rows.size]
        self._no_rotation = np.flatnonzero(rotation_counts == 0)
        two_rotations = [
            (pair, np.flatnonzero((rotation_counts == 2) & is_free[:, pair].all(axis=1))) for pair in TWO_ROTATIONS
        ]
        self._two_rotations = [(pair, rows) for pair, rows in two_rotations if rows.size]
        self._three_rotations = [int(k) for k in np.flatnonzero((rotation_counts == 3) & ~self._is_spherical)]

    def measure(self, X_world_link: Array) -> ClosureState:
        """Return gaps and joint values of all closures.

        Args:
            X_world_link: poses of all links in the world, (L, 4, 4).
        """
        if not self.count:
            return ClosureState(np.zeros((0, 2)), np.zeros((0, 6)), np.zeros((0, 3)))
        X_world_link_a = X_world_link[self._link_a_indices]
        X_world_link_a[self._closures_to_world] = np.eye(4)
        X_world_a = X_world_link_a @ self._X_link_a
        X_world_b = X_world_link[self._link_b_indices] @ self._X_link_b
        R_a_world = X_world_a[:, :3, :3].swapaxes(1, 2)
        R_ab = R_a_world @ X_world_b[:, :3, :3]
        p_ab = (R_a_world @ (X_world_b[:, :3, 3] - X_world_a[:, :3, 3])[:, :, None])[:, :, 0]
        gaps, values, rotation_vectors = np.zeros((self.count, 2)), np.zeros((self.count, 6)), np.zeros((self.count, 3))
        values[:, :3] = np.where(self._is_free_translation, np.clip(p_ab, self._lower[:, :3], self._upper[:, :3]), 0.0)
        gaps[:, 0] = np.sqrt(((p_ab - values[:, :3]) ** 2).sum(axis=1))
        for k, rows in self._one_rotation:
            i, j, R_ab_rows = (k + 1) % 3, (k + 2) % 3, R_ab[rows]
            values[rows, 3 + k] = self._unwrap(_angle_about(k, R_ab_rows), rows, 3 + k)
            gaps[rows, 1] = np.arctan2(np.hypot(R_ab_rows[:, i, k], R_ab_rows[:, j, k]), R_ab_rows[:, k, k])
        for pair, rows in self._two_rotations:
            angles, R_joint = TWO_ROTATIONS[pair](R_ab[rows])
            for k in pair:
                values[rows, k] = self._unwrap(angles[k], rows, k)
            gaps[rows, 1] = _rotation_angles(R_ab[rows] @ R_joint.swapaxes(1, 2))
        if self._no_rotation.size:
            gaps[self._no_rotation, 1] = _rotation_angles(R_ab[self._no_rotation])
        for k in self._three_rotations:
            joint_values = joint_values_from_pose(
                make_pose(R_ab[k], p_ab[k]),
                self._free_dofs[k],
                self._reference_values[k],
                self._lower[k],
                self._upper[k],
            )
            values[k, 3:] = joint_values[3:]
            R_joint = (
                rotation.about_z(joint_values[5])
                @ rotation.about_y(joint_values[4])
                @ rotation.about_x(joint_values[3])
            )
            gaps[k, 1] = _rotation_angles((R_ab[k] @ R_joint.T)[None])[0]
        if self._is_spherical.any():
            rotation_vectors[self._is_spherical] = rotation.log(R_ab[self._is_spherical])
        return ClosureState(gaps, values, rotation_vectors)

    def _unwrap(self, angles: Array, rows: Indices, k: int) -> Array:
        """Add full rotations to the angles of some closures.

        The result is nearest to the joint value at construction. If it is outside a limit, one full rotation towards
        this limit is added, unless the result would exceed the other limit.

        Args:
            angles: (n,), rad.
            rows: indices of the closures, (n,).
            k: index of the dof, 3 to 5.
        """
        reference_angles, lower, upper = (
            values[rows][:, k] for values in (self._reference_values, self._lower, self._upper)
        )
        unwrapped_angles: Array = angles + FULL_ROTATION * np.round((reference_angles - angles) / FULL_ROTATION)
        unwrapped_angles = np.where(
            (unwrapped_angles < lower) & (unwrapped_angles + FULL_ROTATION <= upper),
            unwrapped_angles + FULL_ROTATION,
            unwrapped_angles,
        )
        return np.where(
            (unwrapped_angles > upper) & (unwrapped_angles - FULL_ROTATION >= lower),
            unwrapped_angles - FULL_ROTATION,
            unwrapped_angles,
        )


def _angle_about(k: int, R: Array) -> Array:
    """Return the angles (n,), rad, of the rotations about axis k (0, 1, 2) that are closest to R (n, 3, 3)."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return np.arctan2(R[:, j, i] - R[:, i, j], R[:, i, i] + R[:, j, j])


def _x_and_y_rotation(R: Array) -> tuple[dict[DoF, Array], Array]:
    """Return angles (n,) about x and y, rad, and the rotations (n, 3, 3) with these angles, equal or near to R."""
    Y = rotation.about_y(y := np.arctan2(-R[:, 2, 0], R[:, 0, 0]))
    x = _angle_about(0, Y.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EY: y}, Y @ rotation.about_x(x)


def _y_and_z_rotation(R: Array) -> tuple[dict[DoF, Array], Array]:
    """Return angles (n,) about y and z, rad, and the rotations (n, 3, 3) with these angles, equal or near to R."""
    Y = rotation.about_y(y := np.arctan2(-R[:, 2, 0], R[:, 2, 2]))
    z = _angle_about(2, R @ Y.swapaxes(1, 2))
    return {DoF.EY: y, DoF.EZ: z}, rotation.about_z(z) @ Y


def _x_and_z_rotation(R: Array) -> tuple[dict[DoF, Array], Array]:
    """Return angles (n,) about x and z, rad, and the rotations (n, 3, 3) with these angles, equal or near to R."""
    Z = rotation.about_z(z := np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    x = _angle_about(0, Z.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EZ: z}, Z @ rotation.about_x(x)


TWO_ROTATIONS = {
    (DoF.EX, DoF.EY): _x_and_y_rotation,
    (DoF.EY, DoF.EZ): _y_and_z_rotation,
    (DoF.EX, DoF.EZ): _x_and_z_rotation,
}
"""For each pair of free rotations: a function that returns their angles and the rotations with these angles.

The rotations act in the same order as in `joint_values_from_pose`.
"""


def _rotation_angles(R: Array) -> Array:
    """Return the angles of rotations (n, 3, 3) as (n,), rad, accurate near zero."""
    x, y, z = R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]
    return np.arctan2(np.sqrt(x * x + y * y + z * z), np.einsum("nii->n", R) - 1.0)


class ModelIndex:
    """Names and indices of links and dofs, and kinematics, for state frames (the binary messages that pages draw).

    The methods may be called from any thread.

    Attributes:
        link_names: names of the links, in the order of `Mechanism.links`.
        link_indices: index of each link, by name.
        dofs: dofs as pages show them.
        nq: size of q.
        value_count: number of values of all dofs, V.
        closure_meter: measures the closures.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._kinematics = mechanism.kinematics
        self.link_names: tuple[str, ...] = tuple(mechanism.links)
        self.link_indices: Mapping[str, int] = {name: k for k, name in enumerate(self.link_names)}
        self.dofs = list_dofs(mechanism)
        self.nq = mechanism.nq
        self.closure_meter = ClosureMeter(mechanism)
        self._value_reader = DofValueReader(self.dofs)
        self.value_count = self._value_reader.count
        masses = [link.inertial.mass if link.inertial is not None else 0.0 for link in mechanism.links.values()]
        self._total_mass = float(sum(masses))
        self._masses = np.array(masses)
        self._p_link_centre = np.array(
            [np.zeros(3) if link.inertial is None else link.inertial.pose.position for link in mechanism.links.values()]
        ).reshape(-1, 3)

    def link_poses(self, q: Array) -> Array:
        """Return the poses of all links in the world, (L, 4, 4), at q (nq,)."""
        return self._kinematics.poses(q)

    def measure_closures(self, X: Array) -> ClosureState:
        """Return gaps and joint values of all closures, for link poses X (L, 4, 4)."""
        return self.closure_meter.measure(X)

    def dof_values(self, q: Array, closures: ClosureState) -> Array:
        """Return the values of all dofs, (V,), m and rad."""
        return self._value_reader.read(q, closures.values, closures.rotation_vectors)

    def dof_values_at(self, q: Array) -> Array:
        """Return the values of all dofs at q (nq,), (V,), m and rad."""
        return self.dof_values(q, self.measure_closures(self.link_poses(q)))

    def centre_of_mass(self, X: Array) -> Array | None:
        """Return the centre of mass in the world, (3,), m, for link poses X (L, 4, 4); None if no link has mass."""
        if self._total_mass <= 0.0:
            return None
        p_world_centre = (X[:, :3, :3] @ self._p_link_centre[:, :, None])[:, :, 0] + X[:, :3, 3]
        return self._masses @ p_world_centre / self._total_mass
