"""Writer of the JSON format: a mechanism as plain data, and as JSON text that people can read and edit."""

from __future__ import annotations

import json
import math
from typing import Any, cast

from mechanik.errors import FormatError
from mechanik.formats.json.values import JsonValue
from mechanik.model import Closure, Frame, Goal, Inertial, Joint, JointConstraint, Link, Mechanism, ShapeInstance
from mechanik.model.shapes import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, HeightField, Material, Mesh, Sphere
from mechanik.spatial import Pose

FORMAT_VERSION = 1
"""Version of the format; a reader accepts this version and all older ones."""

_LINE_WIDTH = 118
"""Maximum number of characters of an object or list on one line, with its indentation and without its key. Longer ones
are split, except lists of numbers."""
_ZERO_POSITION, _IDENTITY_WXYZ = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
_DEFAULTS: dict[str, Any] = {
    "position": _ZERO_POSITION,
    "wxyz": _IDENTITY_WXYZ,
    "axes_wxyz": _IDENTITY_WXYZ,
    "scale": [1.0, 1.0, 1.0],
    "inertia": [0.0] * 6,
    "track_turns": False,
    "axes": "goal",
    "ratio": 1.0,
    "offset": 0.0,
    "constant": 0.0,
}

JsonObject = dict[str, Any]


def describe(mechanism: Mechanism) -> JsonObject:
    """Convert a mechanism to plain data: dictionaries, lists, strings, numbers, booleans, and None for missing values.

    To compare two mechanisms, compare their descriptions. Links, joints and goals are in the order of creation,
    which is also the order of the joints in q. The `warnings` of the reader are not part of the description.

    Args:
        mechanism: the mechanism to describe.

    Returns:
        The data, which `read_json` accepts; lengths in m, angles in rad.

    Raises:
        FormatError: the mechanism has content that JSON cannot express.

    Example:
        >>> data = mk.formats.describe(mk.gallery.four_bar())
        >>> [joint["name"] for joint in data["joints"]]
        ['crank_joint', 'coupler_joint', 'rocker_joint', 'closing_joint']
    """
    frames = [frame for root in mechanism.roots for frame in root.traverse() if frame.kind == "frame"]
    frames.sort(key=lambda frame: frame._serial)
    joints = mechanism.joints.values()
    return {
        "mechanik": FORMAT_VERSION,
        "name": mechanism.name,
        "frames": [_describe_frame(mechanism, frame) for frame in frames],
        "links": [_describe_link(mechanism, link) for link in mechanism.links.values()],
        "joints": [_describe_joint(mechanism, joint) for joint in joints],
        "closures": [_describe_closure(mechanism, closure) for closure in mechanism.closures.values()],
        "goals": [_describe_goal(mechanism, goal) for goal in mechanism.goals.values()],
        "couplings": [_describe_coupling(mechanism, joint, k) for joint in joints for k in range(len(joint.couplings))],
        "joint_constraints": [
            _describe_joint_constraint(mechanism, name, constraint)
            for name, constraint in mechanism.joint_constraints.items()
        ],
        "configurations": _describe_configurations(mechanism),
        "allowed_collisions": _describe_allowed_collisions(mechanism),
        "extras": JsonValue(mechanism.extras, "extras").plain_data(),
    }


def write_json(mechanism: Mechanism) -> str:
    """Write a mechanism as JSON text; defaults are omitted, and every number reads back to the last bit.

    Args:
        mechanism: the mechanism to write.

    Returns:
        The text, which `read_json` and `load` accept.

    Raises:
        FormatError: the mechanism has content that JSON cannot express.

    Example:
        >>> text = mk.formats.write_json(mk.gallery.planar_2r())
        >>> mk.formats.read_json(text).nq
        2
    """
    description = describe(mechanism)
    compact_description: JsonObject = {"mechanik": description["mechanik"], "name": description["name"]}
    closing_joints = {record["joint"] for record in description["closures"]}
    # the reader rejects a mechanism without links, frames, joints and goals unless the key "links" is present
    must_write_links = not (description["frames"] or description["joints"] or description["goals"])
    for section in ("frames", "links", "joints", "closures", "goals", "couplings", "joint_constraints"):
        if description[section] or (section == "links" and must_write_links):
            compact_description[section] = [
                _without_defaults(record, is_closing=record.get("name") in closing_joints)
                for record in description[section]
            ]
    for section in ("configurations", "extras"):
        if description[section]:
            compact_description[section] = description[section]
    if description["allowed_collisions"] is not None:
        compact_description["allowed_collisions"] = description["allowed_collisions"]
    try:
        text = format_json(compact_description, 0) + "\n"
        text.encode()
    except UnicodeEncodeError as error:
        excerpt = error.object[max(error.start - 8, 0) : error.end]
        raise FormatError(f"a name contains half of a surrogate pair: {excerpt!r}") from None
    except ValueError as error:
        raise FormatError(f"{mechanism!r} contains a number that is not finite: {error}") from None
    except (TypeError, RecursionError) as error:
        raise FormatError(f"{mechanism!r} contains data that JSON cannot express: {error}") from None
    return text


