"""`mechanik fk`: forward kinematics, and the parser of joint values on the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.table import Table

from mechanik.cli.file_args import UsageError, open_mechanism
from mechanik.cli.output import add_row, fits_terminal, format_number, make_table, print_json, print_note, print_table
from mechanik.errors import MechanikError, UnknownName
from mechanik.formats.model_check import format_amount
from mechanik.model import Mechanism
from mechanik.spatial import to_position_wxyz
from mechanik.spatial.array import Array

OptionValues = Annotated[list[str] | None, Parameter(consume_multiple=True)]


def fk(
    file: str,
    /,
    *values: str,
    q: OptionValues = None,
    link: list[str] | None = None,
    degrees: bool = False,
    json: bool = False,
) -> None:
    """Compute the poses of the links: position xyz in m, orientation as a quaternion wxyz.

    Joints that are not named keep their value from the file. If the file stores no values, as most URDF files, they
    are at zero, or at the limit nearest to zero.

    For example:

        mechanik fk gallery:planar_2r joint1=0.3 joint2=-0.5
        mechanik fk robot.urdf --q 0.1 -0.2 0.3 0 0 0 --link tool0
        mechanik fk robot.urdf elbow=-90 --degrees --json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    values
        Joint values as NAME=VALUE; NAME=V1,V2,... for a joint with several dofs, or NAME.X=VALUE for a single dof.
    q
        All numbers of q in the order that `mechanik info` shows: `--q -1 2` or `--q=-1,2`.
    link
        Print only this link. Repeat the option for several links.
    degrees
        Angles are given in degrees.
    json
        Print JSON with full precision.
    """
    mechanism = open_mechanism(file)
    for name in link or ():
        mechanism.link(name)
    place = parse_configuration(mechanism, q, values, degrees)
    _remark(mechanism, place)
    names = list(link or mechanism.links)
    positions, turns = to_position_wxyz(mechanism.poses(place, names))
    if json:
        poses = {
            name: {"position": p.tolist(), "wxyz": w.tolist()}
            for name, p, w in zip(names, positions, turns, strict=True)
        }
        joint_values = {name: np.asarray(value).tolist() for name, value in mechanism.values(place).items()}
        print_json({"q": place.tolist(), "values": joint_values, "links": poses})
        return
    table = _pose_table(names, np.hstack([positions, turns]), digits=6)
    print_table(table if fits_terminal(table) else _pose_table(names, np.hstack([positions, turns]), digits=4))


def _pose_table(names: list[str], poses: Array, digits: int) -> Table:
    table = make_table(["link"], ["x", "y", "z", "qw", "qx", "qy", "qz"])
    for name, pose in zip(names, poses, strict=True):
        add_row(table, [name, *(format_number(x, digits) for x in pose)])
    return table


def parse_configuration(
    mechanism: Mechanism, q: list[str] | None, values: Sequence[str], degrees: bool, option: str = "--q"
) -> Array:
    """Parse a configuration (nq,) from command line arguments.

    Args:
        q: all numbers of q, separated by spaces or commas. None: the current configuration of the mechanism.
        values: NAME=VALUE arguments, applied on top of `q`.
        degrees: whether angles are given in degrees.
        option: name of the option that holds `q`, for messages.
    """
    space = mechanism.space
    turns = np.zeros(space.nq, dtype=bool)
    turns[space.scalars_q] = space.rotates[space.scalars_v]
    unit = math.pi / 180 if degrees else 1.0
    try:
        start = mechanism.q
        if q is not None:
            numbers = parse_numbers(",".join(q), option)
            if len(numbers) != space.nq:
                raise UsageError(f"{option} takes {space.nq} numbers ({_few(space.q_names)}), not {len(numbers)}")
            start = np.array(numbers) * np.where(turns, unit, 1.0)
        given: dict[str, list[float] | float] = {}
        for word in values:
            name, equals, text = word.rpartition("=")
            if not equals or not name:
                raise UsageError(f"{word!r} is no NAME=VALUE; numbers without names follow {option}")
            if name in given:
                raise UsageError(f"{name!r} is given twice")
            given[name] = scale_angles(mechanism, name, parse_numbers(text, name), turns, unit)
        return mechanism.configuration(given, start)
    except (UsageError, UnknownName):
        raise
    except MechanikError as error:
        raise UsageError(str(error)) from error


def scale_angles(
    mechanism: Mechanism, name: str, numbers: list[float], is_angle: Array, unit: float
) -> list[float] | float:
    """Multiply the angles among the values of a joint or dof by `unit`; lengths and quaternions stay unchanged.

    Args:
        is_angle: which numbers of q are angles, (nq,) bool.
        unit: rad per unit of the input.
    """
    joint = mechanism.joints.get(name)
    if joint is not None and len(joint.dof) == len(numbers):
        numbers = [x * unit if dof.is_rotation else x for x, dof in zip(numbers, joint.dof, strict=True)]
    elif joint is None and name in mechanism.space.q_names and len(numbers) == 1:
        k = mechanism.space.q_names.index(name)
        numbers = [numbers[0] * unit if is_angle[k] else numbers[0]]
    return numbers[0] if len(numbers) == 1 else numbers


def parse_numbers(text: str, option: str) -> list[float]:
    """Parse finite numbers separated by commas or spaces; raises `UsageError` that names `option`."""
    words = text.replace(",", " ").split()
    numbers: list[float] = []
    for word in words:
        try:
            numbers.append(float(word))
        except ValueError:
            raise UsageError(f"{option}: {word!r} is not a number") from None
        if not math.isfinite(numbers[-1]):
            raise UsageError(f"{option}: {word} is not finite")
    if not numbers:
        raise UsageError(f"{option}: a number is missing")
    return numbers


def _remark(mechanism: Mechanism, q: Array) -> None:
    """Print notes about violated joint limits and open loops, which the poses do not show."""
    space = mechanism.space
    for name, x, low, high in zip(space.q_names, q, space.lower, space.upper, strict=True):
        if not low <= x <= high:
            print_note(f"note: {name} at {x:g} is outside its limits {low:g} to {high:g}")
    if mechanism.closures and bool(space.within_limits(q)):
        mechanism.set_q(q)
        for name, closure in mechanism.closures.items():
            gap = closure.gap()
            if not gap.is_closed(1e-6):
                print_note(
                    f"note: loop {name!r} is open by {format_amount(gap.distance)} m and {format_amount(gap.angle)} rad"
                )


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
