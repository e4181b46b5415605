"""Machines with loops: hydraulic excavator, scissor lift and adaptive two-finger gripper."""

from __future__ import annotations

import math
from itertools import pairwise

from mechanik.errors import StructureError
from mechanik.gallery.construction import (
    BLUE,
    DARK,
    GREY,
    ORANGE,
    RED,
    WHITE,
    add_hydraulic_cylinder,
    block,
    capsule,
    hub,
    set_home,
)
from mechanik.gallery.pinned_linkage import PlanarPoint, direction_angle, intersect_circles, polar_point
from mechanik.model import Builder, Mechanism, ShapeInstance
from mechanik.spatial import make_pose, rotation
from mechanik.validation import check_finite_angles, check_positive_lengths

# as ratios of the boom's length (the first three) or of the stick's: x along the link, z to its upper side
BOOM_CYLINDER_HOUSE, BOOM_CYLINDER_BOOM, STICK_CYLINDER_BOOM = (0.123, -0.105), (0.42, 0.10), (0.49, 0.17)
"""Pins of the cylinders; the name is cylinder and link."""
STICK_CYLINDER_STICK, BUCKET_CYLINDER_STICK = (-0.24, 0.09), (0.12, 0.20)
ROCKER, ROCKER_LENGTH, COUPLER_LENGTH, LUG_LENGTH = (0.845, 0.035), 0.225, 0.207, 0.162
"""Bucket linkage: the rocker's pivot on the stick, and the lengths of rocker, coupler and lug."""
LUG_ANGLE = math.radians(95)
"""rad, from the line to the bucket's teeth to its lug, where the coupler is pinned."""

JOINT_RANGES = {
    "boom": (math.radians(-40), math.radians(55)),
    "stick": (math.radians(-150), math.radians(-35)),
    "bucket": (math.radians(-120), math.radians(35)),
}
"""Joint angles that the cylinders allow, relative to the link before; positive is up and out, rad."""
HOME_ANGLES = {"boom": math.radians(35), "stick": math.radians(-95), "bucket": math.radians(-60)}
"""Joint angles at home; rad."""
PIN_AXIS = (0.0, 1.0, 0.0)


