"""Robots of the benchmark: a built-in robot of each class, and mechanisms of the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mechanik import gallery
from mechanik.errors import StructureError, UnknownName
from mechanik.formats import arm_3d, from_dh
from mechanik.model import Builder, Joint, Link, Mechanism

FULL_TURN = (-math.pi, math.pi)
TIP_LINK_WORDS = ("tcp", "tool", "effector", "gripper", "flange", "tip", "hand", "ee", "platform")
"""Words in names of tip links, the most specific first."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkRobot:
    """A robot of the benchmark, with the links that shall reach targets.

    Attributes:
        name: name that `compare` takes.
        title: title in tables and reports.
        mechanism: the mechanism, with its loops closed.
        tip_links: names of the links that shall reach targets.

    Example:
        >>> robot = mk.comparison.ROBOTS["3r_planar"]()
        >>> robot.title, robot.tip_links
        ('3R planar', ('tool',))
    """

    name: str
    title: str
    mechanism: Mechanism
    tip_links: tuple[str, ...]


def planar_3r() -> BenchmarkRobot:
    return BenchmarkRobot("3r_planar", "3R planar", gallery.planar_3r(), ("tool",))


def arm_5r() -> BenchmarkRobot:
    return BenchmarkRobot("5r_seed", "5R (zalo5)", gallery.zalo5(), ("effector",))


def arm_6r_wrist() -> BenchmarkRobot:
    return BenchmarkRobot("6r_wrist", "6R wrist (Puma 560)", gallery.puma560(), ("tool",))


def arm_6r_general() -> BenchmarkRobot:
    """Make a 6R arm with no intersecting or parallel axes, so that it has no simple closed form.

    Its DH parameters are random numbers that were drawn once.
    """
    rows = [
        [0.32, 0.11, -74, 0],
        [0.08, 0.43, 21, 0],
        [-0.06, 0.09, -63, 0],
        [0.38, -0.07, 58, 0],
        [0.05, 0.06, -81, 0],
        [0.11, 0.03, 35, 0],
    ]
    arm = from_dh(
        rows,
        convention="classic",
        columns="d a alpha theta",
        degrees=True,
        limits=[(-180, 180)] * 6,
        name="general_6r",
    )
    return BenchmarkRobot("6r_general", "6R general", arm, (find_tip_link(arm),))


def arm_7r() -> BenchmarkRobot:
    return BenchmarkRobot("7r", "7R (Panda)", gallery.panda(hand=False), ("panda_link8",))


def arm_10r() -> BenchmarkRobot:
    arm = gallery.grippy10()
    return BenchmarkRobot("10r_seed", "10R (grippy10)", arm, (find_tip_link(arm),))


def arm_30r() -> BenchmarkRobot:
    return _snake(30, 1.0)


def arm_100r() -> BenchmarkRobot:
    return _snake(100, 0.6)


def stanford_arm() -> BenchmarkRobot:
    """Make V. Scheinman's Stanford arm of 1969 (RRPRRR), with the lengths of P. Corke's Robotics Toolbox."""
    arm = from_dh(
        [[0.412, 0, -90, 0], [0.154, 0, 90, 0], [0, 0, 0, -90], [0, 0, -90, 0], [0, 0, 90, 0], [0.263, 0, 0, 0]],
        convention="classic",
        columns="d a alpha theta",
        degrees=True,
        kinds="RRPRRR",
        limits=[(-170, 170), (-170, 170), (0.305, 1.27), (-170, 170), (-90, 90), (-170, 170)],
        name="stanford_arm",
    )
    return BenchmarkRobot("prismatic", "with prismatic (Stanford arm)", arm, (find_tip_link(arm),))


def two_arm_tree() -> BenchmarkRobot:
    """Make a tree with two 6R arms on a common waist with two joints."""
    robot = Builder("two_hands")
    robot.revolute("waist_yaw", "base", "hips", at=(0.0, 0.0, 0.2), axis="z", limits=(-1.5, 1.5))
    robot.revolute("waist_pitch", "hips", "chest", at=(0.0, 0.0, 0.1), axis="y", limits=(-0.6, 1.0))
    for side, y in (("left", 0.2), ("right", -0.2)):
        above = "chest"
        for name, at, axis, low, high in (
            ("shoulder_pitch", (0.0, y, 0.4), "y", -2.8, 1.2),
            ("shoulder_roll", (0.0, 0.0, 0.0), "x", -1.6, 1.6),
            ("shoulder_yaw", (0.0, 0.0, -0.1), "z", -1.8, 1.8),
            ("elbow", (0.0, 0.0, -0.2), "y", -2.5, 0.0),
            ("forearm_yaw", (0.0, 0.0, -0.1), "z", -2.0, 2.0),
            ("wrist", (0.0, 0.0, -0.16), "y", -1.4, 1.4),
        ):
            joint, link = f"{side}_{name}", f"{side}_{name}_link"
            robot.revolute(joint, above, link, at=at, axis=axis, limits=(low, high))
            above = link
        robot.fixed(f"{side}_hand_joint", above, f"{side}_hand", at=(0.0, 0.0, -0.12))
    return BenchmarkRobot("two_hands", "tree with two hands", robot.build(), ("left_hand", "right_hand"))


