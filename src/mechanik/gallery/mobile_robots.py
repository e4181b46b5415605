"""Legged and wheeled robots with a floating base: humanoid, biped, six-legged walker and rocker-bogie rover."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.construction import (
    BLUE,
    DARK,
    GREY,
    ORANGE,
    RED,
    WHITE,
    add_rod,
    add_shapes,
    block,
    capsule,
    hub,
    set_home,
    sphere,
)
from mechanik.model import Builder, Inertial, Link, Mechanism
from mechanik.spatial import Pose, make_pose, rotation
from mechanik.validation import check_positive_numbers

Numbers = tuple[float, ...]

# lengths as ratios to the body height, most of them from Drillis and Contini (1966)
HIPS, SHOULDERS, NECK, EYES = 0.530, 0.818, 0.850, 0.936
"""Heights above the ground, as ratios to the body height."""
WAIST = 0.075
"""Height above the hips, as a ratio to the body height."""
CHEST = SHOULDERS - HIPS - WAIST
"""Distance from the waist to the shoulders, as a ratio to the body height."""
HIP_OFFSET, SHOULDER_OFFSET = 0.052, 0.110
"""Lateral distances of hip and shoulder from the middle, as ratios to the body height."""
THIGH, SHANK, ANKLE = 0.245, 0.246, 0.039
"""Lengths of thigh and shank, and height of the ankle above the sole, as ratios to the body height."""
UPPER_ARM, FOREARM, HAND = 0.186, 0.146, 0.108
"""Lengths as ratios to the body height."""
HEEL, TOES = -0.035, 0.117
"""Distances forward from the ankle, as ratios to the body height."""

IDENTITY_WXYZ = (1.0, 0.0, 0.0, 0.0)
PITCH_ROLL_YAW_WXYZ = (0.5, -0.5, -0.5, -0.5)
"""Orientation of the joint axes in the body (wxyz): EZ is pitch, about y of the body; EY is roll, about x; EX is yaw,
about z.

