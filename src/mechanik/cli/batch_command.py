"""`mechanik batch`: solve for every target in a file and write the solutions to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from cyclopts import Parameter

from mechanik.cli import EXIT_INTERRUPTED, EXIT_OK
from mechanik.cli.batch_files import (
    BatchWorkFolder,
    file_digest,
    input_path,
    read_starts,
    read_targets,
    result_path,
    write_result,
)
from mechanik.cli.file_args import UsageError, open_mechanism
from mechanik.cli.output import ProgressBar, print_labelled, print_note, print_out
from mechanik.cli.solve_args import make_solver, parse_collision_args, parse_locked_joints, select_tip_link
from mechanik.cli.solve_command import format_duration
from mechanik.errors import BatchMismatch, ObjectiveError
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.objectives import Objective
    from mechanik.solver.batch import BatchResult

OptionValues = Annotated[list[str] | None, Parameter(consume_multiple=True)]
MAX_LISTED_ROWS = 8
"""Largest number of unusable rows that a note lists by index."""


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
    lock: OptionValues = None,
    avoid: OptionValues = None,
    obstacle: OptionValues = None,
    clearance: float = 0.0,
    allow: OptionValues = None,
    restarts: int | None = None,
    threads: int | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> int:
    """Solve for every target in a file and write the solutions to a file.

    Targets: a .npy file with (N, 4, 4) poses, (N, 7) positions and quaternions wxyz, or (N, 3) positions; a .npz file
    with a single such array, or with an array called targets; or a text file (.csv, .tsv, .txt) or .parquet file with
    the columns x y z, and for poses also qw qx qy qz. A text file without a header has these 3 or 7 columns in this
    order.

    The result has one row per target: joint values, success, status, errors in m and rad, iterations. It replaces an
    older result when the batch is complete. After Ctrl-C, --resume continues with the remaining targets. The exit code
    is 0 if all targets are processed, even if targets are out of reach.

    For example:

        mechanik batch robot.urdf --targets poses.npy --out joints.npz
        mechanik batch robot.urdf --link tool0 --targets poses.csv --out joints.csv --tolerance 1e-4
        mechanik batch robot.urdf --targets poses.parquet --out joints.parquet --threads 4 --resume

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    targets
        File with the targets.
    out
        File to write: .npz, .csv or .parquet.
    link
        Link that must reach the targets. Not needed if the mechanism has a single tip link.
    q0
        File with start configurations: (N, nq), or (nq,) for all targets. Same formats as the targets, with joint
        names as columns. The .npz result of an earlier batch can be used, too.
    tolerance
        Position tolerance in m. Default: 1e-6.
    angle_tolerance
        Angle tolerance in rad. Default: 1e-6.
    lock
        Joints, or dofs such as base.X, that must not move.
    avoid
        `self`: reject solutions in which links collide with each other, by their collision shapes.
    obstacle
        Obstacles to avoid, as NAME=KIND:SIZES@X,Y,Z or NAME=KIND:SIZES@X,Y,Z,ROLL,PITCH,YAW in m and rad. Name,
        position (default: the origin) and rotation are optional. Kinds: box:X,Y,Z, sphere:R, capsule:R,LENGTH and
        cylinder:R,LENGTH (both along z), mesh:FILE, and floor (solid below its plane).
    clearance
        Minimum distance of all checked pairs in m. Default: 0.
    allow
        Pairs of links or obstacles that may touch, for example `hand,table`.
    restarts
        Maximum number of restarts per target. Default: chosen by the solver.
    threads
        Number of threads. Default: all processors.
    resume
        Continue an interrupted batch. Its finished rows are in a folder next to the file of --out.
    quiet
        Show no progress bar.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"--threads must be at least 1, not {threads}")
    targets_path, starts_path = input_path(targets, "targets"), None if q0 is None else input_path(q0, "starts")
    result_file = result_path(out)
    if result_file in (
        targets_path.resolve(),
        None if starts_path is None else starts_path.resolve(),
        Path(file).resolve(),
    ):
        raise UsageError(f"{out} is an input file of this command; write the result to another file")
    mechanism = open_mechanism(file)
    tip_link, locked_names = select_tip_link(mechanism, link), parse_locked_joints(mechanism, lock)
    collision_args = parse_collision_args(mechanism, avoid, obstacle, clearance, allow)
    work_folder = BatchWorkFolder(result_file)
    work_folder.open(
        {
            "targets": file_digest(targets_path),
            "q0": file_digest(starts_path),
            "link": tip_link,
            "tolerance": tolerance,
            "angle_tolerance": angle_tolerance,
            "lock": locked_names,
            "restarts": restarts,
            **_without_none(avoid=avoid, obstacle=obstacle, clearance=clearance or None, allow=allow),
        },
        resume,
    )
    try:
        with ProgressBar(quiet) as bar:
            bar.start_phase(f"reading {targets_path.name}")
            target_rows = read_targets(targets_path, work_folder.targets_path, bar)
            starts = (
                None
                if starts_path is None
                else read_starts(starts_path, mechanism, len(target_rows), work_folder.starts_path, bar)
            )
            bar.start_phase("preparing")
            solver = make_solver(
                mechanism,
                _make_goal(tip_link, target_rows, tolerance, angle_tolerance),
                locked_names,
                restarts,
                collision_args,
            )
            bar.start_phase("solving", len(target_rows))
            result = solver.solve_batch(
                target_rows, starts, threads=threads, progress=bar, out=work_folder.result_folder
            )
            bar.start_phase(f"writing {result_file.name}", len(target_rows))
            write_result(result_file, result, _status_names(), bar)
    except KeyboardInterrupt as interrupt:
        partial_result = getattr(interrupt, "result", None)  # the solved rows, if `solve_batch` was interrupted
        print_note(
            "interrupted"
            if partial_result is None
            else f"interrupted: {partial_result.done:,} of {len(partial_result):,} targets are processed"
        )
        _keep_or_remove(work_folder)
        return EXIT_INTERRUPTED
    except BatchMismatch as error:
        raise UsageError(f"{work_folder} cannot be resumed: {error}") from error
    except BaseException:
        _keep_or_remove(work_folder)
        raise
    _print_summary(out, tip_link, result)
    work_folder.remove()
    return EXIT_OK


