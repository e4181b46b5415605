"""The methods that there are, by name. Each is loaded when it is first asked for."""

from __future__ import annotations

import importlib
from dataclasses import fields, replace
from functools import cache
from typing import Any

from mechanik.errors import UnknownName, WrongKind
from mechanik.solvers.method import Method

METHODS = {
    "lm": "mechanik.solvers.levenberg_marquardt:LevenbergMarquardt",
    "dls": "mechanik.solvers.dls:DampedLeastSquares",
    "sdls": "mechanik.solvers.sdls:SelectivelyDamped",
    "pseudo_inverse": "mechanik.solvers.pseudo_inverse:PseudoInverse",
    "newton": "mechanik.solvers.newton:Newton",
    "chan": "mechanik.solvers.chan:Chan",
    "sugihara": "mechanik.solvers.sugihara:Sugihara",
    "jacobian_transpose": "mechanik.solvers.jacobian_transpose:JacobianTranspose",
    "ccd": "mechanik.solvers.ccd:CyclicCoordinateDescent",
    "fabrik": "mechanik.solvers.fabrik:Fabrik",
    "gradient_descent": "mechanik.solvers.gradient_descent:GradientDescent",
    "momentum": "mechanik.solvers.momentum:Momentum",
    "adam": "mechanik.solvers.adam:Adam",
    "lbfgsb": "mechanik.solvers.lbfgsb:LimitedMemory",
    "annealing": "mechanik.search.annealing:Annealing",
    "evolution": "mechanik.search.evolution:Evolution",
    "closed_form": "mechanik.search.closed_form_method:ClosedFormMethod",
}
"""Where each is found: names, not imports, since those of `search` stand on solvers, and most programs need one."""


def find_method(solver: str | Method) -> type[Method]:
    """The class of a method, by its name or from one that was made already."""
    if isinstance(solver, Method):
        return type(solver)
    if not isinstance(solver, str):
        raise WrongKind(f"solver is the name of a method, as in solver='lm', or a method, not {solver!r}")
    if solver not in METHODS:
        raise UnknownName("solver", solver, [*METHODS, "auto"])
    module, name = METHODS[solver].split(":")
    return getattr(importlib.import_module(module), name)


@cache
def option_names(kind: type[Method]) -> tuple[str, ...]:
    """The names of a method's own options."""
    return tuple(field.name for field in fields(kind))


def make_method(solver: str | Method, given: dict[str, Any]) -> tuple[Method, dict[str, Any]]:
    """A method with its own options out of those given, and the options that are left."""
    kind = find_method(solver)
    own = {name: given[name] for name in option_names(kind) if name in given}
    rest = {name: value for name, value in given.items() if name not in own}
    if isinstance(solver, Method):
        return (replace(solver, **own) if own else solver), rest
    return kind(**own), rest
