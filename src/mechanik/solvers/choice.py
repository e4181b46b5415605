"""Which method suits a mechanism and what is asked of it, and why."""

from __future__ import annotations

from collections.abc import Sequence

from mechanik.errors import Refused
from mechanik.solvers.method import Method
from mechanik.solvers.methods import make_method
from mechanik.solvers.problem import Problem


def choose(problems: Sequence[Problem]) -> tuple[Method | None, str]:
    """What to do where the default solver does not succeed from the start, if there is anything; and why, in words.

    The default solver leads in the comparison of `docs/comparison.md` and refuses nothing, so it goes first. It may end
    in a dead end, or at a limit. A closed form cannot, but it takes 50 times as long, so it comes second, for the arms
    that have one.
    """
    usual, by_formula = make_method("lm", {})[0], make_method("closed_form", {})[0]
    first = f"{usual.title} first: it is the fastest, and takes any mechanism and any goal"
    if len(problems) != 1:
        return None, f"{first}. Nothing else: there are {len(problems)} chains, each solved apart"
    try:
        by_formula.check(problems[0])
    except Refused as refusal:
        why = str(refusal).removesuffix("; solver='lm' does")
        return None, f"{first}. Restarts if it fails, and no formula: {why}"
    return by_formula, f"{first}. If it fails, {by_formula.title}, which cannot miss: {_recognised(problems[0])}"


def _recognised(problem: Problem) -> str:
    from mechanik.mechanism.recognise import recognise

    found = recognise(problem.mechanism, problem.relations[0].b or "")
    return f"{found.family}, since {'; '.join(found.why)}"
