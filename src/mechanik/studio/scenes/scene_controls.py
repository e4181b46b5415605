"""Helper functions of scenes: create and validate controls, create curves, and format compact JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from mechanik.errors import InvalidOperation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo, CurveInfo
from mechanik.studio.messages.requests import Value


def slider(
    name: str, title: str, value: float, low: float, high: float, step: float, group: str = "", about: str = ""
) -> ControlInfo:
    """Return a slider; if its step is 1 or more, its values are rounded to integers."""
    return ControlInfo(name, title, "slider", float(value), float(low), float(high), float(step), [], group, about)


def switch(name: str, title: str, value: bool, group: str = "", about: str = "") -> ControlInfo:
    """Return a switch, which is on or off."""
    return ControlInfo(name, title, "switch", value, 0.0, 1.0, 1.0, [], group, about)


def choice(name: str, title: str, choices: Sequence[str], group: str = "", about: str = "") -> ControlInfo:
    """Return a selection from several texts; the first text is the initial value."""
    return ControlInfo(name, title, "choice", choices[0], 0.0, 0.0, 0.0, list(choices), group, about)


def button(name: str, title: str, group: str = "", about: str = "") -> ControlInfo:
    """Return a button; its value is unused."""
    return ControlInfo(name, title, "button", False, 0.0, 0.0, 0.0, [], group, about)


def check_control_value(control: ControlInfo, value: Value) -> Value:
    """Return the value in the form that the control stores.

    Raises:
        InvalidOperation: the control cannot have this value.
    """
    match control.kind:
        case "slider" | "number":
            if isinstance(value, bool | str) or not math.isfinite(value):
                raise InvalidOperation(f"{control.title} must be a number, not {value!r}")
            if not control.low <= value <= control.high:
                raise InvalidOperation(
                    f"{control.title} must be from {control.low:g} to {control.high:g}, not {value:g}"
                )
            return float(round(value)) if control.step >= 1.0 else float(value)
        case "switch":
            if not isinstance(value, bool):
                raise InvalidOperation(f"{control.title} must be on or off, not {value!r}")
            return value
        case "choice":
            if value not in control.choices:
                raise InvalidOperation(f"{control.title} must be one of {', '.join(control.choices)}, not {value!r}")
            return value
        case "text":
            if not isinstance(value, str):
                raise InvalidOperation(f"{control.title} must be a text, not {value!r}")
            return value
        case "button":
            return False


CURVE_COLOUR = (0.85, 0.2, 0.45, 1.0)
FAINT_COLOUR = (0.4, 0.5, 0.65, 0.8)
"""RGBA, 0 to 1."""


def make_curve(
    name: str, points: Array, *, closed: bool = False, rgba: tuple[float, float, float, float] = CURVE_COLOUR
) -> CurveInfo:
    """Return a polyline from points in the world, (n, 3), m."""
    return CurveInfo(name, [float(number) for number in points.ravel()], rgba, closed)


def compact_json(data: Any) -> str:
    """Return JSON with each list of numbers or texts on one line, so that a table row is one line."""
    text = json.dumps(data, indent=2)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", text)
