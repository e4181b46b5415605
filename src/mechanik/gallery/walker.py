"""A walker on six legs of six joints each, of the kind that JPL's ATHLETE is."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, block, bone, hub
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.mechanism import Builder, Mechanism
from mechanik.spatial import make, rotation

HIP, KNEE = -0.55, 2.0
"""Pitch at home, rad: the thigh goes up and out, the shank down, and the ankle makes up for both."""
SOLE = 0.08
"""From the ankle's roll axis down to the sole, in shares of the shank's length."""
X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def walker(radius: float = 1.1, hip: float = 0.25, thigh: float = 0.9, shank: float = 1.0) -> Mechanism:
    """A six-sided body that floats, and at each corner a leg: 42 freedoms, 36 of them joints.

    Joints of a leg, as in ATHLETE: hip yaw and pitch, knee pitch and roll, ankle pitch and roll. Six joints place a
    foot fully, so that with all six feet held the body keeps its six freedoms. Legs are numbered
    counterclockwise from the one that points along x. `foot1` begins at the sole; at home its x points away from the
    body, and all six soles are on the ground, z = 0.

    Args:
        radius: from the body's middle to a hip's yaw axis; m.
        hip: from there to its pitch axis; m.
        thigh, shank: between the pitch axes of hip, knee and ankle; m.
    """
    check_lengths("walker", radius=radius, hip=hip, thigh=thigh, shank=shank)
    sole = SOLE * shank
    height = sole + thigh * math.sin(HIP) + shank * math.sin(HIP + KNEE)
    if height <= sole:
        raise StructureError(f"walker cannot stand: a thigh of {thigh:g} lifts a shank of {shank:g} off the ground")
    robot = Builder("walker")
    robot.free("base", "world", "body", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    r = 0.06 * thigh
    for k in range(6):
        R = rotation.turn_z(math.radians(60.0 * k))
        n = k + 1
        legs = (
            # joint, link above, link below, where in the link above, axis, limits, home
            ("hip_yaw", "body", "hip", make(R, R @ (radius, 0.0, 0.0)), "z", 1.2, 0.0),
            ("hip_pitch", "hip", "thigh", (hip, 0.0, 0.0), "y", 1.6, HIP),
            ("knee_pitch", "thigh", "knee", (thigh, 0.0, 0.0), "y", 2.7, KNEE),
            ("knee_roll", "knee", "shank", (0.0, 0.0, 0.0), "x", 3.0, 0.0),
            ("ankle_pitch", "shank", "ankle", (shank, 0.0, 0.0), "y", 2.7, -HIP - KNEE),
            ("ankle_roll", "ankle", "tarsus", (0.0, 0.0, 0.0), "x", 1.6, 0.0),
        )
        for joint, above, below, at, axis, most, value in legs:
            parent = above if above == "body" else f"{above}{n}"
            robot.revolute(f"{joint}{n}", parent, f"{below}{n}", at=at, axis=axis, limits=(-most, most), value=value)
        robot.fixed(f"sole{n}", f"tarsus{n}", f"foot{n}", at=(0.0, 0.0, -sole))
        robot.link(
            f"hip{n}", visuals=[hub((0, 0, 0), (0, 0, 1), 1.8 * r, 3 * r, DARK), bone((0, 0, 0), (hip, 0, 0), r, DARK)]
        )
        robot.link(
            f"thigh{n}", visuals=[hub((0, 0, 0), Y, 1.3 * r, 3 * r, DARK), bone((0, 0, 0), (thigh, 0, 0), r, ORANGE)]
        )
        robot.link(f"knee{n}", visuals=[hub((0, 0, 0), Y, 1.3 * r, 3 * r, DARK)])
        robot.link(f"shank{n}", visuals=[bone((0, 0, 0), (shank, 0, 0), 0.8 * r, BLUE)])
        robot.link(f"ankle{n}", visuals=[hub((0, 0, 0), Y, r, 2.4 * r, DARK)])
        foot = [
            bone((0, 0, 0), (0, 0, -0.6 * sole), 0.7 * r, GREY),
            hub((0, 0, -0.8 * sole), (0, 0, 1), 2 * r, 0.4 * sole, DARK),
        ]
        robot.link(f"tarsus{n}", visuals=foot)
    corners = [radius * (rotation.turn_z(math.radians(60.0 * k)) @ np.array(X)) for k in range(6)]
    frame = [bone(corners[k - 1], corners[k], r, GREY) for k in range(6)]
    deck = block((0.0, 0.0, r), (radius, radius, r), GREY)
    robot.link("body", visuals=[*frame, deck])
    return stand(robot.build())
