"""Checks of a mechanism or a model file for errors, probable mistakes and unusual content; see `check`.

A rule is a generator that takes a mechanism and yields findings; `RULES` lists all rules. For a URDF that cannot be
read, `check_urdf` lists faults of all links and joints, while the reader stops at the first fault.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from mechanik.errors import DoFError, FileMissing, FormatError, LimitsError, MechanikError, NotARotation, StructureError
from mechanik.formats.load import load
from mechanik.formats.source import file_resolver, open_source
from mechanik.formats.urdf.reader import JOINT_TYPES, check_is_urdf, did_you_mean
from mechanik.formats.urdf.urdf_geometry import UrdfShapeReader, read_inertial, read_origin
from mechanik.formats.xml_node import XmlNode, parse_xml
from mechanik.model import DoF, Frame, Inertial, Joint, Link, Mechanism, Mesh
from mechanik.model.dof import TRANSLATIONS
from mechanik.model.shapes import Box, Capsule, Cylinder, Shape, Sphere

Severity = Literal["error", "warning", "note"]
"""Severities of a finding, the worst first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A single result of `check`.

    Attributes:
        severity: "error" (the model does not work), "warning" (probably a mistake) or "note" (worth knowing).
        code: short name of the kind of finding, such as "mesh-missing".
        where: the part of the model, such as "joint 'elbow'"; empty for the whole model.
        message: the problem, as continuation of the sentence that begins with `where`; a whole sentence if `where` is
            empty or names a file or a line.

    Example:
        >>> finding = mk.formats.Finding("warning", "no-limits", "joint 'elbow'", "has no limits")
        >>> f"{finding.where} {finding.message}"
        "joint 'elbow' has no limits"
    """

    severity: Severity
    code: str
    where: str
    message: str


MAX_MESH_SCALE, MIN_MESH_SCALE = 100.0, 1e-5
"""Ratios. Meshes are in m, mm (scale 0.001) or inches; a scale at or beyond these bounds suggests a wrong unit."""
MAX_JOINT_OFFSET = 100.0
"""m between a joint and the frame of its parent; a larger offset suggests mm instead of m."""


def check_meshes(mechanism: Mechanism) -> Iterator[Finding]:
    checked_meshes: set[tuple[str, str]] = set()
    mirrored_links: list[str] = []
    for name, link in mechanism.links.items():
        for shape in _shapes(link):
            if not isinstance(shape, Mesh) or (name, shape.uri) in checked_meshes:
                continue
            checked_meshes.add((name, shape.uri))
            if shape.path is None:
                text = f"has the mesh file {shape.uri!r}, which was not found on disk"
                yield Finding("warning", "mesh-missing", f"link {name!r}", text)
            elif not Path(shape.path).is_file():
                text = f"has the mesh file {shape.uri!r}, which is no longer at {shape.path}"
                yield Finding("warning", "mesh-missing", f"link {name!r}", text)
            abs_scale = np.abs(shape.scale)
            scale_text = " ".join(f"{x:g}" for x in shape.scale)
            if not np.isfinite(abs_scale).all():
                text = f"has the mesh {shape.uri!r} with the scale {scale_text}, which is not finite"
                yield Finding("error", "mesh-scale", f"link {name!r}", text)
            elif abs_scale.any() and (abs_scale.max() >= MAX_MESH_SCALE or abs_scale.max() <= MIN_MESH_SCALE):
                text = f"has the mesh {shape.uri!r} with the scale {scale_text}; is the unit right?"
                yield Finding("warning", "mesh-scale", f"link {name!r}", text)
            if np.prod(np.sign(shape.scale)) < 0:
                mirrored_links.append(name)
    if mirrored_links:  # a single finding, because a robot with mirrored left and right sides has many such meshes
        unique_links = list(dict.fromkeys(mirrored_links))
        listed_names = ", ".join(unique_links[:4]) + (", ..." if len(unique_links) > 4 else "")
        mesh_count_text = "a mesh that is" if len(mirrored_links) == 1 else f"{len(mirrored_links)} meshes that are"
        yield Finding(
            "note",
            "mesh-mirrored",
            "mechanism",
            f"has {mesh_count_text} mirrored by a negative scale (links: {listed_names})",
        )


def check_shapes(mechanism: Mechanism) -> Iterator[Finding]:
    for name, link in mechanism.links.items():
        for shape in dict.fromkeys(_shapes(link)):
            if min(_extents(shape)) == 0:
                text = f"has a {type(shape).__name__.lower()} with a size of 0"
                yield Finding("warning", "flat-shape", f"link {name!r}", text)


def check_masses(mechanism: Mechanism) -> Iterator[Finding]:
    has_mass = any(link.inertial is not None and link.inertial.mass > 0 for link in mechanism.links.values())
    for name, link in mechanism.links.items():
        location = f"link {name!r}"
        if link.inertial is None:
            if has_mass and _is_movable(link):
                yield Finding("note", "no-mass", location, "moves and has no mass, while other links have one")
            continue
        if link.inertial.mass < 0:
            yield Finding("error", "negative-mass", location, f"has a mass of {link.inertial.mass:g} kg")
        elif link.inertial.mass == 0 and _is_movable(link):
            yield Finding("warning", "zero-mass", location, "moves and has a mass of 0 kg")
        elif not _is_physical(link.inertial):
            text = "has an impossible inertia: a principal moment is negative, or above the sum of the other two"
            yield Finding("warning", "inertia", location, text)


def check_joint_offsets(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        distance = float(np.linalg.norm(joint.position))
        if joint.parent is not None and distance > MAX_JOINT_OFFSET:
            text = f"is {distance:g} m from the frame of its parent; is the unit millimetres?"
            yield Finding("warning", "large-offset", f"joint {name!r}", text)


def _shapes(link: Link) -> list[Shape]:
    return [instance.shape for instance in (*link.visuals, *link.collisions)]


def _extents(shape: Shape) -> tuple[float, ...]:
    match shape:
        case Box():
            return shape.size
        case Sphere():
            return (shape.radius,)
        case Cylinder():
            return shape.radius, shape.length
        case Capsule():
            return (shape.radius,)
        case Mesh():
            return tuple(abs(x) for x in shape.scale)
        case _:
            return (1.0,)  # the constructors of the other shapes reject zero extents


def _is_movable(link: Link) -> bool:
    """Return whether the joint above the link has a dof; the mass of a fixed link can be part of its parent's mass."""
    return link.parent is not None and bool(getattr(link.parent, "dof", ()))


