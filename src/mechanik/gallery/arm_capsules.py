"""Collision capsules around the link meshes of the Panda, UR5 and UR10, and the allowed collisions of these arms.

`benchmarks/fit_gallery.py` fitted the capsules to the collision meshes of Franka and Universal Robots in the package
`example-robot-data` (licences Apache-2.0 and BSD). The capsules are rounded outwards to 0.1 mm, so every point of
these meshes is inside a capsule.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from mechanik.gallery.construction import GREY, capsule
from mechanik.model import Mechanism

Vector = tuple[float, float, float]
"""x, y, z in the frame of the link; m."""
CapsuleSpec = tuple[Vector, Vector, float]
"""Centres of the two round ends in the frame of the link, and their radius; m."""


PANDA_ALLOWED_COLLISIONS = {
    **{(f"panda_link{k}", f"panda_link{k + 1}"): "adjacent" for k in range(7)},
    ("panda_link6", "panda_hand"): "adjacent",
    ("panda_link7", "panda_hand"): "same body",
    **{
        (link, f"panda_{side}finger"): "adjacent"
        for link in ("panda_link7", "panda_hand")
        for side in ("left", "right")
    },
}
"""Adjacent links, and links that form one rigid body.

The pair of links 5 and 7 is checked, although the SRDF in `example-robot-data` disables the check: their meshes touch
in about 5 % of random configurations, and their capsules in about 13 %.
"""

_UR_LINKS = (
    "base_link",
    "shoulder_link",
    "upper_arm_link",
    "forearm_link",
    "wrist_1_link",
    "wrist_2_link",
    "wrist_3_link",
)
_UR_ADJACENT_PAIRS = dict.fromkeys(pairwise(_UR_LINKS), "adjacent")
UR5_ALLOWED_COLLISIONS = {**_UR_ADJACENT_PAIRS, ("base_link", "upper_arm_link"): "always"}
"""Adjacent links, and base with upper arm.

The capsules of base and upper arm touch in all of 2,000 random configurations, so a check would always report a
collision. Their meshes touch in about 4 % of them; such collisions are not detected.
"""
UR10_ALLOWED_COLLISIONS = {**_UR_ADJACENT_PAIRS, ("base_link", "upper_arm_link"): "never"}
"""Adjacent links, and base with upper arm.

