"""Kinematics as flat arrays: elementary motions in topological order, compiled from the graph for the kernels.

A node of the arrays is a fixed pose followed by an elementary motion. Fixed joints are merged into the fixed pose of
the next node; a coupling becomes the ratio and offset of a node. The module also converts configurations to values by
joint name and back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.errors import CouplingError, DoFError, NotFinite, ShapeError, StructureError, UnknownName
from mechanik.kernels.nodes import (
    FIXED,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    Node,
    open_nodes,
)
from mechanik.model.configuration_space import ConfigurationSpace
from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.model.frame import Frame, Goal, Link
from mechanik.model.joint import Joint
from mechanik.spatial import euler, make_pose, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import kernel_module
from mechanik.validation import as_numbers, format_count, read_only

forward = kernel_module("forward")

# poses (4, 4) that rotate z onto x, y and z; as permutations of axes they cause no rounding errors
Z_TO_AXIS = tuple(
    make_pose(np.array(R, dtype=np.float64), np.zeros(3))
    for R in ([[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.eye(3))
)


@dataclass(frozen=True, slots=True)
class JointIndices:
    """The indices of a joint's independent dofs in q and v.

    Attributes:
        q, v: index of each scalar dof.
        quaternion_q, quaternion_v: first index of the quaternion (4 entries of q, 3 of v); None without a quaternion.
    """

    q: Mapping[DoF, int]
    v: Mapping[DoF, int]
    quaternion_q: int | None
    quaternion_v: int | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kinematics:
    """A mechanism as flat arrays, created by `compile_kinematics` and never changed.

    Attributes:
        space: the layout of q and v.
        joint_indices: the indices of each joint in q and v.
        links: names of the links, in the order of creation.
        nodes: (n, 18), in the layout of `kernels/nodes.py`.
        link_nodes: (L, 18), a fixed node for each link, in the order of `links`.
        paths: for each link the nodes from the world to the link; the fixed node of the link is the last.
        cone_joints: names of the joints with a child and a cone limit.
    """

    space: ConfigurationSpace
    joint_indices: Mapping[Joint, JointIndices]
    links: tuple[str, ...]
    nodes: Array
    link_nodes: Array
    paths: Mapping[str, Array]
    cone_joints: tuple[str, ...]

    def __repr__(self) -> str:
        parts = f"{format_count(len(self.links), 'link')}, {format_count(len(self.nodes), 'node')}"
        return f"<kinematics of {parts}, nq {self.space.nq}>"

    def pose(self, link: str, q: ArrayLike, out: Array | None = None) -> Array:
        """Compute X_world_link (..., 4, 4) at q (..., nq); see `Mechanism.pose`."""
        path = self.path(link)
        batch, batch_shape = self._as_batch(q)
        X = np.empty((len(batch), 4, 4))
        if not forward.chain_poses(path, batch, X):
            self._raise_not_finite(batch)
        X = X.reshape(*batch_shape, 4, 4)
        if out is None:
            return X
        if not (isinstance(out, np.ndarray) and out.shape == X.shape and out.dtype == X.dtype and out.flags.writeable):
            raise ShapeError(f"out must be a writable float64 array of shape {X.shape}")
        out[...] = X
        return out

    def poses(self, q: ArrayLike, links: Sequence[str] | None = None) -> Array:
        """Compute X_world_link (..., L, 4, 4) of all or of the named links at q (..., nq)."""
        link_nodes = self.link_nodes if links is None else self.link_nodes[[self._index(link) for link in links]]
        batch, batch_shape = self._as_batch(q)
        X = np.empty((len(batch), len(link_nodes), 4, 4))
        if not forward.tree_poses(self.nodes, link_nodes, batch, X):
            self._raise_not_finite(batch)
        return X.reshape(*batch_shape, len(link_nodes), 4, 4)

    def jacobian(self, link: str, q: ArrayLike, p_link_point: Array) -> Array:
        """Compute the world twist (linear, angular) of a point of the link, p_link_point (3,), per entry of v.

        Returns:
            (..., 6, nv).
        """
        path = self.path(link)
        batch, batch_shape = self._as_batch(q)
        J = np.empty((len(batch), 6, self.space.nv))
        if not forward.chain_jacobians(path, p_link_point, batch, J):
            self._raise_not_finite(batch)
        return J.reshape(*batch_shape, 6, self.space.nv)

    def path(self, link: str) -> Array:
        """Return the nodes from the world to a link; raises `UnknownName`."""
        try:
            return self.paths[link]
        except (KeyError, TypeError):
            raise UnknownName("link", link, self.links) from None

    def _index(self, link: str) -> int:
        self.path(link)
        return self.links.index(link)

    def _as_batch(self, q: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """Return q as (N, nq), and its batch axes."""
        try:
            if np.iscomplexobj(q):
                raise TypeError
            values = np.ascontiguousarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"q must be an array of real numbers, not {q!r}") from None
        if not values.flags.writeable:  # Numba kernels accept writeable arrays only, although they do not write to q
            values = values.copy()
        if np.ndim(q) < 1 or values.shape[-1] != self.space.nq:
            raise ShapeError(f"q must have {self.space.nq} numbers along its last axis, but its shape is {np.shape(q)}")
        batch_shape = values.shape[:-1]
        return values.reshape(math.prod(batch_shape), self.space.nq), batch_shape

    def _raise_not_finite(self, values: Array) -> None:
        """Raise the error for a pose that is not finite.

        Raises:
            NotFinite: q is not finite, and the message names the entry; or a length or offset of the mechanism is too
                large.
            NotARotation: a quaternion in q is zero.
        """
        self.space.check_q(values)
        raise NotFinite("a pose is not finite although q is finite: a length or offset of the mechanism is too large")


def compile_kinematics(roots: Iterable[Frame], names: Mapping[Frame, str]) -> Kinematics:
    """Compile the trees below `roots` to flat arrays.

    Joints without a child, such as those that close a loop, have no entries in q. Mimic dofs share the entry of their
    leader.
    """
    frames = [frame for root in roots for frame in root.traverse()]
    joints = sorted(
        (frame for frame in frames if isinstance(frame, Joint) and frame.children), key=lambda frame: frame._serial
    )
    links = sorted((frame for frame in frames if isinstance(frame, Link)), key=lambda frame: frame._serial)
    space, joint_indices = _configuration_layout(joints, names)

    nodes = _Nodes(joint_indices)
    # a location is a node and a fixed pose relative to this node
    locations: dict[Frame, tuple[int, Array]] = {}  # of each frame before its motion
    child_locations: dict[Frame, tuple[int, Array]] = {}  # of each frame after its motion, where children are attached
    for frame in frames:
        if isinstance(frame, Goal):
            continue
        node, X = child_locations[frame.parent] if frame.parent is not None else (-1, np.eye(4))
        locations[frame] = node, X @ frame.matrix
        child_locations[frame] = (
            nodes.add_joint(frame, *locations[frame]) if isinstance(frame, Joint) else locations[frame]
        )

    node_rows = as_node_table(nodes.rows)
    # the fixed node of a link has no indices in q and v; in their place kernels expect `Node.q_length` and
    # `Node.has_only_scalar_joints`, which is 0 here and set by `_path`
    link_rows = as_node_table(
        [node_row(X, FIXED, space.nq, 0, parent=node) for node, X in (locations[link] for link in links)]
    )
    return Kinematics(
        space=space,
        joint_indices=joint_indices,
        links=tuple(names[link] for link in links),
        nodes=node_rows,
        link_nodes=link_rows,
        paths={names[link]: _path(node_rows, row) for link, row in zip(links, link_rows, strict=True)},
        cone_joints=tuple(names[joint] for joint in joints if joint.cone is not None),
    )


class _Nodes:
    """The table of nodes, to which the nodes of the joints are added one after the other."""

    def __init__(self, joint_indices: Mapping[Joint, JointIndices]) -> None:
        self.joint_indices = joint_indices
        self.rows: list[Array] = []

    def add_joint(self, joint: Joint, node: int, X: Array) -> tuple[int, Array]:
        """Add the nodes of a joint at pose X relative to `node`; returns the node and pose of the joint's child."""
        if joint not in self.joint_indices or not joint.dof:
            return node, X
        X_joint_axes = make_pose(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
        X = X @ X_joint_axes
        indices = self.joint_indices[joint]
        if all(dof in indices.q for dof in TRANSLATIONS):
            node, X = self.add_node(node, X, TRANSLATION, indices.q[DoF.X], indices.v[DoF.X])
        else:
            for dof in TRANSLATIONS:
                node, X = self.add_dof(joint, dof, node, X)
        if indices.quaternion_q is not None and indices.quaternion_v is not None:
            node, X = self.add_node(node, X, SPHERICAL, indices.quaternion_q, indices.quaternion_v)
        else:
            for dof in reversed(ROTATIONS):
                node, X = self.add_dof(joint, dof, node, X)
        return node, X @ X_joint_axes.T  # the transpose is the inverse, since X_joint_axes is a pure rotation

    def add_dof(self, joint: Joint, dof: DoF, node: int, X: Array) -> tuple[int, Array]:
        if dof not in joint.dof:
            return node, X
        leader, leader_dof, ratio, offset = joint, dof, 1.0, 0.0
        if dof in joint._couplings:
            leader, leader_dof, ratio, offset = joint._couplings[dof].resolve()
        X_axis = Z_TO_AXIS[dof.axis_index]
        indices = self.joint_indices[leader]
        kind = REVOLUTE if dof.is_rotation else PRISMATIC
        node, X = self.add_node(node, X @ X_axis, kind, indices.q[leader_dof], indices.v[leader_dof], ratio, offset)
        return node, X @ X_axis.T

    def add_node(
        self, node: int, X: Array, kind: int, q: int, v: int, ratio: float = 1.0, offset: float = 0.0
    ) -> tuple[int, Array]:
        self.rows.append(node_row(X, kind, q, v, node, ratio, offset))
        return len(self.rows) - 1, np.eye(4)


def _configuration_layout(
    joints: Sequence[Joint], names: Mapping[Frame, str]
) -> tuple[ConfigurationSpace, dict[Joint, JointIndices]]:
    """Assign each independent dof its index in q and v, joint by joint, in the order X Y Z EX EY EZ."""
    q_names: list[str] = []
    v_names: list[str] = []
    scalars: list[tuple[int, int]] = []
    quaternions: list[tuple[int, int]] = []
    rotates: list[bool] = []
    limits: list[tuple[float, float]] = []
    joint_indices: dict[Joint, JointIndices] = {}
    for joint in joints:
        name, has_quaternion = names[joint], joint.has_quaternion
        q_indices: dict[DoF, int] = {}
        v_indices: dict[DoF, int] = {}
        for dof in joint.dof:
            if dof in joint._couplings or (has_quaternion and dof.is_rotation):
                continue
            q_indices[dof], v_indices[dof] = len(q_names), len(v_names)
            scalars.append((q_indices[dof], v_indices[dof]))
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            q_names.append(label)
            v_names.append(label)
            rotates.append(dof.is_rotation)
            limits.append(joint.effective_limits(dof))
        joint_indices[joint] = JointIndices(
            q_indices, v_indices, len(q_names) if has_quaternion else None, len(v_names) if has_quaternion else None
        )
        if has_quaternion:
            quaternions.append((len(q_names), len(v_names)))
            q_names += [f"{name}.q{part}" for part in "wxyz"]
            v_names += [f"{name}.{dof.name}" for dof in ROTATIONS]
            rotates += [True] * 3
            limits += [(-np.inf, np.inf)] * 4
    if len(set(q_names)) < len(q_names):
        repeated_name = next(name for name in q_names if q_names.count(name) > 1)
        raise StructureError(
            f"two dofs have the name {repeated_name!r}; rename one of the joints", code="duplicate-name"
        )
    bounds = np.array(limits, dtype=np.float64).reshape(-1, 2)
    space = ConfigurationSpace(
        q_names=tuple(q_names),
        v_names=tuple(v_names),
        scalars_q=np.array([q for q, _ in scalars], dtype=np.int64),
        scalars_v=np.array([v for _, v in scalars], dtype=np.int64),
        quaternions_q=np.array([q for q, _ in quaternions], dtype=np.int64),
        quaternions_v=np.array([v for _, v in quaternions], dtype=np.int64),
        rotates=np.array(rotates, dtype=np.bool_),
        lower=read_only(np.ascontiguousarray(bounds[:, 0])),
        upper=read_only(np.ascontiguousarray(bounds[:, 1])),
    )
    return space, joint_indices


def _path(nodes: Array, link_row: Array) -> Array:
    """Return the rows of the nodes from the world to a link; the last row is `link_row`, the fixed node of the link."""
    path_nodes = [link_row]
    while (node := Node(path_nodes[-1]).parent) >= 0:
        path_nodes.append(nodes[node])
    path = np.array(path_nodes[::-1])
    kinds = open_nodes(path).column(Node.kind)
    Node(path[-1]).has_only_scalar_joints = not np.isin(kinds, (TRANSLATION, SPHERICAL)).any()
    return path


def node_row(
    X: Array, kind: int, first_q: int, first_v: int, parent: int = -1, ratio: float = 1.0, offset: float = 0.0
) -> Array:
    """Return a node with the fixed pose X (4, 4) as a row of a table of nodes; see `Node` for the other fields."""
    node = Node.allocate()
    node.X_parent_joint[:9], node.X_parent_joint[9:] = X[:3, :3].ravel(), X[:3, 3]
    node.ratio, node.offset, node.parent, node.kind = ratio, offset, parent, kind
    node.first_q, node.first_v = first_q, first_v
    return node.values


def as_node_table(rows: Sequence[Array]) -> Array:
    """Return the table (n, size of a `Node`) of nodes that are given as rows."""
    return np.array(rows, dtype=np.float64).reshape(-1, Node.size)


def fixed_pose(node: Node) -> Array:
    """Return the fixed pose of a node relative to its parent, (4, 4)."""
    X = node.X_parent_joint
    return make_pose(X[:9].reshape(3, 3), X[9:])


JointValueMap = Mapping[str, float | Sequence[float] | Array]


def values_by_name(kinematics: Kinematics, names: Mapping[Frame, str], q: Array) -> dict[str, float | Array]:
    """Return the values of each moving joint at q: a number for a single dof, an array for several; m or rad."""
    values_by_joint: dict[str, float | Array] = {}
    for joint in kinematics.joint_indices:
        if joint.dof:
            values = _values(kinematics, joint, q)
            values_by_joint[names[joint]] = float(values[0]) if len(values) == 1 else values
    return values_by_joint


def configuration_by_name(
    kinematics: Kinematics, joints: Mapping[str, Joint], values: JointValueMap, start: Array
) -> Array:
    """Write values by joint or dof into `start` (nq,), in place, and return it; see `Mechanism.configuration`."""
    if not isinstance(values, Mapping):
        raise ShapeError(f"values must be a mapping such as {{'elbow': 0.5}}, not {values!r}")
    mimic_values: list[tuple[Joint, DoF, float]] = []
    for name, value in values.items():
        joint, dofs = joint_and_dofs(name, joints)
        indices = kinematics.joint_indices.get(joint)
        if indices is None:
            reason = (
                "closes a loop, so the poses of its links determine its values"
                if joint.is_closure
                else "has no child link"
            )
            raise CouplingError(f"{joint} {reason}; it cannot be set")
        if not dofs:
            raise DoFError(f"{joint} is fixed, so it has no value")
        numbers = dict(zip(dofs, as_numbers((value,), len(dofs), f"values of {joint}"), strict=True))
        for dof, number in numbers.items():
            if dof in indices.q:
                start[indices.q[dof]] = number
            elif dof in joint._couplings:
                mimic_values.append((joint, dof, number))
        if indices.quaternion_q is not None and any(dof.is_rotation for dof in dofs):
            # angles without a new value keep their value in `start`
            angles = dict(zip(joint.dof, _values(kinematics, joint, start), strict=True)) | numbers
            zyx = [angles[dof] for dof in reversed(ROTATIONS)]
            start[indices.quaternion_q : indices.quaternion_q + 4] = quaternion.from_euler(
                zyx, order="zyx", axes="moving"
            )
    for joint, dof, number in mimic_values:
        mimic_value = _mimic_value(kinematics, joint, dof, start)
        if abs(mimic_value - number) > 1e-6:
            leader, unit = joint._couplings[dof].leader, dof.unit
            raise CouplingError(
                f"{joint} is coupled to {leader}, which sets its value to {mimic_value:g} {unit}, not {number:g} {unit}"
            )
    return start


def joint_and_dofs(name: str, joints: Mapping[str, Joint]) -> tuple[Joint, tuple[DoF, ...]]:
    """Return the joint and the dofs that a name such as `elbow` or `base.EX` refers to.

    Raises:
        UnknownName: no joint or dof has that name.
        DoFError: the joint does not have the dof.
    """
    joint = joints.get(name)
    if joint is not None:
        return joint, joint.dof
    joint_name, _, dof_name = str(name).rpartition(".")
    if joint_name in joints and dof_name in DoF.__members__:
        return joints[joint_name], (joints[joint_name]._check_dof(dof_name),)
    if joint_name in joints:
        raise UnknownName(f"dof of joint {joint_name!r}", dof_name, [dof.name for dof in joints[joint_name].dof])
    raise UnknownName("joint", name, joints)


def _values(kinematics: Kinematics, joint: Joint, q: Array) -> Array:
    indices, values = kinematics.joint_indices[joint], np.array(joint._values)
    for dof in joint.dof:
        if dof in indices.q:
            values[dof] = q[indices.q[dof]]
        elif dof in joint._couplings:
            values[dof] = _mimic_value(kinematics, joint, dof, q)
    if indices.quaternion_q is not None:
        wxyz = q[indices.quaternion_q : indices.quaternion_q + 4]
        values[[5, 4, 3]] = euler.euler_from_quaternion(wxyz, order="zyx", axes="moving", near=values[[5, 4, 3]])
    return values[list(joint.dof)]


def _mimic_value(kinematics: Kinematics, joint: Joint, dof: DoF, q: Array) -> float:
    """Return the value of a mimic dof at q, m or rad."""
    leader, leader_dof, ratio, offset = joint._couplings[dof].resolve()
    return float(ratio * q[kinematics.joint_indices[leader].q[leader_dof]] + offset)
