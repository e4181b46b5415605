"""Serial chains that are not arms of any maker: one that slides, and one that is long."""

from __future__ import annotations

import math

from mechanik.formats.arms import arm_3d
from mechanik.gallery.bones import BLUE, DARK, dress
from mechanik.gallery.home import stand
from mechanik.mechanism import Builder, Mechanism


def rail_arm() -> Mechanism:
    """An arm of six turning joints with a wrist whose axes meet, on a rail of 2 m along y."""
    arm = Builder("rail_arm")
    arm.prismatic("rail", "base", "carriage", axis="y", limits=(-1.0, 1.0))
    for joint, parent, link, height, axis, degrees in (
        ("waist", "carriage", "column", 0.4, "z", 170),
        ("shoulder", "column", "upper_arm", 0.0, "y", 120),
        ("elbow", "upper_arm", "forearm", 0.45, "y", 150),
        ("roll", "forearm", "wrist", 0.2, "z", 170),
        ("pitch", "wrist", "palm", 0.2, "y", 120),
        ("spin", "palm", "flange", 0.0, "z", 350),
    ):
        most = math.radians(degrees)
        arm.revolute(joint, parent, link, at=(0.0, 0.0, height), axis=axis, limits=(-most, most))
    arm.fixed("mount", "flange", "tool", at=(0.0, 0.0, 0.1))
    return stand(dress(arm.build(), 0.05, 0.04, BLUE, DARK), [0.0, 0.0, 0.4, 0.9, 0.0, 0.8, 0.0])


def snake(joints: int = 30) -> Mechanism:
    """An arm of 1 m in equal links, with axes z, y, y, z, y, y and so on.

    Args:
        joints: how many, 1 or more.
    """
    arm = arm_3d([1.0 / joints] * joints, ("zyy" * joints)[:joints], limits=(-2.0, 2.0), name="snake")
    return stand(dress(arm, 0.02, 0.016, BLUE, DARK), [0.0 if k % 3 == 0 else 3.0 / joints for k in range(joints)])
