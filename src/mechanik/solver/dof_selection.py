"""Conversion of joint and dof names, as users give them to a solver, to indices, masks, bounds and weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, ObjectiveError, ShapeError, UnknownName
from mechanik.model import Joint, Mechanism
from mechanik.objectives import Objective
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number

DofNames = Iterable[str | Joint]
"""Joints by name or object, or dofs by name."""
MIN_DOF_WEIGHT = 1e-6
"""Smallest mobility weight of a dof, reached at a user weight of 1e6."""


def dof_indices(mechanism: Mechanism, name: str | Joint) -> tuple[list[int], list[int]]:
    """Return the indices in q and in v of a joint or of a single dof (`base.RADIAL_AXIS`).

    A mimic joint has the indices of its leader.
    """
    space, kinematics = mechanism.space, mechanism.kinematics
    if isinstance(name, Joint):
        name = mechanism.name_of(name)
    if not isinstance(name, str):
        raise InvalidArgument(f"a joint must be a name or a Joint, not {name!r}")
    if name in mechanism.joints:
        joint = mechanism.joint(name)
        slot = kinematics.joint_indices.get(joint)
        if slot is not None:
            q, v = list(slot.q.values()), list(slot.v.values())
            for coupling in joint.couplings:
                leader, dof, _, _ = coupling.resolve()
                q.append(kinematics.joint_indices[leader].q[dof])
                v.append(kinematics.joint_indices[leader].v[dof])
            if slot.quaternion_q is not None and slot.quaternion_v is not None:
                q += range(slot.quaternion_q, slot.quaternion_q + 4)
                v += range(slot.quaternion_v, slot.quaternion_v + 3)
            return q, v
        if joint.is_closure:
            raise InvalidArgument(
                f"joint {name!r} closes a loop, and q has no values for it; lock or limit other joints of the loop"
            )
        return [], []
    if name in space.q_names and name in space.v_names:
        return [space.q_names.index(name)], [space.v_names.index(name)]
    if name in space.v_names or name in space.q_names:
        raise InvalidArgument(f"{name!r} is a component of a spherical joint; name the joint")
    raise UnknownName("joint", name, [*mechanism.joints, *(n for n in space.v_names if n not in mechanism.joints)])


def as_dof_mask(
    mechanism: Mechanism, names: DofNames | str | Joint | None, default: bool
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask (nv,) that is True for the named dofs; all entries are `default` if `names` is None."""
    mask = np.full(mechanism.nv, default and names is None, dtype=np.bool_)
    if names is None:
        return mask
    if not isinstance(names, Iterable):
        raise InvalidArgument(f"joints must be a name or several names, not {names!r}")
    for name in [names] if isinstance(names, str | Joint) else names:
        mask[dof_indices(mechanism, name)[1]] = True
    return mask


def as_bounds(mechanism: Mechanism, limits: Mapping[str, ArrayLike] | None) -> tuple[Array, Array]:
    """Return lower and upper limits, (nq,) each: those of the mechanism, replaced where `limits` has (lower, upper)."""
    lower, upper = mechanism.space.lower.copy(), mechanism.space.upper.copy()
    if limits is None:
        return lower, upper
    if not isinstance(limits, Mapping):
        raise ShapeError(f"limits must be a mapping from names, as in {{'elbow': (0, 2)}}, not {limits!r}")
    for name, pair in limits.items():
        if np.shape(pair) != (2,):
            raise ShapeError(f"limits of {name!r} must be (lower, upper), not {pair!r}")
        bounds: list[object] = list(pair)  # type: ignore[arg-type]
        low, high = (as_number(bound, f"limit of {name!r}", allow_infinite=True) for bound in bounds)
        if low > high:
            raise LimitsError(f"limits of {name!r} are {low:g} and {high:g}; the lower must not be above the upper")
        q, v = dof_indices(mechanism, name)
        if len(q) != len(v):
            raise LimitsError(f"spherical joint {name!r} has no limits; Joint.set_cone limits its swing")
        lower[q], upper[q] = low, high
    return lower, upper


def as_weights(
    mechanism: Mechanism, objectives: Sequence[Objective], weights: Mapping[str, float]
) -> tuple[dict[int, float], Array]:
    """Return the factors on objective weights by objective index, and the mobility weight of each dof, (nv,).

    The mobility weight of a dof is the inverse of the weight that the user gives; 1 by default.
    """
    factors: dict[int, float] = {}
    dof_weights = np.ones(mechanism.nv)
    for name, weight in weights.items():
        value = as_number(weight, f"weight of {name!r}")
        if value <= 0:
            raise ObjectiveError(f"weight of {name!r} must be above zero, not {value:g}")
        indices = [k for k, objective in enumerate(objectives) if objective.name == name]
        factors |= dict.fromkeys(indices, value)
        if not indices:
            dof_weights[dof_indices(mechanism, name)[1]] = max(1.0 / value, MIN_DOF_WEIGHT)
    return factors, dof_weights
