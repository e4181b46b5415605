"""A pair of legs whose ankles are moved by two cranks each, over rods."""

from __future__ import annotations

import math

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, WHITE, block, bone, hub
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.gallery.rods import hang_rod
from mechanik.mechanism import Builder, Mechanism

BEND = 0.45
"""Of hips and ankles at home, rad; knees bend by twice as much, so that thigh and shank lean alike."""
Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def biped(
    thigh: float = 0.40, shank: float = 0.40, hips: float = 0.20, crank: float = 0.06, width: float = 0.10
) -> Mechanism:
    """A pelvis that floats on two legs: x is forward, y to the left, z up; soles on the ground at home.

    18 freedoms: the pelvis 6, and six in each leg: hip yaw, roll and pitch, knee pitch, ankle pitch and roll. The
    ankle has no motor of its own. Two cranks on the shank turn about y, and each pulls at the heel over a
    rod, a universal joint at the crank and a ball at the foot. Turned alike, the cranks pitch the foot; turned against
    each other they roll it. With level cranks and a level foot, as at zero, it is a parallelogram on each side.

    Args:
        thigh, shank: from hip to knee and from knee to ankle; m.
        hips: between the hip joints; m.
        crank: length of a crank, and how far behind the ankle the rods end; m.
        width: between the two rods of a foot; m.
    """
    check_lengths("biped", thigh=thigh, shank=shank, hips=hips, crank=crank, width=width)
    if not 2 * crank < 0.7 * shank:
        raise StructureError(f"biped: cranks of {crank:g} have no room on shanks of {shank:g}")
    sole = 0.08
    robot = Builder("biped")
    height = sole + (thigh + shank) * math.cos(BEND)
    # with unlike lengths the pelvis stands ahead of the feet or behind them
    robot.free("base", "world", "pelvis", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    robot.link("pelvis", visuals=[block((0.0, 0.0, 0.06), (0.16, hips, 0.10), WHITE)])
    for side, sign in (("left", 1.0), ("right", -1.0)):
        _leg(robot, side, sign, thigh, shank, hips, crank, width, sole)
    return stand(robot.build())


def _leg(
    robot: Builder, side: str, sign: float, thigh: float, shank: float, hips: float, crank: float, width: float,
    sole: float,
) -> None:  # fmt: skip
    r = 0.03
    inward, outward = (-0.3, 0.5) if sign > 0 else (-0.5, 0.3)
    rows = (
        # joint, link above, link below, where in the link above, axis, limits, home
        ("hip_yaw", "pelvis", f"{side}_hip", (0.0, sign * hips / 2, 0.0), "z", (-0.8, 0.8), 0.0),
        ("hip_roll", f"{side}_hip", f"{side}_hip_fork", (0.0, 0.0, 0.0), "x", (inward, outward), 0.0),
        ("hip_pitch", f"{side}_hip_fork", f"{side}_thigh", (0.0, 0.0, 0.0), "y", (-1.9, 0.8), -BEND),
        ("knee", f"{side}_thigh", f"{side}_shank", (0.0, 0.0, -thigh), "y", (0.0, 2.3), 2 * BEND),
    )
    for joint, above, below, at, axis, limits, value in rows:
        robot.revolute(f"{side}_{joint}", above, below, at=at, axis=axis, limits=limits, value=value)
    shin, foot = f"{side}_shank", f"{side}_foot"
    robot.universal(
        f"{side}_ankle", shin, foot, at=(0.0, 0.0, -shank), limits=((-0.4, -0.9), (0.4, 0.6)), value=(0.0, -BEND)
    )
    motor = -0.3 * shank
    for name, aside in (("inner", -sign * width / 2), ("outer", sign * width / 2)):
        arm = f"{side}_{name}_crank"
        # with the foot pitched alone, rod, crank, shank and heel are a parallelogram: the crank turns as the foot
        robot.revolute(f"{arm}_joint", shin, arm, at=(0.0, aside, motor), axis="y", limits=(-1.5, 1.5), value=-BEND)
        robot.link(
            arm,
            visuals=[hub((0, 0, 0), Y, 0.5 * crank, 0.4 * r, DARK), bone((0, 0, 0), (-crank, 0, 0), 0.3 * r, ORANGE)],
        )
        hang_rod(robot, f"{side}_{name}_rod", arm, (-crank, 0.0, 0.0), foot, (-crank, aside, 0.0), 0.2 * r, GREY)
    robot.link(f"{side}_hip", visuals=[hub((0.0, 0.0, 0.0), Z, 1.4 * r, 2 * r, DARK)])
    robot.link(f"{side}_hip_fork", visuals=[hub((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1.2 * r, 3 * r, DARK)])
    robot.link(
        f"{side}_thigh", visuals=[hub((0, 0, 0), Y, 1.3 * r, 3 * r, DARK), bone((0, 0, 0), (0, 0, -thigh), r, BLUE)]
    )
    bar = hub((0.0, 0.0, motor), Y, 0.4 * r, width, DARK)
    robot.link(
        shin, visuals=[hub((0, 0, 0), Y, 1.3 * r, 3 * r, DARK), bone((0, 0, 0), (0, 0, -shank), 0.7 * r, BLUE), bar]
    )
    heel = bone((-crank, -width / 2, 0.0), (-crank, width / 2, 0.0), 0.4 * r, DARK)
    plate = block((0.03, 0.0, -sole + 0.01), (0.22, width, 0.02), GREY)
    stem = [bone((0, 0, 0), (0, 0, -sole + 0.02), 0.6 * r, GREY), bone((0, 0, 0), (-crank, 0, 0), 0.4 * r, GREY)]
    robot.link(foot, visuals=[plate, heel, *stem])
    robot.fixed(f"{side}_sole_joint", foot, f"{side}_sole", at=(0.0, 0.0, -sole))
