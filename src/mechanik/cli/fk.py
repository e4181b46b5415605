"""`mechanik fk`: where the links are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.table import Table

from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, fits, number, row, say_json, show, table
from mechanik.cli.usage import UsageError
from mechanik.errors import MechanikError, UnknownName
from mechanik.formats.check_motion import amount
from mechanik.mechanism import Mechanism
from mechanik.spatial import to_position_wxyz
from mechanik.spatial.array import Array

Words = Annotated[list[str] | None, Parameter(consume_multiple=True)]


def fk(
    file: str,
    /,
    *values: str,
    q: Words = None,
    link: list[str] | None = None,
    degrees: bool = False,
    json: bool = False,
) -> None:
    """Compute where the links are: position xyz in m, orientation as a quaternion wxyz.

    Joints that are not named stay where a JSON file has them; where a file does not say, as most URDFs, they stay
    at zero, or at the limit nearest to it.

    For example:

        mechanik fk gallery:planar_2r joint1=0.3 joint2=-0.5
        mechanik fk robot.urdf --q 0.1 -0.2 0.3 0 0 0 --link tool0
        mechanik fk robot.urdf elbow=-90 --degrees --json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    values
        Joint values as NAME=VALUE; NAME=V1,V2,... for a joint of several freedoms, or NAME.X=VALUE for one of them.
    q
        All numbers of q in the order that `mechanik info` shows: `--q -1 2` or `--q=-1,2`.
    link
        Only this link; give it again for more.
    degrees
        Angles are given in degrees.
    json
        Print JSON for programs, with every digit.
    """
    mechanism = open_mechanism(file)
    for name in link or ():
        mechanism.link(name)
    place = configuration(mechanism, q, values, degrees)
    _remark(mechanism, place)
    names = list(link or mechanism.links)
    positions, turns = to_position_wxyz(mechanism.poses(place, names))
    if json:
        poses = {
            name: {"position": p.tolist(), "wxyz": w.tolist()}
            for name, p, w in zip(names, positions, turns, strict=True)
        }
        held = {name: np.asarray(value).tolist() for name, value in mechanism.values(place).items()}
        say_json({"q": place.tolist(), "values": held, "links": poses})
        return
    made = _pose_table(names, np.hstack([positions, turns]), digits=6)
    show(made if fits(made) else _pose_table(names, np.hstack([positions, turns]), digits=4))


def _pose_table(names: list[str], poses: Array, digits: int) -> Table:
    made = table(["link"], ["x", "y", "z", "qw", "qx", "qy", "qz"])
    for name, pose in zip(names, poses, strict=True):
        row(made, [name, *(number(x, digits) for x in pose)])
    return made


def configuration(
    mechanism: Mechanism, q: list[str] | None, values: Sequence[str], degrees: bool, option: str = "--q"
) -> Array:
    """q from the words of the command line."""
    space = mechanism.space
    turns = np.zeros(space.nq, dtype=bool)
    turns[space.scalars_q] = space.rotates[space.scalars_v]
    unit = math.pi / 180 if degrees else 1.0
    try:
        start = mechanism.q
        if q is not None:
            numbers = as_numbers(",".join(q), option)
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
            given[name] = _in_units(mechanism, name, as_numbers(text, name), turns, unit)
        return mechanism.configuration(given, start)
    except (UsageError, UnknownName):
        raise
    except MechanikError as error:
        raise UsageError(str(error)) from error


def _in_units(mechanism: Mechanism, name: str, numbers: list[float], turns: Array, unit: float) -> list[float] | float:
    joint = mechanism.joints.get(name)
    if joint is not None and len(joint.dof) == len(numbers):
        numbers = [x * unit if dof.is_rotation else x for x, dof in zip(numbers, joint.dof, strict=True)]
    elif joint is None and name in mechanism.space.q_names and len(numbers) == 1:
        k = mechanism.space.q_names.index(name)
        numbers = [numbers[0] * unit if turns[k] else numbers[0]]
    return numbers[0] if len(numbers) == 1 else numbers


def as_numbers(text: str, what: str) -> list[float]:
    words = text.replace(",", " ").split()
    numbers: list[float] = []
    for word in words:
        try:
            numbers.append(float(word))
        except ValueError:
            raise UsageError(f"{what}: {word!r} is not a number") from None
        if not math.isfinite(numbers[-1]):
            raise UsageError(f"{what}: {word} is not finite")
    if not numbers:
        raise UsageError(f"{what}: a number is missing")
    return numbers


def _remark(mechanism: Mechanism, q: Array) -> None:
    """Say what the poses do not show: broken limits and open loops."""
    space = mechanism.space
    for name, x, low, high in zip(space.q_names, q, space.lower, space.upper, strict=True):
        if not low <= x <= high:
            aside(f"note: {name} at {x:g} is outside its limits {low:g} to {high:g}")
    if mechanism.closures and bool(space.within_limits(q)):
        mechanism.set_q(q)
        for name, closure in mechanism.closures.items():
            gap = closure.gap()
            if not gap.is_shut(1e-6):
                aside(f"note: loop {name!r} stands open by {amount(gap.distance)} m and {amount(gap.angle)} rad")


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
