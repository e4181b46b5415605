"""The limit of a joint that turns about several axes: how far its own axes may tilt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechanik.errors import LimitsError, WrongKind
from mechanik.mechanism.door import as_number

LETTERS = "xyz"


@dataclass(frozen=True, slots=True)
class Cone:
    """Some axes of motion of a joint stay within `angle` of where they stand at zero.

    With z alone it may twist about z as it likes. With all three the whole turn is bounded too: it is at most `angle`
    about any one of the axes, and at most 1.23 times that about an axis between them, if the angle is below 1 rad.

    Attributes:
        angle: rad, above 0 and below pi; half of the opening.
        axes: letters among x, y and z.
    """

    angle: float
    axes: str = "z"

    def __post_init__(self) -> None:
        angle = as_number(self.angle, "angle of a cone")
        if not 0.0 < angle < math.pi:
            raise LimitsError(f"angle of a cone is {angle:g} rad; it must lie between 0 and pi")
        axes = self.axes
        if not isinstance(axes, str) or not axes or any(one not in LETTERS for one in axes):
            raise WrongKind(f"axes of a cone are letters among x, y and z, not {axes!r}")
        object.__setattr__(self, "angle", angle)
        object.__setattr__(self, "axes", "".join(one for one in LETTERS if one in axes))

    @property
    def directions(self) -> tuple[int, ...]:
        """Which axes: 0, 1, 2."""
        return tuple(LETTERS.index(one) for one in self.axes)
