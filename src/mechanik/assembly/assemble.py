"""Forward kinematics of loops: drives are given, the rest follows, and the branch is kept."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral

import numpy as np

from mechanik.assembly.assembly import Assembly, Passed
from mechanik.assembly.conflicts import independent
from mechanik.assembly.drives import Drives
from mechanik.assembly.kept import loops_of
from mechanik.assembly.landing import land
from mechanik.assembly.loops import Loops
from mechanik.assembly.one_step import one_step
from mechanik.assembly.place import SHUT, Course, Place
from mechanik.assembly.relax import relax
from mechanik.assembly.setting_out import begin
from mechanik.assembly.shut import shut
from mechanik.assembly.walk import LONGEST, TOO_NEAR, Walk
from mechanik.errors import LimitsError, ShapeError, WrongKind
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import counted
from mechanik.objectives import JointValues
from mechanik.objectives.aims import as_values
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array, ArrayLike

MET = 1e-9
"""m and rad; loops and drives that are off by less are met."""
OPEN = 0.01
"""Rows (rad, sizes) above this at the start: it was open, and on no branch."""
BLURRED = 1e-3
"""A goal at which a singular value (as a share) is below this is reached from both sides."""


def assemble(
    mechanism: Mechanism,
    drive: Mapping[str, ArrayLike] | None = None,
    q0: ArrayLike | Assembly | None = None,
    *,
    steps: int | None = None,
    weights: Mapping[str, float] | None = None,
) -> Assembly:
    """See `Mechanism.assemble`."""
    values = as_values({} if drive is None else drive, "drive")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1):
        raise LimitsError(f"steps must be a whole number of 1 or more, not {steps!r}")
    start, heading = start_of(mechanism, q0)
    with loops_of(mechanism, as_weights(weights)) as loops:
        return go(loops, values, start, heading, steps or 1)


def as_weights(weights: Mapping[str, float] | None) -> Mapping[str, float]:
    if weights is not None and not isinstance(weights, Mapping):
        raise WrongKind(f"weights are given by name, as in {{'elbow': 2}}, not as {weights!r}")
    return weights or {}


def start_of(mechanism: Mechanism, q0: ArrayLike | Assembly | None) -> tuple[Array, Array]:
    """Where it begins (nq,), and which way it was going (nv,)."""
    if isinstance(q0, Assembly):
        if len(q0.q) != mechanism.nq:
            raise ShapeError(
                f"q0 is an assembly with {len(q0.q)} numbers, of another mechanism; here q has {mechanism.nq}"
            )
        return q0.q, q0.heading
    q = np.array(mechanism.q if q0 is None else mechanism._one(q0))
    for k in mechanism.space.balls_q:
        q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
    return q, np.zeros(mechanism.nv)


def go(loops: Loops, values: Mapping[str, Array], q0: Array, heading: Array, steps: int = 1) -> Assembly:
    """From q0 (nq,), with a heading (nv,) that is zero if it is not known, to where the drives have their values."""
    small = one_step(loops, values) if steps == 1 else None
    there = None if small is None else small.go(values, q0, heading)
    return walk_to(loops, values, q0, heading, steps) if there is None else there


def walk_to(loops: Loops, values: Mapping[str, Array], q0: Array, heading: Array, steps: int = 1) -> Assembly:
    """The same along the branch, whatever is on the way."""
    drives = Drives(loops, values, q0)
    course = Course(loops, drives)
    q = shut(course, q0)
    found = _open(loops, drives, q0) if q is None else _follow(course, q, q0, heading, steps)
    if not found.success and values and float(np.abs(loops.rows(q0)[0]).max(initial=0.0)) > OPEN:
        return _afresh(loops, values, q0) or found  # there was no branch to keep
    return found


def _afresh(loops: Loops, values: Mapping[str, Array], q0: Array) -> Assembly | None:
    """With the drives put to their values at once, as near to q0 as the loops can be shut then; None if they cannot."""
    drives = Drives(loops, values, q0)
    goal = drives.put(q0, drives.far)
    course = Course(loops, drives)
    q = shut(course, goal)
    if q is None or float(np.abs(q - drives.put(q, drives.far)).max(initial=0.0)) > MET:
        return None
    drives.begin(q)
    found = _follow(course, q, goal, np.zeros(loops.n), 1)
    return found if found.success else None


def _follow(course: Course, q: Array, q0: Array, heading: Array, steps: int) -> Assembly:
    """From q, where the loops are shut, which is near to q0."""
    loops, drives, values = course.loops, course.drives, course.drives.values
    drives.begin(q)
    if drives.far < SHUT:
        place = course.place(q, 0.0)
        if place.rank < course.n and not np.array_equal(q, q0):
            place = relax(course, place, q0)
        return _answer(course, Walk(course, [place], [course.end], place.rank), place, heading)
    walk = begin(course, q, _as_direction(course, q, heading))
    walk.go(drives.far, longest=min(LONGEST, drives.far / steps))
    if walk.stopped and walk.stopped != "limit":
        lead, follow = independent(loops, drives, q)
        if follow:
            return _overdriven(loops, values, q0, heading, lead, follow)
    if walk.stopped:
        return _nearest(course, walk, values)
    place, t = walk.at(drives.far), walk.heading
    if not walk.spare and place.size(walk.rank) < BLURRED:
        landed = land(walk, drives.far)
        place, t = (place, t) if landed is None else landed
    elif walk.spare and not course.held.any():
        place = relax(course, place, q0)
    return _answer(course, walk, place, t[:-1] * loops.unit / max(float(t[-1]), TOO_NEAR))


def _as_direction(course: Course, q: Array, heading: Array) -> Array | None:
    """A heading (nv,) as a direction (n + 1,) in which the drives come nearer to their goal; None if it is another."""
    u = heading / course.loops.unit
    if not np.any(u):
        return None
    _, J, by_s = course.drives.rows(q, 0.0)
    ds = -float(by_s @ (J @ u))
    z = np.append(u, ds) * np.sign(ds)
    is_this = float(np.linalg.norm(J @ u + by_s * ds)) < 1e-6 * float(np.linalg.norm(J @ u)) and ds != 0.0
    return z / float(np.linalg.norm(z)) if is_this else None


def _answer(course: Course, walk: Walk, place: Place, heading: Array) -> Assembly:
    drives, loops = course.drives, course.loops
    q = drives.put(place.q, place.s)
    errors = drive_errors(drives, q)
    outside, of = loops.beyond(q)
    is_shut = float(np.abs(loops.rows(q)[0]).max(initial=0.0)) < MET
    passed = tuple(Passed("change point", one.q) for one in walk.crossed)
    met = sum(error < MET for error in errors.values())
    text = f"{counted(len(loops.mechanism.closures), 'loop')} shut"
    if errors:
        text = f"{met} of {counted(len(errors), 'drive')} met, {text}"
    if passed:
        text += f"; on the way it passed {counted(len(passed), 'change point')}"
    status = Status.CONVERGED
    if not is_shut or walk.stopped == "stuck":
        status, text = Status.STALLED, "the branch was lost on the way; try more steps, or another q0"
    elif drives.clamped:
        status = Status.CLOSEST
        text = f"outside its limits, and left at the nearer one: {', '.join(drives.clamped)}"
    elif met < len(errors):
        status, text = Status.CLOSEST, "the drives cannot be met from here"
    elif outside > MET:
        status, text = Status.CLOSEST, f"{of} is outside its limits"
    return Assembly(
        loops.mechanism, drives.values, q, status is Status.CONVERGED, status, text, errors, passed, heading
    )


def _open(loops: Loops, drives: Drives, q: Array) -> Assembly:
    nothing = np.zeros(loops.n)
    text = "no way was found to shut the loops near q0; start nearer, or ask for assembly_modes"
    return Assembly(loops.mechanism, drives.values, q, False, Status.OPEN, text, drive_errors(drives, q), (), nothing)


def drive_errors(drives: Drives, q: Array) -> dict[str, float]:
    """How far each drive is from its value, rad or m."""
    found: dict[str, float] = {}
    for name, relation in zip(drives.names, drives.wanted, strict=True):
        rows = drives.loops.evaluate_plain(relation, q)
        found[name] = max(found.get(name, 0.0), float(np.linalg.norm(rows)))
    return found


def _nearest(course: Course, walk: Walk, values: Mapping[str, Array]) -> Assembly:
    """Where a walk ended before its goal; several drives may come nearer to theirs off the straight way."""
    loops, drives, here = course.loops, course.drives, walk.here
    q, passed = here.q, [Passed("change point", one.q) for one in walk.crossed]
    if walk.stopped == "dead point":
        passed.append(Passed("dead point", q))
    if len(drives.start) > 1 or walk.spare:
        found = Solver(loops.mechanism, JointValues(values, turns="exact")).solve(q0=q)
        before, after = (np.linalg.norm(list(drive_errors(drives, one).values())) for one in (q, found.q))
        shut_there = float(np.abs(loops.rows(found.q)[0]).max(initial=0.0)) < MET
        if shut_there and after < before - MET:
            q = found.q
            if found.success and not drives.clamped:
                exact = course.settle_at(q, drives.far)
                if exact.error < MET and loops.beyond(exact.q)[0] < MET:
                    return _answer(course, walk, exact, np.zeros(loops.n))
    errors = drive_errors(drives, q)
    held = {
        "dead point": "it stands at a dead point",
        "limit": f"{walk.limit} is at its limit",
        "stuck": "the branch could not be followed any further",
        "conflict": "the drives hold each other",
    }[walk.stopped]
    missed = ", ".join(f"{name} (off by {error:.4g})" for name, error in errors.items() if error > MET)
    text = f"out of reach on this branch: {missed}; {held}"
    status = Status.STALLED if walk.stopped == "stuck" else Status.CLOSEST
    t = walk.heading
    return Assembly(loops.mechanism, drives.values, q, False, status, text, errors, tuple(passed), t[:-1] * loops.unit)


def _overdriven(
    loops: Loops, values: Mapping[str, Array], q0: Array, heading: Array, lead: list[str], follow: dict[str, list[str]]
) -> Assembly:
    """With more drives than freedoms the first ones lead; the others are met if they fit."""
    led = go(loops, {name: values[name] for name in lead}, q0, heading)
    errors = drive_errors(Drives(loops, values, led.q), led.q)
    if led.success and all(error < MET for error in errors.values()):
        return Assembly(loops.mechanism, values, led.q, True, led.status, led.message, errors, led.passed, led.heading)
    ties = "; ".join(
        f"{name} cannot be given besides {', '.join(others)} (off by {errors[name]:.4g})" if others
        else f"{name} cannot move (off by {errors[name]:.4g})"
        for name, others in follow.items()
    )  # fmt: skip
    status = led.status if not led.success else Status.CLOSEST
    text = f"too many drives: {ties}" if led.success else f"too many drives: {ties}; and {led.message}"
    return Assembly(loops.mechanism, values, led.q, False, status, text, errors, led.passed, led.heading)
