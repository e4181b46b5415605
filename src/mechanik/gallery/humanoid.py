"""A person as a tree: a floating base, two legs, two arms, a waist and a neck."""

from __future__ import annotations

import math

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, WHITE, ball, block, bone, put_on
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.mechanism import Builder, Inertial, Link, Mechanism
from mechanik.spatial import Pose

Numbers = tuple[float, ...]

# lengths are shares of the body's height, after Drillis and Contini (1966)
HIPS, SHOULDERS, NECK, EYES = 0.530, 0.818, 0.850, 0.936
"""How high above the ground."""
WAIST = 0.075
"""Above the hips."""
CHEST = SHOULDERS - HIPS - WAIST
HIP_ASIDE, SHOULDER_ASIDE = 0.052, 0.110
THIGH, SHANK, ANKLE = 0.245, 0.246, 0.039
UPPER_ARM, FOREARM, HAND = 0.186, 0.146, 0.108
HEEL, TOES = -0.035, 0.117
"""From the ankle, forward."""

STRAIGHT = (1.0, 0.0, 0.0, 0.0)
PITCH_ROLL_TWIST = (0.5, -0.5, -0.5, -0.5)
"""Turns a joint's axes so that z, y, x of its motion are y (pitch), x (roll) and z (twist) of the body.

Euler angles stick where the middle one is at a right angle. For a hip that is a leg spread sideways, which its limits
forbid; with the pitch in the middle it would be a person who sits.
"""

TRUNK = (
    # joint, link above, link below, freedoms, where in the link above, axes, limits in degrees, home in radians
    ("waist", "pelvis", "chest", "EX EY EZ", (0.0, 0.0, WAIST), STRAIGHT, (-30, -20, -45), (30, 60, 45), (0, 0, 0)),
    ("neck", "chest", "head", "EY EZ", (0.0, 0.0, NECK - HIPS - WAIST), STRAIGHT, (-40, -80), (50, 80), (0, 0)),
    ("gaze", "head", "eyes", "", (0.055, 0.0, EYES - NECK), STRAIGHT, (), (), ()),
)
LEFT = (
    ("shoulder", "chest", "upper_arm", "EX EY EZ", (0.0, SHOULDER_ASIDE, CHEST), PITCH_ROLL_TWIST,
     (-90, -20, -180), (90, 170, 60), (0, 0.15, 0.1)),
    ("elbow", "upper_arm", "forearm", "EY", (0.0, 0.0, -UPPER_ARM), STRAIGHT, (-145,), (0,), (-0.5,)),
    ("wrist", "forearm", "hand", "EX EY EZ", (0.0, 0.0, -FOREARM), STRAIGHT, (-25, -70, -85), (25, 70, 85), (0, 0, 0)),
    ("hip", "pelvis", "thigh", "EX EY EZ", (0.0, HIP_ASIDE, 0.0), PITCH_ROLL_TWIST,
     (-45, -25, -120), (45, 45, 30), (0, 0, -0.25)),
    ("knee", "thigh", "shank", "EY", (0.0, 0.0, -THIGH), STRAIGHT, (0,), (150,), (0.5,)),
    ("ankle", "shank", "foot", "EX EY", (0.0, 0.0, -SHANK), STRAIGHT, (-25, -35), (25, 50), (0, -0.25)),
)  # fmt: skip
"""The right side is its mirror."""