def excavator(boom: float = 5.7, stick: float = 2.9, bucket: float = 1.45) -> Mechanism:
    """Make an excavator of about 20 t with 4 dofs: the swing of the house, and three hydraulic cylinders.

    x is forward, z up. A cylinder moves the boom and another the stick, each in a triangle. The third moves the bucket
    through a rocker and a coupler, which form a four-bar with stick and bucket. The driven joints are
    `boom_cylinder_slide`, `stick_cylinder_slide` and `bucket_cylinder_slide`; their values are the distances between
    the pins, and only they have hard stops. The link `teeth` is the tip of the bucket.

    Args:
        boom, stick: distance between their pins; m. All other pins scale with these.
        bucket: from its pin to the teeth; m.

    Returns:
        The machine.

    Raises:
        StructureError: a length is invalid, or the machine cannot be assembled.

    Example:
        >>> mk.mobility(mk.gallery.excavator()).dof
        4
    """
    check_positive_lengths("excavator", boom=boom, stick=stick, bucket=bucket)
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
        low, high = JOINT_RANGES[joint]
        # slightly wider than the strokes allow: only the strokes stop the motion, and no loop can change its branch
        limits = (low - 0.1, high + 0.1)
        robot.revolute(f"{joint}_joint", parent, joint, at=at, axis="-y", limits=limits, value=HOME_ANGLES[joint])
    robot.fixed("teeth_joint", "bucket", "teeth", at=(bucket, 0.0, 0.0))

    knee, lug = rocker_coupler_pin(stick, HOME_ANGLES["bucket"]), _lug(stick, HOME_ANGLES["bucket"])
    pivot, rocker, coupler = _scaled(ROCKER, stick), ROCKER_LENGTH * stick, COUPLER_LENGTH * stick
    turn = direction_angle(pivot, knee)
    robot.revolute("rocker_joint", "stick", "rocker", at=_flat(pivot), axis="-y", value=turn)
    robot.revolute(
        "coupler_joint", "rocker", "coupler", at=(rocker, 0, 0), axis="-y",
        value=math.remainder(direction_angle(knee, lug) - turn, 2 * math.pi),
    )  # fmt: skip
    p_lug = polar_point((0.0, 0.0), LUG_LENGTH * stick, LUG_ANGLE)
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
        add_hydraulic_cylinder(robot, name, a, p_a, b, p_b, strokes[name], 0.7 * r, DARK)

    robot.link("tracks", visuals=[
        block((0.0, y * boom, 0.08 * boom), (0.7 * boom, 0.1 * boom, 0.16 * boom), DARK) for y in (-0.2, 0.2)
    ])  # fmt: skip
    robot.link("house", visuals=[
        block((-0.17 * boom, 0.0, 0.14 * boom), (0.42 * boom, 0.44 * boom, 0.2 * boom), ORANGE),
        block((0.1 * boom, 0.15 * boom, 0.19 * boom), (0.2 * boom, 0.14 * boom, 0.3 * boom), GREY),
        capsule((0.0, 0.0, 0.03 * boom), p_house, r, GREY),
    ])  # fmt: skip
    bend = (0.45 * boom, 0.0, 0.1 * boom)
    robot.link("boom", visuals=[
        capsule((0, 0, 0), bend, 1.2 * r, ORANGE), capsule(bend, (boom, 0, 0), r, ORANGE), capsule(bend, _flat(top),
            r, ORANGE)
    ])  # fmt: skip
    robot.link("stick", visuals=[
        hub((0, 0, 0), PIN_AXIS, 1.2 * r, 3 * r, DARK), capsule(_flat(rear), (0, 0, 0), r, ORANGE),
        capsule((0, 0, 0), (stick, 0, 0), 0.9 * r, ORANGE), capsule(_flat(rear), _flat(side), 0.8 * r, ORANGE),
    ])  # fmt: skip
    robot.link("rocker", visuals=[capsule((0, 0, 0), (rocker, 0, 0), 0.4 * r, GREY)])
    robot.link("coupler", visuals=[capsule((0, 0, 0), (coupler, 0, 0), 0.4 * r, BLUE)])
    scoop = [_flat(p_lug), (0.5 * bucket, 0, 0.5 * bucket), (0.85 * bucket, 0, 0.35 * bucket), (bucket, 0, 0)]
    sides = [capsule(a, b, 0.5 * r, DARK) for a, b in pairwise([(0.0, 0.0, 0.0), *scoop])]
    width = [hub(point, PIN_AXIS, 0.5 * r, 0.2 * boom, DARK) for point in scoop[1:]]
    robot.link("bucket", visuals=[hub((0, 0, 0), PIN_AXIS, r, 3 * r, DARK), *sides, *width])
    return set_home(robot.build())


def cylinder_strokes(boom: float, stick: float) -> dict[str, tuple[float, float]]:
    """Return the smallest and largest distance between the pins of each cylinder, m, for `JOINT_RANGES`."""
    lengths = {
        "boom_cylinder": [
            _third_side(_scaled(BOOM_CYLINDER_HOUSE, boom), _scaled(BOOM_CYLINDER_BOOM, boom), angle)
            for angle in JOINT_RANGES["boom"]
        ],
        "stick_cylinder": [
            _third_side(
                _scaled((STICK_CYLINDER_BOOM[0] - 1.0, STICK_CYLINDER_BOOM[1]), boom),
                _scaled(STICK_CYLINDER_STICK, stick),
                angle,
            )
            for angle in JOINT_RANGES["stick"]
        ],
        "bucket_cylinder": [
            math.dist(_scaled(BUCKET_CYLINDER_STICK, stick), rocker_coupler_pin(stick, angle))
            for angle in JOINT_RANGES["bucket"]
        ],
    }
    return {name: (min(pair), max(pair)) for name, pair in lengths.items()}


