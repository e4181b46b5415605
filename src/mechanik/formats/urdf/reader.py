"""URDF reader: builds a mechanism from a URDF, with links and joints in the order of the file.

Numbers that only simulators and controllers use are stored in `extras`, and the writer writes them back. Besides the
elements of the format, a file may contain a block that other tools ignore:

    <mechanik>
      <base free="floating_base"/>
      <closure name="loop" kind="pin" link="coupler" onto_link="rocker" axis="0 0 1"> <at xyz="1 0 0"/> </closure>
      <values joint="crank" values="0.6"/>
      <values joint="base" values="0 0 1 0.1 0.2 0.3" wxyz="0.98 0.03 0.11 0.14"/>
    </mechanik>

The block may also contain gears, racks and joint constraints, see `sidecar.py`. <values> contains the value of each dof
of a joint, m or rad. For a floating joint it also contains the quaternion `wxyz`, if the angles do not give exactly
this quaternion. A joint without <values> is at zero, or at the limit nearest to zero. The values of a joint that closes
a loop follow from the poses of its links; its <values> only select between equivalent angles.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from xml.etree.ElementTree import Element

import numpy as np

from mechanik.errors import FormatError
from mechanik.formats.json.reader import AGREEMENT_TOLERANCE
from mechanik.formats.source import Source, file_resolver, open_source
from mechanik.formats.urdf.sidecar import (
    SidecarEntry,
    add_couplings,
    close_loops,
    read_closures,
    read_couplings,
    read_sidecar,
)
from mechanik.formats.urdf.urdf_geometry import (
    UrdfShapeReader,
    format_number,
    format_numbers,
    read_inertial,
    read_origin,
)
from mechanik.formats.xml_node import XmlNode, parse_xml
from mechanik.model.builder import trim as trim_mechanism
from mechanik.model.dof import ALL_DOFS, DoF, joint_values_from_pose
from mechanik.model.frame import Frame, Link
from mechanik.model.joint import Joint
from mechanik.model.joint_constraint import Coupling
from mechanik.model.mechanism import Mechanism
from mechanik.spatial import euler, quaternion
from mechanik.spatial.array import Array
from mechanik.validation import as_axes_wxyz, format_count, read_only

EXTRA_ELEMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "limits": ("limit", ("effort", "velocity")),
    "safety": ("safety_controller", ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")),
    "dynamics": ("dynamics", ("damping", "friction")),
    "calibration": ("calibration", ("rising", "falling")),
}
"""For each category of `extras`: the element in a <joint>, and its numeric attributes."""


def read_joint_extras(extras: dict[str, dict[str, Any]], name: str, joint: XmlNode) -> None:
    """Add the simulator and controller data of a <joint> to `extras`."""
    for category, (tag, attributes) in EXTRA_ELEMENTS.items():
        node = joint.first(tag)
        if node is None:
            continue
        values = {attribute: value for attribute in attributes if (value := node.number(attribute)) is not None}
        if values:
            extras.setdefault(category, {})[name] = values


def extra_attributes(extras: Mapping[str, Any], category: str, joint: str) -> dict[str, str]:
    """Return the stored numbers of a joint as attribute texts, without keys that the element of URDF does not have."""
    values = _as_mapping(_as_mapping(extras.get(category)).get(joint))
    return {
        key: format_number(value)
        for key, value in values.items()
        if key in EXTRA_ELEMENTS[category][1] and _is_number(value)
    }


def unwritten_extras(extras: Mapping[str, Any], joints: Collection[str]) -> Iterator[str]:
    """Yield the extras that a URDF with these joints cannot contain: "CATEGORY of JOINT", or an unknown category."""
    for category, entries in extras.items():
        if category not in EXTRA_ELEMENTS or not isinstance(entries, Mapping):
            yield str(category)
            continue
        for name, values in cast("Mapping[str, Any]", entries).items():
            if name not in joints or len(extra_attributes(extras, category, name)) < max(len(_as_mapping(values)), 1):
                yield f"{category} of {name}"


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
"""Joint types of URDF."""
XACRO_UNCHECKED_ELEMENTS = ("gazebo", "transmission", "sensor", "mechanik")
"""Elements whose content is not checked for xacro."""


@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """A <joint> whose type and link names have been checked."""

    node: XmlNode
    name: str
    type: str
    parent: str
    child: str


def check_is_urdf(robot: XmlNode) -> None:
    """Raise an error if the XML is xacro or another format; warn if the robot has no name."""
    for node in robot.walk(skip_children_of=XACRO_UNCHECKED_ELEMENTS):
        prefix, colon, _ = node.tag.partition(":")
        is_xacro = colon and (prefix == "xacro" or "xacro" in robot.attributes.get(f"xmlns:{prefix}", ""))
        expressions = [value for value in node.attributes.values() if "${" in value or "$(" in value]
        if is_xacro or expressions:
            excerpt = f"<{node.tag}>" if is_xacro else repr(expressions[0])
            raise FormatError(
                f"{node.location}: {excerpt} is xacro; expand the file first: xacro in.xacro > out.urdf "
                "(xacro is part of ROS; otherwise: pip install xacro)"
            )
    if robot.tag != "robot":
        formats = {"mujoco": "an MJCF model", "sdf": "an SDF model", "COLLADA": "a mesh in COLLADA"}
        hint = f"; this is {formats[robot.tag]}" if robot.tag in formats else ""
        raise FormatError(f"{robot.location}: the root element is <{robot.tag}>; a URDF has <robot>{hint}")
    if not robot.attributes.get("name", "").strip():
        robot.warn("has no name")


def nodes_by_name(robot: XmlNode, tag: str) -> dict[str, XmlNode]:
    """Return the elements with a tag by name, in the order of the file; names must be unique."""
    nodes: dict[str, XmlNode] = {}
    for node in robot.all(tag):
        name = node.require("name")
        if name in nodes:
            raise FormatError(f"{node.location}: the {tag} in line {nodes[name].line} is also called {name!r}")
        nodes[name] = node
    return nodes


def read_joints(robot: XmlNode, links: Mapping[str, XmlNode]) -> list[UrdfJoint]:
    """Return all joints in the order of the file; each connects two existing links, and no link has two parents."""
    joints: list[UrdfJoint] = []
    parent_joints: dict[str, str] = {}
    for name, node in nodes_by_name(robot, "joint").items():
        joint_type = node.require("type").strip()
        if joint_type not in JOINT_TYPES:
            raise node.make_error(f"has the unknown type {joint_type!r}{did_you_mean(joint_type, JOINT_TYPES)}")
        ends: list[str] = []
        for tag in ("parent", "child"):
            end = node.first(tag)
            if end is None:
                raise node.make_error(f"has no <{tag}>")
            link = end.require("link")
            if link not in links:
                raise end.make_error(f"names the link {link!r}; there is no such link{did_you_mean(link, links)}")
            ends.append(link)
        parent, child = ends
        if parent == child:
            raise node.make_error(f"connects the link {child!r} to itself")
        if child in parent_joints:
            raise node.make_error(
                f"has the child {child!r}, which is already the child of joint {parent_joints[child]!r}; a URDF is a "
                "tree. To close a loop, replace this joint by a closure in NAME.closures.json beside the file, or by "
                "a <closure> in a block <mechanik>"
            )
        parent_joints[child] = name
        joints.append(UrdfJoint(node, name, joint_type, parent, child))
    return joints


def find_root(links: Mapping[str, XmlNode], joints: Sequence[UrdfJoint]) -> str:
    """Return the only link without a parent joint; raise an error if there are several, or if links form a cycle."""
    parents = {joint.child: joint.parent for joint in joints}
    roots = [name for name in links if name not in parents]
    if len(roots) > 1:
        root_names = ", ".join(repr(name) for name in roots[:6]) + (", ..." if len(roots) > 6 else "")
        raise FormatError(
            f"{links[roots[1]].location}: {len(roots)} links are not the child of any joint; a URDF has one root: "
            f"{root_names}"
        )
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    visited_links: set[str] = set()
    link_stack = list(roots)
    while link_stack:
        name = link_stack.pop()
        visited_links.add(name)
        link_stack.extend(children.get(name, ()))
    unreached_links = [name for name in links if name not in visited_links]
    if unreached_links:
        chain = [unreached_links[0]]
        while parents[chain[-1]] not in chain:
            chain.append(parents[chain[-1]])
        cycle = chain[chain.index(parents[chain[-1]]) :]
        names = " -> ".join(repr(name) for name in [cycle[0], *reversed(cycle)][:8])
        raise FormatError(f"{links[cycle[0]].location}: these links form a cycle without a root: {names}")
    return roots[0]


def list_names(names: Sequence[str]) -> str:
    """Return the first three names and the number of further names, for the end of a message."""
    count_text = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + count_text


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return the most similar known name as a question, for the end of a message; empty if none is similar."""
    similar_names = difflib.get_close_matches(name, list(known_names), n=1, cutoff=0.5)
    return f"; did you mean {similar_names[0]!r}?" if similar_names else ""


