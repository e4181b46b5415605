"""Conversion of objectives to dicts and JSON files, and back: every kind but those with Python functions.

Numbers are exact after a round trip. A terrain that several goals share is stored once in a file. A missing bound of a
box or a band is null, since JSON has no infinite numbers.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from mechanik.errors import CannotSave, FileMissing, FormatError, MechanikError, ObjectiveError, UnknownName
from mechanik.model import DoF
from mechanik.model.shapes import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, HeightField, Mesh, Sphere
from mechanik.objectives.centre_of_mass import CentreOfMass
from mechanik.objectives.clearance import Clearance
from mechanik.objectives.function_objectives import Custom, Manipulability
from mechanik.objectives.joint_goals import JointValues, RestPose
from mechanik.objectives.objective import Objective, as_objectives
from mechanik.objectives.pose_constraints import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
)
from mechanik.objectives.pose_goals import (
    AxisGoal,
    HingeGoal,
    LinkGoal,
    OnLine,
    OnPlane,
    OrientationGoal,
    PoseGoal,
    PositionGoal,
    SurfaceGoal,
)
from mechanik.objectives.region_goals import Distance, InBand, InBox, InCone, LookAt, OnTerrain
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import make_pose
from mechanik.validation import format_count

FORMAT = "mechanik objectives"
VERSION = 1

CONSTRAINT_CLASSES = {
    constraint_class.__name__: constraint_class
    for constraint_class in (
        PointConstraint,
        LineConstraint,
        PlaneConstraint,
        FixedRotation,
        AlignedAxes,
        PerpendicularAxes,
    )
}
LINK_GOAL_CLASSES: Mapping[str, tuple[type[LinkGoal], type | None, type | None]] = {
    goal_class.__name__: (goal_class, position, rotation)
    for goal_class, position, rotation in (
        (PositionGoal, PointConstraint, None),
        (OnLine, LineConstraint, None),
        (OnPlane, PlaneConstraint, None),
        (AxisGoal, None, AlignedAxes),
        (OrientationGoal, None, FixedRotation),
        (HingeGoal, PointConstraint, AlignedAxes),
        (SurfaceGoal, PlaneConstraint, AlignedAxes),
        (PoseGoal, PointConstraint, FixedRotation),
    )
}
"""Subclasses of `LinkGoal` by name, with the classes of their position and rotation constraints. `LinkGoal` itself is
not included, since it accepts any constraint."""

ARGUMENTS: Mapping[type[Objective], str] = {
    InBox: "link lower upper frame at:point relative_to",
    InBand: "link coordinate lower upper frame at:tool relative_to",
    InCone: "link axis direction angle relative_to",
    Distance: "link other_link at:point other_at:other_point equal at_least at_most",
    LookAt: "link target axis at:eye relative_to",
    OnTerrain: "link terrain at:point radius relative_to",
    JointValues: "values angle_mode",
    RestPose: "q weights angle_mode",
    CentreOfMass: "target support margin relative_to links dof",
    Manipulability: "link dof at:point joints reference",
    Clearance: "avoid clearance allow forbid",
}
"""Arguments of the other classes, which are the keys of their dicts; after a colon, the field where it differs."""
CLASSES = {objective_class.__name__: objective_class for objective_class in ARGUMENTS}
KINDS = ("LinkGoal", *LINK_GOAL_CLASSES, *CLASSES)

OPTION_KEYS = tuple(field.name for field in fields(Objective))
LINK_GOAL_KEYS = ("kind", "link", "relative_to", "position", "rotation", *OPTION_KEYS)

SHAPE_CLASSES = {
    shape_class.__name__: shape_class
    for shape_class in (Box, Sphere, Cylinder, Capsule, Mesh, HalfSpace, HeightField, ConvexMesh)
}


def objective_to_dict(objective: Objective) -> dict[str, Any]:
    """Return an objective as a dict of JSON values.

    Raises:
        ObjectiveError: this kind of objective cannot be saved.
    """
    objective_class = type(objective)
    data: dict[str, Any] = {"kind": objective_class.__name__}
    if isinstance(objective, Clearance) and objective_class is Clearance:
        data |= _clearance_to_dict(objective)
    elif objective_class in ARGUMENTS:
        for key, field in _field_by_key(objective_class).items():
            data[key] = _to_json(getattr(objective, field))
    elif objective_class is LinkGoal or LINK_GOAL_CLASSES.get(objective_class.__name__, (None,))[0] is objective_class:
        for key in (*LINK_GOAL_KEYS[1:5], *_extra_keys(objective_class)):
            value = getattr(objective, key)
            data[key] = _constraint_to_dict(value) if type(value).__name__ in CONSTRAINT_CLASSES else _to_json(value)
    elif isinstance(objective, Custom):
        raise ObjectiveError(f"{objective!r} cannot be saved, since it has Python functions; make it again in Python")
    else:
        raise ObjectiveError(f"{objective!r} cannot be saved; only {', '.join(KINDS)} can be saved")
    return data | {key: getattr(objective, key) for key in OPTION_KEYS}


def objective_from_dict(data: object, location: str = "objective", terrains: Sequence[Terrain] = ()) -> Objective:
    """Convert a dict of `objective_to_dict` back to an objective.

    Args:
        data: the dict.
        location: location of the dict in the file, such as `objectives[0]`, for messages.
        terrains: terrains of the file, to which goals refer by index.

    Raises:
        FormatError: the data does not describe an objective.
    """
    table = _as_table(data, location)
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise FormatError(f"{location}: {UnknownName('kind of objective', kind, KINDS)}")
    try:
        if kind not in CLASSES:
            return _link_goal_from_dict(kind, table, location)
        objective_class = CLASSES[kind]
        keys = tuple(_field_by_key(objective_class))
        _check_keys(table, ("kind", *keys, *OPTION_KEYS), location)
        for key in _required_keys(objective_class):
            if key not in table:
                raise FormatError(f"{location}: the key {key!r} is missing")
        arguments = {key: table[key] for key in (*keys, *OPTION_KEYS) if key in table}
        if kind == "OnTerrain":
            arguments["terrain"] = _find_terrain(arguments["terrain"], terrains, location)
        elif kind == "Clearance":
            arguments |= _clearance_arguments(arguments, location)
        elif kind == "InBox":
            for key, unbounded in (("lower", -math.inf), ("upper", math.inf)):
                bounds = _as_list(arguments[key], f"{location}.{key}")
                arguments[key] = [unbounded if bound is None else bound for bound in bounds]
        return objective_class(**arguments)
    except FormatError:
        raise
    except (MechanikError, TypeError, ValueError) as error:
        raise FormatError(f"{location}: {error}") from error


def _link_goal_from_dict(kind: str, table: Mapping[str, Any], location: str) -> LinkGoal:
    goal_class, *expected_classes = LINK_GOAL_CLASSES.get(kind, (LinkGoal, None, None))
    extra_keys = _extra_keys(goal_class)
    _check_keys(table, (*LINK_GOAL_KEYS, *extra_keys), location)
    if "link" not in table:
        raise FormatError(f"{location}: the key 'link' is missing")
    options = {key: table[key] for key in ("relative_to", *OPTION_KEYS, *extra_keys) if key in table}
    constraints = [_constraint_from_dict(table.get(key), f"{location}.{key}") for key in ("position", "rotation")]
    if goal_class is LinkGoal:
        return LinkGoal(table["link"], *constraints, **options)
    if [type(constraint) if constraint is not None else None for constraint in constraints] != expected_classes:
        expected_names = [
            None if constraint_class is None else constraint_class.__name__ for constraint_class in expected_classes
        ]
        raise FormatError(
            f"{location}: a {kind} has the position {expected_names[0]} and the rotation {expected_names[1]}"
        )
    if goal_class is PoseGoal:
        target, X_link_tool = (
            make_pose(constraints[1].target, constraints[0].target),
            make_pose(constraints[1].local, constraints[0].local),
        )
        return PoseGoal(table["link"], target, at=X_link_tool, **options)
    # the constructors of the subclasses take targets instead of constraints, so they are not called here
    goal = object.__new__(goal_class)
    LinkGoal.__init__(goal, table["link"], *constraints, **options)
    return goal


def save_objectives(objectives: Objective | Iterable[Objective], path: str | os.PathLike[str]) -> None:
    """Write objectives to a JSON file.

    The file is written under a temporary name and then renamed, so a failed write leaves an existing file unchanged.

    Args:
        objectives: one objective or several, of every kind but `Custom`; a `Clearance` must not have a `Collider`.
        path: file to write.

    Raises:
        InvalidArgument: an item is not an objective.
        ObjectiveError: an objective cannot be saved.
        CannotSave: the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/goals.json"
        ...     mk.objectives.save_objectives(mk.PositionGoal("tool", (0.5, 0.3, 0.0)), path)
        ...     print(mk.objectives.load_objectives(path))
        [<PositionGoal of link 'tool': PointConstraint>]
    """
    objective_list = as_objectives(objectives)
    objective_dicts = [objective_to_dict(objective) for objective in objective_list]
    terrains = extract_terrains(
        objective_dicts,
        [objective.terrain if isinstance(objective, OnTerrain) else None for objective in objective_list],
    )
    terrain_section = {"terrains": terrains} if terrains else {}
    data = {"format": FORMAT, "version": VERSION, **terrain_section, "objectives": objective_dicts}
    text = json.dumps(data, indent=2, allow_nan=False) + "\n"
    try:
        target_path = Path(path).expanduser().resolve()  # a symbolic link stays; the file it points to is replaced
        temporary_path = target_path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with open(temporary_path, "x", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            if target_path.exists():
                shutil.copymode(target_path, temporary_path)
            os.replace(temporary_path, target_path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary_path.unlink()
            raise
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise CannotSave(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None


def load_objectives(path: str | os.PathLike[str]) -> list[Objective]:
    """Read the objectives of a file that `save_objectives` wrote.

    Args:
        path: file to read.

    Returns:
        The objectives in the order of the file.

    Raises:
        FileMissing: there is no such file.
        FormatError: the file cannot be read, or its content is not a valid objective file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/goals.json"
        ...     mk.objectives.save_objectives([mk.AxisGoal("tool", (0.0, 0.0, 1.0), level=2)], path)
        ...     print(mk.objectives.load_objectives(path)[0].level)
        2
    """
    try:
        file_path = Path(path).expanduser()
        text = file_path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileMissing(f"there is no file {path}") from None
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise FormatError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file_path.name}: not valid JSON: {error}") from None
    table = _as_table(data, file_path.name)
    if table.get("format") != FORMAT:
        raise FormatError(f"{file_path.name}: format is {table.get('format')!r}, not {FORMAT!r}")
    version = table.get("version")
    if version != VERSION:
        advice = "; update Mechanik to read it" if isinstance(version, int) and version > VERSION else ""
        raise FormatError(f"{file_path.name}: version is {version!r}; this Mechanik reads version {VERSION}{advice}")
    _check_keys(table, ("format", "version", "terrains", "objectives"), file_path.name)
    objective_data, terrain_data = table.get("objectives"), table.get("terrains", [])
    for key, value in (("objectives", objective_data), ("terrains", terrain_data)):
        if not isinstance(value, list):
            raise FormatError(f"{file_path.name}: {key} must be a list")
    terrains = [
        terrain_from_dict(entry, f"{file_path.name}: terrains[{k}]")
        for k, entry in enumerate(cast("list[object]", terrain_data))
    ]
    return [
        objective_from_dict(entry, f"{file_path.name}: objectives[{k}]", terrains)
        for k, entry in enumerate(cast("list[object]", objective_data))
    ]


def _to_json(value: object) -> Any:
    """Return a value of a field as JSON; a bound that is infinite becomes None."""
    if isinstance(value, np.ndarray):
        return _to_json(cast("np.ndarray[Any, Any]", value).tolist())
    if isinstance(value, Mapping):
        return {key: _to_json(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [_to_json(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, DoF):
        return value.name
    if isinstance(value, Terrain):
        return {"heights": value.heights.tolist(), "cell": value.cell, "origin": value.origin.tolist()}
    return None if isinstance(value, float) and math.isinf(value) else value


@cache
def _field_by_key(objective_class: type[Objective]) -> dict[str, str]:
    """Return the field that each key of a class stores, in the order of `ARGUMENTS`."""
    pairs = (argument.partition(":") for argument in ARGUMENTS[objective_class].split())
    return {key: field or key for key, _, field in pairs}


@cache
def _required_keys(objective_class: type[Objective]) -> tuple[str, ...]:
    """Return the keys of a class whose arguments have no default."""
    parameters = inspect.signature(objective_class).parameters
    return tuple(key for key in _field_by_key(objective_class) if parameters[key].default is inspect.Parameter.empty)


@cache
def _extra_keys(goal_class: type[LinkGoal]) -> tuple[str, ...]:
    """Return the fields that a goal of a link has in addition to those of `LINK_GOAL_KEYS`."""
    return tuple(field.name for field in fields(goal_class) if field.name not in LINK_GOAL_KEYS)


def _find_terrain(data: object, terrains: Sequence[Terrain], location: str) -> Terrain:
    """Return the terrain that a goal describes, or to which it refers by index."""
    if not isinstance(data, int) or isinstance(data, bool):
        return terrain_from_dict(data, f"{location}.terrain")
    if not 0 <= data < len(terrains):
        raise FormatError(
            f"{location}.terrain: there is no terrain with index {data}; "
            f"the file has {format_count(len(terrains), 'terrain')}"
        )
    return terrains[data]


def terrain_from_dict(data: object, location: str) -> Terrain:
    """Convert a dict with the heights, the cell size and the origin of a terrain to a terrain.

    Args:
        data: the dict.
        location: location of the dict in the file, such as `terrains[0]`, for messages.

    Raises:
        FormatError: the data does not describe a terrain.
    """
    table = _as_table(data, location)
    _check_keys(table, ("heights", "cell", "origin"), location)
    for key in ("heights", "cell"):
        if key not in table:
            raise FormatError(f"{location}: the key {key!r} is missing")
    try:
        return Terrain(**table)
    except MechanikError as error:
        raise FormatError(f"{location}: {error}") from error


def extract_terrains(items: list[dict[str, Any]], terrains: Sequence[Terrain | None]) -> list[dict[str, Any]]:
    """Replace the terrains in dicts of objectives by indices, in place, and return the dicts of the distinct terrains.

    Args:
        items: dicts of objectives.
        terrains: terrain of each objective, or None.

    Returns:
        The dicts in the order of the indices.
    """
    indices: dict[Terrain, int] = {}
    terrain_dicts: list[dict[str, Any]] = []
    for item, terrain in zip(items, terrains, strict=True):
        if terrain is None:
            continue
        if terrain not in indices:
            indices[terrain] = len(terrain_dicts)
            terrain_dicts.append(item["terrain"])
        item["terrain"] = indices[terrain]
    return terrain_dicts


def _clearance_to_dict(goal: Clearance) -> dict[str, Any]:
    from mechanik.collision import Collider, Obstacle

    if isinstance(goal.avoid, Collider):
        raise ObjectiveError(
            f"{goal!r} cannot be saved, since its Collider belongs to a mechanism; give it 'self' and obstacles instead"
        )
    avoid, allow, forbid = cast("tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]", goal.avoid)
    objects: list[Any] = []
    for item in avoid:
        if isinstance(item, Obstacle):
            shape = {"shape": type(item.shape).__name__} | {
                field.name: _to_json(getattr(item.shape, field.name)) for field in fields(item.shape)
            }
            pose = {"position": item.pose.position.tolist(), "wxyz": item.pose.wxyz.tolist()}
            objects.append({"name": item.name, **pose, "shape": shape})
        elif isinstance(item, str):
            objects.append(item)
        else:
            raise ObjectiveError(f"{goal!r} cannot be saved, since {item!r} is neither a name nor an Obstacle")
    return {"avoid": objects, "clearance": goal.clearance, "allow": _to_json(allow), "forbid": _to_json(forbid)}


def _clearance_arguments(table: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Return the arguments of a `Clearance` that are not plain JSON values: obstacles and pairs of names."""
    from mechanik.collision import Obstacle

    objects: list[Any] = []
    for k, item in enumerate(_as_list(table.get("avoid", ["self"]), f"{location}.avoid")):
        place = f"{location}.avoid[{k}]"
        if isinstance(item, str):
            objects.append(item)
            continue
        obstacle = _as_table(item, place)
        _check_keys(obstacle, ("name", "position", "wxyz", "shape"), place)
        shape = dict(_as_table(obstacle.get("shape"), f"{place}.shape"))
        name = shape.pop("shape", None)
        if not isinstance(name, str) or name not in SHAPE_CLASSES:
            raise FormatError(f"{place}.shape: {UnknownName('shape', name, SHAPE_CLASSES)}")
        shape_class = SHAPE_CLASSES[name]
        _check_keys(shape, [field.name for field in fields(shape_class)], f"{place}.shape")
        options = {key: obstacle[key] for key in ("position", "wxyz", "name") if key in obstacle}
        try:
            objects.append(Obstacle(shape_class(**shape), **options))
        except (MechanikError, TypeError, ValueError) as error:
            raise FormatError(f"{place}: {error}") from error
    pairs = {
        key: [tuple(_as_list(pair, f"{location}.{key}")) for pair in _as_list(table[key], f"{location}.{key}")]
        for key in ("allow", "forbid")
        if key in table
    }
    return {"avoid": objects, **pairs}


