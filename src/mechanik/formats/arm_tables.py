"""Serial arms from Denavit-Hartenberg (DH) tables and from lists of link lengths and joint axes.

Two conventions are called DH and give different arms. Printed tables also differ in the order of their columns and in
the unit of angles. So `from_dh` has no default for the convention, the columns and the unit.

- "classic" (Denavit and Hartenberg 1955; Paul; Spong): Rz(theta) Tz(d) Tx(a) Rx(alpha).
- "modified" (Craig; Khalil and Kleinfinger): Rx(alpha) Tx(a) Rz(theta) Tz(d).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mechanik.errors import FormatError, MechanikError
from mechanik.model.dof import DoF
from mechanik.model.frame import Link
from mechanik.model.joint import Joint
from mechanik.model.mechanism import Mechanism
from mechanik.spatial import Pose, make_pose, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_point_or_pose, format_count

Convention = Literal["classic", "modified"]
"""The two DH conventions; the docstring of this module defines them."""
RowLimits = Sequence[Sequence[float] | None]
"""(lower, upper) for each row of a DH table, or None for a row without limits."""

COLUMNS = ("d", "a", "alpha", "theta")
IS_REVOLUTE = {"R": True, "REVOLUTE": True, "P": False, "PRISMATIC": False}
"""Whether a joint kind is revolute, by its name in capitals; if not, it is prismatic."""


@dataclass(frozen=True, slots=True)
class DhRow:
    """A row of a DH table, with angles in radians.

    Attributes:
        d: offset along z, m.
        a: link length along x, m.
        alpha: link twist about x, rad.
        theta: joint angle about z, rad.
        is_revolute: whether theta is the joint variable; otherwise d is.
    """

    d: float
    a: float
    alpha: float
    theta: float
    is_revolute: bool

    @property
    def x_transform(self) -> Array:
        """The constant part Tx(a) Rx(alpha), (4, 4); the two factors commute."""
        return make_pose(rotation.about_x(self.alpha), (self.a, 0.0, 0.0))

    @property
    def z_transform(self) -> Array:
        """The part Rz(theta) Tz(d), (4, 4), which contains the joint variable; the two factors commute."""
        return make_pose(rotation.about_z(self.theta), (0.0, 0.0, self.d))


def from_dh(
    rows: Iterable[Sequence[float]] | Array,
    *,
    convention: Convention,
    columns: str | Sequence[str],
    degrees: bool,
    name: str = "",
    kinds: str | Sequence[str] = "revolute",
    theta: Literal["offset", "start"] = "offset",
    limits: RowLimits | None = None,
    values: Sequence[float] | None = None,
    base: ArrayLike | Pose | None = None,
    tool: ArrayLike | Pose | None = None,
    joints: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
) -> Mechanism:
    """Build a serial arm from a Denavit-Hartenberg table. The frame of link i is frame i of the table.

    Args:
        rows: one row for each joint, base first; four numbers each, lengths in m.
        convention: "classic" or "modified". Classic is Rz(theta) Tz(d) Tx(a) Rx(alpha), modified is Rx(alpha) Tx(a)
            Rz(theta) Tz(d).
        columns: the order of the numbers, such as "d a alpha theta".
        degrees: whether the angles in the table, the limits and the values are in degrees; otherwise in radians.
        name: name of the mechanism.
        kinds: "revolute" or "prismatic" for all rows, or one kind for each row, such as "RRPRRR".
        theta: use of the table's value for the joint variable: theta of a revolute row, d of a prismatic row.
            "offset": this value is added to the joint value, so that the arm has the pose of the table at q = 0.
            "start": this value is the initial joint value, so that q is the joint variable of the textbook.
        limits: (lower, upper) for each row, or None for a row without limits; angles as `degrees` says, lengths in m.
        values: initial joint values, one for each row; angles as `degrees` says, lengths in m. By default zero, clamped
            to the limits; with theta="start" the values of the table.
        base: fixed pose (4, 4) or point (3,) of the first frame in the world; m.
        tool: fixed pose (4, 4) or point (3,) of the tool in the last frame; m.
        joints: joint names, one for each row; joint1, joint2, ... by default.
        links: names of the base, of the link of each row and of the tool; link0, link1, ..., tool by default.

    Returns:
        The arm, with a fixed tool link at its end.

    Raises:
        FormatError: an argument is invalid; the message names the argument, or the row of the table.
        StructureError: a joint has the name of the fixed joint of the tool, which is `tool_joint` by default.

    Example:
        >>> rows = [[0, 1.0, 0, 0], [0, 0.8, 0, 90]]
        >>> arm = mk.from_dh(rows, convention="classic", columns="d a alpha theta", degrees=True)
        >>> arm.pose("tool")[:3, 3].round(3).tolist()
        [1.0, 0.8, 0.0]
    """
    if convention not in ("classic", "modified"):
        raise FormatError(f"convention={convention!r}: it must be 'classic' or 'modified'")
    if theta not in ("offset", "start"):
        raise FormatError(f"theta={theta!r}: it must be 'offset' or 'start'")
    if not isinstance(degrees, bool):
        raise FormatError(f"degrees={degrees!r}: it must be True or False")
    table = _read_table(rows, _read_columns(columns), kinds, degrees)
    joint_names = _check_names(joints, [f"joint{i + 1}" for i in range(len(table))], "joints")
    link_names = _check_names(links, [*(f"link{i}" for i in range(len(table) + 1)), "tool"], "links")
    bounds = _read_limits(limits, table, degrees)
    initial_values = _read_values(values, table, degrees, theta, bounds)

    root = last_link = Link(link_names[0])
    root.matrix = _as_pose(base, "base")
    for i, row in enumerate(table):
        joint = Joint(joint_names[i], dof=DoF.EZ if row.is_revolute else DoF.Z)
        link = Link(link_names[i + 1])
        last_link.add_child(joint)
        joint.add_child(link)
        constant_row = _with_zero_variable(row) if theta == "start" else row
        if convention == "classic":
            joint.matrix, link.matrix = constant_row.z_transform, constant_row.x_transform
        else:
            joint.matrix = constant_row.x_transform @ constant_row.z_transform
        joint.set_limits(*bounds[i])
        joint.set_values(initial_values[i])
        last_link = link
    tool_joint = Joint(f"{link_names[-1]}_joint")
    tool_joint.matrix = _as_pose(tool, "tool")
    last_link.add_child(tool_joint)
    tool_joint.add_child(Link(link_names[-1]))
    return Mechanism(root, name=name)


def _with_zero_variable(row: DhRow) -> DhRow:
    """Return the row with a joint variable of 0."""
    return DhRow(
        row.d if row.is_revolute else 0.0, row.a, row.alpha, 0.0 if row.is_revolute else row.theta, row.is_revolute
    )


def _read_columns(columns: str | Sequence[str]) -> tuple[str, ...]:
    names = tuple(columns.replace(",", " ").split()) if isinstance(columns, str) else tuple(columns)
    for name in names:
        if name not in COLUMNS:
            similar_names = difflib.get_close_matches(str(name).lower(), COLUMNS, n=1)
            hint = f"did you mean {similar_names[0]!r}?" if similar_names else "the columns are d, a, alpha and theta"
            raise FormatError(f"columns={columns!r}: {name!r} is not a column of a DH table; {hint}")
        if names.count(name) > 1:
            raise FormatError(f"columns={columns!r}: {name!r} is named {names.count(name)} times")
    if missing_columns := [name for name in COLUMNS if name not in names]:
        raise FormatError(
            f"columns={columns!r} has no {' and no '.join(missing_columns)}; name all four in the order of the table"
        )
    return names


def _read_table(
    rows: Iterable[Sequence[float]] | Array, columns: tuple[str, ...], kinds: str | Sequence[str], degrees: bool
) -> list[DhRow]:
    try:
        row_values = [list(row) for row in rows]
    except TypeError:
        raise FormatError(f"a DH table must be a list of rows with {len(COLUMNS)} numbers each, not {rows!r}") from None
    if not row_values:
        raise FormatError("the DH table has no rows; an arm needs at least one joint")
    revolute_flags = read_joint_kinds(kinds, len(row_values))
    table: list[DhRow] = []
    for i, row in enumerate(row_values):
        if len(row) != len(columns):
            raise FormatError(
                f"row {i + 1} has {format_count(len(row), 'number')} instead of {len(columns)} ({', '.join(columns)})"
            )
        cells = {name: _read_number(cell, f"row {i + 1}, {name}") for name, cell in zip(columns, row, strict=True)}
        radians_per_unit = math.pi / 180 if degrees else 1.0
        table.append(
            DhRow(
                cells["d"],
                cells["a"],
                cells["alpha"] * radians_per_unit,
                cells["theta"] * radians_per_unit,
                revolute_flags[i],
            )
        )
    return table


def read_joint_kinds(kinds: str | Sequence[str], count: int) -> list[bool]:
    """Return whether each of `count` rows of a DH table is revolute; `kinds` is as in `from_dh`.

    Raises:
        FormatError: a kind is unknown, or the number of kinds is not the number of rows.
    """
    is_same_for_all = isinstance(kinds, str) and kinds.upper() in IS_REVOLUTE and (len(kinds) > 1 or count == 1)
    words = [kinds] * count if is_same_for_all else list(kinds)
    for i, word in enumerate(words):
        if not isinstance(word, str) or word.upper() not in IS_REVOLUTE:
            raise FormatError(
                f"row {i + 1}: {word!r} is not a kind of joint; use R (revolute) or P (prismatic) (kinds={kinds!r})"
            )
    if len(words) != count:
        raise FormatError(
            f"kinds={kinds!r} names {format_count(len(words), 'joint')}, but the table has {format_count(count, 'row')}"
        )
    return [IS_REVOLUTE[str(word).upper()] for word in words]


def _read_limits(limits: RowLimits | None, table: Sequence[DhRow], degrees: bool) -> list[tuple[float, float]]:
    if limits is None:
        return [(-math.inf, math.inf)] * len(table)
    _check_count(limits, table, "limits")
    bounds: list[tuple[float, float]] = []
    for i, (pair, row) in enumerate(zip(limits, table, strict=True)):
        if pair is None:
            bounds.append((-math.inf, math.inf))
            continue
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise FormatError(f"row {i + 1}: limits must be (lower, upper) or None, not {pair!r}")
        scale = math.pi / 180 if degrees and row.is_revolute else 1.0
        lower, upper = (_read_number(bound, f"row {i + 1}, limits", allows_infinity=True) * scale for bound in pair)
        if lower > upper:
            raise FormatError(f"row {i + 1}: the lower limit, {pair[0]}, is above the upper limit, {pair[1]}")
        bounds.append((lower, upper))
    return bounds


def _read_values(
    values: Sequence[float] | None,
    table: Sequence[DhRow],
    degrees: bool,
    theta: str,
    bounds: Sequence[tuple[float, float]],
) -> list[float]:
    """Return the initial value of each joint, rad or m.

    Values of the caller or the table must be within the limits; the default, zero, is clamped to them.
    """
    if values is not None:
        _check_count(values, table, "values")
        scales = [math.pi / 180 if degrees and row.is_revolute else 1.0 for row in table]
        initial_values = [
            _read_number(value, f"row {i + 1}, values") * scale
            for i, (value, scale) in enumerate(zip(values, scales, strict=True))
        ]
    elif theta == "start":
        initial_values = [row.theta if row.is_revolute else row.d for row in table]
    else:
        return [min(max(0.0, lower), upper) for lower, upper in bounds]
    for i, (initial_value, (lower, upper)) in enumerate(zip(initial_values, bounds, strict=True)):
        if not lower <= initial_value <= upper:
            unit = "rad" if table[i].is_revolute else "m"
            raise FormatError(
                f"row {i + 1}: the initial value {initial_value:g} {unit} is outside the limits "
                f"{lower:g} to {upper:g} {unit}"
            )
    return initial_values


def _check_names(user_names: Sequence[str] | None, default_names: list[str], label: str) -> list[str]:
    if user_names is None:
        return default_names
    names = [user_names] if isinstance(user_names, str) else list(user_names)
    if len(names) != len(default_names):
        raise FormatError(f"{label}: {format_count(len(names), 'name')} instead of {len(default_names)}")
    for name in names:
        if not isinstance(name, str) or not name:
            raise FormatError(f"{label}: {name!r} is not a name")
        if names.count(name) > 1:
            raise FormatError(f"{label}: {name!r} occurs {names.count(name)} times; names must be unique")
    return names


def _check_count(values: object, table: Sequence[DhRow], label: str) -> None:
    try:
        count = len(values)  # type: ignore[arg-type]
    except TypeError:
        raise FormatError(f"{label} must be a list with one entry for each row, not {values!r}") from None
    if count != len(table):
        raise FormatError(
            f"{label}: the number of entries is {count}, but the table has {format_count(len(table), 'row')}"
        )


def _as_pose(value: ArrayLike | Pose | None, label: str) -> Array:
    try:
        return as_point_or_pose(value, label)
    except MechanikError as error:
        raise FormatError(str(error)) from error


def _read_number(cell: object, location: str, allows_infinity: bool = False) -> float:
    try:
        if isinstance(cell, str | bytes):
            raise TypeError
        number = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise FormatError(f"{location}: {cell!r} is not a number") from None
    if math.isnan(number) or (math.isinf(number) and not allows_infinity):
        raise FormatError(f"{location} is {number}; it must {'not be NaN' if allows_infinity else 'be finite'}")
    return number


ArmLimits = Sequence[float] | Sequence[Sequence[float] | None]
"""One pair (lower, upper) for all joints, or a list with a pair or None for each joint; rad."""
ROTATION_DOFS = {"x": DoF.EX, "y": DoF.EY, "z": DoF.EZ}


def arm_2d(lengths: Sequence[float] | Array, *, name: str = "arm_2d", limits: ArmLimits | None = None) -> Mechanism:
    """Build a planar arm in the plane z = 0 from its link lengths.

    Each joint rotates about z, and its link extends along the rotated x axis. The tool pose in the plane (3x3) is the
    product of [[cos, -sin, r cos], [sin, cos, r sin], [0, 0, 1]] over the links, where r is the link length.

    Args:
        lengths: link lengths, base first; m.
        name: name of the mechanism.
        limits: one pair (lower, upper) for all joints, or a pair or None for each; rad.

    Returns:
        The arm, with links link0, link1, ..., tool and joints joint1, joint2, ...

    Raises:
        FormatError: a length or a limit is invalid.

    Example:
        >>> arm = mk.arm_2d([1.0, 0.8])
        >>> arm.pose("tool")[:3, 3].round(3).tolist()
        [1.8, 0.0, 0.0]
    """
    link_lengths = _read_lengths(lengths)
    positions = [(0.0, 0.0, 0.0), *((length, 0.0, 0.0) for length in link_lengths)]
    return _build_chain(name, [DoF.EZ] * len(link_lengths), positions, limits)


def arm_3d(
    lengths: Sequence[float] | Array,
    axes: str | Sequence[str],
    *,
    name: str = "arm_3d",
    limits: ArmLimits | None = None,
) -> Mechanism:
    """Build a spatial arm from its link lengths and the letters of its joint axes.

    Each link extends along z, and the joint at its end rotates about x, y or z of this link. The tool pose is the
    product of Tz(length) R_axis(angle) over the joints. So the first length belongs to the base, and the tool is at the
    last joint.

    Args:
        lengths: link lengths, base first; m.
        axes: an axis letter x, y or z for each joint, such as "zyyz".
        name: name of the mechanism.
        limits: one pair (lower, upper) for all joints, or a pair or None for each; rad.

    Returns:
        The arm, with links link0, link1, ..., tool and joints joint1, joint2, ...

    Raises:
        FormatError: a length, an axis or a limit is invalid, or their counts differ.

    Example:
        >>> arm = mk.arm_3d([0.3, 0.4, 0.4], "zyy")
        >>> arm.pose("tool")[:3, 3].round(3).tolist()
        [0.0, 0.0, 1.1]
    """
    link_lengths = _read_lengths(lengths)
    dofs = _read_axes(axes)
    if len(dofs) != len(link_lengths):
        raise FormatError(
            f"lengths and axes must have the same number of entries, not {len(link_lengths)} and {len(dofs)}; "
            "each joint needs a length and an axis"
        )
    return _build_chain(name, dofs, [*((0.0, 0.0, length) for length in link_lengths), (0.0, 0.0, 0.0)], limits)


def _build_chain(
    name: str, dofs: Sequence[DoF], positions: Sequence[tuple[float, float, float]], limits: ArmLimits | None
) -> Mechanism:
    """Build a chain of joints. Each position is in the frame of the previous link; the last position is the tool's."""
    bounds = _read_arm_limits(limits, len(dofs))
    links = [Link(f"link{i}") for i in range(len(dofs) + 1)] + [Link("tool")]
    joints = [Joint(f"joint{i + 1}", dof=dof, position=positions[i]) for i, dof in enumerate(dofs)]
    joints.append(Joint("tool_joint", position=positions[-1]))
    for joint, pair in zip(joints, bounds, strict=False):
        if pair is not None:
            joint.set_limits(*pair)
    # from the tip to the base, because adding a parent above a root is cheap even for long arms
    for i in reversed(range(len(joints))):
        joints[i].add_child(links[i + 1])
        links[i].add_child(joints[i])
    return Mechanism(links[0], name=name)