def apply_mimic(specs: Sequence[UrdfJoint], joints: Mapping[str, Joint]) -> None:
    """Couple the mimic joints to their leaders, which may be before or after them in the file."""
    leaders: dict[str, tuple[XmlNode, str]] = {}
    ignored_mimics: list[tuple[XmlNode, str, str]] = []
    for spec in specs:
        node = spec.node.first("mimic")
        if node is None:
            continue
        leader = node.require("joint")
        if leader not in joints:  # only a warning, because such files exist, and other readers ignore <mimic>
            node.warn(f"is ignored: there is no joint {leader!r}{did_you_mean(leader, joints)}")
            continue
        joints_without_single_dof = [name for name in (spec.name, leader) if len(joints[name].dof) != 1]
        if joints_without_single_dof:
            ignored_mimics.append((node, spec.name, joints_without_single_dof[0]))
        else:
            leaders[spec.name] = node, leader
    _warn_about_ignored_mimics(ignored_mimics)
    _check_no_mimic_cycle(leaders)
    couplings: list[tuple[XmlNode, Coupling]] = []
    for name, (node, leader) in leaders.items():
        ratio, offset = node.number("multiplier"), node.number("offset")
        couplings.append((node, joints[name].mimic(joints[leader], 1.0 if ratio is None else ratio, offset or 0.0)))
    for node, coupling in couplings:
        if has_conflicting_limits(coupling):
            mimic, leader = coupling.mimic.name, coupling.leader.name
            node.document.warnings.append(
                f"{node.location}: joint {mimic!r} mimics {leader!r} with ratio {coupling.ratio:g}, and the limits "
                f"of {mimic!r} contradict those of {leader!r}; the limits of {mimic!r} are ignored"
            )


