"""Rules of position and rotation as relations: as few of them, and as many rows, as it takes.

Frame A stands at the target, frame B at what of the link should come there. Where a rule has a direction, it is z of
A; and since a rotation vector or an axis is zero in any axes when both frames agree, A may be turned as the position
likes, if B is turned alike.
"""

from __future__ import annotations

import numpy as np

from mechanik.mechanism.door import read_only
from mechanik.objectives.position_rules import Fixed, PositionRule
from mechanik.objectives.relation import Kind, Relation
from mechanik.objectives.rotation_rules import Aligned, FixedRotation, RotationRule, Square
from mechanik.spatial import make, rotation
from mechanik.spatial.array import Array

SAME = 1e-14
"""The sine below which two directions are one: rounding, and nothing that moves a point."""

Z_AXIS = np.array([0.0, 0.0, 1.0])
ORIGIN = np.zeros(3)


def placement_relations(
    position: PositionRule | None,
    turn: RotationRule | None,
    *,
    a: str | None,
    b: str,
    weight: float,
) -> tuple[Relation, ...]:
    """The relations between link `a` (None: the world), where the targets are, and link `b`."""

    def relation(kind: Kind, rows: tuple[int, ...], A: tuple[Array, Array], B: tuple[Array, Array]) -> Relation:
        return Relation(kind, rows, a, b, read_only(make(*A)), read_only(make(*B)), weight=weight)

    here, there = (ORIGIN, ORIGIN) if position is None else (position.target, position.local)
    rows = () if position is None else position.ROWS
    match turn:
        case None:
            A = np.eye(3) if position is None else _axes_of(position)
            return (relation(Kind.POSE, rows, (A, here), (np.eye(3), there)),)
        case FixedRotation():
            A, B = turn.target, turn.local
            if position is not None and not isinstance(position, Fixed):
                A = _axes_of(position)
                B = turn.wanted.T @ A
            return (relation(Kind.POSE, (*rows, 3, 4, 5), (A, here), (B, there)),)
        case Aligned():
            A = frame(turn.target)
            if position is not None and not isinstance(position, Fixed):
                shared = _shared(turn.target, position)
                if shared is None:
                    alone = placement_relations(position, None, a=a, b=b, weight=weight)
                    return (*alone, *placement_relations(None, turn, a=a, b=b, weight=weight))
                A, rows = shared
            return (relation(Kind.AXIS, (*rows, 3, 4), (A, here), (frame(turn.local), there)),)
        case Square():
            crossed = relation(Kind.COSINE, (0,), (frame(turn.target), ORIGIN), (frame(turn.local), ORIGIN))
            if position is None:
                return (crossed,)
            return (*placement_relations(position, None, a=a, b=b, weight=weight), crossed)


def frame(z: Array, x: Array | None = None) -> Array:
    """Axes (3, 3) whose z is the unit vector `z`, and whose x is `x`, at right angles to it, if that is given."""
    if x is None:
        return _from_z(*z.tolist())
    return np.stack([x, np.cross(z, x), z], axis=1)


def _from_z(x: float, y: float, z: float) -> Array:
    """`rotation.between` from z onto one unit vector, in plain numbers: a tenth of its time, and it is asked often."""
    k = 1.0 / (1.0 + abs(z))
    xx, xy, yy = x * x * k, x * y * k, y * y * k
    if z >= 0.0:
        return np.array([[1.0 - xx, -xy, x], [-xy, 1.0 - yy, y], [-x, -y, z]])
    s = x * x + y * y
    if s < 1e-20:
        return rotation.between(Z_AXIS, np.array([x, y, z]))
    # obtuse: onto the opposite vector, and half a turn about the axis, which lies in the plane of x and y
    a, b, c = 2.0 * y * y / s - 1.0, -2.0 * x * y / s, 2.0 * x * x / s - 1.0
    return np.array(
        [
            [a * (1.0 - xx) - b * xy, b * (1.0 - yy) - a * xy, -a * x - b * y],
            [b * (1.0 - xx) - c * xy, c * (1.0 - yy) - b * xy, -b * x - c * y],
            [-x, -y, z],
        ]
    )


def _axes_of(position: PositionRule) -> Array:
    return np.eye(3) if isinstance(position, Fixed) else frame(position.direction)


def _shared(axis: Array, position: PositionRule) -> tuple[Array, tuple[int, ...]] | None:
    """Axes whose z is `axis` and along which the position's rows lie too, with those rows; None if there are none."""
    if isinstance(position, Fixed):
        return frame(axis), position.ROWS
    if np.linalg.norm(np.cross(axis, position.direction)) < SAME:
        return frame(axis), position.ROWS
    if abs(axis @ position.direction) < SAME:
        # the direction becomes x: what counted along z now counts along x
        return frame(axis, position.direction), (0,) if position.ROWS == (2,) else (1, 2)
    return None