def _as_list(data: object, location: str) -> list[Any]:
    if not isinstance(data, list):
        raise FormatError(f"{location}: expected a list, found {type(data).__name__}")
    return cast("list[Any]", data)


def _constraint_to_dict(constraint: Any) -> dict[str, Any]:
    arrays = {field.name: np.asarray(getattr(constraint, field.name)).tolist() for field in fields(constraint)}
    return {"rule": type(constraint).__name__, **arrays}


def _constraint_from_dict(data: object, location: str) -> Any:
    if data is None:
        return None
    table = _as_table(data, location)
    name = table.get("rule")
    if not isinstance(name, str) or name not in CONSTRAINT_CLASSES:
        raise FormatError(f"{location}: {UnknownName('constraint', name, CONSTRAINT_CLASSES)}")
    constraint_class = CONSTRAINT_CLASSES[name]
    keys = [field.name for field in fields(constraint_class)]
    _check_keys(table, ("rule", *keys), location)
    for key in keys:
        if key not in table:
            raise FormatError(f"{location}: the key {key!r} is missing")
    try:
        return constraint_class(**{key: table[key] for key in keys})
    except MechanikError as error:
        raise FormatError(f"{location}: {error}") from error


def _as_table(data: object, location: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        _raise_not_object(location, data)
    return cast("Mapping[str, Any]", data)


def _raise_not_object(location: str, data: object) -> NoReturn:
    raise FormatError(f"{location}: expected an object, found {type(data).__name__}")


def _check_keys(table: Mapping[str, Any], allowed_keys: Sequence[str], location: str) -> None:
    for key in table:
        if key not in allowed_keys:
            raise FormatError(f"{location}: {UnknownName('key', key, allowed_keys)}")
