"""Reader and writer of the protocol: JSON requests and events, and binary frames.

Requests from pages are validated: known names, right types, finite numbers, values in range, limited length. Binary
frames are little-endian float64, so that no value is rounded.

A state frame (server to page, sent at each update) has these parts:
    header    see `StateHeader`
    links     x y z qw qx qy qz of each link, in the order of `Model.links`
    values    of the dofs, m or rad; `DofInfo.value` is the index of the first value of a dof
    goals     x y z qw qx qy qz, position error (m), angle error (rad), in the order of `Goals.goals`
    closures  gap (m) and angle (rad), in the order of `Model.closures`

A drag frame (page to server) is a `DragUpdate` as ten numbers.
"""

from __future__ import annotations

import json
import math
import re
import struct
import types
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from mechanik.errors import InvalidOperation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import Event
from mechanik.studio.messages.requests import MAX_MAGNITUDE, REQUESTS, LengthRange, NumberRange, PageRequest

MAX_MESSAGE_BYTES = 1_000_000
"""Maximum length of a message, bytes."""
MAX_TABLE_ENTRIES = 200
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half surrogate pairs: JSON can encode them, but they are not valid Unicode text."""


def read_request(text: str | bytes) -> tuple[int, PageRequest]:
    """Parse and validate a JSON request.

    Returns:
        The id that the reply must carry (-1 if the message has none), and the request.

    Raises:
        InvalidOperation: the message is not valid; the text names the field.
    """
    if len(text) > MAX_MESSAGE_BYTES:
        raise InvalidOperation(f"a message has at most {MAX_MESSAGE_BYTES} bytes, not {len(text)}")
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidOperation(f"a message is JSON: {error}") from None
    if not isinstance(message, dict):
        raise InvalidOperation("a message is a JSON object with the key 'do'")
    given = cast(dict[str, Any], message)
    kind = REQUESTS.get(given.pop("do", "")) if isinstance(given.get("do"), str) else None
    if kind is None:
        raise InvalidOperation(f"a message says under 'do' one of: {', '.join(REQUESTS)}")
    number = given.pop("id", -1)
    if type(number) is not int or not -1 <= number < 2**53:
        raise InvalidOperation("the id of a message is a whole number")
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
        raise InvalidOperation(f"{place} has no {unknown[0][:60]!r}; it has {', '.join(hints) or 'nothing'}")
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in given:
            values[field.name] = parse_value(given[field.name], hints[field.name], f"{place}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InvalidOperation(f"{place} needs {field.name!r}")
    return kind(**values)


def parse_value(value: Any, kind: Any, path: str) -> Any:
    """Convert a JSON value to an annotated type.

    Args:
        value: value from the JSON parser.
        kind: type annotation, may be `Annotated` with a `NumberRange` or `LengthRange`.
        path: path of the value in the message, for error texts.

    Raises:
        InvalidOperation: the value does not have that type or is out of range.
    """
    origin, bounds = get_origin(kind), None
    if origin is Annotated:
        kind, *extras = get_args(kind)
        bounds, origin = extras[0], get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(value, get_args(kind), path)
    if origin is Literal:
        if value not in get_args(kind) or not isinstance(value, str):
            raise InvalidOperation(f"{path} is one of {', '.join(map(str, get_args(kind)))}")
        return value
    if origin is list:
        _check_list(value, bounds, path)
        return [parse_value(item, get_args(kind)[0], f"{path}[{k}]") for k, item in enumerate(value)]
    if origin is tuple:
        parts = get_args(kind)
        if not isinstance(value, list) or len(cast(list[Any], value)) != len(parts):
            raise InvalidOperation(f"{path} is a list of {len(parts)} numbers")
        return tuple(parse_value(value[k], part, f"{path}[{k}]") for k, part in enumerate(parts))
    if origin is dict:
        key, item = get_args(kind)
        if not isinstance(value, dict) or len(cast(dict[str, Any], value)) > MAX_TABLE_ENTRIES:
            raise InvalidOperation(f"{path} is an object of at most {MAX_TABLE_ENTRIES} entries")
        table = cast(dict[str, Any], value)
        return {parse_value(k, key, path): parse_value(v, item, f"{path}[{k[:60]!r}]") for k, v in table.items()}
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise InvalidOperation(f"{path} is an object")
        return _made(cast(type[Any], kind), cast(dict[str, Any], value), path)
    return _plain(value, kind, bounds, path)


def _one_of(value: Any, kinds: tuple[Any, ...], place: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    said = ""
    for kind in kinds:
        if kind is not type(None):
            try:
                return parse_value(value, kind, place)
            except InvalidOperation as error:
                said = said or str(error)
    raise InvalidOperation(said)


def _check_list(value: Any, bounds: LengthRange | NumberRange | None, place: str) -> None:
    if not isinstance(value, list):
        raise InvalidOperation(f"{place} is a list")
    if isinstance(bounds, LengthRange) and not bounds.low <= len(cast(list[Any], value)) <= bounds.high:
        raise InvalidOperation(f"{place} has {bounds.low} to {bounds.high} entries, not {len(cast(list[Any], value))}")


def _plain(value: Any, kind: Any, bounds: LengthRange | NumberRange | None, place: str) -> Any:
    if kind is bool:
        if not isinstance(value, bool):
            raise InvalidOperation(f"{place} is true or false")
        return value
    if kind is str:
        if not isinstance(value, str):
            raise InvalidOperation(f"{place} is a text")
        low, high = (bounds.low, bounds.high) if isinstance(bounds, LengthRange) else (0, 1000)
        if not low <= len(value) <= high:
            raise InvalidOperation(f"{place} has {low} to {high} letters, not {len(value)}")
        if LONE_SURROGATE.search(value):
            raise InvalidOperation(f"{place} holds half of a surrogate pair")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOperation(f"{place} is a number")
    low, high = (bounds.low, bounds.high) if isinstance(bounds, NumberRange) else (-1e12, 1e12)
    if not low <= value <= high:  # also rejects NaN, infinities and integers too large for a float
        what = place.rsplit(".", 1)[-1]  # users type such numbers and do not know the names of messages
        raise InvalidOperation(f"this number is too large or too small: {what} can be from {low:,.9g} to {high:,.9g}")
    if kind is int and value != int(value):
        raise InvalidOperation(f"{place} is a whole number, not {value!r}")
    return int(value) if kind is int else float(value)


def write_event(event: Event) -> str:
    """Return an event as JSON text `{"is": "Model", ...}`; numbers that are not finite become null."""
    return json.dumps(event_to_dict(event), allow_nan=False, separators=(",", ":"))


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as a dictionary of plain data, with its class name under "is"."""
    return {"is": type(event).__name__, **to_plain_data(event)}


