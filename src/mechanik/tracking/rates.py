"""Limits of velocity and acceleration, as people give them and as files have them, by the numbers of v."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import LimitsError, ShapeError, WrongKind
from mechanik.mechanism import Joint, Mechanism
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.coupling import SMALLEST_RATIO
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.door import as_number
from mechanik.mechanism.velocities import _column as column_of
from mechanik.spatial.array import Array

Rates = float | Mapping[str, float]
"""One number for all freedoms, or numbers by joint (`elbow`) or freedom (`base.X`); m or rad, per s or s^2."""


def as_rates(mechanism: Mechanism, given: Rates | None, what: str) -> Array:
    """(nv,) the largest rate of each number of v; infinite where nothing is said.

    What a follower may do at most binds its leader. Of a ball each of its three turns has the limit.

    Args:
        what: for messages, "velocity" or "acceleration".
    """
    found = np.full(mechanism.nv, math.inf)
    if given is None:
        return found
    if isinstance(given, Mapping):
        for name, rate in given.items():
            joint, dofs = joint_and_freedoms(name, mechanism.joints)
            _narrow(mechanism, found, joint, dofs, _checked(rate, f"{what} of {name!r}"), name)
        return found
    rate = _checked(given, what)
    for joint in mechanism.joints.values():
        if joint.dof and not joint.is_closure and joint in mechanism.kinematics.slots:
            _narrow(mechanism, found, joint, joint.dof, rate, joint.name)
    return found


def own_velocities(mechanism: Mechanism) -> Array:
    """(nv,) the largest velocities that the file of the mechanism gave, as URDF and SDF do; 0 there means not known."""
    found = np.full(mechanism.nv, math.inf)
    kept: Any = mechanism.extras.get("limits")
    if not isinstance(kept, Mapping):
        return found
    for name, said in cast("Mapping[str, Any]", kept).items():
        rate: Any = cast("Mapping[str, Any]", said).get("velocity") if isinstance(said, Mapping) else None
        joint = mechanism.joints.get(name)
        is_rate = isinstance(rate, int | float) and math.isfinite(rate) and rate > 0.0
        if is_rate and joint is not None and joint in mechanism.kinematics.slots and not joint.is_closure:
            _narrow(mechanism, found, joint, joint.dof, float(rate), name)
    return found


def _checked(rate: object, what: str) -> float:
    if isinstance(rate, str) or np.ndim(cast("Any", rate)) != 0:
        raise ShapeError(f"{what} is one number, or numbers by the names of joints, not {rate!r}")
    number = as_number(rate, what, infinite=True)
    if not number > 0.0:
        raise LimitsError(f"{what} must be above zero, not {number:g}; `lock` holds a joint where it is")
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
