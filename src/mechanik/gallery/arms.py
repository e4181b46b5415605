"""Well-known robot arms, from their makers' dimensions and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mechanik.formats.dh import from_dh
from mechanik.gallery.arm_capsules import (
    PANDA,
    PANDA_UNCHECKED,
    UR5,
    UR5_UNCHECKED,
    UR10,
    UR10_UNCHECKED,
    Bone,
    bump_with,
)
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, WHITE, block, dress, put_on, rod
from mechanik.gallery.home import stand
from mechanik.mechanism import Builder, Mechanism
from mechanik.spatial import euler, make
from mechanik.spatial.array import Array

Vector = tuple[float, float, float]
Row = tuple[str, str, Vector, Vector, str, float, float]
"""joint, link, where it sits in the link before: xyz (m) and rpy (quarter turns), axis, lower and upper limit (rad)"""


def panda(hand: bool = True) -> Mechanism:
    """Franka Emika Panda: seven joints, a hand with two fingers that move together.

    Lengths and limits as in Franka's control interface documentation, "Robot and interface specifications" (the
    table there is a modified DH table, and the frames are the same); limits of joints 2, 4 and 6 as in franka_ros.
    Velocities are among its extras, as they are of a URDF.

    Args:
        hand: whether it carries one, and so an eighth number in q.
    """
    robot = _serial(
        "panda",
        "panda_link0",
        [
            ("panda_joint1", "panda_link1", (0.0, 0.0, 0.333), (0, 0, 0), "z", -2.8973, 2.8973),
            ("panda_joint2", "panda_link2", (0.0, 0.0, 0.0), (-1, 0, 0), "z", -1.7628, 1.7628),
            ("panda_joint3", "panda_link3", (0.0, -0.316, 0.0), (1, 0, 0), "z", -2.8973, 2.8973),
            ("panda_joint4", "panda_link4", (0.0825, 0.0, 0.0), (1, 0, 0), "z", -3.0718, -0.0698),
            ("panda_joint5", "panda_link5", (-0.0825, 0.384, 0.0), (-1, 0, 0), "z", -2.8973, 2.8973),
            ("panda_joint6", "panda_link6", (0.0, 0.0, 0.0), (1, 0, 0), "z", -0.0175, 3.7525),
            ("panda_joint7", "panda_link7", (0.088, 0.0, 0.0), (1, 0, 0), "z", -2.8973, 2.8973),
        ],
    )
    robot.fixed("panda_joint8", "panda_link7", "panda_link8", at=(0.0, 0.0, 0.107))
    home = [0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4]
    if hand:
        robot.fixed("panda_hand_joint", "panda_link8", "panda_hand", at=_place((0.0, 0.0, 0.0), (0, 0, -0.5)))
        robot.fixed("panda_hand_tcp_joint", "panda_hand", "panda_hand_tcp", at=(0.0, 0.0, 0.1034))
        for k, (side, axis) in enumerate((("left", "y"), ("right", "-y"))):
            finger, joint = f"panda_{side}finger", f"panda_finger_joint{k + 1}"
            robot.prismatic(joint, "panda_hand", finger, at=(0.0, 0.0, 0.0584), axis=axis, limits=(0.0, 0.04))
            out = 0.01 if side == "left" else -0.01
            # around Franka's own boxes, but 1 mm short of the middle, so that a hand may be shut
            knuckle, tip = (0.0, 1.42 * out, 0.0107), (0.0, 1.02 * out, 0.0356)
            robot.link(
                finger,
                visuals=[block((0.0, out, 0.022), (0.018, 0.016, 0.045), DARK)],
                collisions=[block(knuckle, (0.022, 0.0236, 0.0207), DARK), block(tip, (0.0175, 0.0184, 0.0379), DARK)],
            )
        robot.couple("panda_finger_joint2", "panda_finger_joint1")
        robot.link("panda_hand", visuals=[block((0.0, 0.0, 0.033), (0.05, 0.2, 0.066), WHITE)])
        home.append(0.02)
    arm = bump_with(dress(robot.build(), 0.06, 0.045, WHITE, DARK), PANDA)
    arm.extras["limits"] = {f"panda_joint{k}": {"velocity": 2.175 if k < 5 else 2.61} for k in range(1, 8)}
    arm.unchecked = {pair: why for pair, why in PANDA_UNCHECKED.items() if all(name in arm.links for name in pair)}
    return stand(arm, home)


def ur5() -> Mechanism:
    """Universal Robots UR5: six joints; lengths from the maker's DH table, frames as in ur_description."""
    return _universal_robot(
        "ur5",
        column=0.089159,
        shoulder=0.13585,
        upper_arm=0.425,
        elbow=0.1197,
        forearm=0.39225,
        wrists=(0.093, 0.09465, 0.0823),
        radius=0.05,
        velocities=(180, 180),
        capsules=UR5,
        unchecked=UR5_UNCHECKED,
    )


def ur10() -> Mechanism:
    """Universal Robots UR10: six joints; lengths from the maker's DH table, frames as in ur_description."""
    return _universal_robot(
        "ur10",
        column=0.1273,
        shoulder=0.220941,
        upper_arm=0.612,
        elbow=0.1719,
        forearm=0.5723,
        wrists=(0.1149, 0.1157, 0.0922),
        radius=0.065,
        velocities=(120, 180),
        capsules=UR10,
        unchecked=UR10_UNCHECKED,
    )


