"""Drives that seem to move, to first order, and do not: a structure that can only shake.

Bars that hold each other stretched on one line are the simplest: the rows do not change for a small step across, but
what they change by is a square, and no step away from the line shuts the loops again.
"""

from __future__ import annotations

import numpy as np

from mechanik.assembly.assembly import Assembly
from mechanik.assembly.branches import branches
from mechanik.assembly.drives import Drives
from mechanik.assembly.place import Course
from mechanik.assembly.walk import Walk
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array

HARDLY = 0.01
"""Rad, sizes: a walk that is stuck before it has come so far has not got away from its start."""
SHAKE = 2e-5
"""How far it can shake, about: loops seem shut to 1e-10, and what opens them grows as a square."""


def is_held(walk: Walk) -> bool:
    """Whether a walk is stuck where it began, and no way leads its drives on from there."""
    start = walk.trail[0]
    if float(np.linalg.norm(walk.course.apart(start, walk.here))) > HARDLY:
        return False
    return branches(walk.course, start).gain < SHAKE


def cannot_move(course: Course, q: Array) -> Assembly:
    """The answer for drives that are held at q, by name."""
    loops, drives = course.loops, course.drives
    errors = drives.errors(q, 0.0)
    held = [name for name in drives.values if _is_held_alone(course, name, q)] or list(drives.values)
    off = ", ".join(f"{name} cannot move (off by {errors[name]:.4g})" for name in held)
    text = f"{off}: the loops leave it no way but to shake"
    nothing, turns = np.zeros(loops.n), drives.turns(q, 0.0)
    return Assembly(loops.mechanism, drives.values, q, False, Status.CLOSEST, text, errors, (), nothing, turns)


def _is_held_alone(course: Course, name: str, q: Array) -> bool:
    loops = course.loops
    alone = Course(loops, Drives(loops, {name: course.drives.values[name]}, q))
    return alone.drives.far > HARDLY and branches(alone, alone.place(q, 0.0)).gain < SHAKE