BODIES = {
    # share of the mass after de Leva (1996), male; ends along z; depth and width
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
LIMBS = {"upper_arm": ORANGE, "forearm": GREY, "thigh": ORANGE, "shank": GREY}


def humanoid(height: float = 1.7, mass: float = 70.0) -> Mechanism:
    """A person who stands with knees a little bent, soles on the ground; x is forward, y to the left, z up.

    37 freedoms: the base 6, the waist 3 and the neck 2; a shoulder 3, an elbow 1, a wrist 3; a hip 3, a knee 1, an
    ankle 2. Links: `pelvis`, `chest`, `head`, `eyes` (x is where they look), and on each side `left_upper_arm`,
    `left_forearm`, `left_hand`, `left_thigh`, `left_shank`, `left_foot`. A link begins at the joint that moves it,
    and at zero all are unturned: arms and legs hang straight down. Hips and shoulders are EX twist, EY roll, EZ pitch.
    With both feet and both hands held, 37 - 24 = 13 freedoms are left.

    Args:
        height: of the body, m.
        mass: of the body, kg.
    """
    check_lengths("humanoid", height=height)
    if not isinstance(mass, int | float) or not (math.isfinite(mass) and mass > 0):
        raise StructureError(f"humanoid: mass is {mass!r}; it must be a positive and finite number of kg")
    body = Builder("humanoid")
    body.free("base", "world", "pelvis")
    for row in TRUNK:
        _join(body, height, "", 1.0, *row)
    for prefix, side in (("left_", 1.0), ("right_", -1.0)):
        for row in LEFT:
            _join(body, height, prefix, side, *row)
    robot = body.build()
    for name, link in robot.links.items():
        _dress(link, name.removeprefix("left_").removeprefix("right_"), height, mass)
    drop = ANKLE * height - float(robot.pose("left_foot")[2, 3])
    robot.joint("base").set_value("Z", drop)
    return stand(robot)


def _join(
    body: Builder, height: float, prefix: str, side: float, name: str, above: str, below: str, freedoms: str,
    at: Numbers, axes: Numbers, lower: Numbers, upper: Numbers, home: Numbers,
) -> None:  # fmt: skip
    """A joint of the left side, or its mirror: what turns about x and z there turns the other way."""
    parent = above if above in ("pelvis", "chest", "head") else prefix + above
    place = (height * at[0], height * side * at[1], height * at[2])
    joint = body.joint(prefix + name, parent, prefix + below, freedoms.split(), at=place)
    joint.axes_wxyz = axes
    pitch = "EY" if axes == STRAIGHT else "EZ"
    signs = [1.0 if dof.name == pitch else side for dof in joint.dof]
    ends = [sorted((sign * low, sign * high)) for sign, low, high in zip(signs, lower, upper, strict=True)]
    joint.set_limits([math.radians(low) for low, _ in ends], [math.radians(high) for _, high in ends])
    joint.set_values([sign * value for sign, value in zip(signs, home, strict=True)])


def _dress(link: Link, kind: str, h: float, mass: float) -> None:
    """Shapes, and a mass that is spread as in a box."""
    match kind:
        case "pelvis":
            put_on(link, bone((0, -HIP_ASIDE * h, 0), (0, HIP_ASIDE * h, 0), 0.045 * h, DARK))
            put_on(link, bone((0, 0, 0), (0, 0, WAIST * h), 0.05 * h, DARK))
        case "chest":
            put_on(link, bone((0, 0, 0.02 * h), (0, 0, (CHEST - 0.04) * h), 0.07 * h, BLUE))
            put_on(link, bone((0, -SHOULDER_ASIDE * h, CHEST * h), (0, SHOULDER_ASIDE * h, CHEST * h), 0.03 * h, BLUE))
        case "head":
            put_on(link, bone((0, 0, 0), (0, 0, 0.05 * h), 0.022 * h, GREY), ball((0, 0, 0.085 * h), 0.065 * h, WHITE))
        case "eyes":
            put_on(link, *(ball((0, y * h, 0), 0.012 * h, DARK) for y in (-0.022, 0.022)))
        case "hand":
            put_on(link, block((0, 0, -HAND / 2 * h), (0.025 * h, 0.05 * h, HAND * h), DARK))
        case "foot":
            size = ((TOES - HEEL) * h, 0.055 * h, ANKLE * h)
            put_on(link, block(((HEEL + TOES) / 2 * h, 0, -ANKLE / 2 * h), size, DARK))
        case _ if kind in LIMBS:
            _, low, _, depth, _ = BODIES[kind]
            put_on(link, bone((0, 0, 0), (0, 0, low * h), 0.53 * depth * h, LIMBS[kind]))
        case _:
            pass
    if kind in BODIES:
        share, low, high, depth, width = BODIES[kind]
        m, x, y, z = share * mass, depth * h, width * h, (high - low) * h
        inertia = (m / 12 * (y * y + z * z), 0.0, 0.0, m / 12 * (x * x + z * z), 0.0, m / 12 * (x * x + y * y))
        ahead = (HEEL + TOES) / 2 * h if kind == "foot" else 0.0
        link.inertial = Inertial(m, Pose((ahead, 0.0, (low + high) / 2 * h)), inertia)
