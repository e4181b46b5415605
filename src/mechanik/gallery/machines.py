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
from mechanik.validation import check_finite_angles, check_positive_numbers

# pins of the hydraulic cylinders, named by cylinder and link: x along the link, z to its upper side
BOOM_CYLINDER_HOUSE, BOOM_CYLINDER_BOOM, STICK_CYLINDER_BOOM = (0.123, -0.105), (0.42, 0.10), (0.49, 0.17)
"""Ratios to the boom length; the pin on the house is relative to the foot of the boom."""
STICK_CYLINDER_STICK, BUCKET_CYLINDER_STICK = (-0.24, 0.09), (0.12, 0.20)
"""Ratios to the stick length."""
ROCKER_PIVOT, ROCKER_LENGTH, COUPLER_LENGTH, LUG_LENGTH = (0.845, 0.035), 0.225, 0.207, 0.162
"""Bucket linkage, as ratios to the stick length: pivot of the rocker on the stick; lengths of rocker, coupler and lug.
"""
LUG_ANGLE = math.radians(95)
"""Angle at the bucket's pin from the teeth to the lug, to which the coupler is pinned; rad."""

JOINT_RANGES = {
    "boom": (math.radians(-40), math.radians(55)),
    "stick": (math.radians(-150), math.radians(-35)),
    "bucket": (math.radians(-120), math.radians(35)),
}
"""Joint angles that the cylinders allow, rad, relative to the previous link; a positive angle moves up and outwards."""
HOME_ANGLES = {"boom": math.radians(35), "stick": math.radians(-95), "bucket": math.radians(-60)}
"""Joint angles at home; rad."""
PIN_AXIS = (0.0, 1.0, 0.0)
"""Direction of all pins of the excavator's arm, in the frame of every link."""


