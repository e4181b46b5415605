"""Reader of SRDF files, which list for a URDF the link pairs without collision checks and the named group states."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mechanik.errors import FormatError, MechanikError, UnknownName
from mechanik.formats.source import open_source
from mechanik.formats.xml_node import XmlNode, parse_xml
from mechanik.model.mechanism import Mechanism
from mechanik.spatial.array import Array

LinkPair = tuple[str, str]
DEFAULT_REASON = "by SRDF"
"""Reason of an allowed pair for which the file states none."""
KNOWN_TAGS = ("disable_collisions", "enable_collisions", "disable_default_collisions", "group_state")
"""Elements of an SRDF that are read."""


@dataclass(frozen=True, slots=True)
class SrdfContent:
    """Content of an SRDF that a mechanism uses.

    Attributes:
        allowed_collisions: reason in lower case for each link pair that is not checked for collisions.
        configurations: q (nq,) by state name; joints outside the group keep the present value of the mechanism.
        warnings: messages about content that is ignored.
    """

    allowed_collisions: dict[LinkPair, str] = field(default_factory=dict[LinkPair, str])
    configurations: dict[str, Array] = field(default_factory=dict[str, Array])
    warnings: list[str] = field(default_factory=list[str])


def read_srdf(
    source: str | os.PathLike[str], mechanism: Mechanism, *, missing: Literal["error", "ignore"] = "error"
) -> dict[LinkPair, str]:
    """Read the link pairs that need no collision check, with reasons; assign them to `mechanism.allowed_collisions`.

    Args:
        source: a path, or the text itself.
        mechanism: the mechanism whose links the file names.
        missing: "ignore" skips links that the mechanism does not have, for example because parts were removed.

    Raises:
        FormatError: a link does not exist; the message names the link and the line.
    """
    return parse_srdf(source, mechanism, missing=missing).allowed_collisions


def apply_srdf(source: str | os.PathLike[str], mechanism: Mechanism) -> None:
    """Set `allowed_collisions` of the mechanism and add the group states to its configurations and warnings."""
    found = parse_srdf(source, mechanism)
    mechanism.allowed_collisions = found.allowed_collisions
    for name, q in found.configurations.items():
        mechanism.configurations[name] = q
    mechanism.warnings += found.warnings


def parse_srdf(
    source: str | os.PathLike[str], mechanism: Mechanism, *, missing: Literal["error", "ignore"] = "error"
) -> SrdfContent:
    """Read the allowed collisions and the group states of an SRDF.

    Args:
        source: a path, or the text itself.
        mechanism: the mechanism whose links and joints the file names.
        missing: "ignore" skips links that the mechanism does not have; "error" raises `FormatError`.
    """
    if missing not in ("error", "ignore"):
        raise UnknownName("way to take missing links", missing, ("error", "ignore"))
    root = parse_xml(open_source(source), FormatError)
    _check_root(root)
    _say_misspelt(root)
    found = SrdfContent(warnings=root.document.warnings)
    found.allowed_collisions.update(_pairs(root, mechanism, missing == "ignore"))
    found.configurations.update(_states(root, mechanism))
    return found


def _check_root(root: XmlNode) -> None:
    if root.tag != "robot":
        raise FormatError(f"{root.where}: the root element is <{root.tag}>; that of an SRDF is <robot>")
    if root.all("joint") and not root.all("group"):
        raise FormatError(f"{root.where}: this seems to be a URDF; an SRDF has <disable_collisions> and groups in it")


def _say_misspelt(root: XmlNode) -> None:
    """Warn of elements that look like misspelt known ones; other programs may have elements of their own."""
    for node in root.children:
        near = difflib.get_close_matches(node.tag, KNOWN_TAGS, n=1, cutoff=0.8)
        if near and node.tag not in KNOWN_TAGS:
            node.warn(f"is passed over; did you mean <{near[0]}>?")


def _pairs(root: XmlNode, mechanism: Mechanism, may_miss: bool) -> dict[LinkPair, str]:
    """Collect the allowed pairs. Defaults come first, so that entries for a single pair override them."""
    found: dict[frozenset[str], tuple[LinkPair, str]] = {}
    for node in root.all("disable_default_collisions"):
        for name in _links(node, ("link",), mechanism, may_miss):
            for other in mechanism.links:
                if other != name:
                    found[frozenset((name, other))] = (name, other), "default"
    for node in root.all("enable_collisions"):
        found.pop(frozenset(_links(node, ("link1", "link2"), mechanism, may_miss)), None)
    for node in root.all("disable_collisions"):
        names = list(_links(node, ("link1", "link2"), mechanism, may_miss))
        if len(names) < 2:
            continue
        a, b = names
        if a == b:
            node.warn(f"pairs link {a!r} with itself and is passed over")
            continue
        reason = node.attributes.get("reason", "").strip().lower()
        found[frozenset((a, b))] = (a, b), reason or DEFAULT_REASON
    return dict(found.values())


def _links(node: XmlNode, attributes: tuple[str, ...], mechanism: Mechanism, may_miss: bool) -> Iterator[str]:
    for attribute in attributes:
        name = node.require(attribute).strip()
        if name in mechanism.links:
            yield name
        elif not may_miss:
            said = str(UnknownName("link", name, mechanism.links))
            raise node.make_error(f"names the link {name!r} as {attribute!r}: {said}")


def _states(root: XmlNode, mechanism: Mechanism) -> dict[str, Array]:
    found: dict[str, Array] = {}
    names = [node.attributes.get("name", "").strip() for node in root.all("group_state")]
    for node, name in zip(root.all("group_state"), names, strict=True):
        if not name:
            raise node.make_error("has no 'name'")
        group = node.attributes.get("group", "").strip()
        label = f"{group}/{name}" if names.count(name) > 1 and group else name
        values = {joint: value for one in node.all("joint") for joint, value in _value(one, mechanism)}
        try:
            found[label] = mechanism.configuration(values)
        except MechanikError as error:
            node.warn(f"{name!r} is passed over: {error}")
    return found


def _value(node: XmlNode, mechanism: Mechanism) -> Iterator[tuple[str, float]]:
    """Yield name and value of a joint with one dof; warn of other joints."""
    name = node.require("name").strip()
    joint = mechanism.joints.get(name)
    if joint is None or len(joint.dof) != 1:
        node.warn("is passed over: " + ("there is no such joint" if joint is None else "it has not one freedom"))
        return
    node.require("value")
    value = node.number("value")
    assert value is not None
    yield name, value
