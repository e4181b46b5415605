"""Objectives as dicts and JSON files: `LinkGoal` with its subclasses, and `OnTerrain`.

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

from mechanik.errors import CannotSave, FileMissing, JsonError, MechanikError, ObjectiveError, UnknownName
from mechanik.objectives.objective import Objective, as_objectives
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
from mechanik.objectives.pose_rules import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
)
from mechanik.objectives.region_goals import OnTerrain
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import make_pose

ON_TERRAIN_KEYS = ("link", "relative_to", "terrain", "at", "radius")


def terrain_to_dict(terrain: Terrain) -> dict[str, Any]:
    """Return heights, cell and origin of a terrain as JSON values."""
    return {"heights": terrain.heights.tolist(), "cell": terrain.cell, "origin": terrain.origin.tolist()}


def terrain_from_dict(data: object, where: str) -> Terrain:
    """Return the terrain of a dict made by `terrain_to_dict`.

    Args:
        where: position in the file, for messages.

    Raises:
        JsonError: the data is not that of a terrain.
    """
    if not isinstance(data, Mapping):
        raise JsonError(f"{where}: expected an object, found {type(data).__name__}")
    table = cast("Mapping[str, Any]", data)
    for key in table:
        if key not in ("heights", "cell", "origin"):
            raise JsonError(f"{where}: {UnknownName('key', key, ('heights', 'cell', 'origin'))}")
    for key in ("heights", "cell"):
        if key not in table:
            raise JsonError(f"{where}: the key {key!r} is missing")
    try:
        return Terrain(**table)
    except MechanikError as error:
        raise JsonError(f"{where}: {error}") from error


def on_terrain_to_dict(goal: OnTerrain) -> dict[str, Any]:
    """Return the keys of an `OnTerrain` goal that other goals do not have."""
    own = {"link": goal.link, "relative_to": goal.relative_to, "terrain": terrain_to_dict(goal.terrain)}
    return {**own, "at": goal.point.tolist(), "radius": goal.radius}


def on_terrain_from_dict(
    table: Mapping[str, Any], options: Mapping[str, Any], terrains: Sequence[Terrain], where: str
) -> OnTerrain:
    """Return the `OnTerrain` goal of a dict.

    Args:
        table: dict made by `on_terrain_to_dict`, whose terrain may be an index into `terrains`.
        options: arguments that every objective takes.
        terrains: terrains of the file.
        where: position in the file, for messages.

    Raises:
        JsonError: the data is not that of a goal on a terrain.
    """
    given = table.get("terrain")
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 <= given < len(terrains):
            raise JsonError(f"{where}.terrain: there is no terrain {given} among {len(terrains)}")
        terrain = terrains[given]
    else:
        terrain = terrain_from_dict(given, f"{where}.terrain")
    own = {key: table[key] for key in ON_TERRAIN_KEYS if key in table and key != "terrain"}
    try:
        return OnTerrain(terrain=terrain, **own, **options)
    except MechanikError as error:
        raise JsonError(f"{where}: {error}") from error


def extract_shared_terrains(items: list[dict[str, Any]], terrains: Sequence[Terrain | None]) -> list[dict[str, Any]]:
    """Replace the terrains in dicts of goals by indices into a list of terrains.

    Args:
        items: dicts of objectives; changed in place.
        terrains: terrain of each objective, or None.

    Returns:
        Dict of each terrain, once.
    """
    numbers: dict[int, int] = {}
    tables: list[dict[str, Any]] = []
    for item, terrain in zip(items, terrains, strict=True):
        if terrain is None:
            continue
        if id(terrain) not in numbers:
            numbers[id(terrain)] = len(tables)
            tables.append(item["terrain"])
        item["terrain"] = numbers[id(terrain)]
    return tables


FORMAT = "mechanik objectives"
VERSION = 1

RULES = {
    rule.__name__: rule
    for rule in (PointConstraint, LineConstraint, PlaneConstraint, FixedRotation, AlignedAxes, PerpendicularAxes)
}
KINDS: Mapping[str, tuple[type[LinkGoal], type | None, type | None]] = {
    kind.__name__: (kind, position, rotation)
    for kind, position, rotation in (
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
"""Named classes with their position and rotation constraint; a `LinkGoal` may have any."""

OPTION_KEYS = tuple(field.name for field in fields(Objective))
POSE_CONSTRAINT_KEYS = ("kind", "link", "relative_to", "position", "rotation", *OPTION_KEYS)


def objective_to_dict(objective: Objective) -> dict[str, Any]:
    """Return an objective as a dict of JSON values.

    Raises:
        ObjectiveError: this kind of objective cannot be saved.
    """
    if isinstance(objective, OnTerrain):
        shared = {key: getattr(objective, key) for key in OPTION_KEYS}
        return {"kind": "OnTerrain", **on_terrain_to_dict(objective), **shared}
    if not isinstance(objective, LinkGoal):
        raise ObjectiveError(
            f"{objective!r} cannot be saved; placements of links, such as Point and PoseGoal, and OnTerrain can"
        )
    data: dict[str, Any] = {"kind": type(objective).__name__}
    for key in POSE_CONSTRAINT_KEYS[1:]:
        value = getattr(objective, key)
        data[key] = _rule_data(value) if type(value).__name__ in RULES else value
    if isinstance(objective, PoseGoal):
        data |= {"dof": [dof.name for dof in objective.dof], "axes": objective.axes}
    return data


def objective_from_dict(
    data: object, where: str = "objective", terrains: Sequence[Terrain] = ()
) -> LinkGoal | OnTerrain:
    """Return the objective of a dict made by `objective_to_dict`.

    Args:
        where: position in the file, for messages.
        terrains: terrains of the file, to which goals refer by index.

    Raises:
        JsonError: the data is not that of an objective.
    """
    table = _table(data, where)
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in ("LinkGoal", "OnTerrain", *KINDS):
        raise JsonError(f"{where}: {UnknownName('kind of objective', kind, ['LinkGoal', 'OnTerrain', *KINDS])}")
    extra = {"PoseGoal": (*POSE_CONSTRAINT_KEYS, "dof", "axes"), "OnTerrain": ("kind", *ON_TERRAIN_KEYS, *OPTION_KEYS)}
    _check_keys(table, extra.get(kind, POSE_CONSTRAINT_KEYS), where)
    if "link" not in table:
        raise JsonError(f"{where}: the key 'link' is missing")
    wish = {key: table[key] for key in OPTION_KEYS if key in table}
    if kind == "OnTerrain":
        return on_terrain_from_dict(table, wish, terrains, where)
    rules = [_rule(table.get(key), f"{where}.{key}") for key in ("position", "rotation")]
    ends: dict[str, Any] = {"link": table["link"], "relative_to": table.get("relative_to")}
    try:
        if kind == "LinkGoal":
            return LinkGoal(**ends, position=rules[0], rotation=rules[1], **wish)
        named, *wanted = KINDS[kind]
        if [type(rule) if rule is not None else None for rule in rules] != wanted:
            names = [None if rule is None else rule.__name__ for rule in wanted]
            raise JsonError(f"{where}: a {kind} has the position rule {names[0]} and the rotation rule {names[1]}")
        if named is PoseGoal:
            target, tool = (make_pose(rules[1].target, rules[0].target), make_pose(rules[1].local, rules[0].local))
            some = {key: table[key] for key in ("dof", "axes") if key in table}
            return PoseGoal(ends["link"], target, at=tool, relative_to=ends["relative_to"], **some, **wish)
        # the constructors of the named classes take other arguments than constraints
        made = object.__new__(named)
        LinkGoal.__init__(made, **ends, position=rules[0], rotation=rules[1], **wish)
        return made
    except JsonError:
        raise
    except MechanikError as error:
        raise JsonError(f"{where}: {error}") from error


def save_objectives(objectives: Objective | Iterable[Objective], path: str | os.PathLike[str]) -> None:
    """Write objectives to a JSON file.

    The file is written under a temporary name and then renamed, so an old file is replaced as a whole or stays.

    Args:
        objectives: one objective or several: `LinkGoal` with its subclasses, and `OnTerrain`.
        path: file to write.

    Raises:
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
    several = as_objectives(objectives)
    items = [objective_to_dict(one) for one in several]
    terrains = extract_shared_terrains(items, [one.terrain if isinstance(one, OnTerrain) else None for one in several])
    ground = {"terrains": terrains} if terrains else {}
    data = {"format": FORMAT, "version": VERSION, **ground, "objectives": items}
    text = json.dumps(data, indent=2, allow_nan=False) + "\n"
    try:
        target = Path(path).expanduser().resolve()  # a symbolic link stays a link
        beside = target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with open(beside, "x", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                shutil.copymode(target, beside)
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise CannotSave(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None


def load_objectives(path: str | os.PathLike[str]) -> list[LinkGoal | OnTerrain]:
    """Read the objectives of a file that `save_objectives` wrote.

    Args:
        path: file to read.

    Raises:
        FileMissing: there is no such file.
        JsonError: the file is not a file of objectives.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/goals.json"
        ...     mk.objectives.save_objectives([mk.AxisGoal("tool", (0.0, 0.0, 1.0), level=2)], path)
        ...     print(mk.objectives.load_objectives(path)[0].level)
        2
    """
    try:
        file = Path(path).expanduser()
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileMissing(f"there is no file {path}") from None
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise JsonError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonError(f"{file.name}: this is no JSON: {error}") from None
    table = _table(data, file.name)
    if table.get("format") != FORMAT:
        raise JsonError(f"{file.name}: format is {table.get('format')!r}, and that of objectives is {FORMAT!r}")
    if table.get("version") != VERSION:
        raise JsonError(f"{file.name}: version is {table.get('version')!r}, and this Mechanik reads {VERSION}")
    _check_keys(table, ("format", "version", "terrains", "objectives"), file.name)
    items, grounds = table.get("objectives"), table.get("terrains", [])
    for key, found in (("objectives", items), ("terrains", grounds)):
        if not isinstance(found, list):
            raise JsonError(f"{file.name}: {key} must be a list")
    terrains = [terrain_from_dict(one, f"terrains[{k}]") for k, one in enumerate(cast("list[object]", grounds))]
    return [objective_from_dict(one, f"objectives[{k}]", terrains) for k, one in enumerate(cast("list[object]", items))]


def _rule_data(rule: Any) -> dict[str, Any]:
    arrays = {field.name: np.asarray(getattr(rule, field.name)).tolist() for field in fields(rule)}
    return {"rule": type(rule).__name__, **arrays}


def _rule(data: object, where: str) -> Any:
    if data is None:
        return None
    table = _table(data, where)
    name = table.get("rule")
    if not isinstance(name, str) or name not in RULES:
        raise JsonError(f"{where}: {UnknownName('rule', name, RULES)}")
    rule = RULES[name]
    keys = [field.name for field in fields(rule)]
    _check_keys(table, ("rule", *keys), where)
    for key in keys:
        if key not in table:
            raise JsonError(f"{where}: the key {key!r} is missing")
    try:
        return rule(**{key: table[key] for key in keys})
    except MechanikError as error:
        raise JsonError(f"{where}: {error}") from error


def _table(data: object, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        _fail(where, data)
    return cast("Mapping[str, Any]", data)


def _fail(where: str, data: object) -> NoReturn:
    raise JsonError(f"{where}: expected an object, found {type(data).__name__}")


def _check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise JsonError(f"{where}: {UnknownName('key', key, known)}")
