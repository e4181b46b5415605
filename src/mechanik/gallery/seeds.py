"""Three arms that inverse kinematics was shown on in the browser, long before this library."""

from __future__ import annotations

import math

from mechanik.formats.arms import arm_3d
from mechanik.formats.dh import from_dh
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, RED, block, dress, put_on
from mechanik.gallery.home import stand
from mechanik.mechanism import Builder, Mechanism
from mechanik.spatial import make, rotation

ZALO_JOINTS = (
    # joint, link, where in the link before (m, y up), axis, limit on either side (degrees)
    ("first_joint", "first", (0.0, 0.1152001, 0.0), "y", 180),
    ("second_joint", "second", (-0.0655, 0.046, 0.0), "x", 90),
    ("third_joint", "third", (0.01247041, 0.3202634, -0.000739485), "x", 150),
    ("fourth_joint", "fourth", (0.02984276, 0.3001859, 0.0), "x", 130),
    ("fifth_joint", "fifth", (0.04333822, 0.04200262, 0.0), "y", 180),
)
ZALO_BOXES = (
    # link, centre, size
    ("base", (0.0, 0.05, 0.0), (0.05, 0.1, 0.05)),
    ("first", (0.0, 0.025, 0.0), (0.1, 0.1, 0.1)),
    ("second", (-0.03450041, 0.147, 0.0), (0.1, 0.45, 0.1)),
    ("third", (0.028, 0.1514, 0.0), (0.05, 0.35, 0.05)),
    ("fourth", (0.048, 0.0017, 0.0), (0.05, 0.05, 0.05)),
    ("fifth", (0.03156178, 0.003, 0.0), (0.1, 0.035, 0.035)),
)


def zalo5() -> Mechanism:
    """The arm of five joints on which hinges and limits of cyclic coordinate descent were shown.

    It was drawn with y up, in units of a hundredth of ours; here the base stands turned in a world with z up.
    """
    robot = Builder("zalo5")
    robot.fixed("base_joint", "world", "base", at=make(rotation.turn_x(math.pi / 2), (0.0, 0.0, 0.0)))
    parent = "base"
    for joint, link, at, axis, limit in ZALO_JOINTS:
        bound = math.radians(limit)
        robot.revolute(joint, parent, link, at=at, axis=axis, limits=(-bound, bound))
        parent = link
    robot.fixed("effector_fix", "fifth", "effector", at=(0.083, 0.01, 0.0))
    for k, (link, at, size) in enumerate(ZALO_BOXES):
        robot.link(link, visuals=[block(at, size, (GREY, ORANGE)[k % 2])])
    return stand(robot.build(), [0.5, 0.4, 0.8, 0.5, 0.0])


def dh6() -> Mechanism:
    """The arm of six joints that is written as a modified DH table; a tenth of its size there. q are the thetas."""
    arm = from_dh(
        [
            [0.5, 0.0, -90, 0],
            [0.0, 0.2, 90, 125],
            [0.0, 1.5, 0, -35],
            [1.5, 0.2, 90, 0],
            [0.0, 0.0, -90, 90],
            [0.2, 0.0, -90, 0],
        ],
        convention="modified",
        columns="d a alpha theta",
        degrees=True,
        theta="start",
        limits=[(-360, 360)] * 6,
        joints=[f"j{i}" for i in range(6)],
        name="dh6",
    )
    return stand(dress(arm, 0.12, 0.06, BLUE, DARK))


def grippy10() -> Mechanism:
    """The arm of ten joints that is a list of lengths and axes, with a box on each link; a tenth of its size there."""
    lengths = [0.1, 0.1, 0.4, 0.4, 0.1, 0.4, 0.4, 0.1, 0.2, 0.2]
    half, full = (-math.pi, math.pi), (-2 * math.pi, 2 * math.pi)
    limits = [full if i in (0, 3) else half for i in range(10)]
    arm = arm_3d(lengths, "zyyzyyzyyz", name="grippy10", limits=limits)
    for i in range(11):
        arm.link(f"link{i}").name = f"seg{i}"
    for i in range(10):
        arm.joint(f"joint{i + 1}").name = f"q{i}"
    for i, length in enumerate(lengths):
        put_on(arm.link(f"seg{i}"), block((0.0, 0.0, length / 2), (0.12, 0.12, length), (RED, GREY)[i % 2]))
    put_on(arm.link("seg10"), block((0.0, 0.0, 0.02), (0.06, 0.12, 0.04), DARK))
    return stand(arm, [0.0, 0.4, 0.5, 0.0, 0.6, 0.5, 0.0, 0.4, 0.3, 0.0])
