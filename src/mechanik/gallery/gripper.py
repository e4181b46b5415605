"""A gripper with two fingers that close in parallel, and close around what stops them below."""

from __future__ import annotations

import math

from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, WHITE, block, bone, hub
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.mechanism import Builder, Mechanism
from mechanik.spatial import make, rotation

CLOSED = 0.8
"""Turn of the drivers from open to closed, rad."""
LEAN = 0.55
"""How far a finger leans outward when it is open, rad."""
DRIVER, APART, ELBOW = (0.030, 0.055), (-0.017, 0.006), 0.4
"""Where a driver turns in the palm, from there to its spring link, and how far the driver stands out from the line
to the far end of its coupler, rad; x outward, z ahead, m."""
Y = (0.0, 1.0, 0.0)


def gripper(opening: float = 0.085) -> Mechanism:
    """A gripper of the Robotiq 2F kind: z is ahead, the fingers close along x.

    Each finger is a chain of driver, coupler, follower and spring link, closed by the palm: five bars, so two freedoms.
    A spring holds the coupler at its stop, value 0; there the finger is a parallelogram, and its pad moves without
    turning. When the spring link is held up, the driver goes on alone, the coupler leaves its stop, and the pad
    leans in around what is held. The drivers are geared together. So three freedoms in all: one motor, two
    springs, and only the motor is driven.

    Drive `left_driver_joint`, 0 open to 0.8 rad closed; for the springs let both `coupler_joint`s rest at 0. The
    configurations "open", "closed" and "home" (between) have the couplers at their stops. Pads are `left_pad` and
    `right_pad`, their x axes pointing outward; `grasp` is between them.

    Args:
        opening: between the pads when it is open; m.
    """
    check_lengths("gripper", opening=opening)
    length = opening / 2 / (math.sin(LEAN) - math.sin(LEAN - CLOSED))
    crank = (length * math.sin(LEAN), 0.0, length * math.cos(LEAN))
    elbow = (0.6 * length * math.sin(LEAN + ELBOW), 0.0, 0.6 * length * math.cos(LEAN + ELBOW))
    tip = (crank[0] - elbow[0], 0.0, crank[2] - elbow[2])
    p_driver, apart = (DRIVER[0], 0.0, DRIVER[1]), (APART[0], 0.0, APART[1])
    p_spring = (p_driver[0] + apart[0], 0.0, p_driver[2] + apart[2])
    # on the follower: where the pad's face is, so that both meet in the middle when closed
    face = (-(p_spring[0] + length * math.sin(LEAN - CLOSED)), 0.0, 0.045)
    gap = 0.004
    robot, r = Builder("gripper"), 0.004
    robot.link("palm", visuals=[
        hub((0.0, 0.0, 0.02), (0.0, 0.0, 1.0), 0.035, 0.04, DARK),
        block((0.0, 0.0, 0.047), (2.4 * p_driver[0], 0.024, 0.034), WHITE),
    ])  # fmt: skip
    for side, turn in (("left", 0.0), ("right", math.pi)):
        R = rotation.turn_z(turn)
        driver, coupler, spring, follower = (f"{side}_{n}" for n in ("driver", "coupler", "spring_link", "follower"))
        robot.revolute(f"{driver}_joint", "palm", driver, at=make(R, R @ p_driver), axis="-y", limits=(0.0, CLOSED))
        robot.revolute(f"{coupler}_joint", driver, coupler, at=elbow, axis="-y", limits=(-1.5, 0.0))
        robot.revolute(f"{spring}_joint", "palm", spring, at=make(R, R @ p_spring), axis="-y", limits=(-0.3, 1.1))
        robot.revolute(f"{follower}_joint", spring, follower, at=crank, axis="-y", limits=(-1.2, 1.2))
        robot.close(f"{side}_knuckle", coupler, follower, "pin", at=tip, onto=(-apart[0], 0.0, -apart[2]), axis="y")
        robot.fixed(f"{side}_pad_joint", follower, f"{side}_pad", at=face)
        robot.link(driver, visuals=[hub((0, 0, 0), Y, 1.5 * r, 5 * r, DARK), bone((0, 0, 0), elbow, r, ORANGE)])
        robot.link(coupler, visuals=[hub((0, 0, 0), Y, 1.3 * r, 5 * r, DARK), bone((0, 0, 0), tip, r, GREY)])
        robot.link(spring, visuals=[hub((0, 0, 0), Y, r, 5 * r, DARK), bone((0, 0, 0), crank, 0.7 * r, BLUE)])
        back = (face[0] + gap, 0.0, face[2])
        robot.link(follower, visuals=[
            bone((0.0, 0.0, 0.0), (-apart[0], 0.0, -apart[2]), r, GREY),
            bone((0.0, 0.0, 0.0), (back[0] + r, 0.0, back[2]), r, GREY),
            block((face[0] + gap / 2, 0.0, face[2]), (gap, 0.022, 0.038), DARK),
        ])  # fmt: skip
    robot.couple("right_driver_joint", "left_driver_joint")
    ahead = p_spring[2] + length * math.cos(LEAN - CLOSED) + face[2]
    robot.fixed("grasp_joint", "palm", "grasp", at=(0.0, 0.0, ahead))
    mechanism = robot.build()
    for name, turned in (("open", 0.0), ("closed", CLOSED), ("home", CLOSED / 2)):
        values = {"left_driver_joint": turned}
        for side in ("left", "right"):
            # turned by as much as the driver, and back by as much: that is a parallelogram
            values |= {f"{side}_spring_link_joint": turned, f"{side}_follower_joint": -turned}
        mechanism.configurations[name] = mechanism.configuration(values)
    return stand(mechanism, mechanism.configurations["home"])
