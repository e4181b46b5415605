"""Lint: what a mechanism has that its maker would want to know of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from mechanik.errors import (
    CyclicStructure,
    DoFError,
    DuplicateName,
    FileMissing,
    LimitsError,
    MechanikError,
    NotARotation,
    SecondParent,
    UnknownFormat,
)
from mechanik.formats import check_body, check_motion
from mechanik.formats.check_urdf import urdf_faults
from mechanik.formats.finding import Finding
from mechanik.formats.load import load
from mechanik.mechanism import Frame, Link, Mechanism

ORDER = ("error", "warning", "note")

CODES: tuple[tuple[type[MechanikError], str], ...] = (
    (FileMissing, "file-missing"),
    (UnknownFormat, "unknown-format"),
    (DuplicateName, "duplicate-name"),
    (LimitsError, "inverted-limits"),
    (NotARotation, "zero-axis"),
    (DoFError, "freedoms"),
    (SecondParent, "second-parent"),
    (CyclicStructure, "cycle"),
)
"""How errors that keep a mechanism from being made are called among findings; all others are "unreadable"."""


def check(thing: Mechanism | str | os.PathLike[str]) -> list[Finding]:
    """What is wrong (error), probably wrong (warning) or worth knowing (note), the worst first.

    Args:
        thing: a mechanism, or what `load` takes. Of a file that cannot be read, all faults that are known.
    """
    try:
        mechanism = thing if isinstance(thing, Mechanism) else load(thing)
        found = [finding for rule in RULES for finding in rule(mechanism)]
    except MechanikError as error:
        code = next((code for kind, code in CODES if isinstance(error, kind)), "unreadable")
        first = Finding("error", code, "" if isinstance(thing, Mechanism) else _named(thing), str(error))
        faults = [] if isinstance(thing, Mechanism) else urdf_faults(thing)
        if not any(fault.severity == "error" for fault in faults):
            return [first]
        return sorted(faults, key=lambda one: ORDER.index(one.severity))
    found = [*_from_reader(mechanism), *(one for one in found if not _told(one, mechanism.warnings))]
    return sorted(found, key=lambda one: ORDER.index(one.severity))


def _from_reader(mechanism: Mechanism) -> Iterator[Finding]:
    for text in mechanism.warnings:
        place, separator, rest = text.partition(": ")
        yield Finding("warning", "reader", place if separator else "", rest if separator else text)


def _told(finding: Finding, warnings: list[str]) -> bool:
    """Whether the reader has said the same, with the line in which it stands."""
    if finding.code == "mesh-mirrored":
        return any("negative scale" in text for text in warnings)
    subject = {"mesh-missing": "file", "no-limits": "limit"}.get(finding.code)
    return subject is not None and any(subject in text and finding.where in text for text in warnings)


def _named(thing: object) -> str:
    text = str(thing)
    return "the text" if text.lstrip()[:1] in ("<", "{") or "\n" in text else text


def _names(mechanism: Mechanism) -> Iterator[Finding]:
    if not mechanism.name:
        yield Finding("note", "unnamed", "mechanism", "has no name")
    for frame in [*mechanism.links.values(), *mechanism.joints.values(), *mechanism.goals.values()]:
        if not frame.name:
            name = mechanism.name_of(frame)
            yield Finding("warning", "unnamed", f"{frame.kind} {name!r}", "has no name of its own, only a number")


def _reachable(mechanism: Mechanism) -> Iterator[Finding]:
    """Trees that share no joint and no closure with the first one."""
    roots = [root for root in mechanism.roots if any(isinstance(frame, Link) for frame in root.traverse())]
    if not roots:
        yield Finding("error", "no-links", "mechanism", "has no links")
        return
    together: set[Frame] = set()
    waiting = [roots[0]]
    while waiting:
        root = waiting.pop()
        if root in together:
            continue
        together.add(root)
        waiting += [
            end.root
            for closure in mechanism.closures.values()
            for end, other in ((closure.joint, closure.link), (closure.link, closure.joint))
            if other.root is root
        ]
    for root in roots:
        if root not in together:
            links = [mechanism.name_of(frame) for frame in root.traverse() if isinstance(frame, Link)]
            names = ", ".join(links[:4]) + (", ..." if len(links) > 4 else "")
            text = f"cannot be reached from the first root through any joint or closure (links: {names})"
            yield Finding("warning", "unreachable", f"{root.kind} {mechanism.name_of(root)!r}", text)


RULES: tuple[Callable[[Mechanism], Iterator[Finding]], ...] = (
    _names,
    _reachable,
    check_motion.loose_joints,
    check_motion.limits,
    check_motion.couplings,
    check_motion.loops,
    check_motion.laws,
    check_motion.cones,
    check_motion.goals,
    check_body.meshes,
    check_body.shapes,
    check_body.masses,
    check_body.scale,
)
