"""Handles that a mechanism gets by itself when it is opened, so that there is something to drag.

- A serial arm: its tip. A gripper at the end is left alone: the handle is on what does not open and close.
- A tree: the ends of its limbs. Of a body that floats, the feet (links that are called so) are pinned; if there is
  nothing but feet, the body itself is the handle.
- Loops: the link that is called a tool, platform, pen...; else the one farthest from the ground, counted in joints.

A handle is a pose where six freedoms and more can move it, and a point where there are fewer. Such a point lies at the
far end of a last link, not at its joint, around which nothing could aim it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from mechanik.mechanism import Joint, Link, Mechanism, mobility
from mechanik.studio.messages.checks import Vector
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.session.far_end import far_end
from mechanik.studio.session.sizes import is_looked_into

TOOLS = (
    "tool", "tcp", "effector", "ee", "platform", "pen", "tracer", "teeth", "grasp", "box", "foot", "top", "hand",
)  # fmt: skip
FEET = ("foot", "feet", "sole", "toe", "paw", "hoof")
MOST = 12


@dataclass(frozen=True, slots=True)
class Handle:
    """A goal that is to be: where its link is. at: the point of the link, m, in its frame."""

    link: str
    kind: GoalKind
    pinned: bool = False
    at: Vector = (0.0, 0.0, 0.0)


def first_goals(mechanism: Mechanism) -> tuple[Handle, ...]:
    """The handles to begin with; those that can be dragged stand before those that are pinned."""
    if not mechanism.nv:
        return ()
    body = _floating_body(mechanism)
    if body is not None:
        return _on_body(mechanism, body)
    if mechanism.closures or mechanism.laws:
        dof = mobility(mechanism).dof if is_looked_into(mechanism) else None
        return (Handle(_end_of_loops(mechanism), _kind(mechanism.nv if dof is None else dof)),)
    return tuple(_at_end(mechanism, end) for end in _limbs(mechanism)[:MOST])


def _at_end(mechanism: Mechanism, name: str) -> Handle:
    link = mechanism.links[name]
    kind = _kind(_freedoms(mechanism, name))
    is_moved_by_its_joint = isinstance(link.parent, Joint) and len(link.parent.dof) > 0
    return Handle(name, kind, at=far_end(link) if kind == "point" and is_moved_by_its_joint else (0.0, 0.0, 0.0))


def _on_body(mechanism: Mechanism, body: str) -> tuple[Handle, ...]:
    ends = _leaves(mechanism) if mechanism.closures else _limbs(mechanism)
    feet = [end for end in ends if _is_called(end, FEET)]
    hands = [end for end in ends if end not in feet] if feet and not mechanism.closures else []
    handles = [Handle(end, _kind(_freedoms(mechanism, end, above=body))) for end in hands[:MOST]]
    pins = [Handle(end, _kind(_freedoms(mechanism, end, above=body)), pinned=True) for end in feet[:MOST]]
    handles.sort(key=lambda handle: handle.kind != "pose")  # hands before heads
    return (*(handles or [Handle(body, "pose")]), *pins)


def _kind(freedoms: int) -> GoalKind:
    return "pose" if freedoms >= 6 else "point"


def _is_called(name: str, words: tuple[str, ...]) -> bool:
    """Whether one of the words stands in the name by itself, with numbers or not: `left_foot`, `foot3`, `tool0`."""
    parts = name.lower().replace("-", "_").replace(".", "_").split("_")
    return any(part.strip("0123456789") in words for part in parts)


def _freedoms(mechanism: Mechanism, name: str, above: str = "") -> int:
    """How many freedoms carry a link; only those beneath the link `above`, if one is given."""
    stop = mechanism.links[above] if above else None
    count = 0
    for frame in mechanism.links[name].traverse_parents():
        if frame is stop:
            break
        count += len(frame.dof) if isinstance(frame, Joint) else 0
    return count


def _floating_body(mechanism: Mechanism) -> str | None:
    """The link that a root holds by six freedoms and by nothing else."""
    for name, link in mechanism.links.items():
        joint = link.parent
        ground = None if joint is None else joint.parent
        if not isinstance(joint, Joint) or len(joint.dof) < 6 or not isinstance(ground, Link):
            continue
        if ground.parent is None and len(ground.children) == 1 and not ground.closures:
            return name
    return None


def _leaves(mechanism: Mechanism) -> list[str]:
    """Links that carry no other."""
    return [name for name, link in mechanism.links.items() if not any(joint.children for joint in link.children)]


def _limbs(mechanism: Mechanism) -> list[str]:
    """The ends of all limbs that move; of those that part only by a last freedom, as fingers do, one for all."""
    found: dict[str, None] = {}
    for name in _leaves(mechanism):
        if not _freedoms(mechanism, name):
            continue
        fork = _fork(mechanism, name)
        if fork is not None and _freedoms(mechanism, name, above=fork) <= 1 and _freedoms(mechanism, fork):
            found[_still_at(mechanism, fork)] = None
        else:
            found[name] = None
    return list(found)


def _fork(mechanism: Mechanism, name: str) -> str | None:
    """The nearest link above that carries several."""
    for frame in mechanism.links[name].traverse_parents():
        if isinstance(frame, Link) and sum(bool(joint.children) for joint in frame.children) > 1:
            return mechanism.name_of(frame)
    return None


def _still_at(mechanism: Mechanism, fork: str) -> str:
    """The last leaf that is fixed to a link, as a tool to a hand with fingers; the link itself if there is none."""
    for name in reversed(_leaves(mechanism)):
        if _fork(mechanism, name) == fork and _freedoms(mechanism, name, above=fork) == 0:
            return name
    return fork


def _end_of_loops(mechanism: Mechanism) -> str:
    ends = [name for name in _leaves(mechanism) if _freedoms(mechanism, name)]
    for word in TOOLS:
        named = [name for name in ends if _is_called(name, (word,))]
        if named:
            return named[0]
    links = list(mechanism.links.values())
    near: dict[Link, list[Link]] = {link: [] for link in links}
    for joint in mechanism.joints.values():
        a, b = joint.parent, joint.child
        if isinstance(a, Link) and b is not None:
            near[a].append(b)
            near[b].append(a)
    far = {root: 0 for root in links if root.parent is None}
    waiting = deque(far)
    while waiting:
        link = waiting.popleft()
        for other in near[link]:
            if other not in far:
                far[other] = far[link] + 1
                waiting.append(other)
    return mechanism.name_of(max(far, key=lambda link: far[link]))
