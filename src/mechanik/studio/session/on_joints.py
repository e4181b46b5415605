"""Joints: set, dragged, limited, locked, at rest; and named configurations."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import LimitsError, Refused, UnknownName
from mechanik.ik import Solver
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array
from mechanik.studio.messages import requests
from mechanik.studio.session.freedoms import Freedom
from mechanik.studio.session.plan import HAND, Held, driven, hand_objective, hand_target, plan

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session
    from mechanik.studio.session.stage import Stage

STRIDE = 0.2
"""Rad, and radii of the mechanism: a joint that is set by number goes there by steps no longer, so that loops keep to
the way in which they are put together."""
MOST_STRIDES, LONGEST_WAY = 64, 3.0
"""Steps on the way, and seconds for all of them."""
SHUT = 1e-6
"""m and rad: a loop that stands open by more is open."""
RANDOM_TRIES = 8


def _freedom(session: Session, number: int) -> Freedom:
    """The freedom of that number."""
    freedoms = session.on_stage.table.anatomy.freedoms
    if not 0 <= number < len(freedoms):
        raise UnknownName("freedom", number, [str(k) for k in range(len(freedoms))])
    return freedoms[number]


def _single(session: Session, number: int, does: str) -> Freedom:
    """The freedom of that number, one that has a single value."""
    one = _freedom(session, number)
    if one.is_ball:
        raise Refused(f"{one.name} is a ball, which turns as a whole and has no single value; {does} a goal")
    return one


def _movable(session: Session, number: int) -> Freedom:
    one = _freedom(session, number)
    stage = session.on_stage
    head, _ = driven(stage.table.anatomy.freedoms, number, 0.0)
    lead = number if one.leader < 0 else one.leader
    if lead in stage.setup.locked:
        raise Refused(f"{head.name} is locked; unlock it first")
    if one.closure >= 0 and one.turns:
        joint = session.mechanism.joints[one.joint]
        if sum(dof.is_rotation for dof in joint.dof) > 1:
            raise Refused(f"{one.joint} closes a loop and turns in several ways; move a joint beside it")
    return one


def grab_freedom(session: Session, request: requests.GrabFreedom) -> None:
    one = _movable(session, request.freedom)
    stage = session.on_stage
    session.take(Held("freedom", request.freedom, session.riders(), _numbers(stage, one, stage.q)), _move_words(one))


def _move_words(one: Freedom) -> str:
    return f"{'turn' if one.turns else 'slide'} {one.name}"


def set_freedom(session: Session, request: requests.SetFreedom) -> None:
    one = _freedom(session, request.freedom)
    if one.is_ball:
        raise Refused(f"{one.name} is a ball, which is set by three numbers at once")
    _set(session, request.freedom, (request.value,))


def set_turn(session: Session, request: requests.SetTurn) -> None:
    one = _freedom(session, request.freedom)
    if not one.is_ball:
        raise Refused(f"{one.name} is no ball; it is set by one number")
    _set(session, request.freedom, request.turn)


def _set(session: Session, number: int, numbers: tuple[float, ...]) -> None:
    one = _movable(session, number)
    q = _driven_to(session, number, one, numbers)
    with session.step(f"set {one.name}"):
        session.come_along(q)


def _numbers(stage: Stage, one: Freedom, q: Array) -> tuple[float, ...]:
    """Where a freedom is at q, as a hand has it; see `Held`."""
    return tuple(stage.table.anatomy.values_at(q)[one.value : one.value + (3 if one.is_ball else 1)].tolist())


def _driven_to(session: Session, number: int, one: Freedom, numbers: tuple[float, ...]) -> Array:
    """q with that freedom there, or as near to it as limits, loops and pins allow."""
    stage = session.on_stage
    freedoms = stage.table.anatomy.freedoms
    q = np.array(stage.q)
    start = _numbers(stage, one, q)
    held = Held("freedom", number, session.riders(), start)
    asked = plan(stage.setup, freedoms, held)
    solver = Solver(session.mechanism, asked.goals, lock=asked.lock, rest=asked.rest, restarts=0)
    stride = STRIDE if one.turns else STRIDE * session.radius
    needs_way = bool(session.mechanism.closures)
    strides = min(max(1, math.ceil(_way(one, start, numbers) / stride)), MOST_STRIDES) if needs_way else 1
    until = time.monotonic() + LONGEST_WAY
    for k in range(1, strides + 1):
        left = until - time.monotonic()
        if left <= 0.0:
            raise Refused(
                f"the way of {one.name} to {_in_units(one, *numbers)} takes too long here; go there by smaller steps"
            )
        wanted = hand_objective(freedoms, number, _between(one, start, numbers, k / strides))
        q = solver.solve(asked.targets({HAND: hand_target(wanted)}), q, max_seconds=left).q
    if _is_open(session, q):
        raise Refused(f"with {one.name} at {_in_units(one, *numbers)} the loops cannot be shut")
    return q


def _way(one: Freedom, start: tuple[float, ...], end: tuple[float, ...]) -> float:
    """m or rad."""
    if one.is_ball:
        return float(quaternion.angle_between(quaternion.exp(start), quaternion.exp(end)))
    return abs(end[0] - start[0])


def _between(one: Freedom, start: tuple[float, ...], end: tuple[float, ...], share: float) -> tuple[float, ...]:
    """So far on the way; a ball turns about one axis all the way."""
    if share == 1.0:
        return end
    if not one.is_ball:
        return (start[0] + (end[0] - start[0]) * share,)
    here, there = quaternion.exp(start), quaternion.exp(end)
    turn = quaternion.log(quaternion.multiply(quaternion.conjugate(here), there))
    return tuple(quaternion.log(quaternion.multiply(here, quaternion.exp(share * turn))).tolist())


def _is_open(session: Session, q: Array) -> bool:
    anatomy = session.on_stage.table.anatomy
    return bool((anatomy.measure(anatomy.poses(q)).gaps > SHUT).any())


def _in_units(one: Freedom, value: float, *more: float) -> str:
    """A value of a freedom for people; pages show angles in degrees or in radians."""
    if more:
        return f"({', '.join(f'{number:g}' for number in (value, *more))}) rad"
    return f"{value:g} rad ({math.degrees(value):g}\N{DEGREE SIGN})" if one.turns else f"{value:g} m"


def set_limits(session: Session, request: requests.SetLimits) -> None:
    one = _single(session, request.freedom, "limit it by")
    if one.leader >= 0:
        raise Refused(f"{one.name} follows another joint; limit that one")
    lower = -math.inf if request.lower is None else request.lower
    upper = math.inf if request.upper is None else request.upper
    if lower > upper:
        low, high = (_in_units(one, side) for side in (lower, upper))
        raise LimitsError(f"limits of {one.name}: the lower, {low}, is above the upper, {high}")
    stage = session.on_stage
    bounds = list(stage.setup.bounds)
    bounds[request.freedom] = lower, upper
    _check_no_ball(session, one, bounds)
    with session.step(f"limit {one.name}"):
        session.change(replace(stage.setup, bounds=tuple(bounds)))


def _check_no_ball(session: Session, one: Freedom, bounds: list[tuple[float, float]]) -> None:
    """Three turns without any limit are a ball, which has other numbers: another mechanism."""
    freedoms = session.on_stage.table.anatomy.freedoms
    turns = [k for k, other in enumerate(freedoms) if other.joint == one.joint and other.turns]
    if one.turns and len(turns) == 3 and not any(math.isfinite(side) for k in turns for side in bounds[k]):
        raise Refused(f"without this last limit {one.joint} would be a ball, which has other numbers; leave it one")


def set_locked(session: Session, request: requests.SetLocked) -> None:
    stage = session.on_stage
    one = _freedom(session, request.freedom)
    if one.closure >= 0:
        raise Refused(f"{one.joint} closes a loop and has no number of its own to hold; lock a joint beside it")
    if one.leader >= 0:
        raise Refused(f"{one.name} follows another joint; lock that one")
    if one.is_ball and one.others:
        raise Refused(f"the turn of {one.joint} cannot be locked without its slides; pin the link instead")
    locked = stage.setup.locked | {request.freedom} if request.locked else stage.setup.locked - {request.freedom}
    if locked == stage.setup.locked:
        return
    with session.step(f"{'lock' if request.locked else 'unlock'} {one.name}"):
        session.change(replace(stage.setup, locked=locked))


def set_rest(session: Session, request: requests.SetRest) -> None:
    one = _single(session, request.freedom, "hold it by")
    if one.leader >= 0:
        raise Refused(f"{one.name} follows another joint; give that one a rest")
    stage = session.on_stage
    rest = request.value
    if rest is not None:
        lower, upper = session.mechanism.joints[one.joint].effective_limits(one.dof)  # type: ignore[arg-type]
        rest = min(max(rest, lower), upper)
    rests = list(stage.setup.rests)
    rests[request.freedom] = rest
    with session.step(f"{'rest' if rest is not None else 'free'} {one.name}"):
        session.change(replace(stage.setup, rests=tuple(rests)))


def go_to(session: Session, request: requests.GoTo) -> None:
    mechanism, name = session.mechanism, request.configuration
    known = [*mechanism.configurations, "neutral", "random"]
    if name in mechanism.configurations:
        q = np.array(mechanism.configurations[name])
    elif name == "neutral":
        q = _put_together(session, mechanism.neutral())
    elif name == "random":
        q = _somewhere(session)
    else:
        raise UnknownName("configuration", name, known)
    with session.step(f"go to {name}"):
        session.come_along(q)


def _somewhere(session: Session) -> Array:
    rng = np.random.default_rng()
    for left in reversed(range(RANDOM_TRIES)):
        try:
            return _put_together(session, session.mechanism.random(rng))
        except Refused:
            if not left:
                raise
    raise AssertionError


def _put_together(session: Session, q: Array) -> Array:
    """q, or near to it with all loops shut and what is locked where it is."""
    stage, mechanism = session.on_stage, session.mechanism
    for k in stage.setup.locked:
        one = stage.table.anatomy.freedoms[k]
        width = 4 if one.is_ball else 1
        q[one.place : one.place + width] = stage.q[one.place : one.place + width]
    if mechanism.closures or mechanism.laws:
        asked = plan(replace(stage.setup, goals=(), demands={}), stage.table.anatomy.freedoms, None)
        from mechanik.objectives import RestPose

        near = Solver(mechanism, RestPose(q, turns="exact"), lock=asked.lock, restarts=0)
        q = near.solve(q0=q, max_seconds=0.3).q
        if _is_open(session, q):
            raise Refused("from there its loops cannot be shut; try another configuration")
    return q
