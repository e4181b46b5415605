"""The arm of an excavator: boom, stick and bucket, each moved by a hydraulic cylinder."""

from __future__ import annotations

import math
from itertools import pairwise

from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, block, bone, hub
from mechanik.gallery.circles import Point, heading, meet, polar
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.gallery.rods import hang_cylinder
from mechanik.mechanism import Builder, Mechanism

# in shares of the boom's length (the first three) or of the stick's: x along the link, z to its upper side
BOOM_CYLINDER_HOUSE, BOOM_CYLINDER_BOOM, STICK_CYLINDER_BOOM = (0.123, -0.105), (0.42, 0.10), (0.49, 0.17)
STICK_CYLINDER_STICK, BUCKET_CYLINDER_STICK = (-0.24, 0.09), (0.12, 0.20)
ROCKER, ROCKER_LENGTH, COUPLER_LENGTH, LUG_LENGTH = (0.845, 0.035), 0.225, 0.207, 0.162
LUG = math.radians(95)
"""From the line to the bucket's teeth to its lug, where the coupler pulls."""

RANGES = {
    "boom": (math.radians(-40), math.radians(55)),
    "stick": (math.radians(-150), math.radians(-35)),
    "bucket": (math.radians(-120), math.radians(35)),
}
"""What the cylinders let the arm do: angles to the house and to the link before; positive is up and out, rad."""
HOME = {"boom": math.radians(35), "stick": math.radians(-95), "bucket": math.radians(-60)}
Y = (0.0, 1.0, 0.0)


def excavator(boom: float = 5.7, stick: float = 2.9, bucket: float = 1.45) -> Mechanism:
    """An excavator of some 20 t. Four freedoms: the swing of the house, and three cylinders.

    x is forward, z up. Boom and stick are moved by a cylinder each, with which they make a triangle; the bucket by a
    cylinder over a rocker and a coupler: those, stick and bucket are a four-bar. Drives are the slides
    `boom_cylinder_slide`, `stick_cylinder_slide` and `bucket_cylinder_slide`, whose values are the ways from pin to
    pin; only they have hard stops. `teeth` is the tip of the bucket.

    Args:
        boom, stick: from pin to pin; m. All other pins are placed in proportion.
        bucket: from its pin to the teeth; m.
    """
    check_lengths("excavator", boom=boom, stick=stick, bucket=bucket)
    strokes = cylinder_strokes(boom, stick)
    r = 0.02 * boom
    robot = Builder("excavator")
    robot.revolute("swing", "tracks", "house", at=(0.0, 0.0, 0.18 * boom))
    foot = (0.05 * boom, 0.0, 0.12 * boom)
    for joint, parent, at in (
        ("boom", "house", foot),
        ("stick", "boom", (boom, 0, 0)),
        ("bucket", "stick", (stick, 0, 0)),
    ):
        low, high = RANGES[joint]
        # a little wider than the strokes: only those stop it, and no loop can snap over to its mirror image
        limits = (low - 0.1, high + 0.1)
        robot.revolute(f"{joint}_joint", parent, joint, at=at, axis="-y", limits=limits, value=HOME[joint])
    robot.fixed("teeth_joint", "bucket", "teeth", at=(bucket, 0.0, 0.0))

    knee, lug = bucket_knee(stick, HOME["bucket"]), _lug(stick, HOME["bucket"])
    pivot, rocker, coupler = _scaled(ROCKER, stick), ROCKER_LENGTH * stick, COUPLER_LENGTH * stick
    turn = heading(pivot, knee)
    robot.revolute("rocker_joint", "stick", "rocker", at=_flat(pivot), axis="-y", value=turn)
    robot.revolute(
        "coupler_joint", "rocker", "coupler", at=(rocker, 0, 0), axis="-y",
        value=math.remainder(heading(knee, lug) - turn, 2 * math.pi),
    )  # fmt: skip
    p_lug = polar((0.0, 0.0), LUG_LENGTH * stick, LUG)
    robot.close("lug", "coupler", "bucket", "pin", at=(coupler, 0, 0), onto=_flat(p_lug), axis="y")

    up, top = _scaled(BOOM_CYLINDER_BOOM, boom), _scaled(STICK_CYLINDER_BOOM, boom)
    rear, side = _scaled(STICK_CYLINDER_STICK, stick), _scaled(BUCKET_CYLINDER_STICK, stick)
    below = _scaled(BOOM_CYLINDER_HOUSE, boom)
    p_house = (foot[0] + below[0], 0.0, foot[2] + below[1])
    for name, a, p_a, b, p_b in (
        ("boom_cylinder", "house", p_house, "boom", _flat(up)),
        ("stick_cylinder", "boom", _flat(top), "stick", _flat(rear)),
        ("bucket_cylinder", "stick", _flat(side), "rocker", (rocker, 0.0, 0.0)),
    ):
        hang_cylinder(robot, name, a, p_a, b, p_b, strokes[name], 0.7 * r, DARK)

    robot.link("tracks", visuals=[
        block((0.0, y * boom, 0.08 * boom), (0.7 * boom, 0.1 * boom, 0.16 * boom), DARK) for y in (-0.2, 0.2)
    ])  # fmt: skip
    robot.link("house", visuals=[
        block((-0.17 * boom, 0.0, 0.14 * boom), (0.42 * boom, 0.44 * boom, 0.2 * boom), ORANGE),
        block((0.1 * boom, 0.15 * boom, 0.19 * boom), (0.2 * boom, 0.14 * boom, 0.3 * boom), GREY),
        bone((0.0, 0.0, 0.03 * boom), p_house, r, GREY),
    ])  # fmt: skip
    bend = (0.45 * boom, 0.0, 0.1 * boom)
    robot.link("boom", visuals=[
        bone((0, 0, 0), bend, 1.2 * r, ORANGE), bone(bend, (boom, 0, 0), r, ORANGE), bone(bend, _flat(top), r, ORANGE)
    ])  # fmt: skip
    robot.link("stick", visuals=[
        hub((0, 0, 0), Y, 1.2 * r, 3 * r, DARK), bone(_flat(rear), (0, 0, 0), r, ORANGE),
        bone((0, 0, 0), (stick, 0, 0), 0.9 * r, ORANGE), bone(_flat(rear), _flat(side), 0.8 * r, ORANGE),
    ])  # fmt: skip
    robot.link("rocker", visuals=[bone((0, 0, 0), (rocker, 0, 0), 0.4 * r, GREY)])
    robot.link("coupler", visuals=[bone((0, 0, 0), (coupler, 0, 0), 0.4 * r, BLUE)])
    scoop = [_flat(p_lug), (0.5 * bucket, 0, 0.5 * bucket), (0.85 * bucket, 0, 0.35 * bucket), (bucket, 0, 0)]
    sides = [bone(a, b, 0.5 * r, DARK) for a, b in pairwise([(0.0, 0.0, 0.0), *scoop])]
    width = [hub(point, Y, 0.5 * r, 0.2 * boom, DARK) for point in scoop[1:]]
    robot.link("bucket", visuals=[hub((0, 0, 0), Y, r, 3 * r, DARK), *sides, *width])
    return stand(robot.build())