def stewart_platform_robot() -> BenchmarkRobot:
    return BenchmarkRobot("closed_loop", "closed loop (Stewart platform)", gallery.stewart_platform(), ("platform",))


ROBOTS: dict[str, Callable[[], BenchmarkRobot]] = {
    "3r_planar": planar_3r,
    "5r_seed": arm_5r,
    "6r_wrist": arm_6r_wrist,
    "6r_general": arm_6r_general,
    "7r": arm_7r,
    "10r_seed": arm_10r,
    "30r": arm_30r,
    "100r": arm_100r,
    "prismatic": stanford_arm,
    "two_hands": two_arm_tree,
    "closed_loop": stewart_platform_robot,
}
"""Built-in robots: functions that make them, by the names that `compare` takes."""


def make_robot(name: str) -> BenchmarkRobot:
    """Make a new robot of `ROBOTS` by name; raises `UnknownName` for other names."""
    if name not in ROBOTS:
        raise UnknownName("robot to compare on", name, ROBOTS)
    return ROBOTS[name]()


def user_robot(mechanism: Mechanism, links: Iterable[str] = (), used_names: Iterable[str] = ()) -> BenchmarkRobot:
    """Make a benchmark robot from a mechanism of the user.

    Args:
        links: links that shall reach targets; empty: the link that `find_tip_link` returns.
        used_names: names of other robots; a number makes the new name different.

    Raises:
        StructureError: the mechanism has no dofs.
    """
    ends = tuple(links) or (find_tip_link(mechanism),)
    for end in ends:
        mechanism.link(end)
    if not mechanism.nq:
        raise StructureError(f"nothing moves in {mechanism.name or 'the mechanism'}, so there is nothing to solve")
    name = _unique_name(mechanism.name or "mechanism", set(used_names))
    return BenchmarkRobot(name, f"{name}: {', '.join(ends)}", mechanism, ends)


def find_tip_link(mechanism: Mechanism) -> str:
    """Return the most likely tip link of a mechanism.

    Candidates are moving links without a child joint. A name with a word of `TIP_LINK_WORDS` comes first, then the
    largest number of dofs that move the link.

    Raises:
        StructureError: no joint moves a link.
    """
    moved = {name: _dofs_above(link) for name, link in mechanism.links.items()}
    tips = [name for name, link in mechanism.links.items() if moved[name] and not _carries_anything(link)]
    if not tips:
        raise StructureError(f"no link of {mechanism.name or 'the mechanism'} is moved by a joint; name one by link=")

    def telling(name: str) -> int:
        words = name.lower().replace("-", "_").split("_")
        return next(
            (len(TIP_LINK_WORDS) - k for k, word in enumerate(TIP_LINK_WORDS) if word in words or word in name.lower()),
            0,
        )

    return max(tips, key=lambda name: (telling(name), moved[name]))


def _snake(joints: int, bend: float) -> BenchmarkRobot:
    """Make a 2 m long arm of equal links with the repeating axes z, y, x and joint limits of +-`bend` rad."""
    arm = arm_3d([2.0 / joints] * joints, ("zyx" * joints)[:joints], name=f"snake_{joints}", limits=(-bend, bend))
    return BenchmarkRobot(f"{joints}r", f"{joints}R", arm, ("tool",))


def _dofs_above(link: Link) -> int:
    count, frame = 0, link.parent
    while frame is not None:
        count += len(frame.dof) if isinstance(frame, Joint) else 0
        frame = frame.parent
    return count


def _carries_anything(link: Link) -> bool:
    """Whether the link has a child joint in the kinematic tree."""
    return any(isinstance(child, Joint) and not child.is_closure for child in link.children)


def _unique_name(name: str, used_names: set[str] | Sequence[str]) -> str:
    number, unique = 1, name
    while unique in used_names:
        number += 1
        unique = f"{name} {number}"
    return unique
