"""Two arms that hold one box between their hands."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, block, dress, put_on
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.mechanism import Builder, Mechanism
from mechanik.spatial import make, rotation

SHOULDER, UPPER_ARM, FOREARM, HAND = 0.36, 0.42, 0.40, 0.126
"""Lengths of a KUKA LBR iiwa 14, m, from table to shoulder and on to the flange."""
PITCH = (0.1, 2.1, math.pi / 2 - 2.2)
"""Of shoulder, elbow and wrist at home, rad: together a quarter turn, so that the hand lies level."""


def two_arms(joints: Literal[6, 7] = 7, box: float = 0.3) -> Mechanism:
    """Two arms that face each other and hold a box between them: with 7 joints each 8 freedoms, with 6 each 6.

    14 - 6 = 8: six move the box, and two turn the elbows about the lines from shoulder to wrist while it stands
    still. With 6 joints there is no turn of the upper arms, and elbows have no choice.
    The box hangs fixed on the left hand, and a weld closes it onto the right. The left arm stands at negative x. The
    box is level at home: its z is up, its x points to the right arm.

    Args:
        joints: of each arm.
        box: its length between the hands; m.
    """
    if joints not in (6, 7):
        raise StructureError(f"two_arms: joints={joints!r}; an arm has 6 or 7")
    check_lengths("two_arms", box=box)
    first, second, third = np.cumsum(PITCH)
    out = UPPER_ARM * math.sin(first) + FOREARM * math.sin(second) + HAND * math.sin(third)
    robot = Builder("two_arms")
    for side, sign in (("left", -1.0), ("right", 1.0)):
        base = make(rotation.turn_z(0.0 if sign < 0 else math.pi), (sign * (out + box / 2), 0.0, 0.0))
        robot.fixed(f"{side}_mount", "world", f"{side}_base", at=base)
        rows = (
            # joint, link, how high above the joint before, axis, limits in degrees, home
            ("waist", "shoulder", 0.0, "z", 170, 0.0),
            ("shoulder_pitch", "upper_arm", SHOULDER, "y", 120, PITCH[0]),
            ("upper_arm_roll", "elbow", 0.0, "z", 170, 0.0),
            ("elbow_pitch", "forearm", UPPER_ARM, "y", 150, PITCH[1]),
            ("forearm_roll", "wrist", 0.0, "z", 170, 0.0),
            ("wrist_pitch", "palm", FOREARM, "y", 120, PITCH[2]),
            ("hand_roll", "hand", 0.0, "z", 175, 0.0),
        )
        parent = f"{side}_base"
        for joint, link, above, axis, degrees, value in rows:
            if joints == 6 and joint == "upper_arm_roll":
                continue
            most = math.radians(degrees)
            child = f"{side}_{link}"
            robot.revolute(
                f"{side}_{joint}", parent, child, at=(0.0, 0.0, above), axis=axis, limits=(-most, most), value=value
            )
            parent = child
    # the hand's z points at the box, and its x down
    R_hand_box = rotation.turn_y(-math.pi / 2)
    robot.fixed("grip", "left_hand", "box", at=make(R_hand_box, (0.0, 0.0, HAND + box / 2)))
    robot.close("right_grip", "right_hand", "box", "weld", at=(0.0, 0.0, HAND))
    table = (2 * out + box + 0.4, 0.5, 0.04)
    robot.link("world", visuals=[block((0.0, 0.0, -0.02), table, GREY)])
    mechanism = dress(robot.build(), 0.06, 0.05, BLUE, DARK)
    put_on(mechanism.link("box"), block((0.0, 0.0, 0.0), (box, 0.7 * box, 0.5 * box), ORANGE))
    return stand(mechanism)
