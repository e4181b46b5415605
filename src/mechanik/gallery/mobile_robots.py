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
from mechanik.validation import check_positive_lengths

Numbers = tuple[float, ...]

# body lengths as ratios of the height, after Drillis and Contini (1966)
HIPS, SHOULDERS, NECK, EYES = 0.530, 0.818, 0.850, 0.936
"""Heights above the ground, as ratios of the body height."""
WAIST = 0.075
"""Height above the hips, as a ratio of the body height."""
CHEST = SHOULDERS - HIPS - WAIST
"""From the waist to the shoulders, as a ratio of the body height."""
HIP_ASIDE, SHOULDER_ASIDE = 0.052, 0.110
"""Distances of hip and shoulder from the middle, as ratios of the body height."""
THIGH, SHANK, ANKLE = 0.245, 0.246, 0.039
UPPER_ARM, FOREARM, HAND = 0.186, 0.146, 0.108
HEEL, TOES = -0.035, 0.117
"""Distances forward from the ankle, as ratios of the body height."""

IDENTITY_WXYZ = (1.0, 0.0, 0.0, 0.0)
PITCH_ROLL_TWIST = (0.5, -0.5, -0.5, -0.5)
"""Rotates the joint axes (wxyz) so that z, y, x of the motion are y (pitch), x (roll) and z (twist) of the body.

Euler angles are singular where the middle angle is 90 degrees. For a hip this is a leg spread sideways, which its
limits exclude; with pitch in the middle it would be a person who sits.
"""

TRUNK_JOINTS = (
    # joint, parent link, child link, dofs, position in the parent, axes, lower and upper limits (degrees), home (rad)
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
    ("shoulder", "chest", "upper_arm", "EX EY EZ", (0.0, SHOULDER_ASIDE, CHEST), PITCH_ROLL_TWIST,
     (-90, -20, -180), (90, 170, 60), (0, 0.15, 0.1)),
    ("elbow", "upper_arm", "forearm", "EY", (0.0, 0.0, -UPPER_ARM), IDENTITY_WXYZ, (-145,), (0,), (-0.5,)),
    ("wrist", "forearm", "hand", "EX EY EZ", (0.0, 0.0, -FOREARM), IDENTITY_WXYZ, (-25, -70, -85), (25, 70, 85), (0,
        0, 0)),
    ("hip", "pelvis", "thigh", "EX EY EZ", (0.0, HIP_ASIDE, 0.0), PITCH_ROLL_TWIST,
     (-45, -25, -120), (45, 45, 30), (0, 0, -0.25)),
    ("knee", "thigh", "shank", "EY", (0.0, 0.0, -THIGH), IDENTITY_WXYZ, (0,), (150,), (0.5,)),
    ("ankle", "shank", "foot", "EX EY", (0.0, 0.0, -SHANK), IDENTITY_WXYZ, (-25, -35), (25, 50), (0, -0.25)),
)  # fmt: skip
"""Joints of the left side, with the same columns; the right side is its mirror image."""

