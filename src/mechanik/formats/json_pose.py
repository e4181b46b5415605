"""Positions and orientations in JSON, kept to the last bit."""

from __future__ import annotations

import numpy as np

from mechanik.formats.json_value import Record, Value
from mechanik.mechanism import Frame
from mechanik.spatial import Pose
from mechanik.spatial.array import Array

_ROUNDING = 1e-14
"""A quaternion that is a unit but for this was written by us and is not touched; scaling it would move its last bit."""


def read_turn(value: Value) -> Array:
    """A unit quaternion wxyz, (4,), read-only; what has another length is brought to length one."""
    turn = np.array(value.numbers(4))
    longest = np.abs(turn).max()
    if longest < 1e-12:
        value.fail("a quaternion w, x, y, z that is not zero")
    norm = float(np.linalg.norm(turn / longest)) * longest
    if abs(norm - 1.0) > _ROUNDING:
        turn = turn / longest  # first, as the square of a large number is infinite
        turn = turn / np.linalg.norm(turn)
    turn.flags.writeable = False
    return turn


def read_place(record: Record) -> tuple[Array, Array]:
    """`position` and `wxyz` of a record, either of which may be missing."""
    position = np.array(record.get("position", lambda value: value.numbers(3), [0.0, 0.0, 0.0]))
    wxyz = read_turn(record["wxyz"]) if record.has("wxyz") else np.array([1.0, 0.0, 0.0, 0.0])
    return position, wxyz


def read_pose(value: Value) -> Pose:
    """An object with `position` and `wxyz`."""
    return Pose(*read_place(value.object((), ("position", "wxyz"))))


def place(frame: Frame, position: Array, wxyz: Array) -> None:
    """Put a new frame there. Past the setters, which would scale a quaternion that is a unit but for rounding."""
    frame._place(position, wxyz)
    frame._invalidate()
