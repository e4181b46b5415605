"""Default goals of a mechanism that is opened, so that there is something to drag.

- Serial arm: a goal at the tip. With a gripper, the goal is on the link that carries the fingers.
- Tree: a goal at the end of each limb. For a floating body, links named as feet are pinned; if there are only feet, the
  body itself has the goal.
- Closed loops: a goal on the link named as tool, platform, pen or similar; else on the link that is most joints away
  from the ground.

The goal is a pose if at least six dofs move it, else a point. A point goal is at the far end of the last link, since a
point at its joint would not depend on that joint.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from mechanik.model import Box, Capsule, Cylinder, Joint, Link, Mechanism, ShapeInstance, Sphere, mobility
from mechanik.spatial.array import Array
from mechanik.studio.messages.requests import GoalKind, Vector
from mechanik.studio.session.loaded_model import can_analyse

END_DISTANCE_RATIO = 1.5
"""Minimum ratio of the farthest side of a link to any other side; a link that is as thick as long has no tip."""


def default_tool_point(link: Link) -> Vector:
    """Return the tip of a link: the middle of the farthest side of the bounding box of its visuals.

    Meshes are ignored.

    Returns:
        The point in the frame of the link, m; the origin if no side is much farther than the others.
    """
    boxes = [box for placed in link.visuals if (box := _box(placed)) is not None]
    if not boxes:
        return 0.0, 0.0, 0.0
    low = np.min([corner for corner, _ in boxes], axis=0)
    high = np.max([corner for _, corner in boxes], axis=0)
    sides = np.concatenate([-low, high])
    farthest = int(np.argmax(sides))
    if sides[farthest] <= END_DISTANCE_RATIO * np.delete(sides, farthest).max():
        return 0.0, 0.0, 0.0
    middle = (low + high) / 2
    axis = farthest % 3
    middle[axis] = (low if farthest < 3 else high)[axis]
    x, y, z = middle.tolist()
    return x, y, z


def _box(placed: ShapeInstance) -> tuple[Array, Array] | None:
    """Return the lowest and the highest corner of a shape in the frame of the link, m; None for a mesh."""
    match placed.shape:
        case Box(size):
            half = np.array(size) / 2
        case Sphere(radius):
            half = np.full(3, radius)
        case Cylinder(radius, length):
            half = np.array([radius, radius, length / 2])
        case Capsule(radius, length):
            half = np.array([radius, radius, length / 2 + radius])
        case _:
            return None
    reach = np.abs(placed.pose.matrix[:3, :3]) @ half
    return placed.pose.position - reach, placed.pose.position + reach


TOOL_WORDS = (
    "tool", "tcp", "effector", "ee", "platform", "pen", "tracer", "teeth", "grasp", "box", "foot", "top", "hand",
)  # fmt: skip
FOOT_WORDS = ("foot", "feet", "sole", "toe", "paw", "hoof")
MAX_DEFAULT_GOALS = 12


@dataclass(frozen=True, slots=True)
class DefaultGoal:
    """A goal that is to be added at the present pose of its link.

    Attributes:
        link: name of the link.
        kind: kind of the goal.
        pinned: whether it is pinned.
        at: point of the link, in the frame of the link, m.
    """

    link: str
    kind: GoalKind
    pinned: bool = False
    at: Vector = (0.0, 0.0, 0.0)


def default_goals(mechanism: Mechanism) -> tuple[DefaultGoal, ...]:
    """Return the goals for a new mechanism, those that can be dragged before those that are pinned."""
    if not mechanism.nv:
        return ()
    body = _floating_body(mechanism)
    if body is not None:
        return _on_body(mechanism, body)
    if mechanism.closures or mechanism.joint_constraints:
        dof = mobility(mechanism).dof if can_analyse(mechanism) else None
        return (DefaultGoal(_end_of_loops(mechanism), _kind(mechanism.nv if dof is None else dof)),)
    return tuple(_at_end(mechanism, end) for end in _limbs(mechanism)[:MAX_DEFAULT_GOALS])


def _at_end(mechanism: Mechanism, name: str) -> DefaultGoal:
    link = mechanism.links[name]
    kind = _kind(_dof_count(mechanism, name))
    is_moved_by_its_joint = isinstance(link.parent, Joint) and len(link.parent.dof) > 0
    return DefaultGoal(
        name, kind, at=default_tool_point(link) if kind == "point" and is_moved_by_its_joint else (0.0, 0.0, 0.0)
    )


def _on_body(mechanism: Mechanism, body: str) -> tuple[DefaultGoal, ...]:
    ends = _leaves(mechanism) if mechanism.closures else _limbs(mechanism)
    feet = [end for end in ends if _has_word(end, FOOT_WORDS)]
    other_ends = [end for end in ends if end not in feet] if feet and not mechanism.closures else []
    goals = [DefaultGoal(end, _kind(_dof_count(mechanism, end, above=body))) for end in other_ends[:MAX_DEFAULT_GOALS]]
    pins = [
        DefaultGoal(end, _kind(_dof_count(mechanism, end, above=body)), pinned=True) for end in feet[:MAX_DEFAULT_GOALS]
    ]
    goals.sort(key=lambda goal: goal.kind != "pose")  # end effectors with six dofs before heads
    return (*(goals or [DefaultGoal(body, "pose")]), *pins)


def _kind(dof_count: int) -> GoalKind:
    return "pose" if dof_count >= 6 else "point"


def _has_word(name: str, words: tuple[str, ...]) -> bool:
    """Return whether a part of the name is one of the words, with or without digits: `left_foot`, `foot3`, `tool0`."""
    parts = name.lower().replace("-", "_").replace(".", "_").split("_")
    return any(part.strip("0123456789") in words for part in parts)


def _dof_count(mechanism: Mechanism, name: str, above: str = "") -> int:
    """Return the number of dofs that carry a link; only those below the link `above`, if given."""
    stop = mechanism.links[above] if above else None
    count = 0
    for frame in mechanism.links[name].traverse_parents():
        if frame is stop:
            break
        count += len(frame.dof) if isinstance(frame, Joint) else 0
    return count


def _floating_body(mechanism: Mechanism) -> str | None:
    """Return the name of the link that hangs on a root by a single joint of six dofs; None if there is none."""
    for name, link in mechanism.links.items():
        joint = link.parent
        ground = None if joint is None else joint.parent
        if not isinstance(joint, Joint) or len(joint.dof) < 6 or not isinstance(ground, Link):
            continue
        if ground.parent is None and len(ground.children) == 1 and not ground.closures:
            return name
    return None


def _leaves(mechanism: Mechanism) -> list[str]:
    """Return the names of links that carry no other link."""
    return [name for name, link in mechanism.links.items() if not any(joint.children for joint in link.children)]


def _limbs(mechanism: Mechanism) -> list[str]:
    """Return the ends of all limbs that move; limbs that part at their last dof, as fingers do, count as one."""
    ends: dict[str, None] = {}
    for name in _leaves(mechanism):
        if not _dof_count(mechanism, name):
            continue
        fork = _fork(mechanism, name)
        if fork is not None and _dof_count(mechanism, name, above=fork) <= 1 and _dof_count(mechanism, fork):
            ends[_still_at(mechanism, fork)] = None
        else:
            ends[name] = None
    return list(ends)


def _fork(mechanism: Mechanism, name: str) -> str | None:
    """Return the name of the nearest link above that carries several links."""
    for frame in mechanism.links[name].traverse_parents():
        if isinstance(frame, Link) and sum(bool(joint.children) for joint in frame.children) > 1:
            return mechanism.name_of(frame)
    return None


def _still_at(mechanism: Mechanism, fork: str) -> str:
    """Return the last leaf fixed to the link `fork`, as a tool on a hand with fingers; `fork` if there is none."""
    for name in reversed(_leaves(mechanism)):
        if _fork(mechanism, name) == fork and _dof_count(mechanism, name, above=fork) == 0:
            return name
    return fork


def _end_of_loops(mechanism: Mechanism) -> str:
    ends = [name for name in _leaves(mechanism) if _dof_count(mechanism, name)]
    for word in TOOL_WORDS:
        named = [name for name in ends if _has_word(name, (word,))]
        if named:
            return named[0]
    links = list(mechanism.links.values())
    neighbours: dict[Link, list[Link]] = {link: [] for link in links}
    for joint in mechanism.joints.values():
        a, b = joint.parent, joint.child
        if isinstance(a, Link) and b is not None:
            neighbours[a].append(b)
            neighbours[b].append(a)
    distance_from_root = {root: 0 for root in links if root.parent is None}
    waiting = deque(distance_from_root)
    while waiting:
        link = waiting.popleft()
        for neighbour in neighbours[link]:
            if neighbour not in distance_from_root:
                distance_from_root[neighbour] = distance_from_root[link] + 1
                waiting.append(neighbour)
    return mechanism.name_of(max(distance_from_root, key=lambda link: distance_from_root[link]))
