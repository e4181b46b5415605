"""Generate the TypeScript types and constants of the page from the message schema in Python.

Run `python -m mechanik.studio.messages.typescript` after each change of the schema.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from mechanik.studio.messages import message_codec
from mechanik.studio.messages.events import EVENTS
from mechanik.studio.messages.requests import REQUESTS, PageRequest

OUTPUT_PATH = Path(__file__).parents[1] / "web" / "src" / "messages.ts"
FILE_HEADER = "// Written by `python -m mechanik.studio.messages.typescript` from the schema in Python: do not edit.\n"
SCALAR_TYPES = {float: "number", int: "number", bool: "boolean", str: "string", type(None): "null"}


def generate_typescript() -> str:
    """Return the TypeScript source of the types of all messages and of the constants of binary frames."""
    interfaces: dict[str, str] = {}
    for message_type in (*REQUESTS.values(), *EVENTS):
        _add_interface(
            message_type,
            interfaces,
            f'  do: "{message_type.__name__}";\n'
            if message_type in REQUESTS.values()
            else f'  is: "{message_type.__name__}";\n',
        )
    unions = (
        f"export type PageRequest =\n{_union_members(REQUESTS)};",
        f"export type SessionEvent =\n{_union_members(event_type.__name__ for event_type in EVENTS)};",
    )
    return "\n".join((FILE_HEADER, *interfaces.values(), *unions, "", _frame_constants()))


def _union_members(names: Any) -> str:
    return "\n".join(f"  | {name}" for name in names)


def _add_interface(struct_type: type[Any], interfaces: dict[str, str], tag_line: str = "") -> None:
    """Add the TypeScript interface of a struct to `interfaces`, after the interfaces that its fields need.

    Args:
        struct_type: the struct.
        interfaces: source text by name of the struct.
        tag_line: line of the field that identifies a message; empty for a struct inside messages.
    """
    if struct_type.__name__ in interfaces:
        return
    interfaces[struct_type.__name__] = ""  # marks the name as used; the entry is moved behind the types that it needs
    lines: list[str] = []
    for field in msgspec.structs.fields(struct_type):
        is_request = issubclass(struct_type, PageRequest)
        if is_request and field.name == "id":  # the page's connection sets the id
            continue
        is_optional = is_request and not field.required
        lines.append(f"  {field.name}{'?' if is_optional else ''}: {_type_name(field.type, interfaces)};\n")
    del interfaces[struct_type.__name__]
    interfaces[struct_type.__name__] = f"export interface {struct_type.__name__} {{\n{tag_line}{''.join(lines)}}}\n"


def _type_name(annotation: Any, interfaces: dict[str, str]) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type_name(get_args(annotation)[0], interfaces)
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(_type_name(member, interfaces) for member in get_args(annotation)))
    if origin is Literal:
        return " | ".join(f'"{choice}"' for choice in get_args(annotation))
    if origin is list:
        inner = _type_name(get_args(annotation)[0], interfaces)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if origin is tuple and get_args(annotation)[1:] == (...,):
        return _type_name(list[get_args(annotation)[0]], interfaces)
    if origin is tuple:
        return f"[{', '.join(_type_name(member, interfaces) for member in get_args(annotation))}]"
    if origin is dict:
        return f"Record<string, {_type_name(get_args(annotation)[1], interfaces)}>"
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        _add_interface(annotation, interfaces)
        return annotation.__name__
    return SCALAR_TYPES[annotation]


def _frame_constants() -> str:
    """Return the source of the constants of binary frames, such as the indices of the fields in a state header."""
    indices = ", ".join(f"{name}: {k}" for k, name in enumerate(message_codec.StateHeader._fields))
    statuses = ", ".join(f'"{name}"' for name in message_codec.STATUSES)
    constants = {
        "STATE": int(message_codec.STATE),
        "DRAG_GOAL": message_codec.DRAG_GOAL,
        "DRAG_DOF": message_codec.DRAG_DOF,
        "DRAG_OBSTACLE": message_codec.DRAG_OBSTACLE,
        "LINK_DRAG_GOAL": message_codec.LINK_DRAG_GOAL,
        "HEADER_SIZE": message_codec.STATE_HEADER_SIZE,
        "DRAG_SIZE": message_codec.DRAG_STRUCT.size // 8,
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
