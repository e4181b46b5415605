"""Parallel robots, assembled in closed form: Stewart platform, delta robot, hexapod and planar 3-RRR."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.construction import BLUE, DARK, GREY, ORANGE, WHITE, Z, capsule, hub, rod, set_home, sphere
from mechanik.gallery.pinned_linkage import build_pinned_linkage, intersect_circles, polar_point
from mechanik.model import Builder, Mechanism
from mechanik.spatial import euler, make_pose, rotation
from mechanik.spatial.array import Array
from mechanik.validation import check_finite_angles, check_planar_point, check_positive_numbers


def stewart_platform(
    base_radius: float = 0.20,
    platform_radius: float = 0.12,
    height: float = 0.30,
    stroke: tuple[float, float] = (0.2, 0.5),
    ends: Literal["closure", "joint"] = "closure",
    legs: Literal["ups", "sps"] = "ups",
) -> Mechanism:
    """Make a Gough-Stewart platform: a platform on six legs of variable length (V. E. Gough 1954, D. Stewart 1965).

    The legs begin on the base at 120 k ± 15 degrees and end on the platform at 120 k ± 45 degrees, k = 0, 1, 2. Each
    leg has a universal or spherical joint at the base, a prismatic joint whose value is the leg length, and a spherical
    joint at its end. The platform is floating, so its pose is part of q. The leg lengths follow from the pose in closed
    form. For given lengths there are up to 40 poses (M. Raghavan 1991; P. Dietmaier 1998 describes a platform with 40
    real poses).

    Args:
        base_radius, platform_radius: radii of the circles of the leg ends; m.
        height: height of the platform at home; m.
        stroke: smallest and largest leg length; m.
        ends: "closure" uses the spherical joints at the platform as closures; with "ups" legs, the joints then have
            24 dofs. "joint" adds them as joints, and welds their child links to the platform; with "ups" legs, the
            joints then have 42 dofs.
        legs: "ups" legs begin with a universal joint. "sps" legs begin with a spherical joint and can rotate about
            their own axis: the robot has 12 dofs, and six of them move the platform.

    Returns:
        The robot, with 6 dofs for "ups" legs.

    Raises:
        StructureError: an argument is invalid, or a leg length is outside `stroke` at this height.

    Example:
        >>> mk.mobility(mk.gallery.stewart_platform()).dof
        6
    """
    if ends not in ("closure", "joint"):
        raise StructureError(f"stewart_platform: ends must be 'closure' or 'joint', not {ends!r}")
    if legs not in ("ups", "sps"):
        raise StructureError(f"stewart_platform: legs must be 'ups' or 'sps', not {legs!r}")
    if np.shape(stroke) != (2,):
        raise StructureError(f"stewart_platform: stroke must be (shortest, longest) leg length in m, not {stroke!r}")
    shortest, longest = stroke
    check_positive_numbers(
        "stewart_platform",
        base_radius=base_radius,
        platform_radius=platform_radius,
        height=height,
        shortest=shortest,
        longest=longest,
    )
    if shortest >= longest:
        raise StructureError(f"stewart_platform: stroke must be (shortest, longest) leg length in m, not {stroke!r}")
    robot = Builder("stewart_platform")
    robot.free("platform_joint", "base", "platform", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    for k in range(6):
        pair_angle, sign = 120.0 * (k // 2), (-1.0, 1.0)[k % 2]
        p_base = _point_on_circle(base_radius, pair_angle + sign * 15)
        p_platform = _point_on_circle(platform_radius, pair_angle + sign * 45)
        leg_vector = p_platform + height * Z - p_base
        length = float(np.linalg.norm(leg_vector))
        if not shortest <= length <= longest:
            raise StructureError(
                f"stewart_platform cannot be assembled: at height {height:g} m leg {k + 1} is {length:g} m long, "
                f"outside {shortest:g} to {longest:g} m; change height or stroke"
            )
        R_base_leg = rotation.between(Z, leg_vector)
        leg, piston, ball_link = f"leg{k + 1}", f"piston{k + 1}", f"ball{k + 1}"
        if legs == "ups":
            robot.universal(f"{leg}_universal", "base", leg, at=make_pose(R_base_leg, p_base), limits=(-1.2, 1.2))
        else:
            robot.spherical(f"{leg}_base_ball", "base", leg, at=make_pose(R_base_leg, p_base))
        robot.prismatic(f"{leg}_slide", leg, piston, limits=stroke, value=length)
        if ends == "closure":
            robot.close(f"{leg}_ball", piston, "platform", "ball", onto=p_platform)
        else:
            ball_angles = euler.euler_from_matrix(R_base_leg.T, order="zyx", axes="moving")[::-1]
            robot.spherical(f"{leg}_ball", piston, ball_link, value=ball_angles)
            robot.close(f"{leg}_weld", ball_link, "platform", "weld", onto=p_platform)
            robot.link(ball_link, visuals=[sphere((0.0, 0.0, 0.0), 0.012, DARK)])
        sleeve_length = 0.9 * shortest
        tip_shapes = [sphere((0.0, 0.0, 0.0), 0.012, DARK)] if ends == "closure" else []
        robot.link(
            leg, visuals=[sphere((0.0, 0.0, 0.0), 0.016, DARK), rod((0.0, 0.0, 0.0), sleeve_length * Z, 0.011, BLUE)]
        )
        robot.link(piston, visuals=[rod((shortest - longest) * 0.6 * Z, (0.0, 0.0, 0.0), 0.006, GREY), *tip_shapes])
    robot.link("base", visuals=[hub((0.0, 0.0, -0.02), Z, 1.1 * base_radius, 0.02, GREY)])
    robot.link("platform", visuals=[hub((0.0, 0.0, 0.018), Z, 1.1 * platform_radius, 0.012, ORANGE)])
    return set_home(robot.build())


DELTA_ARM_LIMITS = (-0.9, 1.6)
"""Limits of the arms of a delta robot, rad."""


def delta_robot(
    base_radius: float = 0.20,
    arm: float = 0.30,
    forearm: float = 0.70,
    platform_radius: float = 0.06,
    width: float = 0.10,
    angle: float = 0.35,
) -> Mechanism:
    """Make a delta robot (R. Clavel 1985): three arms move a platform through parallelograms, without rotation.

    The base is at the origin, the platform below the base. Each arm rotates about a horizontal axis; a positive angle
    moves the arm down. Each forearm consists of two parallel rods, with a universal joint at the arm and a spherical
    joint at the platform, so that no rod can rotate about its own axis.

    Args:
        base_radius: distance of the arms' joints from the centre of the base; m.
        arm, forearm: lengths; m.
        platform_radius: distance from the centre of the platform to the middle between the rod ends of a forearm; m.
        width: distance between the two rods of a forearm; m.
        angle: angle of all three arms at home; rad, between -0.9 and 1.6.

    Returns:
        The robot, with 3 dofs.

    Raises:
        StructureError: a length or the angle is invalid, or the forearms do not reach the platform.

    Example:
        >>> mk.mobility(mk.gallery.delta_robot()).dof
        3
    """
    check_positive_numbers(
        "delta_robot",
        base_radius=base_radius,
        arm=arm,
        forearm=forearm,
        platform_radius=platform_radius,
        width=width,
    )
    check_finite_angles("delta_robot", angle=angle)
    lower, upper = DELTA_ARM_LIMITS
    if not lower <= angle <= upper:
        raise StructureError(f"delta_robot: angle must be between {lower:g} and {upper:g} rad, not {angle:g}")
    inward_distance = base_radius + arm * math.cos(angle) - platform_radius
    if not abs(inward_distance) < forearm:
        raise StructureError(
            f"delta_robot cannot be assembled: forearms of {forearm:g} m do not reach the platform, "
            f"{abs(inward_distance):g} m away horizontally; use longer forearms"
        )
    drop_distance = math.sqrt(forearm**2 - inward_distance**2)
    depth = arm * math.sin(angle) + drop_distance
    # vector along a rod in the frame of its arm, whose x is along the arm and whose y is the joint axis
    rod_vector = rotation.about_y(angle).T @ np.array([-inward_distance, 0.0, -drop_distance])
    R_arm_rod = rotation.between(Z, rod_vector)

    radius = 0.012
    robot = Builder("delta_robot")
    robot.free("platform_joint", "base", "platform", value=(0.0, 0.0, -depth, 0.0, 0.0, 0.0))
    platform_shapes = [hub((0.0, 0.0, 0.0), Z, platform_radius, 0.015, ORANGE)]
    for k in range(3):
        R_base_arm = rotation.about_z(math.radians(120.0 * k))
        name = f"arm{k + 1}"
        X_base_arm = make_pose(R_base_arm, R_base_arm @ (base_radius, 0.0, 0.0))
        robot.revolute(f"{name}_joint", "base", name, at=X_base_arm, axis="y", limits=DELTA_ARM_LIMITS, value=angle)
        elbows = [np.array([arm, y, 0.0]) for y in (-width / 2, width / 2)]
        motor = hub((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 2 * radius, 5 * radius, DARK)
        robot.link(
            name,
            visuals=[
                motor,
                capsule((0, 0, 0), (arm, 0, 0), 1.4 * radius, BLUE),
                capsule(elbows[0], elbows[1], radius, BLUE),
            ],
        )
        ends = [R_base_arm @ (platform_radius, y, 0.0) for y in (-width / 2, width / 2)]
        platform_shapes.append(capsule(ends[0], ends[1], 0.8 * radius, ORANGE))
        for side, elbow, end in zip("ab", elbows, ends, strict=True):
            forearm_rod = f"rod{k + 1}{side}"
            robot.universal(
                f"{forearm_rod}_universal",
                name,
                forearm_rod,
                at=make_pose(R_arm_rod, elbow),
                limits=(-1.5, 1.5),
            )
            robot.close(f"{forearm_rod}_ball", forearm_rod, "platform", "ball", at=forearm * Z, onto=end)
            robot.link(forearm_rod, visuals=[capsule((0.0, 0.0, 0.0), forearm * Z, 0.5 * radius, GREY)])
    robot.link("base", visuals=[hub((0.0, 0.0, 0.03), Z, base_radius, 0.03, WHITE)])
    robot.link("platform", visuals=platform_shapes)
    return set_home(robot.build())


def _point_on_circle(radius: float, degrees: float) -> Array:
    angle = math.radians(degrees)
    return np.array([radius * math.cos(angle), radius * math.sin(angle), 0.0])


BASE_HALF_ANGLE, PLATFORM_HALF_ANGLE = 13.0, 15.0
"""Half the angle between the two joints of a pair, degrees; pairs on the base alternate with pairs on the platform."""


def hexapod(
    base_radius: float = 0.060,
    platform_radius: float = 0.045,
    height: float = 0.090,
    travel: float = 0.009,
) -> Mechanism:
    """Make a hand-sized positioning hexapod (6-UCU), as used for lenses and chips: six dofs.

    Each strut has a universal joint, a cylindrical joint (a spindle that slides and rotates), and a second universal
    joint. If the spindles could not rotate, the platform could not move. At home all struts have the same length. With
    the default dimensions the platform can move from home at least 20 mm sideways or 8 mm up or down, tilt by 10
    degrees, or rotate about z by 20 degrees. The platform is floating, so its pose is part of q.

    Args:
        base_radius, platform_radius: radii of the circles of the universal joints; m.
        height: distance between the circles at home; m.
        travel: largest change of the strut length from home, in each direction; m.

    Returns:
        The robot.

    Raises:
        StructureError: a length is invalid, or the travel is at least half the strut length.

    Example:
        >>> mk.mobility(mk.gallery.hexapod()).dof
        6
    """
    check_positive_numbers(
        "hexapod", base_radius=base_radius, platform_radius=platform_radius, height=height, travel=travel
    )
    robot = Builder("hexapod")
    robot.free("platform_joint", "base", "platform", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    for k in range(6):
        pair_angle, sign = 120.0 * (k // 2), (-1.0, 1.0)[k % 2]
        p_base = _point_on_circle(base_radius, pair_angle + sign * BASE_HALF_ANGLE)
        p_platform = _point_on_circle(platform_radius, pair_angle + sign * (60.0 - PLATFORM_HALF_ANGLE))
        strut_vector = p_platform + height * Z - p_base
        length = float(np.linalg.norm(strut_vector))
        if not travel < 0.5 * length:
            raise StructureError(
                f"hexapod: travel is {travel:g} m; it must be less than {0.5 * length:g} m, "
                "half the strut length at home"
            )
        length_limits = (length - travel, length + travel)
        strut, spindle = f"strut{k + 1}", f"spindle{k + 1}"
        R_base_strut = rotation.between(Z, strut_vector)
        robot.universal(f"{strut}_cardan", "base", strut, at=make_pose(R_base_strut, p_base), limits=(-0.8, 0.8))
        robot.cylindrical(
            f"{strut}_slide",
            strut,
            spindle,
            limits=((length_limits[0], -math.pi), (length_limits[1], math.pi)),
            value=(length, 0.0),
        )
        robot.close(f"{strut}_upper_cardan", spindle, "platform", "universal", onto=make_pose(R_base_strut, p_platform))
        radius = 0.1 * platform_radius
        sleeve_length = 0.75 * length_limits[0]
        robot.link(
            strut,
            visuals=[
                sphere((0.0, 0.0, 0.0), 1.2 * radius, DARK),
                rod((0.0, 0.0, 0.0), sleeve_length * Z, radius, BLUE),
            ],
        )
        robot.link(
            spindle,
            visuals=[
                rod(-0.6 * length_limits[0] * Z, (0.0, 0.0, 0.0), 0.5 * radius, GREY),
                sphere((0, 0, 0), radius, DARK),
            ],
        )
    thickness = 0.2 * platform_radius
    robot.link("base", visuals=[hub((0.0, 0.0, -thickness), Z, 1.25 * base_radius, thickness, GREY)])
    robot.link("platform", visuals=[hub((0.0, 0.0, thickness), Z, 1.2 * platform_radius, thickness, WHITE)])
    return set_home(robot.build())


def planar_3rrr(
    base_radius: float = 0.5,
    platform_radius: float = 0.15,
    arm: float = 0.3,
    forearm: float = 0.3,
    position: tuple[float, float] = (0.0, 0.0),
    angle: float = 0.0,
) -> Mechanism:
    """Make a planar 3-RRR robot: three two-bar arms with motors at the base move and rotate a platform in the plane.

    The motors "arm1_joint" to "arm3_joint" are at 90, 210 and 330 degrees on a circle about the origin. If the
    platform angle is 0, the pins on the platform are at the same angles on a circle about its centre, the link "tool".
    All elbows are bent in the same direction. For given motor angles there are up to six platform poses (K. Hunt 1983;
    C. Gosselin, J. Sefrioui 1991).

    Args:
        base_radius, platform_radius: radii of the circles of motors and pins; m.
        arm, forearm: lengths of the bars; m.
        position: (x, y) of the platform at home; m.
        angle: angle of the platform at home; rad.

    Returns:
        The robot, with 3 dofs.

    Raises:
        StructureError: a dimension is invalid, or an arm does not reach the platform.

    Example:
        >>> mk.mobility(mk.gallery.planar_3rrr()).dof
        3
    """
    gallery_name = "planar_3rrr"
    check_positive_numbers(
        gallery_name, base_radius=base_radius, platform_radius=platform_radius, arm=arm, forearm=forearm
    )
    check_planar_point(gallery_name, "position", position)
    check_finite_angles(gallery_name, angle=angle)
    points = {"middle": position}
    bars = {"ground": tuple(f"motor{k}" for k in (1, 2, 3))}
    for k in (1, 2, 3):
        spoke_angle = math.radians(120 * k - 30)
        motor = points[f"motor{k}"] = polar_point((0.0, 0.0), base_radius, spoke_angle)
        pin = points[f"pin{k}"] = polar_point(position, platform_radius, spoke_angle + angle)
        points[f"elbow{k}"] = intersect_circles(gallery_name, motor, arm, pin, forearm)
        bars[f"arm{k}"] = (f"motor{k}", f"elbow{k}")
        bars[f"forearm{k}"] = (f"elbow{k}", f"pin{k}")
    bars["platform"] = ("pin1", "pin2", "pin3")
    return build_pinned_linkage(gallery_name, points, bars, tools={"tool": ("platform", "middle", angle)})
