"""The tree in a URDF, checked before anything is made of it: names, parents, children, one root."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mechanik.errors import UrdfError, XacroError
from mechanik.formats.xml_text import Node

TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
IGNORED = ("gazebo", "transmission", "sensor", "mechanik")


@dataclass(frozen=True, slots=True)
class JointSpec:
    """A <joint> whose names have been checked."""

    node: Node
    name: str
    type: str
    parent: str
    child: str


def check_robot(robot: Node) -> None:
    """Refuse what is no URDF: xacro, and other kinds of XML."""
    for node in robot.walk(leave_out=IGNORED):
        prefix, colon, _ = node.tag.partition(":")
        is_xacro = colon and (prefix == "xacro" or "xacro" in robot.attributes.get(f"xmlns:{prefix}", ""))
        marks = [value for value in node.attributes.values() if "${" in value or "$(" in value]
        if is_xacro or marks:
            seen = f"<{node.tag}>" if is_xacro else repr(marks[0])
            raise XacroError(
                f"{node.where}: {seen} is xacro, which has to be expanded first: xacro in.xacro > out.urdf "
                "(pip install xacro, or a ROS installation, brings that command)"
            )
    if robot.tag != "robot":
        kinds = {"mujoco": "an MJCF model", "sdf": "an SDF model", "COLLADA": "a mesh in COLLADA"}
        known = f"; this is {kinds[robot.tag]}" if robot.tag in kinds else ""
        raise UrdfError(f"{robot.where}: the outermost element of a URDF is <robot>, not <{robot.tag}>{known}")
    if not robot.attributes.get("name", "").strip():
        robot.warn("has no name")


def nodes_by_name(robot: Node, tag: str) -> dict[str, Node]:
    """The elements of a tag, in the order of the file."""
    nodes: dict[str, Node] = {}
    for node in robot.all(tag):
        name = node.need("name")
        if name in nodes:
            raise UrdfError(f"{node.where}: two {tag}s are called {name!r}; the other is in line {nodes[name].line}")
        nodes[name] = node
    return nodes


def joint_specs(robot: Node, links: Mapping[str, Node]) -> list[JointSpec]:
    """All joints, in the order of the file; each joins two links that exist, and no link has two parents."""
    specs: list[JointSpec] = []
    holders: dict[str, str] = {}
    for name, node in nodes_by_name(robot, "joint").items():
        kind = node.need("type").strip()
        if kind not in TYPES:
            raise node.fault(f"is of type {kind!r}, which URDF does not have{nearest_name(kind, TYPES)}")
        ends: list[str] = []
        for tag in ("parent", "child"):
            end = node.first(tag)
            if end is None:
                raise node.fault(f"has no <{tag}>")
            link = end.need("link")
            if link not in links:
                raise end.fault(f"names the link {link!r}, which does not exist{nearest_name(link, links)}")
            ends.append(link)
        parent, child = ends
        if parent == child:
            raise node.fault(f"joins the link {child!r} to itself")
        if child in holders:
            raise node.fault(
                f"holds the link {child!r}, which joint {holders[child]!r} holds already; "
                "a loop is closed with a closure, not with a second parent: leave this joint out and write it as a "
                '"closure" into NAME.closures.json beside the file, or as <closure> into a block <mechanik> in it'
            )
        holders[child] = name
        specs.append(JointSpec(node, name, kind, parent, child))
    return specs


def find_root(links: Mapping[str, Node], specs: Sequence[JointSpec]) -> str:
    """The one link that hangs on no joint, from which all others can be reached."""
    above = {spec.child: spec.parent for spec in specs}
    roots = [name for name in links if name not in above]
    if len(roots) > 1:
        listed = ", ".join(repr(name) for name in roots[:6]) + (", ..." if len(roots) > 6 else "")
        raise UrdfError(
            f"{links[roots[1]].where}: {len(roots)} links hang on no joint, where one, the root, is allowed: {listed}"
        )
    below: dict[str, list[str]] = {}
    for child, parent in above.items():
        below.setdefault(parent, []).append(child)
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting.extend(below.get(name, ()))
    lost = [name for name in links if name not in reached]
    if lost:
        way = [lost[0]]
        while above[way[-1]] not in way:
            way.append(above[way[-1]])
        ring = way[way.index(above[way[-1]]) :]
        loop = " -> ".join(repr(name) for name in [ring[0], *reversed(ring)][:8])
        raise UrdfError(f"{links[ring[0]].where}: links hang on each other in a loop, with no root above: {loop}")
    return roots[0]


def listed(names: Sequence[str]) -> str:
    """For the end of a message: the first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def nearest_name(name: str, known: Iterable[str]) -> str:
    """For the end of a message: a known name that may have been meant."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
