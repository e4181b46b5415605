"""Reader of the JSON format: a complete mechanism, a DH table, or an arm given by link lengths.

A DH table is written as {"mechanik": 1, "dh": {...}}, an arm as {"mechanik": 1, "arm": {...}}. In a complete mechanism,
joint values, targets and rest poses are set exactly, without rounding. Values outside the limits or inconsistent with
couplings raise an error.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from mechanik.errors import FormatError, UnknownName
from mechanik.formats.json.values import (
    JsonPathError,
    JsonRecord,
    JsonValue,
    parse_json,
    read_pose,
    read_position_wxyz,
    read_quaternion,
    set_frame_pose,
)
from mechanik.formats.json.writer import FORMAT_VERSION
from mechanik.formats.source import DiskFileResolver, FileResolver, Source, file_resolver, open_source
from mechanik.model import DoF, Frame, Goal, Inertial, Joint, JointConstraint, Link, Material, Mechanism, ShapeInstance
from mechanik.model.dof import ALL_DOFS, as_dofs
from mechanik.model.joint_constraint import JointDof
from mechanik.model.shapes import (
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
from mechanik.spatial import Pose, quaternion

SHAPE_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "box": (("size",), ()),
    "sphere": (("radius",), ()),
    "cylinder": (("radius", "length"), ()),
    "capsule": (("radius", "length"), ()),
    "mesh": (("uri",), ("scale", "path")),
    "convex_mesh": (("points",), ()),
    "half_space": ((), ()),
    "height_field": (("heights", "size", "bottom"), ()),
}
"""Required and optional keys of each shape type."""


def read_link(record: JsonRecord) -> Link:
    return Link(
        record["name"].name(),
        visuals=[_read_shape_instance(value) for value in record.list("visuals")],
        collisions=[_read_shape_instance(value) for value in record.list("collisions")],
        inertial=record.get_optional("inertial", _read_inertial),
    )


def resolve_meshes(mechanism: Mechanism, files: FileResolver) -> None:
    """Set the file path of each mesh; add a warning for each mesh file that does not exist."""
    missing_uris: dict[str, None] = {}

    def with_path(instance: ShapeInstance) -> ShapeInstance:
        mesh = instance.shape
        if not isinstance(mesh, Mesh):
            return instance
        file_exists, path = files.locate(mesh.uri, mesh.path)
        if not file_exists:
            missing_uris[mesh.uri] = None
        return instance if path == mesh.path else replace(instance, shape=replace(mesh, path=path))

    for link in mechanism.links.values():
        link.visuals = tuple(with_path(instance) for instance in link.visuals)
        link.collisions = tuple(with_path(instance) for instance in link.collisions)
    mechanism.warnings += [f"the mesh file {uri!r} does not exist{files.search_hint(uri)}" for uri in missing_uris]


def _read_inertial(value: JsonValue) -> Inertial:
    record = value.object(("mass",), ("inertia", "position", "wxyz"))
    inertia = record.get("inertia", lambda field: field.numbers(6), [0.0] * 6)
    with value.error_context():
        return Inertial(
            record["mass"].number(),
            Pose(*read_position_wxyz(record)),
            cast("tuple[float, float, float, float, float, float]", tuple(inertia)),
        )


def _read_shape_instance(value: JsonValue) -> ShapeInstance:
    fields = value.fields()
    kind = fields["type"].choice(tuple(SHAPE_KEYS)) if "type" in fields else ""
    required_keys, optional_keys = SHAPE_KEYS.get(kind, ((), ()))
    record = value.object(("type", *required_keys), (*optional_keys, "position", "wxyz", "name", "material"))
    with value.error_context():
        return ShapeInstance(
            _read_shape(kind, record),
            Pose(*read_position_wxyz(record)),
            record.get_optional("material", _read_material),
            record.get("name", JsonValue.text, ""),
        )


def _read_shape(kind: str, record: JsonRecord) -> Shape:
    match kind:
        case "box":
            return Box(_read_vector(record["size"]))
        case "sphere":
            return Sphere(record["radius"].number())
        case "cylinder":
            return Cylinder(record["radius"].number(), record["length"].number())
        case "capsule":
            return Capsule(record["radius"].number(), record["length"].number())
        case "convex_mesh":
            return ConvexMesh([row.numbers(3) for row in record["points"].items(item_names="points")])
        case "half_space":
            return HalfSpace()
        case "height_field":
            x, y = record["size"].numbers(2)
            return HeightField(_read_height_rows(record["heights"]), (x, y), record["bottom"].number())
        case _:
            scale = record.get("scale", _read_vector, (1.0, 1.0, 1.0))
            return Mesh(record["uri"].text(), scale, record.get_optional("path", JsonValue.text))


def _read_material(value: JsonValue) -> Material:
    record = value.object((), ("name", "rgba", "texture"))
    rgba = record.get_optional("rgba", lambda field: field.numbers(4))
    return Material(
        record.get("name", JsonValue.text, ""),
        None if rgba is None else cast("tuple[float, float, float, float]", tuple(rgba)),
        record.get_optional("texture", JsonValue.text),
    )


def _read_height_rows(value: JsonValue) -> list[list[float]]:
    rows = [row.numbers() for row in value.items(item_names="rows of numbers")]
    if any(len(row) != len(rows[0]) for row in rows):
        value.fail("rows of the same length")
    return rows


def _read_vector(value: JsonValue) -> Vector3:
    x, y, z = value.numbers(3)
    return x, y, z


AGREEMENT_TOLERANCE = 1e-6
"""Largest accepted difference between redundant numbers of a file.