def _without_none(**options: object) -> dict[str, object]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _keep_or_remove(work_folder: BatchWorkFolder) -> None:
    """Keep the work folder of an unfinished batch if it contains solved rows, else remove it."""
    if work_folder.has_solved_rows:
        print_note(f"finished rows are saved in {work_folder}: run the same command with --resume to continue")
    else:
        work_folder.remove()


def _make_goal(link: str, targets: Array, tolerance: float, angle_tolerance: float) -> Objective:
    """Make the goal of a batch; its target is replaced by each row of `targets`."""
    from mechanik.objectives import PoseGoal, PositionGoal

    try:
        if targets.shape[1:] == (3,):
            return PositionGoal(link, np.zeros(3), tolerance=tolerance, angle_tolerance=angle_tolerance)
        return PoseGoal(link, np.eye(4), tolerance=tolerance, angle_tolerance=angle_tolerance)
    except ObjectiveError as error:
        raise UsageError(str(error)) from error


def _status_names() -> list[str]:
    """Return the status names, indexed by status code."""
    from mechanik.solver.solution import STATUS_BY_CODE

    return [status.name for status in STATUS_BY_CODE]


def _print_summary(out: str, link: str, result: BatchResult) -> None:
    """Print the counts of each status, the time, and the rows that could not be used."""
    from mechanik.solver.solution import Status

    target_count, seconds = len(result), result.seconds
    print_out(f"wrote {out}: {target_count:,} {'target' if target_count == 1 else 'targets'} of {link}", style="green")
    for status, count in result.counts.items():
        label = f"{status.name:<10} {count:>12,} {100 * count / target_count:6.2f} %"
        print_labelled(label, status.value, 2, style="green" if status is Status.CONVERGED else "yellow")
    if target_count and seconds > 0:
        print_out(f"{format_duration(seconds)}, {target_count / seconds:,.0f} targets per second")
    for status, noun in ((Status.BAD_TARGET, "target"), (Status.BAD_START, "start")):
        rows = result.rows_with(status).tolist()
        if rows:
            print_note(f"note: no usable {noun} in {_row_list(rows)} (row indices start at 0)")


def _row_list(rows: Sequence[int]) -> str:
    """Format the indices of rows; a long list is cut."""
    row_text = ", ".join(map(str, rows[:MAX_LISTED_ROWS])) + (", ..." if len(rows) > MAX_LISTED_ROWS else "")
    return f"row {row_text}" if len(rows) == 1 else f"{len(rows):,} rows: {row_text}"