def has_conflicting_limits(coupling: Coupling) -> bool:
    """Return whether the limits of a mimic joint and of its leader, which has a range of motion, exclude each other."""
    lower, upper = coupling.leader.limits(coupling.leader_dof)
    required_lower, required_upper = coupling.limits_for_leader()
    return lower < upper and max(lower, required_lower) >= min(upper, required_upper)


def _warn_about_ignored_mimics(ignored_mimics: Sequence[tuple[XmlNode, str, str]]) -> None:
    """Add one warning for all ignored <mimic> elements, because some robots have a dozen of them.

    Args:
        ignored_mimics: the element, its joint, and the joint (this or its leader) that does not have one dof.
    """
    if len(ignored_mimics) == 1:
        node, _, name = ignored_mimics[0]
        node.warn(f"is ignored: joint {name!r} does not have exactly one dof")
    elif ignored_mimics:
        first_node = ignored_mimics[0][0]
        first_node.document.warnings.append(
            f"{first_node.location}: the <mimic> of {len(ignored_mimics)} joints is ignored, because they or their "
            f"leaders do not have exactly one dof: {list_names([name for _, name, _ in ignored_mimics])}"
        )


def _check_no_mimic_cycle(leaders: Mapping[str, tuple[XmlNode, str]]) -> None:
    for name, (node, leader) in leaders.items():
        chain = [name]
        while leader in leaders and leader not in chain:
            chain.append(leader)
            leader = leaders[leader][1]
        if leader == name:
            raise node.make_error(f"makes the joint mimic itself: {' -> '.join([*chain, name])}")


