"""What the drives leave free, brought as near as it can to where it was."""

from __future__ import annotations

import numpy as np

from mechanik.assembly.place import SHUT, Course, Place
from mechanik.spatial.array import Array

MOST = 60
FLAT = 1e-10
"""Steps (rad, sizes) shorter than this lead nowhere."""


def relax(course: Course, place: Place, q0: Array) -> Place:
    """The place with the same s that is, downhill from here and inside the limits, the nearest to q0 (nq,).

    Gauss-Newton on the way from q0, less its part that would change a row. A step that does not shorten the way is
    halved.
    """
    loops = course.loops
    way = loops.apart(q0, place.q)
    stride = 1.0
    for _ in range(MOST):
        A = place.A.copy()
        A[:, -1] = 0.0
        held = _at_limits(course, place.q)
        back = np.zeros_like(way)
        for _ in range(4):
            back = _within(np.where(held, 0.0, A[:, :-1]), np.where(held, 0.0, -way))
            out = _leads_out(course, place.q, back) & ~held
            if not out.any():
                break
            held = held | out
        if float(np.linalg.norm(back)) < FLAT or stride < 1e-3:
            break
        q = np.clip(loops.step(place.q, stride * back), loops.lower, loops.upper)
        before, course.held = course.held, held
        trial = course.settle_at(q, place.s)
        course.held = before
        way_there = loops.apart(q0, trial.q)
        shorter = float(way_there @ way_there) < float(way @ way)
        if trial.error < SHUT and shorter and loops.beyond(trial.q)[0] <= 1e-9:
            place, way, stride = course.place(trial.q, place.s), way_there, min(1.0, 2 * stride)
        else:
            stride *= 0.5
    return place


def _within(J: Array, u: Array) -> Array:
    """The part of u that changes no row."""
    return u - np.linalg.lstsq(J, J @ u, rcond=1e-10)[0] if len(J) else u


def _at_limits(course: Course, q: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(nv,) freedoms whose limits leave them one place to be."""
    k = np.maximum(course.loops.columns, 0)
    return (course.loops.columns >= 0) & (course.loops.lower[k] == course.loops.upper[k])


def _leads_out(course: Course, q: Array, u: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(nv,) freedoms at a limit that a step would take over it."""
    loops = course.loops
    k = np.maximum(loops.columns, 0)
    over = ((u > 0) & (q[k] >= loops.upper[k] - 1e-12)) | ((u < 0) & (q[k] <= loops.lower[k] + 1e-12))
    return (loops.columns >= 0) & over
