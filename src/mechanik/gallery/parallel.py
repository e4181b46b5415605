"""Platforms on several legs, assembled in closed form: every loop is shut when they are made."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, WHITE, ball, bone, hub, rod
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.mechanism import Builder, Mechanism
from mechanik.spatial import euler, make, rotation
from mechanik.spatial.array import Array

Z = np.array([0.0, 0.0, 1.0])


def stewart_platform(
    base_radius: float = 0.20,
    platform_radius: float = 0.12,
    height: float = 0.30,
    stroke: tuple[float, float] = (0.2, 0.5),
    ends: Literal["closure", "joint"] = "closure",
    legs: Literal["ups", "sps"] = "ups",
) -> Mechanism:
    """A platform on six legs that change their length (V. E. Gough 1954, D. Stewart 1965).

    Legs begin on the base at 120 k ± 15 degrees and end on the platform at 120 k ± 45 degrees. Each is a universal
    joint and a slide, whose value is the leg's length, with a ball at its end. Six freedoms; the platform floats,
    so its pose stands in q. The lengths follow from that pose by formula; to given lengths there are up to 40 poses
    (M. Raghavan 1991; P. Dietmaier 1998 has a platform with all of them real).

    Args:
        stroke: the shortest and the longest leg; m.
        ends: whether the balls are the closures (24 freedoms before closing), or joints of their own that are
            welded to the platform (42).
        legs: "ups" begins with a universal joint; "sps" with a ball, so that each leg can spin idly about itself:
            twelve freedoms, of which six move the platform.
    """
    if ends not in ("closure", "joint"):
        raise StructureError(f"stewart_platform: ends={ends!r}; it can be 'closure' or 'joint'")
    if legs not in ("ups", "sps"):
        raise StructureError(f"stewart_platform: legs={legs!r}; it can be 'ups' or 'sps'")
    if np.shape(stroke) != (2,):
        raise StructureError(f"stewart_platform: stroke={stroke!r}; it is the shortest and the longest leg")
    shortest, longest = stroke
    check_lengths(
        "stewart_platform",
        base_radius=base_radius,
        platform_radius=platform_radius,
        height=height,
        shortest=shortest,
        longest=longest,
    )
    robot = Builder("stewart_platform")
    robot.free("platform_joint", "base", "platform", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    for k in range(6):
        middle, side = 120.0 * (k // 2), (-1.0, 1.0)[k % 2]
        p_base = _on_circle(base_radius, middle + side * 15)
        p_platform = _on_circle(platform_radius, middle + side * 45)
        reach = p_platform + height * Z - p_base
        length = float(np.linalg.norm(reach))
        if not shortest <= length <= longest:
            raise StructureError(
                f"stewart_platform cannot be assembled: at this height leg {k + 1} is {length:g} long, "
                f"outside its stroke {shortest:g} to {longest:g}"
            )
        R_base_leg = rotation.between(Z, reach)
        leg, piston, ending = f"leg{k + 1}", f"piston{k + 1}", f"ball{k + 1}"
        if legs == "ups":
            robot.universal(f"{leg}_universal", "base", leg, at=make(R_base_leg, p_base), limits=(-1.2, 1.2))
        else:
            robot.ball(f"{leg}_base_ball", "base", leg, at=make(R_base_leg, p_base))
        robot.prismatic(f"{leg}_slide", leg, piston, limits=stroke, value=length)
        if ends == "closure":
            robot.close(f"{leg}_ball", piston, "platform", "ball", onto=p_platform)
        else:
            turn = euler.euler_from_matrix(R_base_leg.T, order="zyx", axes="moving")[::-1]
            robot.ball(f"{leg}_ball", piston, ending, value=turn)
            robot.close(f"{leg}_weld", ending, "platform", "weld", onto=p_platform)
            robot.link(ending, visuals=[ball((0.0, 0.0, 0.0), 0.012, DARK)])
        sleeve = 0.9 * shortest
        tip = [ball((0.0, 0.0, 0.0), 0.012, DARK)] if ends == "closure" else []
        robot.link(leg, visuals=[ball((0.0, 0.0, 0.0), 0.016, DARK), rod((0.0, 0.0, 0.0), sleeve * Z, 0.011, BLUE)])
        robot.link(piston, visuals=[rod((shortest - longest) * 0.6 * Z, (0.0, 0.0, 0.0), 0.006, GREY), *tip])
    robot.link("base", visuals=[hub((0.0, 0.0, -0.02), Z, 1.1 * base_radius, 0.02, GREY)])
    robot.link("platform", visuals=[hub((0.0, 0.0, 0.018), Z, 1.1 * platform_radius, 0.012, ORANGE)])
    return stand(robot.build())


def delta_robot(
    base_radius: float = 0.20,
    arm: float = 0.30,
    forearm: float = 0.70,
    platform_radius: float = 0.06,
    width: float = 0.10,
    angle: float = 0.35,
) -> Mechanism:
    """A platform that three arms carry through parallelograms, so that it moves without turning (R. Clavel 1985).

    The base is at the origin, and the platform below it. Each arm turns about a horizontal axis; positive is down.
    Each forearm is two parallel rods, with a universal joint at the arm and a ball at the platform, so that no rod
    can spin. Three freedoms.

    Args:
        base_radius, platform_radius: how far from the middle the arms begin, and the rods end; m.
        width: between the two rods of a forearm; m.
        angle: of all three arms, at which it is assembled; rad.
    """
    check_lengths(
        "delta_robot",
        base_radius=base_radius,
        arm=arm,
        forearm=forearm,
        platform_radius=platform_radius,
        width=width,
    )
    outward = base_radius + arm * math.cos(angle) - platform_radius
    if not abs(outward) < forearm:
        raise StructureError(f"delta_robot cannot be assembled: forearms of {forearm:g} do not span {outward:g}")
    drop = math.sqrt(forearm**2 - outward**2)
    depth = arm * math.sin(angle) + drop
    # along a rod, in the frame of its arm: x along the arm, y along the arm's axis
    along_rod = rotation.turn_y(angle).T @ np.array([-outward, 0.0, -drop])
    R_arm_rod = rotation.between(Z, along_rod)

    r = 0.012
    robot = Builder("delta_robot")
    robot.free("platform_joint", "base", "platform", value=(0.0, 0.0, -depth, 0.0, 0.0, 0.0))
    spokes = [hub((0.0, 0.0, 0.0), Z, platform_radius, 0.015, ORANGE)]
    for k in range(3):
        R = rotation.turn_z(math.radians(120.0 * k))
        name = f"arm{k + 1}"
        at = make(R, R @ (base_radius, 0.0, 0.0))
        robot.revolute(f"{name}_joint", "base", name, at=at, axis="y", limits=(-0.9, 1.6), value=angle)
        elbows = [np.array([arm, y, 0.0]) for y in (-width / 2, width / 2)]
        motor = hub((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 2 * r, 5 * r, DARK)
        robot.link(
            name, visuals=[motor, bone((0, 0, 0), (arm, 0, 0), 1.4 * r, BLUE), bone(elbows[0], elbows[1], r, BLUE)]
        )
        ends = [R @ (platform_radius, y, 0.0) for y in (-width / 2, width / 2)]
        spokes.append(bone(ends[0], ends[1], 0.8 * r, ORANGE))
        for side, elbow, end in zip("ab", elbows, ends, strict=True):
            forearm_rod = f"rod{k + 1}{side}"
            robot.universal(
                f"{forearm_rod}_universal", name, forearm_rod, at=make(R_arm_rod, elbow), limits=(-1.5, 1.5)
            )
            robot.close(f"{forearm_rod}_ball", forearm_rod, "platform", "ball", at=forearm * Z, onto=end)
            robot.link(forearm_rod, visuals=[bone((0.0, 0.0, 0.0), forearm * Z, 0.5 * r, GREY)])
    robot.link("base", visuals=[hub((0.0, 0.0, 0.03), Z, base_radius, 0.03, WHITE)])
    robot.link("platform", visuals=spokes)
    return stand(robot.build())


def _on_circle(radius: float, degrees: float) -> Array:
    angle = math.radians(degrees)
    return np.array([radius * math.cos(angle), radius * math.sin(angle), 0.0])
