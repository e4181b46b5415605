"""Read and write the messages of the protocol: JSON requests and events, and binary frames.

Requests from pages are validated: names, types, ranges of numbers, and lengths. Binary frames consist of little-endian
float64 numbers, so no value is rounded.

A state frame (server to page) has these parts:
    header    see `StateHeader`
    links     x y z qw qx qy qz of each link, in the order of `Model.links`
    values    values of the dofs, m or rad; `DofInfo.value` is the index of the first value of a dof
    goals     x y z qw qx qy qz, position error (m), angle error (rad) of each goal, in the order of `Goals.goals`
    closures  gap (m) and angle (rad) of each closure, in the order of `Model.closures`

A drag frame (page to server) is a `DragUpdate` as ten numbers.
"""

from __future__ import annotations

import json
import math
import re
import struct
import types
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

import msgspec
import numpy as np

from mechanik.errors import InvalidOperation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import Event
from mechanik.studio.messages.requests import MAX_MAGNITUDE, REQUESTS, PageRequest

MAX_REQUEST_LENGTH = 1_000_000
"""Maximum length of a request, bytes; characters if it is a `str`."""
VALIDATION_ERROR = re.compile(r"(?P<reason>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
"""Pattern of the validation errors of msgspec: a reason and the path of the value."""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REQUEST_NAME = re.compile(r'"do"\s*:\s*"(\w{1,40})"')
TYPE_NAMES = {
    "array": "a list", "bool": "true or false", "float": "a number", "int": "an integer", "null": "null",
    "object": "an object", "str": "a text",
}  # fmt: skip
"""Names of JSON types in error messages, by their names in msgspec."""
UNIONS = (Union, types.UnionType)


def read_request(text: str | bytes) -> PageRequest:
    """Parse and validate a JSON request.

    Raises:
        InvalidOperation: the message is not valid; the error text gives the reason and, if possible, the field.
    """
    if len(text) > MAX_REQUEST_LENGTH:
        raise InvalidOperation(f"a request may have at most {MAX_REQUEST_LENGTH} characters, not {len(text)}")
    try:
        return _request_decoder().decode(text)
    except msgspec.ValidationError as error:
        raise InvalidOperation(_error_message(text, str(error))) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        field = _field_with_lone_surrogate(text)
        if field:
            raise InvalidOperation(f"{field} contains half of a surrogate pair, which is not valid text") from None
        raise InvalidOperation(f"the message is not valid JSON: {str(error)[:200]}") from None


@cache
def _request_decoder() -> msgspec.json.Decoder[PageRequest]:
    any_request: Any = Union[tuple(REQUESTS.values())]  # noqa: UP007
    return msgspec.json.Decoder(any_request)


def _field_with_lone_surrogate(text: str | bytes) -> str:
    """Return a field whose text contains half of a surrogate pair, such as `OpenScene.name`; empty if there is none.

    JSON can encode half of a pair, and the error of msgspec does not name the field.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    fields = cast(dict[str, Any], message) if isinstance(message, dict) else {}
    names = (name for name, value in fields.items() if isinstance(value, str) and LONE_SURROGATE.search(value))
    return next((f"{fields.get('do')}.{name}" for name in names), "")


def _error_message(text: str | bytes, error: str) -> str:
    """Return the error message for an invalid request, from the text of an error of msgspec."""
    match = VALIDATION_ERROR.fullmatch(error)
    reason, path, key = (match["reason"], match["path"] or "", match["key"]) if match else (error, "", None)
    name = REQUEST_NAME.search(text if isinstance(text, str) else text.decode(errors="replace"))
    request_type = REQUESTS.get(name[1]) if name else None
    if request_type is None or path == ".do":
        return f"a request must be an object whose key 'do' has one of these names: {', '.join(REQUESTS)}"
    location = f"{'a key in ' if key else ''}{request_type.__name__}{path}"
    field = re.search(r"field `(.*)`", reason)
    if field is not None and "unknown" in reason:
        field_names = [
            struct_field.name for struct_field in msgspec.structs.fields(request_type) if struct_field.name != "id"
        ]
        return f"{location} has no field {field[1][:60]!r}; its fields are: {', '.join(field_names) or 'none'}"
    if field is not None:
        return f"{location} needs the field {field[1]!r}"
    allowed_texts, number_range = _allowed_values(_annotation_at(request_type, path))
    if number_range and ("out of range" in reason or re.search(r"`(float|int)` [<>]", reason)):
        # users enter these numbers in fields and do not know the names of requests
        label = path.removeprefix(".")
        low, high = number_range
        return f"this number is too large or too small: {label} can be from {low:,.9g} to {high:,.9g}"
    if allowed_texts and "Invalid enum value" in reason:
        return f"{location}: {reason.removeprefix('Invalid enum value ')} is not one of {', '.join(allowed_texts)}"
    reason = re.sub(r"`([\w |]+)`", lambda match: _type_names(match[1]), reason)
    return f"{location}: {reason[:1].lower()}{reason[1:]}"


def _type_names(names: str) -> str:
    """Return the names of JSON types, such as `float | null`, as words for the user."""
    return " or ".join(TYPE_NAMES.get(name, name) for name in names.split(" | "))


def _annotation_at(request_type: type[PageRequest], path: str) -> Any:
    """Return the type of the value at a path such as `.pose[3]`; None if there is no such value."""
    name, *indices = re.split(r"[\[\]]+", path.removeprefix(".").removesuffix("]"))
    annotation = next((field.type for field in msgspec.structs.fields(request_type) if field.name == name), None)
    for index in indices:
        alternatives = [annotation, *get_args(annotation)] if get_origin(annotation) in UNIONS else [annotation]
        list_types = [
            alternative
            for alternative in map(_without_metadata, alternatives)
            if get_origin(alternative) in (list, tuple)
        ]
        if not list_types or not index.isdecimal():
            return None
        entry_types = get_args(list_types[0])
        annotation = entry_types[int(index) if get_origin(list_types[0]) is tuple else 0]
    return annotation


def _without_metadata(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _allowed_values(annotation: Any) -> tuple[list[str], tuple[float, float] | None]:
    """Return the texts and the range of numbers that an annotation allows.

    The range is None unless the annotation has the bounds `ge` and `le`.
    """
    allowed_texts: list[str] = []
    number_range: tuple[float, float] | None = None
    if get_origin(annotation) is Literal:
        allowed_texts = [str(text) for text in get_args(annotation)]
    elif get_origin(annotation) is Annotated:
        bounds = get_args(annotation)[1]
        if bounds.ge is not None and bounds.le is not None:
            number_range = bounds.ge, bounds.le
    elif get_origin(annotation) in UNIONS:
        for alternative in get_args(annotation):
            alternative_texts, alternative_range = _allowed_values(alternative)
            allowed_texts, number_range = allowed_texts + alternative_texts, number_range or alternative_range
    return allowed_texts, number_range


def write_event(event: Event) -> str:
    """Return an event as JSON text `{"is": "Model", ...}`; infinite numbers and NaN become null."""
    return _ENCODER.encode(event).decode()


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as a dictionary of plain data, with its class name under "is"."""
    data: dict[str, Any] = msgspec.json.decode(_ENCODER.encode(event))
    return data


def _numpy_to_number(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number for the encoder."""
    if isinstance(value, np.generic):
        return cast(Any, value).item()
    raise NotImplementedError(f"{type(value).__name__} cannot be sent")


_ENCODER = msgspec.json.Encoder(enc_hook=_numpy_to_number)


# kinds of binary frames
STATE = 1.0
DRAG_GOAL = 2
DRAG_DOF = 3
DRAG_OBSTACLE = 4

LINK_DRAG_GOAL = 0
"""Number of the temporary goal that drags a link; other goals are numbered from 1."""
MAIN_LAYER = 0
"""Layer of the state frames of the main solver; compared methods have the layers from 1 on."""


class StateHeader(NamedTuple):
    """Header of a state frame.

    A tick is one solve with a time limit in the thread of the solver, see `LiveSolver`.

    Attributes:
        kind: `STATE`.
        revision: revision of the `Model` that the state frame belongs to.
        order: number of the `Goals` event that lists the goals in the order of this state frame.
        sequence: number of the state frame in its layer, counted from 1 for each model and for each comparison.
        tag: tag of the newest `DragUpdate` that this state includes; 0: none. It is 0 in layers of compared methods.
        layer: 0 for the main solver, else the layer of a compared method.
        status: index into `STATUSES`.
        is_at_rest: 0 while the solver or playback continues. 1 if the solver has finished, and in state frames that do
            not come from the solver or playback, such as the first one for a new page.
        iterations: iterations of the last tick of the solver.
        seconds: processor time of the last tick, s; wall time on Windows.
        solves_per_second: number of ticks in the last second.
        goal_error: largest error of an enabled goal, the maximum of distances (m) and angles (rad), for the plot.
        links, values, goals, closures: number of entries of each part.
    """

    kind: float
    revision: float
    order: float
    sequence: float
    tag: float
    layer: float
    status: float
    is_at_rest: float
    iterations: float
    seconds: float
    solves_per_second: float
    goal_error: float
    links: float
    values: float
    goals: float
    closures: float


STATE_HEADER_SIZE = len(StateHeader._fields)
STATUSES = (
    "CONVERGED", "CLOSEST", "STALLED", "TIMEOUT", "NOT_CLOSED", "STOPPED", "DIVERGED", "PAUSED", "IDLE", "PROBLEM",
    "IN_COLLISION",
)  # fmt: skip
"""Names of the statuses; `StateHeader.status` is an index into this tuple."""


@dataclass(frozen=True, slots=True)
class DragUpdate:
    """Pose or value of a dragged object, sent by a page at display rate.

    Attributes:
        kind: `DRAG_GOAL`, `DRAG_DOF` or `DRAG_OBSTACLE`.
        tag: counter of the page, which increases with each update; `StateHeader.tag` refers to it.
        number: number of the goal (`LINK_DRAG_GOAL` for a dragged link), index of the dof, or index of the obstacle at
            the start of the drag.
        values: pose of the goal or obstacle in the world (position in m, wxyz). For a dof: its value (m or rad), or
            the rotation vector (rad) of a spherical joint; the remaining values are unused.
    """

    kind: int
    tag: int
    number: int
    values: tuple[float, ...]


DRAG_STRUCT = struct.Struct("<10d")


def read_drag_update(data: bytes) -> DragUpdate:
    """Parse and validate a drag frame.

    Raises:
        InvalidOperation: the size or the kind is wrong, the tag or the number is not an integer in range, a value is
            not finite or out of range, or the norm of the quaternion of a goal or obstacle is not between 0.5 and 2.
    """
    if len(data) != DRAG_STRUCT.size:
        raise InvalidOperation(f"a drag frame must have {DRAG_STRUCT.size} bytes, not {len(data)}")
    kind, tag, number, *values = DRAG_STRUCT.unpack(data)
    if kind not in (DRAG_GOAL, DRAG_DOF, DRAG_OBSTACLE):
        raise InvalidOperation(
            f"a binary frame has the unknown kind {kind!r}; use {DRAG_GOAL} (goal), {DRAG_DOF} (dof) or "
            f"{DRAG_OBSTACLE} (obstacle)"
        )
    for label, value in (("tag", tag), ("number", number)):
        if not (0 <= value <= 2**52 and value == int(value)):
            raise InvalidOperation(f"the {label} of a drag frame must be an integer from 0 to 2^52, not {value!r}")
    if not all(math.isfinite(value) and abs(value) <= MAX_MAGNITUDE for value in values):
        raise InvalidOperation(f"every value of a drag frame must be from {-MAX_MAGNITUDE:g} to {MAX_MAGNITUDE:g}")
    if kind != DRAG_DOF and not 0.5 < math.hypot(*values[3:]) < 2:
        raise InvalidOperation("the quaternion of a drag frame must have a norm of 1 (0.5 to 2 is accepted)")
    return DragUpdate(int(kind), int(tag), int(number), tuple(values))


def write_drag_update(update: DragUpdate) -> bytes:
    return DRAG_STRUCT.pack(update.kind, update.tag, update.number, *update.values, *[0.0] * (7 - len(update.values)))


@dataclass(frozen=True, slots=True)
class StateFrame:
    """A parsed state frame, for tests and for clients in Python."""

    header: StateHeader
    links: Array  # (number of links, 7); the columns of all arrays are in the docstring of the module
    values: Array  # (number of values,)
    goals: Array  # (number of goals, 9)
    closures: Array  # (number of closures, 2)


def write_state(header: StateHeader, links: Array, values: Array, goals: Array, closures: Array) -> bytes:
    """Pack a state frame; the arrays have the shapes of `StateFrame`."""
    parts = (np.asarray(header, float), links.ravel(), values.ravel(), goals.ravel(), closures.ravel())
    return np.concatenate(parts).astype("<f8", copy=False).tobytes()


def read_state(data: bytes) -> StateFrame:
    """Unpack a state frame.

    Raises:
        InvalidOperation: the kind is wrong, or the data is longer than the numbers of entries in its header require.
            Data that is too short is not detected here: it gives shorter arrays, or a ValueError or TypeError.
    """
    numbers = np.frombuffer(data, "<f8")
    header = StateHeader(*numbers[:STATE_HEADER_SIZE])
    sizes = [7 * int(header.links), int(header.values), 9 * int(header.goals), 2 * int(header.closures)]
    links, values, goals, closures, surplus_numbers = np.split(numbers[STATE_HEADER_SIZE:], np.cumsum(sizes))
    if surplus_numbers.size or header.kind != STATE:
        raise InvalidOperation("the data is not a state frame: its kind or its length is wrong")
    return StateFrame(header, links.reshape(-1, 7), values, goals.reshape(-1, 9), closures.reshape(-1, 2))
