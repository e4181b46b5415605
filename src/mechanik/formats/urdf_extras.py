"""What only simulators and controllers use: kept by subject and joint when it is read, and written back."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from mechanik.formats.urdf_text import text_of
from mechanik.formats.xml_text import Node

SUBJECTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "limits": ("limit", ("effort", "velocity")),
    "safety": ("safety_controller", ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")),
    "dynamics": ("dynamics", ("damping", "friction")),
    "calibration": ("calibration", ("rising", "falling")),
}
"""Each subject's element in a joint, and the numbers in it."""


def keep_extras(extras: dict[str, dict[str, Any]], name: str, joint: Node) -> None:
    """Put what a <joint> says into `extras`."""
    for subject, (tag, attributes) in SUBJECTS.items():
        node = joint.first(tag)
        if node is None:
            continue
        found = {one: value for one in attributes if (value := node.number(one)) is not None}
        if found:
            extras.setdefault(subject, {})[name] = found


def extra_attributes(extras: Mapping[str, Any], subject: str, joint: str) -> dict[str, str]:
    """What is kept about a joint, as text; other things than the numbers of that subject are passed over."""
    kept = _table(_table(extras.get(subject)).get(joint))
    return {key: text_of(value) for key, value in kept.items() if key in SUBJECTS[subject][1] and _is_number(value)}


def extras_left_out(extras: Mapping[str, Any], joints: Collection[str]) -> Iterator[str]:
    """Subjects, with the joint where there is one, that `extra_attributes` does not give for the `joints` in full."""
    for subject, kept in extras.items():
        if subject not in SUBJECTS or not isinstance(kept, Mapping):
            yield str(subject)
            continue
        for name, said in cast("Mapping[str, Any]", kept).items():
            if name not in joints or len(extra_attributes(extras, subject, name)) < max(len(_table(said)), 1):
                yield f"{subject} of {name}"


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
