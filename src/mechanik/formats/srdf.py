"""Reader of SRDF files: link pairs that need no collision check, and named configurations (group states)."""

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
"""Reason of an allowed pair if the file gives none."""
KNOWN_TAGS = ("disable_collisions", "enable_collisions", "disable_default_collisions", "group_state")
"""Names of the elements that this module reads; others are ignored."""


@dataclass(frozen=True, slots=True)
class SrdfContent:
    """Allowed collisions and configurations of an SRDF.

    Attributes:
        allowed_collisions: reason for each link pair that is not checked for collisions; reasons of the file are in
            lower case.
        configurations: q (nq,) by state name, or by "GROUP/STATE" if several states have the same name; a joint that
            the state does not name has its present value.
        warnings: messages about content that is ignored.
    """

    allowed_collisions: dict[LinkPair, str] = field(default_factory=dict[LinkPair, str])
    configurations: dict[str, Array] = field(default_factory=dict[str, Array])
    warnings: list[str] = field(default_factory=list[str])


def read_srdf(
    source: str | os.PathLike[str], mechanism: Mechanism, *, missing: Literal["error", "ignore"] = "error"
) -> dict[LinkPair, str]:
    """Return the link pairs that need no collision check, with reasons; the mechanism is not changed.

    To use the pairs, assign them to `mechanism.allowed_collisions`.

    Args:
        source: a path, or the text itself.
        mechanism: the mechanism whose links the file names.
        missing: "ignore" skips links that the mechanism does not have, for example because links were removed.

    Raises:
        FormatError: the file is not an SRDF, or a link does not exist; the message names the line.
        UnknownName: `missing` is neither "error" nor "ignore".
    """
    return parse_srdf(source, mechanism, missing=missing).allowed_collisions


def apply_srdf(source: str | os.PathLike[str], mechanism: Mechanism) -> None:
    """Replace `allowed_collisions` of the mechanism, and add the group states to `configurations`.

    Messages about ignored content are added to the `warnings` of the mechanism.
    """
    content = parse_srdf(source, mechanism)
    mechanism.allowed_collisions = content.allowed_collisions
    for name, q in content.configurations.items():
        mechanism.configurations[name] = q
    mechanism.warnings += content.warnings


def parse_srdf(
    source: str | os.PathLike[str], mechanism: Mechanism, *, missing: Literal["error", "ignore"] = "error"
) -> SrdfContent:
    """Read the allowed collisions and the group states of an SRDF.

    Args:
        source: a path, or the text itself.
        mechanism: the mechanism whose links and joints the file names.
        missing: "ignore" skips links that the mechanism does not have; "error" raises `FormatError`.

    Raises:
        FormatError: the file is not an SRDF, or a link does not exist; the message names the line.
        UnknownName: `missing` is neither "error" nor "ignore".
    """
    if missing not in ("error", "ignore"):
        raise UnknownName("value of missing=", missing, ("error", "ignore"))
    root = parse_xml(open_source(source), FormatError)
    _check_root(root)
    _warn_about_misspelled_tags(root)
    allowed_collisions = _read_allowed_pairs(root, mechanism, missing == "ignore")
    return SrdfContent(allowed_collisions, _read_group_states(root, mechanism), root.document.warnings)


def _check_root(root: XmlNode) -> None:
    if root.tag != "robot":
        raise FormatError(f"{root.location}: the root element is <{root.tag}>; an SRDF has <robot>")
    if root.all("joint") and not root.all("group"):
        raise FormatError(
            f"{root.location}: this seems to be a URDF; an SRDF contains <disable_collisions> and <group>"
        )


def _warn_about_misspelled_tags(root: XmlNode) -> None:
    """Warn about unknown elements whose tag resembles a known one and is probably misspelled.

    Other unknown elements are ignored without a warning, because programs add elements of their own.
    """
    for node in root.children:
        similar_tags = difflib.get_close_matches(node.tag, KNOWN_TAGS, n=1, cutoff=0.8)
        if similar_tags and node.tag not in KNOWN_TAGS:
            node.warn(f"is unknown and ignored; did you mean <{similar_tags[0]}>?")


def _read_allowed_pairs(root: XmlNode, mechanism: Mechanism, skip_unknown: bool) -> dict[LinkPair, str]:
    """Collect the allowed pairs.

    <disable_default_collisions> is read first, so that elements for a single pair override it.
    """
    pairs_and_reasons: dict[frozenset[str], tuple[LinkPair, str]] = {}
    for node in root.all("disable_default_collisions"):
        for name in _read_link_names(node, ("link",), mechanism, skip_unknown):
            for other_name in mechanism.links:
                if other_name != name:
                    pairs_and_reasons[frozenset((name, other_name))] = (name, other_name), "default"
    for node in root.all("enable_collisions"):
        pairs_and_reasons.pop(frozenset(_read_link_names(node, ("link1", "link2"), mechanism, skip_unknown)), None)
    for node in root.all("disable_collisions"):
        names = list(_read_link_names(node, ("link1", "link2"), mechanism, skip_unknown))
        if len(names) < 2:
            continue
        link1, link2 = names
        if link1 == link2:
            node.warn(f"pairs link {link1!r} with itself; it is ignored")
            continue
        reason = node.attributes.get("reason", "").strip().lower()
        pairs_and_reasons[frozenset((link1, link2))] = (link1, link2), reason or DEFAULT_REASON
    return dict(pairs_and_reasons.values())


def _read_link_names(
    node: XmlNode, attributes: tuple[str, ...], mechanism: Mechanism, skip_unknown: bool
) -> Iterator[str]:
    for attribute in attributes:
        name = node.require(attribute).strip()
        if name in mechanism.links:
            yield name
        elif not skip_unknown:
            error = UnknownName("link", name, mechanism.links)
            raise node.make_error(f"has {attribute}={name!r}: {error}")


def _read_group_states(root: XmlNode, mechanism: Mechanism) -> dict[str, Array]:
    configurations: dict[str, Array] = {}
    names = [node.attributes.get("name", "").strip() for node in root.all("group_state")]
    for node, name in zip(root.all("group_state"), names, strict=True):
        if not name:
            raise node.make_error("has no 'name'")
        group = node.attributes.get("group", "").strip()
        configuration_name = f"{group}/{name}" if names.count(name) > 1 and group else name
        values = {joint: value for child in node.all("joint") for joint, value in _read_joint_value(child, mechanism)}
        try:
            configurations[configuration_name] = mechanism.configuration(values)
        except MechanikError as error:
            node.warn(f"{name!r} is ignored: {error}")
    return configurations


def _read_joint_value(node: XmlNode, mechanism: Mechanism) -> Iterator[tuple[str, float]]:
    """Yield the name and value of a joint with one dof; for other joints, warn and yield nothing."""
    name = node.require("name").strip()
    joint = mechanism.joints.get(name)
    if joint is None or len(joint.dof) != 1:
        reason = "there is no such joint" if joint is None else f"it has {len(joint.dof)} dof, not 1"
        node.warn(f"is ignored: {reason}")
        return
    node.require("value")
    value = node.number("value")
    assert value is not None
    yield name, value
