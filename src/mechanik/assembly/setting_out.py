"""Where a walk begins, and which way it goes first."""

from __future__ import annotations

import numpy as np

from mechanik.assembly.branches import AHEAD, branches
from mechanik.assembly.place import Course
from mechanik.assembly.walk import ASIDE, DEAD, HOLDS, TOO_NEAR, Walk
from mechanik.spatial.array import Array


def begin(course: Course, q: Array, heading: Array | None = None) -> Walk:
    """A walk from q, where all loops are shut and the drives stand at s = 0.

    Args:
        heading: (n + 1,) the direction of the curve there, if it is known from before.
    """
    here = course.place(q, 0.0)
    rank = here.rank
    walk = Walk(course, [here], [course.end], rank)
    t = here.within(course.end, rank)
    size = float(np.linalg.norm(t))
    is_clear = course.n + 1 - rank == 1 and here.size(rank) > TOO_NEAR
    if heading is not None and not is_clear:
        q_ahead, s_ahead = course.step(q, 0.0, AHEAD * heading)
        ahead = course.settle(q_ahead, s_ahead, heading[None])
        is_near = float(np.linalg.norm(course.apart(here, ahead) - AHEAD * heading)) < ASIDE * AHEAD
        if ahead.error < HOLDS and is_near and here.size(ahead.rank) < TOO_NEAR:
            walk.headings[0], walk.is_blurred, walk.rank = heading, True, ahead.rank
            return walk
    if course.n + 1 - rank == 1 and size > 1e-3:
        walk.headings[0] = t / size
        return walk
    found = branches(course, here)
    if found.is_crossing:
        walk.rank, walk.is_blurred = found.rank, True
        walk.headings[0] = found.directions[0]
        walk.crossed.append(here)
        return walk
    if size > DEAD:
        walk.headings[0] = t / size
    elif found.directions:
        walk.headings[0] = found.directions[0]
        walk.stopped = "" if found.goes_on else "dead point"
    else:
        walk.stopped = "conflict"
    return walk
