"""On a change point itself, exactly: from places of the same branch before and beyond it.

There the rows say where the mechanism is to half of the digits only, since they are flat along the other branch. But
the branch itself is smooth, and a polynomial through places at even distances to both sides has all digits.
"""

from __future__ import annotations

import numpy as np

from mechanik.assembly.place import SHUT, Place
from mechanik.assembly.walk import Walk
from mechanik.spatial.array import Array

REACH = 0.02
"""Between places (rad, sizes of s)."""
WEIGHTS = np.array([-1.0, 8.0, -28.0, 56.0, 56.0, -28.0, 8.0, -1.0]) / 70.0
"""Of the eight places at -4 to 4, the middle left out: exact for polynomials of degree 7."""
CLEAR = 1e-3
"""Singular values (as shares) above this are well away from a change point."""
OFFSETS = np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])


def land(walk: Walk, s: float) -> tuple[Place, Array] | None:
    """The place on the walk's branch at s, and its direction (n + 1,) there, where a change point is near.

    None if the branch cannot be followed around it.
    """
    course = walk.course
    found = _clear(walk, s)
    if found is None:
        return None
    clear, heading = found
    sides: list[Walk] = []
    for sign in (-1.0, 1.0):
        side = Walk(course, [clear], [sign * heading], walk.rank, sign=sign, is_free=True)
        side.go(s + sign * 4.5 * REACH, longest=0.1)
        if side.stopped:
            return None
        sides.append(side)
    whole = Walk(course, sides[0].trail[:0:-1] + sides[1].trail, [], walk.rank, is_free=True)
    whole.headings = [-t for t in sides[0].headings[:0:-1]] + sides[1].headings
    steps: list[Array] = []
    for offset in OFFSETS:
        place = whole.at(s + offset * REACH)
        if not place.error < 1e-10:
            return None
        steps.append(course.loops.apart(walk.trail[0].q, place.q))
    samples = np.array(steps)
    q = course.drives.put(course.loops.step(walk.trail[0].q, WEIGHTS @ samples), s)
    there = course.place(q, s)
    along = np.append((samples[4] - samples[3]) / (2 * REACH), 1.0)
    return (there, along / np.linalg.norm(along)) if there.error < SHUT else None


def _clear(walk: Walk, s: float) -> tuple[Place, Array] | None:
    """A place of the branch that is well away from change points, and the direction there; beyond s if need be."""
    for place, heading in zip(reversed(walk.trail), reversed(walk.headings), strict=True):
        if place.size(walk.rank) > CLEAR:
            return place, heading
    ahead = Walk(walk.course, walk.trail[:1], walk.headings[:1], walk.rank, is_blurred=True, is_free=True)
    ahead.go(s + 4.5 * REACH, longest=0.1)
    is_clear = not ahead.stopped and ahead.here.size(walk.rank) > CLEAR
    return (ahead.here, ahead.heading) if is_clear else None
