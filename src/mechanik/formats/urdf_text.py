"""Numbers as URDF text that reads back to the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from mechanik.formats.urdf_shapes import wxyz_of_rpy
from mechanik.spatial import euler, quaternion
from mechanik.spatial.array import Array


def text_of(number: float) -> str:
    """The shortest text that reads back to the same float."""
    text = repr(float(number) + 0.0)  # adding zero makes -0 0
    return text.removesuffix(".0")


def row(numbers: Iterable[float]) -> str:
    return " ".join(text_of(number) for number in numbers)


def origin_attributes(position: Array, wxyz: Array) -> dict[str, str]:
    """xyz, rpy, and the quaternion where rpy alone would lose bits; nothing for the identity."""
    attributes: dict[str, str] = {}
    if position.any():
        attributes["xyz"] = row(position)
    turn = quaternion.canonical(wxyz) + 0.0  # a -0, which text drops, would turn +pi into -pi
    if np.array_equal(turn, quaternion.identity()):
        return attributes
    plain = euler.euler_from_quaternion(turn, order="xyz", axes="fixed")
    for rpy in _nice(plain):
        if np.array_equal(_unit(wxyz_of_rpy(tuple(rpy))), turn):
            return attributes | {"rpy": row(rpy)}
    return attributes | {"rpy": row(plain), "wxyz": row(turn)}


def _nice(rpy: Array) -> Iterator[Array]:
    """Triples that mean the same rotation, those that a person would have written first."""
    eighth = np.pi / 4
    other = np.array([rpy[0] - np.copysign(np.pi, rpy[0]), np.copysign(np.pi, rpy[1]) - rpy[1], 0.0])
    other[2] = rpy[2] - np.copysign(np.pi, rpy[2])
    for triple in (rpy, other):
        for decimals in (6, 9, 12, 14, 15):
            # multiples of an eighth of a turn are written in full, the rest rounded
            turns = np.round(triple / eighth)
            near = np.abs(triple - turns * eighth) < 10.0**-decimals
            yield np.where(near, turns * eighth, np.round(triple, decimals)) + 0.0
        yield triple


def _unit(wxyz: Array) -> Array:
    """As a frame keeps it."""
    norm = float(np.linalg.norm(wxyz))
    return wxyz if abs(norm - 1.0) < 4e-16 else wxyz / norm


def settle(axis: Array, written_again: Callable[[Array], Array]) -> Array:
    """A unit axis in 15 digits that stays what it is when it is read and written again.

    Rounding may carry it to and fro between neighbours; of those the smallest is taken, whichever it started from.
    """
    seen: list[tuple[float, ...]] = []
    now = _rounded(axis)
    while now not in seen:
        seen.append(now)
        now = _rounded(written_again(np.array(now)))
    return np.array(min(seen[seen.index(now) :]))


def _rounded(axis: Array) -> tuple[float, ...]:
    return tuple((np.round(axis, 15) + 0.0).tolist())
