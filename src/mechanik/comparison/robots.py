"""What is compared on: one robot of each class that people have, and anybody's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mechanik import gallery
from mechanik.errors import StructureError, UnknownName
from mechanik.formats import arm_3d, from_dh
from mechanik.mechanism import Builder, Joint, Link, Mechanism

FULL = (-math.pi, math.pi)
ENDS = ("tcp", "tool", "effector", "gripper", "flange", "tip", "hand", "ee", "platform")
"""Words that people call the end of an arm by, the most telling first."""


@dataclass(frozen=True, slots=True, eq=False)
class Robot:
    """
    Attributes:
        name: by which it is chosen.
        title: for people.
        mechanism: stands with its loops shut.
        ends: the links that are sent somewhere.
    """

    name: str
    title: str
    mechanism: Mechanism
    ends: tuple[str, ...]


def planar() -> Robot:
    return Robot("3r_planar", "3R planar", gallery.planar_3r(), ("tool",))


def five() -> Robot:
    return Robot("5r_seed", "5R (zalo5)", gallery.zalo5(), ("effector",))


def wrist() -> Robot:
    return Robot("6r_wrist", "6R wrist (Puma 560)", gallery.puma560(), ("tool",))


def general() -> Robot:
    """No two axes meet or are parallel, so that no closed form is simple. The numbers were drawn once."""
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
    return Robot("6r_general", "6R general", arm, (find_end(arm),))


def seven() -> Robot:
    return Robot("7r", "7R (Panda)", gallery.panda(hand=False), ("panda_link8",))


def ten() -> Robot:
    arm = gallery.grippy10()
    return Robot("10r_seed", "10R (grippy10)", arm, (find_end(arm),))


def thirty() -> Robot:
    return _snake(30, 1.0)


def hundred() -> Robot:
    return _snake(100, 0.6)


def prismatic() -> Robot:
    """V. Scheinman's Stanford arm of 1969: turn, turn, slide, wrist; lengths as in P. Corke's Robotics Toolbox."""
    arm = from_dh(
        [[0.412, 0, -90, 0], [0.154, 0, 90, 0], [0, 0, 0, -90], [0, 0, -90, 0], [0, 0, 90, 0], [0.263, 0, 0, 0]],
        convention="classic",
        columns="d a alpha theta",
        degrees=True,
        kinds="RRPRRR",
        limits=[(-170, 170), (-170, 170), (0.305, 1.27), (-170, 170), (-90, 90), (-170, 170)],
        name="stanford_arm",
    )
    return Robot("prismatic", "with prismatic (Stanford arm)", arm, (find_end(arm),))


def two_hands() -> Robot:
    """A waist of two joints that both arms share, and six joints in each arm."""
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
    return Robot("two_hands", "tree with two hands", robot.build(), ("left_hand", "right_hand"))


def closed_loop() -> Robot:
    return Robot("closed_loop", "closed loop (Stewart platform)", gallery.stewart_platform(), ("platform",))


ROBOTS: dict[str, Callable[[], Robot]] = {
    "3r_planar": planar,
    "5r_seed": five,
    "6r_wrist": wrist,
    "6r_general": general,
    "7r": seven,
    "10r_seed": ten,
    "30r": thirty,
    "100r": hundred,
    "prismatic": prismatic,
    "two_hands": two_hands,
    "closed_loop": closed_loop,
}
"""The classes, by the names that `compare` takes."""


def make_robot(name: str) -> Robot:
    """One of `ROBOTS`, made afresh."""
    if name not in ROBOTS:
        raise UnknownName("robot to compare on", name, ROBOTS)
    return ROBOTS[name]()


def own_robot(mechanism: Mechanism, links: Iterable[str] = (), taken: Iterable[str] = ()) -> Robot:
    """Somebody's own mechanism, with the links that are sent somewhere: those named, or the one that looks like it.

    Args:
        taken: names that other robots have already.
    """
    ends = tuple(links) or (find_end(mechanism),)
    for end in ends:
        mechanism.link(end)
    if not mechanism.nq:
        raise StructureError(f"nothing moves in {mechanism.name or 'the mechanism'}, so there is nothing to solve")
    name = _unlike(mechanism.name or "mechanism", set(taken))
    return Robot(name, f"{name}: {', '.join(ends)}", mechanism, ends)


def find_end(mechanism: Mechanism) -> str:
    """The link that people would call the end: one with a telling name, else the one that most freedoms move."""
    moved = {name: _freedoms_above(link) for name, link in mechanism.links.items()}
    tips = [name for name, link in mechanism.links.items() if moved[name] and not _carries_anything(link)]
    if not tips:
        raise StructureError(f"no link of {mechanism.name or 'the mechanism'} is moved by a joint; name one by link=")

    def telling(name: str) -> int:
        words = name.lower().replace("-", "_").split("_")
        return next((len(ENDS) - k for k, word in enumerate(ENDS) if word in words or word in name.lower()), 0)

    return max(tips, key=lambda name: (telling(name), moved[name]))


def _snake(joints: int, bend: float) -> Robot:
    """Two metres of equal links; the axes take turns, and each joint bends by at most `bend` rad."""
    arm = arm_3d([2.0 / joints] * joints, ("zyx" * joints)[:joints], name=f"snake_{joints}", limits=(-bend, bend))
    return Robot(f"{joints}r", f"{joints}R", arm, ("tool",))


def _freedoms_above(link: Link) -> int:
    count, frame = 0, link.parent
    while frame is not None:
        count += len(frame.dof) if isinstance(frame, Joint) else 0
        frame = frame.parent
    return count


def _carries_anything(link: Link) -> bool:
    """Whether a joint that belongs to the tree hangs on it."""
    return any(isinstance(child, Joint) and not child.is_closure for child in link.children)


def _unlike(name: str, taken: set[str] | Sequence[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found
