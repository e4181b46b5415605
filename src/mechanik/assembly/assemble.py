"""Forward kinematics of loops: drives are given, the rest follows, and the branch is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np

from mechanik.assembly.answer import DRIVEN, MET, answer, as_near_as_it_comes, in_words, left_open
from mechanik.assembly.assembly import Assembly
from mechanik.assembly.conflicts import independent
from mechanik.assembly.door import Given, as_drive, as_weights
from mechanik.assembly.drives import Drives, without_turns
from mechanik.assembly.kept import loops_of
from mechanik.assembly.landing import land
from mechanik.assembly.loops import Loops
from mechanik.assembly.one_step import one_step
from mechanik.assembly.place import SHUT, Course
from mechanik.assembly.relax import relax
from mechanik.assembly.setting_out import begin
from mechanik.assembly.shaking import cannot_move, is_held
from mechanik.assembly.shut import shut
from mechanik.assembly.walk import LONGEST, MOST_STEPS, TOO_NEAR, Walk
from mechanik.errors import LimitsError, ShapeError
from mechanik.mechanism import Mechanism
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array, ArrayLike

OPEN = 0.01
"""Rows (rad, sizes) above this at the start: it was open, and on no branch."""
BLURRED = 1e-3
"""A goal at which a singular value (as a share) is below this is reached from both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where a way begins.

    Attributes:
        q: (nq,).
        heading: (nv,) which way it was going; zero if that is not known.
        turned: by joint, how far those that close a loop have turned, full turns included, as far as it is known.
    """

    q: Array
    heading: Array
    turned: Mapping[str, float] = field(default_factory=dict[str, float])


def assemble(
    mechanism: Mechanism,
    drive: Given | None = None,
    q0: ArrayLike | Assembly | None = None,
    *,
    steps: int | None = None,
    weights: Mapping[str, float] | None = None,
) -> Assembly:
    """See `Mechanism.assemble`."""
    values = as_drive(mechanism, drive)
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1):
        raise LimitsError(f"steps must be a whole number of 1 or more, not {steps!r}")
    start = start_of(mechanism, q0)
    with loops_of(mechanism, as_weights(weights)) as loops:
        return go(loops, values, start, steps or 1)


def start_of(mechanism: Mechanism, q0: ArrayLike | Assembly | None) -> Start:
    if isinstance(q0, Assembly):
        if len(q0.q) != mechanism.nq:
            raise ShapeError(
                f"q0 is an assembly with {len(q0.q)} numbers, of another mechanism; here q has {mechanism.nq}"
            )
        return Start(q0.q, q0.heading, q0.turned)
    q = np.array(mechanism.q if q0 is None else mechanism._one(q0))
    for k in mechanism.space.balls_q:
        q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
    return Start(q, np.zeros(mechanism.nv))


def go(loops: Loops, values: Mapping[str, Array], start: Start, steps: int = 1) -> Assembly:
    """From a start to where the drives have their values."""
    small = one_step(loops, values) if steps == 1 else None
    there = None if small is None else small.go(values, start.q, start.heading)
    return walk_to(loops, values, start, steps) if there is None else there


def walk_to(loops: Loops, values: Mapping[str, Array], start: Start, steps: int = 1) -> Assembly:
    """The same along the branch, whatever is on the way."""
    course = Course(loops, Drives(loops, values, start.q, turned=start.turned))
    q, is_shut = shut(course, start.q)
    found = _follow(course, q, start, steps) if is_shut else left_open(course, q)
    if not found.success and values and float(np.abs(loops.rows(start.q)[0]).max(initial=0.0)) > OPEN:
        return _afresh(loops, values, start.q) or found  # there was no branch to keep
    return found


def _afresh(loops: Loops, values: Mapping[str, Array], q0: Array) -> Assembly | None:
    """With the drives put to their values at once, as near to q0 as the loops can be shut then; None if they cannot."""
    drives = Drives(loops, values, q0, turned=without_turns(loops.mechanism, values))
    goal = drives.put(q0, drives.far)
    course = Course(loops, drives)
    q, is_shut = shut(course, goal)
    if not is_shut or float(np.abs(q - drives.put(q, drives.far)).max(initial=0.0)) > MET:
        return None
    found = _follow(course, q, Start(goal, np.zeros(loops.n)), 1)
    return found if found.success else None


def _follow(course: Course, q: Array, start: Start, steps: int) -> Assembly:
    """From q, where the loops are shut, which is near to the start."""
    loops, drives = course.loops, course.drives
    drives.begin(q)
    if drives.far < SHUT:
        place = course.place(q, 0.0)
        if place.rank < course.n and not np.array_equal(q, start.q):
            place = relax(course, place, start.q)
        return answer(course, Walk(course, [place], [course.end], place.rank), place, start.heading)
    walk = begin(course, q, _as_direction(course, q, start.heading))
    walk.go(drives.far, longest=min(LONGEST, drives.far / steps), most=max(MOST_STEPS, 2 * steps))
    if walk.stopped == "stuck" and is_held(walk):
        return cannot_move(course, q)
    if walk.stopped and walk.stopped not in ("limit", "steps"):
        lead, follow = independent(loops, drives, q)
        if follow:
            return _overdriven(loops, drives.values, start, lead, follow)
    if walk.stopped:
        return as_near_as_it_comes(course, walk)
    place, t = walk.at(drives.far), walk.heading
    if not walk.spare and place.size(walk.rank) < BLURRED:
        landed = land(walk, drives.far)
        place, t = (place, t) if landed is None else landed
    elif walk.spare and not course.held.any():
        place = relax(course, place, start.q)
    return answer(course, walk, place, t[:-1] * loops.unit / max(float(t[-1]), TOO_NEAR))


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


def _overdriven(
    loops: Loops, values: Mapping[str, Array], start: Start, lead: list[str], follow: dict[str, list[str]]
) -> Assembly:
    """With more drives than freedoms the first ones lead; the others are met if they fit."""
    led = go(loops, {name: values[name] for name in lead}, start)
    drives = Drives(loops, values, led.q, turned=without_turns(loops.mechanism, values))
    errors = {**drives.errors(led.q, 0.0), **led.drive_errors}
    if led.success and all(error < DRIVEN for error in errors.values()):
        text = in_words(loops, errors, led.passed)
        return replace(led, drive=values, message=text, drive_errors=errors)
    ties = "; ".join(
        f"{name} cannot be given besides {', '.join(others)} (off by {errors[name]:.4g})" if others
        else f"{name} cannot move (off by {errors[name]:.4g})"
        for name, others in follow.items()
    )  # fmt: skip
    status = led.status if not led.success else Status.CLOSEST
    text = f"too many drives: {ties}" if led.success else f"too many drives: {ties}; and {led.message}"
    return replace(led, drive=values, success=False, status=status, message=text, drive_errors=errors)
