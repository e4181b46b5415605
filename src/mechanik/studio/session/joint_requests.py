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
    independent_dof_and_value,
    make_solve_spec,
)

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session
    from mechanik.studio.session.solver_session import SolverSession

JOINT_STEP = 0.2
"""Step in which a joint of a mechanism with loops moves to a given value.

The unit is rad for a rotation, and the radius of the bounding sphere for a translation.

Small steps keep loops in their assembly mode. Steps are longer if more than `MAX_JOINT_STEPS` would be needed.
"""
MAX_JOINT_STEPS, MAX_MOVE_SECONDS = 64, 3.0
"""Maximum number of steps, and maximum time for all steps, s."""
CLOSURE_TOLERANCE = 1e-6
"""Largest closure gap of a closed loop, m and rad."""
MAX_RANDOM_CONFIGURATIONS = 8
"""Maximum number of random configurations that are tried until the loops are closed."""


def _get_dof(session: Session, dof_index: int) -> IndexedDof:
    """Return the dof with an index.

    Raises:
        UnknownName: there is no such index.
    """
    dofs = session.active.model.index.dofs
    if not 0 <= dof_index < len(dofs):
        raise UnknownName("dof", dof_index, [str(k) for k in range(len(dofs))])
    return dofs[dof_index]


def _scalar_dof(session: Session, dof_index: int, advice: str) -> IndexedDof:
    """Return the dof with an index, which must have a single value.

    Raises:
        UnknownName: there is no such index.
        InvalidOperation: the dof is a spherical joint; the message ends with the advice.
    """
    dof = _get_dof(session, dof_index)
    if dof.is_spherical:
        raise InvalidOperation(f"{dof.name} is a spherical joint, which has no single value; {advice}")
    return dof


def _leader_name(session: Session, dof: IndexedDof) -> str:
    return session.active.model.index.dofs[dof.leader_index].name


def _movable_dof(session: Session, dof_index: int) -> IndexedDof:
    """Return the dof with an index, which the user may move.

    Raises:
        UnknownName: there is no such index.
        InvalidOperation: the dof or its leader is locked; the dof is a mimic dof with a ratio of 0; or the dof is a
            rotation of a joint that closes a loop and has several rotations.
    """
    dof = _get_dof(session, dof_index)
    active = session.active
    independent_dof, _ = independent_dof_and_value(active.model.index.dofs, dof_index, 0.0)  # raises for a ratio of 0
    independent_index = dof_index if dof.leader_index < 0 else dof.leader_index
    if independent_index in active.edit_state.locked_dofs:
        raise InvalidOperation(f"{independent_dof.name} is locked; unlock it first")
    if dof.closure_index >= 0 and dof.is_rotational:
        joint = session.mechanism.joints[dof.joint]
        if sum(joint_dof.is_rotation for joint_dof in joint.dof) > 1:
            raise InvalidOperation(f"{dof.joint} closes a loop and has several rotations; move a neighbouring joint")
    return dof


def start_joint_drag(session: Session, request: requests.StartJointDrag) -> None:
    dof = _movable_dof(session, request.dof)
    active = session.active
    session.dragging.start_drag(
        Drag("dof", request.dof, session.active.carried_link_poses(), _dof_values(active, dof, active.q)),
        _drag_label(dof),
    )


def _drag_label(dof: IndexedDof) -> str:
    return f"{'rotate' if dof.is_rotational else 'move'} {dof.name}"


def set_dof_value(session: Session, request: requests.SetDofValue) -> None:
    dof = _get_dof(session, request.dof)
    if dof.is_spherical:
        raise InvalidOperation(
            f"{dof.name} is a spherical joint; set the three numbers of its rotation vector (rad) together"
        )
    _set_value(session, request.dof, (request.value,))


def set_joint_rotation(session: Session, request: requests.SetJointRotation) -> None:
    dof = _get_dof(session, request.dof)
    if not dof.is_spherical:
        raise InvalidOperation(f"{dof.name} is not a spherical joint; set one number (m or rad)")
    _set_value(session, request.dof, request.rotation)


def _set_value(session: Session, dof_index: int, values: tuple[float, ...]) -> None:
    dof = _movable_dof(session, dof_index)
    q = _configuration_with_value(session, dof_index, dof, values)
    with session.undo.step(f"set {dof.name}"):
        session.editor.move_with_goals(q)


def _dof_values(active: SolverSession, dof: IndexedDof, q: Array) -> tuple[float, ...]:
    """Return the value of a dof at q in the form of `Drag.values`."""
    return tuple(
        active.model.index.dof_values_at(q)[dof.value_index : dof.value_index + (3 if dof.is_spherical else 1)].tolist()
    )


