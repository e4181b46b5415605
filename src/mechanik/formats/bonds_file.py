"""Gears, racks and laws beside a URDF or in its block <mechanik>; the format itself knows <mimic> alone.

In the file NAME.closures.json they stand beside "closures":

    "gears": [{"follower": "wheel", "leader": "pinion", "teeth": [60, 20], "inside": false, "offset": 0}],
    "racks": [{"rack": "slide", "pinion": "pinion", "radius": 0.02, "offset": 0}],
    "laws": [{"name": "cam", "terms": {"left": 1, "base.X": [1, 0.5]}, "constant": 0.3}]

and in the block as

    <gear follower="wheel" leader="pinion" teeth="60 20" inside="true" offset="0"/>
    <rack rack="slide" pinion="pinion" radius="0.02" offset="0"/>
    <law name="cam" constant="0.3"> <term joint="left" factors="1"/> <term joint="base" dof="X" factors="1 0.5"/> </law>

What the numbers mean is said by `Builder.gear`, `Builder.rack` and `Builder.law`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from mechanik.errors import ClosureError, MechanikError, UnknownName
from mechanik.formats.beside_urdf import Beside, ClosureSpec
from mechanik.formats.urdf_text import row, text_of
from mechanik.formats.xml_text import Node
from mechanik.mechanism.bonds import Bonds
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.law import Law

NEEDED = {"gear": ("follower", "leader", "teeth"), "rack": ("rack", "pinion", "radius"), "law": ("name", "terms")}
OPTIONAL = {"gear": ("inside", "offset"), "rack": ("offset",), "law": ("constant",)}


def bonds_of(said: Beside, robot: Node) -> dict[str, list[ClosureSpec]]:
    """Gears, racks and laws of a URDF: those beside it, and those in its blocks."""
    blocks = robot.all("mechanik")
    return {
        kind: [*said.items(f"{kind}s"), *(_from_node(kind, node) for block in blocks for node in block.all(kind))]
        for kind in NEEDED
    }


def make_bonds(specs: Mapping[str, Sequence[ClosureSpec]], joints: Mapping[str, Joint], kinds: Sequence[str]) -> None:
    """Let the joints keep to those of some kinds."""
    bonds = Bonds()
    bonds._joints.update(joints)
    for kind in kinds:
        for spec in specs[kind]:
            try:
                _make(bonds, kind, spec.said)
            except MechanikError as error:
                raise ClosureError(f"{spec.where}: {error}") from None


def law_element(law: Law, name: str, parts: Mapping[tuple[Joint, DoF], str], whole: Mapping[Joint, str]) -> Element:
    """
    Args:
        parts: the joint of the file that stands for a freedom of a joint.
        whole: joints that are written as they are, with their names.
    """
    element = Element("law", name=name, constant=text_of(law.constant))
    for term in law.terms:
        factors = row(term.factors)
        if term.joint in whole and len(term.joint.dof) > 1:
            SubElement(element, "term", joint=whole[term.joint], dof=term.dof.name, factors=factors)
        else:
            SubElement(element, "term", joint=parts[term.joint, term.dof], factors=factors)
    return element


def _make(bonds: Bonds, kind: str, said: Mapping[str, Any]) -> None:
    known = (*NEEDED[kind], *OPTIONAL[kind])
    for key in said:
        if key not in known:
            raise UnknownName(f"key of a {kind}", key, known)
    for key in NEEDED[kind]:
        if key not in said:
            raise ClosureError(f"it does not say its {key}")
    match kind:
        case "gear":
            ends = said["follower"], said["leader"]
            inside = said.get("inside", False)
            if not isinstance(inside, bool):
                raise ClosureError(f"inside is true or false, not {inside!r}")
            bonds.gear(*ends, teeth=said["teeth"], inside=inside, offset=said.get("offset", 0.0))
        case "rack":
            bonds.rack(said["rack"], said["pinion"], radius=said["radius"], offset=said.get("offset", 0.0))
        case _:
            bonds.law(said["name"], said["terms"], said.get("constant", 0.0))


def _from_node(kind: str, node: Node) -> ClosureSpec:
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
    return ClosureSpec(f"{node.where}: {label}", said)


def _terms(node: Node) -> Iterator[tuple[str, list[float]]]:
    taken: set[str] = set()
    for child in node.children:
        if child.tag != "term":
            raise child.fault("is unknown in a law; it holds <term>")
        joint, dof = child.need("joint"), child.attributes.get("dof")
        freedom = joint if dof is None else f"{joint}.{dof}"
        if freedom in taken:
            raise child.fault(f"names {freedom!r} a second time")
        taken.add(freedom)
        try:
            factors = [float(word) for word in child.need("factors").split()]
        except ValueError:
            raise child.fault(f"has the factors {child.attributes['factors']!r}, where numbers are needed") from None
        yield freedom, factors
