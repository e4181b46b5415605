"""Reference kinematics in NumPy: link poses and Jacobians, without kernels.

The code is simple and slow. Tests compare the kernels with it. Computations that are rarely needed, such as mobility
and closed Jacobians, use it, since it needs no compilation and returns poses and twists of all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mechanik.errors import UnknownName
from mechanik.kernels.nodes import (
    PRISMATIC,
    SPHERICAL,
    TRANSLATION,
    Node,
    open_nodes,
)
from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.model.frame import Frame
from mechanik.model.joint import Joint
from mechanik.model.kinematics import JointIndices, Kinematics, fixed_pose
from mechanik.model.mechanism import Mechanism
from mechanik.spatial import apply, make_pose, quaternion, rotation
from mechanik.spatial.array import Array

ZERO_VECTOR = np.zeros(3)


@dataclass(frozen=True, slots=True, eq=False)
class LinkKinematics:
    """Pose and spatial Jacobian of a link at q.

    Attributes:
        X_world_link: (4, 4).
        spatial_jacobian: (6, nv), per entry of v the twist (linear, angular) in the world, where the linear velocity is
            that of the point of the link at the world origin.
        nodes: indices of the nodes above the link.
    """

    X_world_link: Array
    spatial_jacobian: Array
    nodes: frozenset[int]

    def jacobian_at(self, point: Array) -> Array:
        """Return the world twist (linear, angular) at the world position `point` (3,) per entry of v, (6, nv)."""
        J = self.spatial_jacobian.copy()
        J[:3] += np.cross(J[3:], point[:, None], axis=0)
        return J


class NumpyKinematics:
    """Poses and twists of all nodes of a mechanism at q.

    Args:
        kinematics: the compiled mechanism.
        q: (nq,).

    Attributes:
        kinematics: the compiled mechanism.
        X_world_nodes: world pose of each node, (4, 4), after its motion.
        node_twists: for each node, its indices in v, each with the twist (6,) at the world origin.
    """

    def __init__(self, kinematics: Kinematics, q: Array) -> None:
        self.kinematics = kinematics
        self.X_world_nodes: list[Array] = []
        self.node_twists: list[list[tuple[int, Array]]] = []
        for node in open_nodes(kinematics.nodes):
            X = fixed_pose(node)
            X, twists = _move_node(X if node.parent < 0 else self.X_world_nodes[node.parent] @ X, node, q)
            self.X_world_nodes.append(X)
            self.node_twists.append(twists)

    def link_kinematics(self, link: str | None) -> LinkKinematics:
        """Return pose and Jacobian of a link by name; None is the world. Raises `UnknownName`."""
        jacobian = np.zeros((6, self.kinematics.space.nv))
        if link is None:
            return LinkKinematics(np.eye(4), jacobian, frozenset())
        if link not in self.kinematics.links:
            raise UnknownName("link", link, self.kinematics.links)
        link_node = Node(self.kinematics.link_nodes[self.kinematics.links.index(link)])
        node, X = link_node.parent, fixed_pose(link_node)
        if node >= 0:
            X = self.X_world_nodes[node] @ X
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            for column, twist in self.node_twists[node]:
                jacobian[:, column] += twist
            node = open_nodes(self.kinematics.nodes)[node].parent
        return LinkKinematics(X, jacobian, frozenset(nodes))

    def relative_dofs(self, link: LinkKinematics, other_link: LinkKinematics) -> frozenset[int]:
        """Return the indices in v that move two links relative to each other; nodes above both links do not count."""
        return frozenset(column for node in link.nodes ^ other_link.nodes for column, _ in self.node_twists[node])


def _move_node(X: Array, node: Node, q: Array) -> tuple[Array, list[tuple[int, Array]]]:
    """Move a node at q (nq,) from X, its world pose (4, 4) before its motion.

    Returns:
        The world pose of the moved node, and its indices in v, each with the twist (6,) at the world origin.
    """
    kind, q_index, v_index = node.kind, node.first_q, node.first_v
    if kind == TRANSLATION:
        X_moved = make_pose(X[:3, :3], apply(X, q[q_index : q_index + 3]))
        return X_moved, [(v_index + axis, np.r_[X[:3, axis], ZERO_VECTOR]) for axis in range(3)]
    if kind == SPHERICAL:
        X_moved = X @ make_pose(quaternion.to_matrix(quaternion.normalize(q[q_index : q_index + 4])), ZERO_VECTOR)
        return X_moved, [(v_index + axis, _twist_at_origin(X_moved[:3, axis], X_moved[:3, 3])) for axis in range(3)]
    value, ratio = float(node.ratio * q[q_index] + node.offset), float(node.ratio)
    if kind == PRISMATIC:
        return make_pose(X[:3, :3], X[:3, 3] + value * X[:3, 2]), [(v_index, ratio * np.r_[X[:3, 2], ZERO_VECTOR])]
    X_moved = X @ make_pose(rotation.about_z(value), ZERO_VECTOR)
    return X_moved, [(v_index, ratio * _twist_at_origin(X[:3, 2], X[:3, 3]))]


def _twist_at_origin(axis: Array, point: Array) -> Array:
    """Return the twist (6,), at the world origin, of a rotation about `axis` (3,) through `point` (3,)."""
    return np.r_[np.cross(point, axis), axis]


def reference_jacobian(mechanism: Mechanism, frame: Frame, point_world: Array) -> Array:
    """Compute the Jacobian of a point that moves with `frame`, directly from the graph in its present configuration.

    Args:
        mechanism: the mechanism.
        frame: the frame; for a joint, the point moves with the child frame.
        point_world: (3,), present position of the point in the world, m.

    Returns:
        World twist (linear, angular) per entry of v, (6, nv).
    """
    joint_indices = mechanism.kinematics.joint_indices
    J = np.zeros((6, mechanism.nv))
    for joint in [frame, *frame.traverse_parents()]:
        if not isinstance(joint, Joint) or joint.is_closure:
            continue
        R_world_axes = joint.world_matrix[:3, :3] @ quaternion.to_matrix(joint.axes_wxyz)
        p_world_child = joint.child_world_matrix[:3, 3]
        indices = joint_indices[joint]
        columns: list[tuple[int, float, Array]] = []
        for dof in TRANSLATIONS:
            if dof in joint.dof:
                columns.append(
                    (*_column_and_ratio(joint, dof, joint_indices), np.r_[R_world_axes[:, dof.axis_index], 0, 0, 0])
                )
        R = R_world_axes
        if indices.quaternion_v is not None:
            R = R_world_axes @ quaternion.to_matrix(joint.rotation_wxyz)
            columns += [
                (indices.quaternion_v + k, 1.0, _twist_at_point(R[:, k], point_world - p_world_child)) for k in range(3)
            ]
        else:
            for dof in reversed(ROTATIONS):
                if dof in joint.dof:
                    axis = np.eye(3)[dof.axis_index]
                    columns.append(
                        (
                            *_column_and_ratio(joint, dof, joint_indices),
                            _twist_at_point(R @ axis, point_world - p_world_child),
                        )
                    )
                    R = R @ rotation.exp(axis * joint.value(dof))
        for column, ratio, twist in columns:
            J[:, column] += ratio * twist
    return J


def _column_and_ratio(joint: Joint, dof: DoF, joint_indices: Mapping[Joint, JointIndices]) -> tuple[int, float]:
    if dof in joint._couplings:
        leader, leader_dof, ratio, _ = joint._couplings[dof].resolve()
        return joint_indices[leader].v[leader_dof], ratio
    return joint_indices[joint].v[dof], 1.0


def _twist_at_point(axis: Array, lever: Array) -> Array:
    """Return the twist (6,) of a rotation about `axis` (3,) at a point; `lever` (3,) is from the axis to the point."""
    return np.concatenate([np.cross(axis, lever), axis])
