"""The file beside a URDF, NAME.closures.json (or .yaml, .yml), for what the format has no words for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from mechanik.errors import ClosureError, FileMissing, MechanikError, MissingExtra
from mechanik.formats.source import FilesAround, Source, open_source
from mechanik.formats.xml_text import Node

ENDINGS = (".closures.json", ".closures.yaml", ".closures.yml")
PARTS = ("closures", "laws", "gears", "racks")

Given = str | Path | Mapping[str, Any] | Sequence[Any] | None


@dataclass(frozen=True, slots=True)
class ClosureSpec:
    """A closure, law, gear or rack as it is written, and where, for messages."""

    where: str
    said: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Beside:
    """What a file beside a URDF says: lists by part, and its name."""

    where: str
    parts: Mapping[str, Sequence[Any]]

    def items(self, part: str) -> list[ClosureSpec]:
        """What is said of one part, each with its place."""
        single = part.rstrip("s")
        found: list[ClosureSpec] = []
        for number, said in enumerate(self.parts.get(part, ()), 1):
            if not isinstance(said, Mapping):
                raise ClosureError(f"{self.where}: {single} {number} is {said!r}, where names with values are needed")
            said = cast("Mapping[str, Any]", said)
            label = f"{single} {said['name']!r}" if said.get("name") else f"{single} {number}"
            found.append(ClosureSpec(f"{self.where}: {label}", said))
        return found


def beside(opened: Source, robot: Node, given: Given = None) -> Beside:
    """What stands beside a URDF. `given` is a file, or its content, and takes the place of the one beside it."""
    if given is None and opened.around is not None:
        return _held(opened, opened.around, robot)
    if given is None and (path := opened.path) is not None:
        there = [one for one in (path.with_name(path.stem + ending) for ending in ENDINGS) if one.is_file()]
        given = there[0] if there else None
        for other in there[1:]:
            robot.document.warnings.append(f"{other.name} is left out, since there is {there[0].name}.")
    if given is None:
        return Beside("closures", {})
    if isinstance(given, str | Path):
        return _parts(Path(given).name, _content(Path(given)))
    return _parts("closures", given)


def _held(opened: Source, around: FilesAround, robot: Node) -> Beside:
    """What came with a URDF that is held in memory: JSON alone, since a few lines of YAML can stand for gigabytes."""
    there: dict[str, Source] = {}
    for ending in ENDINGS:
        found = around.open(opened.stem + ending)
        if found is not None and PurePosixPath(found.member).parent == PurePosixPath(opened.member).parent:
            there[ending] = found
    for ending in ENDINGS[1:]:
        if ending in there:
            robot.document.warnings.append(f"{there[ending].name} is left out; as JSON it would be read.")
    said = there.get(ENDINGS[0])
    return Beside("closures", {}) if said is None else _parts(said.name, _json(said.text(), said.name))


def _parts(where: str, content: Any) -> Beside:
    parts: Mapping[Any, Any] = {"closures": content}
    if isinstance(content, Mapping):
        parts = cast("Mapping[Any, Any]", content)
        unknown = [key for key in parts if key not in (*PARTS, "version")]
        if unknown or not any(part in parts for part in PARTS):
            raise ClosureError(
                f"{where}: a list of closures is needed, or {{'closures': [...]}}, not {list(parts)!r}; "
                f"there may be {', '.join(PARTS)}"
            )
    for part in PARTS:
        if part in parts and not isinstance(parts[part], list | tuple):
            raise ClosureError(f"{where}: a list of {part} is needed, not {type(parts[part]).__name__}")
    return Beside(where, {part: parts[part] for part in PARTS if part in parts})


def _content(path: Path) -> Any:
    try:
        text = open_source(path).text()
    except FileMissing:
        raise
    except MechanikError as error:
        raise ClosureError(str(error)) from None
    return _yaml(text, path.name) if path.suffix.lower() in (".yaml", ".yml") else _json(text, path.name)


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ClosureError(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        reason = "lists are nested too deeply" if isinstance(error, RecursionError) else error
        raise ClosureError(f"{name}: {reason}") from None


def _yaml(text: str, name: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra(f"reading {name}", "yaml") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ClosureError(f"{name}: {' '.join(str(error).split())}") from None
