"""Sliders, switches, choices and buttons of a scene, and what may be set on them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanik.errors import Refused
from mechanik.studio.messages.checks import Value
from mechanik.studio.messages.events import ControlInfo


def slider(
    name: str, title: str, value: float, low: float, high: float, step: float, group: str = "", about: str = ""
) -> ControlInfo:
    """A number between two others; a step of 1 or more makes it whole."""
    return ControlInfo(name, title, "slider", float(value), float(low), float(high), float(step), [], group, about)


def switch(name: str, title: str, value: bool, group: str = "", about: str = "") -> ControlInfo:
    return ControlInfo(name, title, "switch", value, 0.0, 1.0, 1.0, [], group, about)


def choice(name: str, title: str, choices: Sequence[str], group: str = "", about: str = "") -> ControlInfo:
    """One of several words; the first is chosen at the start."""
    return ControlInfo(name, title, "choice", choices[0], 0.0, 0.0, 0.0, list(choices), group, about)


def button(name: str, title: str, group: str = "", about: str = "") -> ControlInfo:
    """Something that happens when it is pressed; its value says nothing."""
    return ControlInfo(name, title, "button", False, 0.0, 0.0, 0.0, [], group, about)


def checked(control: ControlInfo, value: Value) -> Value:
    """The value as the control keeps it; one that it cannot have is refused."""
    match control.kind:
        case "slider" | "number":
            if isinstance(value, bool | str) or not math.isfinite(value):
                raise Refused(f"{control.title} is a number, not {value!r}")
            if not control.low <= value <= control.high:
                raise Refused(f"{control.title} is from {control.low:g} to {control.high:g}, not {value:g}")
            return float(round(value)) if control.step >= 1.0 else float(value)
        case "switch":
            if not isinstance(value, bool):
                raise Refused(f"{control.title} is on or off, not {value!r}")
            return value
        case "choice":
            if value not in control.choices:
                raise Refused(f"{control.title} is one of {', '.join(control.choices)}, not {value!r}")
            return value
        case "text":
            if not isinstance(value, str):
                raise Refused(f"{control.title} is a text, not {value!r}")
            return value
        case "button":
            return False
