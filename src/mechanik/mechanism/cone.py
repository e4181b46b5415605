"""The limit of a joint that turns about several axes: how far its own axes may tilt."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mechanik.errors import DoFError, LimitsError, WrongKind
from mechanik.mechanism.dof import DoFLike
from mechanik.mechanism.door import as_number
from mechanik.mechanism.freedoms import Freedoms

LETTERS = "xyz"


@dataclass(frozen=True, slots=True)
class Cone:
    """Some axes of motion of a joint stay within `angle` of where they stand at zero.

    With z alone it may twist about z as it likes. With all three the whole turn is bounded too: by `angle` about each
    of them, and by a quarter more about an axis between them (for angles up to 0.9 rad).

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


class Tilting(Freedoms):
    """Freedoms of which several may be turns, and which may have a cone."""

    _cone: Cone | None

    def set_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Choose the freedoms anew: values, limits and cone are reset."""
        super().set_dof(dof)
        self._cone = None

    @property
    def cone(self) -> Cone | None:
        """How far its axes may tilt; None if that is not limited."""
        return self._cone

    def set_cone(self, angle: float | None, axes: str = "z") -> None:
        """Limit how far a ball or a universal joint may tilt, in the tree or closing a loop; None takes it away.

        Solvers keep it as they keep loops shut. A joint that is moved by hand may leave it, as it may open a loop.

        Args:
            angle: rad, above 0 and below pi.
            axes: which of its axes of motion stay within `angle` of where they stand at zero. With "z" it may twist
                as it likes; with "xyz" it may turn by `angle` about each of them, and by little more in all.
        """
        if angle is None:
            self._cone = None
        else:
            turns = sum(dof.is_rotation for dof in self._dof)
            if turns < 2:
                raise DoFError(
                    f"{self} turns by {turns} of its freedoms, and a cone is for two or three; use set_limits"
                )
            self._cone = Cone(angle, axes)
        self._touch()
