"""Denavit-Hartenberg tables: a serial arm as four numbers a joint.

Two conventions carry the same name and give different arms, and tables in print differ in the order of their
columns and in their unit of angle. So none of these has a default; each is asked for.

- "classic" (Denavit and Hartenberg 1955; Paul; Spong): Rz(theta) Tz(d) Tx(a) Rx(alpha).
- "modified" (Craig; Khalil and Kleinfinger): Rx(alpha) Tx(a) Rz(theta) Tz(d).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mechanik.errors import DHError, MechanikError
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.placing import as_place
from mechanik.spatial import Pose, make, rotation
from mechanik.spatial.array import Array, ArrayLike

Convention = Literal["classic", "modified"]
Limits = Sequence[Sequence[float] | None]

COLUMNS = ("d", "a", "alpha", "theta")
KINDS = {"R": True, "REVOLUTE": True, "P": False, "PRISMATIC": False}
"""Whether a kind of row turns."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row with its angles in radians. `turns` says whether theta or d is the joint's own number."""

    d: float
    a: float
    alpha: float
    theta: float
    turns: bool

    @property
    def along_x(self) -> Array:
        """Tx(a) Rx(alpha), which commute: the part that does not move."""
        return make(rotation.turn_x(self.alpha), (self.a, 0.0, 0.0))

    @property
    def along_z(self) -> Array:
        """Rz(theta) Tz(d), which commute: the part that the joint adds to."""
        return make(rotation.turn_z(self.theta), (0.0, 0.0, self.d))


def from_dh(
    rows: Iterable[Sequence[float]] | Array,
    *,
    convention: Convention,
    columns: str | Sequence[str],
    degrees: bool,
    name: str = "",
    kinds: str | Sequence[str] = "revolute",
    theta: Literal["offset", "start"] = "offset",
    limits: Limits | None = None,
    values: Sequence[float] | None = None,
    base: ArrayLike | Pose | None = None,
    tool: ArrayLike | Pose | None = None,
    joints: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
) -> Mechanism:
    """A serial arm from its table. The frame of link i is the table's frame i.

    Args:
        rows: one for each joint, base first; four numbers each, lengths in m.
        convention: "classic" or "modified"; see the top of this file.
        columns: the order of the numbers, such as "d a alpha theta".
        degrees: whether angles (in the table, the limits and the values) are in degrees, or in radians.
        kinds: "revolute" or "prismatic" for all rows, or one for each, such as "RRPRRR".
        theta: what the table says of the number that moves, theta of a revolute row and d of a prismatic one.
            "offset": it is added to the joint's value, so that at q = 0 the arm stands as the table says.
            "start": it is the value at which the joint starts, so that q is the theta of the textbook.
        limits: (lower, upper) for each row, or None where there are none.
        values: where the joints start, one for each row; by default zero, or what theta="start" says.
        base, tool: fixed poses (or points) before the first and after the last frame.
        joints: names, one for each row; joint1, joint2, ... by default.
        links: names of the base, of each row's link and of the tool; link0, link1, ..., tool by default.
    """
    if convention not in ("classic", "modified"):
        raise DHError(f"convention={convention!r}: say 'classic' or 'modified'; the two give different arms")
    if theta not in ("offset", "start"):
        raise DHError(f"theta={theta!r}: say 'offset' or 'start'")
    if not isinstance(degrees, bool):
        raise DHError(f"degrees={degrees!r}: say True or False")
    table = _read_table(rows, _read_columns(columns), kinds, degrees)
    joint_names = _names(joints, [f"joint{i + 1}" for i in range(len(table))], "joints")
    link_names = _names(links, [*(f"link{i}" for i in range(len(table) + 1)), "tool"], "links")
    bounds = _read_limits(limits, table, degrees)
    starts = _read_values(values, table, degrees, theta, bounds)

    root = below = Link(link_names[0])
    root.matrix = _place(base, "base")
    for i, row in enumerate(table):
        joint = Joint(joint_names[i], dof=DoF.EZ if row.turns else DoF.Z)
        link = Link(link_names[i + 1])
        below.add_child(joint)
        joint.add_child(link)
        still = _without_start(row) if theta == "start" else row
        if convention == "classic":
            joint.matrix, link.matrix = still.along_z, still.along_x
        else:
            joint.matrix = still.along_x @ still.along_z
        joint.set_limits(*bounds[i])
        joint.set_values(starts[i])
        below = link
    end = Joint(f"{link_names[-1]}_joint")
    end.matrix = _place(tool, "tool")
    below.add_child(end)
    end.add_child(Link(link_names[-1]))
    return Mechanism(root, name=name)


def _without_start(row: Row) -> Row:
    return Row(0.0 if not row.turns else row.d, row.a, row.alpha, 0.0 if row.turns else row.theta, row.turns)


