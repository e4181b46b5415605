"""Robot arms: industrial, planar, redundant and demonstration arms, and a pair of arms that hold a box."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from mechanik.errors import FormatError, StructureError
from mechanik.formats.arm_tables import arm_2d, arm_3d, from_dh
from mechanik.gallery.arm_capsules import (
    PANDA_ALLOWED_COLLISIONS,
    PANDA_CAPSULES,
    UR5_ALLOWED_COLLISIONS,
    UR5_CAPSULES,
    UR10_ALLOWED_COLLISIONS,
    UR10_CAPSULES,
    CapsuleSpec,
    set_collision_capsules,
)
from mechanik.gallery.construction import (
    BLUE,
    DARK,
    GREY,
    ORANGE,
    RED,
    WHITE,
    add_default_shapes,
    add_shapes,
    block,
    capsule,
    rod,
    set_home,
)
from mechanik.model import Builder, Mechanism
from mechanik.spatial import euler, make_pose, rotation
from mechanik.spatial.array import Array
from mechanik.validation import check_positive_numbers

Vector = tuple[float, float, float]
"""x, y, z."""
JointRow = tuple[str, str, Vector, Vector, str, float, float]
"""Joint name, link name, xyz (m) and rpy (quarter turns) in the frame of the previous link, axis, lower and upper limit
(rad)."""


def panda(hand: bool = True) -> Mechanism:
    """Make a Franka Emika Panda: seven revolute joints, and a hand with two fingers that move together.

    Lengths and limits are from Franka's control interface documentation, "Robot and interface specifications"; the
    frames of the links are those of its modified DH table. The velocity limits (rad/s) are in `extras`, as for a URDF.

    Args:
        hand: whether the arm has the hand; the fingers add an eighth entry to q.

    Returns:
        The arm, with links panda_link0 to panda_link8; with the hand also panda_hand, panda_hand_tcp and the fingers.

    Example:
        >>> mk.gallery.panda().nq, mk.gallery.panda(hand=False).nq
        (8, 7)
    """
    robot = _build_serial_chain(
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
        robot.fixed(
            "panda_hand_joint", "panda_link8", "panda_hand", at=_pose_from_quarter_turns((0.0, 0.0, 0.0), (0, 0, -0.5))
        )
        robot.fixed("panda_hand_tcp_joint", "panda_hand", "panda_hand_tcp", at=(0.0, 0.0, 0.1034))
        for k, (side, axis) in enumerate((("left", "y"), ("right", "-y"))):
            finger, joint = f"panda_{side}finger", f"panda_finger_joint{k + 1}"
            robot.prismatic(joint, "panda_hand", finger, at=(0.0, 0.0, 0.0584), axis=axis, limits=(0.0, 0.04))
            y = 0.01 if side == "left" else -0.01
            # the boxes enclose Franka's finger, but end 1 mm or more before the middle, so that a closed hand has no
            # collision
            knuckle, tip = (0.0, 1.42 * y, 0.0107), (0.0, 1.02 * y, 0.0356)
            robot.link(
                finger,
                visuals=[block((0.0, y, 0.022), (0.018, 0.016, 0.045), DARK)],
                collisions=[block(knuckle, (0.022, 0.0236, 0.0207), DARK), block(tip, (0.0175, 0.0184, 0.0379), DARK)],
            )
        robot.couple("panda_finger_joint2", "panda_finger_joint1")
        robot.link("panda_hand", visuals=[block((0.0, 0.0, 0.033), (0.05, 0.2, 0.066), WHITE)])
        home.append(0.02)
    arm = set_collision_capsules(add_default_shapes(robot.build(), 0.06, 0.045, WHITE, DARK), PANDA_CAPSULES)
    arm.extras["limits"] = {f"panda_joint{k}": {"velocity": 2.175 if k < 5 else 2.61} for k in range(1, 8)}
    arm.allowed_collisions = {
        pair: reason for pair, reason in PANDA_ALLOWED_COLLISIONS.items() if all(name in arm.links for name in pair)
    }
    return set_home(arm, home)


def ur5() -> Mechanism:
    """Make a Universal Robots UR5: six revolute joints, lengths of the maker's DH table, frames of ur_description.

    Returns:
        The arm, with the links base_link to wrist_3_link and tool0.

    Example:
        >>> mk.gallery.ur5().nq
        6
    """
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
        capsules=UR5_CAPSULES,
        allowed_collisions=UR5_ALLOWED_COLLISIONS,
    )


def ur10() -> Mechanism:
    """Make a Universal Robots UR10: six revolute joints, lengths of the maker's DH table, frames of ur_description.

    Returns:
        The arm, with the links base_link to wrist_3_link and tool0.

    Example:
        >>> mk.gallery.ur10().nq
        6
    """
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
        capsules=UR10_CAPSULES,
        allowed_collisions=UR10_ALLOWED_COLLISIONS,
    )


def iiwa14() -> Mechanism:
    """Make a KUKA LBR iiwa 14 R820: seven revolute joints.

    Lengths (360, 420, 400 and 126 mm to the flange) and limits (170, 120 and 175 degrees) are from the data sheet. The
    frames of the links are those of the iiwa_stack description.

    Returns:
        The arm, with the links iiwa_link_0 to iiwa_link_7 and iiwa_link_ee.

    Example:
        >>> mk.gallery.iiwa14().nq
        7
    """
    limit_170, limit_120, limit_175 = math.radians(170), math.radians(120), math.radians(175)
    robot = _build_serial_chain(
        "iiwa14",
        "iiwa_link_0",
        [
            ("iiwa_joint_1", "iiwa_link_1", (0.0, 0.0, 0.1575), (0, 0, 0), "z", -limit_170, limit_170),
            ("iiwa_joint_2", "iiwa_link_2", (0.0, 0.0, 0.2025), (1, 0, 2), "z", -limit_120, limit_120),
            ("iiwa_joint_3", "iiwa_link_3", (0.0, 0.2045, 0.0), (1, 0, 2), "z", -limit_170, limit_170),
            ("iiwa_joint_4", "iiwa_link_4", (0.0, 0.0, 0.2155), (1, 0, 0), "z", -limit_120, limit_120),
            ("iiwa_joint_5", "iiwa_link_5", (0.0, 0.1845, 0.0), (-1, 2, 0), "z", -limit_170, limit_170),
            ("iiwa_joint_6", "iiwa_link_6", (0.0, 0.0, 0.2155), (1, 0, 0), "z", -limit_120, limit_120),
            ("iiwa_joint_7", "iiwa_link_7", (0.0, 0.081, 0.0), (-1, 2, 0), "z", -limit_175, limit_175),
        ],
    )
    robot.fixed("iiwa_joint_ee", "iiwa_link_7", "iiwa_link_ee", at=(0.0, 0.0, 0.045))
    home = [0.0, 0.6, 0.0, -1.4, 0.0, 1.1, 0.0]
    return set_home(add_default_shapes(robot.build(), 0.068, 0.045, ORANGE, GREY), home)


def puma560() -> Mechanism:
    """Make a Unimation Puma 560: six revolute joints, with the shoulder at the origin.

    The classic DH table and the limits relative to its zero configuration are from P. Corke and B. Armstrong-Hélouvry,
    "A search for consensus among model parameters reported for the PUMA 560 robot", ICRA 1994.

    Returns:
        The arm, with the links link0 to link6 and tool.

    Example:
        >>> list(mk.gallery.puma560().joints)[:3]
        ['waist', 'shoulder', 'elbow']
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
    add_shapes(arm.link("link0"), rod((0.0, 0.0, -0.66), (0.0, 0.0, -0.05), 0.08, DARK))
    return set_home(add_default_shapes(arm, 0.07, 0.03, GREY, DARK), [0.0, 0.8, -2.4, 0.0, 0.6, 0.0])


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
    capsules: Mapping[str, list[CapsuleSpec]],
    allowed_collisions: Mapping[tuple[str, str], str],
) -> Mechanism:
    """Build an arm of the UR family.

    Args:
        name: name of the mechanism.
        column, upper_arm, forearm: lengths along the arm; m.
        shoulder, elbow: sideways offsets of the shoulder lift joint (along y) and of the elbow joint (along -y); m.
        wrists: offsets from wrist joint 1 to 2, from 2 to 3, and from 3 to the tool; m.
        radius: radius of the drawn links at the base; m.
        velocities: velocity limits of the two shoulder joints, and of the other joints; degrees per second.
        capsules: collision capsules by link name.
        allowed_collisions: link pairs that are not checked for collisions, with reasons.
    """
    half_turn, full_turn = math.pi, 2 * math.pi
    robot = _build_serial_chain(
        name,
        "base_link",
        [
            ("shoulder_pan_joint", "shoulder_link", (0.0, 0.0, column), (0, 0, 0), "z", -full_turn, full_turn),
            ("shoulder_lift_joint", "upper_arm_link", (0.0, shoulder, 0.0), (0, 1, 0), "y", -full_turn, full_turn),
            ("elbow_joint", "forearm_link", (0.0, -elbow, upper_arm), (0, 0, 0), "y", -half_turn, half_turn),
            ("wrist_1_joint", "wrist_1_link", (0.0, 0.0, forearm), (0, 1, 0), "y", -full_turn, full_turn),
            ("wrist_2_joint", "wrist_2_link", (0.0, wrists[0], 0.0), (0, 0, 0), "z", -full_turn, full_turn),
            ("wrist_3_joint", "wrist_3_link", (0.0, 0.0, wrists[1]), (0, 0, 0), "y", -full_turn, full_turn),
        ],
    )
    robot.fixed(
        "wrist_3_link-tool0_fixed_joint",
        "wrist_3_link",
        "tool0",
        at=_pose_from_quarter_turns((0.0, wrists[2], 0.0), (-1, 0, 0)),
    )
    home = [0.0, -1.2, 1.4, -1.75, -math.pi / 2, 0.0]
    arm = set_collision_capsules(add_default_shapes(robot.build(), radius, 0.7 * radius, GREY, BLUE), capsules)
    velocity_limits = {
        joint_name: velocities[k > 1]
        for k, joint_name in enumerate(name for name, joint in arm.joints.items() if joint.dof)
    }
    arm.extras["limits"] = {joint: {"velocity": math.radians(limit)} for joint, limit in velocity_limits.items()}
    arm.allowed_collisions = allowed_collisions
    return set_home(arm, home)


