"""Dofs, values and closures of a mechanism in the order that pages use, computed from q for each frame.

`ModelIndex` never changes after construction. `ClosureMeter` evaluates all closures at once: it fits the free dofs of
each closing joint to the relative pose of its two frames, and the rest is the closure error.
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
        closure: index of the loop that its joint closes; -1: none.
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
    """Return all dofs that have a value, with those of closing joints, in the order of the joints."""
    slots, names = mechanism.kinematics.joint_indices, list(mechanism.joints)
    closures = list(mechanism.closures)
    dofs: list[IndexedDof] = []
    leaders: dict[tuple[Joint, DoF], int] = {}
    value_count = 0
    for number, (name, joint) in enumerate(mechanism.joints.items()):
        slot = slots.get(joint)
        closes = closures.index(name) if joint.is_closure else -1
        if slot is None and closes < 0:
            continue  # it carries no link, so it moves nothing
        axes = quaternion.to_matrix(joint.axes_wxyz)
        is_spherical = joint.has_quaternion
        singles = [dof for dof in DOF_MOTION_ORDER if dof in joint.dof and not (is_spherical and dof.is_rotation)]
        others = len(singles) + is_spherical - 1
        for dof in singles:
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            x, y, z = axes[:, dof.axis_index].tolist()
            q_index = -1 if slot is None else slot.q.get(dof, -1)
            leaders[joint, dof] = len(dofs)
            dofs.append(
                IndexedDof(label, name, number, dof, (x, y, z), value_count, q_index, closure=closes, other_dofs=others)
            )
            value_count += 1
        if is_spherical:
            label = name if not singles else f"{name}.rotation"
            x, y, z = axes[:, 2].tolist()
            q_index = -1 if slot is None or slot.quaternion_q is None else slot.quaternion_q
            dofs.append(
                IndexedDof(
                    label, name, number, None, (x, y, z), value_count, q_index, closure=closes, other_dofs=others
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
    lower, upper, rest = -math.inf, math.inf, None
    if dof.dof is not None:
        lower, upper = joint.effective_limits(dof.dof)
        rest = joint.rest_value(dof.dof)
    return DofInfo(
        name=dof.name,
        joint=dof.joint_number,
        kind="spherical" if dof.dof is None else "rotation" if dof.dof.is_rotation else "translation",
        axis=dof.axis,
        value=dof.value_index,
        lower=lower if math.isfinite(lower) else None,
        upper=upper if math.isfinite(upper) else None,
        rest=rest,
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
        self._to = np.array([dof.value_index for dof in tree], dtype=np.int64)
        self._from = np.array([dof.q_index for dof in tree], dtype=np.int64)
        self._ratio, self._offset = np.array([dof.ratio for dof in tree]), np.array([dof.offset for dof in tree])
        self._spherical_to = np.array(
            [range(dof.value_index, dof.value_index + 3) for dof in spherical], dtype=np.int64
        ).reshape(-1, 3)
        self._spherical_from = np.array(
            [range(dof.q_index, dof.q_index + 4) for dof in spherical], dtype=np.int64
        ).reshape(-1, 4)
        self._closing_to = np.array([dof.value_index for dof in closing], dtype=np.int64)
        self._closing_at = (
            np.array([dof.closure for dof in closing], dtype=np.int64),
            np.array([int(dof.dof or 0) for dof in closing], dtype=np.int64),
        )
        self._turned_to = np.array(
            [range(dof.value_index, dof.value_index + 3) for dof in closing_spherical], dtype=np.int64
        ).reshape(-1, 3)
        self._turned_at = np.array([dof.closure for dof in closing_spherical], dtype=np.int64)

    def read(self, q: Array, measured: Array, rotation_vectors: Array) -> Array:
        """Return the values of all dofs, (V,), m and rad.

        Args:
            q: configuration, (nq,).
            measured: dof values of closing joints, (C, 6), see `ClosureState.values`.
            rotation_vectors: of closing spherical joints, (C, 3).
        """
        values = np.empty(self.count)
        values[self._to] = self._ratio * q[self._from] + self._offset
        if len(self._spherical_to):
            values[self._spherical_to] = quaternion.log(q[self._spherical_from])
        if len(self._closing_to):
            values[self._closing_to] = measured[self._closing_at]
        if len(self._turned_to):
            values[self._turned_to] = rotation_vectors[self._turned_at]
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
    """Measures all closures of a mechanism; angles are unwrapped to be nearest to those at construction."""

    def __init__(self, mechanism: Mechanism) -> None:
        links = {link: k for k, link in enumerate(mechanism.links.values())}
        closures = list(mechanism.closures.values())
        self.count = len(closures)
        frames: list[tuple[Array, Array]] = []
        ends: list[tuple[int, int]] = []
        for closure in closures:
            axes = make_pose(quaternion.to_matrix(closure.joint.axes_wxyz), np.zeros(3))
            above = closure.joint.parent
            ends.append((links[above] if isinstance(above, Link) else -1, links[closure.link]))
            frames.append((closure.joint.matrix @ axes, closure.at.matrix @ axes))
        self._a = np.array([a for a, _ in ends], dtype=np.int64)
        self._b = np.array([b for _, b in ends], dtype=np.int64)
        self._in_world = np.flatnonzero(self._a < 0)
        self._X_a = np.array([a for a, _ in frames]).reshape(-1, 4, 4)
        self._X_b = np.array([b for _, b in frames]).reshape(-1, 4, 4)
        free = np.array([[dof in closure.free_dof for dof in DoF] for closure in closures], dtype=bool).reshape(-1, 6)
        self._shifts = free[:, :3]
        self._is_spherical = np.array(
            [isinstance(closure.joint, Joint) and closure.joint.has_quaternion for closure in closures], dtype=bool
        )
        ranges = [closure.joint._values_and_limits() for closure in closures]
        self._lower = np.array([lower for _, lower, _ in ranges]).reshape(-1, 6)
        self._upper = np.array([upper for _, _, upper in ranges]).reshape(-1, 6)
        self._near = np.array([near for near, _, _ in ranges]).reshape(-1, 6)
        self._free = [tuple(dof for dof in DoF if row[dof]) for row in free]
        turns = free[:, 3:].sum(axis=1)
        self._by_one = [(k, np.flatnonzero((turns == 1) & free[:, 3 + k])) for k in range(3)]
        self._by_one = [(k, rows) for k, rows in self._by_one if rows.size]
        self._welded = np.flatnonzero(turns == 0)
        by_two = [(two, np.flatnonzero((turns == 2) & free[:, two].all(axis=1))) for two in TWO_ROTATIONS]
        self._by_two = [(two, rows) for two, rows in by_two if rows.size]
        self._others = [int(k) for k in np.flatnonzero((turns == 3) & ~self._is_spherical)]

    def measure(self, X: Array) -> ClosureState:
        """Return errors and joint values of all closures.

        Args:
            X: poses of all links in the world, (L, 4, 4).
        """
        if not self.count:
            return ClosureState(np.zeros((0, 2)), np.zeros((0, 6)), np.zeros((0, 3)))
        above = X[self._a]
        above[self._in_world] = np.eye(4)
        A = above @ self._X_a
        B = X[self._b] @ self._X_b
        back = A[:, :3, :3].swapaxes(1, 2)
        R = back @ B[:, :3, :3]
        p = (back @ (B[:, :3, 3] - A[:, :3, 3])[:, :, None])[:, :, 0]
        gaps, values, turned = np.zeros((self.count, 2)), np.zeros((self.count, 6)), np.zeros((self.count, 3))
        values[:, :3] = np.where(self._shifts, np.clip(p, self._lower[:, :3], self._upper[:, :3]), 0.0)
        gaps[:, 0] = np.sqrt(((p - values[:, :3]) ** 2).sum(axis=1))
        for k, rows in self._by_one:
            i, j, R_rows = (k + 1) % 3, (k + 2) % 3, R[rows]
            values[rows, 3 + k] = self._unwrap(_about(k, R_rows), rows, 3 + k)
            gaps[rows, 1] = np.arctan2(np.hypot(R_rows[:, i, k], R_rows[:, j, k]), R_rows[:, k, k])
        for two, rows in self._by_two:
            angles, turn = TWO_ROTATIONS[two](R[rows])
            for k in two:
                values[rows, k] = self._unwrap(angles[k], rows, k)
            gaps[rows, 1] = _angles(R[rows] @ turn.swapaxes(1, 2))
        if self._welded.size:
            gaps[self._welded, 1] = _angles(R[self._welded])
        for k in self._others:
            joint_values = joint_values_from_pose(
                make_pose(R[k], p[k]), self._free[k], self._near[k], self._lower[k], self._upper[k]
            )
            values[k, 3:] = joint_values[3:]
            turn = (
                rotation.about_z(joint_values[5])
                @ rotation.about_y(joint_values[4])
                @ rotation.about_x(joint_values[3])
            )
            gaps[k, 1] = _angles((R[k] @ turn.T)[None])[0]
        if self._is_spherical.any():
            turned[self._is_spherical] = rotation.log(R[self._is_spherical])
        return ClosureState(gaps, values, turned)

    def _unwrap(self, angle: Array, rows: Indices, k: int) -> Array:
        """Return the angles plus full rotations, near to those at construction and inside the limits if possible."""
        near, lower, upper = (side[rows][:, k] for side in (self._near, self._lower, self._upper))
        unwrapped: Array = angle + FULL_ROTATION * np.round((near - angle) / FULL_ROTATION)
        unwrapped = np.where(
            (unwrapped < lower) & (unwrapped + FULL_ROTATION <= upper), unwrapped + FULL_ROTATION, unwrapped
        )
        return np.where(
            (unwrapped > upper) & (unwrapped - FULL_ROTATION >= lower), unwrapped - FULL_ROTATION, unwrapped
        )


def _about(k: int, R: Array) -> Array:
    """Return the rotation angles about axis k that are closest to R (n, 3, 3)."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return np.arctan2(R[:, j, i] - R[:, i, j], R[:, i, i] + R[:, j, j])


