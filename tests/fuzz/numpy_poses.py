"""Forward kinematics of many configurations at once in plain NumPy, from the graph alone."""

from __future__ import annotations

import numpy as np

import mechanik as mk
from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.spatial import quaternion


class NumpyPoses:
    """Values and poses of a mechanism; shares no code with the kernels.

    Args:
        mechanism: the mechanism, which is not edited afterwards.
    """

    def __init__(self, mechanism: mk.Mechanism) -> None:
        self.mechanism = mechanism
        self.column_by_name = {name: k for k, name in enumerate(mechanism.space.q_names)}

    def column(self, joint: mk.Joint, dof: DoF) -> int:
        """Return the index in q of an independent scalar dof."""
        name = self.mechanism.name_of(joint)
        return self.column_by_name[name if len(joint.dof) == 1 else f"{name}.{dof.name}"]

    def value(self, joint: mk.Joint, dof: DoF, q: np.ndarray) -> np.ndarray:
        """Return the value (N,) of a scalar dof, which may be that of a mimic joint, at q (N, nq)."""
        coupling = next((item for item in joint.couplings if item.dof is dof), None)
        if coupling is None:
            return q[:, self.column(joint, dof)]
        return coupling.ratio * self.value(coupling.leader, coupling.leader_dof, q) + coupling.offset

    def quaternion_column(self, joint: mk.Joint) -> int:
        return self.column_by_name[f"{self.mechanism.name_of(joint)}.qw"]

    def poses(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Return the world poses (N, 4, 4) of all links at q (N, nq)."""
        poses: dict[str, np.ndarray] = {}
        count = len(q)

        def visit(frame: mk.Frame, X_world_parent: np.ndarray) -> None:
            X = X_world_parent @ frame.matrix
            if isinstance(frame, mk.Link):
                poses[self.mechanism.name_of(frame)] = X
            elif isinstance(frame, mk.Joint):
                if frame.is_closure:
                    return
                if frame.children and frame.dof:
                    X = X @ self._motion(frame, q)
            for child in frame.children:
                visit(child, X)

        for root in self.mechanism.roots:
            visit(root, np.broadcast_to(np.eye(4), (count, 4, 4)))
        return poses

    def _motion(self, joint: mk.Joint, q: np.ndarray) -> np.ndarray:
        """Return A T(x, y, z) Rz Ry Rx A' (N, 4, 4), with A the rotation to the axes of the joint."""
        motion = np.zeros((len(q), 4, 4))
        motion[:, 3, 3] = 1.0
        A = quaternion.to_matrix(joint.axes_wxyz)
        for dof in TRANSLATIONS:
            if dof in joint.dof:
                motion[:, :3, 3] += self.value(joint, dof, q)[:, None] * A[:, dof.axis_index]
        if joint.has_quaternion:
            k = self.quaternion_column(joint)
            R = _matrix_from_wxyz(q[:, k : k + 4])
        else:
            R = np.broadcast_to(np.eye(3), (len(q), 3, 3))
            for dof in reversed(ROTATIONS):
                if dof in joint.dof:
                    R = R @ _axis_rotation(dof.axis_index, self.value(joint, dof, q))
        motion[:, :3, :3] = A @ R @ A.T
        return motion


def _axis_rotation(axis: int, angle: np.ndarray) -> np.ndarray:
    R = np.zeros((len(angle), 3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[:, axis, axis] = 1.0
    R[:, i, i] = R[:, j, j] = np.cos(angle)
    R[:, j, i] = np.sin(angle)
    R[:, i, j] = -R[:, j, i]
    return R


def _matrix_from_wxyz(wxyz: np.ndarray) -> np.ndarray:
    w, x, y, z = (wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True)).T
    return np.stack([
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
        np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
        np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
    ], -2)  # fmt: skip
