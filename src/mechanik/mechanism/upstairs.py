"""What a mechanism, or a solution, can do only with packages that stand above it.

Those are named here and loaded when they are first asked for: imports go one way, and most programs need none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

PLACES = {
    "assemble": "mechanik.assembly.assemble:assemble",
    "assembly_path": "mechanik.assembly.path:assembly_path",
    "assembly_modes": "mechanik.assembly.modes:assembly_modes",
}
"""Where each is found: module and name."""


def upstairs(name: str) -> Callable[..., Any]:
    """The function that does it, whose first argument is the mechanism or the solution."""
    module, function = PLACES[name].split(":")
    return getattr(import_module(module), function)
