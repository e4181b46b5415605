"""Capsules in a URDF: `<capsule>` is read, but most programs refuse it, so that none is written.

What is written holds the same space and is known everywhere: a cylinder NAME.side and spheres NAME.lower and NAME.upper
at its ends. Three such shapes one after the other are a capsule NAME again, unless somebody has moved one of them. A
capsule of length 0 has no side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from mechanik.mechanism.shapes import Capsule, Cylinder, PlacedShape, Sphere
from mechanik.spatial import Pose

SIDE, LOWER, UPPER = ".side", ".lower", ".upper"
NEAR = 1e-9
"""m, and as a share of how far away it is: what an end may be off that nobody has moved."""


def without_capsules(shapes: Iterable[PlacedShape], owner: str) -> list[PlacedShape]:
    """Shapes that every program knows.

    Args:
        owner: how capsules without names are called, with a number: `hand.collision`. MuJoCo wants no name twice.
    """
    written: list[PlacedShape] = []
    for count, placed in enumerate(shapes):
        name = placed.name or f"{owner}{count}"
        written += _parts(placed, placed.shape, name) if isinstance(placed.shape, Capsule) else [placed]
    return written


def with_capsules(shapes: Sequence[PlacedShape], owner: str) -> list[PlacedShape]:
    """The shapes from which `without_capsules` made these."""
    found: list[PlacedShape] = []
    k = 0
    while k < len(shapes):
        whole = _capsule(shapes[k : k + 3], owner)
        found.append(shapes[k] if whole is None else whole)
        k += 1 if whole is None else 2 if isinstance(shapes[k].shape, Sphere) else 3
    return found


def _parts(placed: PlacedShape, capsule: Capsule, name: str) -> list[PlacedShape]:
    ends = [replace(placed, shape=Sphere(capsule.radius), name=name + end) for end in (LOWER, UPPER)]
    if capsule.length == 0:
        return ends
    side = replace(placed, shape=Cylinder(capsule.radius, capsule.length), name=name + SIDE)
    at = [Pose(placed.pose.apply((0.0, 0.0, sign * capsule.length / 2))) for sign in (-1, 1)]
    return [side, *(replace(end, pose=pose) for end, pose in zip(ends, at, strict=True))]


def _capsule(shapes: Sequence[PlacedShape], owner: str) -> PlacedShape | None:
    """The capsule with whose parts the shapes begin, if they do."""
    first = shapes[0]
    match first.shape:
        case Cylinder(radius, length) if first.name.endswith(SIDE):
            capsule, name = Capsule(radius, length), first.name.removesuffix(SIDE)
        case Sphere(radius) if first.name.endswith(LOWER):
            capsule, name = Capsule(radius, 0.0), first.name.removesuffix(LOWER)
        case _:
            return None
    parts = _parts(first, capsule, name)
    if len(shapes) < len(parts) or not all(map(_is_same, shapes, parts)):
        return None
    unnamed = name.startswith(owner) and name.removeprefix(owner).isdecimal()
    return replace(first, shape=capsule, name="" if unnamed else name)


def _is_same(one: PlacedShape, other: PlacedShape) -> bool:
    """But for rounding, and for how a ball is turned."""
    if (one.shape, one.name, one.material) != (other.shape, other.name, other.material):
        return False
    off = np.abs(one.pose.position - other.pose.position).max()
    return bool(off <= NEAR * (1.0 + np.abs(other.pose.position).max()))
