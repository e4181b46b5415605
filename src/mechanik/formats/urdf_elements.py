"""The elements of a URDF that say something about one link or one closure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from mechanik.formats.urdf_capsules import without_capsules
from mechanik.formats.urdf_text import origin_attributes, row, text_of
from mechanik.mechanism.link import Link
from mechanik.mechanism.shapes import Box, Capsule, Cylinder, Material, Mesh, PlacedShape, Shape, Sphere
from mechanik.spatial.array import Array

Written = Box | Sphere | Cylinder | Capsule | Mesh
"""Shapes that a URDF can hold."""


def is_written(shape: Shape) -> bool:
    return isinstance(shape, Written)


def shared_materials(links: Iterable[Link]) -> dict[str, Material]:
    """Materials to define once, by name; of two that share a name the first."""
    materials: dict[str, Material] = {}
    for link in links:
        for material in (shape.material for shape in (*link.visuals, *link.collisions)):
            if material is not None and material.name and (material.rgba or material.texture):
                materials.setdefault(material.name, material)
    return materials


def link_element(name: str, link: Link, materials: Mapping[str, Material]) -> Element:
    """A link with its inertia and shapes; `materials` are those that may be referred to by name."""
    element = Element("link", name=name)
    if link.inertial is not None:
        inertial = SubElement(element, "inertial")
        add_origin(inertial, link.inertial.pose.position, link.inertial.pose.wxyz)
        SubElement(inertial, "mass", value=text_of(link.inertial.mass))
        moments = SubElement(inertial, "inertia")
        for key, value in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), link.inertial.inertia, strict=True):
            moments.set(key, text_of(value))
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        known = without_capsules((shape for shape in shapes if is_written(shape.shape)), f"{name}.{tag}")
        element.extend(_shape(tag, shape, materials) for shape in known)
    return element


def _shape(tag: str, placed: PlacedShape, materials: Mapping[str, Material]) -> Element:
    element = Element(tag, {"name": placed.name} if placed.name else {})
    add_origin(element, placed.pose.position, placed.pose.wxyz)
    geometry = SubElement(element, "geometry")
    shape = placed.shape
    if isinstance(shape, Box):
        SubElement(geometry, "box", size=row(shape.size))
    elif isinstance(shape, Sphere):
        SubElement(geometry, "sphere", radius=text_of(shape.radius))
    elif isinstance(shape, Cylinder):
        SubElement(geometry, "cylinder", radius=text_of(shape.radius), length=text_of(shape.length))
    elif isinstance(shape, Mesh):
        geometry.append(_mesh(shape))
    material = placed.material
    if material is not None:
        known = materials.get(material.name) == material
        element.append(Element("material", name=material.name) if known else material_element(material))
    return element


def add_origin(element: Element, position: Array, wxyz: Array) -> None:
    """An <origin>, unless it would be the identity."""
    attributes = origin_attributes(position, wxyz)
    if attributes:
        SubElement(element, "origin", attributes)


def _mesh(mesh: Mesh) -> Element:
    element = Element("mesh", filename=mesh.uri)
    if mesh.scale != (1.0, 1.0, 1.0):
        element.set("scale", row(mesh.scale))
    return element


def material_element(material: Material) -> Element:
    element = Element("material", name=material.name)
    if material.rgba is not None:
        SubElement(element, "color", rgba=row(material.rgba))
    if material.texture is not None:
        SubElement(element, "texture", filename=material.texture)
    return element


def closure_element(said: Mapping[str, Any]) -> Element:
    element = Element("closure")
    for key, value in said.items():
        if key in ("at", "onto"):
            attributes = origin_attributes(np.array(value["position"]), np.array(value["wxyz"]))
            SubElement(element, key, attributes)
        elif key in ("lower", "upper"):
            element.set(key, " ".join("none" if one is None else text_of(one) for one in value))
        elif key == "free":
            element.set(key, " ".join(value))
        else:
            element.set(key, value if isinstance(value, str) else text_of(value) if key == "cone" else row(value))
    return element
