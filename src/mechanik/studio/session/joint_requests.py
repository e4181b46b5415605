"""Handlers of joint requests: values, drags, limits, locks, rest values and named configurations."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import InvalidOperation, LimitsError, UnknownName
from mechanik.solver import Solver
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array
from mechanik.studio.messages import requests
from mechanik.studio.session.model_index import IndexedDof
from mechanik.studio.session.solve_spec import (
    DRAG_OBJECTIVE,
    Drag,
    drag_objective,
    drag_target,
    leading_dof,
    make_solve_spec,
)

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session
    from mechanik.studio.session.solver_session import SolverSession

MAX_JOINT_STEP = 0.2
"""Maximum step to a joint value, rad or model radii; small steps keep loops in their assembly mode."""
MAX_JOINT_STEPS, MAX_MOVE_SECONDS = 64, 3.0
"""Maximum number of steps, and maximum time for all of them, s."""
CLOSURE_TOLERANCE = 1e-6
"""Largest closure error of a closed loop, m and rad."""
RANDOM_TRIES = 8


def _freedom(session: Session, number: int) -> IndexedDof:
    """Return the dof with an index."""
    freedoms = session.active.model.index.dofs
    if not 0 <= number < len(freedoms):
        raise UnknownName("freedom", number, [str(k) for k in range(len(freedoms))])
    return freedoms[number]


def _single(session: Session, number: int, does: str) -> IndexedDof:
    """Return the dof with an index; reject a spherical joint, which has no single value."""
    one = _freedom(session, number)
    if one.is_spherical:
        raise InvalidOperation(f"{one.name} is a ball, which turns as a whole and has no single value; {does} a goal")
    return one


def _movable(session: Session, number: int) -> IndexedDof:
    one = _freedom(session, number)
    stage = session.active
    head, _ = leading_dof(stage.model.index.dofs, number, 0.0)
    lead = number if one.leader < 0 else one.leader
    if lead in stage.edit_state.locked:
        raise InvalidOperation(f"{head.name} is locked; unlock it first")
    if one.closure >= 0 and one.is_rotational:
        joint = session.mechanism.joints[one.joint]
        if sum(dof.is_rotation for dof in joint.dof) > 1:
            raise InvalidOperation(f"{one.joint} closes a loop and turns in several ways; move a joint beside it")
    return one


def start_joint_drag(session: Session, request: requests.StartJointDrag) -> None:
    one = _movable(session, request.dof)
    stage = session.active
    session.dragging.start_drag(
        Drag("dof", request.dof, session.active.carried_link_poses(), _numbers(stage, one, stage.q)),
        _move_words(one),
    )


def _move_words(one: IndexedDof) -> str:
    return f"{'turn' if one.is_rotational else 'slide'} {one.name}"


def set_dof_value(session: Session, request: requests.SetDofValue) -> None:
    one = _freedom(session, request.dof)
    if one.is_spherical:
        raise InvalidOperation(f"{one.name} is a ball, which is set by three numbers at once")
    _set(session, request.dof, (request.value,))


def set_spherical_value(session: Session, request: requests.SetJointRotation) -> None:
    one = _freedom(session, request.dof)
    if not one.is_spherical:
        raise InvalidOperation(f"{one.name} is no ball; it is set by one number")
    _set(session, request.dof, request.rotation)


def _set(session: Session, number: int, numbers: tuple[float, ...]) -> None:
    one = _movable(session, number)
    q = _driven_to(session, number, one, numbers)
    with session.undo.step(f"set {one.name}"):
        session.editor.move_with_goals(q)


def _numbers(stage: SolverSession, one: IndexedDof, q: Array) -> tuple[float, ...]:
    """Return the value of a dof at q in the form of `Drag.values`."""
    return tuple(
        stage.model.index.dof_values_at(q)[one.value_index : one.value_index + (3 if one.is_spherical else 1)].tolist()
    )


def _driven_to(session: Session, number: int, one: IndexedDof, numbers: tuple[float, ...]) -> Array:
    """Return the configuration with a dof at a value, or as near as limits, loops and pins allow."""
    stage = session.active
    freedoms = stage.model.index.dofs
    q = np.array(stage.q)
    start = _numbers(stage, one, q)
    held = Drag("dof", number, session.active.carried_link_poses(), start)
    asked = make_solve_spec(stage.edit_state, freedoms, held)
    solver = Solver(session.mechanism, asked.goals, lock=asked.lock, rest=asked.rest, restarts=0)
    stride = MAX_JOINT_STEP if one.is_rotational else MAX_JOINT_STEP * session.state.model_radius
    needs_way = bool(session.mechanism.closures)
    strides = min(max(1, math.ceil(_way(one, start, numbers) / stride)), MAX_JOINT_STEPS) if needs_way else 1
    until = time.monotonic() + MAX_MOVE_SECONDS
    for k in range(1, strides + 1):
        left = until - time.monotonic()
        if left <= 0.0:
            raise InvalidOperation(
                f"the way of {one.name} to {_in_units(one, *numbers)} takes too long here; go there by smaller steps"
            )
        wanted = drag_objective(freedoms, number, _between(one, start, numbers, k / strides))
        q = solver.solve(asked.format_targets({DRAG_OBJECTIVE: drag_target(wanted)}), q, max_seconds=left).q
    if _is_open(session, q):
        raise InvalidOperation(f"with {one.name} at {_in_units(one, *numbers)} the loops cannot be shut")
    return q


def _way(one: IndexedDof, start: tuple[float, ...], end: tuple[float, ...]) -> float:
    """Return the distance between two values, m or rad."""
    if one.is_spherical:
        return float(quaternion.angle_between(quaternion.exp(start), quaternion.exp(end)))
    return abs(end[0] - start[0])


def _between(one: IndexedDof, start: tuple[float, ...], end: tuple[float, ...], share: float) -> tuple[float, ...]:
    """Return the value at a share of the distance; a spherical joint rotates about a fixed axis."""
    if share == 1.0:
        return end
    if not one.is_spherical:
        return (start[0] + (end[0] - start[0]) * share,)
    here, there = quaternion.exp(start), quaternion.exp(end)
    turn = quaternion.log(quaternion.multiply(quaternion.conjugate(here), there))
    return tuple(quaternion.log(quaternion.multiply(here, quaternion.exp(share * turn))).tolist())


def _is_open(session: Session, q: Array) -> bool:
    anatomy = session.active.model.index
    return bool((anatomy.measure_closures(anatomy.link_poses(q)).gaps > CLOSURE_TOLERANCE).any())


def _in_units(one: IndexedDof, value: float, *more: float) -> str:
    """Return a value as text with its unit; pages show angles in degrees or in radians."""
    if more:
        return f"({', '.join(f'{number:g}' for number in (value, *more))}) rad"
    return f"{value:g} rad ({math.degrees(value):g}\N{DEGREE SIGN})" if one.is_rotational else f"{value:g} m"


def set_limits(session: Session, request: requests.SetLimits) -> None:
    one = _single(session, request.dof, "limit it by")
    if one.leader >= 0:
        raise InvalidOperation(f"{one.name} follows another joint; limit that one")
    lower = -math.inf if request.lower is None else request.lower
    upper = math.inf if request.upper is None else request.upper
    if lower > upper:
        low, high = (_in_units(one, side) for side in (lower, upper))
        raise LimitsError(f"limits of {one.name}: the lower, {low}, is above the upper, {high}")
    stage = session.active
    bounds = list(stage.edit_state.bounds)
    bounds[request.dof] = lower, upper
    _check_no_ball(session, one, bounds)
    with session.undo.step(f"limit {one.name}"):
        session.editor.apply_edit(replace(stage.edit_state, bounds=tuple(bounds)))


def _check_no_ball(session: Session, one: IndexedDof, bounds: list[tuple[float, float]]) -> None:
    """Reject limits that leave three rotations unlimited: that is a spherical joint with other coordinates."""
    freedoms = session.active.model.index.dofs
    turns = [k for k, other in enumerate(freedoms) if other.joint == one.joint and other.is_rotational]
    if one.is_rotational and len(turns) == 3 and not any(math.isfinite(side) for k in turns for side in bounds[k]):
        raise InvalidOperation(
            f"without this last limit {one.joint} would be a ball, which has other numbers; leave it one"
        )


def set_locked(session: Session, request: requests.SetLocked) -> None:
    stage = session.active
    one = _freedom(session, request.dof)
    if one.closure >= 0:
        raise InvalidOperation(
            f"{one.joint} closes a loop and has no number of its own to hold; lock a joint beside it"
        )
    if one.leader >= 0:
        raise InvalidOperation(f"{one.name} follows another joint; lock that one")
    if one.is_spherical and one.other_dofs:
        raise InvalidOperation(f"the turn of {one.joint} cannot be locked without its slides; pin the link instead")
    locked = stage.edit_state.locked | {request.dof} if request.locked else stage.edit_state.locked - {request.dof}
    if locked == stage.edit_state.locked:
        return
    with session.undo.step(f"{'lock' if request.locked else 'unlock'} {one.name}"):
        session.editor.apply_edit(replace(stage.edit_state, locked=locked))


def set_rest(session: Session, request: requests.SetRest) -> None:
    one = _single(session, request.dof, "hold it by")
    if one.leader >= 0:
        raise InvalidOperation(f"{one.name} follows another joint; give that one a rest")
    stage = session.active
    rest = request.value
    if rest is not None:
        lower, upper = session.mechanism.joints[one.joint].effective_limits(one.dof)  # type: ignore[arg-type]
        rest = min(max(rest, lower), upper)
    rests = list(stage.edit_state.rest_values)
    rests[request.dof] = rest
    with session.undo.step(f"{'rest' if rest is not None else 'free'} {one.name}"):
        session.editor.apply_edit(replace(stage.edit_state, rest_values=tuple(rests)))


def go_to_configuration(session: Session, request: requests.GoTo) -> None:
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
    with session.undo.step(f"go to {name}"):
        session.editor.move_with_goals(q)


def _somewhere(session: Session) -> Array:
    rng = np.random.default_rng()
    for left in reversed(range(RANDOM_TRIES)):
        try:
            return _put_together(session, session.mechanism.random(rng))
        except InvalidOperation:
            if not left:
                raise
    raise AssertionError


def _put_together(session: Session, q: Array) -> Array:
    """Return q, or a configuration near it with all loops closed and locked dofs unchanged."""
    stage, mechanism = session.active, session.mechanism
    for k in stage.edit_state.locked:
        one = stage.model.index.dofs[k]
        width = 4 if one.is_spherical else 1
        q[one.q_index : one.q_index + width] = stage.q[one.q_index : one.q_index + width]
    if mechanism.closures or mechanism.joint_constraints:
        asked = make_solve_spec(replace(stage.edit_state, goals=(), objectives={}), stage.model.index.dofs, None)
        from mechanik.objectives import RestPose

        near = Solver(mechanism, RestPose(q, angle_mode="exact"), lock=asked.lock, restarts=0)
        q = near.solve(q0=q, max_seconds=0.3).q
        if _is_open(session, q):
            raise InvalidOperation("from there its loops cannot be shut; try another configuration")
    return q
