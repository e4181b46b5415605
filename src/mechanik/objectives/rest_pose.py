"""Where a mechanism would rather be, as far as nothing else is asked."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Self, Unpack

import numpy as np

from mechanik.errors import DoFError, NotFinite, ObjectiveError, ShapeError
from mechanik.mechanism import DoF, Joint, Mechanism
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.dof import ROTATIONS
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.aimed import Aimed, Turns
from mechanik.objectives.aims import Aim, aims_at, aims_by_name, as_values, ball, single
from mechanik.objectives.closures import closure_values
from mechanik.objectives.objective import Wish
from mechanik.spatial import euler
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RestPose(Aimed):
    """Pulls joints to a configuration. By default on the last of levels, and no condition of success.

    Args:
        q: a configuration (nq,); or values by name, as for `JointValues`; or None: what the joints' own `rest_pose`
            says at the time.
        weights: by joint or by freedom, how hard it pulls; 1 where nothing is said, and 0 is not at all.
        turns: as for `JointValues`. With q=None, a joint with `track_turns` counts full turns all the same.
    """

    q: Array | Mapping[str, Array] | None
    weights: Mapping[str, float]

    def __init__(
        self,
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        turns: Turns = "nearest",
        **wish: Unpack[Wish],
    ) -> None:
        wish.setdefault("level", 100)
        wish.setdefault("required", False)
        Aimed.__init__(self, turns, **wish)
        object.__setattr__(self, "q", self._checked(q))
        object.__setattr__(self, "weights", self._checked_weights(weights))

    def __repr__(self) -> str:
        where = "as its joints say" if self.q is None else f"of {len(self.q)} values"
        return f"<{self._called} {where}>"

    def aims(self, mechanism: Mechanism) -> tuple[Aim, ...]:
        if self.q is None:
            aims = _of_joints(mechanism)
        elif isinstance(self.q, Mapping):
            aims = aims_by_name(mechanism, self.q)
        else:
            aims = aims_at(mechanism, mechanism._one(self.q))
        pulls = self._pulls(mechanism)
        weighted: list[Aim] = []
        for aim in aims:
            pull = pulls.get(aim.relation.freedom, 1.0) * aim.relation.weight * self.weight
            if pull > 0.0:
                weighted.append(Aim(replace(aim.relation, weight=pull), aim.period))
        return tuple(weighted)

    def at(self, target: ArrayLike | Mapping[str, ArrayLike]) -> Self:
        """The same wish for another configuration, or other values by name."""
        other = copy(self)
        object.__setattr__(other, "q", self._checked(target))
        return other

    def _checked(self, q: ArrayLike | Mapping[str, ArrayLike] | None) -> Array | Mapping[str, Array] | None:
        if q is None:
            return None
        if isinstance(q, Mapping):
            return as_values(q, f"values of {self._called}")
        try:
            numbers = np.array(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"q of {self._called} must be an array of numbers, not {q!r}") from None
        if numbers.ndim != 1:
            raise ShapeError(f"q of {self._called} is one configuration (nq,), not an array of shape {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise NotFinite(f"q of {self._called} has an entry that is not finite")
        return read_only(numbers)

    def _checked_weights(self, weights: Mapping[str, float] | None) -> dict[str, float]:
        if weights is None:
            return {}
        if not isinstance(weights, Mapping):
            raise ShapeError(f"weights of {self._called} are given by name, as in {{'elbow': 0.1}}, not as {weights!r}")
        pulls = {str(name): as_number(pull, f"weight of {name!r}") for name, pull in weights.items()}
        for name, pull in pulls.items():
            if pull < 0.0:
                raise ObjectiveError(f"weight of {name!r} in {self._called} is {pull:g}; it cannot be negative")
        return pulls

    def _pulls(self, mechanism: Mechanism) -> dict[str, float]:
        """The weights by what relations call a freedom: its name in q, or the joint's for a ball."""
        pulls: dict[str, float] = {}
        for name, pull in self.weights.items():
            joint, dofs = joint_and_freedoms(name, mechanism.joints)
            slot = mechanism.kinematics.slots.get(joint)
            if slot is None:
                raise ObjectiveError(f"{joint} has no numbers in q, so it takes no weight in {self._called}")
            pulls |= {mechanism.space.q_names[slot.q[dof]]: pull for dof in dofs if dof in slot.q}
            if slot.ball_q is not None and any(dof in ROTATIONS for dof in dofs):
                if not all(dof in dofs for dof in ROTATIONS):
                    raise DoFError(f"{joint} is a ball, of which one angle takes no weight of its own; weigh the joint")
                pulls[mechanism.name_of(joint)] = pull
        return pulls


def _of_joints(mechanism: Mechanism) -> tuple[Aim, ...]:
    """What the joints' own rest poses say."""
    found: list[Aim] = []
    for name, joint in mechanism.joints.items():
        rest = _rest_of(joint)
        slot = mechanism.kinematics.slots.get(joint)
        if joint.closure is not None:
            found += [Aim(relation) for relation in closure_values(mechanism, joint.closure, rest)]
        elif slot is not None:
            singles = [(mechanism.space.q_names[k], dof) for dof, k in slot.q.items() if dof in rest]
            aims = [single(freedom, rest[dof], dof, 1.0) for freedom, dof in singles]
            found += [Aim(aim.relation) for aim in aims] if joint.track_turns else aims
            if slot.ball_q is not None and DoF.EX in rest:
                zyx = [rest[dof] for dof in reversed(ROTATIONS)]
                found.append(ball(name, euler.quaternion_from_euler(zyx, order="zyx", axes="moving"), 1.0))
    return tuple(found)


def _rest_of(joint: Joint) -> dict[DoF, float]:
    """The rest values that matter. Of turns that can only be wanted together, the others count as they are now."""
    rest = {dof: value for dof, value in zip(joint.dof, joint.rest_pose, strict=True) if value is not None}
    turns = [dof for dof in joint.dof if dof.is_rotation]
    if (joint.is_ball or joint.is_closure) and any(dof in rest for dof in turns):
        return {dof: joint.value(dof) for dof in turns} | rest
    return rest
