"""What can be set on the default solver."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from mechanik.errors import LimitsError, UnknownName
from mechanik.mechanism.door import as_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    Attributes:
        max_iterations: of each level of each chain.
        max_seconds: of a whole solve; infinite by default.
        restarts: how many further starts are tried when the first does not lead to success.
        tolerance, angle_tolerance: m and rad, of the goals and targets of a graph; objectives have their own.
        damping: None: it follows how well the linear model predicts, as Levenberg and Marquardt have it. A number:
            fixed, in units of the weighted rows; raised only where a step would make things worse.
        smallest_step: rad, or sizes of the mechanism; a step below it ends a level as STALLED. 0: never.
        smallest_gradient: relative to the error; below it a level cannot be lowered any more, which is called CLOSEST.
        largest_error, largest_angle_error: m and rad; goals that are farther off pull only this hard. Infinite by
            default.
        position_weight, rotation_weight: multiply all lengths and all angles against each other.
        rest_factor: which share of the way to a rest pose one solve goes, 0 to 1.
        kick: rad; how far a mechanism is moved to leave a pose that has no slope, such as a straight arm. 0: never.
        kicks: how often that is tried before a level is given up; large kicks search like restarts do, and may jump.
        svd: solve each step by singular values instead of Cholesky's method; slower, and the same within rounding.
    """

    max_iterations: int = 100
    max_seconds: float = math.inf
    restarts: int = 0
    tolerance: float = 1e-6
    angle_tolerance: float = 1e-6
    damping: float | None = None
    smallest_step: float = 0.0
    smallest_gradient: float = 1e-8
    largest_error: float = math.inf
    largest_angle_error: float = math.inf
    position_weight: float = 1.0
    rotation_weight: float = 1.0
    rest_factor: float = 1.0
    kick: float = 0.02
    kicks: int = 1
    svd: bool = False

    def __post_init__(self) -> None:
        for name in ("max_iterations", "restarts", "kicks"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise LimitsError(f"{name} must be a whole number of 0 or more, not {value!r}")
        for name in NUMBERS:
            if isinstance(getattr(self, name), str):
                raise LimitsError(f"{name} must be a number, not the text {getattr(self, name)!r}")
        sizes = ("tolerance", "angle_tolerance", "position_weight", "rotation_weight")
        for name in (*sizes, "largest_error", "largest_angle_error"):
            if not as_number(getattr(self, name), name, infinite=True) > 0:
                raise LimitsError(f"{name} must be above 0, not {getattr(self, name)!r}")
        for name in ("max_seconds", "smallest_step", "smallest_gradient", "kick", "rest_factor"):
            if not as_number(getattr(self, name), name, infinite=True) >= 0:
                raise LimitsError(f"{name} cannot be below 0, but is {getattr(self, name)!r}")
        if self.rest_factor > 1:
            raise LimitsError(f"rest_factor is a share from 0 to 1, not {self.rest_factor!r}")
        if self.damping is not None and not as_number(self.damping, "damping") > 0:
            raise LimitsError(f"damping must be above 0, or None for the adaptive one, not {self.damping!r}")


NUMBERS = (
    "max_seconds", "tolerance", "angle_tolerance", "damping", "smallest_step", "smallest_gradient", "largest_error",
    "largest_angle_error", "position_weight", "rotation_weight", "rest_factor", "kick",
)  # fmt: skip
NAMES = tuple(field.name for field in fields(Options))


def check_names(given: dict[str, object]) -> None:
    for name in given:
        if name not in NAMES:
            raise UnknownName("option", name, NAMES)