# ---- writing ----------------------------------------------------------------------------------


def joint_value_elements(name: str, joint: Joint, dof_joints: Mapping[DoF, str]) -> Iterator[Element]:
    """Yield the <values> elements of a joint; none if its values are the defaults of the reader.

    Args:
        name: name of the joint.
        joint: the joint.
        dof_joints: for a joint that is split, the name of the single-dof joint of each dof; otherwise empty.
    """
    if dof_joints:
        values = _exact_values(joint)
        for dof, dof_joint in dof_joints.items():
            if dof not in joint._couplings and not _is_default_value(joint, dof, float(values[dof])):
                yield Element("values", joint=dof_joint, values=format_number(values[dof]))
    elif joint.closure is not None:
        if not _has_default_values(joint):
            # the reader computes the values from the links; the written values only select between equivalent angles
            yield Element(
                "values", joint=name, values=format_numbers(np.clip(joint.values.round(6), joint.lower, joint.upper))
            )
    elif joint.dof and not joint._couplings and not _has_default_values(joint):
        element = Element("values", joint=name, values=format_numbers(joint.values))
        if joint.has_quaternion and not np.array_equal(joint.rotation_wxyz, _wxyz_from_values(joint._values)):
            element.set("wxyz", format_numbers(joint.rotation_wxyz))
        yield element


def _is_default_value(joint: Joint, dof: DoF, value: float) -> bool:
    # if the limits of a mimic joint and its leader exclude each other, the value depends on the order of reading
    couplings = [coupling for coupling in joint._mimic_couplings if coupling.leader_dof is dof]
    return value == joint._clamp(dof, 0.0) and not any(has_conflicting_limits(coupling) for coupling in couplings)


def _has_default_values(joint: Joint) -> bool:
    if joint.closure is None:
        is_rotated = joint.has_quaternion and not np.array_equal(joint.rotation_wxyz, quaternion.identity())
        return not is_rotated and all(_is_default_value(joint, dof, joint.value(dof)) for dof in joint.dof)
    lower, upper = joint._lower, joint._upper
    initial_values = np.clip(np.zeros(6), lower, upper)
    values = joint_values_from_pose(joint.closure._relative_pose(), joint.dof, initial_values, lower, upper)[
        list(joint.dof)
    ]
    return bool((np.abs(values - joint.values) <= 1e-9 * (1.0 + np.abs(values))).all())


def _exact_values(joint: Joint) -> Array:
    """Return all six values; the angles of a spherical joint are recomputed if they do not give it to 1e-15 rad."""
    values = np.array(joint._values)
    if joint.has_quaternion and quaternion.angle_between(_wxyz_from_values(values), joint.rotation_wxyz) > 1e-15:
        stored_angles = values[[5, 4, 3]]
        values[[5, 4, 3]] = euler.euler_from_quaternion(
            joint.rotation_wxyz, order="zyx", axes="moving", near=stored_angles
        )
    return values


def _wxyz_from_values(values: Array) -> Array:
    return quaternion.from_euler(values[[5, 4, 3]], order="zyx", axes="moving")


# ---- reading ----------------------------------------------------------------------------------


def joint_value_nodes(robot: XmlNode) -> dict[str, XmlNode]:
    """Return the <values> elements by joint name."""
    nodes: dict[str, XmlNode] = {}
    for node in (child for block in robot.all("mechanik") for child in block.all("values")):
        name = node.require("joint")
        if name in nodes:
            raise node.make_error(f"of joint {name!r} is a duplicate of line {nodes[name].line}")
        nodes[name] = node
    return nodes


