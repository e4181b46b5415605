"""Where a last link ends: the side of its shapes that is farthest from its frame."""

from __future__ import annotations

import numpy as np

from mechanik.mechanism import Box, Capsule, Cylinder, Link, PlacedShape, Sphere
from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import Vector

MORE = 1.5
"""The end must be so many times as far as any other side: a link that is as thick as long has no end."""


def far_end(link: Link) -> Vector:
    """The middle of the farthest side of the box around the link's shapes, in its frame, m; the frame's origin if no
    side is much farther than the others. Meshes are not looked into."""
    boxes = [box for placed in link.visuals if (box := _box(placed)) is not None]
    if not boxes:
        return 0.0, 0.0, 0.0
    low = np.min([one for one, _ in boxes], axis=0)
    high = np.max([other for _, other in boxes], axis=0)
    sides = np.concatenate([-low, high])
    farthest = int(np.argmax(sides))
    if sides[farthest] <= MORE * np.delete(sides, farthest).max():
        return 0.0, 0.0, 0.0
    middle = (low + high) / 2
    axis = farthest % 3
    middle[axis] = (low if farthest < 3 else high)[axis]
    x, y, z = middle.tolist()
    return x, y, z


def _box(placed: PlacedShape) -> tuple[Array, Array] | None:
    """The lowest and the highest corner, in the link's frame."""
    match placed.shape:
        case Box(size):
            half = np.array(size) / 2
        case Sphere(radius):
            half = np.full(3, radius)
        case Cylinder(radius, length):
            half = np.array([radius, radius, length / 2])
        case Capsule(radius, length):
            half = np.array([radius, radius, length / 2 + radius])
        case _:
            return None
    reach = np.abs(placed.pose.matrix[:3, :3]) @ half
    return placed.pose.position - reach, placed.pose.position + reach
