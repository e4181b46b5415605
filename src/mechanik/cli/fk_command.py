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

    Joints without a given value keep their value in the file. If the file contains no values, as is usual for URDF,
    these joints are at zero, or at the limit nearest to zero.

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
    configuration = parse_configuration(mechanism, q, values, degrees)
    _print_violations(mechanism, configuration)
    names = list(link or mechanism.links)
    positions, quaternions = to_position_wxyz(mechanism.poses(configuration, names))
    if json:
        poses = {
            name: {"position": position.tolist(), "wxyz": wxyz.tolist()}
            for name, position, wxyz in zip(names, positions, quaternions, strict=True)
        }
        joint_values = {name: np.asarray(value).tolist() for name, value in mechanism.values(configuration).items()}
        print_json({"q": configuration.tolist(), "values": joint_values, "links": poses})
        return
    table = _pose_table(names, np.hstack([positions, quaternions]), digits=6)
    print_table(table if fits_terminal(table) else _pose_table(names, np.hstack([positions, quaternions]), digits=4))


def _pose_table(names: list[str], poses: Array, digits: int) -> Table:
    table = make_table(["link"], ["x (m)", "y (m)", "z (m)", "qw", "qx", "qy", "qz"])
    for name, pose in zip(names, poses, strict=True):
        add_row(table, [name, *(format_number(x, digits) for x in pose)])
    return table


def parse_configuration(
    mechanism: Mechanism, q: list[str] | None, values: Sequence[str], degrees: bool, option: str = "--q"
) -> Array:
    """Parse a configuration (nq,) from command line arguments.

    Args:
        q: all numbers of q, separated by spaces or commas. None: the current configuration of the mechanism.
        values: NAME=VALUE arguments, which replace values of the configuration.
        degrees: whether angles are given in degrees.
        option: name of the option of `q`, for messages.
    """
    space = mechanism.space
    is_angle = np.zeros(space.nq, dtype=bool)
    is_angle[space.scalars_q] = space.rotates[space.scalars_v]
    unit = math.pi / 180 if degrees else 1.0
    try:
        start = mechanism.q
        if q is not None:
            numbers = parse_numbers(",".join(q), option)
            if len(numbers) != space.nq:
                raise UsageError(f"{option} takes {space.nq} numbers ({_name_list(space.q_names)}), not {len(numbers)}")
            start = np.array(numbers) * np.where(is_angle, unit, 1.0)
        assigned_values: dict[str, list[float] | float] = {}
        for assignment in values:
            name, equals, text = assignment.rpartition("=")
            if not equals or not name:
                raise UsageError(f"{assignment!r} is not NAME=VALUE; give numbers without names with {option}")
            if name in assigned_values:
                raise UsageError(f"{name!r} is given twice")
            assigned_values[name] = scale_angles(mechanism, name, parse_numbers(text, name), is_angle, unit)
        return mechanism.configuration(assigned_values, start)
    except (UsageError, UnknownName):
        raise
    except MechanikError as error:
        raise UsageError(str(error)) from error


def scale_angles(
    mechanism: Mechanism, name: str, numbers: list[float], is_angle: Array, unit: float
) -> list[float] | float:
    """Multiply the angles in the values of a joint or dof by `unit`; lengths and quaternions stay unchanged.

    Args:
        is_angle: (nq,) bool, whether each number of q is an angle.
        unit: rad per unit of the input.
    """
    joint = mechanism.joints.get(name)
    if joint is not None and len(joint.dof) == len(numbers):
        numbers = [value * unit if dof.is_rotation else value for value, dof in zip(numbers, joint.dof, strict=True)]
    elif joint is None and name in mechanism.space.q_names and len(numbers) == 1:
        k = mechanism.space.q_names.index(name)
        numbers = [numbers[0] * unit if is_angle[k] else numbers[0]]
    return numbers[0] if len(numbers) == 1 else numbers


def parse_numbers(text: str, label: str) -> list[float]:
    """Parse finite numbers separated by commas or spaces; `label` is the start of error messages."""
    words = text.replace(",", " ").split()
    numbers: list[float] = []
    for word in words:
        try:
            numbers.append(float(word))
        except ValueError:
            raise UsageError(f"{label}: {word!r} is not a number") from None
        if not math.isfinite(numbers[-1]):
            raise UsageError(f"{label}: {word} is not finite")
    if not numbers:
        raise UsageError(f"{label}: a number is missing")
    return numbers


def _print_violations(mechanism: Mechanism, q: Array) -> None:
    """Print notes about violated joint limits; if there are none, about loops that are not closed."""
    space = mechanism.space
    is_angle = np.zeros(space.nq, dtype=bool)
    is_angle[space.scalars_q] = space.rotates[space.scalars_v]
    for k, (name, value, low, high) in enumerate(zip(space.q_names, q, space.lower, space.upper, strict=True)):
        if not low <= value <= high:
            unit = "rad" if is_angle[k] else "m"
            print_note(f"note: {name} at {value:g} {unit} is outside its limits {low:g} to {high:g} {unit}")
    if mechanism.closures and bool(space.within_limits(q)):
        mechanism.set_q(q)
        for name, closure in mechanism.closures.items():
            gap = closure.gap()
            if not gap.is_closed(1e-6):  # m and rad
                print_note(
                    f"note: loop {name!r} is not closed: gap {format_amount(gap.distance)} m and "
                    f"{format_amount(gap.angle)} rad"
                )


def _name_list(names: tuple[str, ...]) -> str:
    """Format names with commas; a long list is cut."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