def _configuration_with_value(session: Session, dof_index: int, dof: IndexedDof, values: tuple[float, ...]) -> Array:
    """Return the configuration (nq,) with a dof at a value, or as near as limits, locks, loops and pinned goals allow.

    Raises:
        InvalidOperation: the move takes too long, or the loops are not closed after it.
    """
    active = session.active
    dofs = active.model.index.dofs
    q = np.array(active.q)
    start_values = _dof_values(active, dof, q)
    drag = Drag("dof", dof_index, session.active.carried_link_poses(), start_values)
    spec = make_solve_spec(active.edit_state, dofs, drag)
    solver = Solver(session.mechanism, spec.goals, lock=spec.lock, rest=spec.rest, restarts=0)
    step_length = JOINT_STEP if dof.is_rotational else JOINT_STEP * session.state.model_radius
    has_loops = bool(session.mechanism.closures)
    step_count = (
        min(max(1, math.ceil(_distance(dof, start_values, values) / step_length)), MAX_JOINT_STEPS) if has_loops else 1
    )
    deadline = time.monotonic() + MAX_MOVE_SECONDS
    for k in range(1, step_count + 1):
        remaining_seconds = deadline - time.monotonic()
        if remaining_seconds <= 0.0:
            raise InvalidOperation(
                f"moving {dof.name} to {_value_text(dof, *values)} takes longer than {MAX_MOVE_SECONDS:g} s; "
                "move it in smaller steps"
            )
        objective = drag_objective(dofs, dof_index, _interpolate(dof, start_values, values, k / step_count))
        q = solver.solve(
            spec.format_targets({DRAG_OBJECTIVE: drag_target(objective)}), q, max_seconds=remaining_seconds
        ).q
    if _has_unclosed_loops(session, q):
        raise InvalidOperation(
            f"the loops were not closed with {dof.name} at {_value_text(dof, *values)}; try another value"
        )
    return q


def _distance(dof: IndexedDof, start_values: tuple[float, ...], end_values: tuple[float, ...]) -> float:
    """Return the distance between two values of a dof, m or rad."""
    if dof.is_spherical:
        return float(quaternion.angle_between(quaternion.exp(start_values), quaternion.exp(end_values)))
    return abs(end_values[0] - start_values[0])


def _interpolate(
    dof: IndexedDof, start_values: tuple[float, ...], end_values: tuple[float, ...], share: float
) -> tuple[float, ...]:
    """Return the value at a share (0 to 1) of the distance; a spherical joint rotates about a fixed axis."""
    if share == 1.0:
        return end_values
    if not dof.is_spherical:
        return (start_values[0] + (end_values[0] - start_values[0]) * share,)
    start_wxyz, end_wxyz = quaternion.exp(start_values), quaternion.exp(end_values)
    rotation_vector = quaternion.log(quaternion.multiply(quaternion.conjugate(start_wxyz), end_wxyz))
    return tuple(quaternion.log(quaternion.multiply(start_wxyz, quaternion.exp(share * rotation_vector))).tolist())


def _has_unclosed_loops(session: Session, q: Array) -> bool:
    index = session.active.model.index
    return bool((index.measure_closures(index.link_poses(q)).gaps > CLOSURE_TOLERANCE).any())


def _value_text(dof: IndexedDof, value: float, *other_values: float) -> str:
    """Return a value as text with its unit: m, rad and degrees, or rad for the rotation vector of a spherical joint."""
    if other_values:
        return f"({', '.join(f'{number:g}' for number in (value, *other_values))}) rad"
    return f"{value:g} rad ({math.degrees(value):g}\N{DEGREE SIGN})" if dof.is_rotational else f"{value:g} m"


def set_limits(session: Session, request: requests.SetLimits) -> None:
    dof = _scalar_dof(session, request.dof, "use a goal to limit it")
    if dof.leader_index >= 0:
        raise InvalidOperation(f"{dof.name} is a mimic joint; set the limits of {_leader_name(session, dof)}")
    lower = -math.inf if request.lower is None else request.lower
    upper = math.inf if request.upper is None else request.upper
    if lower > upper:
        lower_text, upper_text = (_value_text(dof, limit) for limit in (lower, upper))
        raise LimitsError(
            f"limits of {dof.name}: the lower limit, {lower_text}, is above the upper limit, {upper_text}; swap them"
        )
    active = session.active
    limits = list(active.edit_state.limits)
    limits[request.dof] = lower, upper
    _check_not_spherical(session, dof, limits)
    with session.undo.step(f"set limits of {dof.name}"):
        session.editor.apply_edit(replace(active.edit_state, limits=tuple(limits)))