def set_joint_values(nodes: dict[str, XmlNode], joints: Mapping[str, Joint]) -> None:
    """Set the values of the joints that `nodes` name, and remove these entries from `nodes`."""
    entries = [(nodes.pop(name), name, joint) for name, joint in joints.items() if name in nodes]
    for node, name, joint in entries:
        if not joint._couplings:
            _set_independent_values(joint, name, node)
    for node, name, joint in entries:  # after all leaders have their values
        if joint._couplings:
            value, coupled_value = _read_values(joint, name, node)[0], float(joint.values[0])
            if abs(value - coupled_value) > AGREEMENT_TOLERANCE * (1.0 + abs(coupled_value)):
                leader, unit = joint.couplings[0].leader.name, joint.dof[0].unit
                raise node.make_error(
                    f"sets joint {name!r} to {value:g} {unit}, but it mimics {leader!r}, which gives "
                    f"{coupled_value:g} {unit}"
                )


def _set_independent_values(joint: Joint, name: str, node: XmlNode) -> None:
    """Check the values and set them to the last bit; `_assign` updates the quaternion, but may change the last bit."""
    values_by_dof = dict(zip(joint.dof, _read_values(joint, name, node), strict=True))
    for dof, value in values_by_dof.items():
        lower, upper = joint.limits(dof)
        if not lower <= value <= upper:
            unit = dof.unit
            raise node.make_error(
                f"sets joint {name!r} to {value:g} {unit}, outside its limits {lower:g} to {upper:g} {unit}"
            )
    joint._assign(values_by_dof)
    for dof, value in values_by_dof.items():
        joint._values[dof] = value
    wxyz = node.numbers("wxyz", 4)
    if wxyz is not None:
        _set_rotation(joint, name, node, wxyz)
    for coupling in joint._mimic_couplings:
        coupling.update_mimic()
    joint._invalidate()


def _read_values(joint: Joint, name: str, node: XmlNode) -> tuple[float, ...]:
    count, dof_count = len(node.require("values").split()), len(joint.dof)
    if count != dof_count:
        dofs = f" ({' '.join(dof.name for dof in joint.dof)})" if dof_count else ""
        raise node.make_error(
            f"of joint {name!r} has {format_count(count, 'number')}; "
            f"the joint has {format_count(dof_count, 'dof')}{dofs}"
        )
    return node.numbers("values", dof_count) or ()


def _set_rotation(joint: Joint, name: str, node: XmlNode, wxyz: tuple[float, ...]) -> None:
    if not joint.has_quaternion:
        raise node.make_error(f"of joint {name!r} has a wxyz; only a spherical or floating joint may have one")
    if not 1e-9 < math.hypot(*wxyz) < 1e9:
        raise node.make_error(f"has wxyz={node.attributes['wxyz']!r}; the norm of a quaternion must be 1e-9 to 1e9")
    unit_wxyz = joint._unit_quaternion(wxyz)
    if quaternion.angle_between(unit_wxyz, _wxyz_from_values(joint._values)) > AGREEMENT_TOLERANCE:
        node.warn(f"of joint {name!r} has values and a wxyz that disagree; the wxyz is ignored")
    else:
        joint._rotation_wxyz = read_only(unit_wxyz)


BLOCK_TAGS = ("closure", "values", "gear", "rack", "joint_constraint")
"""Elements of the block <mechanik> besides <base>."""
UNLIMITED = 1e30
"""m or rad; a limit of this size or more means no limit, because the format requires a number."""


