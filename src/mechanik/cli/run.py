"""From arguments to a command, and from its errors to exit codes."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from mechanik.cli import FINE, NO, PIPE_CLOSED, WRONG_USE
from mechanik.cli.assemble import assemble
from mechanik.cli.batch import batch
from mechanik.cli.check import check
from mechanik.cli.compare import compare
from mechanik.cli.convert import convert
from mechanik.cli.demo import demo
from mechanik.cli.explain import explain
from mechanik.cli.fk import fk
from mechanik.cli.gallery import gallery
from mechanik.cli.info import info
from mechanik.cli.opening import STANDARD_INPUT
from mechanik.cli.output import fail, say_anything
from mechanik.cli.reach import reach
from mechanik.cli.solve import solve
from mechanik.cli.solvers import solvers
from mechanik.cli.studio import studio
from mechanik.cli.usage import UsageError
from mechanik.cli.warmup import warmup
from mechanik.errors import FileMissing, MechanikError, UnknownName, UnknownOption
from mechanik.version import __version__

ABOUT = """Kinematics for any mechanism: look at, check and convert it, compute its poses, and solve for
joint values.

FILE is a URDF, MJCF, SDF or JSON file, `gallery:NAME` for a mechanism that ships with Mechanik, or `-` for
standard input.
"""
CLOSING = """Exit codes: 0 fine, 1 the answer is no or FILE is no mechanism, 2 wrong use or no such file, 130 Ctrl-C.

`--traceback` (or MECHANIK_TRACEBACK=1) shows where in the program an error came from.
"""
NUMBERS = re.compile(r"-[\d.].*,.*")
MISUSE = (UsageError, FileMissing, UnknownName, UnknownOption)


def make_app() -> App:
    app = App(
        name="mechanik",
        help=ABOUT,
        help_epilogue=CLOSING,
        help_format="markdown",
        version=f"mechanik {__version__}",
        default_parameter=Parameter(show_default=False, negative=""),
    )
    first = (info, explain, check, convert, fk, solve, assemble, batch, reach)
    for command in (*first, gallery, solvers, compare, studio, demo, warmup):
        app.command(command)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code. Errors of ours, and of writing, become one line on stderr."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] (started with `>&-`)
        fail("standard output is closed")
        return NO
    try:
        code = _answer(arguments)
        sys.stdout.flush()
        return code
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # what is left in the buffer would fail again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `mechanik info FILE | head`: the reader has seen enough
            return PIPE_CLOSED
        with contextlib.suppress(OSError):
            fail(str(error) if error.filename is not None else f"the result cannot be written: {error.strerror}")
        return NO


def _answer(arguments: Sequence[str]) -> int:
    say_anything()
    tokens = [part for token in arguments if token != "--traceback" for part in _parts(token)]
    shows_traceback = "--traceback" in arguments or os.environ.get("MECHANIK_TRACEBACK", "0") not in ("", "0")
    try:
        return _run(make_app(), tokens)
    except MechanikError as error:
        if shows_traceback:
            traceback.print_exc()
        fail(str(error))
        return WRONG_USE if isinstance(error, MISUSE) else NO


def _parts(token: str) -> list[str]:
    """Words that look like options and are none: `-`, and numbers with commas of which the first is negative."""
    if token == "-":
        return [STANDARD_INPUT]
    return token.split(",") if NUMBERS.fullmatch(token) else [token]


def _run(app: App, tokens: Sequence[str]) -> int:
    try:
        command, bound, _ = app.parse_args(tokens, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        raise UsageError(f"{_plain(error)} See `mechanik {_command_in(app, tokens)}--help`.") from None
    result: Any = command(*bound.args, **bound.kwargs)
    return result if isinstance(result, int) else FINE


def _plain(error: CycloptsError) -> str:
    """The complaint as a sentence on one line."""
    text = " ".join(str(error).split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _command_in(app: App, tokens: Sequence[str]) -> str:
    return next((f"{token} " for token in tokens[:1] if not token.startswith("-") and token in app), "")
