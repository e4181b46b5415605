"""Overconstrained spatial loops of Bennett and Sarrus, which move although the Gruebler count gives no dof."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.construction import BLUE, DARK, GREY, ORANGE, RED, block, capsule, hub, set_home
from mechanik.model import Builder, Material, Mechanism, ShapeInstance
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array
from mechanik.validation import check_finite_angles, check_positive_numbers


def bennett(length: float = 0.5, twist: float = 0.7, other_twist: float = 1.9, angle: float = 1.0) -> Mechanism:
    """Make Bennett's linkage (G. T. Bennett 1903): four hinges, neither parallel nor concurrent, with 1 dof.

    Opposite bars are equal: crank and rocker have the same length and twist, and so have coupler and ground. The loop
    moves only because length / sin(twist) is the same for all four bars, which determines the length of coupler and
    ground. The values t1 of `crank_joint` and t2 of `coupler_joint` satisfy
    tan(t1/2) tan(t2/2) = sin((other_twist + twist)/2) / sin((other_twist - twist)/2).
    The value of `rocker_joint` is -t1. The Gruebler count gives -2.

    Args:
        length: distance between the hinges of the crank, and of the rocker; m.
        twist: angle between the hinge axes of crank and rocker; rad, between 0 and pi.
        other_twist: angle between the hinge axes of coupler and ground; rad, between 0 and pi, different from `twist`.
        angle: crank angle at home; rad.

    Returns:
        The linkage.

    Raises:
        StructureError: a dimension is invalid, or the twists are equal.

    Example:
        >>> mobility = mk.mobility(mk.gallery.bennett())
        >>> mobility.gruebler, mobility.dof
        (-2, 1)
    """
    check_positive_numbers("bennett", length=length, twist=twist, other_twist=other_twist)
    check_finite_angles("bennett", angle=angle)
    for name, value in (("twist", twist), ("other_twist", other_twist)):
        if not value < math.pi:
            raise StructureError(f"bennett: {name} must be between 0 and pi rad, not {value:g}")
    if math.isclose(twist, other_twist, rel_tol=1e-6):
        raise StructureError(f"bennett: twist and other_twist must differ, but both are {twist:g} rad")
    other_length = length * math.sin(other_twist) / math.sin(twist)
    half_angle = 0.5 * angle
    ratio = math.sin(0.5 * (other_twist + twist)) / math.sin(0.5 * (other_twist - twist))
    coupler_angle = 2 * math.atan2(ratio * math.cos(half_angle), math.sin(half_angle))

    X_crank_hinge, X_coupler_hinge = _second_hinge_pose(length, twist), _second_hinge_pose(other_length, other_twist)
    radius = 0.03 * (length + other_length)
    loop = Builder("bennett")
    loop.revolute("crank_joint", "ground", "crank", value=angle)
    loop.revolute("coupler_joint", "crank", "coupler", at=X_crank_hinge, value=coupler_angle)
    loop.revolute("rocker_joint", "coupler", "rocker", at=X_coupler_hinge, value=-angle)
    loop.close("closing_joint", "rocker", "ground", "pin", at=X_crank_hinge, onto=inverse(X_coupler_hinge))
    loop.link("ground", visuals=_bar_shapes(inverse(X_coupler_hinge), radius, GREY))
    for name, X_bar_hinge, material in (
        ("crank", X_crank_hinge, RED),
        ("coupler", X_coupler_hinge, ORANGE),
        ("rocker", X_crank_hinge, BLUE),
    ):
        loop.link(name, visuals=_bar_shapes(X_bar_hinge, radius, material))
    return set_home(loop.build())


def sarrus(width: float = 0.4, plate: float = 0.3, angle: float = 0.8) -> Mechanism:
    """Make Sarrus's linkage (P. F. Sarrus 1853): a platform on two hinged legs that moves up and down without rotation.

    It was the first linkage that converts rotation to exact straight-line motion. Each leg has two plates and three
    parallel hinges. The legs are at a right angle, along x and y, with their knees outwards. The Gruebler count of the
    loop of six hinges is 0, but the loop has 1 dof. At home the link "top", the middle of the platform, is
    2 * plate * sin(angle) above the base.

    Args:
        width: side length of base and platform, which are square; m.
        plate: length of each of the four plates, between its hinges; m.
        angle: angle of the lower plates above the base at home; rad, between 0 and pi/2.

    Returns:
        The linkage.

    Raises:
        StructureError: a dimension is invalid.

    Example:
        >>> lift = mk.gallery.sarrus(plate=0.3, angle=np.pi / 6)
        >>> round(float(lift.pose("top")[2, 3]), 6)
        0.3
    """
    check_positive_numbers("sarrus", width=width, plate=plate, angle=angle)
    if not angle < math.pi / 2:
        raise StructureError(f"sarrus: angle must be between 0 (flat) and pi/2 (stretched) rad, not {angle:g}")
    thickness = 0.04 * width
    edge_position = (0.5 * width, 0.0, 0.0)
    X_base_y_leg = make_pose(rotation.about_z(math.pi / 2), np.zeros(3))
    legs = (("x", np.eye(4)), ("y", X_base_y_leg))
    lift = Builder("sarrus")
    for name, X_base_leg in legs:
        lower_plate, upper_plate = f"lower_{name}", f"upper_{name}"
        at = X_base_leg @ make_pose(np.eye(3), edge_position)
        lift.revolute(f"{lower_plate}_joint", "base", lower_plate, at=at, axis="-y", value=angle)
        lift.revolute(
            f"{upper_plate}_joint", lower_plate, upper_plate, at=(plate, 0.0, 0.0), axis="-y", value=math.pi - 2 * angle
        )
        material = RED if name == "x" else BLUE
        for link in (lower_plate, upper_plate):
            hinge = hub((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), thickness, 0.8 * width, DARK)
            lift.link(link, visuals=[block((0.5 * plate, 0.0, 0.0), (plate, 0.6 * width, thickness), material), hinge])
    plate_end = (plate, 0.0, 0.0)
    lift.revolute("platform_joint", "upper_x", "platform", at=plate_end, axis="-y", value=angle - math.pi)
    X_platform_top = make_pose(np.eye(3), (-0.5 * width, 0.0, 0.0))
    lift.fixed("top_joint", "platform", "top", at=X_platform_top)
    onto = X_platform_top @ X_base_y_leg @ make_pose(np.eye(3), edge_position)
    lift.close("closing_joint", "upper_y", "platform", "pin", at=plate_end, onto=onto, axis="-y")
    slab_size = (width, width, thickness)
    lift.link("base", visuals=[block((0.0, 0.0, -thickness), slab_size, GREY)])
    lift.link("platform", visuals=[block((-0.5 * width, 0.0, thickness), slab_size, ORANGE)])
    return set_home(lift.build())


def _second_hinge_pose(length: float, twist: float) -> Array:
    """Return the pose (4, 4) of a bar's second hinge in its first: a translation along x and a rotation about x."""
    return make_pose(rotation.about_x(twist), (length, 0.0, 0.0))


def _bar_shapes(X_bar_hinge: Array, radius: float, material: Material) -> list[ShapeInstance]:
    """Return a capsule between the hinges of a bar, and an axle in each hinge.

    The first hinge is the frame of the bar; `X_bar_hinge` (4, 4) is the pose of the second hinge in this frame.
    """
    hinge_poses = (np.eye(4), X_bar_hinge)
    axles = [hub(X_hinge[:3, 3], X_hinge[:3, 2], 0.7 * radius, 5 * radius, DARK) for X_hinge in hinge_poses]
    return [capsule((0.0, 0.0, 0.0), X_bar_hinge[:3, 3], radius, material), *axles]