def _build_serial_chain(name: str, root: str, rows: Sequence[JointRow]) -> Builder:
    """Return a builder with a chain of revolute joints, one for each row."""
    robot, parent = Builder(name), root
    for joint, link, xyz, rpy, axis, lower, upper in rows:
        robot.revolute(joint, parent, link, at=_pose_from_quarter_turns(xyz, rpy), axis=axis, limits=(lower, upper))
        parent = link
    return robot


def _pose_from_quarter_turns(xyz: Vector, quarter_turns: Vector) -> Array:
    """Return the pose (4, 4) from xyz (m) and roll, pitch, yaw in quarter turns, with the rpy convention of URDF."""
    rpy = [angle * math.pi / 2 for angle in quarter_turns]
    return make_pose(euler.matrix_from_euler(rpy, order="xyz", axes="fixed"), xyz)


def planar_2r(lengths: tuple[float, float] = (1.0, 0.8)) -> Mechanism:
    """Make a planar arm with two revolute joints about z, each with limits -pi to pi.

    Args:
        lengths: link lengths; m.

    Returns:
        The arm, with the links link0 to link2 and tool.

    Raises:
        FormatError: a length is invalid, or their number is not two.

    Example:
        >>> arm = mk.gallery.planar_2r((1.0, 0.8))
        >>> arm.pose("tool", [0.0, 0.0])[:3, 3].round(3).tolist()
        [1.8, 0.0, 0.0]
    """
    return _planar_arm("planar_2r", lengths, [0.5, 0.9])


