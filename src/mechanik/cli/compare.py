"""`mechanik compare`: every solver on every robot and task, with a table, records and a report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mechanik.cli import FINE, INTERRUPTED
from mechanik.cli.opening import STANDARD_INPUT, open_mechanism
from mechanik.cli.output import aside, say
from mechanik.cli.usage import UsageError

if TYPE_CHECKING:
    from mechanik import comparison

Words = Annotated[list[str] | None, Parameter(consume_multiple=True)]
MOST_ROWS = 120
"""Longer tables are left to files, unless all of it is asked for."""


def compare(
    *files: str,
    solvers: Words = None,
    robots: Words = None,
    tasks: Words = None,
    link: list[str] | None = None,
    targets: int | None = None,
    budget: float = 0.02,
    tolerance: float = 1e-4,
    angle_tolerance: float = 1e-3,
    patience: float | None = None,
    seed: int = 0,
    quick: bool = False,
    csv: str | None = None,
    html: str | None = None,
    markdown: str | None = None,
    resume: bool = False,
    all: bool = False,
    quiet: bool = False,
) -> int:
    """Compare solvers: success, time, errors, limits, jumps, on the same targets and from the same starts.

    Without FILE it compares on robots that are built in, one of each class. Ctrl-C ends it and keeps what is done;
    with --csv, --resume goes on from there. A success is one that forward kinematics confirms.

    For example:

        mechanik compare --quick --robots 7r --solvers lm dls --tasks pose
        mechanik compare robot.urdf --link tool0 --html report.html --csv records.csv
        mechanik compare --csv records.csv --html report.html --resume

    Parameters
    ----------
    files
        Mechanisms of your own: URDF, MJCF, SDF or JSON files, or `gallery:NAME`.
    solvers
        Names of methods; all if not given.
    robots
        Robots that are built in: 3r_planar 5r_seed 6r_wrist 6r_general 7r 10r_seed 30r 100r prismatic two_hands
        closed_loop.
    tasks
        Of point, direction, pose, tight_limits, near_singular, out_of_reach, path.
    link
        The link of FILE that is to be placed; again for more. Else the one that looks like the end of an arm.
    targets
        Of each task; 100, or 8 with --quick.
    budget
        Seconds for one target, with as many attempts as fit.
    tolerance
        Metres that count as there.
    angle_tolerance
        Radians that count as there.
    patience
        Seconds for one solver on one task of one robot; slower ones get fewer targets.
    seed
        Of targets, starts and solvers.
    quick
        Fewer targets and less patience.
    csv
        Write every record to this file, as it comes.
    html
        Write a report to this file: tables and plots, all inside.
    markdown
        Write the table to this file, for documents.
    resume
        Go on with what an interrupted run left beside the file of --csv.
    all
        Print the whole table, however long it is.
    quiet
        No progress bar.
    """
    from mechanik import comparison

    for name in (csv, html, markdown):
        _check_folder(name)
    if STANDARD_INPUT in files and len(files) > 1:
        raise UsageError("standard input can be compared on alone, or files can; not both")
    result = comparison.compare(
        [open_mechanism(file) for file in files] or None,
        solvers=_words(solvers),
        robots=_words(robots),
        tasks=_words(tasks),
        link=link or (),
        targets=targets,
        budget=budget,
        tolerance=tolerance,
        angle_tolerance=angle_tolerance,
        patience=patience,
        seed=seed,
        quick=quick,
        csv=csv,
        resume=resume,
        progress=False if quiet else None,
        command=shlex.join(["mechanik", *_arguments()]),
    )
    if not result.is_complete:
        aside("interrupted; this is what was done by then")
        if csv is not None:
            aside(f"the records stand in {csv}.part; --resume goes on from there")
    if result.rows:
        _show(result, all)
        if html is not None:
            result.to_html(html)
            aside(f"wrote {html}", style="green")
        if markdown is not None:
            Path(markdown).write_text(result.markdown(), encoding="utf-8")
            aside(f"wrote {markdown}", style="green")
    return FINE if result.is_complete else INTERRUPTED


def _show(result: comparison.Comparison, shows_all: bool) -> None:
    if shows_all or len(result.rows) <= MOST_ROWS:
        say(result.table())
        say()
    else:
        aside(f"the table has {len(result.rows)} rows: --all prints them, --html and --csv write them")
    say("success in the time budget, percent of targets, mean over the tasks", style="bold")
    say(result.overview())


def _words(given: list[str] | None) -> list[str] | None:
    """Names with spaces or commas between them."""
    return None if given is None else [word for text in given for word in text.split(",") if word]


def _check_folder(name: str | None) -> None:
    """Refuse a file that cannot be written before hours are spent."""
    if name is None:
        return
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{name} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{name} cannot be written: there is no folder {path.parent}")


def _arguments() -> list[str]:
    """As they were typed, where this is the command and not a call from Python."""
    return sys.argv[1:] if sys.argv[1:2] == ["compare"] else ["compare"]
