"""What a method is asked for that knows no levels or no wishes: what comes nearest, and the words that say so."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from mechanik.objectives import Objective
from mechanik.solvers.methods import find_method
from mechanik.studio.session.plan import Plan

TAKES_ALL = "lm"
"""The method that knows levels, wishes and loops."""
STRONGER, STRONGEST = 30.0, 900.0
"""How many times as much a level counts as the next, and the first as the last at most. Tried on all scenes: with 30 to
1 damped least squares meets all goals as soon as without, and pins that have to give way do so by at most a thirtieth
of what the goals lack."""


def fitted(asked: Plan, solver: str = "") -> Plan:
    """The same as that method can take it; what it cannot in any way is left for it to refuse.

    Args:
        solver: by name; that of the plan if not given.
    """
    name = solver or asked.solver
    asked = asked if name == asked.solver else replace(asked, solver=name, options={})
    kind = find_method(name)
    if name == TAKES_ALL:
        return asked
    required = [one for one in asked.goals if one.required]
    wishes = [one for one in asked.goals if not one.required]
    if not required and kind.takes_loops and not kind.takes_wishes:
        words = f"{kind.title} knows no wishes, and nothing else is asked: {find_method(TAKES_ALL).title} follows them"
        return replace(asked, solver=TAKES_ALL, options={}, said=words if wishes or asked.rest else "")
    levels = sorted({one.level for one in required})
    said: list[str] = []
    if len(levels) > 1:
        times = min(STRONGER, STRONGEST ** (1.0 / (len(levels) - 1)))
        strength = {level: times**k for k, level in enumerate(reversed(levels))}
        required = [_as(one, 0, one.weight * strength[one.level]) for one in required]
        said.append(f"{kind.title} knows no levels: {_stronger(levels, times)}")
    lowest = max((one.level for one in required), default=0)
    wishes = [_as(one, lowest, one.weight) if one.level < lowest else one for one in wishes]
    rest = asked.rest
    if not kind.takes_wishes and (wishes or rest):
        wishes, rest = [], False
        said.append(f"{'it' if said else kind.title} knows no rests or other wishes: they are left out")
    return replace(asked, goals=(*required, *wishes), rest=rest, said="; ".join(said))


def _as(one: Objective, level: int, weight: float) -> Objective:
    other = copy(one)
    object.__setattr__(other, "level", level)
    object.__setattr__(other, "weight", weight)
    return other


def _stronger(levels: list[int], times: float) -> str:
    if len(levels) == 2 and levels[0] == 0:
        return f"pins count {times:.3g} times as much as other goals"
    return f"each level counts {times:.3g} times as much as the next"