def planar_3r(lengths: tuple[float, float, float] = (1.0, 0.8, 0.5)) -> Mechanism:
    """Make a planar arm with three revolute joints about z; a point goal in the plane leaves one redundant dof.

    Args:
        lengths: link lengths; m.

    Returns:
        The arm, with the links link0 to link3 and tool.

    Raises:
        FormatError: a length is invalid, or their number is not three.

    Example:
        >>> mk.gallery.planar_3r().nq
        3
    """
    return _planar_arm("planar_3r", lengths, [0.4, 0.7, 0.6])


def scara() -> Mechanism:
    """Make a SCARA arm of the size of an Adept Cobra 600: joints R, R, P, R, with the tool pointing down.

    Column 0.387 m, links 0.325 and 0.275 m and stroke 0.21 m are from the table in P. Corke's Robotics Toolbox; the
    limits are typical for such arms.

    Returns:
        The arm, with the joints shoulder, elbow, quill and spin.

    Example:
        >>> mk.gallery.scara().nq
        4
    """
    arm = from_dh(
        [[0.387, 0.325, 0, 0], [0.0, 0.275, 180, 0], [0.0, 0.0, 0, 0], [0.0, 0.0, 0, 0]],
        convention="classic",
        columns="d a alpha theta",
        degrees=True,
        kinds="RRPR",
        limits=[(-105, 105), (-150, 150), (0.0, 0.21), (-360, 360)],
        joints=["shoulder", "elbow", "quill", "spin"],
        links=["column", "upper_arm", "forearm", "quill", "chuck", "tool"],
        name="scara",
    )
    # z points down from the forearm on; the quill extends above the forearm by more than its stroke
    add_shapes(arm.link("quill"), rod((0.0, 0.0, -0.26), (0.0, 0.0, 0.0), 0.012, GREY))
    add_shapes(arm.link("chuck"), rod((0.0, 0.0, -0.03), (0.0, 0.0, 0.0), 0.022, DARK))
    return set_home(add_default_shapes(arm, 0.05, 0.035, BLUE, DARK), [0.5, 0.9, 0.08, 0.0])