# ---- parts of the description ---------------------------------------------------------------


def _describe_frame(mechanism: Mechanism, frame: Frame) -> JsonObject:
    """Return the name and the pose of a frame.

    A parent that is a plain frame has its own key `in_frame`, because a link may have the same name.
    """
    record: JsonObject = {"name": mechanism.name_of(frame)}
    if frame.parent is not None and frame.parent.kind == "frame":
        record["in_frame"] = mechanism.name_of(frame.parent)
    return {**record, "position": frame.position.tolist(), "wxyz": frame.wxyz.tolist()}


def _describe_link(mechanism: Mechanism, link: Link) -> JsonObject:
    return {
        **_describe_frame(mechanism, link),
        "visuals": [_describe_shape(instance) for instance in link.visuals],
        "collisions": [_describe_shape(instance) for instance in link.collisions],
        "inertial": _describe_inertial(link.inertial) if link.inertial is not None else None,
    }


def _describe_joint(mechanism: Mechanism, joint: Joint) -> JsonObject:
    children = joint.children
    return {
        **_describe_frame(mechanism, joint),
        "parent": _parent_link_name(mechanism, joint),
        "child": mechanism.name_of(children[0]) if children else None,
        "dof": [dof.name for dof in joint.dof],
        "axes_wxyz": joint.axes_wxyz.tolist(),
        "lower": [None if x == -math.inf else x for x in joint.lower.tolist()],
        "upper": [None if x == math.inf else x for x in joint.upper.tolist()],
        "values": joint.values.tolist(),
        "rotation_wxyz": joint.rotation_wxyz.tolist() if joint.has_quaternion else None,
        "targets": list(joint.targets),
        "rest_pose": list(joint.rest_pose),
        "track_turns": bool(joint.track_turns),
        "cone": None if joint.cone is None else {"angle": joint.cone.angle, "axes": joint.cone.axes},
    }


def _describe_closure(mechanism: Mechanism, closure: Closure) -> JsonObject:
    return {
        "joint": mechanism.name_of(closure.joint),
        "link": mechanism.name_of(closure.link),
        "at": _describe_pose(closure.at),
    }


def _describe_goal(mechanism: Mechanism, goal: Goal) -> JsonObject:
    closure = goal.closure
    return {
        **_describe_frame(mechanism, goal),
        "on": _parent_link_name(mechanism, goal),
        "dof": [dof.name for dof in goal.goal_dof],
        "axes": goal.axes,
        "link": mechanism.name_of(closure.link) if closure is not None else None,
        "at": _describe_pose(closure.at if closure is not None else Pose.identity()),
    }


def _describe_coupling(mechanism: Mechanism, joint: Joint, k: int) -> JsonObject:
    coupling = joint.couplings[k]
    return {
        "mimic": mechanism.name_of(joint),
        "dof": coupling.dof.name,
        "leader": mechanism.name_of(coupling.leader),
        "leader_dof": coupling.leader_dof.name,
        "ratio": float(coupling.ratio),
        "offset": float(coupling.offset),
    }


def _describe_joint_constraint(mechanism: Mechanism, name: str, constraint: JointConstraint) -> JsonObject:
    terms = [
        {"joint": mechanism.name_of(term.joint), "dof": term.dof.name, "factors": list(term.coefficients)}
        for term in constraint.terms
    ]
    return {"name": name, "terms": terms, "constant": constraint.constant}


def _describe_configurations(mechanism: Mechanism) -> JsonObject:
    configurations: JsonObject = {}
    for name, q in mechanism.configurations.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise FormatError(f"the name of a configuration must be a string, not {name!r}")
        configurations[name] = [float(x) for x in q]
    return configurations


