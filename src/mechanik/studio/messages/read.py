"""Messages of pages, checked: known names, right types, finite, in range, not too long."""

from __future__ import annotations

import json
import re
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from mechanik.errors import Refused
from mechanik.studio.messages.checks import Between, Size
from mechanik.studio.messages.requests import REQUESTS, Request

LARGEST = 1_000_000
"""Bytes of one message."""
LARGEST_TABLE = 200
HALF = re.compile("[\ud800-\udfff]")
"""Letters that JSON can say and that no text has."""


def read_request(text: str | bytes) -> tuple[int, Request]:
    """The id that the answer shall carry, and what is asked for."""
    if len(text) > LARGEST:
        raise Refused(f"a message has at most {LARGEST} bytes, not {len(text)}")
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(f"a message is JSON: {error}") from None
    if not isinstance(message, dict):
        raise Refused("a message is a JSON object with the key 'do'")
    given = cast(dict[str, Any], message)
    kind = REQUESTS.get(given.pop("do", "")) if isinstance(given.get("do"), str) else None
    if kind is None:
        raise Refused(f"a message says under 'do' one of: {', '.join(REQUESTS)}")
    number = given.pop("id", -1)
    if type(number) is not int or not -1 <= number < 2**53:
        raise Refused("the id of a message is a whole number")
    return number, _made(kind, given, kind.__name__)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _made(kind: type[Any], given: dict[str, Any], place: str) -> Any:
    hints = _hints(kind)
    unknown = [name for name in given if name not in hints]
    if unknown:
        raise Refused(f"{place} has no {unknown[0][:60]!r}; it has {', '.join(hints) or 'nothing'}")
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in given:
            values[field.name] = checked(given[field.name], hints[field.name], f"{place}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise Refused(f"{place} needs {field.name!r}")
    return kind(**values)


def checked(value: Any, kind: Any, place: str) -> Any:
    """The value as that type, or `Refused` with the place."""
    origin, bounds = get_origin(kind), None
    if origin is Annotated:
        kind, *extras = get_args(kind)
        bounds, origin = extras[0], get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(value, get_args(kind), place)
    if origin is Literal:
        if value not in get_args(kind) or not isinstance(value, str):
            raise Refused(f"{place} is one of {', '.join(map(str, get_args(kind)))}")
        return value
    if origin is list:
        _check_list(value, bounds, place)
        return [checked(item, get_args(kind)[0], f"{place}[{k}]") for k, item in enumerate(value)]
    if origin is tuple:
        parts = get_args(kind)
        if not isinstance(value, list) or len(cast(list[Any], value)) != len(parts):
            raise Refused(f"{place} is a list of {len(parts)} numbers")
        return tuple(checked(value[k], part, f"{place}[{k}]") for k, part in enumerate(parts))
    if origin is dict:
        key, item = get_args(kind)
        if not isinstance(value, dict) or len(cast(dict[str, Any], value)) > LARGEST_TABLE:
            raise Refused(f"{place} is an object of at most {LARGEST_TABLE} entries")
        table = cast(dict[str, Any], value)
        return {checked(k, key, place): checked(v, item, f"{place}[{k[:60]!r}]") for k, v in table.items()}
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise Refused(f"{place} is an object")
        return _made(cast(type[Any], kind), cast(dict[str, Any], value), place)
    return _plain(value, kind, bounds, place)


def _one_of(value: Any, kinds: tuple[Any, ...], place: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    said = ""
    for kind in kinds:
        if kind is not type(None):
            try:
                return checked(value, kind, place)
            except Refused as error:
                said = said or str(error)
    raise Refused(said)


def _check_list(value: Any, bounds: Size | Between | None, place: str) -> None:
    if not isinstance(value, list):
        raise Refused(f"{place} is a list")
    if isinstance(bounds, Size) and not bounds.low <= len(cast(list[Any], value)) <= bounds.high:
        raise Refused(f"{place} has {bounds.low} to {bounds.high} entries, not {len(cast(list[Any], value))}")


def _plain(value: Any, kind: Any, bounds: Size | Between | None, place: str) -> Any:
    if kind is bool:
        if not isinstance(value, bool):
            raise Refused(f"{place} is true or false")
        return value
    if kind is str:
        if not isinstance(value, str):
            raise Refused(f"{place} is a text")
        low, high = (bounds.low, bounds.high) if isinstance(bounds, Size) else (0, 1000)
        if not low <= len(value) <= high:
            raise Refused(f"{place} has {low} to {high} letters, not {len(value)}")
        if HALF.search(value):
            raise Refused(f"{place} holds half of a surrogate pair")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"{place} is a number")
    low, high = (bounds.low, bounds.high) if isinstance(bounds, Between) else (-1e12, 1e12)
    if not low <= value <= high:  # also refuses what is not finite, and whole numbers too large for a float
        what = place.rsplit(".", 1)[-1]  # a person may have typed it, who knows no names of messages
        raise Refused(f"this number is too large or too small: {what} can be from {low:,.9g} to {high:,.9g}")
    if kind is int and value != int(value):
        raise Refused(f"{place} is a whole number, not {value!r}")
    return int(value) if kind is int else float(value)
