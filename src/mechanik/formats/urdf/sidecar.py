"""Loop closures, gears, racks and joint constraints of a URDF, which the format itself cannot express.

They come from a sidecar file `NAME.closures.json` (or `.yaml`, `.yml`) beside `NAME.urdf`, and from the block
<mechanik> in the URDF. CAD exporters also write link pairs `closing_NAME_1` and `closing_NAME_2`, whose origins must
coincide (closure kind "ball"). The sidecar file contains a list of closures, or an object:

    {"closures": [{"name": "loop", "kind": "pin", "link": "coupler", "at": {"xyz": [1.8, 0, 0]},
                   "onto_link": "rocker", "onto": {"xyz": [1.2, 0, 0], "rpy": [0, 0, 0]}, "axis": "z"}],
     "gears": [{"mimic": "wheel", "leader": "pinion", "teeth": [60, 20], "inside": false, "offset": 0}],
     "racks": [{"rack": "slide", "pinion": "pinion", "radius": 0.02, "offset": 0}],
     "joint_constraints": [{"name": "cam", "terms": {"left": 1, "base.X": [1, 0.5]}, "constant": 0.3}]}

If no kind fits, a closure has `free`, a list of dofs, instead of `kind`. If `onto` is missing, the loop is closed at
the present joint values. Further keys of a closure are `axes_wxyz` (the rotation to its axes, if `axis` is not enough),
`lower` and `upper` (the limits of its dofs), and `cone` and `cone_axes` (the swing limit). In the block <mechanik>,
gears, racks and joint constraints are:

    <gear mimic="wheel" leader="pinion" teeth="60 20" inside="true" offset="0"/>
    <rack rack="slide" pinion="pinion" radius="0.02" offset="0"/>
    <joint_constraint name="cam" constant="0.3">
      <term joint="left" factors="1"/> <term joint="base" dof="X" factors="1 0.5"/>
    </joint_constraint>

`Builder.gear`, `Builder.rack` and `Builder.joint_constraint` explain these values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from mechanik.errors import FileMissing, FormatError, MechanikError, MissingExtra, UnknownName
from mechanik.formats.source import FileResolver, Source, open_source
from mechanik.formats.urdf.urdf_geometry import format_number, format_numbers, read_position_wxyz
from mechanik.formats.xml_node import XmlNode
from mechanik.model.builder import CLOSURE_FREE_DOF, BuilderCouplings
from mechanik.model.dof import DoF, as_dofs
from mechanik.model.frame import Link
from mechanik.model.joint import Joint
from mechanik.model.joint_constraint import JointConstraint
from mechanik.model.loop_closure import Closure
from mechanik.spatial import Pose, inverse, quaternion
from mechanik.spatial.array import Array
from mechanik.validation import as_axes_wxyz, as_vector

SIDECAR_SUFFIXES = (".closures.json", ".closures.yaml", ".closures.yml")
"""Endings of the file name of a sidecar file; the first file that exists is read."""
SECTIONS = ("closures", "joint_constraints", "gears", "racks")
"""Keys of a sidecar file, each with a list of entries."""

SidecarInput = str | Path | Mapping[str, Any] | Sequence[Any] | None
"""A sidecar file, its content, or None for the sidecar file beside the URDF."""


@dataclass(frozen=True, slots=True)
class SidecarEntry:
    """A closure, joint constraint, gear or rack as written in a file.

    Attributes:
        location: file and entry for messages, such as `arm.urdf, line 12: closure 'loop'`.
        data: values by key.
    """

    location: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Content of a sidecar file.

    Attributes:
        location: file name for messages; "closures" if the content is not from a file.
        sections: entries by section name.
    """

    location: str
    sections: Mapping[str, Sequence[Any]]

    def entries(self, section: str) -> list[SidecarEntry]:
        """Return the entries of a section, each with its location."""
        kind = section.rstrip("s").replace("_", " ")
        entries: list[SidecarEntry] = []
        for number, data in enumerate(self.sections.get(section, ()), 1):
            if not isinstance(data, Mapping):
                raise FormatError(f"{self.location}: {kind} {number} is {data!r}; it must be an object with keys")
            data = cast("Mapping[str, Any]", data)
            label = f"{kind} {data['name']!r}" if data.get("name") else f"{kind} {number}"
            entries.append(SidecarEntry(f"{self.location}: {label}", data))
        return entries


