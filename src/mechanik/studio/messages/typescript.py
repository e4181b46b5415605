"""Generator of the TypeScript types of the page, from the message schema in Python.

Run `python -m mechanik.studio.messages.typescript` after each change of the schema.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from mechanik.studio.messages import message_codec as frames
from mechanik.studio.messages.events import EVENTS
from mechanik.studio.messages.requests import REQUESTS, PageRequest

OUTPUT_PATH = Path(__file__).parents[1] / "web" / "src" / "messages.ts"
FILE_HEADER = "// Written by `python -m mechanik.studio.messages.typescript` from the schema in Python: do not edit.\n"
SCALAR_TYPES = {float: "number", int: "number", bool: "boolean", str: "string", type(None): "null"}


def generate_typescript() -> str:
    """Return the TypeScript source of all messages and of the layout of binary frames."""
    written: dict[str, str] = {}
    for kind in (*REQUESTS.values(), *EVENTS):
        _write(
            kind, written, f'  do: "{kind.__name__}";\n' if kind in REQUESTS.values() else f'  is: "{kind.__name__}";\n'
        )
    unions = (
        f"export type PageRequest =\n{_union(REQUESTS)};",
        f"export type SessionEvent =\n{_union(kind.__name__ for kind in EVENTS)};",
    )
    return "\n".join((FILE_HEADER, *written.values(), *unions, "", _frames()))


def _union(names: Any) -> str:
    return "\n".join(f"  | {name}" for name in names)


def _write(kind: type[Any], written: dict[str, str], tag: str = "") -> None:
    if kind.__name__ in written:
        return
    written[kind.__name__] = ""  # reserves the name; the entry moves behind the types it depends on
    lines: list[str] = []
    for field in msgspec.structs.fields(kind):
        is_request = issubclass(kind, PageRequest)
        if is_request and field.name == "id":  # set by the connection of the page
            continue
        is_optional = is_request and not field.required
        lines.append(f"  {field.name}{'?' if is_optional else ''}: {_type(field.type, written)};\n")
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
    if origin is tuple and get_args(kind)[1:] == (...,):
        return _type(list[get_args(kind)[0]], written)
    if origin is tuple:
        return f"[{', '.join(_type(part, written) for part in get_args(kind))}]"
    if origin is dict:
        return f"Record<string, {_type(get_args(kind)[1], written)}>"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        _write(kind, written)
        return kind.__name__
    return SCALAR_TYPES[kind]


def _frames() -> str:
    """Return the indices of the header fields of a state frame and the constants of binary frames."""
    indices = ", ".join(f"{name}: {k}" for k, name in enumerate(frames.StateHeader._fields))
    statuses = ", ".join(f'"{name}"' for name in frames.STATUSES)
    constants = {
        "STATE": int(frames.STATE),
        "DRAG_GOAL": frames.DRAG_GOAL,
        "DRAG_DOF": frames.DRAG_DOF,
        "DRAG_OBSTACLE": frames.DRAG_OBSTACLE,
        "LINK_DRAG_GOAL": frames.LINK_DRAG_GOAL,
        "HEADER_SIZE": frames.STATE_HEADER_SIZE,
        "DRAG_SIZE": frames.DRAG_STRUCT.size // 8,
    }
    return "".join(
        (
            f"export const HEADER_INDEX = {{ {indices} }} as const;\n",
            f"export const STATUSES = [{statuses}] as const;\n",
            *(f"export const {name} = {value};\n" for name, value in constants.items()),
        )
    )


def main() -> None:
    OUTPUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT_PATH.write_text(generate_typescript(), encoding="utf-8")


if __name__ == "__main__":
    main()
