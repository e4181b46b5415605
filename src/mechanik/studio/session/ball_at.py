"""A ball joint at a turn, also where its joint slides besides."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Self, Unpack

from mechanik.mechanism import Mechanism
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.aims import Aim, ball
from mechanik.objectives.door import as_wxyz
from mechanik.objectives.objective import Wish
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BallAt(Aimed):
    """`JointValues` asks for all numbers of a joint at once; this one leaves its slides alone.

    Attributes:
        joint: by name.
        wxyz: (4,), read-only, in the joint's frame.
    """

    joint: str
    wxyz: Array

    def __init__(self, joint: str, wxyz: ArrayLike, **wish: Unpack[Wish]) -> None:
        Aimed.__init__(self, "exact", **wish)
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "wxyz", as_wxyz(wxyz, f"turn of {joint!r}"))

    def __repr__(self) -> str:
        return f"<{self._called}: {self.joint} at {self.wxyz.tolist()}>"

    def aims(self, mechanism: Mechanism) -> tuple[Aim, ...]:
        return (ball(self.joint, self.wxyz, self.weight),)

    def at(self, target: ArrayLike) -> Self:
        other = copy(self)
        object.__setattr__(other, "wxyz", as_wxyz(target, f"turn of {self.joint!r}"))
        return other
