"""Writes the page's types from the schema: `python -m mechanik.studio.messages.typescript` after each change of it."""

from __future__ import annotations

import types
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from mechanik.studio.messages import frames
from mechanik.studio.messages.events import EVENTS
from mechanik.studio.messages.requests import REQUESTS

TARGET = Path(__file__).parents[1] / "web" / "src" / "messages.ts"
HEAD = "// Written by `python -m mechanik.studio.messages.typescript` from the schema in Python: do not edit.\n"
PLAIN = {float: "number", int: "number", bool: "boolean", str: "string", type(None): "null"}


def typescript() -> str:
    """All messages and the layout of frames, as TypeScript."""
    written: dict[str, str] = {}
    for kind in (*REQUESTS.values(), *EVENTS):
        _write(
            kind, written, f'  do: "{kind.__name__}";\n' if kind in REQUESTS.values() else f'  is: "{kind.__name__}";\n'
        )
    unions = (
        f"export type Asked =\n{_union(REQUESTS)};",
        f"export type Told =\n{_union(kind.__name__ for kind in EVENTS)};",
    )
    return "\n".join((HEAD, *written.values(), *unions, "", _frames()))


def _union(names: Any) -> str:
    return "\n".join(f"  | {name}" for name in names)


def _write(kind: type[Any], written: dict[str, str], tag: str = "") -> None:
    if kind.__name__ in written:
        return
    hints = get_type_hints(kind, include_extras=True)
    written[kind.__name__] = ""  # stands after what it needs
    lines: list[str] = []
    for field in fields(kind):
        is_optional = field.default is not MISSING and tag.startswith("  do")
        lines.append(f"  {field.name}{'?' if is_optional else ''}: {_type(hints[field.name], written)};\n")
    del written[kind.__name__]
    written[kind.__name__] = f"export interface {kind.__name__} {{\n{tag}{''.join(lines)}}}\n"


def _type(kind: Any, written: dict[str, str]) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        return _type(get_args(kind)[0], written)
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(_type(part, written) for part in get_args(kind)))
    if origin is Literal:
        return " | ".join(f'"{choice}"' for choice in get_args(kind))
    if origin is list:
        inner = _type(get_args(kind)[0], written)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if origin is tuple:
        return f"[{', '.join(_type(part, written) for part in get_args(kind))}]"
    if origin is dict:
        return f"Record<string, {_type(get_args(kind)[1], written)}>"
    if is_dataclass(kind):
        _write(kind, written)  # type: ignore[arg-type]
        return kind.__name__  # type: ignore[union-attr]
    return PLAIN[kind]


def _frames() -> str:
    """Where the numbers of a state frame's header stand, and the constants of frames."""
    places = ", ".join(f"{name}: {k}" for k, name in enumerate(frames.StateHeader._fields))
    statuses = ", ".join(f'"{name}"' for name in frames.STATUSES)
    constants = {
        "STATE": int(frames.STATE),
        "HAND_GOAL": frames.HAND_GOAL,
        "HAND_FREEDOM": frames.HAND_FREEDOM,
        "HAND_OBSTACLE": frames.HAND_OBSTACLE,
        "PULL": frames.PULL,
        "HEADER": frames.HEADER,
        "HAND_NUMBERS": frames.HAND.size // 8,
    }
    return "".join(
        (
            f"export const HEADER_PLACES = {{ {places} }} as const;\n",
            f"export const STATUSES = [{statuses}] as const;\n",
            *(f"export const {name} = {value};\n" for name, value in constants.items()),
        )
    )


def main() -> None:
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(typescript(), encoding="utf-8")


if __name__ == "__main__":
    main()