Between the value of a mimic dof and the value that its leader gives, it is relative to 1 + |value| (m or rad). Between
the quaternion of a joint and the rotation that its angles give, it is an angle in rad."""


def set_values(joint: Joint, record: JsonRecord) -> None:
    """Set the independent dofs; values outside the limits or inconsistent with the quaternion raise an error.

    Values and quaternion are set twice: by the setters, and then directly, because the setters clamp the values to the
    limits of mimic joints and can change the last bit of the quaternion.
    """
    wxyz = record.get_optional("rotation_wxyz", read_quaternion)
    if wxyz is not None and not joint.has_quaternion:
        raise JsonPathError(
            f"{record['rotation_wxyz'].path}: only a joint with three unlimited rotations may have rotation_wxyz"
        )
    if record.has("values"):
        values = dict(zip(joint.dof, record["values"].items(len(joint.dof), "numbers"), strict=True))
        independent_values = {dof: value for dof, value in values.items() if dof not in joint._couplings}
        for dof, value in independent_values.items():
            _check_limits(joint, dof, value, "value")
        joint._assign({dof: value.number() for dof, value in independent_values.items()})
        for dof, value in independent_values.items():
            joint._values[dof] = value.number()
        for coupling in joint._mimic_couplings:
            coupling.update_mimic()
    if wxyz is not None:
        wxyz_of_angles = quaternion.from_euler(joint._values[[5, 4, 3]], order="zyx", axes="moving")
        if not record.has("values"):
            joint.rotation_wxyz = wxyz
        elif quaternion.angle_between(wxyz, wxyz_of_angles) > AGREEMENT_TOLERANCE:
            raise JsonPathError(
                f"{record['rotation_wxyz'].path}: rotation_wxyz and values describe different rotations"
            )
        joint._rotation_wxyz = wxyz
    joint._invalidate()


def set_mimic_values(joint: Joint, record: JsonRecord) -> None:
    """Set the values of the mimic dofs after all leaders; values inconsistent with the leader raise an error."""
    if not record.has("values"):
        return
    for dof, value in zip(joint.dof, record["values"].items(), strict=True):
        if dof not in joint._couplings:
            continue
        number, coupled_value = value.number(), joint.value(dof)
        if abs(number - coupled_value) > AGREEMENT_TOLERANCE * (1 + abs(number)):
            leader, unit = joint._couplings[dof].leader.name, dof.unit
            raise JsonPathError(
                f"{value.path}: {number:g} {unit} contradicts the leader {leader!r}, "
                f"which gives {coupled_value:g} {unit}"
            )
        joint._values[dof] = number
    joint._invalidate()


def set_targets(joint: Joint, record: JsonRecord) -> None:
    """Set targets and rest pose, and whether their angles count full revolutions (`track_turns`)."""
    joint.track_turns = record.get("track_turns", JsonValue.flag, False)
    for key, values_by_dof in (("targets", joint._targets), ("rest_pose", joint._rest_pose)):
        if not record.has(key):
            continue
        for dof, value in zip(joint.dof, record[key].items(len(joint.dof), "numbers or nulls"), strict=True):
            if value.data is None:
                continue
            number = value.number()
            if dof not in joint._couplings:
                _check_limits(joint, dof, value, "target" if key == "targets" else "rest value")
            elif key == "targets":
                leader = joint._couplings[dof].leader.name
                raise JsonPathError(
                    f"{value.path}: a mimic joint cannot have a target; give its leader {leader!r} the target"
                )
            values_by_dof[dof] = number


def _check_limits(joint: Joint, dof: DoF, value: JsonValue, label: str) -> None:
    lower, upper = joint.limits(dof)
    number = value.number()
    if not lower <= number <= upper:
        unit = dof.unit
        raise JsonPathError(
            f"{value.path}: the {label} {number:g} {unit} is outside the limits {lower:g} to {upper:g} {unit}"
        )


def read_dh(value: JsonValue) -> Mechanism:
    """Build a mechanism from a DH table; the keys of the JSON object are the arguments of `from_dh`.

    `base` and `tool` are 4x4 lists, lists of 3 coordinates, or objects with `position` and `wxyz`.
    """
    from mechanik.formats.arm_tables import from_dh

    return _call_with_record(from_dh, value)


def read_arm(value: JsonValue) -> Mechanism:
    """Build an arm from link lengths and axes; the keys of the JSON object are the arguments of `arm_3d` or `arm_2d`.

    An object with the key `axes` describes a spatial arm, any other object a planar arm.
    """
    from mechanik.formats.arm_tables import arm_2d, arm_3d

    return _call_with_record(arm_3d if "axes" in value.fields() else arm_2d, value)


def _call_with_record(function: Callable[..., Mechanism], value: JsonValue) -> Mechanism:
    parameters = inspect.signature(function).parameters.values()
    required_keys = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    optional_keys = [parameter.name for parameter in parameters if parameter.default is not parameter.empty]
    arguments = {
        key: read_pose(field) if isinstance(field.data, Mapping) else field.plain_data()
        for key, field in value.object(required_keys, optional_keys).fields.items()
    }
    with value.error_context():
        return function(**arguments)


F = TypeVar("F", bound=Frame)

SECTIONS = (
    "frames",
    "links",
    "joints",
    "closures",
    "goals",
    "couplings",
    "joint_constraints",
    "configurations",
    "allowed_collisions",
    "extras",
)
"""Keys of a mechanism besides "mechanik" and "name"."""
POSE_KEYS = ("in_frame", "position", "wxyz")
LINK_KEYS = (*POSE_KEYS, "visuals", "collisions", "inertial")
LIMIT_AND_VALUE_KEYS = ("lower", "upper", "values", "rotation_wxyz", "targets", "rest_pose", "track_turns", "cone")
JOINT_KEYS = (*POSE_KEYS, "parent", "child", "dof", "axes_wxyz", *LIMIT_AND_VALUE_KEYS)
GOAL_KEYS = (*POSE_KEYS, "on", "dof", "axes", "link", "at")


def read_json(
    source: str | os.PathLike[str] | Source | Mapping[str, Any], *, packages: Mapping[str, str | Path] | None = None
) -> Mechanism:
    """Read a mechanism from JSON text, from a JSON file, or from the data that `json.load` or `describe` returns.

    Args:
        source: a path, the text itself, or the parsed data.
        packages: folder of each package, by package name, for `package://` and `model://`.

    Returns:
        The mechanism. Its `warnings` describe missing mesh files and unusual content.

    Raises:
        FileMissing: the file does not exist.
        FormatError: the content is invalid; the message has the location, such as `joints[3].lower`, and what is
            expected.

    Example:
        >>> data = {"mechanik": 1, "arm": {"lengths": [1.0, 0.8]}}
        >>> mk.formats.read_json(data).nq
        2
    """
    if isinstance(source, Mapping):
        mechanism, files = _read_document(JsonValue(source)), DiskFileResolver(None, packages)
    else:
        json_source = source if isinstance(source, Source) else open_source(source)
        files = file_resolver(json_source, packages)
        text = json_source.text()
        with _prefix_errors_with_file(json_source.message_prefix):
            data = parse_json(text)
        if json_source.resolver is not None:
            json_source.resolver.count_parts(_count_list_entries(data), json_source.message_prefix)
        with _prefix_errors_with_file(json_source.message_prefix):
            mechanism = _read_document(JsonValue(data))
    resolve_meshes(mechanism, files)
    return mechanism


@contextmanager
def _prefix_errors_with_file(message_prefix: str) -> Generator[None]:
    """Prefix the messages of errors in the content with the name of the file."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{message_prefix}{error}") from error.__cause__


