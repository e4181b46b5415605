"""Loop closures, gears, racks and joint constraints of a URDF, which the format itself cannot express.

They come from a file `NAME.closures.json` (or `.yaml`, `.yml`) beside `NAME.urdf`, and from the block <mechanik> in the
URDF. CAD exporters also leave link pairs `closing_NAME_1` and `closing_NAME_2`, whose origins coincide (closure kind
"ball"). The file holds a list of closures, or an object:

    {"closures": [{"name": "loop", "kind": "pin", "link": "coupler", "at": {"xyz": [1.8, 0, 0]},
                   "onto_link": "rocker", "onto": {"xyz": [1.2, 0, 0], "rpy": [0, 0, 0]}, "axis": "z"}],
     "gears": [{"follower": "wheel", "leader": "pinion", "teeth": [60, 20], "inside": false, "offset": 0}],
     "racks": [{"rack": "slide", "pinion": "pinion", "radius": 0.02, "offset": 0}],
     "laws": [{"name": "cam", "terms": {"left": 1, "base.X": [1, 0.5]}, "constant": 0.3}]}

A closure has `free`, a list of dofs, instead of `kind` if no kind fits. Without `onto` the loop is closed at the
present joint values. Further keys of a closure are `axes_wxyz`, the rotation to its axes if `axis` is not enough,
`lower` and `upper`, the limits of its dofs, and `cone` and `cone_axes`, the swing limit. In the block the others are:

    <gear follower="wheel" leader="pinion" teeth="60 20" inside="true" offset="0"/>
    <rack rack="slide" pinion="pinion" radius="0.02" offset="0"/>
    <law name="cam" constant="0.3"> <term joint="left" factors="1"/> <term joint="base" dof="X" factors="1 0.5"/> </law>

`Builder.gear`, `Builder.rack` and `Builder.joint_constraint` explain the numbers.
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
from mechanik.formats.urdf.urdf_geometry import format_number, format_numbers, read_position_wxyz, wxyz_from_rpy
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
"""Endings of the file names, in the order of priority."""
SECTIONS = ("closures", "laws", "gears", "racks")
"""Keys of the file."""

SidecarInput = str | Path | Mapping[str, Any] | Sequence[Any] | None
"""A file, its content, or None for the file beside the URDF."""


@dataclass(frozen=True, slots=True)
class SidecarEntry:
    """A closure, joint constraint, gear or rack as written in a file.

    Attributes:
        where: location for messages.
        data: values by key.
    """

    where: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Content of the file beside a URDF.

    Attributes:
        where: file name for messages.
        sections: entries by section name.
    """

    where: str
    sections: Mapping[str, Sequence[Any]]

    def entries(self, section: str) -> list[SidecarEntry]:
        """Return the entries of a section, each with its location."""
        single = section.rstrip("s")
        found: list[SidecarEntry] = []
        for number, said in enumerate(self.sections.get(section, ()), 1):
            if not isinstance(said, Mapping):
                raise FormatError(f"{self.where}: {single} {number} is {said!r}, where names with values are needed")
            said = cast("Mapping[str, Any]", said)
            label = f"{single} {said['name']!r}" if said.get("name") else f"{single} {number}"
            found.append(SidecarEntry(f"{self.where}: {label}", said))
        return found


def read_sidecar(opened: Source, robot: XmlNode, given: SidecarInput = None) -> Sidecar:
    """Read the file beside a URDF.

    Args:
        opened: the source of the URDF.
        robot: its root node, which collects the warnings.
        given: a file, or its content, that replaces the file beside the URDF.
    """
    if given is None and opened.resolver is not None:
        return _held(opened, opened.resolver, robot)
    if given is None and (path := opened.path) is not None:
        there = [one for one in (path.with_name(path.stem + ending) for ending in SIDECAR_SUFFIXES) if one.is_file()]
        given = there[0] if there else None
        for other in there[1:]:
            robot.document.warnings.append(f"{other.name} is left out, since there is {there[0].name}.")
    if given is None:
        return Sidecar("closures", {})
    if isinstance(given, str | Path):
        return _parts(Path(given).name, _content(Path(given)))
    return _parts("closures", given)