def read_sidecar(urdf_source: Source, robot: XmlNode, source: SidecarInput = None) -> Sidecar:
    """Read the sidecar file of a URDF; the result is empty if there is no such file.

    Args:
        urdf_source: the source of the URDF.
        robot: root node of the URDF; warnings are added to its document.
        source: a file, or its content, that replaces the sidecar file beside the URDF.
    """
    if source is None and urdf_source.resolver is not None:
        return _read_sidecar_in_memory(urdf_source, urdf_source.resolver, robot)
    if source is None and (path := urdf_source.path) is not None:
        files = [path.with_name(path.stem + suffix) for suffix in SIDECAR_SUFFIXES]
        files = [file for file in files if file.is_file()]
        source = files[0] if files else None
        for file in files[1:]:
            robot.document.warnings.append(f"{file.name} is ignored, because {files[0].name} exists.")
    if source is None:
        return Sidecar("closures", {})
    if isinstance(source, str | Path):
        return _parse_sections(Path(source).name, _read_content(Path(source)))
    return _parse_sections("closures", source)


def _read_sidecar_in_memory(urdf_source: Source, resolver: FileResolver, robot: XmlNode) -> Sidecar:
    """Read the sidecar file of a URDF in memory: JSON only, because a few lines of YAML can expand to gigabytes."""
    sources: dict[str, Source] = {}
    for suffix in SIDECAR_SUFFIXES:
        source = resolver.open(urdf_source.stem + suffix)
        if source is not None and PurePosixPath(source.member).parent == PurePosixPath(urdf_source.member).parent:
            sources[suffix] = source
    for suffix in SIDECAR_SUFFIXES[1:]:
        if suffix in sources:
            robot.document.warnings.append(f"{sources[suffix].name} is ignored; write it as JSON.")
    json_source = sources.get(SIDECAR_SUFFIXES[0])
    if json_source is None:
        return Sidecar("closures", {})
    return _parse_sections(json_source.name, _parse_json(json_source.text(), json_source.name))


def _parse_sections(location: str, content: Any) -> Sidecar:
    sections: Mapping[Any, Any] = {"closures": content}
    if isinstance(content, Mapping):
        sections = cast("Mapping[Any, Any]", content)
        unknown_keys = [key for key in sections if key not in (*SECTIONS, "version")]
        if unknown_keys or not any(section in sections for section in SECTIONS):
            raise FormatError(
                f"{location}: the content must be a list of closures, or an object with the keys "
                f"{', '.join(SECTIONS)}, not {list(sections)!r}"
            )
    for section in SECTIONS:
        if section in sections and not isinstance(sections[section], list | tuple):
            raise FormatError(f"{location}: {section} must be a list, not {type(sections[section]).__name__}")
    return Sidecar(location, {section: sections[section] for section in SECTIONS if section in sections})


def _read_content(path: Path) -> Any:
    try:
        text = open_source(path).text()
    except FileMissing:
        raise
    except MechanikError as error:
        raise FormatError(str(error)) from None
    return _parse_yaml(text, path.name) if path.suffix.lower() in (".yaml", ".yml") else _parse_json(text, path.name)


def _parse_json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        reason = "lists are nested too deeply" if isinstance(error, RecursionError) else error
        raise FormatError(f"{name}: {reason}") from None


