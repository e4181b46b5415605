"""Continuation: configurations carried along s, each from where it was to where all holds a little farther on.

A step starts from where the last one leads on to. One that ends aside of that is halved, until it is small or until it
is clear that the branch ends there: a jump stays as large as it is however short the step. So what is followed is one
branch, and the s where it ends is known to a fraction of the distance between knots.
(E. L. Allgower, K. Georg, "Numerical Continuation Methods", Springer 1990.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.paths.between import ways_free
from mechanik.paths.course import CLASH, FINE, UNMET, Codes, Course
from mechanik.spatial.array import Array

HALVINGS, FINEST = 6, 20
"""Of the distance between two knots, until a track is taken to end; and where it matters where exactly that is."""
ASIDE = 0.35
"""How far, as a share of a step, the branch may lie aside of where the step before leads."""
SMALL = 2e-4
"""rad or m: steps as small as this may lie aside as they like."""
FIRST = 0.02
"""rad or m: the longest step of which no direction is known yet."""
PUSHED = 0.05
"""rad or m: so far is gone aside at once where something is in the way."""
LONGEST = 0.35
"""rad or m: longer steps are halved whatever they look like."""


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """
    Attributes:
        q: (m, nq) at as many of the knots as it came to, from the first on.
        end: the s that it came to; beyond the last of its knots if it ended between two.
        last: (nq,) where it stood then.
        code: FINE if it came to the last knot, else what stopped it.
    """

    q: Array
    end: float
    last: Array
    code: int


def go(course: Course, q: Array, s: Array) -> list[Track]:
    """Each of configurations q (K, nq), at which all holds at s[0], along the knots s (M,), which rise or fall.

    All are carried at once, since that costs hardly more than to carry one.
    """
    count, M = len(q), len(s)
    ways = np.empty((M, count, course.space.nq))
    ways[0] = q
    speed = np.full((count, course.space.nv), np.nan)  # by s, of the last step
    reached = np.full(count, M)
    end, last, codes = np.full(count, s[-1]), q.copy(), np.full(count, FINE)
    going = np.arange(count)
    for m in range(1, M):
        if not len(going):
            break
        here, ds = ways[m - 1, going], float(s[m] - s[m - 1])
        there, there_speed, found = _step(
            course, here, speed[going], np.full(len(going), s[m]), np.full(len(going), ds)
        )
        hard = np.flatnonzero(found != FINE)
        there[hard], there_speed[hard], found[hard], at = _carefully(
            course, here[hard], speed[going[hard]], float(s[m - 1]), float(s[m])
        )
        fine = found == FINE
        k = going[~fine]
        reached[k], end[k], last[k], codes[k] = m, at[found[hard] != FINE], there[~fine], found[~fine]
        ways[m, going], speed[going] = there, there_speed
        going = going[fine]
    last[going] = ways[M - 1, going]
    return [Track(ways[: reached[k], k].copy(), float(end[k]), last[k], int(codes[k])) for k in range(count)]


def _step(course: Course, q: Array, speed: Array, s: Array, ds: Array) -> tuple[Array, Array, Codes]:
    """One step each: where it ends (K, nq), the speed there, and what became of it; UNMET if it may be a jump.

    CLASH also if something is in the way there.
    """
    space = course.space
    known = np.isfinite(speed[:, :1])
    ahead = np.where(known, speed, 0.0) * ds[:, None]
    if course.spare:  # what is free would go on for ever
        ahead = np.zeros_like(ahead)
    guess = space.integrate(q, ahead) if not course.spare else q
    there, codes = course.settle(s, guess)
    slid = codes == CLASH
    if course.can_slide and slid.any():
        there[slid], is_off = course.slide(s[slid], q[slid])
        codes[slid] = np.where(is_off, FINE, CLASH)
    step = space.difference(q, there)
    size = np.abs(step).max(axis=1, initial=0.0)
    if course.spare:
        before = np.abs(np.where(known, speed, 0.0)).max(axis=1, initial=0.0) * np.abs(ds)
        is_small = size <= np.where(known[:, 0], 2.0 * before + SMALL, FIRST)
        is_small |= slid & (size <= PUSHED)  # it is pushed aside at once, however short the step
    else:
        aside = np.abs(step - ahead).max(axis=1, initial=0.0)
        is_small = aside <= ASIDE * size + SMALL
        is_small = (known[:, 0] & is_small) | (~known[:, 0] & (size <= FIRST))
    is_small = is_small & (size <= LONGEST)
    codes = np.where((codes == FINE) & ~is_small, np.where(slid, CLASH, UNMET), codes)
    fine = np.flatnonzero(codes == FINE)
    codes[fine[~ways_free(course, q[fine], there[fine])]] = CLASH
    return there, np.where(slid[:, None], speed, step / ds[:, None]), codes


def end_of(course: Course, track: Track, b: float) -> Track:
    """The same track with its end found to the finest.

    Args:
        b: the s of the knot that it did not come to.
    """
    unknown = np.full((1, course.space.nv), np.nan)
    last, _, codes, end = _carefully(course, track.last[None], unknown, track.end, b, FINEST)
    return Track(track.q, float(end[0]), last[0], track.code if codes[0] == FINE else int(codes[0]))


def _carefully(
    course: Course, q: Array, speed: Array, a: float, b: float, halvings: int = HALVINGS
) -> tuple[Array, Array, Codes, Array]:
    """Configurations (K, nq) from s = a to b, each in steps as short as need be.

    Returns:
        where each ends, the speed there, what stopped it if anything did, and the s it came to.
    """
    q, speed, count = q.copy(), speed.copy(), len(q)
    at, h, good = np.full(count, a), np.full(count, 0.5 * (b - a)), np.zeros(count, dtype=np.int64)
    smallest = abs(b - a) * 2.0**-halvings
    codes, going = np.full(count, FINE), np.arange(count if a != b else 0)
    while len(going):
        h[going] = np.sign(b - a) * np.minimum(np.abs(h[going]), np.abs(b - at[going]))
        there, new_speed, found = _step(course, q[going], speed[going], at[going] + h[going], h[going])
        fine = found == FINE
        k, stuck = going[fine], going[~fine]
        q[k], speed[k], at[k] = there[fine], new_speed[fine], at[k] + h[k]
        good[k] += 1
        good[stuck] = 0
        h[k] *= np.where(good[k] > 1, 2.0, 1.0)  # only after two good steps a longer one is worth trying
        h[stuck] *= 0.5
        stopped = ~fine & (np.abs(h[going]) < smallest)
        codes[going[stopped]] = found[stopped]
        arrived = fine & (np.abs(b - at[going]) <= 0.25 * smallest)
        at[going[arrived]] = b
        going = going[~stopped & ~arrived]
    return q, speed, codes, at