def _held(opened: Source, around: FileResolver, robot: XmlNode) -> Sidecar:
    """Read the file that came with a URDF in memory: JSON only, because a few lines of YAML can expand to gigabytes."""
    there: dict[str, Source] = {}
    for ending in SIDECAR_SUFFIXES:
        found = around.open(opened.stem + ending)
        if found is not None and PurePosixPath(found.member).parent == PurePosixPath(opened.member).parent:
            there[ending] = found
    for ending in SIDECAR_SUFFIXES[1:]:
        if ending in there:
            robot.document.warnings.append(f"{there[ending].name} is left out; as JSON it would be read.")
    said = there.get(SIDECAR_SUFFIXES[0])
    return Sidecar("closures", {}) if said is None else _parts(said.name, _json(said.text(), said.name))


def _parts(where: str, content: Any) -> Sidecar:
    parts: Mapping[Any, Any] = {"closures": content}
    if isinstance(content, Mapping):
        parts = cast("Mapping[Any, Any]", content)
        unknown = [key for key in parts if key not in (*SECTIONS, "version")]
        if unknown or not any(part in parts for part in SECTIONS):
            raise FormatError(
                f"{where}: a list of closures is needed, or {{'closures': [...]}}, not {list(parts)!r}; "
                f"there may be {', '.join(SECTIONS)}"
            )
    for part in SECTIONS:
        if part in parts and not isinstance(parts[part], list | tuple):
            raise FormatError(f"{where}: a list of {part} is needed, not {type(parts[part]).__name__}")
    return Sidecar(where, {part: parts[part] for part in SECTIONS if part in parts})


def _content(path: Path) -> Any:
    try:
        text = open_source(path).text()
    except FileMissing:
        raise
    except MechanikError as error:
        raise FormatError(str(error)) from None
    return _yaml(text, path.name) if path.suffix.lower() in (".yaml", ".yml") else _json(text, path.name)


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        reason = "lists are nested too deeply" if isinstance(error, RecursionError) else error
        raise FormatError(f"{name}: {reason}") from None


def _yaml(text: str, name: str) -> Any:
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
    """Return all closures of a URDF: from the file beside it, from its blocks, and from closing link pairs."""
    specs = sidecar.entries("closures")
    specs += [_closure_from_node(node) for block in robot.all("mechanik") for node in block.all("closure")]
    return specs + _pairs(robot, links, {str(spec.data.get("name")) for spec in specs})


def _closure_from_node(node: XmlNode) -> SidecarEntry:
    said: dict[str, Any] = dict(node.attributes)
    if "free" in said:
        said["free"] = said["free"].split()
    if said.get("axis", "").lstrip("-") not in ("", "x", "y", "z"):
        said["axis"] = node.numbers("axis", 3)
    if "axes_wxyz" in said:
        said["axes_wxyz"] = node.numbers("axes_wxyz", 4)
    for side in ("lower", "upper"):
        if side in said:
            said[side] = [None if word == "none" else word for word in said[side].split()]
    for child in node.children:
        if child.tag not in ("at", "onto"):
            raise child.make_error("is unknown in a closure; it holds <at> and <onto>")
        position, wxyz = read_position_wxyz(child)
        said[child.tag] = {"position": position, "wxyz": wxyz}
    return SidecarEntry(f"{node.where}: closure {node.attributes.get('name', '')!r}", said)


