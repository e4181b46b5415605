"""What comes too near between two knots: there a path is straight, and not where the goals hold."""

from __future__ import annotations

import numpy as np

from mechanik.errors import NotSolved
from mechanik.paths.course import Course, Mask
from mechanik.paths.path import FINE, Path
from mechanik.spatial.array import Array

MORE = "more knots there would follow the goals more closely"


def ways_free(course: Course, a: Array, b: Array) -> Mask:
    """(K,) whether nothing comes too near on the straight way from each of a (K, nq) to b, apart from the ends.

    Loops are not shut on the way, which takes long: `first_bump` has the last word.
    """
    free = np.ones(len(a), dtype=np.bool_)
    if not course.has_collider:
        return free
    ways = course.space.difference(a, b)
    parts = np.maximum(np.ceil(np.abs(ways).max(axis=1, initial=0.0) / FINE), 1.0).astype(np.int64)
    k = np.repeat(np.arange(len(a)), parts - 1)
    if len(k):
        number = np.arange(1, len(k) + 1) - np.repeat(np.cumsum(parts - 1) - (parts - 1), parts - 1)
        between = course.space.integrate(a[k], (number / parts[k])[:, None] * ways[k])
        free[k[~course.are_free(between)]] = False
    return free


def first_bump(course: Course, path: Path) -> tuple[float, Array, str] | None:
    """Where a path first comes too near to something, loops shut: s and q (nq,) just before it, and what is there."""
    if not course.has_collider:
        return None
    try:
        dense = path.finer(FINE)
    except NotSolved:
        return float(path.s[0]), path.q[0], f"loops cannot be shut on the way between two knots; {MORE}"
    free = course.are_free(dense.q)
    if free.all():
        return None
    k = int(np.argmin(free))
    before = max(k - 1, 0)
    why = f"in collision between two knots: {course.clashes(dense.q[k])[0]}; {MORE}"
    return float(dense.s[before]), dense.q[before], why
