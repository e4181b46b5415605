"""Building blocks of the gallery: materials, simple shapes, default shapes of links, rods and hydraulic cylinders."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mechanik.errors import StructureError
from mechanik.model import Box, Builder, Capsule, Cylinder, Joint, Link, Material, Mechanism, ShapeInstance, Sphere
from mechanik.spatial import Pose, apply, inverse, make_pose, rotation
from mechanik.spatial.array import Array, ArrayLike


def set_home(mechanism: Mechanism, q: ArrayLike | None = None) -> Mechanism:
    """Set q (nq,) if it is given, store the current configuration as "home", and return the same mechanism."""
    if q is not None:
        mechanism.q = q
    mechanism.configurations["home"] = mechanism.q
    return mechanism


WHITE = Material("white", (0.93, 0.94, 0.95, 1.0))
GREY = Material("grey", (0.62, 0.65, 0.69, 1.0))
DARK = Material("dark", (0.22, 0.24, 0.28, 1.0))
BLUE = Material("blue", (0.25, 0.52, 0.78, 1.0))
ORANGE = Material("orange", (0.95, 0.49, 0.12, 1.0))
RED = Material("red", (0.80, 0.23, 0.20, 1.0))
GREEN = Material("green", (0.33, 0.62, 0.37, 1.0))

MIN_LENGTH = 1e-9
"""m; points that are closer than this count as equal."""


def capsule(start: ArrayLike, end: ArrayLike, radius: float, material: Material) -> ShapeInstance:
    """Return a capsule whose round ends are centred at two points of the link; m."""
    pose, length = _pose_and_length(start, end)
    return ShapeInstance(Capsule(radius, length), pose, material)


def rod(start: ArrayLike, end: ArrayLike, radius: float, material: Material) -> ShapeInstance:
    """Return a cylinder with flat ends at two points of the link; m."""
    pose, length = _pose_and_length(start, end)
    return ShapeInstance(Cylinder(radius, length), pose, material)


def hub(centre: ArrayLike, axis: ArrayLike, radius: float, length: float, material: Material) -> ShapeInstance:
    """Return a cylinder about an axis, centred at a point of the link, as the housing of a joint; m."""
    return ShapeInstance(Cylinder(radius, length), _pose_along(axis, np.asarray(centre, dtype=np.float64)), material)


def sphere(centre: ArrayLike, radius: float, material: Material) -> ShapeInstance:
    """Return a sphere centred at a point of the link; m."""
    return ShapeInstance(Sphere(radius), Pose(centre), material)


def block(centre: ArrayLike, size: tuple[float, float, float], material: Material) -> ShapeInstance:
    """Return a box centred at a point of the link; m."""
    return ShapeInstance(Box(size), Pose(centre), material)


def add_shapes(link: Link, *shapes: ShapeInstance) -> None:
    """Add shapes to the visuals of a link, and use all its visuals as collision shapes."""
    link.visuals = link.collisions = (*link.visuals, *shapes)


def add_default_shapes(
    mechanism: Mechanism, radius: float, tip_radius: float, material: Material, accent: Material
) -> Mechanism:
    """Give each link without visuals a hub at the joint that moves it, and capsules to its child joints and closures.

    The capsules run first perpendicular to the axis of the link's joint and then parallel to it, as in real robot arms.
    A root has a hub at its origin, and cylinders instead of capsules. Links with a fixed joint are not changed.

    Args:
        mechanism: the mechanism to change.
        radius, tip_radius: radii of the capsules at the first and at the last link that is changed, interpolated for
            the links between them; m.
        material: material of capsules and cylinders.
        accent: material of the hubs.

    Returns:
        The same mechanism.
    """
    links = [link for link in mechanism.links.values() if _is_root_or_moved(link) and not link.visuals]
    for k, link in enumerate(links):
        link_radius = radius + (tip_radius - radius) * k / max(1, len(links) - 1)
        add_shapes(link, *_link_shapes(link, link_radius, material, accent))
    return mechanism


def _is_root_or_moved(link: Link) -> bool:
    joint = link.parent
    return not isinstance(joint, Joint) or bool(joint.dof)


def _link_shapes(link: Link, radius: float, material: Material, accent: Material) -> list[ShapeInstance]:
    parent_joint, make_segment = link.parent, capsule
    if isinstance(parent_joint, Joint):
        X_link_joint = inverse(link.matrix)
        start, axis = X_link_joint[:3, 3], X_link_joint[:3, :3] @ parent_joint.axis
        shapes = [hub(start, axis, 1.15 * radius, 2.6 * radius, accent)]
    else:
        # cylinders have flat ends, so no shape extends below the ground
        start, axis, make_segment = np.zeros(3), np.array([0.0, 0.0, 1.0]), rod
        shapes = [hub((0.0, 0.0, 0.25 * radius), axis, 1.6 * radius, 0.5 * radius, accent)]
    for joint in link.children:
        offset = joint.position - start
        axial_offset = (offset @ axis) * axis
        corners = [start, start + (offset - axial_offset), start + offset]
        shapes += [
            make_segment(a, b, radius, material) for a, b in pairwise(corners) if np.linalg.norm(b - a) > MIN_LENGTH
        ]
    return shapes


def _pose_and_length(start: ArrayLike, end: ArrayLike) -> tuple[Pose, float]:
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    return (_pose_along(b - a, (a + b) / 2) if length > MIN_LENGTH else Pose(a)), length


def _pose_along(axis: ArrayLike, position: Array) -> Pose:
    """Return the pose at `position` whose z axis points along `axis`."""
    return Pose.from_matrix(make_pose(rotation.between((0.0, 0.0, 1.0), axis), position))


Z = np.array([0.0, 0.0, 1.0])
"""Unit vector along z."""


def add_rod(
    robot: Builder, name: str, a: str, p_a: ArrayLike, b: str, p_b: ArrayLike, radius: float, material: Material
) -> float:
    """Add a rod from a universal joint at point `p_a` of link `a` to a spherical closure at point `p_b` of link `b`.

    The rod cannot rotate about its own axis, which is z of its frame. Its joint `<name>_universal` is zero at the
    current poses of the links.

    Args:
        robot: the builder; its link poses determine the length.
        name: name of the rod.
        a, b: link names.
        p_a, p_b: points (3,) in the frames of these links; m.
        radius: radius of the rod; m.
        material: material of the rod.

    Returns:
        The length of the rod, m.
    """
    start, vector, length = _connection(robot, a, p_a, b, p_b)
    robot.universal(f"{name}_universal", a, name, at=make_pose(rotation.between(Z, vector), start), limits=(-1.4, 1.4))
    robot.close(f"{name}_ball", name, b, "ball", at=length * Z, onto=p_b)
    end_spheres = [sphere((0.0, 0.0, z), 1.8 * radius, DARK) for z in (0.0, length)]
    robot.link(name, visuals=[rod((0.0, 0.0, 0.0), length * Z, radius, material), *end_spheres])
    return length


def add_hydraulic_cylinder(
    robot: Builder,
    name: str,
    a: str,
    p_a: ArrayLike,
    b: str,
    p_b: ArrayLike,
    length_limits: tuple[float, float],
    radius: float,
    material: Material,
) -> float:
    """Add a hydraulic cylinder that is pinned to link `a` and a piston that is pinned to link `b`.

    Both pins are parallel to y of their link. The value of the joint `<name>_slide` is the distance between the pins.
    The frame of the cylinder is at its pin on `a`, and its z axis points to the pin on `b`. The joint `<name>_pin` is
    zero at the current poses of the links.

    Args:
        robot: the builder; its link poses determine the length.
        name: name of the cylinder; the piston is `<name>_piston`.
        a, b: link names.
        p_a, p_b: positions of the pins (3,) in the frames of these links, with the same y in the frame of `a`; m.
        length_limits: smallest and largest distance between the pins; m.
        radius: radius of the cylinder; m.
        material: material of the cylinder.

    Returns:
        The distance between the pins at the current poses of the links, m.

    Raises:
        StructureError: this distance is outside `length_limits`.
    """
    start, vector, length = _connection(robot, a, p_a, b, p_b)
    if not length_limits[0] <= length <= length_limits[1]:
        raise StructureError(
            f"{robot.name} cannot be assembled: {name} is {length:g} m long, "
            f"outside its limits {length_limits[0]:g} to {length_limits[1]:g} m"
        )
    R_a_cylinder = rotation.about_y(float(np.arctan2(vector[0], vector[2])))
    piston, sleeve_length = f"{name}_piston", 0.85 * length_limits[0]
    robot.revolute(f"{name}_pin", a, name, at=make_pose(R_a_cylinder, start), axis="y", limits=(-1.6, 1.6))
    robot.prismatic(f"{name}_slide", name, piston, limits=length_limits, value=length)
    robot.close(f"{name}_end", piston, b, "pin", onto=p_b, axis="y")
    pin = hub((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 1.3 * radius, 3.0 * radius, DARK)
    robot.link(name, visuals=[rod((0.0, 0.0, 0.0), sleeve_length * Z, radius, material), pin])
    robot.link(piston, visuals=[rod(-0.95 * sleeve_length * Z, (0.0, 0.0, 0.0), 0.55 * radius, GREY), pin])
    return length


def _connection(robot: Builder, a: str, p_a: ArrayLike, b: str, p_b: ArrayLike) -> tuple[Array, Array, float]:
    """Return the point `p_a`, the vector from it to `p_b`, and the length of the vector, in the frame of `a`; m."""
    start = np.asarray(p_a, dtype=np.float64)
    X_a_b = inverse(robot.link(a).world_matrix) @ robot.link(b).world_matrix
    vector = apply(X_a_b, np.asarray(p_b, dtype=np.float64)) - start
    return start, vector, float(np.linalg.norm(vector))
