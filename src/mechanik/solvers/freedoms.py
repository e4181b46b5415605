"""Names of joints and freedoms, as people give them to a solver, as places in q and v."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mechanik.errors import LimitsError, ObjectiveError, ShapeError, UnknownName, WrongKind
from mechanik.mechanism import Joint, Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives import Objective
from mechanik.spatial.array import Array, ArrayLike

Names = Iterable[str | Joint]
SMALLEST_EASE = 1e-6


def places(mechanism: Mechanism, name: str | Joint) -> tuple[list[int], list[int]]:
    """Where a joint, or one freedom (`base.X`), stands in q and in v. A follower stands where its leader does."""
    space, kinematics = mechanism.space, mechanism.kinematics
    if isinstance(name, Joint):
        name = mechanism.name_of(name)
    if not isinstance(name, str):
        raise WrongKind(f"joints are given by name, not as {name!r}")
    if name in mechanism.joints:
        joint = mechanism.joint(name)
        slot = kinematics.slots.get(joint)
        if slot is not None:
            q, v = list(slot.q.values()), list(slot.v.values())
            for coupling in joint.couplings:
                leader, dof, _, _ = coupling.resolve()
                q.append(kinematics.slots[leader].q[dof])
                v.append(kinematics.slots[leader].v[dof])
            if slot.ball_q is not None and slot.ball_v is not None:
                q += range(slot.ball_q, slot.ball_q + 4)
                v += range(slot.ball_v, slot.ball_v + 3)
            return q, v
        if joint.is_closure:
            raise WrongKind(
                f"joint {name!r} closes a loop and has no numbers of its own; lock or limit the joints beside it"
            )
        return [], []
    if name in space.q_names and name in space.v_names:
        return [space.q_names.index(name)], [space.v_names.index(name)]
    if name in space.v_names or name in space.q_names:
        raise WrongKind(f"{name!r} is part of a ball joint, which turns as a whole; name the joint")
    raise UnknownName("joint", name, [*mechanism.joints, *(n for n in space.v_names if n not in mechanism.joints)])


def as_mask(
    mechanism: Mechanism, names: Names | str | Joint | None, otherwise: bool
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(nv,), True for the freedoms that are named."""
    mask = np.full(mechanism.nv, otherwise and names is None, dtype=np.bool_)
    if names is None:
        return mask
    if not isinstance(names, Iterable):
        raise WrongKind(f"joints are given by name, or as several names, not as {names!r}")
    for name in [names] if isinstance(names, str | Joint) else names:
        mask[places(mechanism, name)[1]] = True
    return mask


def as_bounds(mechanism: Mechanism, limits: Mapping[str, ArrayLike] | None) -> tuple[Array, Array]:
    """(nq,) each: the mechanism's limits, with those replaced that are given by name as (lower, upper)."""
    lower, upper = mechanism.space.lower.copy(), mechanism.space.upper.copy()
    if limits is None:
        return lower, upper
    if not isinstance(limits, Mapping):
        raise ShapeError(f"limits are given by name, as in {{'elbow': (0, 2)}}, not as {limits!r}")
    for name, pair in limits.items():
        if np.shape(pair) != (2,):
            raise ShapeError(f"limits of {name!r} must be (lower, upper), not {pair!r}")
        bounds: list[object] = list(pair)  # type: ignore[arg-type]
        low, high = (as_number(bound, f"limit of {name!r}", infinite=True) for bound in bounds)
        if low > high:
            raise LimitsError(f"limits of {name!r} are {low:g} and {high:g}; the lower must not be above the upper")
        q, v = places(mechanism, name)
        if len(q) != len(v):
            raise LimitsError(f"joint {name!r} is a ball, which has no limits; Joint.set_cone gives it one")
        lower[q], upper[q] = low, high
    return lower, upper


def as_weights(
    mechanism: Mechanism, objectives: Sequence[Objective], weights: Mapping[str, float]
) -> tuple[dict[int, float], Array]:
    """Factors on the weights of objectives by number, and how readily each freedom moves, (nv,)."""
    factors: dict[int, float] = {}
    ease = np.ones(mechanism.nv)
    for name, weight in weights.items():
        value = as_number(weight, f"weight of {name!r}")
        if value <= 0:
            raise ObjectiveError(f"weight of {name!r} must be above zero, not {value:g}")
        numbers = [k for k, one in enumerate(objectives) if one.name == name]
        factors |= dict.fromkeys(numbers, value)
        if not numbers:
            ease[places(mechanism, name)[1]] = max(1.0 / value, SMALLEST_EASE)
    return factors, ease