def _x_and_y(R: Array) -> tuple[dict[DoF, Array], Array]:
    Y = rotation.about_y(y := np.arctan2(-R[:, 2, 0], R[:, 0, 0]))
    x = _about(0, Y.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EY: y}, Y @ rotation.about_x(x)


def _y_and_z(R: Array) -> tuple[dict[DoF, Array], Array]:
    Y = rotation.about_y(y := np.arctan2(-R[:, 2, 0], R[:, 2, 2]))
    z = _about(2, R @ Y.swapaxes(1, 2))
    return {DoF.EY: y, DoF.EZ: z}, rotation.about_z(z) @ Y


def _x_and_z(R: Array) -> tuple[dict[DoF, Array], Array]:
    Z = rotation.about_z(z := np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    x = _about(0, Z.swapaxes(1, 2) @ R)
    return {DoF.EX: x, DoF.EZ: z}, Z @ rotation.about_x(x)


TWO_ROTATIONS = {(DoF.EX, DoF.EY): _x_and_y, (DoF.EY, DoF.EZ): _y_and_z, (DoF.EX, DoF.EZ): _x_and_z}
"""For two free rotations: a function of R (n, 3, 3) to the closest angles (n,) and their rotations.

The convention is that of `joint_values_from_pose`.
"""


def _angles(R: Array) -> Array:
    """Return the angles of rotations (n, 3, 3) as (n,), rad, accurate near zero."""
    x, y, z = R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]
    return np.arctan2(np.sqrt(x * x + y * y + z * z), np.einsum("nii->n", R) - 1.0)


class ModelIndex:
    """Kinematics of a mechanism for frames; its methods may be called from any thread.

    Attributes:
        link_names: names of the links, in order.
        link_numbers: index of each link, by name.
        dofs: dofs as pages know them.
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
        weights = [link.inertial.mass if link.inertial is not None else 0.0 for link in mechanism.links.values()]
        self._mass = float(sum(weights))
        self._masses = np.array(weights)
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
        if self._mass <= 0.0:
            return None
        places = (X[:, :3, :3] @ self._centres[:, :, None])[:, :, 0] + X[:, :3, 3]
        return self._masses @ places / self._mass