def excavator(boom: float = 5.7, stick: float = 2.9, bucket: float = 1.45) -> Mechanism:
    """Make an excavator of about 20 t with 4 dofs: the swing of the house, and three hydraulic cylinders.

    x is forward, z is up. One cylinder moves the boom and another one the stick; each forms a triangle with two links.
    The third cylinder moves the bucket through a rocker and a coupler, which form a four-bar with stick and bucket. The
    driven joints are `swing`, `boom_cylinder_slide`, `stick_cylinder_slide` and `bucket_cylinder_slide`. The value of a
    slide is the distance between the pins of its cylinder, and the limits of the slides stop the motion. The link
    `teeth` is at the tip of the bucket.

    Args:
        boom, stick: distance between their pins; m. The positions of all other pins scale with these lengths.
        bucket: distance from its pin to the teeth; m.

    Returns:
        The machine.

    Raises:
        StructureError: a length is invalid, or the machine cannot be assembled.

    Example:
        >>> mk.mobility(mk.gallery.excavator()).dof
        4
    """
    check_positive_numbers("excavator", boom=boom, stick=stick, bucket=bucket)
    length_limits = cylinder_length_limits(boom, stick)
    radius = 0.02 * boom
    robot = Builder("excavator")
    robot.revolute("swing", "tracks", "house", at=(0.0, 0.0, 0.18 * boom))
    boom_foot = (0.05 * boom, 0.0, 0.12 * boom)
    for joint, parent, at in (
        ("boom", "house", boom_foot),
        ("stick", "boom", (boom, 0, 0)),
        ("bucket", "stick", (stick, 0, 0)),
    ):
        lower, upper = JOINT_RANGES[joint]
        # 0.1 rad wider than the cylinders allow: the cylinders stop the motion, and these limits keep each loop in its
        # assembly mode
        limits = (lower - 0.1, upper + 0.1)
        robot.revolute(f"{joint}_joint", parent, joint, at=at, axis="-y", limits=limits, value=HOME_ANGLES[joint])
    robot.fixed("teeth_joint", "bucket", "teeth", at=(bucket, 0.0, 0.0))

    bucket_angle = HOME_ANGLES["bucket"]
    p_stick_rocker_pin, p_stick_lug = rocker_coupler_pin(stick, bucket_angle), _lug_position(stick, bucket_angle)
    pivot, rocker_length, coupler_length = _scale(ROCKER_PIVOT, stick), ROCKER_LENGTH * stick, COUPLER_LENGTH * stick
    rocker_angle = direction_angle(pivot, p_stick_rocker_pin)
    robot.revolute("rocker_joint", "stick", "rocker", at=_in_arm_plane(pivot), axis="-y", value=rocker_angle)
    robot.revolute(
        "coupler_joint", "rocker", "coupler", at=(rocker_length, 0, 0), axis="-y",
        value=math.remainder(direction_angle(p_stick_rocker_pin, p_stick_lug) - rocker_angle, 2 * math.pi),
    )  # fmt: skip
    p_bucket_lug = polar_point((0.0, 0.0), LUG_LENGTH * stick, LUG_ANGLE)
    robot.close(
        "lug", "coupler", "bucket", "pin", at=(coupler_length, 0, 0), onto=_in_arm_plane(p_bucket_lug), axis="y"
    )

    boom_cylinder_end, stick_cylinder_start = _scale(BOOM_CYLINDER_BOOM, boom), _scale(STICK_CYLINDER_BOOM, boom)
    stick_cylinder_end, bucket_cylinder_start = (
        _scale(STICK_CYLINDER_STICK, stick),
        _scale(BUCKET_CYLINDER_STICK, stick),
    )
    boom_cylinder_offset = _scale(BOOM_CYLINDER_HOUSE, boom)
    boom_cylinder_start = (boom_foot[0] + boom_cylinder_offset[0], 0.0, boom_foot[2] + boom_cylinder_offset[1])
    for name, a, p_a, b, p_b in (
        ("boom_cylinder", "house", boom_cylinder_start, "boom", _in_arm_plane(boom_cylinder_end)),
        ("stick_cylinder", "boom", _in_arm_plane(stick_cylinder_start), "stick", _in_arm_plane(stick_cylinder_end)),
        ("bucket_cylinder", "stick", _in_arm_plane(bucket_cylinder_start), "rocker", (rocker_length, 0.0, 0.0)),
    ):
        add_hydraulic_cylinder(robot, name, a, p_a, b, p_b, length_limits[name], 0.7 * radius, DARK)

    robot.link("tracks", visuals=[
        block((0.0, y * boom, 0.08 * boom), (0.7 * boom, 0.1 * boom, 0.16 * boom), DARK) for y in (-0.2, 0.2)
    ])  # fmt: skip
    robot.link("house", visuals=[
        block((-0.17 * boom, 0.0, 0.14 * boom), (0.42 * boom, 0.44 * boom, 0.2 * boom), ORANGE),
        block((0.1 * boom, 0.15 * boom, 0.19 * boom), (0.2 * boom, 0.14 * boom, 0.3 * boom), GREY),
        capsule((0.0, 0.0, 0.03 * boom), boom_cylinder_start, radius, GREY),
    ])  # fmt: skip
    boom_bend = (0.45 * boom, 0.0, 0.1 * boom)
    robot.link(
        "boom",
        visuals=[
            capsule((0, 0, 0), boom_bend, 1.2 * radius, ORANGE),
            capsule(boom_bend, (boom, 0, 0), radius, ORANGE),
            capsule(boom_bend, _in_arm_plane(stick_cylinder_start), radius, ORANGE),
        ],
    )
    robot.link(
        "stick",
        visuals=[
            hub((0, 0, 0), PIN_AXIS, 1.2 * radius, 3 * radius, DARK),
            capsule(_in_arm_plane(stick_cylinder_end), (0, 0, 0), radius, ORANGE),
            capsule((0, 0, 0), (stick, 0, 0), 0.9 * radius, ORANGE),
            capsule(_in_arm_plane(stick_cylinder_end), _in_arm_plane(bucket_cylinder_start), 0.8 * radius, ORANGE),
        ],
    )
    robot.link("rocker", visuals=[capsule((0, 0, 0), (rocker_length, 0, 0), 0.4 * radius, GREY)])
    robot.link("coupler", visuals=[capsule((0, 0, 0), (coupler_length, 0, 0), 0.4 * radius, BLUE)])
    scoop_points = [
        _in_arm_plane(p_bucket_lug),
        (0.5 * bucket, 0, 0.5 * bucket),
        (0.85 * bucket, 0, 0.35 * bucket),
        (bucket, 0, 0),
    ]
    scoop_profile = [capsule(a, b, 0.5 * radius, DARK) for a, b in pairwise([(0.0, 0.0, 0.0), *scoop_points])]
    scoop_edges = [hub(point, PIN_AXIS, 0.5 * radius, 0.2 * boom, DARK) for point in scoop_points[1:]]
    robot.link("bucket", visuals=[hub((0, 0, 0), PIN_AXIS, radius, 3 * radius, DARK), *scoop_profile, *scoop_edges])
    return set_home(robot.build())


