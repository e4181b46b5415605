"""A JSON value that knows where it stands, so that every complaint can name the place."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from mechanik.errors import JsonError, MechanikError

T = TypeVar("T")


class BadNumber:
    """A number that JSON allows to be written and that a mechanism cannot hold: NaN, Infinity, 1e400."""

    def __init__(self, token: str) -> None:
        self.token = token if len(token) <= 24 else f"{token[:20]}..."


class Doubled(dict[str, Any]):
    """An object in which a key stands twice."""

    key = ""


def parse(text: str) -> object:
    """JSON text as plain data. What is wrong inside is kept, to be named with its path when it is read."""
    try:
        return json.loads(
            text,
            parse_float=_number,
            parse_int=_number,
            parse_constant=BadNumber,
            object_pairs_hook=_pairs,
        )
    except json.JSONDecodeError as error:
        reason = "the text ends too early" if error.pos >= len(text.rstrip()) else error.msg
        raise JsonError(f"line {error.lineno}, column {error.colno}: {reason}") from None
    except RecursionError:
        raise JsonError("lists and objects are nested too deeply") from None


def _number(token: str) -> float | BadNumber:
    number = float(token)
    return number if math.isfinite(number) else BadNumber(token)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    doubled = Doubled(plain)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            doubled.key = key
        seen.add(key)
    return doubled


@dataclass(frozen=True, slots=True)
class Value:
    """`data`, found at `path` ("joints[3].lower")."""

    data: object
    path: str = ""

    def fail(self, expected: str) -> NoReturn:
        raise JsonError(f"{self.path or 'the top level'}: expected {expected}, found {_shown(self.data)}")

    @contextmanager
    def blamed(self) -> Generator[None]:
        """Let what goes wrong inside name this place."""
        try:
            yield
        except JsonError:
            raise
        except MechanikError as error:
            raise JsonError(f"{self.path or 'the top level'}: {error}") from error

    def object(self, needed: Sequence[str], optional: Sequence[str] = ()) -> Record:
        """An object that has the needed keys and none but those named."""
        fields = self.fields()
        for key, value in fields.items():
            if key not in needed and key not in optional:
                near = difflib.get_close_matches(key, [*needed, *optional], n=1, cutoff=0.6)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join([*needed, *optional])}"
                raise JsonError(f"{value.path}: there is no key {key!r} here; {hint}")
        for key in needed:
            if key not in fields:
                raise JsonError(f"{self.path or 'the top level'}: the key {key!r} is missing")
        return Record(fields)

    def fields(self) -> dict[str, Value]:
        if not isinstance(self.data, Mapping):
            self.fail("an object")
        table = cast("Mapping[object, object]", self.data)  # pyright: ignore[reportUnknownMemberType]
        if isinstance(table, Doubled):
            raise JsonError(f"{self.path or 'the top level'}: the key {table.key!r} stands here twice")
        dot = f"{self.path}." if self.path else ""
        fields: dict[str, Value] = {}
        for key, data in table.items():
            if not isinstance(key, str):
                raise JsonError(f"{self.path or 'the top level'}: the key {key!r} is no string")
            Value(key, f"{self.path or 'the top level'}: a key").text()
            fields[key] = Value(data, f"{dot}{key}")
        return fields

    def items(self, size: int | None = None, of: str = "values") -> list[Value]:
        wanted = f"a list of {of}" if size is None else f"a list of {size} {of}"
        if not isinstance(self.data, list | tuple):
            self.fail(wanted)
        items = cast("Sequence[object]", self.data)  # pyright: ignore[reportUnknownMemberType]
        if size is not None and len(items) != size:
            self.fail(wanted)
        return [Value(item, f"{self.path}[{k}]") for k, item in enumerate(items)]

    def number(self) -> float:
        if isinstance(self.data, bool) or not isinstance(self.data, int | float):
            self.fail("a number")
        try:
            number = float(self.data)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail("a finite number")
        return number

    def numbers(self, size: int | None = None) -> list[float]:
        return [item.number() for item in self.items(size, "numbers")]

    def numbers_or_null(self, size: int) -> list[float | None]:
        return [None if item.data is None else item.number() for item in self.items(size, "numbers or nulls")]

    def text(self) -> str:
        if not isinstance(self.data, str):
            self.fail("a string")
        if any("\ud800" <= letter <= "\udfff" for letter in self.data):
            raise JsonError(f"{self.path}: {self.data!r} holds half of a surrogate pair")
        return self.data

    def name(self) -> str:
        if not self.text():
            self.fail("a name")
        return self.text()

    def flag(self) -> bool:
        if not isinstance(self.data, bool):
            self.fail("true or false")
        return self.data

    def plain(self, deepest: int = 8) -> Any:
        """Whatever it is, checked: objects, lists, strings, flags, nulls and finite numbers."""
        if self.data is None or isinstance(self.data, bool):
            return self.data
        if isinstance(self.data, str):
            return self.text()
        if isinstance(self.data, list | tuple | Mapping):
            if deepest == 0:
                self.fail("something that is not nested so deeply")
            if isinstance(self.data, Mapping):  # pyright: ignore[reportUnknownMemberType]
                return {key: value.plain(deepest - 1) for key, value in self.fields().items()}
            return [value.plain(deepest - 1) for value in self.items()]
        return self.number()

    def choice(self, choices: Sequence[str]) -> str:
        if self.data not in choices:
            self.fail("one of " + ", ".join(json.dumps(one) for one in choices))
        return str(self.data)


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of a checked object."""

    fields: Mapping[str, Value]

    def __getitem__(self, key: str) -> Value:
        return self.fields[key]

    def has(self, key: str) -> bool:
        return key in self.fields

    def get(self, key: str, read: Callable[[Value], T], default: T) -> T:
        return read(self.fields[key]) if key in self.fields else default

    def maybe(self, key: str, read: Callable[[Value], T]) -> T | None:
        """None where the key is missing or null."""
        value = self.fields.get(key)
        return None if value is None or value.data is None else read(value)

    def list(self, key: str) -> list[Value]:
        return self.fields[key].items() if key in self.fields else []


def _shown(data: object) -> str:
    if isinstance(data, BadNumber):
        return data.token
    if isinstance(data, Mapping):
        return "an object"
    if isinstance(data, list | tuple):
        return f"a list of {len(cast('Sequence[object]', data))}"
    if data is None or isinstance(data, bool | str):
        text = json.dumps(data)
    elif isinstance(data, float) or (isinstance(data, int) and abs(data) < 10**15):
        text = f"{data:g}"
    else:
        text = f"a {type(data).__name__}"
    return text if len(text) <= 60 else f"{text[:56]}..."
