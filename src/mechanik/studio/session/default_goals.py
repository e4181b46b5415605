"""Default goals of a mechanism that is opened, so that there is something to drag.

- Serial arm: a goal at the tip. With a gripper, the goal is on the link that carries the fingers, or on a link without
  children that is fixed to it, such as a tool frame.
- Tree: a goal at the end of each limb.
- Floating body: ends of limbs that are named as feet are pinned, and the ends of other limbs have a goal. The body
  itself has the goal instead if no end is named as a foot, if all ends are feet, or if there are loops.
- Loops or joint constraints: a goal on a moving link without child links whose name has a word such as tool, platform
  or pen; else on the link that is farthest from a root, counted in joints.

A goal is a pose if at least six dofs move its link, else a point. The dofs of a floating body do not count for its
limbs; with loops, the mobility of the mechanism counts. On a fixed base without loops, a point is at the far end of its
link, since a point at the joint of the link would not depend on that joint.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from mechanik.model import Box, Capsule, Cylinder, Joint, Link, Mechanism, ShapeInstance, Sphere, mobility
from mechanik.spatial.array import Array
from mechanik.studio.messages.requests import GoalKind, Vector
from mechanik.studio.session.loaded_model import can_analyse

MIN_TIP_DISTANCE_RATIO = 1.5
"""Minimum ratio of the distances from the origin of a link to the farthest and the next side of its bounding box.