def rocker_coupler_pin(stick: float, angle: float) -> PlanarPoint:
    """Return the upper position of the pin between rocker and coupler in the stick, m, for a bucket angle in rad."""
    lug = _lug(stick, angle)
    return intersect_circles("excavator", _scaled(ROCKER, stick), ROCKER_LENGTH * stick, lug, COUPLER_LENGTH * stick)


def _lug(stick: float, angle: float) -> PlanarPoint:
    return polar_point((stick, 0.0), LUG_LENGTH * stick, LUG_ANGLE + angle)


def _third_side(still: PlanarPoint, moved: PlanarPoint, angle: float) -> float:
    """Return the distance of points on two links that share a pin at the origin; `moved` is rotated by `angle`."""
    a, b = math.hypot(*still), math.hypot(*moved)
    between = direction_angle((0.0, 0.0), moved) + angle - direction_angle((0.0, 0.0), still)
    return math.sqrt(a * a + b * b - 2 * a * b * math.cos(between))


def _scaled(share: PlanarPoint, length: float) -> PlanarPoint:
    return share[0] * length, share[1] * length


def _flat(point: PlanarPoint) -> tuple[float, float, float]:
    """Return a point of the arm's plane as (x, 0, z)."""
    return point[0], 0.0, point[1]


def scissor_lift(stages: int = 3, bar: float = 1.0, angle: float = 0.5) -> Mechanism:
    """Make a scissor lift: a platform on pairs of crossed bars that rises when the foot of the first pair moves in.

    It moves in the plane of x and z. The bars "rising" go from the left foot up to the right, the bars "falling" cross
    them. The left foot is pinned to the base at the origin; the right foot is on the driven joint "slider_joint". The
    platform is pinned at its left end and rolls on its right, stays level, and is stages * sqrt(bar² - slide²) above
    the base.

    Args:
        stages: number of pairs of bars, at least 1.
        bar: distance between the end pins of a bar; m.
        angle: of the bars above the base for the assembly; rad, between 0 and pi/2.

    Returns:
        The lift, with 1 dof.

    Raises:
        StructureError: an argument is invalid.

    Example:
        >>> lift = mk.gallery.scissor_lift(stages=3, bar=1.0, angle=np.pi / 6)
        >>> round(float(lift.pose("platform")[2, 3]), 6)
        1.5
    """
    if not isinstance(stages, int) or isinstance(stages, bool) or stages < 1:
        raise StructureError(f"scissor_lift: stages must be an integer of at least 1, not {stages!r}")
    check_positive_lengths("scissor_lift", bar=bar)
    check_finite_angles("scissor_lift", angle=angle)
    if not 0 < angle < math.pi / 2:
        raise StructureError(f"scissor_lift: angle must be between 0 (flat) and pi/2 (upright), not {angle:g}")
    slide, r = bar * math.cos(angle), 0.02 * bar
    start, middle, end = (0.0, 0.0, 0.0), (0.5 * bar, 0.0, 0.0), (bar, 0.0, 0.0)
    lower, upper = (-0.5 * bar, 0.0, 0.0), middle
    lift = Builder("scissor_lift")
    lift.prismatic("slider_joint", "base", "slider", axis="x", limits=(0.05 * bar, 0.999 * bar), value=slide)
    left, right, tilt = ("base", start), ("slider", start), 0.0
    for k in range(1, stages + 1):
        rising, falling = f"rising{k}", f"falling{k}"
        lift.revolute(f"{rising}_joint", left[0], rising, at=left[1], axis="-y", value=angle - tilt)
        # the frame of the falling bar is at the crossing, its x axis up along the bar to the left
        lift.revolute(f"{falling}_joint", rising, falling, at=middle, axis="-y", value=math.pi - 2 * angle)
        lift.close(f"{falling}_foot", falling, right[0], "pin", at=lower, onto=right[1], axis="-y")
        lift.link(rising, visuals=[capsule(start, end, r, RED), _axle(middle, r)])
        lift.link(falling, visuals=[capsule(lower, upper, r, BLUE), _axle(lower, r), _axle(upper, r)])
        left, right, tilt = (falling, upper), (rising, end), math.pi - angle
    lift.revolute("platform_joint", left[0], "platform", at=left[1], axis="-y", value=-tilt)
    lift.prismatic("roller_joint", "platform", "roller", axis="x", value=slide)
    lift.close("roller_pin", "roller", right[0], "pin", onto=right[1], axis="-y")
    slab = (1.1 * bar, 0.4 * bar, r)
    lift.link("base", visuals=[block((0.5 * bar, 0.0, -2 * r), slab, GREY)])
    lift.link("platform", visuals=[block((0.5 * bar, 0.0, 2 * r), slab, ORANGE)])
    for wheel in ("slider", "roller"):
        lift.link(wheel, visuals=[hub(start, (0.0, 1.0, 0.0), 1.5 * r, 0.3 * bar, DARK)])
    return set_home(lift.build())


