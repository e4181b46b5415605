"""The two chains of six bars with one freedom, Watt's and Stephenson's, held by any of their bars.

Which bar is held makes the inversions, I, II and III: the bars move the same way against each other, whichever
of them stands still.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from mechanik.errors import UnknownName
from mechanik.gallery.bars import Bars, pin_together
from mechanik.gallery.circles import Point, heading, meet, polar
from mechanik.gallery.lengths import check_angles, check_lengths, check_point
from mechanik.mechanism import Mechanism

WattBar = Literal["base", "crank", "coupler", "bell", "rod", "lever"]
StephensonBar = Literal["base", "crank", "coupler", "rocker", "rod", "lever"]


def watt_six_bar(
    base: float = 2.0,
    crank: float = 0.5,
    coupler: float = 1.8,
    rocker: float = 1.2,
    bend: float = -1.2,
    arm: float = 1.0,
    rod: float = 1.6,
    lever: float = 1.1,
    reach: float = 1.8,
    angle: float = 0.6,
    held: WattBar = "base",
) -> Mechanism:
    """Two four-bars in a row (J. Watt 1784): crank and coupler swing a bell crank, and that a lever through a rod.

    The two bars of three pins, base and bell, share one. Held by either it is Watt's second inversion; held by
    another bar, the first.

    Args:
        base, crank, coupler, rocker: the first four-bar, the rocker being the bell's first arm; m.
        bend: from the bell's first arm to its second; rad.
        arm, rod, lever, reach: the second four-bar: the bell's second arm, the rod to the lever, the lever, and how
            far along the base the lever's pivot is from the bell's; m.
        angle: of the crank to the base, at which it is assembled; rad.
        held: the bar that stands still, from its first pin along x.
    """
    what = "watt_six_bar"
    check_lengths(what, base=base, crank=crank, coupler=coupler, rocker=rocker, arm=arm, rod=rod, lever=lever)
    check_lengths(what, reach=reach)
    check_angles(what, angle=angle, bend=bend)
    start, middle, end = (0.0, 0.0), (base, 0.0), (base + reach, 0.0)
    knee = polar(start, crank, angle)
    elbow = meet(what, knee, coupler, middle, rocker)
    tip = polar(middle, arm, heading(middle, elbow) + bend)
    points = {
        "start": start,
        "middle": middle,
        "end": end,
        "knee": knee,
        "elbow": elbow,
        "tip": tip,
        "wrist": meet(what, tip, rod, end, lever),
    }
    bars = {
        "base": ("start", "middle", "end"),
        "crank": ("start", "knee"),
        "bell": ("middle", "elbow", "tip"),
        "coupler": ("knee", "elbow"),
        "lever": ("end", "wrist"),
        "rod": ("tip", "wrist"),
    }
    return _hold(what, points, bars, held)


def stephenson_six_bar(
    base: float = 2.0,
    crank: float = 0.5,
    coupler: float = 1.8,
    rocker: float = 1.2,
    bend: float = 0.6,
    arm: float = 1.4,
    rod: float = 1.6,
    lever: float = 1.2,
    pivot: Point = (2.6, 1.2),
    angle: float = 0.6,
    held: StephensonBar = "base",
) -> Mechanism:
    """A four-bar whose coupler drives a lever through a rod (R. Stephenson's valve gear, 1842).

    The two bars of three pins, base and coupler, share none. Held by either it is Stephenson's third inversion; held
    by crank or rocker, which join them, the first; held by rod or lever, the second.

    Args:
        base, crank, coupler, rocker: the four-bar; m.
        bend, arm: where the rod is pinned to the coupler: the angle from the coupler's line, at the crank, and the
            distance from there; rad and m.
        rod, lever, pivot: the rod, the lever, and the lever's pivot on the base; m.
        angle: of the crank to the base, at which it is assembled; rad.
        held: the bar that stands still, from its first pin along x.
    """
    what = "stephenson_six_bar"
    check_lengths(what, base=base, crank=crank, coupler=coupler, rocker=rocker, arm=arm, rod=rod, lever=lever)
    check_angles(what, angle=angle, bend=bend)
    check_point(what, "pivot", pivot)
    start, middle = (0.0, 0.0), (base, 0.0)
    knee = polar(start, crank, angle)
    elbow = meet(what, knee, coupler, middle, rocker)
    tip = polar(knee, arm, heading(knee, elbow) + bend)
    points = {
        "start": start,
        "middle": middle,
        "end": pivot,
        "knee": knee,
        "elbow": elbow,
        "tip": tip,
        "wrist": meet(what, tip, rod, pivot, lever),
    }
    bars = {
        "base": ("start", "middle", "end"),
        "crank": ("start", "knee"),
        "rocker": ("middle", "elbow"),
        "coupler": ("knee", "elbow", "tip"),
        "lever": ("end", "wrist"),
        "rod": ("tip", "wrist"),
    }
    return _hold(what, points, bars, held)


def _hold(what: str, points: Mapping[str, Point], bars: Bars, held: str) -> Mechanism:
    """The linkage with the held bar's first pin at the origin, and its second on x."""
    if held not in bars:
        raise UnknownName(f"bar of {what}", held, bars)
    first, second = (points[point] for point in bars[held][:2])
    c, s = math.cos(heading(first, second)), math.sin(heading(first, second))
    moved = {
        name: (c * (x - first[0]) + s * (y - first[1]), c * (y - first[1]) - s * (x - first[0]))
        for name, (x, y) in points.items()
    }
    return pin_together(what, moved, bars, held)