def _planar_arm(name: str, lengths: tuple[float, ...], home: list[float]) -> Mechanism:
    if len(lengths) != len(home):
        raise FormatError(f"{name} has {len(home)} links; lengths must have {len(home)} entries, not {len(lengths)}")
    arm = arm_2d(lengths, name=name, limits=(-math.pi, math.pi))
    radius = 0.03 * sum(lengths) / len(lengths)
    last_link = arm.link(f"link{len(lengths)}")
    add_default_shapes(arm, radius, radius, ORANGE, DARK)
    add_shapes(last_link, capsule((lengths[-1], 0.0, -radius), (lengths[-1], 0.0, radius), 0.8 * radius, DARK))
    return set_home(arm, home)


def rail_arm() -> Mechanism:
    """Make a six-axis arm with a spherical wrist on a rail of 2 m along y.

    Returns:
        The arm, with 7 dofs; the prismatic joint "rail" is the first.

    Example:
        >>> mk.gallery.rail_arm().nq
        7
    """
    arm = Builder("rail_arm")
    arm.prismatic("rail", "base", "carriage", axis="y", limits=(-1.0, 1.0))
    for joint, parent, link, height, axis, degrees in (
        ("waist", "carriage", "column", 0.4, "z", 170),
        ("shoulder", "column", "upper_arm", 0.0, "y", 120),
        ("elbow", "upper_arm", "forearm", 0.45, "y", 150),
        ("roll", "forearm", "wrist", 0.2, "z", 170),
        ("pitch", "wrist", "palm", 0.2, "y", 120),
        ("spin", "palm", "flange", 0.0, "z", 350),
    ):
        max_angle = math.radians(degrees)
        arm.revolute(joint, parent, link, at=(0.0, 0.0, height), axis=axis, limits=(-max_angle, max_angle))
    arm.fixed("mount", "flange", "tool", at=(0.0, 0.0, 0.1))
    return set_home(add_default_shapes(arm.build(), 0.05, 0.04, BLUE, DARK), [0.0, 0.0, 0.4, 0.9, 0.0, 0.8, 0.0])


def snake(joints: int = 30) -> Mechanism:
    """Make a hyper-redundant arm of 1 m with equal links and the joint axes z, y, y, z, y, y, ...

    Args:
        joints: number of joints, at least 1.

    Returns:
        The arm.

    Raises:
        StructureError: `joints` is not an integer of at least 1.

    Example:
        >>> mk.gallery.snake(12).nq
        12
    """
    if not isinstance(joints, int) or joints < 1:
        raise StructureError(f"snake: joints must be an integer of at least 1, not {joints!r}")
    arm = arm_3d([1.0 / joints] * joints, ("zyy" * joints)[:joints], limits=(-2.0, 2.0), name="snake")
    return set_home(
        add_default_shapes(arm, 0.02, 0.016, BLUE, DARK), [0.0 if k % 3 == 0 else 3.0 / joints for k in range(joints)]
    )