def _read_lengths(lengths: Sequence[float] | Array) -> list[float]:
    numbers = _read_numbers(lengths, "lengths")
    if not numbers:
        raise FormatError("lengths is empty; an arm needs at least one link")
    for i, length in enumerate(numbers):
        if not math.isfinite(length):
            raise FormatError(f"length {i + 1} is {length}; it must be finite")
        if length < 0:
            raise FormatError(f"length {i + 1} is {length:g} m; it cannot be negative")
    return numbers


def _read_axes(axes: str | Sequence[str]) -> list[DoF]:
    try:
        letters = list(axes)
    except TypeError:
        raise FormatError(f"axes must be letters x, y or z, one for each joint, such as 'zyyz', not {axes!r}") from None
    for i, letter in enumerate(letters):
        if letter not in ("x", "y", "z"):
            raise FormatError(f"axis {i + 1} is {letter!r}; it must be x, y or z")
    return [ROTATION_DOFS[letter] for letter in letters]


def _read_arm_limits(limits: ArmLimits | None, count: int) -> list[tuple[float, float] | None]:
    if limits is None:
        return [None] * count
    try:
        pairs = list(limits)
    except TypeError:
        raise FormatError(
            f"limits must be (lower, upper) for all joints, or one pair for each, not {limits!r}"
        ) from None
    if len(pairs) == 2 and all(isinstance(bound, int | float | np.number) for bound in pairs):
        pairs = [limits] * count
    if len(pairs) != count:
        raise FormatError(
            f"limits: the number of entries is {len(pairs)}, but the arm has {format_count(count, 'joint')}"
        )
    bounds: list[tuple[float, float] | None] = []
    for i, pair in enumerate(pairs):
        if pair is None:
            bounds.append(None)
            continue
        numbers = _read_numbers(pair, f"limits of joint {i + 1}")
        if len(numbers) != 2:
            raise FormatError(f"limits of joint {i + 1} must be (lower, upper) or None, not {pair!r}")
        lower, upper = numbers
        if math.isnan(lower) or math.isnan(upper):
            raise FormatError(f"limits of joint {i + 1} are {lower} and {upper}; they must not be NaN")
        if lower > upper:
            raise FormatError(
                f"limits of joint {i + 1}: the lower limit, {lower:g} rad, is above the upper limit, {upper:g} rad"
            )
        bounds.append((lower, upper))
    return bounds


def _read_numbers(values: Any, label: str) -> list[float]:
    try:
        items = list(values)
        if any(isinstance(item, str | bytes) for item in items):
            raise TypeError
        return [float(item) for item in items]
    except (TypeError, ValueError):
        raise FormatError(f"{label} must be a list of numbers, not {values!r}") from None