def _count_list_entries(data: object) -> int:
    """Return the number of list entries at the two top levels, without allowed collisions, as an estimate of the size.

    For a complete mechanism it is at least the number of links and joints.
    """
    if not isinstance(data, Mapping):
        return 0
    values = [value for key, value in cast("Mapping[object, object]", data).items() if key != "allowed_collisions"]
    for record in list(values):
        if isinstance(record, Mapping):
            values += cast("Mapping[object, object]", record).values()
    return sum(len(cast("list[object]", value)) for value in values if isinstance(value, list))


def _read_document(document: JsonValue) -> Mechanism:
    fields = document.fields()
    if "mechanik" not in fields:
        raise JsonPathError(
            f'the key "mechanik" is missing; a mechanism begins with {{"mechanik": {FORMAT_VERSION}, ...'
        )
    version = fields["mechanik"].number()
    if version != int(version) or version < 1:
        fields["mechanik"].fail(f"a version, 1 to {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        raise JsonPathError(
            f"the file has version {version:g} of the format; this version of Mechanik reads up to "
            f"{FORMAT_VERSION}. Install a newer Mechanik"
        )
    if "dh" in fields:
        return read_dh(document.object(("mechanik", "dh"))["dh"])
    if "arm" in fields:
        return read_arm(document.object(("mechanik", "arm"))["arm"])
    return _MechanismReader().read(document.object(("mechanik",), ("name", *SECTIONS)))


