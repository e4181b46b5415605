"""The Jacobian's transpose in place of its inverse: joints give way as if the error were a force that pulls the hand.

One step is cheap and never singular, and many are needed. Where the original of this idea for the browser compared
Euler angles, rotations are compared here as rotation vectors, so the step is downhill however the hand is turned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from mechanik.errors import LimitsError
from mechanik.kernels.methods.gradient_steps import OPTIMAL
from mechanik.mechanism.door import as_number
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.solvers.slope import Slope
from mechanik.tiers import kernel_module

steps = kernel_module("methods.gradient_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianTranspose(Method):
    """
    Attributes:
        step: alpha in the papers. "optimal": the length that serves a linear mechanism best, Buss 2009, section 5. A
            number: fixed, in units of the weighted rows, as 0.05 in the table of Denavit and Hartenberg that this
            method was shown with; too large a one swings, and nothing stops it.
        relaxation: which share of the optimal length is gone. With 1, steps soon go to and fro between two ways; a
            little less needs half as many (Raydan and Svaiter 2002). Of no account if `step` is a number.
    """

    name: ClassVar[str] = "jacobian_transpose"
    title: ClassVar[str] = "Jacobian transpose"
    citation: ClassVar[str] = (
        "W. A. Wolovich and H. Elliott, A computational technique for inverse kinematics, IEEE Conf. Decision and"
        " Control (1984); A. Balestrino, G. De Maria and L. Sciavicco, Robust control of robotic manipulators, IFAC"
        " World Congress (1984); S. R. Buss, Introduction to inverse kinematics with Jacobian transpose, pseudoinverse"
        " and damped least squares methods, University of California, San Diego (2009); M. Raydan and B. F. Svaiter,"
        " Relaxed steepest descent and Cauchy-Barzilai-Borwein method, Comput. Optim. Appl. 21 (2002)"
    )
    usual_iterations: ClassVar[int] = 2000

    step: float | Literal["optimal"] = "optimal"
    relaxation: float = 0.9

    def __post_init__(self) -> None:
        if self.step != "optimal" and (isinstance(self.step, str) or not as_number(self.step, "step") > 0):
            raise LimitsError(f"step must be 'optimal' or a number above 0, not {self.step!r}")
        if isinstance(self.relaxation, str) or not 0 < as_number(self.relaxation, "relaxation") < 2:
            raise LimitsError(f"relaxation must be above 0 and below 2, not {self.relaxation!r}")

    def iterate(self, problem: Problem) -> Iterator[None]:
        slope, alpha = Slope(problem), OPTIMAL if isinstance(self.step, str) else float(self.step)
        while True:
            slope.look()
            pull, low, high = slope.gradient, slope.low, slope.high
            if steps.transpose_step(problem.jacobian, pull, low, high, alpha, self.relaxation, problem.step) == 0.0:
                return
            problem.advance()
            yield