def _axle(at: tuple[float, float, float], radius: float) -> ShapeInstance:
    return hub(at, (0.0, 1.0, 0.0), 0.7 * radius, 5 * radius, DARK)


CLOSED_ANGLE = 0.8
"""Angle of the drivers from open to closed, rad."""
OPEN_FINGER_ANGLE = 0.55
"""Outward angle of an open finger, rad."""
DRIVER_PIVOT, SPRING_LINK_OFFSET, ELBOW_ANGLE = (0.030, 0.055), (-0.017, 0.006), 0.4
"""Dimensions of a finger; x outward, z ahead, m.

The pivot of the driver in the palm, the offset from there to the pivot of the spring link, and the angle between the
driver and the line to the far end of its coupler, rad.
"""
FINGER_AXIS = (0.0, 1.0, 0.0)


def gripper(opening: float = 0.085) -> Mechanism:
    """Make an adaptive two-finger gripper like the Robotiq 2F; z is ahead, the fingers close along x.

    Each finger is a loop of driver, coupler, follower, spring link and palm: a five-bar with 2 dofs. A spring holds the
    coupler at its stop, value 0; there the finger is a parallelogram, and its pad moves without rotation. If an object
    blocks the spring link, the driver continues, the coupler leaves its stop, and the pad tilts around the object. The
    drivers are coupled. So there are 3 dofs: a motor and two springs.

    The driven joint is `left_driver_joint`, 0 (open) to 0.8 rad (closed). To model the springs, give
    `left_coupler_joint` and `right_coupler_joint` the rest value 0. In the configurations "open", "closed" and "home"
    (between) the couplers are at their stops. The pads are `left_pad` and `right_pad`, with x axes pointing outwards;
    `grasp` is between them.

    Args:
        opening: distance of the open pads; m.

    Returns:
        The gripper.

    Raises:
        StructureError: the opening is not positive and finite.

    Example:
        >>> hand = mk.gallery.gripper(opening=0.085)
        >>> q = hand.configurations["open"]
        >>> gap = hand.pose("left_pad", q)[0, 3] - hand.pose("right_pad", q)[0, 3]
        >>> round(abs(float(gap)), 6)
        0.085
    """
    check_positive_lengths("gripper", opening=opening)
    length = opening / 2 / (math.sin(OPEN_FINGER_ANGLE) - math.sin(OPEN_FINGER_ANGLE - CLOSED_ANGLE))
    crank = (length * math.sin(OPEN_FINGER_ANGLE), 0.0, length * math.cos(OPEN_FINGER_ANGLE))
    elbow = (
        0.6 * length * math.sin(OPEN_FINGER_ANGLE + ELBOW_ANGLE),
        0.0,
        0.6 * length * math.cos(OPEN_FINGER_ANGLE + ELBOW_ANGLE),
    )
    tip = (crank[0] - elbow[0], 0.0, crank[2] - elbow[2])
    p_driver, apart = (DRIVER_PIVOT[0], 0.0, DRIVER_PIVOT[1]), (SPRING_LINK_OFFSET[0], 0.0, SPRING_LINK_OFFSET[1])
    p_spring = (p_driver[0] + apart[0], 0.0, p_driver[2] + apart[2])
    # pad face in the follower's frame, so that both pads meet in the middle when closed
    face = (-(p_spring[0] + length * math.sin(OPEN_FINGER_ANGLE - CLOSED_ANGLE)), 0.0, 0.045)
    gap = 0.004
    robot, r = Builder("gripper"), 0.004
    robot.link("palm", visuals=[
        hub((0.0, 0.0, 0.02), (0.0, 0.0, 1.0), 0.035, 0.04, DARK),
        block((0.0, 0.0, 0.047), (2.4 * p_driver[0], 0.024, 0.034), WHITE),
    ])  # fmt: skip
    for side, turn in (("left", 0.0), ("right", math.pi)):
        R = rotation.about_z(turn)
        driver, coupler, spring, follower = (f"{side}_{n}" for n in ("driver", "coupler", "spring_link", "follower"))
        robot.revolute(
            f"{driver}_joint", "palm", driver, at=make_pose(R, R @ p_driver), axis="-y", limits=(0.0, CLOSED_ANGLE)
        )
        robot.revolute(f"{coupler}_joint", driver, coupler, at=elbow, axis="-y", limits=(-1.5, 0.0))
        robot.revolute(f"{spring}_joint", "palm", spring, at=make_pose(R, R @ p_spring), axis="-y", limits=(-0.3, 1.1))
        robot.revolute(f"{follower}_joint", spring, follower, at=crank, axis="-y", limits=(-1.2, 1.2))
        robot.close(f"{side}_knuckle", coupler, follower, "pin", at=tip, onto=(-apart[0], 0.0, -apart[2]), axis="y")
        robot.fixed(f"{side}_pad_joint", follower, f"{side}_pad", at=face)
        robot.link(
            driver, visuals=[hub((0, 0, 0), FINGER_AXIS, 1.5 * r, 5 * r, DARK), capsule((0, 0, 0), elbow, r, ORANGE)]
        )
        robot.link(
            coupler, visuals=[hub((0, 0, 0), FINGER_AXIS, 1.3 * r, 5 * r, DARK), capsule((0, 0, 0), tip, r, GREY)]
        )
        robot.link(
            spring, visuals=[hub((0, 0, 0), FINGER_AXIS, r, 5 * r, DARK), capsule((0, 0, 0), crank, 0.7 * r, BLUE)]
        )
        back = (face[0] + gap, 0.0, face[2])
        robot.link(follower, visuals=[
            capsule((0.0, 0.0, 0.0), (-apart[0], 0.0, -apart[2]), r, GREY),
            capsule((0.0, 0.0, 0.0), (back[0] + r, 0.0, back[2]), r, GREY),
            block((face[0] + gap / 2, 0.0, face[2]), (gap, 0.022, 0.038), DARK),
        ])  # fmt: skip
    robot.couple("right_driver_joint", "left_driver_joint")
    ahead = p_spring[2] + length * math.cos(OPEN_FINGER_ANGLE - CLOSED_ANGLE) + face[2]
    robot.fixed("grasp_joint", "palm", "grasp", at=(0.0, 0.0, ahead))
    mechanism = robot.build()
    for name, turned in (("open", 0.0), ("closed", CLOSED_ANGLE), ("home", CLOSED_ANGLE / 2)):
        values = {"left_driver_joint": turned}
        for side in ("left", "right"):
            # parallelogram: the spring link rotates with the driver, and the follower back by the same angle
            values |= {f"{side}_spring_link_joint": turned, f"{side}_follower_joint": -turned}
        mechanism.configurations[name] = mechanism.configuration(values)
    return set_home(mechanism, mechanism.configurations["home"])