def _describe_allowed_collisions(mechanism: Mechanism) -> list[JsonObject] | None:
    pairs = mechanism.allowed_collisions
    return None if pairs is None else [{"links": [a, b], "reason": reason} for (a, b), reason in pairs.items()]


def _parent_link_name(mechanism: Mechanism, frame: Frame) -> str | None:
    parent = frame.parent
    return mechanism.name_of(parent) if parent is not None and parent.kind == "link" else None


def _describe_pose(pose: Pose) -> JsonObject:
    return {"position": pose.position.tolist(), "wxyz": pose.wxyz.tolist()}


def _describe_inertial(inertial: Inertial) -> JsonObject:
    return {
        "mass": float(inertial.mass),
        "inertia": [float(x) for x in inertial.inertia],
        **_describe_pose(inertial.pose),
    }


def _describe_shape(instance: ShapeInstance) -> JsonObject:
    shape = instance.shape
    record: JsonObject
    match shape:
        case Box():
            record = {"type": "box", "size": [float(x) for x in shape.size]}
        case Sphere():
            record = {"type": "sphere", "radius": float(shape.radius)}
        case Cylinder():
            record = {"type": "cylinder", "radius": float(shape.radius), "length": float(shape.length)}
        case Capsule():
            record = {"type": "capsule", "radius": float(shape.radius), "length": float(shape.length)}
        case Mesh():
            record = {"type": "mesh", "uri": shape.uri, "scale": [float(x) for x in shape.scale], "path": shape.path}
        case ConvexMesh():
            record = {"type": "convex_mesh", "points": shape.points.tolist()}
        case HalfSpace():
            record = {"type": "half_space"}
        case HeightField():
            record = {"type": "height_field", "size": list(shape.size), "bottom": shape.bottom}
            record["heights"] = shape.heights.tolist()
    return {
        **record,
        **_describe_pose(instance.pose),
        "name": instance.name,
        "material": _describe_material(instance.material) if instance.material is not None else None,
    }


def _describe_material(material: Material) -> JsonObject:
    rgba = None if material.rgba is None else [float(x) for x in material.rgba]
    return {"name": material.name, "rgba": rgba, "texture": material.texture}


# ---- text -----------------------------------------------------------------------------------


def _without_defaults(record: JsonObject, is_closing: bool = False) -> JsonObject:
    """Return a record without the entries that are equal to the reader's defaults.

    Values are compared by repr, because -0.0 must not become 0.0.

    Args:
        record: the complete record.
        is_closing: whether the record is a joint that closes a loop. The reader computes its missing values from the
            links, so zeros must be written.
    """
    can_omit_zero_values = not is_closing and record.get("rotation_wxyz") in (None, _IDENTITY_WXYZ)
    is_goal = "on" in record  # an empty dof list of a goal differs from the default, all dofs
    compact_record: JsonObject = {}
    for key, value in record.items():
        if value is None or (key == "name" and value == "") or (value == [] and not is_goal):
            continue
        if key in ("lower", "upper", "targets", "rest_pose") and all(item is None for item in value):
            continue
        if (
            key in ("values", "rotation_wxyz")
            and can_omit_zero_values
            and all(repr(x) == "0.0" for x in record["values"])
        ):
            continue
        if key in _DEFAULTS and repr(value) == repr(_DEFAULTS[key]):
            continue
        if key in ("at", "inertial", "material"):
            compact_record[key] = _without_defaults(record[key])
        elif key in ("visuals", "collisions"):
            compact_record[key] = [_without_defaults(item) for item in record[key]]
        else:
            compact_record[key] = value
    if compact_record.get("at") == {}:
        del compact_record["at"]
    return compact_record


def format_json(value: Any, indent: int = 0) -> str:
    """Format data as JSON with one item per line; short values and lists of numbers stay on one line."""
    line = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(line) + indent <= _LINE_WIDTH or not value:
        return line
    inner_indent, outer_indent = " " * (indent + 2), " " * indent
    if isinstance(value, dict):
        record = cast("JsonObject", value)
        items = [
            f"{json.dumps(key, ensure_ascii=False)}: {format_json(item, indent + 2)}" for key, item in record.items()
        ]
        return "{\n" + ",\n".join(inner_indent + item for item in items) + f"\n{outer_indent}}}"
    values = cast("list[Any]", value)
    if all(isinstance(item, int | float) for item in values):
        return line
    return "[\n" + ",\n".join(inner_indent + format_json(item, indent + 2) for item in values) + f"\n{outer_indent}]"
