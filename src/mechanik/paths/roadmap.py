"""A roadmap of branches: configurations at some knots, the stations, and the curves on which all holds between them.

Curves are continuations, forward and backward, so a branch that another one crosses is known on both sides of the
crossing. Where the goals leave a freedom, configurations at stations are samples, and curves to others nearby are
blends from one continuation to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanik.paths.between import ways_free
from mechanik.paths.course import FINE, Course
from mechanik.paths.tracks import LONGEST, Track, go
from mechanik.spatial.array import Array

SAME = 1e-4
"""rad or m: configurations nearer to each other than this are one, where goals leave no freedom."""
CLOSE = 0.1
"""The same where they do: samples need not lie closer."""
MOST = 32
"""Configurations at a station, at most; of mechanisms that take longer, FEW."""
FEW = 8
LINKS = 4
"""To how many configurations of the next station each is linked, where the goals leave a freedom."""
FAR = 1.5
"""rad or m: no links to configurations farther off."""
UNEVEN = 6.0
"""A blend whose largest step is more than this many times its mean step, and longer than SHORT, is a jump."""
SHORT = 0.02

Seeds = Callable[[float], Array]
"""From s to configurations (n, nq) at which all holds there."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """From configuration `a` of a station to configuration `b` of the next, by full turns.

    Attributes:
        q: (m, nq) at all knots from station to station; no angle jumps.
    """

    a: int
    b: int
    q: Array


@dataclass(slots=True, eq=False)
class Roadmap:
    """
    Attributes:
        stations: (M,) numbers of knots, the first and the last among them.
        nodes: for each station, configurations.
        curves: for each piece between two stations.
        begin: how many nodes of the first station a path may begin with; None if with any.
        forward, backward: for each station, tracks from its nodes that end before the next, or the previous, station.
    """

    course: Course
    stations: list[int]
    nodes: list[list[Array]]
    curves: list[list[Curve]]
    begin: int | None = None
    forward: list[dict[int, Track]] = field(default_factory=list[dict[int, Track]])
    backward: list[dict[int, Track]] = field(default_factory=list[dict[int, Track]])

    @property
    def most(self) -> int:
        return MOST if self.course.is_quick else FEW

    def piece(self, i: int) -> Array:
        """s of the knots from station i to the next."""
        return self.course.s[self.stations[i] : self.stations[i + 1] + 1]


def build(
    course: Course, stations: list[int], first: Array, seeds: Seeds | None = None, *, is_fixed: bool = False
) -> Roadmap:
    """
    Args:
        first: (n, nq) configurations at which all holds at the first station; may be none.
        seeds: finds such configurations at the other stations. Not asked where the branches that arrive are many.
        is_fixed: whether a path has to begin with one of the first, if there are any.
    """
    pieces = len(stations) - 1
    made = Roadmap(course, stations, [list(first), *([] for _ in range(pieces))], [[] for _ in range(pieces)])
    made.begin = len(first) if is_fixed and len(first) else None
    made.forward = [{} for _ in stations]
    made.backward = [{} for _ in stations]
    for i in range(pieces):
        _forward(made, i, seeds)
    for i in range(pieces, 0, -1):
        _backward(made, i)
    return made


def _forward(made: Roadmap, i: int, seeds: Seeds | None) -> None:
    course, here = made.course, made.nodes[i]
    tracks = go(course, np.array(here), made.piece(i)) if here else []
    whole: list[tuple[int, Array]] = []
    for k, track in enumerate(tracks):
        if track.code == FINE:
            whole.append((k, track.q))
        else:
            made.forward[i][k] = track
    are_enough = len(whole) >= made.most and not (course.has_all or course.spare)
    if seeds is not None and not are_enough:
        made.nodes[i + 1] = list(seeds(float(course.s[made.stations[i + 1]])))
    _arrive(made, i, whole)


def _arrive(made: Roadmap, i: int, whole: list[tuple[int, Array]]) -> None:
    """Curves from nodes of station i to those of the next, which are made where there are none yet."""
    course, there = made.course, made.nodes[i + 1]
    whole.sort(key=lambda one: float(np.abs(np.diff(one[1], axis=0)).max(initial=0.0)))
    for k, q in whole:
        b = nearest(course, there, q[-1])
        if b is None or b[1] > (CLOSE if course.spare else SAME):
            if len(there) < made.most or not course.spare:
                made.curves[i].append(Curve(k, len(there), q))
                there.append(q[-1])
        elif not course.spare:
            made.curves[i].append(Curve(k, b[0], q))
    if course.spare and there:
        for k, q in whole:
            apart = np.abs(course.apart(q[-1], np.array(there))).max(axis=1)
            for b in map(int, np.argsort(apart, kind="stable")[:LINKS]):
                if 1e-9 < apart[b] < FAR and (link := _blend(made, i, q, there[b])) is not None:
                    made.curves[i].append(Curve(k, b, link))


def _blend(made: Roadmap, i: int, q: Array, b: Array) -> Array | None:
    """From where a curve q (m, nq) begins to b, where another one ends: leaving it smoothly; None if it jumps."""
    course = made.course
    share = np.linspace(0.0, 1.0, len(q))
    share = share**2 * (3.0 - 2.0 * share)
    starts = course.space.integrate(q, share[:, None] * course.apart(q[-1], b))
    found, codes = course.settle(made.piece(i), starts)
    if (codes != FINE).any() or not ways_free(course, found[:-1], found[1:]).all():
        return None
    steps = np.abs(course.space.difference(found[:-1], found[1:])).max(axis=1)
    even = steps.max() <= max(UNEVEN * steps.mean(), SHORT) and steps.max() <= LONGEST
    return found if even and np.abs(course.apart(found[-1], b)).max() < SAME else None


def _backward(made: Roadmap, i: int) -> None:
    """From those nodes of station i that nothing leads to, to the station before."""
    course = made.course
    known = {curve.b for curve in made.curves[i - 1]}
    lost = [k for k in range(len(made.nodes[i])) if k not in known]
    if not lost:
        return
    there = made.nodes[i - 1]
    tracks = go(course, np.array([made.nodes[i][k] for k in lost]), made.piece(i - 1)[::-1])
    for k, track in zip(lost, tracks, strict=True):
        if track.code != FINE:
            made.backward[i][k] = track
            continue
        q = np.ascontiguousarray(track.q[::-1])
        a = nearest(course, there, q[0])
        if a is not None and a[1] <= SAME:
            made.curves[i - 1].append(Curve(a[0], k, q))
        elif len(there) < 2 * made.most or not course.spare:
            made.curves[i - 1].append(Curve(len(there), k, q))
            there.append(q[0])


def nearest(course: Course, nodes: list[Array], q: Array) -> tuple[int, float] | None:
    """Which of the nodes is nearest to q, full turns aside, and how far its farthest freedom is off."""
    if not nodes:
        return None
    apart = np.abs(course.apart(q, np.array(nodes))).max(axis=1)
    k = int(np.argmin(apart))
    return k, float(apart[k])
