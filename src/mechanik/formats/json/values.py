"""Parsed JSON values with their path in the document, so that every error names the location.

Poses are read to the last bit; only a quaternion that is not a unit quaternion is normalized.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from mechanik.errors import FormatError, MechanikError
from mechanik.model import Frame
from mechanik.spatial import Pose
from mechanik.spatial.array import Array

T = TypeVar("T")


class InvalidNumber:
    """A number that Python's JSON parser accepts but that is invalid in a mechanism: NaN, Infinity, 1e400."""

    def __init__(self, token: str) -> None:
        self.token = token if len(token) <= 24 else f"{token[:20]}..."


class DuplicateKeyObject(dict[str, Any]):
    """A JSON object in which `key` occurs more than once."""

    key = ""


def parse_json(text: str) -> object:
    """Parse JSON text to plain data.

    Invalid numbers and duplicate keys are stored as markers, so that a later error can name their path.

    Raises:
        JsonPathError: the text is not JSON, or it is nested too deeply.
    """
    try:
        return json.loads(
            text,
            parse_float=_parse_number,
            parse_int=_parse_number,
            parse_constant=InvalidNumber,
            object_pairs_hook=_make_object,
        )
    except json.JSONDecodeError as error:
        reason = "the text ends too early" if error.pos >= len(text.rstrip()) else error.msg
        raise JsonPathError(f"line {error.lineno}, column {error.colno}: {reason}") from None
    except RecursionError:
        raise JsonPathError("lists and objects are nested too deeply") from None


def _parse_number(token: str) -> float | InvalidNumber:
    number = float(token)
    return number if math.isfinite(number) else InvalidNumber(token)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    marked_record = DuplicateKeyObject(record)
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            marked_record.key = key
        keys.add(key)
    return marked_record