def _parse_yaml(text: str, name: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra(f"reading {name}", "yaml") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FormatError(f"{name}: {' '.join(str(error).split())}") from None


CLOSURE_KEYS = ("name", "kind", "free", "link", "at", "onto_link", "onto", "axis", "axes_wxyz", "lower", "upper")
CONE_KEYS = ("cone", "cone_axes")
CLOSING_LINK = re.compile(r"closing_(.+)_([12])")


# ---- reading closures -------------------------------------------------------------------------


def read_closures(sidecar: Sidecar, robot: XmlNode, links: Mapping[str, Link]) -> list[SidecarEntry]:
    """Return the entries of all closures: from the sidecar file, the blocks <mechanik> and the closing link pairs."""
    entries = sidecar.entries("closures")
    entries += [_closure_from_node(node) for block in robot.all("mechanik") for node in block.all("closure")]
    return entries + _closing_link_pairs(robot, links, {str(entry.data.get("name")) for entry in entries})


def _closure_from_node(node: XmlNode) -> SidecarEntry:
    data: dict[str, Any] = dict(node.attributes)
    if "free" in data:
        data["free"] = data["free"].split()
    if data.get("axis", "").lstrip("-") not in ("", "x", "y", "z"):
        data["axis"] = node.numbers("axis", 3)
    if "axes_wxyz" in data:
        data["axes_wxyz"] = node.numbers("axes_wxyz", 4)
    for bound in ("lower", "upper"):
        if bound in data:
            data[bound] = [None if word == "none" else word for word in data[bound].split()]
    for child in node.children:
        if child.tag not in ("at", "onto"):
            raise child.make_error("is unknown in a closure, which may contain <at> and <onto>")
        position, wxyz = read_position_wxyz(child)
        data[child.tag] = {"position": position, "wxyz": wxyz}
    return SidecarEntry(f"{node.location}: closure {node.attributes.get('name', '')!r}", data)


def _closing_link_pairs(robot: XmlNode, links: Mapping[str, Link], used_names: set[str]) -> list[SidecarEntry]:
    entries: list[SidecarEntry] = []
    for link in links:
        match = CLOSING_LINK.fullmatch(link)
        if match is None or match[1] in used_names:
            continue
        partner = f"closing_{match[1]}_{'2' if match[2] == '1' else '1'}"
        if partner not in links:
            robot.document.warnings.append(f"Link {link!r} has no partner {partner!r}; it does not close a loop.")
        elif match[2] == "1":
            data = {"name": match[1], "kind": "ball", "link": link, "onto_link": partner, "onto": (0.0, 0.0, 0.0)}
            entries.append(SidecarEntry(f"links {link!r} and {partner!r}", data))
    return entries


# ---- creating closures ------------------------------------------------------------------------


def close_loops(entries: Sequence[SidecarEntry], links: Mapping[str, Link], joint_names: set[str]) -> list[Closure]:
    """Create the closures; the name of each closing joint must be unique and must not be in `joint_names`."""
    closures: list[Closure] = []
    used_names = set(joint_names)
    for entry in entries:
        try:
            closure = _make_closure(entry.data, links)
        except MechanikError as error:
            raise FormatError(f"{entry.location}: {error}") from None
        if closure.name in used_names:
            raise FormatError(f"{entry.location}: another joint is called {closure.name!r}; names must be unique")
        used_names.add(closure.name)
        closures.append(closure)
    return closures


def _make_closure(data: Mapping[str, Any], links: Mapping[str, Link]) -> Closure:
    for key in data:
        if key not in (*CLOSURE_KEYS, *CONE_KEYS):
            raise UnknownName("key of a closure", key, (*CLOSURE_KEYS, *CONE_KEYS))
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise FormatError("the name is missing")
    ends: list[Link] = []
    for key in ("link", "onto_link"):
        if key not in data:
            raise FormatError(f"{key} is missing")
        if not isinstance(data[key], str) or data[key] not in links:
            raise UnknownName("link", data[key], links)
        ends.append(links[data[key]])
    parent, link = ends
    joint = Joint(name, dof=_read_free_dofs(data))
    position, wxyz = _read_position_wxyz(data.get("at"), "at")
    joint.position, joint.wxyz = position, wxyz
    if "axis" in data and "axes_wxyz" in data:
        raise FormatError("axis and axes_wxyz exclude each other")
    if data.get("axes_wxyz") is not None:
        joint.axes_wxyz = data["axes_wxyz"]
    else:
        joint.axes_wxyz = as_axes_wxyz(data.get("axis", "z"), name)
    joint.set_limits(
        _read_limits(data.get("lower"), -np.inf, len(joint.dof)),
        _read_limits(data.get("upper"), np.inf, len(joint.dof)),
    )
    if data.get("cone") is not None:
        joint.set_cone(_read_number(data["cone"], "cone"), data.get("cone_axes", "z"))
    elif "cone_axes" in data:
        raise FormatError("cone_axes requires cone")
    parent.add_child(joint)
    try:
        if data.get("onto") is None:
            X_link_end = inverse(link.world_matrix) @ joint.world_matrix
        else:
            X_link_end = Pose(*_read_position_wxyz(data["onto"], "onto"))
        return joint.make_closure(link, X_link_end)
    except MechanikError:
        parent.remove_child(joint)
        raise


def _read_free_dofs(data: Mapping[str, Any]) -> tuple[DoF, ...]:
    if ("kind" in data) == ("free" in data):
        raise FormatError("either kind or free (the free dofs) is required, and not both")
    if "free" in data:
        if isinstance(data["free"], Sequence):
            return as_dofs(cast("Sequence[Any]", data["free"]))
        raise FormatError(f"free must be a list of X, Y, Z, EX, EY, EZ, not {data['free']!r}")
    if not isinstance(data["kind"], str) or data["kind"] not in CLOSURE_FREE_DOF:
        raise UnknownName("kind of closure", data["kind"], CLOSURE_FREE_DOF)
    return CLOSURE_FREE_DOF[data["kind"]]


def _read_position_wxyz(value: Any, label: str) -> tuple[Array, Array]:
    """Return position (3,), m, and wxyz (4,) from None, a point, or {xyz or position, rpy or wxyz}."""
    if value is None:
        return np.zeros(3), quaternion.identity()
    if not isinstance(value, Mapping):
        return as_vector(value, 3, label), quaternion.identity()
    pose_data = cast("Mapping[str, Any]", value)
    for key in pose_data:
        if key not in ("xyz", "position", "rpy", "wxyz"):
            raise UnknownName(f"key of {label}", key, ("xyz", "position", "rpy", "wxyz"))
    if ("xyz" in pose_data and "position" in pose_data) or ("rpy" in pose_data and "wxyz" in pose_data):
        raise FormatError(f"{label} has keys that exclude each other: {', '.join(pose_data)}")
    position = as_vector(pose_data.get("xyz", pose_data.get("position", (0, 0, 0))), 3, label)
    if "rpy" in pose_data:
        return position, quaternion.from_rpy(as_vector(pose_data["rpy"], 3, f"rpy of {label}"))
    pose = Pose(position, pose_data.get("wxyz", (1, 0, 0, 0)))
    return position, pose.wxyz


def _read_number(value: Any, label: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise FormatError(f"{label} must be a number, not {value!r}") from None


def _read_limits(limits: Any, default: float, count: int) -> list[float]:
    if limits is None:
        return [default] * count
    values = list(cast("Sequence[Any]", limits)) if isinstance(limits, list | tuple) else [limits]
    try:
        return [default if value is None else float(value) for value in values]
    except (TypeError, ValueError):
        raise FormatError(f"limits must be numbers, not {limits!r}") from None


# ---- writing closures -------------------------------------------------------------------------


def describe_closures(
    closures: Mapping[str, Closure], names: Mapping[Any, str], world: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield each closure as JSON data at full precision, in the form of a sidecar entry.

    Args:
        closures: the closures by name.
        names: name of each link.
        world: name of the link that represents the world, or None.
    """
    kinds = {free_dofs: kind for kind, free_dofs in CLOSURE_FREE_DOF.items()}
    for name, closure in closures.items():
        joint = cast(Joint, closure.joint)
        start_name = world if joint.parent is None else names[joint.parent]
        if start_name is None:
            raise FormatError(f"closure {name!r} connects to the world; a URDF requires a link")
        data: dict[str, Any] = {"name": name}
        if joint.dof in kinds:
            data["kind"] = kinds[joint.dof]
        else:
            data["free"] = [dof.name for dof in joint.dof]
        data["link"], data["onto_link"] = start_name, names[closure.link]
        data["at"] = {"position": joint.position.tolist(), "wxyz": joint.wxyz.tolist()}
        data["onto"] = {"position": closure.at.position.tolist(), "wxyz": closure.at.wxyz.tolist()}
        if not np.array_equal(joint.axes_wxyz, quaternion.identity()):
            data["axes_wxyz"] = joint.axes_wxyz.tolist()
        for bound, limits in (("lower", joint.lower), ("upper", joint.upper)):
            if np.isfinite(limits).any():
                data[bound] = [value if np.isfinite(value) else None for value in limits.tolist()]
        if joint.cone is not None:
            data["cone"], data["cone_axes"] = joint.cone.angle, joint.cone.axes
        yield data


# ---- couplings: gears, racks and joint constraints ----------------------------------------------


REQUIRED_KEYS = {
    "gear": ("mimic", "leader", "teeth"),
    "rack": ("rack", "pinion", "radius"),
    "joint_constraint": ("name", "terms"),
}
"""Required keys of each kind of coupling."""
OPTIONAL_KEYS = {"gear": ("inside", "offset"), "rack": ("offset",), "joint_constraint": ("constant",)}
"""Optional keys of each kind of coupling."""


def read_couplings(sidecar: Sidecar, robot: XmlNode) -> dict[str, list[SidecarEntry]]:
    """Return the entries of all couplings, by kind: from the sidecar file and the blocks <mechanik>."""
    blocks = robot.all("mechanik")
    return {
        kind: [
            *sidecar.entries(f"{kind}s"),
            *(_coupling_from_node(kind, node) for block in blocks for node in block.all(kind)),
        ]
        for kind in REQUIRED_KEYS
    }


def add_couplings(
    entries: Mapping[str, Sequence[SidecarEntry]], joints: Mapping[str, Joint], kinds: Sequence[str]
) -> None:
    """Add the couplings of the given kinds to the joints.

    Args:
        entries: entries by kind.
        joints: joints by name.
        kinds: the kinds to add, of "gear", "rack" and "joint_constraint".
    """
    if not any(entries[kind] for kind in kinds):
        return
    builder = BuilderCouplings()
    builder._joints.update(joints)
    for kind in kinds:
        for entry in entries[kind]:
            try:
                _add_coupling(builder, kind, entry.data)
            except MechanikError as error:
                raise FormatError(f"{entry.location}: {error}") from None


def constraint_element(
    constraint: JointConstraint,
    name: str,
    dof_joints: Mapping[tuple[Joint, DoF], str],
    unsplit_joints: Mapping[Joint, str],
) -> Element:
    """Return the XML element <joint_constraint> of a joint constraint.

    Args:
        constraint: the joint constraint.
        name: name of the joint constraint.
        dof_joints: name of the single-dof joint in the file, by joint and dof.
        unsplit_joints: names of the joints that are not split into single-dof joints.
    """
    element = Element("joint_constraint", name=name, constant=format_number(constraint.constant))
    for term in constraint.terms:
        factors = format_numbers(term.coefficients)
        if term.joint in unsplit_joints and len(term.joint.dof) > 1:
            SubElement(element, "term", joint=unsplit_joints[term.joint], dof=term.dof.name, factors=factors)
        else:
            SubElement(element, "term", joint=dof_joints[term.joint, term.dof], factors=factors)
    return element


def _add_coupling(builder: BuilderCouplings, kind: str, data: Mapping[str, Any]) -> None:
    known_keys = (*REQUIRED_KEYS[kind], *OPTIONAL_KEYS[kind])
    for key in data:
        if key not in known_keys:
            raise UnknownName(f"key of a {kind}", key, known_keys)
    for key in REQUIRED_KEYS[kind]:
        if key not in data:
            raise FormatError(f"{key} is missing")
    match kind:
        case "gear":
            is_internal = data.get("inside", False)
            if not isinstance(is_internal, bool):
                raise FormatError(f"inside must be true or false, not {is_internal!r}")
            builder.gear(
                data["mimic"], data["leader"], teeth=data["teeth"], internal=is_internal, offset=data.get("offset", 0.0)
            )
        case "rack":
            builder.rack(data["rack"], data["pinion"], radius=data["radius"], offset=data.get("offset", 0.0))
        case _:
            builder.joint_constraint(data["name"], data["terms"], data.get("constant", 0.0))


def _coupling_from_node(kind: str, node: XmlNode) -> SidecarEntry:
    data: dict[str, Any] = dict(node.attributes)
    for key in ("offset", "radius", "constant"):
        if key in data:
            data[key] = node.number(key)
    if "teeth" in data:
        data["teeth"] = node.numbers("teeth", 2)
    if "inside" in data:
        data["inside"] = {"true": True, "false": False}.get(data["inside"], data["inside"])
    if kind == "joint_constraint":
        data["terms"] = dict(_read_terms(node))
    label = f"joint constraint {data['name']!r}" if kind == "joint_constraint" and "name" in data else kind
    return SidecarEntry(f"{node.location}: {label}", data)


def _read_terms(node: XmlNode) -> Iterator[tuple[str, list[float]]]:
    names: set[str] = set()
    for child in node.children:
        if child.tag != "term":
            raise child.make_error("is unknown in a joint constraint, which may contain <term>")
        joint, dof = child.require("joint"), child.attributes.get("dof")
        name = joint if dof is None else f"{joint}.{dof}"
        if name in names:
            raise child.make_error(f"names {name!r} a second time")
        names.add(name)
        try:
            factors = [float(word) for word in child.require("factors").split()]
        except ValueError:
            raise child.make_error(f"has factors={child.attributes['factors']!r}; they must be numbers") from None
        yield name, factors
