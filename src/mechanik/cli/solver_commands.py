"""`mechanik solvers` and `mechanik compare`: list the solvers with their options, and compare them on benchmarks."""

from __future__ import annotations

import ast
import inspect
import shlex
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mechanik.cli import EXIT_INTERRUPTED, EXIT_OK
from mechanik.cli.file_args import STANDARD_INPUT, UsageError, open_mechanism
from mechanik.cli.output import add_row, make_table, print_note, print_out, print_table
from mechanik.solver import METHODS
from mechanik.solver.methods.method_registry import find_method

if TYPE_CHECKING:
    from mechanik import comparison


def solvers(name: str | None = None, /) -> None:
    """List the solvers, or show the description, options and paper of a solver.

    For example:

        mechanik solvers
        mechanik solvers dls

    Parameters
    ----------
    name
        Name of a solver, as in `mk.Solver(..., solver=NAME)`. Default: list all.
    """
    if name is None:
        table = make_table(["solver", "description"])
        for method, location in METHODS.items():
            add_row(table, [method, _first_line(*location.split(":"))])
        print_table(table)
        print_out("`mechanik solvers NAME` shows the description and the options of a solver.")
        return
    method_class = find_method(name)
    print_out(method_class.title, style="bold")
    print_out(inspect.cleandoc(method_class.__doc__ or ""))
    print_out()
    for field in fields(method_class):
        print_out(f"{field.name} = {field.default!r}")
    print_out()
    print_out(method_class.citation)


def _first_line(module: str, name: str) -> str:
    """Return the first line of the docstring of a class, read from the source without importing the module."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    class_node = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return (ast.get_docstring(class_node) or name).splitlines()[0]


OptionValues = Annotated[list[str] | None, Parameter(consume_multiple=True)]
MAX_PRINTED_ROWS = 120
"""Largest number of rows of a table that is printed without --all."""


def compare(
    *files: str,
    solvers: OptionValues = None,
    robots: OptionValues = None,
    tasks: OptionValues = None,
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
    """Compare solvers on the same targets and starts: success, time, errors, limit violations, jumps.

    Without FILE, the built-in benchmark robots are used. Ctrl-C ends the comparison and keeps its results; with --csv,
    --resume continues it later. A solution counts as a success only if forward kinematics confirms it.

    For example:

        mechanik compare --quick --robots 7r --solvers lm dls --tasks pose
        mechanik compare robot.urdf --link tool0 --html report.html --csv records.csv
        mechanik compare --csv records.csv --html report.html --resume

    Parameters
    ----------
    files
        Mechanisms to compare on: URDF, MJCF, SDF or JSON files, or `gallery:NAME`.
    solvers
        Names of solvers. Default: all.
    robots
        Built-in robots: 3r_planar 5r_seed 6r_wrist 6r_general 7r 10r_seed 30r 100r prismatic two_hands closed_loop.
        Default: all, or none with FILE.
    tasks
        Tasks: point, direction, pose, tight_limits, near_singular, out_of_reach, path. Default: all.
    link
        Link of FILE that must reach the targets. Repeat the option for several links. Default: the tip link.
    targets
        Number of targets of each task. Default: 100, or 8 with --quick.
    budget
        Processor time for all attempts on a target in s. A solver restarts until it succeeds or the time is used.
        Default: 0.02.
    tolerance
        Position tolerance in m. Default: 1e-4.
    angle_tolerance
        Angle tolerance in rad. Default: 1e-3.
    patience
        Time limit in s for a solver on a task of a robot. A solver that reaches it solves fewer targets. Default: 2, or
        0.25 with --quick.
    seed
        Random seed of targets, starts and solvers. Default: 0.
    quick
        Use fewer targets and a shorter time limit.
    csv
        Write all records to this file. Until the comparison is complete, they are in a file of this name with .part
        appended.
    html
        Write a report to this file: tables and plots in a single file.
    markdown
        Write the table to this Markdown file.
    resume
        Continue an interrupted comparison from the records of --csv.
    all
        Print the whole table, even if it is long.
    quiet
        Show no progress bar.
    """
    from mechanik import comparison

    csv, html, markdown = (_output_path(name) for name in (csv, html, markdown))
    if STANDARD_INPUT in files and len(files) > 1:
        raise UsageError("compare either standard input or files, not both")
    result = comparison.compare(
        [open_mechanism(file) for file in files] or None,
        solvers=_split_names(solvers),
        robots=_split_names(robots),
        tasks=_split_names(tasks),
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
        command=shlex.join(["mechanik", *_typed_arguments()]),
    )
    if not result.is_complete:
        print_note("interrupted; these are the results so far")
        if csv is not None:
            print_note(f"the records are in {csv}.part; --resume continues from there")
    if result.rows:
        _print_comparison(result, all)
        if html is not None:
            result.to_html(html)
            print_note(f"wrote {html}", style="green")
        if markdown is not None:
            Path(markdown).write_text(result.markdown(), encoding="utf-8")
            print_note(f"wrote {markdown}", style="green")
    return EXIT_OK if result.is_complete else EXIT_INTERRUPTED


def _print_comparison(result: comparison.Comparison, show_all: bool) -> None:
    """Print the table of a comparison, or a note if it is long, and the overview."""
    if show_all or len(result.rows) <= MAX_PRINTED_ROWS:
        print_out(result.table())
        print_out()
    else:
        print_note(f"the table has {len(result.rows)} rows: use --all to print it, or --html or --markdown to write it")
    print_out("success within the time budget, percent of targets, mean over the tasks", style="bold")
    print_out(result.overview())


def _split_names(arguments: list[str] | None) -> list[str] | None:
    """Split arguments at commas into names; None for None."""
    return None if arguments is None else [word for argument in arguments for word in argument.split(",") if word]


def _output_path(name: str | None) -> str | None:
    """Return the path of an output file with the home folder for ~; None for None.

    Raises:
        UsageError: the path is a folder, or its folder does not exist.
    """
    if name is None:
        return None
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{name} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{name} cannot be written: there is no folder {path.parent}")
    return str(path)


def _typed_arguments() -> list[str]:
    """Return the command line arguments of this process, or only `compare` if it was called from Python."""
    return sys.argv[1:] if sys.argv[1:2] == ["compare"] else ["compare"]