def to_plain_data(value: Any) -> Any:
    """Convert dataclasses to dictionaries, tuples to lists and NumPy scalars to numbers, for JSON."""
    if is_dataclass(value):
        return {field.name: to_plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): to_plain_data(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [to_plain_data(item) for item in cast(list[Any], value)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return to_plain_data(value.item() if hasattr(value, "item") else str(value))


STATE = 1.0
DRAG_GOAL = 2
DRAG_DOF = 3
DRAG_OBSTACLE = 4
LINK_DRAG_GOAL = 0
"""Number of the temporary goal that drags a link; other goals are numbered from 1."""
MAIN_LAYER = 0


class StateHeader(NamedTuple):
    """Header of a state frame.

    Attributes:
        kind: `STATE`.
        revision: revision of the `Model` that the frame belongs to.
        order: order of the `Goals` that the frame belongs to.
        sequence: frame counter, grows by one with each frame.
        tag: tag of the newest `DragUpdate` that this state includes; 0: none.
        layer: 0 for the main solver, else the layer of a compared method.
        status: index into `STATUSES`.
        is_at_rest: 1 if nothing moves until the next request.
        iterations: of the last solve.
        seconds: duration of the last solve, s.
        solves_per_second: over the last second.
        residual: largest goal error, maximum over distances (m) and angles (rad), for the plot.
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
    residual: float
    links: float
    values: float
    goals: float
    closures: float


STATE_HEADER_SIZE = len(StateHeader._fields)
STATUSES = (
    "CONVERGED", "CLOSEST", "STALLED", "TIMEOUT", "OPEN", "STOPPED", "DIVERGED", "PAUSED", "IDLE", "PROBLEM",
    "IN_COLLISION",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DragUpdate:
    """Position of a dragged object, sent by a page at display rate.

    Attributes:
        kind: `DRAG_GOAL`, `DRAG_DOF` or `DRAG_OBSTACLE`.
        tag: counter of the page, grows with each update; the state that includes the update carries it.
        number: number of the goal (`LINK_DRAG_GOAL` for a dragged link), index of the dof, or index of the obstacle at
            the start of the drag.
        numbers: pose of the goal or obstacle in the world (position in m, wxyz); for a dof its value in m or rad, or
            the three numbers of a rotation vector, and the rest unused.
    """

    kind: int
    tag: int
    number: int
    numbers: tuple[float, ...]


DRAG_STRUCT = struct.Struct("<10d")


def read_drag_update(data: bytes) -> DragUpdate:
    """Parse and validate a drag frame.

    Raises:
        InvalidOperation: wrong size or kind, a number that is not finite or out of range, or no unit quaternion.
    """
    if len(data) != DRAG_STRUCT.size:
        raise InvalidOperation(f"a drag frame has {DRAG_STRUCT.size} bytes, not {len(data)}")
    kind, tag, number, *numbers = DRAG_STRUCT.unpack(data)
    if kind not in (DRAG_GOAL, DRAG_DOF, DRAG_OBSTACLE):
        raise InvalidOperation(f"no binary frame is of kind {kind!r}")
    for what, value in (("tag", tag), ("number", number)):
        if not (0 <= value <= 2**52 and value == int(value)):
            raise InvalidOperation(f"the {what} of a frame is a whole number, not {value!r}")
    if not all(math.isfinite(value) and abs(value) <= MAX_MAGNITUDE for value in numbers):
        raise InvalidOperation(f"every number of a frame is finite and within {MAX_MAGNITUDE:g}")
    if kind != DRAG_DOF and not 0.5 < math.hypot(*numbers[3:]) < 2:
        raise InvalidOperation("the rotation of a drag frame is a unit quaternion")
    return DragUpdate(int(kind), int(tag), int(number), tuple(numbers))


def write_drag_update(update: DragUpdate) -> bytes:
    return DRAG_STRUCT.pack(update.kind, update.tag, update.number, *update.numbers, *[0.0] * (7 - len(update.numbers)))


@dataclass(frozen=True, slots=True)
class StateFrame:
    """A parsed state frame, for tests and for clients in Python."""

    header: StateHeader
    links: Array  # (L, 7)
    values: Array  # (V,)
    goals: Array  # (G, 9)
    closures: Array  # (C, 2)


def write_state(header: StateHeader, links: Array, values: Array, goals: Array, closures: Array) -> bytes:
    """Pack a state frame; the arrays have the shapes of `StateFrame`."""
    parts = (np.asarray(header, float), links.ravel(), values.ravel(), goals.ravel(), closures.ravel())
    return np.concatenate(parts).astype("<f8", copy=False).tobytes()


def read_state(data: bytes) -> StateFrame:
    numbers = np.frombuffer(data, "<f8")
    header = StateHeader(*numbers[:STATE_HEADER_SIZE])
    sizes = [7 * int(header.links), int(header.values), 9 * int(header.goals), 2 * int(header.closures)]
    links, values, goals, closures, rest = np.split(numbers[STATE_HEADER_SIZE:], np.cumsum(sizes))
    if rest.size or header.kind != STATE:
        raise InvalidOperation("these bytes are no state frame")
    return StateFrame(header, links.reshape(-1, 7), values, goals.reshape(-1, 9), closures.reshape(-1, 2))