def read_urdf(
    source: str | Path | Source,
    *,
    base: Literal["fixed", "free"] | None = None,
    mimic: bool = True,
    trim: bool = False,
    packages: Mapping[str, str | Path] | None = None,
    closures: str | Path | Mapping[str, Any] | Sequence[Any] | None = None,
) -> Mechanism:
    """Read a mechanism from a URDF.

    Args:
        source: a path, or the text itself, which begins with `<`.
        base: "fixed" attaches the root link to the world; "free" adds a floating joint, which comes first in q. Its
            name is `floating_base` or the name in <base> of the block <mechanik>. By default the base is free if the
            file contains <base>, otherwise fixed.
        mimic: whether mimic joints follow their leaders; otherwise they are independent.
        trim: whether to remove the subtrees that have no moving joint, closure or goal, as `mk.trim` does.
        packages: folder of each package, by package name, for `package://` and `model://`.
        closures: loop closures, gears, racks and joint constraints: a JSON or YAML file, or its content. By default the
            file NAME.closures.json (or .yaml, .yml) beside NAME.urdf, if it exists.

    Returns:
        The mechanism. Its `warnings` describe ignored and unusual content, and its `extras` contain the data that only
        simulators and controllers use, by category ("limits", "safety", "dynamics", "calibration") and joint name.

    Raises:
        FileMissing: the file does not exist.
        FormatError: the text is not XML, not a valid URDF, or xacro that must be expanded first; or a closure, gear,
            rack or joint constraint is invalid. The message says where and why.
        MissingExtra: the closures are in a YAML file, and PyYAML is not installed.

    Example:
        >>> text = '<robot name="door"><link name="frame"/><link name="leaf"/>'
        >>> text += '<joint name="hinge" type="continuous"><parent link="frame"/><child link="leaf"/>'
        >>> text += '<axis xyz="0 0 1"/></joint></robot>'
        >>> door = mk.formats.read_urdf(text)
        >>> list(door.joints), door.nq
        (['hinge'], 1)
    """
    if base not in (None, "fixed", "free"):
        raise FormatError(f"base must be 'fixed' or 'free', not {base!r}")
    urdf_source = source if isinstance(source, Source) else open_source(source)
    robot = parse_xml(urdf_source)
    check_is_urdf(robot)

    shape_reader = UrdfShapeReader(robot, file_resolver(urdf_source, packages))
    link_nodes = nodes_by_name(robot, "link")
    specs = read_joints(robot, link_nodes)
    if not link_nodes:  # a failed xacro expansion writes such files; some published packages contain them
        robot.warn("has no link; the mechanism is empty")
        return Mechanism([], name=robot.attributes.get("name", ""), warnings=robot.document.warnings)
    root_name = find_root(link_nodes, specs)

    free_base_name = _free_base_name(robot, base, specs)
    base_joints = {} if free_base_name is None else {free_base_name: Joint(free_base_name, dof=ALL_DOFS)}
    links = {name: _read_link(node, shape_reader) for name, node in link_nodes.items()}
    shape_reader.report()
    extras: dict[str, dict[str, Any]] = {}
    joints = {spec.name: _read_joint(spec, extras) for spec in specs}
    for spec in specs:
        links[spec.parent].add_child(joints[spec.name])
        joints[spec.name].add_child(links[spec.child])
    root: Frame = links[root_name]
    for joint in base_joints.values():
        joint.add_child(root)
        root = joint
    if mimic:
        apply_mimic(specs, joints)
    joints |= base_joints
    sidecar = read_sidecar(urdf_source, robot, closures)
    couplings = read_couplings(sidecar, robot)
    add_couplings(couplings, joints, ("gear", "rack"))
    _set_values_and_close_loops(robot, joints, links, read_closures(sidecar, robot, links))
    add_couplings(couplings, joints, ("joint_constraint",))

    name = robot.attributes.get("name", "").strip() or urdf_source.stem
    mechanism = Mechanism(root, name=name, warnings=robot.document.warnings)
    mechanism.extras.update(extras)
    if trim:
        trim_mechanism(mechanism)
    return mechanism


def _set_values_and_close_loops(
    robot: XmlNode, joints: Mapping[str, Joint], links: Mapping[str, Link], closure_entries: Sequence[SidecarEntry]
) -> None:
    """Set the joint values, close the loops at these values, and then set the values of the closing joints."""
    value_nodes = joint_value_nodes(robot)
    set_joint_values(value_nodes, joints)
    closing_joints = {closure.name: closure.joint for closure in close_loops(closure_entries, links, set(joints))}
    set_joint_values(value_nodes, {name: joint for name, joint in closing_joints.items() if isinstance(joint, Joint)})
    free_bases = {base.attributes.get("free") for block in robot.all("mechanik") for base in block.all("base")}
    for name, node in value_nodes.items():
        if name not in free_bases:  # a free base in the file has no joint if the caller requests a fixed base
            hint = did_you_mean(name, [*joints, *closing_joints])
            raise node.make_error(f"names the joint {name!r}; there is no such joint{hint}")