class JsonPathError(FormatError):
    """A `FormatError` whose message is complete: `error_context` adds no path to it."""


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A JSON value and its path in the document.

    Attributes:
        data: the plain value.
        path: the location, such as "joints[3].lower"; empty for the top level.
    """

    data: object
    path: str = ""

    def fail(self, expected_value: str) -> NoReturn:
        raise JsonPathError(f"{self.path or 'the top level'}: expected {expected_value}, got {_format_data(self.data)}")

    @contextmanager
    def error_context(self) -> Generator[None]:
        """Add this path to each `MechanikError` raised inside the context, except to a `JsonPathError`."""
        try:
            yield
        except JsonPathError:
            raise
        except MechanikError as error:
            raise JsonPathError(f"{self.path or 'the top level'}: {error}") from error

    def object(self, required_keys: Sequence[str], optional_keys: Sequence[str] = ()) -> JsonRecord:
        """Return the fields of an object; raise an error if a required key is missing or a key is unknown."""
        fields = self.fields()
        for key, value in fields.items():
            if key not in required_keys and key not in optional_keys:
                similar_keys = difflib.get_close_matches(key, [*required_keys, *optional_keys], n=1, cutoff=0.6)
                hint = (
                    f"did you mean {similar_keys[0]!r}?"
                    if similar_keys
                    else f"the keys are {', '.join([*required_keys, *optional_keys])}"
                )
                raise JsonPathError(f"{value.path}: unknown key {key!r}; {hint}")
        for key in required_keys:
            if key not in fields:
                raise JsonPathError(f"{self.path or 'the top level'}: the key {key!r} is missing")
        return JsonRecord(fields)

    def fields(self) -> dict[str, JsonValue]:
        if not isinstance(self.data, Mapping):
            self.fail("an object")
        mapping = cast("Mapping[object, object]", self.data)  # pyright: ignore[reportUnknownMemberType]
        if isinstance(mapping, DuplicateKeyObject):
            raise JsonPathError(f"{self.path or 'the top level'}: the key {mapping.key!r} occurs twice")
        prefix = f"{self.path}." if self.path else ""
        fields: dict[str, JsonValue] = {}
        for key, data in mapping.items():
            if not isinstance(key, str):
                raise JsonPathError(f"{self.path or 'the top level'}: the key {key!r} is not a string")
            JsonValue(key, f"{self.path or 'the top level'}: a key").text()
            fields[key] = JsonValue(data, f"{prefix}{key}")
        return fields

    def items(self, size: int | None = None, item_names: str = "values") -> list[JsonValue]:
        """Return the items of a list; `item_names` is what the list contains, for the error message."""
        expected_value = f"a list of {item_names}" if size is None else f"a list of {size} {item_names}"
        if not isinstance(self.data, list | tuple):
            self.fail(expected_value)
        items = cast("Sequence[object]", self.data)  # pyright: ignore[reportUnknownMemberType]
        if size is not None and len(items) != size:
            self.fail(expected_value)
        return [JsonValue(item, f"{self.path}[{k}]") for k, item in enumerate(items)]

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
            raise JsonPathError(f"{self.path}: {self.data!r} contains half of a surrogate pair")
        return self.data

    def name(self) -> str:
        if not self.text():
            self.fail("a name")
        return self.text()

    def flag(self) -> bool:
        if not isinstance(self.data, bool):
            self.fail("true or false")
        return self.data

    def plain_data(self, max_depth: int = 8) -> Any:
        """Return a checked copy with objects, lists, strings, booleans, nulls and finite floats.

        Args:
            max_depth: largest number of nested lists and objects.
        """
        if self.data is None or isinstance(self.data, bool):
            return self.data
        if isinstance(self.data, str):
            return self.text()
        if isinstance(self.data, list | tuple | Mapping):
            if max_depth == 0:
                self.fail("a value with fewer nested levels")
            if isinstance(self.data, Mapping):  # pyright: ignore[reportUnknownMemberType]
                return {key: value.plain_data(max_depth - 1) for key, value in self.fields().items()}
            return [value.plain_data(max_depth - 1) for value in self.items()]
        return self.number()

    def choice(self, choices: Sequence[str]) -> str:
        if self.data not in choices:
            self.fail("one of " + ", ".join(json.dumps(choice) for choice in choices))
        return str(self.data)


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """The fields of an object whose keys have been checked."""

    fields: Mapping[str, JsonValue]

    def __getitem__(self, key: str) -> JsonValue:
        return self.fields[key]

    def has(self, key: str) -> bool:
        return key in self.fields

    def get(self, key: str, read: Callable[[JsonValue], T], default: T) -> T:
        return read(self.fields[key]) if key in self.fields else default

    def get_optional(self, key: str, read: Callable[[JsonValue], T]) -> T | None:
        """Read a field; None if the key is missing or null."""
        value = self.fields.get(key)
        return None if value is None or value.data is None else read(value)

    def list(self, key: str) -> list[JsonValue]:
        return self.fields[key].items() if key in self.fields else []


def _format_data(data: object) -> str:
    if isinstance(data, InvalidNumber):
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


_UNIT_NORM_TOLERANCE = 1e-14
"""Largest deviation of the norm from 1 at which a quaternion is not scaled; scaling could change its last bit."""


def read_quaternion(value: JsonValue) -> Array:
    """Read a quaternion wxyz, (4,), as a read-only array; it is normalized if its norm is not 1."""
    wxyz = np.array(value.numbers(4))
    max_component = np.abs(wxyz).max()
    if max_component < 1e-12:
        value.fail("a quaternion w, x, y, z that is not zero")
    norm = float(np.linalg.norm(wxyz / max_component)) * max_component
    if abs(norm - 1.0) > _UNIT_NORM_TOLERANCE:
        wxyz = wxyz / max_component  # avoids overflow of the squares
        wxyz = wxyz / np.linalg.norm(wxyz)
    wxyz.flags.writeable = False
    return wxyz


def read_position_wxyz(record: JsonRecord) -> tuple[Array, Array]:
    """Read `position` (3,), m, and `wxyz` (4,) of a record; the defaults are zero and the identity."""
    position = np.array(record.get("position", lambda value: value.numbers(3), [0.0, 0.0, 0.0]))
    wxyz = read_quaternion(record["wxyz"]) if record.has("wxyz") else np.array([1.0, 0.0, 0.0, 0.0])
    return position, wxyz


def read_pose(value: JsonValue) -> Pose:
    """Read a pose from an object with `position` and `wxyz`."""
    return Pose(*read_position_wxyz(value.object((), ("position", "wxyz"))))


def set_frame_pose(frame: Frame, position: Array, wxyz: Array) -> None:
    """Set the pose of a new frame without the setters, which normalize the quaternion and can change its last bit."""
    frame._set_local_pose(position, wxyz)
    frame._invalidate()
