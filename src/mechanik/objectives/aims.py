"""Values that joints should have, given by name, as rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mechanik.errors import CouplingError, DoFError, ObjectiveError, ShapeError
from mechanik.mechanism import DoF, Joint, Mechanism
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.coupling import SMALLEST_RATIO
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.closures import closure_values
from mechanik.objectives.door import as_wxyz
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import euler
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """Where one freedom, one ball, or a joint that closes a loop should be.

    Attributes:
        period: targets of a single freedom that differ by it look the same; infinite where no others do.
    """

    relation: Relation
    period: float = math.inf


def as_values(values: Mapping[str, ArrayLike], what: str) -> dict[str, Array]:
    """The door: names with one or more finite numbers each, as arrays (n,)."""
    if not isinstance(values, Mapping):
        raise ShapeError(f"{what} must be given by name, as in {{'elbow': 0.5}}, not as {values!r}")
    checked: dict[str, Array] = {}
    for name, given in values.items():
        try:
            numbers = np.atleast_1d(np.array(given, dtype=np.float64))
        except (TypeError, ValueError):
            raise ShapeError(f"{what} at {name!r}: {given!r} is neither a number nor several") from None
        if numbers.ndim != 1:
            raise ShapeError(f"{what} at {name!r} are numbers, not an array of shape {numbers.shape}")
        for number in numbers:
            as_number(number, f"{what} at {name!r}")
        checked[str(name)] = read_only(numbers)
    return checked


def aims_by_name(mechanism: Mechanism, values: Mapping[str, Array], weight: float = 1.0) -> tuple[Aim, ...]:
    """What `values` want of the mechanism, by joint (`elbow`) or by freedom (`base.X`); unknown names are refused.

    A joint of several freedoms takes a number for each, in the order X Y Z EX EY EZ; a ball takes wxyz in place of
    its three angles as well. A follower's value is asked of its leader.
    """
    found: dict[str, Aim] = {}
    asking: dict[str, str] = {}
    for name, numbers in values.items():
        joint, dofs = joint_and_freedoms(name, mechanism.joints)
        if not dofs:
            raise DoFError(f"{joint} is fixed and takes no value")
        for freedom, aim in _aims(mechanism, joint, dofs, numbers, weight):
            if freedom in found and not _agree(found[freedom], aim):
                before, there, here = asking[freedom], found[freedom].relation.target, aim.relation.target
                raise ObjectiveError(
                    f"{before!r} and {name!r} contradict each other: they want {freedom!r} at {_text(there)} and at "
                    f"{_text(here)}{_why(before, name, freedom)}"
                )
            found[freedom] = aim
            asking[freedom] = name
    return tuple(found.values())


def aims_at(mechanism: Mechanism, q: Array, weight: float = 1.0) -> tuple[Aim, ...]:
    """The aims that a whole configuration (nq,) stands for."""
    space = mechanism.space
    found: list[Aim] = []
    for joint, slot in mechanism.kinematics.slots.items():
        found += [single(space.q_names[k], float(q[k]), dof, weight) for dof, k in slot.q.items()]
        if slot.ball_q is not None:
            found.append(ball(mechanism.name_of(joint), q[slot.ball_q : slot.ball_q + 4], weight))
    return tuple(found)


def near(
    mechanism: Mechanism, aims: Iterable[Aim], q: Array, lower: Array | None = None, upper: Array | None = None
) -> tuple[Relation, ...]:
    """The relations of some aims, each angle by full turns as near as can be to q (nq,), inside the limits (nq,)."""
    space = mechanism.space
    low, high = space.lower if lower is None else lower, space.upper if upper is None else upper
    found: list[Relation] = []
    for aim in aims:
        relation = aim.relation
        if relation.kind is Kind.VALUE and math.isfinite(aim.period):
            k = space.q_names.index(relation.freedom)
            target = nearest(float(relation.target[0]), float(q[k]), float(low[k]), float(high[k]), aim.period)
            relation = replace(relation, target=read_only(np.array([target])))
        found.append(relation)
    return tuple(found)


def nearest(
    target: float, value: float, lower: float = -math.inf, upper: float = math.inf, period: float = 2 * math.pi
) -> float:
    """Of the targets that differ by whole periods, the one nearest to `value` inside the limits, or nearest to them."""
    fewest = -math.inf if lower == -math.inf else math.ceil((lower - target) / period - 1e-12)
    most = math.inf if upper == math.inf else math.floor((upper - target) / period + 1e-12)
    if fewest <= most:
        return target + period * min(max(round((value - target) / period), fewest), most)
    below, above = target + period * most, target + period * fewest
    return below if lower - below < above - upper else above


def single(freedom: str, target: float, dof: DoF, weight: float) -> Aim:
    """The aim of one number of q."""
    relation = Relation(Kind.VALUE, (0,), freedom=freedom, target=read_only(np.array([target])), weight=weight)
    return Aim(relation, 2 * math.pi if dof.is_rotation else math.inf)


def ball(joint: str, wxyz: ArrayLike, weight: float) -> Aim:
    """The aim of a ball."""
    target = as_wxyz(wxyz, f"target of {joint!r}")
    return Aim(Relation(Kind.TURN, (0, 1, 2), freedom=joint, target=target, weight=weight))


def _aims(
    mechanism: Mechanism, joint: Joint, dofs: tuple[DoF, ...], numbers: Array, weight: float
) -> list[tuple[str, Aim]]:
    """What a joint's freedoms are asked, with the name of what moves for it."""
    name, space = mechanism.name_of(joint), mechanism.space
    if joint.closure is not None:
        values = dict(zip(dofs, _as_many(numbers, len(dofs), joint).tolist(), strict=True))
        relations = closure_values(mechanism, joint.closure, values, weight)
        return [(f"{name}.{dofs}.{k}", Aim(relation)) for k, relation in enumerate(relations)]
    slot = mechanism.kinematics.slots.get(joint)
    if slot is None:
        raise DoFError(f"{joint} holds no link and takes no value")
    found: list[tuple[str, Aim]] = []
    turns = [dof for dof in dofs if dof.is_rotation]
    if slot.ball_q is not None and turns:
        if len(turns) < 3:
            raise DoFError(f"{joint} is a ball, of which one angle cannot be wanted alone; give all three, or wxyz")
        shifts = len(dofs) - 3
        if numbers.size == shifts + 4:
            wxyz = numbers[shifts:]
        else:
            numbers = _as_many(numbers, len(dofs), joint)
            wxyz = euler.quaternion_from_euler(numbers[:-4:-1], order="zyx", axes="moving")
        found.append((name, ball(name, wxyz, weight)))
        dofs, numbers = dofs[:shifts], numbers[:shifts]
    for dof, number in zip(dofs, _as_many(numbers, len(dofs), joint).tolist(), strict=True):
        if dof in joint._couplings:
            leader, leader_dof, ratio, offset = joint._couplings[dof].resolve()
            if abs(ratio) < SMALLEST_RATIO:
                raise CouplingError(f"{joint} follows {leader} by nothing and stands at {offset:g}; it cannot be asked")
            freedom = space.q_names[mechanism.kinematics.slots[leader].q[leader_dof]]
            aim = single(freedom, (number - offset) / ratio, dof, weight * abs(ratio))
            found.append((freedom, Aim(aim.relation, aim.period / abs(ratio))))
        else:
            freedom = space.q_names[slot.q[dof]]
            found.append((freedom, single(freedom, number, dof, weight)))
    return found


def _as_many(numbers: Array, size: int, joint: Joint) -> Array:
    if numbers.size != size:
        raise ShapeError(f"values of {joint}: {numbers.size} given, but there are {size} freedoms")
    return numbers


def _agree(one: Aim, other: Aim) -> bool:
    a, b = one.relation.target, other.relation.target
    return a.shape == b.shape and bool(np.abs(a - b).max() < 1e-9)


def _text(numbers: Array) -> str:
    return f"{float(numbers[0]):g}" if numbers.size == 1 else str(np.round(numbers, 4).tolist())


def _why(before: str, name: str, freedom: str) -> str:
    """Which of two names is that of a follower."""
    followers = [repr(one) for one in (before, name) if one.split(".")[0] != freedom.split(".")[0]]
    return f" ({' and '.join(followers)} {'follows' if len(followers) == 1 else 'follow'} it)" if followers else ""
