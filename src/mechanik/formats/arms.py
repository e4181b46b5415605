"""Arms as lists: the lengths of the links, and in space the axes about which the joints turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanik.errors import ArmError
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial.array import Array

Limits = Sequence[float] | Sequence[Sequence[float] | None]
TURNS = {"x": DoF.EX, "y": DoF.EY, "z": DoF.EZ}


def arm_2d(lengths: Sequence[float] | Array, *, name: str = "arm_2d", limits: Limits | None = None) -> Mechanism:
    """An arm in the plane z = 0: each joint turns about z, then its link reaches along the turned x.

    The tool is at the product of [[cos, -sin, r cos], [sin, cos, r sin], [0, 0, 1]] over the links.

    Args:
        lengths: of the links, base first; m.
        limits: one pair (lower, upper) for all joints, or one (or None) for each; rad.
    """
    reach = _read_lengths(lengths)
    places = [(0.0, 0.0, 0.0), *((r, 0.0, 0.0) for r in reach)]
    return _chain(name, [DoF.EZ] * len(reach), places, limits)


def arm_3d(
    lengths: Sequence[float] | Array, axes: str | Sequence[str], *, name: str = "arm_3d", limits: Limits | None = None
) -> Mechanism:
    """An arm in space: each length goes along z, then the joint at its end turns about its axis.

    The tool is at the product of Tz(length) R_axis(angle) over the joints: the first length is that of the base,
    and nothing reaches beyond the last joint.

    Args:
        lengths: base first; m.
        axes: a letter for each joint, such as "zyyz".
        limits: one pair (lower, upper) for all joints, or one (or None) for each; rad.
    """
    reach = _read_lengths(lengths)
    turns = _read_axes(axes)
    if len(turns) != len(reach):
        raise ArmError(f"{len(reach)} lengths and {len(turns)} axes were given; there is one of each for every joint")
    return _chain(name, turns, [*((0.0, 0.0, r) for r in reach), (0.0, 0.0, 0.0)], limits)


def _chain(
    name: str, turns: Sequence[DoF], places: Sequence[tuple[float, float, float]], limits: Limits | None
) -> Mechanism:
    """Joints at `places`, each seen from the link before; the last place is the tool's."""
    bounds = _read_limits(limits, len(turns))
    links = [Link(f"link{i}") for i in range(len(turns) + 1)] + [Link("tool")]
    joints = [Joint(f"joint{i + 1}", dof=turn, position=places[i]) for i, turn in enumerate(turns)]
    joints.append(Joint("tool_joint", position=places[-1]))
    for joint, pair in zip(joints, bounds, strict=False):
        if pair is not None:
            joint.set_limits(*pair)
    # from the tip to the base: every piece is hung in while it is a root, so that long arms are built quickly
    for i in reversed(range(len(joints))):
        joints[i].add_child(links[i + 1])
        links[i].add_child(joints[i])
    return Mechanism(links[0], name=name)


def _read_lengths(lengths: Sequence[float] | Array) -> list[float]:
    numbers = _numbers(lengths, "lengths")
    if not numbers:
        raise ArmError("lengths is empty; an arm has at least one link")
    for i, length in enumerate(numbers):
        if not math.isfinite(length):
            raise ArmError(f"length {i + 1} is {length}; it must be finite")
        if length < 0:
            raise ArmError(f"length {i + 1} is {length:g}; it cannot be negative")
    return numbers


def _read_axes(axes: str | Sequence[str]) -> list[DoF]:
    try:
        letters = list(axes)
    except TypeError:
        raise ArmError(f"axes are letters x, y or z, one for each joint, such as 'zyyz', not {axes!r}") from None
    for i, letter in enumerate(letters):
        if letter not in ("x", "y", "z"):
            raise ArmError(f"axis {i + 1} is {letter!r}; a joint turns about x, y or z")
    return [TURNS[letter] for letter in letters]


def _read_limits(limits: Limits | None, count: int) -> list[tuple[float, float] | None]:
    if limits is None:
        return [None] * count
    try:
        given = list(limits)
    except TypeError:
        raise ArmError(f"limits are (lower, upper) for all joints, or one pair for each, not {limits!r}") from None
    if len(given) == 2 and all(isinstance(side, int | float | np.number) for side in given):
        given = [limits] * count
    if len(given) != count:
        raise ArmError(f"limits has {len(given)} entries, but the arm has {count} joints")
    bounds: list[tuple[float, float] | None] = []
    for i, pair in enumerate(given):
        if pair is None:
            bounds.append(None)
            continue
        numbers = _numbers(pair, f"limits of joint {i + 1}")
        if len(numbers) != 2:
            raise ArmError(f"limits of joint {i + 1} are (lower, upper) or None, not {pair!r}")
        lower, upper = numbers
        if math.isnan(lower) or math.isnan(upper):
            raise ArmError(f"limits of joint {i + 1} are {lower} and {upper}; NaN is no limit")
        if lower > upper:
            raise ArmError(f"limits of joint {i + 1}: the lower, {lower:g}, is above the upper, {upper:g}")
        bounds.append((lower, upper))
    return bounds


def _numbers(given: Any, what: str) -> list[float]:
    try:
        listed = list(given)
        if any(isinstance(item, str | bytes) for item in listed):
            raise TypeError
        return [float(item) for item in listed]
    except (TypeError, ValueError):
        raise ArmError(f"{what} must be a list of numbers, not {given!r}") from None
