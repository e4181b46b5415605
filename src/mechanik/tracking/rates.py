"""Limits of velocity and acceleration, as people give them and as files have them, by the numbers of v."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import LimitsError, ShapeError, WrongKind
from mechanik.mechanism import Joint, Mechanism
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.coupling import SMALLEST_RATIO
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.door import as_number, as_vector
from mechanik.mechanism.velocities import _column as column_of
from mechanik.spatial.array import Array, ArrayLike

Rates = float | ArrayLike | Mapping[str, float]
"""One number for all freedoms, nv numbers, or numbers by joint (`elbow`) or freedom (`base.X`); rad or m, by s (^2)."""


def as_rates(mechanism: Mechanism, given: Rates | None, what: str, *, from_file: bool = False) -> Array:
    """(nv,) the largest rate of each number of v; infinite where nothing is said.

    What a follower may do at most binds its leader. Of a ball each of its three turns has the limit.

    Args:
        what: "velocity", "acceleration" or "jerk".
        from_file: whether joints that are not named, or all if nothing is given, have what the mechanism's file says.
    """
    found = np.full(mechanism.nv, math.inf)
    if given is None or isinstance(given, Mapping):
        named: Mapping[str, float] = {} if given is None else given
        asked = [(name, *joint_and_freedoms(name, mechanism.joints), rate) for name, rate in named.items()]
        if from_file:
            _narrow_by_file(mechanism, found, what, {joint for _, joint, _, _ in asked})
        for name, joint, dofs, rate in asked:
            _narrow(mechanism, found, joint, dofs, _checked(rate, f"{what} of {name!r}"), name)
        return found
    if not isinstance(given, str) and np.ndim(cast("Any", given)) != 0:
        return _each(mechanism, given, what)
    rate = _checked(given, what)
    for joint in mechanism.joints.values():
        if joint.dof and not joint.is_closure and joint in mechanism.kinematics.slots:
            _narrow(mechanism, found, joint, joint.dof, rate, joint.name)
    return found


def _narrow_by_file(mechanism: Mechanism, found: Array, what: str, but: Collection[Joint]) -> None:
    """By what the file of the mechanism gave, as URDF and SDF do for velocities; 0 there means not known."""
    kept: Any = mechanism.extras.get("limits")
    if not isinstance(kept, Mapping):
        return
    for name, said in cast("Mapping[str, Any]", kept).items():
        rate: Any = cast("Mapping[str, Any]", said).get(what) if isinstance(said, Mapping) else None
        joint = mechanism.joints.get(name)
        is_rate = isinstance(rate, int | float) and math.isfinite(rate) and rate > 0.0
        if not is_rate or joint is None or joint in but or joint.is_closure:
            continue
        if joint in mechanism.kinematics.slots:
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
    number = as_number(rate, what, infinite=True)
    if not number > 0.0:
        hold = "; `lock` holds a joint where it is" if number == 0.0 and what.startswith("velocity") else ""
        raise LimitsError(f"{what} must be above 0, not {number:g}{hold}")
    return number


def _narrow(mechanism: Mechanism, found: Array, joint: Joint, dofs: tuple[DoF, ...], rate: float, name: str) -> None:
    if joint.is_closure:
        raise WrongKind(
            f"joint {name!r} closes a loop and has no numbers of its own; limit the joints beside it, or let another "
            "joint close the loop"
        )
    for dof in dofs:
        column, ratio = column_of(joint, dof, mechanism)
        if abs(ratio) > SMALLEST_RATIO:
            found[column] = min(found[column], rate / abs(ratio))
