"""Loops in space that move although a count of their joints says that they cannot: Bennett's and Sarrus's."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, RED, block, bone, hub
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_angles, check_lengths
from mechanik.mechanism import Builder, Material, Mechanism, PlacedShape
from mechanik.spatial import inverse, make, rotation
from mechanik.spatial.array import Array


def bennett(length: float = 0.5, twist: float = 0.7, other_twist: float = 1.9, angle: float = 1.0) -> Mechanism:
    """Four hinges that neither are parallel nor meet, and yet one freedom (G. T. Bennett 1903).

    Opposite bars are alike: crank and rocker have one length and one twist, coupler and ground the other. It moves
    only because length / sin(twist) is the same for all four, which is how the other length is chosen. For crank and
    coupler, with angles 1 and 2, tan(1/2) tan(2/2) = sin((other + twist)/2) / sin((other - twist)/2); the rocker turns
    as the crank does, the other way round. A count of freedoms gives -2.

    Args:
        length: of crank and rocker, between their hinges; m.
        twist, other_twist: angle from hinge to hinge along crank and rocker, along coupler and ground; rad, within
            0 to pi, not the same.
        angle: of the crank, at which it is assembled; rad.
    """
    check_lengths("bennett", length=length, twist=twist, other_twist=other_twist)
    check_angles("bennett", angle=angle)
    for name, value in (("twist", twist), ("other_twist", other_twist)):
        if not value < math.pi:
            raise StructureError(f"bennett: {name} is {value:g}; it is between 0 and pi")
    if math.isclose(twist, other_twist, rel_tol=1e-6):
        raise StructureError(f"bennett: twist and other_twist are both {twist:g}; then the loop has no crank")
    other = length * math.sin(other_twist) / math.sin(twist)
    half = 0.5 * angle
    ratio = math.sin(0.5 * (other_twist + twist)) / math.sin(0.5 * (other_twist - twist))
    follow = 2 * math.atan2(ratio * math.cos(half), math.sin(half))

    X_short, X_long = _along(length, twist), _along(other, other_twist)
    r = 0.03 * (length + other)
    loop = Builder("bennett")
    loop.revolute("crank_joint", "ground", "crank", value=angle)
    loop.revolute("coupler_joint", "crank", "coupler", at=X_short, value=follow)
    loop.revolute("rocker_joint", "coupler", "rocker", at=X_long, value=-angle)
    loop.close("closing_joint", "rocker", "ground", "pin", at=X_short, onto=inverse(X_long))
    loop.link("ground", visuals=_twisted(inverse(X_long), r, GREY))
    for name, X, material in (("crank", X_short, RED), ("coupler", X_long, ORANGE), ("rocker", X_short, BLUE)):
        loop.link(name, visuals=_twisted(X, r, material))
    return stand(loop.build())


def sarrus(width: float = 0.4, plate: float = 0.3, angle: float = 0.8) -> Mechanism:
    """A platform on two hinged legs that goes straight up and down and does not turn (P. F. Sarrus 1853).

    The first linkage that made a straight line out of turns. Each leg is two plates with three parallel hinges; the
    legs stand at a right angle, along x and y, and knee outwards. One freedom, though six hinges in a loop count
    none; the platform, whose middle is the link "top", is 2 plate sin(angle) above the base.

    Args:
        width: of base and platform, which are square; m.
        plate: the length of each of the four plates, between its hinges; m.
        angle: of the lower plates above the base, at which it is assembled; rad, between 0 and pi/2.
    """
    check_lengths("sarrus", width=width, plate=plate, angle=angle)
    if not angle < math.pi / 2:
        raise StructureError(f"sarrus: angle is {angle:g}; it is between 0, flat, and pi/2, stretched")
    thick = 0.04 * width
    edge = (0.5 * width, 0.0, 0.0)
    side = make(rotation.turn_z(math.pi / 2), np.zeros(3))
    legs = (("x", np.eye(4)), ("y", side))
    lift = Builder("sarrus")
    for name, X_base_leg in legs:
        lower, upper = f"lower_{name}", f"upper_{name}"
        at = X_base_leg @ make(np.eye(3), edge)
        lift.revolute(f"{lower}_joint", "base", lower, at=at, axis="-y", value=angle)
        lift.revolute(f"{upper}_joint", lower, upper, at=(plate, 0.0, 0.0), axis="-y", value=math.pi - 2 * angle)
        material = RED if name == "x" else BLUE
        for link in (lower, upper):
            hinge = hub((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), thick, 0.8 * width, DARK)
            lift.link(link, visuals=[block((0.5 * plate, 0.0, 0.0), (plate, 0.6 * width, thick), material), hinge])
    end = (plate, 0.0, 0.0)
    lift.revolute("platform_joint", "upper_x", "platform", at=end, axis="-y", value=angle - math.pi)
    X_platform_top = make(np.eye(3), (-0.5 * width, 0.0, 0.0))
    lift.fixed("top_joint", "platform", "top", at=X_platform_top)
    onto = X_platform_top @ side @ make(np.eye(3), edge)
    lift.close("closing_joint", "upper_y", "platform", "pin", at=end, onto=onto, axis="-y")
    slab = (width, width, thick)
    lift.link("base", visuals=[block((0.0, 0.0, -thick), slab, GREY)])
    lift.link("platform", visuals=[block((-0.5 * width, 0.0, thick), slab, ORANGE)])
    return stand(lift.build())


def _along(length: float, twist: float) -> Array:
    """From hinge to hinge of a bar: along x, and turned about it."""
    return make(rotation.turn_x(twist), (length, 0.0, 0.0))


def _twisted(X: Array, radius: float, material: Material) -> list[PlacedShape]:
    """A bone between the hinges of a bar, and an axle in each."""
    ends = (np.eye(4), X)
    axles = [hub(end[:3, 3], end[:3, 2], 0.7 * radius, 5 * radius, DARK) for end in ends]
    return [bone((0.0, 0.0, 0.0), X[:3, 3], radius, material), *axles]
