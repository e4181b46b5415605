"""`mechanik solvers`: the methods that there are, and what each can be told."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

from mechanik.cli.output import row, say, show, table
from mechanik.solvers import METHODS
from mechanik.solvers.methods import find_method


def solvers(name: str | None = None, /) -> None:
    """List the solvers; with a name, what that one does, its options, and the paper.

    For example:

        mechanik solvers
        mechanik solvers dls

    Parameters
    ----------
    name
        As in `mk.Solver(..., solver=NAME)`.
    """
    if name is None:
        listed = table(["solver", "what it is"])
        for one, place in METHODS.items():
            row(listed, [one, _first_line(place.split(":")[0])])
        show(listed)
        say("mechanik solvers NAME tells more.")
        return
    kind = find_method(name)
    say(kind.title, style="bold")
    say(inspect.cleandoc(kind.__doc__ or ""))
    say()
    for field in fields(kind):
        say(f"{field.name} = {field.default!r}")
    say()
    say(kind.citation)


def _first_line(module: str) -> str:
    """What a module says that it is, without loading it: that might have to compile its kernels first."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    text = ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0]