class _MechanismReader:
    """Reader of a complete mechanism; it stores the frames, links, joints and goals read so far, by name."""

    def __init__(self) -> None:
        self.frames: dict[str, Frame] = {}
        self.links: dict[str, Link] = {}
        self.joints: dict[str, Joint] = {}
        self.goals: dict[str, Goal] = {}

    def read(self, document: JsonRecord) -> Mechanism:
        frames = [(value, value.object(("name",), POSE_KEYS)) for value in document.list("frames")]
        links = [(value, value.object(("name",), LINK_KEYS)) for value in document.list("links")]
        joints = [(value, value.object(("name",), JOINT_KEYS)) for value in document.list("joints")]
        goals = [(value, value.object(("name",), GOAL_KEYS)) for value in document.list("goals")]
        for _, record in frames:
            self.frames[self.check_new_name(record, self.frames)] = _set_pose(Frame(record["name"].name()), record)
        for _, record in links:
            self.links[self.check_new_name(record, self.links)] = _set_pose(read_link(record), record)
        for _, record in joints:
            self.joints[self.check_new_name(record, self.joints)] = _set_pose(_read_joint(record), record)
        for _, record in goals:
            self.goals[self.check_new_name(record, self.joints, self.goals)] = _set_pose(_read_goal(record), record)
        for (_, record), frame in zip(
            [*frames, *links, *joints, *goals],
            [*self.frames.values(), *self.links.values(), *self.joints.values(), *self.goals.values()],
            strict=True,
        ):
            self.attach(record, frame)
        for value in document.list("closures"):
            self.add_closure(value)
        for _, record in goals:
            self.set_goal_link(record)
        for value in document.list("couplings"):
            self.add_coupling(value)
        for value in document.list("joint_constraints"):
            self.add_joint_constraint(value)
        self.set_states([record for _, record in joints])
        all_frames = [*self.links.values(), *self.frames.values(), *self.joints.values(), *self.goals.values()]
        if not all_frames and not document.has("links"):
            raise JsonPathError("the mechanism has no links")
        mechanism = Mechanism(
            [frame for frame in all_frames if frame.parent is None], name=document.get("name", JsonValue.text, "")
        )
        if not all_frames:
            mechanism.warnings.append("the mechanism has no links; it is empty")
        for name, value in (document["configurations"].fields() if document.has("configurations") else {}).items():
            q = value.numbers(mechanism.nq)
            with value.error_context():
                mechanism.configurations[name] = np.array(mechanism.space.check_q(q))
        if document.has("allowed_collisions") and document["allowed_collisions"].data is not None:
            self.read_allowed_collisions(document["allowed_collisions"], mechanism)
        if document.has("extras"):
            document["extras"].fields()  # raises an error if the value is not an object
            mechanism.extras.update(document["extras"].plain_data())
        return mechanism

    def read_allowed_collisions(self, value: JsonValue, mechanism: Mechanism) -> None:
        pairs: dict[tuple[str, str], str] = {}
        for pair in value.items(item_names="pairs"):
            record = pair.object(("links",), ("reason",))
            a, b = (self.link(name) for name in record["links"].items(2, "names of links"))
            pairs[mechanism.name_of(a), mechanism.name_of(b)] = record.get("reason", JsonValue.text, "")
        with value.error_context():
            mechanism.allowed_collisions = pairs

    def check_new_name(self, record: JsonRecord, *frames_by_name: Mapping[str, Frame]) -> str:
        name = record["name"].name()
        for group in frames_by_name:
            if name in group:
                raise JsonPathError(f"{record['name'].path}: another {group[name].kind} has the name {name!r}")
        return name

    def attach(self, record: JsonRecord, frame: Frame) -> None:
        parent = record.get_optional("in_frame", self.frame)
        key = "on" if isinstance(frame, Goal) else "parent"
        if record.has(key) and record[key].data is not None:
            if parent is not None:
                raise JsonPathError(f"{record['in_frame'].path}: in_frame and {key} exclude each other")
            parent = self.link(record[key])
        if parent is not None:
            with record["in_frame" if parent.kind == "frame" else key].error_context():
                parent.add_child(frame)
        child = record.get_optional("child", self.link)
        if child is not None:
            with record["child"].error_context():
                frame.add_child(child)

    def add_closure(self, value: JsonValue) -> None:
        record = value.object(("joint", "link"), ("at",))
        joint, link = self.joint(record["joint"]), self.link(record["link"])
        _make_closure(joint, link, record, value)

    def set_goal_link(self, record: JsonRecord) -> None:
        goal = self.goals[record["name"].name()]
        link = record.get_optional("link", self.link)
        if link is not None:
            _make_closure(goal, link, record, record["link"])
        else:
            record.get("at", read_pose, None)  # validate the pose although it is not used

    def add_coupling(self, value: JsonValue) -> None:
        record = value.object(("mimic", "leader"), ("dof", "leader_dof", "ratio", "offset"))
        mimic, leader = self.joint(record["mimic"]), self.joint(record["leader"])
        with value.error_context():
            mimic.mimic(
                leader,
                record.get("ratio", JsonValue.number, 1.0),
                record.get("offset", JsonValue.number, 0.0),
                dof=record.get("dof", JsonValue.text, None),
                leader_dof=record.get("leader_dof", JsonValue.text, None),
            )

    def add_joint_constraint(self, value: JsonValue) -> None:
        record = value.object(("terms",), ("name", "constant"))
        terms: dict[JointDof, list[float]] = {}
        for item in record["terms"].items(item_names="terms"):
            term = item.object(("joint", "factors"), ("dof",))
            joint = self.joint(term["joint"])
            with item.error_context():
                dof_name = term.get("dof", JsonValue.text, None)
                dof = joint._only_dof("dof") if dof_name is None else joint._check_dof(dof_name)
            if (joint, dof) in terms:
                raise JsonPathError(f"{item.path}: another term also has {dof.name} of {joint.name!r}")
            terms[joint, dof] = term["factors"].numbers()
        with value.error_context():
            JointConstraint(
                terms, record.get("constant", JsonValue.number, 0.0), name=record.get("name", JsonValue.text, "")
            )

    def set_states(self, records: list[JsonRecord]) -> None:
        """Set values, targets and rest poses; closures and couplings must exist, as adding one can change a value."""
        joints = list(zip(self.joints.values(), records, strict=True))
        for joint, record in joints:
            set_values(joint, record)
        for joint, record in joints:
            set_mimic_values(joint, record)
            set_targets(joint, record)

    def frame(self, value: JsonValue) -> Frame:
        return _find_by_name("frame", value, self.frames)

    def link(self, value: JsonValue) -> Link:
        return _find_by_name("link", value, self.links)

    def joint(self, value: JsonValue) -> Joint:
        return _find_by_name("joint", value, self.joints)