def _pairs(robot: XmlNode, links: Mapping[str, Link], taken: set[str]) -> list[SidecarEntry]:
    specs: list[SidecarEntry] = []
    for link in links:
        match = CLOSING_LINK.fullmatch(link)
        if match is None or match[1] in taken:
            continue
        other = f"closing_{match[1]}_{'2' if match[2] == '1' else '1'}"
        if other not in links:
            robot.document.warnings.append(f"Link {link!r} has no partner {other!r}, so no loop is closed there.")
        elif match[2] == "1":
            said = {"name": match[1], "kind": "ball", "link": link, "onto_link": other, "onto": (0.0, 0.0, 0.0)}
            specs.append(SidecarEntry(f"links {link!r} and {other!r}", said))
    return specs


# ---- making closures --------------------------------------------------------------------------


def close_loops(specs: Sequence[SidecarEntry], links: Mapping[str, Link], joint_names: set[str]) -> list[Closure]:
    """Make the closures; the name of each closing joint must differ from `joint_names` and from the others."""
    closures: list[Closure] = []
    taken = set(joint_names)
    for spec in specs:
        try:
            closure = _close(spec.data, links)
        except MechanikError as error:
            raise FormatError(f"{spec.where}: {error}") from None
        if closure.name in taken:
            raise FormatError(f"{spec.where}: another joint is called {closure.name!r}; names must be unique")
        taken.add(closure.name)
        closures.append(closure)
    return closures


def _close(said: Mapping[str, Any], links: Mapping[str, Link]) -> Closure:
    for key in said:
        if key not in (*CLOSURE_KEYS, *CONE_KEYS):
            raise UnknownName("key of a closure", key, (*CLOSURE_KEYS, *CONE_KEYS))
    name = said.get("name")
    if not isinstance(name, str) or not name:
        raise FormatError("it has no name")
    ends: list[Link] = []
    for key in ("link", "onto_link"):
        if key not in said:
            raise FormatError(f"it does not say its {key}")
        if not isinstance(said[key], str) or said[key] not in links:
            raise UnknownName("link", said[key], links)
        ends.append(links[said[key]])
    parent, link = ends
    joint = Joint(name, dof=_free(said))
    position, wxyz = _place(said.get("at"), "at")
    joint.position, joint.wxyz = position, wxyz
    if "axis" in said and "axes_wxyz" in said:
        raise FormatError("it has both axis and axes_wxyz; one says it")
    if said.get("axes_wxyz") is not None:
        joint.axes_wxyz = said["axes_wxyz"]
    else:
        joint.axes_wxyz = as_axes_wxyz(said.get("axis", "z"), name)
    joint.set_limits(
        _limits(said.get("lower"), -np.inf, len(joint.dof)), _limits(said.get("upper"), np.inf, len(joint.dof))
    )
    if said.get("cone") is not None:
        joint.set_cone(_number(said["cone"], "cone"), said.get("cone_axes", "z"))
    elif "cone_axes" in said:
        raise FormatError("it has cone_axes and no cone")
    parent.add_child(joint)
    try:
        if said.get("onto") is None:
            end = inverse(link.world_matrix) @ joint.world_matrix
        else:
            end = Pose(*_place(said["onto"], "onto"))
        return joint.make_closure(link, end)
    except MechanikError:
        parent.remove_child(joint)
        raise


def _free(said: Mapping[str, Any]) -> tuple[DoF, ...]:
    if ("kind" in said) == ("free" in said):
        raise FormatError("it needs a kind, or the freedoms that it leaves as free, and not both")
    if "free" in said:
        if isinstance(said["free"], Sequence):
            return as_dofs(cast("Sequence[Any]", said["free"]))
        raise FormatError(f"free is a list of X Y Z EX EY EZ, not {said['free']!r}")
    if not isinstance(said["kind"], str) or said["kind"] not in CLOSURE_FREE_DOF:
        raise UnknownName("kind of closure", said["kind"], CLOSURE_FREE_DOF)
    return CLOSURE_FREE_DOF[said["kind"]]


