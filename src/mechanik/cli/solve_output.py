"""Solutions as tables for people and as data for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from mechanik.cli.output import console, count, fits, number, row, say, say_with, show, table
from mechanik.mechanism import Mechanism
from mechanik.spatial import to_position_wxyz
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.collision import Clash
    from mechanik.search.solution_set import SolutionSet
    from mechanik.solvers import Solution


def as_data(link: str, solution: Solution, nearest: Clash | None) -> dict[str, Any]:
    """For programs; the pose is that of the link at q, whether it is the one asked for or not.

    Args:
        nearest: the two bodies that are nearest to each other at q, if some are to be kept apart.
    """
    (error,) = solution.errors.values()
    return {
        "success": solution.success,
        "status": solution.status.name,
        "message": solution.message,
        "link": link,
        "q": solution.q.tolist(),
        "values": _values(solution.mechanism, solution.q),
        "pose": _pose(solution.mechanism, link, solution.q),
        "errors": {"position": _finite(error.position), "rotation": _finite(error.rotation)},
        "at_limit": dict(solution.active_limits),
        "clashes": [_clash(one) for one in solution.clashes],
        "nearest": None if nearest is None else _clash(nearest),
        "iterations": solution.iterations,
        "attempts": solution.attempts,
        "seconds": solution.seconds,
    }


def set_as_data(mechanism: Mechanism, link: str, found: SolutionSet) -> dict[str, Any]:
    """For programs; nearest to the start first."""
    return {
        "success": True,
        "link": link,
        "complete": found.complete,
        "why": found.why,
        "redundant": found.redundant,
        "solutions": [
            {"q": q.tolist(), "values": _values(mechanism, q), "distance": float(distance)}
            for q, distance in zip(found.q, found.distance, strict=True)
        ],
    }


def print_solution(link: str, solution: Solution, why: str = "", nearest: Clash | None = None) -> None:
    """The values, how it ended, and where the link is.

    Args:
        why: what a search for all solutions had to say, if there was one.
        nearest: the two bodies that are nearest to each other, if some are to be kept apart.
    """
    made = _value_table(solution, digits=6)
    show(made if fits(made) else _value_table(solution, digits=4))
    say()
    if solution.success:
        say(f"solved: {link} is where it shall be", style="green")
    else:
        say_with(f"not solved ({solution.status.name}):", solution.message, 2, style="red")
        if why:
            say_with("all solutions:", why, 2)
        if solution.status.name != "IN_COLLISION":  # which is where it shall be
            pose = _pose(solution.mechanism, link, solution.q)
            place, turn = (" ".join(number(x) for x in pose[name]) for name in ("position", "wxyz"))
            say_with("closest:", f"{link} at {place}, wxyz {turn}", 2)
        for clash in solution.clashes[1:]:  # the message names the worst
            say_with("and:", str(clash), 2, style="red")
    say(f"off by {_off(solution)}")
    if nearest is not None and not solution.clashes:
        say_with("nearest:", str(nearest), 2)
    spent = f"{count(solution.iterations, 'iteration')}, {count(solution.attempts, 'attempt')}"
    say(f"{spent}, {duration(solution.seconds)}")


def print_set(mechanism: Mechanism, found: SolutionSet, limit: int | None) -> None:
    """A column for each solution, as many side by side as there is room for.

    Args:
        limit: how many were asked for, at most.
    """
    for first, last in _groups(mechanism, found.q):
        show(_set_table(mechanism, found, first, last))
        say()
    what = "all there are" if found.complete else "all that were found"
    if found.redundant:
        what = f"samples of self-motions with {count(found.redundant, 'freedom')}"
    if limit is not None and len(found) == limit:
        what = "as many as were asked for"
    say_with(f"{count(len(found), 'solution')}:", f"{what}, nearest to the start first", 2, style="green")
    say_with("found:", found.why, 2)


def duration(seconds: float) -> str:
    """With a unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def turning(mechanism: Mechanism) -> Array:
    """(nq,) which numbers of q are angles."""
    space = mechanism.space
    turns = np.zeros(space.nq, dtype=bool)
    turns[space.scalars_q] = space.rotates[space.scalars_v]
    return turns


def _value_table(solution: Solution, digits: int) -> Table:
    mechanism = solution.mechanism
    space, marks = mechanism.space, solution.active_limits
    made = table(["joint"], ["value"])
    made.add_column("unit", no_wrap=True)
    for name in ("degrees", "lower", "upper"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("at a limit", no_wrap=True)
    scalars = set(space.scalars_q.tolist())
    moves = np.ones(space.nq, dtype=bool)
    moves[space.scalars_q] = solution._solver._moving[space.scalars_v]
    listed = zip(space.q_names, solution.q, turning(mechanism), space.lower, space.upper, strict=True)
    for k, (name, value, turns, low, high) in enumerate(listed):
        unit = "" if k not in scalars else "rad" if turns else "m"
        degrees = number(math.degrees(value), digits - 3) if turns else ""
        limits = [number(low), number(high)] if unit else ["", ""]
        cells = [name, number(value, digits), unit, degrees, *limits, marks.get(name, "")]
        row(made, cells, style="yellow" if name in marks else "" if moves[k] else "dim")
    return made


def _groups(mechanism: Mechanism, q: Array) -> list[tuple[int, int]]:
    """Which columns go side by side."""
    out = console()
    if not out.is_terminal:
        return [(0, len(q))]
    widest = max(map(len, (*mechanism.space.q_names, "distance")))
    each = 2 + max((len(number(x)) for x in q.ravel()), default=1)
    side_by_side = max((out.width - widest) // each, 1)
    return [(k, min(k + side_by_side, len(q))) for k in range(0, len(q), side_by_side)]


def _set_table(mechanism: Mechanism, found: SolutionSet, first: int, last: int) -> Table:
    made = table(["joint"], [str(k + 1) for k in range(first, last)])
    for k, name in enumerate(mechanism.space.q_names):
        row(made, [name, *(number(x) for x in found.q[first:last, k])])
    row(made, ["distance", *(number(float(x)) for x in found.distance[first:last])], style="dim")
    return made


def _values(mechanism: Mechanism, q: Array) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in mechanism.values(q).items()}


def _pose(mechanism: Mechanism, link: str, q: Array) -> dict[str, list[float]]:
    position, wxyz = to_position_wxyz(mechanism.pose(link, q))
    return {"position": position.tolist(), "wxyz": wxyz.tolist()}


def _clash(clash: Clash) -> dict[str, Any]:
    return {"a": clash.a, "b": clash.b, "gap": clash.gap}


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _off(solution: Solution) -> str:
    """In m, in rad, or in both, as the goal asks for."""
    (goal,), (error,) = solution.objectives, solution.errors.values()
    lengths = [metres for relation in goal.relations(solution.mechanism) for metres in relation.in_metres]
    parts = [f"{error.position:.2g} m"] * any(lengths) + [f"{error.rotation:.2g} rad"] * (not all(lengths))
    return ", ".join(parts)
