"""Checks of what links are: shapes, meshes, masses and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mechanik.formats.finding import Finding
from mechanik.mechanism import Inertial, Link, Mechanism, Mesh
from mechanik.mechanism.shapes import Box, Capsule, Cylinder, Shape, Sphere

LARGEST_SCALE, SMALLEST_SCALE = 100.0, 1e-5
"""Meshes are drawn in m, mm (scale 0.001) or inches; beyond these a unit was mistaken."""
FARTHEST = 100.0
"""m between two joints; more than that is mm taken for m."""


def meshes(mechanism: Mechanism) -> Iterator[Finding]:
    told: set[tuple[str, str]] = set()
    mirrored: list[str] = []
    for name, link in mechanism.links.items():
        for shape in _shapes(link):
            if not isinstance(shape, Mesh) or (name, shape.uri) in told:
                continue
            told.add((name, shape.uri))
            if shape.path is None:
                yield Finding("warning", "mesh-missing", f"link {name!r}", f"the mesh {shape.uri!r} was not found")
            elif not Path(shape.path).is_file():
                text = f"the mesh {shape.uri!r} is no longer at {shape.path}"
                yield Finding("warning", "mesh-missing", f"link {name!r}", text)
            size = np.abs(shape.scale)
            shown = " ".join(f"{x:g}" for x in shape.scale)
            if not np.isfinite(size).all():
                yield Finding("error", "mesh-scale", f"link {name!r}", f"the mesh {shape.uri!r} is scaled by {shown}")
            elif size.any() and (size.max() >= LARGEST_SCALE or size.max() <= SMALLEST_SCALE):
                text = f"the mesh {shape.uri!r} is scaled by {shown}; a unit may have been mistaken"
                yield Finding("warning", "mesh-scale", f"link {name!r}", text)
            if np.prod(np.sign(shape.scale)) < 0:
                mirrored.append(name)
    if mirrored:  # once for the whole: where one side of a robot is the other mirrored, there are many
        links = list(dict.fromkeys(mirrored))
        named = ", ".join(links[:4]) + (", ..." if len(links) > 4 else "")
        many = "a mesh that is" if len(mirrored) == 1 else f"{len(mirrored)} meshes that are"
        yield Finding("note", "mesh-mirrored", "mechanism", f"has {many} mirrored by a negative scale (links: {named})")


def shapes(mechanism: Mechanism) -> Iterator[Finding]:
    for name, link in mechanism.links.items():
        for shape in dict.fromkeys(_shapes(link)):
            if min(_extents(shape)) == 0:
                text = f"has a shape without extent: {type(shape).__name__.lower()} of size 0"
                yield Finding("warning", "flat-shape", f"link {name!r}", text)


def masses(mechanism: Mechanism) -> Iterator[Finding]:
    weighed = any(link.inertial is not None and link.inertial.mass > 0 for link in mechanism.links.values())
    for name, link in mechanism.links.items():
        where = f"link {name!r}"
        if link.inertial is None:
            if weighed and _is_moved(link):
                yield Finding("note", "no-mass", where, "moves and has no mass, although others have")
            continue
        if link.inertial.mass < 0:
            yield Finding("error", "negative-mass", where, f"has a mass of {link.inertial.mass:g} kg")
        elif link.inertial.mass == 0 and _is_moved(link):
            yield Finding("warning", "zero-mass", where, "moves and has a mass of 0 kg")
        elif not _is_possible(link.inertial):
            text = (
                "has an inertia that no body has: no principal moment may be negative, or above the other two together"
            )
            yield Finding("warning", "inertia", where, text)


def scale(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        away = float(np.linalg.norm(joint.position))
        if joint.parent is not None and away > FARTHEST:
            text = f"sits {away:g} m from the frame of its parent; were these millimetres?"
            yield Finding("warning", "far", f"joint {name!r}", text)


def _shapes(link: Link) -> list[Shape]:
    return [placed.shape for placed in (*link.visuals, *link.collisions)]


def _extents(shape: Shape) -> tuple[float, ...]:
    match shape:
        case Box():
            return shape.size
        case Sphere():
            return (shape.radius,)
        case Cylinder():
            return shape.radius, shape.length
        case Capsule():
            return (shape.radius,)
        case Mesh():
            return tuple(abs(x) for x in shape.scale)
        case _:
            return (1.0,)  # the others refuse to be flat when they are made


def _is_moved(link: Link) -> bool:
    """Whether the joint that holds it moves; what is bolted on shares its holder's mass."""
    return link.parent is not None and bool(getattr(link.parent, "dof", ()))


def _is_possible(inertial: Inertial) -> bool:
    ixx, ixy, ixz, iyy, iyz, izz = inertial.inertia
    if not any(inertial.inertia):
        return True  # a point
    a, b, c = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    return bool(a >= -1e-9 * c and a + b >= c * (1 - 1e-6))
