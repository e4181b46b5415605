"""Kinematic tree of a problem, with nodes for some closing joints, and elimination of passive spherical joints.

The dofs of a closing joint, the joint of a closure, are not part of q, and the residual of the closure does not
constrain them. If no relation can express the limits of a closing joint, it gets nodes in the tree and values after q
in x, the configuration vector of the tree; a fixed closure (weld) connects its last node to the link.

Consider a leg of a parallel mechanism whose last joint is spherical and welded to the platform. Such a leg is
equivalent to a leg whose spherical joint closes the loop. If no other relation depends on this joint, its rotation
follows from the weld, and the joint is passive: only the position rows of the weld remain, three dofs are eliminated,
and the rotation is computed after the solve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanik.kernels.nodes import (
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    Node,
    open_nodes,
)
from mechanik.model.dof import ROTATIONS, TRANSLATIONS
from mechanik.model.joint import Joint
from mechanik.model.kinematics import Z_TO_AXIS, Kinematics, as_node_table, fixed_pose, node_row
from mechanik.model.loop_closure import Closure
from mechanik.model.mechanism import Mechanism
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.spatial import inverse, make_pose, quaternion
from mechanik.spatial.array import Array
from mechanik.validation import read_only


@dataclass(frozen=True, slots=True, eq=False)
class KinematicTree:
    """Node table of a problem, with the frames of the links, the limits, and the index maps between x and v.

    x is q, followed by the values of closing joints that have nodes; v is followed by their velocities.

    Attributes:
        nodes: (n, 18), in the layout of `kernels/nodes.py`.
        frames: for each link the index of its node and the pose of the link in this node (4, 4); the key None is the
            world, with node -1. A closing joint NAME with nodes has the key "closing NAME".
        lower, upper: (nx,), limits, m and rad.
        v_of_x: (nx,), for each entry of x the entry of v that moves it; -1 for entries of quaternions.
        spherical_joints: first index of each spherical joint in x and in v.
        rotates: for each entry of v whether it is a rotation.
        x_of: index in x of each name in `q_names`, of each dof of a closing joint, and of the first entry of each
            spherical joint (by joint name).
        nq, nv: sizes of q and v of the mechanism alone.
    """

    nodes: Array
    frames: Mapping[str | None, tuple[int, Array]]
    lower: Array
    upper: Array
    v_of_x: np.ndarray[tuple[int], np.dtype[np.int64]]
    spherical_joints: tuple[tuple[int, int], ...]
    rotates: np.ndarray[tuple[int], np.dtype[np.bool_]]
    x_of: Mapping[str, int]
    nq: int
    nv: int

    @property
    def nx(self) -> int:
        """Number of entries of x."""
        return len(self.lower)

    @property
    def reach(self) -> float:
        """Largest sum of link lengths between the origin of the world and a frame, m.

        Prismatic joints are at their farthest finite limit, without the offsets of mimic joints; joints with three
        translations are at zero.
        """
        node_distances = np.zeros(len(self.nodes))
        for i, node in enumerate(open_nodes(self.nodes)):
            node_distances[i] = np.linalg.norm(node.X_parent_joint[9:]) + self._max_prismatic_displacement(node)
            if node.parent >= 0:
                node_distances[i] += node_distances[node.parent]
        frame_distances = [
            np.linalg.norm(X[:3, 3]) + (node_distances[node] if node >= 0 else 0.0) for node, X in self.frames.values()
        ]
        return float(max([0.0, *frame_distances]))

    def _max_prismatic_displacement(self, node: Node) -> float:
        if node.kind != PRISMATIC:
            return 0.0
        k = node.first_q
        displacements = abs(np.array([self.lower[k], self.upper[k]]) * node.ratio)
        return float(np.max(displacements, where=np.isfinite(displacements), initial=0.0))

    def is_rotational(self, dof_name: str) -> bool:
        """Return whether a scalar dof is a rotation (otherwise a translation)."""
        return bool(self.rotates[self.v_of_x[self.x_of[dof_name]]])

    def limits(self, dof_name: str) -> tuple[float, float]:
        """Return the limits of a scalar dof, m or rad."""
        k = self.x_of[dof_name]
        return float(self.lower[k]), float(self.upper[k])

    def node(self, index: int) -> Node:
        """Return a node by its index."""
        return Node(self.nodes[index])

    def dofs_of(self, node: int) -> list[tuple[int, int, bool]]:
        """Return (index in v, axis of the node, whether it is a rotation) for each dof of the node with an index."""
        kind, v = self.node(node).kind, self.node(node).first_v
        if kind in (TRANSLATION, SPHERICAL):
            return [(v + axis, axis, kind == SPHERICAL) for axis in range(3)]
        return [(v, 2, kind == REVOLUTE)]

    def path(self, frame: str | None) -> list[int]:
        """Return the indices of the nodes on the path from the world to a frame."""
        node = self.frames[frame][0]
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            node = self.node(node).parent
        return nodes[::-1]


def build_kinematic_tree(mechanism: Mechanism, closures_with_nodes: Iterable[Closure] = ()) -> KinematicTree:
    """Build the tree of a mechanism, with extra nodes for the dofs of the joints of `closures_with_nodes`."""
    kinematics: Kinematics = mechanism.kinematics
    space = kinematics.space
    rows = [row.copy() for row in kinematics.nodes]
    frames: dict[str | None, tuple[int, Array]] = {None: (-1, np.eye(4))}
    for name, link_node in zip(kinematics.links, open_nodes(kinematics.link_nodes), strict=True):
        frames[name] = link_node.parent, fixed_pose(link_node)
    lower, upper = space.lower.tolist(), space.upper.tolist()
    v_of_x = [-1] * space.nq
    for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        v_of_x[k] = v
    rotates = space.rotates.tolist()
    x_of = {name: k for k, name in enumerate(space.q_names)}
    x_of |= {
        mechanism.name_of(joint): indices.quaternion_q
        for joint, indices in kinematics.joint_indices.items()
        if indices.quaternion_q is not None
    }
    for closure in closures_with_nodes:
        joint = closure.joint
        assert isinstance(joint, Joint)
        name = mechanism.name_of(joint)
        parent_link = None if joint.parent is None else mechanism.name_of(joint.parent)
        node, X = frames[parent_link]
        X_joint_axes = make_pose(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
        X = X @ joint.matrix @ X_joint_axes
        for dof in (*TRANSLATIONS, *reversed(ROTATIONS)):
            if dof not in joint.dof:
                continue
            X_axis = Z_TO_AXIS[dof.axis_index]
            kind = REVOLUTE if dof.is_rotation else PRISMATIC
            rows.append(node_row(X @ X_axis, kind, len(lower), len(rotates), parent=node))
            node, X = len(rows) - 1, X_axis.T
            x_of[name if len(joint.dof) == 1 else f"{name}.{dof.name}"] = len(lower)
            v_of_x.append(len(rotates))
            rotates.append(dof.is_rotation)
            dof_lower, dof_upper = joint.effective_limits(dof)
            lower.append(dof_lower)
            upper.append(dof_upper)
        frames[f"closing {name}"] = node, X @ X_joint_axes.T
    return KinematicTree(
        nodes=as_node_table(rows),
        frames=frames,
        lower=np.array(lower, dtype=np.float64),
        upper=np.array(upper, dtype=np.float64),
        v_of_x=np.array(v_of_x, dtype=np.int64),
        spherical_joints=tuple(zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True)),
        rotates=np.array(rotates, dtype=np.bool_),
        x_of=x_of,
        nq=space.nq,
        nv=space.nv,
    )


WELD_ROWS = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True, eq=False)
class PassiveSpherical:
    """Spherical joint whose rotation is computed from the poses of two nodes, since a weld determines it.

    Attributes:
        relation: relation that replaces the weld: the joint centre coincides on both sides.
        node: index of the joint among the nodes of the tree.
        parent_node, weld_node: parent node of the joint, and the node at the other end of the weld; -1 is the world.
        R_parent_joint: (3, 3), axes of the joint in its parent node at zero rotation.
        R_weld_joint: (3, 3), axes of the joint in the weld node if the weld is closed.
        x, v: first index of the joint in x and in v.
    """

    relation: Relation
    node: int
    parent_node: int
    weld_node: int
    R_parent_joint: Array
    R_weld_joint: Array
    x: int
    v: int


def find_passive_sphericals(
    tree: KinematicTree, constraints: Mapping[int, Relation], relations: Sequence[Relation], is_movable: Sequence[bool]
) -> dict[int, PassiveSpherical]:
    """Return the spherical joints whose rotation follows from a weld, by index of the weld in `relations`.

    The result is empty if a relation is a Python function, which may depend on any joint.

    Args:
        constraints: relations of closures, joint constraints and cones, by index in `relations`. A weld among them has
            all six rows of a pose; the others are skipped.
        relations: all relations of the problem.
        is_movable: for each entry of v whether the dof may move and has the default weight.
    """
    if any(relation.kind is RelationKind.FUNCTION for relation in relations):
        return {}
    relation_counts = np.zeros(len(tree.nodes), dtype=np.int64)
    for relation in relations:
        links = {relation.a, relation.b, *(link for link, _, _ in relation.masses)}
        for node in {node for link in links for node in tree.path(link)}:
            relation_counts[node] += 1
    x_with_targets = {
        tree.x_of.get(relation.dof_name) for relation in relations if relation.kind is RelationKind.SPHERICAL_JOINT
    }
    passive_sphericals: dict[int, PassiveSpherical] = {}
    for index, relation in constraints.items():
        if relation.kind is not RelationKind.POSE or relation.rows != WELD_ROWS or relation.lower is not None:
            continue
        for side in ("a", "b"):
            node = tree.frames[relation.a if side == "a" else relation.b][0]
            if node < 0 or tree.node(node).kind != SPHERICAL or relation_counts[node] != 1:
                continue
            if node in tree.path(relation.b if side == "a" else relation.a):
                continue  # an ancestor of both frames does not change their relative pose
            x, v = tree.node(node).first_q, tree.node(node).first_v
            if x not in x_with_targets and all(is_movable[v : v + 3]):
                passive_sphericals[index] = _make_passive_spherical(tree, relation, side, node, x, v)
                break
    return passive_sphericals


def add_spherical_frames(tree: KinematicTree, passive_sphericals: Mapping[int, PassiveSpherical]) -> KinematicTree:
    """Return the tree with a frame for each passive spherical joint at zero rotation."""
    frames = dict(tree.frames)
    for joint in passive_sphericals.values():
        frames[_zero_rotation_frame(joint.node)] = (
            joint.parent_node,
            make_pose(joint.R_parent_joint, tree.node(joint.node).X_parent_joint[9:]),
        )
    return replace(tree, frames=frames)


def _make_passive_spherical(
    tree: KinematicTree, relation: Relation, side: str, node: int, x: int, v: int
) -> PassiveSpherical:
    frames = {"a": (relation.a, relation.X_a), "b": (relation.b, relation.X_b)}
    link, X_link_weld = frames[side]
    other_link, X_other_weld = frames["b" if side == "a" else "a"]
    X_joint_weld = tree.frames[link][1] @ X_link_weld
    X_other_joint = read_only(X_other_weld @ inverse(X_joint_weld))
    joint_frame, other_frame = (_zero_rotation_frame(node), read_only(np.eye(4))), (other_link, X_other_joint)
    (a, X_a), (b, X_b) = (joint_frame, other_frame) if side == "a" else (other_frame, joint_frame)
    other_node, X_node_other = tree.frames[other_link]
    return PassiveSpherical(
        replace(relation, rows=WELD_ROWS[:3], a=a, b=b, X_a=X_a, X_b=X_b),
        node,
        tree.node(node).parent,
        other_node,
        tree.node(node).X_parent_joint[:9].reshape(3, 3),
        (X_node_other @ X_other_joint)[:3, :3],
        x,
        v,
    )


def _zero_rotation_frame(node: int) -> str:
    return f"spherical joint {node} at zero rotation"
