"""URDF to mechanism. Links and joints stand in the order of the file; what is odd becomes a warning.

Beyond the format's own elements a file may hold a block of ours, which other tools ignore:

    <mechanik>
      <base free="floating_base"/>
      <closure name="loop" kind="pin" link="coupler" onto_link="rocker" axis="0 0 1"> <at xyz="1 0 0"/> </closure>
      <values joint="crank" values="0.6"/>
    </mechanik>

with gears, racks and laws as `bonds_file.py` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mechanik.errors import UrdfError
from mechanik.formats.beside_urdf import ClosureSpec, beside
from mechanik.formats.bonds_file import bonds_of, make_bonds
from mechanik.formats.closure_file import close_loops, closures_of
from mechanik.formats.packages import files_around
from mechanik.formats.source import Source, open_source
from mechanik.formats.urdf_extras import keep_extras
from mechanik.formats.urdf_mimic import couple
from mechanik.formats.urdf_shapes import ShapeReader, read_inertial, read_origin
from mechanik.formats.urdf_tree import JointSpec, check_robot, find_root, joint_specs, nearest_name, nodes_by_name
from mechanik.formats.urdf_values import put_joints, values_nodes
from mechanik.formats.xml_text import Node, parse_xml
from mechanik.mechanism.dof import ALL, DoF
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.placing import as_axes
from mechanik.mechanism.trim import trim as cut_off
from mechanik.spatial.array import Array

BLOCK = ("closure", "values", "gear", "rack", "law")
UNLIMITED = 1e30
"""A limit from here on means none: files say so where the format demands a number."""


def read_urdf(
    source: str | Path | Source,
    *,
    base: Literal["fixed", "free"] | None = None,
    mimic: bool = True,
    trim: bool = False,
    packages: Mapping[str, str | Path] | None = None,
    closures: str | Path | Mapping[str, Any] | Sequence[Any] | None = None,
) -> Mechanism:
    """The mechanism that a URDF describes.

    Args:
        source: a path, or the text itself, which begins with `<`.
        base: whether the root link stands in the world or floats, by a joint `floating_base` that comes first in q.
            If it is not given, what the file's own block says; fixed without one.
        mimic: whether joints that mimic others follow them, or move by themselves.
        trim: whether branches without a moving joint are cut off.
        packages: package name to folder, for `package://` and `model://`.
        closures: loops to close, and gears, racks and laws: a JSON or YAML file, or its content. If it is not given,
            the file NAME.closures.json (or .yaml, .yml) beside NAME.urdf, if there is one.
    Returns:
        A mechanism whose `warnings` say what was odd, and whose `extras` keep what only simulators and
        controllers use: by subject ("limits", "safety", "dynamics", "calibration") and joint name.
    """
    if base not in (None, "fixed", "free"):
        raise UrdfError(f"base can be 'fixed' or 'free', not {base!r}")
    opened = source if isinstance(source, Source) else open_source(source)
    robot = parse_xml(opened)
    check_robot(robot)

    shapes = ShapeReader(robot, files_around(opened, packages))
    link_nodes = nodes_by_name(robot, "link")
    specs = joint_specs(robot, link_nodes)
    if not link_nodes:  # what a failed expansion leaves behind, also in packages that people install
        robot.warn("has no link, so there is nothing in it")
        return Mechanism([], name=robot.attributes.get("name", ""), warnings=robot.document.warnings)
    root_name = find_root(link_nodes, specs)

    free_base = _free_base(robot, base, specs)
    floating = {} if free_base is None else {free_base: Joint(free_base, dof=ALL)}
    links = {name: _link(node, shapes) for name, node in link_nodes.items()}
    shapes.report()
    extras: dict[str, dict[str, Any]] = {}
    joints = {spec.name: _joint(spec, extras) for spec in specs}
    for spec in specs:
        links[spec.parent].add_child(joints[spec.name])
        joints[spec.name].add_child(links[spec.child])
    root: Frame = links[root_name]
    for joint in floating.values():
        joint.add_child(root)
        root = joint
    if mimic:
        couple(specs, joints)
    joints |= floating
    said = beside(opened, robot, closures)
    bonds = bonds_of(said, robot)
    make_bonds(bonds, joints, ("gear", "rack"))
    _stand_and_close(robot, joints, links, closures_of(said, robot, links))
    make_bonds(bonds, joints, ("law",))

    name = robot.attributes.get("name", "").strip() or opened.stem
    mechanism = Mechanism(root, name=name, warnings=robot.document.warnings)
    mechanism.extras.update(extras)
    if trim:
        cut_off(mechanism)
    return mechanism


def _stand_and_close(
    robot: Node, joints: Mapping[str, Joint], links: Mapping[str, Link], specs: Sequence[ClosureSpec]
) -> None:
    """Loops are closed where the joints stand; then those that close them may be put elsewhere."""
    said = values_nodes(robot)
    put_joints(said, joints)
    closing = {closure.name: closure.joint for closure in close_loops(specs, links, set(joints))}
    put_joints(said, {name: joint for name, joint in closing.items() if isinstance(joint, Joint)})
    unused = {base.attributes.get("free") for block in robot.all("mechanik") for base in block.all("base")}
    for name, node in said.items():
        if name not in unused:  # a base that floats in the file, and that the caller wants fixed
            known = nearest_name(name, [*joints, *closing])
            raise node.fault(f"is about joint {name!r}, which does not exist{known}")


def _free_base(robot: Node, base: str | None, specs: Sequence[JointSpec]) -> str | None:
    """The name of the joint by which the root floats, or None."""
    name = "floating_base"
    for block in robot.all("mechanik"):
        for child in block.children:
            if child.tag == "base":
                base, name = base or "free", child.need("free")
            elif child.tag not in BLOCK:
                known = ", ".join(f"<{tag}>" for tag in ("base", *BLOCK))
                raise child.fault(f"is unknown in the block <mechanik>; it holds {known}")
    if base != "free":
        return None
    taken = {spec.name for spec in specs}
    while name in taken:
        name += "_"
    return name


def _link(node: Node, shapes: ShapeReader) -> Link:
    return Link(
        node.attributes["name"],
        visuals=shapes.placed(node, "visual"),
        collisions=shapes.placed(node, "collision"),
        inertial=read_inertial(node),
    )


def _joint(spec: JointSpec, extras: dict[str, dict[str, Any]]) -> Joint:
    node = spec.node
    position, wxyz = read_origin(node)
    joint = Joint(spec.name, position=position, wxyz=wxyz)
    if spec.type == "floating":
        joint.set_dof(ALL)
    elif spec.type == "planar":
        joint.set_dof((DoF.X, DoF.Y, DoF.EZ))
        joint.axes_wxyz = as_axes(_axis(node), spec.name)
    elif spec.type != "fixed":
        set_axis(joint, _axis(node), slides=spec.type == "prismatic")
    if spec.type in ("revolute", "prismatic"):
        _limit(joint, node)
    keep_extras(extras, spec.name, node)
    return joint


def set_axis(joint: Joint, axis: Array, slides: bool) -> None:
    """One freedom along or about a unit vector: x, y, z as they are, others as a turned z."""
    for direction in range(3):
        # what is off by rounding alone would cost a turn in every pose
        if np.abs(axis - np.eye(3)[direction]).max() < 1e-15:
            joint.set_dof(DoF(direction if slides else 3 + direction))
            return
    joint.set_dof(DoF.Z if slides else DoF.EZ)
    joint.axis = axis


def _axis(node: Node) -> Array:
    """The unit axis of a joint."""
    found = node.first("axis")
    xyz = None if found is None else found.numbers("xyz", 3)
    if found is None or xyz is None:
        node.warn("has no axis; the format then means 1 0 0")
        return np.array([1.0, 0.0, 0.0])
    if not 1e-12 < math.hypot(*xyz) < UNLIMITED:
        raise found.fault(f"is {found.attributes['xyz']!r}; it must point somewhere")
    return unit_axis(np.array(xyz))


def unit_axis(axis: Array) -> Array:
    """As it is read; the writer counts on the last bit of it."""
    return axis / math.hypot(*axis)


def _limit(joint: Joint, node: Node) -> None:
    limit = next(iter(node.all("limit")), None)  # of a second one the extras warn
    lower = None if limit is None else limit.number("lower")
    upper = None if limit is None else limit.number("upper")
    if lower is None and upper is None:
        node.warn(f"is {node.attributes['type'].strip()} and has no lower and upper limit; it moves without limits")
        return
    low, high = lower or 0.0, upper or 0.0  # one that is left out is 0, says the format
    if low > high:
        raise (limit or node).fault(f"has its lower, {low:g}, above its upper, {high:g}")
    if low >= UNLIMITED or high <= -UNLIMITED:
        raise (limit or node).fault(f"leaves only values beyond {UNLIMITED:g}")
    joint.set_limits(-np.inf if low <= -UNLIMITED else low, np.inf if high >= UNLIMITED else high)