The meshes of base and upper arm touch in none of 2,000 random configurations, although their capsules touch in about
a third of them.
"""


def set_collision_capsules(mechanism: Mechanism, capsules: Mapping[str, list[CapsuleSpec]]) -> Mechanism:
    """Replace the collision shapes of the links in `capsules`, and return the same mechanism.

    Args:
        mechanism: the mechanism to change.
        capsules: capsules by link name; names that the mechanism does not have are ignored.
    """
    for name, specs in capsules.items():
        if name in mechanism.links:
            mechanism.links[name].collisions = tuple(capsule(a, b, radius, GREY) for a, b, radius in specs)
    return mechanism


PANDA_CAPSULES: dict[str, list[CapsuleSpec]] = {
    "panda_link0": [
        ((-0.0271, 0.0000, 0.0954), (-0.0049, 0.0000, 0.1003), 0.0720),
        ((-0.0195, 0.0003, 0.0285), (-0.0187, -0.0005, 0.0293), 0.1007),
        ((-0.0882, 0.0000, 0.0147), (-0.0877, -0.0006, 0.0153), 0.0831),
    ],
    "panda_link1": [
        ((-0.0003, -0.0013, -0.1691), (0.0000, -0.0209, -0.0023), 0.0611),
        ((0.0000, -0.0669, 0.0002), (0.0004, -0.0547, -0.0403), 0.0628),
        ((-0.0002, -0.0414, -0.1515), (-0.0002, -0.0456, -0.0779), 0.0573),
    ],
    "panda_link2": [
        ((-0.0001, -0.1654, 0.0051), (0.0000, 0.0000, 0.0376), 0.0667),
        ((-0.0024, -0.1144, 0.0623), (0.0000, 0.0010, 0.0768), 0.0558),
    ],
    "panda_link3": [
        ((0.0003, 0.0002, -0.0798), (0.0829, 0.0426, 0.0004), 0.0693),
    ],
    "panda_link4": [
        ((-0.0815, 0.0834, 0.0005), (0.0000, -0.0001, 0.0425), 0.0695),
    ],
    "panda_link5": [
        ((0.0001, 0.0023, -0.2474), (0.0000, 0.0404, -0.0052), 0.0588),
        ((0.0000, 0.0637, -0.0644), (0.0000, 0.0401, -0.2181), 0.0573),
        ((0.0000, 0.0637, -0.0373), (-0.0001, 0.0728, 0.0007), 0.0603),
    ],
    "panda_link6": [
        ((0.0020, 0.0002, 0.0083), (0.0885, -0.0184, -0.0001), 0.0553),
        ((-0.0019, 0.0174, 0.0113), (0.0885, 0.0403, -0.0002), 0.0506),
    ],
    "panda_link7": [
        ((0.0210, 0.0497, 0.0785), (0.0436, 0.0210, 0.0791), 0.0287),
        ((0.0669, 0.0318, 0.0859), (0.0387, 0.0653, 0.0859), 0.0172),
        ((-0.0064, -0.0128, 0.0748), (0.0155, -0.0015, 0.0785), 0.0432),
        ((-0.0301, 0.0084, 0.0755), (0.0051, 0.0304, 0.0775), 0.0323),
    ],
    "panda_hand": [
        ((0.0010, -0.0739, 0.0018), (-0.0010, 0.0739, 0.0086), 0.0319),
        ((0.0012, 0.0812, 0.0208), (0.0008, -0.0789, 0.0185), 0.0298),
        ((-0.0001, 0.0856, 0.0365), (0.0000, -0.0829, 0.0356), 0.0248),
        ((0.0000, -0.0858, 0.0502), (0.0001, 0.0880, 0.0498), 0.0225),
    ],
}
"""Collision capsules of the Panda by link name."""
UR5_CAPSULES: dict[str, list[CapsuleSpec]] = {
    "base_link": [
        ((-0.0001, 0.0001, 0.0054), (0.0001, 0.0000, 0.0052), 0.0742),
        ((0.0000, -0.1095, 0.0055), (0.0001, -0.0775, 0.0054), 0.0055),
        ((-0.0483, -0.0596, 0.0075), (0.0499, -0.0578, 0.0074), 0.0187),
    ],
    "shoulder_link": [
        ((0.0004, 0.0030, -0.0107), (0.0001, 0.0125, -0.0001), 0.0823),
    ],
    "upper_arm_link": [
        ((0.0001, 0.0267, 0.4253), (0.0002, 0.0267, -0.0005), 0.0635),
        ((0.0001, -0.0319, -0.0005), (-0.0003, -0.0131, 0.0896), 0.0674),
        ((0.0001, -0.0003, 0.2969), (0.0000, -0.0005, 0.1430), 0.0516),
        ((0.0000, -0.0321, 0.4265), (-0.0006, -0.0166, 0.3481), 0.0671),
    ],
    "forearm_link": [
        ((0.0001, 0.0387, -0.0001), (-0.0005, 0.0005, 0.0663), 0.0607),
        ((0.0000, 0.0000, 0.1183), (-0.0001, 0.0000, 0.3142), 0.0383),
        ((0.0000, -0.0277, 0.3901), (-0.0008, 0.0207, 0.3994), 0.0430),
        ((-0.0001, 0.0000, 0.3407), (0.0000, 0.0282, 0.3903), 0.0432),
    ],
    "wrist_1_link": [
        ((-0.0001, 0.0679, 0.0178), (0.0000, 0.0932, 0.0294), 0.0419),
        ((-0.0001, 0.0920, -0.0353), (0.0000, 0.1036, -0.0183), 0.0394),
        ((-0.0001, 0.0666, -0.0025), (0.0006, 0.0890, 0.0007), 0.0429),
    ],
    "wrist_2_link": [
        ((0.0003, 0.0095, 0.0701), (0.0000, 0.0220, 0.0947), 0.0457),
        ((-0.0004, -0.0139, 0.0678), (0.0009, -0.0138, 0.0934), 0.0414),
        ((0.0001, -0.0369, 0.0932), (-0.0017, -0.0323, 0.0992), 0.0389),
    ],
    "wrist_3_link": [
        ((0.0006, 0.0620, 0.0031), (0.0000, 0.0612, 0.0000), 0.0402),
    ],
}
"""Collision capsules of the UR5 by link name."""
UR10_CAPSULES: dict[str, list[CapsuleSpec]] = {
    "base_link": [
        ((-0.0626, -0.0625, 0.0176), (0.0606, -0.0619, 0.0171), 0.0323),
        ((-0.0675, -0.0104, 0.0188), (0.0675, -0.0104, 0.0188), 0.0337),
        ((0.0697, 0.0310, 0.0189), (-0.0697, 0.0310, 0.0189), 0.0243),
        ((-0.0664, 0.0602, 0.0187), (0.0663, 0.0601, 0.0186), 0.0245),
    ],
    "shoulder_link": [
        ((0.0004, -0.0017, -0.0527), (-0.0049, 0.0215, -0.0530), 0.0832),
        ((0.0001, 0.0098, 0.0172), (0.0002, 0.0307, 0.0025), 0.0942),
    ],
    "upper_arm_link": [
        ((0.0006, -0.0473, 0.6131), (-0.0002, -0.0444, 0.5652), 0.0818),
        ((0.0000, -0.0450, 0.1953), (0.0000, -0.0451, 0.4963), 0.0546),
        ((0.0001, -0.0584, 0.0012), (-0.0004, -0.0448, 0.0153), 0.1074),
        ((0.0000, -0.0450, 0.1331), (0.0002, -0.0452, 0.1329), 0.0768),
    ],
    "forearm_link": [
        ((0.0001, -0.0008, 0.1839), (0.0000, -0.0008, 0.4598), 0.0434),
        ((-0.0004, 0.0060, 0.5733), (0.0000, -0.0008, 0.5216), 0.0712),
        ((0.0000, -0.0065, 0.0123), (0.0004, 0.0181, 0.0017), 0.0770),
        ((0.0014, -0.0043, 0.0751), (-0.0005, -0.0005, 0.1315), 0.0639),
    ],
    "wrist_1_link": [
        ((0.0000, 0.0864, -0.0086), (-0.0002, 0.1118, -0.0192), 0.0529),
        ((0.0000, 0.0878, 0.0151), (0.0000, 0.1151, 0.0323), 0.0539),
    ],
    "wrist_2_link": [
        ((0.0006, -0.0103, 0.0908), (0.0001, -0.0165, 0.1128), 0.0546),
        ((0.0000, 0.0330, 0.1161), (-0.0008, 0.0145, 0.0873), 0.0535),
    ],
    "wrist_3_link": [
        ((0.0000, 0.0701, 0.0010), (0.0000, 0.0701, 0.0010), 0.0459),
    ],
}
"""Collision capsules of the UR10 by link name."""
