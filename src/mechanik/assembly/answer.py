"""What a walk has come to, as an assembly with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mechanik.assembly.assembly import Assembly, Passed
from mechanik.assembly.loops import Loops
from mechanik.assembly.place import Course, Place
from mechanik.assembly.walk import TOO_NEAR, Walk
from mechanik.ik import Solver
from mechanik.mechanism.door import counted
from mechanik.objectives import JointValues
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array

MET = 1e-9
"""m and rad; loops that are open by less are shut."""
DRIVEN = 2e-8
"""m and rad; drives that are off by less are met. Half of the digits is all that can be told of a dead point."""


def answer(course: Course, walk: Walk, place: Place, heading: Array) -> Assembly:
    """Where a walk has come to its goal, or to what stands in its place."""
    drives, loops = course.drives, course.loops
    q = drives.put(place.q, place.s)
    errors = drives.errors(q, place.s)
    outside, of = loops.beyond(q)
    passed = tuple(Passed("change point", one.q) for one in walk.crossed)
    met = sum(error < DRIVEN for error in errors.values())
    status, text = Status.CONVERGED, in_words(loops, errors, passed)
    if not _is_shut(loops, q):
        status, text = Status.STALLED, "the branch was lost on the way; try more steps, or another q0"
    elif walk.stopped == "stuck" and not walk.spare:
        status = Status.STALLED
        text = "the drives are met, but the branch was lost on the way, and this may be another; try more steps"
    elif drives.clamped:
        status = Status.CLOSEST
        text = f"outside its limits, and left at the nearer one: {', '.join(drives.clamped)}"
    elif met < len(errors):
        status, text = Status.CLOSEST, "the drives cannot be met from here"
    elif outside > MET:
        status, text = Status.CLOSEST, f"{of} is outside its limits"
    success, turns = status is Status.CONVERGED, drives.turns(q, place.s)
    return Assembly(loops.mechanism, drives.values, q, success, status, text, errors, passed, heading, turns)


def in_words(loops: Loops, errors: Mapping[str, float], passed: Sequence[Passed]) -> str:
    """How many drives are met and loops shut, and what was on the way."""
    text = f"{counted(len(loops.mechanism.closures), 'loop')} shut"
    if errors:
        met = sum(error < DRIVEN for error in errors.values())
        text = f"{met} of {counted(len(errors), 'drive')} met, {text}"
    return f"{text}; on the way it passed {counted(len(passed), 'change point')}" if passed else text


def left_open(course: Course, q: Array) -> Assembly:
    """Where the loops are not shut; q is the least open configuration that was found."""
    loops, drives = course.loops, course.drives
    text = "its loops could not be shut, or its laws not kept"
    found = Assembly(
        loops.mechanism, drives.values, q, False, Status.OPEN, text, drives.errors(q, 0.0), (), np.zeros(loops.n)
    )
    off: list[str] = []
    for name, error in found.closure_errors.items():
        gaps = [f"{gap:.4g} {unit}" for gap, unit in ((error.position, "m"), (error.rotation, "rad")) if gap > MET]
        off += [f"loop {name} (open by {' and '.join(gaps)})"] if gaps else []
    off += [f"law {name} (off by {abs(error):.4g})" for name, error in found.law_errors.items() if abs(error) > MET]
    beyond, of = loops.beyond(q)
    off += [f"{of} (outside its limits)"] if beyond > MET else []
    advice = "start nearer, or ask for assembly_modes"
    message = f"{text}: {', '.join(off)}; that is the least that was found near q0: {advice}"
    return Assembly(loops.mechanism, found.drive, q, False, Status.OPEN, message, found.drive_errors, (), found.heading)


def as_near_as_it_comes(course: Course, walk: Walk) -> Assembly:
    """Where a walk ended before its goal; several drives may come nearer to theirs off the straight way."""
    loops, drives, here = course.loops, course.drives, walk.here
    q, passed = here.q, [Passed("change point", one.q) for one in walk.crossed]
    if walk.stopped == "dead point":
        passed.append(Passed("dead point", q))
    if walk.stopped != "steps" and (len(drives.start) > 1 or walk.spare):
        found = Solver(loops.mechanism, JointValues(drives.values, turns="exact")).solve(q0=q)
        before, after = (np.linalg.norm(list(drives.errors(one, here.s).values())) for one in (q, found.q))
        if _is_shut(loops, found.q) and after < before - MET:
            q = found.q
            if found.success and not drives.clamped:
                exact = course.settle_at(q, drives.far)
                if exact.error < MET and loops.beyond(exact.q)[0] < MET:
                    return answer(course, walk, exact, np.zeros(loops.n))
    errors = drives.errors(q, here.s)
    is_at_crossing = here.size(walk.rank) < TOO_NEAR
    held = {
        "dead point": "it stands at a dead point" + (", where loops lose rank too" if is_at_crossing else ""),
        "limit": f"{walk.limit} is at its limit",
        "stuck": "the branch could not be followed any further",
        "conflict": "the drives hold each other",
        "steps": "",
    }[walk.stopped]
    missed = ", ".join(f"{name} (off by {error:.4g})" for name, error in errors.items() if error > DRIVEN)
    text, status = f"out of reach on this branch: {missed}; {held}", Status.CLOSEST
    if not missed:
        status, text = Status.CONVERGED, f"{in_words(loops, errors, passed[: len(walk.crossed)])}; {held}"
    elif walk.stopped == "stuck":
        status = Status.STALLED
    elif walk.stopped == "steps":
        status = Status.TIMEOUT
        text = f"given up on the way after {walk.taken} steps: {missed}; give this answer as q0 to go on from here"
    heading = walk.heading[:-1] * loops.unit
    success, turns = status is Status.CONVERGED, drives.turns(q, here.s)
    return Assembly(loops.mechanism, drives.values, q, success, status, text, errors, tuple(passed), heading, turns)


def _is_shut(loops: Loops, q: Array) -> bool:
    return float(np.abs(loops.rows(q)[0]).max(initial=0.0)) < MET
