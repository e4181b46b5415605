"""What well-known arms bump with: capsules around the meshes of their links.

Fitted by `benchmarks/fit_gallery.py` to the collision meshes in the package `example-robot-data` (Franka's and
Universal Robots' own, Apache-2.0 and BSD-3-Clause), rounded outwards to 0.1 mm: every point of a mesh is in
one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from mechanik.gallery.bones import GREY, bone
from mechanik.mechanism import Mechanism

Vector = tuple[float, float, float]
Bone = tuple[Vector, Vector, float]
"""Where the two round ends are centred in the frame of the link, and their radius; m."""


PANDA_UNCHECKED = {
    **{(f"panda_link{k}", f"panda_link{k + 1}"): "adjacent" for k in range(7)},
    ("panda_link6", "panda_hand"): "adjacent",
    ("panda_link7", "panda_hand"): "same body",
    **{
        (link, f"panda_{side}finger"): "adjacent"
        for link in ("panda_link7", "panda_hand")
        for side in ("left", "right")
    },
    ("panda_link5", "panda_link7"): "never",
}
"""Pairs that may touch. Links 5 and 7 never do, by the limits of joint 6 and as Franka's own SRDF has it; their
capsules would, since link 5 is hollow where link 7 turns."""

_UR = ("base_link", "shoulder_link", "upper_arm_link", "forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link")
UR_UNCHECKED = {**dict.fromkeys(pairwise(_UR), "adjacent"), ("base_link", "upper_arm_link"): "always"}
"""The upper arm passes the base so closely that their capsules touch nearly always."""


def bump_with(mechanism: Mechanism, capsules: Mapping[str, list[Bone]]) -> Mechanism:
    """Let links bump with these in place of what they look like."""
    for name, bones in capsules.items():
        if name in mechanism.links:
            mechanism.links[name].collisions = tuple(bone(a, b, radius, GREY) for a, b, radius in bones)
    return mechanism


PANDA: dict[str, list[Bone]] = {
    "panda_link0": [
        ((-0.0173, 0.0000, 0.0150), (-0.0644, -0.0001, 0.0043), 0.0977),
        ((-0.0010, 0.0000, 0.0853), (-0.0414, -0.0002, 0.0863), 0.0785),
    ],
    "panda_link1": [
        ((0.0000, -0.0768, 0.0013), (0.0004, -0.0663, -0.1125), 0.0558),
        ((0.0004, -0.0055, -0.1644), (0.0000, -0.0364, -0.0008), 0.0668),
    ],
    "panda_link2": [
        ((0.0002, -0.1711, 0.0015), (-0.0005, -0.0027, 0.0199), 0.0612),
        ((0.0000, -0.1547, 0.0395), (-0.0001, -0.1229, 0.0389), 0.0563),
        ((-0.0001, -0.0756, 0.0447), (0.0000, 0.0001, 0.0669), 0.0628),
    ],
    "panda_link3": [
        ((0.0828, 0.0426, 0.0004), (0.0025, 0.0007, -0.0828), 0.0694),
    ],
    "panda_link4": [
        ((0.0000, 0.0000, 0.0424), (-0.0814, 0.0836, 0.0007), 0.0695),
    ],
    "panda_link5": [
        ((0.0003, 0.0105, -0.2447), (0.0000, 0.0638, 0.0034), 0.0673),
    ],
    "panda_link6": [
        ((0.0881, -0.0284, -0.0001), (-0.0063, -0.0079, 0.0131), 0.0501),
        ((-0.0023, 0.0123, 0.0065), (0.0800, 0.0369, -0.0025), 0.0529),
        ((0.0908, 0.0123, -0.0006), (0.0008, 0.0065, 0.0195), 0.0470),
    ],
    "panda_link7": [
        ((0.0599, 0.0257, 0.0781), (0.0001, -0.0344, 0.0772), 0.0321),
        ((-0.0193, -0.0118, 0.0750), (-0.0023, -0.0064, 0.0785), 0.0360),
        ((-0.0150, 0.0083, 0.0745), (0.0375, 0.0441, 0.0854), 0.0374),
    ],
    "panda_hand": [
        ((0.0003, -0.0815, 0.0069), (0.0000, 0.0766, 0.0169), 0.0352),
        ((0.0011, -0.0859, 0.0502), (0.0005, 0.0869, 0.0496), 0.0230),
        ((-0.0002, 0.0839, 0.0399), (0.0000, -0.0837, 0.0350), 0.0247),
    ],
}
UR5: dict[str, list[Bone]] = {
    "base_link": [
        ((-0.0001, 0.0000, 0.0055), (0.0000, 0.0001, 0.0054), 0.0742),
        ((0.0001, -0.0776, 0.0054), (0.0000, -0.1094, 0.0055), 0.0055),
        ((-0.0483, -0.0585, 0.0074), (0.0490, -0.0587, 0.0076), 0.0188),
    ],
    "shoulder_link": [
        ((-0.0005, 0.0064, -0.0147), (0.0000, 0.0123, 0.0000), 0.0824),
    ],
    "upper_arm_link": [
        ((0.0001, 0.0267, -0.0004), (0.0000, 0.0269, 0.4252), 0.0636),
        ((-0.0003, -0.0159, 0.3351), (0.0000, -0.0321, 0.4264), 0.0672),
        ((0.0001, -0.0319, -0.0009), (-0.0003, -0.0150, 0.2524), 0.0674),
    ],
    "forearm_link": [
        ((-0.0002, 0.0050, 0.0641), (0.0001, 0.0381, 0.0000), 0.0609),
        ((-0.0001, -0.0003, 0.1148), (-0.0001, 0.0000, 0.3115), 0.0384),
        ((-0.0001, 0.0002, 0.3773), (-0.0002, 0.0012, 0.3773), 0.0706),
    ],
    "wrist_1_link": [
        ((0.0000, 0.0906, -0.0179), (-0.0002, 0.0783, -0.0027), 0.0493),
        ((0.0000, 0.0933, 0.0293), (-0.0001, 0.0669, 0.0203), 0.0419),
    ],
    "wrist_2_link": [
        ((-0.0001, 0.0073, 0.0733), (0.0000, 0.0214, 0.0950), 0.0460),
        ((-0.0001, -0.0096, 0.0658), (0.0004, -0.0148, 0.0936), 0.0411),
        ((-0.0003, -0.0328, 0.0976), (0.0000, -0.0347, 0.0929), 0.0396),
    ],
    "wrist_3_link": [
        ((-0.0002, 0.0612, 0.0032), (0.0000, 0.0611, 0.0000), 0.0402),
    ],
}
UR10: dict[str, list[Bone]] = {
    "base_link": [
        ((-0.0616, 0.0447, 0.0187), (0.0613, 0.0446, 0.0187), 0.0361),
        ((-0.0623, -0.0624, 0.0175), (0.0607, -0.0619, 0.0172), 0.0323),
        ((0.0663, -0.0104, 0.0188), (-0.0663, -0.0104, 0.0188), 0.0339),
    ],
    "shoulder_link": [
        ((-0.0019, 0.0032, -0.0185), (-0.0001, 0.0122, 0.0015), 0.1055),
    ],
    "upper_arm_link": [
        ((-0.0008, -0.0540, 0.0014), (-0.0001, -0.0450, 0.0907), 0.1111),
        ((0.0000, -0.0450, 0.1947), (0.0000, -0.0450, 0.4970), 0.0545),
        ((-0.0001, -0.0451, 0.5654), (0.0007, -0.0473, 0.6129), 0.0819),
    ],
    "forearm_link": [
        ((0.0007, 0.0063, 0.0015), (-0.0008, -0.0004, 0.1056), 0.0849),
        ((0.0001, -0.0010, 0.5217), (-0.0004, 0.0061, 0.5731), 0.0712),
        ((0.0001, -0.0009, 0.1843), (0.0000, -0.0008, 0.4594), 0.0435),
    ],
    "wrist_1_link": [
        ((0.0000, 0.1079, -0.0010), (0.0001, 0.1148, 0.0145), 0.0656),
    ],
    "wrist_2_link": [
        ((0.0000, -0.0283, 0.1171), (0.0014, -0.0228, 0.0865), 0.0486),
        ((0.0000, 0.0249, 0.1161), (-0.0002, 0.0035, 0.0968), 0.0582),
    ],
    "wrist_3_link": [
        ((0.0000, 0.0701, 0.0010), (0.0000, 0.0701, 0.0010), 0.0459),
    ],
}