Euler angles are singular if the middle angle is 90 degrees. With roll as the middle angle of a hip, this means a leg
that is spread sideways by 90 degrees, which the limits exclude. With pitch as the middle angle, it would mean a sitting
person. A shoulder is singular if the arm is raised sideways by 90 degrees.
"""

TRUNK_JOINTS = (
    # joint, parent link, child link, dofs, position in the parent (ratios to the body height), axes (wxyz),
    # lower and upper limits (degrees), home (rad)
    (
        "waist",
        "pelvis",
        "chest",
        "EX EY EZ",
        (0.0, 0.0, WAIST),
        IDENTITY_WXYZ,
        (-30, -20, -45),
        (30, 60, 45),
        (0, 0, 0),
    ),
    ("neck", "chest", "head", "EY EZ", (0.0, 0.0, NECK - HIPS - WAIST), IDENTITY_WXYZ, (-40, -80), (50, 80), (0, 0)),
    ("gaze", "head", "eyes", "", (0.055, 0.0, EYES - NECK), IDENTITY_WXYZ, (), (), ()),
)
"""Joints of the trunk."""
LEFT_JOINTS = (
    ("shoulder", "chest", "upper_arm", "EX EY EZ", (0.0, SHOULDER_OFFSET, CHEST), PITCH_ROLL_YAW_WXYZ,
     (-90, -20, -180), (90, 170, 60), (0, 0.15, 0.1)),
    ("elbow", "upper_arm", "forearm", "EY", (0.0, 0.0, -UPPER_ARM), IDENTITY_WXYZ, (-145,), (0,), (-0.5,)),
    ("wrist", "forearm", "hand", "EX EY EZ", (0.0, 0.0, -FOREARM), IDENTITY_WXYZ,
     (-25, -70, -85), (25, 70, 85), (0, 0, 0)),
    ("hip", "pelvis", "thigh", "EX EY EZ", (0.0, HIP_OFFSET, 0.0), PITCH_ROLL_YAW_WXYZ,
     (-45, -25, -120), (45, 45, 30), (0, 0, -0.25)),
    ("knee", "thigh", "shank", "EY", (0.0, 0.0, -THIGH), IDENTITY_WXYZ, (0,), (150,), (0.5,)),
    ("ankle", "shank", "foot", "EX EY", (0.0, 0.0, -SHANK), IDENTITY_WXYZ, (-25, -35), (25, 50), (0, -0.25)),
)  # fmt: skip
"""Joints of the left side, with the columns of `TRUNK_JOINTS`; the right side is the mirror image of the left."""

BODIES = {
    # mass as a ratio to the body mass (de Leva 1996, male); lower end, upper end (along z), depth (x) and width (y) as
    # ratios to the body height
    "pelvis": (0.1117, -0.02, WAIST, 0.11, 0.17),
    "chest": (0.3229, 0.0, CHEST + 0.03, 0.12, 0.20),
    "head": (0.0694, -0.01, 1.0 - NECK, 0.11, 0.09),
    "upper_arm": (0.0271, -UPPER_ARM, 0.0, 0.05, 0.05),
    "forearm": (0.0162, -FOREARM, 0.0, 0.04, 0.04),
    "hand": (0.0061, -HAND, 0.0, 0.025, 0.05),
    "thigh": (0.1416, -THIGH, 0.0, 0.08, 0.08),
    "shank": (0.0433, -SHANK, 0.0, 0.055, 0.055),
    "foot": (0.0137, -ANKLE, 0.0, TOES - HEEL, 0.055),
}
"""Mass and size of each link that has a mass, as ratios."""
LIMB_MATERIALS = {"upper_arm": ORANGE, "forearm": GREY, "thigh": ORANGE, "shank": GREY}
"""Materials of arms and legs, each of which is drawn as one capsule."""


def humanoid(height: float = 1.7, mass: float = 70.0) -> Mechanism:
    """Make a humanoid that stands on the ground with slightly bent knees; x is forward, y is left, z is up.

    37 dofs: base 6, waist 3, neck 2; each shoulder 3, elbow 1, wrist 3, hip 3, knee 1, ankle 2. The links are `pelvis`,
    `chest`, `head`, `eyes` (x is the gaze direction), and on the left side `left_upper_arm`, `left_forearm`,
    `left_hand`, `left_thigh`, `left_shank`, `left_foot`. The links of the right side begin with `right_`. The frame of
    a link is at its joint to the parent link. If all joint values are zero, no link is rotated, and arms and
    legs point straight down. In hips and shoulders EX is yaw, EY roll and EZ pitch. With both feet and both hands
    fixed, 37 - 24 = 13 dofs remain.

    Args:
        height: height of the body; m.
        mass: mass of the body; kg.

    Returns:
        The humanoid, with masses and inertias.

    Raises:
        StructureError: height or mass is not positive and finite.

    Example:
        >>> body = mk.gallery.humanoid()
        >>> body.nq, body.nv
        (38, 37)
    """
    check_positive_numbers("humanoid", height=height)
    if not isinstance(mass, int | float) or not (math.isfinite(mass) and mass > 0):
        raise StructureError(f"humanoid: mass must be positive and finite (kg), not {mass!r}")
    body = Builder("humanoid")
    body.free("base", "world", "pelvis")
    for row in TRUNK_JOINTS:
        _add_joint(body, height, "", 1.0, *row)
    for prefix, sign in (("left_", 1.0), ("right_", -1.0)):
        for row in LEFT_JOINTS:
            _add_joint(body, height, prefix, sign, *row)
    robot = body.build()
    for name, link in robot.links.items():
        _add_shapes_and_inertia(link, name.removeprefix("left_").removeprefix("right_"), height, mass)
    base_height = ANKLE * height - float(robot.pose("left_foot")[2, 3])
    robot.joint("base").set_value("Z", base_height)
    return set_home(robot)


def _add_joint(
    body: Builder, height: float, prefix: str, sign: float, name: str, parent_name: str, child_name: str, dofs: str,
    position_ratios: Numbers, axes: Numbers, lower: Numbers, upper: Numbers, home: Numbers,
) -> None:  # fmt: skip
    """Add a joint of the trunk or of the left side (sign 1), or the mirror image of a joint of the left side (sign -1).

    In the mirror image the rotations about x and z of the body have the opposite sign, and y is mirrored.

    Args:
        body: the builder.
        height: height of the body; m.
        prefix: prefix of the names of joint and links.
        sign: 1 or -1.
        name, parent_name, child_name, dofs, position_ratios, axes, lower, upper, home: as in `TRUNK_JOINTS`.
    """
    parent = parent_name if parent_name in ("pelvis", "chest", "head") else prefix + parent_name
    position = (height * position_ratios[0], height * sign * position_ratios[1], height * position_ratios[2])
    joint = body.joint(prefix + name, parent, prefix + child_name, dofs.split(), at=position)
    joint.axes_wxyz = axes
    pitch_dof = "EY" if axes == IDENTITY_WXYZ else "EZ"
    dof_signs = [1.0 if dof.name == pitch_dof else sign for dof in joint.dof]
    limits = [
        sorted((dof_sign * low, dof_sign * high)) for dof_sign, low, high in zip(dof_signs, lower, upper, strict=True)
    ]
    joint.set_limits([math.radians(low) for low, _ in limits], [math.radians(high) for _, high in limits])
    joint.set_values([dof_sign * value for dof_sign, value in zip(dof_signs, home, strict=True)])


def _add_shapes_and_inertia(link: Link, body_part: str, height: float, mass: float) -> None:
    """Add shapes, and the inertia of a box with uniform density; `height` (m) and `mass` (kg) are of the whole body."""
    match body_part:
        case "pelvis":
            add_shapes(link, capsule((0, -HIP_OFFSET * height, 0), (0, HIP_OFFSET * height, 0), 0.045 * height, DARK))
            add_shapes(link, capsule((0, 0, 0), (0, 0, WAIST * height), 0.05 * height, DARK))
        case "chest":
            add_shapes(link, capsule((0, 0, 0.02 * height), (0, 0, (CHEST - 0.04) * height), 0.07 * height, BLUE))
            add_shapes(
                link,
                capsule(
                    (0, -SHOULDER_OFFSET * height, CHEST * height),
                    (0, SHOULDER_OFFSET * height, CHEST * height),
                    0.03 * height,
                    BLUE,
                ),
            )
        case "head":
            add_shapes(
                link,
                capsule((0, 0, 0), (0, 0, 0.05 * height), 0.022 * height, GREY),
                sphere((0, 0, 0.085 * height), 0.065 * height, WHITE),
            )
        case "eyes":
            add_shapes(link, *(sphere((0, y * height, 0), 0.012 * height, DARK) for y in (-0.022, 0.022)))
        case "hand":
            add_shapes(link, block((0, 0, -HAND / 2 * height), (0.025 * height, 0.05 * height, HAND * height), DARK))
        case "foot":
            size = ((TOES - HEEL) * height, 0.055 * height, ANKLE * height)
            add_shapes(link, block(((HEEL + TOES) / 2 * height, 0, -ANKLE / 2 * height), size, DARK))
        case _ if body_part in LIMB_MATERIALS:
            _, bottom, _, depth, _ = BODIES[body_part]
            add_shapes(
                link, capsule((0, 0, 0), (0, 0, bottom * height), 0.53 * depth * height, LIMB_MATERIALS[body_part])
            )
        case _:
            pass
    if body_part in BODIES:
        mass_ratio, bottom, top, depth, width = BODIES[body_part]
        link_mass, x, y, z = mass_ratio * mass, depth * height, width * height, (top - bottom) * height
        inertia = (
            link_mass / 12 * (y * y + z * z),
            0.0,
            0.0,
            link_mass / 12 * (x * x + z * z),
            0.0,
            link_mass / 12 * (x * x + y * y),
        )
        forward_offset = (HEEL + TOES) / 2 * height if body_part == "foot" else 0.0
        link.inertial = Inertial(link_mass, Pose((forward_offset, 0.0, (bottom + top) / 2 * height)), inertia)


HOME_BEND = 0.45
"""Bend of the legs at home, rad: hips and ankles are at minus this angle, knees at twice this angle, so thigh and shank
are inclined equally in opposite directions, and the sole is level."""
PITCH_AXIS, YAW_AXIS = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
"""Axes of the drawn joint housings."""


def biped(
    thigh: float = 0.40, shank: float = 0.40, hips: float = 0.20, crank: float = 0.06, width: float = 0.10
) -> Mechanism:
    """Make a floating pelvis on two legs with crank-driven ankles; x is forward, y left, z up.

    At home the soles are on the ground. 18 dofs: pelvis 6, and six in each leg: hip yaw, roll and pitch, knee pitch,
    ankle pitch and roll. The ankle joint is passive. Two cranks on the shank rotate about y, and each moves the heel
    through a rod, with a universal joint at the crank and a spherical joint at the foot. Equal crank angles pitch the
    foot, opposite angles roll it. If the foot only pitches, crank, rod, heel and shank of each side form a
    parallelogram, and the crank angles are equal to the pitch of the ankle.

    Args:
        thigh: distance from hip to knee; m.
        shank: distance from knee to ankle; m.
        hips: distance between the hip joints; m.
        crank: length of a crank, and distance of the rod ends behind the ankle; m.
        width: distance between the two rods of a foot; m.

    Returns:
        The robot, with the links `left_sole` and `right_sole`.

    Raises:
        StructureError: a length is invalid, or the cranks are too long for the shanks.

    Example:
        >>> mk.mobility(mk.gallery.biped()).dof
        18
    """
    check_positive_numbers("biped", thigh=thigh, shank=shank, hips=hips, crank=crank, width=width)
    if not 2 * crank < 0.7 * shank:
        raise StructureError(
            f"biped: cranks of {crank:g} m do not fit on shanks of {shank:g} m; crank must be less than 0.35 * shank"
        )
    sole_height = 0.08
    robot = Builder("biped")
    height = sole_height + (thigh + shank) * math.cos(HOME_BEND)
    # if thigh and shank have different lengths, the pelvis is in front of the feet or behind them
    robot.free("base", "world", "pelvis", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    robot.link("pelvis", visuals=[block((0.0, 0.0, 0.06), (0.16, hips, 0.10), WHITE)])
    for side, sign in (("left", 1.0), ("right", -1.0)):
        _add_leg(robot, side, sign, thigh, shank, hips, crank, width, sole_height)
    return set_home(robot.build())


def _add_leg(
    robot: Builder, side: str, sign: float, thigh: float, shank: float, hips: float, crank: float, width: float,
    sole_height: float,
) -> None:  # fmt: skip
    radius = 0.03
    min_roll, max_roll = (-0.3, 0.5) if sign > 0 else (-0.5, 0.3)
    rows = (
        # joint, parent link, child link, position in the parent (m), axis, limits (rad), home (rad)
        ("hip_yaw", "pelvis", f"{side}_hip", (0.0, sign * hips / 2, 0.0), "z", (-0.8, 0.8), 0.0),
        ("hip_roll", f"{side}_hip", f"{side}_hip_fork", (0.0, 0.0, 0.0), "x", (min_roll, max_roll), 0.0),
        ("hip_pitch", f"{side}_hip_fork", f"{side}_thigh", (0.0, 0.0, 0.0), "y", (-1.9, 0.8), -HOME_BEND),
        ("knee", f"{side}_thigh", f"{side}_shank", (0.0, 0.0, -thigh), "y", (0.0, 2.3), 2 * HOME_BEND),
    )
    for joint, parent, child, at, axis, limits, value in rows:
        robot.revolute(f"{side}_{joint}", parent, child, at=at, axis=axis, limits=limits, value=value)
    shank_link, foot_link = f"{side}_shank", f"{side}_foot"
    robot.universal(
        f"{side}_ankle",
        shank_link,
        foot_link,
        at=(0.0, 0.0, -shank),
        limits=((-0.4, -0.9), (0.4, 0.6)),
        value=(0.0, -HOME_BEND),
    )
    crank_z = -0.3 * shank
    for name, y in (("inner", -sign * width / 2), ("outer", sign * width / 2)):
        crank_link = f"{side}_{name}_crank"
        # at home the foot only pitches, so the crank angle is the pitch of the ankle
        robot.revolute(
            f"{crank_link}_joint",
            shank_link,
            crank_link,
            at=(0.0, y, crank_z),
            axis="y",
            limits=(-1.5, 1.5),
            value=-HOME_BEND,
        )
        robot.link(
            crank_link,
            visuals=[
                hub((0, 0, 0), PITCH_AXIS, 0.5 * crank, 0.4 * radius, DARK),
                capsule((0, 0, 0), (-crank, 0, 0), 0.3 * radius, ORANGE),
            ],
        )
        add_rod(
            robot, f"{side}_{name}_rod", crank_link, (-crank, 0.0, 0.0), foot_link, (-crank, y, 0.0), 0.2 * radius, GREY
        )
    robot.link(f"{side}_hip", visuals=[hub((0.0, 0.0, 0.0), YAW_AXIS, 1.4 * radius, 2 * radius, DARK)])
    robot.link(f"{side}_hip_fork", visuals=[hub((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1.2 * radius, 3 * radius, DARK)])
    robot.link(
        f"{side}_thigh",
        visuals=[
            hub((0, 0, 0), PITCH_AXIS, 1.3 * radius, 3 * radius, DARK),
            capsule((0, 0, 0), (0, 0, -thigh), radius, BLUE),
        ],
    )
    axle = hub((0.0, 0.0, crank_z), PITCH_AXIS, 0.4 * radius, width, DARK)
    robot.link(
        shank_link,
        visuals=[
            hub((0, 0, 0), PITCH_AXIS, 1.3 * radius, 3 * radius, DARK),
            capsule((0, 0, 0), (0, 0, -shank), 0.7 * radius, BLUE),
            axle,
        ],
    )
    heel = capsule((-crank, -width / 2, 0.0), (-crank, width / 2, 0.0), 0.4 * radius, DARK)
    plate = block((0.03, 0.0, -sole_height + 0.01), (0.22, width, 0.02), GREY)
    foot_bars = [
        capsule((0, 0, 0), (0, 0, -sole_height + 0.02), 0.6 * radius, GREY),
        capsule((0, 0, 0), (-crank, 0, 0), 0.4 * radius, GREY),
    ]
    robot.link(foot_link, visuals=[plate, heel, *foot_bars])
    robot.fixed(f"{side}_sole_joint", foot_link, f"{side}_sole", at=(0.0, 0.0, -sole_height))


HOME_HIP_PITCH, HOME_KNEE_PITCH = -0.55, 2.0
"""Pitch at home, rad: the thigh points up and outwards, the shank down, and the ankle compensates both angles."""
SOLE_HEIGHT_RATIO = 0.08
"""Distance from the sole to the roll axis of the ankle, as a ratio to the shank length."""
RADIAL_AXIS, LEG_PITCH_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
"""Axes in the frame of a leg: x, which points away from the body, and y."""


def walker(radius: float = 1.1, hip: float = 0.25, thigh: float = 0.9, shank: float = 1.0) -> Mechanism:
    """Make a six-legged walker like JPL's ATHLETE: a floating hexagonal body and six legs of six joints, 42 dofs.

    The joints of a leg are hip yaw and pitch, knee pitch and roll, ankle pitch and roll. Six joints determine the full
    pose of a foot, so the body can still move in all six dofs if all six feet are fixed. Legs are numbered
    counterclockwise, seen from above; leg 1 points along x. The frame of a foot is at its sole. At home x of this frame
    points away from the body, and all soles are on the ground, z = 0.

    Args:
        radius: distance from the centre of the body to the yaw axis of a hip; m.
        hip: distance from the yaw axis to the pitch axis of a hip; m.
        thigh: distance from the pitch axis of the hip to that of the knee; m.
        shank: distance from the pitch axis of the knee to that of the ankle; m.

    Returns:
        The robot, with the links `foot1` to `foot6`.

    Raises:
        StructureError: a length is invalid, or the shanks are too short to lift the body.

    Example:
        >>> robot = mk.gallery.walker()
        >>> robot.nq, robot.nv
        (43, 42)
    """
    check_positive_numbers("walker", radius=radius, hip=hip, thigh=thigh, shank=shank)
    sole_height = SOLE_HEIGHT_RATIO * shank
    height = sole_height + thigh * math.sin(HOME_HIP_PITCH) + shank * math.sin(HOME_HIP_PITCH + HOME_KNEE_PITCH)
    if height <= sole_height:
        raise StructureError(
            f"walker cannot stand: shanks of {shank:g} m are too short for thighs of {thigh:g} m; use longer shanks"
        )
    robot = Builder("walker")
    robot.free("base", "world", "body", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    tube_radius = 0.06 * thigh
    for k in range(6):
        R_body_leg = rotation.about_z(math.radians(60.0 * k))
        leg_number = k + 1
        rows = (
            # joint, parent link, child link, pose or position in the parent (m), axis, limit (rad), home (rad)
            ("hip_yaw", "body", "hip", make_pose(R_body_leg, R_body_leg @ (radius, 0.0, 0.0)), "z", 1.2, 0.0),
            ("hip_pitch", "hip", "thigh", (hip, 0.0, 0.0), "y", 1.6, HOME_HIP_PITCH),
            ("knee_pitch", "thigh", "knee", (thigh, 0.0, 0.0), "y", 2.7, HOME_KNEE_PITCH),
            ("knee_roll", "knee", "shank", (0.0, 0.0, 0.0), "x", 3.0, 0.0),
            ("ankle_pitch", "shank", "ankle", (shank, 0.0, 0.0), "y", 2.7, -HOME_HIP_PITCH - HOME_KNEE_PITCH),
            ("ankle_roll", "ankle", "tarsus", (0.0, 0.0, 0.0), "x", 1.6, 0.0),
        )
        for joint, parent_name, child_name, at, axis, max_angle, value in rows:
            parent = parent_name if parent_name == "body" else f"{parent_name}{leg_number}"
            robot.revolute(
                f"{joint}{leg_number}",
                parent,
                f"{child_name}{leg_number}",
                at=at,
                axis=axis,
                limits=(-max_angle, max_angle),
                value=value,
            )
        robot.fixed(f"sole{leg_number}", f"tarsus{leg_number}", f"foot{leg_number}", at=(0.0, 0.0, -sole_height))
        robot.link(
            f"hip{leg_number}",
            visuals=[
                hub((0, 0, 0), (0, 0, 1), 1.8 * tube_radius, 3 * tube_radius, DARK),
                capsule((0, 0, 0), (hip, 0, 0), tube_radius, DARK),
            ],
        )
        robot.link(
            f"thigh{leg_number}",
            visuals=[
                hub((0, 0, 0), LEG_PITCH_AXIS, 1.3 * tube_radius, 3 * tube_radius, DARK),
                capsule((0, 0, 0), (thigh, 0, 0), tube_radius, ORANGE),
            ],
        )
        robot.link(
            f"knee{leg_number}", visuals=[hub((0, 0, 0), LEG_PITCH_AXIS, 1.3 * tube_radius, 3 * tube_radius, DARK)]
        )
        robot.link(f"shank{leg_number}", visuals=[capsule((0, 0, 0), (shank, 0, 0), 0.8 * tube_radius, BLUE)])
        robot.link(f"ankle{leg_number}", visuals=[hub((0, 0, 0), LEG_PITCH_AXIS, tube_radius, 2.4 * tube_radius, DARK)])
        tarsus_shapes = [
            capsule((0, 0, 0), (0, 0, -0.6 * sole_height), 0.7 * tube_radius, GREY),
            hub((0, 0, -0.8 * sole_height), (0, 0, 1), 2 * tube_radius, 0.4 * sole_height, DARK),
        ]
        robot.link(f"tarsus{leg_number}", visuals=tarsus_shapes)
    corners = [radius * (rotation.about_z(math.radians(60.0 * k)) @ np.array(RADIAL_AXIS)) for k in range(6)]
    frame_tubes = [capsule(corners[k - 1], corners[k], tube_radius, GREY) for k in range(6)]
    deck = block((0.0, 0.0, tube_radius), (radius, radius, tube_radius), GREY)
    robot.link("body", visuals=[*frame_tubes, deck])
    return set_home(robot.build())


AXLE_AXIS = (0.0, 1.0, 0.0)
"""Axis of wheels, rockers and bogies."""
WHEELS = ("front_left", "middle_left", "rear_left", "front_right", "middle_right", "rear_right")
"""Links of the wheels; the frame of each link is at the centre of the wheel."""


def rover(wheelbase: float = 2.2, track: float = 2.2, wheel: float = 0.25, clearance: float = 0.6) -> Mechanism:
    """Make a rocker-bogie rover (D. B. Bickler 1989), about as large as the rovers on Mars; x is forward, z is up.

    On each side a rocker rotates on the body. The rocker has the front wheel at its front end, and at its rear end a
    bogie with the middle and the rear wheel. A bar across the body rotates about a vertical axis through its centre.
    Rods connect the ends of the bar to the tops of both rockers: when one rocker goes up, the other goes down, and the
    pitch of the body is the mean of the pitch of both rockers (a differential). Because the differential is a linkage
    of rods, the two rocker angles are opposite only up to terms of fourth order: at 0.3 rad their magnitudes differ by
    0.001 rad.

    15 dofs: body 6, differential 1, bogies 2, wheels 6. At given x, y and heading, six dofs remain besides the wheel
    rotations (height, roll, pitch, differential, bogies), one for each wheel contact with the terrain.

    Args:
        wheelbase: distance from the front axles to the rear axles; m.
        track: distance from the centres of the left wheels to those of the right wheels; m.
        wheel: wheel radius; m.
        clearance: height of the rockers' pivots above the axles; m.

    Returns:
        The robot; `mechanik.gallery.mobile_robots.WHEELS` lists the links of the wheels.

    Raises:
        StructureError: a length is invalid, or the wheels are too large for the wheelbase.

    Example:
        >>> mk.mobility(mk.gallery.rover()).dof
        15
    """
    check_positive_numbers("rover", wheelbase=wheelbase, track=track, wheel=wheel, clearance=clearance)
    if not 2 * wheel < wheelbase / 2:
        raise StructureError(
            f"rover: wheels of radius {wheel:g} m do not fit into a wheelbase of {wheelbase:g} m; "
            "the radius must be less than a quarter of the wheelbase"
        )
    half_wheelbase, rocker_y, rocker_arm = wheelbase / 2, 0.36 * track, 0.4 * clearance
    bogie_height = 0.3 * clearance
    # rocker pivots are slightly in front of the middle; bogie pivots are lower, halfway between middle and rear wheel
    pivot_x = 0.1 * half_wheelbase
    radius = 0.05 * clearance
    robot = Builder("rover")
    robot.free("base", "world", "body", value=(0.0, 0.0, wheel + clearance, 0.0, 0.0, 0.0))
    # the body frame is at the height of the rocker pivots, the bar at the height of the rocker tops, so the rods are
    # along x at home
    robot.revolute("bar_joint", "body", "bar", at=(pivot_x - half_wheelbase / 2, 0.0, rocker_arm), limits=(-0.5, 0.5))
    for side, sign, colour in (("left", 1.0, RED), ("right", -1.0, BLUE)):
        rocker, bogie = f"{side}_rocker", f"{side}_bogie"
        robot.revolute(
            f"{rocker}_joint", "body", rocker, at=(pivot_x, sign * rocker_y, 0.0), axis="y", limits=(-0.7, 0.7)
        )
        p_bogie = (-half_wheelbase / 2 - pivot_x, 0.0, bogie_height - clearance)
        robot.revolute(f"{bogie}_joint", rocker, bogie, at=p_bogie, axis="y", limits=(-0.9, 0.9))
        wheel_y = sign * (track / 2 - rocker_y)
        wheel_positions = {
            "front": (rocker, (half_wheelbase - pivot_x, wheel_y, -clearance)),
            "middle": (bogie, (half_wheelbase / 2, wheel_y, -bogie_height)),
            "rear": (bogie, (-half_wheelbase / 2, wheel_y, -bogie_height)),
        }
        for row, (link, at) in wheel_positions.items():
            robot.revolute(f"{row}_{side}_axle", link, f"{row}_{side}", at=at, axis="y")
            robot.link(f"{row}_{side}", visuals=[
                hub((0.0, 0.0, 0.0), AXLE_AXIS, wheel, 0.8 * wheel, DARK),
                hub((0.0, 0.0, 0.0), AXLE_AXIS, 0.35 * wheel, 0.86 * wheel, GREY),
            ])  # fmt: skip
        knee = (half_wheelbase - pivot_x, 0.0, -0.55 * clearance)
        rocker_top = (0.0, 0.0, rocker_arm)
        front_wheel = wheel_positions["front"][1]
        robot.link(
            rocker,
            visuals=[
                hub((0.0, 0.0, 0.0), AXLE_AXIS, 2.2 * radius, 4 * radius, DARK),
                capsule((0.0, 0.0, 0.0), rocker_top, radius, colour),
                capsule((0.0, 0.0, 0.0), p_bogie, radius, colour),
                capsule((0.0, 0.0, 0.0), knee, radius, colour),
                capsule(knee, (front_wheel[0], 0.0, front_wheel[2]), radius, colour),
                capsule((front_wheel[0], 0.0, front_wheel[2]), front_wheel, radius, colour),
            ],
        )
        bogie_arms = [
            capsule((0.0, 0.0, 0.0), (x, 0.0, -bogie_height), radius, ORANGE)
            for x in (-half_wheelbase / 2, half_wheelbase / 2)
        ]
        axles = [
            capsule((x, 0.0, -bogie_height), (x, wheel_y, -bogie_height), radius, ORANGE)
            for x in (-half_wheelbase / 2, half_wheelbase / 2)
        ]
        robot.link(
            bogie, visuals=[hub((0.0, 0.0, 0.0), AXLE_AXIS, 1.8 * radius, 4 * radius, DARK), *bogie_arms, *axles]
        )
        add_rod(robot, f"{side}_rod", rocker, rocker_top, "bar", (0.0, sign * rocker_y, 0.0), 0.6 * radius, GREY)
    robot.link(
        "bar",
        visuals=[
            capsule((0.0, -rocker_y, 0.0), (0.0, rocker_y, 0.0), radius, WHITE),
            hub((0.0, 0.0, 0.0), (0, 0, 1), 2 * radius, 4 * radius, DARK),
        ],
    )
    body_size = (1.1 * half_wheelbase, 1.5 * rocker_y, 0.45 * rocker_arm + 2 * radius)
    axle = capsule((pivot_x, -rocker_y, 0.0), (pivot_x, rocker_y, 0.0), radius, DARK)
    robot.link("body", visuals=[block((0.0, 0.0, rocker_arm - 2 * radius - body_size[2] / 2), body_size, WHITE), axle])
    return set_home(robot.build())