def _free_base_name(robot: XmlNode, base: str | None, specs: Sequence[UrdfJoint]) -> str | None:
    """Return the name of the floating base joint, or None for a fixed base."""
    name = "floating_base"
    for block in robot.all("mechanik"):
        for child in block.children:
            if child.tag == "base":
                base, name = base or "free", child.require("free")
            elif child.tag not in BLOCK_TAGS:
                known_tags = ", ".join(f"<{tag}>" for tag in ("base", *BLOCK_TAGS))
                raise child.make_error(f"is unknown in the block <mechanik>, which may contain {known_tags}")
    if base != "free":
        return None
    used_names = {spec.name for spec in specs}
    while name in used_names:
        name += "_"
    return name


def _read_link(node: XmlNode, shape_reader: UrdfShapeReader) -> Link:
    return Link(
        node.attributes["name"],
        visuals=shape_reader.read_shapes(node, "visual"),
        collisions=shape_reader.read_shapes(node, "collision"),
        inertial=read_inertial(node),
    )


def _read_joint(spec: UrdfJoint, extras: dict[str, dict[str, Any]]) -> Joint:
    node = spec.node
    position, wxyz = read_origin(node)
    joint = Joint(spec.name, position=position, wxyz=wxyz)
    if spec.type == "floating":
        joint.set_dof(ALL_DOFS)
    elif spec.type == "planar":
        joint.set_dof((DoF.X, DoF.Y, DoF.EZ))
        joint.axes_wxyz = as_axes_wxyz(_read_axis(node), spec.name)
    elif spec.type != "fixed":
        set_axis(joint, _read_axis(node), is_prismatic=spec.type == "prismatic")
    if spec.type in ("revolute", "prismatic"):
        _read_limits(joint, node)
    read_joint_extras(extras, spec.name, node)
    return joint


def set_axis(joint: Joint, axis: Array, is_prismatic: bool) -> None:
    """Give a joint one dof along or about a unit vector (3,): X, Y, Z, EX, EY or EZ, or a rotated z axis."""
    for axis_index in range(3):
        # the tolerance ignores rounding errors of the axis, which would add a rotation to every pose
        if np.abs(axis - np.eye(3)[axis_index]).max() < 1e-15:
            joint.set_dof(DoF(axis_index if is_prismatic else 3 + axis_index))
            return
    joint.set_dof(DoF.Z if is_prismatic else DoF.EZ)
    joint.axis = axis


def _read_axis(node: XmlNode) -> Array:
    """Return the unit axis (3,) of a joint."""
    axis = node.first("axis")
    xyz = None if axis is None else axis.numbers("xyz", 3)
    if axis is None or xyz is None:
        node.warn("has no axis; the default is 1 0 0")
        return np.array([1.0, 0.0, 0.0])
    if not 1e-12 < math.hypot(*xyz) < UNLIMITED:
        raise axis.make_error(f"is {axis.attributes['xyz']!r}; it must not be zero, nor longer than {UNLIMITED:g}")
    return unit_axis(np.array(xyz))


def unit_axis(axis: Array) -> Array:
    """Normalize an axis (3,). Reader and writer must both use this function, so that the last bit is the same."""
    return axis / math.hypot(*axis)


def _read_limits(joint: Joint, node: XmlNode) -> None:
    limit = next(iter(node.all("limit")), None)  # `read_joint_extras` warns about a second <limit>
    lower = None if limit is None else limit.number("lower")
    upper = None if limit is None else limit.number("upper")
    if lower is None and upper is None:
        node.warn(f"is {node.attributes['type'].strip()} and has no lower and upper limit; it is read without limits")
        return
    lower, upper = lower or 0.0, upper or 0.0  # the format defines a missing limit as 0
    unit = joint.dof[0].unit
    if lower > upper:
        raise (limit or node).make_error(
            f"has a lower limit of {lower:g} {unit}, above its upper limit of {upper:g} {unit}"
        )
    if lower >= UNLIMITED or upper <= -UNLIMITED:
        raise (limit or node).make_error(f"allows only values beyond {UNLIMITED:g} {unit}")
    joint.set_limits(-np.inf if lower <= -UNLIMITED else lower, np.inf if upper >= UNLIMITED else upper)
