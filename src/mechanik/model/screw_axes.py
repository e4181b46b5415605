"""Screw axes of a serial chain of revolute joints, and the geometry of lines in space.

A line is given by a point and a unit direction. The axes are lines in the base frame, at their places when all angles
are zero. The pose of the tip link is a product of exponentials:

    X_base_link(q) = rotation(axis 1, q1) ... rotation(axis n, qn) @ home
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanik.errors import NoClosedForm, StructureError
from mechanik.kernels.nodes import (
    FIXED,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    Node,
    open_nodes,
)
from mechanik.model.configuration_space import Indices
from mechanik.model.kinematics import Kinematics, fixed_pose, forward, node_row
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array
from mechanik.spatial.vector_math import cross, length
from mechanik.validation import read_only


def angle_between_lines(a: Array, b: Array) -> float:
    """Return the angle between two undirected lines with unit directions (3,), rad, 0 to pi/2."""
    return math.atan2(float(length(cross(a, b))), abs(float(a @ b)))


def closest_point_on_line(point: Array, point_on_line: Array, direction: Array) -> Array:
    """Return the point (3,) of a line that is nearest to `point`; the line is a point on it and a unit direction."""
    return point_on_line + direction * (direction @ (point - point_on_line))


def nearest_points_of_lines(
    point_a: Array, direction_a: Array, point_b: Array, direction_b: Array
) -> tuple[Array, Array]:
    """Return the point of line a that is nearest to line b, and the point of line b that is nearest to line a.

    For parallel lines the first point is `point_a`. Lines with an angle below 1e-5 rad count as parallel.

    Args:
        point_a, point_b: (3,), a point on each line.
        direction_a, direction_b: (3,), unit directions.
    """
    normal = cross(direction_a, direction_b)
    squared_sine = float(normal @ normal)
    if squared_sine < 1e-10:
        return point_a, closest_point_on_line(point_a, point_b, direction_b)
    offset = point_b - point_a
    return (
        point_a + direction_a * (cross(offset, direction_b) @ normal / squared_sine),
        point_b + direction_b * (cross(offset, direction_a) @ normal / squared_sine),
    )


def line_distance(point_a: Array, direction_a: Array, point_b: Array, direction_b: Array) -> float:
    """Return the distance between two lines, in the unit of the points; arguments as in `nearest_points_of_lines`."""
    nearest_a, nearest_b = nearest_points_of_lines(point_a, direction_a, point_b, direction_b)
    return float(length(nearest_b - nearest_a))


def closest_point_to_lines(points: Array, directions: Array) -> tuple[Array, float]:
    """Return the least-squares intersection point of m lines, and its largest distance from a line.

    For parallel lines the point is the mean of the points where the lines meet a common normal plane; the returned
    distance is then at least half of the largest distance between two lines.

    Args:
        points: (m, 3), a point on each line.
        directions: (m, 3), unit directions.
    """
    # projections onto the plane normal to each line
    projections = np.eye(3) - directions[:, :, None] * directions[:, None, :]
    # relative to the mean point, so that lines far from the origin do not lose accuracy
    centre = points.mean(axis=0)
    projected_points = np.einsum("kij,kj->ki", projections, points - centre)
    eigenvalues, eigenvectors = np.linalg.eigh(projections.sum(axis=0))
    inverse_eigenvalues = np.where(eigenvalues > 1e-10, 1.0 / np.maximum(eigenvalues, 1e-10), 0.0)
    point = centre + eigenvectors @ (inverse_eigenvalues * (eigenvectors.T @ projected_points.sum(axis=0)))
    distances = length(np.einsum("kij,kj->ki", projections, point - points))
    return point, float(distances.max())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScrewAxes:
    """The axes of a chain of n revolute joints.

    Attributes:
        names: names of the joints as in `ConfigurationSpace.q_names`, base first.
        columns: (n,), index of each joint in q.
        directions: (n, 3), unit vectors in the base frame at zero angles.
        points: (n, 3), a point on each axis in the base frame at zero angles, m.
        home: (4, 4), X_base_link at zero angles.
        lower, upper: (n,), limits, rad.
        nodes: (n + 1, 18), a node for each joint and the fixed node of the link, as in `Kinematics.paths`; their q has
            the n angles only.
    """

    names: tuple[str, ...]
    columns: Indices
    directions: Array
    points: Array
    home: Array
    lower: Array
    upper: Array
    nodes: Array

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.names)

    @property
    def reach(self) -> float:
        """Approximate reach of the arm, m, to which tolerances of lengths are relative.

        It is the largest distance of an axis from the tip, or from the point on the next axis, at zero angles; 1 if
        this distance is zero.
        """
        tip_offsets = self.home[:3, 3] - self.points
        largest_distance = float(length(cross(self.directions, tip_offsets)).max(initial=0.0))
        for k in range(self.n - 1):
            next_offset = self.points[k + 1] - self.points[k]
            largest_distance = max(largest_distance, float(length(cross(self.directions[k], next_offset))))
        return largest_distance or 1.0

    def poses(self, q: Array) -> Array:
        """Compute X_base_link (m, 4, 4) at q (m, n)."""
        X = np.empty((len(q), 4, 4))
        forward.chain_poses(self.nodes, np.ascontiguousarray(q), X)
        return X

    def jacobians(self, q: Array) -> Array:
        """Compute the Jacobians (m, 6, n) of the link's origin (linear, angular) in the base frame at q (m, n)."""
        J = np.empty((len(q), 6, self.n))
        forward.chain_jacobians(self.nodes, np.zeros(3), np.ascontiguousarray(q), J)
        return J


