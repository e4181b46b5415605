"""Joints at given values."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from mechanik.errors import ObjectiveError, UnknownName
from mechanik.mechanism import Mechanism
from mechanik.objectives.aimed import Aimed, Turns
from mechanik.objectives.aims import Aim, aims_by_name, as_values
from mechanik.objectives.objective import Wish
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointValues(Aimed):
    """Joints, or single freedoms of joints, shall have given values: one row for each number, three for a ball.

    Args:
        values: by joint (`elbow`) or by freedom (`base.X`): a number, or as many as the joint has freedoms, m and rad.
            A ball takes three angles (EX EY EZ), or a quaternion wxyz. What a follower should do is asked of its
            leader. A joint that closes a loop may be named too; of its turns all have to be given.
        turns: whether an angle means the nearest one that looks the same and lies inside the limits, or counts full
            turns.
    """

    values: Mapping[str, Array]

    def __init__(self, values: Mapping[str, ArrayLike], *, turns: Turns = "nearest", **wish: Unpack[Wish]) -> None:
        Aimed.__init__(self, turns, **wish)
        checked = as_values(values, f"values of {self._called}")
        if not checked:
            raise ObjectiveError(f"{self._called} wants nothing: name at least one joint")
        object.__setattr__(self, "values", checked)

    def __repr__(self) -> str:
        wanted = ", ".join(f"{name} = {_text(numbers)}" for name, numbers in self.values.items())
        return f"<{self._called}: {wanted}>"

    def aims(self, mechanism: Mechanism) -> tuple[Aim, ...]:
        return aims_by_name(mechanism, self.values, self.weight)

    def at(self, target: Mapping[str, ArrayLike] | ArrayLike) -> Self:
        """The same wish with other values: by name, the rest staying; or the bare value, where one name is wanted."""
        if not isinstance(target, Mapping):
            if len(self.values) > 1:
                raise ObjectiveError(f"{self._called} wants {len(self.values)} names; give the new values by name")
            target = {next(iter(self.values)): target}
        given = as_values(target, f"values of {self._called}")
        for name in given:
            if name not in self.values:
                raise UnknownName(f"value of {self._called}", name, self.values)
        other = copy(self)
        object.__setattr__(other, "values", {**self.values, **given})
        return other


def _text(numbers: Array) -> str:
    return f"{numbers[0]:g}" if numbers.size == 1 else str(np.round(numbers, 4).tolist())