def _place(given: Any, what: str) -> tuple[Array, Array]:
    """Return position (3,), m, and wxyz (4,) from None, a point, or {xyz or position, rpy or wxyz}."""
    if given is None:
        return np.zeros(3), quaternion.identity()
    if not isinstance(given, Mapping):
        return as_vector(given, 3, what), quaternion.identity()
    given = cast("Mapping[str, Any]", given)
    for key in given:
        if key not in ("xyz", "position", "rpy", "wxyz"):
            raise UnknownName(f"key of {what}", key, ("xyz", "position", "rpy", "wxyz"))
    if ("xyz" in given and "position" in given) or ("rpy" in given and "wxyz" in given):
        raise FormatError(f"{what} says the same thing twice: {', '.join(given)}")
    position = as_vector(given.get("xyz", given.get("position", (0, 0, 0))), 3, what)
    if "rpy" in given:
        return position, wxyz_from_rpy(tuple(as_vector(given["rpy"], 3, f"rpy of {what}")))
    pose = Pose(position, given.get("wxyz", (1, 0, 0, 0)))
    return position, pose.wxyz


def _number(given: Any, what: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise FormatError(f"its {what} is {given!r}, where a number is needed") from None


def _limits(given: Any, missing: float, size: int) -> list[float]:
    if given is None:
        return [missing] * size
    values = list(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else [given]
    try:
        return [missing if value is None else float(value) for value in values]
    except (TypeError, ValueError):
        raise FormatError(f"its limits are {given!r}, where numbers are needed") from None


# ---- writing closures -------------------------------------------------------------------------


def describe_closures(
    closures: Mapping[str, Closure], names: Mapping[Any, str], world: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield each closure as plain data with all digits, as it is written to a file.

    Args:
        closures: the closures by name.
        names: name of each link.
        world: name of the link that represents the world, or None.
    """
    kinds = {free: kind for kind, free in CLOSURE_FREE_DOF.items()}
    for name, closure in closures.items():
        joint = cast(Joint, closure.joint)
        start = world if joint.parent is None else names[joint.parent]
        if start is None:
            raise FormatError(f"closure {name!r} starts in the world; a file can only say on which link it starts")
        said: dict[str, Any] = {"name": name}
        if joint.dof in kinds:
            said["kind"] = kinds[joint.dof]
        else:
            said["free"] = [dof.name for dof in joint.dof]
        said["link"], said["onto_link"] = start, names[closure.link]
        said["at"] = {"position": joint.position.tolist(), "wxyz": joint.wxyz.tolist()}
        said["onto"] = {"position": closure.at.position.tolist(), "wxyz": closure.at.wxyz.tolist()}
        if not np.array_equal(joint.axes_wxyz, quaternion.identity()):
            said["axes_wxyz"] = joint.axes_wxyz.tolist()
        for side, limits in (("lower", joint.lower), ("upper", joint.upper)):
            if np.isfinite(limits).any():
                said[side] = [value if np.isfinite(value) else None for value in limits.tolist()]
        if joint.cone is not None:
            said["cone"], said["cone_axes"] = joint.cone.angle, joint.cone.axes
        yield said


REQUIRED_KEYS = {
    "gear": ("follower", "leader", "teeth"),
    "rack": ("rack", "pinion", "radius"),
    "law": ("name", "terms"),
}
"""Required keys of each kind of coupling; "law" is the file's word for a joint constraint."""
OPTIONAL_KEYS = {"gear": ("inside", "offset"), "rack": ("offset",), "law": ("constant",)}
"""Optional keys of each kind of coupling."""


def read_couplings(sidecar: Sidecar, robot: XmlNode) -> dict[str, list[SidecarEntry]]:
    """Return gears, racks and joint constraints of a URDF: those of the file beside it and those in its blocks."""
    blocks = robot.all("mechanik")
    return {
        kind: [
            *sidecar.entries(f"{kind}s"),
            *(_coupling_from_node(kind, node) for block in blocks for node in block.all(kind)),
        ]
        for kind in REQUIRED_KEYS
    }


def add_couplings(
    specs: Mapping[str, Sequence[SidecarEntry]], joints: Mapping[str, Joint], kinds: Sequence[str]
) -> None:
    """Add the couplings of the given kinds to the joints.

    Args:
        specs: entries by kind.
        joints: joints by name.
        kinds: "gear", "rack" or "law".
    """
    bonds = BuilderCouplings()
    bonds._joints.update(joints)
    for kind in kinds:
        for spec in specs[kind]:
            try:
                _make(bonds, kind, spec.data)
            except MechanikError as error:
                raise FormatError(f"{spec.where}: {error}") from None


def constraint_element(
    constraint: JointConstraint,
    name: str,
    dof_joints: Mapping[tuple[Joint, DoF], str],
    whole_joints: Mapping[Joint, str],
) -> Element:
    """Return the XML element <law> of a joint constraint.

    Args:
        constraint: the joint constraint.
        name: its name.
        dof_joints: name of the single-dof joint in the file for each dof of a joint.
        whole_joints: names of the joints that are written without splitting.
    """
    element = Element("law", name=name, constant=format_number(constraint.constant))
    for term in constraint.terms:
        factors = format_numbers(term.coefficients)
        if term.joint in whole_joints and len(term.joint.dof) > 1:
            SubElement(element, "term", joint=whole_joints[term.joint], dof=term.dof.name, factors=factors)
        else:
            SubElement(element, "term", joint=dof_joints[term.joint, term.dof], factors=factors)
    return element


def _make(bonds: BuilderCouplings, kind: str, said: Mapping[str, Any]) -> None:
    known = (*REQUIRED_KEYS[kind], *OPTIONAL_KEYS[kind])
    for key in said:
        if key not in known:
            raise UnknownName(f"key of a {kind}", key, known)
    for key in REQUIRED_KEYS[kind]:
        if key not in said:
            raise FormatError(f"it does not say its {key}")
    match kind:
        case "gear":
            ends = said["follower"], said["leader"]
            inside = said.get("inside", False)
            if not isinstance(inside, bool):
                raise FormatError(f"inside is true or false, not {inside!r}")
            bonds.gear(*ends, teeth=said["teeth"], internal=inside, offset=said.get("offset", 0.0))
        case "rack":
            bonds.rack(said["rack"], said["pinion"], radius=said["radius"], offset=said.get("offset", 0.0))
        case _:
            bonds.joint_constraint(said["name"], said["terms"], said.get("constant", 0.0))


def _coupling_from_node(kind: str, node: XmlNode) -> SidecarEntry:
    said: dict[str, Any] = dict(node.attributes)
    for key in ("offset", "radius", "constant"):
        if key in said:
            said[key] = node.number(key)
    if "teeth" in said:
        said["teeth"] = node.numbers("teeth", 2)
    if "inside" in said:
        said["inside"] = {"true": True, "false": False}.get(said["inside"], said["inside"])
    if kind == "law":
        said["terms"] = dict(_terms(node))
    label = f"law {said['name']!r}" if kind == "law" and "name" in said else kind
    return SidecarEntry(f"{node.where}: {label}", said)


def _terms(node: XmlNode) -> Iterator[tuple[str, list[float]]]:
    taken: set[str] = set()
    for child in node.children:
        if child.tag != "term":
            raise child.make_error("is unknown in a law; it holds <term>")
        joint, dof = child.require("joint"), child.attributes.get("dof")
        freedom = joint if dof is None else f"{joint}.{dof}"
        if freedom in taken:
            raise child.make_error(f"names {freedom!r} a second time")
        taken.add(freedom)
        try:
            factors = [float(word) for word in child.require("factors").split()]
        except ValueError:
            raise child.make_error(
                f"has the factors {child.attributes['factors']!r}, where numbers are needed"
            ) from None
        yield freedom, factors