def _check_not_spherical(session: Session, dof: IndexedDof, limits: list[tuple[float, float]]) -> None:
    """Reject limits that leave all three rotations of a joint without a limit, since the joint would then be spherical.

    Raises:
        InvalidOperation: no limit of the three rotations is finite.
    """
    dofs = session.active.model.index.dofs
    rotations = [k for k, candidate in enumerate(dofs) if candidate.joint == dof.joint and candidate.is_rotational]
    if (
        dof.is_rotational
        and len(rotations) == 3
        and not any(math.isfinite(limit) for k in rotations for limit in limits[k])
    ):
        raise InvalidOperation(
            f"without any limit of its three rotations, {dof.joint} would be a spherical joint; keep at least one limit"
        )


def set_locked(session: Session, request: requests.SetLocked) -> None:
    active = session.active
    dof = _get_dof(session, request.dof)
    if dof.closure_index >= 0:
        raise InvalidOperation(f"{dof.joint} closes a loop and has no coordinate to lock; lock a neighbouring joint")
    if dof.leader_index >= 0:
        raise InvalidOperation(f"{dof.name} is a mimic joint; lock {_leader_name(session, dof)}")
    if dof.is_spherical and dof.other_dof_count:
        raise InvalidOperation(
            f"the rotation of {dof.joint} cannot be locked without its translations; pin the link instead"
        )
    locked_dofs = (
        active.edit_state.locked_dofs | {request.dof}
        if request.locked
        else active.edit_state.locked_dofs - {request.dof}
    )
    if locked_dofs == active.edit_state.locked_dofs:
        return
    with session.undo.step(f"{'lock' if request.locked else 'unlock'} {dof.name}"):
        session.editor.apply_edit(replace(active.edit_state, locked_dofs=locked_dofs))


def set_rest(session: Session, request: requests.SetRest) -> None:
    dof = _scalar_dof(session, request.dof, "use a goal to hold it")
    if dof.leader_index >= 0:
        raise InvalidOperation(f"{dof.name} is a mimic joint; set the rest value of {_leader_name(session, dof)}")
    active = session.active
    rest_value = request.value
    if rest_value is not None:
        lower, upper = session.mechanism.joints[dof.joint].effective_limits(dof.dof)  # type: ignore[arg-type]
        rest_value = min(max(rest_value, lower), upper)
    rest_values = list(active.edit_state.rest_values)
    rest_values[request.dof] = rest_value
    with session.undo.step(f"{'set' if rest_value is not None else 'remove'} rest value of {dof.name}"):
        session.editor.apply_edit(replace(active.edit_state, rest_values=tuple(rest_values)))


def go_to_configuration(session: Session, request: requests.GoTo) -> None:
    mechanism, name = session.mechanism, request.configuration
    known_names = [*mechanism.configurations, "neutral", "random"]
    if name in mechanism.configurations:
        q = np.array(mechanism.configurations[name])
    elif name == "neutral":
        q = _close_loops(session, mechanism.neutral())
    elif name == "random":
        q = _random_configuration(session)
    else:
        raise UnknownName("configuration", name, known_names)
    with session.undo.step(f"go to {name}"):
        session.editor.move_with_goals(q)


def _random_configuration(session: Session) -> Array:
    """Return a random configuration with closed loops.

    Raises:
        InvalidOperation: the loops were not closed near any of `MAX_RANDOM_CONFIGURATIONS` configurations.
    """
    rng = np.random.default_rng()
    for remaining_count in reversed(range(MAX_RANDOM_CONFIGURATIONS)):
        try:
            return _close_loops(session, session.mechanism.random(rng))
        except InvalidOperation:
            if not remaining_count:
                raise
    raise AssertionError


def _close_loops(session: Session, q: Array) -> Array:
    """Return a configuration near q (nq,) with closed loops, and with the present values of locked dofs.

    The values of locked dofs are also written to q. Joint constraints are solved too, but only loops are checked.

    Raises:
        InvalidOperation: a loop is not closed.
    """
    active, mechanism = session.active, session.mechanism
    for k in active.edit_state.locked_dofs:
        dof = active.model.index.dofs[k]
        coordinate_count = 4 if dof.is_spherical else 1
        coordinates = slice(dof.q_index, dof.q_index + coordinate_count)
        q[coordinates] = active.q[coordinates]
    if mechanism.closures or mechanism.joint_constraints:
        spec = make_solve_spec(replace(active.edit_state, goals=(), objectives={}), active.model.index.dofs, None)
        from mechanik.objectives import RestPose

        closing_solver = Solver(mechanism, RestPose(q, angle_mode="exact"), lock=spec.lock, restarts=0)
        q = closing_solver.solve(q0=q, max_seconds=0.3).q
        if _has_unclosed_loops(session, q):
            raise InvalidOperation(
                "the loops were not closed near this configuration; unlock joints, or choose another configuration"
            )
    return q
