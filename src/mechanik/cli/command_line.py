"""Parse the command line, run the command, and convert its errors to messages and exit codes."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from mechanik.cli import EXIT_FAILED, EXIT_OK, EXIT_PIPE_CLOSED, EXIT_USAGE
from mechanik.cli.assemble_command import assemble
from mechanik.cli.batch_command import batch
from mechanik.cli.demo_command import demo
from mechanik.cli.file_args import STANDARD_INPUT, UsageError
from mechanik.cli.fk_command import fk
from mechanik.cli.info_command import info
from mechanik.cli.model_commands import check, convert, explain, gallery
from mechanik.cli.output import escape_unprintable, print_error
from mechanik.cli.reach_command import reach
from mechanik.cli.solve_command import solve
from mechanik.cli.solver_commands import compare, solvers
from mechanik.cli.studio_command import studio
from mechanik.cli.warmup_command import warmup
from mechanik.errors import FileMissing, InvalidArgument, MechanikError, UnknownName
from mechanik.version import __version__

HELP_TEXT = """Kinematics for any mechanism: inspect, check and convert it, compute its poses, and solve for
joint values.

FILE is a URDF, MJCF, SDF or JSON file, `gallery:NAME` for a mechanism that ships with Mechanik, or `-` for
standard input.
"""
HELP_EPILOGUE = """Exit codes: 0 success, 1 failure (such as not solved, or FILE is not a mechanism), 2 usage error or
missing file, 130 Ctrl-C.

`--traceback` (or MECHANIK_TRACEBACK=1) shows the traceback of an error.
"""
NEGATIVE_NUMBER_LIST = re.compile(r"-[\d.].*,.*")
"""Pattern of a list of numbers with commas whose first number is negative, such as `-1,0,2`."""
USAGE_ERRORS = (UsageError, FileMissing, UnknownName, InvalidArgument)


def make_app() -> App:
    """Build the parser with all commands."""
    app = App(
        name="mechanik",
        help=HELP_TEXT,
        help_epilogue=HELP_EPILOGUE,
        help_format="markdown",
        version=f"mechanik {__version__}",
        default_parameter=Parameter(show_default=False, negative=""),
    )
    model_commands = (info, explain, check, convert, fk, solve, assemble, batch, reach)
    for command in (*model_commands, gallery, solvers, compare, studio, demo, warmup):
        app.command(command)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; a `MechanikError` or write error becomes one line on stderr."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] (started with `>&-`)
        print_error("standard output is closed")
        return EXIT_FAILED
    try:
        code = _run_with_messages(arguments)
        sys.stdout.flush()
        return code
    except OSError as error:
        # redirect stdout to the null device, because flushing its buffer at exit would fail again
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `mechanik info FILE | head`: the reader closed the pipe
            return EXIT_PIPE_CLOSED
        with contextlib.suppress(OSError):
            print_error(str(error) if error.filename is not None else f"the result cannot be written: {error.strerror}")
        return EXIT_FAILED


def _run_with_messages(arguments: Sequence[str]) -> int:
    """Run one command; print a `MechanikError` as a message and return its exit code."""
    escape_unprintable()
    tokens = [part for token in arguments if token != "--traceback" for part in _split_token(token)]
    shows_traceback = "--traceback" in arguments or os.environ.get("MECHANIK_TRACEBACK", "0") not in ("", "0")
    try:
        return _run_command(make_app(), tokens)
    except MechanikError as error:
        if shows_traceback:
            traceback.print_exc()
        print_error(str(error))
        return EXIT_USAGE if isinstance(error, USAGE_ERRORS) else EXIT_FAILED


def _split_token(token: str) -> list[str]:
    """Replace a token that the parser would read as an option: `-`, or a comma list that starts with a minus sign."""
    if token == "-":
        return [STANDARD_INPUT]
    return token.split(",") if NEGATIVE_NUMBER_LIST.fullmatch(token) else [token]


def _run_command(app: App, tokens: Sequence[str]) -> int:
    """Parse the tokens and run the command; raises `UsageError` if they cannot be parsed."""
    try:
        command, bound_arguments, _ = app.parse_args(tokens, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        raise UsageError(f"{_parser_message(error)} See `mechanik {_command_name(app, tokens)}--help`.") from None
    result: Any = command(*bound_arguments.args, **bound_arguments.kwargs)
    return result if isinstance(result, int) else EXIT_OK


def _parser_message(error: CycloptsError) -> str:
    """Format a parser error as one sentence on one line."""
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _command_name(app: App, tokens: Sequence[str]) -> str:
    """Return the command of the tokens and a space; empty if the first token is not a command."""
    return next((f"{token} " for token in tokens[:1] if not token.startswith("-") and token in app), "")
