"""The six degrees of freedom that a joint may leave and a goal may ask for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from enum import IntEnum

from mechanik.errors import DoFError


class DoF(IntEnum):
    """Three translations, then three Euler angles of the motion T(x, y, z) Rz Ry Rx."""

    X = 0
    Y = 1
    Z = 2
    EX = 3
    EY = 4
    EZ = 5

    @classmethod
    def _missing_(cls, value: object) -> DoF | None:
        """`DoF("EX")` as well as `DoF.EX`."""
        return cls.__members__.get(value.strip().upper()) if isinstance(value, str) else None

    @property
    def is_rotation(self) -> bool:
        return self >= DoF.EX

    @property
    def direction(self) -> int:
        """0, 1, 2 for the axis x, y, z along or about which it moves."""
        return self % 3


TRANSLATIONS = (DoF.X, DoF.Y, DoF.Z)
ROTATIONS = (DoF.EX, DoF.EY, DoF.EZ)
ALL = TRANSLATIONS + ROTATIONS

DoFLike = DoF | int | str


def as_dof(which: DoFLike) -> DoF:
    """`DoF.EX`, 3 or "EX" as a `DoF`."""
    try:
        return DoF(which)
    except ValueError:
        names = ", ".join(dof.name for dof in DoF)
        raise DoFError(f"{which!r} is no degree of freedom; there are {names}") from None


def as_dofs(which: Iterable[DoFLike] | DoFLike) -> tuple[DoF, ...]:
    """A checked, ascending tuple; out of order or doubled raises, since q would be read wrongly."""
    try:
        items = [which] if isinstance(which, str | int) else list(which)
    except TypeError:
        raise DoFError(f"{which!r} are no degrees of freedom; name some of X Y Z EX EY EZ") from None
    dofs = tuple(as_dof(one) for one in items)
    for before, after in itertools.pairwise(dofs):
        if before == after:
            raise DoFError(f"{after.name} is given twice")
        if before > after:
            raise DoFError(f"{after.name} stands after {before.name}; the order is X Y Z EX EY EZ")
    return dofs