A link with a smaller ratio, such as a link that is as thick as it is long, has no tip.
"""


def default_tool_point(link: Link) -> Vector:
    """Return the tip of a link: the middle of the farthest side of the bounding box of its visuals.

    Only boxes, spheres, cylinders and capsules are used.

    Returns:
        The point in the frame of the link, m; the origin if there are no such shapes, or if no side is much farther
            than the others (`MIN_TIP_DISTANCE_RATIO`).
    """
    boxes = [box for instance in link.visuals if (box := _bounding_box(instance)) is not None]
    if not boxes:
        return 0.0, 0.0, 0.0
    low = np.min([corner for corner, _ in boxes], axis=0)
    high = np.max([corner for _, corner in boxes], axis=0)
    side_distances = np.concatenate([-low, high])
    farthest_side = int(np.argmax(side_distances))
    if side_distances[farthest_side] <= MIN_TIP_DISTANCE_RATIO * np.delete(side_distances, farthest_side).max():
        return 0.0, 0.0, 0.0
    tip = (low + high) / 2
    axis = farthest_side % 3
    tip[axis] = (low if farthest_side < 3 else high)[axis]
    x, y, z = tip.tolist()
    return x, y, z


def _bounding_box(instance: ShapeInstance) -> tuple[Array, Array] | None:
    """Return the lowest and the highest corner of a box around a shape, in the frame of the link, m.

    None for shapes other than boxes, spheres, cylinders and capsules.
    """
    match instance.shape:
        case Box(size):
            half_edges = np.array(size) / 2
        case Sphere(radius):
            half_edges = np.full(3, radius)
        case Cylinder(radius, length):
            half_edges = np.array([radius, radius, length / 2])
        case Capsule(radius, length):
            half_edges = np.array([radius, radius, length / 2 + radius])
        case _:
            return None
    half_extents = np.abs(instance.pose.matrix[:3, :3]) @ half_edges
    return instance.pose.position - half_extents, instance.pose.position + half_extents


TOOL_WORDS = (
    "tool", "tcp", "effector", "ee", "platform", "pen", "tracer", "teeth", "grasp", "box", "foot", "top", "hand",
)  # fmt: skip
"""Words in names of links that get the goal of a mechanism with loops or joint constraints, by falling priority."""
FOOT_WORDS = ("foot", "feet", "sole", "toe", "paw", "hoof")
"""Words in names of links that are pinned by default if they are ends of limbs of a floating body."""
MAX_DEFAULT_GOALS = 12
"""Maximum number of default goals that are pinned, and of those that are not."""


@dataclass(frozen=True, slots=True)
class DefaultGoal:
    """A goal that is to be added at the present pose of its link.

    Attributes:
        link: name of the link.
        kind: kind of the goal.
        pinned: whether the goal is pinned.
        at: point of the link, in the frame of the link, m.
    """

    link: str
    kind: GoalKind
    pinned: bool = False
    at: Vector = (0.0, 0.0, 0.0)


def default_goals(mechanism: Mechanism) -> tuple[DefaultGoal, ...]:
    """Return the goals for a new mechanism; pinned goals are last."""
    if not mechanism.nv:
        return ()
    body = _floating_body(mechanism)
    if body is not None:
        return _body_goals(mechanism, body)
    if mechanism.closures or mechanism.joint_constraints:
        dof_count = mobility(mechanism).dof if can_analyse(mechanism) else None
        return (DefaultGoal(_end_of_loops(mechanism), _goal_kind(mechanism.nv if dof_count is None else dof_count)),)
    return tuple(_goal_at_end(mechanism, end) for end in _limb_ends(mechanism)[:MAX_DEFAULT_GOALS])


def _goal_at_end(mechanism: Mechanism, name: str) -> DefaultGoal:
    link = mechanism.links[name]
    kind = _goal_kind(_dof_count(mechanism, name))
    is_moved_by_its_joint = isinstance(link.parent, Joint) and len(link.parent.dof) > 0
    return DefaultGoal(
        name, kind, at=default_tool_point(link) if kind == "point" and is_moved_by_its_joint else (0.0, 0.0, 0.0)
    )


def _body_goals(mechanism: Mechanism, body: str) -> tuple[DefaultGoal, ...]:
    ends = _leaves(mechanism) if mechanism.closures else _limb_ends(mechanism)
    feet = [end for end in ends if _has_word(end, FOOT_WORDS)]
    other_ends = [end for end in ends if end not in feet] if feet and not mechanism.closures else []
    goals = [
        DefaultGoal(end, _goal_kind(_dof_count(mechanism, end, ancestor=body)))
        for end in other_ends[:MAX_DEFAULT_GOALS]
    ]
    pins = [
        DefaultGoal(end, _goal_kind(_dof_count(mechanism, end, ancestor=body)), pinned=True)
        for end in feet[:MAX_DEFAULT_GOALS]
    ]
    goals.sort(key=lambda goal: goal.kind != "pose")  # poses, such as of hands, before points, such as of heads
    return (*(goals or [DefaultGoal(body, "pose")]), *pins)


def _goal_kind(dof_count: int) -> GoalKind:
    return "pose" if dof_count >= 6 else "point"


def _has_word(name: str, words: tuple[str, ...]) -> bool:
    """Return whether a part of the name is one of the words, with or without digits: `left_foot`, `foot3`, `tool0`."""
    parts = name.lower().replace("-", "_").replace(".", "_").split("_")
    return any(part.strip("0123456789") in words for part in parts)


def _dof_count(mechanism: Mechanism, name: str, ancestor: str = "") -> int:
    """Return the number of dofs between the link `ancestor` (default: the root) and the link `name`."""
    ancestor_link = mechanism.links[ancestor] if ancestor else None
    count = 0
    for frame in mechanism.links[name].traverse_parents():
        if frame is ancestor_link:
            break
        count += len(frame.dof) if isinstance(frame, Joint) else 0
    return count


def _floating_body(mechanism: Mechanism) -> str | None:
    """Return the name of a link with a six-dof joint to a root that has no other joints; None if there is none."""
    for name, link in mechanism.links.items():
        joint = link.parent
        ground = None if joint is None else joint.parent
        if not isinstance(joint, Joint) or len(joint.dof) < 6 or not isinstance(ground, Link):
            continue
        if ground.parent is None and len(ground.children) == 1 and not ground.closures:
            return name
    return None


def _leaves(mechanism: Mechanism) -> list[str]:
    """Return the names of links without child links."""
    return [name for name, link in mechanism.links.items() if not any(joint.children for joint in link.children)]


def _limb_ends(mechanism: Mechanism) -> list[str]:
    """Return the names of the last links of all limbs that move.

    Limbs that branch off the same moving link and have at most one dof after it, such as fingers, count as one limb,
    which ends at the leaf fixed to that link, or at that link.
    """
    ends: dict[str, None] = {}
    for name in _leaves(mechanism):
        if not _dof_count(mechanism, name):
            continue
        branching_link = _branching_link(mechanism, name)
        if (
            branching_link is not None
            and _dof_count(mechanism, name, ancestor=branching_link) <= 1
            and _dof_count(mechanism, branching_link)
        ):
            ends[_fixed_leaf(mechanism, branching_link)] = None
        else:
            ends[name] = None
    return list(ends)


def _branching_link(mechanism: Mechanism, name: str) -> str | None:
    """Return the name of the nearest ancestor link that has several child links; None if there is none."""
    for frame in mechanism.links[name].traverse_parents():
        if isinstance(frame, Link) and sum(bool(joint.children) for joint in frame.children) > 1:
            return mechanism.name_of(frame)
    return None


def _fixed_leaf(mechanism: Mechanism, branching_link: str) -> str:
    """Return the last leaf that is fixed to a branching link, such as a tool on a hand with fingers.

    If there is none, return the branching link.
    """
    for name in reversed(_leaves(mechanism)):
        if (
            _branching_link(mechanism, name) == branching_link
            and _dof_count(mechanism, name, ancestor=branching_link) == 0
        ):
            return name
    return branching_link


def _end_of_loops(mechanism: Mechanism) -> str:
    """Return the name of the link that gets the goal of a mechanism with loops or joint constraints."""
    ends = [name for name in _leaves(mechanism) if _dof_count(mechanism, name)]
    for word in TOOL_WORDS:
        named_ends = [name for name in ends if _has_word(name, (word,))]
        if named_ends:
            return named_ends[0]
    links = list(mechanism.links.values())
    neighbours: dict[Link, list[Link]] = {link: [] for link in links}
    for joint in mechanism.joints.values():
        a, b = joint.parent, joint.child
        if isinstance(a, Link) and b is not None:
            neighbours[a].append(b)
            neighbours[b].append(a)
    distance_from_root = {root: 0 for root in links if root.parent is None}
    link_queue = deque(distance_from_root)
    while link_queue:
        link = link_queue.popleft()
        for neighbour in neighbours[link]:
            if neighbour not in distance_from_root:
                distance_from_root[neighbour] = distance_from_root[link] + 1
                link_queue.append(neighbour)
    return mechanism.name_of(max(distance_from_root, key=lambda link: distance_from_root[link]))
