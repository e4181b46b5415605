"""Messages of a session as JSON text."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any, cast

from mechanik.studio.messages.events import Event


def write_event(event: Event) -> str:
    """`{"is": "Model", ...}`; numbers that are not finite become null, as JSON has none."""
    return json.dumps(as_message(event), allow_nan=False, separators=(",", ":"))


def as_message(event: Event) -> dict[str, Any]:
    """As plain data."""
    return {"is": type(event).__name__, **plain(event)}


def plain(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, nothing that JSON does not know."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast(list[Any], value)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return plain(value.item() if hasattr(value, "item") else str(value))