def cylinder_length_limits(boom: float, stick: float) -> dict[str, tuple[float, float]]:
    """Return the smallest and largest distance between the pins of each cylinder, m, for `JOINT_RANGES`."""
    lengths = {
        "boom_cylinder": [
            _third_side(_scale(BOOM_CYLINDER_HOUSE, boom), _scale(BOOM_CYLINDER_BOOM, boom), angle)
            for angle in JOINT_RANGES["boom"]
        ],
        "stick_cylinder": [
            _third_side(
                _scale((STICK_CYLINDER_BOOM[0] - 1.0, STICK_CYLINDER_BOOM[1]), boom),
                _scale(STICK_CYLINDER_STICK, stick),
                angle,
            )
            for angle in JOINT_RANGES["stick"]
        ],
        "bucket_cylinder": [
            math.dist(_scale(BUCKET_CYLINDER_STICK, stick), rocker_coupler_pin(stick, angle))
            for angle in JOINT_RANGES["bucket"]
        ],
    }
    return {name: (min(end_lengths), max(end_lengths)) for name, end_lengths in lengths.items()}


def rocker_coupler_pin(stick: float, angle: float) -> PlanarPoint:
    """Return the position of the pin between rocker and coupler in the frame of the stick, m.

    Two positions are possible; the upper one is returned.

    Args:
        stick: length of the stick; m.
        angle: bucket angle; rad.
    """
    lug = _lug_position(stick, angle)
    return intersect_circles(
        "excavator", _scale(ROCKER_PIVOT, stick), ROCKER_LENGTH * stick, lug, COUPLER_LENGTH * stick
    )


def _lug_position(stick: float, angle: float) -> PlanarPoint:
    """Return the position of the lug in the frame of the stick, m, at a bucket angle, rad."""
    return polar_point((stick, 0.0), LUG_LENGTH * stick, LUG_ANGLE + angle)


def _third_side(fixed_pin: PlanarPoint, moving_pin: PlanarPoint, angle: float) -> float:
    """Return the distance (m) between points on two links that share a pin at the origin, by the law of cosines.

    Args:
        fixed_pin: point on the first link; m.
        moving_pin: point on the second link at joint angle zero; m.
        angle: joint angle; rad.
    """
    a, b = math.hypot(*fixed_pin), math.hypot(*moving_pin)
    angle_between = direction_angle((0.0, 0.0), moving_pin) + angle - direction_angle((0.0, 0.0), fixed_pin)
    return math.sqrt(a * a + b * b - 2 * a * b * math.cos(angle_between))


def _scale(ratios: PlanarPoint, length: float) -> PlanarPoint:
    return ratios[0] * length, ratios[1] * length


