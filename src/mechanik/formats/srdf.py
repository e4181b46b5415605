"""SRDF, which says beside a URDF which pairs of links need no look for collisions, and in which states groups stand."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mechanik.errors import MechanikError, SrdfError, UnknownName
from mechanik.formats.source import open_source
from mechanik.formats.xml_text import Node, parse_xml
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial.array import Array

Pair = tuple[str, str]
BY_SRDF = "by SRDF"
"""The reason of a pair for which the file has none."""
TAGS = ("disable_collisions", "enable_collisions", "disable_default_collisions", "group_state")
"""What is read of an SRDF."""


@dataclass(frozen=True, slots=True)
class Srdf:
    """
    Attributes:
        unchecked: pairs of links to reasons, in small letters.
        configurations: q (nq,) by the name of the state; what its group does not hold is where the mechanism has it.
        warnings: what was passed over.
    """

    unchecked: dict[Pair, str] = field(default_factory=dict[Pair, str])
    configurations: dict[str, Array] = field(default_factory=dict[str, Array])
    warnings: list[str] = field(default_factory=list[str])


def read_srdf(
    source: str | os.PathLike[str], mechanism: Mechanism, *, missing: Literal["error", "ignore"] = "error"
) -> dict[Pair, str]:
    """The pairs of links that need no look, with reasons; assign them to `mechanism.unchecked`.

    Args:
        source: a path, or the text itself.
        missing: "ignore" passes over links that the mechanism does not have, as when parts of it were left out.
    Raises:
        SrdfError: a link is not there; the message names it and the line.
    """
    return look_into(source, mechanism, missing=missing).unchecked


def apply_srdf(source: str | os.PathLike[str], mechanism: Mechanism) -> None:
    """Set `unchecked` and add the states of groups to the named configurations; what is odd becomes a warning."""
    found = look_into(source, mechanism)
    mechanism.unchecked = found.unchecked
    for name, q in found.configurations.items():
        mechanism.configurations[name] = q
    mechanism.warnings += found.warnings


def look_into(
    source: str | os.PathLike[str], mechanism: Mechanism, *, missing: Literal["error", "ignore"] = "error"
) -> Srdf:
    """All that is read of an SRDF."""
    if missing not in ("error", "ignore"):
        raise UnknownName("way to take missing links", missing, ("error", "ignore"))
    root = parse_xml(open_source(source), SrdfError)
    _check_root(root)
    _say_misspelt(root)
    found = Srdf(warnings=root.document.warnings)
    found.unchecked.update(_pairs(root, mechanism, missing == "ignore"))
    found.configurations.update(_states(root, mechanism))
    return found


def _check_root(root: Node) -> None:
    if root.tag != "robot":
        raise SrdfError(f"{root.where}: the root element is <{root.tag}>; that of an SRDF is <robot>")
    if root.all("joint") and not root.all("group"):
        raise SrdfError(f"{root.where}: this seems to be a URDF; an SRDF has <disable_collisions> and groups in it")


def _say_misspelt(root: Node) -> None:
    """Other programs have elements of their own; those that are nearly ours are meant as ours."""
    for node in root.children:
        near = difflib.get_close_matches(node.tag, TAGS, n=1, cutoff=0.8)
        if near and node.tag not in TAGS:
            node.warn(f"is passed over; did you mean <{near[0]}>?")


def _pairs(root: Node, mechanism: Mechanism, may_miss: bool) -> dict[Pair, str]:
    """Default first, so that a pair that is disabled or enabled by itself has the last word."""
    found: dict[frozenset[str], tuple[Pair, str]] = {}
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
        found[frozenset((a, b))] = (a, b), reason or BY_SRDF
    return dict(found.values())


def _links(node: Node, attributes: tuple[str, ...], mechanism: Mechanism, may_miss: bool) -> Iterator[str]:
    for attribute in attributes:
        name = node.need(attribute).strip()
        if name in mechanism.links:
            yield name
        elif not may_miss:
            said = str(UnknownName("link", name, mechanism.links))
            raise node.fault(f"names the link {name!r} as {attribute!r}: {said}")


def _states(root: Node, mechanism: Mechanism) -> dict[str, Array]:
    found: dict[str, Array] = {}
    names = [node.attributes.get("name", "").strip() for node in root.all("group_state")]
    for node, name in zip(root.all("group_state"), names, strict=True):
        if not name:
            raise node.fault("has no 'name'")
        group = node.attributes.get("group", "").strip()
        label = f"{group}/{name}" if names.count(name) > 1 and group else name
        values = {joint: value for one in node.all("joint") for joint, value in _value(one, mechanism)}
        try:
            found[label] = mechanism.configuration(values)
        except MechanikError as error:
            node.warn(f"{name!r} is passed over: {error}")
    return found


def _value(node: Node, mechanism: Mechanism) -> Iterator[tuple[str, float]]:
    """Name and value of a joint of one freedom; others are passed over."""
    name = node.need("name").strip()
    joint = mechanism.joints.get(name)
    if joint is None or len(joint.dof) != 1:
        node.warn("is passed over: " + ("there is no such joint" if joint is None else "it has not one freedom"))
        return
    node.need("value")
    value = node.number("value")
    assert value is not None
    yield name, value
