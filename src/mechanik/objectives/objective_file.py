"""Conversion of objectives to dicts and JSON files, and back: `LinkGoal` with its subclasses, and `OnTerrain`.

Numbers are exact after a round trip. A terrain that several goals share is stored once in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from mechanik.errors import CannotSave, FileMissing, FormatError, MechanikError, ObjectiveError, UnknownName
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
from mechanik.objectives.region_goals import OnTerrain
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import make_pose
from mechanik.validation import format_count

ON_TERRAIN_KEYS = ("link", "relative_to", "terrain", "at", "radius")


def terrain_to_dict(terrain: Terrain) -> dict[str, Any]:
    """Return heights, cell size and origin of a terrain as JSON values."""
    return {"heights": terrain.heights.tolist(), "cell": terrain.cell, "origin": terrain.origin.tolist()}


def terrain_from_dict(data: object, location: str) -> Terrain:
    """Convert a dict of `terrain_to_dict` back to a terrain.

    Args:
        data: the dict.
        location: location of the dict in the file, such as `terrains[0]`, for messages.

    Raises:
        FormatError: the data does not describe a terrain.
    """
    if not isinstance(data, Mapping):
        raise FormatError(f"{location}: expected an object, found {type(data).__name__}")
    table = cast("Mapping[str, Any]", data)
    for key in table:
        if key not in ("heights", "cell", "origin"):
            raise FormatError(f"{location}: {UnknownName('key', key, ('heights', 'cell', 'origin'))}")
    for key in ("heights", "cell"):
        if key not in table:
            raise FormatError(f"{location}: the key {key!r} is missing")
    try:
        return Terrain(**table)
    except MechanikError as error:
        raise FormatError(f"{location}: {error}") from error


def on_terrain_to_dict(goal: OnTerrain) -> dict[str, Any]:
    """Return an `OnTerrain` goal as a dict, without the options that all objectives have."""
    links_and_terrain = {"link": goal.link, "relative_to": goal.relative_to, "terrain": terrain_to_dict(goal.terrain)}
    return {**links_and_terrain, "at": goal.point.tolist(), "radius": goal.radius}


def on_terrain_from_dict(
    table: Mapping[str, Any], options: Mapping[str, Any], terrains: Sequence[Terrain], location: str
) -> OnTerrain:
    """Convert a dict of `on_terrain_to_dict` back to an `OnTerrain` goal.

    Args:
        table: dict made by `on_terrain_to_dict`; its terrain may be an index into `terrains`.
        options: arguments that every objective takes.
        terrains: terrains of the file.
        location: location of the dict in the file, such as `objectives[0]`, for messages.

    Raises:
        FormatError: the data does not describe a goal on a terrain.
    """
    terrain_data = table.get("terrain")
    if isinstance(terrain_data, int) and not isinstance(terrain_data, bool):
        if not 0 <= terrain_data < len(terrains):
            raise FormatError(
                f"{location}.terrain: there is no terrain with index {terrain_data}; "
                f"the file has {format_count(len(terrains), 'terrain')}"
            )
        terrain = terrains[terrain_data]
    else:
        terrain = terrain_from_dict(terrain_data, f"{location}.terrain")
    arguments = {key: table[key] for key in ON_TERRAIN_KEYS if key in table and key != "terrain"}
    try:
        return OnTerrain(terrain=terrain, **arguments, **options)
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
    index_by_id: dict[int, int] = {}  # terrains have no equality, so objects are compared
    terrain_dicts: list[dict[str, Any]] = []
    for item, terrain in zip(items, terrains, strict=True):
        if terrain is None:
            continue
        if id(terrain) not in index_by_id:
            index_by_id[id(terrain)] = len(terrain_dicts)
            terrain_dicts.append(item["terrain"])
        item["terrain"] = index_by_id[id(terrain)]
    return terrain_dicts


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

OPTION_KEYS = tuple(field.name for field in fields(Objective))
LINK_GOAL_KEYS = ("kind", "link", "relative_to", "position", "rotation", *OPTION_KEYS)


def objective_to_dict(objective: Objective) -> dict[str, Any]:
    """Return an objective as a dict of JSON values.

    Raises:
        ObjectiveError: this kind of objective cannot be saved.
    """
    if isinstance(objective, OnTerrain):
        options = {key: getattr(objective, key) for key in OPTION_KEYS}
        return {"kind": "OnTerrain", **on_terrain_to_dict(objective), **options}
    if not isinstance(objective, LinkGoal):
        raise ObjectiveError(
            f"{objective!r} cannot be saved; only OnTerrain and goals of links, such as PoseGoal, can be saved"
        )
    data: dict[str, Any] = {"kind": type(objective).__name__}
    for key in LINK_GOAL_KEYS[1:]:
        value = getattr(objective, key)
        data[key] = _constraint_to_dict(value) if type(value).__name__ in CONSTRAINT_CLASSES else value
    if isinstance(objective, PoseGoal):
        data |= {"dof": [dof.name for dof in objective.dof], "axes": objective.axes}
    return data


def objective_from_dict(
    data: object, location: str = "objective", terrains: Sequence[Terrain] = ()
) -> LinkGoal | OnTerrain:
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
    if not isinstance(kind, str) or kind not in ("LinkGoal", "OnTerrain", *LINK_GOAL_CLASSES):
        raise FormatError(
            f"{location}: {UnknownName('kind of objective', kind, ['LinkGoal', 'OnTerrain', *LINK_GOAL_CLASSES])}"
        )
    keys_by_kind = {
        "PoseGoal": (*LINK_GOAL_KEYS, "dof", "axes"),
        "OnTerrain": ("kind", *ON_TERRAIN_KEYS, *OPTION_KEYS),
    }
    _check_keys(table, keys_by_kind.get(kind, LINK_GOAL_KEYS), location)
    if "link" not in table:
        raise FormatError(f"{location}: the key 'link' is missing")
    options = {key: table[key] for key in OPTION_KEYS if key in table}
    if kind == "OnTerrain":
        return on_terrain_from_dict(table, options, terrains, location)
    constraints = [_constraint_from_dict(table.get(key), f"{location}.{key}") for key in ("position", "rotation")]
    link_arguments: dict[str, Any] = {"link": table["link"], "relative_to": table.get("relative_to")}
    try:
        if kind == "LinkGoal":
            return LinkGoal(**link_arguments, position=constraints[0], rotation=constraints[1], **options)
        goal_class, *expected_classes = LINK_GOAL_CLASSES[kind]
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
            pose_options = {key: table[key] for key in ("dof", "axes") if key in table}
            return PoseGoal(
                link_arguments["link"],
                target,
                at=X_link_tool,
                relative_to=link_arguments["relative_to"],
                **pose_options,
                **options,
            )
        # the constructors of the subclasses take targets instead of constraints, so they are not called here
        goal = object.__new__(goal_class)
        LinkGoal.__init__(goal, **link_arguments, position=constraints[0], rotation=constraints[1], **options)
        return goal
    except FormatError:
        raise
    except MechanikError as error:
        raise FormatError(f"{location}: {error}") from error


def save_objectives(objectives: Objective | Iterable[Objective], path: str | os.PathLike[str]) -> None:
    """Write objectives to a JSON file.

    The file is written under a temporary name and then renamed, so a failed write leaves an existing file unchanged.

    Args:
        objectives: one objective or several: `LinkGoal` with its subclasses, and `OnTerrain`.
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


def load_objectives(path: str | os.PathLike[str]) -> list[LinkGoal | OnTerrain]:
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
    if table.get("version") != VERSION:
        raise FormatError(
            f"{file_path.name}: version is {table.get('version')!r}; this Mechanik reads version {VERSION}"
        )
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
