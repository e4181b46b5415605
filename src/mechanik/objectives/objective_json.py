"""Placements and goals on ground as plain data and as JSON files, and back; every number survives to the bit."""

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
from mechanik.objectives.axis import Axis
from mechanik.objectives.hinge import Hinge
from mechanik.objectives.objective import Objective, as_objectives
from mechanik.objectives.on_line import OnLine
from mechanik.objectives.on_plane import OnPlane
from mechanik.objectives.on_terrain import OnTerrain
from mechanik.objectives.orientation import Orientation
from mechanik.objectives.placement import Placement
from mechanik.objectives.point import Point
from mechanik.objectives.pose_goal import PoseGoal
from mechanik.objectives.position_rules import Fixed, Linear, Planar
from mechanik.objectives.rotation_rules import Aligned, FixedRotation, Square
from mechanik.objectives.surface import Surface
from mechanik.objectives.terrain import Terrain
from mechanik.objectives.terrain_json import OWN, on_terrain_data, on_terrain_from, shared_terrains, terrain_from
from mechanik.spatial import make

FORMAT = "mechanik objectives"
VERSION = 1

RULES = {rule.__name__: rule for rule in (Fixed, Linear, Planar, FixedRotation, Aligned, Square)}
KINDS: Mapping[str, tuple[type[Placement], type | None, type | None]] = {
    kind.__name__: (kind, position, rotation)
    for kind, position, rotation in (
        (Point, Fixed, None),
        (OnLine, Linear, None),
        (OnPlane, Planar, None),
        (Axis, None, Aligned),
        (Orientation, None, FixedRotation),
        (Hinge, Fixed, Aligned),
        (Surface, Planar, Aligned),
        (PoseGoal, Fixed, FixedRotation),
    )
}
"""Each named kind with the rules that it has; `Placement` has any."""

SHARED = tuple(field.name for field in fields(Objective))
KEYS = ("kind", "link", "relative_to", "position", "rotation", *SHARED)


def to_data(objective: Objective) -> dict[str, Any]:
    """An objective as strings, numbers, lists and dicts, which `json` can write."""
    if isinstance(objective, OnTerrain):
        shared = {key: getattr(objective, key) for key in SHARED}
        return {"kind": "OnTerrain", **on_terrain_data(objective), **shared}
    if not isinstance(objective, Placement):
        raise ObjectiveError(
            f"{objective!r} cannot be saved; placements of links, such as Point and PoseGoal, and OnTerrain can"
        )
    data: dict[str, Any] = {"kind": type(objective).__name__}
    for key in KEYS[1:]:
        value = getattr(objective, key)
        data[key] = _rule_data(value) if type(value).__name__ in RULES else value
    if isinstance(objective, PoseGoal):
        data |= {"dof": [dof.name for dof in objective.dof], "axes": objective.axes}
    return data


def from_data(data: object, where: str = "objective", terrains: Sequence[Terrain] = ()) -> Placement | OnTerrain:
    """What `to_data` made, as an objective; what does not fit is named with the place where it stands."""
    table = _table(data, where)
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in ("Placement", "OnTerrain", *KINDS):
        raise JsonError(f"{where}: {UnknownName('kind of objective', kind, ['Placement', 'OnTerrain', *KINDS])}")
    extra = {"PoseGoal": (*KEYS, "dof", "axes"), "OnTerrain": ("kind", *OWN, *SHARED)}
    _check_keys(table, extra.get(kind, KEYS), where)
    if "link" not in table:
        raise JsonError(f"{where}: the key 'link' is missing")
    wish = {key: table[key] for key in SHARED if key in table}
    if kind == "OnTerrain":
        return on_terrain_from(table, wish, terrains, where)
    rules = [_rule(table.get(key), f"{where}.{key}") for key in ("position", "rotation")]
    ends: dict[str, Any] = {"link": table["link"], "relative_to": table.get("relative_to")}
    try:
        if kind == "Placement":
            return Placement(**ends, position=rules[0], rotation=rules[1], **wish)
        named, *wanted = KINDS[kind]
        if [type(rule) if rule is not None else None for rule in rules] != wanted:
            names = [None if rule is None else rule.__name__ for rule in wanted]
            raise JsonError(f"{where}: a {kind} has the position rule {names[0]} and the rotation rule {names[1]}")
        if named is PoseGoal:
            target, tool = (make(rules[1].target, rules[0].target), make(rules[1].local, rules[0].local))
            some = {key: table[key] for key in ("dof", "axes") if key in table}
            return PoseGoal(ends["link"], target, at=tool, relative_to=ends["relative_to"], **some, **wish)
        # the named kinds are made of other arguments than of rules
        made = object.__new__(named)
        Placement.__init__(made, **ends, position=rules[0], rotation=rules[1], **wish)
        return made
    except JsonError:
        raise
    except MechanikError as error:
        raise JsonError(f"{where}: {error}") from error


def save_objectives(objectives: Objective | Iterable[Objective], path: str | os.PathLike[str]) -> None:
    """Write objectives to a JSON file: beside its place first, so that an older one is replaced as a whole or stays."""
    several = as_objectives(objectives)
    items = [to_data(one) for one in several]
    terrains = shared_terrains(items, [one.terrain if isinstance(one, OnTerrain) else None for one in several])
    ground = {"terrains": terrains} if terrains else {}
    data = {"format": FORMAT, "version": VERSION, **ground, "objectives": items}
    text = json.dumps(data, indent=2, allow_nan=False) + "\n"
    try:
        target = Path(path).expanduser().resolve()  # a symbolic link stays one
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


def load_objectives(path: str | os.PathLike[str]) -> list[Placement | OnTerrain]:
    """The objectives of a file that `save_objectives` wrote."""
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
    terrains = [terrain_from(one, f"terrains[{k}]") for k, one in enumerate(cast("list[object]", grounds))]
    return [from_data(one, f"objectives[{k}]", terrains) for k, one in enumerate(cast("list[object]", items))]


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