BODIES = {
    # ratio of the body mass after de Leva (1996), male; ends along z, depth and width as ratios of the height
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
"""Mass and size of each link."""
LIMBS = {"upper_arm": ORANGE, "forearm": GREY, "thigh": ORANGE, "shank": GREY}
"""Colours of the links that are drawn as capsules."""


def humanoid(height: float = 1.7, mass: float = 70.0) -> Mechanism:
    """Make a humanoid that stands with slightly bent knees, soles on the ground; x is forward, y left, z up.

    37 dofs: base 6, waist 3, neck 2; each shoulder 3, elbow 1, wrist 3, hip 3, knee 1, ankle 2. The links are `pelvis`,
    `chest`, `head`, `eyes` (x is the gaze direction), and on each side `left_upper_arm`, `left_forearm`, `left_hand`,
    `left_thigh`, `left_shank`, `left_foot`. The frame of a link is at the joint that moves it. At zero no link is
    rotated: arms and legs point straight down. In hips and shoulders EX is twist, EY roll and EZ pitch. With both feet
    and both hands fixed, 37 - 24 = 13 dofs remain.

    Args:
        height: of the body; m.
        mass: of the body; kg.

    Returns:
        The humanoid, with masses and inertias.

    Raises:
        StructureError: height or mass is not positive and finite.

    Example:
        >>> body = mk.gallery.humanoid()
        >>> body.nq, body.nv
        (38, 37)
    """
    check_positive_lengths("humanoid", height=height)
    if not isinstance(mass, int | float) or not (math.isfinite(mass) and mass > 0):
        raise StructureError(f"humanoid: mass must be positive and finite (kg), not {mass!r}")
    body = Builder("humanoid")
    body.free("base", "world", "pelvis")
    for row in TRUNK_JOINTS:
        _join(body, height, "", 1.0, *row)
    for prefix, side in (("left_", 1.0), ("right_", -1.0)):
        for row in LEFT_JOINTS:
            _join(body, height, prefix, side, *row)
    robot = body.build()
    for name, link in robot.links.items():
        _dress(link, name.removeprefix("left_").removeprefix("right_"), height, mass)
    drop = ANKLE * height - float(robot.pose("left_foot")[2, 3])
    robot.joint("base").set_value("Z", drop)
    return set_home(robot)


def _join(
    body: Builder, height: float, prefix: str, side: float, name: str, above: str, below: str, dofs: str,
    at: Numbers, axes: Numbers, lower: Numbers, upper: Numbers, home: Numbers,
) -> None:  # fmt: skip
    """Add a joint of the left side, or its mirror image, in which rotations about x and z change their sign."""
    parent = above if above in ("pelvis", "chest", "head") else prefix + above
    position = (height * at[0], height * side * at[1], height * at[2])
    joint = body.joint(prefix + name, parent, prefix + below, dofs.split(), at=position)
    joint.axes_wxyz = axes
    pitch = "EY" if axes == IDENTITY_WXYZ else "EZ"
    signs = [1.0 if dof.name == pitch else side for dof in joint.dof]
    ends = [sorted((sign * low, sign * high)) for sign, low, high in zip(signs, lower, upper, strict=True)]
    joint.set_limits([math.radians(low) for low, _ in ends], [math.radians(high) for _, high in ends])
    joint.set_values([sign * value for sign, value in zip(signs, home, strict=True)])


def _dress(link: Link, kind: str, h: float, mass: float) -> None:
    """Add shapes, and an inertia of a box with uniform density."""
    match kind:
        case "pelvis":
            add_shapes(link, capsule((0, -HIP_ASIDE * h, 0), (0, HIP_ASIDE * h, 0), 0.045 * h, DARK))
            add_shapes(link, capsule((0, 0, 0), (0, 0, WAIST * h), 0.05 * h, DARK))
        case "chest":
            add_shapes(link, capsule((0, 0, 0.02 * h), (0, 0, (CHEST - 0.04) * h), 0.07 * h, BLUE))
            add_shapes(
                link, capsule((0, -SHOULDER_ASIDE * h, CHEST * h), (0, SHOULDER_ASIDE * h, CHEST * h), 0.03 * h, BLUE)
            )
        case "head":
            add_shapes(
                link, capsule((0, 0, 0), (0, 0, 0.05 * h), 0.022 * h, GREY), sphere((0, 0, 0.085 * h), 0.065 * h, WHITE)
            )
        case "eyes":
            add_shapes(link, *(sphere((0, y * h, 0), 0.012 * h, DARK) for y in (-0.022, 0.022)))
        case "hand":
            add_shapes(link, block((0, 0, -HAND / 2 * h), (0.025 * h, 0.05 * h, HAND * h), DARK))
        case "foot":
            size = ((TOES - HEEL) * h, 0.055 * h, ANKLE * h)
            add_shapes(link, block(((HEEL + TOES) / 2 * h, 0, -ANKLE / 2 * h), size, DARK))
        case _ if kind in LIMBS:
            _, low, _, depth, _ = BODIES[kind]
            add_shapes(link, capsule((0, 0, 0), (0, 0, low * h), 0.53 * depth * h, LIMBS[kind]))
        case _:
            pass
    if kind in BODIES:
        share, low, high, depth, width = BODIES[kind]
        m, x, y, z = share * mass, depth * h, width * h, (high - low) * h
        inertia = (m / 12 * (y * y + z * z), 0.0, 0.0, m / 12 * (x * x + z * z), 0.0, m / 12 * (x * x + y * y))
        ahead = (HEEL + TOES) / 2 * h if kind == "foot" else 0.0
        link.inertial = Inertial(m, Pose((ahead, 0.0, (low + high) / 2 * h)), inertia)


HOME_BEND = 0.45
"""Angle of hips and ankles at home, rad; knees bend by twice this angle, so thigh and shank have the same slope."""
PITCH_AXIS, YAW_AXIS = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
"""Axes of hubs that are drawn."""


def biped(
    thigh: float = 0.40, shank: float = 0.40, hips: float = 0.20, crank: float = 0.06, width: float = 0.10
) -> Mechanism:
    """Make a floating pelvis on two legs with crank-driven ankles; x is forward, y left, z up.

    At home the soles are on the ground. 18 dofs: pelvis 6, and six in each leg: hip yaw, roll and pitch, knee pitch,
    ankle pitch and roll. The ankle joint is passive. Two cranks on the shank rotate about y, and each moves the heel
    through a rod, with a universal joint at the crank and a spherical joint at the foot. Equal crank angles pitch the
    foot, opposite ones roll it. With level cranks and a level foot, as at zero, each side is a parallelogram.

    Args:
        thigh: from hip to knee; m.
        shank: from knee to ankle; m.
        hips: distance of the hip joints; m.
        crank: length of a crank, and distance of the rod ends behind the ankle; m.
        width: distance of the two rods of a foot; m.

    Returns:
        The robot, with the links `left_sole` and `right_sole`.

    Raises:
        StructureError: a length is invalid, or the cranks are too long for the shanks.

    Example:
        >>> mk.mobility(mk.gallery.biped()).dof
        18
    """
    check_positive_lengths("biped", thigh=thigh, shank=shank, hips=hips, crank=crank, width=width)
    if not 2 * crank < 0.7 * shank:
        raise StructureError(f"biped: cranks of {crank:g} do not fit on shanks of {shank:g}")
    sole = 0.08
    robot = Builder("biped")
    height = sole + (thigh + shank) * math.cos(HOME_BEND)
    # if thigh and shank differ, the pelvis is in front of the feet or behind them
    robot.free("base", "world", "pelvis", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    robot.link("pelvis", visuals=[block((0.0, 0.0, 0.06), (0.16, hips, 0.10), WHITE)])
    for side, sign in (("left", 1.0), ("right", -1.0)):
        _leg(robot, side, sign, thigh, shank, hips, crank, width, sole)
    return set_home(robot.build())


def _leg(
    robot: Builder, side: str, sign: float, thigh: float, shank: float, hips: float, crank: float, width: float,
    sole: float,
) -> None:  # fmt: skip
    r = 0.03
    inward, outward = (-0.3, 0.5) if sign > 0 else (-0.5, 0.3)
    rows = (
        # joint, parent link, child link, position in the parent (m), axis, limits (rad), home (rad)
        ("hip_yaw", "pelvis", f"{side}_hip", (0.0, sign * hips / 2, 0.0), "z", (-0.8, 0.8), 0.0),
        ("hip_roll", f"{side}_hip", f"{side}_hip_fork", (0.0, 0.0, 0.0), "x", (inward, outward), 0.0),
        ("hip_pitch", f"{side}_hip_fork", f"{side}_thigh", (0.0, 0.0, 0.0), "y", (-1.9, 0.8), -HOME_BEND),
        ("knee", f"{side}_thigh", f"{side}_shank", (0.0, 0.0, -thigh), "y", (0.0, 2.3), 2 * HOME_BEND),
    )
    for joint, above, below, at, axis, limits, value in rows:
        robot.revolute(f"{side}_{joint}", above, below, at=at, axis=axis, limits=limits, value=value)
    shin, foot = f"{side}_shank", f"{side}_foot"
    robot.universal(
        f"{side}_ankle", shin, foot, at=(0.0, 0.0, -shank), limits=((-0.4, -0.9), (0.4, 0.6)), value=(0.0, -HOME_BEND)
    )
    motor = -0.3 * shank
    for name, aside in (("inner", -sign * width / 2), ("outer", sign * width / 2)):
        arm = f"{side}_{name}_crank"
        # for pure pitch, rod, crank, shank and heel are a parallelogram, so the crank angle is the foot's pitch
        robot.revolute(
            f"{arm}_joint", shin, arm, at=(0.0, aside, motor), axis="y", limits=(-1.5, 1.5), value=-HOME_BEND
        )
        robot.link(
            arm,
            visuals=[
                hub((0, 0, 0), PITCH_AXIS, 0.5 * crank, 0.4 * r, DARK),
                capsule((0, 0, 0), (-crank, 0, 0), 0.3 * r, ORANGE),
            ],
        )
        add_rod(robot, f"{side}_{name}_rod", arm, (-crank, 0.0, 0.0), foot, (-crank, aside, 0.0), 0.2 * r, GREY)
    robot.link(f"{side}_hip", visuals=[hub((0.0, 0.0, 0.0), YAW_AXIS, 1.4 * r, 2 * r, DARK)])
    robot.link(f"{side}_hip_fork", visuals=[hub((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1.2 * r, 3 * r, DARK)])
    robot.link(
        f"{side}_thigh",
        visuals=[hub((0, 0, 0), PITCH_AXIS, 1.3 * r, 3 * r, DARK), capsule((0, 0, 0), (0, 0, -thigh), r, BLUE)],
    )
    bar = hub((0.0, 0.0, motor), PITCH_AXIS, 0.4 * r, width, DARK)
    robot.link(
        shin,
        visuals=[
            hub((0, 0, 0), PITCH_AXIS, 1.3 * r, 3 * r, DARK),
            capsule((0, 0, 0), (0, 0, -shank), 0.7 * r, BLUE),
            bar,
        ],
    )
    heel = capsule((-crank, -width / 2, 0.0), (-crank, width / 2, 0.0), 0.4 * r, DARK)
    plate = block((0.03, 0.0, -sole + 0.01), (0.22, width, 0.02), GREY)
    stem = [capsule((0, 0, 0), (0, 0, -sole + 0.02), 0.6 * r, GREY), capsule((0, 0, 0), (-crank, 0, 0), 0.4 * r, GREY)]
    robot.link(foot, visuals=[plate, heel, *stem])
    robot.fixed(f"{side}_sole_joint", foot, f"{side}_sole", at=(0.0, 0.0, -sole))


HOME_HIP_PITCH, HOME_KNEE_PITCH = -0.55, 2.0
"""Pitch at home, rad: the thigh goes up and out, the shank down, and the ankle compensates both."""
SOLE_HEIGHT = 0.08
"""From the sole to the ankle's roll axis, as a ratio of the shank's length."""
RADIAL_AXIS, LEG_PITCH_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
"""Axes in the frame of a leg, whose x points away from the body."""


def walker(radius: float = 1.1, hip: float = 0.25, thigh: float = 0.9, shank: float = 1.0) -> Mechanism:
    """Make a six-legged walker like JPL's ATHLETE: a floating hexagonal body and six legs of six joints, 42 dofs.

    The joints of a leg are hip yaw and pitch, knee pitch and roll, ankle pitch and roll. Six joints determine the full
    pose of a foot, so with all six feet fixed the body keeps its six dofs. Legs are numbered counterclockwise from the
    leg along x. The frame of `foot1` is at its sole; at home its x points away from the body, and all soles are on the
    ground, z = 0.

    Args:
        radius: from the centre of the body to a hip's yaw axis; m.
        hip: from there to the hip's pitch axis; m.
        thigh: from the pitch axis of the hip to that of the knee; m.
        shank: from the pitch axis of the knee to that of the ankle; m.

    Returns:
        The robot, with the links `foot1` to `foot6`.

    Raises:
        StructureError: a length is invalid, or the shanks are too short to reach the ground.

    Example:
        >>> robot = mk.gallery.walker()
        >>> robot.nq, robot.nv
        (43, 42)
    """
    check_positive_lengths("walker", radius=radius, hip=hip, thigh=thigh, shank=shank)
    sole = SOLE_HEIGHT * shank
    height = sole + thigh * math.sin(HOME_HIP_PITCH) + shank * math.sin(HOME_HIP_PITCH + HOME_KNEE_PITCH)
    if height <= sole:
        raise StructureError(f"walker cannot stand: a thigh of {thigh:g} lifts a shank of {shank:g} off the ground")
    robot = Builder("walker")
    robot.free("base", "world", "body", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    r = 0.06 * thigh
    for k in range(6):
        R = rotation.about_z(math.radians(60.0 * k))
        n = k + 1
        legs = (
            # joint, parent link, child link, pose or position in the parent (m), axis, limit (rad), home (rad)
            ("hip_yaw", "body", "hip", make_pose(R, R @ (radius, 0.0, 0.0)), "z", 1.2, 0.0),
            ("hip_pitch", "hip", "thigh", (hip, 0.0, 0.0), "y", 1.6, HOME_HIP_PITCH),
            ("knee_pitch", "thigh", "knee", (thigh, 0.0, 0.0), "y", 2.7, HOME_KNEE_PITCH),
            ("knee_roll", "knee", "shank", (0.0, 0.0, 0.0), "x", 3.0, 0.0),
            ("ankle_pitch", "shank", "ankle", (shank, 0.0, 0.0), "y", 2.7, -HOME_HIP_PITCH - HOME_KNEE_PITCH),
            ("ankle_roll", "ankle", "tarsus", (0.0, 0.0, 0.0), "x", 1.6, 0.0),
        )
        for joint, above, below, at, axis, max_angle, value in legs:
            parent = above if above == "body" else f"{above}{n}"
            robot.revolute(
                f"{joint}{n}", parent, f"{below}{n}", at=at, axis=axis, limits=(-max_angle, max_angle), value=value
            )
        robot.fixed(f"sole{n}", f"tarsus{n}", f"foot{n}", at=(0.0, 0.0, -sole))
        robot.link(
            f"hip{n}",
            visuals=[hub((0, 0, 0), (0, 0, 1), 1.8 * r, 3 * r, DARK), capsule((0, 0, 0), (hip, 0, 0), r, DARK)],
        )
        robot.link(
            f"thigh{n}",
            visuals=[
                hub((0, 0, 0), LEG_PITCH_AXIS, 1.3 * r, 3 * r, DARK),
                capsule((0, 0, 0), (thigh, 0, 0), r, ORANGE),
            ],
        )
        robot.link(f"knee{n}", visuals=[hub((0, 0, 0), LEG_PITCH_AXIS, 1.3 * r, 3 * r, DARK)])
        robot.link(f"shank{n}", visuals=[capsule((0, 0, 0), (shank, 0, 0), 0.8 * r, BLUE)])
        robot.link(f"ankle{n}", visuals=[hub((0, 0, 0), LEG_PITCH_AXIS, r, 2.4 * r, DARK)])
        foot = [
            capsule((0, 0, 0), (0, 0, -0.6 * sole), 0.7 * r, GREY),
            hub((0, 0, -0.8 * sole), (0, 0, 1), 2 * r, 0.4 * sole, DARK),
        ]
        robot.link(f"tarsus{n}", visuals=foot)
    corners = [radius * (rotation.about_z(math.radians(60.0 * k)) @ np.array(RADIAL_AXIS)) for k in range(6)]
    frame = [capsule(corners[k - 1], corners[k], r, GREY) for k in range(6)]
    deck = block((0.0, 0.0, r), (radius, radius, r), GREY)
    robot.link("body", visuals=[*frame, deck])
    return set_home(robot.build())


AXLE_AXIS = (0.0, 1.0, 0.0)
"""Axis of wheels, rockers and bogies."""
WHEELS = ("front_left", "middle_left", "rear_left", "front_right", "middle_right", "rear_right")
"""Links of the wheels; the frame of each is at its centre."""


def rover(wheelbase: float = 2.2, track: float = 2.2, wheel: float = 0.25, clearance: float = 0.6) -> Mechanism:
    """Make a rocker-bogie rover (D. B. Bickler 1989), about as large as those on Mars; x is forward, z up.

    On each side a rocker rotates on the body and carries the front wheel; behind, it carries a bogie with the middle
    and the rear wheel. A bar across the body, which rotates about its vertical centre axis, is connected by rods to the
    tops of both rockers: when a rocker goes up, the other goes down, and the body's pitch is the mean of theirs (a
    differential). As it is a real linkage, the two angles are opposite only up to terms of fourth order: at 0.3 rad
    they differ by 0.001 rad.

    15 dofs: body 6, differential 1, bogies 2, wheels 6. For given x, y and heading on any terrain, the other six
    (height, roll, pitch, differential, bogies) are as many as the wheel contacts.

    Args:
        wheelbase: from the front axles to the rear axles; m.
        track: from the centres of the left wheels to those of the right wheels; m.
        wheel: wheel radius; m.
        clearance: height of the rockers' pivots above the axles; m.

    Returns:
        The robot; `WHEELS` in its module lists the links of the wheels.

    Raises:
        StructureError: a length is invalid, or the wheels are too large for the wheelbase.

    Example:
        >>> mk.mobility(mk.gallery.rover()).dof
        15
    """
    check_positive_lengths("rover", wheelbase=wheelbase, track=track, wheel=wheel, clearance=clearance)
    if not 2 * wheel < wheelbase / 2:
        raise StructureError(f"rover: wheels of radius {wheel:g} do not fit into a wheelbase of {wheelbase:g}")
    half, aside, arm = wheelbase / 2, 0.36 * track, 0.4 * clearance
    low = 0.3 * clearance
    # rocker pivots are slightly ahead of the middle, bogie pivots below and behind, halfway between their wheels
    pivot = 0.1 * half
    r = 0.05 * clearance
    robot = Builder("rover")
    robot.free("base", "world", "body", value=(0.0, 0.0, wheel + clearance, 0.0, 0.0, 0.0))
    # the body frame has the height of the rockers' axis, the bar that of their tops, so that the rods are along x
    robot.revolute("bar_joint", "body", "bar", at=(pivot - half / 2, 0.0, arm), limits=(-0.5, 0.5))
    for side, sign, colour in (("left", 1.0, RED), ("right", -1.0, BLUE)):
        rocker, bogie = f"{side}_rocker", f"{side}_bogie"
        robot.revolute(f"{rocker}_joint", "body", rocker, at=(pivot, sign * aside, 0.0), axis="y", limits=(-0.7, 0.7))
        p_bogie = (-half / 2 - pivot, 0.0, low - clearance)
        robot.revolute(f"{bogie}_joint", rocker, bogie, at=p_bogie, axis="y", limits=(-0.9, 0.9))
        outward = sign * (track / 2 - aside)
        places = {
            "front": (rocker, (half - pivot, outward, -clearance)),
            "middle": (bogie, (half / 2, outward, -low)),
            "rear": (bogie, (-half / 2, outward, -low)),
        }
        for where, (link, at) in places.items():
            robot.revolute(f"{where}_{side}_axle", link, f"{where}_{side}", at=at, axis="y")
            robot.link(f"{where}_{side}", visuals=[
                hub((0.0, 0.0, 0.0), AXLE_AXIS, wheel, 0.8 * wheel, DARK),
                hub((0.0, 0.0, 0.0), AXLE_AXIS, 0.35 * wheel, 0.86 * wheel, GREY),
            ])  # fmt: skip
        knee = (half - pivot, 0.0, -0.55 * clearance)
        top = (0.0, 0.0, arm)
        front = places["front"][1]
        robot.link(rocker, visuals=[
            hub((0.0, 0.0, 0.0), AXLE_AXIS, 2.2 * r, 4 * r, DARK), capsule((0.0, 0.0, 0.0), top, r, colour),
            capsule((0.0, 0.0, 0.0), p_bogie, r, colour), capsule((0.0, 0.0, 0.0), knee, r, colour),
            capsule(knee, (front[0], 0.0, front[2]), r, colour), capsule((front[0], 0.0, front[2]), front, r, colour),
        ])  # fmt: skip
        spread = [capsule((0.0, 0.0, 0.0), (x, 0.0, -low), r, ORANGE) for x in (-half / 2, half / 2)]
        axles = [capsule((x, 0.0, -low), (x, outward, -low), r, ORANGE) for x in (-half / 2, half / 2)]
        robot.link(bogie, visuals=[hub((0.0, 0.0, 0.0), AXLE_AXIS, 1.8 * r, 4 * r, DARK), *spread, *axles])
        add_rod(robot, f"{side}_rod", rocker, top, "bar", (0.0, sign * aside, 0.0), 0.6 * r, GREY)
    robot.link("bar", visuals=[
        capsule((0.0, -aside, 0.0), (0.0, aside, 0.0), r, WHITE), hub((0.0, 0.0, 0.0), (0, 0, 1), 2 * r, 4 * r, DARK)
    ])  # fmt: skip
    size = (1.1 * half, 1.5 * aside, 0.45 * arm + 2 * r)
    axle = capsule((pivot, -aside, 0.0), (pivot, aside, 0.0), r, DARK)
    robot.link("body", visuals=[block((0.0, 0.0, arm - 2 * r - size[2] / 2), size, WHITE), axle])
    return set_home(robot.build())