def _read_columns(columns: str | Sequence[str]) -> tuple[str, ...]:
    names = tuple(columns.replace(",", " ").split()) if isinstance(columns, str) else tuple(columns)
    for name in names:
        if name not in COLUMNS:
            near = difflib.get_close_matches(str(name).lower(), COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "there are d, a, alpha and theta"
            raise DHError(f"columns={columns!r}: {name!r} is no column of a DH table; {hint}")
        if names.count(name) > 1:
            raise DHError(f"columns={columns!r}: {name!r} is named {names.count(name)} times")
    if missing := [name for name in COLUMNS if name not in names]:
        raise DHError(f"columns={columns!r}: {', '.join(missing)} is missing; name all of d, a, alpha, theta in order")
    return names


def _read_table(
    rows: Iterable[Sequence[float]] | Array, columns: tuple[str, ...], kinds: str | Sequence[str], degrees: bool
) -> list[Row]:
    try:
        listed = [list(row) for row in rows]
    except TypeError:
        raise DHError(f"a DH table is a list of rows with {len(COLUMNS)} numbers each, not {rows!r}") from None
    if not listed:
        raise DHError("the DH table has no rows; an arm has at least one joint")
    turning = _read_kinds(kinds, len(listed))
    table: list[Row] = []
    for i, row in enumerate(listed):
        if len(row) != len(columns):
            raise DHError(f"row {i + 1} has {len(row)} numbers, not one for each of {', '.join(columns)}")
        cells = {name: _number(cell, f"row {i + 1}, {name}") for name, cell in zip(columns, row, strict=True)}
        unit = math.pi / 180 if degrees else 1.0
        table.append(Row(cells["d"], cells["a"], cells["alpha"] * unit, cells["theta"] * unit, turning[i]))
    return table


def _read_kinds(kinds: str | Sequence[str], count: int) -> list[bool]:
    whole = isinstance(kinds, str) and kinds.upper() in KINDS and (len(kinds) > 1 or count == 1)
    words = [kinds] * count if whole else list(kinds)
    for i, word in enumerate(words):
        if not isinstance(word, str) or word.upper() not in KINDS:
            raise DHError(f"row {i + 1}: {word!r} is no kind of joint; R turns and P slides (kinds={kinds!r})")
    if len(words) != count:
        raise DHError(f"kinds={kinds!r} names {len(words)} joints, but the table has {count} rows")
    return [KINDS[str(word).upper()] for word in words]


def _read_limits(limits: Limits | None, table: Sequence[Row], degrees: bool) -> list[tuple[float, float]]:
    if limits is None:
        return [(-math.inf, math.inf)] * len(table)
    _check_count(limits, table, "limits")
    bounds: list[tuple[float, float]] = []
    for i, (pair, row) in enumerate(zip(limits, table, strict=True)):
        if pair is None:
            bounds.append((-math.inf, math.inf))
            continue
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise DHError(f"row {i + 1}: limits are (lower, upper) or None, not {pair!r}")
        unit = math.pi / 180 if degrees and row.turns else 1.0
        lower, upper = (_number(side, f"row {i + 1}, limits", infinite=True) * unit for side in pair)
        if lower > upper:
            raise DHError(f"row {i + 1}: the lower limit, {pair[0]}, is above the upper, {pair[1]}")
        bounds.append((lower, upper))
    return bounds


def _read_values(
    values: Sequence[float] | None,
    table: Sequence[Row],
    degrees: bool,
    theta: str,
    bounds: Sequence[tuple[float, float]],
) -> list[float]:
    """Where each joint starts. Only what was said has to lie within the limits; a silent zero is brought inside."""
    if values is not None:
        _check_count(values, table, "values")
        units = [math.pi / 180 if degrees and row.turns else 1.0 for row in table]
        starts = [
            _number(v, f"row {i + 1}, values") * unit for i, (v, unit) in enumerate(zip(values, units, strict=True))
        ]
    elif theta == "start":
        starts = [row.theta if row.turns else row.d for row in table]
    else:
        return [min(max(0.0, lower), upper) for lower, upper in bounds]
    for i, (start, (lower, upper)) in enumerate(zip(starts, bounds, strict=True)):
        if not lower <= start <= upper:
            raise DHError(f"row {i + 1} starts at {start:g}, outside its limits {lower:g} to {upper:g}")
    return starts


def _names(given: Sequence[str] | None, default: list[str], what: str) -> list[str]:
    if given is None:
        return default
    names = [given] if isinstance(given, str) else list(given)
    if len(names) != len(default):
        raise DHError(f"{what}: {len(names)} names were given, but {len(default)} are needed")
    for name in names:
        if not isinstance(name, str) or not name:
            raise DHError(f"{what}: {name!r} is no name")
        if names.count(name) > 1:
            raise DHError(f"{what}: {name!r} is given {names.count(name)} times; names must be unique")
    return names


def _check_count(given: object, table: Sequence[Row], what: str) -> None:
    try:
        count = len(given)  # type: ignore[arg-type]
    except TypeError:
        raise DHError(f"{what} has one entry for each row, and is not {given!r}") from None
    if count != len(table):
        raise DHError(f"{what} has {count} entries, but the table has {len(table)} rows")


def _place(at: ArrayLike | Pose | None, what: str) -> Array:
    try:
        return as_place(at, what)
    except MechanikError as error:
        raise DHError(str(error)) from error


def _number(cell: object, where: str, infinite: bool = False) -> float:
    try:
        if isinstance(cell, str | bytes):
            raise TypeError
        number = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise DHError(f"{where}: {cell!r} is not a number") from None
    if math.isnan(number) or (math.isinf(number) and not infinite):
        raise DHError(f"{where} is {number}; it must be finite")
    return number
