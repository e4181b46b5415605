"""`mechanik assemble`: a mechanism with loops, put together with some joints at given values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

from mechanik.cli import FINE, NO
from mechanik.cli.asking import start_at
from mechanik.cli.convert import _target
from mechanik.cli.fk import _in_units, as_numbers
from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, count, number, row, say, say_json, say_with, show, table
from mechanik.cli.solve_output import turning
from mechanik.cli.usage import UsageError
from mechanik.errors import MechanikError, UnknownName
from mechanik.formats import save
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.assembly import Assembly, AssemblyModes

Words = Annotated[list[str] | None, Parameter(consume_multiple=True)]
MOST_SIDE_BY_SIDE = 6


def assemble(
    file: str,
    /,
    *,
    drive: Words = None,
    q0: Words = None,
    degrees: bool = False,
    all: bool = False,
    limit: int | None = None,
    out: str | None = None,
    force: bool = False,
    json: bool = False,
) -> int:
    """Put a mechanism with loops together: some joints drive, the loops are shut, and the rest follows.

    The drives are taken from where they are to their values, so it stays on the branch on which it starts. The exit
    code is 0 if all drives are met, and 1 if not; then the nearest that this branch comes to is shown.

    For example:

        mechanik assemble gallery:four_bar --drive crank_joint=1.2
        mechanik assemble gallery:four_bar --drive crank_joint=40 --degrees --all
        mechanik assemble robot.json --drive leg1=0.31 leg2=0.29 --json
        mechanik assemble open.json --out shut.json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    drive
        Joint values as NAME=VALUE; NAME=V1,V2,... for a joint of several freedoms, or NAME.X=VALUE for one of them.
        If not given, the loops are shut and that is all.
    q0
        Where to start, even with loops open: all numbers of q in the order that `mechanik info` shows, or NAME=VALUE
        for some joints. If not given, where the mechanism stands.
    degrees
        Angles are given in degrees.
    all
        Show all ways to put it together with these drives, nearest to the start first.
    limit
        With --all: show at most that many.
    out
        Save the mechanism as it stands then, to a .json or .urdf file; not if it is not assembled.
    force
        With --out: replace a file that exists.
    json
        Print JSON for programs, with every digit.
    """
    if limit is not None and (not all or limit < 1):
        raise UsageError("--limit goes with --all, and is at least 1")
    if all and out is not None:
        raise UsageError("--out saves one assembly: leave out --all, or --out")
    target = None if out is None else _target(out, force)
    mechanism = open_mechanism(file)
    values = _drives(mechanism, drive or [], degrees)
    start = start_at(mechanism, q0, degrees)
    try:
        if all:
            modes = mechanism.assembly_modes(values, start, limit=limit)
            _tell_modes(mechanism, modes, json)
            return FINE if len(modes) else NO
        found = mechanism.assemble(values, start)
    except UnknownName:
        raise
    except MechanikError as error:
        raise UsageError(str(error)) from error
    saved = None if target is None or not found.success else _save(found, target)
    _tell(found, json, None if saved is None else out)
    if saved is None and out is not None:
        aside(f"note: {out} is not written, since it is not assembled")
    for text in saved or ():
        aside(f"note: {text}")
    return FINE if found.success else NO


def _drives(mechanism: Mechanism, words: list[str], degrees: bool) -> dict[str, list[float] | float]:
    given: dict[str, list[float] | float] = {}
    for word in words:
        name, equals, text = word.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--drive takes NAME=VALUE, not {word!r}")
        if name in given:
            raise UsageError(f"{name!r} is given twice")
        unit = math.pi / 180 if degrees else 1.0
        given[name] = _in_units(mechanism, name, as_numbers(text, name), turning(mechanism), unit)
    return given


def _save(found: Assembly, target: Path) -> list[str]:
    """Write the mechanism as it is assembled; returns what the file does not hold."""
    mechanism = found.mechanism
    mechanism.apply(found)
    for closure in mechanism.closures.values():
        closure.settle()
    return save(mechanism, target)


def _tell(found: Assembly, json: bool, out: str | None = None) -> None:
    mechanism = found.mechanism
    if json:
        say_json(
            {
                "success": found.success,
                "status": found.status.name,
                "message": found.message,
                "q": found.q.tolist(),
                "values": _values(mechanism, found.q),
                "drive_errors": dict(found.drive_errors),
                "closure_errors": {
                    name: {"position": error.position, "rotation": error.rotation}
                    for name, error in found.closure_errors.items()
                },
                "passed": [{"kind": one.kind, "q": one.q.tolist()} for one in found.passed],
                "singular": None if found.singular.unknown else list(found.singular.kinds),
                **({} if out is None else {"out": out}),
            }
        )
        return
    _show_columns(mechanism, found.q[None], ["value"])
    say()
    if found.success:
        say_with("assembled:", found.message, 2, style="green")
    else:
        say_with(f"not assembled ({found.status.name}):", found.message, 2, style="red")
    for one in found.passed:
        near = ", ".join(f"{name} at {_text(mechanism, name, one.q)}" for name in found.drive)
        say(f"{one.kind} on the way, {near}" if near else one.kind)
    if found.singular:
        say_with("the pose is singular:", ", ".join(found.singular.kinds), 2)
    errors = found.closure_errors.values()
    worst = max((error.position for error in errors), default=0.0)
    angle = max((error.rotation for error in errors), default=0.0)
    say(f"{count(len(mechanism.closures), 'loop')}, open by {worst:.2g} m and {angle:.2g} rad at most")
    if out is not None:
        say(f"wrote {out}")


def _tell_modes(mechanism: Mechanism, modes: AssemblyModes, json: bool) -> None:
    if json:
        say_json(
            {
                "success": bool(len(modes)),
                "complete": modes.complete,
                "why": modes.why,
                "redundant": modes.redundant,
                "chance_of_more": modes.chance_of_more,
                "modes": [
                    {"q": q.tolist(), "values": _values(mechanism, q), "distance": float(far), "found": int(found)}
                    for q, far, found in zip(modes.q, modes.distance, modes.found, strict=True)
                ],
            }
        )
        return
    for first in range(0, len(modes), MOST_SIDE_BY_SIDE):
        some = modes.q[first : first + MOST_SIDE_BY_SIDE]
        _show_columns(mechanism, some, [str(first + k + 1) for k in range(len(some))])
        say()
    if not len(modes):
        say_with("no assembly mode:", modes.why, 2, style="red")
        return
    say_with(f"{count(len(modes), 'assembly mode')}:", "nearest to the start first", 2, style="green")
    say_with("found:", modes.why, 2)


def _show_columns(mechanism: Mechanism, q: Array, heads: list[str]) -> None:
    made = table(["joint"], heads)
    for k, name in enumerate(mechanism.space.q_names):
        row(made, [name, *(number(float(x)) for x in q[:, k])])
    show(made)


def _text(mechanism: Mechanism, name: str, q: Array) -> str:
    """The value of a drive at q; nothing is known of joints that close a loop."""
    values = mechanism.values(q)
    if name not in values:
        return number(float(q[mechanism.space.q_names.index(name)])) if name in mechanism.space.q_names else "?"
    return " ".join(number(float(x)) for x in np.atleast_1d(values[name]))


def _values(mechanism: Mechanism, q: Array) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in mechanism.values(q).items()}
