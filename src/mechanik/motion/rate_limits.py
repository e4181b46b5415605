"""Limits on velocity, acceleration and jerk: validation of user input, and defaults from the model file."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, ShapeError
from mechanik.model import Joint, Mechanism
from mechanik.model.closed_jacobian import dof_column as column_of
from mechanik.model.dof import DoF
from mechanik.model.joint_constraint import MIN_RATIO
from mechanik.model.kinematics import joint_and_dofs
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_vector

__all__ = [
    "RateLimits",
    "require_rate_limits",
]


RateLimits = float | ArrayLike | Mapping[str, float]
"""A number for all dofs, nv numbers, or numbers by joint (`elbow`) or dof (`base.EX`) name; rad or m, per s, s^2 or
s^3."""


def as_rate_limits(mechanism: Mechanism, given: RateLimits | None, what: str, *, from_file: bool = False) -> Array:
    """Largest rate (nv,) of each dof; infinite where no limit is given.

    The limit of a mimic joint also bounds its leader, divided by the ratio. The limit of a spherical joint applies to
    each of its three axes.

    Args:
        given: limits as the user gives them; None: none, or those of the model file.
        what: "velocity", "acceleration" or "jerk".
        from_file: whether joints that `given` does not name (all, if it is None) take the limits of the model file.

    Raises:
        ShapeError: an array has the wrong length.
        LimitsError: a limit is not above 0.
        InvalidArgument: a named joint closes a loop.
    """
    found = np.full(mechanism.nv, math.inf)
    if given is None or isinstance(given, Mapping):
        named: Mapping[str, float] = {} if given is None else given
        asked = [(name, *joint_and_dofs(name, mechanism.joints), rate) for name, rate in named.items()]
        if from_file:
            _narrow_by_file(mechanism, found, what, {joint for _, joint, _, _ in asked})
        for name, joint, dofs, rate in asked:
            _narrow(mechanism, found, joint, dofs, _checked(rate, f"{what} of {name!r}"), name)
        return found
    if not isinstance(given, str) and np.ndim(cast("Any", given)) != 0:
        return _each(mechanism, given, what)
    rate = _checked(given, what)
    for joint in mechanism.joints.values():
        if joint.dof and not joint.is_closure and joint in mechanism.kinematics.joint_indices:
            _narrow(mechanism, found, joint, joint.dof, rate, joint.name)
    return found


def _narrow_by_file(mechanism: Mechanism, found: Array, what: str, but: Collection[Joint]) -> None:
    """Apply the limits of the model file, as URDF and SDF have for velocities; 0 in the file means unknown."""
    kept: Any = mechanism.extras.get("limits")
    if not isinstance(kept, Mapping):
        return
    for name, said in cast("Mapping[str, Any]", kept).items():
        rate: Any = cast("Mapping[str, Any]", said).get(what) if isinstance(said, Mapping) else None
        joint = mechanism.joints.get(name)
        is_rate = isinstance(rate, int | float) and math.isfinite(rate) and rate > 0.0
        if not is_rate or joint is None or joint in but or joint.is_closure:
            continue
        if joint in mechanism.kinematics.joint_indices:
            _narrow(mechanism, found, joint, joint.dof, float(rate), name)


def _each(mechanism: Mechanism, given: Any, what: str) -> Array:
    if np.shape(given) != (mechanism.nv,):
        names = mechanism.space.v_names
        raise ShapeError(
            f"{what} is one number, {mechanism.nv} numbers (one for each of v), or numbers by joint, as in "
            f"{{{names[0] if names else 'joint'!r}: 1.0}}; not of shape {np.shape(given)}"
        )
    numbers = as_vector(given, mechanism.nv, what)
    return np.array(
        [_checked(one, f"{what} of {name!r}") for name, one in zip(mechanism.space.v_names, numbers, strict=True)]
    )


def _checked(rate: object, what: str) -> float:
    if isinstance(rate, str) or np.ndim(cast("Any", rate)) != 0:
        raise ShapeError(f"{what} is one number, or numbers by the names of joints, not {rate!r}")
    number = as_number(rate, what, allow_infinite=True)
    if not number > 0.0:
        hold = "; `lock` holds a joint where it is" if number == 0.0 and what.startswith("velocity") else ""
        raise LimitsError(f"{what} must be above 0, not {number:g}{hold}")
    return number


def _narrow(mechanism: Mechanism, found: Array, joint: Joint, dofs: tuple[DoF, ...], rate: float, name: str) -> None:
    if joint.is_closure:
        raise InvalidArgument(
            f"joint {name!r} closes a loop and has no numbers of its own; limit the joints beside it, or let another "
            "joint close the loop"
        )
    for dof in dofs:
        column, ratio = column_of(joint, dof, mechanism)
        if abs(ratio) > MIN_RATIO:
            found[column] = min(found[column], rate / abs(ratio))


as_given = as_rate_limits


def require_rate_limits(mechanism: Mechanism, given: RateLimits | None, what: str, moves: Array) -> Array:
    """Rate limits (nv,) above 0, finite for all dofs that move.

    Args:
        given: limits as for `as_rate_limits`; joints that are not named (all, if None) take those of the model file.
        what: "velocity", "acceleration" or "jerk".
        moves: (nv,) nonzero for the dofs that move and so need a limit.

    Raises:
        LimitsError: a dof that moves has no limit.
    """
    names = mechanism.space.v_names
    rates = as_given(mechanism, given, what, from_file=True)
    missing = [names[k] for k in np.flatnonzero(np.isinf(rates) & (moves != 0.0))]
    if missing:
        listed = ", ".join(repr(one) for one in missing[:4]) + (", ..." if len(missing) > 4 else "")
        verb = "moves" if len(missing) == 1 else "move"
        raise LimitsError(
            f"no limit of {what} is known for {listed}, which {verb} along the path: give {what}= as a number or by "
            "joint"
        )
    return rates