def screw_axes(kinematics: Kinematics, link: str, base: str | None = None) -> ScrewAxes:
    """Return the axes between `base` and `link`; independent revolute joints with equal limits count as fixed.

    Args:
        kinematics: the compiled mechanism.
        link: name of the tip link.
        base: name of a link above `link`; default: the world.

    Raises:
        UnknownName: no link has that name.
        StructureError: `base` is not above `link`.
        NoClosedForm: a joint of the chain has a translation or a quaternion, or is a mimic joint. A mimic joint with
            ratio 1 and offset 0 is allowed if no other joint of the chain has the same leader or is the leader.
    """
    space = kinematics.space
    rows: list[Array] = []
    names: list[str] = []
    columns: list[int] = []
    # pose of the present node relative to the base, and relative to the previous axis
    X_base_node, X_axis_node = np.eye(4), np.eye(4)
    directions: list[Array] = []
    points: list[Array] = []
    for node in open_nodes(_nodes_between(kinematics, link, base)):
        X_base_node = X_base_node @ fixed_pose(node)
        X_axis_node = X_axis_node @ fixed_pose(node)
        kind, column = node.kind, node.first_q
        if kind == FIXED:
            break
        name = space.q_names[column]
        if kind != REVOLUTE:
            # `name` is the first entry of q of the node, such as "hip.qw" or "base.X"
            joint_name = name.rpartition(".")[0] if kind in (SPHERICAL, TRANSLATION) else name
            reason = {SPHERICAL: "is spherical", TRANSLATION: "has three translations"}.get(kind, "is prismatic")
            raise NoClosedForm(f"joint {joint_name!r} {reason}: closed forms exist only for revolute joints")
        if node.ratio != 1.0 or node.offset != 0.0 or column in columns:
            raise NoClosedForm(f"joint {name!r} is coupled to another joint: closed forms need independent joints")
        if space.lower[column] == space.upper[column]:
            X_joint = make_pose(rotation.about_z(space.lower[column]), np.zeros(3))
            X_base_node, X_axis_node = X_base_node @ X_joint, X_axis_node @ X_joint
            continue
        directions.append(X_base_node[:3, 2])
        points.append(X_base_node[:3, 3])
        rows.append(node_row(X_axis_node, REVOLUTE, len(names), len(names), parent=0))
        names.append(name)
        columns.append(column)
        X_axis_node = np.eye(4)
    end_row = node_row(X_axis_node, FIXED, 0, 0, parent=0)
    Node(end_row).q_length, Node(end_row).has_only_scalar_joints = len(names), True
    return ScrewAxes(
        names=tuple(names),
        columns=np.array(columns, dtype=np.int64),
        directions=read_only(np.array(directions).reshape(-1, 3)),
        points=read_only(np.array(points).reshape(-1, 3)),
        home=read_only(X_base_node),
        lower=read_only(space.lower[columns]),
        upper=read_only(space.upper[columns]),
        nodes=np.array([*rows, end_row]),
    )


def _nodes_between(kinematics: Kinematics, link: str, base: str | None) -> Array:
    """Return the nodes from the base to the link; the fixed pose of the first node is relative to the base."""
    path = kinematics.path(link).copy()
    if base is None:
        return path
    base_path = kinematics.path(base)
    shared_count = len(base_path) - 1
    if len(path) <= shared_count or not np.array_equal(base_path[:-1], path[:shared_count]):
        raise StructureError(f"link {base!r} is not an ancestor of {link!r}, so it cannot be the base of the chain")
    path = path[shared_count:]
    first_node = Node(path[0])
    X = inverse(fixed_pose(Node(base_path[-1]))) @ fixed_pose(first_node)
    first_node.X_parent_joint[:9], first_node.X_parent_joint[9:] = X[:3, :3].ravel(), X[:3, 3]
    return path