ZALO_JOINTS = (
    # joint, link, position in the frame of the previous link (m, y up), axis, symmetric limit (degrees)
    ("first_joint", "first", (0.0, 0.1152001, 0.0), "y", 180),
    ("second_joint", "second", (-0.0655, 0.046, 0.0), "x", 90),
    ("third_joint", "third", (0.01247041, 0.3202634, -0.000739485), "x", 150),
    ("fourth_joint", "fourth", (0.02984276, 0.3001859, 0.0), "x", 130),
    ("fifth_joint", "fifth", (0.04333822, 0.04200262, 0.0), "y", 180),
)
"""Joints of `zalo5`."""
ZALO_BOXES = (
    # link, centre (m), size (m)
    ("base", (0.0, 0.05, 0.0), (0.05, 0.1, 0.05)),
    ("first", (0.0, 0.025, 0.0), (0.1, 0.1, 0.1)),
    ("second", (-0.03450041, 0.147, 0.0), (0.1, 0.45, 0.1)),
    ("third", (0.028, 0.1514, 0.0), (0.05, 0.35, 0.05)),
    ("fourth", (0.048, 0.0017, 0.0), (0.05, 0.05, 0.05)),
    ("fifth", (0.03156178, 0.003, 0.0), (0.1, 0.035, 0.035)),
)
"""Shapes of the links of `zalo5`."""


def zalo5() -> Mechanism:
    """Make the five-joint arm of a demonstration of cyclic coordinate descent with hinges and limits.

    The original has y up, and its unit of length is 0.01 m. Here the base is rotated so that z is up.

    Returns:
        The arm, with the links world, base, first to fifth, and effector.

    Example:
        >>> mk.gallery.zalo5().nq
        5
    """
    robot = Builder("zalo5")
    robot.fixed("base_joint", "world", "base", at=make_pose(rotation.about_x(math.pi / 2), (0.0, 0.0, 0.0)))
    parent = "base"
    for joint, link, at, axis, limit in ZALO_JOINTS:
        max_angle = math.radians(limit)
        robot.revolute(joint, parent, link, at=at, axis=axis, limits=(-max_angle, max_angle))
        parent = link
    robot.fixed("effector_fix", "fifth", "effector", at=(0.083, 0.01, 0.0))
    for k, (link, at, size) in enumerate(ZALO_BOXES):
        robot.link(link, visuals=[block(at, size, (GREY, ORANGE)[k % 2])])
    return set_home(robot.build(), [0.5, 0.4, 0.8, 0.5, 0.0])


def dh6() -> Mechanism:
    """Make the six-joint arm of a demonstration of modified DH tables, at a tenth of the original size.

    q consists of the angles theta of the table.

    Returns:
        The arm, with the joints j0 to j5.

    Example:
        >>> mk.gallery.dh6().nq
        6
    """
    arm = from_dh(
        [
            [0.5, 0.0, -90, 0],
            [0.0, 0.2, 90, 125],
            [0.0, 1.5, 0, -35],
            [1.5, 0.2, 90, 0],
            [0.0, 0.0, -90, 90],
            [0.2, 0.0, -90, 0],
        ],
        convention="modified",
        columns="d a alpha theta",
        degrees=True,
        theta="start",
        limits=[(-360, 360)] * 6,
        joints=[f"j{i}" for i in range(6)],
        name="dh6",
    )
    return set_home(add_default_shapes(arm, 0.12, 0.06, BLUE, DARK))


def grippy10() -> Mechanism:
    """Make a ten-joint arm with box links, a tenth as large as the arm of the demonstration from which it is taken.

    Returns:
        The arm, with the joints q0 to q9 and the links seg0 to seg10 and tool.

    Example:
        >>> mk.gallery.grippy10().nq
        10
    """
    lengths = [0.1, 0.1, 0.4, 0.4, 0.1, 0.4, 0.4, 0.1, 0.2, 0.2]
    half_turn, full_turn = (-math.pi, math.pi), (-2 * math.pi, 2 * math.pi)
    limits = [full_turn if i in (0, 3) else half_turn for i in range(10)]
    arm = arm_3d(lengths, "zyyzyyzyyz", name="grippy10", limits=limits)
    for i in range(11):
        arm.link(f"link{i}").name = f"seg{i}"
    for i in range(10):
        arm.joint(f"joint{i + 1}").name = f"q{i}"
    for i, length in enumerate(lengths):
        add_shapes(arm.link(f"seg{i}"), block((0.0, 0.0, length / 2), (0.12, 0.12, length), (RED, GREY)[i % 2]))
    add_shapes(arm.link("seg10"), block((0.0, 0.0, 0.02), (0.06, 0.12, 0.04), DARK))
    return set_home(arm, [0.0, 0.4, 0.5, 0.0, 0.6, 0.5, 0.0, 0.4, 0.3, 0.0])


