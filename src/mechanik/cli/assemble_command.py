"""`mechanik assemble`: close the loops of a mechanism with its driven joints at given values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

from mechanik.cli import EXIT_FAILED, EXIT_OK
from mechanik.cli.file_args import UsageError, open_mechanism
from mechanik.cli.fk_command import parse_numbers, scale_angles
from mechanik.cli.model_commands import model_output_path
from mechanik.cli.output import (
    add_row,
    format_number,
    make_table,
    print_json,
    print_labelled,
    print_note,
    print_out,
    print_table,
)
from mechanik.cli.solve_args import parse_start
from mechanik.cli.solve_command import angle_mask
from mechanik.errors import MechanikError, UnknownName
from mechanik.formats import save
from mechanik.model import Mechanism
from mechanik.spatial.array import Array
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.closure import Assembly, AssemblyModes

OptionValues = Annotated[list[str] | None, Parameter(consume_multiple=True)]
MAX_MODE_COLUMNS = 6
"""Largest number of assembly modes in a table."""


def assemble(
    file: str,
    /,
    *,
    drive: OptionValues = None,
    q0: OptionValues = None,
    degrees: bool = False,
    all: bool = False,
    limit: int | None = None,
    out: str | None = None,
    force: bool = False,
    json: bool = False,
) -> int:
    """Close the loops of a mechanism with its driven joints at given values.

    The driven joints move continuously from the start to their values, so the mechanism stays on the branch of the
    start. The exit code is 0 if all driven joints reach their values with closed loops. Otherwise it is 1, and the
    closest configuration on this branch is shown. With --all it is 0 if an assembly mode is found.

    For example:

        mechanik assemble gallery:four_bar --drive crank_joint=1.2
        mechanik assemble gallery:four_bar --drive crank_joint=40 --degrees --all
        mechanik assemble robot.json --drive leg1=0.31 leg2=0.29 --json
        mechanik assemble open.json --out closed.json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    drive
        Values of the driven joints as NAME=VALUE; NAME=V1,V2,... for a joint with several dofs, or NAME.X=VALUE for
        a single dof. Without this option only the loops are closed.
    q0
        Start configuration; its loops need not be closed. All numbers of q in the order that `mechanik info` shows, or
        NAME=VALUE for single joints. Default: the configuration in FILE.
    degrees
        Angles are given in degrees.
    all
        Show all assembly modes with these driven joint values, nearest to the start first.
    limit
        With --all: largest number of assembly modes to show.
    out
        Save the assembled mechanism to this .json or .urdf file. Nothing is written if the assembly fails.
    force
        With --out: replace an existing file.
    json
        Print JSON with full precision.
    """
    if limit is not None and (not all or limit < 1):
        raise UsageError("--limit needs --all, and must be at least 1")
    if all and out is not None:
        raise UsageError("--out saves a single assembly: use either --all or --out")
    out_path = None if out is None else model_output_path(out, force)
    mechanism = open_mechanism(file)
    inputs = _parse_inputs(mechanism, drive or [], degrees)
    start = parse_start(mechanism, q0, degrees)
    try:
        if all:
            modes = mechanism.assembly_modes(inputs, start, limit=limit)
            _print_modes(mechanism, modes, json)
            return EXIT_OK if len(modes) else EXIT_FAILED
        assembly = mechanism.assemble(inputs, start)
    except UnknownName:
        raise
    except MechanikError as error:
        raise UsageError(str(error)) from error
    losses = None if out_path is None or not assembly.success else _save_mechanism(assembly, out_path)
    _print_assembly(assembly, json, None if losses is None else out)
    if losses is None and out is not None:
        print_note(f"note: {out} is not written, because the assembly failed")
    for text in losses or ():
        print_note(f"note: {text}")
    return EXIT_OK if assembly.success else EXIT_FAILED


def _parse_inputs(mechanism: Mechanism, assignments: list[str], degrees: bool) -> dict[str, list[float] | float]:
    """Parse NAME=VALUE arguments to values of driven joints by name, rad or m."""
    inputs: dict[str, list[float] | float] = {}
    for assignment in assignments:
        name, equals, text = assignment.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--drive takes NAME=VALUE, not {assignment!r}")
        if name in inputs:
            raise UsageError(f"--drive: {name!r} is given twice")
        unit = math.pi / 180 if degrees else 1.0
        inputs[name] = scale_angles(mechanism, name, parse_numbers(text, name), angle_mask(mechanism), unit)
    return inputs


def _save_mechanism(assembly: Assembly, path: Path) -> list[str]:
    """Save the assembled mechanism; return messages about everything that the file format cannot express."""
    mechanism = assembly.mechanism
    mechanism.apply(assembly)
    for closure in mechanism.closures.values():
        closure.update_joint()
    return save(mechanism, path)


def _print_assembly(assembly: Assembly, json: bool, out: str | None = None) -> None:
    """Print an assembly as text or JSON; `out` is the file to which it was saved."""
    mechanism = assembly.mechanism
    if json:
        print_json(
            {
                "success": assembly.success,
                "status": assembly.status.name,
                "message": assembly.message,
                "q": assembly.q.tolist(),
                "values": _values_data(mechanism, assembly.q),
                "input_errors": dict(assembly.input_errors),
                "closure_errors": {
                    name: {"position": error.position, "rotation": error.rotation}
                    for name, error in assembly.closure_errors.items()
                },
                "singularities": [
                    {"kind": singularity.kind, "q": singularity.q.tolist()} for singularity in assembly.singularities
                ],
                "singular": None if assembly.singular.unknown else list(assembly.singular.kinds),
                **({} if out is None else {"out": out}),
            }
        )
        return
    _print_configurations(mechanism, assembly.q[None], ["value"])
    print_out()
    if assembly.success:
        print_labelled("assembled:", assembly.message, 2, style="green")
    else:
        print_labelled(f"not assembled ({assembly.status.name}):", assembly.message, 2, style="red")
    for singularity in assembly.singularities:
        input_texts = ", ".join(f"{name} = {_format_input(mechanism, name, singularity.q)}" for name in assembly.inputs)
        print_out(f"{singularity.kind} on the path, at {input_texts}" if input_texts else singularity.kind)
    if assembly.singular:
        print_labelled("the configuration is singular:", ", ".join(assembly.singular.kinds), 2)
    errors = assembly.closure_errors.values()
    position_error = max((error.position for error in errors), default=0.0)
    rotation_error = max((error.rotation for error in errors), default=0.0)
    print_out(
        f"{format_count(len(mechanism.closures), 'loop')}, largest closure error {position_error:.2g} m and "
        f"{rotation_error:.2g} rad"
    )
    if out is not None:
        print_out(f"wrote {out}")


def _print_modes(mechanism: Mechanism, modes: AssemblyModes, json: bool) -> None:
    """Print all assembly modes as tables or JSON."""
    if json:
        print_json(
            {
                "success": bool(len(modes)),
                "explanation": modes.explanation,
                "redundancy": modes.redundancy,
                "legs": list(modes.legs),
                "chance_of_more": modes.chance_of_more,
                "modes": [
                    {
                        "q": q.tolist(),
                        "values": _values_data(mechanism, q),
                        "distance": float(distance),
                        "hits": int(hits),
                    }
                    for q, distance, hits in zip(modes.q, modes.distance, modes.hit_counts, strict=True)
                ],
            }
        )
        return
    for first_mode in range(0, len(modes), MAX_MODE_COLUMNS):
        table_q = modes.q[first_mode : first_mode + MAX_MODE_COLUMNS]
        _print_configurations(mechanism, table_q, [str(first_mode + k + 1) for k in range(len(table_q))])
        print_out()
    if not len(modes):
        print_labelled("no assembly mode:", modes.explanation, 2, style="red")
        return
    print_labelled(f"{format_count(len(modes), 'assembly mode')}:", "nearest to the start first", 2, style="green")
    print_labelled("found:", modes.explanation, 2)


def _print_configurations(mechanism: Mechanism, q: Array, titles: list[str]) -> None:
    """Print a table with a column for each configuration q (N, nq)."""
    table = make_table(["joint"], titles)
    for k, name in enumerate(mechanism.space.q_names):
        add_row(table, [name, *(format_number(float(value)) for value in q[:, k])])
    print_table(table)


def _format_input(mechanism: Mechanism, name: str, q: Array) -> str:
    """Format the value of a driven joint at q, rad or m; "?" for a joint that closes a loop, which is not in q."""
    values = mechanism.values(q)
    if name not in values:
        return format_number(float(q[mechanism.space.q_names.index(name)])) if name in mechanism.space.q_names else "?"
    return " ".join(format_number(float(component)) for component in np.atleast_1d(values[name]))


def _values_data(mechanism: Mechanism, q: Array) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in mechanism.values(q).items()}
