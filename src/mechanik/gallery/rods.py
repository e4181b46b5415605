"""Rods and hydraulic cylinders, hung between two links that stand already: they are as long as the way is."""

from __future__ import annotations

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.bones import DARK, GREY, ball, hub, rod
from mechanik.mechanism import Builder, Material
from mechanik.spatial import apply, inverse, make, rotation
from mechanik.spatial.array import Array, ArrayLike

Z = np.array([0.0, 0.0, 1.0])


def hang_rod(
    robot: Builder, name: str, a: str, p_a: ArrayLike, b: str, p_b: ArrayLike, radius: float, material: Material
) -> float:
    """A rod from the point `p_a` of link `a`, where a universal joint holds it, to a ball at `p_b` of link `b`.

    It cannot spin, and its own z axis points along it. Its joint `<name>_universal` is at zero as the links stand.

    Returns:
        its length, m.
    """
    start, reach, length = _way(robot, a, p_a, b, p_b)
    robot.universal(f"{name}_universal", a, name, at=make(rotation.between(Z, reach), start), limits=(-1.4, 1.4))
    robot.close(f"{name}_ball", name, b, "ball", at=length * Z, onto=p_b)
    ends = [ball((0.0, 0.0, z), 1.8 * radius, DARK) for z in (0.0, length)]
    robot.link(name, visuals=[rod((0.0, 0.0, 0.0), length * Z, radius, material), *ends])
    return length


def hang_cylinder(
    robot: Builder,
    name: str,
    a: str,
    p_a: ArrayLike,
    b: str,
    p_b: ArrayLike,
    stroke: tuple[float, float],
    radius: float,
    material: Material,
) -> float:
    """A cylinder pinned to link `a` and its piston pinned to link `b`, both about the links' y axes.

    The value of the joint `<name>_slide` is the way from pin to pin. The cylinder's z axis points along it, and its
    joint `<name>_pin` is at zero as the links stand.

    Args:
        stroke: the shortest and the longest way; m.
    Returns:
        the way as the links stand, m.
    """
    start, reach, length = _way(robot, a, p_a, b, p_b)
    if not stroke[0] <= length <= stroke[1]:
        raise StructureError(
            f"{robot.name} cannot be assembled: {name} is {length:g} long, outside {stroke[0]:g} to {stroke[1]:g}"
        )
    along = rotation.turn_y(float(np.arctan2(reach[0], reach[2])))
    piston, sleeve = f"{name}_piston", 0.85 * stroke[0]
    robot.revolute(f"{name}_pin", a, name, at=make(along, start), axis="y", limits=(-1.6, 1.6))
    robot.prismatic(f"{name}_slide", name, piston, limits=stroke, value=length)
    robot.close(f"{name}_end", piston, b, "pin", onto=p_b, axis="y")
    pin = hub((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 1.3 * radius, 3.0 * radius, DARK)
    robot.link(name, visuals=[rod((0.0, 0.0, 0.0), sleeve * Z, radius, material), pin])
    robot.link(piston, visuals=[rod(-0.95 * sleeve * Z, (0.0, 0.0, 0.0), 0.55 * radius, GREY), pin])
    return length


def _way(robot: Builder, a: str, p_a: ArrayLike, b: str, p_b: ArrayLike) -> tuple[Array, Array, float]:
    """From a point of one link to a point of another: the start, the way and its length, seen from link `a`."""
    start = np.asarray(p_a, dtype=np.float64)
    X_a_b = inverse(robot.link(a).world_matrix) @ robot.link(b).world_matrix
    reach = apply(X_a_b, np.asarray(p_b, dtype=np.float64)) - start
    return start, reach, float(np.linalg.norm(reach))