def cylinder_strokes(boom: float, stick: float) -> dict[str, tuple[float, float]]:
    """The shortest and longest way from pin to pin of each cylinder, at the ends of what it moves; m."""
    lengths = {
        "boom_cylinder": [
            _third_side(_scaled(BOOM_CYLINDER_HOUSE, boom), _scaled(BOOM_CYLINDER_BOOM, boom), angle)
            for angle in RANGES["boom"]
        ],
        "stick_cylinder": [
            _third_side(
                _scaled((STICK_CYLINDER_BOOM[0] - 1.0, STICK_CYLINDER_BOOM[1]), boom),
                _scaled(STICK_CYLINDER_STICK, stick),
                angle,
            )
            for angle in RANGES["stick"]
        ],
        "bucket_cylinder": [
            math.dist(_scaled(BUCKET_CYLINDER_STICK, stick), bucket_knee(stick, angle)) for angle in RANGES["bucket"]
        ],
    }
    return {name: (min(pair), max(pair)) for name, pair in lengths.items()}


def bucket_knee(stick: float, angle: float) -> Point:
    """Where rocker and coupler meet, in the stick, with the bucket at `angle` to it: on the upper side."""
    lug = _lug(stick, angle)
    return meet("excavator", _scaled(ROCKER, stick), ROCKER_LENGTH * stick, lug, COUPLER_LENGTH * stick)


def _lug(stick: float, angle: float) -> Point:
    return polar((stick, 0.0), LUG_LENGTH * stick, LUG + angle)


def _third_side(still: Point, moved: Point, angle: float) -> float:
    """Between two points of links that share a pin, which is their origin, the second turned by `angle`."""
    a, b = math.hypot(*still), math.hypot(*moved)
    between = heading((0.0, 0.0), moved) + angle - heading((0.0, 0.0), still)
    return math.sqrt(a * a + b * b - 2 * a * b * math.cos(between))


def _scaled(share: Point, length: float) -> Point:
    return share[0] * length, share[1] * length


def _flat(point: Point) -> tuple[float, float, float]:
    """A point of the arm's plane, in space."""
    return point[0], 0.0, point[1]