SHOULDER_HEIGHT, UPPER_ARM, FOREARM, HAND = 0.36, 0.42, 0.40, 0.126
"""Lengths of a KUKA LBR iiwa 14, m: from the table to the shoulder, upper arm, forearm, from the wrist to the flange.
"""
HOME_PITCHES = (0.1, 2.1, math.pi / 2 - 2.2)
"""Pitch of shoulder, elbow and wrist at home, rad; their sum is pi/2, so that the hand is horizontal."""


def two_arms(joints: Literal[6, 7] = 7, box: float = 0.3) -> Mechanism:
    """Make two arms that face each other and hold a box: 8 dofs with 7 joints each, 6 dofs with 6 joints each.

    With 7 joints, six of the 14 - 6 = 8 dofs move the box, and two rotate the elbows about the lines from shoulder to
    wrist (self-motion). With 6 joints the upper arms cannot roll, and the pose of the box determines the positions of
    the elbows. The box is fixed to the left hand, and a rigid closure connects the box to the right hand. The left arm
    is at negative x. At home the box is level: its z points up, and its x points to the right arm.

    Args:
        joints: number of joints of each arm, 6 or 7.
        box: length of the box between the hands; m.

    Returns:
        The mechanism, with a single closure "right_grip" and the link "box".

    Raises:
        StructureError: an argument is invalid.

    Example:
        >>> mk.mobility(mk.gallery.two_arms(7)).dof, mk.mobility(mk.gallery.two_arms(6)).dof
        (8, 6)
    """
    if joints not in (6, 7):
        raise StructureError(f"two_arms: joints must be 6 or 7, not {joints!r}")
    check_positive_numbers("two_arms", box=box)
    upper_arm_pitch, forearm_pitch, hand_pitch = np.cumsum(HOME_PITCHES)
    reach = UPPER_ARM * math.sin(upper_arm_pitch) + FOREARM * math.sin(forearm_pitch) + HAND * math.sin(hand_pitch)
    robot = Builder("two_arms")
    for side, sign in (("left", -1.0), ("right", 1.0)):
        X_world_base = make_pose(rotation.about_z(0.0 if sign < 0 else math.pi), (sign * (reach + box / 2), 0.0, 0.0))
        robot.fixed(f"{side}_mount", "world", f"{side}_base", at=X_world_base)
        rows = (
            # joint, link, height above the previous joint (m), axis, limit (degrees), home (rad)
            ("waist", "shoulder", 0.0, "z", 170, 0.0),
            ("shoulder_pitch", "upper_arm", SHOULDER_HEIGHT, "y", 120, HOME_PITCHES[0]),
            ("upper_arm_roll", "elbow", 0.0, "z", 170, 0.0),
            ("elbow_pitch", "forearm", UPPER_ARM, "y", 150, HOME_PITCHES[1]),
            ("forearm_roll", "wrist", 0.0, "z", 170, 0.0),
            ("wrist_pitch", "palm", FOREARM, "y", 120, HOME_PITCHES[2]),
            ("hand_roll", "hand", 0.0, "z", 175, 0.0),
        )
        parent = f"{side}_base"
        for joint, link, height, axis, degrees, value in rows:
            if joints == 6 and joint == "upper_arm_roll":
                continue
            max_angle = math.radians(degrees)
            child = f"{side}_{link}"
            robot.revolute(
                f"{side}_{joint}",
                parent,
                child,
                at=(0.0, 0.0, height),
                axis=axis,
                limits=(-max_angle, max_angle),
                value=value,
            )
            parent = child
    # z of the hand points to the box, and its x points down
    R_hand_box = rotation.about_y(-math.pi / 2)
    robot.fixed("grip", "left_hand", "box", at=make_pose(R_hand_box, (0.0, 0.0, HAND + box / 2)))
    robot.close("right_grip", "right_hand", "box", "weld", at=(0.0, 0.0, HAND))
    table_size = (2 * reach + box + 0.4, 0.5, 0.04)
    robot.link("world", visuals=[block((0.0, 0.0, -0.02), table_size, GREY)])
    mechanism = add_default_shapes(robot.build(), 0.06, 0.05, BLUE, DARK)
    add_shapes(mechanism.link("box"), block((0.0, 0.0, 0.0), (box, 0.7 * box, 0.5 * box), ORANGE))
    return set_home(mechanism)
