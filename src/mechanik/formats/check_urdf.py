"""All faults of a URDF that cannot be read, where the reader names only the first."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from mechanik.errors import MechanikError
from mechanik.formats.finding import Finding
from mechanik.formats.packages import files_around
from mechanik.formats.source import open_source
from mechanik.formats.urdf_shapes import ShapeReader, read_inertial, read_origin
from mechanik.formats.urdf_tree import TYPES, check_robot, nearest_name
from mechanik.formats.xml_text import Node, parse_xml


def urdf_faults(source: str | os.PathLike[str]) -> list[Finding]:
    """One finding for each fault; none if it is no URDF, or not even XML."""
    try:
        opened = open_source(source)
        robot = parse_xml(opened)
        check_robot(robot)
    except MechanikError:
        return []
    links = robot.all("link")
    shapes = ShapeReader(robot, files_around(opened))
    found = [*_names(links), *_names(robot.all("joint"))]
    for link in links:
        found += _parts(link, shapes)
    for joint in robot.all("joint"):
        found += _joint(joint, [link.attributes.get("name", "") for link in links])
    found += _tree(robot)
    shapes.report()
    warnings = (text.partition(": ") for text in robot.document.warnings)
    return [*found, *(Finding("warning", "reader", place, text) for place, _, text in warnings)]


def _error(code: str, node: Node, message: str) -> Finding:
    return Finding("error", code, f"{node.where}: {node.subject}", message)


def _names(nodes: list[Node]) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    for node in nodes:
        name = node.attributes.get("name", "").strip()
        if not name:
            yield _error("unnamed", node, "has no name")
        elif name in lines:
            yield _error("duplicate-name", node, f"has the name of the {node.tag} in line {lines[name]}")
        lines.setdefault(name, node.line)


def _parts(link: Node, shapes: ShapeReader) -> Iterator[Finding]:
    for part, read in (
        ("visual", lambda: shapes.placed(link, "visual")),
        ("collision", lambda: shapes.placed(link, "collision")),
        ("inertial", lambda: read_inertial(link)),
    ):
        try:
            read()
        except MechanikError as error:
            yield Finding("error", part, f"{link.where}: {link.subject}", _after_place(error))


def _joint(joint: Node, links: list[str]) -> Iterator[Finding]:
    kind = joint.attributes.get("type", "").strip()
    if kind not in TYPES:
        yield _error("joint-type", joint, f"is of type {kind!r}{nearest_name(kind, TYPES)}")
    for tag in ("parent", "child"):
        end = joint.first(tag)
        name = "" if end is None else end.attributes.get("link", "")
        if name not in links:
            yield _error("unknown-link", joint, f"has a {tag} {name!r}, which is no link{nearest_name(name, links)}")
    try:
        read_origin(joint)
        yield from _motion(joint, kind)
    except MechanikError as error:
        yield Finding("error", "number", f"{joint.where}: {joint.subject}", _after_place(error))


def _motion(joint: Node, kind: str) -> Iterator[Finding]:
    axis = joint.first("axis")
    if kind in ("revolute", "continuous", "prismatic", "planar") and axis is not None:
        xyz = axis.numbers("xyz", 3)
        if xyz is not None and math.hypot(*xyz) < 1e-12:
            yield _error("zero-axis", joint, "has a zero axis; it must point somewhere")
    if kind in ("revolute", "prismatic"):
        limit = joint.first("limit")
        lower, upper = (None, None) if limit is None else (limit.number("lower"), limit.number("upper"))
        if lower is None and upper is None:
            yield Finding("warning", "no-limits", f"{joint.where}: {joint.subject}", "has no limits")
        elif (lower or 0.0) > (upper or 0.0):
            text = f"has its lower limit, {lower or 0.0:g}, above its upper, {upper or 0.0:g}"
            yield _error("inverted-limits", joint, text)


def _tree(robot: Node) -> Iterator[Finding]:
    """Second parents, loops of parents, and links that the root does not lead to."""
    links = {link.attributes.get("name", ""): link for link in robot.all("link")}
    above: dict[str, str] = {}
    for joint in robot.all("joint"):
        ends = [end.attributes.get("link", "") for tag in ("parent", "child") if (end := joint.first(tag)) is not None]
        if len(ends) == 2 and all(end in links for end in ends):
            parent, child = ends
            if child in above:
                yield _error("second-parent", joint, f"holds the link {child!r}, which {above[child]!r} holds already")
            above.setdefault(child, parent)
    roots = [name for name in links if name not in above]
    for name in roots[1:]:
        yield _error("unreachable", links[name], f"hangs on no joint, and the root is {roots[0]!r}")
    for name in links:
        way = [name]
        while way[-1] in above and above[way[-1]] not in way:
            way.append(above[way[-1]])
        if above.get(way[-1]) == name:
            yield _error("cycle", links[name], f"hangs on itself, through {' -> '.join(repr(one) for one in way[1:])}")


def _after_place(error: MechanikError) -> str:
    """A reader's message without the place, which the finding says itself."""
    _, _, message = str(error).partition(": ")
    return message or str(error)
