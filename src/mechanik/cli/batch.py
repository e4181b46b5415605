"""`mechanik batch`: joint values for each of many targets in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from cyclopts import Parameter

from mechanik.cli import FINE, INTERRUPTED
from mechanik.cli.asking import chosen_link, locked_joints, make_solver
from mechanik.cli.avoiding import what_to_avoid
from mechanik.cli.bar import Bar
from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, say, say_with
from mechanik.cli.result_files import result_file, write_result
from mechanik.cli.solve_output import duration
from mechanik.cli.target_files import file_to_read, read_starts, read_targets
from mechanik.cli.usage import UsageError
from mechanik.cli.work_folder import WorkFolder, digest_of_file
from mechanik.errors import ObjectiveError, OtherBatch
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.batch import BatchResult
    from mechanik.objectives import Objective

Words = Annotated[list[str] | None, Parameter(consume_multiple=True)]
FEW = 8
"""Rows that are named where more have the same fault."""


def batch(
    file: str,
    /,
    *,
    targets: str,
    out: str,
    link: str | None = None,
    q0: str | None = None,
    tolerance: float = 1e-6,
    angle_tolerance: float = 1e-6,
    lock: Words = None,
    avoid: Words = None,
    obstacle: Words = None,
    clearance: float = 0.0,
    allow: Words = None,
    restarts: int | None = None,
    threads: int | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> int:
    """Solve for each of many targets, from a file into a file.

    Targets are .npy of (N, 4, 4) poses, (N, 7) positions and quaternions wxyz, or (N, 3) positions; or .npz with one
    such array; or .csv or .parquet with columns x y z, and qw qx qy qz for poses. CSV without a header has these 3 or
    7 columns in this order.

    The result has a row for each target: values of the joints, success, status, errors in m and rad, iterations. It
    replaces an older one when all is done. Ctrl-C keeps what is done, and --resume goes on from there. The exit code
    is 0 if every target has its answer, even if that is that it is out of reach.

    For example:

        mechanik batch robot.urdf --targets poses.npy --out joints.npz
        mechanik batch robot.urdf --link tool0 --targets poses.csv --out joints.csv --tolerance 1e-4
        mechanik batch robot.urdf --targets poses.parquet --out joints.parquet --threads 4 --resume

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    targets
        The file with the targets.
    out
        The file to write, ending in .npz, .csv or .parquet.
    link
        The link to place; not needed where only one is at the end of a chain.
    q0
        A file with starts, (N, nq) or one for all; as the targets, with the joints' names for columns. An .npz of
        an earlier batch will do.
    tolerance
        Metres that count as there; 1e-6 if not given.
    angle_tolerance
        Radians that count as there; 1e-6 if not given.
    lock
        Joints that may not move.
    avoid
        `self`: what is found must keep the links off each other, by the shapes they have for collisions.
    obstacle
        Things that must not be bumped into: NAME=KIND:SIZES@X,Y,Z or @X,Y,Z,ROLL,PITCH,YAW, in m and rad, where the
        name and the turn may be missing. There are box:X,Y,Z, sphere:R, capsule:R,LENGTH and cylinder:R,LENGTH (along
        z), mesh:FILE, and floor, which is solid below.
    clearance
        Metres that everything keeps off everything else; 0 if not given.
    allow
        Pairs of links or obstacles that may touch, such as `hand,table`.
    restarts
        How many further starts are tried for a target; what is usual if not given.
    threads
        How many work at once; as many as there are processors if not given.
    resume
        Go on with what an interrupted batch left beside the file of --out.
    quiet
        No progress bar.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"--threads is at least 1, not {threads}")
    source, first = file_to_read(targets, "targets"), None if q0 is None else file_to_read(q0, "starts")
    target = result_file(out)
    if target in (source.resolve(), None if first is None else first.resolve(), Path(file).resolve()):
        raise UsageError(f"{out} is what is read; write the result to another file")
    mechanism = open_mechanism(file)
    end, locked = chosen_link(mechanism, link), locked_joints(mechanism, lock)
    avoiding = what_to_avoid(mechanism, avoid, obstacle, clearance, allow)
    work = WorkFolder(target)
    work.open(
        {
            "targets": digest_of_file(source),
            "q0": digest_of_file(first),
            "link": end,
            "tolerance": tolerance,
            "angle_tolerance": angle_tolerance,
            "lock": locked,
            "restarts": restarts,
            **_said(avoid=avoid, obstacle=obstacle, clearance=clearance or None, allow=allow),
        },
        resume,
    )
    try:
        with Bar(quiet) as bar:
            bar.begin(f"reading {source.name}")
            wanted = read_targets(source, work.targets, bar)
            starts = None if first is None else read_starts(first, mechanism, len(wanted), work.starts, bar)
            bar.begin("preparing")
            solver = make_solver(mechanism, _goal(end, wanted, tolerance, angle_tolerance), locked, restarts, avoiding)
            bar.begin("solving", len(wanted))
            result = solver.solve_batch(wanted, starts, threads=threads, progress=bar, out=work.result)
            bar.begin(f"writing {target.name}", len(wanted))
            write_result(target, result, _statuses(), bar)
    except KeyboardInterrupt as stopped:
        done = getattr(stopped, "result", None)
        aside("interrupted" if done is None else f"interrupted: {done.done:,} of {len(done):,} targets are done")
        _leave(work)
        return INTERRUPTED
    except OtherBatch as error:
        raise UsageError(f"{work} cannot be gone on with: {error}") from error
    except BaseException:
        _leave(work)
        raise
    _summary(out, end, result)
    work.remove()
    return FINE


def _said(**options: object) -> dict[str, object]:
    """Those that are there."""
    return {name: value for name, value in options.items() if value is not None}


def _leave(work: WorkFolder) -> None:
    """Before its end: keep what is done, and nothing else."""
    if work.holds_rows:
        aside(f"what is done is kept in {work}: the same command with --resume goes on")
    else:
        work.remove()


def _goal(link: str, targets: Array, tolerance: float, angle_tolerance: float) -> Objective:
    from mechanik.objectives import Point, PoseGoal

    try:
        if targets.shape[1:] == (3,):
            return Point(link, np.zeros(3), tolerance=tolerance, angle_tolerance=angle_tolerance)
        return PoseGoal(link, np.eye(4), tolerance=tolerance, angle_tolerance=angle_tolerance)
    except ObjectiveError as error:
        raise UsageError(str(error)) from error


def _statuses() -> list[str]:
    from mechanik.solvers.status import BY_CODE

    return [status.name for status in BY_CODE]


def _summary(out: str, link: str, result: BatchResult) -> None:
    from mechanik.solvers.status import Status

    many, seconds = len(result), result.seconds
    say(f"wrote {out}: {many:,} {'target' if many == 1 else 'targets'} of {link}", style="green")
    for status, times in result.counts.items():
        head = f"{status.name:<10} {times:>12,} {100 * times / many:6.2f} %"
        say_with(head, status.value, 2, style="green" if status is Status.CONVERGED else "yellow")
    if many and seconds > 0:
        say(f"{duration(seconds)}, {many / seconds:,.0f} targets a second")
    for status, what in ((Status.BAD_TARGET, "target"), (Status.BAD_START, "start")):
        rows = result.rows_with(status).tolist()
        if rows:
            aside(f"note: no usable {what} in {_named(rows)} (the first row is 0)")


def _named(rows: Sequence[int]) -> str:
    some = ", ".join(map(str, rows[:FEW])) + (", ..." if len(rows) > FEW else "")
    return f"row {some}" if len(rows) == 1 else f"{len(rows):,} rows: {some}"
