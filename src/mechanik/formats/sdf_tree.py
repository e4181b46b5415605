"""Which joints of an SDF carry the tree, and which close loops.

SDF joins links in any way. A link hangs on the first joint of which it is the child; every further joint that leads
to it closes a loop, unless it leads to links that nothing else does, which are then reached through it backwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["holds", "backwards", "closes"]


@dataclass(slots=True)
class Plan:
    """How each joint is used, by name, and the links that stand at the top of a tree."""

    roles: dict[str, Role] = field(default_factory=dict[str, Role])
    roots: list[str] = field(default_factory=list[str])


def plan_tree(links: Iterable[str], ends: Mapping[str, tuple[str, str]], bound: Collection[str], world: str) -> Plan:
    """A tree over all links.

    Args:
        links: their names, the world among them if a joint leads there.
        ends: parent and child link of each joint, in the order of the file.
        bound: joints that should not close a loop, because others follow them or they others.
        world: the name of the link that stands still.
    """
    names, plan = list(links), Plan(dict.fromkeys(ends, "closes"))
    first: dict[str, str] = {}
    for joint, (_, child) in ends.items():
        first.setdefault(child, joint)
    around: dict[str, list[str]] = {}
    for joint in _spanning(names, ends, sorted(ends, key=lambda one: (one not in bound, first[ends[one][1]] != one))):
        for link in ends[joint]:
            around.setdefault(link, []).append(joint)

    reached: set[str] = set()
    for root in sorted(names, key=lambda name: (name != world, name in first)):  # of each kind in the order of the file
        if root in reached:
            continue
        plan.roots.append(root)
        reached.add(root)
        waiting = [root]
        while waiting:
            link = waiting.pop()
            for joint in around.get(link, ()):
                parent, child = ends[joint]
                other = child if link == parent else parent
                if other not in reached:
                    plan.roles[joint] = "holds" if link == parent else "backwards"
                    reached.add(other)
                    waiting.append(other)
    return plan


def _spanning(names: Iterable[str], ends: Mapping[str, tuple[str, str]], order: Iterable[str]) -> list[str]:
    """The joints that join what those before them in `order` have not joined yet."""
    above = {name: name for name in names}

    def top(name: str) -> str:
        while above[name] != name:
            above[name] = name = above[above[name]]
        return name

    taken: list[str] = []
    for joint in order:
        one, two = (top(link) for link in ends[joint])
        if one != two:
            above[one] = two
            taken.append(joint)
    return taken
