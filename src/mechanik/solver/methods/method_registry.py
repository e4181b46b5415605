"""Registry of the methods by name, and selection of the fallback method for solver="auto"."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any

from mechanik.errors import InvalidArgument, InvalidOperation, UnknownName
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method

METHODS = {
    "lm": "mechanik.solver.methods.levenberg_marquardt:LevenbergMarquardt",
    "dls": "mechanik.solver.methods.least_squares_methods:DampedLeastSquares",
    "sdls": "mechanik.solver.methods.least_squares_methods:SelectivelyDamped",
    "pseudo_inverse": "mechanik.solver.methods.least_squares_methods:PseudoInverse",
    "newton": "mechanik.solver.methods.least_squares_methods:Newton",
    "chan": "mechanik.solver.methods.least_squares_methods:Chan",
    "sugihara": "mechanik.solver.methods.least_squares_methods:Sugihara",
    "jacobian_transpose": "mechanik.solver.methods.gradient_methods:JacobianTranspose",
    "ccd": "mechanik.solver.methods.ccd:CyclicCoordinateDescent",
    "fabrik": "mechanik.solver.methods.fabrik:Fabrik",
    "gradient_descent": "mechanik.solver.methods.gradient_methods:GradientDescent",
    "momentum": "mechanik.solver.methods.gradient_methods:Momentum",
    "adam": "mechanik.solver.methods.gradient_methods:Adam",
    "lbfgsb": "mechanik.solver.methods.gradient_methods:LimitedMemoryBFGS",
    "annealing": "mechanik.solver.methods.stochastic_methods:Annealing",
    "evolution": "mechanik.solver.methods.stochastic_methods:Evolution",
    "closed_form": "mechanik.solver.search.closed_form:ClosedFormMethod",
}
"""Module and class of each method, by name. A method is imported at first use: methods in `search` import this package,
and most programs need a single method.
"""


def find_method(solver: str | Method) -> type[Method]:
    """Return the class of a method, given its name or an instance.

    Raises:
        InvalidArgument: if `solver` is neither a name nor a method.
        UnknownName: if there is no method of this name.
    """
    if isinstance(solver, Method):
        return type(solver)
    if not isinstance(solver, str):
        raise InvalidArgument(f"solver must be the name of a method, as in solver='lm', or a Method, not {solver!r}")
    if solver not in METHODS:
        raise UnknownName("solver", solver, [*METHODS, "auto"])
    module, name = METHODS[solver].split(":")
    return getattr(importlib.import_module(module), name)


@cache
def option_names(method_class: type[Method]) -> tuple[str, ...]:
    """Return the names of the options of a method."""
    return tuple(field.name for field in fields(method_class))


def is_default_method(method: Method) -> bool:
    """Return whether a method is the default one, with the default values of all of its options."""
    return method == find_method("lm")()


def make_method(solver: str | Method, options: dict[str, Any]) -> tuple[Method, dict[str, Any]]:
    """Return the method with those of its options that `options` contains, and all other options."""
    method_class = find_method(solver)
    method_options = {name: options[name] for name in option_names(method_class) if name in options}
    other_options = {name: value for name, value in options.items() if name not in method_options}
    if isinstance(solver, Method):
        return (replace(solver, **method_options) if method_options else solver), other_options
    return method_class(**method_options), other_options


def select_fallback_method(problems: Sequence[LeastSquaresProblem]) -> tuple[Method | None, str]:
    """Return the method to use if Levenberg-Marquardt fails from the given start, or None, and the reason as text.

    Levenberg-Marquardt is the fastest in `docs/comparison.md` and supports every problem, so it comes first. It may end
    in a local minimum or at a limit. A closed form does neither, but takes longer, so it comes second, for arms that
    have one.
    """
    main_method, closed_form = make_method("lm", {})[0], make_method("closed_form", {})[0]
    first_sentence = f"{main_method.title} first: it is the fastest and supports every problem"
    if len(problems) != 1:
        return None, f"{first_sentence}. No other method: the problem has {len(problems)} independent subproblems"
    try:
        closed_form.check(problems[0])
    except InvalidOperation as error:
        reason = str(error).partition("; use solver=")[0]
        return None, f"{first_sentence}. If it fails, restarts follow, since {reason}"
    reason = _closed_form_reason(problems[0])
    return closed_form, (
        f"{first_sentence}. If it fails, {closed_form.title} follows, which goes to the branch nearest to the start."
        f" The arm has a closed form: {reason}"
    )


def _closed_form_reason(problem: LeastSquaresProblem) -> str:
    from mechanik.model.closed_form_family import match_closed_form

    match_result = match_closed_form(problem.mechanism, problem.relations[0].b or "")
    return f"{match_result.family}, since {'; '.join(match_result.reasons)}"
