"""The best way through a roadmap: the largest step first, then the length and how near limits it comes.

Dynamic programming from station to station, over configurations and their windings: joints that may turn more than once
stand at the same place with several values, and of those one must stay inside the limits all the way.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mechanik.paths.course import TURN, Course, Indices
from mechanik.paths.roadmap import Curve, Roadmap
from mechanik.spatial.array import Array

SLACK = 1.25
"""Ways whose largest step is at most this many times the smallest possible are compared by what else they cost."""
NEAR_LIMIT = 2.0
"""What it costs to stand at a limit all the way, beside the square of the way gone if it were even, rad and m."""
MOST_WINDINGS = 512
EDGE = 1e-9
Windings = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """How a configuration of a station, with its windings, is best reached.

    Attributes:
        largest: the largest step on the way there, rad or m.
        cost: of the way there.
        before: the configuration and the windings at the station before; None at the first.
        curve: from there to here.
    """

    largest: float
    cost: float
    before: tuple[int, Windings] | None
    curve: Curve | None


Reached = list[dict[tuple[int, Windings], Step]]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A curve with what counts of it: the windings that it goes through, and its cost."""

    curve: Curve
    largest: float
    cost: float
    turned: Windings
    low: Array
    high: Array


def routes(made: Roadmap, near: Array) -> Reached:
    """For each station how each of its configurations is best reached from the first; none where it cannot be.

    Args:
        near: (nq,) of windings that are as good, those nearest to this are taken.
    """
    course = made.course
    wide = np.flatnonzero(course.wide)
    measured = [[_measure(course, made, i, curve, wide) for curve in some] for i, some in enumerate(made.curves)]
    first = _starts(course, made.nodes[0][: made.begin], wide, near)
    reached = _sweep(made, measured, first, wide, np.inf)
    if reached[-1]:
        best = min(step.largest for step in reached[-1].values())
        reached = _sweep(made, measured, first, wide, SLACK * best)
    return reached


def way_to(made: Roadmap, reached: Reached, i: int, state: tuple[int, Windings]) -> Array:
    """(m, nq) all knots from the first to station i."""
    wide = np.flatnonzero(made.course.wide)
    parts: list[Array] = []
    while True:
        step = reached[i][state]
        if step.before is None or step.curve is None:
            break
        q = step.curve.q.copy()
        q[:, wide] += TURN * np.array(step.before[1]) - _shift(made, i - 1, step.curve, wide)
        parts.append(q if not parts else q[:-1])
        i, state = i - 1, step.before
    if not parts:
        q = made.nodes[0][state[0]].copy()
        q[wide] += TURN * np.array(state[1])
        return q[None]
    joined = np.concatenate(parts[::-1])
    # joints without limits count turns too
    k = np.flatnonzero(made.course.turning & ~made.course.wide)
    joined[:, k] = np.unwrap(joined[:, k], axis=0)
    return joined


def _sweep(
    made: Roadmap, measured: list[list[Measured]], first: dict[tuple[int, Windings], Step], wide: Indices, most: float
) -> Reached:
    course = made.course
    reached: Reached = [first]
    lower, upper = course.lower[wide] - EDGE, course.upper[wide] + EDGE
    for some in measured:
        here: dict[tuple[int, Windings], Step] = {}
        by_node: dict[int, list[Measured]] = {}
        for one in some:
            by_node.setdefault(one.curve.a, []).append(one)
        for (node, windings), step in reached[-1].items():
            shift = TURN * np.array(windings)
            for one in by_node.get(node, ()):
                if (one.low + shift < lower).any() or (one.high + shift > upper).any() or one.largest > most:
                    continue
                state = one.curve.b, tuple(a + b for a, b in zip(windings, one.turned, strict=True))
                larger, cost = max(step.largest, one.largest), step.cost + one.cost
                known = here.get(state)
                rank = (cost, larger) if np.isfinite(most) else (larger, cost)
                if known is None or rank < (
                    (known.cost, known.largest) if np.isfinite(most) else (known.largest, known.cost)
                ):
                    here[state] = Step(larger, cost, (node, windings), one.curve)
        reached.append(here)
    return reached


def _shift(made: Roadmap, i: int, curve: Curve, wide: Indices) -> Array:
    """By what the wide joints of a curve differ at its start from the node there: full turns."""
    turns: Array = np.rint((curve.q[0, wide] - made.nodes[i][curve.a][wide]) / TURN)
    return TURN * turns


def _measure(course: Course, made: Roadmap, i: int, curve: Curve, wide: Indices) -> Measured:
    steps = course.space.difference(curve.q[:-1], curve.q[1:])
    largest = float(np.abs(steps).max(initial=0.0))
    values = curve.q[:, wide] - _shift(made, i, curve, wide)
    turned: Array = np.rint((values[-1] - made.nodes[i + 1][curve.b][wide]) / TURN)
    whole = len(course.s) - 1
    cost = whole * float((steps * steps).sum()) + NEAR_LIMIT * _nearness(course, curve.q) * len(steps) / whole
    return Measured(curve, largest, cost, tuple(turned.astype(int).tolist()), values.min(axis=0), values.max(axis=0))


def _nearness(course: Course, q: Array) -> float:
    """How near limits it comes: 0 in the middle, 1 at a limit, averaged over the way."""
    bounded = np.isfinite(course.lower) & np.isfinite(course.upper) & (course.upper > course.lower)
    k = np.flatnonzero(bounded & ~course.wide)
    if not len(k):
        return 0.0
    lower, upper = course.lower[k], course.upper[k]
    middle, half = 0.5 * (upper + lower), 0.5 * (upper - lower)
    return float((np.abs((q[:, k] - middle) / half) ** 8).max(axis=1).mean())


def _starts(course: Course, nodes: list[Array], wide: Indices, near: Array) -> dict[tuple[int, Windings], Step]:
    """The configurations of the first station with all windings that the limits allow, nearest to `near` first."""
    found: dict[tuple[int, Windings], Step] = {}
    for number, q in enumerate(nodes):
        fewest = np.ceil((course.lower[wide] - q[wide] - EDGE) / TURN).astype(int).tolist()
        most = np.floor((course.upper[wide] - q[wide] + EDGE) / TURN).astype(int).tolist()
        ranges = [range(a, b + 1) for a, b in zip(fewest, most, strict=True)]
        every = list(itertools.islice(itertools.product(*ranges), MOST_WINDINGS))
        for windings in every:
            away = q[wide] + TURN * np.array(windings) - near[wide]
            # hardly a cost: it decides only between ways that are the same but for full turns
            found[number, windings] = Step(0.0, 1e-6 * float((away * away).sum()), None, None)
    return found
