"""Links and obstacles with their shapes, ready for the tables of the kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mechanik.collision.obstacle import Obstacle
from mechanik.collision.solid import Solid, as_solid, refuse_flat
from mechanik.errors import ShapeError, StructureError
from mechanik.kernels.distance.shape_layout import HALF_SPACE
from mechanik.kernels.layout import PARENT
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.shapes import Mesh, PlacedShape
from mechanik.spatial import make
from mechanik.spatial.array import Array

Meshes = Literal["auto", "exact", "fitted"]


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """
    Attributes:
        name: of the link or obstacle.
        node: that carries it; -1 if it stands still.
        frame: X_node_body, (4, 4).
        solids: each with X_body_shape.
    """

    name: str
    node: int
    frame: Array
    solids: tuple[tuple[Solid, Array], ...]


def link_bodies(mechanism: Mechanism, meshes: Meshes) -> list[Body]:
    """All links that have shapes to bump with; refused if none has."""
    kinematics, found = mechanism.kinematics, list[Body]()
    for (name, link), end in zip(mechanism.links.items(), kinematics.ends, strict=True):
        if link.collisions:
            node = int(end[PARENT])
            solids = _solids(link.collisions, f"link {name!r}", meshes)
            if node >= 0 and any(solid.kind == HALF_SPACE for solid, _ in solids):
                raise ShapeError(f"link {name!r} moves and has a half-space, which only what stands still can be")
            found.append(Body(name, node, make(end[:9].reshape(3, 3), end[9:12]), solids))
    if not found:
        raise StructureError(
            f"no link of {mechanism.name or 'the mechanism'!r} has a shape to bump with; give links collisions, "
            "such as Link(collisions=[PlacedShape(Capsule(0.05, 0.3))])"
        )
    return found


def obstacle_bodies(obstacles: Iterable[Obstacle], meshes: Meshes) -> list[Body]:
    """The shape of an obstacle as a body that stands still; unnamed ones have got their names before."""
    return [
        Body(one.name, -1, one.pose.matrix, _solids([PlacedShape(one.shape)], f"obstacle {one.name!r}", meshes))
        for one in obstacles
    ]


def _solids(shapes: Iterable[PlacedShape], owner: str, meshes: Meshes) -> tuple[tuple[Solid, Array], ...]:
    found: list[tuple[Solid, Array]] = []
    for placed in shapes:
        for simple in _without_meshes(placed, owner, meshes):
            refuse_flat(simple.shape, owner)
            found.append((as_solid(simple.shape), simple.pose.matrix))
    return tuple(found)


def _without_meshes(placed: PlacedShape, owner: str, meshes: Meshes) -> list[PlacedShape]:
    if not isinstance(placed.shape, Mesh):
        return [placed]
    from mechanik.collision.meshes import kernel_shapes  # late: it needs packages that may not be there

    return kernel_shapes(placed, owner, meshes)
