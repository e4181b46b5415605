"""From arguments to a command, and from its errors to exit codes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from mechanik.cli import FINE, NO, WRONG_USE
from mechanik.cli.check import check
from mechanik.cli.convert import convert
from mechanik.cli.demo import demo
from mechanik.cli.fk import fk
from mechanik.cli.gallery import gallery
from mechanik.cli.info import info
from mechanik.cli.opening import STANDARD_INPUT
from mechanik.cli.output import fail, say_anything
from mechanik.cli.usage import UsageError
from mechanik.cli.warmup import warmup
from mechanik.errors import FileMissing, MechanikError, UnknownName, UnknownOption
from mechanik.version import __version__

ABOUT = """Inverse kinematics for any mechanism: look at, check and convert it, and compute its poses.

FILE is a URDF or JSON file, `gallery:NAME` for a mechanism that ships with Mechanik, or `-` for standard input.
"""
CLOSING = "`--traceback` (or MECHANIK_TRACEBACK=1) shows where in the program an error came from."
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
    for command in (info, check, convert, fk, gallery, demo, warmup):
        app.command(command)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code. Errors of ours become one line on stderr."""
    say_anything()
    tokens = [token if token != "-" else STANDARD_INPUT for token in arguments if token != "--traceback"]
    shows_traceback = len(tokens) < len(arguments) or os.environ.get("MECHANIK_TRACEBACK", "0") not in ("", "0")
    try:
        return _run(make_app(), tokens)
    except MechanikError as error:
        if shows_traceback:
            raise
        fail(str(error))
        return WRONG_USE if isinstance(error, MISUSE) else NO


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
