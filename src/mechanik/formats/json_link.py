"""Links in JSON: shapes, colours and masses."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mechanik.formats.json_pose import read_place
from mechanik.formats.json_value import Record, Value
from mechanik.formats.source import FilesAround
from mechanik.mechanism import Inertial, Link, Material, Mechanism, PlacedShape
from mechanik.mechanism.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    HeightField,
    Mesh,
    Shape,
    Sphere,
    Vector3,
)
from mechanik.spatial import Pose

SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "box": (("size",), ()),
    "sphere": (("radius",), ()),
    "cylinder": (("radius", "length"), ()),
    "capsule": (("radius", "length"), ()),
    "mesh": (("uri",), ("scale", "path")),
    "convex_mesh": (("points",), ()),
    "half_space": ((), ()),
    "height_field": (("heights", "size", "bottom"), ()),
}
"""The keys that each type of shape needs, and those that it may have."""


def read_link(record: Record) -> Link:
    return Link(
        record["name"].name(),
        visuals=[_placed_shape(value) for value in record.list("visuals")],
        collisions=[_placed_shape(value) for value in record.list("collisions")],
        inertial=record.maybe("inertial", _inertial),
    )


def find_meshes(mechanism: Mechanism, files: FilesAround) -> None:
    """Give each mesh the file that stands for it; one that cannot be found is a warning."""
    missing: dict[str, None] = {}

    def found(placed: PlacedShape) -> PlacedShape:
        mesh = placed.shape
        if not isinstance(mesh, Mesh):
            return placed
        is_there, path = files.locate(mesh.uri, mesh.path)
        if not is_there:
            missing[mesh.uri] = None
        return placed if path == mesh.path else replace(placed, shape=replace(mesh, path=path))

    for link in mechanism.links.values():
        link.visuals = tuple(found(shape) for shape in link.visuals)
        link.collisions = tuple(found(shape) for shape in link.collisions)
    mechanism.warnings += [f"the mesh {uri!r} was not found{files.advice(uri)}" for uri in missing]


def _inertial(value: Value) -> Inertial:
    record = value.object(("mass",), ("inertia", "position", "wxyz"))
    inertia = record.get("inertia", lambda one: one.numbers(6), [0.0] * 6)
    with value.blamed():
        return Inertial(
            record["mass"].number(),
            Pose(*read_place(record)),
            cast("tuple[float, float, float, float, float, float]", tuple(inertia)),
        )


def _placed_shape(value: Value) -> PlacedShape:
    fields = value.fields()
    kind = fields["type"].choice(tuple(SHAPES)) if "type" in fields else ""
    needed, optional = SHAPES.get(kind, ((), ()))
    record = value.object(("type", *needed), (*optional, "position", "wxyz", "name", "material"))
    with value.blamed():
        return PlacedShape(
            _shape(kind, record),
            Pose(*read_place(record)),
            record.maybe("material", _material),
            record.get("name", Value.text, ""),
        )


def _shape(kind: str, record: Record) -> Shape:
    match kind:
        case "box":
            return Box(_vector(record["size"]))
        case "sphere":
            return Sphere(record["radius"].number())
        case "cylinder":
            return Cylinder(record["radius"].number(), record["length"].number())
        case "capsule":
            return Capsule(record["radius"].number(), record["length"].number())
        case "convex_mesh":
            return ConvexMesh([row.numbers(3) for row in record["points"].items(of="points")])
        case "half_space":
            return HalfSpace()
        case "height_field":
            x, y = record["size"].numbers(2)
            return HeightField(_rows(record["heights"]), (x, y), record["bottom"].number())
        case _:
            scale = record.get("scale", _vector, (1.0, 1.0, 1.0))
            return Mesh(record["uri"].text(), scale, record.maybe("path", Value.text))


def _material(value: Value) -> Material:
    record = value.object((), ("name", "rgba", "texture"))
    rgba = record.maybe("rgba", lambda one: one.numbers(4))
    return Material(
        record.get("name", Value.text, ""),
        None if rgba is None else cast("tuple[float, float, float, float]", tuple(rgba)),
        record.maybe("texture", Value.text),
    )


def _rows(value: Value) -> list[list[float]]:
    rows = [row.numbers() for row in value.items(of="rows of numbers")]
    if any(len(row) != len(rows[0]) for row in rows):
        value.fail("rows of one length")
    return rows


def _vector(value: Value) -> Vector3:
    x, y, z = value.numbers(3)
    return x, y, z
