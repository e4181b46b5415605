"""Simple solids that let a mechanism be seen: bones between points, hubs about axes, balls, blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mechanik.mechanism import Box, Capsule, Cylinder, Joint, Link, Material, Mechanism, PlacedShape, Sphere
from mechanik.spatial import Pose, inverse, make, rotation
from mechanik.spatial.array import Array, ArrayLike

WHITE = Material("white", (0.93, 0.94, 0.95, 1.0))
GREY = Material("grey", (0.62, 0.65, 0.69, 1.0))
DARK = Material("dark", (0.22, 0.24, 0.28, 1.0))
BLUE = Material("blue", (0.25, 0.52, 0.78, 1.0))
ORANGE = Material("orange", (0.95, 0.49, 0.12, 1.0))
RED = Material("red", (0.80, 0.23, 0.20, 1.0))
GREEN = Material("green", (0.33, 0.62, 0.37, 1.0))

POINT = 1e-9
"""Bones shorter than this are points, which have no direction."""


def bone(start: ArrayLike, end: ArrayLike, radius: float, material: Material) -> PlacedShape:
    """A capsule whose round ends are centred at the two points of the link."""
    pose, length = _between(start, end)
    return PlacedShape(Capsule(radius, length), pose, material)


def rod(start: ArrayLike, end: ArrayLike, radius: float, material: Material) -> PlacedShape:
    """A cylinder that ends flat at the two points of the link."""
    pose, length = _between(start, end)
    return PlacedShape(Cylinder(radius, length), pose, material)


def hub(at: ArrayLike, axis: ArrayLike, radius: float, length: float, material: Material) -> PlacedShape:
    """A cylinder about an axis, centred at a point of the link: the housing of a joint."""
    return PlacedShape(Cylinder(radius, length), _pose_along(axis, np.asarray(at, dtype=np.float64)), material)


def ball(at: ArrayLike, radius: float, material: Material) -> PlacedShape:
    return PlacedShape(Sphere(radius), Pose(at), material)


def block(at: ArrayLike, size: tuple[float, float, float], material: Material) -> PlacedShape:
    """A box with its centre at a point of the link."""
    return PlacedShape(Box(size), Pose(at), material)


def put_on(link: Link, *shapes: PlacedShape) -> None:
    """Show the link as these shapes, and let it bump with them."""
    link.visuals = link.collisions = (*link.visuals, *shapes)


def dress(mechanism: Mechanism, radius: float, tip_radius: float, material: Material, accent: Material) -> Mechanism:
    """Give each link that a joint moves, and the root, a hub at its joint and bones to the joints that it holds.

    A bone goes first across its own joint's axis, then along it, as the arms of robots are built. Links that
    have shapes already, and frames that only hang fixed on others, stay as they are.

    Args:
        radius, tip_radius: of the bones at the root and at the last link; those between are between.
    """
    links = [link for link in mechanism.links.values() if _is_body(link) and not link.visuals]
    for k, link in enumerate(links):
        thickness = radius + (tip_radius - radius) * k / max(1, len(links) - 1)
        put_on(link, *_body(link, thickness, material, accent))
    return mechanism


def _is_body(link: Link) -> bool:
    joint = link.parent
    return not isinstance(joint, Joint) or bool(joint.dof)


def _body(link: Link, radius: float, material: Material, accent: Material) -> list[PlacedShape]:
    above, segment = link.parent, bone
    if isinstance(above, Joint):
        X_link_joint = inverse(link.matrix)
        start, axis = X_link_joint[:3, 3], X_link_joint[:3, :3] @ above.axis
        shapes = [hub(start, axis, 1.15 * radius, 2.6 * radius, accent)]
    else:
        # flat, so that nothing sticks out below the ground
        start, axis, segment = np.zeros(3), np.array([0.0, 0.0, 1.0]), rod
        shapes = [hub((0.0, 0.0, 0.25 * radius), axis, 1.6 * radius, 0.5 * radius, accent)]
    for joint in link.children:
        reach = joint.position - start
        along = (reach @ axis) * axis
        stops = [start, start + (reach - along), start + reach]
        shapes += [segment(a, b, radius, material) for a, b in pairwise(stops) if np.linalg.norm(b - a) > POINT]
    return shapes


def _between(start: ArrayLike, end: ArrayLike) -> tuple[Pose, float]:
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    return (_pose_along(b - a, (a + b) / 2) if length > POINT else Pose(a)), length


def _pose_along(axis: ArrayLike, at: Array) -> Pose:
    return Pose.from_matrix(make(rotation.between((0.0, 0.0, 1.0), axis), at))
