"""Goals on ground as plain data, and back; ground that several goals share is kept once in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mechanik.errors import JsonError, MechanikError, UnknownName
from mechanik.objectives.on_terrain import OnTerrain
from mechanik.objectives.terrain import Terrain

OWN = ("link", "relative_to", "terrain", "at", "radius")


def terrain_data(terrain: Terrain) -> dict[str, Any]:
    """Heights, cell and origin, which `json` can write."""
    return {"heights": terrain.heights.tolist(), "cell": terrain.cell, "origin": terrain.origin.tolist()}


def terrain_from(data: object, where: str) -> Terrain:
    """What `terrain_data` made, as a terrain."""
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


def on_terrain_data(goal: OnTerrain) -> dict[str, Any]:
    """The keys that other goals have not."""
    own = {"link": goal.link, "relative_to": goal.relative_to, "terrain": terrain_data(goal.terrain)}
    return {**own, "at": goal.point.tolist(), "radius": goal.radius}


def on_terrain_from(
    table: Mapping[str, Any], wish: Mapping[str, Any], terrains: Sequence[Terrain], where: str
) -> OnTerrain:
    """
    Args:
        wish: arguments that every objective takes.
        terrains: of the file, which goals name by their number.
    """
    given = table.get("terrain")
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 <= given < len(terrains):
            raise JsonError(f"{where}.terrain: there is no terrain {given} among {len(terrains)}")
        terrain = terrains[given]
    else:
        terrain = terrain_from(given, f"{where}.terrain")
    own = {key: table[key] for key in OWN if key in table and key != "terrain"}
    try:
        return OnTerrain(terrain=terrain, **own, **wish)
    except MechanikError as error:
        raise JsonError(f"{where}: {error}") from error


def shared_terrains(items: list[dict[str, Any]], terrains: Sequence[Terrain | None]) -> list[dict[str, Any]]:
    """Take the terrains out of the data of goals and leave their numbers there.

    Args:
        items: data of objectives, changed.
        terrains: of each objective, or None.
    Returns:
        The data of each terrain, once.
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
