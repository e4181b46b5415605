"""What can be set on every solver, whatever its method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from numbers import Integral

from mechanik.errors import LimitsError, UnknownName
from mechanik.mechanism.door import as_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    Attributes:
        max_iterations: of an attempt, or with levels of each level of each chain. None: what is usual for the method.
        max_seconds: of a whole solve; infinite by default.
        restarts: how many further starts are tried when the first does not lead to success. None: what is usual: for a
            serial chain with one pose-like goal about half a millisecond's worth, for all else none; nor where joints
            have weights, tolerances are below 1e-11, or a call brings limits, locks, a callback or a history.
        tolerance, angle_tolerance: m and rad, of the goals and targets of a graph; objectives have their own.
        smallest_step: rad, or sizes of the mechanism; a step below it ends a level as STALLED. 0: never.
        smallest_gradient: relative to the error; below it a level cannot be lowered any more, which is called CLOSEST.
        position_weight, rotation_weight: multiply all lengths and all angles against each other.
        rest_factor: which share of the way to a rest pose one solve goes, 0 to 1.
    """

    max_iterations: int | None = None
    max_seconds: float = math.inf
    restarts: int | None = None
    tolerance: float = 1e-6
    angle_tolerance: float = 1e-6
    smallest_step: float = 0.0
    smallest_gradient: float = 1e-8
    position_weight: float = 1.0
    rotation_weight: float = 1.0
    rest_factor: float = 1.0

    @property
    def further_starts(self) -> int:
        """How many starts are tried after the first, by all but the chain kernel."""
        return self.restarts or 0

    def __post_init__(self) -> None:
        for name in ("max_iterations", "restarts"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                raise LimitsError(f"{name} must be a whole number of 0 or more, not {value!r}")
        for name in NUMBERS:
            if isinstance(getattr(self, name), str):
                raise LimitsError(f"{name} must be a number, not the text {getattr(self, name)!r}")
        for name in ("tolerance", "angle_tolerance", "position_weight", "rotation_weight"):
            if not as_number(getattr(self, name), name, infinite=True) > 0:
                raise LimitsError(f"{name} must be above 0, not {getattr(self, name)!r}")
        for name in ("max_seconds", "smallest_step", "smallest_gradient", "rest_factor"):
            if not as_number(getattr(self, name), name, infinite=True) >= 0:
                raise LimitsError(f"{name} cannot be below 0, but is {getattr(self, name)!r}")
        if self.rest_factor > 1:
            raise LimitsError(f"rest_factor is a share from 0 to 1, not {self.rest_factor!r}")


NAMES = tuple(field.name for field in fields(Options))
NUMBERS = tuple(name for name in NAMES if name not in ("max_iterations", "restarts"))
"""Those that need not be whole."""


def check_names(given: Iterable[str], own: Sequence[str]) -> None:
    """Refuse an option that neither every solver nor this method has."""
    for name in given:
        if name not in NAMES and name not in own:
            raise UnknownName("option", name, (*own, *NAMES))
