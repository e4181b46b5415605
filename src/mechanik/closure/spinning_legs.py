"""Legs that may rotate about the line between their ends without any effect on the rest of a mechanism.

A leg is a part of a loop between two centres of rotation: a rod or a linear actuator between two spherical joints,
which rotates freely, or between a universal and a spherical joint, which has two positions for each pose of the rest.
The leg constrains the distance of its centres alone. So configurations that differ only in the rotation of legs have
the same poses of all other links.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechanik.model import Joint, Link, Mechanism
from mechanik.model.dof import ROTATIONS, TRANSLATIONS
from mechanik.model.screw_axes import (
    angle_between_lines,
    closest_point_on_line,
    line_distance,
    nearest_points_of_lines,
)
from mechanik.objectives.constraint_relations import joint_base_frame
from mechanik.spatial.array import Array

MIN_ROTATIONS, MIN_ROTATIONS_OF_BOTH_ENDS = 2, 5
"""Number of rotations at an end of a leg, and at both ends together. Two universal joints have four: they transmit the
rotation about the line between them."""
CENTRE_TOLERANCE = 1e-9
"""Largest distance of an axis from the centre that it passes through, as a ratio to the extent of the mechanism."""
MIN_AXIS_ANGLE = 1e-3
"""rad; axes at a smaller angle count as parallel."""


@dataclass(frozen=True, slots=True, eq=False)
class SpinningLegs:
    """The legs of a mechanism, and the poses of all other links.

    Attributes:
        mechanism: the mechanism.
        links: names of the links of the legs.
        spin_count: number of free rotations of all legs.
        columns: indices into q of the joints of the legs.
    """

    mechanism: Mechanism
    links: tuple[str, ...]
    spin_count: int
    columns: list[int]
    _other_links: tuple[str, ...]
    _slide_columns: list[int]

    def __bool__(self) -> bool:
        return bool(self.links)

    def pose_key(self, q: Array, length_unit: float) -> Array:
        """Return numbers (K, n) that are equal for configurations (K, nq) that differ in the rotation of legs alone.

        Args:
            q: configurations, (K, nq).
            length_unit: unit of the lengths, m.
        """
        X = self.mechanism.poses(q, self._other_links)
        positions = X[..., :3, 3].reshape(len(q), 3 * len(self._other_links)) / length_unit
        rotations = X[..., :3, :3].reshape(len(q), 9 * len(self._other_links))
        return np.concatenate([positions, rotations, q[:, self._slide_columns] / length_unit], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Connection:
    """A joint or closure between two bodies, seen from one of them.

    Attributes:
        name: name of the joint.
        bodies: the near and the far body; None is the world.
        X: poses in the world of the motion axes on the near and on the far body, (4, 4) each.
        axes: indices of the axes of rotation, if the joint only rotates and its rotations are free; else empty.
        is_slide: whether the joint only translates, in the kinematic tree.
        is_given: whether the joint is driven, or closes a loop without any dof.
    """

    name: str
    bodies: tuple[str | None, str | None]
    X: tuple[Array, Array]
    axes: tuple[int, ...]
    is_slide: bool
    is_given: bool

    def reversed(self) -> _Connection:
        return replace(self, bodies=self.bodies[::-1], X=self.X[::-1])


@dataclass(slots=True, eq=False)
class _Centre:
    """Successive joints of a path whose axes meet in a point.

    Attributes:
        first, last: indices of the first and last joint in the path.
        count: number of rotations.
        point: the point on the far body of the last joint; a point of the axis, if there is a single rotation.
        direction: the axis of a single rotation.
    """

    first: int
    last: int
    count: int
    point: Array
    direction: Array | None = None


def find_spinning_legs(mechanism: Mechanism, driven_names: Collection[str]) -> SpinningLegs:
    """Find the legs of a mechanism.

    Args:
        mechanism: the mechanism.
        driven_names: names of driven joints and dofs; joints whose rotations are driven are not ends of legs.
    """
    bodies = _bodies(mechanism)
    connections: dict[str | None, list[_Connection]] = {}
    for connection in _connections(mechanism, bodies, driven_names):
        connections.setdefault(connection.bodies[0], []).append(connection)
        connections.setdefault(connection.bodies[1], []).append(connection.reversed())
    poses = mechanism.poses(mechanism.q)
    extent = float(np.ptp(poses[:, :3, 3], axis=0).max(initial=0.0))
    leg_bodies: set[str | None] = set()
    joint_names: set[str] = set()
    slide_names: set[str] = set()
    spin_count = 0
    for path in _paths(connections):
        for first, second in _legs_of_path(path, CENTRE_TOLERANCE * max(extent, 1e-9)):
            inner_bodies = {connection.bodies[1] for connection in path[first.first : second.last]}
            if inner_bodies & leg_bodies:  # the same path in the other direction
                continue
            leg_bodies |= inner_bodies
            joint_names |= {connection.name for connection in path[first.first : second.last + 1]}
            slide_names |= {connection.name for connection in path[first.last + 1 : second.first]}
            spin_count += first.count + second.count - MIN_ROTATIONS_OF_BOTH_ENDS
    is_in_leg = {name: bodies[name] in leg_bodies for name in mechanism.links}
    return SpinningLegs(
        mechanism,
        tuple(name for name, is_inside in is_in_leg.items() if is_inside),
        spin_count,
        _q_columns(mechanism, joint_names),
        tuple(name for name, is_inside in is_in_leg.items() if not is_inside),
        _q_columns(mechanism, slide_names),
    )


def _q_columns(mechanism: Mechanism, names: Collection[str]) -> list[int]:
    """Return the indices into q of joints, by name; joints that close loops have none."""
    columns: list[int] = []
    for joint, indices in mechanism.kinematics.joint_indices.items():
        if mechanism.name_of(joint) in names:
            columns += indices.q.values()
            if indices.quaternion_q is not None:
                columns += range(indices.quaternion_q, indices.quaternion_q + 4)
    return columns


def _bodies(mechanism: Mechanism) -> dict[str, str | None]:
    """Return the body of each link: the name of its first link, or None for the world."""
    bodies: dict[str, str | None] = {}
    for root in mechanism.roots:
        for frame in root.traverse():
            if not isinstance(frame, Link):
                continue
            parent = frame.parent
            while (
                parent is not None and not isinstance(parent, Link) and not (isinstance(parent, Joint) and parent.dof)
            ):
                parent = parent.parent
            name = mechanism.name_of(frame)
            if parent is None:
                bodies[name] = None
            elif isinstance(parent, Link):
                bodies[name] = bodies[mechanism.name_of(parent)]
            else:  # a joint; all its children are one body
                bodies[name] = name if parent.child is None else mechanism.name_of(parent.child)
    return bodies


def _connections(
    mechanism: Mechanism, bodies: dict[str, str | None], driven_names: Collection[str]
) -> Iterator[_Connection]:
    """Yield the moving joints between bodies, and the closures."""
    coupled_joints = {coupling.resolve()[0] for joint in mechanism.joints.values() for coupling in joint.couplings}
    for name, joint in mechanism.joints.items():
        parent, X_parent_axes, X_joint_axes = joint_base_frame(mechanism, joint)
        if joint.closure is not None:
            child, X_child_axes = mechanism.name_of(joint.closure.link), joint.closure.at.matrix @ X_joint_axes
        elif joint.dof and joint.child is not None:
            child = mechanism.name_of(joint.child)
            X_child_axes = np.linalg.inv(joint.child.matrix) @ X_joint_axes
        else:
            continue
        is_rotation = all(dof in ROTATIONS for dof in joint.dof)
        is_driven = name in driven_names or any(f"{name}.{dof.name}" in driven_names for dof in joint.dof)
        is_coupled = bool(joint.couplings or joint.joint_constraints or joint in coupled_joints)
        X_world_parent = np.eye(4) if parent is None else mechanism.pose(parent)
        yield _Connection(
            name,
            (None if parent is None else bodies[parent], bodies[child]),
            (X_world_parent @ X_parent_axes, mechanism.pose(child) @ X_child_axes),
            tuple(dof.axis_index for dof in joint.dof) if is_rotation and not is_driven and not is_coupled else (),
            not joint.is_closure and all(dof in TRANSLATIONS for dof in joint.dof),
            is_driven or not joint.dof,
        )


def _paths(connections: dict[str | None, list[_Connection]]) -> Iterator[list[_Connection]]:
    """Yield the paths between bodies with more or fewer than two joints; all bodies on the way have two."""
    for body, first_connections in connections.items():
        if body is not None and len(first_connections) == 2:
            continue
        for first in first_connections:
            path = [first]
            while (end := path[-1].bodies[1]) is not None and len(connections[end]) == 2:
                a, b = connections[end]
                path.append(b if a.name == path[-1].name else a)
            yield path


def _legs_of_path(path: list[_Connection], tolerance: float) -> Iterator[tuple[_Centre, _Centre]]:
    """Yield the centres at both ends of each leg.

    There are at most slides between the two ends, and all joints of the path outside the leg are driven. So an arm is
    no leg: although its upper arm can be turned over, that is another posture of the arm.
    """
    previous: _Centre | None = None
    for centre in _centres(path, tolerance):
        if (
            previous is not None
            and min(previous.count, centre.count) >= MIN_ROTATIONS
            and previous.count + centre.count >= MIN_ROTATIONS_OF_BOTH_ENDS
            and all(connection.is_slide for connection in path[previous.last + 1 : centre.first])
            and all(connection.is_given for connection in (*path[: previous.first], *path[centre.last + 1 :]))
        ):
            yield previous, centre
        previous = centre


def _centres(path: list[_Connection], tolerance: float) -> Iterator[_Centre]:
    """Yield the centres of rotation of a path in order, each with as many joints as possible."""
    centre: _Centre | None = None
    for k, connection in enumerate(path):
        point = None if centre is None else _common_point(centre, connection, tolerance)
        if centre is not None and point is not None:
            centre = _Centre(
                centre.first, k, centre.count + len(connection.axes), _point_on_far_body(connection, point)
            )
            continue
        if centre is not None:
            yield centre
        centre = None
        if connection.axes:
            direction = connection.X[1][:3, connection.axes[0]] if len(connection.axes) == 1 else None
            centre = _Centre(k, k, len(connection.axes), connection.X[1][:3, 3], direction)
    if centre is not None:
        yield centre


def _common_point(centre: _Centre, connection: _Connection, tolerance: float) -> Array | None:
    """Return the point (3,) where the axes of a centre meet those of the next joint; None if they do not."""
    if not connection.axes:
        return None
    position, is_single = connection.X[0][:3, 3], len(connection.axes) == 1
    direction = connection.X[0][:3, connection.axes[0]]
    if centre.direction is None:
        nearest = closest_point_on_line(centre.point, position, direction) if is_single else position
        return centre.point if np.linalg.norm(nearest - centre.point) <= tolerance else None
    if not is_single:
        nearest = closest_point_on_line(position, centre.point, centre.direction)
        return position if np.linalg.norm(nearest - position) <= tolerance else None
    if (
        angle_between_lines(centre.direction, direction) < MIN_AXIS_ANGLE
        or line_distance(centre.point, centre.direction, position, direction) > tolerance
    ):
        return None
    return nearest_points_of_lines(centre.point, centre.direction, position, direction)[0]


def _point_on_far_body(connection: _Connection, point: Array) -> Array:
    """Return a fixed point of a rotation as a point of the far body; the two ends of a closure may be apart."""
    X_near, X_far = connection.X
    if len(connection.axes) > 1:
        return X_far[:3, 3]
    k = next(iter(connection.axes))
    return X_far[:3, 3] + X_far[:3, k] * float((point - X_near[:3, 3]) @ X_near[:3, k])