def _is_physical(inertial: Inertial) -> bool:
    ixx, ixy, ixz, iyy, iyz, izz = inertial.inertia
    if not any(inertial.inertia):
        return True  # a point mass
    min_moment, middle_moment, max_moment = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    return bool(min_moment >= -1e-9 * max_moment and min_moment + middle_moment >= max_moment * (1 - 1e-6))


CHECK_TOLERANCE = 1e-6
"""m and rad; smaller gaps and violations are not reported. For joint constraints, relative to their scale."""
DEGREES_THRESHOLD = 45.0
"""rad (seven revolutions). A limit of this size or more is probably in degrees: few joints rotate so far, and most
limits in degrees are above 45."""
UNLIMITED_THRESHOLD = 1e4
"""m or rad. Limits of this size or more mean that the joint has no limits; some programs write such limits to files."""


def check_joint_links(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        if joint.child is None:
            yield Finding("warning", "no-child", f"joint {name!r}", "has no child link and closes no loop")
        if joint.parent is None and joint.dof and not _is_floating(joint):
            yield Finding("note", "no-parent", f"joint {name!r}", "has no parent link and moves relative to the world")
    if not any(joint.dof for joint in mechanism.joints.values()):
        yield Finding("note", "no-motion", "mechanism", "has no movable joint")


def check_limits(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        if joint.is_closure:
            continue
        unlimited_dofs: list[DoF] = []
        for dof in joint.dof:
            lower, upper = joint.limits(dof)
            value, unit = joint.value(dof), dof.unit
            location = f"{dof.name} of joint {name!r}" if len(joint.dof) > 1 else f"joint {name!r}"
            if not lower - CHECK_TOLERANCE <= value <= upper + CHECK_TOLERANCE:
                text = f"has the value {value:g} {unit}, outside its limits {lower:g} to {upper:g} {unit}"
                yield Finding("warning", "value-outside", location, text)
            if lower == upper:
                yield Finding("note", "locked", location, f"cannot move: both limits are {lower:g} {unit}")
            elif not lower <= 0 <= upper and dof not in joint._couplings:
                text = f"cannot be 0, because its limits are {lower:g} to {upper:g} {unit}"
                yield Finding("note", "zero-excluded", location, text)
            if dof.is_rotation and any(
                DEGREES_THRESHOLD <= abs(limit) < UNLIMITED_THRESHOLD for limit in (lower, upper)
            ):
                text = f"has limits of {lower:g} to {upper:g} rad; they seem to be in degrees"
                yield Finding("warning", "degrees", location, text)
            if lower <= -UNLIMITED_THRESHOLD and upper >= UNLIMITED_THRESHOLD and dof not in joint._couplings:
                unlimited_dofs.append(dof)
        if unlimited_dofs and not _is_floating(joint) and not joint.has_quaternion:
            is_prismatic = any(dof in TRANSLATIONS for dof in unlimited_dofs)
            dof_names = " ".join(dof.name for dof in unlimited_dofs)
            text = f"has no limits in {dof_names}" if len(joint.dof) > 1 else "has no limits"
            yield Finding("warning" if is_prismatic else "note", "no-limits", f"joint {name!r}", text)


def check_couplings(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        for coupling in joint.couplings:
            location = f"joint {name!r}"
            leader, unit = coupling.leader.name, coupling.leader_dof.unit
            if coupling.ratio == 0:
                yield Finding("warning", "ratio-zero", location, f"mimics {leader!r} with ratio 0 and never moves")
                continue
            lower, upper = coupling.leader.limits(coupling.leader_dof)
            # adding 0.0 changes -0.0 to 0.0
            required_lower, required_upper = (limit + 0.0 for limit in coupling.limits_for_leader())
            if max(lower, required_lower) > min(upper, required_upper):
                text = (
                    f"mimics {leader!r}; its limits require {leader!r} to be within {required_lower:g} to "
                    f"{required_upper:g} {unit}, but the limits of {leader!r} are {lower:g} to {upper:g} {unit}"
                )
                yield Finding("error", "coupling-limits", location, text)
            elif required_lower > lower + CHECK_TOLERANCE or required_upper < upper - CHECK_TOLERANCE:
                text = (
                    f"mimics {leader!r} and narrows the range of {leader!r} to {max(lower, required_lower):g} to "
                    f"{min(upper, required_upper):g} {unit}; the limits of {leader!r} are {lower:g} to {upper:g} {unit}"
                )
                yield Finding("note", "coupling-narrows", location, text)


def check_loops(mechanism: Mechanism) -> Iterator[Finding]:
    for name, closure in mechanism.closures.items():
        gap = closure.gap()
        if not gap.is_closed(CHECK_TOLERANCE):
            text = f"has a gap of {format_amount(gap.distance)} m and {format_amount(gap.angle)} rad at the present q"
            yield Finding("error", "open-loop", f"closure {name!r}", text)


def check_joint_constraints(mechanism: Mechanism) -> Iterator[Finding]:
    for name, constraint in mechanism.joint_constraints.items():
        error, location = constraint.error(), f"joint constraint {name!r}"
        if abs(error) > CHECK_TOLERANCE * constraint.scale:
            text = f"has an error of {format_amount(error)}, in the unit of its terms, at the present q"
            yield Finding("error", "violated-constraint", location, text)
        elif not constraint.resolve_couplings()[0]:
            yield Finding(
                "note", "redundant-constraint", location, "is already satisfied by the couplings of its joints"
            )


def check_cones(mechanism: Mechanism) -> Iterator[Finding]:
    from mechanik.objectives.constraint_relations import swing_angles

    for name, swing in swing_angles(mechanism, mechanism.q).items():
        cone = mechanism.joint(name).cone
        if cone is not None and swing > cone.angle + CHECK_TOLERANCE:
            text = f"swings by {format_amount(swing)} rad; its swing limit is {format_amount(cone.angle)} rad"
            yield Finding("error", "outside-cone", f"joint {name!r}", text)


def check_goals(mechanism: Mechanism) -> Iterator[Finding]:
    for name, goal in mechanism.goals.items():
        if goal.closure is None:
            yield Finding("note", "idle-goal", f"goal {name!r}", "has no link to move")
        elif not goal.goal_dof:
            yield Finding("note", "idle-goal", f"goal {name!r}", "constrains no dof, so every pose satisfies it")


def format_amount(x: float) -> str:
    """Format a measured value in m or rad for a message; rounding errors below 1e-12 become 0."""
    return f"{x:.3g}" if abs(x) > 1e-12 else "0"


def _is_floating(joint: Joint) -> bool:
    return len(joint.dof) == 6


def check_urdf(source: str | os.PathLike[str]) -> list[Finding]:
    """List the faults of all links and joints of a URDF that cannot be read, and the warnings.

    The list is empty if the file cannot be opened, or is not XML or not a URDF.
    """
    try:
        urdf_source = open_source(source)
        robot = parse_xml(urdf_source)
        check_is_urdf(robot)
    except MechanikError:
        return []
    links = robot.all("link")
    shape_reader = UrdfShapeReader(robot, file_resolver(urdf_source))
    findings = [*_check_urdf_names(links), *_check_urdf_names(robot.all("joint"))]
    for link in links:
        findings += _check_urdf_link(link, shape_reader)
    for joint in robot.all("joint"):
        findings += _check_urdf_joint(joint, [link.attributes.get("name", "") for link in links])
    findings += _check_urdf_tree(robot)
    shape_reader.report()
    return [*findings, *(_reader_finding("warning", "reader", text) for text in robot.document.warnings)]


def _error(code: str, node: XmlNode, message: str) -> Finding:
    return Finding("error", code, f"{node.location}: {node.subject}", message)


def _check_urdf_names(nodes: list[XmlNode]) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    for node in nodes:
        name = node.attributes.get("name", "").strip()
        if not name:
            yield _error("unnamed", node, "has no name")
        elif name in lines:
            yield _error("duplicate-name", node, f"has the same name as the {node.tag} in line {lines[name]}")
        lines.setdefault(name, node.line)


def _check_urdf_link(link: XmlNode, shape_reader: UrdfShapeReader) -> Iterator[Finding]:
    for section, read in (
        ("visual", lambda: shape_reader.read_shapes(link, "visual")),
        ("collision", lambda: shape_reader.read_shapes(link, "collision")),
        ("inertial", lambda: read_inertial(link)),
    ):
        try:
            read()
        except MechanikError as error:
            yield _reader_finding("error", section, str(error))


def _check_urdf_joint(joint: XmlNode, link_names: list[str]) -> Iterator[Finding]:
    joint_type = joint.attributes.get("type", "").strip()
    if not joint_type:
        yield _error("joint-type", joint, f"has no type; use {', '.join(JOINT_TYPES)}")
    elif joint_type not in JOINT_TYPES:
        hint = did_you_mean(joint_type, JOINT_TYPES) or f"; use {', '.join(JOINT_TYPES)}"
        yield _error("joint-type", joint, f"has the unknown type {joint_type!r}{hint}")
    for tag in ("parent", "child"):
        end = joint.first(tag)
        name = "" if end is None else end.attributes.get("link", "")
        if end is None:
            yield _error("unknown-link", joint, f"has no <{tag}>")
        elif not name.strip():
            yield _error("unknown-link", joint, f"has a <{tag}> without a link")
        elif name not in link_names:
            yield _error(
                "unknown-link", joint, f"has the {tag} {name!r}; there is no such link{did_you_mean(name, link_names)}"
            )
    try:
        read_origin(joint)
        yield from _check_urdf_axis_and_limits(joint, joint_type)
    except MechanikError as error:
        yield _reader_finding("error", "number", str(error))


def _check_urdf_axis_and_limits(joint: XmlNode, joint_type: str) -> Iterator[Finding]:
    axis = joint.first("axis")
    if joint_type in ("revolute", "continuous", "prismatic", "planar") and axis is not None:
        xyz = axis.numbers("xyz", 3)
        if xyz is not None and math.hypot(*xyz) < 1e-12:
            yield _error("zero-axis", joint, "has an axis of length 0")
    if joint_type in ("revolute", "prismatic"):
        limit = joint.first("limit")
        lower, upper = (None, None) if limit is None else (limit.number("lower"), limit.number("upper"))
        if lower is None and upper is None:
            yield Finding("warning", "no-limits", f"{joint.location}: {joint.subject}", "has no limits")
        elif (lower or 0.0) > (upper or 0.0):
            unit = "rad" if joint_type == "revolute" else "m"
            text = f"has a lower limit of {lower or 0.0:g} {unit}, above its upper limit of {upper or 0.0:g} {unit}"
            yield _error("inverted-limits", joint, text)


def _check_urdf_tree(robot: XmlNode) -> Iterator[Finding]:
    """Find links with a second parent, links without a parent besides the root, and cycles of parents."""
    links = {link.attributes.get("name", ""): link for link in robot.all("link")}
    parents: dict[str, str] = {}
    for joint in robot.all("joint"):
        ends = [end.attributes.get("link", "") for tag in ("parent", "child") if (end := joint.first(tag)) is not None]
        if len(ends) == 2 and all(end in links for end in ends):
            parent, child = ends
            if child in parents:
                yield _error(
                    "second-parent", joint, f"has the child {child!r}, which already has the parent {parents[child]!r}"
                )
            parents.setdefault(child, parent)
    roots = [name for name in links if name not in parents]
    for name in roots[1:]:
        yield _error("unreachable", links[name], f"is not the child of any joint; the root is {roots[0]!r}")
    for name in links:
        chain = [name]
        while chain[-1] in parents and parents[chain[-1]] not in chain:
            chain.append(parents[chain[-1]])
        if parents.get(chain[-1]) == name:
            names = " -> ".join(repr(link) for link in [*chain, name])
            yield _error("cycle", links[name], f"is its own ancestor: {names}")


LOCATED_MESSAGE = re.compile(
    r"(?P<location>(?:[^'\"]+, )?line \d+(?:, column \d+)?|the text|[^'\"]+\.\w+): (?P<message>.+)", re.DOTALL
)
"""A message that begins with a file, a line, or both."""


def _reader_finding(severity: Severity, code: str, text: str) -> Finding:
    """Return the finding for a message of a reader, which begins with the file or line if it names one."""
    match = LOCATED_MESSAGE.fullmatch(text)
    return Finding(severity, code, match["location"], match["message"]) if match else Finding(severity, code, "", text)


SEVERITY_ORDER = ("error", "warning", "note")
"""Severities, the worst first."""

ERROR_CODES: tuple[tuple[type[MechanikError], str], ...] = (
    (FileMissing, "file-missing"),
    (LimitsError, "inverted-limits"),
    (NotARotation, "zero-axis"),
    (DoFError, "dofs"),
)
"""Finding codes of errors that prevent a mechanism from being built. Of the other errors, `FormatError` and
`StructureError` have the attribute `code`; the rest are "unreadable"."""


def check(model: Mechanism | str | os.PathLike[str]) -> list[Finding]:
    """List what is wrong (error), probably wrong (warning) or worth knowing (note) in a model, the worst first.

    Args:
        model: a mechanism, or a path or text for `load`. For a URDF that cannot be read, faults of all
            links and joints are listed, not only the first.

    Returns:
        The findings; empty if there is nothing to report.

    Example:
        >>> arm = mk.arm_2d([1.0, 0.8], limits=(-180, 180))
        >>> [(finding.severity, finding.code) for finding in mk.check(arm)]
        [('warning', 'degrees'), ('warning', 'degrees')]
    """
    try:
        mechanism = model if isinstance(model, Mechanism) else load(model)
        findings = [finding for rule in RULES for finding in rule(mechanism)]
    except MechanikError as error:
        code = _error_code(error)
        load_error = Finding("error", code, "" if isinstance(model, Mechanism) else _source_name(model), str(error))
        faults = [] if isinstance(model, Mechanism) else check_urdf(model)
        if not any(fault.severity == "error" for fault in faults):
            return [load_error]
        return sorted(faults, key=_rank)
    unreported_findings = (finding for finding in findings if not _is_in_warnings(finding, mechanism.warnings))
    reader_findings = (_reader_finding("warning", "reader", text) for text in mechanism.warnings)
    return sorted([*reader_findings, *unreported_findings], key=_rank)


def _error_code(error: MechanikError) -> str:
    default_code = error.code if isinstance(error, FormatError | StructureError) else "unreadable"
    return next((code for kind, code in ERROR_CODES if isinstance(error, kind)), default_code)


def _rank(finding: Finding) -> int:
    return SEVERITY_ORDER.index(finding.severity)


def _is_in_warnings(finding: Finding, warnings: list[str]) -> bool:
    """Return whether the reader has reported the same fault, with its line in the file."""
    if finding.code == "mesh-mirrored":
        return any("negative scale" in text for text in warnings)
    keyword = {"mesh-missing": "file", "no-limits": "limit"}.get(finding.code)
    return keyword is not None and any(keyword in text and finding.where in text for text in warnings)


def _source_name(source: object) -> str:
    text = str(source)
    return "the text" if text.lstrip()[:1] in ("<", "{") or "\n" in text else text


def _check_names(mechanism: Mechanism) -> Iterator[Finding]:
    if not mechanism.name:
        yield Finding("note", "unnamed", "mechanism", "has no name")
    for frame in [*mechanism.links.values(), *mechanism.joints.values(), *mechanism.goals.values()]:
        if not frame.name:
            name = mechanism.name_of(frame)
            yield Finding("warning", "unnamed", f"{frame.kind} {name!r}", f"has no name and is called {name!r}")


def _check_connected(mechanism: Mechanism) -> Iterator[Finding]:
    """Find trees that no chain of closures connects to the first tree."""
    roots = [root for root in mechanism.roots if any(isinstance(frame, Link) for frame in root.traverse())]
    if not roots:
        yield Finding("error", "no-links", "mechanism", "has no links")
        return
    connected_roots: set[Frame] = set()
    stack = [roots[0]]
    while stack:
        root = stack.pop()
        if root in connected_roots:
            continue
        connected_roots.add(root)
        stack += [
            end.root
            for closure in mechanism.closures.values()
            for end, other_end in ((closure.joint, closure.link), (closure.link, closure.joint))
            if other_end.root is root
        ]
    for root in roots:
        if root not in connected_roots:
            links = [mechanism.name_of(frame) for frame in root.traverse() if isinstance(frame, Link)]
            names = ", ".join(links[:4]) + (", ..." if len(links) > 4 else "")
            text = f"is not connected to the first root by any joint or closure (links: {names})"
            yield Finding("warning", "unreachable", f"{root.kind} {mechanism.name_of(root)!r}", text)


RULES: tuple[Callable[[Mechanism], Iterator[Finding]], ...] = (
    _check_names,
    _check_connected,
    check_joint_links,
    check_limits,
    check_couplings,
    check_loops,
    check_joint_constraints,
    check_cones,
    check_goals,
    check_meshes,
    check_shapes,
    check_masses,
    check_joint_offsets,
)
"""All rules. Their findings of the same severity are in this order, after the warnings of the reader."""