def _in_arm_plane(point: PlanarPoint) -> tuple[float, float, float]:
    """Return a point of the arm's plane as (x, 0, z)."""
    return point[0], 0.0, point[1]


def scissor_lift(stages: int = 3, bar: float = 1.0, angle: float = 0.5) -> Mechanism:
    """Make a scissor lift: a platform on pairs of crossed bars that rises when the sliding foot moves inwards.

    The lift moves in the plane of x and z. In each stage a bar "rising" goes up to the right, and a bar "falling"
    crosses it. The left foot is pinned to the base at the origin; the right foot is on the driven joint "slider_joint".
    The platform is pinned at its left end and rolls at its right end. It stays level, at a height of
    stages * sqrt(bar² - slide²) above the base, where slide is the value of "slider_joint".

    Args:
        stages: number of pairs of bars, at least 1.
        bar: distance between the end pins of a bar; m.
        angle: angle of the bars above the base at home; rad, between 0.05 and 1.52.

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
    check_positive_numbers("scissor_lift", bar=bar)
    check_finite_angles("scissor_lift", angle=angle)
    slide_range = (0.05 * bar, 0.999 * bar)
    slide, radius = bar * math.cos(angle), 0.02 * bar
    if not (0 < angle < math.pi / 2 and slide_range[0] <= slide <= slide_range[1]):
        raise StructureError(f"scissor_lift: angle must be between 0.05 (flat) and 1.52 (upright) rad, not {angle:g}")
    start, middle, end = (0.0, 0.0, 0.0), (0.5 * bar, 0.0, 0.0), (bar, 0.0, 0.0)
    lower_end, upper_end = (-0.5 * bar, 0.0, 0.0), middle
    lift = Builder("scissor_lift")
    lift.prismatic("slider_joint", "base", "slider", axis="x", limits=slide_range, value=slide)
    left_pin, right_pin, parent_angle = ("base", start), ("slider", start), 0.0
    for k in range(1, stages + 1):
        rising_bar, falling_bar = f"rising{k}", f"falling{k}"
        lift.revolute(
            f"{rising_bar}_joint", left_pin[0], rising_bar, at=left_pin[1], axis="-y", value=angle - parent_angle
        )
        # the frame of the falling bar is at the crossing; its x axis points along the bar, up and to the left
        lift.revolute(f"{falling_bar}_joint", rising_bar, falling_bar, at=middle, axis="-y", value=math.pi - 2 * angle)
        lift.close(f"{falling_bar}_foot", falling_bar, right_pin[0], "pin", at=lower_end, onto=right_pin[1], axis="-y")
        lift.link(rising_bar, visuals=[capsule(start, end, radius, RED), _axle(middle, radius)])
        lift.link(
            falling_bar,
            visuals=[capsule(lower_end, upper_end, radius, BLUE), _axle(lower_end, radius), _axle(upper_end, radius)],
        )
        left_pin, right_pin, parent_angle = (falling_bar, upper_end), (rising_bar, end), math.pi - angle
    lift.revolute("platform_joint", left_pin[0], "platform", at=left_pin[1], axis="-y", value=-parent_angle)
    lift.prismatic("roller_joint", "platform", "roller", axis="x", value=slide)
    lift.close("roller_pin", "roller", right_pin[0], "pin", onto=right_pin[1], axis="-y")
    slab_size = (1.1 * bar, 0.4 * bar, radius)
    lift.link("base", visuals=[block((0.5 * bar, 0.0, -2 * radius), slab_size, GREY)])
    lift.link("platform", visuals=[block((0.5 * bar, 0.0, 2 * radius), slab_size, ORANGE)])
    for wheel in ("slider", "roller"):
        lift.link(wheel, visuals=[hub(start, (0.0, 1.0, 0.0), 1.5 * radius, 0.3 * bar, DARK)])
    return set_home(lift.build())


def _axle(at: tuple[float, float, float], radius: float) -> ShapeInstance:
    return hub(at, (0.0, 1.0, 0.0), 0.7 * radius, 5 * radius, DARK)


CLOSED_ANGLE = 0.8
"""Change of the driver angle from open to closed, rad."""
OPEN_FINGER_ANGLE = 0.55
"""Angle of the spring link from z outwards in the open gripper, rad."""
DRIVER_PIVOT, SPRING_LINK_OFFSET, ELBOW_ANGLE = (0.030, 0.055), (-0.017, 0.006), 0.4
"""Dimensions of a finger: pivot of the driver in the palm (m), offset from this pivot to the pivot of the spring link
(m), and angle at the driver's pivot from the far end of the coupler to the elbow between driver and coupler (rad), with
the coupler at its stop. Points are (x, z): outward, forward."""
FINGER_AXIS = (0.0, 1.0, 0.0)
"""Axis of all joints of a finger."""


def gripper(opening: float = 0.085) -> Mechanism:
    """Make an adaptive two-finger gripper like the Robotiq 2F; z points forward, and the fingers close along x.

    Each finger is a loop of driver, coupler, follower, spring link and palm: a five-bar with 2 dofs. In a real gripper
    a spring holds the coupler at its stop, value 0. With the coupler at its stop, the finger is a parallelogram, and
    its pad moves without rotation. If an object blocks the spring link, the driver continues to move, the coupler
    leaves its stop, and the pad tilts around the object. The drivers are coupled, so the gripper has 3 dofs: a motor
    and two springs.

    The driven joint is `left_driver_joint`, 0 (open) to 0.8 rad (closed). To model the springs, give
    `left_coupler_joint` and `right_coupler_joint` the rest value 0. In the configurations "open", "closed" and "home"
    (half closed) the couplers are at their stops. The pads are `left_pad` and `right_pad`, with x axes pointing
    outwards; the link `grasp` is where they meet.

    Args:
        opening: distance between the open pads; m.

    Returns:
        The gripper.

    Raises:
        StructureError: the opening is not positive and finite.

    Example:
        >>> hand = mk.gallery.gripper(opening=0.085)
        >>> q = hand.configurations["open"]
        >>> distance = hand.pose("left_pad", q)[0, 3] - hand.pose("right_pad", q)[0, 3]
        >>> round(abs(float(distance)), 6)
        0.085
    """
    check_positive_numbers("gripper", opening=opening)
    finger_length = opening / 2 / (math.sin(OPEN_FINGER_ANGLE) - math.sin(OPEN_FINGER_ANGLE - CLOSED_ANGLE))
    spring_link_tip = (finger_length * math.sin(OPEN_FINGER_ANGLE), 0.0, finger_length * math.cos(OPEN_FINGER_ANGLE))
    elbow = (
        0.6 * finger_length * math.sin(OPEN_FINGER_ANGLE + ELBOW_ANGLE),
        0.0,
        0.6 * finger_length * math.cos(OPEN_FINGER_ANGLE + ELBOW_ANGLE),
    )
    coupler_tip = (spring_link_tip[0] - elbow[0], 0.0, spring_link_tip[2] - elbow[2])
    p_driver, spring_link_offset = (
        (DRIVER_PIVOT[0], 0.0, DRIVER_PIVOT[1]),
        (SPRING_LINK_OFFSET[0], 0.0, SPRING_LINK_OFFSET[1]),
    )
    p_spring = (p_driver[0] + spring_link_offset[0], 0.0, p_driver[2] + spring_link_offset[2])
    # position of the pad face in the frame of the follower; the closed pads meet in the middle
    pad_face = (-(p_spring[0] + finger_length * math.sin(OPEN_FINGER_ANGLE - CLOSED_ANGLE)), 0.0, 0.045)
    pad_thickness = 0.004
    robot, radius = Builder("gripper"), 0.004
    robot.link("palm", visuals=[
        hub((0.0, 0.0, 0.02), (0.0, 0.0, 1.0), 0.035, 0.04, DARK),
        block((0.0, 0.0, 0.047), (2.4 * p_driver[0], 0.024, 0.034), WHITE),
    ])  # fmt: skip
    for side, yaw in (("left", 0.0), ("right", math.pi)):
        R_palm_finger = rotation.about_z(yaw)
        driver, coupler, spring_link, follower = (
            f"{side}_{part}" for part in ("driver", "coupler", "spring_link", "follower")
        )
        robot.revolute(
            f"{driver}_joint",
            "palm",
            driver,
            at=make_pose(R_palm_finger, R_palm_finger @ p_driver),
            axis="-y",
            limits=(0.0, CLOSED_ANGLE),
        )
        robot.revolute(f"{coupler}_joint", driver, coupler, at=elbow, axis="-y", limits=(-1.5, 0.0))
        robot.revolute(
            f"{spring_link}_joint",
            "palm",
            spring_link,
            at=make_pose(R_palm_finger, R_palm_finger @ p_spring),
            axis="-y",
            limits=(-0.3, 1.1),
        )
        robot.revolute(f"{follower}_joint", spring_link, follower, at=spring_link_tip, axis="-y", limits=(-1.2, 1.2))
        robot.close(
            f"{side}_knuckle",
            coupler,
            follower,
            "pin",
            at=coupler_tip,
            onto=(-spring_link_offset[0], 0.0, -spring_link_offset[2]),
            axis="y",
        )
        robot.fixed(f"{side}_pad_joint", follower, f"{side}_pad", at=pad_face)
        robot.link(
            driver,
            visuals=[
                hub((0, 0, 0), FINGER_AXIS, 1.5 * radius, 5 * radius, DARK),
                capsule((0, 0, 0), elbow, radius, ORANGE),
            ],
        )
        robot.link(
            coupler,
            visuals=[
                hub((0, 0, 0), FINGER_AXIS, 1.3 * radius, 5 * radius, DARK),
                capsule((0, 0, 0), coupler_tip, radius, GREY),
            ],
        )
        robot.link(
            spring_link,
            visuals=[
                hub((0, 0, 0), FINGER_AXIS, radius, 5 * radius, DARK),
                capsule((0, 0, 0), spring_link_tip, 0.7 * radius, BLUE),
            ],
        )
        pad_back = (pad_face[0] + pad_thickness, 0.0, pad_face[2])
        robot.link(follower, visuals=[
            capsule((0.0, 0.0, 0.0), (-spring_link_offset[0], 0.0, -spring_link_offset[2]), radius, GREY),
            capsule((0.0, 0.0, 0.0), (pad_back[0] + radius, 0.0, pad_back[2]), radius, GREY),
            block((pad_face[0] + pad_thickness / 2, 0.0, pad_face[2]), (pad_thickness, 0.022, 0.038), DARK),
        ])  # fmt: skip
    robot.couple("right_driver_joint", "left_driver_joint")
    grasp_distance = p_spring[2] + finger_length * math.cos(OPEN_FINGER_ANGLE - CLOSED_ANGLE) + pad_face[2]
    robot.fixed("grasp_joint", "palm", "grasp", at=(0.0, 0.0, grasp_distance))
    mechanism = robot.build()
    for name, driver_angle in (("open", 0.0), ("closed", CLOSED_ANGLE), ("home", CLOSED_ANGLE / 2)):
        values = {"left_driver_joint": driver_angle}
        for side in ("left", "right"):
            # in a parallelogram the spring link rotates with the driver, and the follower back by the same angle
            values |= {f"{side}_spring_link_joint": driver_angle, f"{side}_follower_joint": -driver_angle}
        mechanism.configurations[name] = mechanism.configuration(values)
    return set_home(mechanism, mechanism.configurations["home"])