def _set_pose(frame: F, record: JsonRecord) -> F:
    set_frame_pose(frame, *read_position_wxyz(record))
    return frame


def _read_joint(record: JsonRecord) -> Joint:
    dof = record.get("dof", _read_dofs, ())
    joint = Joint(record["name"].name(), dof=dof)
    if record.has("axes_wxyz"):
        joint._axes = read_quaternion(record["axes_wxyz"])
    lower_and_upper = [[sign * math.inf] * len(dof) for sign in (-1, 1)]
    for key, bounds in zip(("lower", "upper"), lower_and_upper, strict=True):
        if record.has(key):
            limits = record[key].numbers_or_null(len(dof))
            bounds[:] = [default if limit is None else limit for limit, default in zip(limits, bounds, strict=True)]
    if record.has("lower") or record.has("upper"):
        with record["lower" if record.has("lower") else "upper"].error_context():
            joint.set_limits(*lower_and_upper)
    if record.has("cone") and record["cone"].data is not None:
        cone = record["cone"].object(("angle",), ("axes",))
        with record["cone"].error_context():
            joint.set_cone(cone["angle"].number(), cone.get("axes", JsonValue.text, "z"))
    return joint


def _read_goal(record: JsonRecord) -> Goal:
    axes: Any = record.get("axes", lambda value: value.choice(("goal", "world")), "goal")
    return Goal(record["name"].name(), dof=record.get("dof", _read_dofs, ALL_DOFS), axes=axes)


def _make_closure(closing_frame: Joint | Goal, link: Link, record: JsonRecord, error_location: JsonValue) -> None:
    pose_on_link = record.get("at", read_pose, Pose.identity())
    with error_location.error_context():
        closing_frame.make_closure(link, pose_on_link)


def _read_dofs(value: JsonValue) -> tuple[DoF, ...]:
    names = [item.choice(DoF._member_names_) for item in value.items(item_names="dofs")]
    with value.error_context():
        return as_dofs(names)


def _find_by_name(kind: str, value: JsonValue, frames_by_name: Mapping[str, F]) -> F:
    name = value.text()
    if name not in frames_by_name:
        with value.error_context():
            raise UnknownName(kind, name, frames_by_name)
    return frames_by_name[name]
