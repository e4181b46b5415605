"""Planar linkages with one loop, assembled in closed form: the loop is shut when they are made."""

from __future__ import annotations

import math
from typing import Literal

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREEN, GREY, ORANGE, RED, block, bone, hub
from mechanik.gallery.circles import half_turn, heading, meet, polar
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_angles, check_lengths
from mechanik.mechanism import Builder, Material, Mechanism, PlacedShape


def four_bar(
    ground: float = 2.0,
    crank: float = 0.5,
    coupler: float = 1.8,
    rocker: float = 1.2,
    angle: float = 0.6,
    elbow: Literal["up", "down"] = "up",
) -> Mechanism:
    """A crank that turns and a rocker that swings, joined by a coupler; all joints about z.

    The crank's pivot is at the origin, the rocker's at x = ground. Which bars turn all around, `four_bar_kind` says.
    With ground = coupler and crank = rocker it is a parallelogram, whose coupler does not turn; assembled elbow down,
    with the crank above the ground, an antiparallelogram, whose cranks turn opposite ways.

    Args:
        angle: of the crank, at which it is assembled; rad.
        elbow: on which side of the way from the crank's tip to the rocker's pivot coupler and rocker meet: on its
            left, which is up, or on its right.
    """
    check_lengths("four_bar", ground=ground, crank=crank, coupler=coupler, rocker=rocker)
    check_angles("four_bar", angle=angle)
    if elbow not in ("up", "down"):
        raise StructureError(f"four_bar: elbow={elbow!r}; it can be 'up' or 'down'")
    knee, far = polar((0.0, 0.0), crank, angle), (ground, 0.0)
    up = elbow == "up"
    tip = meet("four_bar", knee, coupler, far, rocker) if up else meet("four_bar", far, rocker, knee, coupler)
    coupler_turn, rocker_angle = half_turn(heading(knee, tip) - angle), heading(far, tip)

    r = 0.02 * ground
    loop = Builder("four_bar")
    loop.revolute("crank_joint", "ground", "crank", value=angle)
    loop.revolute("coupler_joint", "crank", "coupler", at=(crank, 0.0, 0.0), value=coupler_turn)
    loop.revolute("rocker_joint", "ground", "rocker", at=(ground, 0.0, 0.0), value=rocker_angle)
    loop.close("closing_joint", "coupler", "rocker", "pin", at=(coupler, 0.0, 0.0), onto=(rocker, 0.0, 0.0))
    loop.link("ground", visuals=[bone((0.0, 0.0, -2 * r), (ground, 0.0, -2 * r), r, GREY)])
    loop.link("crank", visuals=_bar(crank, r, RED))
    loop.link("coupler", visuals=_bar(coupler, r, ORANGE))
    loop.link("rocker", visuals=_bar(rocker, r, BLUE))
    return stand(loop.build())


def slider_crank(crank: float = 0.3, rod: float = 1.0, offset: float = 0.0, angle: float = 0.6) -> Mechanism:
    """A crank about z that drives a slider along x through a rod, as in an engine.

    Args:
        offset: how far above the crank's pivot the slider runs; m.
        angle: of the crank, at which it is assembled.
    """
    check_lengths("slider_crank", crank=crank, rod=rod)
    check_angles("slider_crank", angle=angle)
    knee = (crank * math.cos(angle), crank * math.sin(angle))
    rise = offset - knee[1]
    if not abs(rise) <= rod:
        raise StructureError(f"slider_crank cannot be assembled: a rod of {rod:g} does not reach the slider's line")
    stroke = knee[0] + math.sqrt(rod * rod - rise * rise)

    r, reach = 0.02 * (crank + rod), crank + rod
    loop = Builder("slider_crank")
    loop.revolute("crank_joint", "ground", "crank", value=angle)
    loop.revolute("rod_joint", "crank", "rod", at=(crank, 0.0, 0.0), value=math.atan2(rise, stroke - knee[0]) - angle)
    loop.prismatic(
        "slider_joint", "ground", "slider", at=(0.0, offset, 0.0), axis="x", limits=(-reach, reach), value=stroke
    )
    loop.close("closing_joint", "rod", "slider", "pin", at=(rod, 0.0, 0.0), onto=(0.0, 0.0, 0.0))
    rail = bone((0.0, offset, -4 * r), (reach, offset, -4 * r), r, GREY)
    loop.link("ground", visuals=[rail, hub((0.0, 0.0, -2 * r), (0.0, 0.0, 1.0), 2 * r, 3 * r, GREY)])
    loop.link("crank", visuals=_bar(crank, r, RED))
    loop.link("rod", visuals=_bar(rod, r, ORANGE))
    loop.link("slider", visuals=[block((0.0, 0.0, -1.5 * r), (8 * r, 5 * r, 3 * r), BLUE)])
    return stand(loop.build())


def five_bar(
    ground: float = 0.6, crank: float = 0.5, rod: float = 0.8, left: float = 2.0, right: float = math.pi - 2.0
) -> Mechanism:
    """Two cranks about z that move one point in the plane through two rods; the tool is at that point.

    Args:
        ground: between the cranks' pivots, which lie at x = -ground/2 and ground/2; m.
        left, right: angles of the cranks, at which it is assembled.
    """
    check_lengths("five_bar", ground=ground, crank=crank, rod=rod)
    check_angles("five_bar", left=left, right=right)
    knees = [
        (x + crank * math.cos(angle), crank * math.sin(angle))
        for x, angle in ((-ground / 2, left), (ground / 2, right))
    ]
    tip = meet("five_bar", knees[0], rod, knees[1], rod)

    r = 0.02 * (crank + rod)
    loop = Builder("five_bar")
    for side, x, angle, knee in (("left", -ground / 2, left, knees[0]), ("right", ground / 2, right, knees[1])):
        bend = math.atan2(tip[1] - knee[1], tip[0] - knee[0]) - angle
        loop.revolute(f"{side}_crank_joint", "ground", f"{side}_crank", at=(x, 0.0, 0.0), value=angle)
        loop.revolute(f"{side}_rod_joint", f"{side}_crank", f"{side}_rod", at=(crank, 0.0, 0.0), value=half_turn(bend))
        loop.link(f"{side}_crank", visuals=_bar(crank, r, RED if side == "left" else BLUE))
        loop.link(f"{side}_rod", visuals=_bar(rod, r, ORANGE if side == "left" else GREEN))
    loop.fixed("tool_joint", "left_rod", "tool", at=(rod, 0.0, 0.0))
    loop.close("closing_joint", "left_rod", "right_rod", "pin", at=(rod, 0.0, 0.0), onto=(rod, 0.0, 0.0))
    loop.link("ground", visuals=[bone((-ground / 2, 0.0, -2 * r), (ground / 2, 0.0, -2 * r), r, GREY)])
    return stand(loop.build())


def _bar(length: float, radius: float, material: Material) -> list[PlacedShape]:
    """A bone along x, with a pin through its start."""
    pin = hub((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.7 * radius, 5 * radius, DARK)
    return [bone((0.0, 0.0, 0.0), (length, 0.0, 0.0), radius, material), pin]
