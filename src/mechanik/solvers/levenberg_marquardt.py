"""The default method: damped Gauss-Newton on the manifold, with limits in the step, loops shut and strict levels.

It never gets worse: a step is taken only when the error falls with the loops shut. The loop is compiled as a whole:
`kernels/descent.py` is the loop and `kernels/bounded_step.py` the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar

from mechanik.errors import LimitsError
from mechanik.mechanism.door import as_number
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import yes_or_no

if TYPE_CHECKING:
    from mechanik.solvers.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LevenbergMarquardt(Method):
    """
    Attributes:
        damping: None: it follows how well the linear model predicts, as Levenberg and Marquardt have it. A number:
            fixed, in units of the weighted rows; raised only where a step would make things worse.
        largest_error, largest_angle_error: m and rad; goals that are farther off pull only this hard. Infinite by
            default.
        kick: rad; how far a mechanism is moved to leave a pose that has no slope, such as a straight arm. 0: never.
        kicks: how often that is tried before a level is given up; large kicks search like restarts do, and may jump.
        svd: solve each step by singular values instead of Cholesky's method; slower, and the same within rounding.
    """

    name: ClassVar[str] = "lm"
    title: ClassVar[str] = "Levenberg-Marquardt"
    citation: ClassVar[str] = (
        "K. Levenberg, A method for the solution of certain non-linear problems in least squares, Quart. Appl. Math. 2"
        " (1944); D. W. Marquardt, An algorithm for least-squares estimation of nonlinear parameters, SIAM J. Appl."
        " Math. 11 (1963)"
    )
    usual_iterations: ClassVar[int] = 100
    takes_wishes: ClassVar[bool] = True

    damping: float | None = None
    largest_error: float = math.inf
    largest_angle_error: float = math.inf
    kick: float = 0.02
    kicks: int = 1
    svd: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.kicks, bool) or not isinstance(self.kicks, Integral) or self.kicks < 0:
            raise LimitsError(f"kicks must be a whole number of 0 or more, not {self.kicks!r}")
        for name in ("damping", "largest_error", "largest_angle_error", "kick"):
            if isinstance(getattr(self, name), str):
                raise LimitsError(f"{name} must be a number, not the text {getattr(self, name)!r}")
        for name in ("largest_error", "largest_angle_error"):
            if not as_number(getattr(self, name), name, infinite=True) > 0:
                raise LimitsError(f"{name} must be above 0, not {getattr(self, name)!r}")
        if not as_number(self.kick, "kick", infinite=True) >= 0:
            raise LimitsError(f"kick cannot be below 0, but is {self.kick!r}")
        if self.damping is not None and not as_number(self.damping, "damping") > 0:
            raise LimitsError(f"damping must be above 0, or None for the adaptive one, not {self.damping!r}")
        yes_or_no(self, "svd")

    def check(self, problem: Problem) -> None:
        """It takes whatever there is."""

    def iterate(self, problem: Problem) -> Iterator[None]:
        """Inside another method; by itself the whole loop runs compiled, which is faster."""
        while True:
            before = problem.cost
            problem.descend(max_iterations=1, method=self)
            yield
            if not problem.cost < before:
                return
