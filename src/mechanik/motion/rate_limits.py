"""Limits on velocity, acceleration and jerk: validation of user input, and defaults from the model file."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, ShapeError
from mechanik.model import Joint, Mechanism
from mechanik.model.closed_jacobian import dof_column
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


def as_rate_limits(mechanism: Mechanism, rates: RateLimits | None, quantity: str, *, from_file: bool = False) -> Array:
    """Return the largest rate (nv,) of each dof; infinite for dofs without a limit.

    The limit of a mimic joint also bounds its leader, divided by the ratio. The limit of a spherical joint applies to
    each of its three axes.

    Args:
        rates: limits as the user gives them; None: the same as a mapping without entries.
        quantity: "velocity", "acceleration" or "jerk".
        from_file: whether joints that are not named in the mapping `rates` take the limits of the model file. A single
            number or an array applies to all dofs instead.

    Raises:
        ShapeError: an array has the wrong shape, or a limit is not a number.
        LimitsError: a limit is not above 0.
        NotFinite: a limit is NaN.
        UnknownName: there is no joint or dof of this name.
        DoFError: a joint does not have the named dof.
        InvalidArgument: a named joint closes a loop.
    """
    limits = np.full(mechanism.nv, math.inf)
    if rates is None or isinstance(rates, Mapping):
        rates_by_name: Mapping[str, float] = {} if rates is None else rates
        named_joints = [(name, *joint_and_dofs(name, mechanism.joints), rate) for name, rate in rates_by_name.items()]
        if from_file:
            _apply_file_limits(mechanism, limits, quantity, {joint for _, joint, _, _ in named_joints})
        for name, joint, dofs, rate in named_joints:
            _apply_limit(mechanism, limits, joint, dofs, _positive_rate(rate, f"{quantity} of {name!r}"), name)
        return limits
    if not isinstance(rates, str) and np.ndim(cast("Any", rates)) != 0:
        return _limits_from_array(mechanism, rates, quantity)
    rate = _positive_rate(rates, quantity)
    for joint in mechanism.joints.values():
        if joint.dof and not joint.is_closure and joint in mechanism.kinematics.joint_indices:
            _apply_limit(mechanism, limits, joint, joint.dof, rate, joint.name)
    return limits


def _apply_file_limits(mechanism: Mechanism, limits: Array, quantity: str, excluded_joints: Collection[Joint]) -> None:
    """Apply the limits of the model file to all joints that are not excluded; 0 in the file means unknown.

    URDF and SDF files contain velocity limits.
    """
    file_limits: Any = mechanism.extras.get("limits")
    if not isinstance(file_limits, Mapping):
        return
    for name, joint_limits in cast("Mapping[str, Any]", file_limits).items():
        rate: Any = cast("Mapping[str, Any]", joint_limits).get(quantity) if isinstance(joint_limits, Mapping) else None
        joint = mechanism.joints.get(name)
        is_rate = isinstance(rate, int | float) and math.isfinite(rate) and rate > 0.0
        if not is_rate or joint is None or joint in excluded_joints or joint.is_closure:
            continue
        if joint in mechanism.kinematics.joint_indices:
            _apply_limit(mechanism, limits, joint, joint.dof, float(rate), name)


def _limits_from_array(mechanism: Mechanism, rates: Any, quantity: str) -> Array:
    if np.shape(rates) != (mechanism.nv,):
        names = mechanism.space.v_names
        raise ShapeError(
            f"{quantity} must be one number, {mechanism.nv} numbers (one for each dof), or numbers by joint, as in "
            f"{{{names[0] if names else 'joint'!r}: 1.0}}, not an array of shape {np.shape(rates)}"
        )
    numbers = as_vector(rates, mechanism.nv, quantity)
    return np.array(
        [
            _positive_rate(rate, f"{quantity} of {name!r}")
            for name, rate in zip(mechanism.space.v_names, numbers, strict=True)
        ]
    )


def _positive_rate(rate: object, label: str) -> float:
    if isinstance(rate, str) or np.ndim(cast("Any", rate)) != 0:
        raise ShapeError(f"{label} must be one number, or numbers by joint name, not {rate!r}")
    number = as_number(rate, label, allow_infinite=True)
    if not number > 0.0:
        hint = "; use `lock` to keep a joint fixed" if number == 0.0 and label.startswith("velocity") else ""
        raise LimitsError(f"{label} must be above 0, not {number:g}{hint}")
    return number


def _apply_limit(
    mechanism: Mechanism, limits: Array, joint: Joint, dofs: tuple[DoF, ...], rate: float, name: str
) -> None:
    if joint.is_closure:
        raise InvalidArgument(
            f"joint {name!r} closes a loop and has no dofs in q; limit its neighbouring joints, or choose another "
            "joint to close the loop"
        )
    for dof in dofs:
        column, ratio = dof_column(joint, dof, mechanism)
        if abs(ratio) > MIN_RATIO:
            limits[column] = min(limits[column], rate / abs(ratio))


def require_rate_limits(mechanism: Mechanism, rates: RateLimits | None, quantity: str, dof_motion: Array) -> Array:
    """Return rate limits (nv,) above 0, which are finite for all dofs that move.

    Args:
        rates: limits as for `as_rate_limits` with `from_file`.
        quantity: "velocity", "acceleration" or "jerk".
        dof_motion: (nv,) nonzero for the dofs that move and so need a limit.

    Raises:
        LimitsError: a dof that moves has no limit.
    """
    names = mechanism.space.v_names
    limits = as_rate_limits(mechanism, rates, quantity, from_file=True)
    dofs_without_limit = [names[k] for k in np.flatnonzero(np.isinf(limits) & (dof_motion != 0.0))]
    if dofs_without_limit:
        listed_names = ", ".join(map(repr, dofs_without_limit[:4])) + (", ..." if len(dofs_without_limit) > 4 else "")
        verb = "moves" if len(dofs_without_limit) == 1 else "move"
        raise LimitsError(
            f"no {quantity} limit is known for {listed_names}, which {verb} along the path; "
            f"give {quantity}= as one number or by joint name"
        )
    return limits
