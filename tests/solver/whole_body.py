"""A body with two legs, two arms and a head on a floating trunk, for problems with priorities."""

from __future__ import annotations

import numpy as np

import mechanik as mk

TURN = (-2.6, 2.6)


def whole_body(limited: bool = True) -> mk.Mechanism:
    """26 dofs; z is up, x ahead; about 1.7 m tall."""
    limits = {"limits": TURN} if limited else {}
    builder = mk.Builder("body")
    builder.free("float", "world", "trunk", value=(0, 0, 0.95, 0, 0, 0))
    for side, y in (("left", 0.12), ("right", -0.12)):
        hip = f"{side}_hip"
        builder.revolute(f"{hip}_yaw", "trunk", f"{hip}_1", at=(0, y, 0), axis="z", **limits)
        builder.revolute(f"{hip}_roll", f"{hip}_1", f"{hip}_2", axis="x", **limits)
        builder.revolute(f"{hip}_pitch", f"{hip}_2", f"{side}_thigh", axis="y", value=-0.4, **limits)
        builder.revolute(
            f"{side}_knee", f"{side}_thigh", f"{side}_shin", at=(0, 0, -0.45), axis="y", value=0.8, **limits
        )
        builder.revolute(
            f"{side}_ankle_pitch", f"{side}_shin", f"{side}_ankle", at=(0, 0, -0.45), axis="y", value=-0.4, **limits
        )
        builder.revolute(f"{side}_ankle_roll", f"{side}_ankle", f"{side}_foot", axis="x", **limits)
        builder.revolute(
            f"{side}_shoulder_pitch", "trunk", f"{side}_shoulder", at=(0, 2 * y, 0.5), axis="y", value=-0.3, **limits
        )
        builder.revolute(
            f"{side}_shoulder_roll", f"{side}_shoulder", f"{side}_upper_arm", axis="x", value=0.2 * np.sign(y), **limits
        )
        builder.revolute(
            f"{side}_elbow", f"{side}_upper_arm", f"{side}_forearm", at=(0, 0, -0.3), axis="y", value=-0.6, **limits
        )
        builder.fixed(f"{side}_wrist", f"{side}_forearm", f"{side}_hand", at=(0, 0, -0.28))
    builder.revolute("neck_yaw", "trunk", "neck", at=(0, 0, 0.55), axis="z", **limits)
    builder.revolute("neck_pitch", "neck", "head", at=(0, 0, 0.1), axis="y", **limits)
    for link, mass in (("trunk", 30.0), ("left_thigh", 8.0), ("right_thigh", 8.0), ("head", 4.0)):
        builder.link(link, inertial=mk.Inertial(mass, mk.Pose((0, 0, 0.1))))
    return builder.build()