def iiwa14() -> Mechanism:
    """KUKA LBR iiwa 14 R820: seven joints.

    The data sheet's lengths (360, 420, 400 and 126 mm to the flange) and limits (170, 120 and 175 degrees); frames
    split these between the links as in the iiwa_stack description.
    """
    a, b, c = math.radians(170), math.radians(120), math.radians(175)
    robot = _serial(
        "iiwa14",
        "iiwa_link_0",
        [
            ("iiwa_joint_1", "iiwa_link_1", (0.0, 0.0, 0.1575), (0, 0, 0), "z", -a, a),
            ("iiwa_joint_2", "iiwa_link_2", (0.0, 0.0, 0.2025), (1, 0, 2), "z", -b, b),
            ("iiwa_joint_3", "iiwa_link_3", (0.0, 0.2045, 0.0), (1, 0, 2), "z", -a, a),
            ("iiwa_joint_4", "iiwa_link_4", (0.0, 0.0, 0.2155), (1, 0, 0), "z", -b, b),
            ("iiwa_joint_5", "iiwa_link_5", (0.0, 0.1845, 0.0), (-1, 2, 0), "z", -a, a),
            ("iiwa_joint_6", "iiwa_link_6", (0.0, 0.0, 0.2155), (1, 0, 0), "z", -b, b),
            ("iiwa_joint_7", "iiwa_link_7", (0.0, 0.081, 0.0), (-1, 2, 0), "z", -c, c),
        ],
    )
    robot.fixed("iiwa_joint_ee", "iiwa_link_7", "iiwa_link_ee", at=(0.0, 0.0, 0.045))
    home = [0.0, 0.6, 0.0, -1.4, 0.0, 1.1, 0.0]
    return stand(dress(robot.build(), 0.068, 0.045, ORANGE, GREY), home)


def puma560() -> Mechanism:
    """Unimation Puma 560: six joints, the shoulder at the origin.

    P. Corke and B. Armstrong-Hélouvry, "A search for consensus among model parameters reported for the PUMA 560
    robot", ICRA 1994: classic DH table, and the limits that belong to its zero.
    """
    arm = from_dh(
        [
            [0.0, 0.0, 90, 0],
            [0.0, 0.4318, 0, 0],
            [0.15005, 0.0203, -90, 0],
            [0.4318, 0.0, 90, 0],
            [0.0, 0.0, -90, 0],
            [0.0, 0.0, 0, 0],
        ],
        convention="classic",
        columns="d a alpha theta",
        degrees=True,
        limits=[(-160, 160), (-45, 225), (-225, 45), (-110, 170), (-100, 100), (-266, 266)],
        joints=["waist", "shoulder", "elbow", "forearm_roll", "wrist_bend", "flange"],
        name="puma560",
    )
    put_on(arm.link("link0"), rod((0.0, 0.0, -0.66), (0.0, 0.0, -0.05), 0.08, DARK))
    return stand(dress(arm, 0.07, 0.03, GREY, DARK), [0.0, 0.8, -2.4, 0.0, 0.6, 0.0])


def _universal_robot(
    name: str,
    *,
    column: float,
    shoulder: float,
    upper_arm: float,
    elbow: float,
    forearm: float,
    wrists: Vector,
    radius: float,
    velocities: tuple[float, float],
    capsules: Mapping[str, list[Bone]],
    unchecked: Mapping[tuple[str, str], str],
) -> Mechanism:
    """The arm that all of the family are.

    Args:
        column, ..., wrists: lengths along the arm, and how far each joint stands out sideways (y), m.
        velocities: of the two joints of the shoulder and of the others, degrees a second.
    """
    half, full = math.pi, 2 * math.pi
    robot = _serial(
        name,
        "base_link",
        [
            ("shoulder_pan_joint", "shoulder_link", (0.0, 0.0, column), (0, 0, 0), "z", -full, full),
            ("shoulder_lift_joint", "upper_arm_link", (0.0, shoulder, 0.0), (0, 1, 0), "y", -full, full),
            ("elbow_joint", "forearm_link", (0.0, -elbow, upper_arm), (0, 0, 0), "y", -half, half),
            ("wrist_1_joint", "wrist_1_link", (0.0, 0.0, forearm), (0, 1, 0), "y", -full, full),
            ("wrist_2_joint", "wrist_2_link", (0.0, wrists[0], 0.0), (0, 0, 0), "z", -full, full),
            ("wrist_3_joint", "wrist_3_link", (0.0, 0.0, wrists[1]), (0, 0, 0), "y", -full, full),
        ],
    )
    robot.fixed("wrist_3_link-tool0_fixed_joint", "wrist_3_link", "tool0", at=_place((0.0, wrists[2], 0.0), (-1, 0, 0)))
    home = [0.0, -1.2, 1.4, -1.75, -math.pi / 2, 0.0]
    arm = bump_with(dress(robot.build(), radius, 0.7 * radius, GREY, BLUE), capsules)
    rates = {joint: velocities[k > 1] for k, joint in enumerate(name for name, one in arm.joints.items() if one.dof)}
    arm.extras["limits"] = {joint: {"velocity": math.radians(rate)} for joint, rate in rates.items()}
    arm.unchecked = unchecked
    return stand(arm, home)


def _serial(name: str, root: str, rows: Sequence[Row]) -> Builder:
    """One joint after the other."""
    robot, parent = Builder(name), root
    for joint, link, xyz, rpy, axis, lower, upper in rows:
        robot.revolute(joint, parent, link, at=_place(xyz, rpy), axis=axis, limits=(lower, upper))
        parent = link
    return robot


def _place(xyz: Vector, quarter_turns: Vector) -> Array:
    """xyz and roll, pitch, yaw as a pose, as in a URDF."""
    rpy = [turn * math.pi / 2 for turn in quarter_turns]
    return make(euler.matrix_from_euler(rpy, order="xyz", axes="fixed"), xyz)
