"""Options of every solver, independent of its method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from numbers import Integral

from mechanik.errors import LimitsError, UnknownName
from mechanik.validation import as_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of every solver, independent of its method.

    Example:
        >>> mk.Options(max_seconds=0.01, restarts=20).tolerance
        1e-06

    Raises:
        LimitsError: for a value outside its range.

    Attributes:
        max_iterations: maximum number of iterations of an attempt; with priority levels, of each level of each
            subproblem. None: the default of the method.
        max_seconds: maximum time of a whole solve, s; infinite by default.
        restarts: maximum number of further starts if the first does not lead to success. None: for a serial chain with
            a single pose-like goal, as many as take about half a millisecond; otherwise none. Also none where joints
            have weights, tolerances are below 1e-11, or a call has limits, locks, a callback or a history.
        tolerance, angle_tolerance: tolerances of the goals and targets of a graph, m and rad; objectives have their
            own.
        smallest_step: a step below this ends a level with status STALLED; rad, or m divided by the characteristic
            length of the mechanism. 0: never.
        smallest_gradient: gradient relative to the error; below this a level is at a minimum and ends with status
            CLOSEST.
        position_weight, rotation_weight: factors on all length errors and on all angle errors.
        rest_factor: share of the distance to the rest pose that a solve covers, 0 to 1.
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
    def restart_count(self) -> int:
        """Number of restarts of all solvers except the chain kernel."""
        return self.restarts or 0

    def __post_init__(self) -> None:
        for name in ("max_iterations", "restarts"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                raise LimitsError(f"{name} must be a whole number of 0 or more, not {value!r}")
        for name in NUMERIC_OPTIONS:
            if isinstance(getattr(self, name), str):
                raise LimitsError(f"{name} must be a number, not the text {getattr(self, name)!r}")
        for name in ("tolerance", "angle_tolerance", "position_weight", "rotation_weight"):
            if not as_number(getattr(self, name), name, allow_infinite=True) > 0:
                raise LimitsError(f"{name} must be above 0, not {getattr(self, name)!r}")
        for name in ("max_seconds", "smallest_step", "smallest_gradient", "rest_factor"):
            if not as_number(getattr(self, name), name, allow_infinite=True) >= 0:
                raise LimitsError(f"{name} cannot be below 0, but is {getattr(self, name)!r}")
        if self.rest_factor > 1:
            raise LimitsError(f"rest_factor is a share from 0 to 1, not {self.rest_factor!r}")


OPTION_NAMES = tuple(field.name for field in fields(Options))
"""Names of the options of every solver."""
NUMERIC_OPTIONS = tuple(name for name in OPTION_NAMES if name not in ("max_iterations", "restarts"))
"""Names of the options that need not be whole numbers."""


def check_option_names(names: Iterable[str], method_options: Sequence[str]) -> None:
    """Raise `UnknownName` for an option that is neither in `Options` nor in `method_options`."""
    for name in names:
        if name not in OPTION_NAMES and name not in method_options:
            raise UnknownName("option", name, (*method_options, *OPTION_NAMES))
