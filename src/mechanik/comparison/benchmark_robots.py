"""Robots of the benchmark: built-in robots of several classes, and mechanisms of the user with their tip links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mechanik import gallery
from mechanik.errors import StructureError, UnknownName
from mechanik.formats import arm_3d, from_dh
from mechanik.model import Builder, Joint, Link, Mechanism

TIP_LINK_PATTERNS = (
    "tcp", "tool", "effector", "gripper", "flange", "tip(?![a-z])", "hand(?![a-z])", "eef", "(?<![a-z])ee(?![a-z])",
    "platform", "teeth",
)  # fmt: skip
"""Regular expressions for words in names of tip links, the most specific first. `tip` and `hand` must end a word
(`fingertip`, not `handle`), and `ee` must be a whole word (not `wheel`)."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkRobot:
    """A robot of the benchmark, with the links that must reach targets.

    Attributes:
        name: name of the robot in `compare`.
        title: title in tables and reports.
        mechanism: the mechanism.
        tip_links: names of the links that must reach targets.

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
    """Make a planar arm with three revolute joints."""
    return BenchmarkRobot("3r_planar", "3R planar", gallery.planar_3r(), ("tool",))


def arm_5r() -> BenchmarkRobot:
    """Make the 5R arm zalo5."""
    return BenchmarkRobot("5r_seed", "5R (zalo5)", gallery.zalo5(), ("effector",))


def arm_6r_wrist() -> BenchmarkRobot:
    """Make a Puma 560, a 6R arm with a spherical wrist."""
    return BenchmarkRobot("6r_wrist", "6R wrist (Puma 560)", gallery.puma560(), ("tool",))


def arm_6r_general() -> BenchmarkRobot:
    """Make a 6R arm without intersecting or parallel axes, which has no simple closed form.

    The DH parameters are fixed; they were drawn at random once.
    """
    dh_rows = [
        [0.32, 0.11, -74, 0],
        [0.08, 0.43, 21, 0],
        [-0.06, 0.09, -63, 0],
        [0.38, -0.07, 58, 0],
        [0.05, 0.06, -81, 0],
        [0.11, 0.03, 35, 0],
    ]
    arm = from_dh(
        dh_rows,
        convention="classic",
        columns="d a alpha theta",
        degrees=True,
        limits=[(-180, 180)] * 6,
        name="general_6r",
    )
    return BenchmarkRobot("6r_general", "6R general", arm, (find_tip_link(arm),))


def arm_7r() -> BenchmarkRobot:
    """Make a Panda without its hand, a 7R arm."""
    return BenchmarkRobot("7r", "7R (Panda)", gallery.panda(hand=False), ("panda_link8",))


def arm_10r() -> BenchmarkRobot:
    """Make the 10R arm grippy10."""
    arm = gallery.grippy10()
    return BenchmarkRobot("10r_seed", "10R (grippy10)", arm, (find_tip_link(arm),))


def arm_30r() -> BenchmarkRobot:
    """Make an arm with 30 joints, each limited to +-1 rad."""
    return _snake(30, 1.0)


def arm_100r() -> BenchmarkRobot:
    """Make an arm with 100 joints, each limited to +-0.6 rad."""
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
    """Make a tree: a waist with two joints that carries two 6R arms."""
    robot = Builder("two_hands")
    robot.revolute("waist_yaw", "base", "hips", at=(0.0, 0.0, 0.2), axis="z", limits=(-1.5, 1.5))
    robot.revolute("waist_pitch", "hips", "chest", at=(0.0, 0.0, 0.1), axis="y", limits=(-0.6, 1.0))
    for side, y in (("left", 0.2), ("right", -0.2)):
        parent = "chest"
        for name, at, axis, low, high in (
            ("shoulder_pitch", (0.0, y, 0.4), "y", -2.8, 1.2),
            ("shoulder_roll", (0.0, 0.0, 0.0), "x", -1.6, 1.6),
            ("shoulder_yaw", (0.0, 0.0, -0.1), "z", -1.8, 1.8),
            ("elbow", (0.0, 0.0, -0.2), "y", -2.5, 0.0),
            ("forearm_yaw", (0.0, 0.0, -0.1), "z", -2.0, 2.0),
            ("wrist", (0.0, 0.0, -0.16), "y", -1.4, 1.4),
        ):
            joint, link = f"{side}_{name}", f"{side}_{name}_link"
            robot.revolute(joint, parent, link, at=at, axis=axis, limits=(low, high))
            parent = link
        robot.fixed(f"{side}_hand_joint", parent, f"{side}_hand", at=(0.0, 0.0, -0.12))
    return BenchmarkRobot("two_hands", "tree with two hands", robot.build(), ("left_hand", "right_hand"))


def stewart_platform_robot() -> BenchmarkRobot:
    """Make a Stewart platform, a mechanism with loops."""
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
"""Functions that make the built-in robots, by their names in `compare`."""


def make_robot(name: str) -> BenchmarkRobot:
    """Make a new robot of `ROBOTS` by name; raises `UnknownName` for other names."""
    if name not in ROBOTS:
        raise UnknownName("robot to compare on", name, ROBOTS)
    return ROBOTS[name]()


def user_robot(mechanism: Mechanism, links: Iterable[str] = (), used_names: Iterable[str] = ()) -> BenchmarkRobot:
    """Make a benchmark robot from a mechanism of the user.

    Args:
        links: links that must reach targets; empty: the link that `find_tip_link` returns.
        used_names: names of other robots; if the name of the mechanism is one of these, a number is added.

    Raises:
        UnknownName: the mechanism has no such link.
        StructureError: the mechanism has no dofs.
    """
    tip_links = tuple(links) or (find_tip_link(mechanism),)
    for tip_link in tip_links:
        mechanism.link(tip_link)
    if not mechanism.nq:
        raise StructureError(f"no link of {mechanism.name or 'the mechanism'} can move, so there is nothing to solve")
    name = _unique_name(mechanism.name or "mechanism", set(used_names))
    return BenchmarkRobot(name, f"{name}: {', '.join(tip_links)}", mechanism, tip_links)


def find_tip_link(mechanism: Mechanism) -> str:
    """Return the most likely tip link of a mechanism.

    Candidates are links that can move and have no child joint. The name that matches the most specific of
    `TIP_LINK_PATTERNS` is preferred, then the largest number of dofs that move the link.

    Raises:
        StructureError: no joint moves a link.
    """
    dof_counts = {name: _dof_count_above(link) for name, link in mechanism.links.items()}
    candidates = [name for name, link in mechanism.links.items() if dof_counts[name] and not _has_child_joint(link)]
    if not candidates:
        raise StructureError(f"no link of {mechanism.name or 'the mechanism'} can move, so there is no tip link")

    def pattern_rank(name: str) -> int:
        """Return the rank of the most specific pattern that a name matches, largest for the first; 0 without match."""
        snake_case_name = re.sub("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)  # `leftHand`: `left_Hand`
        words = f"{name} {snake_case_name}".lower()
        return next(
            (len(TIP_LINK_PATTERNS) - k for k, pattern in enumerate(TIP_LINK_PATTERNS) if re.search(pattern, words)), 0
        )

    return max(candidates, key=lambda name: (pattern_rank(name), dof_counts[name]))


def _snake(joint_count: int, max_angle: float) -> BenchmarkRobot:
    """Make a 2 m long arm of equal links with the repeating axes z, y, x and joint limits of +-`max_angle` rad."""
    arm = arm_3d(
        [2.0 / joint_count] * joint_count,
        ("zyx" * joint_count)[:joint_count],
        name=f"snake_{joint_count}",
        limits=(-max_angle, max_angle),
    )
    return BenchmarkRobot(f"{joint_count}r", f"{joint_count}R", arm, ("tool",))


def _dof_count_above(link: Link) -> int:
    """Return the number of dofs between a link and the root."""
    count, frame = 0, link.parent
    while frame is not None:
        count += len(frame.dof) if isinstance(frame, Joint) else 0
        frame = frame.parent
    return count


def _has_child_joint(link: Link) -> bool:
    """Return whether the link has a child joint in the kinematic tree, where joints that close loops do not count."""
    return any(isinstance(child, Joint) and not child.is_closure for child in link.children)


def _unique_name(name: str, used_names: set[str] | Sequence[str]) -> str:
    """Return the name, with a number added if the name is already used."""
    number, unique_name = 1, name
    while unique_name in used_names:
        number += 1
        unique_name = f"{name} {number}"
    return unique_name
